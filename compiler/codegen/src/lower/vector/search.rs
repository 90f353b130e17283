//! Decides whether a body can be translated for several iterations at once.
//!
//! Invariant: `emit` and `run` get only bodies that are accepted here.

use super::Plan;
use super::differ::Differ;
use super::nest::{Loops, Permuted};
use super::steps::{self, Exit, Reduction, Step};
use super::totals;
use crate::lower::Lower;
use crate::target::UNROLLED_NODES;
use cranelift_entity::EntitySet;
use girder_ir::codelet::{Binder, ExprKind, Index, ReduceOp, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_ir::types::ElemType;

/// A body with more operations than this stays scalar: it would take too long to compile.
const GREATEST: u32 = 10_000;

/// The reason why an access cannot be a vector.
const UNEVEN: &str = "an index does not grow evenly from iteration to iteration";

mod accesses;
mod values;

pub(super) use values::takes_reduction;

/// Returns the stride in elements from iteration to iteration, if vector kernels load and store such elements as whole
/// vectors.
pub(super) fn near(ty: ElemType, stride: i64) -> Option<i64> {
    let steps = stride / i64::from(ty.bytes());
    (stride % i64::from(ty.bytes()) == 0 && matches!(steps, -1 | 2..=4)).then_some(steps)
}

/// The state of the decision.
struct Search<'l, 'a, 'b> {
    differ: Differ<'l, 'a, 'b>,
    /// The least and the greatest value of the loop's index, if they are known.
    range: Option<(i128, i128)>,
    width: u32,
    sets: EntitySet<LocalId>,
    accesses: Vec<(Storage, Index)>,
    /// The locals that are already set at the current point of the search.
    assigned: EntitySet<LocalId>,
    early: Vec<ExprId>,
    same: EntitySet<ExprId>,
    loads: Vec<(ExprId, i64)>,
    permuted: Vec<(ExprId, Permuted)>,
    ramps: Vec<(ExprId, i64)>,
    loads_of_stored: bool,
    nested: bool,
    size: u32,
    /// Whether it is for a vector kernel, whose values may have any width.
    mixed: bool,
    strided: u32,
    narrow: EntitySet<ExprId>,
    ramp_uses: u32,
    /// The number of copies of the current step that unrolled inner loops make.
    repeated: u64,
    /// Elements that every iteration loads, at indices that the body does not change.
    sure: Vec<(Storage, Index)>,
    totals: Vec<(LocalId, ReduceOp)>,
}

/// The context of an expression.
#[derive(Clone, Copy)]
struct Context {
    /// Whether some iterations may skip it.
    conditional: bool,
    /// Whether all iterations may skip it, or evaluate it more than once.
    inner: bool,
    /// Whether this branch and the other end with a store to the same element.
    joined: bool,
}

const TOP: Context = Context { conditional: false, inner: false, joined: false };

impl<'a, 'b> Lower<'a, 'b> {
    /// Returns a plan for a body that runs for every value of a loop's index (or for every vertex) and yields `values`.
    pub(in crate::lower) fn plan(
        &self,
        index: Option<(LocalId, ExprId, ExprId)>,
        body: &StmtBlock,
        values: &[ExprId],
    ) -> Option<Plan> {
        self.plan_of(index, (body, None), values, false)
    }

    /// Returns a plan for a vector kernel, whose values may have any width.
    pub(in crate::lower) fn mixed_plan(
        &self,
        index: Option<(LocalId, ExprId, ExprId)>,
        body: &StmtBlock,
        values: &[ExprId],
    ) -> Option<Plan> {
        self.plan_of(index, (body, None), values, true)
    }

    /// Returns a plan for a body that may exit early. With `mixed`, the plan is for a vector kernel.
    pub(super) fn plan_of(
        &self,
        index: Option<(LocalId, ExprId, ExprId)>,
        (body, exit): (&StmtBlock, Option<Exit>),
        values: &[ExprId],
        mixed: bool,
    ) -> Option<Plan> {
        if self.counts_in(body) {
            return self.refuse("its executions are counted");
        }
        let steps = steps::steps(body, exit);
        let mut steps = steps.or_else(|| self.refuse("it has a statement that vectors do not have"))?;
        if mixed && matches!(exit, Some(Exit::Continue(_))) {
            totals::find(self.codelet, &mut steps, body);
        }
        self.plan_of_steps(index, Loops::default(), steps, values, mixed)
    }

    pub(super) fn plan_of_steps(
        &self,
        index: Option<(LocalId, ExprId, ExprId)>,
        Loops { nest, outer }: Loops,
        mut steps: Vec<Step>,
        values: &[ExprId],
        mixed: bool,
    ) -> Option<Plan> {
        let available = if mixed { self.features.simd.is_some() } else { self.features.vectors };
        if !available {
            return None;
        }
        let range = index.and_then(|(_, lo, hi)| self.known(lo).zip(self.known(hi)));
        let var = index.map(|i| i.0);
        let differ = Differ { l: self, var, nest, outer, locals: EntitySet::new(), stored: Vec::new(), mixed };
        let mut search = Search {
            differ,
            range: range.map(|(lo, hi)| (i128::from(lo), i128::from(hi) - 1)),
            width: 0,
            sets: EntitySet::new(),
            accesses: Vec::new(),
            assigned: EntitySet::new(),
            early: Vec::new(),
            same: EntitySet::new(),
            loads: Vec::new(),
            permuted: Vec::new(),
            ramps: Vec::new(),
            loads_of_stored: false,
            nested: false,
            size: 0,
            mixed,
            strided: 0,
            narrow: EntitySet::new(),
            ramp_uses: 0,
            repeated: 1,
            sure: Vec::new(),
            totals: Vec::new(),
        };
        search.collect(&steps);
        search.differ.complete(&steps);
        if !mixed {
            search.width = search.choose_width(&steps, values)?;
        } else if search.nested && self.written_out_size(&steps).is_none_or(|size| size > UNROLLED_NODES) {
            return self.refuse("its inner loops are long");
        }
        search.steps(&mut steps, TOP)?;
        for &value in values {
            search.value(value, TOP)?;
        }
        let disjoint = search.stores_are_disjoint();
        disjoint.or_else(|| self.refuse("iterations may touch elements that others store"))?;
        let Search { differ, width, sets, early, same, loads, permuted, ramps, loads_of_stored, nested, size, .. } =
            search;
        let (strided, narrow, ramp_uses, totals) = (search.strided, search.narrow, search.ramp_uses, search.totals);
        let (var, nest, outer, differing) = (differ.var, differ.nest, differ.outer, differ.locals);
        let idempotent = !loads_of_stored;
        Some(Plan {
            var,
            nest,
            outer,
            steps,
            width,
            sets,
            differing,
            early,
            same,
            loads,
            permuted,
            ramps,
            idempotent,
            nested,
            size,
            strided,
            narrow,
            ramp_uses,
            totals,
        })
    }
}

impl<'l, 'a, 'b> Search<'l, 'a, 'b> {
    fn l(&self) -> &'l Lower<'a, 'b> {
        self.differ.l
    }

    /// Records what the body sets and stores.
    fn collect(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Set { local, .. } => {
                    self.sets.insert(*local);
                }
                Step::Store { storage, index, .. } => {
                    self.differ.stored.push(*storage);
                    self.accesses.push((*storage, index.clone()));
                }
                Step::If { then, els, .. } => {
                    self.collect(then);
                    self.collect(els);
                }
                Step::For { var, body, .. } => {
                    self.sets.insert(*var);
                    self.collect(body);
                    self.nested = true;
                }
                Step::Reduce(r) => {
                    self.sets.insert(r.source.dst);
                    self.sets.extend(r.binders().iter().map(|b| b.var));
                    self.collect(&r.before);
                    self.nested = true;
                }
                Step::Total(_) => {}
            }
        }
    }

    /// Returns the width of the stores, of the locals that differ, or of the values, whichever comes first.
    fn choose_width(&self, steps: &[Step], values: &[ExprId]) -> Option<u32> {
        let mut width = None;
        let mut note = |ty: ElemType| {
            if ty != ElemType::Bool {
                width = width.or(Some(ty.bytes()));
            }
        };
        steps::any(steps, &mut |s| {
            if let Step::Store { storage, .. } = s {
                note(self.l().element_type(*storage));
            }
            false
        });
        for (id, local) in &self.l().codelet.locals {
            if self.differ.locals.contains(id) {
                note(local.ty);
            }
        }
        let width = values.iter().fold(width, |width, &v| width.or_else(|| self.width_of(v)));
        width.filter(|&w| w == 4 || w == 8)
    }

    /// Returns the width of a value. For a truth value, it is that of the operands from which it is computed.
    fn width_of(&self, e: ExprId) -> Option<u32> {
        let expr = &self.l().codelet.exprs[e];
        if expr.ty != ElemType::Bool {
            return Some(expr.ty.bytes());
        }
        expr.kind.operands().iter().find_map(|&x| self.width_of(x))
    }

    fn steps(&mut self, steps: &mut [Step], context: Context) -> Option<()> {
        let last = steps.len().wrapping_sub(1);
        let all = context;
        for (n, step) in steps.iter_mut().enumerate() {
            let joined = all.joined && n == last;
            let context = Context { joined: false, ..all };
            match step {
                Step::Set { local, value } => {
                    self.set_value(*local, *value, context)?;
                    self.assigned.insert(*local);
                }
                Step::Store { storage, index, value, site, stride } => {
                    let ty = self.l().element_type(*storage);
                    // Only vector kernels have masked stores.
                    let every = !context.conditional || self.mixed || joined;
                    let proven = every && self.l().is_proven(*site);
                    if !proven || !self.fits(ty) || ty == ElemType::Bool && !self.mixed {
                        return self.l().refuse("an index of a store may be outside");
                    }
                    let bytes = self.stride(*storage, index, context.conditional);
                    *stride = bytes.or_else(|| self.l().refuse(UNEVEN))?;
                    self.take_stride(ty, *stride, context, true)?;
                    self.moves_evenly((*storage, index), *stride)?;
                    self.value(*value, context)?;
                }
                Step::If { cond, then, els, differs, joins } => {
                    *differs = self.differ.divides(*cond);
                    *joins = *differs && self.join(then, els).is_some();
                    self.value(*cond, context)?;
                    let conditional = context.conditional || *differs;
                    self.branches(then, els, Context { conditional, inner: true, joined: *joins })?;
                }
                Step::For { var, lo, hi, step, body, site } if !context.conditional => {
                    // The iterations of an inner loop that counts would have to be counted for each lane.
                    let trips = self.l().known_trips(*lo, *hi, *step);
                    self.l().is_free(*site, trips).then_some(())?;
                    self.scalar(*lo, context)?;
                    self.scalar(*hi, context)?;
                    self.inner((&[*var], trips), body, &[], context)?;
                }
                Step::Reduce(r) if !context.conditional => self.reduction(r, context)?,
                Step::Total(total) => {
                    total.values().into_iter().try_for_each(|e| self.value(e, context).ok_or(())).ok()?;
                    if self.totals.iter().all(|t| t.0 != total.local) {
                        self.totals.push((total.local, total.op));
                    }
                }
                _ => return self.l().refuse("a loop is under a condition that differs between iterations"),
            }
        }
        Some(())
    }

    /// Returns whether a value of a type can be a vector of this body.
    fn fits(&self, ty: ElemType) -> bool {
        self.mixed || ty == ElemType::Bool || ty.bytes() == self.width
    }

    /// Records the stride of an access and accepts it, if its elements can be moved. If every iteration performs the
    /// access, a vector kernel can move elements at small strides in whole vectors.
    fn take_stride(&mut self, ty: ElemType, stride: i64, context: Context, stored: bool) -> Option<()> {
        let whole = self.mixed && !context.conditional && (!stored || ty.bytes() >= 4);
        if !self.differ.nest.is_empty() && stored && stride != i64::from(ty.bytes()) {
            return self.l().refuse(UNEVEN);
        }
        // What is the same in a row of an outer loop is loaded by one instruction, like contiguous elements.
        let still = self.differ.outer.is_some() && stride == 0 && !stored && !context.conditional && ty.bytes() >= 4;
        if stride == i64::from(ty.bytes()) || still || whole && near(ty, stride).is_some() {
            return Some(());
        }
        self.strided += 1;
        (!self.mixed || ty.bytes() >= 4 && stride.unsigned_abs() < 1 << 24).then_some(())
    }

    fn reduction(&mut self, r: &mut Reduction, context: Context) -> Option<()> {
        let trips = |b: &Binder| self.l().known_trips(b.lo, b.hi, b.step);
        let elements = r.binders().iter().try_fold(1u64, |n, b| Some(n.saturating_mul(trips(b)?)));
        self.l().is_free(r.source.iterations, elements).then_some(())?;
        for b in &r.source.binders {
            self.scalar(b.lo, context)?;
            self.scalar(b.hi, context)?;
        }
        let (op, ty, dst) = (r.source.op, self.l().ty(r.source.value), r.source.dst);
        let vars: Vec<LocalId> = r.binders().iter().map(|b| b.var).collect();
        let values = r.values();
        if !self.differ.locals.contains(dst) {
            // It is the same for all iterations, so it is an ordinary reduction.
            let mut before = self.assigned.clone();
            before.insert(dst);
            self.assigned.extend(vars);
            self.steps(&mut r.before, Context { inner: true, ..context })?;
            for value in values {
                self.scalar(value, context)?;
            }
            self.assigned = before;
            return Some(());
        }
        if !self.fits(ty) || !takes_reduction(op, ty) || (r.source.factors.is_some() && !self.l().features.fma) {
            return None;
        }
        self.inner((&vars, elements), &mut r.before, &values, context)?;
        self.assigned.insert(dst);
        Some(())
    }

    /// Accepts an inner body, which may run any number of times.
    fn inner(
        &mut self,
        (vars, iterations): (&[LocalId], Option<u64>),
        steps: &mut [Step],
        values: &[ExprId],
        context: Context,
    ) -> Option<()> {
        let before = (self.assigned.clone(), self.repeated);
        self.assigned.extend(vars.iter().copied());
        self.repeated = before.1.saturating_mul(iterations.unwrap_or(u64::MAX));
        self.steps(steps, Context { inner: true, ..context })?;
        for &value in values {
            self.value(value, Context { inner: true, ..context })?;
        }
        (self.assigned, self.repeated) = before;
        Some(())
    }

    /// Accepts both branches of a condition. After it, only those locals are set that both branches set.
    fn branches(&mut self, then: &mut [Step], els: &mut [Step], context: Context) -> Option<()> {
        let before = self.assigned.clone();
        self.steps(then, context)?;
        let after_then = std::mem::replace(&mut self.assigned, before);
        self.steps(els, context)?;
        let missing: Vec<LocalId> =
            self.sets.keys().filter(|&l| self.assigned.contains(l) && !after_then.contains(l)).collect();
        for local in missing {
            self.assigned.remove(local);
        }
        Some(())
    }

    /// Accepts the value of a local: a vector, or a value that is the same for all iterations.
    fn set_value(&mut self, local: LocalId, value: ExprId, context: Context) -> Option<()> {
        if self.differ.locals.contains(local) { self.value(value, context) } else { self.scalar(value, context) }
    }

    /// Accepts an expression that is the same for all iterations and may have any type.
    fn scalar(&mut self, e: ExprId, context: Context) -> Option<()> {
        self.size += 1;
        (!self.differ.differs(e) && self.is_safe(e, context.conditional)).then_some(())
    }

    /// Returns whether the evaluation of an expression at this point fails no check and reads only locals that are set.
    /// An expression that some iterations may skip must have no check at all.
    fn is_safe(&self, e: ExprId, conditional: bool) -> bool {
        if self.l().folded[e].is_some() {
            return true;
        }
        let expr = &self.l().codelet.exprs[e];
        let proven = |site: SiteId| !conditional && self.l().is_proven(site);
        let safe = match expr.kind {
            ExprKind::Load { site, .. } | ExprKind::LoadLocal { site, .. } => {
                proven(site) || self.l().is_at_fixed_place(e)
            }
            ExprKind::Binary { site: Some(site), .. } => proven(site),
            ExprKind::Local(l) => self.is_set(l),
            _ => true,
        };
        // The second operand of `&&` and `||` is evaluated only where scalar code evaluates it.
        safe && expr.kind.operands().iter().all(|&x| self.is_safe(x, conditional))
    }

    /// Returns whether a local has its value of this iteration: the body does not set it, or has already set it.
    fn is_set(&self, l: LocalId) -> bool {
        !self.sets.contains(l) || self.assigned.contains(l)
    }

    /// Returns whether an expression can be evaluated before the loop.
    fn is_early(&self, e: ExprId, context: Context) -> bool {
        if context.inner && !self.is_total(e) {
            return false;
        }
        let expr = &self.l().codelet.exprs[e];
        let early = match expr.kind {
            ExprKind::Local(l) => !self.sets.contains(l),
            _ => true,
        };
        early && expr.kind.operands().iter().all(|&x| self.is_early(x, context))
    }

    /// Returns whether an expression can be evaluated anywhere without a failure.
    fn is_total(&self, e: ExprId) -> bool {
        let expr = &self.l().codelet.exprs[e];
        let total = match expr.kind {
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => self.l().is_at_fixed_place(e),
            ExprKind::Binary { site, .. } => site.is_none() || self.l().folded[e].is_some(),
            _ => true,
        };
        total && expr.kind.operands().iter().all(|&x| self.is_total(x))
    }
}
