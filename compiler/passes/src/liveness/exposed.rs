//! The temporaries whose value may be read at the entry of a program, and where.
//!
//! Invariant: on some path to a step that is found, no step before it overwrites all that it reads.

use super::Exposed;
use super::atoms::Atoms;
use super::flow::Summaries;
use super::leaves::Effects;
use girder_ir::graph::Graph;
use girder_ir::ids::StepId;
use girder_ir::program::StepKind;
use rustc_hash::FxHashSet;

/// Returns the temporaries that a program which the host runs may read before it writes them.
pub(super) fn exposed(graph: &Graph, atoms: &Atoms, effects: &Effects, summaries: &Summaries) -> Vec<Exposed> {
    let mut found: Vec<Exposed> = vec![];
    let mut seen = FxHashSet::default();
    for (program, p) in graph.programs.iter().filter(|(_, p)| p.entry) {
        for &atom in summaries.program_uses(program) {
            let var = atoms.owner(atom);
            if seen.insert(var) {
                let reader = reader(graph, effects, summaries, p.body, atom);
                found.push(Exposed { var, program, reader });
            }
        }
    }
    found.sort_by_key(|e| e.var);
    found
}

/// Returns the first step inside a step, or the step itself, that may read an atom with the value that it has before
/// the step. Each turn descends into a child or a called program, and calls do not recurse.
fn reader(graph: &Graph, effects: &Effects, summaries: &Summaries, root: StepId, atom: u32) -> Option<StepId> {
    let mut at = root;
    loop {
        if effects.of(at).uses.contains(&atom) {
            return Some(at);
        }
        let step = &graph.steps[at];
        let inside = match &step.kind {
            StepKind::Call(program) => vec![graph.programs[*program].body],
            _ => step.children(),
        };
        at = inside.into_iter().find(|&s| summaries.step_uses(s, atom))?;
    }
}
