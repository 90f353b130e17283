//! Placements of small graphs by hand.

use super::accesses::{self, StepAccess};
use super::spread::{OpenVertices, VertexOrder};
use super::*;
use crate::build::{Build, Tree, Vertices, machine};
use crate::context::ESTIMATES;
use cranelift_entity::EntityRef;
use girder_ir::affine::Affine;
use girder_ir::codelet::{Dir, Expr, ExprKind};
use girder_ir::family::{Domain, IndexFn, Offset, Term, TileMap};
use girder_ir::graph::VarClass;
use girder_ir::ids::{SpecId, VarId};
use girder_ir::placement::{Mapping, Placement, TileRun};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Diagnostics, Session, Span};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn place(b: Build) -> (Result<Placed>, Diagnostics) {
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let placed = PlaceTiles::run(b.graph, &mut PassContext::new(&machine, &session, &mut diagnostics));
    if let Ok(p) = &placed {
        verify_placement(p, &p.placement, &machine).unwrap();
    }
    (placed, diagnostics)
}

fn mapping(p: &Placed, i: usize) -> Mapping {
    p.placement.vars[VarId::new(i)].clone().unwrap()
}

fn tiles(p: &Placed, i: usize) -> Vec<u32> {
    let id = FamilyId::new(i);
    p.placement.families[id].as_ref().unwrap().iter(&p.families[id].domain).collect()
}

/// Returns a view of each element of a vector.
fn elements(v: &View, n: u64) -> Vec<View> {
    (0..n).map(|i| v.slice(0, i, 1, 1)).collect()
}

/// Sets the cycles that a vertex of a codelet takes.
fn takes(b: &mut Build, codelet: SpecId, cycles: i64) {
    let ty = ElemType::I64;
    let kind = ExprKind::Const(Scalar::int(ty, cycles.into()).unwrap());
    let codelet = &mut b.graph.codelets[codelet];
    codelet.cycles = Some(codelet.exprs.push(Expr { kind, ty, span: Span::NONE }));
}

/// `n` open vertices of equal cycles, each of which reads an element of `x` and writes one of `y`.
fn independent(n: u64, cycles: i64) -> Build {
    let mut b = Build::new();
    let (x, y) = (b.var("x", VarClass::Var, &[n], None), b.var("y", VarClass::Var, &[n], None));
    let codelet = b.codelet("f", &[Dir::In, Dir::Out]);
    takes(&mut b, codelet, cycles);
    let set = b.set("s", &[Vertices { codelet, views: &[elements(&x, n), elements(&y, n)], tiles: None }]);
    b.program("main", true, &Tree::Execute(set));
    b
}

#[test]
fn short_vertices_stay_together() {
    let p = place(independent(5, 6)).0.unwrap();
    let home = tiles(&p, 0)[0];
    assert_eq!(tiles(&p, 0), [home; 5]);
    assert_eq!([mapping(&p, 0), mapping(&p, 1)], [Mapping::One(home), Mapping::One(home)]);
}

#[test]
fn long_vertices_have_a_worker_each_and_their_data_with_them() {
    let p = place(independent(48, 60_000)).0.unwrap();
    let found = tiles(&p, 0);
    for tile in 0..machine().tiles() {
        assert!(found.iter().filter(|&&t| t == tile).count() <= machine().chip.workers as usize, "{found:?}");
    }
    for var in [0, 1] {
        let homes: Vec<u32> = (0..48).map(|e| mapping(&p, var).tile_of(48, e)).collect();
        assert_eq!(homes, found);
    }
}

#[test]
fn small_sets_begin_on_different_tiles_if_a_tile_lacked_memory() {
    let found = ESTIMATES[..2].iter().map(|&estimate| {
        let mut b = Build::new();
        let codelet = b.codelet("f", &[Dir::In, Dir::Out]);
        takes(&mut b, codelet, 60_000);
        let sets: Vec<_> = (0..3)
            .map(|k| {
                let mut var = |name: &str| b.var(&format!("{name}{k}"), VarClass::Var, &[8], None);
                let (x, y) = (var("x"), var("y"));
                let views = [elements(&x, 8), elements(&y, 8)];
                Tree::Execute(b.set(&format!("s{k}"), &[Vertices { codelet, views: &views, tiles: None }]))
            })
            .collect();
        b.program("main", true, &Tree::Seq(sets));
        let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
        let mut cx = PassContext::new(&machine, &session, &mut diagnostics);
        cx.estimate = estimate;
        let p = PlaceTiles::run(b.graph, &mut cx).unwrap();
        verify_placement(&p, &p.placement, &machine).unwrap();
        (0..3).map(|k| tiles(&p, k)[0]).collect::<BTreeSet<_>>().len()
    });
    assert_eq!(found.collect::<Vec<_>>(), [1, 3]);
}

/// `blocks` reads parts of eight rows, which are fewer pieces if the tiles of `write` hold parts of many rows. The
/// other steps read whole rows, so all vertices are ordered by rows at first.
#[test]
fn steps_that_take_little_time_are_reordered_if_code_does_not_fit() {
    let columns = ESTIMATES[1..3].iter().map(|&estimate| {
        let mut b = Build::new();
        let [long, short] = ["long", "short"].map(|name| b.codelet(name, &[Dir::In, Dir::Out]));
        takes(&mut b, long, 10_000_000);
        let parts = |v: &View, rows: u64, columns: u64| -> Vec<View> {
            let row = |r: u64| v.slice(0, r * rows, rows, 1);
            let part = |r: u64, c: u64| row(r).slice(1, c * columns, columns, 1);
            (0..32 / rows).flat_map(|r| (0..64 / columns).map(move |c| (r, c))).map(|(r, c)| part(r, c)).collect()
        };
        let mut steps = vec![];
        let mut step = |b: &mut Build, name: &str, codelet, views: [Vec<View>; 2]| {
            steps.push(Tree::Execute(b.set(name, &[Vertices { codelet, views: &views, tiles: None }])));
        };
        let table = |b: &mut Build, name: &str| b.var(name, VarClass::Var, &[32, 64], None);
        let (x, y, z) = (table(&mut b, "x"), table(&mut b, "y"), table(&mut b, "z"));
        step(&mut b, "write", short, [parts(&x, 1, 16), parts(&y, 1, 16)]);
        step(&mut b, "blocks", short, [parts(&y, 8, 16), parts(&z, 8, 16)]);
        for k in 0..4 {
            let [from, by, to] = ["from", "by", "to"].map(|name| table(&mut b, &format!("{name}{k}")));
            step(&mut b, &format!("write{k}"), short, [parts(&from, 1, 16), parts(&by, 1, 16)]);
            step(&mut b, &format!("rows{k}"), short, [parts(&by, 1, 64), parts(&to, 1, 64)]);
        }
        let mut vector = |name: &str| b.var(name, VarClass::Var, &[64], None);
        let (v, w) = (vector("v"), vector("w"));
        step(&mut b, "work", long, [elements(&v, 64), elements(&w, 64)]);
        b.program("main", true, &Tree::Seq(steps));
        let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
        let mut cx = PassContext::new(&machine, &session, &mut diagnostics);
        cx.estimate = estimate;
        let p = PlaceTiles::run(b.graph, &mut cx).unwrap();
        verify_placement(&p, &p.placement, &machine).unwrap();
        let at: BTreeSet<(u32, usize)> = tiles(&p, 0).into_iter().enumerate().map(|(k, t)| (t, k % 4)).collect();
        at.len()
    });
    let columns: Vec<usize> = columns.collect();
    assert!(columns[1] < columns[0], "pairs of a tile and a part of rows on it: {columns:?}");
}

#[test]
fn a_variable_follows_the_vertices_that_the_text_places() {
    let mut b = Build::new();
    let given = Mapping::overlay(None, 4, &[(3, 4, 15)]);
    let (x, y) = (b.var("x", VarClass::Var, &[4], None), b.var("y", VarClass::Var, &[4], Some(given)));
    let codelet = b.codelet("f", &[Dir::In, Dir::Out]);
    let views = [elements(&x, 4), elements(&y, 4)];
    let set = b.set("s", &[Vertices { codelet, views: &views, tiles: Some(&[9, 2, 4, 7]) }]);
    b.program("main", true, &Tree::Execute(set));
    let p = place(b).0.unwrap();
    let homes = |var| (0..4).map(|e| mapping(&p, var).tile_of(4, e)).collect::<Vec<_>>();
    assert_eq!((homes(0), homes(1)), (vec![9, 2, 4, 7], vec![9, 2, 4, 15]));
}

#[test]
fn a_second_run_changes_nothing() {
    let p = place(independent(40, 900)).0.unwrap();
    let mut again = p.graph.clone();
    for (id, var) in &mut again.vars {
        var.mapping = p.placement.vars[id].clone();
    }
    for (id, family) in &mut again.families {
        family.tile = p.placement.families[id].clone();
    }
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let again = PlaceTiles::run(again, &mut PassContext::new(&machine, &session, &mut diagnostics)).unwrap();
    assert_eq!(again.placement.vars, p.placement.vars);
    assert_eq!(again.placement.families, p.placement.families);
}

#[test]
fn blocks_are_nearly_square() {
    let found = blocks(8, 8, VertexOrder::Blocks, 16);
    // Four by four blocks of two by two.
    let tile = |i: usize, j: usize| found[8 * i + j];
    for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
        assert_eq!(tile(i, j), tile(i & !1, j & !1));
    }
}

/// A piece of 18 elements begins anywhere in a row of 40, so it is no block. Neighbours in memory have neighbouring
/// tiles.
#[test]
fn pieces_that_go_round_rows_keep_their_order() {
    let pieces = |y: &View| (0..140).map(|i| y.flatten().slice(0, 18 * i, 18, 1)).collect();
    let found = spread((63, 40), pieces, VertexOrder::Blocks, 13);
    assert!(found.is_sorted(), "{found:?}");
}

/// Returns the tiles of `rows` by `columns` equal vertices, each of which writes one element of a matrix.
fn blocks(rows: u64, columns: u64, order: VertexOrder, tiles: u32) -> Vec<u32> {
    let points = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
    spread((rows, columns), |y| points.map(|(i, j)| y.index(0, i).slice(0, j, 1, 1)).collect(), order, tiles)
}

/// Returns the tiles of equal vertices, each of which writes one of the `parts` of a matrix.
fn spread(
    (rows, columns): (u64, u64),
    parts: impl FnOnce(&View) -> Vec<View>,
    order: VertexOrder,
    tiles: u32,
) -> Vec<u32> {
    let mut b = Build::new();
    let y = b.var("y", VarClass::Var, &[rows, columns], None);
    let codelet = b.codelet("f", &[Dir::Out]);
    let views = parts(&y);
    let set = b.set("s", &[Vertices { codelet, views: &[views], tiles: None }]);
    b.program("main", true, &Tree::Execute(set));
    let items = accesses::items(&b.graph, &machine());
    let StepAccess::Set(_, families) = &items[0].what else { panic!("one compute set") };
    let families: Vec<_> = families.iter().collect();
    OpenVertices::of(&b.graph, &families, 6).spread(order, 0, tiles)[0].1.to_vec()
}

proptest! {
    #[test]
    fn every_tile_has_its_share(rows in 1u64..12, columns in 1u64..12, tiles in 1u32..20, order in 0usize..2) {
        let order = [VertexOrder::Rows, VertexOrder::Blocks][order];
        let found = blocks(rows, columns, order, tiles);
        let share = (rows * columns).div_ceil(tiles.into()) as usize;
        for tile in &found {
            prop_assert!(*tile < tiles);
            prop_assert!(found.iter().filter(|t| *t == tile).count() <= share, "{:?}", found);
        }
    }
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
    // After a variable that fills the machine, the next one begins at tile 0 again.
    assert_eq!(mapping(&p, 6), Mapping::One(0));
}

#[test]
fn mappings_of_the_text_stay_and_the_rest_is_filled() {
    let mut b = Build::new();
    let given = Mapping::overlay(None, 128, &[(32, 64, 9)]);
    b.var("w", VarClass::Var, &[128], Some(given));
    let p = place(b).0.unwrap();
    let runs: Vec<TileRun> = mapping(&p, 0).runs(128).collect();
    assert_eq!(runs, [(0, 32, 0), (32, 64, 9), (64, 96, 1), (96, 128, 2)]);
}

#[test]
fn the_edges_of_a_field_lie_with_the_blocks_beside_them() {
    let mut b = Build::new();
    let given = Mapping::overlay(None, 340, &[(10, 90, 5), (90, 170, 3), (170, 250, 7), (250, 330, 2)]);
    b.var("u", VarClass::Var, &[34, 10], Some(given));
    let p = place(b).0.unwrap();
    let runs: Vec<TileRun> = mapping(&p, 0).runs(340).collect();
    assert_eq!(runs, [(0, 90, 5), (90, 170, 3), (170, 250, 7), (250, 340, 2)]);
}

/// A family of 6 by 4 vertices that read blocks of 2 by 3 of `x` and write those of `y`; `x` and `y` have 12 by 12.
fn in_blocks(tile: Option<TileMap>) -> Build {
    let mut b = Build::new();
    let views = ["x", "y"].map(|name| b.var(name, VarClass::Var, &[12, 12], None));
    let codelet = b.codelet("f", &[Dir::In, Dir::Out]);
    takes(&mut b, codelet, 100_000);
    let blocks = views.map(|v| vec![v.slice(0, 0, 2, 1).slice(1, 0, 3, 1).flatten()]);
    let set = b.set("s", &[Vertices { codelet, views: &blocks, tiles: None }]);
    let family = b.graph.families.values_mut().next().unwrap();
    family.domain = Domain(smallvec::smallvec![6, 4]);
    family.fields.iter_mut().for_each(|f| f.parts[0].offset = Offset::Affine(Affine::new(0, &[24, 3])));
    family.tile = tile;
    b.program("main", true, &Tree::Execute(set));
    b
}

#[test]
fn elements_lie_where_the_vertices_of_their_blocks_are() {
    let given = TileMap::Table((0..24).map(|i| i * 5 % 16).collect());
    for tile in [None, Some(given)] {
        let p = place(in_blocks(tile)).0.unwrap();
        let found = tiles(&p, 0);
        assert!(found.iter().any(|&t| t != found[0]), "{found:?}");
        for (row, column) in (0..12).flat_map(|i| (0..12).map(move |j| (i, j))) {
            let vertex = row / 2 * 4 + column / 3;
            for var in [0, 1] {
                let home = mapping(&p, var).tile_of(144, (row * 12 + column) as u64);
                assert_eq!(home, found[vertex], "element {row}, {column}");
            }
        }
    }
}

#[test]
fn a_long_variable_follows_its_vertices_in_closed_form() {
    const N: u64 = 1 << 16;
    let mut b = Build::new();
    let (x, y) = (b.var("x", VarClass::Var, &[2 * N], None), b.var("y", VarClass::Var, &[2 * N], None));
    let codelet = b.codelet("f", &[Dir::In, Dir::Out]);
    let pairs = |v: &View| vec![v.slice(0, 0, 2, 1)];
    let set = b.set("s", &[Vertices { codelet, views: &[pairs(&x), pairs(&y)], tiles: None }]);
    let family = b.graph.families.values_mut().next().unwrap();
    family.domain = Domain(smallvec::smallvec![N as u32]);
    family.fields.iter_mut().for_each(|f| f.parts[0].offset = Offset::Affine(Affine::new(0, &[2])));
    let map = TileMap::Separable {
        base: 0,
        terms: smallvec::smallvec![Term { dim: 0, function: IndexFn::Cyclic(16), stride: 1 }],
    };
    family.tile = Some(map);
    b.program("main", true, &Tree::Execute(set));
    let p = place(b).0.unwrap();
    for var in [0, 1] {
        let found = mapping(&p, var);
        assert!(matches!(found, Mapping::Separable { .. }), "{found:?}");
        assert!((0..2 * N).step_by(997).all(|e| u64::from(found.tile_of(2 * N, e)) == e / 2 % 16));
    }
}

#[test]
fn a_vertex_runs_beside_its_output() {
    let mut b = Build::new();
    let (x, y) = (
        b.var("x", VarClass::Var, &[8], Some(Mapping::One(3))),
        b.var("y", VarClass::Var, &[8], Some(Mapping::Linear { first: 4, tiles: 4, grain: 2 })),
    );
    let codelet = b.codelet("f", &[Dir::In, Dir::Out]);
    b.set("s", &[Vertices { codelet, views: &[elements(&x, 8), elements(&y, 8)], tiles: None }]);
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
    let reported: Vec<_> = diagnostics.iter().map(|d| (d.code, d.message.as_str())).collect();
    let want = [
        ("place::no_such_tile", "`w` is placed on tile 16, but `small` has 16 tiles"),
        ("place::no_such_tile", "a vertex of `f` is placed on tile 77, but `small` has 16 tiles"),
    ];
    assert_eq!(reported, want);
}

#[test]
fn the_verifier_sees_what_is_moved_or_missing() {
    let mut b = Build::new();
    b.var("w", VarClass::Var, &[4], Some(Mapping::One(3)));
    let p = place(b).0.unwrap();
    let with = |m: Option<Mapping>| {
        let mut placement = Placement::clone(&p.placement);
        placement.vars[VarId::new(0)] = m;
        verify_placement(&p, &placement, &machine()).unwrap_err()
    };
    assert!(with(None).contains("is absent"));
    assert!(with(Some(Mapping::One(4))).contains("moves elements"));
    assert!(with(Some(Mapping::One(16))).contains("does not have"));
    assert!(with(Some(Mapping::Linear { first: 0, tiles: 5, grain: 1 })).contains("more tiles than grains"));
    assert!(with(Some(Mapping::Runs { end: [3].into(), tile: [3].into() })).contains("does not cover"));
}
