//! Tests of every closed form of a family against enumeration.

use super::*;
use crate::ids::VarId;
use crate::view::View;
use cranelift_entity::EntityRef;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn domain() -> impl Strategy<Value = Domain> {
    prop::collection::vec(1u32..6, 0..4).prop_map(|extents| Domain(extents.into()))
}

fn part() -> impl Strategy<Value = IndexFn> {
    prop_oneof![
        Just(IndexFn::Identity),
        (1u32..5).prop_map(IndexFn::Block),
        (1u32..12).prop_map(IndexFn::Balanced),
        (1u32..5).prop_map(IndexFn::Cyclic),
        (1u32..4, 1u32..4).prop_map(|(b, p)| IndexFn::BlockCyclic(b, p)),
    ]
}

fn separable() -> impl Strategy<Value = (Domain, TileMap)> {
    let term = prop::option::of((part(), -9i32..10));
    (domain(), prop::collection::vec(term, 4)).prop_map(|(domain, terms)| {
        let some = |(dim, t): (usize, Option<(IndexFn, i32)>)| {
            t.map(|(function, stride)| Term { dim: dim as u8, function, stride })
        };
        let terms = terms.into_iter().take(domain.0.len()).enumerate().filter_map(some).collect();
        (domain, TileMap::Separable { base: 200, terms })
    })
}

fn tile_map() -> impl Strategy<Value = (Domain, TileMap)> {
    let table = domain().prop_flat_map(|d| {
        let n = d.count() as usize;
        (Just(d), prop::collection::vec(0u32..6, n)).prop_map(|(d, t)| (d, TileMap::Table(t.into())))
    });
    prop_oneof![3 => separable(), 1 => table]
}

/// A field of one or two parts over variables of 200 elements, with closed or tabled offsets.
fn field() -> impl Strategy<Value = (Field, Domain)> {
    let coefs = prop::collection::vec(0i64..7, 3);
    let table = prop::collection::vec(0i64..30, 125);
    let pick = (0u64..30, 1u64..4, 1i64..4, 1u64..4, 0u64..6, any::<bool>(), any::<bool>());
    (prop::collection::vec(1u32..5, 0..4), coefs, table, pick).prop_map(|(extents, coefs, table, pick)| {
        let domain = Domain(extents.into());
        let (start, count, step, rows, first, tabled, two) = pick;
        let affine = Affine::new(first as i64, &coefs[..domain.0.len()]);
        let views: Vec<View> = (0..domain.count())
            .map(|i| {
                let at = if tabled { table[i as usize] } else { affine.at(&domain.point(i)) } as u64;
                let var = |v: usize| View::whole(VarId::new(v), &[10, 20]).flatten();
                let a = var(0).slice(0, at + start, count, step);
                let a = a.broadcast(1 + (rows == 3) as u64, 0);
                let b = var((start % 2) as usize).slice(0, at, rows, 2);
                if two { View::concat(&[a, b], 0) } else { a }
            })
            .collect();
        let field = Field::from_views(FieldId::new(0), &domain, &views).unwrap_or_else(|| {
            // Parts that meet in some instances only give no field; one view for all does.
            Field::uniform(FieldId::new(0), &views[0])
        });
        (field, domain)
    })
}

fn elements(field: &Field, domain: &Domain) -> Vec<(VarId, u64)> {
    (0..domain.count()).flat_map(|i| field.view(domain, i).elements()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn index_functions_invert(part in part(), n in 1u32..30) {
        let values: Vec<u32> = (0..n).map(|i| part.at(i, n)).collect();
        prop_assert!(values.iter().all(|&v| v < part.count(n)));
        prop_assert!(values.contains(&(part.count(n) - 1)));
        for v in 0..part.count(n) + 3 {
            let found: Vec<u32> = part.inverse(v, n).flatten().collect();
            prop_assert_eq!(found, (0..n).filter(|&i| values[i as usize] == v).collect::<Vec<_>>());
        }
        for i in 0..n {
            let end = (i..n).find(|&j| values[j as usize] != values[i as usize]).unwrap_or(n);
            prop_assert_eq!(part.run_end(i, n), end);
        }
    }

    #[test]
    fn tile_maps_read_as_their_points((domain, map) in tile_map()) {
        let tiles: Vec<u32> = (0..domain.count()).map(|i| map.at(&domain, i)).collect();
        prop_assert_eq!(map.iter(&domain).collect::<Vec<_>>(), tiles.clone());
        let mut counts = BTreeMap::new();
        tiles.iter().for_each(|&t| *counts.entry(t).or_insert(0u64) += 1);
        prop_assert_eq!(&map.counts(&domain), &counts);
        prop_assert_eq!(map.max_tile(&domain), tiles.iter().copied().max());
        let by = map.by_tile(&domain);
        prop_assert_eq!(by.tiles.clone(), counts.keys().copied().collect::<Vec<_>>());
        for tile in tiles.iter().copied().chain([0, 199, 1000]) {
            let on: Vec<u64> = (0u64..).zip(&tiles).filter(|p| *p.1 == tile).map(|p| p.0).collect();
            prop_assert_eq!(by.on(tile).iter().map(|&i| i as u64).collect::<Vec<_>>(), on.clone());
            prop_assert_eq!(map.instances_on(&domain, tile), on);
        }
    }

    #[test]
    fn separable_tables_are_found((domain, map) in separable()) {
        let tiles: Vec<u32> = map.iter(&domain).collect();
        let fit = TileMap::fit(&domain, &tiles);
        prop_assert_eq!(fit.iter(&domain).collect::<Vec<_>>(), tiles);
        prop_assert!(matches!(fit, TileMap::Separable { .. }), "{:?}", fit);
    }

    #[test]
    fn any_table_is_kept((domain, map) in tile_map()) {
        let tiles: Vec<u32> = map.iter(&domain).collect();
        prop_assert_eq!(TileMap::fit(&domain, &tiles).iter(&domain).collect::<Vec<_>>(), tiles);
    }

    #[test]
    fn affine_tables_are_found(domain in domain(), base in -9i64..9, coef in prop::collection::vec(-9i64..9, 3)) {
        let affine = Affine::new(base, &coef[..domain.0.len()]);
        let values: Vec<i64> = domain.points().map(|p| affine.at(&p)).collect();
        let fit = fit_affine(&domain, &values).unwrap();
        prop_assert_eq!(domain.points().map(|p| fit.at(&p)).collect::<Vec<_>>(), values.clone());
        if values.len() > 1 && domain.0.iter().any(|&n| n > 2) {
            let mut bent = values;
            *bent.last_mut().unwrap() += 1;
            prop_assert_eq!(fit_affine(&domain, &bent), None);
        }
    }

    #[test]
    fn points_are_instances_in_order(domain in domain()) {
        let points: Vec<_> = domain.points().collect();
        prop_assert_eq!(points.len() as u64, domain.count());
        for (i, p) in (0u64..).zip(&points) {
            prop_assert_eq!(domain.point(i), p.clone());
            prop_assert_eq!(domain.instance(p), i);
        }
    }

    #[test]
    fn an_injective_field_names_no_element_twice((a, da) in field()) {
        let mut x = elements(&a, &da);
        x.sort_unstable();
        let repeats = x.windows(2).any(|w| w[0] == w[1]);
        prop_assert_eq!(a.is_injective(&da), !repeats);
    }
}

#[test]
fn views_of_different_shape_do_not_share_a_field() {
    let x = View::whole(VarId::new(0), &[10]);
    let domain = Domain([2].into_iter().collect());
    let views = [x.slice(0, 0, 3, 1), x.slice(0, 3, 4, 1)];
    assert_eq!(Field::from_views(FieldId::new(0), &domain, &views), None);
    let views = [x.slice(0, 0, 3, 1), x.slice(0, 7, 3, 1)];
    let field = Field::from_views(FieldId::new(0), &domain, &views).unwrap();
    assert_eq!(field.parts[0].offset, Offset::Affine(Affine::new(0, &[7])));
    assert_eq!(field.view(&domain, 1), views[1]);
}

#[test]
fn the_commonest_tile_expressions_are_found() {
    let fit = |n: u32, f: &dyn Fn(u32) -> u32| {
        let domain = Domain([n].into_iter().collect());
        match TileMap::fit(&domain, &(0..n).map(f).collect::<Vec<_>>()) {
            TileMap::Separable { base, terms } => (base, terms.to_vec()),
            TileMap::Table(_) => panic!("not found"),
        }
    };
    let term = |function, stride| vec![Term { dim: 0, function, stride }];
    assert_eq!(fit(10, &|i| i / 5), (0, term(IndexFn::Block(5), 1)));
    assert_eq!(fit(10, &|i| 3 + i * 4), (3, term(IndexFn::Identity, 4)));
    assert_eq!(fit(1000, &|i| i * 64 / 1000), (0, term(IndexFn::Balanced(64), 1)));
    assert_eq!(fit(10, &|i| i % 4), (0, term(IndexFn::Cyclic(4), 1)));
    assert_eq!(fit(20, &|i| 9 - i / 2 % 3), (9, term(IndexFn::BlockCyclic(2, 3), -1)));
    assert_eq!(fit(10, &|_| 7), (7, vec![]));
    let (base, terms) = fit(10, &|i| i * 1472 / 10);
    assert!(base == 0 && matches!(terms[..], [Term { function: IndexFn::Balanced(_), stride: 1, .. }]));
}
