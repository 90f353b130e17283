//! What needs room on each tile, how much, and when.
//!
//! # Note: Estimates
//! No code of a tile machine is made, so code and vertex state are estimates, the same for every engine: a codelet takes
//! 8 bytes for each expression and each statement of its body; a vertex takes 4 bytes for its codelet, 4 for the address
//! of each field, 4 for each of a field's dimensions, and its constants, each in whole words. A worker that runs a vertex
//! has room for all local arrays of its codelet, each in whole double words; a `multi` vertex runs on all workers.
//!
//! Invariant: blocks of a tile ascend by content, and each content comes once.

use crate::liveness::Liveness;
use cranelift_entity::{EntityRef, SecondaryMap};
use girder_ir::codelet::{Block, Codelet, Local, Stmt};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId};
use girder_ir::layout::Content;
use girder_ir::plan::Homes;
use girder_ir::program::StepKind;
use girder_ir::stage::Scheduled;
use girder_machine::Machine;
use std::collections::BTreeMap;
use std::ops::Range;

/// Something that needs a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub content: Content,
    pub bytes: u64,
    /// `None` is always.
    pub live: Option<Range<u32>>,
}

/// What each tile needs, by tile.
pub(super) fn of(input: &Scheduled, liveness: &Liveness, machine: &Machine) -> Vec<Vec<Need>> {
    let mut tiles: Vec<Vec<Need>> = vec![vec![]; machine.tiles() as usize];
    code_and_state(input, &mut tiles);
    let steps = steps_by_work(input);
    for (id, var) in &input.vars {
        let Some(mapping) = &input.placement.vars[id] else { continue };
        let live = (!var.is_persistent()).then(|| liveness.ranges[id.index()].clone().unwrap_or(0..0));
        for (tile, bytes) in Homes::of(var, mapping).blocks {
            tiles[tile as usize].push(Need { content: Content::Var(id), bytes: bytes as u64, live: live.clone() });
        }
    }
    for set in input.sets.keys() {
        let live = liveness.hull(steps.sets[set].iter().copied()).unwrap_or(0..0);
        for (tile, bytes) in stacks(input, set, machine.chip.workers) {
            tiles[tile as usize].push(Need { content: Content::Stack(set), bytes, live: Some(live.clone()) });
        }
        for (i, b) in input.plan.sets[set].buffers.iter().enumerate() {
            let content = Content::SetBuffer(set, i as u32);
            tiles[b.tile as usize].push(Need { content, bytes: b.bytes as u64, live: Some(live.clone()) });
        }
    }
    for copy in input.copies.keys() {
        let live = liveness.hull(steps.copies[copy].iter().copied()).unwrap_or(0..0);
        for (i, b) in input.plan.copies[copy].buffers.iter().enumerate() {
            let content = Content::CopyBuffer(copy, i as u32);
            tiles[b.tile as usize].push(Need { content, bytes: b.bytes as u64, live: Some(live.clone()) });
        }
    }
    for needs in &mut tiles {
        needs.sort_unstable_by_key(|n| n.content);
    }
    tiles
}

/// The steps that execute each compute set and each copy.
struct StepsByWork {
    sets: SecondaryMap<ComputeSetId, Vec<StepId>>,
    copies: SecondaryMap<CopyId, Vec<StepId>>,
}

fn steps_by_work(graph: &Graph) -> StepsByWork {
    let mut steps = StepsByWork { sets: SecondaryMap::new(), copies: SecondaryMap::new() };
    for (id, step) in &graph.steps {
        match step.kind {
            StepKind::Execute(set) => steps.sets[set].push(id),
            StepKind::Copy(copy) => steps.copies[copy].push(id),
            _ => {}
        }
    }
    steps
}

fn code_and_state(input: &Scheduled, tiles: &mut [Vec<Need>]) {
    let mut codes = vec![];
    for set in input.sets.keys() {
        let mut state: BTreeMap<u32, u64> = BTreeMap::new();
        for &id in &input.sets[set].families {
            let family = &input.families[id];
            let Some(map) = &input.placement.families[id] else { continue };
            let each = state_bytes(&input.codelets[family.codelet], family);
            for (tile, count) in map.counts(&family.domain) {
                *state.entry(tile).or_default() += count * each;
                codes.push((tile, family.codelet));
            }
        }
        for (tile, bytes) in state {
            tiles[tile as usize].push(Need { content: Content::VertexState(set), bytes, live: None });
        }
    }
    codes.sort_unstable();
    codes.dedup();
    for (tile, spec) in codes {
        let bytes = code_bytes(&input.codelets[spec]);
        tiles[tile as usize].push(Need { content: Content::Code(spec), bytes, live: None });
    }
}

/// Bytes of local arrays on each tile while a compute set runs: those of the vertices that need the most, one per worker.
fn stacks(input: &Scheduled, set: ComputeSetId, workers: u32) -> BTreeMap<u32, u64> {
    let mut vertices: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for &id in &input.sets[set].families {
        let family = &input.families[id];
        let codelet = &input.codelets[family.codelet];
        let (bytes, Some(map)) = (stack_bytes(codelet), &input.placement.families[id]) else { continue };
        if bytes == 0 {
            continue;
        }
        for (tile, count) in map.counts(&family.domain) {
            let contexts = if codelet.multi { workers as u64 } else { count.min(workers as u64) };
            vertices.entry(tile).or_default().push((bytes, contexts));
        }
    }
    let sum = |mut needs: Vec<(u64, u64)>| {
        needs.sort_unstable_by(|a, b| b.cmp(a));
        let mut free = workers as u64;
        let taken = needs.into_iter().map(|(bytes, contexts)| {
            let here = contexts.min(free);
            free -= here;
            bytes.saturating_mul(here)
        });
        taken.fold(0, u64::saturating_add)
    };
    vertices.into_iter().map(|(tile, needs)| (tile, sum(needs))).collect()
}

/// Bytes of a codelet's local arrays for one worker.
pub(super) fn stack_bytes(codelet: &Codelet) -> u64 {
    let array = |l: &Local| {
        let elements = l.array.as_ref()?.iter().fold(1, |n: u64, &d| n.saturating_mul(d as u64));
        Some(elements.saturating_mul(l.ty.bytes() as u64).next_multiple_of(8))
    };
    codelet.locals.values().filter_map(array).fold(0, u64::saturating_add)
}

/// Estimated bytes of a codelet's code.
pub fn code_bytes(codelet: &Codelet) -> u64 {
    8 * (codelet.exprs.len() as u64 + statements(&codelet.body))
}

/// Recursion is as deep as statements are nested, which the limit on nesting bounds.
fn statements(block: &Block) -> u64 {
    let inside = |stmt: &Stmt| match stmt {
        Stmt::For { body, .. } | Stmt::Labelled { body, .. } => statements(body),
        Stmt::While { before, body, .. } => statements(before) + statements(body),
        Stmt::If { then, els, .. } => statements(then) + statements(els),
        Stmt::Reduce(r) => statements(&r.filter_before) + statements(&r.before),
        _ => 0,
    };
    block.iter().map(|s| 1 + inside(s)).sum()
}

/// Estimated bytes of the state of one vertex.
fn state_bytes(codelet: &Codelet, family: &Family) -> u64 {
    let edges: u64 = codelet.edges().map(|(_, f)| 4 + 4 * f.dims.len() as u64).sum();
    let consts = family.consts.iter().map(|(f, _)| codelet.fields[*f].ty.bytes().next_multiple_of(4) as u64);
    4 + edges + consts.sum::<u64>()
}
