//! Fuses elementwise units of neighbouring steps: their codelets become one codelet, whose loop loads each element
//! once, passes values on in registers, and stores only what another step may read.
//!
//! `girder_fusion` recognises the steps and builds the codelets.
//!
//! A row of a fused step has a length that suits the host, independently of the vertices of the modelled program.
//!
//! Invariant: fused steps cannot fail, and leave all memory that other code reads as the separate steps would.

use crate::error::HostError;
use crate::hosted::HostedGraph;
use crate::kernels::{KernelId, KernelSet, RowLines};
use crate::plan::dependences::Window;
use crate::plan::units::{SetParts, StepUnit, Unit, UnitAccesses};
use girder_codelet::elementwise::Elementwise;
use girder_codelet::interpret::FREE_ITERATIONS;
use girder_codelet::kernel::Addressing;
use girder_codelet::sizes::Shape;
use girder_fusion::chain::{Chain, MemorySlots};
use girder_fusion::codelet::{codelet, signature};
use girder_fusion::map::{AddressedGraph, Function, Map};
use girder_fusion::signature::LoopLength;
use girder_ir::ids::FamilyId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Iterations of a row of a long space.
const ROW: u64 = 2048;
/// Minimal number of rows of a long space, so that threads can share them.
const FEWEST_ROWS: u64 = 16;
/// Rows begin at a multiple of this many iterations, so that they are cut into the same vectors as one long row.
const VECTOR: u64 = 16;
/// Maximal number of iterations of a row: such loops are not counted (see the note on iterations in
/// `girder_codelet::interpret`).
const MOST_ITERATIONS: u64 = FREE_ITERATIONS;

/// Units that run as one map.
#[derive(Clone, Debug)]
pub struct FusedSteps {
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

/// Finds chains of units.
pub(crate) struct ChainFinder<'g, 'a> {
    graph: HostedGraph<'g>,
    parts: &'a SetParts,
    accesses: &'a UnitAccesses,
    maps: FxHashMap<Unit, Option<Map<'g>>>,
}

impl<'g, 'a> ChainFinder<'g, 'a> {
    /// Creates a table without maps.
    pub fn new(graph: HostedGraph<'g>, parts: &'a SetParts, accesses: &'a UnitAccesses) -> ChainFinder<'g, 'a> {
        ChainFinder { graph, parts, accesses, maps: FxHashMap::default() }
    }

    /// Returns the longest chain of units from the first one on, by their positions, or `None` if there is none. A
    /// single unit is a chain only if its vertices are boxes of several shapes, which then become rows.
    pub fn longest(
        &mut self,
        kernels: &mut KernelSet<'g>,
        window: &Window<'_>,
    ) -> Result<Option<(Vec<usize>, FusedSteps)>, HostError> {
        let units = window.units;
        let (at, rest) = window.split();
        let Some(first) = self.map(kernels, units[at].unit)? else { return Ok(None) };
        let mut chain = Chain::new(&first);
        let mut taken = vec![at];
        let mut best: Option<(Chain<'g>, MemorySlots, Vec<usize>)> = None;
        let several = matches!(units[at].unit, Unit::Vertices(part) if self.parts.parts[part].families.len() > 1);
        if several {
            best = self.memory_slots(&chain, units, &taken).map(|memory| (chain.clone(), memory, taken.clone()));
        }
        for &at in rest {
            let map = self.map(kernels, units[at].unit)?;
            if map.is_some_and(|map| window.dependences.can_follow(at, &taken) && chain.take(&map)) {
                taken.push(at);
                let memory = self.memory_slots(&chain, units, &taken);
                best = memory.map(|memory| (chain.clone(), memory, taken.clone())).or(best);
            }
        }
        let Some((chain, memory, taken)) = best else { return Ok(None) };
        Ok(fused_steps(self.graph, kernels, &chain, &memory)?.map(|fused| (taken, fused)))
    }

    /// Returns what a chain of units leaves in memory, or `None` if the chain computes nothing or is not rows.
    fn memory_slots(&self, chain: &Chain<'g>, units: &[StepUnit], taken: &[usize]) -> Option<MemorySlots> {
        let of_chain: Vec<StepUnit> = taken.iter().map(|&at| units[at]).collect();
        let inside = |var| !self.graph.vars[var].is_persistent() && self.accesses.is_within(var, &of_chain);
        chain.memory_slots(inside).filter(|memory| chain.computes() && is_rows(memory))
    }

    /// Returns a unit as a map, or `None` if it is not a map.
    fn map(&mut self, kernels: &mut KernelSet<'g>, unit: Unit) -> Result<Option<Map<'g>>, HostError> {
        if let Some(known) = self.maps.get(&unit) {
            return Ok(known.clone());
        }
        let graph = self.graph;
        let addressed = AddressedGraph { graph: graph.graph, offsets: &graph.layout.offsets };
        let map = match unit {
            Unit::Vertices(part) => Map::of_families(addressed, &self.parts.parts[part].families, |family| {
                let Some(shaped) = kernels.shaped(family)? else { return Ok(None) };
                let (sizes, facts) = kernels.known(shaped);
                Ok(Elementwise::of(&graph.graph.codelets[family.codelet], sizes, facts))
            })?,
            Unit::Copy(copy) => Map::of_copy(addressed, copy),
        };
        self.maps.insert(unit, map.clone());
        Ok(map)
    }
}

/// Returns whether the iterations are one row, or rows that are not too long.
fn is_rows(memory: &MemorySlots) -> bool {
    match &memory.space.extents[..] {
        [] | [_] => true,
        [_, inner] => *inner <= MOST_ITERATIONS,
        _ => false,
    }
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
        let along = inner.iter().map(|&s| if s == 0 { SmallVec::new() } else { SmallVec::from_slice(&[0]) });
        let loops = SmallVec::from_slice(&[LoopLength::Fixed(length)]);
        let signature = signature(chain, memory, loops, along);
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
    Ok(Some(FusedSteps { family, consts, rows }))
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
