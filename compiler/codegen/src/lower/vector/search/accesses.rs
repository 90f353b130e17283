//! The addresses of a body's accesses, from iteration to iteration.
//!
//! Invariant: two accesses are treated as the same only if their indices are equal and depend on nothing that the body
//! changes.

use super::Search;
use crate::lower::vector::nest::Steps;
use crate::lower::vector::steps::Step;
use girder_ir::codelet::{BinaryOp, ExprKind, Index, Storage, UnaryOp};
use girder_ir::ids::ExprId;

/// The greatest distance that a pointer moves at once.
const FARTHEST: u64 = 1 << 28;

impl Search<'_, '_, '_> {
    /// Returns the step of an `i64` expression from iteration to iteration, if it is a known constant.
    pub(super) fn slope(&self, e: ExprId, conditional: bool) -> Option<i64> {
        if !self.differ.differs(e) {
            return self.is_safe(e, conditional).then_some(0);
        }
        self.differ.nest.even_step(&self.slopes(e, conditional)?)
    }

    /// Returns the steps of an `i64` expression along the loop and each loop of the nest, if they are known constants.
    fn slopes(&self, e: ExprId, conditional: bool) -> Option<Steps> {
        let nest = &self.differ.nest;
        if !self.differ.differs(e) {
            return self.is_safe(e, conditional).then(|| nest.steps(|_| 0));
        }
        let of = |e: ExprId| self.slopes(e, conditional);
        let scaled = |steps: Steps, n: i64| steps.into_iter().map(|s| s.wrapping_mul(n)).collect();
        let both = |a: Steps, b: Steps, op: fn(i64, i64) -> i64| a.into_iter().zip(b).map(|(a, b)| op(a, b)).collect();
        match self.l().codelet.exprs[e].kind {
            ExprKind::Local(l) if Some(l) == self.differ.var => Some(nest.steps(|along| i64::from(along.is_none()))),
            ExprKind::Local(l) if Some(l) == self.differ.outer => Some(nest.steps(|_| 0)),
            ExprKind::Local(l) if nest.contains(l) => Some(nest.steps(|along| i64::from(along == Some(l)))),
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => Some(both(of(a)?, of(b)?, i64::wrapping_add)),
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => Some(both(of(a)?, of(b)?, i64::wrapping_sub)),
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => match (self.l().known(a), self.l().known(b)) {
                (Some(n), _) => Some(scaled(of(b)?, n)),
                (_, Some(n)) => Some(scaled(of(a)?, n)),
                _ => None,
            },
            ExprKind::Unary { op: UnaryOp::Neg, x } => Some(scaled(of(x)?, -1)),
            _ => None,
        }
    }

    /// Returns the store with which both branches of a condition end, if they differ only in the value.
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

    /// Returns whether two accesses have the same indices, and these depend on nothing that the body changes.
    pub(super) fn is_same_element(&self, a: &Index, b: &Index) -> bool {
        a.iter().zip(b).all(|(&x, &y)| self.is_fixed(x) && self.is_same_expression(x, y))
    }

    /// Returns the byte stride of an access from iteration to iteration.
    pub(super) fn stride(&self, storage: Storage, index: &Index, conditional: bool) -> Option<i64> {
        self.differ.nest.even_step(&self.strides(storage, index, conditional)?)
    }

    /// Returns the byte strides of an access along the loop and each loop of the nest.
    pub(super) fn strides(&self, storage: Storage, index: &Index, conditional: bool) -> Option<Steps> {
        let start = if let Storage::Field(field) = storage { self.differ.step(field) } else { 0 };
        let start = self.differ.nest.steps(|along| if along.is_none() { start } else { 0 });
        let dims = self.l().dims(storage);
        index.iter().zip(&dims).try_fold(start, |sum, (&e, &(_, stride))| {
            let steps = self.slopes(e, conditional)?.into_iter();
            Some(sum.iter().zip(steps).map(|(sum, step)| sum.wrapping_add(step.wrapping_mul(stride))).collect())
        })
    }

    /// Checks that an access moves by a constant from trip to trip of the outer loop, if there is one, and that its
    /// elements have at least 32 bits: kernels over narrow integers have no outer loop.
    pub(super) fn moves_evenly(&self, access: (Storage, &Index), stride: i64) -> Option<()> {
        let Some(outer) = self.differ.outer else { return Some(()) };
        let iterations = self.range.map_or(i128::MAX, |(least, greatest)| greatest - least + 1);
        let bytes = self.l().outer_stride((outer, &self.differ.locals), access)?;
        let near =
            bytes.unsigned_abs() <= FARTHEST && i128::from(stride).abs().saturating_mul(iterations) <= FARTHEST.into();
        (near && self.l().element_type(access.0).bytes() >= 4).then_some(())
    }

    /// Checks that no two iterations access an element that either of them stores. Vertices never do so in fields, by
    /// the race rule, and always do in local arrays, because all vertices share one. Iterations of a loop do not if any
    /// two accesses have an index that always differs.
    pub(super) fn stores_are_disjoint(&self) -> Option<()> {
        let apart = |storage: Storage| {
            let of: Vec<&Index> = self.accesses.iter().filter(|(s, _)| *s == storage).map(|(_, index)| index).collect();
            let clear = |a: &Index, b: &Index| a.iter().zip(b).any(|(&x, &y)| self.are_disjoint(x, y));
            of.iter().enumerate().all(|(n, a)| of[..=n].iter().all(|b| clear(a, b)))
        };
        let stored = &self.differ.stored;
        // The elements of a nest's stores are contiguous.
        let alone = |storage: Storage| {
            let mut of = self.accesses.iter().filter(|(s, _)| *s == storage).map(|(_, index)| index);
            of.next()
                .is_some_and(|first| self.is_same_element(first, first) && of.all(|a| self.is_same_element(a, first)))
        };
        let all = match self.differ.var {
            Some(_) if !self.differ.nest.is_empty() => stored.iter().all(|&s| alone(s)),
            None => stored.iter().all(|s| matches!(s, Storage::Field(_))),
            Some(_) => stored.iter().all(|&s| apart(s)),
        };
        all.then_some(())
    }

    /// Returns whether two indices differ in any two different iterations. They must have equal steps, and their
    /// difference within an iteration must be 0 or not a multiple of the step.
    fn are_disjoint(&self, a: ExprId, b: ExprId) -> bool {
        let ((x, m), (y, n)) = (self.without_number(a), self.without_number(b));
        let Some(slope) = self.slope(x, false).filter(|&s| s != 0) else { return false };
        let apart = i128::from(m) - i128::from(n);
        self.is_fixed(x) && self.is_same_expression(x, y) && (apart == 0 || apart % i128::from(slope) != 0)
    }

    /// Splits an index into an expression and a constant to be added.
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

    /// Returns whether an index depends on no local that the body sets and on no load.
    fn is_fixed(&self, e: ExprId) -> bool {
        let expr = &self.l().codelet.exprs[e];
        let fixed = match expr.kind {
            ExprKind::Local(l) => !self.sets.contains(l),
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => false,
            _ => true,
        };
        fixed && expr.kind.operands().iter().all(|&x| self.is_fixed(x))
    }

    /// Returns whether two expressions are structurally equal.
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
