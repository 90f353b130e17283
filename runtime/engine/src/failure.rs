//! A failed check in the user's names.
//!
//! Invariant: the message depends on the graph, the placement and the failure only.

use crate::error::RunError;
use crate::store::VertexFailure;
use girder_codelet::interpret::Failure;
use girder_ir::codelet::{Check, Site};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_source::{Diagnostic, OriginId, Span};

/// The error of the least vertex whose check did not hold; `tile` is where it runs, if that is known.
pub(crate) fn check_failed(graph: &Graph, tile: Option<u32>, at: VertexFailure) -> RunError {
    let family = &graph.families[at.family];
    let codelet = &graph.codelets[family.codelet];
    let site = &codelet.sites[at.failure.site];
    let mut place = format!("in codelet `{}`, {}", codelet.name, vertex_name(graph, family, at.instance));
    if let Some(tile) = tile {
        place += &format!(" on tile {tile}");
    }
    if let Some(worker) = at.failure.worker {
        place += &format!(", worker {worker}");
    }
    let vertex_span = graph.origins.span(family.origin);
    let main = if site.span.is_none() { vertex_span } else { site.span };
    let mut d = Diagnostic::error(code(site.check), main, message(site, &at.failure)).here(place);
    for &call in &site.calls {
        d = d.label(call, "in this call");
    }
    if main != vertex_span {
        d = d.label(vertex_span, "the vertex");
    }
    for call in calls(graph, family.origin) {
        d = d.label(call, "made by this call");
    }
    if let Some(help) = help(site.check) {
        d = d.help(help);
    }
    RunError::Check { family: at.family, instance: at.instance, check: site.check, diagnostic: Box::new(d) }
}

/// The places of the calls around an origin, innermost first.
pub(crate) fn calls(graph: &Graph, origin: OriginId) -> impl Iterator<Item = Span> {
    let own = graph.origins.span(origin);
    graph.origins.chain(origin).skip(1).map(|o| o.span).filter(move |s| !s.is_none() && *s != own)
}

/// `vertex [3, 4] of compute set `main.matvec``.
fn vertex_name(graph: &Graph, family: &Family, instance: u64) -> String {
    let set = &graph.sets[family.set].name;
    match family.domain.0.len() {
        0 => format!("the vertex of compute set `{set}`"),
        _ => format!("vertex {:?} of compute set `{set}`", &family.domain.point(instance)[..]),
    }
}

fn code(check: Check) -> &'static str {
    match check {
        Check::Index => "run::index_out_of_range",
        Check::Division => "run::division_by_zero",
        Check::Shift => "run::shift_out_of_range",
        Check::Assert => "run::assertion_failed",
        Check::Turns => "run::too_many_turns",
        Check::Empty => "run::empty_reduction",
        Check::Shape => "run::shape",
    }
}

fn message(site: &Site, failure: &Failure) -> String {
    let [a, b] = failure.values;
    match site.check {
        Check::Index => format!("index {a} is out of range for a dimension of length {b}"),
        Check::Division => "division by zero".to_string(),
        Check::Shift => format!("a shift by {a} is out of range for a type of {b} bits"),
        Check::Assert => match &site.message {
            Some(text) => format!("assertion failed: {text}"),
            None => "assertion failed".to_string(),
        },
        Check::Turns => format!("this loop has turned {a} times, which is the limit"),
        Check::Empty => "the least or greatest place of an empty range".to_string(),
        Check::Shape => format!("the operands of `amp` do not fit: {a} against {b}"),
    }
}

fn help(check: Check) -> Option<&'static str> {
    match check {
        Check::Turns => Some("if the loop is meant to turn more often, raise the limit with `--limit turns=N`"),
        Check::Empty => Some("test that the range holds a place before asking for the best one"),
        _ => None,
    }
}
