//! The graph: variables, codelets, compute sets, copies, streams, and the programs over them. `elaborate` makes it, and
//! every stage carries it.
//!
//! Invariants: names are unique over all variables, and over all compute sets and copies together; ids are in the order
//! of the printed text; only persistent variables have initial values.

use crate::codelet::Codelet;
use crate::drawn::Drawn;
use crate::family::{CopyFamily, CopySource, Family, Offset, ReplicaPair};
use crate::ids::{ComputeSetId, CopyId, FamilyId, ItemId, ProgramId, SpecId, StepId, StreamId, VarId};
use crate::placement::{Mapping, TileRange};
use crate::program::{Program, Step};
use crate::types::{ElemType, Scalar};
use crate::view::Shape;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_source::{OriginId, Origins};
use smol_str::SmolStr;
use std::sync::Arc;

/// The meaning of a module and its imports.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The module's name.
    pub name: SmolStr,
    /// Workers of a tile of its machine; 0 if the machine is not known.
    pub workers: u32,
    /// The replicas that run it; 0 if the machine is not known.
    pub replicas: u32,
    /// Variables, persistent ones and temporaries.
    pub vars: PrimaryMap<VarId, Var>,
    /// The source text of the codelets and codelet functions from which `codelets` were made.
    pub items: PrimaryMap<ItemId, CodeletItem>,
    /// Specialised codelets.
    pub codelets: PrimaryMap<SpecId, Codelet>,
    /// Compute sets.
    pub sets: PrimaryMap<ComputeSetId, ComputeSet>,
    /// Families of vertices; those of one compute set are consecutive.
    pub families: PrimaryMap<FamilyId, Family>,
    /// For messages: the indices of the loops around the vertices of a family as the user wrote them, outermost first,
    /// each as a function of the instance. Empty if they are the domain's own indices.
    pub indices: SecondaryMap<FamilyId, Box<[Offset]>>,
    /// Copies.
    pub copies: PrimaryMap<CopyId, CopySet>,
    /// Streams of the host.
    pub streams: PrimaryMap<StreamId, Stream>,
    /// Programs and the bodies that they call.
    pub programs: PrimaryMap<ProgramId, Program>,
    /// Steps of all programs, in pre-order.
    pub steps: PrimaryMap<StepId, Step>,
    /// The origins of all entities.
    pub origins: Origins,
}

impl Graph {
    /// Returns the families of a compute set by operation: those with one codelet that write the same variables, each
    /// operation in the place of its first family. A compute set that several steps share has several.
    pub fn operations(&self, set: ComputeSetId) -> Vec<Vec<FamilyId>> {
        let mut keys: Vec<(SpecId, Vec<VarId>)> = vec![];
        let mut operations: Vec<Vec<FamilyId>> = vec![];
        for &id in &self.sets[set].families {
            let family = &self.families[id];
            let codelet = &self.codelets[family.codelet];
            let written = family.fields.iter().filter(|f| codelet.fields[f.field].dir.writes());
            let mut written: Vec<VarId> = written.flat_map(|f| &f.parts).map(|p| p.var).collect();
            written.sort_unstable();
            written.dedup();
            let key = (family.codelet, written);
            match keys.iter().position(|k| *k == key) {
                Some(at) => operations[at].push(id),
                None => {
                    keys.push(key);
                    operations.push(vec![id]);
                }
            }
        }
        operations
    }

    /// Returns the indices of the loops that the user wrote around a vertex.
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
    /// `state`: persistent, saved in checkpoints, not trained.
    State,
    /// `const`: persistent, never written.
    Const,
    /// `temp`: unknown to the host; may share memory with temporaries that are not live at the same time.
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
    /// The value at load; zero if absent.
    pub init: Option<Init>,
    /// The mapping given in the text, perhaps of some elements only ([`UNPLACED`](crate::placement::UNPLACED)).
    pub mapping: Option<Mapping>,
    /// The tiles on which the text wants the elements that it leaves open; `None` means all tiles.
    pub within: Option<TileRange>,
    /// Its origin.
    pub origin: OriginId,
}

/// The value of a variable at load.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// One value for every element.
    Fill(Scalar),
    /// All elements, row-major, little-endian.
    Data(Arc<[u8]>),
    /// Random numbers, for floats.
    Drawn(Drawn),
    /// The number of the replica, an `i32`.
    ReplicaIndex,
}

/// A codelet or codelet function as an item of the printed text, with every outside name resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeletItem {
    /// Its name.
    pub name: SmolStr,
    /// Formatted `.gir`.
    pub text: Arc<str>,
    /// The items that it calls, by name; items of the prelude are left out.
    pub calls: Vec<SmolStr>,
}

/// A set of vertices that run in parallel as one superstep.
#[derive(Clone, Debug)]
pub struct ComputeSet {
    /// Its path.
    pub name: SmolStr,
    /// Its vertices.
    pub families: Vec<FamilyId>,
    /// Its origin.
    pub origin: OriginId,
}

/// Copies that happen in one exchange: all reads before all writes.
#[derive(Clone, Debug)]
pub struct CopySet {
    /// Its path.
    pub name: SmolStr,
    /// The copies.
    pub families: Vec<CopyFamily>,
    /// Its origin.
    pub origin: OriginId,
}

/// A stream of packets between host and program, or a remote buffer, whose packets are rows.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name.
    pub name: SmolStr,
    /// From the host (`in`) or to it.
    pub input: bool,
    /// Type of each element.
    pub ty: ElemType,
    /// The shape of one packet.
    pub shape: Shape,
    /// Whether the stream starts again at the beginning of its file when the file ends.
    pub wrap: bool,
    /// The seed of the order in which the rows of its file come, which is another one in each pass over the file.
    pub shuffle: Option<u64>,
    /// The number of packets that tiles have room for, so that the host moves packets while tiles compute. 0 means that
    /// the program waits for the host at each packet.
    pub ahead: u32,
    /// Whether one packet is that of all replicas; otherwise each has its own, in the order of replicas.
    pub same: bool,
    /// The number of rows of a remote buffer, which is in the memory beside the tiles; `None` for a stream of the host.
    pub rows: Option<u32>,
    /// Whether it is a remote buffer that holds what a loop with `#[offload]` keeps: each of its rows is written before
    /// it is read, so no run depends on the run before it.
    pub offloaded: bool,
    /// Its origin.
    pub origin: OriginId,
}

impl CopySet {
    /// Returns whether replicas exchange elements.
    pub fn crosses(&self) -> bool {
        self.families.iter().any(|f| f.source.pairs().is_some())
    }

    /// Returns whether no replica takes part but the one that copies, and nothing is promised.
    pub fn is_own(&self) -> bool {
        self.families.iter().all(|f| f.source == CopySource::Own)
    }

    /// Returns the different lists of pairs of its families, in the order in which they occur.
    pub fn pair_lists(&self) -> Vec<Arc<[ReplicaPair]>> {
        let mut lists: Vec<Arc<[ReplicaPair]>> = vec![];
        for pairs in self.families.iter().filter_map(|f| f.source.pairs()) {
            if !lists.contains(pairs) {
                lists.push(pairs.clone());
            }
        }
        lists
    }
}

impl Var {
    /// Returns the number of elements.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.len() * self.ty.bytes() as u64
    }

    /// Returns the value of each element, if all of them are one constant.
    pub fn constant(&self) -> Option<Scalar> {
        match (self.class, &self.init) {
            (VarClass::Const, None) => Some(Scalar::zero(self.ty)),
            (VarClass::Const, Some(Init::Fill(value))) => Some(*value),
            _ => None,
        }
    }

    /// Returns whether it keeps its value between programs and runs.
    pub fn is_persistent(&self) -> bool {
        self.class != VarClass::Temp
    }
}

impl Stream {
    /// Returns its kind and its name.
    pub fn title(&self) -> String {
        format!("{} {}", if self.rows.is_some() { "remote" } else { "stream" }, self.name)
    }

    /// Returns the bytes of all rows of a remote buffer; 0 for a stream of the host.
    pub fn remote_bytes(&self) -> u64 {
        u64::from(self.rows.unwrap_or(0)).saturating_mul(self.len()).saturating_mul(u64::from(self.ty.bytes()))
    }

    /// Returns the elements of a packet.
    pub fn len(&self) -> u64 {
        self.shape.iter().fold(1, |all, &n| all.saturating_mul(n))
    }

    /// Returns whether a packet has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
