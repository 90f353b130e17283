//! What the text of a program tells about a run of it: the number of supersteps, and the least number of iterations and
//! calls.
//!
//! Invariant: each program is visited once, however often it is called, so predictions take linear time.

use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::program::{Effect, StepKind};
use girder_source::Session;

/// The number of supersteps of every program, as far as the text determines it: one iteration of a `while`, the longest
/// branch of an `if`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supersteps {
    programs: SecondaryMap<ProgramId, Option<u64>>,
}

impl Supersteps {
    /// Returns the supersteps of one program. Steps that are nested too deeply to run are not counted.
    pub(crate) fn of(&mut self, graph: &Graph, program: ProgramId, session: &Session) -> u64 {
        self.program(graph, program, depth_limit(session))
    }

    fn program(&mut self, graph: &Graph, program: ProgramId, depth: u32) -> u64 {
        if let Some(known) = self.programs[program] {
            return known;
        }
        let count = self.step(graph, graph.programs[program].body, depth);
        self.programs[program] = Some(count);
        count
    }

    fn step(&mut self, graph: &Graph, step: StepId, depth: u32) -> u64 {
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        let mut of = |s: &StepId| self.step(graph, *s, depth);
        match &graph.steps[step].kind {
            StepKind::Seq(steps) | StepKind::Par(steps) => steps.iter().map(of).fold(0, u64::saturating_add),
            StepKind::Execute(_) | StepKind::Copy(_) => 1,
            StepKind::Repeat { count, body, .. } => count.saturating_mul(of(body)),
            StepKind::While { before, body, .. } => of(before).saturating_add(of(body)),
            StepKind::If { then, els, .. } => of(then).max(of(els)),
            StepKind::Switch { cases, default, .. } => {
                cases.iter().map(|c| &c.1).chain([default]).map(of).fold(0, u64::max)
            }
            StepKind::Call(program) => self.program(graph, *program, depth),
            StepKind::Effect(_) => 0,
        }
    }
}

/// Returns the innermost loop or call that takes more than `total_iterations` iterations and calls in every run of a
/// program, or `None` if a run may take fewer. A run that ends early (by an `abort`, at the end of a stream, or because
/// one loop alone is too long) is not predicted.
pub(crate) fn too_long(graph: &Graph, program: ProgramId, session: &Session) -> Option<StepId> {
    let (limit, depth) = (session.limits.total_iterations, depth_limit(session));
    let mut least = Least { graph, most: session.limits.iterations, programs: SecondaryMap::new() };
    let all = least.program(program, depth)?;
    if all <= limit {
        return None;
    }
    let mut found = graph.programs[program].body;
    let mut left = depth;
    while let Some(inner) = least.longest(found, left).filter(|&(_, n)| n > limit) {
        (found, left) = (inner.0, left.checked_sub(1)?);
    }
    Some(found)
}

/// The least number of iterations and calls of programs; `None` if they may end early.
struct Least<'g> {
    graph: &'g Graph,
    /// The limit of one loop.
    most: u64,
    programs: SecondaryMap<ProgramId, Option<Option<u64>>>,
}

impl Least<'_> {
    fn program(&mut self, program: ProgramId, depth: u32) -> Option<u64> {
        if let Some(known) = self.programs[program] {
            return known;
        }
        let least = self.step(self.graph.programs[program].body, depth);
        self.programs[program] = Some(least);
        least
    }

    fn step(&mut self, step: StepId, depth: u32) -> Option<u64> {
        // A deeper step is an error of its own.
        let depth = depth.checked_sub(1)?;
        let graph = self.graph;
        match &graph.steps[step].kind {
            StepKind::Seq(steps) | StepKind::Par(steps) => {
                steps.iter().try_fold(0u64, |sum, &s| Some(sum.saturating_add(self.step(s, depth)?)))
            }
            StepKind::Repeat { count: 0, .. } => Some(0),
            StepKind::Repeat { count, .. } if *count > self.most => None,
            StepKind::Repeat { count, body, .. } => {
                Some(self.step(*body, depth)?.saturating_add(1).saturating_mul(*count))
            }
            StepKind::While { before, body, .. } => {
                self.step(*body, depth)?;
                self.step(*before, depth)
            }
            StepKind::If { then, els, .. } => Some(self.step(*then, depth)?.min(self.step(*els, depth)?)),
            StepKind::Switch { cases, default, .. } => {
                let default = self.step(*default, depth)?;
                cases.iter().try_fold(default, |least, c| Some(least.min(self.step(c.1, depth)?)))
            }
            StepKind::Call(program) => Some(self.program(*program, depth)?.saturating_add(1)),
            StepKind::Effect(Effect::Abort { .. } | Effect::Read { .. }) => None,
            StepKind::Effect(_) | StepKind::Execute(_) | StepKind::Copy(_) => Some(0),
        }
    }

    /// Returns the step directly inside a step that takes most iterations and calls, and their number.
    fn longest(&mut self, step: StepId, depth: u32) -> Option<(StepId, u64)> {
        let graph = self.graph;
        let inner: Vec<StepId> = match &graph.steps[step].kind {
            StepKind::Seq(steps) | StepKind::Par(steps) => steps.clone(),
            StepKind::Repeat { body, .. } => vec![*body],
            StepKind::Call(program) => vec![graph.programs[*program].body],
            _ => vec![],
        };
        let counted = inner.into_iter().filter_map(|s| Some((s, self.step(s, depth)?)));
        counted.reduce(|a, b| if b.1 > a.1 { b } else { a })
    }
}

/// Returns the maximal nesting of steps, calls included. A block of the text becomes at most a few nested steps, so
/// accepted programs stay below.
pub(crate) fn depth_limit(session: &Session) -> u32 {
    4 * session.limits.nesting + 16
}
