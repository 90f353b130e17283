//! A plan's steps as a strip's program.
//!
//! Invariant: steps are taken in order, so that what is the same for all places is evaluated where the body does.

use super::{Place, Wide};
use crate::lower::Lower;
use crate::lower::address::Sum;
use crate::lower::vector::steps::{self, Step};
use crate::wide::{
    Code, Effect, Elements, GATHER, LOAD, LOAD_I8, LOAD_I16, LOAD_U8, LOAD_U16, Op, SCATTER, STORE, STORE_8, STORE_16,
    Value as Lanes, Width, is_long,
};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use girder_ir::codelet::{BinaryOp, ExprKind, Index, Storage, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use smallvec::{SmallVec, smallvec};

/// A number that is added to an address goes into the instruction up to this.
const REACH: i64 = 1 << 28;

impl Lower<'_, '_> {
    pub(super) fn wide_steps(&mut self, wide: &mut Wide<'_>, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Set { local, value } if !wide.plan.differing.contains(*local) => {
                    let v = self.expr(*value);
                    self.write(*local, v);
                }
                Step::Set { local, value } => {
                    let v = self.wide_value(wide, *value);
                    wide.locals[*local] = Some(v);
                }
                Step::Store { storage, index, value, stride, .. } => {
                    let at = self.wide_place(wide, (*storage, index), *stride);
                    let v = self.wide_value(wide, *value);
                    store(wide, (*storage, at), &v, *stride);
                }
                Step::Total(total) => self.take_total(wide, total),
                Step::If { cond, then, els, differs: false, .. } => {
                    let taken = if self.folded[*cond] == Some(0) { els } else { then };
                    self.wide_steps(wide, taken);
                }
                Step::If { cond, then, els, joins, .. } => {
                    let value = self.wide_branches(wide, *cond, (then, els), *joins);
                    if let Some((value, (storage, index, stride))) = value.zip(steps::last_store(then)) {
                        let at = self.wide_place(wide, (storage, index), stride);
                        store(wide, (storage, at), &value, stride);
                    }
                }
                Step::For { var, lo, step, hi, body, .. } => {
                    let turns = self.inner_turns(*var, (*lo, *hi, *step));
                    self.written_out_turns(wide, &[turns], &mut |l, wide| l.wide_steps(wide, body));
                }
                Step::Reduce(r) if !wide.plan.differing.contains(r.source.dst) => self.reduce(&r.source),
                Step::Reduce(r) => {
                    let result = self.wide_reduction(wide, r);
                    wide.locals[r.source.dst] = Some(result);
                }
            }
        }
    }

    /// Both branches; each place keeps what its own has set. If they end with one store, what it stores.
    fn wide_branches(
        &mut self,
        wide: &mut Wide<'_>,
        cond: ExprId,
        (then, els): (&[Step], &[Step]),
        joins: bool,
    ) -> Option<Lanes> {
        let mask = self.wide_value(wide, cond);
        let before = wide.locals.clone();
        let yes = self.wide_where(wide, &mask, true, |l, wide| l.wide_branch(wide, then, joins));
        let after_then = std::mem::replace(&mut wide.locals, before);
        let no = self.wide_where(wide, &mask, false, |l, wide| l.wide_branch(wide, els, joins));
        let set = steps::set_in([then, els]);
        for local in set.keys().filter(|&l| set.contains(l)) {
            wide.locals[local] = match (&after_then[local], &wide.locals[local]) {
                (Some(yes), Some(no)) => Some(wide.program.select(&mask, yes, no)),
                // Read only where it is set.
                (yes, no) => yes.clone().or(no.clone()),
            };
        }
        yes.zip(no).map(|(yes, no)| wide.program.select(&mask, &yes, &no))
    }

    /// A branch; of one that joins the other, all but its last store, and what that stores.
    fn wide_branch(&mut self, wide: &mut Wide<'_>, steps: &[Step], joins: bool) -> Option<Lanes> {
        let (before, last) = match steps.split_last() {
            Some((last, before)) if joins => (before, last),
            _ => {
                self.wide_steps(wide, steps);
                return None;
            }
        };
        self.wide_steps(wide, before);
        match last {
            Step::Store { value, .. } => Some(self.wide_value(wide, *value)),
            Step::If { cond, then, els, .. } => self.wide_branches(wide, *cond, (then, els), true),
            _ => unreachable!("branches that join end with a store"),
        }
    }

    /// Code that only the places come to where a condition holds, or where it does not.
    fn wide_where<R>(
        &mut self,
        wide: &mut Wide<'_>,
        cond: &Lanes,
        holds: bool,
        code: impl FnOnce(&mut Self, &mut Wide<'_>) -> R,
    ) -> R {
        let cond = if holds { cond.clone() } else { wide.program.unary(UnaryOp::Not, cond) };
        let there = match &wide.there {
            Some(around) => wide.program.binary(BinaryOp::And, around, &cond),
            None => cond,
        };
        let around = wide.there.replace(there);
        let result = code(self, wide);
        wide.there = around;
        result
    }

    /// The value of an expression at sixteen places.
    pub(super) fn wide_value(&mut self, wide: &mut Wide<'_>, e: ExprId) -> Lanes {
        let codelet = self.codelet;
        let expr = &codelet.exprs[e];
        let ty = expr.ty;
        if let Some(bits) = self.folded[e] {
            return wide.program.splat(ty, bits);
        }
        if wide.plan.same.contains(e) {
            return self.same_value(wide, e);
        }
        if let Some(&(_, slope)) = wide.plan.ramps.iter().find(|r| r.0 == e) {
            return self.wide_ramp(wide, e, slope, ElemType::I64);
        }
        match expr.kind {
            ExprKind::Local(local) => wide.locals[local].clone().expect("a plan reads locals only where they are set"),
            ExprKind::Load { field, ref index, .. } => self.wide_load(wide, e, Storage::Field(field), index),
            ExprKind::LoadLocal { local, ref index, .. } => self.wide_load(wide, e, Storage::Local(local), index),
            ExprKind::Unary { op, x } => {
                let x = self.wide_value(wide, x);
                wide.program.unary(op, &x)
            }
            ExprKind::Binary { op: op @ (BinaryOp::Shl | BinaryOp::Shr), a, b, .. } => {
                let x = self.wide_value(wide, a);
                wide.program.shift(op, &x, self.folded[b].unwrap_or(0) as u8)
            }
            ExprKind::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), a, b, .. } if ty.is_int() => {
                let x = self.wide_value(wide, a);
                wide.program.divided(op, &x, self.folded[b].expect("a plan divides integers by numbers"))
            }
            ExprKind::Binary { op, a, b, .. } => {
                let (a, b) = (self.wide_value(wide, a), self.wide_value(wide, b));
                wide.program.binary(op, &a, &b)
            }
            ExprKind::AndThen { a, b } | ExprKind::OrElse { a, b } => {
                let both = matches!(expr.kind, ExprKind::AndThen { .. });
                let op = if both { BinaryOp::And } else { BinaryOp::Or };
                let a = self.wide_value(wide, a);
                let b = self.wide_where(wide, &a, both, |l, wide| l.wide_value(wide, b));
                wide.program.binary(op, &a, &b)
            }
            ExprKind::Select { cond, a, b } => {
                let cond = self.wide_value(wide, cond);
                let (a, b) = (self.wide_value(wide, a), self.wide_value(wide, b));
                wide.program.select(&cond, &a, &b)
            }
            ExprKind::Fma { a, b, c } => {
                let [a, b, c] = [a, b, c].map(|e| self.wide_value(wide, e));
                wide.program.fma(&a, &b, &c)
            }
            ExprKind::Convert { x } if wide.plan.narrow.contains(e) => {
                let slope = wide.plan.ramps.iter().find(|r| r.0 == x).map_or(0, |r| r.1);
                let index = self.wide_ramp(wide, x, slope, ElemType::I32);
                wide.program.converted(ty, &index)
            }
            ExprKind::Convert { x } => {
                let x = self.wide_value(wide, x);
                wide.program.converted(ty, &x)
            }
            ExprKind::Bits { x } => {
                let x = self.wide_value(wide, x);
                wide.program.bits(ty, &x)
            }
            _ => unreachable!("a plan has no such expression: {:?}", expr.kind),
        }
    }

    /// A value that is the same at all places, by way of the record.
    fn same_value(&mut self, wide: &mut Wide<'_>, e: ExprId) -> Lanes {
        if let Some(known) = wide.early.get(&e) {
            return known.clone();
        }
        let ty = self.ty(e);
        let value = self.expr(e);
        let lanes = same(self, wide, ty, value);
        if wide.plan.early.contains(&e) {
            wide.early.insert(e, lanes.clone());
        }
        lanes
    }

    /// An index at sixteen places, as integers of some width.
    fn wide_ramp(&mut self, wide: &mut Wide<'_>, e: ExprId, slope: i64, ty: ElemType) -> Lanes {
        let start = self.expr(e);
        let (bytes, clif) = if is_long(ty) { (8, I64) } else { (4, I32) };
        let start = if is_long(ty) { start } else { self.b.ins().ireduce(I32, start) };
        let offset = wide.put(start, bytes.into());
        wide.ramps.push((offset, slope, clif, start));
        let program = &mut wide.program;
        let first = program.make(Op::Same { offset, bytes }, &[]);
        let wide_lanes = usize::from(is_long(ty));
        let by =
            program.constant(slope.wrapping_mul(16) as u64 & if is_long(ty) { u64::MAX } else { 0xffff_ffff }, bytes);
        let regs = (0..=wide_lanes as i64).map(|part| {
            let start = slope.wrapping_mul(8 * part);
            let steps = program.make(Op::Steps { start, step: slope, bytes }, &[]);
            let start = program.plain(crate::wide::IADD[wide_lanes], &[first, steps]);
            program.ramp(start, wide_lanes == 1, by)
        });
        let regs = regs.collect();
        Lanes { ty, regs }
    }

    /// The elements of an access at the first place.
    fn wide_place(&mut self, wide: &mut Wide<'_>, at: (Storage, &Index), stride: i64) -> Elements {
        let bytes = self.element_type(at.0).bytes();
        self.wide_place_of(wide, at, (stride, bytes))
    }

    /// The same of `bytes` of memory for each place, `stride` bytes apart.
    pub(super) fn wide_place_of(
        &mut self,
        wide: &mut Wide<'_>,
        (storage, index): (Storage, &Index),
        (stride, bytes): (i64, u32),
    ) -> Elements {
        let mut sum = Sum::default();
        for (&e, (_, factor)) in index.iter().zip(self.dims(storage)) {
            self.add_scaled(&mut sum, e, factor);
        }
        wide.zero.into_iter().for_each(|zero| sum.leave_out(zero));
        let within = sum.constant.abs() <= REACH;
        let offset = if within { std::mem::take(&mut sum.constant) } else { 0 };
        let mut terms = sum.factors();
        if !within {
            let constant = self.i64(sum.constant);
            terms.push((constant, 1));
            sum.constant = 0;
            sum.add(constant, 1, self.depth);
        }
        let place = Place { storage, terms, stride };
        let pointer = wide.pointer(place, stride == i64::from(bytes), || {
            let base = self.storage_address(storage);
            self.materialise(base, &sum).0
        });
        Elements { pointer, offset: offset as i32, bytes: bytes as u8, upper: false }
    }

    fn wide_load(&mut self, wide: &mut Wide<'_>, e: ExprId, storage: Storage, index: &Index) -> Lanes {
        let stride = wide.plan.loads.iter().find(|l| l.0 == e).map_or(0, |l| l.1);
        let ty = self.element_type(storage);
        wide.store_pending(Some(storage));
        let at = self.wide_place(wide, (storage, index), stride);
        load(wide, at, ty, stride)
    }
}

/// A value in the record, in each lane.
fn same(l: &mut Lower<'_, '_>, wide: &mut Wide<'_>, ty: ElemType, value: Value) -> Lanes {
    let value = match ty {
        ElemType::Bool => l.b.ins().uextend(I32, value),
        _ if ty.bytes() < 4 && ty.is_signed_int() => l.b.ins().sextend(I32, value),
        _ if ty.bytes() < 4 => l.b.ins().uextend(I32, value),
        _ => value,
    };
    let bytes = ty.bytes().max(4) as u8;
    let offset = wide.put(value, bytes.into());
    let reg = wide.program.make(Op::Same { offset, bytes }, &[]);
    if ty == ElemType::Bool {
        let number = Lanes { ty: ElemType::I32, regs: smallvec![reg] };
        return wide.program.converted(ElemType::Bool, &number);
    }
    Lanes { ty, regs: smallvec![reg; if is_long(ty) { 2 } else { 1 }] }
}

/// Each vector's elements of sixteen places.
pub(super) fn parts(at: Elements, stride: i64) -> SmallVec<[Elements; 2]> {
    let upper = Elements { offset: at.offset + 8 * stride as i32, upper: true, ..at };
    if at.bytes == 8 { smallvec![at, upper] } else { smallvec![at] }
}

/// The offsets of elements that do not lie side by side.
pub(super) fn offsets(wide: &mut Wide<'_>, stride: i64) -> crate::wide::Reg {
    wide.program.make(Op::Steps { start: 0, step: stride, bytes: 4 }, &[])
}

/// The masks of the places that come here, for each vector of a type.
pub(super) fn masks(wide: &mut Wide<'_>, ty: ElemType) -> SmallVec<[Option<crate::wide::Reg>; 2]> {
    match wide.there.clone() {
        Some(there) => wide.program.masks(ty, there.regs[0]).into_iter().map(Some).collect(),
        None => smallvec![None; if is_long(ty) { 2 } else { 1 }],
    }
}

/// How elements side by side are loaded.
pub(super) fn load_code(ty: ElemType) -> Code {
    match ty {
        ElemType::Bool | ElemType::U8 => LOAD_U8,
        ElemType::I8 => LOAD_I8,
        ElemType::U16 => LOAD_U16,
        ElemType::I16 => LOAD_I16,
        _ => LOAD[usize::from(is_long(ty))],
    }
}

fn load(wide: &mut Wide<'_>, at: Elements, ty: ElemType, stride: i64) -> Lanes {
    let steps = wide.steps(ty, stride).filter(|_| wide.width == Width::Full);
    let regs = if let Some(steps) = steps {
        wide.load_stretch(at, ty, (stride, steps))
    } else {
        let masks = masks(wide, ty);
        let offsets = (stride != i64::from(ty.bytes())).then(|| offsets(wide, stride));
        let load = |(from, mask)| match offsets {
            Some(offsets) => {
                let code = if ty.bytes() < 4 { load_code(ty) } else { GATHER[usize::from(is_long(ty))] };
                wide.program.load(Op::Gather { code, from }, &[offsets], mask)
            }
            None => wide.program.load(Op::Load { code: load_code(ty), from }, &[], mask),
        };
        parts(at, stride).into_iter().zip(masks).map(load).collect()
    };
    match ty {
        ElemType::Bool => wide.program.converted(ElemType::Bool, &Lanes { ty: ElemType::I32, regs }),
        _ => Lanes { ty, regs },
    }
}

fn store(wide: &mut Wide<'_>, (storage, at): (Storage, Elements), value: &Lanes, stride: i64) {
    let ty = value.ty;
    if let Some(steps) = wide.steps(ty, stride) {
        return wide.store_stretch((storage, at), value, (stride, steps));
    }
    wide.store_pending(Some(storage));
    let wide_lanes = usize::from(is_long(ty));
    let masks = masks(wide, ty);
    let number = wide.program.converted(if ty == ElemType::Bool { ElemType::I32 } else { ty }, value);
    for ((to, &value), mask) in parts(at, stride).into_iter().zip(&number.regs).zip(masks) {
        let effect = if stride != i64::from(ty.bytes()) {
            let offsets = offsets(wide, stride);
            Effect::Scatter { code: SCATTER[wide_lanes], to, offsets, value, mask }
        } else {
            let code = match ty.bytes() {
                1 => STORE_8,
                2 => STORE_16,
                _ => STORE[wide_lanes],
            };
            // Vectors of 512 bits are cut to elements by the store itself; halves saturate.
            let value = if wide.width == Width::Full { wide.program.uncut(ty, value) } else { value };
            Effect::Store { code, to, value, mask }
        };
        wide.program.effect(effect);
    }
}
