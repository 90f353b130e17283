//! Branches, as statements and as values.
//!
//! A local that is assigned at the end of each branch, and declared nowhere before, is the value of an `if`:
//! `let t = if c { …; a } else { …; b };`. Several such locals are the members of a tuple.
//!
//! Invariant: an `if` is not printed where typing would make a `Select` of it.

use super::block::Printer;
use super::printed::{Result, unprintable};
use super::scope::BlockId;
use super::value::Form;
use girder_ir::codelet::{ExprKind, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use girder_source::Span;
use girder_syntax::ast::{self, Pattern, StmtId, StmtKind};
use girder_syntax::make::{arg, body, ident};

/// Maximal number of nodes of a value that typing may select.
const SELECT_NODES: u32 = 8;

impl Printer<'_> {
    /// Returns `if c { … } else { … }`, or the declaration of its values.
    pub fn branch(&mut self, cond: ExprId, then: &StmtBlock, els: &StmtBlock, homes: &[LocalId]) -> Result<StmtId> {
        if homes.is_empty() {
            let expr = self.if_statement(cond, then, els)?;
            return Ok(self.stmt(StmtKind::Expr { expr, semi: false }));
        }
        let locals = self.joined([then, els], homes)?;
        let selects = [then, els].iter().all(|arm| arm.len() == 1 && self.is_small(arm));
        let tuple = locals.len() > 1 || selects;
        let cond = self.value(cond, Form::Opaque)?;
        let mut arms = Vec::with_capacity(2);
        for arm in [then, els] {
            arms.push(self.arm(arm, locals.len(), tuple)?);
        }
        let (Some(els), Some(then)) = (arms.pop(), arms.pop()) else { return unprintable("no branch") };
        let els = Some(self.make.expr(ast::ExprKind::Block(Box::new(els))));
        let value = self.make.expr(ast::ExprKind::If { cond, then: Box::new(then), els });
        let mut parts = Vec::with_capacity(locals.len());
        for &local in &locals {
            parts.push(Pattern::Name(ident(&self.declare(local, false, "t")?)));
        }
        let pattern = match parts.pop() {
            Some(only) if !tuple => only,
            last => Pattern::Tuple(parts.into_iter().chain(last).collect(), Span::NONE),
        };
        let decl = ast::Let { mutable: false, pattern, ty: None, value, span: Span::NONE };
        Ok(self.stmt(StmtKind::Decl(ast::Decl::Let(decl))))
    }

    fn if_statement(&mut self, cond: ExprId, then: &StmtBlock, els: &StmtBlock) -> Result<ast::ExprId> {
        let cond = self.value(cond, Form::Opaque)?;
        let then = Box::new(body(self.block(then)?));
        let els = match &els[..] {
            [] => None,
            [Stmt::If { cond, then, els: last }] if self.undeclared((BlockId::of(els), 0)).is_empty() => {
                Some(self.if_statement(*cond, then, last)?)
            }
            _ => {
                let stmts = self.block(els)?;
                Some(self.make.expr(ast::ExprKind::Block(Box::new(body(stmts)))))
            }
        };
        Ok(self.make.expr(ast::ExprKind::If { cond, then, els }))
    }

    /// Returns the locals that the ends of both branches set, in order.
    fn joined(&self, arms: [&StmtBlock; 2], homes: &[LocalId]) -> Result<Vec<LocalId>> {
        let mut locals: Option<Vec<LocalId>> = None;
        let (mut reaching, mut found) = (0, true);
        for arm in arms.into_iter().filter(|arm| Self::reaches_end(arm)) {
            reaching += 1;
            let ends = arm.len().checked_sub(homes.len()).map_or(&[][..], |n| &arm[n..]);
            let set = |stmt: &Stmt| if let Stmt::Set { local, .. } = stmt { Some(*local) } else { None };
            let ends: Vec<LocalId> = ends.iter().filter_map(set).collect();
            found &= ends.len() == homes.len() && locals.as_ref().is_none_or(|first| *first == ends);
            locals.get_or_insert(ends);
        }
        let locals = locals.filter(|locals| found && homes.iter().all(|h| locals.contains(h)));
        match locals {
            Some(locals) if locals.iter().all(|&l| self.scopes.sets[l] == reaching) => Ok(locals),
            _ => unprintable("a local is declared by no statement whose block has all its uses"),
        }
    }

    /// Returns a branch with its value.
    fn arm(&mut self, arm: &StmtBlock, count: usize, tuple: bool) -> Result<ast::Body> {
        if !Self::reaches_end(arm) {
            return Ok(body(self.block(arm)?));
        }
        let first = arm.len() - count;
        let stmts = self.part(arm, first)?;
        let mut values = Vec::with_capacity(count);
        for stmt in &arm[first..] {
            if let Stmt::Set { value, .. } = stmt {
                values.push(self.expr(*value)?);
            }
        }
        let value = match values[..] {
            [only] if !tuple => only,
            _ => self.make.tuple(values.into_iter().map(arg).collect()),
        };
        Ok(ast::Body { stmts, value: Some(value), span: Span::NONE })
    }

    /// Returns whether typing may select the value of a branch that only sets it.
    fn is_small(&self, arm: &StmtBlock) -> bool {
        let mut budget = SELECT_NODES;
        match &arm[..] {
            [Stmt::Set { value, .. }] => self.is_small_value(*value, &mut budget),
            _ => false,
        }
    }

    fn is_small_value(&self, e: ExprId, budget: &mut u32) -> bool {
        let Some(left) = budget.checked_sub(1) else { return false };
        *budget = left;
        match &self.codelet.exprs[e].kind {
            // Only a leaf is known to be in range.
            ExprKind::Load { index, .. } | ExprKind::LoadLocal { index, .. } => {
                index.iter().all(|&i| matches!(self.codelet.exprs[i].kind, ExprKind::Local(_) | ExprKind::Const(_)))
            }
            kind => kind.site().is_none() && kind.operands().iter().all(|&x| self.is_small_value(x, budget)),
        }
    }
}
