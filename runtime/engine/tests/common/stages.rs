//! A naive plan: every field of every vertex lands in its own buffer, element by element.

use cranelift_entity::{EntityRef, SecondaryMap};
use girder_ir::codelet::Dir;
use girder_ir::family::{Family, Field};
use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::layout::{Content, HostLayout, Layout, MemoryBlock, TileClass, TileSet};
use girder_ir::placement::Placement;
use girder_ir::plan::*;
use girder_ir::schedule::{PhaseSchedule, Schedule, Served, StepSchedule, TransferSlice};
use girder_ir::stage::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Allocates a graph whose variables and families are all placed by hand, with the naive tables. Elements that move
/// between tiles must be whole words.
pub fn allocate(graph: Graph) -> Allocated {
    let mut placement = Placement::default();
    for (id, var) in &graph.vars {
        placement.vars[id] = var.mapping.clone();
    }
    for (id, family) in &graph.families {
        placement.families[id] = family.tile.clone();
    }
    let mut homes: SecondaryMap<VarId, Homes> = SecondaryMap::new();
    for (id, var) in &graph.vars {
        homes[id] = Homes::of(var, var.mapping.as_ref().unwrap());
    }
    let (plan, schedule) = plan(&graph, &homes);
    let layout = layout(&graph, &homes, &plan);
    let host = host(&graph);
    let race_free = RaceFree { placed: Placed { graph, placement: placement.into() } };
    let scheduled = Scheduled { planned: Planned { race_free, plan }, schedule };
    Allocated { scheduled, layout, host }
}

fn plan(graph: &Graph, homes: &SecondaryMap<VarId, Homes>) -> (Plan, Schedule) {
    let (mut plan, mut schedule) = (Plan::default(), Schedule::default());
    for (id, set) in &graph.sets {
        let mut step = StepPlan::default();
        for &family in &set.families {
            let f = &graph.families[family];
            plan.locations[family] = f.fields.iter().map(|field| land(graph, homes, f, field, &mut step)).collect();
        }
        schedule.sets[id] = start(&step);
        plan.sets[id] = step;
    }
    for (id, copies) in &graph.copies {
        let mut step = StepPlan::default();
        for family in &copies.families {
            for i in 0..family.domain.count() {
                let (dst, src) = (family.dst.view(&family.domain, i), family.src.view(&family.domain, i));
                for ((dv, de), (sv, se)) in dst.elements().zip(src.elements()) {
                    let (from, to) = (home(homes, sv, se), home(homes, dv, de));
                    step.before.element(from, to, graph.vars[dv].ty.bytes());
                }
            }
        }
        schedule.copies[id] = start(&step);
        plan.copies[id] = step;
    }
    (plan, schedule)
}

/// Plans the transfers of one field of all vertices, to buffers and back.
fn land(
    graph: &Graph,
    homes: &SecondaryMap<VarId, Homes>,
    family: &Family,
    field: &Field,
    step: &mut StepPlan,
) -> FieldLocations {
    let decl = &graph.codelets[family.codelet].fields[field.field];
    let size = decl.ty.bytes();
    let mut locations = FieldLocations::default();
    for i in 0..family.domain.count() {
        let tile = family.tile.as_ref().unwrap().at(&family.domain, i);
        let bytes = ((field.len() as u32 * size).next_multiple_of(4)).max(4);
        let buffer = step.buffers.len() as u32;
        step.buffers.push(Buffer { tile, bytes });
        for (k, (var, element)) in field.view(&family.domain, i).elements().enumerate() {
            let landed = Loc { tile, object: Object::Buffer(buffer), offset: k as u32 * size };
            step.before.element(home(homes, var, element), landed, size);
            if decl.dir != Dir::In {
                step.after.element(landed, home(homes, var, element), size);
            }
        }
        locations.at.push(FieldLocation::Buffer { buffer, offset: 0 });
        locations.strides_of.push(0);
    }
    locations
}

fn home(homes: &SecondaryMap<VarId, Homes>, var: VarId, element: u64) -> Loc {
    let (tile, offset) = homes[var].locate(element);
    Loc { tile, object: Object::Var(var), offset }
}

trait Element {
    fn element(&mut self, from: Loc, to: Loc, size: u32);
}

impl Element for Phase {
    fn element(&mut self, from: Loc, to: Loc, size: u32) {
        if from.tile == to.tile {
            self.after.push(LocalCopy { from, to, count: 1, bytes: size, from_step: 0, to_step: 0 });
        } else {
            assert!(size.is_multiple_of(4), "only words change tiles here");
            self.transfers.push(Transfer { from, to: To::One(to), words: size / 4 });
        }
    }
}

/// Schedules one transfer after the other.
fn start(step: &StepPlan) -> StepSchedule {
    let phase = |p: &Phase| {
        let mut at = 0;
        let mut next = |(transfer, t): (u32, &Transfer)| {
            let start = (at, at += t.words).0;
            TransferSlice { transfer, first: 0, words: t.words, start, to: Served::All, paired: false }
        };
        let slices: Vec<TransferSlice> = (0..).zip(&p.transfers).map(&mut next).collect();
        let cycles = if slices.is_empty() { vec![] } else { vec![(0, at)] };
        Arc::new(PhaseSchedule { slices, cycles, ..PhaseSchedule::default() })
    };
    StepSchedule { before: phase(&step.before), after: phase(&step.after) }
}

/// Places blocks one after the other.
fn layout(graph: &Graph, homes: &SecondaryMap<VarId, Homes>, plan: &Plan) -> Layout {
    let mut tiles: BTreeMap<u32, Vec<(Content, u32)>> = BTreeMap::new();
    for id in graph.vars.keys() {
        for &(tile, bytes) in &homes[id].blocks {
            tiles.entry(tile).or_default().push((Content::Var(id), bytes));
        }
    }
    for id in graph.sets.keys() {
        for (b, rank) in plan.sets[id].buffers.iter().zip(plan.sets[id].buffer_ranks(u32::MAX)) {
            tiles.entry(b.tile).or_default().push((Content::SetBuffer(id, rank), b.bytes));
        }
    }
    let place = |(tile, mut contents): (u32, Vec<(Content, u32)>)| {
        contents.sort_unstable();
        let mut next = 16;
        let block = |&(content, bytes): &(Content, u32)| {
            let address = next;
            next = (address + bytes).next_multiple_of(8);
            MemoryBlock { content, address, bytes, live: None }
        };
        TileClass { tiles: TileSet::new(vec![tile]), blocks: contents.iter().map(block).collect() }
    };
    Layout::new(tiles.into_iter().map(place).collect()).unwrap()
}

/// Gives each variable its own memory.
fn host(graph: &Graph) -> HostLayout {
    let mut host = HostLayout::default();
    for (id, var) in &graph.vars {
        assert_eq!(id.index(), host.offsets.len());
        host.offsets.push(host.bytes);
        host.bytes = (host.bytes + var.bytes()).next_multiple_of(64);
    }
    host
}

/// Lowers a graph by the passes.
pub fn lower(graph: Graph) -> Allocated {
    use girder_passes::pipeline::{AnyStage, Stage, lower_to};
    let (machine, session) = (girder_machine::builtin("small").unwrap(), girder_source::Session::default());
    let mut diagnostics = girder_source::Diagnostics::default();
    let mut cx = girder_passes::PassContext::new(&machine, &session, &mut diagnostics);
    match lower_to(AnyStage::Graph(graph), Stage::Allocated, &mut cx) {
        Ok(AnyStage::Allocated(allocated)) => allocated,
        _ => panic!("{:?}", diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect::<Vec<_>>()),
    }
}
