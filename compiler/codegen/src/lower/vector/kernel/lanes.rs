//! The language's types and operators in the vector IR.
//!
//! Invariant: each result is that of `girder_codelet::scalar`; all NaNs count as equal.

use girder_ir::codelet::{BinaryOp, ReduceOp, UnaryOp};
use girder_ir::types::ElemType;
use girder_simd::ir::{Cond, Kernel, Lane, Op, Reduction, Rounding, Value};

/// Returns the lane of values of a type.
pub(in crate::lower::vector) fn lane(ty: ElemType) -> Lane {
    match ty {
        ElemType::Bool => Lane::Mask,
        _ => memory_lane(ty),
    }
}

/// Returns the lane of elements of a type in memory, where a `bool` is a byte.
pub(super) fn memory_lane(ty: ElemType) -> Lane {
    match ty {
        ElemType::Bool | ElemType::U8 => Lane::U8,
        ElemType::I8 => Lane::I8,
        ElemType::U16 => Lane::U16,
        ElemType::I16 => Lane::I16,
        ElemType::U32 => Lane::U32,
        ElemType::I32 => Lane::I32,
        ElemType::U64 => Lane::U64,
        ElemType::I64 => Lane::I64,
        ElemType::F32 => Lane::F32,
        ElemType::F64 => Lane::F64,
        ElemType::F16 => unreachable!("`f16` is refused before"),
    }
}

/// Adds `op x`.
pub(super) fn unary(kernel: &mut Kernel, op: UnaryOp, x: Value) -> Value {
    let op = match op {
        UnaryOp::Neg => Op::Neg,
        UnaryOp::Not => Op::Not,
        UnaryOp::Abs => Op::Abs,
        UnaryOp::Sqrt => Op::Sqrt,
        UnaryOp::Round => Op::Round(Rounding::Nearest),
        UnaryOp::Floor => Op::Round(Rounding::Floor),
        UnaryOp::Ceil => Op::Round(Rounding::Ceil),
        UnaryOp::Trunc => Op::Round(Rounding::Trunc),
        UnaryOp::Popcount => Op::CountOnes,
        UnaryOp::Clz => Op::LeadingZeros,
    };
    kernel.unary(op, x)
}

/// Returns the condition of a comparison.
pub(super) fn cond(op: BinaryOp) -> Option<Cond> {
    Some(match op {
        BinaryOp::Eq => Cond::Eq,
        BinaryOp::Ne => Cond::Ne,
        BinaryOp::Lt => Cond::Lt,
        BinaryOp::Le => Cond::Le,
        BinaryOp::Gt => Cond::Gt,
        BinaryOp::Ge => Cond::Ge,
        _ => return None,
    })
}

/// Adds `a op b`. Shifts, remainders and the division of integers are not supported.
pub(super) fn binary(kernel: &mut Kernel, op: BinaryOp, a: Value, b: Value) -> Value {
    if let Some(cond) = cond(op) {
        return kernel.compare(cond, a, b);
    }
    let op = match op {
        BinaryOp::Add => Op::Add,
        BinaryOp::Sub => Op::Sub,
        BinaryOp::Mul => Op::Mul,
        BinaryOp::Div => Op::Div,
        BinaryOp::Min => Op::Min,
        BinaryOp::Max => Op::Max,
        BinaryOp::And => Op::And,
        BinaryOp::Or => Op::Or,
        BinaryOp::Xor => Op::Xor,
        op => unreachable!("{op:?} has a number as its second operand"),
    };
    kernel.binary(op, a, b)
}

/// Returns how an accumulator combines the values of a reduction. Those of `any` and `all` are -1 and 0.
pub(super) fn reduction(op: ReduceOp) -> Reduction {
    match op {
        ReduceOp::Sum => Reduction::Sum,
        ReduceOp::Product => Reduction::Product,
        ReduceOp::Min => Reduction::Min,
        ReduceOp::Max => Reduction::Max,
        ReduceOp::All => Reduction::And,
        ReduceOp::Any => Reduction::Or,
        ReduceOp::ArgMin | ReduceOp::ArgMax => unreachable!("a position is found by its value"),
    }
}
