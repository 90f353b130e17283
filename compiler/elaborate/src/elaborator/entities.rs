//! Entities by name: the unique names of variables, sets and programs, and the sets, programs and constants that are
//! made once.
//!
//! Invariant: no two variables share a name; nor do two sets, or two programs.

use girder_ir::ids::{ComputeSetId, CopyId, ProgramId, StreamId, VarId};
use girder_ir::placement::TileRange;
use girder_ir::types::Scalar;
use girder_typing::ModuleRef;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// The target of an `execute`.
#[derive(Clone, Copy, Debug)]
pub enum Set {
    /// A compute set.
    Compute(ComputeSetId),
    /// A copy.
    Copy(CopyId),
}

/// The identity of a program: the module, the name, and the arguments.
pub type ProgramKey = (ModuleRef, SmolStr, String);

/// An entity that keeps its values from run to run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Persistent {
    /// A variable.
    Var(VarId),
    /// A remote buffer.
    Remote(StreamId),
}

/// Entities and their names.
#[derive(Debug, Default)]
pub struct Entities {
    /// Names of variables and streams.
    pub vars: UniqueNames,
    /// Names of compute sets and copies.
    pub sets: UniqueNames,
    /// Names of programs.
    pub programs: UniqueNames,
    /// Sets of modules.
    pub made_sets: FxHashMap<(ModuleRef, SmolStr), Set>,
    /// Programs with their arguments.
    pub made_programs: FxHashMap<ProgramKey, ProgramId>,
    /// The persistent variables and remote buffers made since the item being evaluated began, in order.
    pub persistent: Vec<Persistent>,
    /// Names of calls that draw random numbers.
    pub sites: UniqueNames,
    /// Variables with drawn initial values whose names decide their sites.
    pub sites_by_name: FxHashSet<VarId>,
    /// Read-only scalars: equal ones are one variable.
    pub constants: FxHashMap<(Scalar, Option<TileRange>), VarId>,
    /// The number of the replica.
    pub replica_index: Option<VarId>,
    /// Temporaries that hold copies of rows selected at run time; they cannot be written.
    pub copies_of_rows: FxHashSet<VarId>,
}

/// Names in use, each with the last number that was appended to it.
#[derive(Debug, Default)]
pub struct UniqueNames(FxHashMap<SmolStr, u64>);

impl UniqueNames {
    /// Returns `path` or, if it is in use, the first of `path_2`, `path_3`, … that is not. Positions in lists stay at
    /// the end: `m_2.0`.
    pub fn unique(&mut self, path: SmolStr) -> SmolStr {
        if self.0.contains_key(&path) {
            return self.numbered(path);
        }
        self.0.insert(path.clone(), 1);
        path
    }

    /// Gives up a name, which no entity has any more.
    pub fn release(&mut self, name: &SmolStr) {
        self.0.remove(name);
    }

    /// Takes a name as it is.
    pub fn take(&mut self, name: SmolStr) {
        self.0.insert(name, 1);
    }

    /// Returns the first of `path_1`, `path_2`, … above the last one that is not in use.
    pub fn numbered(&mut self, path: SmolStr) -> SmolStr {
        let mut k = self.0.get(&path).copied().unwrap_or(0) + 1;
        let (stem, positions) = before_positions(&path);
        let mut name = SmolStr::from(format!("{stem}_{k}{positions}"));
        while self.0.contains_key(&name) {
            k += 1;
            name = format!("{stem}_{k}{positions}").into();
        }
        self.0.insert(path, k);
        self.0.insert(name.clone(), 1);
        name
    }
}

/// Splits a path before the positions in lists at its end.
fn before_positions(path: &str) -> (&str, &str) {
    let mut end = path.len();
    while let Some(dot) = path[..end].rfind('.')
        && path[dot + 1..end].bytes().all(|b| b.is_ascii_digit())
    {
        end = dot;
    }
    path.split_at(end)
}
