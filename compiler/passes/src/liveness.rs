//! When a temporary holds a value that is still needed.
//!
//! # Note: The liveness order
//! Every step of the program has one point, a number. Points ascend in the order of the text: a step before its
//! children, but a `while` where its condition is tested, between `before` and the body. A called program stands inside
//! the first call that reaches it. Programs that the host runs stand one after the other.
//!
//! A temporary's live range is one interval of points, inclusive of the step that writes it and of the last that reads
//! it. A value that is live around a back edge is live for the whole loop; everything that is touched in a branch of
//! `par` is live for the whole `par`; what is touched in a program that is called from several places is also live at
//! each of these calls. Arms of an `if` or `switch` are different points, so what lives only inside them does not meet.
//!
//! # Note: Coverage by counting
//! The writes of a race-free step are disjoint, so a step overwrites all of a variable iff the counts are equal. Where
//! that is too coarse (a temporary that is written piece by piece), the variable is split into *atoms*, classes of
//! elements that no step tells apart, and the flow is over atoms.
//!
//! Invariant: two temporaries that hold needed values at one moment of any run have live ranges that meet.

mod atoms;
mod flow;
mod leaves;
mod order;

pub use order::Order;

use atoms::Atoms;
use flow::{Flow, Summaries};
use girder_ir::graph::Graph;
use girder_ir::ids::{ProgramId, StepId, VarId};
use girder_ir::program::StepKind;
use leaves::Leaves;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// What the analysis finds.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// The points of all steps.
    pub order: Order,
    /// Of each variable by id: the live range of a temporary that any step touches.
    pub ranges: Vec<Option<Range<u32>>>,
    /// Temporaries that may be read before they are written, ascending.
    pub exposed: Vec<Exposed>,
}

/// A temporary whose value at the entry of a program may be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exposed {
    /// The temporary.
    pub var: VarId,
    /// The first program that may read it so.
    pub program: ProgramId,
    /// The first step of that program, in the order of the text, that reads it; `None` if a called program does.
    pub reader: Option<StepId>,
}

impl Liveness {
    /// Analyses a graph whose calls do not recurse.
    pub fn of(graph: &Graph) -> Liveness {
        let order = Order::of(graph);
        let leaves = Leaves::of(graph);
        let coarse = Atoms::whole(graph);
        let summaries = Summaries::of(graph, &order, &leaves.effects(&coarse));
        let suspects: FxHashSet<VarId> = (graph.programs.keys())
            .flat_map(|p| summaries.program_uses(p))
            .map(|&a| coarse.owner(a))
            .filter(|&v| leaves.writes_partly(graph, v))
            .collect();
        let (atoms, effects, summaries) = if suspects.is_empty() {
            let effects = leaves.effects(&coarse);
            (coarse, effects, summaries)
        } else {
            let atoms = Atoms::split(graph, &leaves, &suspects);
            let effects = leaves.effects(&atoms);
            let summaries = Summaries::of(graph, &order, &effects);
            (atoms, effects, summaries)
        };
        let ranges = Flow::new(graph, &order, &atoms, &effects, &summaries).ranges();
        let exposed = exposed(graph, &leaves, &atoms, &summaries);
        Liveness { order, ranges, exposed }
    }

    /// The points from the first to the last step that one of `steps` is, with what the order adds for `par` and calls.
    pub fn hull(&self, steps: impl IntoIterator<Item = StepId>) -> Option<Range<u32>> {
        steps.into_iter().map(|s| self.order.occupied(s)).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
    }
}

fn exposed(graph: &Graph, leaves: &Leaves, atoms: &Atoms, summaries: &Summaries) -> Vec<Exposed> {
    let mut found: Vec<Exposed> = vec![];
    let mut seen = FxHashSet::default();
    for (program, p) in graph.programs.iter().filter(|(_, p)| p.entry) {
        for &atom in summaries.program_uses(program) {
            let var = atoms.owner(atom);
            if seen.insert(var) {
                let reader = steps_of(graph, p.body).find(|&s| leaves.reads(s, var));
                found.push(Exposed { var, program, reader });
            }
        }
    }
    found.sort_by_key(|e| e.var);
    found
}

/// A step and everything in it, in the order of the text; called programs are not entered.
pub fn steps_of(graph: &Graph, root: StepId) -> impl Iterator<Item = StepId> {
    let mut stack = vec![root];
    std::iter::from_fn(move || {
        let step = stack.pop()?;
        let at = stack.len();
        children(&graph.steps[step].kind, |c| stack.push(c));
        stack[at..].reverse();
        Some(step)
    })
}

/// The steps directly inside a step, in the order of the text.
pub fn children(kind: &StepKind, mut f: impl FnMut(StepId)) {
    match kind {
        StepKind::Seq(steps) | StepKind::Par(steps) => steps.iter().for_each(|&s| f(s)),
        StepKind::Repeat { body, .. } => f(*body),
        StepKind::While { before, body, .. } => {
            f(*before);
            f(*body);
        }
        StepKind::If { then, els, .. } => {
            f(*then);
            f(*els);
        }
        StepKind::Switch { cases, default, .. } => {
            cases.iter().for_each(|(_, s)| f(*s));
            f(*default);
        }
        StepKind::Execute(_) | StepKind::Copy(_) | StepKind::Call(_) | StepKind::Effect(_) => {}
    }
}

#[cfg(test)]
mod tests;
