//! The limits on the iterations of loops. See the note on iterations in `girder_codelet::interpret`.
//!
//! A counted loop is checked against them once, before its first iteration. If facts or constants show that it counts
//! nothing, no code is emitted.
//!
//! Invariant: `spent` has the number that the interpreter has at the same point.

use super::Lower;
use super::loops::Range;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Variable;
use girder_codelet::interpret::{FREE_ITERATIONS, look_after, loop_limits};
use girder_ir::ids::SiteId;

/// The iteration count of a `while` loop.
pub(super) struct IterationCount {
    /// The iterations so far.
    now: Variable,
    /// The count at which the limits are checked next.
    stop: Variable,
    /// The weight of each iteration.
    weight: u64,
    /// The value of `spent` before the first iteration, if nothing else counts until the loop ends. The iterations are
    /// then added when the loop ends, and not one by one.
    before: Option<Value>,
}

impl Lower<'_, '_> {
    /// Resets `spent` at the start of a vertex, or of a worker's run of it.
    pub(super) fn nothing_spent(&mut self) {
        let (spent, zero) = (self.spent, self.i64(0));
        self.b.def_var(spent, zero);
    }

    /// Returns whether a loop is known to count nothing. For a reduction, `trips` is the number of its elements.
    pub(super) fn is_free(&self, site: SiteId, trips: Option<u64>) -> bool {
        self.spec.weights[site] == 0 && (self.is_proven(site) || trips.is_some_and(|n| n <= FREE_ITERATIONS))
    }

    /// Charges a `for` loop before its first iteration.
    pub(super) fn charge_loop(&mut self, range: &Range, site: SiteId) {
        let step = range.step.unsigned_abs();
        // If the product overflows, no range is that wide.
        let Some(reach) = FREE_ITERATIONS.checked_mul(step).filter(|_| !self.is_free(site, range.trips)) else {
            return;
        };
        if let Some(trips) = range.trips {
            return self.charge_known(trips, site);
        }
        let (any, span) = self.span(range);
        if self.spec.weights[site] > 0 {
            let (trips, none) = (self.trips_of(span, step), self.i64(0));
            let trips = self.b.ins().select(any, trips, none);
            return self.charge_always(trips, site);
        }
        let reach = self.i64(reach as i64);
        let wide = self.b.ins().icmp(IntCC::UnsignedGreaterThan, span, reach);
        let long = self.b.ins().band(any, wide);
        self.if_rare(long, |l| {
            let trips = l.trips_of(span, step);
            l.charge(trips, site);
        });
    }

    /// Charges a reduction before its first element.
    pub(super) fn charge_elements<'r>(&mut self, ranges: impl Iterator<Item = &'r Range> + Clone, site: SiteId) {
        let known = ranges.clone().try_fold(1u64, |n, r| Some(n.saturating_mul(r.trips?)));
        if self.is_free(site, known) {
            return;
        }
        if let Some(elements) = known {
            return self.charge_known(elements, site);
        }
        let mut elements = self.i64(1);
        for range in ranges {
            let (any, span) = self.span(range);
            let (trips, none) = (self.trips_of(span, range.step.unsigned_abs()), self.i64(0));
            let trips = self.b.ins().select(any, trips, none);
            let over = self.b.ins().umulhi(elements, trips);
            let product = self.b.ins().imul(elements, trips);
            let greatest = self.i64(-1);
            elements = self.b.ins().select(over, greatest, product);
        }
        if self.spec.weights[site] > 0 {
            return self.charge_always(elements, site);
        }
        let free = self.i64(FREE_ITERATIONS as i64);
        let long = self.b.ins().icmp(IntCC::UnsignedGreaterThan, elements, free);
        self.if_rare(long, |l| l.charge(elements, site));
    }

    /// Returns whether a range has an iteration, and the distance between its bounds.
    fn span(&mut self, range: &Range) -> (Value, Value) {
        let (from, to) = if range.step > 0 { (range.lo, range.hi) } else { (range.hi, range.lo) };
        let any = self.b.ins().icmp(IntCC::SignedLessThan, from, to);
        (any, self.b.ins().isub(to, from))
    }

    /// Returns the trip count over a span that is not 0.
    fn trips_of(&mut self, span: Value, step: u64) -> Value {
        if step == 1 {
            return span;
        }
        let (last, step) = (self.b.ins().iadd_imm_s(span, -1), self.i64(step as i64));
        let before = self.b.ins().udiv(last, step);
        self.b.ins().iadd_imm_s(before, 1)
    }

    fn if_rare(&mut self, cond: Value, body: impl FnOnce(&mut Self)) {
        let (rare, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(rare);
        self.b.ins().brif(cond, rare, &[], next, &[]);
        self.enter(rare);
        body(self);
        self.b.ins().jump(next, &[]);
        self.enter(next);
    }

    /// Charges a known number of iterations.
    fn charge_known(&mut self, trips: u64, site: SiteId) {
        let value = self.i64(trips as i64);
        if trips > FREE_ITERATIONS {
            self.limit(value, site);
        }
        let all = self.i64(trips.saturating_mul(self.spec.weights[site].max(1)) as i64);
        self.spend(all, site);
    }

    /// Charges any number of iterations, which count even if they are few.
    fn charge_always(&mut self, trips: Value, site: SiteId) {
        let free = self.i64(FREE_ITERATIONS as i64);
        let long = self.b.ins().icmp(IntCC::UnsignedGreaterThan, trips, free);
        self.if_rare(long, |l| l.limit(trips, site));
        let mut all = trips;
        if let weight @ 2.. = self.spec.weights[site] {
            let (weight, greatest) = (self.i64(weight as i64), self.i64(-1));
            let over = self.b.ins().umulhi(trips, weight);
            let product = self.b.ins().imul(trips, weight);
            all = self.b.ins().select(over, greatest, product);
        }
        self.spend(all, site);
    }

    /// Charges more iterations than are free. Each counts once.
    fn charge(&mut self, trips: Value, site: SiteId) {
        self.limit(trips, site);
        self.spend(trips, site);
    }

    fn limit(&mut self, trips: Value, site: SiteId) {
        let limit = self.iteration_limit();
        let over = self.b.ins().icmp(IntCC::UnsignedGreaterThan, trips, limit);
        self.guard(over, site, |l| l.shown(limit, loop_limits::COUNTED));
    }

    fn spend(&mut self, trips: Value, site: SiteId) {
        let (spent, limit) = (self.b.use_var(self.spent), self.total_limit());
        let now = self.b.ins().iadd(spent, trips);
        let wraps = self.b.ins().icmp(IntCC::UnsignedLessThan, now, trips);
        let many = self.b.ins().icmp(IntCC::UnsignedGreaterThan, now, limit);
        let over = self.b.ins().bor(wraps, many);
        self.guard(over, site, |l| l.shown(limit, loop_limits::TOTAL));
        self.b.def_var(self.spent, now);
    }

    fn shown(&mut self, limit: Value, which: i64) -> [Value; 2] {
        let greatest = self.i64(i64::MAX);
        [self.b.ins().umin(limit, greatest), self.i64(which)]
    }

    /// Begins the count of a `while`, which checks the limits before its first iteration. `alone` means that nothing in
    /// the loop counts, and that control leaves it only through its exit.
    pub(super) fn begin_iterations(&mut self, site: SiteId, alone: bool) -> IterationCount {
        let weight = self.spec.weights[site].max(1);
        let before = alone.then(|| self.b.use_var(self.spent));
        let (now, stop) = (self.b.declare_var(I64), self.b.declare_var(I64));
        let zero = self.i64(0);
        self.b.def_var(now, zero);
        self.b.def_var(stop, zero);
        IterationCount { now, stop, weight, before }
    }

    /// Counts an iteration of a `while` before it runs.
    pub(super) fn count_iteration(&mut self, iterations: &IterationCount, site: SiteId) {
        let (now, stop) = (self.b.use_var(iterations.now), self.b.use_var(iterations.stop));
        let look = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, now, stop);
        self.if_rare(look, |l| {
            let limit = l.iteration_limit();
            let over = l.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, now, limit);
            l.guard(over, site, |l| l.shown(limit, loop_limits::WHILE));
            l.add_iterations(iterations);
            let nothing = l.i64(0);
            l.spend(nothing, site);
            let later = l.b.ins().iadd_imm_s(now, look_after(iterations.weight) as i64);
            let stop = l.b.ins().umin(limit, later);
            l.b.def_var(iterations.stop, stop);
        });
        let next = self.b.ins().iadd_imm_s(now, 1);
        self.b.def_var(iterations.now, next);
        if iterations.before.is_none() {
            let spent = self.b.use_var(self.spent);
            let spent = self.b.ins().iadd_imm_s(spent, iterations.weight as i64);
            self.b.def_var(self.spent, spent);
        }
    }

    /// Adds the iterations of a loop to `spent`, if that was deferred to its end.
    pub(super) fn add_iterations(&mut self, iterations: &IterationCount) {
        if let Some(before) = iterations.before {
            let now = self.b.use_var(iterations.now);
            let counted = self.b.ins().imul_imm_s(now, iterations.weight as i64);
            let spent = self.b.ins().iadd(before, counted);
            self.b.def_var(self.spent, spent);
        }
    }
}
