//! Expressions for one group of iterations.
//!
//! The index of the loop is that of the group's first iteration, and so are all addresses that are computed here.
//!
//! # Note: Masks
//! A truth value that differs from iteration to iteration is a vector of integers of the same width as the body's
//! values. Each lane is all ones or all zeros.
//!
//! Invariant: a value that differs is a vector of sixteen bytes. Any other value is evaluated as in scalar code and at
//! the same point, or early if the plan states it.

use super::Plan;
use crate::lower::{Lower, clif};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32X4, F64X2, I32, I32X4, I64X2};
use cranelift_codegen::ir::{ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value};
use cranelift_entity::SecondaryMap;
use cranelift_frontend::Variable;
use girder_codelet::interpret::identity;
use girder_codelet::scalar::{NAN_F32, NAN_F64};
use girder_ir::codelet::{BinaryOp, ExprKind, Index, ReduceOp, Storage, UnaryOp};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::{ElemType, Scalar};
use rustc_hash::FxHashMap;

/// The state that the groups of a loop share.
pub(super) struct Group<'p> {
    pub plan: &'p Plan,
    /// The vectors of expressions that were evaluated before the loop.
    early: FxHashMap<ExprId, Value>,
    /// The variables of the locals that differ, one for each unrolled group.
    locals: SecondaryMap<LocalId, Vec<Variable>>,
}

/// Returns the vector type of an element type. Masks have integer vectors of their width.
pub(super) fn vector(ty: ElemType, width: u32) -> Type {
    match (ty, width) {
        (ElemType::F32, _) => F32X4,
        (ElemType::F64, _) => F64X2,
        (_, 4) => I32X4,
        _ => I64X2,
    }
}

/// Returns the flags for lanes in memory order. A cast between vectors of different lanes must specify the order.
fn little() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

impl Group<'_> {
    fn vector(&self, ty: ElemType) -> Type {
        vector(ty, self.plan.width)
    }

    /// Returns the variable of a local that differs in the n-th group.
    pub fn variable(&self, local: LocalId, n: u64) -> Variable {
        let variables = &self.locals[local];
        variables[n as usize % variables.len()]
    }
}

impl Lower<'_, '_> {
    /// Evaluates what is needed before the first group. `unroll` is the number of groups that run together.
    pub(super) fn begin<'p>(&mut self, plan: &'p Plan, unroll: u64) -> Group<'p> {
        let mut group = Group { plan, early: FxHashMap::default(), locals: SecondaryMap::new() };
        for &e in &plan.early {
            let value = self.expr(e);
            let vector = self.spread(plan.width, self.ty(e), value);
            group.early.insert(e, vector);
        }
        for (local, decl) in self.codelet.locals.iter().filter(|(l, _)| plan.differing.contains(*l)) {
            let vector = group.vector(decl.ty);
            let zero = self.zeros(vector);
            for _ in 0..unroll {
                let variable = self.b.declare_var(vector);
                self.b.def_var(variable, zero);
                group.locals[local].push(variable);
            }
        }
        group
    }

    /// Selects the group for which expressions are emitted from here on: the n-th after that of the index.
    pub(super) fn move_to(&mut self, group: &Group<'_>, n: u64) {
        let ahead = (n * group.plan.lanes()) as i64;
        match group.plan.var {
            Some(var) => self.ahead[var] = ahead,
            None => self.vertices_ahead = ahead,
        }
        self.group = n;
    }

    fn zeros(&mut self, ty: Type) -> Value {
        let zeros = self.b.func.dfg.constants.insert(ConstantData::from([0u8; 16].as_slice()));
        self.b.ins().vconst(ty, zeros)
    }

    /// Broadcasts a scalar to every lane. A `bool` becomes a mask.
    pub(super) fn spread(&mut self, width: u32, ty: ElemType, value: Value) -> Value {
        let vector = vector(ty, width);
        let lane = if ty == ElemType::Bool { self.b.ins().bmask(vector.lane_type(), value) } else { value };
        self.b.ins().splat(vector, lane)
    }

    /// Returns a vector with the identity of a reduction in every lane.
    pub(super) fn start_vector(&mut self, plan: &Plan, op: ReduceOp, ty: ElemType) -> Value {
        let vector = vector(ty, plan.width);
        if ty == ElemType::Bool {
            let lane = self.b.ins().iconst(vector.lane_type(), if op == ReduceOp::All { -1 } else { 0 });
            return self.b.ins().splat(vector, lane);
        }
        let lane = self.constant(ty, identity(op, ty));
        self.b.ins().splat(vector, lane)
    }

    /// Emits `mask ? a : b` in each lane.
    pub(super) fn blend(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let ty = self.b.func.dfg.value_type(a);
        let mask = self.cast(ty, mask);
        self.b.ins().bitselect(mask, a, b)
    }

    fn cast(&mut self, ty: Type, v: Value) -> Value {
        if self.b.func.dfg.value_type(v) == ty { v } else { self.b.ins().bitcast(ty, little(), v) }
    }

    /// Emits the vector of an expression's values in the group's iterations.
    pub(super) fn vector_value(&mut self, group: &Group<'_>, e: ExprId) -> Value {
        if let Some(&v) = group.early.get(&e) {
            return v;
        }
        let codelet = self.codelet;
        let expr = &codelet.exprs[e];
        if group.plan.same.contains(e) {
            let value = self.expr(e);
            return self.spread(group.plan.width, expr.ty, value);
        }
        if group.plan.ramps.iter().any(|r| r.0 == e) {
            return self.ramp(group, e, group.vector(expr.ty));
        }
        match expr.kind {
            ExprKind::Local(local) => self.b.use_var(group.variable(local, self.group)),
            ExprKind::Load { field, ref index, .. } => self.vector_load(group, e, Storage::Field(field), index),
            ExprKind::LoadLocal { local, ref index, .. } => self.vector_load(group, e, Storage::Local(local), index),
            ExprKind::Unary { op, x } => {
                let v = self.vector_value(group, x);
                match (op, expr.ty) {
                    (UnaryOp::Not, ElemType::Bool) => self.b.ins().bnot(v),
                    _ => self.unary(op, expr.ty, v),
                }
            }
            ExprKind::Binary { op, a, b, .. } => self.vector_binary(group, op, a, b),
            ExprKind::AndThen { a, b } => self.vector_binary(group, BinaryOp::And, a, b),
            ExprKind::OrElse { a, b } => self.vector_binary(group, BinaryOp::Or, a, b),
            ExprKind::Select { cond, a, b } => {
                let mask = self.vector_value(group, cond);
                let (a, b) = (self.vector_value(group, a), self.vector_value(group, b));
                self.blend(mask, a, b)
            }
            ExprKind::Fma { a, b, c } => {
                let (a, b) = (self.vector_value(group, a), self.vector_value(group, b));
                let c = self.vector_value(group, c);
                self.b.ins().fma(a, b, c)
            }
            ExprKind::Convert { x } if group.plan.ramps.iter().any(|r| r.0 == x) => {
                self.converted_ramp(group, x, expr.ty)
            }
            ExprKind::Convert { x } => {
                let v = self.vector_value(group, x);
                self.vector_convert(group, self.ty(x), expr.ty, v)
            }
            ExprKind::Bits { x } => {
                let v = self.vector_value(group, x);
                let v = self.vector_canonical(self.ty(x), v);
                self.cast(group.vector(expr.ty), v)
            }
            _ => unreachable!("a plan has no such expression: {:?}", expr.kind),
        }
    }

    fn vector_binary(&mut self, group: &Group<'_>, op: BinaryOp, a: ExprId, b: ExprId) -> Value {
        let ty = self.ty(a);
        let x = self.vector_value(group, a);
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            // The shift width is a known number, in range.
            let by = self.b.ins().iconst(I32, self.folded[b].unwrap_or(0) as i64);
            return match op {
                BinaryOp::Shl => self.b.ins().ishl(x, by),
                _ if ty.is_signed_int() => self.b.ins().sshr(x, by),
                _ => self.b.ins().ushr(x, by),
            };
        }
        let y = self.vector_value(group, b);
        if ty.is_float() && matches!(op, BinaryOp::Min | BinaryOp::Max) {
            return self.vector_extremum(op, ty, (x, self.folded[a]), (y, self.folded[b]));
        }
        if op.is_comparison() { self.compare(op, ty, x, y) } else { self.combine(op, ty, x, y) }
    }

    /// Emits `min` or `max` of floats. If one operand is a known number that is not NaN, one comparison is sufficient:
    /// it keeps a NaN of the other operand, and equal values have the same bits, except zeros. For `max` with `+0`,
    /// `+0` is added to the result, which changes `-0` to `+0` and no other value. `min` with `-0` uses the general
    /// form.
    fn vector_extremum(
        &mut self,
        op: BinaryOp,
        ty: ElemType,
        x: (Value, Option<u64>),
        y: (Value, Option<u64>),
    ) -> Value {
        let (x, number, bits) = match (x, y) {
            ((x, _), (y, Some(bits))) | ((y, Some(bits)), (x, _)) => (x, y, bits),
            ((x, _), (y, _)) => return self.combine(op, ty, x, y),
        };
        let value = Scalar::new(ty, bits).as_float().unwrap_or(f64::NAN);
        let below_zero = value == 0.0 && value.is_sign_negative();
        if value.is_nan() || (op == BinaryOp::Min && below_zero) {
            return self.combine(op, ty, x, number);
        }
        // The operands are in the order that the backend's rules for `minps` and `maxps` expect.
        let worse = match op {
            BinaryOp::Min => self.b.ins().fcmp(FloatCC::LessThan, number, x),
            _ => self.b.ins().fcmp(FloatCC::LessThan, x, number),
        };
        let better = self.blend(worse, number, x);
        if op == BinaryOp::Max && value == 0.0 && !below_zero { self.b.ins().fadd(better, number) } else { better }
    }

    fn vector_convert(&mut self, group: &Group<'_>, from: ElemType, to: ElemType, v: Value) -> Value {
        let ty = group.vector(to);
        match (from, to) {
            _ if from == to => v,
            (ElemType::Bool, _) => {
                // One in the lanes where the mask is set.
                let one = match to {
                    ElemType::F32 => u64::from(1.0f32.to_bits()),
                    ElemType::F64 => 1.0f64.to_bits(),
                    _ => 1,
                };
                let one = self.constant(to, one);
                let ones = self.b.ins().splat(ty, one);
                let ones = self.cast(self.b.func.dfg.value_type(v), ones);
                let masked = self.b.ins().band(v, ones);
                self.cast(ty, masked)
            }
            (_, ElemType::Bool) => {
                let zero = self.constant(from, 0);
                let zeros = self.b.ins().splat(group.vector(from), zero);
                self.compare(BinaryOp::Ne, from, v, zeros)
            }
            (ElemType::F32, ElemType::I32) => self.b.ins().fcvt_to_sint_sat(ty, v),
            (ElemType::F32, ElemType::U32) => self.b.ins().fcvt_to_uint_sat(ty, v),
            (ElemType::I32, ElemType::F32) => self.b.ins().fcvt_from_sint(ty, v),
            (ElemType::U32, ElemType::F32) => self.b.ins().fcvt_from_uint(ty, v),
            _ => v,
        }
    }

    fn vector_canonical(&mut self, ty: ElemType, v: Value) -> Value {
        if !ty.is_float() {
            return v;
        }
        let bits = if ty == ElemType::F32 { u64::from(NAN_F32) } else { NAN_F64 };
        let nan = self.constant(ty, bits);
        let vector = self.b.func.dfg.value_type(v);
        let nans = self.b.ins().splat(vector, nan);
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, v, v);
        self.blend(is_nan, nans, v)
    }

    /// Emits the values of an index in the group's iterations, as integers of the type's width.
    fn ramp(&mut self, group: &Group<'_>, e: ExprId, ty: Type) -> Value {
        let slope = group.plan.ramps.iter().find(|r| r.0 == e).map_or(0, |r| r.1);
        let start = self.expr(e);
        let lane = ty.lane_type();
        let start = if lane == I32 { self.b.ins().ireduce(I32, start) } else { start };
        let starts = self.b.ins().splat(ty, start);
        let steps = (0..i64::from(ty.lane_count())).flat_map(|n| {
            let ahead = slope.wrapping_mul(n).to_le_bytes();
            ahead.into_iter().take(lane.bytes() as usize)
        });
        let steps = ConstantData::from(steps.collect::<Vec<u8>>().as_slice());
        let steps = self.b.func.dfg.constants.insert(steps);
        let steps = self.b.ins().vconst(ty, steps);
        self.b.ins().iadd(starts, steps)
    }

    fn converted_ramp(&mut self, group: &Group<'_>, x: ExprId, to: ElemType) -> Value {
        match to {
            ElemType::F32 => {
                let v = self.ramp(group, x, I32X4);
                self.b.ins().fcvt_from_sint(F32X4, v)
            }
            ElemType::F64 => {
                let v = self.ramp(group, x, I32X4);
                let wide = self.b.ins().swiden_low(v);
                self.b.ins().fcvt_from_sint(F64X2, wide)
            }
            _ => self.ramp(group, x, group.vector(to)),
        }
    }

    fn vector_load(&mut self, group: &Group<'_>, e: ExprId, storage: Storage, index: &Index) -> Value {
        let stride = group.plan.loads.iter().find(|l| l.0 == e).map_or(0, |l| l.1);
        let ty = self.element_type(storage);
        let (address, bytes, flags) = self.element_address(storage, index);
        let vector = group.vector(ty);
        if stride == i64::from(group.plan.width) {
            let (address, offset) = self.with_offset(address, bytes);
            return self.b.ins().load(vector, flags, address, offset);
        }
        let mut result = None;
        for n in 0..vector.lane_count() {
            let at = bytes.wrapping_add(stride.wrapping_mul(i64::from(n)));
            let (address, offset) = self.with_offset(address, at);
            let lane = self.b.ins().load(clif(ty), flags, address, offset);
            result = Some(match result {
                None => self.b.ins().splat(vector, lane),
                Some(v) => self.b.ins().insertlane(v, lane, n as u8),
            });
        }
        result.expect("a vector has lanes")
    }

    /// Stores the lanes of `v` at a stride of `stride` bytes.
    pub(super) fn vector_store(
        &mut self,
        group: &Group<'_>,
        (storage, index): (Storage, &Index),
        v: Value,
        stride: i64,
    ) {
        let (address, bytes, _) = self.element_address(storage, index);
        let flags = self.flags(storage);
        if stride == i64::from(group.plan.width) {
            let (address, offset) = self.with_offset(address, bytes);
            self.b.ins().store(flags, v, address, offset);
            return;
        }
        for n in 0..group.plan.lanes() as u8 {
            let at = bytes.wrapping_add(stride.wrapping_mul(i64::from(n)));
            let (address, offset) = self.with_offset(address, at);
            let lane = self.b.ins().extractlane(v, n);
            self.b.ins().store(flags, lane, address, offset);
        }
    }
}
