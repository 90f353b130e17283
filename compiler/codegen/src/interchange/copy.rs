//! Expressions and statements with other expressions in the place of locals.
//!
//! Invariant: what has no such local in it is shared, not copied.

use girder_ir::codelet::{Codelet, ExprKind, Index, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use rustc_hash::FxHashMap;

pub(crate) struct Copy<'c> {
    codelet: &'c mut Codelet,
    instead: FxHashMap<LocalId, ExprId>,
    done: FxHashMap<ExprId, ExprId>,
}

impl<'c> Copy<'c> {
    pub fn new<const N: usize>(codelet: &'c mut Codelet, instead: [(LocalId, ExprId); N]) -> Copy<'c> {
        Copy { codelet, instead: instead.into_iter().collect(), done: FxHashMap::default() }
    }

    /// Recursion is bounded by `validate`.
    pub fn expr(&mut self, e: ExprId) -> ExprId {
        if let ExprKind::Local(local) = self.codelet.exprs[e].kind {
            return self.instead.get(&local).copied().unwrap_or(e);
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

    /// Statements that set locals, with locals of their own.
    pub fn renamed_sets(&mut self, sets: &StmtBlock, out: &mut StmtBlock) {
        for stmt in sets {
            let Stmt::Set { local, value } = stmt else { unreachable!("`find` lets only these through") };
            let value = self.expr(*value);
            let decl = self.codelet.locals[*local].clone();
            let (ty, span) = (decl.ty, self.codelet.exprs[value].span);
            let own = self.codelet.locals.push(decl);
            out.push(Stmt::Set { local: own, value });
            let read = self.codelet.exprs.push(girder_ir::codelet::Expr { kind: ExprKind::Local(own), ty, span });
            self.instead.insert(*local, read);
            // What was copied before may have read the old value.
            self.done.clear();
        }
    }

    /// A statement of the kind that `find` lets stand beside a reduction.
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
            _ => unreachable!("`find` lets no such statement through"),
        }
    }

    fn index(&mut self, index: &Index) -> Index {
        index.iter().map(|&e| self.expr(e)).collect()
    }
}
