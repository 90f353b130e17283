//! Recognises codelets that are a matrix product.
//!
//! Invariant: a codelet that is a [`ProductBody`] for given sizes cannot fail and does nothing else.

use super::events::binary;
use girder_codelet::facts::Facts;
use girder_codelet::sizes::Sizes;
use girder_ir::codelet::{Check, Codelet, ExprKind, Matrix, Stmt, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_ir::types::ElemType;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// `c = c + a b`, or `start + a b`.
pub(super) struct ProductBody {
    /// m × n
    pub c: MatrixField,
    /// m × k
    pub a: MatrixField,
    /// k × n
    pub b: MatrixField,
    /// Element type of all three: `f32` or `f64`.
    pub ty: ElemType,
    /// Bits of the number that `c` is filled with first.
    pub start: Option<u64>,
}

/// A matrix in a field.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MatrixField {
    /// The field.
    pub field: FieldId,
    /// Index of element (0, 0).
    pub at: Vec<i64>,
    /// Dimension along which rows advance, and its step.
    pub row: (usize, i64),
    /// Dimension along which columns advance, and its step.
    pub col: (usize, i64),
    /// The number of rows.
    pub rows: u64,
    /// The number of columns.
    pub cols: u64,
}

impl ProductBody {
    /// Returns a codelet as a product, or `None` if it is not one for these sizes. A `multi` codelet is one if the rows
    /// of its workers follow one another.
    pub(super) fn of(codelet: &Codelet, sizes: &Sizes, facts: &Facts, workers: u32) -> Option<ProductBody> {
        // Indices, shapes and divisors are evaluated below.
        let is_evaluated = |check: Check| matches!(check, Check::Index | Check::Shape | Check::Division);
        if codelet.sites.iter().any(|(id, site)| !is_evaluated(site.check) && !facts.proven.contains(id)) {
            return None;
        }
        if !codelet.multi {
            return ProductBody::of_worker(Known::of(codelet, sizes, (0, 1)));
        }
        let bodies = (0..workers).map(|w| ProductBody::of_worker(Known::of(codelet, sizes, (w, workers))));
        let mut whole: Option<ProductBody> = None;
        for body in bodies {
            let body = body?;
            whole = match whole {
                Some(above) if body.c.rows > 0 => Some(above.above(body)?),
                Some(above) if above.c.rows > 0 => Some(above),
                _ => Some(body),
            };
        }
        whole
    }

    /// Returns what one worker runs as a product.
    fn of_worker(mut known: Known) -> Option<ProductBody> {
        let codelet = known.codelet;
        let (amp, before) = match &codelet.body[..] {
            [before @ .., Stmt::Amp(amp)] => (amp, before),
            _ => return None,
        };
        let mut fills = Vec::new();
        for stmt in before {
            match stmt {
                Stmt::Set { local, value } => _ = known.locals.insert(*local, known.value(*value)?),
                _ => fills.push(stmt),
            }
        }
        let (c, a, b) = (known.matrix(&amp.c)?, known.matrix(&amp.a)?, known.matrix(&amp.b)?);
        let ty = codelet.fields[c.field].ty;
        let fits = c.rows == a.rows && c.cols == b.cols && a.cols == b.rows;
        if !fits || [&c, &a, &b].iter().any(|m| !m.is_inside(&known.sizes.shapes[m.field])) {
            return None;
        }
        let one_type = [&a, &b].iter().all(|p| codelet.fields[p.field].ty == ty);
        if !one_type || !matches!(ty, ElemType::F32 | ElemType::F64) {
            return None;
        }
        let start = match fills[..] {
            [] => None,
            [fill] => Some(known.fill(fill, &c)?),
            _ => return None,
        };
        let start = if amp.first { Some(0) } else { start };
        Some(ProductBody { c, a, b, ty, start })
    }

    /// Returns both as one product, if `below` has the next rows.
    fn above(self, below: ProductBody) -> Option<ProductBody> {
        let [c, a] = [self.c.above(&below.c)?, self.a.above(&below.a)?];
        (self.b == below.b && self.start == below.start).then_some(ProductBody { c, a, ..self })
    }
}

impl MatrixField {
    /// Returns both as one matrix, if `below` has the next rows.
    fn above(&self, below: &MatrixField) -> Option<MatrixField> {
        let mut next = self.at.clone();
        next[self.row.0] += i64::try_from(self.rows).ok()?.checked_mul(self.row.1)?;
        let expected = MatrixField { at: next, rows: below.rows, ..self.clone() };
        (expected == *below).then(|| MatrixField { rows: self.rows + below.rows, ..self.clone() })
    }

    /// Returns whether all its elements are inside a field of some shape.
    fn is_inside(&self, shape: &[u64]) -> bool {
        let last = |dim: usize, (own, step): (usize, i64), length: u64| match dim == own {
            true => i128::from(step) * (i128::from(length) - 1),
            false => 0,
        };
        let dims = self.at.iter().zip(shape).enumerate();
        let inside = |(dim, (&at, &n)): (usize, (&i64, &u64))| {
            let first = i128::from(at);
            let ends =
                [0, last(dim, self.row, self.rows)].map(|r| [0, last(dim, self.col, self.cols)].map(|c| first + r + c));
            ends.as_flattened().iter().all(|i| (0..i128::from(n)).contains(i))
        };
        self.rows == 0 || self.cols == 0 || dims.into_iter().all(inside)
    }

    /// Returns the indices of its elements along each dimension, if they are the whole of a box.
    fn extents(&self) -> Option<Vec<Range<i64>>> {
        let mut extents: Vec<Range<i64>> = self.at.iter().map(|&at| at..at + 1).collect();
        if self.row.0 == self.col.0 || self.row.1 != 1 || self.col.1 != 1 {
            return None;
        }
        extents[self.row.0].end = extents[self.row.0].start + i64::try_from(self.rows).ok()?;
        extents[self.col.0].end = extents[self.col.0].start + i64::try_from(self.cols).ok()?;
        Some(extents)
    }
}

/// The values of a codelet's expressions that are determined by sizes, on one worker of some.
struct Known<'a> {
    codelet: &'a Codelet,
    sizes: &'a Sizes,
    worker: (u32, u32),
    /// The locals that are set before the product.
    locals: FxHashMap<LocalId, i64>,
}

impl<'a> Known<'a> {
    fn of(codelet: &'a Codelet, sizes: &'a Sizes, worker: (u32, u32)) -> Known<'a> {
        Known { codelet, sizes, worker, locals: FxHashMap::default() }
    }

    fn value(&self, e: ExprId) -> Option<i64> {
        match &self.codelet.exprs[e].kind {
            ExprKind::Const(value) => value.as_int().and_then(|n| i64::try_from(n).ok()),
            ExprKind::Size(size) => Some(self.sizes.sizes[*size]),
            ExprKind::Worker => Some(i64::from(self.worker.0)),
            ExprKind::Workers => Some(i64::from(self.worker.1)),
            ExprKind::Local(local) => self.locals.get(local).copied(),
            ExprKind::Binary { op, a, b, .. } => binary(*op, self.value(*a)?, self.value(*b)?),
            _ => None,
        }
    }

    fn matrix(&self, m: &Matrix) -> Option<MatrixField> {
        let Storage::Field(field) = m.base else { return None };
        if !m.outer.is_empty() {
            return None;
        }
        Some(MatrixField {
            field,
            at: m.at.iter().map(|&e| self.value(e)).collect::<Option<_>>()?,
            row: (m.row_dim as usize, m.row_step),
            col: (m.col_dim as usize, m.col_step),
            rows: u64::try_from(self.value(m.rows)?).ok()?,
            cols: u64::try_from(self.value(m.cols)?).ok()?,
        })
    }

    /// Returns the bits of the number to which loops set every element of `c`, and no other; `None` if the statement is
    /// not such a loop.
    fn fill(&self, mut stmt: &Stmt, c: &MatrixField) -> Option<u64> {
        let mut loops: Vec<(LocalId, Range<i64>)> = Vec::new();
        while let Stmt::For { var, lo, hi, step: 1, body, .. } = stmt {
            let [only] = &body[..] else { return None };
            loops.push((*var, self.value(*lo)?..self.value(*hi)?));
            stmt = only;
        }
        let Stmt::Store { field, index, value, .. } = stmt else { return None };
        let ExprKind::Const(value) = self.codelet.exprs[*value].kind else { return None };
        if c.rows == 0 || c.cols == 0 {
            return loops.iter().any(|l| l.1.is_empty()).then_some(value.bits);
        }
        let extents = c.extents().filter(|_| *field == c.field && loops.len() == 2)?;
        // Each index that varies is the variable of its own loop, so that no element is left out.
        let (mut vars, mut whole) = (Vec::new(), true);
        for (&e, extent) in index.iter().zip(&extents) {
            match self.codelet.exprs[e].kind {
                ExprKind::Local(var) if loops.iter().any(|l| l.0 == var) => {
                    whole &= loops.iter().any(|l| l.0 == var && l.1 == *extent) && !vars.contains(&var);
                    vars.push(var);
                }
                _ => whole &= self.value(e).is_some_and(|at| *extent == (at..at + 1)),
            }
        }
        (whole && vars.len() == 2).then_some(value.bits)
    }
}
