//! The typed vector IR: kernels, their values and their effects.
//!
//! A [`Kernel`] is the body of a loop whose iterations become lanes. Each [`Value`] has one element of its [`Lane`]
//! type for each iteration (in narrow kernels one, two or four, see below). The IR does not depend on the width of a
//! machine's vectors: a lowering decides how many registers a value takes.
//!
//! # Note: Groups
//! Iterations run in groups of [`GROUP`]. Within a group each item of the body is executed for all iterations, in lane
//! order, before the next item begins. The last group may be incomplete: its inactive lanes load nothing, store nothing
//! and leave accumulators unchanged. No iteration may load or store an element that another one stores.
//!
//! # Note: The record
//! A kernel is called with the address of a *record* and a number of iterations. The record has the start addresses of
//! [`Pointer`]s, the numbers of [`Op::Uniform`] and [`Op::Index`], and the [`Accumulator`]s.
//!
//! # Note: The outer loop
//! A kernel with an outer loop runs all iterations once for each of its trips, one trip after the other; its pointers
//! move from trip to trip. So short rows share one call. What one trip stores, a later one may load. Such a kernel has
//! neither accumulators nor indices, and the number of its iterations is known.
//!
//! # Note: Narrow kernels
//! With `per_iteration` greater than 1, an iteration is four bytes of memory: four elements of 8 bits, or two of 16.
//! Values then have `per_iteration` elements for each iteration, except those of [`Op::SumNeighbours`] and
//! [`Op::DotNeighbours`], which have one.
//!
//! # Note: Masks
//! A mask has a truth value for each iteration ([`Lane::Mask`]) or, in a narrow kernel, for each element
//! ([`Lane::Mask8`], [`Lane::Mask16`]). The width of such a mask is that of the values whose comparison gave it, and of
//! those it selects.
//!
//! # Note: NaN
//! A NaN result may have any NaN's bits, except that of [`Op::Bits`], which is [`Lane::nan`].
//!
//! Invariant: [`evaluate`](crate::evaluate()) defines each operation, and is the reference for the lowerings.

mod build;
mod lane;
mod nan;
mod ranges;

pub use lane::{Kind, Lane};
pub(crate) use nan::any_nan;
pub(crate) use ranges::{ranges, without_limits};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The iterations of a group.
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

/// An element of each iteration. The element of iteration i is at the pointer's address, plus the offset, plus i times
/// the pointer's stride. In narrow kernels the other elements of the iteration follow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    /// The address of iteration 0, before the offset.
    pub pointer: Pointer,
    /// An offset in bytes.
    pub offset: i32,
}

/// Returns the elements of a phase of an interleaved access.
pub(crate) fn interleaved_elements(phase_0: Memory, lane: Lane, phase: u8) -> Memory {
    Memory { offset: phase_0.offset + i32::from(phase) * lane.bytes() as i32, ..phase_0 }
}

/// A rounding of a float to a whole number of the same type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounding {
    /// To the nearest whole number; ties go to the even one.
    Nearest,
    /// Downwards.
    Floor,
    /// Upwards.
    Ceil,
    /// Towards zero.
    Trunc,
}

/// The condition of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cond {
    /// Equal. False if either is NaN.
    Eq,
    /// Not equal. True if either is NaN.
    Ne,
    /// Less. False if either is NaN, like all conditions below.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// The operation that defines a value. Operands have the lane of the result unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// The same bits in each element.
    Constant {
        /// The bits; those above the lane's width are zero.
        bits: u64,
    },
    /// A number of the record in each element. The record has integers of 8 and 16 bits as 32-bit integers of the same
    /// value.
    Uniform {
        /// Its offset in the record.
        offset: u32,
    },
    /// `start + step * iteration`, wrapping, for `i32` or `i64`; `start` is in the record.
    Index {
        /// The offset of `start` in the record.
        offset: u32,
        /// The growth from one iteration to the next.
        step: i64,
    },
    /// Elements of memory. An operand is a mask: where it is false, the result is 0 and memory is not accessed.
    Load(Memory),
    /// Elements of 32 bits, at most 16 elements from each other within a group, in an order of their own. They lie as
    /// those of [`Op::Load`], except that the group's i-th iteration has the element whose number is the i-th four bits
    /// of `order`, counted from the element of the group's first iteration. The number of iterations is a multiple of
    /// [`GROUP`].
    LoadPermuted {
        /// The element of iteration 0 if its number is 0. The stride is that from group to group, divided by the
        /// iterations of a group.
        from: Memory,
        /// The numbers, the first in the lowest bits.
        order: u64,
    },
    /// Integers: `0 - x`, wrapping. Floats: inverts the sign bit.
    Neg,
    /// Integers: wraps, so that the least integer is unchanged. Floats: clears the sign bit.
    Abs,
    /// Inverts each bit; also for masks.
    Not,
    /// The square root of floats, rounded to nearest.
    Sqrt,
    /// Rounds floats to whole numbers.
    Round(Rounding),
    /// The number of set bits of an integer.
    CountOnes,
    /// The number of leading zeros of an integer.
    LeadingZeros,
    /// Integers wrap; floats round to nearest, as in the operations below.
    Add,
    /// `a - b`
    Sub,
    /// `a * b`; for integers the low bits of the product.
    Mul,
    /// The quotient of floats.
    Div,
    /// Floats: NaN if either is NaN, and -0 is less than +0.
    Min,
    /// Floats: NaN if either is NaN, and -0 is less than +0.
    Max,
    /// Bitwise, for integers and masks; so are the two below.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// `(a + b + 1) >> 1` without overflow, for unsigned integers of 8 or 16 bits in narrow kernels.
    Average,
    /// A left shift of integers by less than the lane's bits.
    Shl {
        /// The number of bits.
        by: u8,
    },
    /// A right shift of integers by less than the lane's bits; arithmetic for signed lanes.
    Shr {
        /// The number of bits.
        by: u8,
    },
    /// The quotient of an integer of at most 32 bits by a nonzero constant, rounded towards zero, wrapping.
    DivideBy {
        /// A value of the lane.
        divisor: i64,
    },
    /// The remainder of [`Op::DivideBy`]; it has the sign of the operand.
    RemainderBy {
        /// A value of the lane.
        divisor: i64,
    },
    /// `a * b + c` of floats, rounded once.
    Fma,
    /// A comparison of two operands of one lane; the result is a mask. For masks, false is less than true.
    Compare(Cond),
    /// A selection. Operands: mask, yes, no.
    Select,
    /// The operand's value in another lane. Between integers: wraps. Float to integer: rounds towards zero and
    /// saturates; NaN becomes 0. Integer to float, and `f64` to `f32`: rounds to nearest. To a mask: whether it is not
    /// 0 (true for NaN). From a mask: 1 or 0.
    Convert,
    /// The operand's bits as another lane of the same width. NaN becomes [`Lane::nan`] of the operand's lane.
    Bits,
    /// In narrow kernels: the `i32` sum of an iteration's elements, which are `u8`, `i16`, or `u16` below 2^15.
    SumNeighbours,
    /// In narrow kernels: the `i32` sum of the products of an iteration's elements of two `i16` operands.
    DotNeighbours,
}

impl Op {
    /// Returns whether the operation reads memory, which stores may change.
    pub fn loads(self) -> bool {
        matches!(self, Op::Load(_) | Op::LoadPermuted { .. })
    }
}

/// A value's definition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Def {
    /// The type of its elements.
    pub lane: Lane,
    /// The operation.
    pub op: Op,
    /// The operands.
    pub args: SmallVec<[Value; 3]>,
}

/// How an accumulator combines its element with a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// See [`Op::Add`].
    Sum,
    /// See [`Op::Mul`].
    Product,
    /// See [`Op::Min`].
    Min,
    /// See [`Op::Max`].
    Max,
    /// See [`Op::And`].
    And,
    /// See [`Op::Or`].
    Or,
}

impl Reduction {
    /// Returns the operation on two values.
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

    /// Returns the bits of the identity: -0 for a sum of floats.
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

/// [`GROUP`] elements that live as long as a call. Iteration i is accumulated into element `i % GROUP`, in order.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator {
    /// The type of its elements: `i32` to `f64`.
    pub lane: Lane,
    /// The offset of its elements in the record, where they are stored at the end.
    pub offset: u32,
    /// The start value of all elements; `None` to start with the elements in the record.
    pub start: Option<u64>,
    /// Whether iterations may be accumulated into any element in any order, because only the combination of all
    /// elements matters. Additional elements start with the reduction's identity.
    pub any_order: bool,
}

/// The place of a pointer in the record, and its stride.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moving {
    /// The offset of its address in the record.
    pub offset: u32,
    /// The bytes from one iteration to the next.
    pub stride: i64,
    /// The bytes from one trip of the outer loop to the next; 0 without one.
    pub outer: i64,
}

/// A change of memory or of an accumulator.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Stores an element of each iteration, or only where the mask is true.
    Store {
        /// The address.
        to: Memory,
        /// The value.
        value: Value,
        /// A mask.
        mask: Option<Value>,
    },
    /// Stores elements of at least 32 bits at a stride of two to four elements, or of minus one element.
    StoreInterleaved {
        /// The element of phase 0.
        to: Memory,
        /// The phases and their values. The element of phase n is n elements after that of phase 0. Missing phases are
        /// not stored.
        values: SmallVec<[(u8, Value); 4]>,
    },
    /// `element = element op value`, where the mask is true.
    Accumulate {
        /// The accumulator.
        accumulator: AccumulatorId,
        /// The reduction.
        op: Reduction,
        /// The value.
        value: Value,
        /// A mask.
        mask: Option<Value>,
    },
    /// `element = a * b + element`, rounded once, where the mask is true.
    AccumulateProduct {
        /// The accumulator.
        accumulator: AccumulatorId,
        /// The factors.
        factors: [Value; 2],
        /// A mask.
        mask: Option<Value>,
    },
}

impl Effect {
    /// Returns the values that the effect reads.
    pub fn reads(&self) -> SmallVec<[Value; 4]> {
        match self {
            Effect::Store { value, mask, .. } | Effect::Accumulate { value, mask, .. } => {
                [*value].into_iter().chain(*mask).collect()
            }
            Effect::AccumulateProduct { factors, mask, .. } => factors.iter().copied().chain(*mask).collect(),
            Effect::StoreInterleaved { values, .. } => values.iter().map(|v| v.1).collect(),
        }
    }

    /// Returns the accumulator that the effect changes.
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
    /// Defines a value.
    Make(Value),
    /// Executes an effect.
    Do(Effect),
}

/// The vectorized body of a loop.
///
/// Invariants: a value follows its operands; equal operations on equal operands are one value; equal loads only as long
/// as nothing is stored between them.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The elements of each iteration: 1, or 2 or 4 in narrow kernels.
    pub per_iteration: u8,
    /// The definition of each value.
    pub defs: Vec<Def>,
    /// Whether a value is a loop invariant.
    fixed: Vec<bool>,
    known: FxHashMap<Def, Value>,
    /// The steps of each group, in order, including loop invariants.
    pub items: Vec<Item>,
    /// By number.
    pub accumulators: Vec<Accumulator>,
    /// By number.
    pub pointers: Vec<Moving>,
    /// If there is an outer loop, the offset of its trip count in the record. The count is at least one, and the kernel
    /// counts it down.
    pub outer: Option<u32>,
}
