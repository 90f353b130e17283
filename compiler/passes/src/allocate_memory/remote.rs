//! Remote buffers in the memory beside each processor.
//!
//! A row is kept where it was written: beside each processor, the part that its tiles hold. If several steps write
//! rows of a buffer, each processor has room for the largest of its parts. An element that fills a row says nothing
//! about the place of the row. Rows that no other step writes are where they are read.

use crate::sizes::bytes_by_tile;
use girder_ir::graph::Graph;
use girder_ir::ids::StreamId;
use girder_ir::placement::Placement;
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;
use girder_machine::Machine;
use girder_source::Diagnostic;
use rustc_hash::FxHashMap;

/// Returns the bytes of remote buffers beside each processor.
pub fn remote_bytes(graph: &Graph, placement: &Placement, machine: &Machine) -> Vec<u64> {
    let mut all = vec![0; machine.ipus as usize];
    for (_, parts) in buffers(graph, placement, machine) {
        all.iter_mut().zip(parts).for_each(|(sum, bytes)| *sum = u64::saturating_add(*sum, bytes));
    }
    all
}

/// Returns the error of remote buffers that exceed the memory beside a processor.
pub(super) fn over_room(graph: &Graph, placement: &Placement, machine: &Machine) -> Option<Diagnostic> {
    let (all, room) = (remote_bytes(graph, placement, machine), machine.streaming.bytes);
    // Of several that are equally full, the first.
    let (ipu, &bytes) = all.iter().enumerate().rev().max_by_key(|(_, bytes)| **bytes).filter(|(_, b)| **b > room)?;
    let buffers = buffers(graph, placement, machine);
    let (largest, parts) = buffers.into_iter().rev().max_by_key(|(_, parts)| parts[ipu])?;
    let stream = &graph.streams[largest];
    let message = format!("the remote buffers take {bytes} bytes beside ipu({ipu}), but the memory there has {room}");
    let here = format!("{} bytes of `{}` are beside ipu({ipu}), whose tiles hold them", parts[ipu], stream.name);
    let d = Diagnostic::error("memory::remote", graph.origins.span(stream.origin), message).here(here);
    Some(d.help(
        "let the tiles of several processors hold what is written to a row, as by `on ipu(0..2)`, declare fewer rows, \
         or choose a larger target",
    ))
}

/// Returns the bytes of each buffer beside each processor.
fn buffers<'g>(graph: &'g Graph, placement: &Placement, machine: &Machine) -> Vec<(StreamId, Vec<u64>)> {
    let (mut written, mut read): (Views, Views) = Default::default();
    for step in graph.steps.values() {
        match &step.kind {
            StepKind::Effect(Effect::Write { stream, from }) => written.entry(*stream).or_default().push(from),
            StepKind::Effect(Effect::Read { stream, into }) => read.entry(*stream).or_default().push(into),
            _ => {}
        }
    }
    let remotes = graph.streams.iter().filter_map(|(id, s)| Some((id, s.rows?)));
    remotes
        .map(|(id, rows)| {
            let mut parts = vec![0u64; machine.ipus as usize];
            let of = |views: &Views<'g>| views.get(&id).cloned().unwrap_or_default();
            let placed = of(&written).into_iter().filter(|view| !repeats(view)).collect();
            let views = [placed, of(&read), of(&written)].into_iter().find(|views| !views.is_empty());
            for view in views.into_iter().flatten() {
                let mut bytes = vec![0u64; machine.ipus as usize];
                for (tile, n) in bytes_by_tile(graph, placement, view) {
                    bytes[machine.ipu_of(tile) as usize] += n;
                }
                let all = |n: u64| n.saturating_mul(rows.into());
                parts.iter_mut().zip(bytes).for_each(|(most, n)| *most = all(n).max(*most));
            }
            (id, parts)
        })
        .collect()
}

/// Returns whether an element stands for several ones of a row.
fn repeats(view: &View) -> bool {
    view.parts.iter().any(|part| part.len.iter().zip(&part.stride).any(|(&len, &stride)| len > 1 && stride == 0))
}

/// The views that steps move to or from a buffer.
type Views<'g> = FxHashMap<StreamId, Vec<&'g View>>;
