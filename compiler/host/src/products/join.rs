//! Merges small products to few large ones.
//!
//! # Note: Joining
//! Two products of the same rows of `a`, whose parts of `b` and of `c` are adjacent, are one product with more columns;
//! two of the same columns of `b` are one with more rows. The elements of `c` are the same, and so is the sum of each.
//! Columns are joined before rows. Both times the products are sorted so that adjacent ones follow one another: a grid
//! of products becomes one product, a grid with holes becomes several.
//!
//! Invariant: the elements of all `c` together, and their sums, do not change.

use super::{MatrixLayout, MatrixProduct};

/// Joins all adjacent products.
pub(crate) fn join(products: Vec<MatrixProduct>) -> Vec<MatrixProduct> {
    let transposed = products.into_iter().map(MatrixProduct::transposed).collect();
    let columns = join_rows(transposed).into_iter().map(MatrixProduct::transposed).collect();
    join_rows(columns)
}

/// Joins products of the same columns of `b`.
fn join_rows(mut calls: Vec<MatrixProduct>) -> Vec<MatrixProduct> {
    calls.sort_by_key(|c| (c.b.at, c.n, c.k, c.ty, c.start, c.a.at, c.c.at));
    let mut joined: Vec<MatrixProduct> = Vec::with_capacity(calls.len());
    for call in calls {
        match joined.last_mut() {
            Some(last) => match last.above(&call).or_else(|| call.above(last)) {
                Some(both) => *last = both,
                None => joined.push(call),
            },
            None => joined.push(call),
        }
    }
    joined
}

impl MatrixProduct {
    fn transposed(self) -> MatrixProduct {
        let swap = |m: MatrixLayout| MatrixLayout { at: m.at, row: m.col, col: m.row };
        MatrixProduct { c: swap(self.c), a: swap(self.b), b: swap(self.a), m: self.n, n: self.m, ..self }
    }

    /// Returns both as one product, if `below` has the next rows.
    fn above(&self, below: &MatrixProduct) -> Option<MatrixProduct> {
        let same = |call: &MatrixProduct| (call.b, call.n, call.k, call.ty, call.start, call.a.col, call.c.col);
        // A single row continues in any direction.
        let steps = match (self.m, below.m) {
            (1, 1) => (below.a.at - self.a.at, below.c.at - self.c.at),
            (1, _) => (below.a.row, below.c.row),
            _ => (self.a.row, self.c.row),
        };
        let straight = below.m == 1 || (below.a.row, below.c.row) == steps;
        let follows = |from: MatrixLayout, to: MatrixLayout, step: i64| {
            i128::from(from.at) + i128::from(self.m) * i128::from(step) == i128::from(to.at)
        };
        let adjacent = follows(self.a, below.a, steps.0) && follows(self.c, below.c, steps.1);
        (same(self) == same(below) && straight && adjacent).then(|| MatrixProduct {
            a: MatrixLayout { row: steps.0, ..self.a },
            c: MatrixLayout { row: steps.1, ..self.c },
            m: self.m + below.m,
            ..*self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::ProductStart;
    use girder_ir::types::ElemType;

    /// The part of a row-major product of 12 × 20 sums of 7 terms that computes some rows and columns.
    fn part((top, m): (u64, u64), (left, n): (u64, u64)) -> MatrixProduct {
        let matrix = |at: i64, i: u64, j: u64, width: i64, (rows, cols): (u64, u64)| MatrixLayout {
            at: at + 4 * (i as i64 * width + j as i64),
            row: if rows > 1 { 4 * width } else { 0 },
            col: if cols > 1 { 4 } else { 0 },
        };
        MatrixProduct {
            c: matrix(1000, top, left, 20, (m, n)),
            a: matrix(0, top, 0, 7, (m, 7)),
            b: matrix(4000, 0, left, 20, (7, n)),
            m,
            n,
            k: 7,
            ty: ElemType::F32,
            start: ProductStart::Number(0),
            block: u64::MAX,
        }
    }

    fn grid(rows: &[u64], columns: &[u64]) -> Vec<MatrixProduct> {
        let spans = |lengths: &[u64]| {
            let ends = lengths.iter().scan(0, |end, n| Some(std::mem::replace(end, *end + n)));
            ends.zip(lengths.to_vec()).collect::<Vec<_>>()
        };
        let (rows, columns) = (spans(rows), spans(columns));
        rows.iter().flat_map(|&r| columns.iter().map(move |&c| part(r, c))).collect()
    }

    #[test]
    fn a_grid_is_one_product_in_any_order() {
        for (rows, columns) in
            [(&[1; 12][..], &[8, 8, 4][..]), (&[5, 5, 2], &[1; 20]), (&[12], &[19, 1]), (&[1; 12], &[1; 20])]
        {
            let mut calls = grid(rows, columns);
            assert_eq!(join(calls.clone()), [part((0, 12), (0, 20))]);
            calls.reverse();
            calls.rotate_left(1);
            assert_eq!(join(calls), [part((0, 12), (0, 20))]);
        }
    }

    #[test]
    fn reversed_rows_and_transposed_matrices_join() {
        let back = |calls: Vec<MatrixProduct>| -> Vec<MatrixProduct> {
            let reversed =
                |c: MatrixProduct| MatrixProduct { a: MatrixLayout { at: 500 - c.a.at, row: -c.a.row, ..c.a }, ..c };
            calls.into_iter().map(reversed).collect()
        };
        assert_eq!(join(back(grid(&[4, 4, 4], &[10, 10]))), back(vec![part((0, 12), (0, 20))]));
        let turned = grid(&[4, 4, 4], &[10, 10]).into_iter().map(MatrixProduct::transposed).collect();
        assert_eq!(join(turned), [part((0, 12), (0, 20)).transposed()]);
    }

    #[test]
    fn products_that_are_not_adjacent_stay_separate() {
        let mut calls = grid(&[4, 4, 4], &[10, 10]);
        calls.remove(2);
        // The first rows, and two products below them.
        assert_eq!(join(calls).len(), 3);
        let mut calls = grid(&[6, 6], &[20]);
        calls[1].c.at += 4;
        assert_eq!(join(calls.clone()), calls);
        let mut calls = grid(&[6, 6], &[20]);
        calls[1].a.at += 28;
        assert_eq!(join(calls.clone()), calls);
        let mut calls = grid(&[6, 6], &[20]);
        calls[1].start = ProductStart::Old;
        assert_eq!(join(calls).len(), 2);
        let mut calls = grid(&[6], &[10, 10]);
        let (first, second) = (calls[0].c.at, calls[1].c.at);
        (calls[0].c.at, calls[1].c.at) = (second, first);
        assert_eq!(join(calls).len(), 2);
    }
}
