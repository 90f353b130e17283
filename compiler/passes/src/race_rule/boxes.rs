//! A proof by corners that written boxes share no element.
//!
//! # Note: Rows and columns
//! If all boxes consist of runs at one distance, an element has a row and a column in a grid as wide as that distance,
//! and each box is a rectangle of the grid, provided that no run continues into the next row. A sweep over the rows
//! keeps the rectangles of the current row by column, where they must not overlap, and drops each at its end. The time
//! grows with the number of boxes and not with their contents, whatever the offsets are.
//!
//! Invariant: `true` is a proof.

use super::touch::Touch;
use crate::footprint::{Boxes, Footprint};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The average number of runs in a box from which on boxes are worth comparing.
const WORTH: u64 = 4;

/// A rectangle of the grid, with exclusive ends.
struct Rectangle {
    rows: (u64, u64),
    columns: (u64, u64),
}

/// Returns whether the boxes of some touches, all of which write, certainly share no element. Returns `false` too if
/// they are not rectangles of one grid, or have so few runs that marking is as fast.
pub(super) fn surely_disjoint_boxes(touches: &[&Touch]) -> bool {
    if !touches.iter().all(|t| t.written) {
        return false;
    }
    let all: Option<Vec<Boxes>> = touches.iter().map(|t| Footprint::boxes(&t.print)).collect();
    let Some(all) = all else { return false };
    let count = |b: &Boxes| b.bases.len() as u64;
    let runs: u64 = all.iter().map(|b| count(b) * b.runs).sum();
    let Some(width) = all.iter().find(|b| b.runs > 1).map(|b| b.distance) else { return false };
    if runs < WORTH * all.iter().map(count).sum::<u64>() || all.iter().any(|b| b.runs > 1 && b.distance != width) {
        return false;
    }
    let rectangles = all.iter().flat_map(|b| b.bases.iter().map(move |&base| rectangle(b, base, width)));
    rectangles.collect::<Option<Vec<_>>>().is_some_and(are_disjoint)
}

/// Returns a box as a rectangle of the grid, or `None` if it is not one.
fn rectangle(b: &Boxes, base: u64, width: u64) -> Option<Rectangle> {
    let (row, column) = (base / width, base % width);
    let fits = column + b.run <= width;
    fits.then_some(Rectangle { rows: (row, row + b.runs), columns: (column, column + b.run) })
}

fn are_disjoint(mut rectangles: Vec<Rectangle>) -> bool {
    rectangles.sort_unstable_by_key(|r| r.rows);
    // The rectangles of the current row: end by first column; and first column by last row.
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    let mut ends: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    for Rectangle { rows, columns } in rectangles {
        while let Some(&Reverse((end, column))) = ends.peek()
            && end <= rows.0
        {
            ends.pop();
            open.remove(&column);
        }
        let neighbour = open.range(..columns.1).next_back();
        if neighbour.is_some_and(|(_, &end)| end > columns.0) {
            return false;
        }
        open.insert(columns.0, columns.1);
        ends.push(Reverse((rows.1, columns.0)));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::touch::Who;
    use super::*;
    use cranelift_entity::EntityRef;
    use girder_ir::affine::Affine;
    use girder_ir::family::{Domain, Field, FieldPart, Offset};
    use girder_ir::ids::{FieldId, StepId, VarId};
    use proptest::prelude::*;

    /// Boxes of some rows and columns at some offsets.
    fn touch(rows: u32, columns: u32, width: i64, offset: Offset, count: u32) -> Touch {
        let (lo, len) = ([0, 0].into_iter().collect(), [rows, columns].into_iter().collect());
        let stride = [width, 1].into_iter().collect();
        let parts = [FieldPart { lo, len, var: VarId::new(0), offset, stride }].into_iter().collect();
        let (digits, axes) = ([rows, columns].into_iter().collect(), [1, 1].into_iter().collect());
        let field = Field { field: FieldId::new(0), digits, axes, parts };
        let prints = Footprint::of_field(&Domain([count].into_iter().collect()), &field);
        Touch::all(Who::Step(StepId::new(0)), true, prints).remove(0)
    }

    fn share_none(touches: &[Touch]) -> bool {
        let mut seen = std::collections::HashSet::new();
        let mut alone = true;
        for t in touches {
            t.print.runs(|start, len| {
                (start..start + len).for_each(|e| alone &= seen.insert(e));
                true
            });
        }
        alone
    }

    proptest! {
        #[test]
        fn proofs_agree_with_enumeration(
            sizes in prop::collection::vec((1u32..9, 1u32..7), 1..4),
            offsets in prop::collection::vec(prop::collection::vec(0u32..400, 1..4), 3),
        ) {
            let of = |(k, &(rows, columns)): (usize, &(u32, u32))| {
                let table = offsets[k].clone();
                touch(rows, columns, 20, Offset::Table(table.clone().into()), table.len() as u32)
            };
            let touches: Vec<Touch> = sizes.iter().enumerate().map(of).collect();
            let list: Vec<&Touch> = touches.iter().collect();
            let rows: u64 = touches.iter().zip(&sizes).map(|(t, s)| t.print.count() / u64::from(s.1)).sum();
            let boxes: usize = offsets.iter().take(sizes.len()).map(Vec::len).sum();
            let wraps = sizes.iter().zip(&offsets).any(|(s, o)| o.iter().any(|o| o % 20 + s.1 > 20));
            if surely_disjoint_boxes(&list) {
                prop_assert!(share_none(&touches));
            } else if rows >= WORTH * boxes as u64 && !wraps {
                prop_assert!(!share_none(&touches));
            }
        }
    }

    #[test]
    fn blocks_of_uneven_sizes_are_disjoint() {
        let tables: [(u32, u32, &[u32]); 3] = [(5, 7, &[0, 107]), (5, 6, &[7, 100]), (4, 13, &[200])];
        let of = |&(rows, columns, offsets): &(u32, u32, &[u32])| {
            touch(rows, columns, 20, Offset::Table(offsets.into()), offsets.len() as u32)
        };
        let touches: Vec<Touch> = tables.iter().map(of).collect();
        assert!(surely_disjoint_boxes(&touches.iter().collect::<Vec<_>>()));
        let closed = touch(5, 19, 20, Offset::Affine(Affine { base: 0, coef: [100].into_iter().collect() }), 4);
        assert!(surely_disjoint_boxes(&[&closed]));
        assert!(!surely_disjoint_boxes(&[&closed, &touches[0]]));
    }
}
