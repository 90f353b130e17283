//! Interchanges loops over columns that reduce rows whose number is not known, or that lie along several axes.
//!
//! ```text
//! for j in 0..n { let s = sum k in 0..b, i in lo..hi { x[k, i, j] * z[k, i, j] }; y[j] = s; }
//! ```
//!
//! As in the interchange of known rows, an array keeps the sixteen lanes of all columns. A row goes to the lane of its
//! position, which the rewritten loop counts. It takes sixteen rows at a time, so that a lane is loaded and stored once
//! for each, and the remaining ones by 8, 4, 2 and 1:
//!
//! ```text
//! for k in 0..b {
//!     for i in blocks of 16 of lo..hi { for j in 0..n { lanes[p % 16, j] = …; lanes[(p + 1) % 16, j] = …; … } }
//!     …
//!     p = (p + hi - lo) % 16;
//! }
//! for j in 0..n { let s = lanes[.., j] by 8, 4, 2, 1; y[j] = s; }
//! ```
//!
//! Invariant: every lane takes the elements that it takes in the original, in the same order.

use super::find::ColumnLoop;
use super::{LANES, Lanes, PANEL_BYTES, Panel, Rewrite};
use crate::rewrite::substitute::Substitution;
use girder_codelet::interpret::identity;
use girder_codelet::kernel::{ARRAY_BYTES, array_bytes};
use girder_ir::codelet::{BinaryOp, Binder, Check, ExprKind, Index, Label, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::smallvec;

/// The state of the interchanged loop.
struct Open<'c, 'a> {
    c: &'c ColumnLoop<'a>,
    lanes: Lanes,
    /// The lane of the next row.
    position: LocalId,
    /// The number of rows so far.
    rows: LocalId,
    span: Span,
}

impl<'a> Rewrite<'a> {
    /// Returns the interchanged loop, or `None` if its lanes do not fit.
    pub(super) fn open_rows(&mut self, c: &ColumnLoop<'a>) -> Option<StmtBlock> {
        let ty = self.codelet.exprs[c.reduce.value].ty;
        let bytes = LANES * c.columns * i64::from(ty.bytes());
        if bytes > PANEL_BYTES || array_bytes(&self.codelet) + bytes as u64 > ARRAY_BYTES / 2 {
            return None;
        }
        let span = self.codelet.exprs[c.reduce.value].span;
        let lanes = self.lanes((LANES, c.columns), c.reduce.op, ty, span);
        let open = Open { c, lanes, position: self.local(), rows: self.local(), span };
        let start = Scalar::new(ty, identity(c.reduce.op, ty));
        let start = self.expr(ty, ExprKind::Const(start), span);
        let none = self.int(0, span);
        let mut block = vec![
            Stmt::Fill { local: lanes.array, value: start },
            Stmt::Set { local: open.position, value: none },
            Stmt::Set { local: open.rows, value: none },
        ];
        let (last, outer) = c.reduce.binders.split_last()?;
        block.extend(self.rows_of(&open, outer, last, &mut Vec::new()));
        let first = self.int(c.first, span);
        let (rows, zero) = (self.read(open.rows, span), self.int(0, span));
        let any = ExprKind::Binary { op: BinaryOp::Gt, a: rows, b: zero, site: None };
        let any = self.expr(ElemType::Bool, any, span);
        block.push(self.folds(c, &lanes, Panel { first, width: c.columns, done: 0 }, Some(any)));
        Some(block)
    }

    /// Emits the loops of the outer binders around the rows of the last one. `indices` are those of the loops so far.
    fn rows_of(
        &mut self,
        open: &Open<'_, 'a>,
        outer: &[Binder],
        last: &Binder,
        indices: &mut Vec<(LocalId, LocalId)>,
    ) -> StmtBlock {
        let Some((binder, inner)) = outer.split_first() else { return self.last_axis(open, last, indices) };
        let var = self.local();
        indices.push((binder.var, var));
        let body = self.rows_of(open, inner, last, indices);
        indices.pop();
        vec![self.loop_over((var, binder.lo, binder.hi, binder.step), body, open.span)]
    }

    /// Emits all rows along the last binder.
    fn last_axis(&mut self, open: &Open<'_, 'a>, last: &Binder, outer: &[(LocalId, LocalId)]) -> StmtBlock {
        let span = open.span;
        let [first, count, done] = [(); 3].map(|()| self.local());
        let mut block = vec![Stmt::Set { local: first, value: last.lo }];
        let from = self.read(first, span);
        let length = self.binary(BinaryOp::Sub, last.hi, from, span);
        let none = self.int(0, span);
        // The difference may wrap where there is no row.
        let any = ExprKind::Binary { op: BinaryOp::Lt, a: from, b: last.hi, site: None };
        let cond = self.expr(ElemType::Bool, any, span);
        let length = self.expr(ElemType::I64, ExprKind::Select { cond, a: length, b: none }, span);
        block.push(Stmt::Set { local: count, value: length });
        let all = self.read(count, span);
        // Whole blocks of sixteen rows, whose lanes are those of the block before.
        let mask = self.int(-LANES, span);
        let whole = self.binary(BinaryOp::And, all, mask, span);
        let body = self.block_of(open, (last, first, done), outer, LANES);
        block.push(self.loop_over((done, none, whole, LANES), vec![body], span));
        for rows in [8, 4, 2, 1] {
            let (bit, ahead) = (self.int(rows, span), self.local());
            // The rows before are those of the greater powers of two.
            let mask = self.int(-2 * rows, span);
            let before = self.binary(BinaryOp::And, all, mask, span);
            let left = self.binary(BinaryOp::And, all, bit, span);
            let any = ExprKind::Binary { op: BinaryOp::Ne, a: left, b: none, site: None };
            let cond = self.expr(ElemType::Bool, any, span);
            let then =
                vec![Stmt::Set { local: ahead, value: before }, self.block_of(open, (last, first, ahead), outer, rows)];
            block.push(Stmt::If { cond, then, els: vec![] });
        }
        let (position, so_far) = (self.read(open.position, span), self.read(open.rows, span));
        let position = self.binary(BinaryOp::Add, position, all, span);
        let position = self.lane_of(position, span);
        block.push(Stmt::Set { local: open.position, value: position });
        let so_far = self.binary(BinaryOp::Add, so_far, all, span);
        block.push(Stmt::Set { local: open.rows, value: so_far });
        block
    }

    /// Emits a loop over columns that takes `rows` rows, the first of which is `ahead` after `first`. Blocks of fewer
    /// rows follow those of more, so the first row of all goes to the lane of the position plus `ahead`.
    fn block_of(
        &mut self,
        open: &Open<'_, 'a>,
        (last, first, ahead): (&Binder, LocalId, LocalId),
        outer: &[(LocalId, LocalId)],
        rows: i64,
    ) -> Stmt {
        let (c, span) = (open.c, open.span);
        let column = self.local();
        let column_index = self.read(column, span);
        let j = {
            let from = self.int(c.first, span);
            self.sum(from, column_index, span)
        };
        let (from, ahead) = (self.read(first, span), self.read(ahead, span));
        let from = self.sum(from, ahead, span);
        let position = self.read(open.position, span);
        let position = self.sum(position, ahead, span);
        let mut body = StmtBlock::new();
        for n in 0..rows {
            let n = self.int(n, span);
            let i = self.sum(from, n, span);
            let lane = self.sum(position, n, span);
            let lane = self.lane_of(lane, span);
            let at: Index = smallvec![lane, column_index];
            let indices: Vec<(LocalId, ExprId)> = outer.iter().map(|&(var, new)| (var, self.read(new, span))).collect();
            let mut copy = Substitution::new(&mut self.codelet, [(c.var, j), (last.var, i)]);
            indices.into_iter().for_each(|(var, index)| copy.replace(var, index));
            copy.renamed_sets(&c.reduce.before, &mut body);
            let taken = (copy.expr(c.reduce.value), c.reduce.factors.map(|(x, y)| (copy.expr(x), copy.expr(y))));
            let old = self.lane(&open.lanes, at.clone());
            let value = self.in_order(&open.lanes, Some(old), &[taken]);
            let site = self.site(Check::Index, span);
            body.push(Stmt::StoreLocal { local: open.lanes.array, index: at, value, site });
        }
        self.counted((column, 0, c.columns, 1), body, span)
    }

    fn lane_of(&mut self, position: ExprId, span: Span) -> ExprId {
        let mask = self.int(LANES - 1, span);
        self.binary(BinaryOp::And, position, mask, span)
    }

    fn loop_over(&mut self, (var, lo, hi, step): (LocalId, ExprId, ExprId, i64), body: StmtBlock, span: Span) -> Stmt {
        let label = Label(self.label);
        self.label += 1;
        Stmt::For { var, lo, hi, step, label, body, site: self.site(Check::Iterations, span) }
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId, span: Span) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Binary { op, a, b, site: None }, span)
    }
}
