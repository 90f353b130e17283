//! Loops over columns that each reduce their rows become loops over rows of columns.
//!
//! ```text
//! for j in 0..n { let s = sum i in 0..m { x[i, j] }; y[j] = s; }
//! ```
//!
//! reads one element of each row before it comes to the next column. The sixteen lanes of the columns that run together
//! are kept as an array instead, so that every row is read from its start to its end:
//!
//! ```text
//! for each tile of columns {
//!     for rows in blocks of 128, lane in 0..16, j in tile {
//!         lanes[lane, j] = lanes[lane, j] op x[row + lane, j] op x[row + 16 + lane, j] op …;
//!     }
//!     for j in tile { let s = lanes[.., j] by 8, 4, 2, 1; y[j] = s; }
//! }
//! ```
//!
//! What comes out is a codelet again, whose innermost loops `lower::vector` takes like any other.
//!
//! - `find`: which loops qualify
//! - `tiles`: loops over what lies side by side along the outer index, in tiles
//! - `copy`: expressions and statements at another index
//!
//! Invariant: every lane takes the elements that it takes in the text, in that order, so the bits are the same; what is
//! moved cannot fail, and reads nothing that the loop stores.

mod copy;
mod find;
mod tiles;

use crate::fold::fold;
use crate::spec::{KernelSpec, Rewritten};
use crate::validate::{ARRAY_BYTES, array_bytes};
use crate::work::Folded;
pub(crate) use copy::Copy;
use cranelift_entity::EntitySet;
use find::Columns;
use girder_ir::codelet::{
    BinaryOp, Check, Codelet, Expr, ExprKind, Index, Label, Local, ReduceOp, Site, Stmt, StmtBlock,
};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::smallvec;

/// Lanes of a reduction whose order matters.
const LANES: i64 = 16;
/// Most rows that a lane takes in one turn, where its element is loaded and stored once for all of them; fewer if they are
/// more code than this.
const ABREAST: u64 = 8;
const CODE: u64 = 64;
/// Bytes of a vector that has no masks.
const VECTOR_BYTES: i64 = 16;
/// Bytes of the lanes of a tile, which have to stay in the first cache next to the rows.
const TILE_BYTES: i64 = 16 << 10;
/// A tile is whole vectors.
const WHOLE: i64 = 16;

/// The codelet with the loops interchanged that gain by it, if there are any. What counts executions stays as it is.
///
/// With `masks`, vectors need not be full.
pub(crate) fn interchange(spec: &KernelSpec<'_>, masks: bool) -> Option<Rewritten> {
    if spec.points.is_some_and(|p| !p.is_empty()) || !find::has_candidate(&spec.codelet.body) {
        return None;
    }
    let mut rewrite = Rewrite {
        spec,
        masks,
        folded: fold(spec.codelet, spec.sizes),
        reads: crate::lower::reads(spec.codelet, &spec.codelet.body),
        codelet: spec.codelet.clone(),
        proven: spec.proven.clone(),
        label: find::next_label(&spec.codelet.body),
        changed: false,
    };
    rewrite.codelet.body = rewrite.block(&spec.codelet.body);
    rewrite.changed.then_some(Rewritten { codelet: rewrite.codelet, proven: rewrite.proven })
}

struct Rewrite<'a> {
    spec: &'a KernelSpec<'a>,
    masks: bool,
    /// Of the codelet as it was.
    folded: Folded,
    /// How often each local is read there.
    reads: cranelift_entity::SecondaryMap<LocalId, u32>,
    codelet: Codelet,
    proven: EntitySet<SiteId>,
    label: u32,
    changed: bool,
}

/// Columns that run together.
#[derive(Clone, Copy)]
struct Tile {
    /// Number of the first one.
    first: ExprId,
    width: i64,
    /// How many of the first ones have their results already.
    done: i64,
}

/// Rows that are taken together.
#[derive(Clone, Copy)]
struct Rows {
    /// Number of the first one.
    first: ExprId,
    /// Lanes that take some, from the first on.
    lanes: (i64, i64),
    /// How many each takes.
    abreast: i64,
    /// They are the first.
    begin: bool,
}

/// The lanes of a tile: an array `[lanes, width]`.
#[derive(Clone, Copy)]
struct Lanes {
    array: LocalId,
    count: i64,
    ty: ElemType,
    op: ReduceOp,
    span: Span,
}

/// An element of a reduction, and the factors that it is the product of.
type Taken = (ExprId, Option<(ExprId, ExprId)>);

impl<'a> Rewrite<'a> {
    fn block(&mut self, block: &'a StmtBlock) -> StmtBlock {
        block.iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> StmtBlock {
        if let Some(columns) = self.columns(stmt)
            && let Some(tiled) = self.tiled(&columns)
        {
            self.changed = true;
            return tiled;
        }
        if let Some(apart) = self.apart(stmt) {
            self.changed = true;
            return self.in_tiles(&apart);
        }
        let inner = |rewrite: &mut Self, body: &'a StmtBlock| rewrite.block(body);
        vec![match stmt {
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let body = inner(self, body);
                Stmt::For { var: *var, lo: *lo, hi: *hi, step: *step, label: *label, body, site: *site }
            }
            Stmt::If { cond, then, els } => Stmt::If { cond: *cond, then: inner(self, then), els: inner(self, els) },
            Stmt::Labelled { label, body } => Stmt::Labelled { label: *label, body: inner(self, body) },
            other => other.clone(),
        }]
    }

    /// All tiles of some columns, if their lanes have room.
    fn tiled(&mut self, c: &Columns<'a>) -> Option<StmtBlock> {
        let ty = self.codelet.exprs[c.reduce.value].ty;
        let count = if crate::lower::is_ordered(c.reduce.op, ty) { LANES } else { 1 };
        let most = TILE_BYTES / (count * i64::from(ty.bytes()));
        // What does not fill a vector is a tile that ends with the last column, so that some columns run twice.
        let vector = if self.masks { 1 } else { VECTOR_BYTES / i64::from(ty.bytes()) };
        let (all, over) = (c.columns - c.columns % vector, c.columns % vector);
        let tiles = (all + most - 1) / most;
        let width = (((all + tiles - 1) / tiles + WHOLE - 1) / WHOLE * WHOLE).min(all);
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
            self.tile(c, &lanes, Tile { first, width, done: 0 })
        };
        block.push(self.counted((first, lo, lo + whole * width, width), body, span));
        if rest > 0 {
            let first = self.int(lo + whole * width, span);
            block.extend(self.tile(c, &lanes, Tile { first, width: rest, done: 0 }));
        }
        if over > 0 {
            let lanes = self.lanes((count, vector), c.reduce.op, ty, span);
            let first = self.int(lo + c.columns - vector, span);
            block.extend(self.tile(c, &lanes, Tile { first, width: vector, done: vector - over }));
        }
        Some(block)
    }

    fn lanes(&mut self, (count, width): (i64, i64), op: ReduceOp, ty: ElemType, span: Span) -> Lanes {
        let dims = smallvec![count as u32, width as u32];
        let array = self.codelet.locals.push(Local { name: "".into(), ty, array: Some(dims) });
        Lanes { array, count, ty, op, span }
    }

    /// Some columns: their lanes take the rows, and are folded.
    fn tile(&mut self, c: &Columns<'a>, lanes: &Lanes, tile: Tile) -> StmtBlock {
        let code = crate::work::code_of(self.spec.codelet, c.reduce.value);
        let (each, over) = (c.rows / lanes.count, c.rows % lanes.count);
        let most = (CODE / code).clamp(1, ABREAST);
        let blocks = (each as u64).div_ceil(most) as i64;
        let abreast = (each + blocks - 1) / blocks;
        // The last block has what is left, and one row more for the first lanes.
        let blocks = (each + abreast - 1) / abreast;
        let last = each - (blocks - 1) * abreast;
        let row = |block: i64| c.first_row + block * abreast * lanes.count;
        let first = self.int(row(0), lanes.span);
        let begin = Rows { first, lanes: (0, lanes.count), abreast, begin: true };
        let mut block = if blocks == 1 { self.last_rows(c, lanes, tile, begin, over) } else { vec![] };
        if blocks > 1 {
            block.push(self.rows(c, lanes, tile, begin));
        }
        if blocks > 2 {
            let var = self.local();
            let rows = Rows { first: self.read(var, lanes.span), begin: false, ..begin };
            let body = self.rows(c, lanes, tile, rows);
            block.push(self.counted((var, row(1), row(blocks - 1), row(1) - row(0)), vec![body], lanes.span));
        }
        if blocks > 1 {
            let first = self.int(row(blocks - 1), lanes.span);
            let rows = Rows { first, abreast: last, begin: false, ..begin };
            block.extend(self.last_rows(c, lanes, tile, rows, over));
        }
        block.push(self.folds(c, lanes, tile));
        block
    }

    /// Rows of which there are some more, one for each of the first lanes.
    fn last_rows(&mut self, c: &Columns<'a>, lanes: &Lanes, tile: Tile, rows: Rows, over: i64) -> StmtBlock {
        let longer = Rows { lanes: (0, over), abreast: rows.abreast + 1, ..rows };
        let others = Rows { lanes: (over, lanes.count), ..rows };
        let all = [longer, others].into_iter().filter(|r| r.lanes.0 < r.lanes.1);
        all.map(|rows| self.rows(c, lanes, tile, rows)).collect()
    }

    fn rows(&mut self, c: &Columns<'a>, lanes: &Lanes, tile: Tile, rows: Rows) -> Stmt {
        let span = lanes.span;
        let (lane, column) = (self.local(), self.local());
        let (lane_index, column_index) = (self.read(lane, span), self.read(column, span));
        let j = self.sum(tile.first, column_index, span);
        let at: Index = smallvec![lane_index, column_index];
        let old = (!rows.begin).then(|| self.lane(lanes, at.clone()));
        let mut body = StmtBlock::new();
        let row = self.sum(rows.first, lane_index, span);
        let mut taken = Vec::new();
        for n in 0..rows.abreast {
            let ahead = self.int(n * lanes.count, span);
            let i = self.sum(row, ahead, span);
            let mut copy = Copy::new(&mut self.codelet, [(c.var, j), (c.reduce.binders[0].var, i)]);
            copy.renamed_sets(&c.reduce.before, &mut body);
            let value = copy.expr(c.reduce.value);
            taken.push((value, c.reduce.factors.map(|(x, y)| (copy.expr(x), copy.expr(y)))));
        }
        let value =
            if lanes.count == 1 { self.in_any_order(lanes, old, &taken) } else { self.in_order(lanes, old, &taken) };
        let site = self.site(Check::Index, span);
        body.push(Stmt::StoreLocal { local: lanes.array, index: at, value, site });
        let columns = self.counted((column, 0, tile.width, 1), body, span);
        self.counted((lane, rows.lanes.0, rows.lanes.1, 1), vec![columns], span)
    }

    /// A lane with some elements. Without an old value it holds the identity, which changes none; that
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

    /// The same where any order will do: as few as possible wait for one another.
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

    /// What the loop does with each column's result.
    fn folds(&mut self, c: &Columns<'a>, lanes: &Lanes, tile: Tile) -> Stmt {
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
        let j = self.sum(tile.first, column_index, span);
        let mut copy = Copy::new(&mut self.codelet, [(c.var, j)]);
        let mut body: StmtBlock = c.before.iter().map(|stmt| copy.stmt(stmt)).collect();
        body.push(Stmt::Set { local: c.reduce.dst, value: values[0] });
        body.extend(c.after.iter().map(|stmt| copy.stmt(stmt)));
        self.counted((column, tile.done, tile.width, 1), body, span)
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

    /// A check that cannot fail.
    fn site(&mut self, check: Check, span: Span) -> SiteId {
        let site = self.codelet.sites.push(Site { check, span, calls: smallvec![], message: None });
        self.proven.insert(site);
        site
    }
}
