//! Programs: the tree of steps as statements.
//!
//! Invariant: a sequence is printed as a body, without a block of its own. Recursion is as deep as steps are nested,
//! which the limit `nesting` bounds.

use super::Printer;
use girder_ir::ids::StepId;
use girder_ir::program::{Effect, StepKind, UntilWritten};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::Span;
use girder_syntax::ast::{self, Arm, AssignOp, Body, ExprId, ExprKind, Item, ItemKind, StmtId, StmtKind};
use girder_syntax::make::{arg, attr, body, named, path};

impl Printer<'_> {
    /// Adds the programs; those that are only called get `#[called]`.
    pub fn programs(&mut self) {
        for p in self.graph.programs.values() {
            let body = self.body(p.body);
            let kind = ItemKind::Program(ast::Program { name: path(&p.name), params: vec![], body });
            let attrs = if p.entry { vec![] } else { vec![attr("called", None)] };
            self.make.module.items.push(Item { attrs, kind, span: Span::NONE });
        }
    }

    fn body(&mut self, step: StepId) -> Body {
        body(self.statements(step))
    }

    fn statements(&mut self, step: StepId) -> Vec<StmtId> {
        match &self.graph.steps[step].kind {
            StepKind::Seq(all) => self.sequence(all, self.graph.steps[step].reverse),
            _ => vec![self.statement(step)],
        }
    }

    /// Returns the statements of steps in order. Those of a reverse program are in a block with an attribute, if that
    /// is not known from the steps around.
    fn sequence(&mut self, steps: &[StepId], reverse: bool) -> Vec<StmtId> {
        let mut all = vec![];
        for run in steps.chunk_by(|&a, &b| self.graph.steps[a].reverse == self.graph.steps[b].reverse) {
            let stmts: Vec<StmtId> = run.iter().map(|&s| self.statement(s)).collect();
            if reverse || !self.graph.steps[run[0]].reverse {
                all.extend(stmts);
                continue;
            }
            let kind = self.block(ExprKind::Block(Box::new(body(stmts))));
            let block = self.make.stmt(kind);
            self.make.module.stmts[block].attrs.push(attr("reverse", None));
            all.push(block);
        }
        all
    }

    fn statement(&mut self, step: StepId) -> StmtId {
        let kind = match &self.graph.steps[step].kind {
            StepKind::Seq(_) => {
                let body = self.body(step);
                self.block(ExprKind::Block(Box::new(body)))
            }
            StepKind::Execute(set) => StmtKind::Execute(path(&self.graph.sets[*set].name)),
            StepKind::Copy(copy) => StmtKind::Execute(path(&self.graph.copies[*copy].name)),
            StepKind::Repeat { count, index, body } => {
                let range = match index {
                    None => self.make.uint(*count),
                    Some((_, start, by)) => self.iterations(*count, *start, *by),
                };
                let index = index.map(|(var, ..)| path(&self.graph.vars[var].name));
                StmtKind::Repeat { index, range, body: self.body(*body) }
            }
            StepKind::While { before, cond, body } => {
                let stmts = self.statements(*before);
                let cond = self.scalar_view(cond, ElemType::Bool);
                let cond = match stmts.is_empty() {
                    true => cond,
                    false => {
                        let value = Some(cond);
                        self.make.expr(ExprKind::Block(Box::new(Body { stmts, value, span: Span::NONE })))
                    }
                };
                StmtKind::While { cond, body: self.body(*body) }
            }
            StepKind::If { cond, then, els } => {
                let cond = self.scalar_view(cond, ElemType::Bool);
                let then = Box::new(self.body(*then));
                let els = self.body(*els);
                let els = (!els.stmts.is_empty()).then(|| self.make.expr(ExprKind::Block(Box::new(els))));
                self.block(ExprKind::If { cond, then, els })
            }
            StepKind::Switch { on, cases, default } => self.switch(on, cases, *default),
            StepKind::Call(program) => StmtKind::Call { name: path(&self.graph.programs[*program].name), args: vec![] },
            StepKind::Par(branches) => {
                let branch = |this: &mut Self, &b: &StepId| {
                    let body = this.body(b);
                    let kind = this.block(ExprKind::Block(Box::new(body)));
                    this.make.stmt(kind)
                };
                StmtKind::Par(body(branches.iter().map(|b| branch(self, b)).collect()))
            }
            StepKind::Effect(effect) => self.effect(effect),
        };
        self.make.stmt(kind)
    }

    /// Returns an expression with a block as a statement.
    fn block(&mut self, kind: ExprKind) -> StmtKind {
        StmtKind::Expr { expr: self.make.expr(kind), semi: false }
    }

    /// Prints the iterations of a loop as `start..end by step`.
    fn iterations(&mut self, count: u64, start: i32, by: i32) -> ExprId {
        let end = (start as i64).saturating_add((by as i64).saturating_mul(count as i64));
        let (from, to) = (self.make.int(start as i64), self.make.int(end));
        if by == 1 {
            return self.make.range(from, to);
        }
        let by = self.make.int(by as i64);
        self.make.range_by(from, to, by)
    }

    fn switch(&mut self, on: &View, cases: &[(Vec<(i64, i64)>, StepId)], default: StepId) -> StmtKind {
        let on = self.scalar_view(on, ElemType::I32);
        let mut arms = Vec::with_capacity(cases.len() + 1);
        for (keys, step) in cases {
            let keys = keys.iter().map(|&(lo, hi)| Some(self.key(lo, hi))).collect();
            arms.push(Arm { keys, body: self.body(*step), span: Span::NONE });
        }
        let body = self.body(default);
        if !body.stmts.is_empty() {
            arms.push(Arm { keys: vec![None], body, span: Span::NONE });
        }
        self.block(ExprKind::Switch { on, arms })
    }

    /// Prints the key of a case as `3` or `2..=4`.
    fn key(&mut self, lo: i64, hi: i64) -> ExprId {
        let mut int = |v| if v == i64::MIN { self.make.name("i64.min") } else { self.make.int(v) };
        let start = int(lo);
        if lo == hi {
            return start;
        }
        let end = int(hi);
        self.make.expr(ExprKind::Range { start, end, closed: true, by: None })
    }

    /// Returns a view whose element type is that of its variable.
    fn scalar_view(&mut self, view: &View, otherwise: ElemType) -> ExprId {
        let ty = view.parts.first().map_or(otherwise, |p| self.graph.vars[p.var].ty);
        self.view(view, ty)
    }

    fn effect(&mut self, effect: &Effect) -> StmtKind {
        let (name, args) = match effect {
            Effect::Read { stream, into } => {
                let s = &self.graph.streams[*stream];
                let from = self.make.name(&s.name);
                let target = self.view(into, s.ty);
                let value = self.make.call_name("read", vec![arg(from)]);
                return StmtKind::Assign { op: AssignOp::Write, target, value };
            }
            Effect::Write { stream, from } => {
                let s = &self.graph.streams[*stream];
                let target = self.make.name(&s.name);
                let value = self.view(from, s.ty);
                return StmtKind::Assign { op: AssignOp::Write, target, value };
            }
            Effect::Print { label, value } => {
                let any = self.graph.vars.values().next().map_or(ElemType::F32, |v| v.ty);
                ("print", vec![arg(self.make.str(label.clone())), arg(self.scalar_view(value, any))])
            }
            Effect::PrintText { text } => ("print", vec![arg(self.make.str(text.clone()))]),
            Effect::Abort { message, when } => {
                let mut args = vec![arg(self.make.str(message.clone()))];
                if let Some(when) = when {
                    args.push(named("when", self.scalar_view(when, ElemType::Bool)));
                }
                ("abort", args)
            }
            Effect::Undef { what, until_written } => {
                let any = self.graph.vars.values().next().map_or(ElemType::F32, |v| v.ty);
                let mut args = vec![arg(self.scalar_view(what, any))];
                if *until_written != UntilWritten::MayBeRead {
                    args.push(named("filled", self.make.bool(true)));
                }
                ("undef", args)
            }
            Effect::Agree { what } => {
                let any = self.graph.vars.values().next().map_or(ElemType::F32, |v| v.ty);
                ("agree", vec![arg(self.scalar_view(what, any))])
            }
            Effect::Seek { stream, row } => {
                let remote = self.make.name(&self.graph.streams[*stream].name);
                ("seek", vec![arg(remote), arg(self.scalar_view(row, ElemType::I32))])
            }
            Effect::Sync => ("sync", vec![]),
        };
        StmtKind::Expr { expr: self.make.call_name(name, args), semi: true }
    }
}
