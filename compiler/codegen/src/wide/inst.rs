//! The steps that a strip is made of: instructions, which make a virtual register each, and effects.
//!
//! Invariant: a step names all that it reads, so that what knows no instruction can rename, move and prune them.

use super::encode::Code;
use smallvec::SmallVec;

/// How wide the host's vectors are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    /// 256 bits: sixteen places of 32 bits take two, and masks are vectors.
    Half,
    /// 512 bits, with registers for masks.
    Full,
}

impl Width {
    /// Bytes of a vector.
    pub const fn bytes(self) -> u32 {
        match self {
            Width::Half => 32,
            Width::Full => 64,
        }
    }

    /// Vector registers that values may have.
    pub const fn registers(self) -> u8 {
        match self {
            // One is for what an instruction uses up.
            Width::Half => 15,
            Width::Full => 32,
        }
    }
}

/// A virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Reg(pub u32);

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Vector,
    /// A bit for each place.
    Mask,
}

/// A pointer of the record that moves from place to place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pointer(pub u32);

/// Sixteen elements in memory (eight, if they take eight bytes).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Elements {
    pub pointer: Pointer,
    pub offset: i32,
    /// Bytes of one.
    pub bytes: u8,
    /// Of the last eight of sixteen places.
    pub upper: bool,
}

/// What an instruction does with its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Op {
    /// The same number in each lane of some bytes.
    Constant { bits: u64, bytes: u8 },
    /// `start`, `start + step`, … in the lanes.
    Steps { start: i64, step: i64, bytes: u8 },
    /// Lanes of two vectors, as a [`Permute`](Op::Permute) takes them: those for a phase of a stretch, in the n-th round.
    Order { stretch: u32, phase: u8, round: u8, stored: bool },
    /// A bit for each place, the same in all groups.
    Places { bits: u16 },
    /// A vector of a stretch, in its order in memory.
    Piece { code: Code, stretch: u32, piece: u8 },
    /// All of a stretch of narrow elements, in their order in memory.
    Bytes { stretch: u32 },
    /// Lanes of 32 bits that bring the bytes of four places into each 128.
    Quarters { stretch: u32 },
    /// Of these bytes, where those of a phase stand; in the upper ones of a lane if there is a sign to be copied.
    Picked { stretch: u32, phase: u8, upper: bool },
    /// First, order, second: the lanes of two vectors that the order says.
    Permute { code: Code },
    /// A number of the record in each lane.
    Same { offset: u32, bytes: u8 },
    /// Elements side by side; with an operand, those under that mask, and zeros.
    Load { code: Code, from: Elements },
    /// Elements apart, at the offsets that the operand has; with a second one, those under that mask, and zeros. Narrow
    /// ones are evenly apart.
    Gather { code: Code, from: Elements },
    /// One or two vectors to one.
    Plain { code: Code, immediate: Option<u8> },
    /// A vector by a number; `digit` is part of the opcode.
    Shift { code: Code, digit: u8, by: u8 },
    /// `a * b + c`
    Fma { wide: bool },
    /// As `Plain`, but the result is the operand that may be memory.
    Reversed { code: Code, immediate: Option<u8> },
    /// Two vectors to a mask.
    Compare { code: Code, immediate: Option<u8> },
    /// Mask, no, yes.
    Blend { code: Code },
    /// Mask, old, a, b: `a op b` where the mask is set.
    Merge { code: Code },
    /// Mask, a: `op a` where the mask is set, else zero.
    Zeroed { code: Code },
    /// One or two masks to one.
    Mask { code: Code, immediate: Option<u8> },
    /// Of eight places the lanes of those that there are, in the last group.
    There { half: u8 },
    /// Mask, no, yes; the mask is a vector.
    BlendBy { code: Code },
    /// Eight elements of less than 32 bits, `step` bytes apart, under a mask that is a vector, and zeros.
    LoadSome { code: Code, from: Elements, step: i32 },
    /// Numbers below sixteen in eight lanes, the first in the lowest bits.
    Numbers { bits: u32 },
}

impl Op {
    /// Whether it reads elements, which stores may change.
    pub(super) fn loads(self) -> bool {
        matches!(self, Op::Load { .. } | Op::Gather { .. } | Op::Piece { .. } | Op::Bytes { .. } | Op::LoadSome { .. })
    }

    /// Whether its result needs no slot: it can be made again from the code or the record.
    pub fn is_made_again(self) -> bool {
        let in_code = matches!(
            self,
            Op::Constant { .. }
                | Op::Steps { .. }
                | Op::Order { .. }
                | Op::Quarters { .. }
                | Op::Picked { .. }
                | Op::Places { .. }
        );
        in_code || matches!(self, Op::Same { .. } | Op::There { .. } | Op::Numbers { .. })
    }
}

/// An instruction with a result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Inst {
    pub op: Op,
    pub args: SmallVec<[Reg; 4]>,
}

/// What changes something besides a new register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    Store {
        code: Code,
        to: Elements,
        value: Reg,
        /// The places that are stored, if not all.
        mask: Option<Reg>,
    },
    /// A vector of a stretch, in its order in memory; under a mask, if some elements of it are not the program's.
    StorePiece {
        code: Code,
        stretch: u32,
        piece: u8,
        value: Reg,
        mask: Option<Reg>,
    },
    /// The elements of all phases of a stretch; there are as many as it has steps, or one.
    Interleave {
        to: Elements,
        steps: i64,
        values: [Reg; 4],
    },
    Scatter {
        code: Code,
        to: Elements,
        offsets: Reg,
        value: Reg,
        mask: Option<Reg>,
    },
    /// Elements of 128 bits one by one, `step` bytes apart; under a mask that is a vector, from its n-th lane on.
    Spread {
        to: Elements,
        step: i32,
        value: Reg,
        mask: Option<(Reg, u8)>,
    },
    /// `accumulator = accumulator op value`, of places that there are; under a mask, of those (in 512 bits only).
    Take {
        accumulator: usize,
        code: Code,
        value: Reg,
        mask: Option<Reg>,
    },
    /// `accumulator = a * b + accumulator`, likewise.
    TakeFma {
        accumulator: usize,
        wide: bool,
        a: Reg,
        b: Reg,
        mask: Option<Reg>,
    },
    /// `accumulator = value`
    Put {
        accumulator: usize,
        value: Reg,
    },
}

impl Effect {
    /// The same on other registers.
    pub fn renamed(self, name: impl Fn(Reg) -> Reg) -> Effect {
        let mut effect = self;
        match &mut effect {
            Effect::Put { value, .. } => *value = name(*value),
            Effect::Take { value, mask, .. }
            | Effect::Store { value, mask, .. }
            | Effect::StorePiece { value, mask, .. } => {
                (*value, *mask) = (name(*value), mask.map(name));
            }
            Effect::Scatter { offsets, value, mask, .. } => {
                (*offsets, *value, *mask) = (name(*offsets), name(*value), mask.map(name));
            }
            Effect::Spread { value, mask, .. } => {
                (*value, *mask) = (name(*value), mask.map(|(mask, first)| (name(mask), first)));
            }
            Effect::TakeFma { a, b, mask, .. } => (*a, *b, *mask) = (name(*a), name(*b), mask.map(name)),
            Effect::Interleave { values, .. } => *values = values.map(name),
        }
        effect
    }

    /// The registers that are read.
    pub fn reads(&self) -> SmallVec<[Reg; 4]> {
        match *self {
            Effect::Put { value, .. } => [value].as_slice().into(),
            Effect::Take { value, mask, .. }
            | Effect::Store { value, mask, .. }
            | Effect::StorePiece { value, mask, .. } => [value].into_iter().chain(mask).collect(),
            Effect::Scatter { offsets, value, mask, .. } => [offsets, value].into_iter().chain(mask).collect(),
            Effect::Spread { value, mask, .. } => [value].into_iter().chain(mask.map(|m| m.0)).collect(),
            Effect::TakeFma { a, b, mask, .. } => [a, b].into_iter().chain(mask).collect(),
            Effect::Interleave { steps, ref values, .. } => values[..steps.max(1) as usize].into(),
        }
    }
}

/// A step of the body.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Make(Reg),
    Do(Effect),
}
