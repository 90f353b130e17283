//! The times at which a temporary holds a value that is still needed.
//!
//! # Note: The liveness order
//! Every step of the program has one point, which is a number. Points ascend in the order of the text: a step comes
//! before its children, but the point of a `while` is where its condition is tested, between `before` and the body. A
//! called program is inside the first call that reaches it. Programs that the host runs follow one another.
//!
//! The live range of a temporary is one interval of points, from the first step that writes it to the last that reads
//! it, both included. A value that is live around a back edge is live for the whole loop. A value that is live across a
//! call is also live at all points of the program that is called, so what lives only inside it meets nothing else.
//! Arms of an `if` or `switch` have different points, so
//! temporaries that live only inside different arms do not meet. The branches of a `par` overlap in time only on
//! different IPUs. Each tile runs its steps in the order of the text, so on one tile they follow one another.
//!
//! # Note: Coverage by counting
//! The writes of a race-free step are disjoint, so a step overwrites all of a variable iff the counts are equal. A
//! temporary that is written piece by piece needs more: the variable is split into *atoms*, which are equivalence
//! classes of elements that no step distinguishes, and the flow is computed over atoms.
//!
//! Invariant: two temporaries that hold needed values on one tile at one moment of any run have live ranges that meet.

mod atoms;
mod flow;
mod leaves;
mod order;
mod carried;
mod exposed;

pub use carried::carried;
pub use order::LivenessOrder;

use crate::footprint::Covers;
use atoms::Atoms;
use exposed::exposed;
use flow::{Flow, Summaries};
use girder_ir::graph::Graph;
use girder_ir::ids::{ProgramId, StepId, VarId};
use girder_ir::program::{Effect, Step, StepKind};
use leaves::{Effects, Leaves};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// The result of the analysis.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// The points of all steps.
    pub order: LivenessOrder,
    /// The live range of each temporary that a step accesses, by variable id.
    pub ranges: Vec<Option<Range<u32>>>,
    /// Temporaries that may be read before they are written, ascending.
    pub exposed: Vec<Exposed>,
    /// Temporaries that may be read after an `undef` before they are written again, in the order of the text.
    pub ended: Vec<Ended>,
}

/// A temporary whose value may be read at the entry of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exposed {
    /// The temporary.
    pub var: VarId,
    /// The first program that may read it.
    pub program: ProgramId,
    /// The first step, in the order of the text, that may read it before it is written; perhaps in a called program.
    pub reader: Option<StepId>,
}

/// A temporary that may be read after an `undef` ended its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ended {
    /// The `undef`.
    pub undef: StepId,
    /// The temporary.
    pub var: VarId,
    /// The first step after it, in the order of the text, that reads the temporary; the first of all if none follows,
    /// as in a loop.
    pub reader: Option<StepId>,
}

impl Liveness {
    /// Analyses a graph whose calls do not recurse.
    pub fn of(graph: &Graph) -> Liveness {
        Liveness::with(graph, &Covers::of(graph))
    }

    /// Works like [`Liveness::of`] if it is known which `out` fields are written in full.
    pub fn with(graph: &Graph, covers: &Covers) -> Liveness {
        let order = LivenessOrder::of(graph);
        let leaves = Leaves::of(graph, covers);
        let (atoms, effects, summaries) = analysed(graph, &order, &leaves);
        let (ranges, ended) = Flow::new(graph, &order, &atoms, &effects, &summaries).ranges();
        let exposed = exposed(graph, &atoms, &effects, &summaries);
        let ended = ended.into_iter().map(|(undef, var)| Ended { undef, var, reader: leaves.reader(undef, var) });
        Liveness { order, ranges, exposed, ended: ended.collect() }
    }

    /// Returns the interval of points that covers some steps, including the points that the order adds for calls.
    pub fn hull(&self, steps: impl IntoIterator<Item = StepId>) -> Option<Range<u32>> {
        steps.into_iter().map(|s| self.order.at(s)).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
    }
}

/// Returns the steps whose results nothing needs. `written` returns the variables that a step writes, or `None` if the
/// step must stay. What a removed step reads is not needed for it, so a chain of unneeded steps is found at once.
pub(crate) fn dead_steps(
    graph: &Graph,
    covers: &Covers,
    written: impl Fn(StepId) -> Option<Vec<VarId>>,
) -> Vec<StepId> {
    let order = LivenessOrder::of(graph);
    let leaves = Leaves::of(graph, covers);
    let (atoms, effects, summaries) = analysed(graph, &order, &leaves);
    Flow::new(graph, &order, &atoms, &effects, &summaries).dead(&written)
}

/// Returns the atoms of a graph, the effects of its leaves on them, and the summaries of its steps.
fn analysed(graph: &Graph, order: &LivenessOrder, leaves: &Leaves) -> (Atoms, Effects, Summaries) {
    let coarse = Atoms::whole(graph);
    let summaries = Summaries::of(graph, order, &leaves.effects(&coarse));
    let suspects: FxHashSet<VarId> = (graph.programs.keys())
        .flat_map(|p| summaries.program_uses(p))
        .map(|&a| coarse.owner(a))
        .chain(undefined(graph))
        .filter(|&v| leaves.writes_partly(graph, v))
        .collect();
    if suspects.is_empty() {
        let effects = leaves.effects(&coarse);
        (coarse, effects, summaries)
    } else {
        let atoms = Atoms::split(graph, leaves, &suspects);
        let effects = leaves.effects(&atoms);
        let summaries = Summaries::of(graph, order, &effects);
        (atoms, effects, summaries)
    }
}

/// Returns the variables of which an `undef` ends a value.
fn undefined(graph: &Graph) -> impl Iterator<Item = VarId> {
    let what = |step: &Step| match &step.kind {
        StepKind::Effect(Effect::Undef { what, .. }) => what.parts.first().map(|p| p.var),
        _ => None,
    };
    graph.steps.values().filter_map(what)
}

#[cfg(test)]
mod tests;
