//! Expressions: their values, and the checks inside them.

use super::FactsWalk;
use super::relations::{Bounds, Relations};
use crate::facts::affine::Affine;
use crate::facts::interval::Interval;
use crate::facts::value::{State, Value};
use girder_ir::codelet::{Check, ExprKind, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_ir::types::ElemType;

impl FactsWalk<'_> {
    /// Returns what is known of the value of an expression; records its checks and accesses.
    pub(super) fn eval(&mut self, e: ExprId, state: &State) -> Value {
        let codelet = self.codelet;
        let ty = codelet.exprs[e].ty;
        match codelet.exprs[e].kind {
            ExprKind::Const(c) => Value::of(Interval::constant(c)),
            ExprKind::Local(local) => state.value(local).clone(),
            ExprKind::ConstField(field) => self.constant(field, ty),
            ExprKind::Size(size) => Value::point(self.sizes.sizes[size]),
            ExprKind::Worker => match self.worker {
                Some(worker) => Value::point(worker.number.into()),
                None => Value::of(Interval::new(0, u32::MAX as i128)),
            },
            ExprKind::Workers => match self.worker {
                Some(worker) => Value::point(worker.of.into()),
                None => Value::of(Interval::new(1, u32::MAX as i128)),
            },
            ExprKind::Load { field, ref index, site } => {
                let index = self.index(index, state);
                self.bounds(Storage::Field(field), &index, site);
                Value::unknown(ty)
            }
            ExprKind::LoadLocal { local, ref index, site } => {
                let index = self.index(index, state);
                self.bounds(Storage::Local(local), &index, site);
                Value::unknown(ty)
            }
            ExprKind::Unary { op, x } => Value::unary(op, ty, &self.eval(x, state)),
            ExprKind::Binary { op, a, b, site } => {
                let (x, y) = (self.eval(a, state), self.eval(b, state));
                let operands = codelet.exprs[a].ty;
                if let Some(site) = site {
                    let passes = match codelet.sites[site].check {
                        Check::Division => !y.range.contains(0),
                        _ => y.range.within(Interval::new(0, 8 * operands.bytes() as i128 - 1)),
                    };
                    self.check(site, passes);
                }
                Value::binary(op, operands, &x, &y)
            }
            ExprKind::AndThen { a, b } => self.short_circuit(a, b, true, state),
            ExprKind::OrElse { a, b } => self.short_circuit(a, b, false, state),
            ExprKind::Select { cond, a, b } => {
                let (cond, a, b) = (self.eval(cond, state), self.eval(a, state), self.eval(b, state));
                Value::select(&cond, a, b)
            }
            ExprKind::Fma { a, b, c } => {
                for operand in [a, b, c] {
                    self.eval(operand, state);
                }
                Value::unknown(ty)
            }
            ExprKind::Convert { x } => Value::convert(codelet.exprs[x].ty, ty, &self.eval(x, state)),
            ExprKind::Bits { x } => {
                self.eval(x, state);
                Value::unknown(ty)
            }
        }
    }

    /// Returns the value of a constant, which is the same throughout a run.
    fn constant(&mut self, field: FieldId, ty: ElemType) -> Value {
        let mut value = Value::unknown(ty);
        if ty.is_int() {
            let symbol = self.constants[field].unwrap_or_else(|| {
                let bounds = Bounds { range: value.range, least: Relations::new(), most: Relations::new() };
                self.symbol(bounds)
            });
            self.constants[field] = Some(symbol);
            value.affine.get_or_insert(Affine::symbol(symbol));
        }
        value
    }

    /// Evaluates `b` where `a` equals `go_on`; elsewhere the result is `!go_on`.
    fn short_circuit(&mut self, a: ExprId, b: ExprId, go_on: bool, state: &State) -> Value {
        let first = self.eval(a, state).range;
        let stop = Value::point(!go_on as i64);
        if !first.contains(go_on as i128) {
            return stop;
        }
        let Some(second) = state.clone().assume(self.context(), a, go_on) else { return stop };
        let second = self.eval(b, &second);
        if first.contains(!go_on as i128) { second.join(&stop) } else { second }
    }

    /// Returns the unknown value of a local that is about to be assigned in a loop.
    pub(super) fn unknown(&self, local: LocalId) -> Value {
        Value::unknown(self.codelet.locals[local].ty)
    }
}
