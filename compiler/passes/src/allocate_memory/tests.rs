//! Small layouts by hand, and layouts that the verifier rejects.

use super::*;
use crate::build::{Build, Tree, Vertices, machine};
use cranelift_entity::EntityRef;
use girder_ir::codelet::Dir;
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_ir::layout::{Content, TileSet};
use girder_ir::placement::Mapping;
use girder_ir::plan::{Buffer, Plan};
use girder_ir::schedule::Schedule;
use girder_ir::stage::{Planned, RaceFree};
use girder_machine::Machine;
use girder_source::{Diagnostics, Session};

fn stage(b: Build, plan: Plan) -> Scheduled {
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let placed =
        crate::place_tiles::PlaceTiles::run(b.graph, &mut PassContext::new(&machine, &session, &mut diagnostics))
            .unwrap();
    let planned = Planned { race_free: RaceFree { placed }, plan };
    Scheduled { planned, schedule: Schedule::default() }
}

fn allocate(input: Scheduled, machine: &Machine) -> (Result<Allocated>, Diagnostics) {
    let (session, mut diagnostics) = (Session::default(), Diagnostics::default());
    let result = AllocateMemory::run(input, &mut PassContext::new(machine, &session, &mut diagnostics));
    (result, diagnostics)
}

/// On tile 0: `p` and code always; `t0` at points 1 and 2, `t1` at 3 and 4; a landing buffer at 5.
fn small(temp: u64) -> Scheduled {
    let mut b = Build::new();
    let on = |tile| Some(Mapping::One(tile));
    let p = b.var("p", VarClass::Var, &[temp], on(0));
    let t: Vec<_> = (0..2).map(|i| b.var(&format!("t{i}"), VarClass::Temp, &[temp], on(0))).collect();
    let f = b.codelet("f", &[Dir::InOut]);
    let set = b.set("s", &[Vertices { codelet: f, views: &[vec![p.clone()]], tiles: Some(&[0]) }]);
    let steps = [(&t[0], &p), (&p, &t[0]), (&t[1], &p), (&p, &t[1])];
    let mut steps = steps.map(|(d, s)| b.copy_step(d, s)).to_vec();
    steps.push(Tree::Execute(set));
    b.program("main", true, &Tree::Seq(steps));
    let mut plan = Plan::default();
    plan.sets[set].buffers.push(Buffer { tile: 0, bytes: 20 });
    stage(b, plan)
}

#[test]
fn code_comes_first_and_temporaries_that_never_meet_share() {
    let (allocated, _) = allocate(small(8), &machine());
    let allocated = allocated.unwrap();
    verify_layout(&allocated.scheduled, &allocated.layout, &machine(), false).unwrap();
    let [TileClass { blocks, .. }] = allocated.layout.classes() else { panic!("one tile") };
    let at = |content: Content| blocks.iter().find(|b| b.content == content).unwrap().clone();
    let var = |i| at(Content::Var(VarId::new(i)));
    let set = girder_ir::ids::ComputeSetId::new(0);
    // A vertex has 4 + (4 + 4) bytes; its start, its field and its end take ten bundles.
    assert_eq!((at(Content::VertexState(set)).bytes, var(0).bytes), (12, 32));
    assert_eq!((var(0).live, var(1).live.clone(), var(2).live.clone()), (None, Some(1..3), Some(3..5)));
    assert_eq!(var(1).address, var(2).address);
    assert_eq!(at(Content::SetBuffer(set, 0)).live, Some(5..6));
    assert_eq!(allocated.layout.peak(), 40 + 16 + 32 + 32);
    assert_eq!(allocated.host.offsets, [0, 64, 64]);
    assert_eq!(allocated.host.bytes, 128);
}

#[test]
fn the_verifier_refuses_what_overlaps_or_is_missing() {
    let allocated = allocate(small(8), &machine()).0.unwrap();
    let refuse = |change: &dyn Fn(&mut Vec<MemoryBlock>)| {
        let mut classes = allocated.layout.classes().to_vec();
        change(&mut classes[0].blocks);
        verify_layout(&allocated.scheduled, &Layout::new(classes).unwrap(), &machine(), false).unwrap_err()
    };
    let var = |i: usize| move |b: &&mut MemoryBlock| b.content == Content::Var(VarId::new(i));
    let missing = refuse(&|blocks| {
        blocks.pop();
    });
    assert!(missing.contains("there is no block for"), "{missing}");
    let moved = refuse(&|blocks| blocks.iter_mut().find(var(1)).unwrap().address = 0);
    assert!(moved.contains("overlap"), "{moved}");
    let odd = refuse(&|blocks| blocks.iter_mut().find(var(1)).unwrap().address += 4);
    assert!(odd.contains("multiple of 8"), "{odd}");
    let high = refuse(&|blocks| blocks.iter_mut().find(var(1)).unwrap().address = 65528);
    assert!(high.contains("beyond usable memory"), "{high}");
    let short = refuse(&|blocks| blocks.iter_mut().find(var(1)).unwrap().live = Some(2..3));
    assert!(short.contains("is live at 2..3, but it is used at"), "{short}");
}

#[test]
fn the_verifier_refuses_blocks_on_empty_tiles() {
    let allocated = allocate(small(8), &machine()).0.unwrap();
    let mut classes = allocated.layout.classes().to_vec();
    classes[0].tiles = TileSet::new(vec![0, 3]);
    let layout = Layout::new(classes).unwrap();
    let wrong = verify_layout(&allocated.scheduled, &layout, &machine(), false).unwrap_err();
    assert_eq!(wrong, "tile 3 has blocks, but nothing is on it");
}

#[test]
fn a_tile_that_is_too_small_is_named_with_what_is_on_it() {
    let (result, diagnostics) = allocate(small(10_000), &machine());
    assert!(result.is_err());
    let d = diagnostics.iter().next().unwrap();
    assert_eq!(d.code, "memory::out_of_memory");
    assert_eq!(d.message, "tile 0 needs 80056 bytes, but has 65536: 14520 too many");
}

#[test]
fn other_tiles_that_are_too_small_are_told_by_what_they_need() {
    let mut b = Build::new();
    let linear = |first, tiles| Some(Mapping::Linear { first, tiles, grain: 1 });
    b.var("wide", VarClass::Var, &[20_000 * 6], linear(0, 6));
    b.var("more", VarClass::Var, &[100 * 3], linear(2, 3));
    let (_, diagnostics) = allocate(stage(b, Plan::default()), &machine());
    let message = &diagnostics.iter().next().unwrap().message;
    let others = "; 5 other tiles do not fit: tiles 3..5 need 80400 bytes, 3 tiles need 80000 bytes";
    assert_eq!(*message, format!("tile 2 needs 80400 bytes, but has 65536: 14864 too many{others}"));
}

#[test]
fn tiles_may_be_larger_if_the_user_allows_it() {
    let (machine, mut diagnostics) = (machine(), Diagnostics::default());
    let session = Session { allow_over_memory: true, ..Session::default() };
    let allocated =
        AllocateMemory::run(small(10_000), &mut PassContext::new(&machine, &session, &mut diagnostics)).unwrap();
    assert_eq!(allocated.layout.peak(), 80056);
    let reported: Vec<_> = diagnostics.iter().map(|d| (d.severity, d.code)).collect();
    assert_eq!(reported, [(Severity::Warning, "memory::out_of_memory")]);
    verify_layout(&allocated.scheduled, &allocated.layout, &machine, true).unwrap();
    let refused = verify_layout(&allocated.scheduled, &allocated.layout, &machine, false).unwrap_err();
    assert!(refused.contains("beyond usable memory"), "{refused}");
}

#[test]
fn too_much_for_the_host_is_an_error() {
    let machine = machine();
    let mut session = Session::default();
    session.limits.set("host_bytes", 100);
    let mut diagnostics = Diagnostics::default();
    assert!(AllocateMemory::run(small(8), &mut PassContext::new(&machine, &session, &mut diagnostics)).is_err());
    assert_eq!(diagnostics.iter().next().unwrap().code, "memory::host_out_of_memory");
}

#[test]
fn equal_tiles_have_equal_addresses() {
    let mut b = Build::new();
    for i in 0..5 {
        b.var(&format!("v{i}"), VarClass::Var, &[512], None);
    }
    let allocated = allocate(stage(b, Plan::default()), &machine()).0.unwrap();
    let [class] = allocated.layout.classes() else { panic!("one class") };
    assert_eq!(class.tiles, TileSet::from_ascending(0..16));
    assert_eq!(class.blocks.iter().map(|b| b.address).collect::<Vec<_>>(), [0, 128, 256, 384, 512]);
}

#[test]
fn tiles_that_differ_in_content_but_not_in_size_have_equal_addresses() {
    let mut b = Build::new();
    for tile in 0..3 {
        b.var(&format!("a{tile}"), VarClass::Var, &[8], Some(Mapping::One(tile)));
        b.var(&format!("b{tile}"), VarClass::Var, &[4], Some(Mapping::One(tile)));
    }
    let allocated = allocate(stage(b, Plan::default()), &machine()).0.unwrap();
    assert_eq!(allocated.layout.classes().len(), 3);
    for class in allocated.layout.classes() {
        assert_eq!(class.blocks.iter().map(|b| b.address).collect::<Vec<_>>(), [0, 32]);
    }
}
