//! Calls: of graph functions, whose bodies are elaborated at each call; of codelet functions, applied element by
//! element; of types (conversions) and built-ins.
//!
//! Invariant: a call sees only the names of its own module and its parameters; the nesting limit bounds recursion.

use crate::binding::{Misplaced, bind, takes};
use crate::elaborator::Elaborator;
use crate::memo_table::Callee;
use crate::references::{ItemId, References, cycle_text};
use crate::statements::Flow;
use crate::types::Sizes;
use crate::value::{Given, Value};
use girder_source::{Diagnostic, Origin, Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind, ItemKind};
use girder_typing::ModuleRef;
use smol_str::{SmolStr, format_smolstr};

/// Returns the path by which the text names a function, without indices.
fn callee_name(tree: &ast::Module, callee: ExprId) -> Option<SmolStr> {
    match &tree.exprs[callee].kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Index { base, .. } => callee_name(tree, *base),
        ExprKind::Field { base, name } => Some(format_smolstr!("{}.{}", callee_name(tree, *base)?, name.name)),
        _ => None,
    }
}

impl Elaborator<'_> {
    /// Evaluates `callee(args)`.
    pub fn call(&mut self, callee: ExprId, args: &[ast::Arg], span: Span) -> Result<Value> {
        let tree = self.tree();
        let called = callee_name(tree, callee);
        if let ExprKind::Field { base, name } = &tree.exprs[callee].kind {
            let is_path = crate::trees::dotted(tree, callee).is_some_and(|p| self.names_value(&p));
            if !is_path {
                if self.is_target(*base) {
                    let given = self.given(args)?;
                    return self.target_rate(name, given, span);
                }
                let base = self.expr(*base)?;
                if let Value::Module(_) = base {
                    let callee = self.member(base, name, tree.exprs[callee].span)?;
                    return self.call_value(callee, args, called, span);
                }
                let given = self.given(args)?;
                self.called = called;
                return self.method(base, name, given, span);
            }
        }
        let built_in = match &tree.exprs[callee].kind {
            ExprKind::Name(name) if self.is_data(name) => self.builtin_name(name),
            _ => None,
        };
        let callee = match built_in {
            Some(value) => value,
            None => self.expr(callee)?,
        };
        match callee {
            // Its first argument is a codelet, which is no value.
            Value::Builtin("cycles") => self.cycles(args, span),
            callee => self.call_value(callee, args, called, span),
        }
    }

    /// Returns whether a name is a variable's or a stream's: these cannot be called, so they do not hide built-in
    /// functions.
    pub fn is_data(&self, name: &SmolStr) -> bool {
        if let Some(local) = self.scopes.local(name) {
            return matches!(local.value, Value::Tensor(_) | Value::Stream(_) | Value::Row(..));
        }
        if let Some(Value::Builtin(_) | Value::Fn(..) | Value::Closure(_)) = self.scopes.resolved(name) {
            return false;
        }
        let found = self.modules.find(self.module(), name, |m| &m.values);
        let item = found.and_then(|(m, e)| self.modules.item(m, e));
        matches!(item, Some((_, _, ast::Item { kind: ItemKind::Decl(ast::Decl::Var(_)) | ItemKind::Stream(_), .. })))
    }

    /// Returns whether a dotted path names an item, as opposed to a method of a value.
    pub fn names_value(&self, path: &str) -> bool {
        let first = path.split('.').next().unwrap_or_default();
        self.scopes.local(first).is_none() && self.modules.find(self.module(), path, |m| &m.values).is_some()
    }

    fn call_value(&mut self, callee: Value, args: &[ast::Arg], called: Option<SmolStr>, span: Span) -> Result<Value> {
        let given = match callee {
            Value::Type(_) => self.given_elements(args)?,
            Value::Fn(module, item) if self.is_codelet_fn(module, item) => self.given_elements(args)?,
            _ => self.given(args)?,
        };
        self.called = called;
        self.call_given(callee, given, span)
    }

    fn is_codelet_fn(&self, module: ModuleRef, item: usize) -> bool {
        matches!(&self.modules.get(module).tree.items[item].kind, ItemKind::Fn(f) if f.codelet)
    }

    /// Calls a value with arguments.
    pub fn call_given(&mut self, callee: Value, given: Vec<Given>, span: Span) -> Result<Value> {
        match callee {
            Value::Fn(module, item) => self.call_fn(module, item, given, span),
            Value::Closure(closure) => self.call_closure(&closure, given, span),
            Value::Builtin(name) => self.call_builtin(name, given, span),
            Value::Type(ty) => self.convert(ty, given, span),
            other => Err(self.expected("a function", &other, span)),
        }
    }

    /// Evaluates arguments, left to right.
    pub fn given(&mut self, args: &[ast::Arg]) -> Result<Vec<Given>> {
        let tree = self.tree();
        let mut out = Vec::with_capacity(args.len());
        for a in args {
            let name = a.name.as_ref().map_or(SmolStr::default(), |n| n.name.clone());
            out.push(Given { name, value: self.expr(a.value)?, span: tree.exprs[a.value].span });
        }
        Ok(out)
    }

    /// Calls a function of a module. The value of a call that depends on static arguments only is remembered.
    pub fn call_fn(&mut self, module: ModuleRef, item: usize, given: Vec<Given>, span: Span) -> Result<Value> {
        let ItemKind::Fn(f) = &self.modules.get(module).tree.items[item].kind else {
            return Err(girder_source::Failed);
        };
        if f.codelet {
            return self.apply_each((module, item), f, given, span);
        }
        if self.is_taping()
            && let Some(value) = self.call_at_index((module, item), f, &given, span)
        {
            return value;
        }
        let key = self.static_call(Callee::Item((module, item)), &given);
        self.memoized(key, |this| this.enter_call((module, Some(item)), f, &[], given, span))
    }

    /// Calls a function of a module. One that is no item is a closure, which sees the names that it captured.
    pub fn enter_call(
        &mut self,
        (module, item): (ModuleRef, Option<usize>),
        f: &ast::Fn,
        captured: &[(SmolStr, Value)],
        given: Vec<Given>,
        span: Span,
    ) -> Result<Value> {
        let id: Option<ItemId> = item.map(|item| (module, item));
        let limit = self.session.limits.nesting as usize;
        if self.functions.len() >= limit {
            let name = f.name.dotted();
            let message = format!("calls nest more than {limit} deep in `{name}`");
            let is_recursive = id.is_some() && self.functions.iter().filter(|c| **c == id).count() > 1;
            let cycle = id.and_then(|id| References::new(self.modules, &[id]).cycle(id));
            let help = match cycle.filter(|_| is_recursive) {
                Some(names) if names.len() > 2 => {
                    format!("{}: recursion must end at a static condition", cycle_text(&names, "calls"))
                }
                _ if is_recursive => "the function calls itself: recursion must end at a static condition".into(),
                _ => "`--limit nesting=N` allows more".into(),
            };
            return Err(self.error_help("elaborate::too_deep", span, message, help));
        }
        self.functions.push(id);
        self.reporter.enter_call(span);
        let value = self.enter_fn(module, f, captured, given, span);
        self.reporter.leave_call();
        self.functions.pop();
        value
    }

    fn enter_fn(
        &mut self,
        module: ModuleRef,
        f: &ast::Fn,
        captured: &[(SmolStr, Value)],
        given: Vec<Given>,
        span: Span,
    ) -> Result<Value> {
        // A closure has no name of its own.
        let called = self.called.take().filter(|_| self.functions.last() == Some(&None));
        let name = called.unwrap_or_else(|| f.name.parts.last().map(|p| p.name.clone()).unwrap_or_default());
        let outer = self.emission.origin();
        self.scopes.enter(module);
        self.scopes.define_captured(captured, self.emission.run_time_depth());
        // Errors about the arguments belong to the call, and are reported without "in this call".
        let call = self.reporter.leave_call();
        let bound = self.bind_params(f, given, span);
        call.into_iter().for_each(|span| self.reporter.enter_call(span));
        let value = bound.and_then(|mut sizes| {
            let origin = self.graph.origins.add(span, outer, name.clone());
            self.takes(size_of::<Origin>() as u64);
            self.emission.replace_origin(Some(origin));
            // A call of one library function by another adds nothing to the names of what it makes.
            let is_inner = span.in_library() && f.name.span.in_library();
            if !is_inner {
                self.emission.enter_path(name);
            }
            let rule = self.rule_here().filter(|_| self.is_taping());
            let run = match rule {
                Some(rule) => self.body_with_rule(rule, f, span),
                None => self.body(&f.body),
            };
            if !is_inner {
                self.emission.leave_path();
            }
            let value = match run? {
                (value, Flow::Next) => value,
                (_, Flow::Return(value, _)) => value,
                (_, Flow::Break(at)) => return Err(self.no_loop("break", at)),
                (_, Flow::Continue(at)) => return Err(self.no_loop("continue", at)),
            };
            match &f.result {
                Some(ty) => self.fit(value, ty, &mut sizes, f.body.span),
                None => Ok(value),
            }
        });
        self.emission.replace_origin(outer);
        self.scopes.leave();
        value
    }

    /// Matches arguments to parameters and defines both the parameters and the sizes they bind.
    fn bind_params(&mut self, f: &ast::Fn, given: Vec<Given>, span: Span) -> Result<Sizes> {
        let mut sizes = Sizes::default();
        for g in &f.generics {
            let class = match &g.bound {
                Some(ast::Type { kind: ast::TypeKind::Name { name, .. }, .. }) => name.dotted(),
                _ => "element".into(),
            };
            sizes.generics.push((g.name.name.clone(), class));
        }
        let parameter = |name: &str| f.params.iter().position(|p| p.name.name == name);
        // Generics and sizes are static parameters that may also be passed by name.
        let module = self.modules.get(self.module());
        let is_size = |g: &Given| {
            let is_generic = || sizes.generics.iter().any(|(n, _)| *n == g.name);
            !g.name.is_empty() && (is_generic() || parameter(&g.name).is_none() && mentions(f, &g.name, module))
        };
        let (sized, given): (Vec<Given>, Vec<Given>) = given.into_iter().partition(is_size);
        sizes.bound.extend(sized.into_iter().map(|g| (g.name, g.value)));
        let slots = bind(given, f.params.len(), parameter).map_err(|(g, why)| self.misplaced(f, &g, why))?;
        for (p, slot) in f.params.iter().zip(slots) {
            let (value, at) = match (slot, p.default) {
                (Some(g), _) => (g.value, g.span),
                (None, Some(d)) => {
                    let value = self.with_sizes(&sizes.clone(), |this| this.expr(d))?;
                    (value, self.tree().exprs[d].span)
                }
                (None, None) => {
                    let message = format!("`{}` needs an argument for `{}`", f.name.dotted(), p.name.name);
                    let d = Diagnostic::error("elaborate::arguments", span, message);
                    return Err(self.report(d.label(p.span, "declared here")));
                }
            };
            sizes.parameter = Some(p.span);
            let value = match &p.ty {
                Some(ty) => self.fit(value, ty, &mut sizes, at)?,
                None => value,
            };
            self.define(p.name.name.clone(), value, false);
        }
        sizes.parameter = None;
        for (name, value) in sizes.bound.clone() {
            // A parameter of the same name takes precedence.
            if !f.params.iter().any(|p| p.name.name == name) {
                self.define(name, value, false);
            }
        }
        Ok(sizes)
    }

    /// Reports an argument of a function that has no parameter.
    pub fn misplaced(&mut self, f: &ast::Fn, g: &Given, why: Misplaced) -> girder_source::Failed {
        match why {
            Misplaced::Unknown => self.no_parameter(f, g),
            Misplaced::Twice(k) => {
                let message = format!("`{}` is given twice", f.params[k].name.name);
                self.error("elaborate::arguments", g.span, message)
            }
            Misplaced::TooMany => {
                let message = takes(&f.name.dotted(), f.params.len());
                let d = Diagnostic::error("elaborate::arguments", g.span, message);
                self.report(d.label(f.name.span, "declared here"))
            }
        }
    }

    fn no_parameter(&mut self, f: &ast::Fn, g: &Given) -> girder_source::Failed {
        let names = || f.params.iter().map(|p| p.name.name.as_str());
        let foreign = crate::foreign::parameter(&g.name).filter(|here| names().any(|name| name == *here));
        let near = foreign.or_else(|| girder_source::closest(&g.name, names()));
        let d = Diagnostic::error(
            "elaborate::arguments",
            g.span,
            format!("`{}` has no parameter `{}`", f.name.dotted(), g.name),
        );
        let d = d.label(f.name.span, "declared here");
        let all = || names().collect::<Vec<_>>().join(", ");
        self.report(match near {
            Some(n) => d.help(format!("did you mean `{n}`?")),
            None if f.params.is_empty() => d,
            None => d.help(format!("it takes {}", all())),
        })
    }

    /// Returns the arguments of a built-in in the order of its parameters. A `?` at the end of a name makes it
    /// optional.
    pub fn arguments<const N: usize>(
        &mut self,
        of: &str,
        names: [&str; N],
        given: Vec<Given>,
        span: Span,
    ) -> Result<[Option<Given>; N]> {
        let position = |name: &str| names.iter().position(|n| n.trim_end_matches('?') == name);
        let slots = bind(given, N, position).map_err(|(g, why)| match why {
            Misplaced::Unknown => {
                let message = format!("`{of}` has no parameter `{}`", g.name);
                let known = names.map(|n| n.trim_end_matches('?'));
                let help = match girder_source::closest(&g.name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it takes {}", known.join(", ")),
                };
                self.error_help("elaborate::arguments", g.span, message, help)
            }
            Misplaced::Twice(_) => self.error("elaborate::arguments", g.span, "this argument is given twice"),
            Misplaced::TooMany => self.error("elaborate::arguments", g.span, takes(of, N)),
        })?;
        let slots: [Option<Given>; N] = slots.try_into().unwrap_or([const { None }; N]);
        for (slot, name) in slots.iter().zip(names) {
            if slot.is_none() && !name.ends_with('?') {
                let message = format!("`{of}` needs an argument for `{name}`");
                let all = names.map(|n| n.strip_suffix('?').map_or(n.to_string(), |n| format!("{n} (optional)")));
                let help = format!("it takes {}", all.join(", "));
                return Err(self.error_help("elaborate::arguments", span, message, help));
            }
        }
        Ok(slots)
    }
}

/// Returns whether a name is a bare dimension of some parameter.
fn mentions(f: &ast::Fn, name: &str, module: &crate::modules::Module) -> bool {
    let tree = &module.tree;
    f.params.iter().filter_map(|p| p.ty.as_ref()).any(|ty| match &ty.kind {
        ast::TypeKind::Name { dims, .. } => dims.iter().flatten().any(|d| match d {
            ast::Dim::Expr(e) => matches!(&tree.exprs[*e].kind, ExprKind::Name(n) if n == name),
            ast::Dim::Spread(s) => s.name == name,
            ast::Dim::Shape(_) => false,
        }),
        _ => false,
    })
}
