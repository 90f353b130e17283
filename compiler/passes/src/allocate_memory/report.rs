//! What does not fit, in the user's names.
//!
//! Invariant: the message names the fullest tile, by how much it is over, and the largest of what is on it at its
//! fullest moment.

use super::inventory::Need;
use crate::liveness::Liveness;
use girder_ir::graph::Graph;
use girder_ir::layout::Content;
use girder_machine::Machine;
use girder_source::{Diagnostic, Span};
use std::cmp::Reverse;

/// Blocks that are named.
const SHOWN: usize = 6;

/// The error of tiles that do not fit (`over` is not empty).
pub(super) fn out_of_memory(
    graph: &Graph,
    liveness: &Liveness,
    machine: &Machine,
    needs: &[Vec<Need>],
    over: &[(u32, u64)],
) -> Diagnostic {
    let usable = machine.usable_bytes() as u64;
    let (tile, peak) = over.iter().copied().max_by_key(|&(t, p)| (p, Reverse(t))).unwrap_or((0, 0));
    let needs = &needs[tile as usize];
    let moment = fullest_moment(needs);
    let code: u64 = needs.iter().filter(|n| matches!(n.content, Content::Code(_))).map(|n| n.bytes).sum();
    let mut message = if peak > machine.memory.bytes_per_tile as u64 && sum_at(needs, moment) <= usable {
        format!("tile {tile} has {code} bytes of code, more than fit where code can run")
    } else {
        format!("tile {tile} needs {peak} bytes, but has {usable}: {} too many", peak - usable)
    };
    match over.len() {
        1 => {}
        2 => message += " (and one other tile does not fit)",
        n => message += &format!(" (and {} other tiles do not fit)", n - 1),
    }
    let mut live: Vec<&Need> = needs.iter().filter(|n| is_live(n, moment)).collect();
    live.sort_by_key(|n| (Reverse(n.bytes), n.content));
    let mut d = Diagnostic::error("memory::out_of_memory", Span::NONE, message);
    for need in live.iter().take(SHOWN) {
        let (name, span) = describe(graph, need.content);
        let when = if need.live.is_some() { "for a time" } else { "always" };
        d = d.label(span, format!("{name}: {} bytes on tile {tile}, {when}", need.bytes));
    }
    let step = graph.steps.iter().find(|(id, _)| liveness.order.point(*id) == moment);
    if let Some((_, step)) = step.filter(|_| live.iter().any(|n| n.live.is_some())) {
        d = d.label(graph.origins.span(step.origin), "the tile is fullest at this step");
    }
    d.help("spread the largest of these over more tiles with `map`, free tiles that hold more than others, or take a larger `--target`")
}

fn is_live(need: &Need, moment: u32) -> bool {
    need.live.as_ref().is_none_or(|l| l.contains(&moment))
}

fn sum_at(needs: &[Need], moment: u32) -> u64 {
    needs.iter().filter(|n| is_live(n, moment)).map(|n| n.bytes).sum()
}

/// The first point at which the most bytes are live.
fn fullest_moment(needs: &[Need]) -> u32 {
    let starts = needs.iter().filter_map(|n| n.live.as_ref().filter(|l| !l.is_empty())).map(|l| l.start);
    let mut starts: Vec<u32> = starts.collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().max_by_key(|&p| (sum_at(needs, p), Reverse(p))).unwrap_or(0)
}

/// A content in the user's names, and where it comes from.
fn describe(graph: &Graph, content: Content) -> (String, Span) {
    let (name, origin) = match content {
        Content::Code(spec) => {
            let codelet = &graph.codelets[spec];
            return (format!("the code of `{}`", codelet.name), codelet.span);
        }
        Content::Var(id) => (format!("`{}`", graph.vars[id].name), graph.vars[id].origin),
        Content::VertexState(id) => (format!("the vertices of `{}`", graph.sets[id].name), graph.sets[id].origin),
        Content::Stack(id) => {
            let codelets = graph.sets[id].families.iter().map(|&f| &graph.codelets[graph.families[f].codelet]);
            match codelets.max_by_key(|c| super::inventory::stack_bytes(c)) {
                Some(codelet) => {
                    return (format!("the local arrays of `{}`", codelet.name), codelet.span);
                }
                None => (format!("the local arrays of `{}`", graph.sets[id].name), graph.sets[id].origin),
            }
        }
        Content::SetBuffer(id, _) => (format!("a landing buffer of `{}`", graph.sets[id].name), graph.sets[id].origin),
        Content::CopyBuffer(id, _) => {
            (format!("a landing buffer of `{}`", graph.copies[id].name), graph.copies[id].origin)
        }
    };
    (name, graph.origins.span(origin))
}
