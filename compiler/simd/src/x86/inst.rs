//! Steps of a machine program: instructions, each of which defines a virtual register, and effects.
//!
//! Invariant: a step lists all its operands, so that passes can rename, move and prune steps without knowing
//! instructions.

use super::table::Code;
use crate::ir::Pointer;
use smallvec::SmallVec;

/// A virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Reg(pub u32);

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Vector,
    /// A bit for each lane.
    Mask,
}

/// The elements in memory of a group's sixteen iterations (of eight iterations, if elements have eight bytes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Elements {
    pub pointer: Pointer,
    pub offset: i32,
    /// Bytes of one element.
    pub bytes: u8,
    /// Whether these are the elements of the last eight of sixteen iterations.
    pub upper: bool,
}

/// How an instruction computes its result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Op {
    /// A number repeated in lanes of `bytes` bytes.
    Constant { bits: u64, bytes: u8 },
    /// `start`, `start + step`, … in the lanes.
    Ramp { start: i64, step: i64, bytes: u8 },
    /// The control vector of a [`Permute`](Op::Permute) for a phase of an interleaved access, in the n-th round.
    Order { interleaved: u32, phase: u8, round: u8, stored: bool },
    /// A mask of constant bits.
    MaskBits { bits: u16 },
    /// The n-th whole vector of an interleaved access, in memory order.
    Whole { code: Code, interleaved: u32, nth: u8 },
    /// All bytes of a short interleaved access, in memory order.
    Bytes { interleaved: u32 },
    /// The permutation of 32-bit lanes that moves the bytes of four iterations into each 128 bits.
    Quarters { interleaved: u32 },
    /// The permutation of these bytes for a phase. With `upper`, bytes go to the top of each lane for sign extension.
    Picked { interleaved: u32, phase: u8, upper: bool },
    /// A permutation of the lanes of two vectors. Operands: first vector, control vector, second vector.
    Permute { code: Code },
    /// A number of the record, repeated in lanes of 1, 2, 4 or 8 bytes.
    Uniform { offset: u32, bytes: u8 },
    /// Contiguous elements. An operand is a mask; elements are zero where it is not set.
    Load { code: Code, from: Elements },
    /// The same element in each lane.
    Broadcast { from: Elements },
    /// Elements at the offsets of the first operand. A second operand is a mask; elements are zero where it is not set.
    Gather { code: Code, from: Elements },
    /// An instruction from one or two vectors to one.
    Plain { code: Code, immediate: Option<u8> },
    /// A vector shifted by an immediate.
    Shift { code: Code, by: u8 },
    /// `a * b + c`, or `c - a * b` if the product is negated; rounded once.
    Fma { long: bool, negated: bool },
    /// Like `Plain`, but the result is the operand that may be memory.
    Reversed { code: Code, immediate: Option<u8> },
    /// A comparison of two vectors; the result is a mask.
    Compare { code: Code, immediate: Option<u8> },
    /// A selection between vectors. Operands: mask, no, yes.
    Blend { code: Code },
    /// Operands: mask, old, a, b. The result is `a op b` where the mask is set, otherwise `old`.
    Merge { code: Code },
    /// Operands: mask, a, and b if the operation has two. The result is zero where the mask is not set.
    Zeroed { code: Code },
    /// Operands: mask, a, b, c. The result is that of `Fma` where the mask is set, otherwise zero.
    ZeroedFma { long: bool, negated: bool },
    /// An instruction from one or two masks to one.
    Mask { code: Code, immediate: Option<u8> },
    /// The mask of the active lanes of eight iterations in the last group, as a vector.
    Active { half: u8 },
    /// A selection whose mask is a vector. Operands: mask, no, yes.
    BlendBy { code: Code },
    /// Eight elements of less than 32 bits at a stride of `step` bytes. The operand is a vector mask; elements are zero
    /// where it is not set.
    LoadSome { code: Code, from: Elements, step: i32 },
    /// 32-bit lanes with 4-bit numbers, the first in the lowest bits of `bits`.
    Lanes { bits: u64 },
}

impl Op {
    /// Returns whether it reads elements, which stores may change.
    pub(super) fn loads(self) -> bool {
        let whole = matches!(self, Op::Load { .. } | Op::Whole { .. } | Op::Bytes { .. });
        whole || matches!(self, Op::Broadcast { .. } | Op::Gather { .. } | Op::LoadSome { .. })
    }

    /// Returns whether its result needs no spill slot, because it can be recomputed from the code or the record.
    pub fn is_rematerialized(self) -> bool {
        let in_code = matches!(
            self,
            Op::Constant { .. }
                | Op::Ramp { .. }
                | Op::Order { .. }
                | Op::Quarters { .. }
                | Op::Picked { .. }
                | Op::MaskBits { .. }
        );
        in_code || matches!(self, Op::Uniform { .. } | Op::Active { .. } | Op::Lanes { .. })
    }
}

/// An instruction with a result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Inst {
    pub op: Op,
    pub args: SmallVec<[Reg; 4]>,
}

/// A step with an effect other than defining a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    Store {
        code: Code,
        to: Elements,
        value: Reg,
        /// The lanes to store, if not all.
        mask: Option<Reg>,
    },
    /// Stores the first `count` lanes of a vector to contiguous elements; AVX2 only.
    StoreFirst {
        to: Elements,
        value: Reg,
        count: u8,
    },
    /// Stores the n-th whole vector of an interleaved access; under a mask, if some of its elements are not stored.
    StoreWhole {
        code: Code,
        interleaved: u32,
        nth: u8,
        value: Reg,
        mask: Option<Reg>,
    },
    Scatter {
        code: Code,
        to: Elements,
        offsets: Reg,
        value: Reg,
        mask: Option<Reg>,
    },
    /// Stores the lanes of a 128-bit vector one by one, at a stride of `step` bytes. The mask is a vector, with the
    /// lane of it that belongs to the first element.
    Spread {
        to: Elements,
        step: i32,
        value: Reg,
        mask: Option<(Reg, u8)>,
    },
    /// `accumulator = accumulator op value` in active lanes; a mask selects lanes (AVX-512 only).
    Accumulate {
        accumulator: usize,
        code: Code,
        value: Reg,
        mask: Option<Reg>,
    },
    /// `accumulator = a * b + accumulator`, with the same lanes.
    AccumulateFma {
        accumulator: usize,
        long: bool,
        a: Reg,
        b: Reg,
        mask: Option<Reg>,
    },
    /// `accumulator = value` in active lanes.
    Assign {
        accumulator: usize,
        value: Reg,
    },
}

impl Effect {
    /// Returns the effect with its registers renamed.
    pub fn renamed(self, name: impl Fn(Reg) -> Reg) -> Effect {
        let mut effect = self;
        match &mut effect {
            Effect::Assign { value, .. } | Effect::StoreFirst { value, .. } => *value = name(*value),
            Effect::Accumulate { value, mask, .. }
            | Effect::Store { value, mask, .. }
            | Effect::StoreWhole { value, mask, .. } => {
                (*value, *mask) = (name(*value), mask.map(name));
            }
            Effect::Scatter { offsets, value, mask, .. } => {
                (*offsets, *value, *mask) = (name(*offsets), name(*value), mask.map(name));
            }
            Effect::Spread { value, mask, .. } => {
                (*value, *mask) = (name(*value), mask.map(|(mask, first)| (name(mask), first)));
            }
            Effect::AccumulateFma { a, b, mask, .. } => (*a, *b, *mask) = (name(*a), name(*b), mask.map(name)),
        }
        effect
    }

    /// Returns the accumulator that the effect changes.
    pub fn accumulator(&self) -> Option<usize> {
        match *self {
            Effect::Accumulate { accumulator, .. }
            | Effect::AccumulateFma { accumulator, .. }
            | Effect::Assign { accumulator, .. } => Some(accumulator),
            Effect::Store { .. }
            | Effect::StoreFirst { .. }
            | Effect::StoreWhole { .. }
            | Effect::Scatter { .. }
            | Effect::Spread { .. } => None,
        }
    }

    /// Returns the registers that the effect reads.
    pub fn reads(&self) -> SmallVec<[Reg; 4]> {
        match *self {
            Effect::Assign { value, .. } | Effect::StoreFirst { value, .. } => [value].as_slice().into(),
            Effect::Accumulate { value, mask, .. }
            | Effect::Store { value, mask, .. }
            | Effect::StoreWhole { value, mask, .. } => [value].into_iter().chain(mask).collect(),
            Effect::Scatter { offsets, value, mask, .. } => [offsets, value].into_iter().chain(mask).collect(),
            Effect::Spread { value, mask, .. } => [value].into_iter().chain(mask.map(|m| m.0)).collect(),
            Effect::AccumulateFma { a, b, mask, .. } => [a, b].into_iter().chain(mask).collect(),
        }
    }
}

/// A step of the body.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Make(Reg),
    Do(Effect),
}
