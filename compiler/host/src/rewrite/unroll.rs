//! Unrolls short loops around loops that store short rows.
//!
//! ```text
//! for i in 0..4 { for j in 0..4 { y[4 * i + j] = …; } }
//! ```
//!
//! has so few steps in an iteration that counting them takes as long. Unrolled, the rows stand one after the other,
//! at indices that are known.
//!
//! Invariant: the statements of the copies run in the order of the iterations, and fail the same checks.

use super::Rewritten;
use super::substitute::{Substitution, next_label};
use cranelift_entity::SecondaryMap;
use girder_codelet::fold::{Folded, fold};
use girder_codelet::interpret::{FREE_ITERATIONS, trips};
use girder_codelet::kernel::{KernelSpec, KernelTarget};
use girder_codelet::locals::{count_sets, reads};
use girder_codelet::nest::loop_nest;
use girder_codelet::work::code_of;
use girder_ir::codelet::{Codelet, Expr, ExprKind, Label, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::{ElemType, Scalar};

/// The most iterations of a loop that is unrolled, and the most of a loop inside.
const MOST: u64 = 4;
/// The most nodes of code that the copies have together.
const NODES: u64 = 2048;

/// Returns the codelet with such loops unrolled, or `None` if there are none.
pub(super) fn unroll(spec: &KernelSpec<'_>, target: KernelTarget) -> Option<Rewritten> {
    let folded = fold(spec.codelet, spec.sizes);
    let label = next_label(&spec.codelet.body);
    let mut unroll = Unroll { spec, target, folded, codelet: spec.codelet.clone(), label, changed: false };
    // A loop that nothing repeats is not worth it.
    unroll.codelet.body = unroll.block(&spec.codelet.body, false);
    unroll.changed.then(|| Rewritten { codelet: unroll.codelet, proven: spec.proven.clone() })
}

struct Unroll<'a> {
    spec: &'a KernelSpec<'a>,
    target: KernelTarget,
    folded: Folded,
    codelet: Codelet,
    /// The next label that is free.
    label: u32,
    changed: bool,
}

impl Unroll<'_> {
    fn block(&mut self, block: &StmtBlock, repeated: bool) -> StmtBlock {
        block.iter().flat_map(|stmt| self.stmt(stmt, repeated)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt, repeated: bool) -> StmtBlock {
        let Stmt::For { var, lo, hi, step, label, body, site } = stmt else { return vec![stmt.clone()] };
        let short = repeated && body.iter().all(|s| self.is_short(s)) && body.iter().any(stores_row);
        let count = self.trips(stmt).filter(|n| (2..=MOST).contains(n));
        if self.is_nest(stmt) {
            return vec![stmt.clone()];
        }
        let Some(count) = count.filter(|n| short && n.saturating_mul(self.nodes(body)) <= NODES) else {
            let body = self.block(body, true);
            return vec![Stmt::For { var: *var, lo: *lo, hi: *hi, step: *step, label: *label, body, site: *site }];
        };
        self.changed = true;
        let own = self.own_locals(body);
        let (from, span) = (self.folded[*lo].unwrap_or(0), self.codelet.exprs[*lo].span);
        let mut copies = StmtBlock::new();
        for n in 0..count {
            let bits = (from as i64).wrapping_add(n as i64 * step) as u64;
            let kind = ExprKind::Const(Scalar::new(ElemType::I64, bits));
            let index: ExprId = self.codelet.exprs.push(Expr { kind, ty: ElemType::I64, span });
            let mut copy = Substitution::new(&mut self.codelet, [(*var, index)]);
            own.iter().for_each(|&local| copy.rename(local, span));
            let mut body = copy.block(body);
            body.iter_mut().for_each(|stmt| self.relabel(stmt));
            copies.extend(body);
        }
        copies
    }

    /// Returns whether the iterations of a loop and of those inside become lanes of a vector kernel.
    fn is_nest(&self, stmt: &Stmt) -> bool {
        let Stmt::For { lo, hi, step: 1, label, body, .. } = stmt else { return false };
        let bounds = self.folded[*lo].zip(self.folded[*hi]);
        let outer = bounds.map(|(lo, hi)| trips(lo as i64, hi as i64, 1));
        let nest =
            outer.zip(self.target.nest_group).and_then(|(n, group)| loop_nest(&self.folded, (n, body, *label), group));
        nest.is_some_and(|nest| nest.inner.iter().all(|inner| self.spec.weights[inner.site] == 0))
    }

    /// Returns the locals that nothing outside of a block reads or sets. Each copy has its own, so that no copy seems
    /// to pass values to another.
    fn own_locals(&self, block: &[Stmt]) -> Vec<LocalId> {
        let whole = &self.spec.codelet.body;
        let [within, all] = [block, whole].map(|block| reads(self.spec.codelet, block));
        let [set_within, set] = [block, whole].map(|block| {
            let mut sets = SecondaryMap::new();
            count_sets(block, &mut sets);
            sets
        });
        let own = |&l: &LocalId| set_within[l] > 0 && set_within[l] == set[l] && within[l] == all[l];
        self.spec.codelet.locals.keys().filter(own).collect()
    }

    /// Counts the nodes of a block whose loops and reductions are written out.
    fn nodes(&self, block: &[Stmt]) -> u64 {
        let of = |stmt: &Stmt| match stmt {
            Stmt::For { body, .. } => self.trips(stmt).unwrap_or(NODES).saturating_mul(self.nodes(body)),
            Stmt::Reduce(r) => {
                let each = code_of(self.spec.codelet, r.value).saturating_add(self.nodes(&r.before));
                r.binders
                    .iter()
                    .fold(each, |nodes, b| nodes.saturating_mul(self.range(b.lo, b.hi, b.step).unwrap_or(NODES)))
            }
            other => {
                let mut nodes = 0u64;
                other.for_each_expr(|e| nodes = nodes.saturating_add(code_of(self.spec.codelet, e)));
                nodes
            }
        };
        block.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Gives a loop of a copy a label of its own.
    fn relabel(&mut self, stmt: &mut Stmt) {
        if let Stmt::For { label, .. } = stmt {
            *label = Label(self.label);
            self.label += 1;
        }
    }

    /// Returns the trip count of a loop, if it is known and counts nothing.
    fn trips(&self, stmt: &Stmt) -> Option<u64> {
        let Stmt::For { lo, hi, step, site, .. } = stmt else { return None };
        self.range(*lo, *hi, *step).filter(|_| self.spec.weights[*site] == 0)
    }

    fn range(&self, lo: ExprId, hi: ExprId, step: i64) -> Option<u64> {
        let trips = trips(self.folded[lo]? as i64, self.folded[hi]? as i64, step);
        (trips <= FREE_ITERATIONS).then_some(trips)
    }

    /// Returns whether a statement of the loop is an assignment, a store, or a short loop of assignments, stores and
    /// reductions.
    fn is_short(&self, stmt: &Stmt) -> bool {
        let plain = |s: &Stmt| matches!(s, Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Reduce(_));
        match stmt {
            Stmt::For { body, .. } => self.trips(stmt).is_some_and(|n| n <= MOST) && body.iter().all(plain),
            Stmt::Reduce(_) => false,
            other => plain(other),
        }
    }
}

/// Returns whether a loop stores elements.
fn stores_row(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { body, .. } if body.iter().any(|s| matches!(s, Stmt::Store { .. })))
}
