//! The graph: variables, codelets, compute sets, copies, streams and the programs over them. What `elaborate` makes and
//! every stage carries.
//!
//! Invariants: names are unique over all variables, and over all compute sets and copies together; ids are in the order
//! of the printed text; only persistent variables have initial values.

use crate::codelet::Codelet;
use crate::family::{CopyFamily, Family, Offset};
use crate::ids::{ComputeSetId, CopyId, FamilyId, ItemId, ProgramId, SpecId, StepId, StreamId, VarId};
use crate::placement::Mapping;
use crate::program::{Program, Step};
use crate::types::{ElemType, Scalar};
use crate::view::Shape;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_source::{OriginId, Origins};
use smol_str::SmolStr;
use std::sync::Arc;

/// Everything that one module and its imports mean.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The module's name.
    pub name: SmolStr,
    /// Variables, persistent ones and temporaries.
    pub vars: PrimaryMap<VarId, Var>,
    /// The codelets and codelet functions that `codelets` were made from, as text.
    pub items: PrimaryMap<ItemId, CodeletItem>,
    /// Specialised codelets.
    pub codelets: PrimaryMap<SpecId, Codelet>,
    /// Compute sets.
    pub sets: PrimaryMap<ComputeSetId, ComputeSet>,
    /// Families of vertices; those of one compute set are neighbours.
    pub families: PrimaryMap<FamilyId, Family>,
    /// For messages: per family the indices of the loops that the user wrote around its vertices, outermost first, as
    /// columns over its domain. Empty where the domain's own indices are all there is.
    pub indices: SecondaryMap<FamilyId, Box<[Offset]>>,
    /// Copies.
    pub copies: PrimaryMap<CopyId, CopySet>,
    /// The host's streams.
    pub streams: PrimaryMap<StreamId, Stream>,
    /// Programs and what they call.
    pub programs: PrimaryMap<ProgramId, Program>,
    /// Steps of all programs, in pre-order.
    pub steps: PrimaryMap<StepId, Step>,
    /// Where everything comes from.
    pub origins: Origins,
}

impl Graph {
    /// Returns a vertex by the indices of the loops that the user wrote around it.
    pub fn index_of(&self, family: FamilyId, instance: u64) -> Vec<i64> {
        let domain = &self.families[family].domain;
        match &self.indices[family][..] {
            [] => domain.point(instance).iter().map(|&i| i as i64).collect(),
            columns => columns.iter().map(|c| c.at(domain, instance)).collect(),
        }
    }
}

/// The storage class of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VarClass {
    /// `var`: persistent.
    Var,
    /// `param`: persistent, saved in checkpoints.
    Param,
    /// `const`: persistent, never written.
    Const,
    /// `temp`: no host name, may share memory with what is not live at the same time.
    Temp,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its path: `w`, `main.matvec.y`.
    pub name: SmolStr,
    /// Storage class.
    pub class: VarClass,
    /// Type of each element.
    pub ty: ElemType,
    /// Its dimensions; a scalar has none.
    pub shape: Shape,
    /// The value at load; zero without.
    pub init: Option<Init>,
    /// Where the text places it, perhaps only in part ([`UNPLACED`](crate::placement::UNPLACED)).
    pub mapping: Option<Mapping>,
    /// Where it comes from.
    pub origin: OriginId,
}

/// The value of a variable at load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// Every element.
    Fill(Scalar),
    /// All elements, row-major, little end first.
    Data(Arc<[u8]>),
}

/// A codelet or codelet function as an item of the printed text, with every outside name resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeletItem {
    /// Its name.
    pub name: SmolStr,
    /// Formatted `.gir`.
    pub text: Arc<str>,
}

/// A set of vertices that run in parallel as one superstep.
#[derive(Clone, Debug)]
pub struct ComputeSet {
    /// Its path.
    pub name: SmolStr,
    /// Its vertices.
    pub families: Vec<FamilyId>,
    /// Where it comes from.
    pub origin: OriginId,
}

/// Copies that happen in one exchange: all reads before all writes.
#[derive(Clone, Debug)]
pub struct CopySet {
    /// Its path.
    pub name: SmolStr,
    /// The copies.
    pub families: Vec<CopyFamily>,
    /// Where it comes from.
    pub origin: OriginId,
}

/// A stream of packets between host and program.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name.
    pub name: SmolStr,
    /// From the host (`in`) or to it.
    pub input: bool,
    /// Type of each element.
    pub ty: ElemType,
    /// One packet.
    pub shape: Shape,
    /// Whether a file that ends begins again.
    pub wrap: bool,
    /// Where it comes from.
    pub origin: OriginId,
}

impl Var {
    /// Returns how many elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.len() * self.ty.bytes() as u64
    }

    /// Returns whether it keeps its value between programs and runs.
    pub fn is_persistent(&self) -> bool {
        self.class != VarClass::Temp
    }
}

impl Stream {
    /// Returns the elements of a packet.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns whether a packet has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
