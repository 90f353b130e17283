//! Recognises codelets that are a matrix product.
//!
//! Invariant: a codelet that is a [`ProductBody`] for given sizes cannot fail and does nothing else.

use girder_codelet::facts::Facts;
use girder_codelet::sizes::Sizes;
use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, Matrix, Stmt, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_ir::types::ElemType;

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
    /// Returns a codelet as a product, or `None` if it is not one for these sizes.
    pub(super) fn of(codelet: &Codelet, sizes: &Sizes, facts: &Facts) -> Option<ProductBody> {
        let (amp, before) = match &codelet.body[..] {
            [before @ .., Stmt::Amp(amp)] => (amp, before),
            _ => return None,
        };
        if codelet.multi || codelet.sites.keys().any(|site| !facts.proven.contains(site)) {
            return None;
        }
        let known = Known { codelet, sizes };
        let matrix = |m: &Matrix| known.matrix(m);
        let (c, a, b) = (matrix(&amp.c)?, matrix(&amp.a)?, matrix(&amp.b)?);
        let ty = codelet.fields[c.field].ty;
        let one_type = [&a, &b].iter().all(|p| codelet.fields[p.field].ty == ty);
        if !one_type || !matches!(ty, ElemType::F32 | ElemType::F64) {
            return None;
        }
        let start = match before {
            [] => None,
            [fill] => Some(known.fill(fill, &c)?),
            _ => return None,
        };
        Some(ProductBody { c, a, b, ty, start })
    }
}

/// The values of a codelet's expressions that are determined by sizes.
struct Known<'a> {
    codelet: &'a Codelet,
    sizes: &'a Sizes,
}

impl Known<'_> {
    fn value(&self, e: ExprId) -> Option<i64> {
        match &self.codelet.exprs[e].kind {
            ExprKind::Const(value) => value.as_int().and_then(|n| i64::try_from(n).ok()),
            ExprKind::Size(size) => Some(self.sizes.sizes[*size]),
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => self.value(*a)?.checked_add(self.value(*b)?),
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => self.value(*a)?.checked_sub(self.value(*b)?),
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => self.value(*a)?.checked_mul(self.value(*b)?),
            _ => None,
        }
    }

    fn matrix(&self, m: &Matrix) -> Option<MatrixField> {
        let Storage::Field(field) = m.base else { return None };
        Some(MatrixField {
            field,
            at: m.at.iter().map(|&e| self.value(e)).collect::<Option<_>>()?,
            row: (m.row_dim as usize, m.row_step),
            col: (m.col_dim as usize, m.col_step),
            rows: u64::try_from(self.value(m.rows)?).ok()?,
            cols: u64::try_from(self.value(m.cols)?).ok()?,
        })
    }

    /// Returns the bits of the number to which loops set every element of the field of `c`, which `c` covers; `None` if
    /// the statement is not such a loop.
    fn fill(&self, mut stmt: &Stmt, c: &MatrixField) -> Option<u64> {
        let shape = &self.sizes.shapes[c.field];
        let whole = shape.len() == 2 && c.rows.checked_mul(c.cols) == shape[0].checked_mul(shape[1]);
        let mut loops: Vec<(LocalId, i64)> = Vec::new();
        while let Stmt::For { var, lo, hi, step: 1, body, .. } = stmt {
            let (lo, hi) = (self.value(*lo)?, self.value(*hi)?);
            let [only] = &body[..] else { return None };
            loops.push((*var, hi));
            if lo != 0 {
                return None;
            }
            stmt = only;
        }
        let Stmt::Store { field, index, value, .. } = stmt else { return None };
        // Each index is the variable of its own loop over a whole dimension, so that no element is left out.
        let runs_over = |(&e, &length): (&ExprId, &u64)| match self.codelet.exprs[e].kind {
            ExprKind::Local(var) => loops.iter().any(|l| l.0 == var && l.1 == length as i64).then_some(var),
            _ => None,
        };
        let vars = index.iter().zip(shape).map(runs_over).collect::<Option<Vec<_>>>()?;
        let [i, j] = vars[..] else { return None };
        match self.codelet.exprs[*value].kind {
            ExprKind::Const(value) if whole && *field == c.field && i != j && loops.len() == 2 => Some(value.bits),
            _ => None,
        }
    }
}
