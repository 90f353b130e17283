//! Calls: the callee, its arguments, and the inlining of codelet functions.
//!
//! Invariant: a function's body sees its parameters, generics and sizes and the items of its own module, never the
//! names of its caller; scalars are passed by value, arrays by reference.

use super::builder::{Builder, Early, Frame};
use super::builtins;
use super::value::{Bound, Value};
use super::{Meaning, ModuleRef};
use girder_ir::codelet::{Elementary, ExprKind, Stmt};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// An argument of a call, evaluated in the caller.
pub(super) struct Argument<'a> {
    /// The name, for a named argument.
    pub name: Option<&'a ast::Ident>,
    /// Its value.
    pub value: Value,
    /// Its span.
    pub span: Span,
}

impl<'a> Builder<'a, '_> {
    /// Translates `callee(args)`.
    pub(super) fn call(&mut self, callee: ast::ExprId, args: &'a [ast::Arg], span: Span) -> Value {
        let node = &self.tree().exprs[callee];
        match &node.kind {
            ast::ExprKind::Paren(inner) => self.deeper(span, |s| s.call(*inner, args, span)).unwrap_or(Value::Error),
            ast::ExprKind::Name(name) => self.call_name(name, args, node.span, span),
            ast::ExprKind::Field { base, name } => match self.dotted(callee) {
                Some(path) => self.call_item(&path, args, node.span, span),
                None => self.call_method(*base, name, args, span),
            },
            _ => {
                self.evaluate_all(args);
                self.error("codelet::not_callable", node.span, "this cannot be called")
            }
        }
    }

    fn call_name(&mut self, name: &SmolStr, args: &'a [ast::Arg], at: Span, span: Span) -> Value {
        if self.binding(name).is_none() && name != "int" && ElemType::from_name(name).is_none() {
            if builtins::is_builtin(name) {
                return self.builtin(name, args, span);
            }
            return self.call_item(name, args, at, span);
        }
        match self.name(name, at) {
            Some(Value::Type(ty)) => self.conversion(ty, args, span),
            Some(Value::Fn(path)) => match self.scope.function(&path) {
                Some((module, item)) => self.call_fn(module, item, args, span),
                None => self.unknown(&path, at),
            },
            Some(Value::Error) => {
                self.evaluate_all(args);
                Value::Error
            }
            _ => {
                self.evaluate_all(args);
                self.error("codelet::not_callable", at, format!("`{name}` is not a function"))
            }
        }
    }

    fn call_method(&mut self, base: ast::ExprId, name: &'a ast::Ident, args: &'a [ast::Arg], span: Span) -> Value {
        match (self.expr_unloaded(base), name.name.as_str()) {
            (Value::Type(ty), "bits") => self.bits(ty, args, span),
            (Value::Type(ty), _) => self.no_member(&format!("`{ty}`"), name),
            (Value::View(mut v), "transpose") if args.is_empty() => {
                v.order.reverse();
                Value::View(v)
            }
            (Value::Error, _) => {
                self.evaluate_all(args);
                Value::Error
            }
            (other, _) => self.no_member(other.noun(), name),
        }
    }

    /// Translates a call of an item of a module.
    fn call_item(&mut self, path: &str, args: &'a [ast::Arg], at: Span, span: Span) -> Value {
        let module = self.frame().module;
        match self.scope.lookup(module, path) {
            Some(Meaning::CodeletFn { module, item }) => self.call_fn(module, item, args, span),
            Some(Meaning::Type(ty)) => self.conversion(ty, args, span),
            Some(Meaning::Other(what)) => {
                self.evaluate_all(args);
                let message = format!("`{path}` is {what}, which a codelet cannot call");
                let d = Diagnostic::error("codelet::not_here", at, message);
                let reduces = ["sum", "product", "min", "max", "any", "all", "argmin", "argmax"];
                self.report(d.help(match path.to_string() {
                    name if reduces.contains(&name.as_str()) => {
                        format!("a codelet reduces elements with an index: `{name} i in 0..n {{ x[i] }}`")
                    }
                    _ => "call a `codelet fn`".to_string(),
                }));
                Value::Error
            }
            Some(Meaning::Int(_) | Meaning::Float(_) | Meaning::Bool(_)) => {
                self.error("codelet::not_callable", at, format!("`{path}` is not a function"))
            }
            None => {
                self.evaluate_all(args);
                self.unknown(path, at)
            }
        }
    }

    fn call_fn(&mut self, module: ModuleRef, item: &'a ast::Fn, args: &'a [ast::Arg], span: Span) -> Value {
        let exprs: Vec<_> = args.iter().map(|a| a.value).collect();
        let spans: Vec<_> = exprs.iter().map(|&e| self.tree().exprs[e].span).collect();
        let values = self.values(&exprs);
        let list = args.iter().zip(values).zip(spans);
        let list = list.map(|((a, value), span)| Argument { name: a.name.as_ref(), value, span }).collect();
        self.inline(module, item, list, span)
    }

    /// Evaluates the arguments of a callee that cannot be called, to report their errors.
    fn evaluate_all(&mut self, args: &'a [ast::Arg]) {
        args.iter().for_each(|a| drop(self.expr(a.value)));
    }

    /// Inlines a codelet function; returns the value of its body.
    pub(super) fn inline(
        &mut self,
        module: ModuleRef,
        item: &'a ast::Fn,
        args: Vec<Argument<'a>>,
        span: Span,
    ) -> Value {
        // One closure's text is a function for each set of captured values, each in a module of its own.
        let is_same = |f: &Frame<'a>| f.module == module && f.item.is_some_and(|i| std::ptr::eq(i, item));
        if self.frames.iter().any(is_same) {
            let message = format!("`{}` calls itself", item.name.dotted());
            let d = Diagnostic::error("codelet::recursion", span, message);
            let between = self.frames.iter().skip_while(|f| !is_same(f)).skip(1).filter_map(|f| f.item);
            let between: Vec<String> = between.map(|f| format!("`{}`", f.name.dotted())).collect();
            self.report(d.help(match between.is_empty() {
                true => "write the recursion as a loop".to_string(),
                false => format!("it does so through {}; write the recursion as a loop", between.join(" and ")),
            }));
            return Value::Error;
        }
        if args.iter().any(|a| matches!(a.value, Value::Error)) {
            return Value::Error;
        }
        let Some((slots, named)) = self.slots(item, args, span) else { return Value::Error };
        let frame = Frame {
            module,
            tree: self.scope.tree(module),
            item: Some(item),
            call: span,
            names: vec![],
            loops: vec![],
            region: self.region,
            early: None,
            last: None,
        };
        let inlined = self.deeper(span, |s| {
            s.frames.push(frame);
            let value = if !s.generics(item, &slots, named) || !s.parameters(item, slots) {
                Value::Error
            } else if s.scope.stays_apart(module, item) {
                s.body_apart(module, item, span)
            } else {
                let elementary = s.elementary(module, item);
                let value = s.function_body(item);
                s.noted(elementary, value, span)
            };
            s.frames.pop();
            value
        });
        inlined.unwrap_or(Value::Error)
    }

    /// Returns the elementary function that is called, and its argument.
    fn elementary(&mut self, module: ModuleRef, item: &'a ast::Fn) -> Option<(Elementary, ExprId)> {
        let function = self.scope.elementary(module, item)?;
        match self.binding(&item.params.first()?.name.name)?.value {
            Value::Scalar(x) => Some((function, self.again(x))),
            _ => None,
        }
    }

    /// Moves the value of an elementary function into a local that records the function.
    fn noted(&mut self, elementary: Option<(Elementary, ExprId)>, value: Value, span: Span) -> Value {
        let (Some(elementary), Value::Scalar(e)) = (elementary, &value) else { return value };
        let (value, ty) = (*e, self.expr_types[*e]);
        let local = self.local("", ty, false, span);
        self.emit(Stmt::Set { local, value });
        self.out.elementary[local] = Some(elementary);
        Value::Scalar(self.read_local(local, span))
    }

    /// Assigns arguments to parameters; also returns the arguments that name a generic.
    #[allow(clippy::type_complexity)]
    fn slots(
        &mut self,
        item: &'a ast::Fn,
        args: Vec<Argument<'a>>,
        span: Span,
    ) -> Option<(Vec<Option<Argument<'a>>>, Vec<Argument<'a>>)> {
        let mut slots: Vec<Option<Argument<'a>>> = item.params.iter().map(|_| None).collect();
        let (mut named, mut next, mut wrong) = (vec![], 0, false);
        let f = item.name.dotted();
        for a in args {
            let slot = match a.name {
                None => {
                    next += 1;
                    Some(next - 1)
                }
                Some(n) if item.generics.iter().any(|g| g.name.name == n.name) => {
                    named.push(a);
                    continue;
                }
                Some(n) => item.params.iter().position(|p| p.name.name == n.name),
            };
            let at = a.name.map_or(a.span, |n| n.span);
            let message = match slot.and_then(|i| slots.get_mut(i)) {
                Some(slot @ None) => {
                    *slot = Some(a);
                    continue;
                }
                Some(Some(_)) => format!("this argument of `{f}` is given twice"),
                None => match a.name {
                    Some(n) => format!("`{f}` has no parameter `{}`", n.name),
                    None => format!("`{f}` has {} parameters, and this is one argument more", item.params.len()),
                },
            };
            let d = Diagnostic::error("codelet::argument", at, message);
            self.report(d.label(item.name.span, "declared here"));
            wrong = true;
        }
        for (p, slot) in item.params.iter().zip(&slots) {
            if slot.is_none() && p.default.is_none() {
                let message = format!("the argument `{}` of `{f}` is missing", p.name.name);
                self.report(Diagnostic::error("codelet::argument", span, message).label(p.span, "declared here"));
                wrong = true;
            }
        }
        (!wrong).then_some((slots, named))
    }

    fn parameters(&mut self, item: &'a ast::Fn, slots: Vec<Option<Argument<'a>>>) -> bool {
        let mut right = true;
        for (p, slot) in item.params.iter().zip(slots) {
            let (value, span) = match (slot, p.default) {
                (Some(a), _) => (a.value, a.span),
                (None, Some(e)) => (self.expr(e), self.tree().exprs[e].span),
                (None, None) => (Value::Error, p.span),
            };
            let mut value = value;
            // A value is kept before its lengths are bound to names, so that it is evaluated once.
            self.keep(&mut value, &p.name.name);
            let value = match &p.ty {
                Some(ty) => self.typed(value, ty, span),
                None => value,
            };
            right &= !matches!(value, Value::Error | Value::Never);
            self.bind_kept(&p.name, value, Bound::Param);
        }
        for g in &item.generics {
            if self.binding(&g.name.name).is_none() {
                let call = self.frame().call;
                let message = format!("the size `{}` cannot be inferred", g.name.name);
                let d = Diagnostic::error("codelet::generic", call, message).label(g.name.span, "declared here");
                self.report(d.help(format!("pass it by name: `{}: 4`", g.name.name)));
                right = false;
            }
        }
        right
    }

    pub(super) fn function_body(&mut self, item: &'a ast::Fn) -> Value {
        let (value, mut block) = self.block(|s| {
            let mut value = s.statements(&item.body, true);
            if let (Value::Never, Some(last)) = (&value, s.frame().last.take()) {
                value = last;
            } else if !matches!(value, Value::Never) {
                let at = item.body.value.map_or(item.name.span, |e| s.tree().exprs[e].span);
                value = s.result(item, value, at);
            }
            if s.frame().early.is_some() && !matches!(value, Value::Never) {
                s.leave(value, item.name.span);
                value = Value::Never;
            }
            value
        });
        let Some(early) = self.frame().early.take() else {
            self.append(block);
            return value;
        };
        // A jump to the end of its own block has no effect.
        let mut jumps = early.jumps;
        if matches!(block.last(), Some(Stmt::Break(l)) if *l == early.label) {
            block.pop();
            jumps -= 1;
        }
        if jumps == 0 {
            self.append(block);
        } else {
            self.emit(Stmt::Labelled { label: early.label, body: block });
        }
        self.held(early.value, item.name.span)
    }

    /// Converts the value of a function to the type that its declaration states.
    fn result(&mut self, item: &'a ast::Fn, value: Value, at: Span) -> Value {
        match (&item.result, value) {
            (Some(_), Value::Unit) => {
                let message = format!("`{}` gives no value at its end", item.name.dotted());
                let d = Diagnostic::error("codelet::missing_value", item.name.span, message);
                self.report(d.help("end its body with an expression without a semicolon, or with `return`"));
                Value::Error
            }
            (Some(ty), value) => self.typed(value, ty, at),
            (None, value) => value,
        }
    }

    /// Translates `return value` in a function.
    pub(super) fn return_value(&mut self, stmt: &'a ast::Stmt, value: Value, at: Span) {
        let Some(item) = self.frame().item else { return };
        let value = self.result(item, value, at);
        let tree = self.tree();
        if item.body.stmts.iter().any(|&s| std::ptr::eq(&tree.stmts[s], stmt)) {
            self.frame().last = Some(value);
        } else {
            self.leave(value, stmt.span);
        }
    }

    /// Assigns the result of the function and jumps to its end.
    fn leave(&mut self, value: Value, span: Span) {
        if self.frame().early.is_none() {
            let label = self.label();
            let value = self.holder(&value, span);
            self.frame().early = Some(Early { label, value, jumps: 0 });
        }
        let Some(early) = &mut self.frame().early else { return };
        early.jumps += 1;
        let (label, holder) = (early.label, early.value.clone());
        self.hold(&holder, value, span);
        self.emit(Stmt::Break(label));
    }

    /// Creates the locals for a value that several statements set.
    pub(super) fn holder(&mut self, value: &Value, span: Span) -> Value {
        match value {
            Value::Tuple(list) => Value::Tuple(list.iter().map(|(n, v)| (n.clone(), self.holder(v, span))).collect()),
            Value::Unit => Value::Unit,
            Value::Error | Value::Never => Value::Error,
            other => match self.scalar(other.clone(), span) {
                Some(e) => {
                    let local = self.local("", self.expr_types[e], false, span);
                    Value::Scalar(self.read_local(local, span))
                }
                None => Value::Error,
            },
        }
    }

    pub(super) fn hold(&mut self, holder: &Value, value: Value, span: Span) {
        match (holder, value) {
            (Value::Tuple(to), Value::Tuple(from)) if to.len() == from.len() => {
                if !self.are_named(to.iter().map(|m| m.0.as_ref()), from.iter().map(|m| m.0.as_ref()), span) {
                    return;
                }
                for ((_, h), (_, v)) in to.iter().zip(from) {
                    self.hold(h, v, span);
                }
            }
            (Value::Scalar(h), v) => {
                let ExprKind::Local(local) = self.out.exprs[*h].kind else { return };
                if let Some(value) = self.coerce(v, self.local_types[local], span) {
                    self.emit(Stmt::Set { local, value });
                }
            }
            (Value::Unit, Value::Unit) | (Value::Error, _) | (_, Value::Error | Value::Never) => {}
            _ => {
                self.error("codelet::type_mismatch", span, "the `return`s of this function differ in shape");
            }
        }
    }

    /// Returns an expression that reads the locals of a [`Builder::holder`].
    pub(super) fn held(&mut self, holder: Value, span: Span) -> Value {
        match holder {
            Value::Scalar(h) => {
                let again = self.again(h);
                self.out.exprs[again].span = span;
                Value::Scalar(again)
            }
            Value::Tuple(list) => Value::Tuple(list.into_iter().map(|(n, v)| (n, self.held(v, span))).collect()),
            other => other,
        }
    }
}
