//! Signatures of fused codelets.
//!
//! Invariant: chains of equal signatures have equal codelets.

use girder_ir::ids::{FieldId, SizeId, SpecId};
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// The parameters of a fused codelet, besides the graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FusedSignature {
    /// The functions, each with the slots of its accesses.
    pub maps: Vec<(FunctionSignature, Vec<usize>)>,
    /// The slots in memory.
    pub fields: Vec<FusedField>,
    /// The loops, outermost first.
    pub loops: SmallVec<[LoopLength; 3]>,
    /// The access around which the maps run; `None` if they run alone.
    pub around: Option<AroundAccess>,
}

/// An access of a codelet around which maps run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AroundAccess {
    /// The codelet.
    pub spec: SpecId,
    /// The field that it accesses.
    pub field: FieldId,
    /// The slot of the field's elements.
    pub slot: usize,
    /// Whether the access and its field stay in the codelet.
    pub keeps: bool,
}

/// The trip count of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopLength {
    /// A number.
    Fixed(u64),
    /// A size of the codelet, which the shapes of its fields bind.
    Bound,
}

/// A function without the values of its constants.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FunctionSignature {
    /// A copy of an element.
    Copy,
    /// The statements of a codelet.
    Codelet {
        /// The codelet.
        spec: SpecId,
        /// The sizes that its statements name.
        sizes: Vec<(SizeId, i64)>,
        /// The field of each access.
        fields: Vec<FieldId>,
    },
}

/// A slot that is in memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FusedField {
    /// The slot.
    pub slot: usize,
    /// Its element type.
    pub ty: ElemType,
    /// Whether it is loaded at the beginning of an iteration.
    pub loads: bool,
    /// Whether it is stored at the end of an iteration.
    pub stores: bool,
    /// The loops along which it moves, outermost first: its dimensions.
    pub along: SmallVec<[usize; 3]>,
}
