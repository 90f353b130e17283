//! Tests of mappings and homes against a plain list of tiles.

use super::*;
use crate::family::{IndexFn, Term};
use crate::graph::{Var, VarClass};
use crate::plan::{Homes, RunRows};
use crate::types::ElemType;
use cranelift_entity::EntityRef;
use girder_source::OriginId;
use proptest::prelude::*;

fn list(mapping: &Mapping, len: u64) -> Vec<u32> {
    (0..len).map(|e| mapping.tile_of(len, e)).collect()
}

fn runs_of(tiles: &[u32]) -> Vec<TileRun> {
    (0u64..).zip(tiles).map(|(e, &t)| (e, e + 1, t)).collect()
}

fn variable(shape: &[u64], ty: ElemType) -> Var {
    let (name, origin) = ("v".into(), OriginId::new(0));
    Var { name, class: VarClass::Var, ty, shape: shape.into(), init: None, mapping: None, within: None, origin }
}

/// A mapping with the shape of its variable.
fn mapping() -> impl Strategy<Value = (Mapping, Vec<u64>)> {
    let shape = prop::collection::vec(1u64..6, 1..4);
    let part = prop_oneof![
        Just(IndexFn::Identity),
        (1u32..5).prop_map(IndexFn::Block),
        (1u32..9).prop_map(IndexFn::Balanced),
        (1u32..5).prop_map(IndexFn::Cyclic),
        (1u32..4, 1u32..4).prop_map(|(b, p)| IndexFn::BlockCyclic(b, p)),
    ];
    let terms = prop::collection::vec(prop::option::of((part, 1i32..4)), 3);
    let tiles = prop::collection::vec(0u32..4, 125);
    (shape, 0usize..5, 1u32..9, 1u32..9, terms, tiles).prop_map(|(shape, kind, count, grain, terms, table)| {
        let len: u64 = shape.iter().product();
        let domain = Domain(shape.iter().map(|&n| n as u32).collect());
        let mapping = match kind {
            0 => Mapping::One(count),
            1 => Mapping::Linear { first: 2, tiles: count.min(len.div_ceil(grain as u64) as u32), grain },
            2 => Mapping::from_runs(runs_of(&table[..len as usize])),
            3 => Mapping::Separable { domain, tiles: TileMap::Table(table[..len as usize].into()) },
            _ => {
                let some = |(dim, t): (usize, Option<(IndexFn, i32)>)| {
                    t.map(|(function, stride)| Term { dim: dim as u8, function, stride })
                };
                let terms = terms.into_iter().take(shape.len()).enumerate().filter_map(some).collect();
                Mapping::Separable { domain, tiles: TileMap::Separable { base: 1, terms } }
            }
        };
        (mapping, shape)
    })
}

fn check_runs(mapping: &Mapping, tiles: &[u32]) {
    let runs: Vec<TileRun> = mapping.runs(tiles.len() as u64).collect();
    let listed: Vec<u32> = runs.iter().flat_map(|r| (r.0..r.1).map(|_| r.2)).collect();
    assert_eq!(listed, tiles);
    assert!(runs.windows(2).all(|w| w[0].1 == w[1].0 && w[0].2 != w[1].2), "{runs:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn runs_cover_the_elements((mapping, shape) in mapping()) {
        let len = shape.iter().product();
        let tiles = list(&mapping, len);
        check_runs(&mapping, &tiles);
        prop_assert_eq!(mapping.max_tile(len), tiles.iter().copied().max());
        prop_assert!(mapping.is_complete());
    }

    #[test]
    fn fitting_keeps_the_tiles_and_finds_closed_forms((mapping, shape) in mapping()) {
        let len = shape.iter().product();
        let tiles = list(&mapping, len);
        let fit = Mapping::fit(&shape, runs_of(&tiles));
        check_runs(&fit, &tiles);
        let closed = matches!(mapping, Mapping::One(_) | Mapping::Linear { .. })
            || matches!(mapping, Mapping::Separable { tiles: TileMap::Separable { .. }, .. });
        prop_assert!(!closed || !matches!(fit, Mapping::Runs { .. }), "{:?}", fit);
    }

    #[test]
    fn later_maps_win(
        (mapping, shape) in mapping(),
        patches in prop::collection::vec((0u64..130, 0u64..40, 0u32..5), 0..8),
        base: bool,
    ) {
        let len: u64 = shape.iter().product();
        let mut tiles = if base { list(&mapping, len) } else { vec![UNPLACED; len as usize] };
        let clip = |&(start, n, tile): &(u64, u64, u32)| (start.min(len), (start + n).min(len), tile);
        let patches: Vec<TileRun> = patches.iter().map(clip).collect();
        for &(start, end, tile) in &patches {
            tiles[start as usize..end as usize].fill(tile);
        }
        let laid = Mapping::overlay(base.then_some(&mapping), len, &patches);
        check_runs(&laid, &tiles);
        prop_assert_eq!(laid.is_complete(), !tiles.contains(&UNPLACED));
        prop_assert_eq!(laid.max_tile(len), tiles.iter().copied().filter(|&t| t != UNPLACED).max());
    }

    #[test]
    fn homes_keep_the_phase_and_do_not_overlap((mapping, shape) in mapping(), ty in 0usize..12) {
        let ty = ElemType::ALL[ty];
        let bytes = ty.bytes() as u64;
        let var = variable(&shape, ty);
        let homes = Homes::of(&var, &mapping);
        let mut taken = std::collections::HashSet::new();
        for e in 0..var.len() {
            let (tile, offset) = homes.locate(e);
            prop_assert_eq!(tile, mapping.tile_of(var.len(), e));
            prop_assert_eq!(offset as u64 % 8, e * bytes % 8);
            prop_assert!(offset as u64 + bytes <= homes.block(tile).unwrap() as u64);
            prop_assert!((offset..offset + bytes as u32).all(|b| taken.insert((tile, b))));
        }
        let slack: u64 = homes.blocks.iter().map(|b| b.1 as u64).sum::<u64>() - var.bytes();
        prop_assert!(slack <= 7 * homes.runs.len() as u64);
        let RunRows { jump, distance, again } = &homes.rows;
        for (k, &times) in again.iter().enumerate() {
            let run = |n: u32| homes.runs[k + n as usize * jump];
            let step = |n: u32| run(n).offset as i64 - run(0).offset as i64;
            for n in 1..=times {
                let (first, far) = (run(0), n * *distance as u32);
                let later = run(n);
                let expected = (first.start + far, first.end + far, first.tile);
                prop_assert_eq!((later.start, later.end, later.tile), expected);
                prop_assert_eq!(step(n), n as i64 * step(1));
            }
        }
    }
}

/// The golden case of PopLibs' linear helper: 128 floats over tiles 2 to 5, and a case that wraps to tiles 6, 7, 0, 1.
#[test]
fn linear_mappings_agree_with_the_golden_case() {
    let linear = Mapping::Linear { first: 2, tiles: 4, grain: 32 };
    let runs: Vec<TileRun> = linear.runs(128).collect();
    assert_eq!(runs, [(0, 32, 2), (32, 64, 3), (64, 96, 4), (96, 128, 5)]);
    assert_eq!(Mapping::fit(&[128], runs), linear);
    let wrapped = [(0, 32, 6), (32, 64, 7), (64, 96, 0), (96, 128, 1)];
    let fit = Mapping::fit(&[128], wrapped);
    assert!(matches!(fit, Mapping::Runs { .. }));
    assert_eq!(fit.runs(128).collect::<Vec<_>>(), wrapped);
}

#[test]
fn forms_are_the_simplest() {
    let fit = |shape: &[u64], tile: &dyn Fn(u64) -> u32| {
        let tiles: Vec<u32> = (0..shape.iter().product()).map(tile).collect();
        Mapping::fit(shape, runs_of(&tiles))
    };
    assert_eq!(fit(&[10], &|_| 3), Mapping::One(3));
    assert_eq!(fit(&[10, 784], &|e| (e / 784 / 5) as u32), Mapping::Linear { first: 0, tiles: 2, grain: 3920 });
    assert_eq!(fit(&[10], &|e| (e * 4 / 10) as u32), Mapping::Linear { first: 0, tiles: 4, grain: 1 });
    let blocks = fit(&[8, 8, 34], &|e| (8 * (e / 272) + e / 34 % 8) as u32);
    assert_eq!(blocks, Mapping::Linear { first: 0, tiles: 64, grain: 34 });
    let columns = fit(&[4, 6], &|e| (e % 6) as u32);
    let Mapping::Separable { domain, tiles } = columns else { panic!("{columns:?}") };
    assert_eq!((domain.0.as_slice(), tiles.at(&domain, 8)), (&[4, 6][..], 2));
    assert!(!Mapping::from_runs([(0, 4, UNPLACED)]).is_complete());
}
