//! Steps of a machine program: instructions, which make a virtual register each, and effects.
//!
//! Invariant: a step names all that it reads, so that what knows no instruction can rename, move and prune them.

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

/// The elements of a group's sixteen iterations in memory (of eight, if they have eight bytes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Elements {
    pub pointer: Pointer,
    pub offset: i32,
    /// Bytes of one.
    pub bytes: u8,
    /// Of the last eight of sixteen iterations.
    pub upper: bool,
}

/// How an instruction makes its register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Op {
    /// The same number in each lane of some bytes.
    Constant { bits: u64, bytes: u8 },
    /// `start`, `start + step`, … in the lanes.
    Ramp { start: i64, step: i64, bytes: u8 },
    /// The order of lanes that a [`Permute`](Op::Permute) takes for a phase of an interleaved access, in the n-th
    /// round.
    Order { interleaved: u32, phase: u8, round: u8, stored: bool },
    /// A bit for each lane, the same in all groups.
    MaskBits { bits: u16 },
    /// The n-th whole vector of an interleaved access, in its order in memory.
    Whole { code: Code, interleaved: u32, nth: u8 },
    /// All bytes of a short interleaved access, in their order in memory.
    Bytes { interleaved: u32 },
    /// The order of lanes of 32 bits that brings the bytes of four iterations into each 128 bits.
    Quarters { interleaved: u32 },
    /// The order of these bytes for a phase; in the upper ones of a lane if a sign is to be copied.
    Picked { interleaved: u32, phase: u8, upper: bool },
    /// First, order, second: lanes of two vectors.
    Permute { code: Code },
    /// A number of the record in each lane of 1, 2, 4 or 8 bytes.
    Uniform { offset: u32, bytes: u8 },
    /// Elements side by side; with an operand, those under that mask, and zeros.
    Load { code: Code, from: Elements },
    /// Elements at the offsets that the operand has; with a second one, those under that mask, and zeros.
    Gather { code: Code, from: Elements },
    /// One or two vectors to one.
    Plain { code: Code, immediate: Option<u8> },
    /// A vector by a number.
    Shift { code: Code, by: u8 },
    /// `a * b + c`
    Fma { long: bool },
    /// As `Plain`, but the result is the operand that may be memory.
    Reversed { code: Code, immediate: Option<u8> },
    /// Two vectors to a mask.
    Compare { code: Code, immediate: Option<u8> },
    /// Mask, no, yes.
    Blend { code: Code },
    /// Mask, old, a, b: `a op b` where the mask is set, else old.
    Merge { code: Code },
    /// Mask, a: `op a` where the mask is set, else zero.
    Zeroed { code: Code },
    /// One or two masks to one.
    Mask { code: Code, immediate: Option<u8> },
    /// The mask of the active lanes of eight iterations, as a vector, in the last group.
    Active { half: u8 },
    /// Mask, no, yes; the mask is a vector.
    BlendBy { code: Code },
    /// Eight elements of less than 32 bits, `step` bytes from one to the next, under a mask that is a vector, and
    /// zeros.
    LoadSome { code: Code, from: Elements, step: i32 },
    /// Numbers below sixteen in eight lanes, the first in the lowest bits.
    Lanes { bits: u32 },
}

impl Op {
    /// Whether it reads elements, which stores may change.
    pub(super) fn loads(self) -> bool {
        matches!(self, Op::Load { .. } | Op::Gather { .. } | Op::Whole { .. } | Op::Bytes { .. } | Op::LoadSome { .. })
    }

    /// Whether its result needs no slot, because it can be made again from the code or the record.
    pub fn is_made_again(self) -> bool {
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

/// What changes something besides a new register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    Store {
        code: Code,
        to: Elements,
        value: Reg,
        /// The lanes that are stored, if not all.
        mask: Option<Reg>,
    },
    /// The first lanes of a vector, as many as a number says, side by side; with AVX2 only.
    StoreFirst {
        to: Elements,
        value: Reg,
        count: u8,
    },
    /// The n-th whole vector of an interleaved access; under a mask, if some of its elements are not stored.
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
    /// Elements of 128 bits one by one, `step` bytes from one to the next; under a mask that is a vector, from its n-th
    /// lane on.
    Spread {
        to: Elements,
        step: i32,
        value: Reg,
        mask: Option<(Reg, u8)>,
    },
    /// `accumulator = accumulator op value`, of active lanes; under a mask, of those (with AVX-512 only).
    Accumulate {
        accumulator: usize,
        code: Code,
        value: Reg,
        mask: Option<Reg>,
    },
    /// `accumulator = a * b + accumulator`, likewise.
    AccumulateFma {
        accumulator: usize,
        long: bool,
        a: Reg,
        b: Reg,
        mask: Option<Reg>,
    },
    /// `accumulator = value`, of active lanes.
    Assign {
        accumulator: usize,
        value: Reg,
    },
}

impl Effect {
    /// The same on other registers.
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

    /// The accumulator that it changes.
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

    /// The registers that are read.
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
