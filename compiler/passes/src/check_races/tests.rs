//! Tests of the race rule by hand, and on random small graphs against a check of every element.

use super::*;
use crate::StepTimes;
use crate::build::{Build, Tree, Vertices, machine};
use girder_ir::codelet::Dir;
use girder_ir::graph::VarClass;
use girder_ir::ids::{SpecId, VarId};
use girder_ir::view::View;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn found(b: &Build) -> Vec<Diagnostic> {
    check(&b.graph, &Placement::default(), &machine(), &Cancel::default(), &StepTimes::default())
}

fn reported(b: &Build) -> Vec<(&'static str, String)> {
    found(b).into_iter().map(|d| (d.code, d.message)).collect()
}

fn one(code: &'static str, message: &str) -> Vec<(&'static str, String)> {
    vec![(code, message.to_string())]
}

fn rows(v: &View) -> Vec<View> {
    (0..v.shape()[0]).map(|i| v.index(0, i)).collect()
}

/// A matrix-vector product that fills the machine: `y[i, 0..1] = f(w[i], x)`.
fn matvec(overlap: bool) -> Build {
    let mut b = Build::new();
    let w = b.var("w", VarClass::Var, &[4, 8], None);
    let x = b.var("x", VarClass::Var, &[8], None);
    let y = b.var("main.y", VarClass::Var, &[8], None);
    let dot = b.codelet("dot", &[Dir::In, Dir::In, Dir::Out]);
    let out = (0..4).map(|i| y.slice(0, i * 2, if overlap { 2 + (i == 1) as u64 } else { 2 }, 1));
    let out: Vec<View> = out.collect();
    if overlap {
        // Lengths differ, so the text makes two families.
        let (w, long) = (rows(&w), [out[1].clone()]);
        let others = [0, 2, 3].map(|i: usize| i);
        let ins = |v: &[View]| others.iter().map(|&i| v[i].clone()).collect::<Vec<_>>();
        let (wv, xv, yv) = (ins(&w), vec![x.clone(); 3], ins(&out));
        b.set(
            "main.mv",
            &[
                Vertices { codelet: dot, views: &[wv, xv, yv], tiles: None },
                Vertices { codelet: dot, views: &[vec![w[1].clone()], vec![x], long.to_vec()], tiles: None },
            ],
        );
    } else {
        b.set("main.mv", &[Vertices { codelet: dot, views: &[rows(&w), vec![x; 4], out], tiles: None }]);
    }
    b
}

#[test]
fn reads_may_overlap_and_disjoint_writes_are_free() {
    assert!(found(&matvec(false)).is_empty());
}

#[test]
fn two_writers_are_both_shown_with_the_range() {
    let b = matvec(true);
    assert_eq!(reported(&b), one("race::write_write", "`main.y[4]` is written twice in compute set `main.mv`"));
}

#[test]
fn a_stencil_in_place_reads_what_its_neighbour_writes() {
    let mut b = Build::new();
    let u = b.var("u", VarClass::Var, &[6], None);
    let step = b.codelet("step", &[Dir::In, Dir::Out]);
    let ins = (0..4).map(|i| u.slice(0, i, 1, 1)).collect();
    let outs = (0..4).map(|i| u.slice(0, i + 1, 1, 1)).collect();
    b.set("s", &[Vertices { codelet: step, views: &[ins, outs], tiles: None }]);
    let want = "`u[1]` is written and read in compute set `s` (and 2 more elements of `u` likewise)";
    assert_eq!(reported(&b), one("race::read_write", want));
}

#[test]
fn one_vertex_may_not_read_and_write_through_two_fields() {
    let mut b = Build::new();
    let u = b.var("u", VarClass::Var, &[2, 6], None);
    let step = b.codelet("step", &[Dir::In, Dir::Out]);
    let (row, part) = (u.index(0, 1), u.index(0, 1).slice(0, 1, 3, 1));
    b.set("s", &[Vertices { codelet: step, views: &[vec![row], vec![part]], tiles: None }]);
    let want = "a vertex of `s` reads `u[1, 1..4]` through `a` and writes it through `b`";
    assert_eq!(reported(&b), one("race::in_and_out", want));
}

#[test]
fn an_output_that_names_an_element_twice_is_an_error() {
    let mut b = Build::new();
    let u = b.var("u", VarClass::Var, &[3], None);
    let f = b.codelet("f", &[Dir::InOut]);
    let twice = u.slice(0, 2, 1, 1).broadcast(2, 0).flatten();
    b.set("s", &[Vertices { codelet: f, views: &[vec![twice]], tiles: None }]);
    assert_eq!(reported(&b), one("race::aliased_output", "field `a` of one vertex names `u[2]` twice and writes it"));
}

#[test]
fn constants_are_not_written() {
    let mut b = Build::new();
    let k = b.var("k", VarClass::Const, &[3], None);
    let x = b.var("x", VarClass::Var, &[3], None);
    let f = b.codelet("f", &[Dir::InOut]);
    b.set("s", &[Vertices { codelet: f, views: &[vec![k.clone()]], tiles: None }]);
    b.copy("c", &[(k, x)]);
    assert_eq!(found(&b).iter().filter(|d| d.code == "race::constant").count(), 2);
    assert_eq!(reported(&b)[0].1, "the constant `k` is written");
}

#[test]
fn a_copy_overlaps_neither_itself_nor_its_source() {
    let mut b = Build::new();
    let u = b.var("u", VarClass::Var, &[8], None);
    let v = b.var("v", VarClass::Var, &[8], None);
    b.copy("shift", &[(u.slice(0, 1, 4, 1), u.slice(0, 0, 4, 1))]);
    b.copy("twice", &[(v.slice(0, 0, 4, 1), u.slice(0, 0, 4, 1)), (v.slice(0, 3, 2, 1), u.slice(0, 6, 2, 1))]);
    b.copy("fine", &[(v.slice(0, 0, 4, 1), u.slice(0, 0, 4, 1)), (v.slice(0, 4, 4, 1), u.slice(0, 0, 4, 1))]);
    let want = [
        ("race::copy_overlap", "copy `shift` reads and writes `u[1..4]`".to_string()),
        ("race::copy_overlap", "copy `twice` writes `v[3]` twice".to_string()),
    ];
    assert_eq!(reported(&b), want);
}

#[test]
fn branches_share_no_written_element() {
    for (at, n) in [(2, 1), (4, 0)] {
        let mut b = Build::new();
        let u = b.var("u", VarClass::Var, &[8], None);
        let v = b.var("v", VarClass::Var, &[8], None);
        let left = b.copy_step(&u.slice(0, 0, 4, 1), &v.slice(0, 0, 4, 1));
        let right = b.copy_step(&v.slice(0, at, 4, 1), &u.slice(0, 4, 4, 1));
        b.program("main", true, &Tree::Par(vec![left, right]));
        assert_eq!(reported(&b).iter().filter(|d| d.0 == "race::branches").count(), n, "{at}");
    }
}

/// One family of the random graphs: a view of each field at instance 0, and its motion.
#[derive(Clone, Debug)]
struct Random {
    dirs: usize,
    count: u64,
    fields: Vec<(usize, u64, u64, u64, u64)>,
}

const DIRS: [&[Dir]; 4] = [&[Dir::In, Dir::Out], &[Dir::InOut], &[Dir::Out, Dir::Out, Dir::In], &[Dir::In, Dir::InOut]];
const LEN: u64 = 48;

fn families() -> impl Strategy<Value = Vec<Random>> {
    let field = (
        0usize..3,
        0u64..LEN,
        1u64..5,
        1u64..9,
        prop_oneof![Just(0u64), Just(1), Just(4), Just(8), 1u64..11, Just(99)],
    );
    let family = (0usize..4, 1u64..6, prop::collection::vec(field, 3)).prop_map(|(dirs, count, fields)| Random {
        dirs,
        count,
        fields,
    });
    prop::collection::vec(family, 1..4)
}

/// The view of an instance; a step of 99 scatters the instances.
fn view(vars: &[View], (var, at, len, stride, step): (usize, u64, u64, u64, u64), instance: u64) -> View {
    let span = (len - 1) * stride + 1;
    let shift = if step == 99 { instance * instance * 7 } else { instance * step };
    vars[var].slice(0, (at + shift) % (LEN - span + 1), len, stride as i64)
}

/// The accesses of each element: family, instance, field and position.
type Touchers = BTreeMap<(VarId, u64), BTreeSet<(usize, u64, usize, u64)>>;

/// Returns whether the rule is broken, by checking every element.
fn is_broken(graph: &Graph) -> bool {
    for set in graph.sets.values() {
        let mut writers = Touchers::new();
        let mut readers = Touchers::new();
        for (f, &id) in set.families.iter().enumerate() {
            let family = &graph.families[id];
            for instance in 0..family.domain.count() {
                for (k, field) in family.fields.iter().enumerate() {
                    let dir = graph.codelets[family.codelet].fields[field.field].dir;
                    let map = if dir == Dir::In { &mut readers } else { &mut writers };
                    for (at, e) in field.view(&family.domain, instance).elements().enumerate() {
                        map.entry(e).or_default().insert((f, instance, k, at as u64));
                    }
                }
            }
        }
        if writers.iter().any(|(e, w)| w.len() > 1 || readers.contains_key(e)) {
            return true;
        }
    }
    false
}

fn build(random: &[Random], stay: bool) -> Graph {
    let mut b = Build::new();
    let vars: Vec<View> = (0..3).map(|i| b.var(&format!("v{i}"), VarClass::Var, &[LEN], None)).collect();
    let codelets: Vec<SpecId> = DIRS.iter().map(|d| b.codelet("f", d)).collect();
    let mut views: Vec<Vec<Vec<View>>> = vec![];
    for (i, r) in random.iter().enumerate() {
        let field = |(k, f): (usize, &(usize, u64, u64, u64, u64))| {
            // Keeping each field in its own variable makes race-free graphs frequent enough.
            let f = if stay { ((i + k) % 3, f.1, f.2, f.3, f.4) } else { *f };
            (0..r.count).map(|n| view(&vars, f, n)).collect()
        };
        views.push(r.fields[..DIRS[r.dirs].len()].iter().enumerate().map(field).collect());
    }
    let all: Vec<Vertices> = random
        .iter()
        .zip(&views)
        .map(|(r, views)| Vertices { codelet: codelets[r.dirs], views, tiles: None })
        .collect();
    b.set("s", &all);
    b.graph
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn the_verdict_is_that_of_every_element(random in families(), stay in any::<bool>()) {
        let graph = build(&random, stay);
        let found = check(&graph, &Placement::default(), &machine(), &Cancel::default(), &StepTimes::default());
        prop_assert_eq!(!found.is_empty(), is_broken(&graph), "{:?}", found);
    }
}

#[test]
fn a_million_regular_vertices_are_decided_by_strides() {
    use girder_ir::affine::Affine;
    use girder_ir::family::{Domain, Family, Offset};
    use smallvec::smallvec;
    let mut b = Build::new();
    let u = b.var("u", VarClass::Var, &[1 << 22], None);
    let v = b.var("v", VarClass::Var, &[1 << 22], None);
    let f = b.codelet("f", &[Dir::In, Dir::Out]);
    let set = b.set(
        "s",
        &[Vertices { codelet: f, views: &[vec![u.slice(0, 0, 4, 1)], vec![v.slice(0, 0, 4, 1)]], tiles: None }],
    );
    let id = b.graph.sets[set].families[0];
    let family: &mut Family = &mut b.graph.families[id];
    family.domain = Domain(smallvec![1 << 10, 1 << 10]);
    for field in &mut family.fields {
        field.parts[0].offset = Offset::Affine(Affine::new(0, &[1 << 12, 4]));
    }
    let touches = race_rule::of_set(&b.graph, set);
    let touches: Vec<&Touch> = touches.iter().collect();
    assert!(touches.iter().all(|t| t.print.surely_injective()));
    let start = std::time::Instant::now();
    assert!(found(&b).is_empty());
    assert!(start.elapsed().as_millis() < 100, "{:?}", start.elapsed());
}
