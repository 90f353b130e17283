//! A program after a pass, with the diagnostics up to then.

use crate::Program;
use girder::{After, AnyStage};

/// A program after a pass.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The stage, unless an error was reported.
    pub stage: Option<AnyStage>,
    /// The stage as text; empty without one.
    pub text: String,
    /// All diagnostics, as the user sees them.
    pub report: String,
}

impl Program {
    /// Runs the compiler up to and including a pass.
    pub fn lowered(&self, after: After) -> Lowered {
        let (mut compilation, root) = self.open();
        let stage = compilation.stage(root, after).ok();
        let text = stage.as_ref().map_or(String::new(), |s| girder::text::print_after(s, after, self.machine()));
        let report = compilation.diagnostics.iter().map(|d| d.render(&compilation.map, false, 120)).collect();
        Lowered { stage, text, report }
    }
}
