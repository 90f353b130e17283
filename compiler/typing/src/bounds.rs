//! Bounds checks of sub-views.
//!
//! An access is checked against the dimension of its field or array. If a sub-view is shorter than that, an access
//! through it is first checked against the length of the sub-view, unless the index is a loop index that stays below
//! it.
//!
//! Invariant: an index that is returned as checked is inside the sub-view whenever its checks hold.

use super::builder::Builder;
use super::loops::Bounds;
use super::types::BOOL;
use girder_ir::codelet::{BinaryOp, Check, ExprKind, Stmt};
use girder_ir::ids::{ExprId, SizeId};
use girder_source::Span;

impl Builder<'_, '_> {
    /// Returns an index of a sub-view, with a check if needed.
    pub(super) fn inside(&mut self, index: ExprId, len: ExprId, span: Span) -> ExprId {
        if self.is_below(index, len) {
            return index;
        }
        let index = self.kept(index, "");
        let zero = self.int(0, span);
        self.require([zero, index], [index, len], BinaryOp::Lt, span);
        self.again(index)
    }

    /// Returns the bounds of a range of a sub-view, with a check if needed.
    pub(super) fn part(&mut self, b: Bounds, len: ExprId, span: Span) -> Bounds {
        let from_start = self.const_int(b.lo).is_some_and(|lo| lo >= 0);
        let fits = match (self.const_int(b.hi), self.const_int(len)) {
            (Some(hi), Some(len)) => hi <= len,
            _ => self.same_leaf(b.hi, len),
        };
        if b.step > 0 && from_start && fits {
            return b;
        }
        let (lo, hi) = (self.kept(b.lo, ""), self.kept(b.hi, ""));
        if b.step > 0 {
            let zero = self.int(0, span);
            self.require([zero, lo], [hi, len], BinaryOp::Le, span);
        } else {
            let end = self.int(-1, span);
            self.require([end, hi], [lo, len], BinaryOp::Lt, span);
        }
        Bounds { lo: self.again(lo), hi: self.again(hi), step: b.step }
    }

    /// Fails unless `low[0] <= low[1]` and `high[0] op high[1]`.
    fn require(&mut self, low: [ExprId; 2], high: [ExprId; 2], op: BinaryOp, span: Span) {
        let [a, b] = low.map(|e| self.again(e));
        let a = self.push(ExprKind::Binary { op: BinaryOp::Le, a, b, site: None }, BOOL, span);
        let [x, y] = high.map(|e| self.again(e));
        let b = self.push(ExprKind::Binary { op, a: x, b: y, site: None }, BOOL, span);
        let cond = self.push(ExprKind::AndThen { a, b }, BOOL, span);
        let site = self.site(Check::Assert, span, Some("the index is outside this part of the array".into()));
        self.emit(Stmt::Assert { cond, site });
    }

    /// Returns whether an index is statically inside `0..len`.
    fn is_below(&self, index: ExprId, len: ExprId) -> bool {
        if let (Some(i), Some(n)) = (self.const_int(index), self.const_int(len)) {
            return (0..n).contains(&i);
        }
        self.limit_of(index).is_some_and(|hi| self.same_leaf(hi, len))
    }

    /// Returns whether an index is statically inside `0..size`.
    pub(super) fn is_below_size(&self, index: ExprId, size: SizeId) -> bool {
        self.limit_of(index).is_some_and(|hi| matches!(self.out.exprs[hi].kind, ExprKind::Size(s) if s == size))
    }

    /// Returns whether an index is statically inside `0..n`.
    pub(super) fn is_below_number(&self, index: ExprId, n: u64) -> bool {
        let least = |e: ExprId| self.const_int(e).and_then(|v| u64::try_from(v).ok());
        least(index).is_some_and(|i| i < n) || self.limit_of(index).and_then(least).is_some_and(|hi| hi <= n)
    }

    /// Returns the exclusive upper bound of a loop index.
    fn limit_of(&self, index: ExprId) -> Option<ExprId> {
        match self.out.exprs[index].kind {
            ExprKind::Local(l) => self.local_info[l].below,
            _ => None,
        }
    }

    /// Returns whether two stable leaves have the same value.
    pub(super) fn same_leaf(&self, a: ExprId, b: ExprId) -> bool {
        match (&self.out.exprs[a].kind, &self.out.exprs[b].kind) {
            (ExprKind::Size(x), ExprKind::Size(y)) => x == y,
            (ExprKind::Local(x), ExprKind::Local(y)) => x == y && !self.local_info[*x].mutable,
            (ExprKind::ConstField(x), ExprKind::ConstField(y)) => x == y,
            _ => self.const_int(a).is_some() && self.const_int(a) == self.const_int(b),
        }
    }
}
