//! The typed vector IR: kernels, their values and their effects.
//!
//! A [`Kernel`] is the body of a loop whose iterations become lanes. Each [`Value`] has one element of its [`Lane`]
//! type for each iteration (in narrow kernels one, two or four, see below). The IR knows nothing of the width of a
//! machine's vectors: a lowering decides how many registers a value takes.
//!
//! # Note: Groups
//! Iterations run in groups of [`GROUP`]. Within a group each item of the body is done for all iterations, in lane
//! order, before the next item begins. The last group may be incomplete: its other lanes load nothing, store nothing
//! and leave accumulators as they are. No iteration may load or store an element that another one stores.
//!
//! # Note: The record
//! A kernel is called with the address of a *record* and a number of iterations. The record holds the addresses that
//! [`Pointer`]s begin with, the numbers of [`Op::Uniform`] and [`Op::Index`], and [`Accumulator`]s.
//!
//! # Note: Narrow kernels
//! With `per_iteration` greater than 1, an iteration is four bytes of memory: four elements of 8 bits, or two of 16.
//! Values then have so many elements for each iteration, except those of [`Op::SumNeighbours`] and
//! [`Op::DotNeighbours`], which have one.
//!
//! # Note: Masks
//! A mask has a truth value for each iteration ([`Lane::Mask`]) or, in a narrow kernel, for each element
//! ([`Lane::Mask8`], [`Lane::Mask16`]: a mask goes with values of the width that it was compared in).
//!
//! # Note: NaN
//! Results that are NaN are any NaN; [`Op::Bits`] alone gives the one of [`Lane::nan`].
//!
//! Invariant: the meaning of each operation is that of [`evaluate`](crate::evaluate()), which is the reference for the
//! lowerings.

mod build;
mod lane;
mod ranges;

pub use lane::{Kind, Lane};
pub(crate) use ranges::{ranges, without_limits};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Iterations that run together.
pub const GROUP: u64 = 16;

/// A value of a kernel, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub u32);

/// A pointer of a kernel, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Pointer(pub u32);

/// An accumulator of a kernel, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AccumulatorId(pub u32);

/// An element of each iteration: that of iteration i is at the pointer's address, plus the offset, plus i times the
/// pointer's stride. In narrow kernels the others of an iteration follow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    /// Where iteration 0 begins.
    pub pointer: Pointer,
    /// Bytes that are added.
    pub offset: i32,
}

/// The elements of a phase of an interleaved access.
pub(crate) fn interleaved_elements(phase_0: Memory, lane: Lane, phase: u8) -> Memory {
    Memory { offset: phase_0.offset + i32::from(phase) * lane.bytes() as i32, ..phase_0 }
}

/// How a float becomes a whole number of the same type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounding {
    /// To the nearest; halfway cases to the even one.
    Nearest,
    /// Downwards.
    Floor,
    /// Upwards.
    Ceil,
    /// Towards zero.
    Trunc,
}

/// What a comparison asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cond {
    /// Equal. False if either is NaN.
    Eq,
    /// Not equal. True if either is NaN.
    Ne,
    /// Less. False if either is NaN, as all that follow.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// How a value is made. Operands have the lane of the result unless an operation says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// The same bits in each element.
    Constant {
        /// In the low end of the word; those above the lane's are zero.
        bits: u64,
    },
    /// A number of the record in each element. Integers of 8 and 16 bits stand there as 32-bit integers of the same
    /// value.
    Uniform {
        /// Where it stands in the record.
        offset: u32,
    },
    /// `start + step * iteration`, wrapping, of `i32` or `i64`; `start` stands in the record.
    Index {
        /// Where `start` stands in the record.
        offset: u32,
        /// From iteration to iteration.
        step: i64,
    },
    /// Elements of memory. With an operand, a mask: 0 where that is false, and nothing is touched there.
    Load(Memory),
    /// Integers: `0 - x`, wrapping. Floats: the sign bit inverted.
    Neg,
    /// Integers: wrapping, so that the least is its own. Floats: the sign bit cleared.
    Abs,
    /// Each bit inverted; of masks too.
    Not,
    /// Of floats, rounded to nearest.
    Sqrt,
    /// Of floats.
    Round(Rounding),
    /// How many bits of an integer are set.
    CountOnes,
    /// How many of the highest bits of an integer are clear.
    LeadingZeros,
    /// Integers wrap; floats round to nearest, here and below.
    Add,
    /// `a - b`
    Sub,
    /// `a * b`; of integers the low bits.
    Mul,
    /// Of floats.
    Div,
    /// Of floats: NaN if either is NaN, and -0 is less than +0.
    Min,
    /// Of floats: NaN if either is NaN, and -0 is less than +0.
    Max,
    /// Of integers and masks, as the two that follow.
    And,
    /// Bit by bit.
    Or,
    /// Bit by bit.
    Xor,
    /// Of unsigned integers of 8 or 16 bits in narrow kernels: `(a + b + 1) >> 1` without overflow.
    Average,
    /// Of integers, by less than the lane's bits.
    Shl {
        /// By how many bits.
        by: u8,
    },
    /// Of integers, by less than the lane's bits; copies the sign of signed ones.
    Shr {
        /// By how many bits.
        by: u8,
    },
    /// The quotient of an integer of at most 32 bits by a number that is not 0, cut towards zero, wrapping.
    DivideBy {
        /// A value of the lane.
        divisor: i64,
    },
    /// What [`Op::DivideBy`] leaves: it has the sign of the operand.
    RemainderBy {
        /// A value of the lane.
        divisor: i64,
    },
    /// `a * b + c` of floats, rounded once.
    Fma,
    /// A mask, of two operands of one lane; of masks, with false less than true.
    Compare(Cond),
    /// Mask, yes, no.
    Select,
    /// The operand's value in another lane. Between integers: wraps. Float to integer: cut towards zero, saturating,
    /// NaN gives 0. Integer to float, and `f64` to `f32`: rounded to nearest. To a mask: whether it is not 0 (NaN is
    /// not). From a mask: 1 or 0.
    Convert,
    /// The operand's bits as another lane of the same width. NaN gives [`Lane::nan`] of the operand's lane.
    Bits,
    /// In narrow kernels: the sum of an iteration's elements as `i32`; of `u8`, `i16`, or `u16` below 2^15.
    SumNeighbours,
    /// In narrow kernels: the sum of the products of an iteration's elements of two `i16` as `i32`.
    DotNeighbours,
}

impl Op {
    /// Whether it reads memory, which stores may change.
    pub fn loads(self) -> bool {
        matches!(self, Op::Load(_))
    }
}

/// A value's definition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Def {
    /// The type of its elements.
    pub lane: Lane,
    /// How it is made.
    pub op: Op,
    /// What it is made of.
    pub args: SmallVec<[Value; 3]>,
}

/// How an accumulator takes a value in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// As [`Op::Add`].
    Sum,
    /// As [`Op::Mul`].
    Product,
    /// As [`Op::Min`].
    Min,
    /// As [`Op::Max`].
    Max,
    /// As [`Op::And`].
    And,
    /// As [`Op::Or`].
    Or,
}

impl Reduction {
    /// The operation on two values.
    pub fn op(self) -> Op {
        match self {
            Reduction::Sum => Op::Add,
            Reduction::Product => Op::Mul,
            Reduction::Min => Op::Min,
            Reduction::Max => Op::Max,
            Reduction::And => Op::And,
            Reduction::Or => Op::Or,
        }
    }

    /// The bits of what changes no other value: -0 for a sum of floats.
    pub fn identity(self, lane: Lane) -> u64 {
        let (least, greatest) = match lane.is_float() {
            true => (lane.float_bits(f64::NEG_INFINITY), lane.float_bits(f64::INFINITY)),
            false => {
                let (least, greatest) = lane.integer_range();
                (least as u64 & lane.ones(), greatest as u64 & lane.ones())
            }
        };
        match self {
            Reduction::Sum if lane.is_float() => lane.float_bits(-0.0),
            Reduction::Product if lane.is_float() => lane.float_bits(1.0),
            Reduction::Product => 1,
            Reduction::Min => greatest,
            Reduction::Max => least,
            Reduction::And => lane.ones(),
            Reduction::Sum | Reduction::Or => 0,
        }
    }
}

/// [`GROUP`] elements that live as long as a call: iteration i goes to element `i % GROUP`, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator {
    /// `i32` to `f64`.
    pub lane: Lane,
    /// Where its elements stand in the record, which they go to at the end.
    pub offset: u32,
    /// The bits that all begin with; `None` for those that stand in the record.
    pub start: Option<u64>,
    /// Iterations may go to any element in any order: only what all elements come to together counts. The reduction's
    /// identity is what others begin with.
    pub any_order: bool,
}

/// Where a pointer stands in the record, and how many bytes it moves from iteration to iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moving {
    /// Where its address stands in the record.
    pub offset: u32,
    /// Bytes from iteration to iteration.
    pub stride: i64,
}

/// What changes memory or an accumulator.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Stores an element of each iteration, or of those where the mask is true.
    Store {
        /// Where.
        to: Memory,
        /// What.
        value: Value,
        /// A mask.
        mask: Option<Value>,
    },
    /// Stores elements of at least 32 bits that lie a few apart: the pointer's stride is two to four elements, or minus
    /// one.
    StoreInterleaved {
        /// Where the element of phase 0 is.
        to: Memory,
        /// By phase: its element is so many after that of phase 0. Phases that are missing are not touched.
        values: SmallVec<[(u8, Value); 4]>,
    },
    /// `element = element op value`, where the mask is true.
    Accumulate {
        /// Which.
        accumulator: AccumulatorId,
        /// How.
        op: Reduction,
        /// What.
        value: Value,
        /// A mask.
        mask: Option<Value>,
    },
    /// `element = a * b + element`, rounded once, where the mask is true.
    AccumulateProduct {
        /// Which.
        accumulator: AccumulatorId,
        /// The factors.
        factors: [Value; 2],
        /// A mask.
        mask: Option<Value>,
    },
}

impl Effect {
    /// The values that it reads.
    pub fn reads(&self) -> SmallVec<[Value; 4]> {
        match self {
            Effect::Store { value, mask, .. } | Effect::Accumulate { value, mask, .. } => {
                [*value].into_iter().chain(*mask).collect()
            }
            Effect::AccumulateProduct { factors, mask, .. } => factors.iter().copied().chain(*mask).collect(),
            Effect::StoreInterleaved { values, .. } => values.iter().map(|v| v.1).collect(),
        }
    }

    /// The accumulator that it changes.
    pub fn accumulator(&self) -> Option<AccumulatorId> {
        match *self {
            Effect::Accumulate { accumulator, .. } | Effect::AccumulateProduct { accumulator, .. } => Some(accumulator),
            Effect::Store { .. } | Effect::StoreInterleaved { .. } => None,
        }
    }
}

/// A step of the body.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A value is made.
    Make(Value),
    /// An effect takes place.
    Do(Effect),
}

/// A loop's body over vectors.
///
/// Invariants: a value stands after its operands; equal operations on equal operands are made once, loads as long as
/// nothing is stored.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Elements of each iteration: 1, or 2 or 4 in narrow kernels.
    pub per_iteration: u8,
    /// How each value is made.
    pub defs: Vec<Def>,
    /// Whether a value is the same in all groups.
    fixed: Vec<bool>,
    known: FxHashMap<Def, Value>,
    /// What each group does, in order; values that are the same in all groups are in it too.
    pub items: Vec<Item>,
    /// By number.
    pub accumulators: Vec<Accumulator>,
    /// By number.
    pub pointers: Vec<Moving>,
}
