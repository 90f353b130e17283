//! The matrix-product unit: `c[i, j] = fma(a[i, k], b[k, j], c[i, j])`, with k ascending; with `first`, each `c[i, j]`
//! is 0 before. The rows of `c` and `a` may have several axes; they are computed in row-major order.
//!
//! Invariant: all shapes and corners are checked before the first element is accessed.

use super::frame::{ElementIndex, Frame, Halt};
use crate::scalar;
use girder_ir::codelet::{Amp, Matrix, Storage};
use girder_ir::ids::SiteId;
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// A matrix whose indices have been evaluated.
struct View {
    base: Storage,
    at: ElementIndex,
    /// Dimension, step and length of the axes around the rows.
    outer: SmallVec<[(usize, i64, i64); 2]>,
    rows: i64,
    cols: i64,
    row: (usize, i64),
    col: (usize, i64),
    ty: ElemType,
}

impl View {
    /// Returns whether it has no elements; no lengths are negative.
    fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0 || self.outer.iter().any(|axis| axis.2 == 0)
    }

    /// Moves the view by some steps of an axis around the rows.
    fn advance(&mut self, axis: usize, by: i64) {
        let (dim, step, _) = self.outer[axis];
        // A view without columns may be anywhere.
        self.at[dim] = self.at[dim].wrapping_add(step.wrapping_mul(by));
    }
}

impl<'a> Frame<'a> {
    pub(super) fn amp(&mut self, amp: &'a Amp) -> Result<(), Halt> {
        let mut c = self.view(&amp.c)?;
        let mut a = self.view(&amp.a)?;
        let b = self.view(&amp.b)?;
        let around = a.outer.iter().zip(&c.outer).map(|(x, y)| (x.2, y.2));
        for (x, y) in around.chain([(a.rows, c.rows), (b.cols, c.cols), (a.cols, b.rows)]) {
            if x != y {
                return Err(self.fail(amp.site, [x, y]));
            }
        }
        for length in c.outer.iter().map(|axis| axis.2).chain([c.rows, c.cols, a.cols]) {
            if length < 0 {
                return Err(self.fail(amp.site, [length, 0]));
            }
        }
        for view in [&c, &a, &b] {
            self.inside(view, amp.site)?;
        }
        if c.is_empty() {
            return Ok(());
        }
        let mut index: SmallVec<[i64; 2]> = c.outer.iter().map(|_| 0).collect();
        loop {
            self.amp_rows(amp, [&c, &a, &b])?;
            // The next index of the axes around the rows, the last one fastest.
            let Some(axis) = (0..index.len()).rfind(|&x| index[x] + 1 < c.outer[x].2) else { return Ok(()) };
            for at in axis..index.len() {
                let by = if at == axis { 1 } else { -index[at] };
                index[at] += by;
                c.advance(at, by);
                a.advance(at, by);
            }
        }
    }

    /// Computes the rows of the innermost axis.
    fn amp_rows(&mut self, amp: &Amp, [c, a, b]: [&View; 3]) -> Result<(), Halt> {
        for i in 0..c.rows {
            for j in 0..c.cols {
                self.tick()?;
                let at = self.position(c, i, j);
                let mut sum = if amp.first { 0 } else { self.element(c.base, at, amp.site)? };
                for k in 0..a.cols {
                    let (x, y) = (self.position(a, i, k), self.position(b, k, j));
                    let x = scalar::convert(a.ty, c.ty, self.element(a.base, x, amp.site)?);
                    let y = scalar::convert(b.ty, c.ty, self.element(b.base, y, amp.site)?);
                    sum = scalar::fma(c.ty, x, y, sum);
                }
                match c.base {
                    Storage::Field(field) => self.store(field, at, sum, amp.site)?,
                    Storage::Local(local) => self.locals[self.offsets[local] + at as usize] = sum,
                }
            }
        }
        Ok(())
    }

    fn view(&mut self, m: &Matrix) -> Result<View, Halt> {
        let at = self.element_index(&m.at)?;
        let mut outer = SmallVec::new();
        for axis in &m.outer {
            outer.push((axis.dim as usize, axis.step, self.int(axis.len)?));
        }
        let (rows, cols) = (self.int(m.rows)?, self.int(m.cols)?);
        let ty = match m.base {
            Storage::Field(field) => self.codelet.fields[field].ty,
            Storage::Local(local) => self.codelet.locals[local].ty,
        };
        let (row, col) = ((m.row_dim as usize, m.row_step), (m.col_dim as usize, m.col_step));
        Ok(View { base: m.base, at, outer, rows, cols, row, col, ty })
    }

    /// Checks the corners; no index between them is further out.
    fn inside(&mut self, view: &View, site: SiteId) -> Result<(), Halt> {
        if view.is_empty() {
            return Ok(());
        }
        for dim in 0..view.at.len() {
            let length = self.length(view.base, dim);
            let reach = |(d, step): (usize, i64), n: i64| if d == dim { step as i128 * (n as i128 - 1) } else { 0 };
            let outer = view.outer.iter().map(|&(d, step, n)| ((d, step), n));
            let axes = outer.chain([(view.row, view.rows), (view.col, view.cols)]);
            let (mut least, mut greatest) = (view.at[dim] as i128, view.at[dim] as i128);
            for (axis, n) in axes {
                least += reach(axis, n).min(0);
                greatest += reach(axis, n).max(0);
            }
            for index in [least, greatest] {
                if index < 0 || index >= length as i128 {
                    let index = index.clamp(i64::MIN as i128, i64::MAX as i128) as i64;
                    return Err(self.fail(site, [index, length]));
                }
            }
        }
        Ok(())
    }

    /// Returns the row-major position of an element of a view that lies inside its storage.
    fn position(&self, view: &View, i: i64, j: i64) -> u64 {
        let mut flat = 0;
        for (dim, &first) in view.at.iter().enumerate() {
            let mut index = first;
            if view.row.0 == dim {
                index += i * view.row.1;
            }
            if view.col.0 == dim {
                index += j * view.col.1;
            }
            flat = flat * self.length(view.base, dim) as u64 + index as u64;
        }
        flat
    }

    fn element(&mut self, base: Storage, at: u64, site: SiteId) -> Result<u64, Halt> {
        match base {
            Storage::Field(field) => self.load(field, at, site),
            Storage::Local(local) => Ok(self.locals[self.offsets[local] + at as usize]),
        }
    }
}
