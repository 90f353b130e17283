//! The locals that differ from iteration to iteration: the least set of those whose values differ and those that are
//! set under a condition that differs.
//!
//! Invariant: whenever a local outside the set is read, it has the same value in all iterations of a group.

use super::nest::Nest;
use super::steps::Step;
use crate::lower::Lower;
use cranelift_entity::EntitySet;
use girder_ir::codelet::{ExprKind, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId};

/// The information that decides whether an expression differs.
pub(super) struct Differ<'l, 'a, 'b> {
    pub l: &'l Lower<'a, 'b>,
    pub var: Option<LocalId>,
    /// The loops inside it whose iterations are lanes too.
    pub nest: Nest,
    /// The index of the loop around it that a vector kernel runs too. What depends on it counts as different.
    pub outer: Option<LocalId>,
    pub locals: EntitySet<LocalId>,
    /// The storages that the body stores to.
    pub stored: Vec<Storage>,
    /// Whether it is for a vector kernel. A kernel has no branches, so every condition is evaluated for each iteration.
    pub mixed: bool,
}

impl Differ<'_, '_, '_> {
    /// Adds locals until nothing changes. Each round adds at least one.
    pub fn complete(&mut self, steps: &[Step]) {
        while self.round(steps, false) {}
    }

    fn round(&mut self, steps: &[Step], conditional: bool) -> bool {
        let mut grew = false;
        for step in steps {
            match step {
                Step::Set { local, value } => grew |= (conditional || self.differs(*value)) && self.add(*local),
                Step::Store { .. } | Step::Total(_) => {}
                Step::If { cond, then, els, .. } => {
                    let conditional = conditional || self.divides(*cond);
                    grew |= self.round(then, conditional);
                    grew |= self.round(els, conditional);
                }
                Step::For { body, .. } => grew |= self.round(body, conditional),
                Step::Reduce(r) => {
                    grew |= self.round(&r.before, conditional);
                    let differs = r.values().into_iter().any(|e| self.differs(e));
                    grew |= (conditional || differs) && self.add(r.source.dst);
                }
            }
        }
        grew
    }

    fn add(&mut self, local: LocalId) -> bool {
        self.locals.insert(local)
    }

    /// Returns whether an expression may differ from iteration to iteration.
    pub fn differs(&self, e: ExprId) -> bool {
        if self.l.folded[e].is_some() {
            return false;
        }
        let expr = &self.l.codelet.exprs[e];
        let differs = match expr.kind {
            ExprKind::Local(l) => {
                let index = Some(l) == self.var || Some(l) == self.outer || self.nest.contains(l);
                index || self.locals.contains(l)
            }
            ExprKind::Load { field, .. } => self.stored.contains(&Storage::Field(field)) || self.step(field) != 0,
            ExprKind::LoadLocal { local, .. } => self.stored.contains(&Storage::Local(local)),
            ExprKind::ConstField(_) => self.var.is_none() && !self.l.spec.shares_consts(),
            _ => false,
        };
        differs || expr.kind.operands().iter().any(|&x| self.differs(x))
    }

    /// Returns whether both branches of a condition run, and each iteration keeps the results of its own branch.
    pub fn divides(&self, cond: ExprId) -> bool {
        self.differs(cond) || self.mixed && self.l.folded[cond].is_none()
    }

    /// Returns the byte stride from iteration to iteration, if iterations are vertices; otherwise 0.
    pub fn step(&self, field: FieldId) -> i64 {
        match &self.l.spec.lines {
            Some(lines) if self.var.is_none() => lines.steps[field],
            _ => 0,
        }
    }
}
