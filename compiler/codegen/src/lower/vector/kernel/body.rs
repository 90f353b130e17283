//! Translates the steps of a plan to a vector kernel.
//!
//! Invariant: steps are translated in order, so that values that are the same in all iterations are evaluated at the
//! same point as in the body.

use super::lanes::{binary, lane, memory_lane, unary};
use super::{Lanes, Origin, VectorKernel};
use crate::lower::Lower;
use crate::lower::address::Sum;
use crate::lower::vector::nest::Permuted;
use crate::lower::vector::steps::{self, Step};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use girder_ir::codelet::{BinaryOp, ExprKind, Index, Storage};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_simd::ir::{Lane, Memory, Op};

/// The greatest constant offset of an address that is encoded in the instruction.
const REACH: i64 = 1 << 28;

impl Lower<'_, '_> {
    pub(super) fn kernel_steps(&mut self, vk: &mut VectorKernel<'_>, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Set { local, value } if !vk.plan.differing.contains(*local) => {
                    let v = self.expr(*value);
                    self.write(*local, v);
                }
                Step::Set { local, value } => {
                    let v = self.kernel_value(vk, *value);
                    vk.locals[*local] = Some(v);
                }
                Step::Store { storage, index, value, stride, .. } => {
                    let at = self.kernel_memory(vk, (*storage, index), *stride);
                    let v = self.kernel_value(vk, *value);
                    store(vk, (*storage, at), v);
                }
                Step::Total(total) => self.take_total(vk, total),
                Step::If { cond, then, els, differs: false, .. } => {
                    let taken = if self.folded[*cond] == Some(0) { els } else { then };
                    self.kernel_steps(vk, taken);
                }
                Step::If { cond, then, els, joins, .. } => {
                    let value = self.kernel_branches(vk, *cond, (then, els), *joins);
                    if let Some((value, (storage, index, stride))) = value.zip(steps::last_store(then)) {
                        let at = self.kernel_memory(vk, (storage, index), stride);
                        store(vk, (storage, at), value);
                    }
                }
                Step::For { var, lo, step, hi, body, .. } => {
                    let range = self.inner_range(*var, (*lo, *hi, *step));
                    self.written_out_range(vk, &[range], &mut |l, vk| l.kernel_steps(vk, body));
                }
                Step::Reduce(r) if !vk.plan.differing.contains(r.source.dst) => self.reduce(&r.source),
                Step::Reduce(r) => {
                    let result = self.kernel_reduction(vk, r);
                    vk.locals[r.source.dst] = Some(result);
                }
            }
        }
    }

    /// Translates both branches of a condition. Each iteration keeps what its own branch has set. If they end with a
    /// common store, returns the value that it stores.
    fn kernel_branches(
        &mut self,
        vk: &mut VectorKernel<'_>,
        cond: ExprId,
        (then, els): (&[Step], &[Step]),
        joins: bool,
    ) -> Option<Lanes> {
        let mask = self.kernel_value(vk, cond);
        let before = vk.locals.clone();
        let yes = self.kernel_where(vk, mask, true, |l, vk| l.kernel_branch(vk, then, joins));
        let after_then = std::mem::replace(&mut vk.locals, before);
        let no = self.kernel_where(vk, mask, false, |l, vk| l.kernel_branch(vk, els, joins));
        let set = steps::set_in([then, els]);
        for local in set.keys().filter(|&l| set.contains(l)) {
            vk.locals[local] = match (after_then[local], vk.locals[local]) {
                (Some(yes), Some(no)) => Some(vk.ir.select(mask, yes, no)),
                // It is read only where it is set.
                (yes, no) => yes.or(no),
            };
        }
        yes.zip(no).map(|(yes, no)| vk.ir.select(mask, yes, no))
    }

    /// Translates a branch. If it joins the other, translates all but its last store, and returns the value of that
    /// store.
    fn kernel_branch(&mut self, vk: &mut VectorKernel<'_>, steps: &[Step], joins: bool) -> Option<Lanes> {
        let (before, last) = match steps.split_last() {
            Some((last, before)) if joins => (before, last),
            _ => {
                self.kernel_steps(vk, steps);
                return None;
            }
        };
        self.kernel_steps(vk, before);
        match last {
            Step::Store { value, .. } => Some(self.kernel_value(vk, *value)),
            Step::If { cond, then, els, .. } => self.kernel_branches(vk, *cond, (then, els), true),
            _ => unreachable!("branches that join end with a store"),
        }
    }

    /// Runs `code` with only those iterations active for which a condition is true, or false if `holds` is false.
    fn kernel_where<R>(
        &mut self,
        vk: &mut VectorKernel<'_>,
        cond: Lanes,
        holds: bool,
        code: impl FnOnce(&mut Self, &mut VectorKernel<'_>) -> R,
    ) -> R {
        let cond = if holds { cond } else { vk.ir.unary(Op::Not, cond) };
        let active = match vk.active {
            Some(around) => vk.ir.binary(Op::And, around, cond),
            None => cond,
        };
        let around = vk.active.replace(active);
        let result = code(self, vk);
        vk.active = around;
        result
    }

    /// Translates an expression to its value in each iteration.
    pub(super) fn kernel_value(&mut self, vk: &mut VectorKernel<'_>, e: ExprId) -> Lanes {
        let codelet = self.codelet;
        let expr = &codelet.exprs[e];
        let ty = expr.ty;
        if let Some(bits) = self.folded[e] {
            return vk.ir.constant(lane(ty), bits);
        }
        if vk.plan.same.contains(e) {
            return self.same_value(vk, e);
        }
        if let Some(&(_, slope)) = vk.plan.ramps.iter().find(|r| r.0 == e) {
            return self.kernel_index(vk, e, slope, ElemType::I64);
        }
        match expr.kind {
            ExprKind::Local(local) => vk.locals[local].expect("a plan reads locals only where they are set"),
            ExprKind::Load { field, ref index, .. } => self.kernel_load(vk, e, Storage::Field(field), index),
            ExprKind::LoadLocal { local, ref index, .. } => self.kernel_load(vk, e, Storage::Local(local), index),
            ExprKind::Unary { op, x } => {
                let x = self.kernel_value(vk, x);
                unary(&mut vk.ir, op, x)
            }
            ExprKind::Binary { op: op @ (BinaryOp::Shl | BinaryOp::Shr), a, b, .. } => {
                let x = self.kernel_value(vk, a);
                let by = self.folded[b].unwrap_or(0) as u8;
                vk.ir.unary(if op == BinaryOp::Shl { Op::Shl { by } } else { Op::Shr { by } }, x)
            }
            ExprKind::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), a, b, .. } if ty.is_int() => {
                let x = self.kernel_value(vk, a);
                let by = self.folded[b].expect("a plan divides integers by numbers");
                let divisor = girder_codelet::scalar::extend(ty, by) as i64;
                let is_quotient = op == BinaryOp::Div;
                vk.ir.unary(if is_quotient { Op::DivideBy { divisor } } else { Op::RemainderBy { divisor } }, x)
            }
            ExprKind::Binary { op, a, b, .. } => {
                let (a, b) = (self.kernel_value(vk, a), self.kernel_value(vk, b));
                binary(&mut vk.ir, op, a, b)
            }
            ExprKind::AndThen { a, b } | ExprKind::OrElse { a, b } => {
                let both = matches!(expr.kind, ExprKind::AndThen { .. });
                let op = if both { BinaryOp::And } else { BinaryOp::Or };
                let a = self.kernel_value(vk, a);
                let b = self.kernel_where(vk, a, both, |l, vk| l.kernel_value(vk, b));
                binary(&mut vk.ir, op, a, b)
            }
            ExprKind::Select { cond, a, b } => {
                let cond = self.kernel_value(vk, cond);
                let (a, b) = (self.kernel_value(vk, a), self.kernel_value(vk, b));
                vk.ir.select(cond, a, b)
            }
            ExprKind::Fma { a, b, c } => {
                let [a, b, c] = [a, b, c].map(|e| self.kernel_value(vk, e));
                vk.ir.fma(a, b, c)
            }
            ExprKind::Convert { x } if vk.plan.narrow.contains(e) => {
                let slope = vk.plan.ramps.iter().find(|r| r.0 == x).map_or(0, |r| r.1);
                let index = self.kernel_index(vk, x, slope, ElemType::I32);
                vk.ir.convert(lane(ty), index)
            }
            ExprKind::Convert { x } => {
                let x = self.kernel_value(vk, x);
                vk.ir.convert(lane(ty), x)
            }
            ExprKind::Bits { x } => {
                let x = self.kernel_value(vk, x);
                vk.ir.bits(lane(ty), x)
            }
            _ => unreachable!("a plan has no such expression: {:?}", expr.kind),
        }
    }

    /// Returns a value that is the same in all iterations. It is passed in the record.
    fn same_value(&mut self, vk: &mut VectorKernel<'_>, e: ExprId) -> Lanes {
        if let Some(&known) = vk.early.get(&e) {
            return known;
        }
        let ty = self.ty(e);
        let value = self.expr(e);
        let lanes = uniform(self, vk, ty, value);
        if vk.plan.early.contains(&e) {
            vk.early.insert(e, lanes);
        }
        lanes
    }

    /// Returns the value of an index in each iteration, as an integer of type `ty`.
    fn kernel_index(&mut self, vk: &mut VectorKernel<'_>, e: ExprId, slope: i64, ty: ElemType) -> Lanes {
        let start = self.expr(e);
        let long = ty == ElemType::I64;
        let (clif, start) = if long { (I64, start) } else { (I32, self.b.ins().ireduce(I32, start)) };
        let known = vk.indices.iter().find(|&&(_, s, t, first)| (s, t, first) == (slope, clif, start)).map(|i| i.0);
        let offset = known.unwrap_or_else(|| {
            let offset = vk.put(start, ty.bytes());
            vk.indices.push((offset, slope, clif, start));
            offset
        });
        vk.ir.index(lane(ty), offset, slope)
    }

    /// Returns the elements of an access at a stride of `stride` bytes from iteration to iteration.
    pub(super) fn kernel_memory(
        &mut self,
        vk: &mut VectorKernel<'_>,
        (storage, index): (Storage, &Index),
        stride: i64,
    ) -> Memory {
        let mut sum = Sum::default();
        for (&e, (_, factor)) in index.iter().zip(self.dims(storage)) {
            self.add_scaled(&mut sum, e, factor);
        }
        vk.zero.into_iter().for_each(|zero| sum.leave_out(zero));
        let within = sum.constant.abs() <= REACH;
        let offset = if within { std::mem::take(&mut sum.constant) } else { 0 };
        let mut terms = sum.factors();
        if !within {
            let constant = self.i64(sum.constant);
            terms.push((constant, 1));
            sum.constant = 0;
            sum.add(constant, 1, self.depth);
        }
        let outer = vk.plan.outer.map_or(0, |outer| {
            let bytes = self.outer_stride((outer, &vk.plan.differing), (storage, index));
            bytes.expect("a plan with an outer loop has accesses that move evenly")
        });
        let pointer = vk.pointer(Origin { storage, terms, stride, outer }, || {
            let base = self.storage_address(storage);
            self.materialise(base, &sum).0
        });
        Memory { pointer, offset: offset as i32 }
    }

    fn kernel_load(&mut self, vk: &mut VectorKernel<'_>, e: ExprId, storage: Storage, index: &Index) -> Lanes {
        if let Some(&(_, Permuted { stride, first, order })) = vk.plan.permuted.iter().find(|p| p.0 == e) {
            let at = self.kernel_memory(vk, (storage, index), stride);
            let from = Memory { offset: at.offset + first, ..at };
            return vk.ir.load_permuted(memory_lane(self.element_type(storage)), from, order);
        }
        let stride = vk.plan.loads.iter().find(|l| l.0 == e).map_or(0, |l| l.1);
        let ty = self.element_type(storage);
        vk.store_pending(Some(storage));
        let from = self.kernel_memory(vk, (storage, index), stride);
        let elements = vk.ir.load(memory_lane(ty), from, vk.active);
        vk.ir.convert(lane(ty), elements)
    }
}

/// Adds a scalar to the record and returns its value in each iteration.
fn uniform(l: &mut Lower<'_, '_>, vk: &mut VectorKernel<'_>, ty: ElemType, value: Value) -> Lanes {
    let value = match ty {
        ElemType::Bool => l.b.ins().uextend(I32, value),
        _ if ty.bytes() < 4 && ty.is_signed_int() => l.b.ins().sextend(I32, value),
        _ if ty.bytes() < 4 => l.b.ins().uextend(I32, value),
        _ => value,
    };
    let offset = vk.put(value, ty.bytes().max(4));
    vk.ir.uniform(lane(ty), offset)
}

fn store(vk: &mut VectorKernel<'_>, (storage, to): (Storage, Memory), value: Lanes) {
    if vk.interleaved_stride(to, value).is_some() {
        return vk.store_later((storage, to), value);
    }
    vk.store_pending(Some(storage));
    let value = if vk.ir.lane(value) == Lane::Mask { vk.ir.convert(Lane::U8, value) } else { value };
    vk.ir.store(to, value, vk.active);
}
