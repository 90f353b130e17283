//! `check-replicas`: replicas reach every meeting together, and keep equal parameters.
//!
//! Values *diverge* if they may differ from replica to replica. Divergence starts at the number of the replica and at
//! packets of which each replica has its own. It spreads through compute sets and copies, and to everything that is
//! written under a condition that diverges. It ends at a copy that all replicas receive from one value, and at a
//! promise, `uniform(x)`.
//!
//! Replicas meet in copies between them, packets, prints, `abort` and `sync`. Under a condition that diverges, some
//! would wait for others that never come. A `param` that diverges means that replicas of one model drift apart.
//!
//! Invariant: silence is a proof, except for promises. Variables are looked at as a whole, and all programs together,
//! so a value that diverges in one place diverges everywhere.

mod flow;

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use crate::rewrite::Rewrite;
use crate::stage::Stage;
use flow::{Cause, Context, Flow};
use girder_ir::family::ReplicaPair;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::{StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_source::{Diagnostic, Failed, Result, Span};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

/// The pass `check-replicas`.
pub struct CheckReplicas;

/// The most violations that are reported.
const MOST_REPORTED: usize = 8;
/// The most parameters that a report names.
const MOST_NAMED: usize = 3;

impl Pass for CheckReplicas {
    const NAME: &'static str = "check-replicas";
    const SENTENCE: &'static str = "proves that replicas meet wherever they exchange data, and keep equal parameters";
    type From = Graph;
    type To = Graph;

    /// Reports steps in which replicas may fail to meet, and parameters that may drift apart.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        if graph.replicas < 2 {
            return Ok(graph);
        }
        let flow = Flow::of(&graph);
        let mut found: Vec<Diagnostic> = vec![];
        flow.each_step(|step, context| found.extend(violation(&graph, &flow, step, context)));
        found.extend(drifting(&graph, &flow));
        found.truncate(MOST_REPORTED);
        let complete = found.is_empty();
        cx.diagnostics.extend(found);
        if !complete {
            return Err(Failed);
        }
        // What is proven needs no step.
        let is_proven = |kind: &StepKind| matches!(kind, StepKind::Effect(Effect::Agree { .. }));
        let mut rewrite = Rewrite::default();
        graph.steps.iter().filter(|(_, s)| is_proven(&s.kind)).for_each(|(id, _)| rewrite.remove(id));
        if !rewrite.is_empty() {
            rewrite.apply(&mut graph);
            cx.forget_families();
        }
        Ok(graph)
    }

    /// Accepts every result: a proof has no table.
    fn verify(_: &Graph, _: &PassContext) -> Verdict {
        Ok(())
    }

    /// Accepts text without a proof: later passes join steps, after which fewer values are known to be equal. A run
    /// ends with an error where replicas disagree on a condition on which they have to agree.
    fn admit(_: &mut Graph, _: Stage, _: &mut PassContext) -> Result<()> {
        Ok(())
    }
}

/// Returns the report of a step in which all replicas have to take part, under a condition that diverges.
fn violation(graph: &Graph, flow: &Flow, step: StepId, context: Option<Context>) -> Option<Diagnostic> {
    let kind = &graph.steps[step].kind;
    let span = graph.origins.span(graph.steps[step].origin);
    if let StepKind::Effect(Effect::Write { stream, from }) = kind
        && graph.streams[*stream].same
        && let Some(cause) = from.parts.iter().find_map(|p| flow.cause(p.var))
    {
        let name = &graph.streams[*stream].name;
        let message = format!("replicas write different packets to `{name}`, which takes one for all of them");
        let d = Diagnostic::error("replica::divergent", span, message);
        let d = labelled(graph, d, cause);
        return Some(d.help(
            "leave `replicas: \"same\"` away, so that the packets follow one another, or reduce the value first",
        ));
    }
    if let StepKind::Effect(Effect::Agree { what }) = kind
        && let Some(cause) = what.parts.iter().find_map(|p| flow.cause(p.var))
    {
        let names = what.parts.first().map(|p| graph.vars[p.var].name.as_str()).unwrap_or_default();
        let message =
            format!("`{names}` may differ from replica to replica, but is taken as equal in all of them here");
        let d = Diagnostic::error("replica::differs", span, message);
        return Some(labelled(graph, d, cause).help(
            "reduce it over the replicas first: `collectives.all_reduce(…)`; if it is equal in all of them anyway, \
             pass `uniform(x)`",
        ));
    }
    let context = context?;
    let what = match kind {
        StepKind::Copy(copy) if graph.copies[*copy].crosses() => "a copy between replicas",
        StepKind::Effect(Effect::Read { stream, .. }) if graph.streams[*stream].rows.is_none() => "reading a stream",
        StepKind::Effect(Effect::Write { stream, .. }) if graph.streams[*stream].rows.is_none() => "writing a stream",
        StepKind::Effect(Effect::Print { .. } | Effect::PrintText { .. }) => "`print`",
        StepKind::Effect(Effect::Abort { .. }) => "`abort`",
        StepKind::Effect(Effect::Sync) => "`sync`",
        _ => return None,
    };
    let message = format!("{what} needs all replicas, but not all of them may come here");
    let condition = graph.origins.span(graph.steps[context.condition].origin);
    let d = Diagnostic::error("replica::divergent", span, message);
    let d = d.label(condition, "this condition may differ from replica to replica");
    let help = "let all replicas agree on the condition: `collectives.all_reduce(…)` of what it tests, or `uniform(x)` \
                if it is equal in all of them anyway";
    Some(labelled(graph, d, context.cause).help(help))
}

/// Returns the reports of parameters that diverge, one for those that one statement writes.
fn drifting(graph: &Graph, flow: &Flow) -> Vec<Diagnostic> {
    let mut by_statement: IndexMap<Span, (Cause, Vec<VarId>), FxBuildHasher> = IndexMap::default();
    for (var, v) in graph.vars.iter().filter(|(_, v)| v.class == VarClass::Param) {
        let Some(cause) = flow.cause(var) else { continue };
        let origin = flow.written(var).map_or(v.origin, |step| graph.steps[step].origin);
        by_statement.entry(graph.origins.span(origin)).or_insert_with(|| (cause, vec![])).1.push(var);
    }
    by_statement.into_iter().map(|(span, (cause, vars))| drift(graph, span, cause, &vars)).collect()
}

fn drift(graph: &Graph, span: Span, cause: Cause, vars: &[VarId]) -> Diagnostic {
    let names: Vec<String> = vars.iter().take(MOST_NAMED).map(|&var| format!("`{}`", graph.vars[var].name)).collect();
    let (names, plural) = (names.join(", "), if vars.len() > 1 { "s" } else { "" });
    let others = match vars.len() - vars.len().min(MOST_NAMED) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let message = format!("the replicas' copies of the parameter{plural} {names}{others} may drift apart");
    let d = Diagnostic::error("replica::drift", span, message).here("written here");
    let help = "reduce the gradient over the replicas first: `collectives.all_reduce(g, op: \"mean\")`; if each \
                replica has a value of its own, declare a `state`";
    labelled(graph, d, cause).help(help)
}

fn labelled(graph: &Graph, d: Diagnostic, cause: Cause) -> Diagnostic {
    let (origin, text) = match cause {
        Cause::Index(var) => (graph.vars[var].origin, "the number of the replica enters here"),
        Cause::Packet(step) => (graph.steps[step].origin, "each replica reads a packet of its own here"),
        Cause::Received(step) => (graph.steps[step].origin, "only some replicas receive elements here"),
    };
    d.label(graph.origins.span(origin), text)
}

/// Returns whether each of some replicas is a receiver, and all of them have one sender.
fn is_broadcast(pairs: &[ReplicaPair], replicas: u32) -> bool {
    pairs.len() == replicas as usize && pairs.iter().all(|p| p.sender == pairs[0].sender)
}
