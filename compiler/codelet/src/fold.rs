//! Values of expressions that are known once the sizes are.
//!
//! Invariant: a folded expression has the value that evaluating it gives, and evaluating it fails no check.

use crate::{Sizes, scalar};
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, ExprKind};
use girder_ir::ids::ExprId;

/// The bits of every expression whose value is known.
pub type Folded = SecondaryMap<ExprId, Option<u64>>;

/// Folds all expressions of a codelet. The recursion is as deep as expressions nest.
pub fn fold(codelet: &Codelet, sizes: &Sizes) -> Folded {
    let mut known = SecondaryMap::with_capacity(codelet.exprs.len());
    let mut seen = SecondaryMap::with_capacity(codelet.exprs.len());
    for e in codelet.exprs.keys() {
        visit(codelet, sizes, e, &mut known, &mut seen);
    }
    known
}

fn visit(
    codelet: &Codelet,
    sizes: &Sizes,
    e: ExprId,
    known: &mut SecondaryMap<ExprId, Option<u64>>,
    seen: &mut SecondaryMap<ExprId, bool>,
) {
    if std::mem::replace(&mut seen[e], true) {
        return;
    }
    codelet.exprs[e].kind.operands().iter().for_each(|&x| visit(codelet, sizes, x, known, seen));
    known[e] = value(codelet, sizes, e, known);
}

fn value(codelet: &Codelet, sizes: &Sizes, e: ExprId, known: &SecondaryMap<ExprId, Option<u64>>) -> Option<u64> {
    let expr = &codelet.exprs[e];
    let ty_of = |x: ExprId| codelet.exprs[x].ty;
    match expr.kind {
        ExprKind::Const(c) => Some(c.bits),
        ExprKind::Size(size) => Some(sizes.sizes[size] as u64),
        ExprKind::Unary { op, x } => Some(scalar::unary(op, expr.ty, known[x]?)),
        ExprKind::Binary { op, a, b, .. } => scalar::binary(op, ty_of(a), known[a]?, known[b]?).ok(),
        ExprKind::AndThen { a, b } => {
            if known[a]? == 0 {
                Some(0)
            } else {
                known[b]
            }
        }
        ExprKind::OrElse { a, b } => {
            if known[a]? != 0 {
                Some(1)
            } else {
                known[b]
            }
        }
        ExprKind::Select { cond, a, b } => {
            let (cond, a, b) = (known[cond]?, known[a]?, known[b]?);
            Some(if cond != 0 { a } else { b })
        }
        ExprKind::Fma { a, b, c } => Some(scalar::fma(expr.ty, known[a]?, known[b]?, known[c]?)),
        ExprKind::Convert { x } => Some(scalar::convert(ty_of(x), expr.ty, known[x]?)),
        ExprKind::Bits { x } => Some(scalar::bits(ty_of(x), expr.ty, known[x]?)),
        ExprKind::Local(_)
        | ExprKind::ConstField(_)
        | ExprKind::Worker
        | ExprKind::Workers
        | ExprKind::Load { .. }
        | ExprKind::LoadLocal { .. } => None,
    }
}
