//! `promote-temporaries`: a temporary that may be read before it is written becomes persistent.
//!
//! The memory of a temporary is shared, so its contents before the first write depend on the layout, and engines would
//! differ. Such a temporary becomes persistent: it is zero when the program is loaded and keeps its value from then on.
//! This costs memory, and never changes the meaning of a program that writes first.
//!
//! The same analysis finds the `undef`s after which no step reads the elements before they are written again, and marks
//! them.
//!
//! Invariant: afterwards no temporary is live at the entry of a program that the host runs. A second run changes
//! nothing.

use crate::PassContext;
use crate::liveness::{Ended, Exposed, Liveness};
use crate::pass::{Pass, Verdict};
use crate::stage::Stage;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::StepId;
use girder_ir::program::{Effect, StepKind, UntilWritten};
use girder_source::{Diagnostic, Result};
use rustc_hash::FxHashSet;

/// The pass `promote-temporaries`.
pub struct PromoteTemporaries;

impl Pass for PromoteTemporaries {
    const NAME: &'static str = "promote-temporaries";
    const SENTENCE: &'static str = "makes temporaries persistent that may be read before they are written";
    type From = Graph;
    type To = Graph;

    /// Promotes temporaries, with a warning for each.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        let liveness = Liveness::with(&graph, &cx.covers(&graph));
        // A reverse program reads a kept value only where the program before it made one.
        let may_be_read = |e: &&Ended| {
            let step = &graph.steps[e.undef];
            let until = UntilWritten::MayBeRead;
            !step.reverse
                && matches!(step.kind, StepKind::Effect(Effect::Undef { until_written, .. }) if until_written == until)
        };
        for ended in liveness.ended.iter().filter(may_be_read) {
            cx.diagnostics.push(read_of_ended(&graph, ended));
        }
        for exposed in &liveness.exposed {
            cx.diagnostics.push(warning(&graph, exposed));
            graph.vars[exposed.var].class = VarClass::Var;
        }
        mark_unread(&mut graph, &liveness.ended);
        Ok(graph)
    }

    /// Checks that no temporary needs promotion.
    fn verify(graph: &Graph, _: &PassContext) -> Verdict {
        match Liveness::of(graph).exposed.first() {
            Some(e) => Err(format!("the temporary `{}` may be read before it is written", graph.vars[e.var].name)),
            None => Ok(()),
        }
    }

    /// Promotes again. Only the layout depends on storage classes, and the verifier of the layout rejects temporaries
    /// that should have been promoted.
    fn admit(graph: &mut Graph, text: Stage, cx: &mut PassContext) -> Result<()> {
        if text < Stage::Allocated {
            *graph = Self::run(std::mem::take(graph), cx)?;
        }
        Ok(())
    }
}

/// Marks the `undef`s of temporaries that no step reads before they are written again. `ended` has the others.
fn mark_unread(graph: &mut Graph, ended: &[Ended]) {
    let may_be_read: FxHashSet<StepId> = ended.iter().map(|e| e.undef).collect();
    for (id, step) in graph.steps.iter_mut() {
        if let StepKind::Effect(Effect::Undef { what, until_written }) = &mut step.kind
            && !may_be_read.contains(&id)
            && what.parts.iter().all(|p| graph.vars[p.var].class == VarClass::Temp)
        {
            *until_written = UntilWritten::Unread;
        }
    }
}

fn warning(graph: &Graph, exposed: &Exposed) -> Diagnostic {
    let var = &graph.vars[exposed.var];
    let message = format!("`{}` may be read before it is written", var.name);
    let d =
        Diagnostic::warning("memory::uninitialised_read", graph.origins.span(var.origin), message).here("made here");
    let reader = match exposed.reader {
        Some(step) => graph.steps[step].origin,
        None => graph.programs[exposed.program].origin,
    };
    d.label(graph.origins.span(reader), "may be read here with the value it had before").help(
        "write all of it first, for example with `<- 0`, on every path; as it is, it keeps its value from run to run \
         and starts at zero",
    )
}

fn read_of_ended(graph: &Graph, ended: &Ended) -> Diagnostic {
    let message =
        format!("`{}` may be read after this `undef`, before it is written again", graph.vars[ended.var].name);
    let undef = graph.origins.span(graph.steps[ended.undef].origin);
    let d = Diagnostic::warning("memory::read_after_undef", undef, message).here("its value ends here");
    let d = match ended.reader {
        Some(reader) => d.label(graph.origins.span(graph.steps[reader].origin), "may be read here, as zero"),
        None => d,
    };
    d.help("move the `undef` behind the last read, or write all of it first, with `<- 0` if zeros are meant")
}

#[cfg(test)]
mod tests;
