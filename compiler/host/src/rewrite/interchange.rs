//! Interchanges loops over columns that each reduce their rows: they become loops over rows of columns.
//!
//! ```text
//! for j in 0..n { let s = sum i in 0..m { x[i, j] }; y[j] = s; }
//! ```
//!
//! reads one element of each row before it comes to the next column. The rewritten loop keeps the sixteen lanes of all
//! columns of a panel in an array, so that every row is read from its start to its end:
//!
//! ```text
//! for each panel of columns {
//!     for rows in blocks of 128, lane in 0..16, j in panel {
//!         lanes[lane, j] = lanes[lane, j] op x[row + lane, j] op x[row + 16 + lane, j] op …;
//!     }
//!     for j in panel { let s = lanes[.., j] by 8, 4, 2, 1; y[j] = s; }
//! }
//! ```
//!
//! The code generator vectorises the innermost loops like any other.
//!
//! - `find` decides which loops over columns qualify;
//! - `distribute` splits a loop over columns that does more into loops that do one thing each;
//! - `open_rows` interchanges loops whose rows are not known;
//! - `block_nests` blocks nests of two loops whose elements are contiguous along the outer index.
//!
//! Invariant: every lane takes the elements that it takes in the original, in the same order, so the bits are the same.
//! The expressions that are moved cannot fail and read nothing that the loop stores.

mod find;
mod distribute;
mod open_rows;
mod block_nests;

use super::Rewritten;
use super::substitute::{Substitution, next_label};
use cranelift_entity::{EntitySet, SecondaryMap};
use find::ColumnLoop;
use girder_codelet::fold::{Folded, fold};
use girder_codelet::kernel::{ARRAY_BYTES, KernelSpec, KernelTarget, array_bytes};
use girder_codelet::locals::reads;
use girder_codelet::scalar::is_ordered;
use girder_codelet::work::code_of;
use girder_ir::codelet::{
    BinaryOp, Check, Codelet, Expr, ExprKind, Index, Label, Local, ReduceOp, Site, Stmt, StmtBlock,
};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::smallvec;

/// Lanes of a reduction whose order matters.
const LANES: i64 = 16;
/// Maximal unroll factor over rows: a lane is loaded and stored once for this many rows.
const MAX_UNROLL: u64 = 8;
/// Nodes of code of an unrolled body.
const UNROLLED_NODES: u64 = 64;
/// Bytes of a vector that cannot be partial.
const VECTOR_BYTES: i64 = 16;
/// Bytes of the lanes of a panel, which stay in the first-level cache together with the rows.
const PANEL_BYTES: i64 = 16 << 10;
/// The width of a panel is a multiple of this many columns.
const PANEL_UNIT: i64 = 16;

/// Returns the codelet with all profitable loops interchanged, or `None` if there are none.
pub(super) fn interchange(spec: &KernelSpec<'_>, target: KernelTarget) -> Option<Rewritten> {
    Rewrite::each_stmt(spec, target, |rewrite, stmt| {
        if let Some(columns) = rewrite.columns(stmt)
            && let Some(panels) = rewrite.panels(&columns)
        {
            return Some(panels);
        }
        if let Some(columns) = rewrite.open_columns(stmt)
            && let Some(rows) = rewrite.open_rows(&columns)
        {
            return Some(rows);
        }
        let nest = rewrite.strided_nest(stmt)?;
        Some(rewrite.blocked(&nest))
    })
}

/// Returns the codelet with the loops over columns distributed that gain by it, or `None` if there are none.
pub(super) fn distribute(spec: &KernelSpec<'_>, target: KernelTarget) -> Option<Rewritten> {
    Rewrite::each_stmt(spec, target, Rewrite::distributed)
}

struct Rewrite<'a> {
    spec: &'a KernelSpec<'a>,
    target: KernelTarget,
    /// Known values of the original codelet.
    folded: Folded,
    /// The number of reads of each local in the original codelet.
    reads: SecondaryMap<LocalId, u32>,
    codelet: Codelet,
    proven: EntitySet<SiteId>,
    /// The next free label.
    label: u32,
}

/// Columns that are reduced together.
#[derive(Clone, Copy)]
struct Panel {
    /// The first column.
    first: ExprId,
    width: i64,
    /// The number of leading columns whose results are already stored.
    done: i64,
}

/// Rows that one pass over a panel adds.
#[derive(Clone, Copy)]
struct RowBlock {
    /// The first row.
    first: ExprId,
    /// The lanes that take a row, as a range.
    lanes: (i64, i64),
    /// Rows that each lane takes.
    unroll: i64,
    /// Whether these are the first rows, so that the lanes are still empty.
    begin: bool,
}

/// The lanes of a panel: an array `[lanes, width]`.
#[derive(Clone, Copy)]
struct Lanes {
    array: LocalId,
    count: i64,
    ty: ElemType,
    op: ReduceOp,
    span: Span,
}

/// Finds the statements that replace one.
type Replace<'r, 'a> = dyn FnMut(&mut Rewrite<'a>, &'a Stmt) -> Option<StmtBlock> + 'r;

/// An element of a reduction, and its factors if it is a product.
type Taken = (ExprId, Option<(ExprId, ExprId)>);

impl<'a> Rewrite<'a> {
    /// Returns the codelet in which other statements replace those for which `replace` finds some, the outermost first.
    fn each_stmt(
        spec: &'a KernelSpec<'a>,
        target: KernelTarget,
        replace: impl Fn(&mut Self, &'a Stmt) -> Option<StmtBlock>,
    ) -> Option<Rewritten> {
        if !find::has_candidate(&spec.codelet.body) {
            return None;
        }
        let mut rewrite = Rewrite {
            spec,
            target,
            folded: fold(spec.codelet, spec.sizes),
            reads: reads(spec.codelet, &spec.codelet.body),
            codelet: spec.codelet.clone(),
            proven: spec.proven.clone(),
            label: next_label(&spec.codelet.body),
        };
        let mut changed = false;
        let body = rewrite.block(&spec.codelet.body, &mut |rewrite, stmt| {
            let new = replace(rewrite, stmt);
            changed |= new.is_some();
            new
        });
        rewrite.codelet.body = body;
        changed.then_some(Rewritten { codelet: rewrite.codelet, proven: rewrite.proven })
    }

    fn block(&mut self, block: &'a StmtBlock, replace: &mut Replace<'_, 'a>) -> StmtBlock {
        block.iter().flat_map(|stmt| self.stmt(stmt, replace)).collect()
    }

    fn stmt(&mut self, stmt: &'a Stmt, replace: &mut Replace<'_, 'a>) -> StmtBlock {
        if let Some(new) = replace(self, stmt) {
            return new;
        }
        vec![match stmt {
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let body = self.block(body, replace);
                Stmt::For { var: *var, lo: *lo, hi: *hi, step: *step, label: *label, body, site: *site }
            }
            Stmt::If { cond, then, els } => {
                Stmt::If { cond: *cond, then: self.block(then, replace), els: self.block(els, replace) }
            }
            Stmt::Labelled { label, body } => Stmt::Labelled { label: *label, body: self.block(body, replace) },
            other => other.clone(),
        }]
    }

    /// Returns the panels of a loop over columns, or `None` if their lanes do not fit.
    fn panels(&mut self, c: &ColumnLoop<'a>) -> Option<StmtBlock> {
        let ty = self.codelet.exprs[c.reduce.value].ty;
        let count = if is_ordered(c.reduce.op, ty) { LANES } else { 1 };
        let most = PANEL_BYTES / (count * i64::from(ty.bytes()));
        // Columns that do not fill a vector are a panel that ends with the last column: some columns are computed
        // twice.
        let vector = if self.target.vector_kernels { 1 } else { VECTOR_BYTES / i64::from(ty.bytes()) };
        let (all, over) = (c.columns - c.columns % vector, c.columns % vector);
        let panels = (all + most - 1) / most;
        let width = (((all + panels - 1) / panels + PANEL_UNIT - 1) / PANEL_UNIT * PANEL_UNIT).min(all);
        let span = self.codelet.exprs[c.reduce.value].span;
        let room = count * (width + if over > 0 { vector } else { 0 }) * i64::from(ty.bytes());
        if array_bytes(&self.codelet) + room as u64 > ARRAY_BYTES / 2 {
            return None;
        }
        let lanes = self.lanes((count, width), c.reduce.op, ty, span);
        let mut block = StmtBlock::new();
        let (whole, rest) = (all / width, all % width);
        let (first, lo) = (self.local(), c.first);
        let body = {
            let first = self.read(first, span);
            self.panel(c, &lanes, Panel { first, width, done: 0 })
        };
        block.push(self.counted((first, lo, lo + whole * width, width), body, span));
        if rest > 0 {
            let first = self.int(lo + whole * width, span);
            block.extend(self.panel(c, &lanes, Panel { first, width: rest, done: 0 }));
        }
        if over > 0 {
            let lanes = self.lanes((count, vector), c.reduce.op, ty, span);
            let first = self.int(lo + c.columns - vector, span);
            block.extend(self.panel(c, &lanes, Panel { first, width: vector, done: vector - over }));
        }
        Some(block)
    }

    fn lanes(&mut self, (count, width): (i64, i64), op: ReduceOp, ty: ElemType, span: Span) -> Lanes {
        let dims = smallvec![count as u32, width as u32];
        let array = self.codelet.locals.push(Local { name: "".into(), ty, array: Some(dims) });
        Lanes { array, count, ty, op, span }
    }

    /// Returns the statements of a panel: its lanes take the rows, then they are folded.
    fn panel(&mut self, c: &ColumnLoop<'a>, lanes: &Lanes, panel: Panel) -> StmtBlock {
        let code = code_of(self.spec.codelet, c.reduce.value);
        let (each, over) = (c.rows / lanes.count, c.rows % lanes.count);
        let most = (UNROLLED_NODES / code).clamp(1, MAX_UNROLL);
        let blocks = (each as u64).div_ceil(most) as i64;
        let unroll = (each + blocks - 1) / blocks;
        // The last block has the remaining rows, and one row more for the first lanes.
        let blocks = (each + unroll - 1) / unroll;
        let last = each - (blocks - 1) * unroll;
        let row = |block: i64| c.first_row + block * unroll * lanes.count;
        let first = self.int(row(0), lanes.span);
        let begin = RowBlock { first, lanes: (0, lanes.count), unroll, begin: true };
        let mut block = if blocks == 1 { self.last_rows(c, lanes, panel, begin, over) } else { vec![] };
        if blocks > 1 {
            block.push(self.rows(c, lanes, panel, begin));
        }
        if blocks > 2 {
            let var = self.local();
            let rows = RowBlock { first: self.read(var, lanes.span), begin: false, ..begin };
            let body = self.rows(c, lanes, panel, rows);
            block.push(self.counted((var, row(1), row(blocks - 1), row(1) - row(0)), vec![body], lanes.span));
        }
        if blocks > 1 {
            let first = self.int(row(blocks - 1), lanes.span);
            let rows = RowBlock { first, unroll: last, begin: false, ..begin };
            block.extend(self.last_rows(c, lanes, panel, rows, over));
        }
        block.push(self.folds(c, lanes, panel, None));
        block
    }

    /// Adds the last rows, of which the first lanes take one more than the others.
    fn last_rows(&mut self, c: &ColumnLoop<'a>, lanes: &Lanes, panel: Panel, rows: RowBlock, over: i64) -> StmtBlock {
        let longer = RowBlock { lanes: (0, over), unroll: rows.unroll + 1, ..rows };
        let others = RowBlock { lanes: (over, lanes.count), ..rows };
        let all = [longer, others].into_iter().filter(|r| r.lanes.0 < r.lanes.1);
        all.map(|rows| self.rows(c, lanes, panel, rows)).collect()
    }

    fn rows(&mut self, c: &ColumnLoop<'a>, lanes: &Lanes, panel: Panel, rows: RowBlock) -> Stmt {
        let span = lanes.span;
        let (lane, column) = (self.local(), self.local());
        let (lane_index, column_index) = (self.read(lane, span), self.read(column, span));
        let j = self.sum(panel.first, column_index, span);
        let at: Index = smallvec![lane_index, column_index];
        let old = (!rows.begin).then(|| self.lane(lanes, at.clone()));
        let mut body = StmtBlock::new();
        let row = self.sum(rows.first, lane_index, span);
        let mut taken = Vec::new();
        for n in 0..rows.unroll {
            let ahead = self.int(n * lanes.count, span);
            let i = self.sum(row, ahead, span);
            let mut copy = Substitution::new(&mut self.codelet, [(c.var, j), (c.reduce.binders[0].var, i)]);
            copy.renamed_sets(&c.reduce.before, &mut body);
            let value = copy.expr(c.reduce.value);
            taken.push((value, c.reduce.factors.map(|(x, y)| (copy.expr(x), copy.expr(y)))));
        }
        let value =
            if lanes.count == 1 { self.in_any_order(lanes, old, &taken) } else { self.in_order(lanes, old, &taken) };
        let site = self.site(Check::Index, span);
        body.push(Stmt::StoreLocal { local: lanes.array, index: at, value, site });
        let columns = self.counted((column, 0, panel.width, 1), body, span);
        self.counted((lane, rows.lanes.0, rows.lanes.1, 1), vec![columns], span)
    }

    /// Returns the value of a lane with more elements added. Without an old value it starts with the identity; there
    /// `fma(x, y, -0.0)` is the rounded product.
    fn in_order(&mut self, lanes: &Lanes, old: Option<ExprId>, taken: &[Taken]) -> ExprId {
        let add = |old: Option<ExprId>, &(value, factors): &Taken| {
            Some(match (old, factors) {
                (None, _) => value,
                (Some(c), Some((a, b))) => self.expr(lanes.ty, ExprKind::Fma { a, b, c }, lanes.span),
                (Some(old), None) => self.combine(lanes, old, value),
            })
        };
        taken.iter().fold(old, add).expect("a block takes at least one row")
    }

    /// As [`in_order`](Self::in_order), for an operation whose order does not matter, with the shortest chain of
    /// dependencies.
    fn in_any_order(&mut self, lanes: &Lanes, old: Option<ExprId>, taken: &[Taken]) -> ExprId {
        let mut values: Vec<ExprId> = taken.iter().map(|t| t.0).chain(old).collect();
        while values.len() > 1 {
            values = values
                .chunks(2)
                .map(|pair| match *pair {
                    [a, b] => self.combine(lanes, a, b),
                    _ => pair[0],
                })
                .collect();
        }
        values[0]
    }

    fn lane(&mut self, lanes: &Lanes, index: Index) -> ExprId {
        let site = self.site(Check::Index, lanes.span);
        self.expr(lanes.ty, ExprKind::LoadLocal { local: lanes.array, index, site }, lanes.span)
    }

    /// Folds the lanes of each column and runs the rest of its iteration. A sum is 0 if `any` says that there were no
    /// rows.
    fn folds(&mut self, c: &ColumnLoop<'a>, lanes: &Lanes, panel: Panel, any: Option<ExprId>) -> Stmt {
        let span = lanes.span;
        let column = self.local();
        let column_index = self.read(column, span);
        let mut values: Vec<ExprId> = (0..lanes.count)
            .map(|lane| {
                let lane = self.int(lane, span);
                self.lane(lanes, smallvec![lane, column_index])
            })
            .collect();
        while values.len() > 1 {
            let half = values.len() / 2;
            values = (0..half).map(|n| self.combine(lanes, values[n], values[n + half])).collect();
        }
        if let Some(cond) = any.filter(|_| lanes.op == ReduceOp::Sum) {
            let b = self.expr(lanes.ty, ExprKind::Const(Scalar::new(lanes.ty, 0)), span);
            values[0] = self.expr(lanes.ty, ExprKind::Select { cond, a: values[0], b }, span);
        }
        let j = self.sum(panel.first, column_index, span);
        let mut copy = Substitution::new(&mut self.codelet, [(c.var, j)]);
        let mut body: StmtBlock = c.before.iter().map(|stmt| copy.stmt(stmt)).collect();
        body.push(Stmt::Set { local: c.reduce.dst, value: values[0] });
        body.extend(c.after.iter().map(|stmt| copy.stmt(stmt)));
        self.counted((column, panel.done, panel.width, 1), body, span)
    }

    fn combine(&mut self, lanes: &Lanes, a: ExprId, b: ExprId) -> ExprId {
        let op = lanes.op.operator();
        self.expr(lanes.ty, ExprKind::Binary { op, a, b, site: None }, lanes.span)
    }

    fn counted(&mut self, (var, lo, hi, step): (LocalId, i64, i64, i64), body: StmtBlock, span: Span) -> Stmt {
        let (lo, hi) = (self.int(lo, span), self.int(hi, span));
        let label = Label(self.label);
        self.label += 1;
        Stmt::For { var, lo, hi, step, label, body, site: self.site(Check::Iterations, span) }
    }

    fn expr(&mut self, ty: ElemType, kind: ExprKind, span: Span) -> ExprId {
        self.codelet.exprs.push(Expr { kind, ty, span })
    }

    fn int(&mut self, n: i64, span: Span) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Const(Scalar::new(ElemType::I64, n as u64)), span)
    }

    fn sum(&mut self, a: ExprId, b: ExprId, span: Span) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Binary { op: BinaryOp::Add, a, b, site: None }, span)
    }

    fn local(&mut self) -> LocalId {
        self.codelet.locals.push(Local { name: "".into(), ty: ElemType::I64, array: None })
    }

    fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.codelet.locals[local].ty;
        self.expr(ty, ExprKind::Local(local), span)
    }

    /// Adds a check that cannot fail.
    fn site(&mut self, check: Check, span: Span) -> SiteId {
        let site = self.codelet.sites.push(Site { check, span, calls: smallvec![], message: None });
        self.proven.insert(site);
        site
    }
}
