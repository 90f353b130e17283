//! Statements, each with those that compute its tangents.
//!
//! Invariant: a statement of the function is written once, with the same operands and in the same order. Assertions are
//! left out, since the function itself has made the checks.

use super::writer::{Tangent, Writer};
use super::{RuleCall, jumps::Around};
use crate::gradients::derive::{Formula, Id, OpKind, text};
use cranelift_entity::EntityRef;
use girder_ir::codelet::{ExprKind, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{self, BinaryOp, Pattern, StmtId, StmtKind};
use girder_syntax::make::{arg, body, ident, named};
use girder_typing::print::BlockId;
use smol_str::SmolStr;

impl Writer<'_> {
    /// Returns the statements of a block.
    pub fn block(&mut self, block: &StmtBlock) -> Vec<StmtId> {
        self.inside(|this| {
            for (n, stmt) in block.iter().enumerate() {
                this.kept.clear();
                let mut homes = this.scopes.at((BlockId::of(block), n)).to_vec();
                homes.retain(|&local| !this.is_index(block, n, local) && !is_binder(stmt, local));
                for &local in &homes {
                    if !this.declares(stmt, local) {
                        this.declare(local);
                    }
                }
                this.statement(stmt, &homes);
            }
            this.kept.clear();
        })
    }

    /// Returns the statements that `f` writes.
    pub fn inside(&mut self, f: impl FnOnce(&mut Self)) -> Vec<StmtId> {
        let outer = std::mem::take(&mut self.list);
        f(self);
        std::mem::replace(&mut self.list, outer)
    }

    /// Returns whether the loop around a block declares a local.
    fn is_index(&self, block: &StmtBlock, n: usize, local: LocalId) -> bool {
        n == 0 && self.around.last().is_some_and(|a| a.body == Some(BlockId::of(block)) && a.index == Some(local))
    }

    /// Returns whether a statement that sets a local declares it.
    fn declares(&self, stmt: &Stmt, local: LocalId) -> bool {
        match stmt {
            Stmt::Set { local: set, .. } | Stmt::Fill { local: set, .. } => *set == local,
            Stmt::Reduce(r) => r.dst == local,
            Stmt::Labelled { label, .. } => self.of.calls.get(label).is_some_and(|c| c.results.contains(&local)),
            _ => false,
        }
    }

    fn statement(&mut self, stmt: &Stmt, homes: &[LocalId]) {
        match stmt {
            Stmt::Set { local, value } => self.set(*local, *value, homes.contains(local)),
            Stmt::Fill { local, value } => self.fill(*local, *value, homes.contains(local)),
            Stmt::StoreLocal { local, index, value, .. } => {
                let directions = self.directions_of(*local);
                let ty = self.codelet.locals[*local].ty;
                let tangents: Vec<_> = directions.iter().map(|&d| (d, self.tangent(*value, d))).collect();
                for (d, tangent) in tangents {
                    let base = self.make.name(&self.tangent_name(*local, d));
                    let (target, value) = (self.element(base, index), self.value_of(tangent, ty));
                    self.assign(target, value);
                }
                let base = self.make.name(&self.name_of(*local));
                let (target, value) = (self.element(base, index), self.value(*value));
                self.assign(target, value);
            }
            Stmt::Store { field, value, .. } => self.result(field.index() - self.of.operands, *value),
            Stmt::For { var, lo, hi, step, label, body: inner, .. } => {
                let (name, range) = (self.name_of(*var), self.range(*lo, *hi, *step));
                let binder = self.make.binder(&name, range);
                let around = Around::new(*label, Some(inner), Some(*var));
                let stmts = self.in_loop(around, |this| this.block(inner));
                self.loop_stmt(|stmts| StmtKind::For { binders: vec![binder], body: body(stmts) }, stmts);
            }
            Stmt::While { before, cond, label, body: inner, .. } => {
                let stmts = self.block(before);
                let cond = self.value(*cond);
                let cond = if stmts.is_empty() { cond } else { self.block_value(stmts, cond) };
                let stmts = self.in_loop(Around::new(*label, None, None), |this| this.block(inner));
                self.loop_stmt(|stmts| StmtKind::While { cond, body: body(stmts) }, stmts);
            }
            Stmt::If { cond, then, els } => {
                let cond = self.value(*cond);
                let (then, els) = (self.block(then), self.block(els));
                self.if_stmt(cond, then, els);
            }
            Stmt::Labelled { label, body: inner } => match self.of.calls.get(label) {
                Some(call) => self.call(call, homes),
                None => self.labelled(*label, inner),
            },
            Stmt::Break(label) => self.jump(*label, false),
            Stmt::Continue(label) => self.jump(*label, true),
            Stmt::Reduce(r) => self.reduce(r, homes.contains(&r.dst)),
            // An assertion; all others are refused.
            Stmt::Assert { .. } | Stmt::Return | Stmt::Amp(_) => {}
        }
    }

    /// Writes `if cond { … } else { … }`.
    pub fn if_stmt(&mut self, cond: ast::ExprId, then: Vec<StmtId>, els: Vec<StmtId>) {
        let els = (!els.is_empty()).then(|| self.make.expr(ast::ExprKind::Block(Box::new(body(els)))));
        let expr = self.make.expr(ast::ExprKind::If { cond, then: Box::new(body(then)), els });
        let stmt = self.make.stmt(StmtKind::Expr { expr, semi: false });
        self.list.push(stmt);
    }

    /// Returns `{ statements; value }`.
    pub fn block_value(&mut self, stmts: Vec<StmtId>, value: ast::ExprId) -> ast::ExprId {
        let body = ast::Body { stmts, value: Some(value), span: Span::NONE };
        self.make.expr(ast::ExprKind::Block(Box::new(body)))
    }

    /// Returns `lo..hi by step`.
    pub fn range(&mut self, lo: ExprId, hi: ExprId, step: i64) -> ast::ExprId {
        let (lo, hi) = (self.index(lo), self.index(hi));
        if step == 1 {
            return self.make.range(lo, hi);
        }
        let by = self.make.int(step);
        self.make.range_by(lo, hi, by)
    }

    /// Declares a local and its tangents before the first statement that uses them.
    fn declare(&mut self, local: LocalId) {
        let ty = self.codelet.locals[local].ty;
        let names: Vec<SmolStr> = self.directions_of(local).into_iter().map(|d| self.tangent_name(local, d)).collect();
        for name in names.into_iter().chain([self.name_of(local)]) {
            let zero = self.zero(ty);
            self.declared(local, &name, zero);
        }
    }

    /// Writes `let mut name = value;`, where the value is that of each element of an array.
    fn declared(&mut self, local: LocalId, name: &str, value: ast::ExprId) {
        let ty = self.codelet.locals[local].ty;
        let Some(dims) = self.codelet.locals[local].array.clone() else {
            return self.let_stmt(name, true, Some(ty), value);
        };
        let mut value = value;
        for &n in dims.iter().rev() {
            let count = self.make.uint(n.into());
            value = self.make.expr(ast::ExprKind::Fill { value, count });
        }
        self.let_stmt(name, true, None, value);
    }

    /// Returns 0, or false.
    fn zero(&mut self, ty: ElemType) -> ast::ExprId {
        match ty {
            ElemType::Bool => self.make.bool(false),
            ty if ty.is_float() => self.number(0.0, ty),
            ty => {
                let zero = self.make.uint(0);
                self.builtin(ty.name(), [zero])
            }
        }
    }

    fn set(&mut self, local: LocalId, value: ExprId, declares: bool) {
        let ty = self.codelet.locals[local].ty;
        let mut new: Vec<(SmolStr, ast::ExprId)> = vec![];
        for d in self.directions_of(local) {
            let tangent = self.tangent(value, d);
            new.push((self.tangent_name(local, d), self.value_of(tangent, ty)));
        }
        let is_static = matches!(self.codelet.exprs[value].kind, ExprKind::Const(_));
        let mutable = is_static || self.scopes.sets[local] > 1;
        new.push((self.name_of(local), self.value(value)));
        for (name, value) in new {
            match declares {
                true => self.let_stmt(&name, mutable, Some(ty), value),
                false => {
                    let target = self.make.name(&name);
                    self.assign(target, value);
                }
            }
        }
    }

    fn fill(&mut self, local: LocalId, value: ExprId, declares: bool) {
        let ty = self.codelet.locals[local].ty;
        let mut new: Vec<(SmolStr, ast::ExprId)> = vec![];
        for d in self.directions_of(local) {
            let tangent = self.tangent(value, d);
            new.push((self.tangent_name(local, d), self.value_of(tangent, ty)));
        }
        new.push((self.name_of(local), self.value(value)));
        for (name, value) in new {
            if declares {
                self.declared(local, &name, value);
                continue;
            }
            let value = self.keep(value, ty);
            let dims = self.codelet.locals[local].array.clone().unwrap_or_default();
            let (mut binders, mut index) = (vec![], vec![]);
            for n in dims {
                let (i, range) = (self.fresh("i"), self.make.span(0, n.into()));
                binders.push(self.make.binder(&i, range));
                index.push(ast::Index::Expr(self.make.name(&i)));
            }
            let (base, value) = (self.make.name(&name), self.make.name(&value));
            let target = self.make.index(base, index);
            let stmts = self.inside(|this| this.assign(target, value));
            let stmt = self.make.stmt(StmtKind::For { binders, body: body(stmts) });
            self.list.push(stmt);
        }
    }

    /// Notes the tangents of a result.
    fn result(&mut self, j: usize, value: ExprId) {
        let ty = self.codelet.exprs[value].ty;
        for d in self.directions.clone() {
            let mut tangent = self.tangent(value, d);
            if let Tangent::Of(t) = tangent {
                let name = self.keep(t, ty);
                tangent = Tangent::Of(self.make.name(&name));
            }
            self.results.insert((j, d), tangent);
        }
    }

    /// Writes a call of a function with a rule, and the tangents of its results.
    fn call(&mut self, call: &RuleCall, homes: &[LocalId]) {
        let mut args = vec![];
        for &x in &call.args {
            let ty = self.codelet.exprs[x].ty;
            let value = self.value(x);
            args.push(if self.codelet.exprs[x].kind.operands().is_empty() {
                value
            } else {
                let name = self.keep(value, ty);
                self.kept.insert(x, name.clone());
                self.make.name(&name)
            });
        }
        let mut given: Vec<ast::Arg> = args.into_iter().map(arg).collect();
        for (name, value) in &call.generics {
            let value = self.make.int(*value as i64);
            given.push(named(name, value));
        }
        let value = self.make.call_name(&call.name, given);
        let mut parts = vec![];
        let mut later = vec![];
        for &result in &call.results {
            let name = if homes.contains(&result) { self.name_of(result) } else { self.fresh("t") };
            parts.push(Pattern::Name(ident(&name)));
            later.push(name);
        }
        let pattern = match parts.len() {
            1 => parts.remove(0),
            _ => Pattern::Tuple(parts, Span::NONE),
        };
        let of = ast::Let { mutable: false, pattern, ty: None, value, span: Span::NONE };
        let stmt = self.make.stmt(StmtKind::Decl(ast::Decl::Let(of)));
        self.list.push(stmt);
        self.of_results(call, &later, homes);
        for (&result, name) in call.results.iter().zip(later).filter(|(r, _)| !homes.contains(r)) {
            // Without a home outside the call, nothing reads it.
            if self.is_read(result) {
                let (target, value) = (self.make.name(&self.name_of(result)), self.make.name(&name));
                self.assign(target, value);
            }
        }
    }

    /// Returns whether something outside its call reads the result of a call.
    fn is_read(&self, result: LocalId) -> bool {
        self.scopes.uses[result] > self.scopes.sets[result]
    }

    /// Writes the tangents of the results of a call.
    fn of_results(&mut self, call: &RuleCall, names: &[SmolStr], homes: &[LocalId]) {
        let reaches = |this: &Self, j: usize| {
            let result = call.results[j];
            this.is_read(result) && !this.directions_of(result).is_empty()
        };
        let reached: Vec<usize> = (0..call.results.len()).filter(|&j| reaches(self, j)).collect();
        if reached.is_empty() {
            return;
        }
        let mut inputs = vec![];
        for &x in &call.args {
            inputs.push(self.shared(x));
        }
        inputs.extend(names.iter().map(|name| self.make.name(name)));
        let (stmts, values) = text::statements(&call.partials, self.make, &mut |_, k| inputs[k]);
        self.list.extend(stmts);
        let mut partials = vec![];
        for (value, &o) in values.into_iter().zip(&call.partials.outputs) {
            let ty = call.partials.code[o].ty.unwrap_or(ElemType::F32);
            partials.push(self.keep(value, ty));
        }
        for j in reached {
            let result = call.results[j];
            let ty = self.codelet.locals[result].ty;
            for d in self.directions_of(result) {
                let mut sum = Tangent::Zero;
                for (k, &(i, _)) in call.by.iter().enumerate().filter(|(_, (_, of))| *of == j) {
                    let from = self.codelet.exprs[call.args[i]].ty;
                    let t = self.tangent(call.args[i], d);
                    let partial = self.make.name(&partials[k]);
                    let risk = may_be_infinite(&call.partials, call.partials.outputs[k]);
                    let mut product = self.chained(partial, risk, t, from);
                    if let (true, Tangent::Of(value)) = (from != ty, product) {
                        product = Tangent::Of(self.builtin(ty.name(), [value]));
                    }
                    sum = self.add(BinaryOp::Add, sum, product);
                }
                let (name, value) = (self.tangent_name(result, d), self.value_of(sum, ty));
                if homes.contains(&result) {
                    self.let_stmt(&name, false, Some(ty), value);
                } else {
                    let target = self.make.name(&name);
                    self.assign(target, value);
                }
            }
        }
    }
}

/// Returns whether a reduction binds a local.
fn is_binder(stmt: &Stmt, local: LocalId) -> bool {
    matches!(stmt, Stmt::Reduce(r) if r.binders.iter().any(|b| b.var == local))
}

/// Returns whether a partial derivative may be infinite where its operands are finite.
fn may_be_infinite(partials: &Formula, id: Id) -> bool {
    let op = &partials.code[id];
    let risky = matches!(
        &op.kind,
        OpKind::Binary(ast::BinaryOp::Div | ast::BinaryOp::Rem)
            | OpKind::Call(..)
            | OpKind::Part(..)
            | OpKind::Bits(_)
            | OpKind::Member(..)
    );
    risky || op.args.iter().any(|&a| may_be_infinite(partials, a))
}
