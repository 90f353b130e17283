//! Loops.
//!
//! Invariant: the count of a loop's region is exactly the number of times that its body begins.

use super::{BodyWalk, Effect, JumpTarget, Loop, Open, WalkResult};
use crate::cost::graph::{Count, Op, RegionId, Val};
use crate::cost::points::Point;
use crate::cost::quantity::{Quantity, Ramp};
use crate::cost::shape::{self, Changes, Exits};
use girder_ir::codelet::{BinaryOp, Label, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;
use girder_source::Span;

/// A counted loop before it is walked.
pub(super) struct Counted {
    pub var: LocalId,
    pub lo: Val,
    pub hi: Val,
    pub step: i64,
    /// Whether the loop may end before its last iteration.
    pub is_cut_short: bool,
    /// The point that counts iterations if their number is not known.
    pub point: Option<Point>,
    pub span: Span,
}

impl BodyWalk<'_> {
    pub(super) fn for_loop(
        &mut self,
        var: LocalId,
        (lo, hi, step): (ExprId, ExprId, i64),
        label: Label,
        body: &StmtBlock,
    ) -> WalkResult<bool> {
        let span = self.codelet.exprs[lo].span.to(self.codelet.exprs[hi].span);
        let (lo, hi) = (self.expr(lo)?, self.expr(hi)?);
        if let Some((first, trips)) = self.fixed_trips(lo, hi, step) {
            if trips == 0 {
                return Ok(true);
            }
            if shape::unrolled(self.codelet, trips, body) {
                for iteration in 0..trips as i64 {
                    let i = self.graph.int(first.wrapping_add(iteration.wrapping_mul(step)));
                    self.now[var.as_u32() as usize] = Some(i);
                    self.block(body)?;
                }
                return Ok(true);
            }
        }
        let is_cut_short = Exits::of_block(body).cut_short(label);
        let counted = Counted { var, lo, hi, step, is_cut_short, point: Some(self.point(body, 0)), span };
        let changes = Changes::of(body);
        self.counted_loop(counted, label, changes, &mut |w| w.block(body))?;
        Ok(true)
    }

    /// Returns first index and trip count, if both are known.
    pub(super) fn fixed_trips(&self, lo: Val, hi: Val, step: i64) -> Option<(i64, u64)> {
        let (lo, hi) = (self.graph.const_of(lo)?.bits as i64, self.graph.const_of(hi)?.bits as i64);
        Some((lo, crate::interpret::trips(lo, hi, step)))
    }

    pub(super) fn counted_loop(
        &mut self,
        counted: Counted,
        label: Label,
        mut changes: Changes,
        body: &mut dyn FnMut(&mut Self) -> WalkResult<bool>,
    ) -> WalkResult {
        changes.locals.remove(&counted.var);
        let number = self.loops.len() as u32;
        let (count, own, trip_count) = self.count(&counted);
        if count.counted == counted.point {
            self.bound(&counted);
        }
        let setup = self.before_loop(&counted);
        let around = self.here;
        self.inner_loop_of(around);
        let region = self.graph.region(around, Some(number), count, own);
        let plain = |q: &Quantity| !q.any(&mut |p| matches!(p, Quantity::Index(_)));
        let first = self.graph.nodes[counted.lo].quantity.clone().filter(plain);
        let bounds = self.bounds_of(&counted);
        let Counted { step, span, is_cut_short, lo: start, hi: end, .. } = counted;
        let (has_inner, strided) = (false, None);
        self.loops.push(Loop {
            region,
            around,
            first,
            bounds,
            start,
            setup,
            step,
            trip_count,
            span,
            has_inner,
            is_cut_short,
            end,
            strided,
        });
        let index = self.graph.opaque(Op::Index(number), &[], ElemType::I64, region);
        self.walk_body(region, label, &changes, &mut |w| {
            w.now[counted.var.as_u32() as usize] = Some(index);
            body(w)
        })
    }

    /// Returns whether a condition is `lo <= i && i < hi` of the `i` of a loop written `for i in lo..hi by step`, where
    /// the step is not known before the codelet runs. The condition then holds in every iteration and exists only for
    /// the proofs (see `loops` of `girder_typing`). Marks the loop as one that advances `i`.
    pub(super) fn is_own_range(&mut self, cond: Val) -> bool {
        let operands = |w: &Self, v: Val, op: BinaryOp| match w.graph.nodes[v].op {
            Op::Binary(o) if o == op => Some((w.graph.nodes[v].args[0], w.graph.nodes[v].args[1])),
            _ => None,
        };
        let bounds = operands(self, cond, BinaryOp::And).and_then(|(above, below)| {
            let (i, lo) = operands(self, above, BinaryOp::Ge)?;
            let (same, hi) = operands(self, below, BinaryOp::Lt)?;
            (i == same).then_some((i, lo, hi))
        });
        let Some((i, lo, hi)) = bounds else { return false };
        let Some(number) = self.graph.regions[self.here].iteration_of.filter(|&n| (n as usize) < self.loops.len())
        else {
            return false;
        };
        let end = self.loops[number as usize].end;
        let Some(step) = self.graph.step_of(i, lo, number) else { return false };
        if self.trip_count_of(lo, hi, step) != end {
            return false;
        }
        self.loops[number as usize].strided = Some(i);
        true
    }

    /// Adds `lo < hi ? (hi - lo - 1) / step + 1 : 0`.
    fn trip_count_of(&mut self, lo: Val, hi: Val, step: Val) -> Val {
        let at = self.here;
        let (zero, one) = (self.graph.int(0), self.graph.int(1));
        let mut pure = |op, args: &[Val], ty| self.graph.pure(op, args, ty, at);
        let some = pure(Op::Binary(BinaryOp::Lt), &[lo, hi], ElemType::Bool);
        let length = pure(Op::Binary(BinaryOp::Sub), &[hi, lo], ElemType::I64);
        let reach = pure(Op::Binary(BinaryOp::Sub), &[length, one], ElemType::I64);
        let whole = pure(Op::Binary(BinaryOp::Div), &[reach, step], ElemType::I64);
        let trip_count = pure(Op::Binary(BinaryOp::Add), &[whole, one], ElemType::I64);
        pure(Op::Select, &[some, trip_count, zero], ElemType::I64)
    }

    /// Walks the body of any loop with the values that it carries; afterwards control is after the loop.
    fn walk_body(
        &mut self,
        region: RegionId,
        label: Label,
        changes: &Changes,
        body: &mut dyn FnMut(&mut Self) -> WalkResult<bool>,
    ) -> WalkResult {
        let around = std::mem::replace(&mut self.here, region);
        let slots = self.slots(changes);
        let mut carried = vec![];
        for &slot in &slots {
            let first: Vec<Val> = self.now[slot].into_iter().collect();
            let phi = self.graph.opaque(Op::Phi, &first, self.slot_type(slot), region);
            self.now[slot] = Some(phi);
            carried.push(phi);
        }
        self.barrier(&changes.storages);
        self.targets.push(JumpTarget { label, slots: slots.clone(), broken: vec![], continued: vec![] });
        let falls = body(self)?;
        let target = self.targets.pop();
        let (broken, mut ends) = target.map_or((vec![], vec![]), |t| (t.broken, t.continued));
        if falls {
            ends.push(self.snapshot(&slots));
        }
        for (i, &phi) in carried.iter().enumerate() {
            let again = ends.iter().filter_map(|e| e[i]);
            self.graph.nodes[phi].args.extend(again);
        }
        self.here = around;
        self.barrier(&changes.storages);
        let mut paths = vec![carried.iter().map(|&p| Some(p)).collect::<Vec<_>>()];
        paths.extend(broken);
        for (i, &slot) in slots.iter().enumerate() {
            let values: Vec<Val> = paths.iter().filter_map(|w| w[i]).collect();
            self.now[slot] = Some(self.graph.opaque(Op::Join, &values, self.slot_type(slot), around));
        }
        Ok(())
    }

    /// Returns the instructions before a loop: computing its trip count, and skipping the loop if it is zero.
    fn before_loop(&mut self, counted: &Counted) -> u64 {
        let is_fixed = self.fixed_trips(counted.lo, counted.hi, counted.step).is_some();
        if is_fixed {
            return 1;
        }
        self.effect(Effect::Use(counted.hi));
        let from_zero = self.graph.const_of(counted.lo).is_some_and(|c| c.bits == 0);
        if !from_zero {
            self.effect(Effect::Use(counted.lo));
        }
        if from_zero { 2 } else { 3 }
    }

    /// Marks the loops around a region as loops that contain another one.
    pub(super) fn inner_loop_of(&mut self, region: RegionId) {
        let mut at = Some(region);
        while let Some(r) = at {
            if let Some(n) = self.graph.regions[r].iteration_of {
                match self.loops.get_mut(n as usize) {
                    Some(outer) => outer.has_inner = true,
                    None => self.open[(u32::MAX - n) as usize].has_inner = true,
                }
            }
            at = self.graph.regions[r].parent;
        }
    }

    fn bounds_of(&self, counted: &Counted) -> Option<(Quantity, Quantity)> {
        self.graph.nodes[counted.lo].quantity.clone().zip(self.graph.nodes[counted.hi].quantity.clone())
    }

    /// Returns an upper bound of a quantity for all values of the loop indices that it mentions.
    pub(super) fn upper(&self, q: &Quantity) -> Option<Quantity> {
        q.upper(&|n| {
            let l = self.loops.get(n as usize)?;
            let (lo, hi) = l.bounds.clone()?;
            Some(if l.step > 0 { (lo, hi.add(Quantity::Number(-1))) } else { (hi.add(Quantity::Number(1)), lo) })
        })
    }

    /// Bounds the number of times that the body of a counted loop begins.
    fn bound(&mut self, counted: &Counted) {
        let Some((point, (lo, hi))) = counted.point.zip(self.bounds_of(counted)) else { return };
        let around = &self.graph.regions[self.here].count;
        let runs = match around.counted {
            Some(p) => self.bounds.get(&p).cloned().map(|n| n.mul(around.factor.clone())),
            None => Some(around.factor.clone()),
        };
        let trips = self.upper(&Quantity::trips(lo, hi, counted.step));
        if let Some(total) = runs.zip(trips).and_then(|(n, trips)| n.mul(trips).fits()) {
            self.bounds.insert(point, total);
        }
    }

    /// Returns how often a loop's body begins, the ratio of that to its surroundings, and the trip count of one run.
    fn count(&self, counted: &Counted) -> (Count, Option<Quantity>, Option<Quantity>) {
        // An outer level of a reduction has no point: its few instructions are left out if its trip count is not known.
        let by_point = |point: Option<Point>| {
            let factor = Quantity::Number(point.is_some().into());
            (Count { counted: point, factor }, None, None)
        };
        let bounds = self.bounds_of(counted);
        let may_be_closed = (self.closed || counted.point.is_none()) && !counted.is_cut_short;
        let around = &self.graph.regions[self.here].count;
        let may_be_closed = may_be_closed && around.factor != Quantity::Number(0);
        let Some((lo, hi)) = bounds.filter(|_| may_be_closed) else { return by_point(counted.point) };
        let trip_count = Quantity::trips(lo.clone(), hi.clone(), counted.step);
        let mut outer = None;
        let mixed = trip_count.any(&mut |q| match *q {
            Quantity::Index(i) => outer.replace(i).is_some_and(|o| o != i),
            _ => false,
        });
        let of = |count: &Count, q: Quantity| {
            let factor = count.factor.clone().mul(q).fits()?;
            Some(Count { counted: count.counted, factor })
        };
        let Some(outer) = outer else {
            return match of(around, trip_count.clone()) {
                Some(count) => (count, Some(trip_count.clone()), Some(trip_count)),
                None => by_point(counted.point),
            };
        };
        let ramp = || {
            let (from, to) = if counted.step > 0 { (lo, hi) } else { (hi, lo) };
            let (count, between, ramp) = self.ramp(outer, to.add_scaled(from, -1), counted.step)?;
            let count = of(&count, between.clone())?;
            Some((of(&count, Quantity::Ramp(Box::new(ramp.clone())))?, ramp))
        };
        match if mixed { None } else { ramp() } {
            Some((count, ramp)) => (count, None, Some(Quantity::Ramp(Box::new(ramp)))),
            None => by_point(counted.point),
        }
    }

    /// Sums the trip counts of a loop whose `span` moves with the index of an outer loop. Returns how often the outer
    /// loop begins, how often the code between repeats, and the sum.
    fn ramp(&self, outer: u32, span: Quantity, step: i64) -> Option<(Count, Quantity, Ramp)> {
        let outer_loop = self.loops.get(outer as usize)?;
        let (base, slope) = span.linear(outer)?;
        let mut between = Quantity::Number(1);
        let mut at = self.here;
        while at != outer_loop.region {
            between = between.mul(self.graph.regions[at].own.clone()?);
            at = self.graph.regions[at].parent?;
        }
        let trip_count = self.graph.regions[outer_loop.region].own.clone()?;
        let base = base.add_scaled(outer_loop.first.clone()?, slope).fits()?;
        let slope = slope.checked_mul(outer_loop.step)?;
        let count = self.graph.regions[outer_loop.around].count.clone();
        let step = i64::try_from(step.unsigned_abs()).ok()?;
        Some((count, between, Ramp { base, slope, step, trip_count }))
    }

    pub(super) fn while_loop(
        &mut self,
        before: &StmtBlock,
        cond: ExprId,
        label: Label,
        body: &StmtBlock,
    ) -> WalkResult<bool> {
        let around = self.here;
        self.inner_loop_of(around);
        let number = u32::MAX - self.open.len() as u32;
        self.open.push(Open { span: self.codelet.exprs[cond].span, has_inner: false });
        let count = self.counted(self.point(before, 0));
        let region = self.graph.region(around, Some(number), count, None);
        let mut changes = Changes::of(before);
        changes.block(body);
        let mut ended = None;
        let slots = self.slots(&changes);
        self.walk_body(region, label, &changes, &mut |w| {
            if !w.block(before)? {
                return Ok(false);
            }
            let c = w.expr(cond)?;
            w.effect(Effect::Branch(c));
            ended = Some(w.snapshot(&slots));
            let count = w.counted(w.point(body, 0));
            w.inside(count, None, |w| w.block(body))
        })?;
        if let Some(values) = ended {
            for (&slot, v) in slots.iter().zip(values) {
                if let (Some(join), Some(v)) = (self.now[slot], v) {
                    self.graph.nodes[join].args.push(v);
                }
            }
        }
        Ok(true)
    }
}
