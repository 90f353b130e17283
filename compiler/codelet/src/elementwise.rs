//! Codelets that compute element by element.
//!
//! Invariant: a codelet that is [`Elementwise`] for given sizes cannot fail. It is a nest of loops around statements
//! that each run once for every index of the loops; their effect depends on the constants and on the elements at that
//! index only.

use crate::facts::Facts;
use crate::sizes::Sizes;
use girder_ir::codelet::{Codelet, ExprKind, Index, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, FieldId, LocalId, SizeId};
use smallvec::SmallVec;

/// A nest of loops around statements on single elements.
#[derive(Clone)]
pub struct Elementwise<'g> {
    /// Trip count of each loop, the outermost first.
    pub extents: Vec<u64>,
    /// The body of the innermost loop.
    pub statements: &'g StmtBlock,
    /// The fields that the statements use.
    pub uses: Vec<FieldUse>,
    /// The sizes that the statements name, with their values.
    pub sizes: Vec<(SizeId, i64)>,
}

/// How the statements use a field.
#[derive(Clone)]
pub struct FieldUse {
    /// The field.
    pub field: FieldId,
    /// The loop whose index is used for each dimension.
    pub index: SmallVec<[usize; 3]>,
    /// Whether the old element is read.
    pub reads: bool,
    /// Whether the element is written.
    pub writes: bool,
}

impl<'g> Elementwise<'g> {
    /// Returns a codelet as a nest of loops, or `None` if it is not elementwise for these sizes.
    pub fn of(codelet: &'g Codelet, sizes: &Sizes, facts: &Facts) -> Option<Elementwise<'g>> {
        if codelet.multi || codelet.sites.keys().any(|site| !facts.proven.contains(site)) {
            return None;
        }
        let mut statements = &codelet.body;
        let (mut extents, mut vars) = (Vec::new(), Vec::new());
        while let [Stmt::For { var, lo, hi, step: 1, body, .. }] = &statements[..] {
            let known = |e: ExprId| match &codelet.exprs[e].kind {
                ExprKind::Const(value) => value.as_int().and_then(|n| i64::try_from(n).ok()),
                ExprKind::Size(size) => Some(sizes.sizes[*size]),
                _ => None,
            };
            if known(*lo)? != 0 {
                return None;
            }
            extents.push(u64::try_from(known(*hi)?).ok().filter(|&n| n > 0)?);
            vars.push(*var);
            statements = body;
        }
        let mut visit = Visitor { codelet, vars, uses: Vec::new(), sizes: Vec::new() };
        let fits = statements.iter().all(|s| visit.statement(s, true));
        let named = visit.sizes.iter().map(|&size| (size, sizes.sizes[size]));
        fits.then(|| Elementwise { extents, statements, uses: visit.uses, sizes: named.collect() })
    }
}

/// Visits statements in the order in which they run.
struct Visitor<'g> {
    codelet: &'g Codelet,
    /// The indices of the loops.
    vars: Vec<LocalId>,
    uses: Vec<FieldUse>,
    sizes: Vec<SizeId>,
}

impl Visitor<'_> {
    /// Returns whether a statement is allowed in the body. Stores are not allowed in conditions.
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

    /// Notes an access; returns whether all accesses of the field have the same indices of loops.
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
                self.uses.push(FieldUse { field, index, reads: !store, writes: store });
                true
            }
        }
    }
}
