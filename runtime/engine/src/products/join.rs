//! Few large products from many small ones.
//!
//! # Note: Joining
//! Two products of the same rows of `a`, whose parts of `b` and of `c` lie side by side, are one product with more
//! columns; two of the same columns of `b` are one with more rows. The elements of `c` are the same, and so is what
//! each takes. Rows are put together after columns, and each time the products are sorted so that neighbours follow one
//! another: a grid of products is one in the end, one with holes falls into the products that it has.
//!
//! Invariant: the elements of all `c` together, and the sums that they take, stay what they were.

use super::{Call, Place};

/// Joins what can be joined.
pub(super) fn join(calls: Vec<Call>) -> Vec<Call> {
    let transposed = calls.into_iter().map(Call::transposed).collect();
    let columns = rows(transposed).into_iter().map(Call::transposed).collect();
    rows(columns)
}

/// Joins products of the same columns of `b`.
fn rows(mut calls: Vec<Call>) -> Vec<Call> {
    calls.sort_by_key(|c| (c.b.at, c.n, c.k, c.ty, c.start, c.a.at, c.c.at));
    let mut joined: Vec<Call> = Vec::with_capacity(calls.len());
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

impl Call {
    fn transposed(self) -> Call {
        let turn = |p: Place| Place { at: p.at, row: p.col, col: p.row };
        Call { c: turn(self.c), a: turn(self.b), b: turn(self.a), m: self.n, n: self.m, ..self }
    }

    /// Both as one, if `below` has the rows that follow.
    fn above(&self, below: &Call) -> Option<Call> {
        let same = |call: &Call| (call.b, call.n, call.k, call.ty, call.start, call.a.col, call.c.col);
        // A single row goes on in any direction.
        let steps = match (self.m, below.m) {
            (1, 1) => (below.a.at - self.a.at, below.c.at - self.c.at),
            (1, _) => (below.a.row, below.c.row),
            _ => (self.a.row, self.c.row),
        };
        let straight = below.m == 1 || (below.a.row, below.c.row) == steps;
        let follows = |from: Place, to: Place, step: i64| {
            i128::from(from.at) + i128::from(self.m) * i128::from(step) == i128::from(to.at)
        };
        let side_by_side = follows(self.a, below.a, steps.0) && follows(self.c, below.c, steps.1);
        (same(self) == same(below) && straight && side_by_side).then(|| Call {
            a: Place { row: steps.0, ..self.a },
            c: Place { row: steps.1, ..self.c },
            m: self.m + below.m,
            ..*self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use girder_ir::types::ElemType;

    /// The part of a row-major product of 12 × 20 sums of 7 terms that computes some rows and columns.
    fn part((top, m): (u64, u64), (left, n): (u64, u64)) -> Call {
        let place = |at: i64, i: u64, j: u64, width: i64, (rows, cols): (u64, u64)| Place {
            at: at + 4 * (i as i64 * width + j as i64),
            row: if rows > 1 { 4 * width } else { 0 },
            col: if cols > 1 { 4 } else { 0 },
        };
        Call {
            c: place(1000, top, left, 20, (m, n)),
            a: place(0, top, 0, 7, (m, 7)),
            b: place(4000, 0, left, 20, (7, n)),
            m,
            n,
            k: 7,
            ty: ElemType::F32,
            start: Some(0),
        }
    }

    fn grid(rows: &[u64], columns: &[u64]) -> Vec<Call> {
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
        let back = |calls: Vec<Call>| -> Vec<Call> {
            let turn = |c: Call| Call { a: Place { at: 500 - c.a.at, row: -c.a.row, ..c.a }, ..c };
            calls.into_iter().map(turn).collect()
        };
        assert_eq!(join(back(grid(&[4, 4, 4], &[10, 10]))), back(vec![part((0, 12), (0, 20))]));
        let turned = grid(&[4, 4, 4], &[10, 10]).into_iter().map(Call::transposed).collect();
        assert_eq!(join(turned), [part((0, 12), (0, 20)).transposed()]);
    }

    #[test]
    fn holes_and_strangers_stay_apart() {
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
        calls[1].start = None;
        assert_eq!(join(calls).len(), 2);
        let mut calls = grid(&[6], &[10, 10]);
        let (first, second) = (calls[0].c.at, calls[1].c.at);
        (calls[0].c.at, calls[1].c.at) = (second, first);
        assert_eq!(join(calls).len(), 2);
    }
}
