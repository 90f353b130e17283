//! Totals in a strip: sixteen lanes each, which begin with what changes nothing and stand in the record.
//!
//! A reduction that leaves places out is a loop with one total.
//!
//! Invariant: a place that is left out changes no lane.

use super::Wide;
use super::body::masks;
use super::reduce::lane_vectors;
use crate::lower::Lower;
use crate::lower::reduce::{Bound, LANES};
use crate::lower::vector::Plan;
use crate::lower::vector::search::takes_reduction;
use crate::lower::vector::steps::{self, Step, Total};
use crate::wide::{self, Apart, Effect, Reg, Value as Lanes, Width, is_long};
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value};
use girder_codelet::interpret::identity;
use girder_codelet::scalar::is_ordered;
use girder_ir::codelet::{BinaryOp, Reduce, ReduceOp};
use girder_ir::ids::LocalId;
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// Vectors that the totals of a strip may take.
const MOST: usize = 4;
/// The same where each is two vectors, and there are half as many registers, with what says whether there was any.
const MOST_OF_HALVES: usize = 3;
/// A reduction over fewer places does not pay for a call and for lanes in memory.
const FEWEST: u64 = 64;

/// A total's lanes in the record.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    local: LocalId,
    op: ReduceOp,
    ty: ElemType,
    at: u32,
    /// Where it says of each lane whether something came to it: an empty float sum is +0, but its lanes hold -0.
    any: Option<u32>,
}

/// A total while the strip is made.
pub(super) struct Lane {
    kept: Kept,
    regs: SmallVec<[(usize, Reg); 2]>,
    any: Option<(usize, Reg)>,
    /// What is taken in, if it is so once and in any order.
    apart: Option<SmallVec<[(usize, Apart); 2]>>,
    taken: bool,
}

impl Kept {
    fn size(self) -> u32 {
        64 * (1 + u32::from(is_long(self.ty)))
    }

    /// Vectors of 512 bits that it may take.
    pub(super) fn vectors(self, width: Width) -> usize {
        lane_vectors(self.op, self.ty, width) + usize::from(self.any.is_some())
    }
}

impl Lower<'_, '_> {
    /// Where the totals of a plan stand: at the start of the record.
    pub(super) fn layout(&self, plan: &Plan) -> Vec<Kept> {
        let mut at = 0;
        let kept = plan.totals.iter().map(|&(local, op)| {
            let ty = self.codelet.locals[local].ty;
            let mut kept = Kept { local, op, ty, at, any: None };
            at += kept.size();
            if is_ordered(op, ty) && op == ReduceOp::Sum {
                kept.any = Some(at);
                at += 64;
            }
            kept
        });
        kept.collect()
    }

    /// Whether a strip has registers for the totals of a plan.
    pub(super) fn has_room_for_totals(&self, plan: &Plan) -> bool {
        let halves = self.width() == Width::Half;
        let vectors = |k: &Kept| k.size() as usize / 64 + usize::from(halves && k.any.is_some());
        let most = if halves { MOST_OF_HALVES } else { MOST };
        self.layout(plan).iter().map(vectors).sum::<usize>() <= most
    }

    /// Puts what changes nothing into the lanes.
    pub(super) fn begin_totals(&mut self, record: StackSlot, totals: &[Kept]) {
        for kept in totals {
            self.begin_lanes((record, kept.at), kept.op, kept.ty);
            kept.any.into_iter().for_each(|at| self.begin_lanes((record, at), ReduceOp::Any, ElemType::Bool));
        }
    }

    /// What the lanes come to.
    fn total(&mut self, record: StackSlot, kept: &Kept) -> Value {
        let folded = self.fold_record((record, kept.at), kept.op, kept.ty);
        let Some(at) = kept.any else { return folded };
        let any = self.fold_record((record, at), ReduceOp::Any, ElemType::Bool);
        let zero = self.constant(kept.ty, 0);
        self.b.ins().select(any, folded, zero)
    }

    /// Takes the lanes into the locals.
    pub(super) fn end_totals(&mut self, record: StackSlot, totals: &[Kept]) {
        for kept in totals {
            let new = self.total(record, kept);
            let old = self.read(kept.local);
            let new = self.combine(kept.op.operator(), kept.ty, old, new);
            self.write(kept.local, new);
        }
    }

    /// What each group of places does to a total.
    pub(super) fn take_total(&mut self, wide: &mut Wide<'_>, total: &Total) {
        let n = wide.totals.iter().position(|lane| lane.kept.local == total.local);
        let n = n.expect("a plan names the totals of its steps");
        let Kept { op, ty, .. } = wide.totals[n].kept;
        let there = wide.there.clone();
        // Vectors of 512 bits leave lanes as they are where no place comes; with halves, those take in what changes nothing.
        let leaves = wide.width == Width::Full;
        if let Some((accumulator, _)) = wide.totals[n].any {
            let [yes, no] = [0xffff_ffff, 0].map(|bits| wide.program.splat(ElemType::I32, bits));
            let (came, mask) = match &there {
                Some(there) if leaves => (yes, Some(there.regs[0])),
                Some(there) => (wide.program.select(there, &yes, &no), None),
                None => (yes, None),
            };
            wide.program.effect(Effect::Take { accumulator, code: wide::OR[0], value: came.regs[0], mask });
        }
        let regs = wide.totals[n].regs.clone();
        if let Some((x, y)) = total.factors {
            let (x, y) = (self.wide_value(wide, x), self.wide_value(wide, y));
            if leaves {
                let masks = masks(wide, ty);
                for (part, (&(accumulator, _), mask)) in regs.iter().zip(masks).enumerate() {
                    let (a, b) = (x.regs[part], y.regs[part]);
                    wide.program.effect(Effect::TakeFma { accumulator, wide: is_long(ty), a, b, mask });
                }
                return;
            }
            let old = Lanes { ty, regs: regs.iter().map(|r| r.1).collect() };
            let new = wide.program.fma(&x, &y, &old);
            let new = there.map_or(new.clone(), |there| wide.program.select(&there, &new, &old));
            for (&(accumulator, _), &value) in regs.iter().zip(&new.regs) {
                wide.program.effect(Effect::Put { accumulator, value });
            }
            return;
        }
        let mut value = self.wide_value(wide, total.value);
        if total.negated {
            let zero = wide.program.splat(ty, 0);
            value = wide.program.binary(BinaryOp::Sub, &zero, &value);
        }
        let code = match op {
            ReduceOp::Sum => Some(wide::ADD),
            ReduceOp::Product => Some(wide::MUL),
            _ => None,
        };
        if let Some(code) = code.filter(|_| leaves && is_ordered(op, ty)) {
            let code = code[usize::from(is_long(ty))];
            let masks = masks(wide, ty);
            for ((&(accumulator, _), &value), mask) in regs.iter().zip(&value.regs).zip(masks) {
                wide.program.effect(Effect::Take { accumulator, code, value, mask });
            }
            return;
        }
        let start = wide.program.splat(ty, identity(op, ty));
        if let Some(there) = there {
            value = wide.program.select(&there, &value, &start);
        }
        let mut apart = SmallVec::new();
        for (&(accumulator, reg), &value) in regs.iter().zip(&value.regs) {
            let from = wide.program.body.len();
            wide.program.take(op.operator(), ty, (accumulator, reg), value);
            if !is_ordered(op, ty) && !wide.program.is_fixed(value) {
                apart.push((accumulator, Apart { start: start.regs[0], value, items: from..wide.program.body.len() }));
            }
        }
        let lane = &mut wide.totals[n];
        let first = !std::mem::replace(&mut lane.taken, true);
        lane.apart = Some(apart).filter(|a| first && a.len() == regs.len());
    }

    /// A reduction over the places that its filter lets through, if it can run as a strip and that pays.
    pub(in crate::lower) fn wide_filtered(&mut self, r: &Reduce, bounds: &[Bound]) -> Option<Value> {
        let (row, outer) = bounds.split_last()?;
        let binder = r.binders.last()?;
        let (cond, ty) = (r.filter?, self.ty(r.value));
        if binder.step != 1 || !takes_reduction(r.op, ty) || ty == ElemType::Bool {
            return None;
        }
        let length = row.range.trips.filter(|&n| n >= FEWEST)?;
        let mut then = steps::steps(&r.before, None)?;
        let total = Total { local: r.dst, op: r.op, value: r.value, factors: r.factors, negated: false };
        then.push(Step::Total(total));
        let mut body = steps::steps(&r.filter_before, None)?;
        body.push(Step::If { cond, then, els: Vec::new(), differs: true, joins: false });
        let plan = self.plan_of_steps(Some((binder.var, binder.lo, binder.hi)), body, &[], true)?;
        let inside = girder_codelet::locals::reads_of_reduce(self.codelet, r);
        // Each row begins with the first lane.
        let in_place = outer.is_empty() || !is_ordered(r.op, ty) || length % LANES as u64 == 0;
        if plan.stores() || self.outlives(&plan, &inside) || !in_place || !self.strip_pays(&plan) {
            return None;
        }
        let record = self.slot(0);
        let totals = self.layout(&plan);
        self.begin_totals(record, &totals);
        self.filtered_rows(&plan, (outer, row), record, &totals);
        Some(self.total(record, &totals[0]))
    }

    /// The loops of the outer binders around a row.
    fn filtered_rows(&mut self, plan: &Plan, (outer, row): (&[Bound], &Bound), record: StackSlot, totals: &[Kept]) {
        if let Some((first, inner)) = outer.split_first() {
            self.counted(first.range.clone(), None, |l, index| {
                l.write(first.var, index);
                l.filtered_rows(plan, (inner, row), record, totals);
                true
            });
            return;
        }
        self.write(row.var, row.range.lo);
        let mut wide = Wide::new(plan, self.width(), record);
        wide.add_totals(totals);
        self.wide_steps(&mut wide, &plan.steps);
        let length = row.range.trips.unwrap_or(0);
        let count = self.i64(length as i64);
        self.call_strip(&mut wide, count, Some(length), row.range.poll);
    }
}

impl Wide<'_> {
    /// Keeps totals in registers.
    pub(super) fn add_totals(&mut self, totals: &[Kept]) {
        for &kept in totals {
            let place = |at: u32, long, part: u32| wide::Lanes { offset: at + 64 * part, long, upper: part == 1 };
            let long = is_long(kept.ty);
            let lanes = |part| place(kept.at, long, part);
            let regs = (0..kept.size() / 64).map(|part| self.program.accumulator(lanes(part), None)).collect();
            let any = kept.any.map(|at| self.program.accumulator(place(at, false, 0), None));
            self.bytes = kept.any.map_or(kept.at + kept.size(), |at| at + 64);
            self.totals.push(Lane { kept, regs, any, apart: None, taken: false });
        }
    }

    /// Lets groups accumulate apart what they may.
    pub(super) fn set_totals_apart(&mut self) {
        for lane in &mut self.totals {
            for (accumulator, how) in lane.apart.take().into_iter().flatten() {
                self.program.set_apart(accumulator, how);
            }
        }
    }
}
