//! Runs the whole pipeline on a small graph stage by stage, and resumes from each stage.

use super::*;
use crate::build::{Build, Tree, Vertices, machine};
use girder_ir::codelet::Dir;
use girder_ir::graph::VarClass;
use girder_ir::placement::Mapping;
use girder_ir::stage::{Allocated, RaceFree};
use girder_ir::view::View;
use girder_machine::Machine;
use girder_source::{Diagnostics, Session};

/// `t = f(w, x)` on eight tiles, then `y <- t`.
fn graph() -> Graph {
    let mut b = Build::new();
    let w = b.var("w", VarClass::Var, &[8, 4], None);
    let x = b.var("x", VarClass::Var, &[4], Some(Mapping::One(0)));
    let t = b.var("main.t", VarClass::Temp, &[8], None);
    let y = b.var("y", VarClass::Var, &[8], None);
    let f = b.codelet("f", &[Dir::In, Dir::In, Dir::Out]);
    let rows = (0..8).map(|i| w.index(0, i)).collect::<Vec<View>>();
    let outs = (0..8).map(|i| t.slice(0, i, 1, 1)).collect::<Vec<View>>();
    let tiles = [0, 1, 2, 3, 4, 5, 6, 7];
    let set = b.set("main.s", &[Vertices { codelet: f, views: &[rows, vec![x; 8], outs], tiles: Some(&tiles) }]);
    let copy = b.copy_step(&y, &t);
    b.program("main", true, &Tree::Seq(vec![Tree::Execute(set), copy]));
    b.graph
}

fn with<T>(f: impl FnOnce(&mut PassContext) -> T) -> (T, Diagnostics) {
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let value = f(&mut PassContext::new(&machine, &session, &mut diagnostics));
    (value, diagnostics)
}

fn allocated(stage: AnyStage) -> Allocated {
    match stage {
        AnyStage::Allocated(a) => a,
        other => panic!("stopped at {}", other.stage().name()),
    }
}

#[test]
fn every_stage_can_be_the_target_and_be_resumed() {
    let (whole, reported) = with(|cx| lower_to(AnyStage::Graph(graph()), Stage::Allocated, cx));
    assert!(reported.is_empty(), "{reported:?}");
    let whole = allocated(whole.unwrap());
    for stage in Stage::ALL {
        let (made, _) = with(|cx| lower_to(AnyStage::Graph(graph()), stage, cx));
        let made = made.unwrap();
        assert_eq!((made.stage(), Stage::from_name(stage.name())), (stage, Some(stage)));
        let (resumed, reported) = with(|cx| resume(made, stage, Stage::Allocated, cx));
        assert!(reported.is_empty(), "{reported:?}");
        let resumed = allocated(resumed.unwrap());
        assert_eq!((&resumed.layout, &resumed.host), (&whole.layout, &whole.host));
    }
}

#[test]
fn passes_are_timed_once_each_in_order() {
    let (names, _) = with(|cx| {
        lower_to(AnyStage::Graph(graph()), Stage::Allocated, cx).unwrap();
        cx.timings.iter().map(|t| t.0).collect::<Vec<_>>()
    });
    assert_eq!(names, PASSES.iter().map(|p| p.name).collect::<Vec<_>>());
}

#[test]
fn exchange_whose_code_cannot_fit_is_not_scheduled() {
    let (mut machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let of = |machine: &Machine, diagnostics: &mut Diagnostics| {
        let cx = &mut PassContext::new(machine, &session, diagnostics);
        let lowered = lower_to(AnyStage::Graph(graph()), Stage::Allocated, cx);
        (lowered.is_ok(), cx.timings.iter().any(|t| t.0 == ScheduleExchange::NAME))
    };
    assert_eq!(of(&machine, &mut diagnostics), (true, true));
    // `x` is on one tile, which sends it to seven others.
    machine.memory.regions.iter_mut().for_each(|r| r.executable = false);
    machine.memory.regions[0].executable = true;
    machine.memory.regions[0].bytes = 8;
    assert_eq!(of(&machine, &mut diagnostics), (false, false));
    assert_eq!(diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), ["memory::out_of_memory"]);
}

#[test]
fn a_table_that_was_tampered_with_is_refused() {
    let (made, _) = with(|cx| lower_to(AnyStage::Graph(graph()), Stage::Allocated, cx));
    let mut made = allocated(made.unwrap());
    let mut classes = made.layout.classes().to_vec();
    classes[0].blocks.last_mut().unwrap().address = 1 << 20;
    made.layout = girder_ir::layout::Layout::new(classes).unwrap();
    let (result, reported) = with(|cx| resume(AnyStage::Allocated(made), Stage::Allocated, Stage::Allocated, cx));
    assert!(result.is_err());
    assert_eq!(reported.iter().next().unwrap().code, "resume::bad_table");
}

#[test]
fn a_race_stops_also_a_resumed_compilation() {
    let mut racy = graph();
    let id = racy.families.keys().next().unwrap();
    let out = racy.families[id].fields[2].clone();
    racy.families[id].fields[2].parts[0].offset = girder_ir::family::Offset::Affine(Default::default());
    let (placed, _) = with(|cx| lower_to(AnyStage::Graph(racy), Stage::Placed, cx));
    let Ok(AnyStage::Placed(placed)) = placed else { panic!("placement does not look at races") };
    assert_ne!(placed.families[id].fields[2], out);
    let (result, reported) = with(|cx| resume(RaceFree { placed }.into(), Stage::RaceFree, Stage::Planned, cx));
    assert!(result.is_err());
    assert!(reported.iter().any(|d| d.code == "race::write_write"));
}

#[test]
fn a_point_is_named_by_the_pass_before_it() {
    let names: Vec<&str> = After::all().map(After::name).collect();
    assert_eq!(names.len(), 1 + PASSES.len());
    assert!(After::all().all(|after| After::named(after.name()) == Some(after)));
    assert_eq!(After::named("no-such-pass"), None);
    assert_eq!(After::from(Stage::Graph).name(), "elaborate");
    assert_eq!(After::from(Stage::Placed).name(), "place-tiles");
    assert_eq!(After::from(Stage::Allocated).name(), "allocate-memory");
    assert_eq!(After::named("merge-copies").map(After::stage), Some(Stage::Graph));
}

#[test]
fn a_graph_is_the_target_after_each_of_its_passes() {
    let merged = After::named("merge-copies").unwrap();
    let (names, _) = with(|cx| {
        let at = lower_to(AnyStage::Graph(graph()), merged, cx).unwrap();
        assert_eq!(at.stage(), Stage::Graph);
        resume(at, merged, Stage::Placed, cx).unwrap();
        cx.timings.iter().map(|t| t.0).collect::<Vec<_>>()
    });
    let passes = [
        "check-replicas",
        "promote-temporaries",
        "fold-constants",
        "remove-dead-steps",
        "fuse-elementwise",
        "merge-compute-sets",
        "merge-copies",
    ];
    assert_eq!(names, [&passes[..], &passes[..], &["place-tiles"]].concat());
}
