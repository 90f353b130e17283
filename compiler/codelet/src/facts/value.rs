//! Knowledge about locals on one path, and the knowledge that conditions add.
//!
//! Invariant: [`State::values`] holds for every run that reaches the point; an affine form is present only where the
//! arithmetic cannot have wrapped.

use super::affine::Affine;
use super::interval::{self, Interval};
use super::region::{self, Region};
use crate::sizes::Sizes;
use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, UnaryOp};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;

/// The context of a path that does not change along it.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub codelet: &'a Codelet,
    pub sizes: &'a Sizes,
}

impl Context<'_> {
    fn ty(self, e: ExprId) -> ElemType {
        self.codelet.exprs[e].ty
    }
}

/// The knowledge about one scalar.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Value {
    pub range: Interval,
    /// The affine form; only for integers.
    pub affine: Option<Affine>,
}

impl Value {
    /// Returns the value of a type about which nothing is known.
    pub fn unknown(ty: ElemType) -> Value {
        Value::of(Interval::of(ty))
    }

    /// Returns a value of which only the interval is known.
    pub fn of(range: Interval) -> Value {
        let affine = range.is_point().and_then(|v| i64::try_from(v).ok()).map(Affine::constant);
        Value { range, affine }
    }

    /// Returns a known integer.
    pub fn point(v: i64) -> Value {
        Value::of(Interval::point(v as i128))
    }

    fn with(range: Interval, affine: Option<Affine>) -> Value {
        let value = Value::of(range);
        if value.affine.is_some() { value } else { Value { range, affine } }
    }

    /// Returns the knowledge that holds for either value.
    pub fn join(&self, other: &Value) -> Value {
        let affine = self.affine.clone().filter(|a| other.affine.as_ref() == Some(a));
        Value { range: self.range.hull(other.range), affine }
    }

    /// Returns the result of a unary operator.
    pub fn unary(op: UnaryOp, ty: ElemType, x: &Value) -> Value {
        let range = interval::unary(op, ty, x.range);
        let affine = match op {
            // Only the least value wraps; the interval is then that of the whole type.
            UnaryOp::Neg if ty.is_int() && range.lo == -x.range.hi => x.affine.as_ref().and_then(|a| a.scaled(-1)),
            UnaryOp::Abs if x.range.lo >= 0 => x.affine.clone(),
            _ => None,
        };
        Value::with(range, affine)
    }

    /// Returns the result of a binary operator.
    pub fn binary(op: BinaryOp, ty: ElemType, a: &Value, b: &Value) -> Value {
        let range = interval::binary(op, ty, a.range, b.range);
        if !ty.is_int() || op.is_comparison() {
            return Value::of(range);
        }
        let affine = match (op, &a.affine, &b.affine) {
            (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, Some(x), Some(y)) if !may_wrap(op, ty, a, b) => match op {
                BinaryOp::Add => x.add_scaled(y, 1),
                BinaryOp::Sub => x.add_scaled(y, -1),
                _ => match (x.is_constant(), y.is_constant()) {
                    (_, Some(k)) => x.scaled(k),
                    (Some(k), _) => y.scaled(k),
                    _ => None,
                },
            },
            (BinaryOp::Min, x, _) if a.range.hi <= b.range.lo => x.clone(),
            (BinaryOp::Min, _, y) if b.range.hi <= a.range.lo => y.clone(),
            (BinaryOp::Max, x, _) if a.range.lo >= b.range.hi => x.clone(),
            (BinaryOp::Max, _, y) if b.range.lo >= a.range.hi => y.clone(),
            (BinaryOp::Div, x, _) if b.range == Interval::point(1) => x.clone(),
            (BinaryOp::Rem, x, _) if a.range.lo >= 0 && a.range.hi < b.range.lo => x.clone(),
            _ => None,
        };
        Value::with(range, affine)
    }

    /// Returns the value in another type.
    pub fn convert(from: ElemType, to: ElemType, x: &Value) -> Value {
        let range = interval::convert(from, to, x.range);
        let exact = to.is_int() && !from.is_float() && x.range.within(Interval::of(to));
        Value::with(range, x.affine.clone().filter(|_| exact))
    }

    /// Returns the value of `cond ? a : b`.
    pub fn select(cond: &Value, a: Value, b: Value) -> Value {
        match cond.range.is_point() {
            Some(0) => b,
            Some(_) => a,
            None => a.join(&b),
        }
    }
}

/// Returns whether a sum, difference or product may leave its type.
fn may_wrap(op: BinaryOp, ty: ElemType, a: &Value, b: &Value) -> bool {
    // Nothing wraps in a type wider than the operands', so the bounds can be compared there.
    let (a, b) = (a.range, b.range);
    let bounds = match op {
        BinaryOp::Add => [Some(a.lo + b.lo), Some(a.hi + b.hi), Some(0), Some(0)],
        BinaryOp::Sub => [Some(a.lo - b.hi), Some(a.hi - b.lo), Some(0), Some(0)],
        _ => [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)].map(|(x, y)| x.checked_mul(y)),
    };
    bounds.into_iter().any(|v| v.is_none_or(|v| !Interval::of(ty).contains(v)))
}

/// The knowledge at a point of a path.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// By [`LocalId`]; entries of arrays are not used.
    pub values: Vec<Value>,
    /// Regions that have certainly been written.
    pub written: Vec<Region>,
}

impl State {
    /// Returns the value of a local.
    pub fn value(&self, local: LocalId) -> &Value {
        &self.values[local.as_u32() as usize]
    }

    /// Sets the value of a local.
    pub fn set(&mut self, local: LocalId, value: Value) {
        self.values[local.as_u32() as usize] = value;
    }

    /// Returns the state that holds on either path.
    fn join(mut self, other: State) -> State {
        for (a, b) in self.values.iter_mut().zip(&other.values) {
            if a != b {
                *a = a.join(b);
            }
        }
        let written = region::meet(self.written, other.written);
        State { values: self.values, written }
    }

    /// Works like [`State::join`]; a path that does not exist is `None`.
    pub fn join_paths(a: Option<State>, b: Option<State>) -> Option<State> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the state where `cond` equals `truth`; `None` if that is impossible. A condition that is too long adds
    /// nothing.
    pub fn assume(self, cx: Context<'_>, cond: ExprId, truth: bool) -> Option<State> {
        match cx.codelet.exprs[cond].kind {
            ExprKind::Unary { op: UnaryOp::Not, x } => self.assume(cx, x, !truth),
            ExprKind::AndThen { a, b } if truth => self.assume(cx, a, true)?.assume(cx, b, true),
            ExprKind::OrElse { a, b } if !truth => self.assume(cx, a, false)?.assume(cx, b, false),
            ExprKind::Binary { op, a, b, .. } if op.is_comparison() && cx.ty(a).is_int() => {
                self.assume_comparison(cx, op, a, b, truth)
            }
            ExprKind::Binary { op: BinaryOp::And, a, b, .. } if truth => self.assume(cx, a, true)?.assume(cx, b, true),
            ExprKind::Binary { op: BinaryOp::Or, a, b, .. } if !truth => {
                self.assume(cx, a, false)?.assume(cx, b, false)
            }
            ExprKind::Local(local) => {
                let range = self.value(local).range.meet(Interval::point(truth as i128))?;
                Some(self.narrowed(local, range))
            }
            ExprKind::Const(c) => ((c.bits != 0) == truth).then_some(self),
            _ => Some(self),
        }
    }

    fn narrowed(mut self, local: LocalId, range: Interval) -> State {
        // A form over loop indices is more useful than the number it has here: the other arm may have the same form.
        let affine = self.value(local).affine.clone().or(Value::of(range).affine);
        self.set(local, Value { range, affine });
        self
    }

    fn assume_comparison(self, cx: Context<'_>, op: BinaryOp, a: ExprId, b: ExprId, truth: bool) -> Option<State> {
        use BinaryOp::*;
        let op = match (op, truth) {
            (op, true) => op,
            (Eq, false) => Ne,
            (Ne, false) => Eq,
            (Lt, false) => Ge,
            (Le, false) => Gt,
            (Gt, false) => Le,
            _ => Lt,
        };
        let (x, y) = (self.peek(cx, a, 4).range, self.peek(cx, b, 4).range);
        // The range of each side, given the other.
        let (for_a, for_b) = match op {
            Lt => (Interval { lo: i128::MIN, hi: y.hi - 1 }, Interval { lo: x.lo + 1, hi: i128::MAX }),
            Le => (Interval { lo: i128::MIN, hi: y.hi }, Interval { lo: x.lo, hi: i128::MAX }),
            Gt => (Interval { lo: y.lo + 1, hi: i128::MAX }, Interval { lo: i128::MIN, hi: x.hi - 1 }),
            Ge => (Interval { lo: y.lo, hi: i128::MAX }, Interval { lo: i128::MIN, hi: x.hi }),
            Eq => (y, x),
            _ => (without(x, y)?, without(y, x)?),
        };
        self.narrow(cx, a, x.meet(for_a)?)?.narrow(cx, b, y.meet(for_b)?)
    }

    /// Returns the state where an expression lies in `range`; looks through `+ k`, `- k`, `/ k` and conversions.
    fn narrow(self, cx: Context<'_>, e: ExprId, range: Interval) -> Option<State> {
        match cx.codelet.exprs[e].kind {
            ExprKind::Local(local) => {
                let range = self.value(local).range.meet(range)?;
                Some(self.narrowed(local, range))
            }
            ExprKind::Convert { x } if cx.ty(x).is_int() && cx.ty(e).is_int() => {
                if self.peek(cx, x, 3).range.within(Interval::of(cx.ty(e))) {
                    self.narrow(cx, x, range)
                } else {
                    Some(self)
                }
            }
            ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), a, b, .. } => {
                let (x, y) = (self.peek(cx, a, 3), self.peek(cx, b, 3));
                match y.range.is_point() {
                    Some(k) if !may_wrap(op, cx.ty(a), &x, &y) => {
                        let k = if op == BinaryOp::Add { k } else { -k };
                        let shifted = Interval { lo: range.lo.saturating_sub(k), hi: range.hi.saturating_sub(k) };
                        self.narrow(cx, a, shifted)
                    }
                    _ => Some(self),
                }
            }
            ExprKind::Binary { op: BinaryOp::Div, a, b, .. } => {
                let (x, y) = (self.peek(cx, a, 3).range, self.peek(cx, b, 3).range);
                match y.is_point().filter(|&divisor| divisor > 0 && x.lo >= 0) {
                    // What is not negative is rounded down.
                    Some(divisor) => {
                        let lo = range.lo.max(0).saturating_mul(divisor);
                        let hi = range.hi.saturating_mul(divisor).saturating_add(divisor - 1);
                        if lo <= hi { self.narrow(cx, a, Interval { lo, hi }) } else { None }
                    }
                    None => Some(self),
                }
            }
            _ => Some(self),
        }
    }

    /// Returns the value of a short expression, and only the type of a longer one.
    fn peek(&self, cx: Context<'_>, e: ExprId, depth: u32) -> Value {
        let ty = cx.ty(e);
        match cx.codelet.exprs[e].kind {
            ExprKind::Const(k) => Value::of(Interval::constant(k)),
            ExprKind::Local(local) => self.value(local).clone(),
            ExprKind::Size(size) => Value::point(cx.sizes.sizes[size]),
            _ if depth == 0 => Value::unknown(ty),
            ExprKind::Convert { x } => Value::convert(cx.ty(x), ty, &self.peek(cx, x, depth - 1)),
            ExprKind::Binary { op, a, b, .. } => {
                let (x, y) = (self.peek(cx, a, depth - 1), self.peek(cx, b, depth - 1));
                Value::binary(op, cx.ty(a), &x, &y)
            }
            _ => Value::unknown(ty),
        }
    }
}

/// Returns `x` without the point `y`, if that is an interval; `None` if nothing is left.
fn without(x: Interval, y: Interval) -> Option<Interval> {
    let Some(v) = y.is_point() else { return Some(x) };
    let lo = x.lo + (x.lo == v) as i128;
    let hi = x.hi - (x.hi == v) as i128;
    (lo <= hi).then_some(Interval { lo, hi })
}
