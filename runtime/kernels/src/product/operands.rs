//! Matrices in memory, and the operands of a product.
//!
//! Invariant: a part of a product accesses only elements of the whole.

use super::plan::share;
use std::ops::Range;

/// A matrix: the address of element (0, 0) and byte strides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// The address of element (0, 0).
    pub at: *mut u8,
    /// Bytes from row to row.
    pub row: i64,
    /// Bytes from column to column.
    pub col: i64,
}

/// The matrices of a product and their sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// m × n
    pub c: Matrix,
    /// m × k
    pub a: Matrix,
    /// k × n
    pub b: Matrix,
    /// Rows of `c`.
    pub m: u64,
    /// Columns of `c`.
    pub n: u64,
    /// Terms of each sum.
    pub k: u64,
    /// Terms of a block of the sum, at least one; one block if they are `k` or more.
    pub block: u64,
}

/// The initial value of the sums.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Start<F> {
    /// The elements of `c`.
    Old,
    /// One number, whatever `c` contains.
    Value(F),
    /// +0; the sum of the first block is added to the element of `c`, as those of the others are.
    Added,
}

impl Matrix {
    /// Returns the address of an element, without accessing it.
    pub(crate) fn element(&self, i: u64, j: u64) -> *mut u8 {
        let ahead = (i as i64).wrapping_mul(self.row).wrapping_add((j as i64).wrapping_mul(self.col));
        self.at.wrapping_offset(ahead as isize)
    }

    /// Returns the part that begins at an element.
    pub fn from(&self, i: u64, j: u64) -> Matrix {
        Matrix { at: self.element(i, j), ..*self }
    }

    pub(super) fn transposed(self) -> Matrix {
        Matrix { at: self.at, row: self.col, col: self.row }
    }
}

impl Product {
    /// Returns the product with rows and columns swapped, `cᵀ = bᵀ aᵀ`. The factors of each `fma` are swapped, which
    /// changes no bit.
    pub(super) fn transposed(self) -> Product {
        let [c, a, b] = [self.c, self.b, self.a].map(Matrix::transposed);
        Product { c, a, b, m: self.n, n: self.m, ..self }
    }

    /// Returns the part that computes some rows and columns of `c`.
    pub fn part(&self, rows: Range<u64>, columns: Range<u64>) -> Product {
        Product {
            c: self.c.from(rows.start, columns.start),
            a: self.a.from(rows.start, 0),
            b: self.b.from(0, columns.start),
            m: rows.end - rows.start,
            n: columns.end - columns.start,
            ..*self
        }
    }

    /// Cuts the product into at most `parts` parts of about equal size, one for each thread, along the columns of `c`
    /// if there are enough of them: then no two threads pack the same part of `b`.
    pub fn parts(&self, parts: u64) -> Vec<Product> {
        let by_columns = self.n >= FEWEST_COLUMNS.saturating_mul(parts) || self.n >= self.m;
        let length = if by_columns { self.n } else { self.m };
        let units = length.div_ceil(UNIT);
        let parts = parts.clamp(1, units.max(1));
        let part = |p: u64| {
            let units = share(units, parts, p);
            let range = (units.start * UNIT).min(length)..(units.end * UNIT).min(length);
            if by_columns { self.part(0..self.m, range) } else { self.part(range, 0..self.n) }
        };
        (0..parts).map(part).collect()
    }
}

/// Parts begin at multiples of this many rows or columns: the widest vector, twice the tallest tile.
const UNIT: u64 = 16;
/// Minimal number of columns of a part.
const FEWEST_COLUMNS: u64 = 96;
