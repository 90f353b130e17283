//! Consecutive steps that compute element by element run as one: their codelets become one codelet, whose loop reads
//! each element once, hands on what they hand on in registers, and writes what somebody may read.
//!
//! - `body` sees whether a codelet computes element by element.
//! - `space`, `map` see a step as a function of the elements at each place of a box, whatever its vertices are.
//! - `chain` decides which steps run as one, and what of their elements is in memory (see the note on fused maps).
//! - `weave` makes the codelet.
//!
//! The vertices of a fused step are rows of places, of a length that suits the host: the modelled program has its own.
//!
//! Invariant: fused steps cannot fail, and leave what they would leave one after another in all memory that anything
//! else reads.

mod body;
mod space;
mod map;
mod chain;
mod weave;

pub(crate) use weave::Recipe;

use crate::error::EngineError;
use crate::hosted::Hosted;
use crate::kernels::{KernelSet, RowLines};
use chain::{Chain, Kept, Lifetimes, MOST_PLACES};
use cranelift_entity::SecondaryMap;
use girder_codegen::abi::Addressing;
use girder_codelet::sizes::Shape;
use girder_ir::ids::{FamilyId, StepId};
use girder_ir::program::StepKind;
use map::{Function, Map};
use smallvec::SmallVec;

/// Places of a row where there are many.
const ROW: u64 = 2048;
/// Rows that there should be at least, so that threads can share them.
const FEW_ROWS: u64 = 16;
/// Rows begin at a multiple of so many places, so that vectors do as in one long row.
const VECTOR: u64 = 16;

/// Consecutive steps that run as one.
#[derive(Clone)]
pub(crate) struct Fusion {
    /// How many.
    pub steps: usize,
    /// One of theirs.
    pub family: FamilyId,
    /// Bits of the constants.
    pub consts: Vec<u64>,
    /// Rows of one length each.
    pub pieces: Vec<Piece>,
}

/// Rows of a kernel on one line.
#[derive(Clone)]
pub(crate) struct Piece {
    pub kernel: usize,
    pub rows: u64,
    /// First byte of each edge field in the first row.
    pub start: Vec<u64>,
    /// Bytes from row to row.
    pub step: Vec<i64>,
    /// Elements that a row touches.
    pub elements: u64,
}

/// The steps of a graph that run as one with those after them, and the kernels that they want.
pub(crate) fn fusions<'g>(
    graph: Hosted<'g>,
    wanted: &mut KernelSet<'g>,
) -> Result<SecondaryMap<StepId, Option<Fusion>>, EngineError> {
    let lifetimes = Lifetimes::of(&graph);
    let mut fusions = SecondaryMap::new();
    for step in graph.graph.steps.values() {
        let StepKind::Seq(steps) = &step.kind else { continue };
        if steps.len() < 2 {
            continue;
        }
        let maps = steps.iter().map(|&s| map(graph, wanted, s)).collect::<Result<Vec<_>, _>>()?;
        let mut at = 0;
        while at < steps.len() {
            let found = longest(graph, &lifetimes, &steps[at..], &maps[at..]);
            let taken = found.as_ref().map_or(1, |(chain, _)| chain.maps.len());
            if let Some((chain, kept)) = found {
                fusions[steps[at]] = fusion(graph, wanted, &chain, &kept)?;
            }
            at += taken;
        }
    }
    Ok(fusions)
}

/// What a step is.
fn map<'g>(graph: Hosted<'g>, wanted: &mut KernelSet<'g>, step: StepId) -> Result<Option<Map<'g>>, EngineError> {
    match graph.steps[step].kind {
        StepKind::Execute(set) => Map::of_set(graph, wanted, set),
        StepKind::Copy(copy) => Ok(Map::of_copy(graph, copy)),
        _ => Ok(None),
    }
}

/// As many of some steps, from the first on, as can run as one; at least two.
fn longest<'g>(
    graph: Hosted<'_>,
    lifetimes: &Lifetimes,
    steps: &[StepId],
    maps: &[Option<Map<'g>>],
) -> Option<(Chain<'g>, Kept)> {
    let mut chain = Chain::new(maps[0].as_ref()?);
    let mut best = None;
    for (step, map) in steps.iter().zip(maps).skip(1) {
        if !map.as_ref().is_some_and(|map| chain.take(map)) {
            break;
        }
        let kept = chain.kept(&graph, lifetimes, steps[0], *step).filter(|_| chain.computes());
        best = kept.map(|kept| (chain.clone(), kept)).or(best);
    }
    best
}

/// How a chain runs. `None` if it has no vertex.
fn fusion(
    graph: Hosted<'_>,
    wanted: &mut KernelSet<'_>,
    chain: &Chain<'_>,
    kept: &Kept,
) -> Result<Option<Fusion>, EngineError> {
    let Some(family) = chain.maps.iter().find_map(|m| m.family) else { return Ok(None) };
    let accesses = &kept.space.accesses;
    let inner: Vec<i64> = accesses.iter().map(|a| a.strides.last().copied().unwrap_or(0)).collect();
    let outer: Vec<i64> = accesses.iter().map(|a| if a.strides.len() > 1 { a.strides[0] } else { 0 }).collect();
    let along = |places: u64| inner.iter().map(|s| s * places as i64).collect::<Vec<_>>();
    let mut piece = |first: u64, rows: u64, places: u64, step: Vec<i64>| {
        let recipe = Recipe::new(chain, kept, places);
        let lengths = inner.iter().map(|&s| if s == 0 { Shape::new() } else { Shape::from_slice(&[places]) });
        let shaped = wanted.woven(recipe.clone(), || recipe.codelet(&graph, chain), lengths.collect())?;
        let strides = inner.iter().map(|&s| if s == 0 { SmallVec::new() } else { SmallVec::from_slice(&[s]) });
        let lines = RowLines { length: u64::MAX, steps: step.clone(), shares_consts: true };
        let kernel = wanted.want(shaped, strides.collect(), Addressing::Affine, Some(lines));
        let start = accesses.iter().zip(&inner).map(|(a, s)| (a.start + s * first as i64) as u64).collect();
        Ok(Piece { kernel, rows, start, step, elements: places * inner.len() as u64 })
    };
    let pieces = match kept.space.extents[..] {
        [rows, places] => vec![piece(0, rows, places, outer)?],
        _ => {
            let all = kept.space.len();
            let places = row_of(chain, all);
            let (rows, rest) = (all / places, all % places);
            let mut pieces = vec![piece(0, rows, places, along(places))?];
            if rest > 0 {
                pieces.push(piece(all - rest, 1, rest, along(rest))?);
            }
            pieces
        }
    };
    let consts = chain.maps.iter().flat_map(|m| match &m.function {
        Function::Codelet(applied) => &applied.consts[..],
        Function::Copy(_) => &[],
    });
    let consts = consts.map(|(_, value)| value.bits).collect();
    Ok(Some(Fusion { steps: chain.maps.len(), family, consts, pieces }))
}

/// Places of a row, where there are `all`: a multiple of what a vertex of the steps has, so that their rows begin where
/// those of neighbouring steps do.
fn row_of(chain: &Chain<'_>, all: u64) -> u64 {
    let grain = chain.maps.iter().map(|m| m.grain).find(|&g| g > 1).unwrap_or(1);
    let unit = lcm(grain, VECTOR).filter(|&unit| unit <= ROW).unwrap_or(VECTOR);
    let wanted = (all / FEW_ROWS).clamp(unit, ROW);
    (wanted / unit * unit).min(all).min(MOST_PLACES)
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
