//! Expressions: their values, and their tangents.
//!
//! Invariant: a value is written from the operations of the function, so it has the same bits as there.

use super::writer::{Tangent, Writer};
use cranelift_entity::EntityRef;
use girder_ir::codelet::{BinaryOp, ExprKind, Index, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::{ElemType, Scalar};
use girder_syntax::ast;
use girder_syntax::make::arg;
use girder_typing::print::spelling::{self, Spelling};

impl Writer<'_> {
    /// Returns the value of an expression.
    pub fn value(&mut self, e: ExprId) -> ast::ExprId {
        if let Some(name) = self.kept.get(&e) {
            return self.make.name(&name.clone());
        }
        let ty = self.codelet.exprs[e].ty;
        match self.codelet.exprs[e].kind.clone() {
            ExprKind::Const(value) => self.constant(value, true),
            ExprKind::Local(local) => self.make.name(&self.name_of(local)),
            ExprKind::ConstField(field) | ExprKind::Load { field, .. } => {
                self.make.name(&self.inputs[field.index()].clone())
            }
            ExprKind::Size(size) => self.make.name(&self.codelet.sizes[size]),
            ExprKind::Worker => self.make.name("worker"),
            ExprKind::Workers => self.make.name("workers"),
            ExprKind::LoadLocal { local, index, .. } => {
                let base = self.make.name(&self.name_of(local));
                self.element(base, &index)
            }
            ExprKind::Unary { op, x } => {
                let x = self.value(x);
                self.unary(op, x)
            }
            ExprKind::Binary { op, a, b, .. } => {
                let (a, b) = self.alike(a, b);
                self.binary(op, a, b)
            }
            ExprKind::AndThen { a, b } => {
                let (a, b) = (self.value(a), self.value(b));
                self.make.binary(ast::BinaryOp::And, a, b)
            }
            ExprKind::OrElse { a, b } => {
                let (a, b) = (self.value(a), self.value(b));
                self.make.binary(ast::BinaryOp::Or, a, b)
            }
            ExprKind::Select { cond, a, b } => {
                let cond = self.value(cond);
                let (a, b) = (self.value(a), self.value(b));
                self.builtin("select", [cond, a, b])
            }
            ExprKind::Fma { a, b, c } => {
                let args = [self.value(a), self.value(b), self.value(c)];
                self.builtin("fma", args)
            }
            ExprKind::Convert { x } => {
                let x = self.value(x);
                self.builtin(ty.name(), [x])
            }
            ExprKind::Bits { x } => {
                let x = self.value(x);
                self.make.call_name(&format!("{ty}.bits"), vec![arg(x)])
            }
        }
    }

    /// Returns the value of an expression that is used several times.
    pub fn shared(&mut self, e: ExprId) -> ast::ExprId {
        let is_leaf = self.codelet.exprs[e].kind.operands().is_empty();
        if !is_leaf && !self.kept.contains_key(&e) {
            let value = self.value(e);
            let name = self.keep(value, self.codelet.exprs[e].ty);
            self.kept.insert(e, name);
        }
        self.value(e)
    }

    /// Returns operands of one type. A literal takes it from the other one.
    fn alike(&mut self, a: ExprId, b: ExprId) -> (ast::ExprId, ast::ExprId) {
        let constant = |this: &Self, e: ExprId| match this.codelet.exprs[e].kind {
            ExprKind::Const(value) => Some(value),
            _ => None,
        };
        match (constant(self, a), constant(self, b)) {
            (None, Some(b)) => (self.value(a), self.constant(b, false)),
            (Some(a), None) => (self.constant(a, false), self.value(b)),
            _ => (self.value(a), self.value(b)),
        }
    }

    /// Returns a constant, with its type if nothing else decides it.
    fn constant(&mut self, value: Scalar, typed: bool) -> ast::ExprId {
        let ty = value.ty;
        let literal = match (value.as_int(), value.as_float()) {
            (Some(v), _) if ty == ElemType::Bool => return self.make.bool(v != 0),
            (_, Some(v)) if !v.is_finite() => return self.make.bits(ty.name(), value.bits),
            (_, Some(v)) if ty == ElemType::F32 => self.make.float32(v as f32),
            (_, Some(v)) => self.make.float(v),
            (Some(v), _) => {
                let digits = self.make.uint(v.unsigned_abs() as u64);
                if v < 0 { self.make.unary(ast::UnaryOp::Neg, digits) } else { digits }
            }
            (None, None) => return self.make.bits(ty.name(), value.bits),
        };
        if typed { self.builtin(ty.name(), [literal]) } else { literal }
    }

    /// Returns an index, or a limit of indices.
    pub fn index(&mut self, e: ExprId) -> ast::ExprId {
        match self.codelet.exprs[e].kind {
            ExprKind::Const(value) => self.constant(value, false),
            _ => self.value(e),
        }
    }

    /// Returns an element of an array.
    pub fn element(&mut self, base: ast::ExprId, index: &Index) -> ast::ExprId {
        let mut list = vec![];
        for &i in index {
            list.push(ast::Index::Expr(self.index(i)));
        }
        self.make.index(base, list)
    }

    fn unary(&mut self, op: UnaryOp, x: ast::ExprId) -> ast::ExprId {
        match spelling::unary(op) {
            Spelling::Operator(op) => self.make.unary(op, x),
            Spelling::Function(name) => self.builtin(name, [x]),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: ast::ExprId, b: ast::ExprId) -> ast::ExprId {
        match spelling::binary(op) {
            Spelling::Operator(op) => self.make.binary(op, a, b),
            Spelling::Function(name) => self.builtin(name, [a, b]),
        }
    }

    /// Returns the tangent of an expression along an operand.
    pub fn tangent(&mut self, e: ExprId, d: usize) -> Tangent {
        use ast::BinaryOp as A;
        if !self.of.activity.of_expr(e, d) {
            return Tangent::Zero;
        }
        let ty = self.codelet.exprs[e].ty;
        match self.codelet.exprs[e].kind.clone() {
            ExprKind::Load { .. } => Tangent::One,
            ExprKind::Local(local) if self.is_operand(local, d) => Tangent::One,
            ExprKind::Local(local) => Tangent::Of(self.make.name(&self.tangent_name(local, d))),
            ExprKind::LoadLocal { local, index, .. } => {
                let base = self.make.name(&self.tangent_name(local, d));
                Tangent::Of(self.element(base, &index))
            }
            ExprKind::Unary { op: UnaryOp::Neg, x } => {
                let t = self.tangent(x, d);
                self.negative(t, ty)
            }
            ExprKind::Unary { op: UnaryOp::Abs, x } => self.of_abs(x, d),
            ExprKind::Unary { op: UnaryOp::Sqrt, x } => {
                let half = self.number(0.5, ty);
                let root = self.shared(e);
                let partial = self.make.binary(A::Div, half, root);
                let t = self.tangent(x, d);
                self.chained(partial, true, t, ty)
            }
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => {
                let (ta, tb) = (self.tangent(a, d), self.tangent(b, d));
                self.add(A::Add, ta, tb)
            }
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => {
                let (ta, tb) = (self.tangent(a, d), self.tangent(b, d));
                self.add(A::Sub, ta, tb)
            }
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => self.of_product(a, b, d),
            ExprKind::Binary { op: BinaryOp::Div, a, b, .. } => {
                let (ta, tb) = (self.tangent(a, d), self.tangent(b, d));
                let through = match tb {
                    Tangent::Zero => Tangent::Zero,
                    tb => {
                        let quotient = self.shared(e);
                        self.times(tb, quotient)
                    }
                };
                let (rest, b) = (self.add(A::Sub, ta, through), self.shared(b));
                let rest = self.value_of(rest, ty);
                Tangent::Of(self.make.binary(A::Div, rest, b))
            }
            ExprKind::Binary { op: BinaryOp::Rem, a, b, .. } => {
                let (ta, tb) = (self.tangent(a, d), self.tangent(b, d));
                let through = match tb {
                    Tangent::Zero => Tangent::Zero,
                    tb => {
                        let (a, b) = (self.shared(a), self.shared(b));
                        let quotient = self.make.binary(A::Div, a, b);
                        let whole = self.builtin("trunc", [quotient]);
                        self.times(tb, whole)
                    }
                };
                self.add(A::Sub, ta, through)
            }
            ExprKind::Binary { op: op @ (BinaryOp::Min | BinaryOp::Max), a, b, .. } => {
                let (ta, tb) = (self.tangent(a, d), self.tangent(b, d));
                let (ta, tb) = (self.value_of(ta, ty), self.value_of(tb, ty));
                let (a, b) = (self.shared(a), self.shared(b));
                let first = self.make.binary(if op == BinaryOp::Min { A::Le } else { A::Ge }, a, b);
                Tangent::Of(self.builtin("select", [first, ta, tb]))
            }
            ExprKind::Select { cond, a, b } => {
                let (ta, tb) = (self.tangent(a, d), self.tangent(b, d));
                let (ta, tb) = (self.value_of(ta, ty), self.value_of(tb, ty));
                let cond = self.shared(cond);
                Tangent::Of(self.builtin("select", [cond, ta, tb]))
            }
            ExprKind::Fma { a, b, c } => {
                let (product, tc) = (self.of_product(a, b, d), self.tangent(c, d));
                self.add(A::Add, product, tc)
            }
            ExprKind::Convert { x } => match self.tangent(x, d) {
                Tangent::Of(t) => Tangent::Of(self.builtin(ty.name(), [t])),
                t => t,
            },
            _ => Tangent::Zero,
        }
    }

    fn of_product(&mut self, a: ExprId, b: ExprId, d: usize) -> Tangent {
        let mut sum = Tangent::Zero;
        for (x, other) in [(a, b), (b, a)] {
            let t = self.tangent(x, d);
            if !matches!(t, Tangent::Zero) {
                let other = self.shared(other);
                let product = self.times(t, other);
                sum = self.add(ast::BinaryOp::Add, sum, product);
            }
        }
        sum
    }

    fn of_abs(&mut self, x: ExprId, d: usize) -> Tangent {
        let ty = self.codelet.exprs[x].ty;
        let t = self.tangent(x, d);
        let t = self.value_of(t, ty);
        let name = self.keep(t, ty);
        let [below, above] = [ast::BinaryOp::Lt, ast::BinaryOp::Gt].map(|op| {
            let (x, zero) = (self.shared(x), self.make.float(0.0));
            self.make.binary(op, x, zero)
        });
        let t = self.make.name(&name);
        let (minus, zero) = (self.make.unary(ast::UnaryOp::Neg, t), self.number(0.0, ty));
        let otherwise = self.builtin("select", [below, minus, zero]);
        let t = self.make.name(&name);
        Tangent::Of(self.builtin("select", [above, t, otherwise]))
    }

    fn negative(&mut self, t: Tangent, ty: ElemType) -> Tangent {
        match t {
            Tangent::Zero => Tangent::Zero,
            Tangent::One => Tangent::Of(self.number(-1.0, ty)),
            Tangent::Of(t) => Tangent::Of(self.make.unary(ast::UnaryOp::Neg, t)),
        }
    }

    /// Returns the product of a tangent and a factor.
    pub fn times(&mut self, t: Tangent, factor: ast::ExprId) -> Tangent {
        match t {
            Tangent::Zero => Tangent::Zero,
            Tangent::One => Tangent::Of(factor),
            Tangent::Of(t) => Tangent::Of(self.make.binary(ast::BinaryOp::Mul, t, factor)),
        }
    }

    /// Returns the sum or difference of two tangents of one type.
    pub fn add(&mut self, op: ast::BinaryOp, a: Tangent, b: Tangent) -> Tangent {
        let literal = |this: &mut Self, t: Tangent| match t {
            Tangent::Of(t) => t,
            _ => this.make.float(1.0),
        };
        match (a, b) {
            (a, Tangent::Zero) => a,
            (Tangent::Zero, b) if op == ast::BinaryOp::Add => b,
            (Tangent::Zero, b) => {
                let b = literal(self, b);
                Tangent::Of(self.make.unary(ast::UnaryOp::Neg, b))
            }
            (a, b) => {
                let (a, b) = (literal(self, a), literal(self, b));
                Tangent::Of(self.make.binary(op, a, b))
            }
        }
    }

    /// Returns the product of a partial derivative, which may be infinite, and a tangent. See the note on infinite
    /// partial derivatives.
    pub fn chained(&mut self, partial: ast::ExprId, may_be_infinite: bool, t: Tangent, ty: ElemType) -> Tangent {
        use ast::BinaryOp as A;
        let Tangent::Of(t) = t else { return self.times(t, partial) };
        if !may_be_infinite {
            return self.times(Tangent::Of(t), partial);
        }
        let (partial, t) = (self.keep(partial, ty), self.keep(t, ty));
        let (value, zero) = (self.make.name(&t), self.make.float(0.0));
        let is_zero = self.make.binary(A::Eq, value, zero);
        let of = self.make.name(&partial);
        let (size, infinity) = (self.builtin("abs", [of]), self.make.name(&format!("{ty}.inf")));
        let is_finite = self.make.binary(A::Lt, size, infinity);
        let is_infinite = self.make.unary(ast::UnaryOp::Not, is_finite);
        let none = self.make.binary(A::BitAnd, is_zero, is_infinite);
        let (zero, of) = (self.number(0.0, ty), self.make.name(&partial));
        let factor = self.builtin("select", [none, zero, of]);
        let t = self.make.name(&t);
        Tangent::Of(self.make.binary(A::Mul, t, factor))
    }
}
