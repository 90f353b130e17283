//! Evaluation of a codelet's integer expressions over its sizes: dimensions and `#[cycles]`.
//!
//! Invariant: the result is exact; what overflows, divides by zero or needs more than sizes and constants is `None`.

use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;

/// The value of an integer or `bool` expression when sizes are known, in the order of their ids.
pub fn eval_int(codelet: &Codelet, expr: ExprId, sizes: &[i64]) -> Option<i64> {
    let eval = |e: ExprId| eval_int(codelet, e, sizes);
    let node = &codelet.exprs[expr];
    if node.ty.is_float() {
        return None;
    }
    match node.kind {
        ExprKind::Const(s) => i64::try_from(s.as_int()?).ok(),
        ExprKind::Size(s) => sizes.get(s.as_u32() as usize).copied(),
        ExprKind::Unary { op: UnaryOp::Neg, x } => eval(x)?.checked_neg(),
        ExprKind::Unary { op: UnaryOp::Abs, x } => eval(x)?.checked_abs(),
        ExprKind::Unary { op: UnaryOp::Not, x } if node.ty == ElemType::Bool => Some(1 - eval(x)?),
        ExprKind::Convert { x } if node.ty == ElemType::I64 || node.ty == ElemType::Bool => {
            let v = eval(x)?;
            Some(if node.ty == ElemType::Bool { i64::from(v != 0) } else { v })
        }
        ExprKind::Binary { op, a, b, .. } => binary(op, eval(a)?, eval(b)?),
        ExprKind::AndThen { a, b } => {
            if eval(a)? != 0 {
                eval(b)
            } else {
                Some(0)
            }
        }
        ExprKind::OrElse { a, b } => {
            if eval(a)? != 0 {
                Some(1)
            } else {
                eval(b)
            }
        }
        ExprKind::Select { cond, a, b } => eval(if eval(cond)? != 0 { a } else { b }),
        _ => None,
    }
}

fn binary(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::Shl => u32::try_from(b).ok().filter(|&s| s < 63).and_then(|s| a.checked_mul(1 << s)),
        BinaryOp::Shr => u32::try_from(b).ok().and_then(|s| a.checked_shr(s)),
        BinaryOp::Eq => Some((a == b).into()),
        BinaryOp::Ne => Some((a != b).into()),
        BinaryOp::Lt => Some((a < b).into()),
        BinaryOp::Le => Some((a <= b).into()),
        BinaryOp::Gt => Some((a > b).into()),
        BinaryOp::Ge => Some((a >= b).into()),
    }
}
