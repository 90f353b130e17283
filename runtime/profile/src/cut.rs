//! A cut of a pipeline into stages that are more even.
//!
//! A *part* of a stage is a call in its text, with the steps that reverse it: what can move to another stage. If a part
//! is too large for an even cut, the calls in it are parts instead. A step outside of all calls belongs to the part
//! before it, and in the reverse to the one after it. What the pipeline adds, such as rings, stays with its place.
//!
//! The cycles of a part on its processors are known, and those of a stage are the sum over its parts, divided by the
//! number of processors. So a cut is estimated: a stage of other parts is placed in another way.
//!
//! Invariant: the parts keep their order, and each stage has at least one. The params and states of a stage, with a
//! share of those that optimisers keep, leave a fifth of the memory of its tiles to other values.

use crate::kept::read_by;
use crate::profile::{CalledProgram, Cut, CutStage};
use girder_ir::family::Field;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::{FamilyId, StepId, VarId};
use girder_ir::program::StepKind;
use girder_machine::Machine;
use girder_source::{OriginId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// The greatest number of parts that are cut.
const MOST_PARTS: usize = 128;

/// Steps of one call, with those that reverse them.
struct Piece {
    /// The calls around them, from the stage inwards.
    path: Vec<OriginId>,
    stage: usize,
    /// Cycles of a slot, times the processors.
    work: u64,
    /// Bytes of params and states that they are the first to read.
    bytes: u64,
}

/// Pieces that move together: those from one index up to another.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    end: usize,
    /// The number of calls in the path that name it.
    depth: usize,
}

/// A place of a pipeline.
struct PipelinePlace<'a> {
    ipus: &'a [u32],
    /// Cycles of a slot of what the pipeline adds.
    fixed: u64,
}

/// The pieces of a pipeline in the order of its text, and the places of its stages.
struct Model<'a> {
    graph: &'a Graph,
    places: Vec<PipelinePlace<'a>>,
    pieces: Vec<Piece>,
    /// The bytes for params and states on the tiles of a processor.
    room: u64,
}

/// Returns a more even cut of a pipeline with the given phases, if there is one; `row` has the executions and cycles of
/// a step.
pub(crate) fn cut(
    graph: &Graph,
    machine: &Machine,
    phases: &[&CalledProgram],
    row: impl Fn(StepId) -> Option<(u64, u64)>,
) -> Option<Cut> {
    let model = Model::new(graph, machine, phases, row)?;
    let now = (0..model.places.len()).map(|stage| model.cycles_now(stage)).max()?;
    let mut open = FxHashSet::default();
    let mut found: Vec<(u64, Vec<Part>, Vec<usize>)> = vec![];
    loop {
        let parts = model.parts(&open);
        if parts.len() > MOST_PARTS {
            break;
        }
        if let Some((most, ends)) = model.best(&parts) {
            found.push((most, parts.clone(), ends));
        }
        // The part with the most work of those that have calls inside.
        let large = parts.iter().filter(|part| model.has_inner_calls(part)).max_by_key(|part| model.work(part));
        let Some(large) = large else { break };
        open.insert(model.pieces[large.first].path[large.depth - 1]);
    }
    let best = found.iter().map(|f| f.0).min()?;
    let (most, parts, ends) = found.into_iter().find(|f| f.0 <= best + best / 20)?;
    (most + most / 20 < now).then(|| model.told(most, &parts, &ends))
}

impl<'a> Model<'a> {
    /// Returns the model of a pipeline, unless a place has several stages with others between them.
    fn new(
        graph: &'a Graph,
        machine: &Machine,
        phases: &[&'a CalledProgram],
        row: impl Fn(StepId) -> Option<(u64, u64)>,
    ) -> Option<Model<'a>> {
        let mut model = Model { graph, places: vec![], pieces: vec![], room: 0 };
        let mut of: FxHashMap<Vec<OriginId>, usize> = FxHashMap::default();
        let mut read: FxHashSet<VarId> = FxHashSet::default();
        for &phase in phases {
            let steps = within(graph, graph.programs[phase.program].body);
            let place = model.places.iter().position(|p| p.ipus == phase.ipus);
            if place.is_none() {
                model.places.push(PipelinePlace { ipus: &phase.ipus, fixed: 0 });
            } else if !steps.iter().any(|&s| graph.steps[s].reverse) {
                return None;
            }
            let at = (place.unwrap_or(model.places.len() - 1), place.is_some());
            let work = |step: StepId| Some(row(step)?.1 / phase.calls.max(1) * phase.ipus.len() as u64);
            model.add(phase, at, &steps, work, (&mut of, &mut read));
        }
        let read: u64 = model.pieces.iter().map(|p| p.bytes).sum();
        let all = graph.vars.values().filter(|v| is_kept(v.class)).map(|v| v.bytes()).fold(0, u64::saturating_add);
        let memory = u64::from(machine.usable_bytes()).saturating_mul(u64::from(machine.chip.tiles)) / 5 * 4;
        // Slots of optimisers take their share of each stage.
        model.room = (u128::from(memory) * u128::from(read.max(1)) / u128::from(all.max(read).max(1))) as u64;
        (model.places.len() > 1).then_some(model)
    }

    /// Adds the steps of a phase to the pieces of its stage, which they reverse if `back`. `of` has the pieces by their
    /// calls, and `read` the variables that a piece reads.
    fn add(
        &mut self,
        phase: &CalledProgram,
        (stage, back): (usize, bool),
        steps: &[StepId],
        work: impl Fn(StepId) -> Option<u64>,
        (of, read): (&mut FxHashMap<Vec<OriginId>, usize>, &mut FxHashSet<VarId>),
    ) {
        let graph = self.graph;
        let program = graph.programs[phase.program].origin;
        let (around, outside) = (graph.origins.span(program), graph.origins.get(program).parent);
        let mut last: Option<usize> = None;
        // The work of steps outside of all calls that no piece has yet.
        let mut waiting = 0;
        for &step in steps {
            let Some(work) = work(step) else { continue };
            let own = graph.origins.span(graph.steps[step].origin);
            let path = self.path(step, around, outside);
            if path.is_empty() && is_around(own, around) {
                self.places[stage].fixed += work / (phase.ipus.len() as u64).max(1);
                continue;
            }
            let reverse = back || graph.steps[step].reverse;
            // A step in the reverse has the calls of the one that it reverses, and maybe some more.
            let known = match reverse {
                true => (1..=path.len()).rev().find_map(|n| of.get(&path[..n]).copied()),
                false if path.is_empty() => last,
                false => of.get(&path).copied(),
            };
            let piece = match known {
                Some(piece) => piece,
                None if reverse || path.is_empty() => {
                    waiting += work;
                    continue;
                }
                None => {
                    self.pieces.push(Piece { path: path.clone(), stage, work: 0, bytes: 0 });
                    self.pieces.len() - 1
                }
            };
            if !path.is_empty() {
                of.insert(path, piece);
            }
            let kept = |v: &VarId| is_kept(graph.vars[*v].class);
            let unread = read_by(graph, step).into_iter().filter(kept).filter(|&v| read.insert(v));
            self.pieces[piece].bytes += unread.map(|v| graph.vars[v].bytes()).sum::<u64>();
            self.pieces[piece].work += work + std::mem::take(&mut waiting);
            last = Some(piece);
        }
        match last {
            Some(last) => self.pieces[last].work += waiting,
            None => self.places[stage].fixed += waiting / (phase.ipus.len() as u64).max(1),
        }
    }

    /// Returns the calls of the user's text in which a step of a stage stands, from those in `outside` inwards. A
    /// compute set of several statements stands in the calls of the one that has the most elements.
    fn path(&self, step: StepId, stage: Span, outside: Option<OriginId>) -> Vec<OriginId> {
        let graph = self.graph;
        let own = graph.steps[step].origin;
        let operations = match graph.steps[step].kind {
            StepKind::Execute(set) => graph.operations(set),
            _ => vec![],
        };
        if operations.len() < 2 {
            return self.calls(own, stage, outside);
        }
        let elements_of = |&id: &FamilyId| {
            let family = &graph.families[id];
            family.domain.count().saturating_mul(family.fields.iter().map(Field::len).sum())
        };
        let elements = |families: &[FamilyId]| families.iter().map(elements_of).fold(0, u64::saturating_add);
        let of = operations.iter().map(|families| {
            let origin = families.first().map_or(own, |&f| graph.families[f].origin);
            (elements(families), self.calls(origin, stage, outside))
        });
        let largest = of.rev().filter(|(_, path)| !path.is_empty()).max_by_key(|(elements, _)| *elements);
        largest.map_or(vec![], |(_, path)| path)
    }

    /// Returns the calls of the user's text around an origin in a stage, from those in `outside` inwards; none if the
    /// pipeline has added it.
    fn calls(&self, origin: OriginId, stage: Span, outside: Option<OriginId>) -> Vec<OriginId> {
        let origins = &self.graph.origins;
        let mut path = vec![];
        let mut at = Some(origin).filter(|&id| !is_around(origins.span(id), stage));
        while let Some(id) = at.filter(|_| at != outside) {
            let origin = origins.get(id);
            if !origin.scope.is_empty() && origin.scope != "grad" && !origin.span.in_library() {
                path.push(id);
            }
            at = origin.parent;
        }
        path.reverse();
        path
    }

    /// Returns the parts if some calls are opened.
    fn parts(&self, open: &FxHashSet<OriginId>) -> Vec<Part> {
        let mut parts: Vec<Part> = vec![];
        for (k, piece) in self.pieces.iter().enumerate() {
            let depth = piece.path.iter().position(|call| !open.contains(call)).map(|d| d + 1);
            let joins = parts.last_mut().filter(|last| {
                let before = &self.pieces[last.first];
                // Steps of an opened call itself belong to the part before them.
                let is_of = |depth| piece.path.get(..depth) == before.path.get(..last.depth);
                before.stage == piece.stage && depth.is_none_or(is_of)
            });
            match joins {
                Some(last) => last.end = k + 1,
                None => parts.push(Part { first: k, end: k + 1, depth: depth.unwrap_or(piece.path.len()) }),
            }
        }
        parts
    }

    fn has_inner_calls(&self, part: &Part) -> bool {
        let inner = |k: usize| self.pieces[k].path.get(part.depth);
        let first = (part.first..part.end).find_map(inner);
        (part.first..part.end).filter_map(inner).any(|call| Some(call) != first)
    }

    fn work(&self, part: &Part) -> u64 {
        self.pieces[part.first..part.end].iter().map(|p| p.work).sum()
    }

    fn cycles_now(&self, stage: usize) -> u64 {
        let work: u64 = self.pieces.iter().filter(|p| p.stage == stage).map(|p| p.work).sum();
        self.cycles(stage, work)
    }

    fn cycles(&self, stage: usize, work: u64) -> u64 {
        self.places[stage].fixed + work / self.places[stage].ipus.len() as u64
    }

    /// Returns a cut with the shortest slowest stage, as the ends of its stages, and the cycles of that stage. Of
    /// several such cuts it is an even one: the sum of the squares is small too.
    fn best(&self, parts: &[Part]) -> Option<(u64, Vec<usize>)> {
        let (n, stages) = (parts.len(), self.places.len());
        let sum_of = |f: &dyn Fn(&Piece) -> u64| {
            let of = |part: &Part| self.pieces[part.first..part.end].iter().map(f).fold(0, u64::saturating_add);
            let sums = parts.iter().scan(0u64, |sum, part| {
                *sum = sum.saturating_add(of(part));
                Some(*sum)
            });
            std::iter::once(0).chain(sums).collect::<Vec<u64>>()
        };
        let (work, bytes) = (sum_of(&|p| p.work), sum_of(&|p| p.bytes));
        // Of the first stages, if they have the first parts: the slowest, the sum of the squares, and where the last
        // one begins.
        let mut least: Vec<Option<(u64, u128, usize)>> = vec![None; n + 1];
        least[0] = Some((0, 0, 0));
        let mut begins = vec![];
        for stage in 0..stages {
            let room = self.room.saturating_mul(self.places[stage].ipus.len() as u64);
            let next = |end: usize| {
                (0..end)
                    .filter(|&begin| bytes[end] - bytes[begin] <= room)
                    .filter_map(|begin| {
                        let (most, squares, _) = least[begin]?;
                        let own = self.cycles(stage, work[end] - work[begin]);
                        let square = u128::from(own).saturating_mul(own.into());
                        Some((most.max(own), squares.saturating_add(square), begin))
                    })
                    .min()
            };
            let next: Vec<Option<(u64, u128, usize)>> = (0..=n).map(next).collect();
            begins.push(next.iter().map(|b| b.map_or(0, |b| b.2)).collect::<Vec<usize>>());
            least = next;
        }
        let (most, ..) = least[n]?;
        let mut ends = vec![n; stages];
        for stage in (1..stages).rev() {
            ends[stage - 1] = begins[stage][ends[stage]];
        }
        Some((most, ends))
    }

    fn told(&self, most: u64, parts: &[Part], ends: &[usize]) -> Cut {
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let stages = begins.zip(ends).enumerate().map(|(stage, (begin, &end))| {
            let mut calls: Vec<(String, u32)> = vec![];
            for part in &parts[begin..end] {
                let name = self.name(part);
                match calls.last_mut() {
                    Some((last, count)) if *last == name => *count += 1,
                    _ => calls.push((name, 1)),
                }
            }
            let work = parts[begin..end].iter().map(|p| self.work(p)).sum();
            CutStage { ipus: self.places[stage].ipus.to_vec(), cycles: self.cycles(stage, work), calls }
        });
        Cut { cycles: most, stages: stages.collect() }
    }

    fn name(&self, part: &Part) -> String {
        let path = &self.pieces[part.first].path[..part.depth];
        path.iter().map(|&o| self.graph.origins.get(o).scope.as_str()).collect::<Vec<_>>().join(".")
    }
}

/// Returns whether a statement contains a stage.
fn is_around(statement: Span, stage: Span) -> bool {
    statement.lo <= stage.lo && stage.hi <= statement.hi
}

fn is_kept(class: VarClass) -> bool {
    matches!(class, VarClass::Param | VarClass::State)
}

/// Returns the steps of a body in order.
fn within(graph: &Graph, body: StepId) -> Vec<StepId> {
    let (mut all, mut left) = (vec![], vec![body]);
    while let Some(step) = left.pop() {
        all.push(step);
        left.extend(graph.steps[step].children().iter().rev());
    }
    all
}
