//! Moves the bounds checks of a loop or reduction in front of it.
//!
//! ```text
//! for j in 0..m { y[j] = x[k, j + d]; }
//! ```
//!
//! Nothing may be known of `k` and `d`, but they are the same in all iterations, so one condition tells whether every
//! index is inside. The original loop runs only if one may be outside:
//!
//! ```text
//! if k >= 0 && k <= n - 1 && d >= 0 && m - 1 + d <= w - 1 { for j in 0..m { y[j] = x[k, j + d]; } } else { .. }
//! ```
//!
//! Each index is bounded by arithmetic on intervals: a loop's index lies between its bounds, everything else has to be
//! the same in all iterations.
//!
//! Invariant: the condition cannot fail, and reads nothing that the loop changes. Where it holds, no index of the loop
//! is outside, and no bound that it compares has overflowed.

use super::Rewritten;
use super::substitute::{Substitution, replaced};
use cranelift_entity::EntitySet;
use girder_codelet::fold::{Folded, fold};
use girder_codelet::interpret::trips;
use girder_codelet::kernel::{KernelSpec, KernelTarget};
use girder_ir::codelet::{BinaryOp, Check, Codelet, Expr, ExprKind, Index, Site, Stmt};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use rustc_hash::FxHashMap;
use smallvec::smallvec;

/// Trip count below which two versions do not pay.
const FEWEST: u64 = 16;
/// The greatest number of checks of a loop that are moved.
const MOST: usize = 16;
/// Values that a condition takes from the codelet have at most this magnitude, and those that it computes the other
/// one, so that nothing overflows.
const LARGEST: i64 = 1 << 40;
const LARGEST_BOUND: i128 = 1 << 62;

/// Returns the codelet with two versions of each loop whose checks can be moved, or `None` if there is none.
pub(super) fn hoist_checks(spec: &KernelSpec<'_>, _: KernelTarget) -> Option<Rewritten> {
    let is_index = |site: SiteId| spec.codelet.sites[site].check == Check::Index && !spec.proven.contains(site);
    if !spec.codelet.sites.keys().any(is_index) {
        return None;
    }
    let folded = fold(spec.codelet, spec.sizes);
    let (codelet, proven) = (spec.codelet.clone(), spec.proven.clone());
    let mut rewrite = Rewrite { spec, folded, codelet, proven };
    let body = replaced(&spec.codelet.body, &mut |stmt| rewrite.both(stmt).map(|both| vec![both]))?;
    rewrite.codelet.body = body;
    Some(Rewritten { codelet: rewrite.codelet, proven: rewrite.proven })
}

/// Returns whether a statement consists of assignments, stores, conditions, loops and reductions.
fn is_plain(stmt: &Stmt) -> bool {
    let own = matches!(
        stmt,
        Stmt::Set { .. }
            | Stmt::Store { .. }
            | Stmt::StoreLocal { .. }
            | Stmt::If { .. }
            | Stmt::For { step: 1, .. }
            | Stmt::Reduce(_)
    );
    own && stmt.blocks().flatten().all(is_plain)
}

struct Rewrite<'a> {
    spec: &'a KernelSpec<'a>,
    /// Known values of the original codelet.
    folded: Folded,
    codelet: Codelet,
    proven: EntitySet<SiteId>,
}

impl Rewrite<'_> {
    /// Returns both versions of a loop or reduction, or `None` if some check cannot be moved, or there is none.
    fn both(&mut self, stmt: &Stmt) -> Option<Stmt> {
        let trips = |lo: ExprId, hi: ExprId| Some(trips(self.folded[lo]? as i64, self.folded[hi]? as i64, 1));
        let count = match stmt {
            Stmt::For { lo, hi, .. } => trips(*lo, *hi),
            Stmt::Reduce(r) => r.binders.iter().try_fold(1, |n: u64, b| Some(n.saturating_mul(trips(b.lo, b.hi)?))),
            _ => return None,
        };
        if !is_plain(stmt) || count.is_some_and(|n| n < FEWEST) {
            return None;
        }
        let mut accesses = UnprovenAccesses { spec: self.spec, loops: vec![], found: vec![], is_complete: true };
        accesses.stmt(stmt);
        let UnprovenAccesses { found, is_complete, .. } = accesses;
        if !is_complete || found.is_empty() || found.len() > MOST {
            return None;
        }
        let mut changes = Changes::default();
        changes.stmt(stmt);
        let span = self.codelet.sites[found[0].site].span;
        let mut condition = Condition { rewrite: self, changes: &changes, span, parts: vec![], bounded: vec![] };
        found.iter().try_for_each(|access| condition.is_inside(access))?;
        let cond = condition.all();
        let mut sites = FxHashMap::default();
        for access in &found {
            let own = Site { check: Check::Index, span, calls: smallvec![], message: None };
            let own = self.codelet.sites.push(own);
            self.proven.insert(own);
            sites.insert(access.site, own);
        }
        let inside = Substitution::of_sites(&mut self.codelet, sites).stmt(stmt);
        Some(Stmt::If { cond, then: vec![inside], els: vec![stmt.clone()] })
    }
}

/// The locals and fields that a loop changes.
#[derive(Default)]
struct Changes {
    locals: EntitySet<LocalId>,
    fields: EntitySet<FieldId>,
}

impl Changes {
    fn stmt(&mut self, stmt: &Stmt) {
        stmt.for_each_assigned(|local| {
            self.locals.insert(local);
        });
        if let Stmt::Store { field, .. } = stmt {
            self.fields.insert(*field);
        }
        stmt.blocks().flatten().for_each(|inner| self.stmt(inner));
    }
}

/// The indices of the loops around an expression, with their bounds.
type Loops = Vec<(LocalId, ExprId, ExprId)>;

/// An access whose indices may be outside.
struct UnprovenAccess {
    site: SiteId,
    index: Index,
    /// The greatest value of each index.
    last: Vec<i64>,
    /// The loops around it that belong to the rewritten one.
    loops: Loops,
}

/// Collects the accesses of a loop that are not proven.
struct UnprovenAccesses<'a> {
    spec: &'a KernelSpec<'a>,
    loops: Loops,
    found: Vec<UnprovenAccess>,
    /// Whether no other check may fail.
    is_complete: bool,
}

impl UnprovenAccesses<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        let depth = self.loops.len();
        if let Stmt::Reduce(r) = stmt {
            self.is_complete &= r.binders.iter().all(|binder| binder.step == 1);
            self.loops.extend(r.binders.iter().map(|binder| (binder.var, binder.lo, binder.hi)));
        }
        stmt.for_each_expr(|e| self.expr(e));
        match stmt {
            Stmt::For { var, lo, hi, .. } => self.loops.push((*var, *lo, *hi)),
            Stmt::Store { field, index, site, .. } => self.access(*site, *field, index),
            Stmt::StoreLocal { site, .. } => self.is_complete &= self.spec.proven.contains(*site),
            _ => {}
        }
        stmt.blocks().flatten().for_each(|inner| self.stmt(inner));
        self.loops.truncate(depth);
    }

    fn expr(&mut self, e: ExprId) {
        let kind = &self.spec.codelet.exprs[e].kind;
        match kind {
            ExprKind::Load { field, index, site } => self.access(*site, *field, index),
            ExprKind::LoadLocal { site, .. } | ExprKind::Binary { site: Some(site), .. } => {
                self.is_complete &= self.spec.proven.contains(*site);
            }
            _ => {}
        }
        kind.operands().iter().for_each(|&x| self.expr(x));
    }

    fn access(&mut self, site: SiteId, field: FieldId, index: &Index) {
        if self.spec.proven.contains(site) {
            return;
        }
        match self.found.iter().find(|known| known.site == site) {
            // Statements may share an expression.
            Some(known) => self.is_complete &= known.index == *index && known.loops == self.loops,
            None => {
                let last = self.spec.sizes.shapes[field].iter().map(|&n| n as i64 - 1).collect();
                self.found.push(UnprovenAccess { site, index: index.clone(), last, loops: self.loops.clone() });
            }
        }
    }
}

/// A bound of an index.
#[derive(Clone, Copy)]
struct Bound {
    expr: ExprId,
    known: Option<i64>,
    /// The value has at most this magnitude.
    magnitude: i128,
}

/// Builds the condition under which no index of a loop is outside.
struct Condition<'r, 'a> {
    rewrite: &'r mut Rewrite<'a>,
    changes: &'r Changes,
    span: Span,
    parts: Vec<ExprId>,
    /// The values of the codelet whose magnitude the condition bounds.
    bounded: Vec<ExprId>,
}

impl Condition<'_, '_> {
    /// Adds that the indices of an access are inside. Returns `None` if one has no bounds, or is always outside.
    fn is_inside(&mut self, access: &UnprovenAccess) -> Option<()> {
        for (&e, &last) in access.index.iter().zip(&access.last) {
            let (lo, hi) = self.bounds(e, &access.loops)?;
            let zero = self.number(0);
            self.at_most(zero, lo)?;
            let last = self.number(last);
            self.at_most(hi, last)?;
        }
        Some(())
    }

    /// Adds `a <= b`. Returns `None` if that never holds.
    fn at_most(&mut self, a: Bound, b: Bound) -> Option<()> {
        if let (Some(a), Some(b)) = (a.known, b.known) {
            return (a <= b).then_some(());
        }
        let kind = ExprKind::Binary { op: BinaryOp::Le, a: a.expr, b: b.expr, site: None };
        let part = self.expr(ElemType::Bool, kind);
        self.parts.push(part);
        Some(())
    }

    /// Returns the conjunction of all parts.
    fn all(mut self) -> ExprId {
        let parts = std::mem::take(&mut self.parts);
        let and = |a, b| ExprKind::Binary { op: BinaryOp::And, a, b, site: None };
        let all = parts.into_iter().reduce(|a, b| self.expr(ElemType::Bool, and(a, b)));
        all.unwrap_or_else(|| self.expr(ElemType::Bool, ExprKind::Const(Scalar::new(ElemType::Bool, 1))))
    }

    /// Returns the least and the greatest value of an index inside loops.
    fn bounds(&mut self, e: ExprId, loops: &Loops) -> Option<(Bound, Bound)> {
        if let Some(bits) = self.rewrite.folded[e] {
            let known = self.number(bits as i64);
            return (known.magnitude <= LARGEST.into()).then_some((known, known));
        }
        if self.is_same(e) {
            let same = self.of_codelet(e);
            return Some((same, same));
        }
        match self.rewrite.spec.codelet.exprs[e].kind {
            ExprKind::Local(local) => {
                let at = loops.iter().rposition(|(var, ..)| *var == local)?;
                let (_, lo, hi) = loops[at];
                let (least, _) = self.bounds(lo, loops)?;
                let (_, end) = self.bounds(hi, loops)?;
                let one = self.number(1);
                Some((least, self.combined(BinaryOp::Sub, end, one)?))
            }
            ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), a, b, .. } => {
                let (a, b) = (self.bounds(a, loops)?, self.bounds(b, loops)?);
                let b = if op == BinaryOp::Sub { (b.1, b.0) } else { b };
                Some((self.combined(op, a.0, b.0)?, self.combined(op, a.1, b.1)?))
            }
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => {
                let (a, b) = (self.bounds(a, loops)?, self.bounds(b, loops)?);
                let (x, factor) = if a.0.known.is_some() { (b, a.0) } else { (a, b.0) };
                let x = if factor.known? < 0 { (x.1, x.0) } else { x };
                Some((self.combined(BinaryOp::Mul, x.0, factor)?, self.combined(BinaryOp::Mul, x.1, factor)?))
            }
            _ => None,
        }
    }

    /// Returns whether an expression has the same value in all iterations and cannot fail.
    fn is_same(&self, e: ExprId) -> bool {
        let spec = self.rewrite.spec;
        let kind = &spec.codelet.exprs[e].kind;
        let own = match *kind {
            ExprKind::Local(local) => !self.changes.locals.contains(local),
            ExprKind::Load { field, site, .. } => !self.changes.fields.contains(field) && spec.proven.contains(site),
            ExprKind::LoadLocal { .. } => false,
            ExprKind::Binary { site, .. } => site.is_none_or(|site| spec.proven.contains(site)),
            _ => true,
        };
        own && kind.operands().iter().all(|&x| self.is_same(x))
    }

    /// Returns a value of the codelet as a bound, whose magnitude the condition bounds.
    fn of_codelet(&mut self, e: ExprId) -> Bound {
        let exprs = &self.rewrite.spec.codelet.exprs;
        if let ExprKind::Convert { x } = exprs[e].kind
            && exprs[x].ty.is_int()
            && exprs[x].ty.bytes() <= 4
        {
            return Bound { expr: e, known: None, magnitude: 1 << 32 };
        }
        let value = Bound { expr: e, known: None, magnitude: LARGEST.into() };
        if !self.bounded.contains(&e) {
            self.bounded.push(e);
            let (least, greatest) = (self.number(-LARGEST), self.number(LARGEST));
            let holds = self.at_most(least, value).and_then(|()| self.at_most(value, greatest));
            debug_assert!(holds.is_some(), "the value is not known");
        }
        value
    }

    /// Returns the sum, difference or product of two bounds, or `None` if it might overflow.
    fn combined(&mut self, op: BinaryOp, a: Bound, b: Bound) -> Option<Bound> {
        let magnitude = match op {
            BinaryOp::Mul => a.magnitude.checked_mul(b.magnitude)?,
            _ => a.magnitude + b.magnitude,
        };
        if magnitude > LARGEST_BOUND {
            return None;
        }
        if let (Some(a), Some(b)) = (a.known, b.known) {
            return Some(self.number(match op {
                BinaryOp::Mul => a * b,
                BinaryOp::Sub => a - b,
                _ => a + b,
            }));
        }
        let expr = self.expr(ElemType::I64, ExprKind::Binary { op, a: a.expr, b: b.expr, site: None });
        Some(Bound { expr, known: None, magnitude })
    }

    fn number(&mut self, value: i64) -> Bound {
        let expr = self.expr(ElemType::I64, ExprKind::Const(Scalar::new(ElemType::I64, value as u64)));
        Bound { expr, known: Some(value), magnitude: i128::from(value).abs() }
    }

    fn expr(&mut self, ty: ElemType, kind: ExprKind) -> ExprId {
        self.rewrite.codelet.exprs.push(Expr { kind, ty, span: self.span })
    }
}
