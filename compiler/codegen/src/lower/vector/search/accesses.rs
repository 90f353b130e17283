//! Where the accesses of a body are, from iteration to iteration.
//!
//! Invariant: two accesses are taken for one only if no value that the body changes could tell them apart.

use super::Search;
use crate::lower::vector::steps::Step;
use girder_ir::codelet::{BinaryOp, ExprKind, Index, Storage, UnaryOp};
use girder_ir::ids::ExprId;

impl Search<'_, '_, '_> {
    /// By how much an `i64` expression grows from iteration to iteration, if that is a number.
    pub(super) fn slope(&self, e: ExprId, conditional: bool) -> Option<i64> {
        if !self.differ.differs(e) {
            return self.is_safe(e, conditional).then_some(0);
        }
        match self.l().codelet.exprs[e].kind {
            ExprKind::Local(l) if Some(l) == self.differ.var => Some(1),
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => {
                Some(self.slope(a, conditional)?.wrapping_add(self.slope(b, conditional)?))
            }
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => {
                Some(self.slope(a, conditional)?.wrapping_sub(self.slope(b, conditional)?))
            }
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => match (self.l().known(a), self.l().known(b)) {
                (Some(n), _) => Some(self.slope(b, conditional)?.wrapping_mul(n)),
                (_, Some(n)) => Some(self.slope(a, conditional)?.wrapping_mul(n)),
                _ => None,
            },
            ExprKind::Unary { op: UnaryOp::Neg, x } => Some(self.slope(x, conditional)?.wrapping_neg()),
            _ => None,
        }
    }

    /// The store that both branches of a condition end with, if it is the same but for the value.
    pub(super) fn join<'s>(&self, then: &'s [Step], els: &'s [Step]) -> Option<(Storage, &'s Index)> {
        let ((a, at), (b, other)) = (self.last_store(then)?, self.last_store(els)?);
        (a == b && self.is_same_element(at, other)).then_some((a, at))
    }

    fn last_store<'s>(&self, steps: &'s [Step]) -> Option<(Storage, &'s Index)> {
        match steps.last()? {
            Step::Store { storage, index, .. } => Some((*storage, index)),
            Step::If { cond, then, els, .. } if self.differ.divides(*cond) => self.join(then, els),
            _ => None,
        }
    }

    /// Whether two indices are that are the same expression of what the body does not change.
    pub(super) fn is_same_element(&self, a: &Index, b: &Index) -> bool {
        a.iter().zip(b).all(|(&x, &y)| self.is_fixed(x) && self.is_same_expression(x, y))
    }

    /// Bytes from iteration to iteration.
    pub(super) fn stride(&self, storage: Storage, index: &Index, conditional: bool) -> Option<i64> {
        let start = if let Storage::Field(field) = storage { self.differ.step(field) } else { 0 };
        let dims = self.l().dims(storage);
        index.iter().zip(&dims).try_fold(start, |sum, (&e, &(_, stride))| {
            Some(sum.wrapping_add(self.slope(e, conditional)?.wrapping_mul(stride)))
        })
    }

    /// Whether no two iterations touch an element that either stores. Vertices never do in fields, by the race rule,
    /// and always in local arrays, of which there is one; iterations of a loop do not if, for any two accesses, some
    /// index keeps them apart.
    pub(super) fn stores_are_disjoint(&self) -> Option<()> {
        let apart = |storage: Storage| {
            let of: Vec<&Index> = self.accesses.iter().filter(|(s, _)| *s == storage).map(|(_, index)| index).collect();
            let clear = |a: &Index, b: &Index| a.iter().zip(b).any(|(&x, &y)| self.are_disjoint(x, y));
            of.iter().enumerate().all(|(n, a)| of[..=n].iter().all(|b| clear(a, b)))
        };
        let stored = &self.differ.stored;
        let all = match self.differ.var {
            None => stored.iter().all(|s| matches!(s, Storage::Field(_))),
            Some(_) => stored.iter().all(|&s| apart(s)),
        };
        all.then_some(())
    }

    /// Whether two indices differ in any two iterations: they grow equally, and are equal in each iteration or as far
    /// apart as they never come by growing.
    fn are_disjoint(&self, a: ExprId, b: ExprId) -> bool {
        let ((x, m), (y, n)) = (self.without_number(a), self.without_number(b));
        let Some(slope) = self.slope(x, false).filter(|&s| s != 0) else { return false };
        let apart = i128::from(m) - i128::from(n);
        self.is_fixed(x) && self.is_same_expression(x, y) && (apart == 0 || apart % i128::from(slope) != 0)
    }

    /// An index as an expression and a number to be added.
    fn without_number(&self, e: ExprId) -> (ExprId, i64) {
        let ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), a, b, .. } = self.l().codelet.exprs[e].kind
        else {
            return (e, 0);
        };
        match (op, self.l().known(a), self.l().known(b)) {
            (BinaryOp::Add, Some(number), None) => {
                let (rest, more) = self.without_number(b);
                (rest, more.wrapping_add(number))
            }
            (_, None, Some(number)) => {
                let (rest, more) = self.without_number(a);
                (rest, if op == BinaryOp::Add { more.wrapping_add(number) } else { more.wrapping_sub(number) })
            }
            _ => (e, 0),
        }
    }

    /// Whether an index depends on nothing that the body sets.
    fn is_fixed(&self, e: ExprId) -> bool {
        let expr = &self.l().codelet.exprs[e];
        let fixed = match expr.kind {
            ExprKind::Local(l) => !self.sets.contains(l),
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => false,
            _ => true,
        };
        fixed && expr.kind.operands().iter().all(|&x| self.is_fixed(x))
    }

    /// Whether two expressions are the same expression.
    fn is_same_expression(&self, a: ExprId, b: ExprId) -> bool {
        let l = self.l();
        if a == b || l.folded[a].is_some() && l.folded[a] == l.folded[b] {
            return true;
        }
        match (&l.codelet.exprs[a].kind, &l.codelet.exprs[b].kind) {
            (ExprKind::Local(x), ExprKind::Local(y)) => x == y,
            (ExprKind::ConstField(x), ExprKind::ConstField(y)) => x == y,
            (&ExprKind::Unary { op, x }, &ExprKind::Unary { op: op2, x: y }) => {
                op == op2 && self.is_same_expression(x, y)
            }
            (&ExprKind::Binary { op, a, b, .. }, &ExprKind::Binary { op: op2, a: a2, b: b2, .. }) => {
                op == op2 && self.is_same_expression(a, a2) && self.is_same_expression(b, b2)
            }
            _ => false,
        }
    }
}
