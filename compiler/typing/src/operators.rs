//! Operators: their chains, the types of their operands, and `&&` and `||`.
//!
//! Invariant: both operands of an operator have one type when its expression is made, or an error was reported.

use super::builder::Builder;
use super::types::{BOOL, Class};
use super::value::Value;
use girder_ir::codelet::{BinaryOp, Check, ExprKind, Stmt, UnaryOp};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;

/// Maximal nesting of operations in one expression; the value of a deeper one is kept in a local.
const DEEPEST: u32 = 100;

impl<'a> Builder<'a, '_> {
    pub(super) fn unary(&mut self, op: ast::UnaryOp, value: ast::ExprId, span: Span) -> Value {
        let at = self.tree().exprs[value].span;
        let v = self.expr(value);
        match (op, v) {
            (ast::UnaryOp::Neg, Value::Int(v)) => self.static_int(-v, span),
            (ast::UnaryOp::Neg, Value::Float(v)) => Value::Float(-v),
            (ast::UnaryOp::Not, Value::Bool(b)) => Value::Bool(!b),
            (ast::UnaryOp::Not, Value::Int(v)) => self.static_int(!v, span),
            (ast::UnaryOp::Neg, v) => self.unary_of(UnaryOp::Neg, v, Class::Number, [at, span]),
            (ast::UnaryOp::Not, v) => {
                let Some(x) = self.scalar(v, at) else { return Value::Error };
                self.not(x, at, span)
            }
        }
    }

    fn not(&mut self, x: ExprId, at: Span, span: Span) -> Value {
        let ty = self.expr_types[x];
        if self.ty(x) != BOOL && self.narrowed(Value::Scalar(x), Class::Int, at).is_none() {
            return Value::Error;
        }
        Value::Scalar(self.push(ExprKind::Unary { op: UnaryOp::Not, x }, ty, span))
    }

    /// Builds an operator of one operand; `at` is the span of the operand.
    pub(super) fn unary_of(&mut self, op: UnaryOp, value: Value, class: Class, [at, span]: [Span; 2]) -> Value {
        let Some(x) = self.narrowed(value, class, at) else { return Value::Error };
        let ty = self.expr_types[x];
        Value::Scalar(self.push(ExprKind::Unary { op, x }, ty, span))
    }

    /// Translates `a op b`, and a chain `a + b + …`, whose left operands are descended in a loop.
    pub(super) fn chain(&mut self, node: &'a ast::Expr) -> Value {
        let tree = self.tree();
        let mut pending = vec![];
        let mut first = node;
        while let ast::ExprKind::Binary { op, left, right } = &first.kind {
            pending.push((*op, [*left, *right], first.span));
            first = &tree.exprs[*left];
        }
        let Some(&(_, [left, _], _)) = pending.last() else { return Value::Error };
        let mut value = self.expr(left);
        while let Some((op, operands, span)) = pending.pop() {
            value = self.binary(op, value, operands, span);
            self.cut(&mut value, span);
        }
        value
    }

    /// Keeps a deeply nested operation in a local, so that no expression of a codelet is deep, however long its text.
    fn cut(&mut self, value: &mut Value, span: Span) {
        let Value::Scalar(e) = value else { return };
        if self.expr_depths[*e] < DEEPEST {
            return;
        }
        if self.pure {
            let message = format!("this has more than {DEEPEST} operations, and nothing here can keep a value");
            self.report(Diagnostic::error("codelet::too_large", span, message).help("name parts of it with `let`"));
            *value = Value::Error;
            return;
        }
        self.keep(value, "");
    }

    fn binary(&mut self, op: ast::BinaryOp, value: Value, [left, right]: [ast::ExprId; 2], span: Span) -> Value {
        let spans = [left, right].map(|e| self.tree().exprs[e].span);
        match op {
            ast::BinaryOp::And | ast::BinaryOp::Or => self.lazy(op, value, right, spans, span),
            ast::BinaryOp::MatMul => {
                let help = "in a codelet write `amp(c, a, b)`, which adds the product of `a` and `b` to `c`";
                self.not_here(span, "`@` multiplies tensors, not fields of a codelet", help)
            }
            _ => {
                let mark = self.mark();
                let other = self.expr(right);
                let mut value = [value];
                self.keep_before(mark, &mut value);
                let [value] = value;
                self.operate(op, value, other, spans, span)
            }
        }
    }

    /// Builds `a op b` of values, for all operators but `&&`, `||` and `@`.
    pub(super) fn operate(&mut self, op: ast::BinaryOp, a: Value, b: Value, spans: [Span; 2], span: Span) -> Value {
        if matches!((&a, &b), (Value::Error, _) | (_, Value::Error)) {
            return Value::Error;
        }
        if let Some(v) = self.fold(op, &a, &b, span) {
            return v;
        }
        let (Some(x), Some(y)) = (self.scalar(a, spans[0]), self.scalar(b, spans[1])) else { return Value::Error };
        self.arithmetic(op, [x, y], spans, span)
    }

    fn arithmetic(&mut self, op: ast::BinaryOp, [a, b]: [ExprId; 2], spans: [Span; 2], span: Span) -> Value {
        use ast::BinaryOp as A;
        let (op, class, check) = match op {
            A::Add => (BinaryOp::Add, Some(Class::Number), None),
            A::Sub => (BinaryOp::Sub, Some(Class::Number), None),
            A::Mul => (BinaryOp::Mul, Some(Class::Number), None),
            A::Div => (BinaryOp::Div, Some(Class::Number), Some(Check::Division)),
            A::Rem => (BinaryOp::Rem, Some(Class::Number), Some(Check::Division)),
            A::BitAnd => (BinaryOp::And, Some(Class::Int), None),
            A::BitOr => (BinaryOp::Or, Some(Class::Int), None),
            A::BitXor => (BinaryOp::Xor, Some(Class::Int), None),
            A::Shl => (BinaryOp::Shl, Some(Class::Int), Some(Check::Shift)),
            A::Shr => (BinaryOp::Shr, Some(Class::Int), Some(Check::Shift)),
            A::Eq => (BinaryOp::Eq, None, None),
            A::Ne => (BinaryOp::Ne, None, None),
            A::Lt => (BinaryOp::Lt, Some(Class::Number), None),
            A::Le => (BinaryOp::Le, Some(Class::Number), None),
            A::Gt => (BinaryOp::Gt, Some(Class::Number), None),
            A::Ge => (BinaryOp::Ge, Some(Class::Number), None),
            A::And | A::Or | A::MatMul => return Value::Error,
        };
        if !self.same_type([a, b], spans, span) {
            return Value::Error;
        }
        let on_bool = self.ty(a) == BOOL && matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
        if let Some(class) = class.filter(|_| !on_bool)
            && self.narrowed(Value::Scalar(a), class, spans[0]).is_none()
        {
            return Value::Error;
        }
        // Sites of float operations are dropped when types are decided.
        let site = check.map(|c| self.site(c, span, None));
        let ty = if op.is_comparison() { BOOL } else { self.expr_types[a] };
        Value::Scalar(self.push(ExprKind::Binary { op, a, b, site }, ty, span))
    }

    /// Unifies the types of two operands.
    pub(super) fn same_type(&mut self, [a, b]: [ExprId; 2], spans: [Span; 2], span: Span) -> bool {
        if self.types.unify(self.expr_types[a], self.expr_types[b]) {
            return true;
        }
        let (x, y) = (self.types.describe(self.expr_types[a]), self.types.describe(self.expr_types[b]));
        let mut d = Diagnostic::error("codelet::type_mismatch", span, format!("the operands are {x} and {y}"))
            .label(spans[0], format!("this is {x}"))
            .label(spans[1], format!("this is {y}"));
        if let Some(help) = self.conversion_help(a, b) {
            d = d.help(help);
        }
        self.report(d);
        false
    }

    fn conversion_help(&self, a: ExprId, b: ExprId) -> Option<String> {
        let (x, y) = (self.types.known(self.expr_types[a]), self.types.known(self.expr_types[b]));
        match (x, y) {
            (Some(ElemType::Bool), _) | (_, Some(ElemType::Bool)) => None,
            (Some(x), Some(y)) => {
                let to = if y.is_float() && !x.is_float() { y } else { x };
                Some(format!("write `{to}(…)` around the other one"))
            }
            (Some(t), None) => Some(self.conversion_of_one(t, b, ["left", "right"])),
            (None, Some(t)) => Some(self.conversion_of_one(t, a, ["right", "left"])),
            (None, None) => None,
        }
    }

    /// Returns the help for an operand of type `known` and one whose type is open. `sides` are their sides. An integer
    /// would lose the fraction of a float.
    fn conversion_of_one(&self, known: ElemType, open: ExprId, sides: [&str; 2]) -> String {
        let is_lost = self.types.is_float(self.expr_types[open]) && !known.is_float();
        match is_lost {
            true => format!("write `f32(…)` or `f64(…)` around the {} one", sides[0]),
            false => format!("write `{known}(…)` around the {} one", sides[1]),
        }
    }

    fn lazy(&mut self, op: ast::BinaryOp, left: Value, right: ast::ExprId, spans: [Span; 2], span: Span) -> Value {
        let and = op == ast::BinaryOp::And;
        let a = match left {
            // The other operand decides the result, or is not elaborated at all.
            Value::Bool(a) if a == and => {
                let b = self.expr(right);
                if let Value::Bool(_) = b {
                    return b;
                }
                return self.coerce(b, BOOL, spans[1]).map_or(Value::Error, Value::Scalar);
            }
            Value::Bool(a) => return Value::Bool(a),
            v => self.coerce(v, BOOL, spans[0]),
        };
        let (b, block) = self.block(|s| {
            let v = s.expr(right);
            s.coerce(v, BOOL, spans[1])
        });
        let (Some(a), Some(b)) = (a, b) else { return Value::Error };
        if block.is_empty() {
            let kind = if and { ExprKind::AndThen { a, b } } else { ExprKind::OrElse { a, b } };
            return Value::Scalar(self.push(kind, BOOL, span));
        }
        let local = self.local("", BOOL, false, span);
        self.emit(Stmt::Set { local, value: a });
        let cond = self.read_local(local, span);
        let mut decided = block;
        decided.push(Stmt::Set { local, value: b });
        let (then, els) = if and { (decided, vec![]) } else { (vec![], decided) };
        self.emit(Stmt::If { cond, then, els });
        Value::Scalar(self.read_local(local, span))
    }
}
