//! Statements: declarations, assignments, `return`, and errors for statements that are invalid in a codelet.
//!
//! Invariant: only `let mut` scalars, `let mut` arrays, and `out` and `inout` fields are ever written, and a reduction
//! writes nothing declared outside it.

use super::builder::Builder;
use super::types::Ty;
use super::value::{Bound, Value, View};
use girder_ir::codelet::{ExprKind, Stmt, Storage};
use girder_ir::ids::LocalId;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// The target of an assignment.
enum Target {
    Local(LocalId, SmolStr),
    Element(View),
    Members(Vec<(Option<SmolStr>, Target, Span)>),
    Error,
}

impl<'a> Builder<'a, '_> {
    /// Translates one statement. Its value is [`Value::Never`] if the following statements are unreachable.
    pub(super) fn statement(&mut self, stmt: &'a ast::Stmt) -> Value {
        use ast::StmtKind as K;
        self.attributes(&stmt.attrs);
        match &stmt.kind {
            K::Decl(ast::Decl::Let(l)) => self.let_statement(l),
            K::Expr { expr, .. } => return self.statement_expr(*expr),
            K::Assign { op, target, value } => self.assign(*op, *target, *value, stmt.span),
            K::For { binders, body } => self.for_statement(binders, body, stmt.span),
            K::While { cond, body } => self.while_statement(*cond, body, stmt.span),
            K::Return(value) => return self.return_statement(*value, stmt),
            K::Break => return self.jump(stmt.span, "break", |l| Stmt::Break(l.exit)),
            K::Continue => return self.jump(stmt.span, "continue", |l| Stmt::Continue(l.next)),
            K::Repeat { .. } => self.misplaced("`repeat`", "write `for` or `while`", stmt.span),
            K::Decl(ast::Decl::Var(_)) => self.misplaced(
                "a variable",
                "a local is `let mut x = 0.0;`, and a local array `let mut t = [0.0; 16];`",
                stmt.span,
            ),
            K::Decl(ast::Decl::Map { .. })
            | K::Compute { .. }
            | K::Copy { .. }
            | K::Par(_)
            | K::Call { .. }
            | K::Execute(_)
            | K::Exchange(_) => {
                let help = "a codelet runs inside one tile; write this in an `fn` or `program`";
                self.misplaced("this statement", help, stmt.span)
            }
            K::Error => self.fail_silently(),
        }
        Value::Unit
    }

    fn misplaced(&mut self, what: &str, help: &str, span: Span) {
        self.not_here(span, &format!("{what} is not allowed in a codelet"), help);
    }

    /// Checks the attributes of a statement: only `#[at(…)]`, which names its origin, is known.
    pub(super) fn attributes(&mut self, attrs: &'a [ast::Attr]) {
        for a in attrs.iter().filter(|a| a.name.name != "at") {
            self.unknown_attribute(a, "a statement of a codelet");
        }
    }

    /// Warns of an unknown attribute.
    pub(super) fn unknown_attribute(&mut self, attr: &ast::Attr, what: &str) {
        let message = format!("`{}` is not an attribute of {what}", attr.name.name);
        self.report(Diagnostic::warning("codelet::unknown_attribute", attr.name.span, message).help("remove it"));
    }

    fn let_statement(&mut self, l: &'a ast::Let) {
        let span = self.tree().exprs[l.value].span;
        let mut value = self.expr(l.value);
        if let Some(ty) = &l.ty {
            value = self.typed(value, ty, span);
        }
        self.bind_pattern(&l.pattern, value, l.mutable);
    }

    fn bind_pattern(&mut self, pattern: &'a ast::Pattern, mut value: Value, mutable: bool) {
        match (pattern, value) {
            (ast::Pattern::Wildcard(_), v) => {
                self.keep(&mut { v }, "");
            }
            (ast::Pattern::Name(name), v) => {
                value = v;
                if mutable {
                    value = self.variable(value, name);
                } else {
                    self.name_array(&value, name, false);
                    self.keep(&mut value, &name.name);
                }
                self.bind(name, value, if mutable { Bound::LetMut } else { Bound::Let });
            }
            (ast::Pattern::Tuple(parts, _), Value::Tuple(list)) if parts.len() == list.len() => {
                for (p, (_, v)) in parts.iter().zip(list) {
                    self.bind_pattern(p, v, mutable);
                }
            }
            (ast::Pattern::Tuple(parts, at), v) => {
                if !matches!(v, Value::Error | Value::Never) {
                    let message = format!("{} cannot be taken apart into {} names", v.noun(), parts.len());
                    self.error("codelet::type_mismatch", *at, message);
                }
                parts.iter().for_each(|p| self.bind_pattern(p, Value::Error, mutable));
            }
        }
    }

    /// Translates `let mut`: its scalars become locals that may be assigned.
    fn variable(&mut self, value: Value, name: &ast::Ident) -> Value {
        match value {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Scalar(_) => {
                let Some(e) = self.scalar(value, name.span) else { return Value::Error };
                let local = self.local(name.name.clone(), self.expr_types[e], true, name.span);
                self.emit(Stmt::Set { local, value: e });
                Value::Scalar(self.read_local(local, name.span))
            }
            Value::Tuple(list) => Value::Tuple(list.into_iter().map(|(n, v)| (n, self.variable(v, name))).collect()),
            Value::View(_) => {
                let mut value = value;
                self.name_array(&value, name, true);
                self.keep(&mut value, "");
                value
            }
            Value::Unit | Value::Type(_) | Value::Fn(_) | Value::Str(_) | Value::Range(_) => {
                let message = format!("{} cannot be assigned", value.noun());
                let d = Diagnostic::error("codelet::type_mismatch", name.span, message);
                self.report(d.help("write `let` without `mut`"));
                Value::Error
            }
            Value::Error | Value::Never => Value::Error,
        }
    }

    /// Gives an array that this `let` created the declared name.
    fn name_array(&mut self, value: &Value, name: &ast::Ident, mutable: bool) {
        if let Value::View(View { base: Storage::Local(l), .. }) = value
            && self.out.locals[*l].name.is_empty()
        {
            self.out.locals[*l].name = name.name.clone();
            self.local_info[*l].mutable = mutable;
            self.local_info[*l].span = name.span;
        }
    }

    fn assign(&mut self, op: ast::AssignOp, target: ast::ExprId, value: ast::ExprId, span: Span) {
        let (at, from) = (self.tree().exprs[target].span, self.tree().exprs[value].span);
        let arithmetic = match op {
            ast::AssignOp::Write => {
                self.not_here(span, "`<-` writes tensors, outside codelets", "write `=`");
                return;
            }
            ast::AssignOp::Set => None,
            ast::AssignOp::With(op) => Some(op),
        };
        let mut target = self.target(target);
        let old = match arithmetic {
            Some(_) => self.old_value(&mut target, at),
            None => Value::Unit,
        };
        let mark = self.mark();
        let mut new = self.expr(value);
        let mut before = [old];
        self.keep_before(mark, &mut before);
        if self.mark() > mark {
            self.keep_target(&mut target, mark);
        }
        let [old] = before;
        if let Some(op) = arithmetic {
            new = self.operate(op, old, new, [at, from], span);
        }
        self.store(target, new, from);
    }

    /// Translates the target of an assignment.
    fn target(&mut self, e: ast::ExprId) -> Target {
        let node = &self.tree().exprs[e];
        if let ast::ExprKind::Tuple(args) = &node.kind {
            let members = args.iter().map(|a| {
                let span = self.tree().exprs[a.value].span;
                (None, self.target(a.value), span)
            });
            return Target::Members(members.collect());
        }
        if let ast::ExprKind::Name(name) = &node.kind {
            return self.named_target(name, node.span);
        }
        match self.expr_unloaded(e) {
            Value::View(v) => self.element_target(v, node.span),
            Value::Error => Target::Error,
            _ => {
                self.error("codelet::type_mismatch", node.span, "only a name or an element can be assigned");
                Target::Error
            }
        }
    }

    fn named_target(&mut self, name: &str, span: Span) -> Target {
        let Some(b) = self.binding(name).cloned() else {
            if self.name(name, span).is_some_and(|v| matches!(v, Value::Error)) {
                return Target::Error;
            }
            self.error("codelet::immutable", span, format!("`{name}` cannot be assigned in a codelet"));
            return Target::Error;
        };
        match b.value {
            Value::Error => Target::Error,
            Value::View(v) => self.element_target(v, span),
            v if b.bound == Bound::LetMut => {
                if b.region < self.region {
                    self.write_in_reduction(name, span);
                    return Target::Error;
                }
                self.local_target(v, &b.name, span)
            }
            _ => {
                self.immutable(name, b.bound, b.span, span);
                Target::Error
            }
        }
    }

    fn local_target(&mut self, v: Value, name: &SmolStr, span: Span) -> Target {
        match v {
            Value::Scalar(e) => match self.out.exprs[e].kind {
                ExprKind::Local(l) => Target::Local(l, name.clone()),
                _ => Target::Error,
            },
            Value::Tuple(list) => {
                let members = list.into_iter().map(|(member, v)| (member, self.local_target(v, name, span), span));
                Target::Members(members.collect())
            }
            Value::View(v) => self.element_target(v, span),
            _ => Target::Error,
        }
    }

    fn immutable(&mut self, name: &str, bound: Bound, declared: Span, span: Span) {
        let message = match bound {
            Bound::Field => format!("`const` field `{name}` cannot be written"),
            _ => format!("{} `{name}` cannot be assigned", bound.noun()),
        };
        let code = if bound == Bound::Field { "codelet::write_to_in" } else { "codelet::immutable" };
        let mut d = Diagnostic::error(code, span, message).here("assigned here").label(declared, "declared here");
        d = match bound {
            Bound::Let => d.help(format!("write `let mut {name}`")),
            Bound::Param => d.help(format!("assign to a variable of its own: `let mut value = {name};`")),
            _ => d,
        };
        self.report(d);
    }

    /// Reports an assignment inside a reduction to a variable declared outside it.
    pub(super) fn write_in_reduction(&mut self, name: &str, span: Span) {
        let message = format!("a reduction cannot write `{name}`, which is declared outside it");
        let d = Diagnostic::error("codelet::not_here", span, message);
        self.report(d.help("write the loop as `for`"));
    }

    fn element_target(&mut self, v: View, span: Span) -> Target {
        if v.rank() > 0 {
            let message = format!("a whole array of rank {} cannot be assigned", v.rank());
            let d = Diagnostic::error("codelet::rank_mismatch", span, message);
            self.report(d.help("assign its elements in a `for`"));
            return Target::Error;
        }
        if !self.writable(v.base, span) {
            return Target::Error;
        }
        Target::Element(v)
    }

    /// Returns the old value of the target of a compound assignment.
    fn old_value(&mut self, target: &mut Target, span: Span) -> Value {
        match target {
            Target::Local(l, _) => Value::Scalar(self.read_local(*l, span)),
            Target::Element(v) => {
                let mut kept = Value::View(v.clone());
                self.keep(&mut kept, "");
                if let Value::View(k) = kept {
                    *v = k;
                }
                let again = v.clone();
                self.loaded(Value::View(again), span)
            }
            Target::Members(_) => self.error("codelet::type_mismatch", span, "a tuple has no arithmetic"),
            Target::Error => Value::Error,
        }
    }

    /// Evaluates the indices of a target before the value, whose statements start at `mark`.
    fn keep_target(&mut self, target: &mut Target, mark: usize) {
        match target {
            Target::Element(v) => {
                let mut values = [Value::View(v.clone())];
                self.keep_before(mark, &mut values);
                if let [Value::View(k)] = values {
                    *v = k;
                }
            }
            Target::Members(list) => {
                let statements = self.mark();
                for (_, t, _) in list {
                    self.keep_target(t, mark + (self.mark() - statements));
                }
            }
            Target::Local(..) | Target::Error => {}
        }
    }

    fn store(&mut self, target: Target, value: Value, span: Span) {
        match target {
            Target::Local(local, name) => {
                let ty = self.local_types[local];
                if let Some(value) = self.assigned(value, ty, &name, self.local_info[local].span, span) {
                    self.emit(Stmt::Set { local, value });
                }
            }
            Target::Element(v) => self.store_element(v, value, span),
            Target::Members(list) => self.store_members(list, value, span),
            Target::Error => {}
        }
    }

    fn store_members(&mut self, list: Vec<(Option<SmolStr>, Target, Span)>, mut value: Value, span: Span) {
        // All values are evaluated before the first is assigned: `(a, b) = (b, a)` swaps.
        self.keep(&mut value, "");
        match value {
            Value::Tuple(values) if values.len() == list.len() => {
                if !self.are_named(list.iter().map(|m| m.0.as_ref()), values.iter().map(|m| m.0.as_ref()), span) {
                    return;
                }
                for ((_, t, _), (_, v)) in list.into_iter().zip(values) {
                    self.store(t, v, span);
                }
            }
            Value::Error | Value::Never => {}
            other => {
                let message = format!("{} cannot be assigned to {} targets", other.noun(), list.len());
                self.error("codelet::type_mismatch", span, message);
            }
        }
    }

    /// Converts a value to the type of a declared variable or field.
    pub(super) fn assigned(
        &mut self,
        value: Value,
        ty: Ty,
        name: &str,
        declared: Span,
        span: Span,
    ) -> Option<girder_ir::ids::ExprId> {
        let e = self.scalar(value, span)?;
        if self.types.unify(self.expr_types[e], ty) {
            return Some(e);
        }
        let (is, needs) = (self.types.describe(self.expr_types[e]), self.types.describe(ty));
        let mut d = Diagnostic::error("codelet::type_mismatch", span, format!("this is {is}, but `{name}` is {needs}"))
            .label(declared, format!("`{name}` is declared here"));
        if let Some(t) = self.types.known(ty).filter(|t| t.is_number()) {
            d = d.help(format!("write `{t}(…)`"));
        }
        self.report(d);
        None
    }

    fn return_statement(&mut self, value: Option<ast::ExprId>, stmt: &'a ast::Stmt) -> Value {
        let in_function = self.frame().item.is_some();
        if self.frame().region < self.region {
            self.not_here(stmt.span, "`return` cannot leave a reduction", "write the loop as `for`");
            return Value::Never;
        }
        if in_function {
            let at = value.map_or(stmt.span, |e| self.tree().exprs[e].span);
            let v = value.map_or(Value::Unit, |e| self.expr(e));
            self.return_value(stmt, v, at);
        } else if let Some(e) = value {
            let at = self.tree().exprs[e].span;
            self.expr(e);
            let d = Diagnostic::error("codelet::type_mismatch", at, "a codelet has no value to return");
            self.report(d.help("write it to an `out` field"));
        } else {
            self.emit(Stmt::Return);
        }
        Value::Never
    }

    fn jump(&mut self, span: Span, word: &str, stmt: impl FnOnce(&super::builder::Loop) -> Stmt) -> Value {
        let region = self.region;
        match self.frame().loops.last().copied() {
            Some(l) if l.region == region => self.emit(stmt(&l)),
            Some(_) => {
                self.not_here(span, &format!("`{word}` cannot leave a reduction"), "write the loop as `for`");
            }
            None => {
                self.not_here(span, &format!("there is no loop around this `{word}`"), "remove it");
            }
        }
        Value::Never
    }
}
