//! Folding rows into families loses nothing, and folds regular rows.

use super::*;
use girder_ir::plan::{Loc, LocalCopy, Object};
use proptest::prelude::*;

fn buffer(first: u32, tile: u32, bytes: u32) -> Row {
    Row::Buffers { first, count: 1, tile, next: 0, bytes }
}

fn expanded(families: &[RowFamily]) -> Vec<Row> {
    let mut rows = vec![];
    for family in families {
        let before = rows.len() as u64;
        let push = |row| {
            rows.push(row);
            Ok(())
        };
        family.each(push).unwrap();
        assert_eq!(rows.len() as u64 - before, family.count().unwrap());
    }
    rows
}

#[test]
fn rows_over_a_box_are_one_family() {
    let rows: Vec<Row> = (0..120).map(|k| buffer(k, 7 * (k / 30) + 2 * (k / 5 % 6), 4 + 8 * (k % 5))).collect();
    let families = fold(rows.clone());
    assert_eq!(expanded(&families), rows);
    let [family] = &families[..] else { panic!("{families:?}") };
    assert_eq!(family.dims.iter().map(|d| d.count).collect::<Vec<_>>(), [4, 6, 5]);
    assert_eq!(family.dims[1].step[..], [5, 0, 2, 0, 0]);
}

#[test]
fn rows_of_other_kinds_or_locations_stay_separate() {
    let at = |object| Loc { tile: 3, object, offset: 8 };
    let copy = |to, gather| {
        let copy = LocalCopy { from: at(Object::Buffer(0)), to, count: 1, bytes: 4, from_step: 0, to_step: 0 };
        Row::Copy { phase: super::super::When::Before, gather, copy }
    };
    let var = |v| at(Object::Var(girder_ir::ids::VarId::from_u32(v)));
    let rows = vec![copy(var(0), true), copy(var(1), true), copy(at(Object::Buffer(2)), true), copy(var(0), false)];
    let families = fold(rows.clone());
    assert_eq!((families.len(), expanded(&families)), (4, rows));
}

#[test]
fn numbers_that_leave_their_type_are_errors() {
    let step = |numbers: [i64; 5]| Dim { count: 3, step: numbers.into_iter().collect() };
    for dim in [step([0, 0, -2, 0, 0]), step([0, 0, 0, 0, i64::MAX])] {
        let family = RowFamily { first: buffer(0, 3, 4), dims: vec![dim] };
        assert!(family.each(|_| Ok(())).is_err());
    }
}

proptest! {
    #[test]
    fn folding_loses_nothing(
        blocks in proptest::collection::vec((0u32..3, 0u32..4, 1u32..7, 0u32..3, 1u32..4, 0u32..9), 0..20),
    ) {
        let block = |(tile, step, count, bytes, times, jump): (u32, u32, u32, u32, u32, u32)| {
            (0..times).flat_map(move |t| (0..count).map(move |k| buffer(k, tile + t * jump + k * step, bytes)))
        };
        let rows: Vec<Row> = blocks.into_iter().flat_map(block).collect();
        prop_assert_eq!(expanded(&fold(rows.clone())), rows);
    }
}
