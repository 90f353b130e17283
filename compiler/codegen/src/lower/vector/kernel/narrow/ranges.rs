//! The ranges of the integers of a body, and the number of bits that they need.
//!
//! Invariant: a range contains every value that its expression may have.

use super::Narrow;
use crate::lower::Lower;
use girder_codelet::scalar::{extend, int_range};
use girder_ir::codelet::{BinaryOp, ExprKind, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;

/// The least and the greatest number of a range.
pub(super) type IntRange = (i128, i128);

/// Returns the bits of the narrowest lanes that hold all numbers of a range, and whether they are signed.
pub(super) fn lanes((lo, hi): IntRange) -> Option<(u8, bool)> {
    let signed = lo < 0;
    let holds = |bits: &u8| match signed {
        true => lo >= -(1 << (bits - 1)) && hi < 1 << (bits - 1),
        false => hi < 1 << bits,
    };
    [8, 16].into_iter().find(holds).map(|bits| (bits, signed))
}

impl Lower<'_, '_> {
    /// Returns the range of an integer expression.
    pub(super) fn narrow_range(&self, narrow: &Narrow<'_>, e: ExprId) -> Option<IntRange> {
        let ty = self.ty(e);
        let all = int_range(ty).filter(|_| ty.is_int())?;
        if let Some(bits) = self.folded[e] {
            let n = if ty == ElemType::U64 { i128::from(bits) } else { i128::from(extend(ty, bits)) };
            return Some((n, n));
        }
        if narrow.vk.plan.same.contains(e) {
            return Some(all);
        }
        // A result outside the range of its type wraps around.
        Some(self.unwrapped_range(narrow, e).filter(|r| all.0 <= r.0 && r.1 <= all.1).unwrap_or(all))
    }

    /// Returns the range of a result before it wraps around; `None` if it is not known.
    pub(super) fn unwrapped_range(&self, narrow: &Narrow<'_>, e: ExprId) -> Option<IntRange> {
        let range = |e: ExprId| self.narrow_range(narrow, e);
        let either = |(a, b): IntRange, (c, d): IntRange| (a.min(c), b.max(d));
        match self.codelet.exprs[e].kind {
            ExprKind::Local(local) => {
                narrow.locals[local].as_ref().filter(|known| known.exact).map(|known| known.range)
            }
            ExprKind::Convert { x } if self.ty(x) == ElemType::Bool => Some((0, 1)),
            ExprKind::Convert { x } => range(x),
            ExprKind::Select { a, b, .. } => Some(either(range(a)?, range(b)?)),
            ExprKind::Unary { op, x } => {
                let (lo, hi) = range(x)?;
                match op {
                    UnaryOp::Neg => Some((-hi, -lo)),
                    UnaryOp::Abs if lo >= 0 => Some((lo, hi)),
                    UnaryOp::Abs => Some((0, hi.max(-lo))),
                    _ => None,
                }
            }
            ExprKind::Binary { op, a, b, .. } => {
                let (x, y) = (range(a)?, range(b)?);
                let all_bits = |n: i128| (1i128 << (128 - n.leading_zeros())) - 1;
                let number = self.folded[b].map(|n| n.min(127) as u32);
                match op {
                    BinaryOp::Add => Some((x.0 + y.0, x.1 + y.1)),
                    BinaryOp::Sub => Some((x.0 - y.1, x.1 - y.0)),
                    BinaryOp::Mul => {
                        let corners = [(x.0, y.0), (x.0, y.1), (x.1, y.0), (x.1, y.1)].map(|(p, q)| p.checked_mul(q));
                        let [a, b, c, d] = corners;
                        let all = [a?, b?, c?, d?];
                        Some((all.into_iter().min()?, all.into_iter().max()?))
                    }
                    BinaryOp::Min => Some((x.0.min(y.0), x.1.min(y.1))),
                    BinaryOp::Max => Some((x.0.max(y.0), x.1.max(y.1))),
                    BinaryOp::And if x.0 >= 0 && y.0 >= 0 => Some((0, x.1.min(y.1))),
                    BinaryOp::And if x.0 >= 0 => Some((0, x.1)),
                    BinaryOp::And if y.0 >= 0 => Some((0, y.1)),
                    BinaryOp::Or | BinaryOp::Xor if x.0 >= 0 && y.0 >= 0 => Some((0, all_bits(x.1.max(y.1)))),
                    BinaryOp::Shl => {
                        let factor = 1i128 << number.filter(|&n| n < 32)?;
                        Some((x.0.checked_mul(factor)?, x.1.checked_mul(factor)?))
                    }
                    BinaryOp::Shr => Some((x.0 >> number?, x.1 >> number?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
