//! Tests with a valid graph, and with the same graph broken in one point.

use super::verify_graph;
use crate::codelet::{Codelet, DimDecl, Dir, FieldDecl};
use crate::family::{Const, CopyFamily, CopySource, Domain, Family, Field, Offset, TileMap};
use crate::graph::{ComputeSet, CopySet, Graph, Init, Stream, Var, VarClass};
use crate::ids::{ComputeSetId, CopyId, FamilyId, FieldId, ProgramId, StepId, StreamId, VarId};
use crate::placement::Mapping;
use crate::program::{Effect, Program, Step, StepKind};
use crate::types::{ElemType, Scalar};
use crate::view::View;
use cranelift_entity::{EntityRef, PrimaryMap};
use girder_source::{OriginId, Span};

fn origin() -> OriginId {
    OriginId::new(0)
}

fn variable(graph: &mut Graph, name: &str, class: VarClass, ty: ElemType, shape: &[u64]) -> VarId {
    let var = Var {
        name: name.into(),
        class,
        ty,
        shape: shape.into(),
        init: None,
        mapping: None,
        within: None,
        origin: origin(),
    };
    graph.vars.push(var)
}

fn codelet() -> Codelet {
    let field = |(name, dir): (&str, Dir)| {
        let dims = if dir == Dir::Const { vec![] } else { vec![DimDecl::Fixed(2)] };
        FieldDecl { name: name.into(), dir, ty: ElemType::F32, dims: dims.into(), align: 1, span: Span::NONE }
    };
    Codelet {
        name: "scale".into(),
        args: vec![],
        multi: false,
        fields: [("x", Dir::In), ("k", Dir::Const), ("y", Dir::Out)].into_iter().map(field).collect(),
        sizes: PrimaryMap::new(),
        locals: PrimaryMap::new(),
        exprs: PrimaryMap::new(),
        sites: PrimaryMap::new(),
        body: vec![],
        pipelined: false,
        separate_elements: false,
        cycles: None,
        elementary: Default::default(),
        span: Span::NONE,
    }
}

/// `y[2 i..] = scale(x[2 i..])` for i in 0..5, a copy back, and a loop around.
fn graph() -> Graph {
    let mut graph = Graph { name: "m".into(), ..Graph::default() };
    let x = variable(&mut graph, "x", VarClass::Var, ElemType::F32, &[10]);
    let y = variable(&mut graph, "y", VarClass::Temp, ElemType::F32, &[10]);
    let go = variable(&mut graph, "go", VarClass::Const, ElemType::Bool, &[]);
    graph.vars[x].mapping = Some(Mapping::Linear { first: 0, tiles: 5, grain: 2 });
    let domain = Domain([5].into_iter().collect());
    let views = |v: VarId| -> Vec<View> { (0..5).map(|i| View::whole(v, &[10]).slice(0, 2 * i, 2, 1)).collect() };
    let field = |f: usize, v: VarId| Field::from_views(FieldId::new(f), &domain, &views(v)).unwrap();
    let spec = graph.codelets.push(codelet());
    let set = graph.sets.push(ComputeSet { name: "main.scale".into(), families: vec![], origin: origin() });
    let family = graph.families.push(Family {
        set,
        codelet: spec,
        domain: domain.clone(),
        fields: [field(0, x), field(2, y)].into_iter().collect(),
        consts: [(FieldId::new(1), Const::Uniform(Scalar::f32(2.0)))].into_iter().collect(),
        tile: Some(TileMap::one(0)),
        within: None,
        origin: origin(),
        statements: None,
    });
    graph.sets[set].families.push(family);
    let copy = CopyFamily {
        domain: domain.clone(),
        dst: field(0, x),
        src: field(0, y),
        source: CopySource::Own,
        origin: origin(),
    };
    let copy = graph.copies.push(CopySet { name: "main.back".into(), families: vec![copy], origin: origin() });
    let shape = [10].as_slice().into();
    let stream = Stream {
        name: "s".into(),
        input: true,
        ty: ElemType::F32,
        shape,
        wrap: false,
        shuffle: None,
        ahead: 0,
        same: false,
        rows: None,
        offloaded: false,
        origin: origin(),
    };
    let stream = graph.streams.push(stream);
    let step = StepId::new;
    let cond = View::whole(go, &[]);
    let kinds = [
        StepKind::Seq([1, 4].map(step).to_vec()),
        StepKind::Repeat { count: 3, index: None, body: step(2) },
        StepKind::Seq(vec![step(3)]),
        StepKind::Execute(set),
        StepKind::If { cond, then: step(5), els: step(6) },
        StepKind::Copy(copy),
        StepKind::Effect(Effect::Read { stream, into: View::whole(x, &[10]) }),
    ];
    for kind in kinds {
        graph.steps.push(Step { kind, origin: origin(), reverse: false });
    }
    graph.programs.push(Program { name: "main".into(), entry: true, body: step(0), origin: origin() });
    graph
}

#[test]
fn a_sound_graph_passes() {
    assert_eq!(verify_graph(&graph()), Ok(()));
    assert_eq!(verify_graph(&Graph::default()), Ok(()));
}

/// Each violation is identified by words of its message.
#[test]
fn every_violation_is_found() {
    type Break = fn(&mut Graph);
    let breaks: &[(&str, Break)] = &[
        ("are named `x`", |g| g.vars[VarId::new(1)].name = "x".into()),
        ("temporary has an initial", |g| g.vars[VarId::new(1)].init = Some(Init::Fill(Scalar::f32(0.0)))),
        ("bytes of data", |g| g.vars[VarId::new(0)].init = Some(Init::Data(vec![0; 39].into()))),
        ("filled with", |g| g.vars[VarId::new(0)].init = Some(Init::Fill(Scalar::f64(0.0)))),
        ("too few grains", |g| {
            g.vars[VarId::new(0)].mapping = Some(Mapping::Linear { first: 0, tiles: 6, grain: 2 });
        }),
        ("do not cover", |g| g.vars[VarId::new(0)].mapping = Some(Mapping::from_runs([(0, 4, 1), (4, 9, 0)]))),
        ("elements 0 to 10", |g| family(g).fields[0].parts[0].stride[0] = 2),
        ("offsets for", |g| family(g).fields[0].parts[0].offset = Offset::Table([0, 2].into())),
        ("parts cover", |g| family(g).fields[0].digits[0] = 3),
        ("are not the codelet's", |g| family(g).fields[1].field = FieldId::new(1)),
        ("constants are not", |g| family(g).consts.clear()),
        ("not of type", |g| family(g).consts[0].1 = Const::Uniform(Scalar::f64(2.0))),
        ("values for", |g| family(g).consts[0].1 = Const::Table([Scalar::f32(1.0)].into())),
        ("tiles for", |g| family(g).tile = Some(TileMap::Table([1, 2].into()))),
        ("rank 0", |g| {
            let x = View::whole(VarId::new(0), &[10]).index(0, 1);
            family(g).fields[0] = Field::uniform(FieldId::new(0), &x);
        }),
        ("which is const", |g| g.vars[VarId::new(1)].class = VarClass::Const),
        ("not its own", |g| g.sets[ComputeSetId::new(0)].families.push(FamilyId::new(1))),
        ("writes an element twice", |g| copy(g).dst = Field::uniform(FieldId::new(0), &two())),
        ("differ in shape", |g| {
            copy(g).src = Field::uniform(FieldId::new(0), &View::whole(VarId::new(0), &[10]));
        }),
        ("is in the position of", |g| {
            let root = &mut g.steps[StepId::new(0)].kind;
            *root = StepKind::Seq([4, 1].map(StepId::new).to_vec());
        }),
        ("belongs to no program", |g| {
            g.steps.push(Step { kind: StepKind::Seq(vec![]), origin: origin(), reverse: false });
        }),
        ("calls itself", |g| {
            let call = StepKind::Call(ProgramId::new(0));
            g.steps[StepId::new(3)].kind = call;
        }),
        ("a condition", |g| g.vars[VarId::new(2)].ty = ElemType::U8),
        ("the wrong way", |g| g.streams[StreamId::new(0)].input = false),
        ("not a packet", |g| g.streams[StreamId::new(0)].ty = ElemType::I32),
    ];
    for (words, f) in breaks {
        let mut broken = graph();
        f(&mut broken);
        let message = verify_graph(&broken).expect_err(words);
        assert!(message.contains(words), "{words}: {message}");
    }
}

fn family(graph: &mut Graph) -> &mut Family {
    &mut graph.families[FamilyId::new(0)]
}

fn copy(graph: &mut Graph) -> &mut CopyFamily {
    &mut graph.copies[CopyId::new(0)].families[0]
}

fn two() -> View {
    View::whole(VarId::new(0), &[10]).slice(0, 0, 2, 1)
}
