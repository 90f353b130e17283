//! Finds the loops to interchange: loops over contiguous columns that each reduce strided rows.
//!
//! Invariant: the reduction of a loop that is found fails no check, and neither it nor its bounds depend on anything
//! else that the loop does.

use super::Rewrite;
use super::block_nests::is_nest;
use crate::rewrite::whole::Whole;
use girder_codelet::forms::Forms;
use girder_codelet::interpret::{FREE_ITERATIONS, trips};
use girder_codelet::kernel::KernelSpec;
use girder_codelet::locals::reads_of_reduce;
use girder_codelet::scalar::is_ordered;
use girder_codelet::work::operations_of;
use girder_ir::codelet::{BinaryOp, Binder, ExprKind, Reduce, ReduceOp, Stmt, StmtBlock, Storage, UnaryOp};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// Minimal number of columns: fewer do not fill a vector of 512 bits.
pub(super) const FEWEST_COLUMNS: i64 = 16;
/// Minimal number of rows: fewer do not pay for lanes in memory.
pub(super) const FEWEST_ROWS: i64 = 64;
/// Minimal number of columns where the rows are not known: as many as a vector of 256 bits has.
const VECTOR_COLUMNS: i64 = 8;

/// `for var in first..first + columns { before; reduce; after }`
pub(super) struct ColumnLoop<'a> {
    pub var: LocalId,
    pub first: i64,
    pub columns: i64,
    pub first_row: i64,
    pub rows: i64,
    pub before: &'a [Stmt],
    pub reduce: &'a Reduce,
    pub after: &'a [Stmt],
}

/// Returns whether a block holds a loop with a reduction in its body, or a nest of two loops.
pub(super) fn has_candidate(block: &StmtBlock) -> bool {
    block.iter().any(|stmt| match stmt {
        nest if is_nest(nest) => true,
        Stmt::For { body, .. } => body.iter().any(|s| matches!(s, Stmt::Reduce(_))) || has_candidate(body),
        Stmt::Labelled { body, .. } => has_candidate(body),
        Stmt::If { then, els, .. } => has_candidate(then) || has_candidate(els),
        _ => false,
    })
}

impl<'a> Rewrite<'a> {
    /// Returns a statement as a loop over columns that qualifies for interchange.
    pub(super) fn columns(&self, stmt: &'a Stmt) -> Option<ColumnLoop<'a>> {
        let Stmt::For { var, lo, hi, step: 1, body, site, .. } = stmt else { return None };
        let at = body.iter().position(|s| matches!(s, Stmt::Reduce(_)))?;
        let Stmt::Reduce(reduce) = &body[at] else { return None };
        let [binder] = &reduce.binders[..] else { return None };
        if binder.step != 1 {
            return None;
        }
        let (first, columns) = self.range((*lo, *hi), *site)?;
        let (first_row, rows) = self.range((binder.lo, binder.hi), reduce.iterations)?;
        let found = ColumnLoop {
            var: *var,
            first,
            columns,
            first_row,
            rows,
            before: &body[..at],
            reduce,
            after: &body[at + 1..],
        };
        let qualifies = columns >= FEWEST_COLUMNS
            && rows >= FEWEST_ROWS
            && !self.is_unrolled(reduce, rows)
            && self.is_plain(reduce)
            && self.stands_alone(&found)
            && self.reads_rows(*var, reduce);
        qualifies.then_some(found)
    }

    /// Returns a statement as a loop over columns whose reductions have rows that are not known, or several binders.
    pub(super) fn open_columns(&self, stmt: &'a Stmt) -> Option<ColumnLoop<'a>> {
        let Stmt::For { var, lo, hi, step: 1, body, site, .. } = stmt else { return None };
        let at = body.iter().position(|s| matches!(s, Stmt::Reduce(_)))?;
        let Stmt::Reduce(reduce) = &body[at] else { return None };
        let (first, columns) = self.range((*lo, *hi), *site)?;
        let (before, after) = (&body[..at], &body[at + 1..]);
        let found = ColumnLoop { var: *var, first, columns, first_row: 0, rows: 0, before, reduce, after };
        let bounds = || reduce.binders.iter().flat_map(|b| [b.lo, b.hi]);
        let same = |e: ExprId| {
            let mut loads = Vec::new();
            self.loads(e, &mut loads);
            self.cannot_fail(e) && loads.is_empty() && self.slope(e, *var, &[]) == Some(0)
        };
        let counts = |site: SiteId| self.spec.weights[site] != 0 || !self.spec.proven.contains(site);
        let qualifies = columns >= VECTOR_COLUMNS
            && is_ordered(reduce.op, self.codelet.exprs[reduce.value].ty)
            && reduce.binders.last().is_some_and(|b| b.step == 1)
            && !counts(reduce.iterations)
            && self.may_be_long(reduce)
            && bounds().all(same)
            && self.is_plain(reduce)
            && self.stands_alone(&found)
            && self.reads_rows(*var, reduce);
        qualifies.then_some(found)
    }

    /// Returns whether a reduction may take enough elements to pay for lanes in memory.
    fn may_be_long(&self, reduce: &Reduce) -> bool {
        let forms = Forms::new(self.spec.codelet);
        let trips = |b: &Binder| forms.trips((b.lo, b.hi, b.step), &Whole(&self.folded));
        let elements = reduce.binders.iter().try_fold(1i64, |n, b| Some(n.saturating_mul(trips(b)?)));
        elements.is_none_or(|n| n >= FEWEST_ROWS)
    }

    /// Returns the first value and the trip count of a range that is known and whose iterations are not counted.
    pub(super) fn range(&self, range: (ExprId, ExprId), site: SiteId) -> Option<(i64, i64)> {
        self.known_range(range, site).filter(|_| self.spec.weights[site] == 0)
    }

    /// Returns the first value and the trip count of a range that is known and short enough for any limit.
    pub(super) fn known_range(&self, (lo, hi): (ExprId, ExprId), site: SiteId) -> Option<(i64, i64)> {
        let (lo, hi) = (self.folded[lo]? as i64, self.folded[hi]? as i64);
        let trips = trips(lo, hi, 1);
        let short = trips <= FREE_ITERATIONS || self.spec.proven.contains(site);
        // An index plus an offset must not wrap.
        (short && trips < 1 << 31 && hi.checked_add(1 << 20).is_some()).then_some((lo, trips as i64))
    }

    /// Returns whether a vector kernel unrolls the rows, with all lanes in registers.
    fn is_unrolled(&self, r: &Reduce, rows: i64) -> bool {
        self.target.vector_kernels
            && operations_of(self.spec.codelet, r.value).saturating_mul(rows as u64) <= self.target.unrolled_operations
    }

    /// Returns whether a reduction takes numbers of four or eight bytes and cannot fail.
    pub(super) fn is_plain(&self, r: &Reduce) -> bool {
        let ty = self.codelet.exprs[r.value].ty;
        let takes = matches!(r.op, ReduceOp::Sum | ReduceOp::Product | ReduceOp::Min | ReduceOp::Max);
        let sets = r.before.iter().all(|s| matches!(s, Stmt::Set { .. }));
        takes
            && sets
            && ty != ElemType::Bool
            && ty.bytes() >= 4
            && r.filter.is_none()
            && self.evaluated(r).iter().all(|&e| self.cannot_fail(e))
    }

    /// Returns the expressions that an iteration evaluates.
    pub(super) fn evaluated(&self, r: &Reduce) -> Vec<ExprId> {
        let before = r.before.iter().filter_map(|s| if let Stmt::Set { value, .. } = s { Some(*value) } else { None });
        let values = r.factors.map_or(vec![r.value], |(x, y)| vec![x, y]);
        before.chain(values).collect()
    }

    pub(super) fn cannot_fail(&self, e: ExprId) -> bool {
        let kind = &self.spec.codelet.exprs[e].kind;
        let safe = self.folded[e].is_some() || kind.site().is_none_or(|site| self.spec.proven.contains(site));
        safe && kind.operands().iter().all(|&x| self.cannot_fail(x))
    }

    /// Returns whether the rest of the loop consists of plain statements that do not change what the reduction reads,
    /// and read nothing that it sets except its result.
    fn stands_alone(&self, c: &ColumnLoop<'a>) -> bool {
        let mut rest = Rest { plain: true, sets: vec![c.reduce.dst], stores: Vec::new() };
        rest.block(c.before);
        rest.block(c.after);
        let inside = reads_of_reduce(self.spec.codelet, c.reduce);
        let own = set_by(&c.reduce.before).chain(c.reduce.binders.iter().map(|b| b.var));
        let mut loads = Vec::new();
        self.evaluated(c.reduce).into_iter().for_each(|e| self.loads(e, &mut loads));
        let untouched = |e: &ExprId| self.access(*e).is_some_and(|(storage, ..)| !rest.stores.contains(&storage));
        rest.plain
            && rest.sets.iter().all(|&local| inside[local] == 0)
            && own.into_iter().all(|local| inside[local] == self.reads[local])
            && loads.iter().all(untouched)
    }

    /// Returns whether all loads of the reduction are contiguous along the columns, and one is strided along the rows.
    pub(super) fn reads_rows(&self, column: LocalId, reduce: &Reduce) -> bool {
        let own: Vec<LocalId> = set_by(&reduce.before).collect();
        let mut loads = Vec::new();
        self.evaluated(reduce).into_iter().for_each(|e| self.loads(e, &mut loads));
        let mut gains = false;
        let near = loads.into_iter().all(|e| {
            let bytes = i64::from(self.spec.codelet.exprs[e].ty.bytes());
            let along = |var: LocalId| self.stride(e, var, &own);
            let row = reduce.binders.last().and_then(|b| along(b.var));
            let (Some(columns), Some(rows)) = (along(column), row) else { return false };
            gains |= columns == bytes && rows.unsigned_abs() > 16 * bytes as u64;
            bytes >= 4 && (columns == 0 || columns == bytes)
        });
        near && gains
    }

    pub(super) fn loads(&self, e: ExprId, out: &mut Vec<ExprId>) {
        if self.access(e).is_some() {
            out.push(e);
        }
        self.spec.codelet.exprs[e].kind.operands().iter().for_each(|&x| self.loads(x, out));
    }

    /// Returns the storage and the index of a load.
    pub(super) fn access(&self, e: ExprId) -> Option<(Storage, &[ExprId])> {
        match &self.spec.codelet.exprs[e].kind {
            ExprKind::Load { field, index, .. } => Some((Storage::Field(*field), index)),
            ExprKind::LoadLocal { local, index, .. } => Some((Storage::Local(*local), index)),
            _ => None,
        }
    }

    /// Returns the bytes by which a load moves with a variable, if that is a number.
    fn stride(&self, load: ExprId, var: LocalId, own: &[LocalId]) -> Option<i64> {
        self.stride_of(self.access(load)?, var, own)
    }

    pub(super) fn stride_of(
        &self,
        (storage, index): (Storage, &[ExprId]),
        var: LocalId,
        own: &[LocalId],
    ) -> Option<i64> {
        let strides = self.strides(storage);
        index
            .iter()
            .zip(strides)
            .try_fold(0i64, |sum, (&e, stride)| Some(sum.wrapping_add(self.slope(e, var, own)?.wrapping_mul(stride))))
    }

    fn strides(&self, storage: Storage) -> SmallVec<[i64; 3]> {
        match storage {
            Storage::Field(field) => self.spec.strides[field].clone(),
            Storage::Local(local) => {
                let decl = &self.spec.codelet.locals[local];
                let shape: SmallVec<[u64; 3]> = decl.array.iter().flatten().map(|&n| n.into()).collect();
                KernelSpec::contiguous(&shape, decl.ty.bytes())
            }
        }
    }

    /// Returns the change of an index per step of a variable; the locals in `own` are unknown.
    fn slope(&self, e: ExprId, var: LocalId, own: &[LocalId]) -> Option<i64> {
        let known = |e: ExprId| self.folded[e].map(|bits| bits as i64);
        let slope = |e: ExprId| self.slope(e, var, own);
        if known(e).is_some() {
            return Some(0);
        }
        let expr = &self.spec.codelet.exprs[e];
        match expr.kind {
            ExprKind::Local(local) if local == var => Some(1),
            ExprKind::Local(local) => (!own.contains(&local)).then_some(0),
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => Some(slope(a)?.wrapping_add(slope(b)?)),
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => Some(slope(a)?.wrapping_sub(slope(b)?)),
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => match (known(a), known(b)) {
                (Some(n), _) => Some(slope(b)?.wrapping_mul(n)),
                (_, Some(n)) => Some(slope(a)?.wrapping_mul(n)),
                _ => (slope(a)? == 0 && slope(b)? == 0).then_some(0),
            },
            ExprKind::Unary { op: UnaryOp::Neg, x } => Some(slope(x)?.wrapping_neg()),
            _ => expr.kind.operands().iter().all(|&x| slope(x) == Some(0)).then_some(0),
        }
    }
}

/// Iterates over the locals that the statements of a block set themselves.
pub(super) fn set_by(block: &[Stmt]) -> impl Iterator<Item = LocalId> {
    block.iter().filter_map(|s| if let Stmt::Set { local, .. } = s { Some(*local) } else { None })
}

/// The effects of the statements around a reduction.
struct Rest {
    /// Whether there are no loops, jumps and reductions.
    plain: bool,
    sets: Vec<LocalId>,
    stores: Vec<Storage>,
}

impl Rest {
    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            match stmt {
                Stmt::Set { local, .. } => self.sets.push(*local),
                Stmt::Store { field, .. } => self.stores.push(Storage::Field(*field)),
                Stmt::StoreLocal { local, .. } => self.stores.push(Storage::Local(*local)),
                Stmt::If { then, els, .. } => {
                    self.block(then);
                    self.block(els);
                }
                Stmt::Assert { .. } => {}
                _ => self.plain = false,
            }
        }
    }
}
