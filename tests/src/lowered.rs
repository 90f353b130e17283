//! A program after a pass, with what was reported on the way.

use crate::Program;
use girder::{AnyStage, Stage};
use girder_passes::{PassContext, merge_copies, promote_temporaries};
use girder_source::Result;

/// What a program is after a pass.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The stage, unless an error was reported.
    pub stage: Option<AnyStage>,
    /// All reports, as the user sees them.
    pub report: String,
}

impl Program {
    /// Runs the compiler up to a pass, that pass included; `elaborate` counts as one.
    ///
    /// # Panics
    /// If there is no such pass.
    pub fn run_through(&self, pass: &str) -> Lowered {
        let (mut compilation, root) = self.open();
        let to = if pass == "elaborate" { Stage::Graph } else { Stage::after(pass).expect("the name of a pass") };
        let mut stage = compilation.stage(root, to);
        if let (Ok(AnyStage::Graph(_)), Stage::Graph) = (&stage, to) {
            let mut cx = PassContext::new(
                &compilation.options.machine,
                &compilation.options.session,
                &mut compilation.diagnostics,
            );
            stage = stage.and_then(|stage| graph_passes(stage, pass, &mut cx));
        }
        let report = compilation.diagnostics.iter().map(|d| d.render(&compilation.map, false, 120)).collect();
        Lowered { stage: stage.ok(), report }
    }
}

/// Runs the passes from graph to graph up to one of them.
fn graph_passes(stage: AnyStage, pass: &str, cx: &mut PassContext) -> Result<AnyStage> {
    let AnyStage::Graph(mut graph) = stage else { return Ok(stage) };
    if pass != "elaborate" {
        graph = promote_temporaries::run(graph, cx)?;
    }
    if pass == "merge-copies" {
        graph = merge_copies::run(graph, cx)?;
    }
    Ok(AnyStage::Graph(graph))
}
