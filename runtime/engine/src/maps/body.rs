//! Codelets that compute element by element.
//!
//! Invariant: a codelet that has a [`Body`] for given sizes cannot fail, and is loops around statements that each run
//! once for every index of the loops: what they do depends on the constants and on the elements at that index, and on
//! nothing else.

use girder_codelet::facts::Facts;
use girder_codelet::sizes::Sizes;
use girder_ir::codelet::{Codelet, ExprKind, Index, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, FieldId, LocalId, SizeId};
use smallvec::SmallVec;

/// Loops over statements.
pub(super) struct Body<'g> {
    /// Turns of each loop, the outermost first.
    pub turns: Vec<u64>,
    pub statements: &'g StmtBlock,
    /// The fields that statements name.
    pub uses: Vec<Use>,
    /// The sizes that statements name.
    pub sizes: Vec<SizeId>,
}

/// How statements name a field.
pub(super) struct Use {
    pub field: FieldId,
    /// The loop whose index stands at each dimension.
    pub index: SmallVec<[usize; 3]>,
    /// Its old element is wanted.
    pub reads: bool,
    pub writes: bool,
}

impl<'g> Body<'g> {
    /// What a codelet is for these sizes.
    pub fn of(codelet: &'g Codelet, sizes: &Sizes, facts: &Facts) -> Option<Body<'g>> {
        if codelet.multi || codelet.sites.keys().any(|site| !facts.proven.contains(site)) {
            return None;
        }
        let mut statements = &codelet.body;
        let (mut turns, mut vars) = (Vec::new(), Vec::new());
        while let [Stmt::For { var, lo, hi, step: 1, body, .. }] = &statements[..] {
            let known = |e: ExprId| match &codelet.exprs[e].kind {
                ExprKind::Const(value) => value.as_int().and_then(|n| i64::try_from(n).ok()),
                ExprKind::Size(size) => Some(sizes.sizes[*size]),
                _ => None,
            };
            if known(*lo)? != 0 {
                return None;
            }
            turns.push(u64::try_from(known(*hi)?).ok().filter(|&n| n > 0)?);
            vars.push(*var);
            statements = body;
        }
        let mut walk = Walk { codelet, vars, uses: Vec::new(), sizes: Vec::new() };
        let fits = statements.iter().all(|s| walk.statement(s, true));
        fits.then_some(Body { turns, statements, uses: walk.uses, sizes: walk.sizes })
    }
}

/// Looks at statements in the order in which they run.
struct Walk<'g> {
    codelet: &'g Codelet,
    /// Of the loops.
    vars: Vec<LocalId>,
    uses: Vec<Use>,
    sizes: Vec<SizeId>,
}

impl Walk<'_> {
    /// Whether a statement is of the kind; a store is only outside conditions.
    fn statement(&mut self, stmt: &Stmt, outside: bool) -> bool {
        match stmt {
            Stmt::Set { value, .. } => self.expr(*value),
            Stmt::If { cond, then, els } => {
                self.expr(*cond) && then.iter().chain(els).all(|s| self.statement(s, false))
            }
            Stmt::Store { field, index, value, .. } => {
                outside && self.expr(*value) && self.element(*field, index, true)
            }
            _ => false,
        }
    }

    fn expr(&mut self, e: ExprId) -> bool {
        match &self.codelet.exprs[e].kind {
            ExprKind::Size(size) => {
                if !self.sizes.contains(size) {
                    self.sizes.push(*size);
                }
                true
            }
            ExprKind::Local(local) => !self.vars.contains(local),
            ExprKind::Load { field, index, .. } => self.element(*field, index, false),
            ExprKind::Worker | ExprKind::Workers | ExprKind::LoadLocal { .. } => false,
            kind => kind.operands().iter().all(|&x| self.expr(x)),
        }
    }

    /// Whether a field is always named by the same indices of loops.
    fn element(&mut self, field: FieldId, index: &Index, store: bool) -> bool {
        let of = |&e: &ExprId| match &self.codelet.exprs[e].kind {
            ExprKind::Local(local) => self.vars.iter().position(|v| v == local),
            _ => None,
        };
        let Some(index) = index.iter().map(of).collect::<Option<SmallVec<[usize; 3]>>>() else { return false };
        match self.uses.iter_mut().find(|u| u.field == field) {
            Some(known) if known.index == index => {
                known.reads |= !store && !known.writes;
                known.writes |= store;
                true
            }
            Some(_) => false,
            None => {
                self.uses.push(Use { field, index, reads: !store, writes: store });
                true
            }
        }
    }
}
