//! Fuses consecutive elementwise steps: their codelets become one codelet, whose loop loads each element once, passes
//! values on in registers, and stores only what another step may read.
//!
//! - `space` and `map` describe a step as a function of the elements at each iteration of a box, whatever its vertices
//!   are; `girder_codelet::elementwise` recognises the codelets.
//! - `lifetimes` finds the steps between which a variable is used.
//! - `chain` decides which steps are fused and which elements are in memory (see the note on fused maps).
//! - `codelet` builds the codelet; `signature` is its key.
//!
//! A row of a fused step has a length that suits the host, independently of the vertices of the modelled program.
//!
//! Invariant: fused steps cannot fail, and leave all memory that other code reads as the separate steps would.

mod space;
mod map;
pub(crate) mod lifetimes;
mod chain;
pub(crate) mod signature;
mod codelet;

use crate::error::HostError;
use crate::hosted::HostedGraph;
use crate::kernels::{KernelId, KernelSet, RowLines};
use chain::{Chain, MOST_ITERATIONS, MemorySlots};
use codelet::{codelet, signature};
use cranelift_entity::SecondaryMap;
use girder_codelet::kernel::Addressing;
use girder_codelet::sizes::Shape;
use girder_ir::ids::{FamilyId, StepId};
use girder_ir::program::StepKind;
use lifetimes::Lifetimes;
use map::{Function, Map};
use smallvec::SmallVec;

/// Iterations of a row of a long space.
const ROW: u64 = 2048;
/// Minimal number of rows of a long space, so that threads can share them.
const FEWEST_ROWS: u64 = 16;
/// Rows begin at a multiple of this many iterations, so that they are cut into the same vectors as one long row.
const VECTOR: u64 = 16;

/// Consecutive steps that run as one.
#[derive(Clone, Debug)]
pub struct FusedSteps {
    /// The number of steps.
    pub steps: usize,
    /// A family of one of the steps.
    pub family: FamilyId,
    /// Bits of the constants.
    pub consts: Vec<u64>,
    /// The rows, grouped by length.
    pub rows: Vec<FusedRows>,
}

/// Rows of one length on one line.
#[derive(Clone, Debug)]
pub struct FusedRows {
    /// The kernel that runs a row.
    pub kernel: KernelId,
    /// The number of rows.
    pub count: u64,
    /// First byte of each edge field in the first row.
    pub start: Vec<u64>,
    /// Bytes of each edge field from row to row.
    pub step: Vec<i64>,
    /// Elements that a row touches.
    pub elements: u64,
}

/// Finds the steps of a graph to fuse, keyed by the first of them, and requests their kernels.
pub(crate) fn fuse_steps<'g>(
    graph: HostedGraph<'g>,
    kernels: &mut KernelSet<'g>,
) -> Result<SecondaryMap<StepId, Option<FusedSteps>>, HostError> {
    let lifetimes = Lifetimes::of(&graph);
    let mut fused = SecondaryMap::new();
    for step in graph.graph.steps.values() {
        let StepKind::Seq(steps) = &step.kind else { continue };
        if steps.len() < 2 {
            continue;
        }
        let maps = steps.iter().map(|&s| map(graph, kernels, s)).collect::<Result<Vec<_>, _>>()?;
        let mut at = 0;
        while at < steps.len() {
            let found = longest(graph, &lifetimes, &steps[at..], &maps[at..]);
            let taken = found.as_ref().map_or(1, |(chain, _)| chain.maps.len());
            if let Some((chain, memory)) = found {
                fused[steps[at]] = fused_steps(graph, kernels, &chain, &memory)?;
            }
            at += taken;
        }
    }
    Ok(fused)
}

/// Returns a step as a map, or `None` if it is not a map.
fn map<'g>(graph: HostedGraph<'g>, kernels: &mut KernelSet<'g>, step: StepId) -> Result<Option<Map<'g>>, HostError> {
    match graph.steps[step].kind {
        StepKind::Execute(set) => Map::of_set(graph, kernels, set),
        StepKind::Copy(copy) => Ok(Map::of_copy(graph, copy)),
        _ => Ok(None),
    }
}

/// Returns the longest chain of steps from the first one on, or `None` if it has fewer than two.
fn longest<'g>(
    graph: HostedGraph<'_>,
    lifetimes: &Lifetimes,
    steps: &[StepId],
    maps: &[Option<Map<'g>>],
) -> Option<(Chain<'g>, MemorySlots)> {
    let mut chain = Chain::new(maps[0].as_ref()?);
    let mut best = None;
    for (step, map) in steps.iter().zip(maps).skip(1) {
        if !map.as_ref().is_some_and(|map| chain.take(map)) {
            break;
        }
        let memory = chain.memory_slots(&graph, lifetimes, steps[0], *step).filter(|_| chain.computes());
        best = memory.map(|memory| (chain.clone(), memory)).or(best);
    }
    best
}

/// Plans the execution of a chain. Returns `None` if it has no vertex.
fn fused_steps(
    graph: HostedGraph<'_>,
    kernels: &mut KernelSet<'_>,
    chain: &Chain<'_>,
    memory: &MemorySlots,
) -> Result<Option<FusedSteps>, HostError> {
    let Some(family) = chain.maps.iter().find_map(|m| m.family) else { return Ok(None) };
    let accesses = &memory.space.accesses;
    let inner: Vec<i64> = accesses.iter().map(|a| a.strides.last().copied().unwrap_or(0)).collect();
    let outer: Vec<i64> = accesses.iter().map(|a| if a.strides.len() > 1 { a.strides[0] } else { 0 }).collect();
    let along = |iterations: u64| inner.iter().map(|s| s * iterations as i64).collect::<Vec<_>>();
    let mut rows_of = |first: u64, count: u64, length: u64, step: Vec<i64>| {
        let signature = signature(chain, memory, length);
        let shapes = inner.iter().map(|&s| if s == 0 { Shape::new() } else { Shape::from_slice(&[length]) });
        let shaped = kernels.fused(signature.clone(), || codelet(&signature, &graph, chain), shapes.collect())?;
        let strides = inner.iter().map(|&s| if s == 0 { SmallVec::new() } else { SmallVec::from_slice(&[s]) });
        let lines = RowLines { length: u64::MAX, steps: step.clone(), shares_consts: true };
        let kernel = kernels.kernel(shaped, strides.collect(), Addressing::Affine, Some(lines));
        let start = accesses.iter().zip(&inner).map(|(a, s)| (a.start + s * first as i64) as u64).collect();
        Ok(FusedRows { kernel, count, start, step, elements: length * inner.len() as u64 })
    };
    let rows = match memory.space.extents[..] {
        [count, length] => vec![rows_of(0, count, length, outer)?],
        _ => {
            let all = memory.space.len();
            let length = row_length(chain, all);
            let (count, rest) = (all / length, all % length);
            let mut rows = vec![rows_of(0, count, length, along(length))?];
            if rest > 0 {
                rows.push(rows_of(all - rest, 1, rest, along(rest))?);
            }
            rows
        }
    };
    let consts = chain.maps.iter().flat_map(|m| match &m.function {
        Function::Codelet(applied) => &applied.consts[..],
        Function::Copy(_) => &[],
    });
    let consts = consts.map(|(_, value)| value.bits).collect();
    Ok(Some(FusedSteps { steps: chain.maps.len(), family, consts, rows }))
}

/// Returns the length of a row of a space of `all` iterations: a multiple of the iterations of a vertex, so that rows
/// begin where those of neighbouring steps do.
fn row_length(chain: &Chain<'_>, all: u64) -> u64 {
    let grain = chain.maps.iter().map(|m| m.grain).find(|&g| g > 1).unwrap_or(1);
    let unit = lcm(grain, VECTOR).filter(|&unit| unit <= ROW).unwrap_or(VECTOR);
    let length = (all / FEWEST_ROWS).clamp(unit, ROW);
    (length / unit * unit).min(all).min(MOST_ITERATIONS)
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}

#[cfg(test)]
mod tests;
