//! The loops that decide which elements a vertex writes. Only their iterations are worth walking one by one.
//!
//! A store decides, and so does a statement that leaves a loop or the vertex. A loop, a condition or a block decides if
//! a statement in it does. An assignment decides if the local does; these are the locals on which the indices of stores
//! depend, and the conditions and bounds of deciding statements.
//!
//! Invariant: facts hold whatever loops are walked one by one; the choice only makes them more or less precise.

use girder_ir::codelet::{Codelet, ExprKind, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use std::collections::BTreeSet;

/// The deciding loops of a codelet, by the sites of their iterations.
pub(crate) struct DecidingLoops {
    sites: BTreeSet<SiteId>,
}

impl DecidingLoops {
    pub(crate) fn of(codelet: &Codelet) -> DecidingLoops {
        let mut search = Search { codelet, locals: BTreeSet::new(), known: BTreeSet::new(), sites: BTreeSet::new() };
        loop {
            let before = search.locals.len();
            search.block(&codelet.body);
            if search.locals.len() == before {
                return DecidingLoops { sites: search.sites };
            }
        }
    }

    pub(crate) fn contains(&self, site: SiteId) -> bool {
        self.sites.contains(&site)
    }
}

struct Search<'a> {
    codelet: &'a Codelet,
    /// The deciding locals that are known so far.
    locals: BTreeSet<LocalId>,
    /// The expressions whose locals are among them.
    known: BTreeSet<ExprId>,
    sites: BTreeSet<SiteId>,
}

impl Search<'_> {
    /// Adds the locals of the deciding statements of a block. Returns whether there are any. Backwards, a chain of
    /// assignments takes one visit.
    fn block(&mut self, block: &StmtBlock) -> bool {
        block.iter().rev().fold(false, |any, stmt| self.stmt(stmt) | any)
    }

    fn stmt(&mut self, stmt: &Stmt) -> bool {
        let inner = stmt.blocks().fold(false, |any, block| self.block(block) | any);
        let decides = match stmt {
            Stmt::Store { index, .. } => {
                index.iter().for_each(|&e| self.expr(e));
                return true;
            }
            Stmt::Amp(_) | Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return => true,
            Stmt::Set { local, .. } | Stmt::Fill { local, .. } | Stmt::StoreLocal { local, .. } => {
                self.locals.contains(local)
            }
            Stmt::Reduce(reduce) => inner || self.locals.contains(&reduce.dst),
            Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. } | Stmt::Labelled { .. } => inner,
            Stmt::Assert { .. } => false,
        };
        if decides {
            stmt.for_each_expr(|e| self.expr(e));
            if let Stmt::For { site, .. } | Stmt::While { site, .. } = stmt {
                self.sites.insert(*site);
            }
        }
        decides
    }

    /// Adds the locals on which a value depends.
    fn expr(&mut self, e: ExprId) {
        let mut left = vec![e];
        while let Some(e) = left.pop() {
            if !self.known.insert(e) {
                continue;
            }
            let kind = &self.codelet.exprs[e].kind;
            if let ExprKind::Local(local) | ExprKind::LoadLocal { local, .. } = kind {
                self.locals.insert(*local);
            }
            left.extend(kind.operands().iter().copied());
        }
    }
}
