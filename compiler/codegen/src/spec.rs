//! What one kernel is made from.
//!
//! Invariant: two specifications that are equal by [`KernelSpec::same`] compile to the same code.

use crate::abi::Addressing;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_codelet::Sizes;
use girder_codelet::cost::Points;
use girder_codelet::facts::Weights;
use girder_ir::codelet::Codelet;
use girder_ir::ids::{FieldId, SiteId};
use smallvec::SmallVec;

/// Byte strides of a field, one per dimension; any sign, zero too.
pub type FieldLayout = SmallVec<[i64; 3]>;

/// A codelet with everything about its fields that is the same for all instances.
#[derive(Clone, Debug)]
pub struct KernelSpec<'a> {
    /// What to run.
    pub codelet: &'a Codelet,
    /// Shapes and sizes, as [`bind_sizes`](girder_codelet::bind_sizes) gives them.
    pub sizes: &'a Sizes,
    /// Byte strides of each edge field; those of `const` fields are not read.
    pub strides: SecondaryMap<FieldId, FieldLayout>,
    /// Checks that cannot fail for these sizes: [`Facts::proven`](girder_codelet::Facts).
    pub proven: &'a EntitySet<SiteId>,
    /// What loops count: [`Facts::weights`](girder_codelet::Facts).
    pub weights: &'a Weights,
    /// How instances are found.
    pub addressing: Addressing,
    /// What is regular about them, if anything.
    pub lines: Option<Lines>,
    /// Places whose executions are counted. Code that counts is slower; without points it is as if this were `None`.
    pub points: Option<&'a Points>,
}

/// Instances that lie on lines: within each block of `length` instances (counted from instance 0), every field moves
/// by a fixed number of bytes from one to the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    /// Instances of a block, at least 1; `u64::MAX` if all lie on one line.
    pub length: u64,
    /// Bytes from instance to instance, by edge field.
    pub steps: SecondaryMap<FieldId, i64>,
    /// All instances have the same `const` fields: [`Batch::const_step`](crate::abi::Batch::const_step) is 0.
    pub shares_consts: bool,
}

impl KernelSpec<'_> {
    /// Row-major strides of a contiguous view.
    pub fn contiguous(shape: &[u64], element_bytes: u32) -> FieldLayout {
        let mut stride = i64::from(element_bytes);
        let mut strides: FieldLayout = shape.iter().map(|_| 0).collect();
        for (s, &n) in strides.iter_mut().zip(shape).rev() {
            *s = stride;
            stride = stride.wrapping_mul(n as i64);
        }
        strides
    }

    pub(crate) fn shares_consts(&self) -> bool {
        self.lines.as_ref().is_some_and(|l| l.shares_consts)
    }

    /// Whether `other` is the same codelet (by address) with the same sizes, strides, facts and addressing.
    pub fn same(&self, other: &KernelSpec<'_>) -> bool {
        std::ptr::eq(self.codelet, other.codelet)
            && self.addressing == other.addressing
            && self.lines == other.lines
            && self.points == other.points
            && (std::ptr::eq(self.sizes, other.sizes) || self.sizes == other.sizes)
            && self.codelet.edges().all(|(f, _)| self.strides[f] == other.strides[f])
            && (std::ptr::eq(self.weights, other.weights)
                || self.codelet.sites.keys().all(|s| self.weights[s] == other.weights[s]))
            && (std::ptr::eq(self.proven, other.proven)
                || self.codelet.sites.keys().all(|s| self.proven.contains(s) == other.proven.contains(s)))
    }
}

/// A codelet that does the same in another way, and the checks of it that cannot fail.
pub(crate) struct Rewritten {
    pub codelet: Codelet,
    pub proven: EntitySet<SiteId>,
}

impl Rewritten {
    /// The specification with this codelet.
    pub fn spec<'s>(&'s self, spec: &KernelSpec<'s>) -> KernelSpec<'s> {
        KernelSpec { codelet: &self.codelet, proven: &self.proven, ..spec.clone() }
    }
}
