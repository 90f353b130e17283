//! `merge-compute-sets`: independent compute sets become one superstep.
//!
//! A superstep costs a sync, and the latency of an exchange if it has one, whatever it does. A compute set joins the
//! earliest one before it if neither accesses what the other writes, and if the same holds for everything between them:
//! the updates of all parameters are then one superstep, and so are the two products of a reverse step. `place-tiles`
//! runs later, and can put the vertices of small compute sets on different tiles.
//!
//! Invariant: every element keeps its final value. A compute set that may fail is moved over nothing, and none is moved
//! over an effect, so that the first failure stays the first.

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use crate::race_rule::Touches;
use crate::rewrite::{Rewrite, cannot_fail, executions};
use crate::steps::sequences;
use cranelift_entity::EntityRef;
use girder_ir::family::Field;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, StepId};
use girder_ir::placement::TileRange;
use girder_ir::program::StepKind;
use girder_machine::Machine;
use girder_source::{Cancel, Result};

/// The pass `merge-compute-sets`.
pub struct MergeComputeSets;

/// The number of steps over which a compute set may be moved.
const WINDOW: usize = 16;
/// A merged compute set has at most this many families.
const MOST_FAMILIES: usize = 256;
/// The share of a tile's memory, as a divisor, that the operands of a merged set may take.
const SHARE: u64 = 32;

impl Pass for MergeComputeSets {
    const NAME: &'static str = "merge-compute-sets";
    const SENTENCE: &'static str = "makes one superstep of compute sets that do not depend on one another";
    const OPTIONAL: bool = true;
    type From = Graph;
    type To = Graph;

    /// Merges compute sets.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        let (executions, _) = executions(&graph);
        let mut rewrite = Rewrite::default();
        for steps in sequences(&graph) {
            cx.poll()?;
            let mut kept: Vec<KeptStep> = vec![];
            for step in steps {
                let Some(own) = KeptStep::of(&graph, step, &executions, cx.machine) else {
                    kept.clear();
                    continue;
                };
                match earliest(&graph, &kept, &own, cx) {
                    Some((at, set, into)) => {
                        rewrite.join(step, set, into);
                        kept[at].take(own);
                    }
                    None => kept.push(own),
                }
            }
        }
        if !rewrite.is_empty() {
            rewrite.apply(&mut graph);
            cx.forget_families();
        }
        Ok(graph)
    }

    /// Checks that each family belongs to the compute set that has it.
    fn verify(graph: &Graph, _: &PassContext) -> Verdict {
        for (id, set) in &graph.sets {
            if set.families.iter().any(|&f| graph.families[f].set != id) {
                return Err(format!("`{}` has a family of another compute set", set.name));
            }
        }
        Ok(())
    }
}

/// A compute set or a copy that stays in its place.
struct KeptStep {
    touches: Touches,
    /// The compute set, if it may be merged.
    set: Option<MergedSet>,
    reverse: bool,
    can_fail: bool,
}

/// A compute set with those that have joined it.
struct MergedSet {
    set: ComputeSetId,
    within: Option<TileRange>,
    families: usize,
    /// Bytes of the operands of a tile's vertices, if these are spread evenly.
    bytes: u64,
}

impl KeptStep {
    /// Returns a step, or `None` if nothing is moved over it.
    fn of(graph: &Graph, step: StepId, executions: &[u32], machine: &Machine) -> Option<KeptStep> {
        let touches = Touches::of_step(graph, step)?;
        let reverse = graph.steps[step].reverse;
        let StepKind::Execute(set) = graph.steps[step].kind else {
            return Some(KeptStep { touches, set: None, reverse, can_fail: false });
        };
        let families = || graph.sets[set].families.iter().map(|&f| &graph.families[f]);
        let within = families().next().and_then(|f| f.within);
        let is_open = families().all(|f| f.tile.is_none() && f.within == within);
        let merges = executions[set.index()] == 1 && is_open && families().next().is_some();
        let merged = MergedSet { set, within, families: families().count(), bytes: operand_bytes(graph, set, machine) };
        let can_fail = !families().all(|family| cannot_fail(graph, family));
        Some(KeptStep { touches, set: merges.then_some(merged), reverse, can_fail })
    }

    fn take(&mut self, other: KeptStep) {
        self.touches.join(other.touches);
        self.can_fail |= other.can_fail;
        if let (Some(own), Some(other)) = (&mut self.set, other.set) {
            own.families += other.families;
            own.bytes += other.bytes;
        }
    }

    /// Returns whether another step may be executed at the same time.
    fn admits(&self, other: &KeptStep, machine: &Machine) -> bool {
        let (Some(a), Some(b)) = (&self.set, &other.set) else { return false };
        let fits = a.bytes + b.bytes <= u64::from(machine.usable_bytes()) / SHARE;
        let few = a.families + b.families <= MOST_FAMILIES;
        a.within == b.within && self.reverse == other.reverse && fits && few
    }
}

/// Returns the position of the earliest step that a compute set can join, with both sets.
fn earliest(
    graph: &Graph,
    kept: &[KeptStep],
    own: &KeptStep,
    cx: &PassContext,
) -> Option<(usize, ComputeSetId, ComputeSetId)> {
    let set = own.set.as_ref()?.set;
    let cancel: &Cancel = &cx.session.cancel;
    if !own.touches.obey_the_race_rule(graph, cancel) {
        return None;
    }
    let mut found = None;
    for (at, other) in kept.iter().enumerate().rev().take(WINDOW) {
        if !own.touches.are_independent_of(&other.touches, graph, cancel) {
            break;
        }
        if other.admits(own, cx.machine) {
            found = other.set.as_ref().map(|into| (at, set, into.set));
        }
        if own.can_fail {
            break;
        }
    }
    found
}

/// Returns the bytes that a tile's vertices read, if they are spread evenly.
fn operand_bytes(graph: &Graph, set: ComputeSetId, machine: &Machine) -> u64 {
    let of_family = |family: &girder_ir::family::Family| {
        let codelet = &graph.codelets[family.codelet];
        let bytes = |f: &Field| f.len().saturating_mul(u64::from(codelet.fields[f.field].ty.bytes()));
        let of_vertex = family.fields.iter().map(bytes).fold(0, u64::saturating_add);
        let tiles = family.within.map_or(machine.tiles(), |w| w.count);
        of_vertex.saturating_mul(family.domain.count().div_ceil(u64::from(tiles.max(1))))
    };
    graph.sets[set].families.iter().map(|&f| of_family(&graph.families[f])).fold(0, u64::saturating_add)
}
