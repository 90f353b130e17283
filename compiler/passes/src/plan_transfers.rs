//! `plan-transfers`: for every compute set, where each field of each vertex finds its elements and what has to move
//! before and after; for every copy, what has to move.
//!
//! # Note: Landing
//! A field stays in place iff all its elements lie on the vertex's tile and their addresses form one strided box, and,
//! if it is written, no other worker of the tile stores into one of its words (module `narrow_stores`). Otherwise it
//! lands in a contiguous, row-major buffer. The buffer is filled before the vertices run (for `in`, `inout`, and `out`
//! that is not certain to be fully written), and its contents are sent home after them (for `out` and `inout`).
//! Vertices of a tile that read the same elements share one location.
//!
//! # Note: An empty field
//! An empty field is in place at byte 0 of no block: there is no element to reach.
//!
//! # Note: Classes
//! Compute sets that differ only in their variables, such as those of equal layers, are planned once (`classes`).
//!
//! Invariants: as [`girder_ir::plan`] says. The plans of different steps are independent: each is a function of its
//! step, the placement and the machine.

mod narrow_stores;
mod bands;
mod buffers;
mod carried;
mod classes;
mod copies;
mod homes;
mod in_place;
mod moves;
mod order;
mod packed;
mod repeats;
mod route;
mod scene;
mod set;
mod shared;
mod sites;
#[cfg(test)]
mod tests;
mod transfers;
mod verify;

pub use verify::{verify, verify_within};

use crate::pass::{Pass, Verdict};
use crate::rings::ring_rows;
use crate::{Part, PassContext};
use buffers::PlanError;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::family::{Domain, Family, Field};
use girder_ir::graph::{ComputeSet, Graph};
use girder_ir::ids::{CopyId, VarId};
use girder_ir::placement::Placement;
use girder_ir::plan::{Homes, Plan, StepPlan};
use girder_ir::stage::{Planned, RaceFree};
use girder_source::{Diagnostic, Failed, OriginId, Result, par_map_slice, par_map_uneven};
use scene::Scene;

/// The pass `plan-transfers`.
pub struct PlanTransfers;

/// Plans that move more bytes are not replayed when this compiler has made them, only when they are read from text.
const REPLAYED_BYTES: u64 = 1 << 24;

/// Returns the bytes of all fields and copies, which bound what a replay follows.
fn replayed_bytes(graph: &Graph) -> u64 {
    let of = |field: &Field, domain: &Domain| field.len().saturating_mul(domain.count()).saturating_mul(4);
    let families = graph.families.values().flat_map(|f| f.fields.iter().map(|field| of(field, &f.domain)));
    let copies = graph.copies.values().flat_map(|c| &c.families).map(|f| of(&f.dst, &f.domain));
    families.chain(copies).fold(0, u64::saturating_add)
}

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
        let carried = carried::carried(&scene);
        let mut taken: EntitySet<CopyId> = EntitySet::new();
        taken.extend(carried.values().flatten().copied());
        let elements = |set: &ComputeSet| {
            let of = |family: &Family| family.domain.count() * family.fields.iter().map(Field::len).sum::<u64>();
            set.families.iter().map(|&f| of(&race_free.families[f])).sum()
        };
        let times = &cx.step_times;
        let classes = classes::Classes::of(&scene, &carried);
        let of_first = par_map_uneven(
            &classes.first,
            |&s| elements(&race_free.sets[s]),
            |&s| times.of(Self::NAME, Part::Set(s), || set::plan(&scene, &race_free.sets[s], carried[s])),
        );
        let of_sets = classes.plans(of_first, |s, plan| times.of(Self::NAME, Part::Set(s), plan));
        let of_copies = par_map_slice(&copies, |&c| match taken.contains(c) {
            true => Ok(StepPlan::default()),
            false => times.of(Self::NAME, Part::Copy(c), || copies::copy(&scene, &race_free.copies[c])),
        });
        drop(scene);
        cx.poll()?;
        let mut plan = Plan::default();
        let mut complete = true;
        for (s, result) in sets.into_iter().zip(of_sets) {
            let set = &race_free.sets[s];
            if let Some((steps, locations)) = keep(result, cx, &race_free, &set.name, set.origin, &mut complete) {
                plan.sets[s] = steps;
                set.families.iter().zip(locations).for_each(|(&f, l)| plan.locations[f] = l);
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

    fn verify_own(made: &Planned, cx: &PassContext) -> Verdict {
        if replayed_bytes(&made.race_free) < REPLAYED_BYTES { Self::verify(made, cx) } else { Ok(()) }
    }
}

/// Returns the scene with the homes of all variables. No block exceeds a tile, so offsets within blocks can be added
/// without overflow.
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
            cx.diagnostics.push(match ring_rows(v) {
                Some(rows) => error.here(format!("{rows} micro-batches of this pipeline wait in this ring")).help(
                    "use `schedule: \"1f1b\"`, in which fewer micro-batches wait, make fewer of them, write \
                     `#[recompute]` before the `let` of the stage, or give the stage more tiles",
                ),
                None => error.help("map it over more tiles"),
            });
            complete = false;
        }
        homes[*var] = found;
    }
    if !complete {
        return Err(Failed);
    }
    let limit = most_pieces(cx);
    let (machine, cancel, block_limit) = (cx.machine, &cx.session.cancel, cx.block_limit());
    let (small, covers) = (cx.estimate.small, cx.covers(graph));
    Ok(Scene { graph, placement, machine, cancel, limit, small, block_limit, homes, covers })
}

/// Returns the greatest number of pieces that one step may move. The tables of a plan have far larger rows than those
/// of families, which the limit bounds.
fn most_pieces(cx: &PassContext) -> usize {
    usize::try_from(cx.session.limits.instances / 2).unwrap_or(usize::MAX)
}

/// Returns the result, or reports the error.
fn keep<T>(
    result: std::result::Result<T, PlanError>,
    cx: &mut PassContext,
    graph: &Graph,
    name: &str,
    origin: OriginId,
    complete: &mut bool,
) -> Option<T> {
    let report = |stop| {
        let (code, message, help) = match stop {
            PlanError::TooLarge { tile, bytes } => {
                let limit = cx.block_limit();
                let message = format!("`{name}` needs a buffer of {bytes} bytes on tile {tile}, which has {limit}");
                let help = "place the vertices nearer to their data, or let each of them touch less";
                ("transfers::too_large", message, help)
            }
            PlanError::TooMany => {
                let limit = most_pieces(cx);
                let message = format!("`{name}` moves more than {limit} pieces of consecutive elements");
                let help = "let each vertex use longer runs of consecutive elements, or use a `copy(…)` of the view; \
                            `--limit instances=N` allows N / 2 pieces";
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
