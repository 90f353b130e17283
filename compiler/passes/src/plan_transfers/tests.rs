//! Plans of random small graphs hold under the replay; plans of small graphs by hand are what they should be.

mod bytewise;
mod mutated;
mod packed;
mod random;

use super::*;
use girder_ir::codelet::*;
use girder_ir::family::{CopyFamily, CopySource, Domain, Family, Field, TileMap};
use girder_ir::graph::CopySet;
use girder_ir::graph::{ComputeSet, Var, VarClass};
use girder_ir::ids::*;
use girder_ir::placement::Mapping;
use girder_ir::plan::*;
use girder_ir::program::{Step, StepKind};
use girder_ir::stage::Placed;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_machine::Machine;
use girder_source::{Diagnostics, Session, Span};
use smallvec::smallvec;

fn machine() -> Machine {
    girder_machine::builtin("small").unwrap().resized(1, 4)
}

/// A graph in the making.
struct Build {
    machine: Machine,
    graph: Graph,
    placement: Placement,
    origin: OriginId,
}

impl Build {
    fn new() -> Build {
        let mut graph = Graph::default();
        let origin = graph.origins.add(Span::NONE, None, "");
        Build { machine: machine(), graph, placement: Placement::default(), origin }
    }

    fn var(&mut self, ty: ElemType, shape: &[u64], mapping: Mapping) -> View {
        let name = format!("v{}", self.graph.vars.len()).into();
        let class = VarClass::Var;
        let origin = self.origin;
        let var = Var { name, class, ty, shape: shape.into(), init: None, mapping: None, within: None, origin };
        let id = self.graph.vars.push(var);
        self.placement.vars[id] = Some(mapping);
        View::whole(id, shape)
    }

    /// A codelet whose fields have these directions, types and ranks. With `full` it writes all of its `out` fields,
    /// which have rank 1; else it does nothing.
    fn codelet(&mut self, fields: &[(Dir, ElemType, usize)], full: bool) -> SpecId {
        let mut c = Codelet {
            name: "test".into(),
            args: vec![],
            multi: false,
            fields: Default::default(),
            sizes: Default::default(),
            locals: Default::default(),
            exprs: Default::default(),
            sites: Default::default(),
            body: vec![],
            pipelined: false,
            separate_elements: false,
            cycles: None,
            elementary: Default::default(),
            span: Span::NONE,
        };
        for &(dir, ty, rank) in fields {
            let dims: Vec<SizeId> = (0..rank).map(|_| c.sizes.push("n".into())).collect();
            let dims = dims.iter().map(|&s| DimDecl::Size(s)).collect();
            let field = c.fields.push(FieldDecl { name: "f".into(), dir, ty, dims, align: 1, span: Span::NONE });
            if full && dir == Dir::Out {
                let stmt = fill(&mut c, field);
                c.body.push(stmt);
            }
        }
        self.graph.codelets.push(c)
    }

    /// A family of the one compute set: `views[field][instance]`.
    fn set(&mut self, codelet: SpecId, views: &[Vec<View>], tiles: &[u32]) {
        let set = ComputeSetId::from_u32(0);
        let domain = Domain(smallvec![tiles.len() as u32]);
        let fields = self.graph.codelets[codelet].fields.keys();
        let fields = fields.zip(views).map(|(f, v)| Field::from_views(f, &domain, v).unwrap()).collect();
        let origin = self.origin;
        let (consts, tile, within, statements) = (smallvec![], None, None, None);
        let family = Family { set, codelet, domain, fields, consts, tile, within, origin, statements };
        let family = self.graph.families.push(family);
        self.placement.families[family] = Some(TileMap::Table(tiles.into()));
        match self.graph.sets.get_mut(set) {
            Some(set) => set.families.push(family),
            None => drop(self.graph.sets.push(ComputeSet { name: "set".into(), families: vec![family], origin })),
        }
    }

    fn copy(&mut self, dst: &View, src: &View) {
        let field = |view| Field::uniform(FieldId::from_u32(0), view);
        let family = CopyFamily {
            domain: Domain::default(),
            dst: field(dst),
            src: field(src),
            source: CopySource::Own,
            origin: self.origin,
        };
        self.graph.copies.push(CopySet { name: "copy".into(), families: vec![family], origin: self.origin });
    }

    /// The copy and then the compute set, in sequences inside one another; perhaps with the set once more between the
    /// two, or with the copy once more at the end.
    fn program(&mut self, again: &[bool; 2]) {
        let (copy, set) = (StepKind::Copy(CopyId::from_u32(0)), StepKind::Execute(ComputeSetId::from_u32(0)));
        let mut kinds = vec![copy.clone(), set.clone()];
        kinds.splice(1..1, again[0].then(|| set.clone()));
        kinds.extend(again[1].then_some(copy));
        let all = (1..=kinds.len() as u32).map(StepId::from_u32).collect();
        let origin = self.origin;
        self.graph.steps.push(Step { kind: StepKind::Seq(all), origin, reverse: false });
        for kind in kinds {
            self.graph.steps.push(Step { kind, origin, reverse: false });
        }
    }

    /// Plans, and replays the plan.
    fn plan(self) -> Planned {
        let race_free = RaceFree { placed: Placed { graph: self.graph, placement: self.placement.into() } };
        let (machine, session, mut diagnostics) = (self.machine, Session::default(), Diagnostics::default());
        let planned =
            PlanTransfers::run(race_free, &mut PassContext::new(&machine, &session, &mut diagnostics)).unwrap();
        if let Err(message) = verify(&planned.race_free, &machine, &planned.plan) {
            panic!("{message}\n{:#?}", planned.plan);
        }
        planned
    }
}

/// `for i in 0..n { field[i] = 0; }`
fn fill(c: &mut Codelet, field: FieldId) -> Stmt {
    let DimDecl::Size(size) = c.fields[field].dims[0] else { unreachable!() };
    let ty = c.fields[field].ty;
    let mut expr = |kind, ty| c.exprs.push(Expr { kind, ty, span: Span::NONE });
    let var = c.locals.push(Local { name: "i".into(), ty: ElemType::I64, array: None });
    let lo = expr(ExprKind::Const(Scalar::zero(ElemType::I64)), ElemType::I64);
    let hi = expr(ExprKind::Size(size), ElemType::I64);
    let i = expr(ExprKind::Local(var), ElemType::I64);
    let value = expr(ExprKind::Const(Scalar::zero(ty)), ty);
    let site = c.sites.push(Site { check: Check::Index, span: Span::NONE, calls: smallvec![], message: None });
    let body = vec![Stmt::Store { field, index: smallvec![i], value, site }];
    let site = c.sites.push(Site { check: Check::Iterations, span: Span::NONE, calls: smallvec![], message: None });
    Stmt::For { var, lo, hi, step: 1, label: Label(field.as_u32()), body, site }
}

#[test]
fn a_broadcast_is_one_transfer_and_one_landing_per_tile() {
    let mut b = Build::new();
    let x = b.var(ElemType::F32, &[784], Mapping::One(0));
    let w = b.var(ElemType::F32, &[10, 784], Mapping::Linear { first: 0, tiles: 4, grain: 784 });
    let y = b.var(ElemType::F32, &[10], Mapping::Linear { first: 0, tiles: 4, grain: 1 });
    let (f, n) = (ElemType::F32, 10);
    let codelet = b.codelet(&[(Dir::In, f, 1), (Dir::In, f, 1), (Dir::Out, f, 0)], false);
    let rows = |v: &View| (0..n).map(|i| v.index(0, i)).collect::<Vec<_>>();
    let tiles: Vec<u32> = (0..10).map(|i| i * 4 / 10).collect();
    b.set(codelet, &[rows(&w), vec![x; 10], rows(&y)], &tiles);
    let planned = b.plan();
    let steps = planned.plan.sets.values().next().unwrap();
    assert_eq!(steps.before.transfers.len(), 1);
    assert_eq!((steps.before.receivers(&steps.before.transfers[0]).len(), steps.before.transfers[0].words), (3, 784));
    assert_eq!((steps.buffers.len(), steps.before.after.len()), (3, 0));
    assert_eq!(steps.after, Phase::default());
    let locations = planned.plan.locations.values().next().unwrap();
    assert_eq!(locations[0].strides, [vec![4]]);
    assert_eq!(locations[1].at[3], locations[1].at[4]);
}

#[test]
fn what_many_tiles_read_alike_is_sent_to_groups_that_are_named_once() {
    let mut b = Build::new();
    b.machine = b.machine.resized(1, 24);
    // Rows of x and d on a tile each; vertex (i, j) reads column i of x and column j of d.
    let x = b.var(ElemType::F32, &[20, 6], Mapping::Linear { first: 0, tiles: 20, grain: 6 });
    let d = b.var(ElemType::F64, &[20, 4], Mapping::Linear { first: 2, tiles: 20, grain: 4 });
    let y = b.var(ElemType::F32, &[24], Mapping::Linear { first: 0, tiles: 24, grain: 1 });
    let codelet =
        b.codelet(&[(Dir::In, ElemType::F32, 1), (Dir::In, ElemType::F64, 1), (Dir::Out, ElemType::F32, 0)], false);
    let of = |view: &dyn Fn(u64) -> View| (0..24).map(view).collect::<Vec<_>>();
    let views = [of(&|v| x.index(1, v / 4)), of(&|v| d.index(1, v % 4)), of(&|v| y.index(0, v))];
    b.set(codelet, &views, &(0..24).collect::<Vec<_>>());
    let planned = b.plan();
    let before = &planned.plan.sets.values().next().unwrap().before;
    assert_eq!((before.groups.len(), before.transfers.len()), (6 + 4, 20 * 6 + 20 * 4));
    let receipts: usize = before.transfers.iter().map(|t| before.receivers(t).len()).sum();
    // What is at home is copied there.
    assert_eq!((receipts, before.after.len()), (20 * 6 * 4 + 20 * 4 * 6 - 40, 40));
}

#[test]
fn bytes_of_one_word_from_different_tiles_are_merged_at_home() {
    let mut b = Build::new();
    let y = b.var(ElemType::U8, &[8], Mapping::One(0));
    let codelet = b.codelet(&[(Dir::Out, ElemType::U8, 1)], true);
    let views = vec![y.slice(0, 0, 3, 1), y.slice(0, 3, 3, 1)];
    b.set(codelet, &[views], &[1, 2]);
    let planned = b.plan();
    let steps = planned.plan.sets.values().next().unwrap();
    assert_eq!(steps.before, Phase::default());
    assert!(
        steps
            .after
            .transfers
            .iter()
            .flat_map(|t| steps.after.receivers(t))
            .all(|l| matches!(l.object, Object::Buffer(_)))
    );
    assert_eq!(steps.after.after.iter().map(|c| c.bytes * c.count).sum::<u32>(), 6);
}

#[test]
fn narrow_stores_of_one_tile_that_meet_in_a_word_are_kept_apart() {
    let mut b = Build::new();
    let y = b.var(ElemType::Bool, &[12], Mapping::One(0));
    let codelet = b.codelet(&[(Dir::Out, ElemType::Bool, 1)], true);
    let views = (0..4).map(|i| y.slice(0, 3 * i, 3, 1)).collect();
    b.set(codelet, &[views], &[0, 0, 0, 0]);
    let planned = b.plan();
    let locations = planned.plan.locations.values().next().unwrap();
    let in_place: Vec<bool> = locations[0].at.iter().map(|l| matches!(l, FieldLocation::InPlace(_))).collect();
    assert_eq!(in_place, [true, false, false, false]);
}

#[test]
fn a_block_of_a_matrix_on_its_tile_is_in_place() {
    let mut b = Build::new();
    let tiles = TileMap::Table((0..64).map(|e| (e / 32) * 2 + e % 8 / 4).collect());
    let a = b.var(ElemType::F32, &[8, 8], Mapping::Separable { domain: Domain(smallvec![8, 8]), tiles });
    let codelet = b.codelet(&[(Dir::InOut, ElemType::F32, 2)], false);
    let block = |i: u64, j: u64| a.slice(0, 4 * i, 4, 1).slice(1, 4 * j, 4, 1);
    b.set(codelet, &[vec![block(0, 0), block(0, 1), block(1, 0), block(1, 1)]], &[0, 1, 2, 3]);
    let planned = b.plan();
    let locations = planned.plan.locations.values().next().unwrap();
    assert_eq!(locations[0].at, [FieldLocation::InPlace(0); 4]);
    assert_eq!(locations[0].strides, [vec![16, 4]]);
}

#[test]
fn a_column_is_gathered_sent_once_and_spread() {
    let mut b = Build::new();
    let a = b.var(ElemType::F32, &[16, 16], Mapping::Linear { first: 0, tiles: 2, grain: 128 });
    let c = b.var(ElemType::F32, &[16, 16], Mapping::Linear { first: 1, tiles: 2, grain: 128 });
    b.copy(&c.index(1, 3).slice(0, 0, 8, 1), &a.index(1, 5).slice(0, 0, 8, 1));
    let planned = b.plan();
    let before = &planned.plan.copies.values().next().unwrap().before;
    assert_eq!((before.before.len(), before.transfers.len(), before.after.len()), (1, 1, 1));
    assert_eq!(before.transfers[0].words, 8);
}

#[test]
fn a_lost_transfer_is_found() {
    let mut b = Build::new();
    let a = b.var(ElemType::F32, &[16], Mapping::One(0));
    let c = b.var(ElemType::F32, &[16], Mapping::Linear { first: 0, tiles: 4, grain: 1 });
    b.copy(&c, &a);
    let mut planned = b.plan();
    let copy = planned.copies.keys().next().unwrap();
    planned.plan.copies[copy].before.transfers.pop();
    assert!(verify(&planned.race_free, &machine(), &planned.plan).is_err());
}

#[test]
fn a_set_carries_only_the_copy_that_stands_before_it() {
    let mut b = Build::new();
    let (f, tiles) = (ElemType::F32, Mapping::Linear { first: 0, tiles: 4, grain: 2 });
    let v: Vec<View> = (0..3).map(|_| b.var(f, &[8], tiles.clone())).collect();
    let codelet = b.codelet(&[(Dir::InOut, f, 1)], false);
    b.set(codelet, &[(0..4).map(|i| v[2].slice(0, 2 * i, 2, 1)).collect()], &[0, 1, 2, 3]);
    b.copy(&v[1], &v[0].reverse(0));
    b.program(&[false, false]);
    let mut planned = b.plan();
    let (set, copy) = (ComputeSetId::from_u32(0), CopyId::from_u32(0));
    assert_eq!(planned.plan.sets[set].carries, Some(copy));
    assert!(!planned.plan.sets[set].before.transfers.is_empty());
    // Its rows are the set's; a copy that moves by itself as well moves twice.
    let Planned { race_free, plan } = &mut planned;
    plan.copies[copy] = StepPlan { carries: None, ..plan.sets[set].clone() };
    let error = verify(race_free, &machine(), plan).unwrap_err();
    assert!(error.contains("what a compute set carries moves"), "{error}");
    plan.copies[copy] = StepPlan::default();
    race_free.placed.graph.steps.values_mut().next().unwrap().kind = StepKind::Seq([2, 1].map(StepId::from_u32).into());
    let error = verify(race_free, &machine(), plan).unwrap_err();
    assert_eq!(error, "`set` carries `copy`, which is not the step before it");
}

#[test]
fn a_landing_larger_than_a_tile_is_an_error() {
    let mut b = Build::new();
    let a = b.var(ElemType::F32, &[20_000], Mapping::Linear { first: 0, tiles: 4, grain: 1 });
    let codelet = b.codelet(&[(Dir::In, ElemType::F32, 1)], false);
    b.set(codelet, &[vec![a]], &[0]);
    let race_free = RaceFree { placed: Placed { graph: b.graph, placement: b.placement.into() } };
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    assert!(PlanTransfers::run(race_free, &mut PassContext::new(&machine, &session, &mut diagnostics)).is_err());
    let reported = diagnostics.iter().next().unwrap();
    assert_eq!(reported.message, "`set` needs a buffer of 80000 bytes on tile 0, which has 65536");
}
