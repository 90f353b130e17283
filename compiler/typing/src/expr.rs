//! Expressions: names, literals, tuples; and the conversion of values to typed scalars.
//!
//! Invariant: operands are evaluated left to right. Where a later operand emits statements, the earlier ones are first
//! kept in locals, so that the statements cannot change them and checks stay in order.

use super::builder::Builder;
use super::types::{BOOL, Class, INT, Ty};
use super::value::{Axis, Literal, Value};
use girder_ir::codelet::{ExprKind, Stmt};
use girder_ir::ids::ExprId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Span};
use girder_syntax::{ast, narrow_float};

/// Maximal number of values in one tuple, including those of nested tuples.
const MAX_WEIGHT: usize = 256;

impl<'a> Builder<'a, '_> {
    /// Translates an expression.
    pub(super) fn expr(&mut self, e: ast::ExprId) -> Value {
        let value = self.expr_if(e, true);
        if let Value::Never = value {
            let span = self.tree().exprs[e].span;
            return self.error("codelet::missing_value", span, "this never gives a value: it leaves before");
        }
        value
    }

    /// Translates an expression; if its value is not `wanted`, branches need not agree on one.
    pub(super) fn expr_if(&mut self, e: ast::ExprId, wanted: bool) -> Value {
        let node = &self.tree().exprs[e];
        self.deeper(node.span, |s| s.expr_here(node, wanted)).unwrap_or(Value::Error)
    }

    fn expr_here(&mut self, node: &'a ast::Expr, wanted: bool) -> Value {
        use ast::ExprKind as K;
        let span = node.span;
        match &node.kind {
            K::Name(name) => match self.name(name, span) {
                Some(v) => self.loaded(v, span),
                None => self.not_called(name, span),
            },
            K::Int { value, .. } => Value::Int((*value).into()),
            K::Float { value, text } => match narrow_float(text, *value) {
                None => Value::Float(*value),
                Some(narrow) => {
                    let ty = self.types.open(Class::Float);
                    Value::Scalar(self.literal(Literal::Decimal(*value, narrow), ty, span))
                }
            },
            K::Bool(b) => Value::Bool(*b),
            K::Str(s) => Value::Str(s.clone()),
            K::Paren(inner) => self.expr(*inner),
            K::Tuple(args) => self.tuple(args, span),
            K::List(items) => self.array_list(items, span),
            K::Integers(list) => self.array_integers(list, span),
            K::Fill { value, count } => self.array_fill(*value, *count, span),
            K::Field { base, name } => self.field(node, *base, name),
            K::Call { callee, args } => self.call(*callee, args, span),
            K::Index { base, index } => {
                let v = self.indexed(*base, index, span);
                self.loaded(v, span)
            }
            K::Unary { op, value } => self.unary(*op, *value, span),
            K::Binary { .. } => self.chain(node),
            K::Range { start, end, closed, by } => {
                self.bounds_between(*start, *end, *closed, *by).map_or(Value::Error, Value::Range)
            }
            K::Reduce(r) => self.reduce(&r.op, &r.binders, r.filter, &r.body, span),
            K::Fn(_) => {
                let help = "declare a `codelet fn`, or pass the function to the codelet as a generic, `f: fn`";
                self.not_here(span, "a codelet cannot make a function", help)
            }
            K::Block(body) => self.body(body, wanted),
            K::If { cond, then, els } => self.if_value(*cond, then, *els, wanted, span),
            K::Switch { on, arms } => self.switch(*on, arms, wanted, span),
            K::On { .. } | K::With { .. } | K::Pipeline { .. } => {
                let help = "a codelet runs inside one tile; write this in an `fn` or `program`";
                self.not_here(span, "this block is not allowed in a codelet", help)
            }
            K::Error => {
                self.fail_silently();
                Value::Error
            }
        }
    }

    /// Reports a construct that is valid only outside codelets.
    pub(super) fn not_here(&mut self, span: Span, message: &str, help: &str) -> Value {
        self.report(Diagnostic::error("codelet::not_here", span, message).help(help));
        Value::Error
    }

    fn not_called(&mut self, name: &str, span: Span) -> Value {
        let d = Diagnostic::error("codelet::type_mismatch", span, format!("`{name}` is a function, not a value"));
        self.report(d.help(format!("call it: `{name}(…)`")));
        Value::Error
    }

    fn tuple(&mut self, args: &'a [ast::Arg], span: Span) -> Value {
        if args.is_empty() {
            return Value::Unit;
        }
        let named: Vec<&ast::Ident> = args.iter().filter_map(|a| a.name.as_ref()).collect();
        if let Some(n) = (0..named.len()).find(|&k| named[..k].iter().any(|n| n.name == named[k].name)) {
            return self.error("names::duplicate", named[n].span, format!("`{}` is named twice", named[n].name));
        }
        let values = self.values(&args.iter().map(|a| a.value).collect::<Vec<_>>());
        let names = args.iter().map(|a| a.name.as_ref().map(|n| n.name.clone()));
        let value = Value::Tuple(names.zip(values).collect());
        if value.weight() > MAX_WEIGHT {
            return self.error("codelet::too_large", span, format!("a tuple of more than {MAX_WEIGHT} parts"));
        }
        value
    }

    /// Translates expressions in order; see the invariant of this file.
    pub(super) fn values(&mut self, exprs: &[ast::ExprId]) -> Vec<Value> {
        let mut done: Vec<Value> = vec![];
        for &e in exprs {
            let mark = self.mark();
            let v = self.expr(e);
            self.keep_before(mark, &mut done);
            done.push(v);
        }
        done
    }

    /// Keeps values that were computed before the statements from `mark` on, if there are any.
    pub(super) fn keep_before(&mut self, mark: usize, values: &mut [Value]) {
        if self.mark() == mark {
            return;
        }
        let later = self.blocks.last_mut().map_or(vec![], |b| b.split_off(mark));
        values.iter_mut().for_each(|v| self.keep(v, ""));
        self.append(later);
    }

    /// Makes a value stable: everything but stable leaves is moved into locals.
    pub(super) fn keep(&mut self, value: &mut Value, name: &str) {
        match value {
            Value::Scalar(e) => *e = self.kept(*e, name),
            Value::Tuple(list) => list.iter_mut().for_each(|(_, v)| self.keep(v, name)),
            Value::Range(b) => (b.lo, b.hi) = (self.kept(b.lo, ""), self.kept(b.hi, "")),
            Value::View(view) => {
                for axis in &mut view.axes {
                    match axis {
                        Axis::At(e) => *e = self.kept(*e, ""),
                        Axis::Range(r) => {
                            r.start = self.kept(r.start, "");
                            r.len = self.kept(r.len, "");
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the value of an expression as a leaf that later statements do not change.
    pub(super) fn kept(&mut self, e: ExprId, name: &str) -> ExprId {
        if self.is_stable(e) {
            return e;
        }
        let span = self.out.exprs[e].span;
        let local = self.local(name, self.expr_types[e], false, span);
        self.emit(Stmt::Set { local, value: e });
        self.read_local(local, span)
    }

    /// Returns a value as a typed scalar; otherwise reports an error and returns `None`.
    pub(super) fn scalar(&mut self, value: Value, span: Span) -> Option<ExprId> {
        Some(match value {
            Value::Int(v) => {
                let ty = self.types.open(Class::Number);
                self.literal(Literal::Int(v), ty, span)
            }
            Value::Float(v) => {
                let ty = self.types.open(Class::Float);
                self.literal(Literal::Float(v), ty, span)
            }
            Value::Bool(b) => self.push(ExprKind::Const(Scalar::bool(b)), BOOL, span),
            Value::Scalar(e) => e,
            Value::Error | Value::Never => return None,
            other => {
                let message = format!("this is {}, where a single value is needed", other.noun());
                let mut d = Diagnostic::error("codelet::type_mismatch", span, message);
                if matches!(other, Value::View(_)) {
                    d = d.help("index it down to one element");
                }
                self.report(d);
                return None;
            }
        })
    }

    /// Returns a value as a scalar of a type; otherwise reports an error and returns `None`.
    pub(super) fn coerce(&mut self, value: Value, ty: Ty, span: Span) -> Option<ExprId> {
        let e = self.scalar(value, span)?;
        if self.types.unify(self.expr_types[e], ty) {
            return Some(e);
        }
        let (is, needs) = (self.types.describe(self.expr_types[e]), self.types.describe(ty));
        let mut d = Diagnostic::error("codelet::type_mismatch", span, format!("this is {is}, where {needs} is needed"));
        if let Some(t) = self.types.known(ty).filter(|t| t.is_number()) {
            d = d.help(format!("write `{t}(…)`"));
        } else if self.types.known(ty) == Some(ElemType::Bool) {
            d = d.help("compare it, as in `x != 0`");
        }
        self.report(d);
        None
    }

    /// Returns a value as a scalar of a class of types.
    pub(super) fn narrowed(&mut self, value: Value, class: Class, span: Span) -> Option<ExprId> {
        let e = self.scalar(value, span)?;
        if self.types.narrow(self.expr_types[e], class) {
            return Some(e);
        }
        let is = self.types.describe(self.expr_types[e]);
        let noun = class.noun();
        let article = if class == Class::Int { "an" } else { "a" };
        let message = format!("this is {is}, where {article} {noun} is needed");
        let mut d = Diagnostic::error("codelet::type_mismatch", span, message);
        let is_bool = self.types.known(self.expr_types[e]) == Some(ElemType::Bool);
        match class {
            Class::Float if !is_bool => d = d.help("write `f32(…)` or `f64(…)`"),
            Class::Int if !is_bool => d = d.help("write `i32(…)`, which drops the fraction"),
            _ => {}
        }
        self.report(d);
        None
    }

    /// Returns an index, bound or length: a value of any integer type, as `int`.
    pub(super) fn index_value(&mut self, value: Value, span: Span) -> Option<ExprId> {
        if let Value::Int(v) = value {
            return self.coerce(Value::Int(v), INT, span);
        }
        let e = self.narrowed(value, Class::Int, span)?;
        if self.ty(e) == INT {
            return Some(e);
        }
        Some(self.push(ExprKind::Convert { x: e }, INT, span))
    }

    /// Translates `base.name`: a named member, a constant of a type, a property of an array, or an item of a module.
    fn field(&mut self, node: &'a ast::Expr, base: ast::ExprId, name: &'a ast::Ident) -> Value {
        if let Some(path) = self.path_of(node) {
            return match self.item(&path, node.span) {
                Some(v) => v,
                None => self.not_called(&path, node.span),
            };
        }
        match self.expr_unloaded(base) {
            Value::Type(ty) => self.type_constant(ty, name, node.span),
            Value::View(v) => self.view_property(v, name),
            Value::Tuple(list) => match list.iter().find(|(n, _)| n.as_ref() == Some(&name.name)) {
                Some((_, v)) => v.clone(),
                None => self.no_member("this tuple", name),
            },
            Value::Error => Value::Error,
            other => self.no_member(other.noun(), name),
        }
    }

    fn path_of(&self, node: &'a ast::Expr) -> Option<smol_str::SmolStr> {
        let ast::ExprKind::Field { base, name } = &node.kind else { return None };
        let head = self.dotted(*base)?;
        Some(format!("{head}.{}", name.name).into())
    }

    /// Reports a member that does not exist.
    pub(super) fn no_member(&mut self, what: &str, name: &ast::Ident) -> Value {
        self.error("codelet::unknown_name", name.span, format!("{what} has no `{}`", name.name))
    }

    /// Translates an expression without loading an element that it names.
    pub(super) fn expr_unloaded(&mut self, e: ast::ExprId) -> Value {
        let node = &self.tree().exprs[e];
        match &node.kind {
            ast::ExprKind::Name(name) if self.binding(name).is_some() => {
                self.name(name, node.span).unwrap_or(Value::Error)
            }
            ast::ExprKind::Index { base, index } => {
                self.deeper(node.span, |s| s.indexed(*base, index, node.span)).unwrap_or(Value::Error)
            }
            ast::ExprKind::Paren(inner) => self.deeper(node.span, |s| s.expr_unloaded(*inner)).unwrap_or(Value::Error),
            _ => self.expr(e),
        }
    }
}
