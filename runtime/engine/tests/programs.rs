//! Programs with results computed by hand, in every mode.

mod common;

use common::codelets::{add, below, pick, rows, scale, workers};
use common::stages::allocate;
use common::{Maker, Recorder, Tree, i32s, int, to_i32s};
use girder_engine::{Engine, EngineError, Executable, Mode, RunError, RunReport};
use girder_ir::family::{Const, TileMap};
use girder_ir::graph::{Init, VarClass};
use girder_ir::ids::{ProgramId, VarId};
use girder_ir::placement::Mapping;
use girder_ir::program::Effect;
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_machine::builtin;
use girder_source::Session;

type Outcome = (Result<RunReport, RunError>, Vec<Vec<u8>>, Recorder);

/// Runs a program in every mode on one and three threads, asserts equal results, and returns them.
fn run(maker: Maker, program: ProgramId, host: Recorder, set: &[(VarId, Vec<u8>)]) -> Outcome {
    run_with(maker, program, host, set, &Session::default())
}

fn run_with(maker: Maker, program: ProgramId, host: Recorder, set: &[(VarId, Vec<u8>)], session: &Session) -> Outcome {
    let vars: Vec<VarId> = maker.graph.vars.keys().filter(|&v| maker.graph.vars[v].is_persistent()).collect();
    let modes = [Mode::Interpret, Mode::Fast, Mode::Exact];
    let graph = maker.graph.clone();
    let executable = Executable::compile(allocate(maker.graph), builtin("small").unwrap(), &modes).unwrap();
    let one = |mut engine: Engine| {
        let mut host = host.clone();
        set.iter().for_each(|(var, bytes)| engine.set(*var, bytes).unwrap());
        let result = engine.run(program, &mut host);
        // After a failed run no variable can be read.
        let value = |&v: &VarId| if result.is_ok() { engine.get(v).unwrap() } else { vec![] };
        let values = vars.iter().map(value).collect();
        (result, values, host)
    };
    let alone = one(Engine::interpret(&graph, 6, session).unwrap());
    let mut first: Option<Outcome> = None;
    for mode in modes {
        for threads in [1, 3] {
            let outcome = one(Engine::load(&executable, mode, threads, session).unwrap());
            match &first {
                Some(first) => assert_eq!(&outcome, first, "{mode:?} on {threads} threads"),
                None => first = Some(outcome),
            }
        }
    }
    let first = first.unwrap();
    assert_eq!((&alone.1, &alone.2), (&first.1, &first.2), "the oracle without stages");
    first
}

fn linear(tiles: u32) -> Mapping {
    Mapping::Linear { first: 0, tiles, grain: 1 }
}

/// Builds a counter that increases by `by` while it is below `limit`.
fn counting() -> (Maker, ProgramId, VarId, VarId) {
    let mut m = Maker::new();
    let x = m.var("x", ElemType::I32, &[], Mapping::One(0));
    let limit = m.var("limit", ElemType::I32, &[], Mapping::One(1));
    let by = m.var("by", ElemType::I32, &[], Mapping::One(2));
    m.init(by, Init::Fill(int(3)));
    let c = m.temp("c", ElemType::Bool, &[], Mapping::One(0));
    let (below, add) = (m.graph.codelets.push(below()), m.graph.codelets.push(add()));
    let (test, step) = (m.set("test"), m.set("step"));
    let (vx, vl, vb, vc) = (m.whole(x), m.whole(limit), m.whole(by), m.whole(c));
    m.family(test, below, &[], vec![vec![vx.clone()], vec![vl], vec![vc.clone()]], vec![], TileMap::one(0));
    m.family(step, add, &[], vec![vec![vx], vec![vb]], vec![], TileMap::one(0));
    let tree = Tree::While(Box::new(Tree::Execute(test)), vc, Box::new(Tree::Execute(step)));
    let program = m.program("main", tree);
    (m, program, x, limit)
}

#[test]
fn a_while_loop_runs_until_its_condition_fails() {
    let (m, program, x, limit) = counting();
    let (result, values, _) = run(m, program, Recorder::default(), &[(limit, i32s(&[10]))]);
    assert_eq!(result.unwrap(), RunReport { supersteps: 9 });
    assert_eq!(to_i32s(&values[x.as_u32() as usize]), [12]);
}

#[test]
fn a_while_loop_of_too_many_iterations_ends_the_run() {
    let (m, program, _, limit) = counting();
    let mut session = Session::default();
    session.limits.iterations = 5;
    let (result, values, _) = run_with(m, program, Recorder::default(), &[(limit, i32s(&[1000]))], &session);
    let error = result.unwrap_err();
    assert_eq!(error.diagnostic().code, "run::too_many_iterations");
    assert!(values.iter().all(Vec::is_empty), "no value is handed out after a failed run");
}

#[test]
fn every_vertex_of_a_family_reads_its_own_view() {
    let mut m = Maker::new();
    let a = m.var("a", ElemType::I32, &[6, 4], linear(5));
    let y = m.var("y", ElemType::I32, &[6, 4], linear(7));
    let scale = m.graph.codelets.push(scale(ElemType::I32));
    let set = m.set("main.scale");
    let (va, vy) = (m.whole(a), m.whole(y));
    // Column 3 - i of y (read backwards) takes column i of a, times i + 1.
    let src = (0..4).map(|i| va.index(1, i)).collect();
    let dst = (0..4).map(|i| vy.index(1, 3 - i).reverse(0)).collect();
    let consts = Const::Table((0..4).map(|i| int(i + 1)).collect());
    m.family(set, scale, &[4], vec![src, dst], vec![consts], TileMap::Table([3, 1, 4, 1].into()));
    let program = m.program("main", Tree::Execute(set));
    let input: Vec<i32> = (0..24).map(|i| i * i).collect();
    let (result, values, _) = run(m, program, Recorder::default(), &[(a, i32s(&input))]);
    result.unwrap();
    let mut expected = vec![0; 24];
    for (i, j) in (0..4).flat_map(|i| (0..6).map(move |j| (i, j))) {
        expected[(5 - j) * 4 + 3 - i] = input[j * 4 + i] * (i as i32 + 1) + j as i32;
    }
    assert_eq!(to_i32s(&values[y.as_u32() as usize]), expected);
}

#[test]
fn scattered_fields_arrive_and_go_home() {
    let mut m = Maker::new();
    let a = m.var("a", ElemType::I32, &[4, 3], linear(4));
    let b = m.var("b", ElemType::I32, &[5], Mapping::One(2));
    let y = m.var("y", ElemType::I32, &[7], linear(3));
    let rows = m.graph.codelets.push(rows(ElemType::I32));
    let set = m.set("rows");
    let (va, vb, vy) = (m.whole(a), m.whole(b), m.whole(y));
    // [2, 4] from the flattened middle of a and all of b but its ends; two scattered elements of y.
    let top = va.flatten().slice(0, 1, 5, 2);
    let matrix = View::concat(&[top, vb.slice(0, 1, 3, 1)], 0).reshape(&[2, 4]);
    let ends = View::concat(&[vy.slice(0, 6, 1, 1), vy.slice(0, 0, 1, 1)], 0);
    m.family(set, rows, &[], vec![vec![matrix], vec![ends]], vec![], TileMap::one(1));
    let program = m.program("main", Tree::Execute(set));
    let input = [(a, i32s(&(0..12).collect::<Vec<_>>())), (b, i32s(&[100, 200, 300, 400, 500])), (y, i32s(&[1; 7]))];
    let (result, values, _) = run(m, program, Recorder::default(), &input);
    result.unwrap();
    assert_eq!(to_i32s(&values[y.as_u32() as usize]), [3 + 9 + 200 + 300 + 400, 1, 1, 1, 1, 1, 3 + 1 + 3 + 5 + 7]);
}

#[test]
fn a_multi_codelet_runs_its_workers_in_turn() {
    let mut m = Maker::new();
    let y = m.var("y", ElemType::I32, &[2, 9], linear(2));
    let workers = m.graph.codelets.push(workers());
    let set = m.set("workers");
    let vy = m.whole(y);
    m.family(set, workers, &[2], vec![vec![vy.index(0, 0), vy.index(0, 1)]], vec![], TileMap::one(3));
    let program = m.program("main", Tree::Execute(set));
    let (result, values, _) = run(m, program, Recorder::default(), &[]);
    result.unwrap();
    assert_eq!(to_i32s(&values[0]), [0, 1, 2, 3, 4, 5, 0, 1, 2].repeat(2));
}

#[test]
fn the_least_failing_vertex_is_reported() {
    let mut m = Maker::new();
    let a = m.var("a", ElemType::I32, &[5], Mapping::One(0));
    let k = m.var("k", ElemType::I32, &[40_000], linear(16));
    let y = m.var("y", ElemType::I32, &[40_000, 2], linear(16));
    let pick = m.graph.codelets.push(pick(ElemType::I32));
    let set = m.set("gather");
    let (va, vk, vy) = (m.whole(a), m.whole(k), m.whole(y));
    let ks = (0..40_000).map(|i| vk.index(0, i)).collect();
    let ys = (0..40_000).map(|i| vy.index(0, i)).collect();
    let tile = TileMap::Table((0..40_000).map(|i| i / 2500).collect());
    m.family(set, pick, &[200, 200], vec![vec![va; 40_000], ks, ys], vec![], tile);
    let program = m.program("main", Tree::Execute(set));
    let mut keys = vec![4; 40_000];
    (keys[39_999], keys[12_345], keys[12_346]) = (-1, 5, 77);
    let (result, ..) = run(m, program, Recorder::default(), &[(k, i32s(&keys))]);
    let Err(RunError::Check { instance, diagnostic, .. }) = result else { panic!("{result:?}") };
    assert_eq!(instance, 12_345);
    assert_eq!(diagnostic.code, "run::index_out_of_range");
    assert_eq!(diagnostic.message, "index 5 is out of range for a dimension of length 5");
    let label = &diagnostic.labels[0].text;
    assert_eq!(label, "in codelet `pick`, vertex [61, 145] of compute set `gather` on tile 4");
}

#[test]
fn elements_that_an_out_field_leaves_keep_their_values() {
    let mut m = Maker::new();
    let a = m.var("a", ElemType::I32, &[3], Mapping::One(0));
    let k = m.var("k", ElemType::I32, &[], Mapping::One(0));
    let y = m.var("y", ElemType::I32, &[4], linear(4));
    let pick = m.graph.codelets.push(pick(ElemType::I32));
    let set = m.set("pick");
    let (va, vk, vy) = (m.whole(a), m.whole(k), m.whole(y));
    m.family(set, pick, &[], vec![vec![va], vec![vk], vec![vy]], vec![], TileMap::one(2));
    let program = m.program("main", Tree::Execute(set));
    let input = [(a, i32s(&[7, 8, 9])), (k, i32s(&[2])), (y, i32s(&[1, 2, 3, 4]))];
    let (result, values, _) = run(m, program, Recorder::default(), &input);
    result.unwrap();
    assert_eq!(to_i32s(&values[y.as_u32() as usize]), [9, 2, 3, 4]);
}

#[test]
fn streams_prints_and_indices_happen_in_order() {
    let mut m = Maker::new();
    let x = m.var("x", ElemType::I32, &[2, 2], linear(4));
    let i = m.temp("i", ElemType::I32, &[], Mapping::One(3));
    let seen = m.var("seen", ElemType::I32, &[3], Mapping::One(1));
    let (input, output) = (m.stream("in", true, ElemType::I32, &[2, 2]), m.stream("out", false, ElemType::I32, &[2]));
    let (vx, vi, vseen) = (m.whole(x), m.whole(i), m.whole(seen));
    let note = m.copy("note", vec![(vseen.index(0, 2), vi.clone())]);
    let column = vx.index(1, 1);
    let body = Tree::Seq(vec![
        Tree::Effect(Effect::Read { stream: input, into: vx.transpose() }),
        Tree::Copy(note),
        Tree::Effect(Effect::Print { label: "i".into(), value: vi }),
        Tree::Effect(Effect::Write { stream: output, from: column }),
    ]);
    let program = m.program("main", Tree::Repeat(3, Some((i, 10, -4)), Box::new(body)));
    let packets = (0..3).map(|p| i32s(&[p, p + 10, p + 20, p + 30])).collect();
    let host = Recorder { packets, ..Recorder::default() };
    let (result, values, host) = run(m, program, host, &[]);
    assert_eq!(result.unwrap().supersteps, 3);
    assert_eq!(host.written, [i32s(&[20, 30]), i32s(&[21, 31]), i32s(&[22, 32])]);
    let printed: Vec<i32> = host.printed.iter().map(|p| to_i32s(&p.2)[0]).collect();
    assert_eq!(printed, [10, 6, 2]);
    assert_eq!(host.progress, [(1, 3), (2, 3), (3, 3)]);
    assert_eq!(to_i32s(&values[1]), [0, 0, 2]);
}

#[test]
fn a_stream_that_ends_fails_the_run_after_what_was_delivered() {
    let mut m = Maker::new();
    let x = m.var("x", ElemType::Bool, &[2], Mapping::One(0));
    let (input, output) = (m.stream("flags", true, ElemType::Bool, &[2]), m.stream("out", false, ElemType::Bool, &[2]));
    let body = Tree::Seq(vec![
        Tree::Effect(Effect::Read { stream: input, into: m.whole(x) }),
        Tree::Effect(Effect::Write { stream: output, from: m.whole(x) }),
    ]);
    let program = m.program("main", Tree::Repeat(2, None, Box::new(body)));
    let host = Recorder { packets: vec![vec![0, 255]], ..Recorder::default() };
    let (result, _, host) = run(m, program, host, &[]);
    let error = result.unwrap_err();
    assert_eq!(error.diagnostic().message, "stream `flags` ended before the program stopped reading it");
    assert_eq!(host.written, [[0, 1]], "a bool from outside is 0 or 1");
}

#[test]
fn branches_follow_their_values_and_abort_ends_the_run() {
    for (value, expected) in [(0, Some(1)), (4, Some(2)), (9, Some(2)), (5, None), (-3, Some(3))] {
        let mut m = Maker::new();
        let x = m.var("x", ElemType::I32, &[], Mapping::One(0));
        let y = m.var("y", ElemType::I32, &[], Mapping::One(5));
        let flag = m.var("flag", ElemType::Bool, &[], Mapping::One(5));
        m.init(flag, Init::Data([1].into()));
        let consts = m.var("k", ElemType::I32, &[4], Mapping::One(9));
        m.init(consts, Init::Data(i32s(&[0, 1, 2, 3]).into()));
        let (vx, vy, vf, vk) = (m.whole(x), m.whole(y), m.whole(flag), m.whole(consts));
        let put: Vec<_> = (0..4).map(|i| m.copy(&format!("put{i}"), vec![(vy.clone(), vk.index(0, i))])).collect();
        let abort = Tree::Effect(Effect::Abort { message: "five".into(), when: Some(vf.clone()) });
        let inner = Tree::If(vf, Box::new(Tree::Copy(put[2])), Box::new(Tree::Copy(put[0])));
        let cases =
            vec![(vec![(0, 0)], Tree::Copy(put[1])), (vec![(5, 5)], abort), (vec![(4, 6), (9, i64::MAX)], inner)];
        let program = m.program("main", Tree::Switch(vx, cases, Box::new(Tree::Copy(put[3]))));
        let (result, values, _) = run(m, program, Recorder::default(), &[(x, i32s(&[value]))]);
        match expected {
            Some(y) => {
                result.unwrap();
                assert_eq!(to_i32s(&values[1]), [y], "for {value}");
            }
            None => assert_eq!(result.unwrap_err().diagnostic().message, "the program aborted: five"),
        }
    }
}

#[test]
fn forbidden_requests_of_the_host_are_rejected() {
    let mut m = Maker::new();
    let x = m.var("x", ElemType::I32, &[2], Mapping::One(0));
    let t = m.temp("t", ElemType::I32, &[2], Mapping::One(0));
    let c = m.var("c", ElemType::I32, &[2], Mapping::One(0));
    m.graph.vars[c].class = VarClass::Const;
    let program = m.program("main", Tree::Seq(vec![]));
    m.graph.programs[program].entry = false;
    let executable = Executable::compile(allocate(m.graph), builtin("small").unwrap(), &[Mode::Fast]).unwrap();
    let session = Session::default();
    let mut engine = Engine::load(&executable, Mode::Fast, 1, &session).unwrap();
    assert_eq!(engine.set(x, &[0; 7]), Err(EngineError::WrongSize { name: "x".into(), expected: 8, found: 7 }));
    assert_eq!(engine.set(t, &[0; 8]), Err(EngineError::Temporary("t".into())));
    assert_eq!(engine.get(t), Err(EngineError::Temporary("t".into())));
    assert_eq!(engine.set(c, &[0; 8]), Err(EngineError::Constant("c".into())));
    let refused = engine.run(program, &mut Recorder::default());
    assert_eq!(refused, Err(RunError::Refused(EngineError::NotEntry("main".into()))));
    assert!(matches!(Engine::load(&executable, Mode::Exact, 1, &session), Err(EngineError::NotPrepared)));
    let mut narrow = Session::default();
    narrow.limits.host_bytes = 8;
    for mode in [Mode::Fast, Mode::Interpret] {
        assert!(matches!(Engine::load(&executable, mode, 1, &narrow), Err(EngineError::HostMemory { .. })));
    }
}

#[test]
fn a_raised_flag_stops_the_run() {
    let mut m = Maker::new();
    let program = m.program("main", Tree::Repeat(10_000_000, None, Box::new(Tree::Seq(vec![]))));
    let session = Session::default();
    session.cancel.cancel();
    let (result, ..) = run_with(m, program, Recorder::default(), &[], &session);
    assert_eq!(result, Err(RunError::Cancelled));
}
