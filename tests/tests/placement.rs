//! Compares placements by `place-tiles` with simple ones and with those of the text, in modelled cycles.
//!
//! Every example is placed twice: with the places of its text, and with all of them removed. Both times the test also
//! makes some simple placements of the open elements and vertices. The placement by `place-tiles` may take at most 1.05
//! times the cycles of the best simple one, and without the places of the text at most 1.05 times the cycles with them.

use girder::{AnyStage, Stage};
use girder_ir::codelet::Dir;
use girder_ir::family::{Family, Field, TileMap};
use girder_ir::graph::{Graph, Var};
use girder_ir::placement::{Mapping, TileRun};
use girder_machine::Machine;
use girder_passes::{PassContext, pipeline};
use girder_profile::{Profile, Profiler};
use girder_source::{Diagnostics, Session, SourceMap};
use girder_tests::{Program, files};

/// The allowed ratio of cycles to those of the best other placement.
const BOUND: f64 = 1.05;

/// An example: its name, arguments, and replacements in its text that make it shorter.
type Example = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const EXAMPLES: [Example; 8] = [
    (
        "digits/digits",
        &["steps=2"],
        &[("0..1437", "0..90"), ("1437..1797", "90..120"), ("[1797, 64])", "[1797, 64])[0..120]")],
    ),
    ("heat/heat", &["steps=20"], &[]),
    ("matvec/matvec", &[], &[]),
    ("operations/operations", &[], &[]),
    ("suffix-sum/suffix-sum", &[], &[]),
    ("variables/variables", &[], &[]),
    ("validation/scaled_add", &[], &[]),
    ("validation/triad", &["n=12"], &[]),
];

/// A simple way to place open elements and vertices: it adds places to the graph as if the text had them.
type Way = fn(&mut Graph, &Machine);

const WAYS: [(&str, Way); 4] = [("linear", linear), ("aligned", aligned), ("even", even), ("owner", owner)];

#[test]
fn found_placements_are_as_good_as_simple_ones_and_those_of_the_text() {
    let names: String = WAYS.iter().map(|w| format!("{:>12}", w.0)).collect();
    println!("{:<22}{:>12}{names}", "", "found");
    let wrong: Vec<String> = EXAMPLES.into_iter().flat_map(example).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn more_processors_take_no_more_cycles() {
    let programs = [
        ("product", "var x: f32[64, 64]; var y: f32[64, 64]; var z: f32[64, 64]; program main() { z <- x @ y; }"),
        ("elements", "var x: f32[20000]; var y: f32[20000]; program main() { y <- exp(x * 2.0 + y) - y; x <- x * y; }"),
        ("sum", "var x: f32[20000]; var s: f32; program main() { s <- sum(x); }"),
        (
            "layers",
            "var x: f32[32, 64]; param w: f32[64, 64]; param b: f32[64]; param v: f32[64, 16]; var y: f32[32, 16];
            program main() { repeat 100 { y <- relu(x @ w + b) @ v; w -= x.transpose() @ relu(x @ w + b); } }",
        ),
    ];
    for (name, text) in programs {
        let takes = |target: &str| {
            let program = Program::text(text).target(target);
            let Ok(AnyStage::Graph(graph)) = program.stage(Stage::Graph) else { panic!("{name} does not compile") };
            cycles(graph, program.machine()).unwrap_or_else(|| panic!("{name}: there is no room on {target}"))
        };
        let found = ["small", "small-2", "small-4", "small-8"].map(takes);
        println!("{name:<12}{found:?}");
        assert!(found.windows(2).all(|w| w[1] as f64 <= 1.02 * w[0] as f64), "{name}: {found:?}");
    }
}

#[test]
fn a_program_that_gains_nothing_by_more_processors_stays_on_one() {
    // There is a vertex for each worker of a fifth of the tiles, so four processors are no faster than one.
    let text = "let (n, b) = (48, 4);
        codelet seven(in a: f32[x + 2, y + 2, z + 2], out c: f32[x, y, z]) {
            for i in 0..x, j in 0..y, k in 0..z {
                c[i, j, k] = 0.4 * a[i + 1, j + 1, k + 1] + 0.1 * (a[i, j + 1, k + 1] + a[i + 2, j + 1, k + 1]
                    + a[i + 1, j, k + 1] + a[i + 1, j + 2, k + 1] + a[i + 1, j + 1, k] + a[i + 1, j + 1, k + 2]);
            }
        }
        var u: f32[n + 2, n + 2, n + 2];
        var v: f32[n + 2, n + 2, n + 2];
        fn step(a: f32[p, q, r], c: f32[p, q, r]) {
            compute seven {
                for i in 0..n / b, j in 0..n / b, k in 0..n / b {
                    let (x, y, z) = (b * i, b * j, b * k);
                    vertex seven(a: a[x..x + b + 2, y..y + b + 2, z..z + b + 2],
                        c: c[x + 1..x + b + 1, y + 1..y + b + 1, z + 1..z + b + 1]);
                }
            }
        }
        program main() { repeat 5 { step(u, v); step(v, u); } }";
    let takes = |target: &str| {
        let program = Program::text(text).target(target);
        let Ok(AnyStage::Graph(graph)) = program.stage(Stage::Graph) else { panic!("the program does not compile") };
        cycles(graph, program.machine()).unwrap_or_else(|| panic!("there is no room on {target}"))
    };
    let (one, four) = (takes("gc200"), takes("m2000"));
    assert!(four <= one, "{four} cycles on four processors, {one} on one");
}

#[test]
fn steps_with_equal_cuts_get_equal_tiles() {
    // The last piece is shorter. On `pod16` there are more pieces than a claim may list.
    let text = "var x: f32[10_000_000]; program main() { x <- exp(x * 2.0 + 1.0); x <- x * x - 1.0; }";
    for target in ["gc200", "pod16"] {
        let program = Program::text(text).target(target);
        let Ok(AnyStage::Graph(graph)) = program.stage(Stage::Graph) else { panic!("the program does not compile") };
        let found = profile(graph, program.machine()).expect("there is room");
        assert_eq!(found.total.exchange, 0, "nothing has to move on {target}");
    }
}

#[test]
fn operands_of_a_product_have_their_share_of_every_tile_and_blocks_lie_where_they_are_made() {
    // Blocks do not divide the matrices, and terms are added in several steps: at the edge some vertices read rows that
    // all others also read. For the larger size, even the first placement exceeds the budget of the search.
    for n in [3000, 6000] {
        let text = format!(
            "var x: f32[{n}, {n}]; var y: f32[{n}, {n}]; var z: f32[{n}, {n}]; program main() {{ z <- x @ y; }}"
        );
        let program = Program::text(&text).target("gc200");
        let Ok(AnyStage::Placed(placed)) = program.stage(Stage::Placed) else { panic!("the program does not compile") };
        for (id, var) in &placed.vars {
            let mut held = vec![0u64; 1472];
            let mapping = placed.placement.vars[id].as_ref().expect("all is placed");
            mapping.runs(var.len()).for_each(|(start, end, tile)| held[tile as usize] += end - start);
            let most = held.into_iter().max().unwrap_or(0);
            assert!(most <= 2 * (var.len() / 1472), "{n}: {most} elements of `{}` on one tile", var.name);
        }
        for (id, family) in &placed.families {
            let part = &family.fields.last().expect("a result").parts[0];
            let len = placed.vars[part.var].len();
            let mapping = placed.placement.vars[part.var].as_ref().expect("all is placed");
            let tiles = placed.placement.families[id].as_ref().expect("all is placed");
            let homes = part.offset.values(&family.domain).map(|first| mapping.tile_of(len, first as u64));
            assert!(homes.eq(tiles.iter(&family.domain)), "{n}: blocks of `{}`", placed.vars[part.var].name);
        }
    }
}

#[test]
fn codelets_that_do_not_fit_one_tile_are_spread() {
    let text = "var x: f32[64]; program main() { x <- sin(x) + erf(x) * tan(x) - cos(x); }";
    let program = Program::text(text).target("small");
    let Ok(AnyStage::Graph(graph)) = program.stage(Stage::Graph) else { panic!("the program does not compile") };
    assert!(cycles(graph, program.machine()).is_some());
}

/// The kernel of a convolution goes to all tiles. In pieces of two elements its exchange would take about as long, but
/// need 9 KB of code on every tile.
#[test]
fn what_all_vertices_read_comes_in_few_pieces() {
    let text = "use nn;
        let c = nn.conv_layer([3, 3], 16, 16, pad: 1, bias: false, seed: 1);
        let b = nn.batch_norm_layer(16);
        var x: f32[8, 32, 32, 16] = 0.1;
        program main() { print(sum(b.train(c.apply(x)))); }";
    let profile = Program::text(text).target("gc200").estimate("main");
    let code = profile.memory.categories.iter().find(|c| c.name == "code of exchanges").expect("exchanges");
    assert!(code.worst <= 4_000, "{}", code.worst);
}

/// What lives together fits; what its vertices would concentrate on few tiles is spread.
#[test]
fn programs_that_fill_much_of_a_machine_fit() {
    let product = |n: u32| {
        format!(
            "var a: f32[{n}, {n}] = 1; var b: f32[{n}, {n}]; var c: f32[{n}, {n}];
            program main() {{ c <- a @ b; print(c[0, 0]); }}"
        )
    };
    let update = "var a: f32[1000, 8] = 1; var i: i32[100000]; var v: f32[100000, 8];
        program main() { update(a, i, v); print(sum(a)); }";
    let cases = [
        (product(3500), "gc200"),
        (product(160), "small"),
        (product(140), "small-2"),
        (product(200), "small-8"),
        (update.into(), "gc200"),
    ];
    for (text, target) in cases {
        if let Err(failure) = Program::text(&text).target(target).stage(Stage::Allocated) {
            panic!("{target}: {text}\n{failure}");
        }
    }
}

/// Compares the placements of an example. Returns the violations.
fn example((name, arguments, shorter): Example) -> Vec<String> {
    let path = format!("examples/{name}.gir");
    let text = shorter.iter().fold(files::text(&path), |text, (long, short)| {
        assert!(text.contains(long), "{path} does not say `{long}`");
        text.replace(long, short)
    });
    let program = Program::new(files::root().join(&path), text, "gc200");
    let program = arguments.iter().fold(program, |p, a| p.arg(a));
    let Ok(AnyStage::Graph(graph)) = program.stage(Stage::Graph) else { panic!("{name} does not compile") };
    let has_tiles =
        graph.vars.values().any(|v| v.mapping.is_some()) || graph.families.values().any(|f| f.tile.is_some());
    let mut bare = graph.clone();
    bare.vars.values_mut().for_each(|v| v.mapping = None);
    bare.families.values_mut().for_each(|f| f.tile = None);
    let (mut wrong, mut text) = (vec![], u64::MAX);
    // If the text has no places, none can be removed.
    let graphs = [("text", graph)].into_iter().chain(has_tiles.then_some(("bare", bare)));
    for (what, graph) in graphs {
        let found = cycles(graph.clone(), program.machine());
        let found = found.unwrap_or_else(|| panic!("{name}, {what}: there is no room"));
        let simple = WAYS.map(|(_, way)| {
            let mut graph = graph.clone();
            way(&mut graph, program.machine());
            cycles(graph, program.machine())
        });
        let shown: String = simple.iter().map(|c| format!("{:>12}", c.map_or("-".into(), |c| c.to_string()))).collect();
        println!("{:<22}{found:>12}{shown}", format!("{name}, {what}"));
        let best = simple.into_iter().flatten().min().unwrap_or(u64::MAX).min(text);
        if found as f64 > BOUND * best as f64 {
            wrong.push(format!("{name}, {what}: {found} cycles where {best} are possible"));
        }
        text = found;
    }
    wrong
}

/// Returns the modelled cycles of a graph's program, or `None` if it does not fit.
fn cycles(graph: Graph, machine: &Machine) -> Option<u64> {
    profile(graph, machine).map(|p| p.cycles)
}

fn profile(graph: Graph, machine: &Machine) -> Option<Profile> {
    let (session, mut diagnostics) = (Session::default(), Diagnostics::default());
    let mut cx = PassContext::new(machine, &session, &mut diagnostics);
    let Ok(done) = pipeline::lower_to(AnyStage::Graph(graph), Stage::Allocated, &mut cx) else {
        let reports: Vec<_> = diagnostics.iter().filter(|d| d.code != "memory::out_of_memory").collect();
        assert!(reports.is_empty(), "the passes report {reports:?}");
        return None;
    };
    let AnyStage::Allocated(allocated) = done else { return None };
    let (main, _) = allocated.programs.iter().find(|(_, p)| p.entry)?;
    let mut profiler = Profiler::new(&allocated, machine);
    profiler.estimate(main);
    Some(profiler.profile(&SourceMap::default()))
}

/// Spreads variables evenly, one after the other over the machine, and puts vertices beside their first output.
fn linear(graph: &mut Graph, machine: &Machine) {
    let mut next = 0;
    for var in graph.vars.values_mut().filter(|v| v.mapping.is_none()) {
        let tiles = tiles_for(var, machine);
        if next + tiles > machine.tiles() {
            next = 0;
        }
        var.mapping = Some(spread(var, next, tiles));
        next = (next + tiles) % machine.tiles();
    }
    beside(graph);
}

/// Spreads variables evenly from the first tile on, and puts vertices beside their first output.
fn aligned(graph: &mut Graph, machine: &Machine) {
    spread_all(graph, machine);
    beside(graph);
}

/// Spreads variables evenly, and the vertices of each family evenly.
fn even(graph: &mut Graph, machine: &Machine) {
    spread_all(graph, machine);
    spread_vertices(graph, machine);
}

/// Spreads vertices evenly, and puts every element beside the vertex that writes it.
fn owner(graph: &mut Graph, machine: &Machine) {
    spread_vertices(graph, machine);
    let mut runs: Vec<Vec<TileRun>> = vec![vec![]; graph.vars.len()];
    for family in graph.families.values() {
        let tiles: Vec<u32> = family.tile.iter().flat_map(|t| t.iter(&family.domain)).collect();
        let fields = family.fields.iter().filter(|f| writes(graph, family, f));
        for part in fields.flat_map(|f| &f.parts).filter(|p| graph.vars[p.var].mapping.is_none()) {
            for (offset, &tile) in part.offset.values(&family.domain).zip(&tiles) {
                let mut list = vec![];
                part.region_at(offset).list(part.var, &mut list);
                runs[part.var.as_u32() as usize].extend(list.into_iter().map(|i| (i.1, i.2, tile)));
            }
        }
    }
    spread_all(graph, machine);
    for (var, runs) in graph.vars.values_mut().zip(runs).filter(|(_, runs)| !runs.is_empty()) {
        var.mapping = Some(Mapping::overlay(var.mapping.as_ref(), var.len(), &runs));
    }
}

fn writes(graph: &Graph, family: &Family, field: &Field) -> bool {
    matches!(graph.codelets[family.codelet].fields[field.field].dir, Dir::Out | Dir::InOut) && !field.is_empty()
}

fn tiles_for(var: &Var, machine: &Machine) -> u32 {
    (var.bytes() / 128).clamp(1, machine.tiles() as u64) as u32
}

fn spread(var: &Var, first: u32, tiles: u32) -> Mapping {
    let grain = (8 / var.ty.bytes()).max(1);
    let tiles = tiles.min(var.len().div_ceil(grain as u64) as u32);
    if tiles <= 1 { Mapping::One(first) } else { Mapping::Linear { first, tiles, grain } }
}

fn spread_all(graph: &mut Graph, machine: &Machine) {
    for var in graph.vars.values_mut().filter(|v| v.mapping.is_none()) {
        var.mapping = Some(spread(var, 0, tiles_for(var, machine)));
    }
}

fn spread_vertices(graph: &mut Graph, machine: &Machine) {
    for family in graph.families.values_mut().filter(|f| f.tile.is_none()) {
        let count = family.domain.count();
        let tiles: Vec<u32> = (0..count).map(|i| (i * count.min(machine.tiles() as u64) / count) as u32).collect();
        family.tile = Some(TileMap::fit(&family.domain, &tiles));
    }
}

fn beside(graph: &mut Graph) {
    let open: Vec<_> = graph.families.iter().filter(|(_, f)| f.tile.is_none()).map(|(id, _)| id).collect();
    for id in open {
        let family = &graph.families[id];
        let first = family.fields.iter().find(|f| writes(graph, family, f)).and_then(|f| f.parts.first());
        let mapped = first.and_then(|p| Some((p, graph.vars[p.var].len(), graph.vars[p.var].mapping.as_ref()?)));
        let tiles: Vec<u32> = match mapped {
            None => vec![0; family.domain.count() as usize],
            Some((part, len, mapping)) => {
                part.offset.values(&family.domain).map(|o| mapping.tile_of(len, o as u64)).collect()
            }
        };
        graph.families[id].tile = Some(TileMap::fit(&family.domain, &tiles));
    }
}
