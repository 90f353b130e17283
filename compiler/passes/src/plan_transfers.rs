//! `plan-transfers : RaceFree → Planned`: for every compute set where each field of each vertex finds its elements, and
//! what has to move before and after; for every copy what has to move.
//!
//! # Note: Landing
//! A field stays in place iff all its elements lie on the vertex's tile and their addresses are one strided box, and,
//! if it is written, no other worker of the tile stores into one of its words (module `apart`). Else it lands in a buffer,
//! row-major and contiguous, which is filled before the vertices run (`in`, `inout`, and `out` that is not certain to
//! be fully written) and sent home after them (`out`, `inout`). Vertices of a tile that read the same elements share
//! one landing.
//!
//! # Note: An empty field
//! It is in place at byte 0 of no block: there is no element to reach.
//!
//! Invariants: as [`girder_ir::plan`] says. Plans of different steps do not know each other; each is a function of its
//! step, the placement and the machine.

mod apart;
mod bands;
mod buffers;
mod carried;
mod landing;
mod moves;
mod order;
mod repeats;
mod route;
mod set;
mod shared;
#[cfg(test)]
mod tests;
mod transfers;
mod verify;

pub(crate) use route::{FEW_BYTES, MANY_PIECES};
pub use verify::{verify, verify_within};

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use buffers::{Buffers, Stop};
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::family::{Family, Field};
use girder_ir::graph::{ComputeSet, CopySet, Graph};
use girder_ir::ids::{CopyId, VarId};
use girder_ir::placement::Placement;
use girder_ir::plan::{Homes, Plan, StepPlan};
use girder_ir::stage::{Planned, RaceFree};
use girder_machine::Machine;
use girder_source::{Cancel, Diagnostic, Failed, OriginId, Result, par_map_slice, par_map_uneven};
use moves::Moves;
use route::{Pad, Router};

/// See the module.
pub struct PlanTransfers;

impl Pass for PlanTransfers {
    const NAME: &'static str = "plan-transfers";
    const SENTENCE: &'static str = "decides where each field finds its elements and what moves before and after";
    type From = RaceFree;
    type To = Planned;

    /// Plans every compute set and every copy.
    ///
    /// # Errors
    /// A variable or a landing buffer that exceeds a tile's memory, or a stop by the user.
    fn run(race_free: RaceFree, cx: &mut PassContext) -> Result<Planned> {
        let scene = scene(&race_free, cx)?;
        let sets: Vec<_> = race_free.sets.keys().collect();
        let copies: Vec<_> = race_free.copies.keys().collect();
        let carried = carried::carried(&race_free, scene.cancel);
        let mut taken: EntitySet<CopyId> = EntitySet::new();
        taken.extend(carried.values().flatten().copied());
        let elements = |set: &ComputeSet| {
            let of = |family: &Family| family.domain.count() * family.fields.iter().map(Field::len).sum::<u64>();
            set.families.iter().map(|&f| of(&race_free.families[f])).sum()
        };
        let of_sets = par_map_uneven(
            &sets,
            |&s| elements(&race_free.sets[s]),
            |&s| set::plan(&scene, &race_free.sets[s], carried[s]),
        );
        let of_copies = par_map_slice(&copies, |&c| match taken.contains(c) {
            true => Ok(StepPlan::default()),
            false => copy(&scene, &race_free.copies[c]),
        });
        drop(scene);
        cx.poll()?;
        let mut plan = Plan::default();
        let mut complete = true;
        for (s, result) in sets.into_iter().zip(of_sets) {
            let set = &race_free.sets[s];
            if let Some((steps, landings)) = keep(result, cx, &race_free, &set.name, set.origin, &mut complete) {
                plan.sets[s] = steps;
                set.families.iter().zip(landings).for_each(|(&f, l)| plan.landings[f] = l);
            }
        }
        for (c, result) in copies.into_iter().zip(of_copies) {
            let copy = &race_free.copies[c];
            if let Some(steps) = keep(result, cx, &race_free, &copy.name, copy.origin, &mut complete) {
                plan.copies[c] = steps;
            }
        }
        if complete { Ok(Planned { race_free, plan }) } else { Err(Failed) }
    }

    fn verify(planned: &Planned, cx: &PassContext) -> Verdict {
        verify_within(&planned.race_free, cx.machine, cx.block_limit(), &planned.plan)
    }
}

/// What every part of the pass reads.
struct Scene<'a> {
    graph: &'a Graph,
    placement: &'a Placement,
    machine: &'a Machine,
    cancel: &'a Cancel,
    /// Pieces that one step may move.
    limit: usize,
    /// Bytes that one block may have.
    block_limit: u32,
    homes: SecondaryMap<VarId, Homes>,
}

impl Scene<'_> {
    fn elem_bytes(&self, var: VarId) -> u32 {
        self.homes[var].elem_bytes
    }

    /// Nothing is planned for after the user asked to stop: whoever sees an empty plan polls before using it.
    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// The homes of all variables. No block exceeds a tile, so that offsets within blocks may be added without care.
fn scene<'a, 'b: 'a>(race_free: &'a RaceFree, cx: &mut PassContext<'b>) -> Result<Scene<'a>> {
    let (graph, placement): (&Graph, &Placement) = (race_free, &race_free.placement);
    let vars: Vec<_> = graph.vars.keys().collect();
    let of = |&v: &VarId| placement.vars[v].as_ref().map(|m| Homes::of(&graph.vars[v], m)).unwrap_or_default();
    let mut homes = SecondaryMap::new();
    let mut complete = true;
    for (var, found) in vars.iter().zip(par_map_slice(&vars, of)) {
        let limit = cx.block_limit();
        if let Some((tile, bytes)) = found.blocks.iter().find(|b| b.1 > limit) {
            let v = &graph.vars[*var];
            let message = format!("`{}` takes {bytes} bytes of tile {tile}, which has {limit}", v.name);
            let error = Diagnostic::error("transfers::too_large", graph.origins.span(v.origin), message);
            cx.diagnostics.push(error.help("map it over more tiles"));
            complete = false;
        }
        homes[*var] = found;
    }
    if !complete {
        return Err(Failed);
    }
    let limit = usize::try_from(cx.session.limits.instances).unwrap_or(usize::MAX);
    let (machine, cancel, block_limit) = (cx.machine, &cx.session.cancel, cx.block_limit());
    Ok(Scene { graph, placement, machine, cancel, limit, block_limit, homes })
}

/// The result, unless it is an error, which is reported.
fn keep<T>(
    result: std::result::Result<T, Stop>,
    cx: &mut PassContext,
    graph: &Graph,
    name: &str,
    origin: OriginId,
    complete: &mut bool,
) -> Option<T> {
    let report = |stop| {
        let (code, message, help) = match stop {
            Stop::TooLarge { tile, bytes } => {
                let limit = cx.block_limit();
                let message = format!("`{name}` needs a buffer of {bytes} bytes on tile {tile}, which has {limit}");
                let help = "place the vertices nearer to their data, or let each of them touch less";
                ("transfers::too_large", message, help)
            }
            Stop::TooMany => {
                let limit = cx.session.limits.instances;
                let message = format!("`{name}` moves more than {limit} pieces (the limit `instances`)");
                let help = "map what is used together in longer runs, or raise the limit with `--limit instances=…`";
                ("transfers::too_many", message, help)
            }
        };
        let error = Diagnostic::error(code, graph.origins.span(origin), message);
        cx.diagnostics.push(error.here("what moves here").help(help));
    };
    let result = result.map_err(report).ok();
    *complete &= result.is_some();
    result
}

/// The plan of a copy: every element from its home to its new home.
fn copy(scene: &Scene, copy: &CopySet) -> std::result::Result<StepPlan, Stop> {
    let mut buffers = Buffers::new(scene.block_limit);
    let (mut router, mut moves) = (Router::new(scene.limit), Moves::new(scene));
    add_copy(scene, copy, &mut moves, &mut router, &mut buffers)?;
    let before = router.finish(&mut buffers)?;
    Ok(StepPlan { buffers: buffers.list, before, ..StepPlan::default() })
}

/// Adds what a copy moves to a phase.
fn add_copy(
    scene: &Scene,
    copy: &CopySet,
    moves: &mut Moves,
    router: &mut Router,
    buffers: &mut Buffers,
) -> std::result::Result<(), Stop> {
    for family in &copy.families {
        for instance in 0..family.domain.count() {
            if scene.is_cancelled() {
                return Ok(());
            }
            moves.copy(
                scene,
                &family.dst.view(&family.domain, instance),
                &family.src.view(&family.domain, instance),
            )?;
            for (slot, &m) in moves.list.iter().enumerate() {
                router.add(slot, m, Pad::Neither, buffers)?;
            }
        }
        router.close(buffers)?;
    }
    Ok(())
}
