//! The evaluation of rules, `grad f(x, w; y; dy) { … }`, and of functions that have one.
//!
//! Invariant: an adjoint that a rule returns has the structure, the shapes and the types of its parameter.

use super::order::Moment;
use super::recompute::Accesses;
use super::rule_table::{RuleBody, RuleRef, no_members, no_parameter, split};
use super::state::ReverseWalk;
use super::tape::{EntryKind, each_tensor, map_tensors};
use crate::elaborator::{Elaborator, Global};
use crate::statements::{Ended, Flow};
use crate::trees::expressions_within;
use crate::value::{Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::view::View;
use girder_source::{Diagnostic, Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind, ItemKind};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

impl<'a> Elaborator<'a> {
    fn rule_parts(&self, rule: RuleRef) -> Option<(&'a ast::Module, &'a ast::Grad, &'a ast::Fn)> {
        let tree = &self.modules.get(rule.module).tree;
        match (&tree.items[rule.item].kind, &tree.items[rule.function].kind) {
            (ItemKind::Grad(g), ItemKind::Fn(f)) => Some((tree, g, f)),
            _ => None,
        }
    }

    /// Returns the parameters to which a rule of a graph function gives adjoints.
    pub(super) fn rule_gives(&self, rule: RuleRef) -> Vec<SmolStr> {
        let Some((tree, g, _)) = self.rule_parts(rule) else { return vec![] };
        match split(tree, &g.body).last.map(|e| &tree.exprs[e].kind) {
            Some(ExprKind::Tuple(args)) => args.iter().filter_map(|a| Some(a.name.as_ref()?.name.clone())).collect(),
            _ => g.params.iter().map(|p| p.name.clone()).collect(),
        }
    }

    /// Returns the names whose elements a rule reads in order to give some adjoints; a name of which only the shape
    /// is asked is not among them.
    pub(super) fn rule_reads(&self, rule: RuleRef, wanted: &[SmolStr]) -> FxHashSet<SmolStr> {
        let mut names = FxHashSet::default();
        let Some((tree, g, _)) = self.rule_parts(rule) else { return names };
        let RuleBody { before, last } = split(tree, &g.body);
        let mut spans: Vec<Span> = before.iter().map(|&s| tree.stmts[s].span).collect();
        match last.map(|e| (e, &tree.exprs[e].kind)) {
            Some((_, ExprKind::Tuple(args))) => {
                let is_wanted = |a: &&ast::Arg| a.name.as_ref().is_some_and(|n| wanted.contains(&n.name));
                spans.extend(args.iter().filter(is_wanted).map(|a| tree.exprs[a.value].span));
            }
            Some((e, _)) => spans.push(tree.exprs[e].span),
            None => {}
        }
        for span in spans {
            let all: Vec<(ExprId, &ast::Expr)> = expressions_within(tree, span).collect();
            let only_shape: FxHashSet<ExprId> = all
                .iter()
                .filter_map(|(_, e)| match &e.kind {
                    ExprKind::Field { base, name } if matches!(name.name.as_str(), "shape" | "len" | "rank") => {
                        Some(*base)
                    }
                    _ => None,
                })
                .collect();
            for (id, e) in all {
                if let ExprKind::Name(name) = &e.kind
                    && !only_shape.contains(&id)
                {
                    names.insert(name.clone());
                }
            }
        }
        names
    }

    /// Returns the values of the module's names, and of what it imports, that a rule reads.
    pub(super) fn rule_globals(&self, rule: RuleRef, reads: &FxHashSet<SmolStr>) -> Vec<(SmolStr, Value)> {
        let mut found = vec![];
        for name in reads {
            if let Some(Global::Known(value)) = self.scopes.global(rule.module, name) {
                let mut any = false;
                each_tensor(value, &mut |_| any = true);
                if any {
                    found.push((name.clone(), value.clone()));
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// Reports a function with a rule that reads a variable on which the gradient depends and which is no argument:
    /// its rule cannot give the gradient by that variable.
    pub(super) fn check_rule_arguments(
        &mut self,
        w: &ReverseWalk,
        e: &super::tape::Entry,
        rule: RuleRef,
        reads: &[VarId],
    ) -> Result<()> {
        let Some((_, g, f)) = self.rule_parts(rule) else { return Ok(()) };
        let is_active = |v: &VarId| w.active.holds(&View::whole(*v, &self.graph.vars[*v].shape), e.during.start);
        let Some(first) = reads.iter().copied().find(is_active) else { return Ok(()) };
        let (function, name) = (f.name.dotted(), self.graph.vars[first].name.clone());
        let message = format!("`{function}` has a rule, but it also reads `{name}`, which is no argument");
        let d = Diagnostic::error("grad::rule_reads", e.span, message).here("called here");
        let d = d.label(g.name.span, "the rule gives no gradient by it").label(w.span, "gradient taken here");
        let help = format!("give `{name}` to the function as an argument, and return its adjoint from the rule");
        Err(self.report(d.help(help)))
    }

    /// Returns the names of a rule's results.
    pub(super) fn rule_results(&self, rule: RuleRef) -> Vec<SmolStr> {
        let Some((_, g, _)) = self.rule_parts(rule) else { return vec![] };
        g.results.iter().map(|r| r.name.clone()).collect()
    }

    /// Evaluates a rule: returns the adjoints of the wanted parameters.
    pub(super) fn run_rule(
        &mut self,
        rule: RuleRef,
        bound: &[(SmolStr, Value)],
        y: &Value,
        dy: &Value,
        wanted: &[SmolStr],
        span: Span,
    ) -> Result<Vec<(SmolStr, Value)>> {
        let Some((tree, g, f)) = self.rule_parts(rule) else { return Err(girder_source::Failed) };
        self.scopes.enter(rule.module);
        self.reporter.enter_call(span);
        for (name, value) in bound {
            self.define(name.clone(), value.clone(), false);
        }
        let (begin, first) = (self.moment(), self.graph.vars.len());
        let mut done = self.define_results(&g.results, y, g.name.span);
        done = done.and_then(|()| self.define_results(&g.adjoints, dy, g.name.span));
        let members = done.and_then(|()| {
            let RuleBody { before, last } = split(tree, &g.body);
            for &s in before {
                if let Flow::Return(..) | Flow::Break(_) | Flow::Continue(_) = self.statement(s, false)?.1 {
                    let message = "a rule returns in its last statement";
                    let help = "choose with `if` inside the tuple that the last statement returns";
                    return Err(self.error_help("grad::rule_shape", tree.stmts[s].span, message, help));
                }
            }
            let mut members = vec![];
            match last.map(|e| (e, &tree.exprs[e].kind)) {
                Some((_, ExprKind::Tuple(args))) => {
                    for a in args {
                        let Some(name) = &a.name else { return Err(self.report(no_members(tree.exprs[a.value].span))) };
                        if wanted.contains(&name.name) {
                            let value = self.expr(a.value)?;
                            members.push((name.clone(), value, tree.exprs[a.value].span));
                        } else if !f.params.iter().any(|p| p.name.name == name.name) {
                            return Err(self.report(no_parameter(f, name)));
                        }
                    }
                }
                Some((e, _)) => {
                    let at = tree.exprs[e].span;
                    let Value::Tuple(t) = self.expr(e)? else { return Err(self.report(no_members(at))) };
                    for (name, value) in t.names.iter().zip(&t.values) {
                        let name = ast::Ident { name: name.clone(), span: at };
                        members.push((name, value.clone(), at));
                    }
                }
                None => return Err(self.report(no_members(g.body.span))),
            }
            self.check_foreign_write(&format!("the rule of `{}`", f.name.dotted()), first, begin, g.name.span)?;
            let mut fitted = vec![];
            for (name, value, at) in members {
                let Some((_, of)) = bound.iter().find(|(n, _)| *n == name.name) else {
                    return Err(self.report(no_parameter(f, &name)));
                };
                if wanted.contains(&name.name) {
                    let value = self.fit_adjoint(&name.name, of, value, at)?;
                    fitted.push((name.name.clone(), value));
                }
            }
            Ok(fitted)
        });
        self.reporter.leave_call();
        self.scopes.leave();
        members
    }

    fn define_results(&mut self, names: &[ast::Ident], value: &Value, span: Span) -> Result<()> {
        match (names, value) {
            ([one], value) => self.define(one.name.clone(), value.clone(), false),
            (several, Value::Tuple(t)) if t.values.len() == several.len() => {
                for (n, v) in several.iter().zip(&t.values) {
                    self.define(n.name.clone(), v.clone(), false);
                }
            }
            _ => {
                let message = format!("the rule names {} results, and the function gives one", names.len());
                let help = "name one result and its adjoint: `grad f(x; y; dy) { … }`";
                return Err(self.error_help("grad::rule_name", span, message, help));
            }
        }
        Ok(())
    }

    /// Checks that an adjoint has the structure, the shapes and the types of its parameter.
    fn fit_adjoint(&mut self, name: &str, of: &Value, value: Value, span: Span) -> Result<Value> {
        match (of, value) {
            (Value::Tensor(x), Value::Tensor(d)) => {
                // One element does not stand for all: only axes of length 1 may be missing.
                if d.ty == x.ty
                    && d.view.len() == x.view.len()
                    && let Some(view) = d.view.broadcast_to(&x.view.shape())
                {
                    return Ok(Tensor { view, ty: d.ty }.into());
                }
                let message = format!("the rule gives {} for `{name}`, which is {}", d.type_name(), x.type_name());
                let help = "an adjoint has the shape and the type of its parameter";
                Err(self.error_help("grad::rule_shape", span, message, help))
            }
            (Value::Tensor(x), Value::Unit) => self.zeros_of(x.ty, &x.view.shape(), span).map(Value::from),
            (Value::Tensor(x), number @ (Value::Int(_) | Value::Float(_))) => {
                let s = self.scalar(&number, x.ty, span)?;
                let c = self.constant(s, span)?;
                let view = c.view.broadcast_to(&x.view.shape()).unwrap_or(c.view);
                Ok(Tensor { view, ty: x.ty }.into())
            }
            (Value::Tuple(x), Value::Tuple(d)) if x.values.len() == d.values.len() => {
                let mut values = vec![];
                for (k, (member, x)) in x.names.iter().zip(&x.values).enumerate() {
                    // Members have the order of the parameter, whatever their order in the rule.
                    let at = if d.names.iter().all(|n| n.is_empty()) {
                        Some(k)
                    } else {
                        d.names.iter().position(|n| n == member)
                    };
                    let Some(at) = at else {
                        let message = format!("the adjoint of `{name}` has no member `{member}`");
                        let help = "an adjoint has the structure of its parameter";
                        return Err(self.error_help("grad::rule_shape", span, message, help));
                    };
                    values.push(self.fit_adjoint(name, x, d.values[at].clone(), span)?);
                }
                Ok(Value::Tuple(std::sync::Arc::new(crate::value::Tuple { names: x.names.clone(), values })))
            }
            (Value::List(x), Value::List(d)) if x.len() == d.len() => {
                let mut values = vec![];
                for (x, d) in x.iter().zip(d.iter()) {
                    values.push(self.fit_adjoint(name, x, d.clone(), span)?);
                }
                Ok(Value::List(std::sync::Arc::new(values)))
            }
            (Value::Tensor(_) | Value::Tuple(_) | Value::List(_), d) => {
                let parts = |v: &Value| match v {
                    Value::List(list) => format!(" of {}", list.len()),
                    Value::Tuple(t) => format!(" of {}", t.values.len()),
                    _ => String::new(),
                };
                let (given, wanted) = (d.describe() + &parts(&d), of.describe() + &parts(of));
                let message = format!("the rule gives {given} for `{name}`, which is {wanted}");
                let help = "an adjoint has the structure of its parameter";
                Err(self.error_help("grad::rule_shape", span, message, help))
            }
            (_, d) => Ok(d),
        }
    }

    /// Returns the rule of the function that is being called.
    pub fn rule_here(&self) -> Option<RuleRef> {
        self.rules.of((*self.functions.last()?)?)
    }

    /// Evaluates the body of a function with a rule, which is recorded as one operation.
    pub fn body_with_rule(&mut self, rule: RuleRef, f: &ast::Fn, span: Span) -> Result<Ended> {
        let bound: Vec<(SmolStr, Value)> =
            self.scopes.locals().iter().map(|b| (b.name.clone(), b.value.clone())).collect();
        let (begin, first) = (self.moment(), self.graph.vars.len());
        // A gradient that is taken in the body needs the tape of the body; the library takes none.
        let (value, flow) = if f.name.span.in_library() {
            self.untaped(|this| this.body(&f.body))?
        } else {
            let count = self.emission.tape_len();
            let done = self.body(&f.body);
            self.emission.truncate_tape(count);
            done?
        };
        let (out, flow) = match flow {
            Flow::Return(value, at) => {
                let own = self.own_results(value, first, at)?;
                (own.clone(), Flow::Return(own, at))
            }
            flow => (self.own_results(value, first, span)?, flow),
        };
        let value = if matches!(flow, Flow::Return(..)) { Value::Unit } else { out.clone() };
        self.check_rule_writes(rule, first, begin)?;
        let reads = self.other_reads(f, &bound, begin);
        self.record(begin, EntryKind::Rule { rule, bound, reads, out }, span);
        Ok((value, flow))
    }

    /// Returns the older float variables that the steps since a moment read and that are in no argument.
    fn other_reads(&mut self, f: &ast::Fn, bound: &[(SmolStr, Value)], begin: Moment) -> Vec<VarId> {
        if !self.is_taping() || f.name.span.in_library() {
            return vec![];
        }
        let Some(body) = self.emission.body_mut() else { return vec![] };
        let first = body.nodes.partition_point(|n| n.at < begin);
        let nodes = body.nodes[first..].to_vec();
        let mut all = Accesses::default();
        nodes.iter().for_each(|n| self.accesses(n, &mut all));
        for (_, v) in bound {
            each_tensor(v, &mut |t| t.view.parts.iter().for_each(|p| _ = all.reads.remove(&p.var)));
        }
        let is_older = |v: &VarId| self.recorder.made(*v).is_none_or(|at| at < begin);
        let mut reads: Vec<VarId> = all.reads.into_iter().filter(is_older).collect();
        reads.retain(|&v| self.graph.vars[v].ty.is_float());
        reads.sort_unstable();
        reads
    }

    /// Copies those results of a function with a rule that are views of something older, or of one another: the
    /// adjoint of a result is then that of nothing else.
    fn own_results(&mut self, mut value: Value, first: usize, span: Span) -> Result<Value> {
        let mut seen = FxHashSet::default();
        let mut shared = vec![];
        each_tensor(&value, &mut |t| {
            let vars = t.view.vars();
            let is_own = vars.iter().all(|v| v.as_u32() as usize >= first && !seen.contains(v));
            shared.push(t.ty.is_float() && !is_own && !t.view.is_empty());
            seen.extend(vars);
        });
        let mut copies = vec![];
        let mut tensors = vec![];
        each_tensor(&value, &mut |t| tensors.push(t.clone()));
        for (t, shared) in tensors.iter().zip(shared) {
            copies.push(if shared { Some(self.untaped(|this| this.copy_of(t, span))?) } else { None });
        }
        let mut copies = copies.into_iter();
        map_tensors(&mut value, &mut |t| {
            if let Some(copy) = copies.next().flatten() {
                *t = copy;
            }
        });
        Ok(value)
    }

    /// Reports a write, by a function with a rule, to a variable that the function did not make.
    pub fn check_rule_writes(&mut self, rule: RuleRef, first: usize, begin: Moment) -> Result<()> {
        let Some((_, g, f)) = self.rule_parts(rule) else { return Ok(()) };
        self.check_foreign_write(&format!("`{}` has a rule, but it", f.name.dotted()), first, begin, g.name.span)
    }

    /// Reports a write since a moment to a variable that is older.
    fn check_foreign_write(&mut self, who: &str, first: usize, begin: Moment, rule: Span) -> Result<()> {
        let now = self.moment();
        let Some((var, at)) = self.recorder.foreign_write(first, begin..now) else { return Ok(()) };
        let v = &self.graph.vars[var];
        if v.class != girder_ir::graph::VarClass::Temp && at.in_library() {
            return Ok(());
        }
        let (name, declared) = (v.name.clone(), self.graph.origins.span(v.origin));
        let d = Diagnostic::error("grad::rule_writes", at, format!("{who} writes `{name}`, which it did not make"));
        let d = d.here("written here").label(declared, "declared here").label(rule, "the rule");
        Err(self.report(d.help("return the value, and write it after the call")))
    }
}
