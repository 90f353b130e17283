//! Placements of small graphs by hand.

use super::*;
use crate::build::{Build, Vertices, machine};
use cranelift_entity::EntityRef;
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_source::{Diagnostics, Session};

fn place(b: Build) -> (Result<Placed>, Diagnostics) {
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let placed = run(b.graph, &mut PassContext::new(&machine, &session, &mut diagnostics));
    if let Ok(p) = &placed {
        verify_placement(p, &p.placement, &machine).unwrap();
    }
    (placed, diagnostics)
}

fn mapping(p: &Placed, i: usize) -> Mapping {
    p.placement.vars[VarId::new(i)].clone().unwrap()
}

#[test]
fn small_variables_go_around_and_large_ones_spread() {
    let mut b = Build::new();
    for (i, len) in [1u64, 31, 64, 512, 5000, 0].into_iter().enumerate() {
        b.var(&format!("v{i}"), VarClass::Var, &[len], None);
    }
    b.var("scalar", VarClass::Var, &[], None);
    let p = place(b).0.unwrap();
    let linear = |first, tiles| Mapping::Linear { first, tiles, grain: 2 };
    let want = [Mapping::One(0), Mapping::One(1), linear(2, 2), linear(0, 16), linear(0, 16), Mapping::One(0)];
    assert_eq!((0..6).map(|i| mapping(&p, i)).collect::<Vec<_>>(), want);
    // After one that fills the machine the next begins anew.
    assert_eq!(mapping(&p, 6), Mapping::One(0));
}

#[test]
fn what_the_text_maps_stays_and_the_rest_is_filled() {
    let mut b = Build::new();
    let given = Mapping::overlay(None, 128, &[(32, 64, 9)]);
    b.var("w", VarClass::Var, &[128], Some(given));
    let p = place(b).0.unwrap();
    let runs: Vec<TileRun> = mapping(&p, 0).runs(128).collect();
    assert_eq!(runs, [(0, 32, 0), (32, 64, 9), (64, 96, 1), (96, 128, 2)]);
}

#[test]
fn a_vertex_runs_beside_its_output() {
    let mut b = Build::new();
    let (x, y) = (
        b.var("x", VarClass::Var, &[8], Some(Mapping::One(3))),
        b.var("y", VarClass::Var, &[8], Some(Mapping::Linear { first: 4, tiles: 4, grain: 2 })),
    );
    let codelet = b.codelet("f", &[Dir::In, Dir::Out]);
    let views = |v: &girder_ir::view::View| (0..8).map(|i| v.slice(0, i, 1, 1)).collect::<Vec<_>>();
    b.set("s", &[Vertices { codelet, views: &[views(&x), views(&y)], tiles: None }]);
    let p = place(b).0.unwrap();
    let map = p.placement.families[FamilyId::new(0)].as_ref().unwrap();
    assert!(matches!(map, TileMap::Separable { .. }));
    assert_eq!(map.iter(&p.families[FamilyId::new(0)].domain).collect::<Vec<_>>(), [4, 4, 5, 5, 6, 6, 7, 7]);
}

#[test]
fn a_tile_that_the_machine_lacks_is_an_error() {
    let mut b = Build::new();
    b.var("w", VarClass::Var, &[4], Some(Mapping::One(16)));
    let x = b.var("x", VarClass::Var, &[1], None);
    let codelet = b.codelet("f", &[Dir::InOut]);
    b.set("s", &[Vertices { codelet, views: &[vec![x]], tiles: Some(&[77]) }]);
    let (placed, diagnostics) = place(b);
    assert!(placed.is_err());
    let said: Vec<_> = diagnostics.iter().map(|d| (d.code, d.message.as_str())).collect();
    let want = [
        ("place::no_such_tile", "`w` is placed on tile 16, but `small` has 16 tiles"),
        ("place::no_such_tile", "a vertex of `f` is placed on tile 77, but `small` has 16 tiles"),
    ];
    assert_eq!(said, want);
}

#[test]
fn the_verifier_sees_what_is_moved_or_missing() {
    let mut b = Build::new();
    b.var("w", VarClass::Var, &[4], Some(Mapping::One(3)));
    let p = place(b).0.unwrap();
    let with = |m: Option<Mapping>| {
        let mut placement = p.placement.clone();
        placement.vars[VarId::new(0)] = m;
        verify_placement(&p, &placement, &machine()).unwrap_err()
    };
    assert!(with(None).contains("is absent"));
    assert!(with(Some(Mapping::One(4))).contains("moves elements"));
    assert!(with(Some(Mapping::One(16))).contains("does not have"));
    assert!(with(Some(Mapping::Linear { first: 0, tiles: 5, grain: 1 })).contains("more tiles than grains"));
    assert!(with(Some(Mapping::Runs { end: [3].into(), tile: [3].into() })).contains("does not cover"));
}
