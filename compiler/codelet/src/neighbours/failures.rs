//! Failures of neighbours: whether each of them fails if and only if the first one does, at the same check and with the
//! same values.
//!
//! A value is *common* to the neighbours if it is computed from constants, from sizes that are the same after joining,
//! and from elements of fields that stay. If all conditions and bounds are common, all neighbours take the same path.
//! A check of common values then fails for all of them or for none, and the joined vertex fails as its first neighbour
//! does.
//!
//! Invariant: values are called common only if no element of a field that moves has an influence on them.

use super::Motion;
use crate::sizes::{Sizes, static_int};
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{Codelet, ExprKind, Index, Reduce, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};

/// Returns whether all checks of a set fail for every neighbour or for none. The codelet has no array, and each store
/// is in a long loop.
pub(super) fn are_common(
    codelet: &Codelet,
    (one, all): (&Sizes, &Sizes),
    motion: &SecondaryMap<FieldId, Option<Motion>>,
    may_fail: &EntitySet<SiteId>,
) -> bool {
    let mut values = CommonValues { codelet, one, all, motion, own: EntitySet::new() };
    while values.spread(&codelet.body) {}
    let mut checks = Checks { values, may_fail, loops: SecondaryMap::new(), is_long: false, seen: EntitySet::new() };
    checks.block(&codelet.body).is_some() && may_fail.iter().all(|site| checks.seen.contains(site))
}

/// Which values are common.
struct CommonValues<'a> {
    codelet: &'a Codelet,
    one: &'a Sizes,
    all: &'a Sizes,
    motion: &'a SecondaryMap<FieldId, Option<Motion>>,
    /// The locals whose values are not common.
    own: EntitySet<LocalId>,
}

impl CommonValues<'_> {
    fn has(&self, e: ExprId) -> bool {
        let kind = &self.codelet.exprs[e].kind;
        let itself = match kind {
            ExprKind::Local(local) => !self.own.contains(*local),
            ExprKind::Size(size) => self.one.sizes[*size] == self.all.sizes[*size],
            ExprKind::Load { field, .. } => self.motion[*field].is_none(),
            ExprKind::LoadLocal { .. } => false,
            _ => true,
        };
        itself && kind.operands().iter().all(|&x| self.has(x))
    }

    /// Adds the locals that statements compute from values that are not common. Returns whether there is a new one.
    fn spread(&mut self, block: &StmtBlock) -> bool {
        let mut grows = false;
        for stmt in block.iter() {
            let mut common = true;
            stmt.for_each_expr(|e| common &= self.has(e));
            if !common {
                stmt.for_each_assigned(|local| grows |= self.own.insert(local));
            }
            for inner in stmt.blocks() {
                grows |= self.spread(inner);
            }
        }
        grows
    }
}

/// The walk over all checks. Its functions return `None` if neighbours may fail in different ways.
struct Checks<'a> {
    values: CommonValues<'a>,
    may_fail: &'a EntitySet<SiteId>,
    /// The bounds of the loops around a statement, for the sizes of one vertex and of the joined one.
    loops: SecondaryMap<LocalId, Option<[(i64, i64); 2]>>,
    /// Whether a loop around the statement is long.
    is_long: bool,
    /// The checks that may fail and were met.
    seen: EntitySet<SiteId>,
}

impl Checks<'_> {
    fn block(&mut self, block: &StmtBlock) -> Option<()> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::For { var, lo, hi, step, body, site, .. } => {
                self.expr(*lo)?;
                self.expr(*hi)?;
                let is_common = self.values.has(*lo) && self.values.has(*hi);
                // Iterations count for each vertex, so those inside a long loop would count for all neighbours.
                self.site(*site, is_common && !self.is_long)?;
                let sizes = [self.values.one, self.values.all];
                let bound = |sizes, e| static_int(self.values.codelet, sizes, &[], e);
                let bounds = sizes.map(|sizes| Some((bound(sizes, *lo)?, bound(sizes, *hi)?)).filter(|_| *step > 0));
                let ([Some(one), Some(all)], outer) = (bounds, self.is_long) else {
                    is_common.then_some(())?;
                    return self.block(body);
                };
                self.loops[*var] = Some([one, all]);
                self.is_long |= !is_common;
                self.block(body)?;
                self.is_long = outer;
                return Some(());
            }
            Stmt::If { cond, .. } | Stmt::While { cond, .. } => self.common(*cond)?,
            Stmt::Assert { cond, site } => self.site(*site, self.values.has(*cond))?,
            Stmt::Store { field, index, site, .. } => self.access(*field, index, *site)?,
            Stmt::Reduce(r) => self.reduce(r)?,
            _ => {}
        }
        let mut exprs = vec![];
        stmt.for_each_expr(|e| exprs.push(e));
        exprs.into_iter().try_for_each(|e| self.expr(e))?;
        stmt.blocks().try_for_each(|block| self.block(block))
    }

    fn reduce(&mut self, r: &Reduce) -> Option<()> {
        r.binders.iter().try_for_each(|binder| self.common(binder.lo).and(self.common(binder.hi)))?;
        r.filter.into_iter().try_for_each(|e| self.common(e))?;
        self.site(r.site, !self.is_long)?;
        self.site(r.iterations, !self.is_long)
    }

    fn expr(&mut self, e: ExprId) -> Option<()> {
        let codelet = self.values.codelet;
        let kind = &codelet.exprs[e].kind;
        match kind {
            ExprKind::Load { field, index, site } => self.access(*field, index, *site)?,
            // The second operand is evaluated for some values of the first one only.
            ExprKind::AndThen { a, .. } | ExprKind::OrElse { a, .. } => self.common(*a)?,
            _ => {
                let is_common = kind.operands().iter().all(|&x| self.values.has(x));
                kind.site().into_iter().try_for_each(|site| self.site(site, is_common))?;
            }
        }
        kind.operands().iter().try_for_each(|&x| self.expr(x))
    }

    fn common(&self, e: ExprId) -> Option<()> {
        self.values.has(e).then_some(())
    }

    /// Records a check that fails for all neighbours or for none if `is_common`.
    fn site(&mut self, site: SiteId, is_common: bool) -> Option<()> {
        self.seen.insert(site);
        (is_common || !self.may_fail.contains(site)).then_some(())
    }

    /// Checks the indices of an access: along the axis of the field's motion they are certainly inside, and the others
    /// are common.
    fn access(&mut self, field: FieldId, index: &Index, site: SiteId) -> Option<()> {
        let moved = self.values.motion[field].map(|m| m.axis);
        let of_axis = |(axis, &e): (usize, &ExprId)| match moved == Some(axis) {
            true => self.is_inside(field, axis, e),
            false => self.values.has(e),
        };
        let is_common = index.iter().enumerate().all(of_axis);
        self.site(site, is_common)
    }

    /// Returns whether an index is that of a loop over indices of an axis.
    fn is_inside(&self, field: FieldId, axis: usize, e: ExprId) -> bool {
        let CommonValues { codelet, one, all, .. } = self.values;
        let ExprKind::Local(local) = codelet.exprs[e].kind else { return false };
        let within = |((lo, hi), sizes): ((i64, i64), &Sizes)| {
            let length = sizes.shapes[field].get(axis).copied().unwrap_or(0);
            lo >= 0 && u64::try_from(hi).is_ok_and(|hi| hi <= length)
        };
        self.loops[local].is_some_and(|bounds| bounds.into_iter().zip([one, all]).all(within))
    }
}
