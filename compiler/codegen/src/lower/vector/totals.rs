//! Totals: locals into which a loop's body only accumulates, so that a vector kernel can accumulate lane by lane.
//!
//! Examples are `count += 1` under a condition, and `least = min(least, x[i])`. Sums and products of floats are not
//! totals, because their order matters.
//!
//! Invariant: if a body has a [`Step::Total`], only such steps read and set its local in the whole body.

use super::steps::{Step, Total};
use cranelift_entity::SecondaryMap;
use girder_codelet::locals::reads;
use girder_codelet::scalar::is_ordered;
use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, ReduceOp, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};

/// How the steps use a local.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Use {
    #[default]
    Nothing,
    /// The given number of steps accumulate into it.
    Takes(ReduceOp, u32),
    Other,
}

/// Replaces steps by totals where possible; `body` has the statements from which the steps were made.
pub(super) fn find(codelet: &Codelet, steps: &mut [Step], body: &StmtBlock) {
    let mut uses = SecondaryMap::new();
    note(codelet, steps, false, &mut uses);
    if uses.values().any(|u| matches!(u, Use::Takes(..))) {
        let reads = reads(codelet, body);
        change(codelet, steps, &|local| matches!(uses[local], Use::Takes(_, n) if n == reads[local]));
    }
}

fn note(codelet: &Codelet, steps: &[Step], repeated: bool, uses: &mut SecondaryMap<LocalId, Use>) {
    for step in steps {
        match step {
            Step::Set { local, value } => {
                let own = total(codelet, *local, *value).filter(|t| !(repeated && is_put(codelet, t)));
                uses[*local] = match (uses[*local], own) {
                    (Use::Nothing, Some(t)) => Use::Takes(t.op, 1),
                    (Use::Takes(op, n), Some(t)) if op == t.op && !is_put(codelet, &t) => Use::Takes(op, n + 1),
                    _ => Use::Other,
                };
            }
            Step::If { then, els, .. } => {
                note(codelet, then, repeated, uses);
                note(codelet, els, repeated, uses);
            }
            Step::For { var, body, .. } => {
                uses[*var] = Use::Other;
                note(codelet, body, true, uses);
            }
            Step::Reduce(r) => {
                uses[r.source.dst] = Use::Other;
                sets(&r.before, uses);
            }
            Step::Store { .. } | Step::Total(_) => {}
        }
    }
}

/// Marks the locals that the elements of a reduction set: they are no totals.
fn sets(steps: &[Step], uses: &mut SecondaryMap<LocalId, Use>) {
    super::steps::any(steps, &mut |step| {
        if let Step::Set { local, .. } = step {
            uses[*local] = Use::Other;
        }
        false
    });
}

/// Returns whether a total is a `min` or `max` of floats. It takes several instructions, so it may be emitted only once
/// per accumulator.
fn is_put(codelet: &Codelet, total: &Total) -> bool {
    codelet.exprs[total.value].ty.is_float()
}

fn change(codelet: &Codelet, steps: &mut [Step], is_total: &impl Fn(LocalId) -> bool) {
    for step in steps {
        match step {
            Step::Set { local, value } if is_total(*local) => {
                if let Some(total) = total(codelet, *local, *value) {
                    *step = Step::Total(total);
                }
            }
            Step::If { then, els, .. } => {
                change(codelet, then, is_total);
                change(codelet, els, is_total);
            }
            Step::For { body, .. } => change(codelet, body, is_total),
            _ => {}
        }
    }
}

/// Returns `local = value` as a total, if it has that form.
fn total(codelet: &Codelet, local: LocalId, value: ExprId) -> Option<Total> {
    let ExprKind::Binary { op, a, b, site: None } = codelet.exprs[value].kind else { return None };
    let ty = codelet.exprs[value].ty;
    let is_old = |e: ExprId| matches!(codelet.exprs[e].kind, ExprKind::Local(l) if l == local);
    let (op, negated) = match op {
        BinaryOp::Add => (ReduceOp::Sum, false),
        BinaryOp::Sub => (ReduceOp::Sum, true),
        BinaryOp::Mul => (ReduceOp::Product, false),
        BinaryOp::Min => (ReduceOp::Min, false),
        BinaryOp::Max => (ReduceOp::Max, false),
        _ => return None,
    };
    let value = match (is_old(a), is_old(b)) {
        (true, _) => b,
        (_, true) if !negated => a,
        _ => return None,
    };
    let fits = super::search::takes_reduction(op, ty) && !is_ordered(op, ty);
    fits.then_some(Total { local, op, value, factors: None, negated })
}
