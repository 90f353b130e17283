//! Folding rows into families loses nothing, and folds regular rows.

use super::*;
use crate::exchange::rows::{Receivers, Row};
use girder_ir::plan::{Loc, LocalCopy, Object};
use proptest::prelude::*;

fn buffer(first: u32, tile: u32, bytes: u32) -> Row {
    Row::Buffers { first, count: 1, tile, next: 0, bytes }
}

fn folded(rows: &[Row]) -> Vec<RowFamily> {
    let mut runs = RowRuns::default();
    runs.extend(rows.iter().cloned());
    fold(runs)
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
    let families = folded(&rows);
    assert_eq!(expanded(&families), rows);
    let [family] = &families[..] else { panic!("{families:?}") };
    let Indices::Box(dims) = &family.indices else { panic!("{family:?}") };
    assert_eq!(dims.iter().map(|d| d.count).collect::<Vec<_>>(), [4, 6, 5]);
    assert_eq!(dims[1].step[..], [5, 0, 2, 0, 0]);
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
    let families = folded(&rows);
    assert_eq!((families.len(), expanded(&families)), (4, rows));
}

#[test]
fn numbers_that_leave_their_type_are_errors() {
    let step = |numbers: [i64; 5]| Dim { count: 3, step: numbers.into_iter().collect() };
    for dim in [step([0, 0, -2, 0, 0]), step([0, 0, 0, 0, i64::MAX])] {
        let family = RowFamily { first: buffer(0, 3, 4), indices: Indices::Box(vec![dim]) };
        assert!(family.each(|_| Ok(())).is_err());
    }
    for values in [[3, 4, 0], [0, 1, i64::MAX], [i64::MAX, 0, i64::MIN]] {
        let list = IntegerList::new(1, &values, vec![]);
        let table = Table { steps: vec![[0, 0, 2, 0, 0].into_iter().collect()], list };
        let family = RowFamily { first: buffer(0, 3, 4), indices: Indices::Table(table) };
        assert!(family.each(|_| Ok(())).is_err());
    }
}

#[test]
fn rows_without_order_are_one_table() {
    // Tiles without order; the first buffer advances evenly.
    let tiles: Vec<u32> = (0..40).map(|k| k * k * 31 % 97).collect();
    let rows: Vec<Row> = (0..40).map(|k| buffer(k, tiles[k as usize], 64)).collect();
    let families = folded(&rows);
    assert_eq!(expanded(&families), rows);
    let [RowFamily { indices: Indices::Table(table), .. }] = &families[..] else { panic!("{families:?}") };
    assert_eq!(table.steps.len(), 2);
    assert_eq!((table.list.len(), &table.list.entry(2)[..]), (40, &[2, 27][..]));
}

#[test]
fn numbers_that_advance_together_are_one_column() {
    let at = |tile: u32| Loc { tile, object: Object::Var(girder_ir::ids::VarId::from_u32(0)), offset: 8 };
    let when = super::super::When::Before;
    let transfer = |k: u32| {
        let (from, to) = (k * k * 31 % 97, k * k * 31 % 97 + 5);
        Row::Transfer { phase: when, start: None, from: at(from), words: 16, to: [Receivers::one(at(to))].into() }
    };
    let rows: Vec<Row> = (0..30).map(transfer).collect();
    let families = folded(&rows);
    assert_eq!(expanded(&families), rows);
    let [RowFamily { indices: Indices::Table(table), .. }] = &families[..] else { panic!("{families:?}") };
    assert_eq!(table.steps.len(), 1);
}

#[test]
fn a_table_is_cut_where_a_column_changes_rarely_and_ends_at_a_large_family() {
    let noise = |k: u32| k * k * 31 % 97;
    let rough = (0..200).map(|k| buffer(noise(k), noise(k + 3), 1000 + k / 100));
    let even = (0..50).map(|k| buffer(k, 2 * k, 4));
    let rows: Vec<Row> = rough.clone().chain(even).chain(rough).collect();
    let families = folded(&rows);
    assert_eq!(expanded(&families), rows);
    let shape = |f: &RowFamily| match &f.indices {
        Indices::Box(dims) => format!("box of {}", dims.iter().map(|d| d.count).product::<u32>()),
        Indices::Table(t) => format!("{} columns of {}", t.steps.len(), f.count().unwrap()),
    };
    let shapes: Vec<String> = families.iter().map(shape).collect();
    let rough = ["2 columns of 100", "2 columns of 100"];
    assert_eq!(shapes, [&rough[..], &["box of 50"], &rough[..]].concat());
}

#[test]
fn few_lines_stay_lines() {
    let rows: Vec<Row> = (0..15).map(|k| buffer(k, k * k * 31 % 97, 64)).collect();
    let families = folded(&rows);
    assert_eq!((families.len(), expanded(&families)), (15, rows));
}

proptest! {
    #[test]
    fn folding_loses_nothing(
        blocks in proptest::collection::vec((0u32..3, 0u32..4, 1u32..7, 0u32..3, 1u32..4, 0u32..9), 0..60),
    ) {
        let block = |(tile, step, count, bytes, times, jump): (u32, u32, u32, u32, u32, u32)| {
            (0..times).flat_map(move |t| (0..count).map(move |k| buffer(k, tile + t * jump + k * step, bytes)))
        };
        let rows: Vec<Row> = blocks.into_iter().flat_map(block).collect();
        prop_assert_eq!(expanded(&folded(&rows)), rows);
    }
}
