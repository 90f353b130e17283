//! The variables through which a run depends on the run before it.

use super::Liveness;
use girder_ir::codelet::Dir;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::VarId;
use girder_ir::program::{Effect, StepKind};
use rustc_hash::FxHashSet;

/// Returns the variables that some program writes, and that some program may read before it writes them, in ascending
/// order. The temporaries among them are those that `promote-temporaries` makes persistent.
pub fn carried(graph: &Graph) -> Vec<VarId> {
    let written = written(graph);
    let mut flow = graph.clone();
    for (id, var) in flow.vars.iter_mut() {
        // Liveness is analysed for temporaries only.
        var.class = if written.contains(&id) { VarClass::Temp } else { VarClass::Const };
    }
    Liveness::of(&flow).exposed.into_iter().map(|e| e.var).collect()
}

/// Returns the variables that some step may write.
fn written(graph: &Graph) -> FxHashSet<VarId> {
    let mut written = FxHashSet::default();
    for family in graph.families.values() {
        let fields = &graph.codelets[family.codelet].fields;
        let outs = family.fields.iter().filter(|f| matches!(fields[f.field].dir, Dir::Out | Dir::InOut));
        written.extend(outs.flat_map(|f| &f.parts).map(|p| p.var));
    }
    let copied = graph.copies.values().flat_map(|c| &c.families).flat_map(|f| &f.dst.parts);
    written.extend(copied.map(|p| p.var));
    for step in graph.steps.values() {
        match &step.kind {
            StepKind::Effect(Effect::Read { into, .. }) => written.extend(into.parts.iter().map(|p| p.var)),
            StepKind::Repeat { index: Some((index, ..)), .. } => _ = written.insert(*index),
            _ => {}
        }
    }
    written
}
