//! Copies of expressions and statements in which other expressions replace locals.
//!
//! Invariant: an expression that reads no replaced local is shared, not copied. The recursion is as deep as expressions
//! and statements nest.

use girder_ir::codelet::{Codelet, ExprKind, Index, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use rustc_hash::FxHashMap;

/// A substitution of locals.
pub(super) struct Substitution<'c> {
    codelet: &'c mut Codelet,
    replacements: FxHashMap<LocalId, ExprId>,
    /// The copies so far.
    done: FxHashMap<ExprId, ExprId>,
}

impl<'c> Substitution<'c> {
    /// Replaces these locals.
    pub fn new<const N: usize>(codelet: &'c mut Codelet, replacements: [(LocalId, ExprId); N]) -> Substitution<'c> {
        Substitution { codelet, replacements: replacements.into_iter().collect(), done: FxHashMap::default() }
    }

    /// Copies an expression.
    pub fn expr(&mut self, e: ExprId) -> ExprId {
        if let ExprKind::Local(local) = self.codelet.exprs[e].kind {
            return self.replacements.get(&local).copied().unwrap_or(e);
        }
        if let Some(&done) = self.done.get(&e) {
            return done;
        }
        let mut expr = self.codelet.exprs[e].clone();
        let mut changed = false;
        expr.kind.map_operands(|x| {
            let new = self.expr(x);
            changed |= new != x;
            new
        });
        let new = if changed { self.codelet.exprs.push(expr) } else { e };
        self.done.insert(e, new);
        new
    }

    /// Appends copies of statements that set locals; the copies set new locals.
    pub fn renamed_sets(&mut self, sets: &StmtBlock, out: &mut StmtBlock) {
        for stmt in sets {
            let Stmt::Set { local, value } = stmt else { unreachable!("callers pass statements that set locals only") };
            let value = self.expr(*value);
            let decl = self.codelet.locals[*local].clone();
            let (ty, span) = (decl.ty, self.codelet.exprs[value].span);
            let own = self.codelet.locals.push(decl);
            out.push(Stmt::Set { local: own, value });
            let read = self.codelet.exprs.push(girder_ir::codelet::Expr { kind: ExprKind::Local(own), ty, span });
            self.replacements.insert(*local, read);
            // Earlier copies may have read the old value.
            self.done.clear();
        }
    }

    /// Copies a plain statement: an assignment, a store, a condition or an assertion.
    pub fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Set { local, value } => Stmt::Set { local: *local, value: self.expr(*value) },
            Stmt::Store { field, index, value, site } => {
                let (index, value) = (self.index(index), self.expr(*value));
                Stmt::Store { field: *field, index, value, site: *site }
            }
            Stmt::StoreLocal { local, index, value, site } => {
                let (index, value) = (self.index(index), self.expr(*value));
                Stmt::StoreLocal { local: *local, index, value, site: *site }
            }
            Stmt::If { cond, then, els } => {
                let cond = self.expr(*cond);
                let mut all = |block: &StmtBlock| block.iter().map(|s| self.stmt(s)).collect();
                Stmt::If { cond, then: all(then), els: all(els) }
            }
            Stmt::Assert { cond, site } => Stmt::Assert { cond: self.expr(*cond), site: *site },
            _ => unreachable!("callers pass plain statements only"),
        }
    }

    fn index(&mut self, index: &Index) -> Index {
        index.iter().map(|&e| self.expr(e)).collect()
    }
}
