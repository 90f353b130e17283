//! Statements and blocks.
//!
//! Invariant: a failed statement does not stop the block, so that one run reports many errors; the names that it would
//! have bound are [`Value::Error`].

use crate::elaborator::Elaborator;
use crate::gradients::tape::LoopAttributes;
use crate::modules::{needless_arguments, unknown_attribute};
use crate::rows::Selection;
use crate::value::Value;
use cranelift_entity::EntityRef;
use girder_ir::ids::VarId;
use girder_ir::view::View;
use girder_source::{Failed, Result, Span};
use girder_syntax::ast::{self, AssignOp, ExprKind, StmtId, StmtKind};
use std::time::Instant;

/// The attributes of statements that choose how the reverse program gets its values.
const KEEPING: [&str; 2] = ["recompute", "offload"];

/// The way in which a statement ends.
#[derive(Debug)]
pub enum Flow {
    /// Control continues with the next statement.
    Next,
    /// `break`, with its span.
    Break(Span),
    /// `continue`, with its span.
    Continue(Span),
    /// `return`, with its span.
    Return(Value, Span),
}

/// What an assignment writes.
enum Target {
    /// A tensor or a stream.
    Value(Value),
    /// Elements that a number known only at run time selects.
    Rows(Selection),
}

/// The value of a block and how it ended.
pub type Ended = (Value, Flow);

impl Elaborator<'_> {
    /// Evaluates a block that `return`, `break` and `continue` may not leave, because it is an expression.
    pub fn block(&mut self, body: &ast::Body) -> Result<Value> {
        let (value, flow) = self.body(body)?;
        self.stays(value, flow, "a block that is used as a value, or that runs under a run-time condition")
    }

    /// Returns the value of a construct that may not be left; reports a `return`, `break` or `continue` that would
    /// leave it.
    pub fn stays(&mut self, value: Value, flow: Flow, what: &str) -> Result<Value> {
        let (word, at) = match flow {
            Flow::Next => return Ok(value),
            Flow::Return(_, at) => ("return", at),
            Flow::Break(at) => ("break", at),
            Flow::Continue(at) => ("continue", at),
        };
        let in_loop = self.scopes.in_loop();
        if word == "return" {
            let help = "give the value by the block itself, without `return`: `if c { a } else { b }`";
            return Err(self.error_help("elaborate::leaves_block", at, format!("`return` cannot leave {what}"), help));
        }
        if in_loop {
            return Err(self.error("elaborate::leaves_block", at, format!("`{word}` cannot leave {what}")));
        }
        if self.emission.run_time_depth() > 0 {
            let message = format!("`{word}` is not allowed in a body that the machine runs");
            let help = "a `while` ends by its condition; only a static `for` can be left";
            return Err(self.error_help("elaborate::leaves_block", at, message, help));
        }
        Err(self.no_loop(word, at))
    }

    /// Reports a `break` or `continue` outside loops.
    pub fn no_loop(&mut self, word: &str, at: Span) -> Failed {
        let message = match word {
            "break" => "there is no loop here to leave",
            _ => "there is no loop here to go on with",
        };
        self.error("elaborate::outside_loop", at, message)
    }

    /// Runs a block with its own names.
    pub fn body(&mut self, body: &ast::Body) -> Result<Ended> {
        let mark = self.scopes.mark();
        let ended = self.statements(body);
        self.scopes.release(mark);
        ended
    }

    fn statements(&mut self, body: &ast::Body) -> Result<Ended> {
        let mut failed = false;
        let mut value = Value::Unit;
        for (k, &stmt) in body.stmts.iter().enumerate() {
            let last = k + 1 == body.stmts.len() && body.value.is_none();
            match self.measured_statement(stmt, last) {
                Ok((v, Flow::Next)) => value = v,
                Ok((_, flow)) if !failed => return Ok((Value::Unit, flow)),
                Ok(_) => return Err(Failed),
                Err(Failed) if self.scopes.has_ended() || self.budget.has_stopped() => return Err(Failed),
                Err(Failed) => {
                    self.poison(stmt);
                    failed = true;
                }
            }
        }
        if let Some(e) = body.value {
            value = self.expr(e)?;
        }
        if failed { Err(Failed) } else { Ok((value, Flow::Next)) }
    }

    /// Binds the names of a failed declaration to [`Value::Error`].
    fn poison(&mut self, stmt: StmtId) {
        if let StmtKind::Decl(decl) = &self.tree().stmts[stmt].kind {
            match decl {
                ast::Decl::Let(l) => crate::modules::pattern_names(&l.pattern, &mut |name| {
                    self.define(name.name.clone(), Value::Error, l.mutable);
                }),
                ast::Decl::Var(v) => self.define(v.name.dotted(), Value::Error, false),
                ast::Decl::Map { .. } => {}
            }
        }
    }

    /// Reports attributes where none has a meaning.
    pub fn no_attributes(&mut self, attrs: &[ast::Attr], what: &str) -> Result<()> {
        let mut result = Ok(());
        for attr in attrs.iter().filter(|a| a.name.name != "at") {
            result = Err(self.report(unknown_attribute(attr, what)));
        }
        result
    }

    /// Reports arguments of attributes that take none.
    fn no_arguments(&mut self, attrs: &[ast::Attr]) -> Result<()> {
        let mut result = Ok(());
        for d in attrs.iter().filter_map(needless_arguments) {
            result = Err(self.report(d));
        }
        result
    }

    /// Evaluates a statement of a body; measures its time if it is a program's.
    fn measured_statement(&mut self, stmt: StmtId, last: bool) -> Result<Ended> {
        let of_program = self.functions.is_empty() && !self.programs.is_empty();
        let Some(times) = self.statement_times.as_mut().filter(|_| of_program) else {
            return self.statement(stmt, last);
        };
        let before = times.begin();
        let start = Instant::now();
        let done = self.statement(stmt, last);
        let time = start.elapsed();
        let span = self.tree().stmts[stmt].span;
        if let Some(times) = self.statement_times.as_mut() {
            times.end(span, time, before);
        }
        done
    }

    /// Runs one statement. If it is a block form and the last of its block, its value is the value of the block.
    pub fn statement(&mut self, id: StmtId, last: bool) -> Result<Ended> {
        let stmt = &self.tree().stmts[id];
        self.charge(stmt.span)?;
        let span = stmt.span;
        if stmt.attrs.iter().any(|a| KEEPING.contains(&a.name.name.as_str())) {
            return self.with_keeping(id, last);
        }
        let is_block = matches!(&stmt.kind, StmtKind::Expr { expr, .. } if self.is_block(*expr));
        if is_block && stmt.attrs.iter().any(|a| a.name.name == "reverse") {
            return self.reverse_block(id, last);
        }
        self.no_attributes(&stmt.attrs, "a statement")?;
        self.plain_statement(id, last, span)
    }

    fn is_block(&self, e: ast::ExprId) -> bool {
        matches!(self.tree().exprs[e].kind, ExprKind::Block(_))
    }

    /// Runs a block whose steps are part of a reverse program.
    fn reverse_block(&mut self, id: StmtId, last: bool) -> Result<Ended> {
        let stmt = &self.tree().stmts[id];
        let others = others(stmt, &["reverse"]);
        self.no_attributes(&others, "a block of a reverse program")?;
        self.no_arguments(&stmt.attrs)?;
        let reverse = self.emission.replace_reverse(true);
        let ended = self.plain_statement(id, last, stmt.span);
        self.emission.replace_reverse(reverse);
        ended
    }

    /// Runs a statement with attributes that say how the reverse program gets its values.
    fn with_keeping(&mut self, id: StmtId, last: bool) -> Result<Ended> {
        let stmt = &self.tree().stmts[id];
        self.no_attributes(&others(stmt, &KEEPING), "a statement")?;
        self.no_arguments(&stmt.attrs)?;
        let at = |name: &str| stmt.attrs.iter().find(|a| a.name.name == name).map(|a| a.name.span);
        let (recompute, offload) = (at("recompute"), at("offload"));
        match &stmt.kind {
            StmtKind::Repeat { .. } => {
                let attributes = LoopAttributes { recompute: recompute.is_some(), offload: offload.is_some() };
                self.recorder.next_loop = attributes;
                let ended = self.plain_statement(id, last, stmt.span);
                self.recorder.next_loop = LoopAttributes::default();
                return ended;
            }
            _ if offload.is_some() => {
                let at = offload.unwrap_or(stmt.span);
                return Err(self.error("names::unknown", at, "`offload` stands before a `repeat`"));
            }
            StmtKind::Decl(ast::Decl::Let(_)) => {}
            StmtKind::Expr { expr, .. } if self.is_block(*expr) => {}
            _ => {
                let at = recompute.unwrap_or(stmt.span);
                let message = "`recompute` stands before a `let`, a block or a `repeat`";
                return Err(self.error("names::unknown", at, message));
            }
        }
        let (begin, count) = (self.moment(), self.emission.tape_len());
        let ended = self.plain_statement(id, last, stmt.span)?;
        self.record_segment(begin, count, stmt.span);
        Ok(ended)
    }

    fn plain_statement(&mut self, id: StmtId, last: bool, span: Span) -> Result<Ended> {
        let stmt = &self.tree().stmts[id];
        match &stmt.kind {
            StmtKind::Decl(decl) => self.declaration(decl)?,
            StmtKind::Expr { expr, semi } => return self.expression_statement(*expr, last && !semi, span),
            StmtKind::Assign { op, target, value } => self.assign(*op, *target, *value, span)?,
            StmtKind::For { binders, body } => return self.for_loop(binders, body),
            StmtKind::While { cond, body } => self.while_loop(*cond, body, span)?,
            StmtKind::Repeat { index, range, body } => self.repeat(index.as_ref(), *range, body, span)?,
            StmtKind::Return(value) => {
                // What failed has been reported; the statements after it are not reached.
                let value = value.map_or(Ok(Value::Unit), |v| self.expr(v)).unwrap_or(Value::Error);
                return Ok((Value::Unit, Flow::Return(value, span)));
            }
            StmtKind::Break => return Ok((Value::Unit, Flow::Break(span))),
            StmtKind::Continue => return Ok((Value::Unit, Flow::Continue(span))),
            StmtKind::Compute { name, vertices } => {
                let name = name.as_ref().map(|n| n.dotted());
                self.compute_statement(name.as_deref(), vertices, span)?
            }
            StmtKind::Copy { name, copies } => {
                let name = name.as_ref().map(|n| n.dotted());
                self.copy_statement(name.as_deref(), copies, span)?
            }
            StmtKind::Par(body) => self.par(body, span)?,
            StmtKind::Call { name, args } => self.call_program(name, args, span)?,
            StmtKind::Execute(name) => {
                let begin = self.moment();
                self.execute(name)?;
                self.record_executed(begin, span);
            }
            StmtKind::Exchange(name) => {
                self.find_set(name)?;
            }
            StmtKind::Error => return Err(Failed),
        }
        Ok((Value::Unit, Flow::Next))
    }

    /// Elaborates an expression statement. Block forms propagate `return`, `break` and `continue` if their condition is
    /// static.
    fn expression_statement(&mut self, expr: ast::ExprId, counts: bool, span: Span) -> Result<Ended> {
        let e = &self.tree().exprs[expr];
        let ended = match &e.kind {
            ExprKind::Block(body) => self.body(body)?,
            ExprKind::If { cond, then, els } => self.if_statement(*cond, then, *els, e.span)?,
            ExprKind::Switch { on, arms } => self.switch_statement(*on, arms, e.span)?,
            ExprKind::On { stage: false, place, body } => {
                let place = self.place(*place)?;
                self.at_place(place, |this| this.body(body))?
            }
            ExprKind::With { mode, body } => self.with_block(*mode, body, e.span)?,
            _ => {
                let value = self.expr(expr)?;
                let unused = matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_));
                if unused && !counts {
                    let d =
                        girder_source::Diagnostic::warning("elaborate::unused_value", span, "this value is not used");
                    self.reporter.report_alone(d);
                }
                (value, Flow::Next)
            }
        };
        Ok(match ended {
            (value, Flow::Next) => (if counts { value } else { Value::Unit }, Flow::Next),
            left => left,
        })
    }

    /// Elaborates a static loop.
    fn for_loop(&mut self, binders: &[ast::Binder], body: &ast::Body) -> Result<Ended> {
        let mut end = Flow::Next;
        self.scopes.enter_loop();
        let run = self.each_binding(binders, &mut |this: &mut Self| match this.body(body)?.1 {
            Flow::Next | Flow::Continue(_) => Ok(()),
            flow => {
                end = flow;
                // Leaves all binders; `end` distinguishes this from a failure.
                Err(Failed)
            }
        });
        self.scopes.leave_loop();
        match end {
            Flow::Next | Flow::Continue(_) => run.map(|()| (Value::Unit, Flow::Next)),
            Flow::Break(_) => Ok((Value::Unit, Flow::Next)),
            Flow::Return(..) => Ok((Value::Unit, end)),
        }
    }

    fn assign(&mut self, op: AssignOp, target: ast::ExprId, value: ast::ExprId, span: Span) -> Result<()> {
        if op == AssignOp::Set {
            return match &self.tree().exprs[target].kind {
                ExprKind::Name(name) => {
                    let value = self.expr(value)?;
                    self.rename(name, value, span)
                }
                _ => {
                    let help = "a tensor's elements are written with `<-`; a list or a tuple with another member is a \
                                new value";
                    Err(self.error_help("elaborate::bad_target", span, "only a name can be given another value", help))
                }
            };
        }
        let vars = self.graph.vars.len();
        let written = self.target(target)?;
        self.lasting(&written, target, vars, span)?;
        let old = match written {
            Target::Value(value) => value,
            Target::Rows(selection) => {
                let value = match op {
                    AssignOp::With(operator) => {
                        let old = self.read_selection(&selection, span)?.into();
                        let right = self.elements(value)?;
                        self.binary(operator, old, right, span)?
                    }
                    _ => self.elements(value)?,
                };
                return self.write_selection(&selection, value, span);
            }
        };
        let AssignOp::With(operator) = op else {
            return match old {
                Value::Stream(stream) => {
                    let value = self.elements(value)?;
                    self.write_stream(stream, value, span)
                }
                Value::Row(remote, row) => {
                    let value = self.elements(value)?;
                    self.seek(remote, &row, span)?;
                    self.write_stream(remote, value, span)
                }
                Value::Tensor(t) => self.write_expr(&t, value, span),
                other => Err(self.not_writable(&other, span)),
            };
        };
        let right = match old {
            Value::Tensor(_) => self.elements(value)?,
            _ => self.expr(value)?,
        };
        match old {
            Value::Tensor(t) => {
                let new = self.binary(operator, Value::Tensor(t.clone()), right, span)?;
                self.write(&t, new, span)
            }
            old => {
                let ExprKind::Name(name) = &self.tree().exprs[target].kind else {
                    return Err(self.not_writable(&old, span));
                };
                let new = self.binary(operator, old, right, span)?;
                self.rename(name, new, span)
            }
        }
    }

    /// Evaluates what an assignment writes.
    fn target(&mut self, id: ast::ExprId) -> Result<Target> {
        let e = &self.tree().exprs[id];
        if let ExprKind::Index { base, index } = &e.kind {
            self.charge(e.span)?;
            let base = self.expr(*base)?;
            let Value::Tensor(t) = base else { return self.index(base, index, e.span).map(Target::Value) };
            let selection = self.select(&t, index, e.span)?;
            return Ok(match selection.at.is_empty() {
                true => Target::Value(selection.base.into()),
                false => Target::Rows(selection),
            });
        }
        self.expr(id).map(Target::Value)
    }

    /// Reports a target whose variables it has made itself and no name keeps, so that nothing can read what is written.
    /// `vars` is the number of variables before it was evaluated.
    fn lasting(&mut self, written: &Target, target: ast::ExprId, vars: usize, span: Span) -> Result<()> {
        let view = match written {
            Target::Value(Value::Tensor(t)) => &t.view,
            Target::Rows(selection) => &selection.base.view,
            Target::Value(_) => return Ok(()),
        };
        if !self.is_lost(view, vars) {
            return Ok(());
        }
        let tree = self.tree();
        let mut of = target;
        while let ExprKind::Index { base, .. } = &tree.exprs[of].kind {
            of = *base;
        }
        let is_read = |callee: ast::ExprId| matches!(&tree.exprs[callee].kind, ExprKind::Name(n) if n == "read");
        let help = match &tree.exprs[of].kind {
            ExprKind::Call { callee, .. } if is_read(*callee) => {
                "`read` gives a copy; without it, the row itself is written, as in `b[k] <- …`. To change elements of \
                 a row, name the copy: `let w = read(b[k]); w[0] <- …; b[k] <- w;`"
            }
            _ => "write the variable itself, or name the new tensor first: `let t = …; t <- …`",
        };
        let message = "this is a new tensor without a name, so writing it is lost";
        Err(self.error_help("elaborate::copied_target", span, message, help))
    }

    /// Returns whether nothing can read what is written to a view: its variables are new, and no name keeps them.
    /// `vars` is the number of variables before the view was evaluated.
    pub fn is_lost(&self, view: &View, vars: usize) -> bool {
        // A state lasts although no name is left. Copies of rows have a message of their own.
        let is_lost = |var: VarId| {
            let is_new = var.index() >= vars && !self.graph.vars[var].is_persistent();
            is_new && !self.entities.copies_of_rows.contains(&var) && !self.named_anywhere(var)
        };
        !view.parts.is_empty() && view.parts.iter().all(|p| is_lost(p.var))
    }

    fn not_writable(&mut self, found: &Value, span: Span) -> Failed {
        if found.is_error() {
            return Failed;
        }
        let (message, help) = match found {
            Value::Row(..) => {
                ("a row of a remote buffer is written by `<-` only".to_string(), "write `rows[k] <- read(rows[k]) + x`")
            }
            _ => {
                let message = format!("`<-` writes tensors and streams, not {}", found.describe());
                (message, "a static value is renamed with `=`")
            }
        };
        self.error_help("elaborate::bad_target", span, message, help)
    }
}

/// Returns the attributes of a statement that have other names.
fn others(stmt: &ast::Stmt, known: &[&str]) -> Vec<ast::Attr> {
    stmt.attrs.iter().filter(|a| !known.contains(&a.name.name.as_str())).cloned().collect()
}
