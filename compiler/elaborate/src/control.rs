//! `if`, `while` and `repeat`, and `switch` in its own file: a static condition selects during elaboration, a rank-0
//! tensor makes a step of the program.
//!
//! Invariant: the steps that a run-time body emits stay in that body, and the names that it binds end with it.

mod switch;

use crate::elaborator::{Body, NodeKind};
use crate::elaborator::{Elaborator, Runs};
use crate::expr::LoopKind;
use crate::gradients::order::Moment;
use crate::gradients::record::tape_of;
use crate::gradients::tape::EntryKind;
use crate::statements::{Ended, Flow};
use crate::value::{Tensor, Value};
use girder_ir::graph::VarClass;
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind, StmtKind};
use std::sync::Arc;

/// A condition or selector, evaluated.
enum Chosen {
    Static(Value),
    RunTime(Tensor),
}

impl<'a> Elaborator<'a> {
    /// Elaborates an `if` whose branches may `return`, `break` and `continue` if the condition is static.
    pub fn if_statement(
        &mut self,
        cond: ExprId,
        then: &ast::Body,
        els: Option<ExprId>,
        span: Span,
    ) -> Result<(Value, Flow)> {
        let chosen = self.condition(cond)?;
        self.chosen_if(chosen, then, els, span)
    }

    fn chosen_if(
        &mut self,
        chosen: Chosen,
        then: &ast::Body,
        els: Option<ExprId>,
        span: Span,
    ) -> Result<(Value, Flow)> {
        match chosen {
            Chosen::Static(Value::Bool(true)) => self.body(then),
            Chosen::Static(_) => self.else_branch(els),
            Chosen::RunTime(c) => {
                let value = self.run_time_if(c, then, els, span)?;
                Ok((value, Flow::Next))
            }
        }
    }

    /// Elaborates an `if` used as a value.
    pub fn if_expr(&mut self, cond: ExprId, then: &ast::Body, els: Option<ExprId>, span: Span) -> Result<Value> {
        let (value, flow) = self.if_statement(cond, then, els, span)?;
        self.stays(value, flow, "an `if` that is used as a value")
    }

    /// Evaluates an `if` that a `let` names; reports one at run time whose branches give nothing that can be chosen.
    pub fn named_if(&mut self, cond: ExprId, then: &ast::Body, els: Option<ExprId>, span: Span) -> Result<Value> {
        let chosen = self.condition(cond)?;
        let at_run_time = matches!(chosen, Chosen::RunTime(_));
        let (value, flow) = self.chosen_if(chosen, then, els, span)?;
        let value = self.stays(value, flow, "an `if` that is used as a value")?;
        if !at_run_time || !matches!(value, Value::Unit) {
            return Ok(value);
        }
        let help = match els {
            None => "add an `else` with a value like that of the first branch",
            Some(_) => {
                "it gives tensors, numbers, bools, and tuples of them: use a tuple instead of a list, and end each \
                 branch with a value"
            }
        };
        Err(self.error_help("elaborate::type_mismatch", span, "this run-time `if` gives no value", help))
    }

    fn else_branch(&mut self, els: Option<ExprId>) -> Result<(Value, Flow)> {
        let Some(els) = els else { return Ok((Value::Unit, Flow::Next)) };
        let e = &self.tree().exprs[els];
        match &e.kind {
            ExprKind::Block(body) => self.body(body),
            ExprKind::If { cond, then, els } => self.if_statement(*cond, then, *els, e.span),
            _ => Ok((self.expr(els)?, Flow::Next)),
        }
    }

    fn condition(&mut self, cond: ExprId) -> Result<Chosen> {
        let span = self.tree().exprs[cond].span;
        match self.expr(cond)? {
            Value::Bool(b) => Ok(Chosen::Static(Value::Bool(b))),
            Value::Tensor(t) => self.scalar_condition(Arc::unwrap_or_clone(t), span).map(Chosen::RunTime),
            other => Err(self.expected("a condition (a static bool or a rank-0 bool tensor)", &other, span)),
        }
    }

    fn scalar_condition(&mut self, t: Tensor, span: Span) -> Result<Tensor> {
        if t.ty != ElemType::Bool || t.view.rank() != 0 {
            let message = format!("a run-time condition is a bool tensor of rank 0, but this is {}", t.type_name());
            let help = match t.ty {
                ElemType::Bool => "`any(…)` or `all(…)` makes one of its elements",
                _ => "compare it: `x > 0.0`, or index it",
            };
            return Err(self.error_help("elaborate::condition", span, message, help));
        }
        self.one_region(t, span)
    }

    /// Returns a view of one variable, through a copy if needed.
    pub fn one_region(&mut self, t: Tensor, span: Span) -> Result<Tensor> {
        if t.view.parts.len() <= 1 {
            return Ok(t);
        }
        self.copy_of(&t, span)
    }

    /// Runs `f` with a new body under run-time control; returns the body.
    pub fn under_run_time<T>(&mut self, runs: Runs, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Body)> {
        let done = self.in_body(runs, f);
        self.recorder.leave_body(self.emission.depth());
        done
    }

    /// Runs `f` with the new body of a loop that began at a moment; returns the body.
    pub fn under_loop(&mut self, begin: Moment, f: impl FnOnce(&mut Self) -> Result<()>) -> Result<Body> {
        let done = self.in_body(Runs::AnyNumber, f).and_then(|((), body)| {
            self.check_overwritten_in_loop()?;
            self.check_carried(begin, &body)?;
            Ok(body)
        });
        self.recorder.leave_body(self.emission.depth());
        done
    }

    fn in_body<T>(&mut self, runs: Runs, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, Body)> {
        self.emission.open_under_run_time(runs);
        let mark = self.scopes.mark();
        let value = f(self);
        self.scopes.release(mark);
        let body = self.emission.close_under_run_time();
        Ok((value?, body))
    }

    fn run_time_if(&mut self, cond: Tensor, then: &ast::Body, els: Option<ExprId>, span: Span) -> Result<Value> {
        let branches = vec![Branch::Body(then), els.map_or(Branch::Nothing, Branch::Else)];
        let (before, begin) = self.begin();
        let (values, mut bodies) = self.branches(branches)?;
        let value = self.joined(values, &mut bodies, before, span)?;
        let arms = bodies.iter().map(tape_of).collect();
        let record = EntryKind::Branch { on: cond.clone(), keys: vec![], arms };
        let (els, then) = (bodies.pop().unwrap_or_default(), bodies.pop().unwrap_or_default());
        self.push(NodeKind::If { cond: cond.view, then, els }, span)?;
        self.record(begin, record, span);
        Ok(value)
    }

    fn branches(&mut self, list: Vec<Branch<'_>>) -> Result<(Vec<Value>, Vec<Body>)> {
        let (mut values, mut bodies) = (vec![], vec![]);
        let mut failed = None;
        for b in list {
            let done = self.under_run_time(Runs::OrNot, |this| match b {
                Branch::Body(body) => this.block(body),
                Branch::Else(e) => {
                    let (value, flow) = this.else_branch(Some(e))?;
                    this.stays(value, flow, "a block that runs under a run-time condition")
                }
                Branch::Nothing => Ok(Value::Unit),
            });
            match done {
                Ok((value, body)) => {
                    values.push(value);
                    bodies.push(body);
                }
                Err(e) => failed = Some(e),
            }
        }
        failed.map_or(Ok((values, bodies)), Err)
    }

    /// Joins the values of run-time branches: each branch writes its value to a fresh variable.
    fn joined(&mut self, values: Vec<Value>, bodies: &mut [Body], before: Moment, span: Span) -> Result<Value> {
        if values.iter().any(Value::is_error) {
            return Ok(Value::Error);
        }
        if values.iter().any(|v| matches!(v, Value::Unit)) {
            return Ok(Value::Unit);
        }
        if let Some(Value::Tuple(first)) = values.first() {
            let (names, count) = (first.names.clone(), first.values.len());
            for value in &values {
                if let Value::Tuple(t) = value {
                    self.are_named(names.iter().map(crate::types::named), t, span)?;
                }
            }
            let mut joined = Vec::with_capacity(count);
            for k in 0..count {
                let members: Option<Vec<Value>> = values
                    .iter()
                    .map(|v| match v {
                        Value::Tuple(t) if t.values.len() == count => Some(t.values[k].clone()),
                        _ => None,
                    })
                    .collect();
                let Some(members) = members else {
                    return Err(self.error("elaborate::branches_differ", span, "the branches have different values"));
                };
                joined.push(self.joined(members, bodies, before, span)?);
            }
            let tuple = crate::value::Tuple { names, values: joined };
            return Ok(Value::Tuple(std::sync::Arc::new(tuple)));
        }
        let like = values.iter().find_map(|v| match v {
            Value::Tensor(t) => Some((t.ty, t.view.shape())),
            _ => None,
        });
        let (ty, shape) = match (like, values.first()) {
            (Some(like), _) => like,
            (None, Some(Value::Float(_))) => (ElemType::F32, Default::default()),
            (None, Some(Value::Int(_))) => (ElemType::I32, Default::default()),
            (None, Some(Value::Bool(_))) => (ElemType::Bool, Default::default()),
            _ => return Ok(Value::Unit),
        };
        let result = self.temporary("chosen", ty, &shape, span)?;
        result.view.vars().iter().for_each(|&v| self.recorder.set_made(v, before));
        for (value, body) in values.into_iter().zip(bodies) {
            self.emission.reopen(std::mem::take(body));
            let done = self.write(&result, value, span);
            *body = self.emission.close();
            done?;
        }
        Ok(result.into())
    }

    /// Elaborates `while cond { … }`: the condition's steps run before each test.
    pub fn while_loop(&mut self, cond: ExprId, body: &ast::Body, span: Span) -> Result<()> {
        let cond_span = self.tree().exprs[cond].span;
        let (_, begin) = self.begin();
        let (value, before) = self.under_run_time(Runs::AnyNumber, |this| match this.expr(cond)? {
            Value::Tensor(t) => this.scalar_condition(Arc::unwrap_or_clone(t), cond_span).map(Value::from),
            other => Ok(other),
        })?;
        match value {
            Value::Tensor(c) => {
                let body = self.under_loop(begin, |this| this.block(body).map(drop))?;
                self.record_while([&before, &body], begin, span);
                self.push(NodeKind::While { before, cond: c.view.clone(), body }, span)
            }
            Value::Bool(false) => Ok(()),
            Value::Bool(true) => {
                let message = "this `while` never ends: its condition is static, and true";
                let help = "outside codelets a `while` runs on the machine, and its condition is a rank-0 bool tensor, \
                            such as `x[0] > 0.0`; a loop over static values is `for i in 0..n { … }`";
                Err(self.error_help("elaborate::endless_loop", cond_span, message, help))
            }
            other => Err(self.expected("a condition (a rank-0 bool tensor)", &other, cond_span)),
        }
    }

    /// Elaborates `repeat n { … }`, `repeat i in a..b by s { … }`.
    pub fn repeat(&mut self, index: Option<&ast::Path>, range: ExprId, body: &ast::Body, span: Span) -> Result<()> {
        let range_span = self.tree().exprs[range].span;
        let range = match (self.loop_range(range, LoopKind::Repeat)?, index) {
            (Value::Int(n), None) if n >= 0 => crate::value::Range { start: 0, count: n as u64, step: 1 },
            (Value::Int(n), None) => {
                return Err(self.error("elaborate::negative_count", range_span, format!("cannot repeat {n} times")));
            }
            (Value::Range(r), _) => r,
            (Value::Int(_), Some(_)) => {
                let message = "`repeat` with an index goes over a range";
                return Err(self.error_help("elaborate::type_mismatch", range_span, message, "write `0..n`"));
            }
            (Value::Tensor(_), _) => return Err(self.run_time_count("elaborate::type_mismatch", range_span)),
            (other, _) => return Err(self.expected("a count or a range", &other, range_span)),
        };
        let attributes = std::mem::take(&mut self.recorder.next_loop);
        let (_, begin) = self.begin();
        let slot = index.map(|name| self.repeat_index(name, range, range_span)).transpose()?;
        let body = self.under_loop(begin, |this| {
            if let (Some(name), Some((t, ..))) = (index, &slot) {
                this.define(name.dotted(), t.clone().into(), false);
            }
            this.block(body).map(drop)
        })?;
        let index = slot.map(|(_, var, start, step)| (var, start, step));
        self.end_before_filling(&body, index.map(|(var, ..)| var), range, begin, span);
        let record = EntryKind::Repeat { count: range.count, index, body: tape_of(&body), attributes };
        self.push(NodeKind::Repeat { count: range.count, index, body }, span)?;
        self.record(begin, record, span);
        Ok(())
    }

    /// Reports a `repeat` whose count is known only at run time.
    pub fn run_time_count(&mut self, code: &'static str, span: Span) -> girder_source::Failed {
        self.error_help(code, span, "`repeat` takes a static count", "count in a variable and use `while`")
    }

    /// Returns the `i32` variable of an index; in printed text this is a temporary that already has the name.
    fn repeat_index(
        &mut self,
        name: &ast::Path,
        range: crate::value::Range,
        span: Span,
    ) -> Result<(Tensor, girder_ir::ids::VarId, i32, i32)> {
        let last = range.start as i128 + range.step as i128 * range.count.saturating_sub(1) as i128;
        let (Ok(start), Ok(_), Ok(step)) = (i32::try_from(range.start), i32::try_from(last), i32::try_from(range.step))
        else {
            return Err(self.error(
                "elaborate::overflow",
                span,
                "the index of a `repeat` is an `i32`, and this range exceeds it",
            ));
        };
        if name.parts.len() > 1 {
            let dotted = name.dotted();
            let Value::Tensor(t) = self.name(&dotted, name.span)? else {
                return Err(self.error("elaborate::bad_target", name.span, "an index is a variable"));
            };
            let scalar = t.ty == ElemType::I32 && t.view.rank() == 0 && t.view.parts.len() == 1;
            if !scalar {
                return Err(self.error("elaborate::bad_target", name.span, "an index is an i32 of rank 0"));
            }
            let var = t.view.parts[0].var;
            return Ok((Arc::unwrap_or_clone(t), var, start, step));
        }
        let path = self.unique_name(&name.dotted());
        let var = self.add_var(path, VarClass::Temp, ElemType::I32, &[], self.site_here(), name.span)?;
        Ok((Tensor { view: View::whole(var, &[]), ty: ElemType::I32 }, var, start, step))
    }

    /// Elaborates `par { on ipu(0) { … } on ipu(1) { … } }`: one branch per statement, or per iteration of a `for`.
    pub fn par(&mut self, body: &'a ast::Body, span: Span) -> Result<()> {
        let mut branches = Vec::new();
        let (_, begin) = self.begin();
        self.par_branches(body, &mut branches)?;
        let record = EntryKind::Par(branches.iter().map(tape_of).collect());
        self.push(NodeKind::Par(branches), span)?;
        self.record(begin, record, span);
        Ok(())
    }

    fn par_branches(&mut self, body: &'a ast::Body, out: &mut Vec<Body>) -> Result<()> {
        let mark = self.scopes.mark();
        let done = body.stmts.iter().try_for_each(|&stmt| self.par_branch(stmt, out));
        self.scopes.release(mark);
        done?;
        match body.value {
            Some(value) => Err(self.no_branch(self.tree().exprs[value].span)),
            None => Ok(()),
        }
    }

    /// Elaborates a statement of a `par`: a branch, or static code around branches.
    fn par_branch(&mut self, stmt: ast::StmtId, out: &mut Vec<Body>) -> Result<()> {
        let s = &self.tree().stmts[stmt];
        let form = match &s.kind {
            StmtKind::For { binders, body } => {
                return self.each_binding(binders, &mut |this: &mut Self| this.par_branches(body, out));
            }
            StmtKind::Decl(decl @ ast::Decl::Let(_)) => {
                let emitted = self.emission.count();
                self.declaration(decl)?;
                return if self.emission.count() == emitted { Ok(()) } else { Err(self.no_branch(s.span)) };
            }
            StmtKind::Expr { expr, .. } => Some(&self.tree().exprs[*expr].kind),
            _ => None,
        };
        // In printed text everything has a tile, so a branch needs no place.
        let (place, body) = match form {
            Some(ExprKind::On { stage: false, place, body }) => (Some(self.place(*place)?), body),
            Some(ExprKind::Block(body)) => (None, body),
            Some(ExprKind::If { cond, then, els }) => return self.par_if(*cond, then, *els, out),
            _ => return Err(self.no_branch(s.span)),
        };
        let (_, branch) = self.under_run_time(Runs::Once, |this| match place {
            Some(place) => this.at_place(place, |this| this.block(body)),
            None => this.block(body),
        })?;
        out.push(branch);
        Ok(())
    }

    /// Elaborates a static `if` of a `par`.
    fn par_if(&mut self, cond: ExprId, then: &'a ast::Body, els: Option<ExprId>, out: &mut Vec<Body>) -> Result<()> {
        let Chosen::Static(value) = self.condition(cond)? else {
            return Err(self.no_branch(self.tree().exprs[cond].span));
        };
        let els = els.map(|e| &self.tree().exprs[e].kind);
        match (value, els) {
            (Value::Bool(true), _) => self.par_branches(then, out),
            (_, Some(ExprKind::Block(body))) => self.par_branches(body, out),
            (_, Some(ExprKind::If { cond, then, els })) => self.par_if(*cond, then, *els, out),
            _ => Ok(()),
        }
    }

    fn no_branch(&mut self, span: Span) -> girder_source::Failed {
        let help = "static `for`, `if` and `let` may stand around branches";
        self.error_help("elaborate::par_branch", span, "a branch of `par` is `on place { … }`", help)
    }

    /// Elaborates `with block("forward") { … }`.
    pub fn with_block(&mut self, mode: ExprId, body: &ast::Body, span: Span) -> Result<Ended> {
        if let ExprKind::Call { callee, args } = &self.tree().exprs[mode].kind
            && let ExprKind::Name(name) = &self.tree().exprs[*callee].kind
            && name == "block"
            && let [arg] = &args[..]
        {
            let label = match self.expr(arg.value)? {
                Value::Str(label) => label,
                other => return Err(self.expected("a string", &other, self.tree().exprs[arg.value].span)),
            };
            let outer = self.emission.origin();
            let origin = self.graph.origins.add(span, outer, label);
            self.emission.replace_origin(Some(origin));
            let ended = self.body(body);
            self.emission.replace_origin(outer);
            return ended;
        }
        Err(self.no_mode(mode))
    }

    /// Reports an invalid operand of `with`.
    fn no_mode(&mut self, mode: ExprId) -> girder_source::Failed {
        let tree = self.tree();
        let span = tree.exprs[mode].span;
        let name = match &tree.exprs[mode].kind {
            ExprKind::Call { callee, .. } => crate::trees::dotted(tree, *callee),
            _ => crate::trees::dotted(tree, mode),
        };
        match name.as_deref() {
            Some("rounding") => self.unsupported(span, "`with rounding`"),
            Some("block") => {
                let help = "write `with block(\"name\") { … }`";
                self.error_help("elaborate::arguments", span, "`block` takes one string", help)
            }
            other => {
                let what = other.map_or("this is no mode of `with`".into(), |n| format!("there is no mode `{n}`"));
                self.error_help("names::unknown", span, what, "modes are `block(\"name\")` and `rounding(…)`")
            }
        }
    }
}

/// A branch under run-time control.
enum Branch<'b> {
    Body(&'b ast::Body),
    Else(ExprId),
    Nothing,
}
