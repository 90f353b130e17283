//! Loops and reductions.
//!
//! Invariant: at the head of a loop nothing is known about the variables that its body assigns, so one visit stands for
//! all iterations.

use super::relations::{Bounds, Relations};
use super::{FactsWalk, assigned};
use crate::facts::affine::{Affine, Symbol};
use crate::facts::interval::Interval;
use crate::facts::region;
use crate::facts::value::{State, Value};
use crate::interpret::{FREE_ITERATIONS, FREE_NEST, trips};
use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, Label, Reduce, ReduceOp, StmtBlock};
use girder_ir::ids::{ExprId, LocalId, SiteId};

/// The maximal weight of an iteration: more than any run can iterate.
const MOST: u64 = 1 << 40;

/// The knowledge about `var in lo..hi by step`.
pub(super) struct Range {
    var: LocalId,
    /// All values of the index; `None` if there is no iteration.
    values: Option<Interval>,
    /// Whether there certainly is an iteration.
    certain: bool,
    /// The first index, if it is affine, and the trip count, if it is one number.
    exact: Option<(Affine, i64)>,
    /// An upper bound of the trip count.
    at_most: u64,
    step: i64,
    /// Whether the workers of a tile share these iterations; each of them has a part, or none.
    shared: bool,
    /// Bounds of the index that depend on other values.
    least: Relations,
    most: Relations,
}

/// What single iterations of a `while` have shown.
enum WhileWalk {
    /// The loop has ended: the state after it.
    Ended(Option<State>),
    /// Further iterations are not known: the state before them, and that of paths that have left the loop.
    Unknown(State, Option<State>),
}

/// Returns the number of statements of a block, inner ones included.
fn statements(block: &StmtBlock) -> u64 {
    block.iter().map(|stmt| 1 + stmt.blocks().map(statements).sum::<u64>()).sum()
}

/// Returns whether a quotient and its dividend are written in place, not held by locals.
fn product_is_direct(codelet: &Codelet, e: ExprId) -> bool {
    match codelet.exprs[e].kind {
        ExprKind::Binary { a, .. } => matches!(codelet.exprs[a].kind, ExprKind::Binary { .. }),
        _ => false,
    }
}

impl FactsWalk<'_> {
    /// Returns what is known of the values of a loop's index.
    pub(super) fn range(&mut self, var: LocalId, lo: ExprId, hi: ExprId, step: i64, state: &State) -> Range {
        let share = if self.worker.is_none() && step == 1 { self.share(lo, hi, state) } else { None };
        if let Some(n) = share {
            let values = (n > 0).then(|| Interval::new(0, i128::from(n) - 1));
            let exact = Some((Affine::constant(0), n));
            let (least, most) = (Relations::new(), Relations::new());
            let at_most = n.unsigned_abs();
            return Range { var, values, certain: n > 0, exact, at_most, step, shared: true, least, most };
        }
        let (start, end) = (lo, hi);
        let (lo, hi) = (self.eval(lo, state), self.eval(hi, state));
        let count = match (&lo.affine, &hi.affine) {
            (Some(l), Some(h)) => h.difference(l).map(|span| trips(0, span, step)),
            _ => None,
        };
        let clamp = |v: i128| v.clamp(i64::MIN as i128, i64::MAX as i128) as i64;
        let (from, to) = (lo.range, hi.range);
        let (most, least) = if step > 0 {
            (trips(clamp(from.lo), clamp(to.hi), step), trips(clamp(from.hi), clamp(to.lo), step))
        } else {
            (trips(clamp(from.hi), clamp(to.lo), step), trips(clamp(from.lo), clamp(to.hi), step))
        };
        let (most, least) = (count.unwrap_or(most), count.unwrap_or(least));
        let travel = step as i128 * (most as i128 - 1);
        let values = if step > 0 {
            Interval { lo: from.lo, hi: (to.hi - 1).min(from.hi + travel) }
        } else {
            Interval { lo: (to.lo + 1).max(from.lo + travel), hi: from.hi }
        };
        let exact = lo.affine.zip(count.and_then(|n| i64::try_from(n).ok()));
        let values = (most > 0 && values.lo <= values.hi).then_some(values);
        let (at_most, certain) = (most, least > 0);
        let is_known = from.is_point().is_some() && to.is_point().is_some();
        let (least, most) = match step > 0 && !is_known {
            true => (self.least(start, state), self.most(end, from.lo, state)),
            false => (Relations::new(), Relations::new()),
        };
        Range { var, values, certain, exact, at_most, step, shared: false, least, most }
    }

    /// Returns n if a range is `worker * n / workers..(worker + 1) * n / workers`: the contiguous shares of `0..n` of
    /// all workers.
    fn share(&mut self, lo: ExprId, hi: ExprId, state: &State) -> Option<i64> {
        let product = |walk: &Self, e: ExprId| match *walk.form(e) {
            ExprKind::Binary { op: BinaryOp::Div, a, b, .. } if walk.is(b, &ExprKind::Workers) => {
                walk.operands(BinaryOp::Mul, a)
            }
            _ => None,
        };
        let (first, last) = (product(self, lo)?, product(self, hi)?);
        let from = |[a, b]: [ExprId; 2]| if self.is(a, &ExprKind::Worker) { (a, b) } else { (b, a) };
        let (worker, n) = from(first);
        let next = |e: ExprId| self.operands(BinaryOp::Add, e).map(from);
        let [a, b] = last;
        let (one, m) = match (next(a), next(b)) {
            (Some((w, one)), _) if self.is(w, &ExprKind::Worker) => (one, b),
            (_, Some((w, one))) if self.is(w, &ExprKind::Worker) => (one, a),
            _ => return None,
        };
        let is_share = self.is(worker, &ExprKind::Worker);
        // A number that a local stands for was computed elsewhere.
        let is_direct = product_is_direct(self.codelet, lo) && product_is_direct(self.codelet, hi);
        let number = |walk: &mut Self, e: ExprId| match *walk.form(e) {
            ExprKind::Const(_) | ExprKind::Size(_) => walk.eval(walk.formed(e), state).range.is_point(),
            _ if is_direct => walk.eval(e, state).range.is_point(),
            _ => None,
        };
        let [one, n, m] = [one, n, m].map(|e| number(self, e));
        i64::try_from(n.filter(|&n| is_share && one == Some(1) && m == Some(n) && n >= 0)?).ok()
    }

    /// Returns the expression whose value an expression has, if that is a local that one statement sets.
    fn formed(&self, mut e: ExprId) -> ExprId {
        while let ExprKind::Local(local) = self.codelet.exprs[e].kind
            && let Some(value) = self.only[local]
        {
            e = value;
        }
        e
    }

    fn form(&self, e: ExprId) -> &ExprKind {
        &self.codelet.exprs[self.formed(e)].kind
    }

    fn is(&self, e: ExprId, kind: &ExprKind) -> bool {
        std::mem::discriminant(self.form(e)) == std::mem::discriminant(kind)
    }

    /// Returns the operands of an expression with this operator.
    fn operands(&self, wanted: BinaryOp, e: ExprId) -> Option<[ExprId; 2]> {
        match *self.form(e) {
            ExprKind::Binary { op, a, b, .. } if op == wanted => Some([a, b]),
            _ => None,
        }
    }

    /// Enters a loop; returns the state that [`nest_ends`](FactsWalk::nest_ends) restores.
    fn nest_begins(&mut self) -> u64 {
        self.depth += 1;
        std::mem::replace(&mut self.nest, 1)
    }

    /// Leaves a loop over all of the ranges, and decides whether its iterations count.
    fn nest_ends(&mut self, around: u64, ranges: &[&Range], site: SiteId) {
        self.depth -= 1;
        let most = ranges.iter().map(|r| r.values.map_or(0, |_| r.at_most)).fold(1, u64::saturating_mul);
        let each = self.nest.min(MOST);
        let nest = most.saturating_mul(each);
        let free = most <= FREE_ITERATIONS && nest <= FREE_NEST;
        self.nest = around.saturating_add(if free { nest } else { 0 });
        if !free && (self.depth > 0 || each > 1) {
            self.weights[site] = each;
        }
        self.check(site, free);
    }

    /// Walks a `for` loop. Returns the state after it, or `None` if no path leads out of it.
    pub(super) fn for_loop(
        &mut self,
        range: Range,
        (label, site): (Label, SiteId),
        body: &StmtBlock,
        state: State,
    ) -> Option<State> {
        let Some(values) = range.values else { return Some(state) };
        if let Some((first, trips)) = self.single(&range, site, body) {
            let indices = (0..trips).map(|t| first + range.step * t);
            return self.one_by_one(range.var, indices, label, body, state);
        }
        let symbol = self.symbol(Bounds { range: values, least: range.least.clone(), most: range.most.clone() });
        let mut head = self.head(&[body], state);
        head.set(range.var, self.unknown(range.var));
        let mut inside = head.clone();
        inside.set(range.var, self.index_value(symbol, values));

        self.breaks.remove(&label);
        self.continues.remove(&label);
        let around = self.nest_begins();
        self.around.push(symbol);
        let end_of_body = self.block(body, inside);
        self.around.pop();
        self.nest_ends(around, &[&range], site);
        let end_of_body = State::join_paths(end_of_body, self.continues.remove(&label));
        let end = match (end_of_body, &range.exact) {
            (None, _) => (!range.certain || range.shared).then_some(head),
            (Some(mut end_of_body), Some((start, count))) if range.certain => {
                end_of_body.written.iter_mut().for_each(|r| r.together |= range.shared);
                let written = region::expand(end_of_body.written, symbol, start, range.step, *count);
                Some(State { written, ..head })
            }
            (Some(mut end_of_body), None) if range.certain => {
                end_of_body.written.retain(|r| !r.mentions(symbol));
                Some(State { written: end_of_body.written, ..head })
            }
            (Some(_), _) => Some(head),
        };
        let left = self.breaks.remove(&label).map(|mut s| {
            s.written.retain(|r| !r.mentions(symbol));
            s
        });
        State::join_paths(end, left)
    }

    /// Returns the first index and the trip count of a loop whose iterations are walked one by one.
    fn single(&mut self, range: &Range, site: SiteId, body: &StmtBlock) -> Option<(i64, i64)> {
        let (first, trips) = range.exact.as_ref().and_then(|(first, n)| Some((first.is_constant()?, *n)))?;
        self.charge(u64::try_from(trips).ok()?, site, body).then_some((first, trips))
    }

    /// Takes `iterations` of a loop from those that may still be walked one by one; returns whether enough were left
    /// and the loop decides what is written. Long iterations count several times.
    fn charge(&mut self, iterations: u64, site: SiteId, body: &StmtBlock) -> bool {
        let (codelet, Some(worker)) = (self.codelet, &mut self.worker) else { return false };
        if worker.single == 0 || !worker.deciding.contains(site) {
            return false;
        }
        let each = 1 + statements(body) / 16 + codelet.locals.len() as u64 / 64;
        let taken = u32::try_from(iterations.saturating_mul(each)).ok();
        let left = taken.and_then(|taken| worker.single.checked_sub(taken));
        left.inspect(|&left| worker.single = left).is_some()
    }

    /// Walks the iterations of a loop one after another.
    fn one_by_one(
        &mut self,
        var: LocalId,
        indices: impl Iterator<Item = i64>,
        label: Label,
        body: &StmtBlock,
        state: State,
    ) -> Option<State> {
        let (mut next, mut left, mut many) = (Some(state), None, 0);
        for index in indices {
            let Some(mut state) = next else { break };
            state.set(var, Value::point(index));
            self.breaks.remove(&label);
            self.continues.remove(&label);
            let end = self.block(body, state);
            next = State::join_paths(end, self.continues.remove(&label));
            left = State::join_paths(left, self.breaks.remove(&label));
            next.as_mut().into_iter().for_each(|state| region::compact(&mut state.written, &mut many));
        }
        let mut end = State::join_paths(next, left)?;
        end.set(var, self.unknown(var));
        Some(end)
    }

    pub(super) fn while_loop(
        &mut self,
        before: &StmtBlock,
        cond: ExprId,
        label: Label,
        body: &StmtBlock,
        site: SiteId,
        state: State,
    ) -> Option<State> {
        let (state, left) = match self.while_by_iterations(before, cond, (label, site), body, state) {
            WhileWalk::Ended(end) => return end,
            WhileWalk::Unknown(state, left) => (state, left),
        };
        let head = self.head(&[before, body], state);
        self.breaks.remove(&label);
        let around = self.nest_begins();
        let end = self.block(before, head).and_then(|tested| {
            let truth = self.eval(cond, &tested).range;
            let end_of_body = truth.contains(1).then(|| tested.clone().assume(self.context(), cond, true)).flatten();
            if let Some(end_of_body) = end_of_body {
                self.check(site, false);
                self.block(body, end_of_body);
            }
            truth.contains(0).then(|| tested.assume(self.context(), cond, false)).flatten()
        });
        self.depth -= 1;
        self.weights[site] = std::mem::replace(&mut self.nest, around).min(MOST);
        self.continues.remove(&label);
        State::join_paths(State::join_paths(end, self.breaks.remove(&label)), left)
    }

    /// Walks the iterations of a `while` one after another, as long as its condition is known and they are few.
    fn while_by_iterations(
        &mut self,
        before: &StmtBlock,
        cond: ExprId,
        (label, site): (Label, SiteId),
        body: &StmtBlock,
        state: State,
    ) -> WhileWalk {
        let (mut next, mut left, mut many) = (state, None, 0);
        while self.charge(1, site, body) {
            let Some(tested) = self.block(before, next.clone()) else { return WhileWalk::Ended(left) };
            let Some(truth) = self.eval(cond, &tested).range.is_point() else { break };
            if truth == 0 {
                return WhileWalk::Ended(State::join_paths(Some(tested), left));
            }
            self.breaks.remove(&label);
            self.continues.remove(&label);
            let end = self.block(body, tested);
            left = State::join_paths(left, self.breaks.remove(&label));
            let Some(mut end) = State::join_paths(end, self.continues.remove(&label)) else {
                return WhileWalk::Ended(left);
            };
            region::compact(&mut end.written, &mut many);
            next = end;
        }
        WhileWalk::Unknown(next, left)
    }

    pub(super) fn reduce(&mut self, reduce: &Reduce, state: State) -> State {
        let ranges: Vec<Range> = reduce.binders.iter().map(|b| self.range(b.var, b.lo, b.hi, b.step, &state)).collect();
        let mut head = self.head(&[&reduce.filter_before, &reduce.before], state);
        let mut inside = Some(head.clone());
        let mut symbols = Vec::new();
        for range in &ranges {
            head.set(range.var, self.unknown(range.var));
            inside = inside.zip(range.values).map(|(mut state, values)| {
                let bounds = Bounds { range: values, least: range.least.clone(), most: range.most.clone() };
                let symbol = self.symbol(bounds);
                symbols.push(symbol);
                state.set(range.var, self.index_value(symbol, values));
                state
            });
        }
        let around = self.nest_begins();
        let outside = self.around.len();
        self.around.extend(symbols);
        let value = inside.and_then(|state| self.element(reduce, state));
        self.around.truncate(outside);
        self.nest_ends(around, &ranges.iter().collect::<Vec<_>>(), reduce.iterations);
        let certain = ranges.iter().all(|r| r.certain && !r.shared) && reduce.filter.is_none();
        if matches!(reduce.op, ReduceOp::ArgMin | ReduceOp::ArgMax) {
            self.check(reduce.site, certain);
        }
        let result = self.reduced(reduce, &ranges, value);
        head.set(reduce.dst, result);
        head
    }

    /// Returns the value of any element that passes the filter; `None` if there is none.
    fn element(&mut self, reduce: &Reduce, mut state: State) -> Option<Value> {
        if let Some(filter) = reduce.filter {
            state = self.block(&reduce.filter_before, state)?;
            let truth = self.eval(filter, &state).range;
            state = truth.contains(1).then(|| state.assume(self.context(), filter, true)).flatten()?;
        }
        let state = self.block(&reduce.before, state)?;
        Some(self.eval(reduce.value, &state))
    }

    fn reduced(&self, reduce: &Reduce, ranges: &[Range], value: Option<Value>) -> Value {
        let unknown = self.unknown(reduce.dst);
        match reduce.op {
            ReduceOp::ArgMin | ReduceOp::ArgMax => {
                let elements = ranges.iter().try_fold(1u64, |n, r| n.checked_mul(r.at_most));
                let last = elements.map_or(i64::MAX as i128, |n| n as i128 - 1);
                Value::of(Interval::new(0, last.clamp(0, i64::MAX as i128)))
            }
            // A fold of one value is that value, or the identity at the end of the type's range.
            ReduceOp::Min if unknown.range != Interval::ANY => {
                let lo = value.map_or(unknown.range.hi, |v| v.range.lo);
                Value::of(Interval::new(lo, unknown.range.hi))
            }
            ReduceOp::Max if unknown.range != Interval::ANY => {
                let hi = value.map_or(unknown.range.lo, |v| v.range.hi);
                Value::of(Interval::new(unknown.range.lo, hi))
            }
            _ => unknown,
        }
    }

    /// Adds a symbol for a number within bounds.
    pub(super) fn symbol(&mut self, bounds: Bounds) -> Symbol {
        self.symbols.push(bounds);
        Symbol(self.symbols.len() as u32 - 1)
    }

    fn index_value(&self, symbol: Symbol, values: Interval) -> Value {
        let mut value = Value::of(values);
        value.affine.get_or_insert(Affine::symbol(symbol));
        value
    }

    /// Returns the state at the head of a loop, before any iteration.
    fn head(&self, bodies: &[&StmtBlock], mut state: State) -> State {
        for body in bodies {
            assigned(body, &mut |local| state.set(local, Value::unknown(self.codelet.locals[local].ty)));
        }
        state
    }
}
