//! Reductions: a loop for each binder, and the work for each element.
//!
//! Invariant: only the innermost level of a reduction is counted; its point is passed once per element.

use super::loops::Counted;
use super::{BodyWalk, Effect, WalkResult};
use crate::cost::graph::{Op, Val};
use crate::cost::shape::{self, Changes};
use girder_ir::codelet::{BinaryOp, Binder, Label, Reduce, ReduceOp};
use girder_ir::types::ElemType;

impl BodyWalk<'_> {
    pub(super) fn reduce(&mut self, r: &Reduce) -> WalkResult {
        let mut bounds = vec![];
        for b in &r.binders {
            bounds.push((self.expr(b.lo)?, self.expr(b.hi)?));
        }
        let ty = self.codelet.exprs[r.value].ty;
        let start = match r.op {
            ReduceOp::ArgMin | ReduceOp::ArgMax => self.zero(ElemType::I64),
            op => self.identity(op, ty),
        };
        let dst = r.dst.as_u32() as usize;
        self.now[dst] = Some(start);
        if self.written_out_reduce(r, &bounds)? {
            return Ok(());
        }
        let mut changes = Changes::of(&r.filter_before);
        changes.block(&r.before);
        changes.locals.extend(r.binders.iter().map(|b| b.var));
        changes.locals.insert(r.dst);
        self.binder(r, &bounds, 0, &changes)
    }

    /// Walks a reduction of few elements without a loop; returns whether it is one.
    fn written_out_reduce(&mut self, r: &Reduce, bounds: &[(Val, Val)]) -> WalkResult<bool> {
        let fixed: Option<Vec<(i64, u64)>> =
            r.binders.iter().zip(bounds).map(|(b, &(lo, hi))| self.fixed_trips(lo, hi, b.step)).collect();
        let Some(fixed) = fixed else { return Ok(false) };
        let elements = fixed.iter().fold(1u64, |n, t| n.saturating_mul(t.1));
        let search = matches!(r.op, ReduceOp::ArgMin | ReduceOp::ArgMax);
        if search || r.filter.is_some() || !shape::elements_unrolled(self.codelet, elements, r) {
            return Ok(elements == 0);
        }
        let dst = r.dst.as_u32() as usize;
        for element in 0..elements {
            let mut rest = element;
            for (b, &(first, trips)) in r.binders.iter().zip(&fixed).rev() {
                let i = self.graph.int(first.wrapping_add(((rest % trips) as i64).wrapping_mul(b.step)));
                self.now[b.var.as_u32() as usize] = Some(i);
                rest /= trips;
            }
            self.block(&r.before)?;
            if element == 0 {
                // The first value needs no operation.
                let v = self.expr(r.value)?;
                self.now[dst] = Some(v);
            } else {
                self.take(r)?;
            }
        }
        Ok(true)
    }

    fn binder(&mut self, r: &Reduce, bounds: &[(Val, Val)], at: usize, changes: &Changes) -> WalkResult {
        let Some(&Binder { var, lo, hi, step }) = r.binders.get(at) else { return self.one_element(r) };
        let span = self.codelet.exprs[lo].span.to(self.codelet.exprs[hi].span);
        // Only the innermost level has a point, which is passed once per element.
        let innermost = at + 1 == r.binders.len();
        let block = if r.filter.is_some() { &r.filter_before } else { &r.before };
        let point = innermost.then(|| self.point(block, 0));
        let (lo, hi) = bounds[at];
        let counted = Counted { var, lo, hi, step, is_cut_short: false, point, span };
        let changes_here = Changes { locals: changes.locals.clone(), storages: changes.storages.clone() };
        self.counted_loop(counted, Label(u32::MAX), changes_here, &mut |w| {
            w.binder(r, bounds, at + 1, changes)?;
            Ok(true)
        })
    }

    fn one_element(&mut self, r: &Reduce) -> WalkResult {
        let Some(filter) = r.filter else {
            self.block(&r.before)?;
            return self.take(r);
        };
        self.block(&r.filter_before)?;
        let c = self.expr(filter)?;
        let dst = r.dst.as_u32() as usize;
        let old = self.now[dst];
        if r.before.is_empty() && self.is_cheap_element(r) {
            self.take(r)?;
            if let (Some(new), Some(old)) = (self.now[dst], old) {
                let ty = self.graph.nodes[new].ty;
                self.now[dst] = Some(self.graph.pure(Op::Select, &[c, new, old], ty, self.here));
            }
            return Ok(());
        }
        self.effect(Effect::Branch(c));
        let count = self.counted(self.point(&r.before, 0));
        let changes = Changes::of(&r.before);
        let mut slots = self.slots(&changes);
        slots.push(dst);
        let before = self.snapshot(&slots);
        let after = self.inside(count, None, |w| {
            w.block(&r.before)?;
            w.take(r)?;
            Ok(w.snapshot(&slots))
        })?;
        self.join(&slots, &[before, after]);
        Ok(())
    }

    fn is_cheap_element(&self, r: &Reduce) -> bool {
        let set = vec![girder_ir::codelet::Stmt::Set { local: r.dst, value: r.value }];
        shape::is_choice(self.codelet, &set, &vec![])
    }

    /// Combines the value of an element with the result.
    fn take(&mut self, r: &Reduce) -> WalkResult {
        let dst = r.dst.as_u32() as usize;
        let ty = self.codelet.exprs[r.value].ty;
        let old = match self.now[dst] {
            Some(v) => v,
            None => self.zero(ty),
        };
        let here = self.here;
        let new = match (r.op, r.factors) {
            (ReduceOp::ArgMin | ReduceOp::ArgMax, _) => {
                // The best value is carried beside its position: a comparison and two selections.
                let value = self.expr(r.value)?;
                let better = self.graph.pure(Op::Binary(BinaryOp::Lt), &[value, old], ElemType::Bool, here);
                self.effect(Effect::Use(better));
                self.extra(1);
                let element = self.graph.opaque(Op::Join, &[old], ElemType::I64, here);
                self.graph.pure(Op::Select, &[better, element, old], ElemType::I64, here)
            }
            (_, Some((x, y))) => {
                let (x, y) = (self.expr(x)?, self.expr(y)?);
                self.graph.pure(Op::Fma, &[x, y, old], ty, here)
            }
            (op, None) => {
                let value = self.expr(r.value)?;
                self.graph.pure(Op::Binary(op.operator()), &[old, value], ty, here)
            }
        };
        self.now[dst] = Some(new);
        Ok(())
    }
}
