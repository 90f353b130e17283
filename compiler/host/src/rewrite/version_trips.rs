//! Makes versions of a loop for the trip counts of the short loops inside it.
//!
//! ```text
//! for m in 0..c { y[m] = sum r in a..b { x[r, m] * k[r, m] }; }
//! ```
//!
//! The bounds are the same for all m, but not known: at the edges of an image, a window has fewer rows. Vector kernels
//! unroll inner loops, so they need the trip counts. The rewritten loop tests them first:
//!
//! ```text
//! let count = b - a;
//! versions {
//!     if count == 3 { for m in 0..c { y[m] = sum r in 0..3 { x[a + r, m] * k[a + r, m] }; } break versions; }
//!     if count == 2 { … }
//!     for m in 0..c { y[m] = sum r in a..b { x[r, m] * k[r, m] }; }
//! }
//! ```
//!
//! Invariant: a version runs only if the original would run as many iterations of each inner loop. What is evaluated
//! before the loop cannot fail and has the value that it has in the loop.

use super::Rewritten;
use super::substitute::{Substitution, next_label};
use super::whole::Whole;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_codelet::fold::{Folded, fold};
use girder_codelet::forms::Forms;
use girder_codelet::interpret::trips;
use girder_codelet::kernel::{KernelSpec, KernelTarget};
use girder_codelet::locals::{count_sets, reads};
use girder_codelet::work::operations_of;
use girder_ir::codelet::{BinaryOp, Binder, Check, Codelet, Expr, ExprKind, Label, Local, Site, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::smallvec;

/// The most iterations of an inner loop.
const MOST: i64 = 16;
/// The most inner loops with trip counts of their own.
const LOOPS: usize = 3;
/// The most operations of all versions of a loop together.
const OPERATIONS: u64 = 2000;

/// Returns the codelet with versions of the loops that gain by them, or `None` if there are none.
pub(super) fn version_trips(spec: &KernelSpec<'_>, target: KernelTarget) -> Option<Rewritten> {
    let folded = fold(spec.codelet, spec.sizes);
    if !has_candidate(&folded, &spec.codelet.body) {
        return None;
    }
    let mut rewrite = Rewrite {
        spec,
        target,
        forms: Forms::new(spec.codelet),
        folded,
        codelet: spec.codelet.clone(),
        proven: spec.proven.clone(),
        label: next_label(&spec.codelet.body),
        changed: false,
    };
    rewrite.codelet.body = rewrite.block(&spec.codelet.body);
    rewrite.changed.then_some(Rewritten { codelet: rewrite.codelet, proven: rewrite.proven })
}

/// Returns whether a loop has a loop inside whose bounds are not known.
fn has_candidate(folded: &Folded, block: &StmtBlock) -> bool {
    let is_open = |b: &Binder| folded[b.lo].is_none() || folded[b.hi].is_none();
    fn within(block: &StmtBlock, is: &dyn Fn(&Stmt) -> bool) -> bool {
        block.iter().any(|s| is(s) || s.blocks().any(|inner| within(inner, is)))
    }
    let is = |stmt: &Stmt| match stmt {
        Stmt::For { lo, hi, .. } => folded[*lo].is_none() || folded[*hi].is_none(),
        Stmt::Reduce(r) => r.binders.iter().any(is_open),
        _ => false,
    };
    block.iter().any(|stmt| match stmt {
        Stmt::For { body, .. } => within(body, &is),
        stmt => stmt.blocks().any(|inner| has_candidate(folded, inner)),
    })
}

/// A range of inner loops whose trip count is tested.
#[derive(Clone, Copy)]
struct Open {
    lo: ExprId,
    hi: ExprId,
    step: i64,
    /// The greatest trip count.
    most: i64,
}

/// An [`Open`] range with its first value and its trip count, at most `most + 1`, in locals.
struct Tested {
    first: LocalId,
    count: LocalId,
}

struct Rewrite<'a> {
    spec: &'a KernelSpec<'a>,
    target: KernelTarget,
    forms: Forms<'a>,
    /// Known values of the original codelet.
    folded: Folded,
    codelet: Codelet,
    proven: EntitySet<SiteId>,
    /// The next free label.
    label: u32,
    changed: bool,
}

impl<'a> Rewrite<'a> {
    fn block(&mut self, block: &'a StmtBlock) -> StmtBlock {
        block.iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> StmtBlock {
        if let Some(versions) = self.versions(stmt) {
            self.changed = true;
            return versions;
        }
        vec![match stmt {
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let body = self.block(body);
                Stmt::For { var: *var, lo: *lo, hi: *hi, step: *step, label: *label, body, site: *site }
            }
            Stmt::If { cond, then, els } => Stmt::If { cond: *cond, then: self.block(then), els: self.block(els) },
            Stmt::Labelled { label, body } => Stmt::Labelled { label: *label, body: self.block(body) },
            other => other.clone(),
        }]
    }

    /// Returns the versions of a loop, or `None` if it has no short inner loops with bounds that it does not change.
    fn versions(&mut self, stmt: &'a Stmt) -> Option<StmtBlock> {
        let Stmt::For { lo, body, .. } = stmt else { return None };
        let around = std::slice::from_ref(stmt);
        if !around.iter().all(is_plain) || !self.counts_nothing(around) {
            return None;
        }
        let mut sets = SecondaryMap::new();
        count_sets(around, &mut sets);
        let own = self.own_locals(around, &sets)?;
        let mut open = Vec::new();
        self.open_ranges(body, &sets, &mut open)?;
        let counts = self.counts(body, &open)?;
        let span = self.codelet.exprs[*lo].span;
        let mut block = StmtBlock::new();
        let tested: Vec<Tested> = open.iter().map(|range| self.tested(range, span, &mut block)).collect();
        let key = self.key(&open, &tested, span, &mut block);
        let label = self.next_label();
        let mut versions = StmtBlock::new();
        for counts in &counts {
            let cond = self.is_key(key, &open, counts, span);
            let version = self.version(stmt, (&own, &open), (&tested, counts), span);
            versions.push(Stmt::If { cond, then: vec![version, Stmt::Break(label)], els: vec![] });
        }
        versions.push(stmt.clone());
        block.push(Stmt::Labelled { label, body: versions });
        Some(block)
    }

    /// Returns whether no site of these statements counts iterations.
    fn counts_nothing(&self, block: &[Stmt]) -> bool {
        block.iter().all(|stmt| {
            let free = match stmt {
                Stmt::For { site, .. } => self.spec.weights[*site] == 0,
                Stmt::Reduce(r) => self.spec.weights[r.iterations] == 0,
                _ => true,
            };
            free && stmt.blocks().all(|inner| self.counts_nothing(inner))
        })
    }

    /// Returns the locals that the statements set, or `None` if one of them is read or set elsewhere.
    fn own_locals(&self, block: &[Stmt], set_within: &SecondaryMap<LocalId, u32>) -> Option<Vec<LocalId>> {
        let whole = &self.spec.codelet.body;
        let [within, all] = [block, whole].map(|block| reads(self.spec.codelet, block));
        let mut set = SecondaryMap::new();
        count_sets(whole, &mut set);
        let sets: Vec<LocalId> = self.spec.codelet.locals.keys().filter(|&l| set_within[l] > 0).collect();
        let own = sets.iter().all(|&l| set_within[l] == set[l] && within[l] == all[l]);
        own.then_some(sets)
    }

    /// Collects the ranges of inner loops whose trip counts are not known. Returns `None` if one of them is not short,
    /// or depends on what the loop sets.
    fn open_ranges(&self, block: &[Stmt], sets: &SecondaryMap<LocalId, u32>, out: &mut Vec<Open>) -> Option<()> {
        for stmt in block {
            match stmt {
                Stmt::For { lo, hi, step, .. } => self.open_range((*lo, *hi, *step), sets, out)?,
                Stmt::Reduce(r) => {
                    r.binders.iter().try_for_each(|b| self.open_range((b.lo, b.hi, b.step), sets, out))?;
                }
                _ => {}
            }
            stmt.blocks().try_for_each(|inner| self.open_ranges(inner, sets, out))?;
        }
        Some(())
    }

    fn open_range(
        &self,
        (lo, hi, step): (ExprId, ExprId, i64),
        sets: &SecondaryMap<LocalId, u32>,
        out: &mut Vec<Open>,
    ) -> Option<()> {
        let is_known = self.folded[lo].is_some() && self.folded[hi].is_some();
        if is_known || out.iter().any(|o| o.step == step && self.is_same(o.lo, lo) && self.is_same(o.hi, hi)) {
            return Some(());
        }
        let fixed = step > 0 && [lo, hi].into_iter().all(|e| self.is_fixed(e, sets));
        let most = fixed.then(|| self.forms.trips((lo, hi, step), &Whole(&self.folded))).flatten()?;
        out.push(Open { lo, hi, step, most });
        ((1..=MOST).contains(&most) && out.len() <= LOOPS).then_some(())
    }

    /// Returns whether an expression cannot fail and has the same value in all iterations.
    fn is_fixed(&self, e: ExprId, sets: &SecondaryMap<LocalId, u32>) -> bool {
        if self.folded[e].is_some() {
            return true;
        }
        let kind = &self.spec.codelet.exprs[e].kind;
        let fixed = match *kind {
            ExprKind::Local(local) => sets[local] == 0,
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => false,
            ExprKind::Binary { site: Some(_), b, .. } => self.folded[b].is_some_and(|n| n != 0),
            _ => true,
        };
        let proven = kind.site().is_none_or(|site| self.spec.proven.contains(site));
        fixed && proven && kind.operands().iter().all(|&x| self.is_fixed(x, sets))
    }

    fn is_same(&self, a: ExprId, b: ExprId) -> bool {
        let kind = |e: ExprId| &self.codelet.exprs[e].kind;
        let same_local = matches!((kind(a), kind(b)), (ExprKind::Local(x), ExprKind::Local(y)) if x == y);
        a == b || same_local || self.folded[a].is_some() && self.folded[a] == self.folded[b]
    }

    /// Returns the trip counts of each version, those of the most iterations first, as many as are worth their code.
    fn counts(&self, body: &[Stmt], open: &[Open]) -> Option<Vec<Vec<i64>>> {
        if open.is_empty() {
            return None;
        }
        let mut all = vec![vec![]];
        for range in open {
            all = all.iter().flat_map(|c| (1..=range.most).map(move |n| [c.as_slice(), &[n]].concat())).collect();
        }
        let mut sized: Vec<(u64, Vec<i64>)> = all
            .into_iter()
            .map(|counts| (self.operations(body, open, &counts), counts))
            .filter(|(size, _)| *size <= self.target.unrolled_operations)
            .collect();
        sized.sort_by(|a, b| b.cmp(a));
        let mut room = OPERATIONS;
        let fits = |(size, _): &(u64, Vec<i64>)| {
            let fits = *size <= room;
            room = room.saturating_sub(*size);
            fits
        };
        let kept: Vec<Vec<i64>> = sized.into_iter().take_while(fits).map(|(_, counts)| counts).collect();
        (!kept.is_empty()).then_some(kept)
    }

    /// Counts the operations of statements whose loops are unrolled.
    fn operations(&self, block: &[Stmt], open: &[Open], counts: &[i64]) -> u64 {
        let code = |e: ExprId| operations_of(self.spec.codelet, e);
        let known = |(lo, hi, step): (ExprId, ExprId, i64)| match (self.folded[lo], self.folded[hi]) {
            (Some(lo), Some(hi)) => trips(lo as i64, hi as i64, step),
            _ => self.place(open, (lo, hi, step)).map_or(u64::MAX, |n| counts[n] as u64),
        };
        let of = |stmt: &Stmt| match stmt {
            Stmt::For { lo, hi, step, body, .. } => {
                known((*lo, *hi, *step)).saturating_mul(self.operations(body, open, counts))
            }
            Stmt::Reduce(r) => {
                let values = r.factors.map_or(code(r.value), |(x, y)| code(x) + code(y));
                let each = values.saturating_add(self.operations(&r.before, open, counts));
                r.binders.iter().fold(each, |n, b| n.saturating_mul(known((b.lo, b.hi, b.step))))
            }
            Stmt::If { cond, then, els } => code(*cond)
                .saturating_add(self.operations(then, open, counts))
                .saturating_add(self.operations(els, open, counts)),
            Stmt::Set { value, .. } | Stmt::Store { value, .. } | Stmt::StoreLocal { value, .. } => code(*value),
            _ => 0,
        };
        block.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Returns the number of an open range.
    fn place(&self, open: &[Open], (lo, hi, step): (ExprId, ExprId, i64)) -> Option<usize> {
        open.iter().position(|o| o.step == step && self.is_same(o.lo, lo) && self.is_same(o.hi, hi))
    }

    /// Emits the first value and the trip count of a range. A count above the greatest one is one more than that.
    fn tested(&mut self, range: &Open, span: Span, out: &mut StmtBlock) -> Tested {
        let (first, count) = (self.local(), self.local());
        out.push(Stmt::Set { local: first, value: range.lo });
        let from = self.read(first, span);
        let mut value = self.binary(BinaryOp::Sub, range.hi, from, span);
        if range.step > 1 {
            let (more, step) = (self.int(range.step - 1, span), self.int(range.step, span));
            value = self.binary(BinaryOp::Add, value, more, span);
            let site = Some(self.site(Check::Division, span));
            value = self.expr(ElemType::I64, ExprKind::Binary { op: BinaryOp::Div, a: value, b: step, site }, span);
        }
        // The difference may wrap, but not to a positive number if there is an iteration.
        let (none, over) = (self.int(0, span), self.int(range.most + 1, span));
        value = self.binary(BinaryOp::Max, value, none, span);
        value = self.binary(BinaryOp::Min, value, over, span);
        let any = ExprKind::Binary { op: BinaryOp::Lt, a: from, b: range.hi, site: None };
        let cond = self.expr(ElemType::Bool, any, span);
        value = self.expr(ElemType::I64, ExprKind::Select { cond, a: value, b: none }, span);
        out.push(Stmt::Set { local: count, value });
        Tested { first, count }
    }

    /// Emits one number for all trip counts.
    fn key(&mut self, open: &[Open], tested: &[Tested], span: Span, out: &mut StmtBlock) -> LocalId {
        let mut key = self.int(0, span);
        for (range, tested) in open.iter().zip(tested) {
            let (base, count) = (self.int(range.most + 2, span), self.read(tested.count, span));
            key = self.binary(BinaryOp::Mul, key, base, span);
            key = self.binary(BinaryOp::Add, key, count, span);
        }
        let local = self.local();
        out.push(Stmt::Set { local, value: key });
        local
    }

    fn is_key(&mut self, key: LocalId, open: &[Open], counts: &[i64], span: Span) -> ExprId {
        let number = open.iter().zip(counts).fold(0, |key, (range, n)| key * (range.most + 2) + n);
        let (key, number) = (self.read(key, span), self.int(number, span));
        self.expr(ElemType::Bool, ExprKind::Binary { op: BinaryOp::Eq, a: key, b: number, site: None }, span)
    }

    /// Returns the loop for known trip counts.
    fn version(
        &mut self,
        stmt: &Stmt,
        (own, open): (&[LocalId], &[Open]),
        (tested, counts): (&[Tested], &[i64]),
        span: Span,
    ) -> Stmt {
        let mut copy = Substitution::new(&mut self.codelet, []);
        own.iter().for_each(|&local| copy.rename(local, span));
        // The copy has the bounds of the original, but indices of its own.
        let mut version = vec![copy.stmt(stmt)];
        self.begin_at_zero(&mut version, (open, tested, counts), span);
        version.pop().expect("a version is one statement")
    }

    /// Lets the open ranges of a copy begin at 0 and end at their trip counts.
    fn begin_at_zero(&mut self, block: &mut StmtBlock, ranges: (&[Open], &[Tested], &[i64]), span: Span) {
        for stmt in block {
            stmt.blocks_mut().for_each(|inner| self.begin_at_zero(inner, ranges, span));
            match stmt {
                Stmt::For { var, lo, hi, step, label, body, .. } => {
                    *label = self.next_label();
                    if let Some((n, index)) = self.moved((*lo, *hi, *step), *var, ranges, span) {
                        [*lo, *hi] = self.counted(ranges.2[n], *step, span);
                        let mut copy = Substitution::new(&mut self.codelet, [(*var, index)]);
                        *body = copy.block(body);
                    }
                }
                Stmt::Reduce(r) => {
                    for at in 0..r.binders.len() {
                        let b = r.binders[at].clone();
                        let Some((n, index)) = self.moved((b.lo, b.hi, b.step), b.var, ranges, span) else { continue };
                        let [lo, hi] = self.counted(ranges.2[n], b.step, span);
                        let mut copy = Substitution::new(&mut self.codelet, [(b.var, index)]);
                        r.before = copy.block(&r.before);
                        r.value = copy.expr(r.value);
                        r.factors = r.factors.map(|(x, y)| (copy.expr(x), copy.expr(y)));
                        r.binders[at] = Binder { lo, hi, ..b };
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the number of the open range of a loop, and its index as the first value plus the new index.
    fn moved(
        &mut self,
        range: (ExprId, ExprId, i64),
        var: LocalId,
        (open, tested, _): (&[Open], &[Tested], &[i64]),
        span: Span,
    ) -> Option<(usize, ExprId)> {
        let n = self.place(open, range)?;
        let (first, ahead) = (self.read(tested[n].first, span), self.read(var, span));
        Some((n, self.binary(BinaryOp::Add, first, ahead, span)))
    }

    /// Returns the bounds of a loop of `count` iterations from 0.
    fn counted(&mut self, count: i64, step: i64, span: Span) -> [ExprId; 2] {
        [0, count * step].map(|n| self.int(n, span))
    }

    fn next_label(&mut self) -> Label {
        self.label += 1;
        Label(self.label - 1)
    }

    fn local(&mut self) -> LocalId {
        self.codelet.locals.push(Local { name: "".into(), ty: ElemType::I64, array: None })
    }

    fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Local(local), span)
    }

    fn int(&mut self, n: i64, span: Span) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Const(Scalar::new(ElemType::I64, n as u64)), span)
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Binary { op, a, b, site: None }, span)
    }

    fn expr(&mut self, ty: ElemType, kind: ExprKind, span: Span) -> ExprId {
        self.codelet.exprs.push(Expr { kind, ty, span })
    }

    /// Adds a check that cannot fail.
    fn site(&mut self, check: Check, span: Span) -> SiteId {
        let site = self.codelet.sites.push(Site { check, span, calls: smallvec![], message: None });
        self.proven.insert(site);
        site
    }
}

/// Returns whether a statement consists of assignments, stores, loops, conditions and reductions of all their elements.
fn is_plain(stmt: &Stmt) -> bool {
    let own = match stmt {
        Stmt::Set { .. } | Stmt::Store { .. } | Stmt::StoreLocal { .. } => true,
        Stmt::For { .. } | Stmt::If { .. } => true,
        Stmt::Reduce(r) => r.filter.is_none(),
        _ => false,
    };
    own && stmt.blocks().flatten().all(is_plain)
}
