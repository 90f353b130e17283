//! Diagnostics of failed checks, in the user's names.
//!
//! Invariant: the message depends on the graph, the placement and the failure only.

use crate::error::RunError;
use crate::store::{VertexFailure, VertexRace};
use girder_codelet::interpret::{Failure, Race, WorkerAccess, loop_limits};
use girder_ir::codelet::{Check, Site};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{FamilyId, FieldId};
use girder_source::{Diagnostic, OriginId, Span};

/// Returns the error of the first vertex whose check failed; `tile` is its tile, if known.
pub(crate) fn check_failed(graph: &Graph, tile: Option<u32>, at: VertexFailure) -> RunError {
    let family = &graph.families[at.family];
    let codelet = &graph.codelets[family.codelet];
    let site = &codelet.sites[at.failure.site];
    let mut location = location(graph, at.family, at.instance, tile);
    if let Some(worker) = at.failure.worker {
        location += &format!(", worker {worker}");
    }
    let vertex_span = family.span(&graph.origins, at.instance);
    let main = if site.span.is_none() { vertex_span } else { site.span };
    let mut d = Diagnostic::error(code(site.check), main, message(site, &at.failure)).here(location);
    for &call in &site.calls {
        d = d.label(call, "in this call");
    }
    d = made_by(d, graph, family, main);
    if let Some(help) = help(site.check, at.failure.values) {
        d = d.help(help);
    }
    let diagnostic = Box::new(graph.origins.user_first(d));
    RunError::Check { family: at.family, instance: at.instance, check: site.check, diagnostic }
}

/// Returns the error of two workers that touch one element.
pub(crate) fn workers_raced(graph: &Graph, tile: Option<u32>, at: VertexRace) -> RunError {
    let family = &graph.families[at.family];
    let codelet = &graph.codelets[family.codelet];
    let Race { field, element, first, second } = at.race;
    let (a, b, name) = (first.worker, second.worker, &codelet.name);
    let element = element_name(graph, family, field, element);
    let message = match (first.written, second.written) {
        (true, true) => format!("workers {a} and {b} of `{name}` both write `{element}`"),
        (true, false) => format!("worker {b} of `{name}` reads `{element}`, which worker {a} writes"),
        (false, _) => format!("worker {b} of `{name}` writes `{element}`, which worker {a} reads"),
    };
    let vertex_span = graph.origins.span(family.origin);
    let span = |t: WorkerAccess| Some(codelet.sites[t.site].span).filter(|s| !s.is_none()).unwrap_or(vertex_span);
    let role = |t: WorkerAccess| format!("worker {} {} it", t.worker, if t.written { "writes" } else { "reads" });
    let here = format!("{}: {}", location(graph, at.family, at.instance, tile), role(second));
    let mut d = Diagnostic::error("race::workers", span(second), message).here(here);
    if span(first) != span(second) {
        d = d.label(span(first), role(first));
    }
    d = made_by(d, graph, family, span(second));
    d = d.help("let each worker touch elements of its own, or gather the parts in a second compute set");
    let diagnostic = Box::new(graph.origins.user_first(d));
    RunError::Workers { family: at.family, instance: at.instance, diagnostic }
}

/// Returns ``in codelet `dot`, vertex [3] of compute set `main.matvec` on tile 7``.
fn location(graph: &Graph, family: FamilyId, instance: u64, tile: Option<u32>) -> String {
    let codelet = &graph.codelets[graph.families[family].codelet].name;
    let vertex = format!("in codelet `{codelet}`, {}", vertex_name(graph, family, instance));
    tile.map_or(vertex.clone(), |tile| format!("{vertex} on tile {tile}"))
}

/// Adds labels for the vertex and the calls that created it.
fn made_by(mut d: Diagnostic, graph: &Graph, family: &Family, main: Span) -> Diagnostic {
    let vertex_span = graph.origins.span(family.origin);
    if main != vertex_span {
        d = d.label(vertex_span, "the vertex");
    }
    calls(graph, family.origin).fold(d, |d, call| d.label(call, "made by this call"))
}

/// Returns the name of an element of a field by its row-major position: `y[3, 0]`.
fn element_name(graph: &Graph, family: &Family, field: FieldId, mut element: u64) -> String {
    let name = &graph.codelets[family.codelet].fields[field].name;
    let shape = family.fields.iter().find(|f| f.field == field).map(|f| f.shape()).unwrap_or_default();
    let mut index: Vec<u64> = vec![];
    for &n in shape.iter().rev() {
        index.push(element % n.max(1));
        element /= n.max(1);
    }
    index.reverse();
    if index.is_empty() { name.to_string() } else { format!("{name}{index:?}") }
}

/// Returns the spans of the calls around an origin, innermost first.
pub(crate) fn calls(graph: &Graph, origin: OriginId) -> impl Iterator<Item = Span> {
    let own = graph.origins.span(origin);
    let spans = graph.origins.chain(origin).skip(1).map(|o| o.span);
    spans.filter(move |&s| !s.is_none() && s != own && !s.in_library())
}

/// Returns ``vertex [3, 4] of compute set `main.matvec` ``.
fn vertex_name(graph: &Graph, family: FamilyId, instance: u64) -> String {
    let set = &graph.sets[graph.families[family].set].name;
    match &graph.index_of(family, instance)[..] {
        [] => format!("the vertex of compute set `{set}`"),
        index => format!("vertex {index:?} of compute set `{set}`"),
    }
}

fn code(check: Check) -> &'static str {
    match check {
        Check::Index => "run::index_out_of_range",
        Check::Division => "run::division_by_zero",
        Check::Shift => "run::shift_out_of_range",
        Check::Assert => "run::assertion_failed",
        Check::Iterations => "run::too_many_iterations",
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
        Check::Iterations => match b {
            loop_limits::TOTAL => {
                format!("the loops of this vertex run more than {a} iterations together, which is the limit")
            }
            loop_limits::COUNTED => format!("this loop would run more than {a} iterations, which is the limit"),
            _ => format!("this loop has run {a} iterations, which is the limit"),
        },
        Check::Empty => "the least or greatest index of an empty range".to_string(),
        Check::Shape => format!("the operands of `amp` do not fit: {a} against {b}"),
    }
}

fn help(check: Check, values: [i64; 2]) -> Option<&'static str> {
    match check {
        Check::Iterations if values[1] == loop_limits::TOTAL => {
            Some("if the loops are meant to run longer, raise the limit with `--limit total_iterations=N`")
        }
        Check::Iterations => Some("if the loop is meant to run longer, raise the limit with `--limit iterations=N`"),
        Check::Empty => Some("check that the range is not empty before you search it"),
        _ => None,
    }
}
