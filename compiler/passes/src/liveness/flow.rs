//! The structured dataflow. Bottom up, it computes what each step uses before it overwrites it; then, top down, the
//! interval of points where each temporary is live.
//!
//! Invariant: an atom enters the live set at a step that extends its interval, and leaves it at another one. Steps in
//! between need not extend it.

use super::atoms::Atoms;
use super::leaves::Effects;
use super::order::LivenessOrder;
use crate::steps::steps_of;
use cranelift_entity::{EntityRef, SecondaryMap};
use fixedbitset::FixedBitSet;
use girder_ir::graph::Graph;
use girder_ir::ids::{ProgramId, StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::ops::Range;

/// The effect of a step on the live set: `before = (after - kills) + uses`.
#[derive(Clone, Default)]
pub(super) struct Summary {
    /// Atoms that may be read before they are overwritten.
    pub uses: FxHashSet<u32>,
    /// Atoms that are certainly overwritten.
    pub kills: FxHashSet<u32>,
}

impl Summary {
    /// Puts a step before this one.
    fn prepend(&mut self, uses: impl IntoIterator<Item = u32>, kills: impl IntoIterator<Item = u32>) {
        for k in kills {
            self.uses.remove(&k);
            self.kills.insert(k);
        }
        self.uses.extend(uses);
    }

    fn prepend_summary(&mut self, first: &Summary) {
        self.prepend(first.uses.iter().copied(), first.kills.iter().copied());
    }
}

/// The summaries of all steps and programs.
pub(super) struct Summaries {
    steps: SecondaryMap<StepId, Summary>,
    /// The atoms that each program may read before it writes them, ascending.
    uses: SecondaryMap<ProgramId, Vec<u32>>,
    /// The atoms that each program certainly overwrites, ascending.
    kills: SecondaryMap<ProgramId, Vec<u32>>,
}

impl Summaries {
    pub fn of(graph: &Graph, order: &LivenessOrder, effects: &Effects) -> Summaries {
        let mut all = Summaries { steps: SecondaryMap::new(), uses: SecondaryMap::new(), kills: SecondaryMap::new() };
        for &program in order.callers_first.iter().rev() {
            let body = graph.programs[program].body;
            let steps: Vec<StepId> = steps_of(graph, body).collect();
            for &step in steps.iter().rev() {
                all.steps[step] = all.summary(graph, effects, step);
            }
            let sorted = |set: &FxHashSet<u32>| {
                let mut list: Vec<u32> = set.iter().copied().collect();
                list.sort_unstable();
                list
            };
            all.uses[program] = sorted(&all.steps[body].uses);
            all.kills[program] = sorted(&all.steps[body].kills);
        }
        all
    }

    /// Returns whether a step may read an atom before it overwrites it.
    pub fn step_uses(&self, step: StepId, atom: u32) -> bool {
        self.steps[step].uses.contains(&atom)
    }

    /// Returns the atoms that a program may read before it writes them, ascending.
    pub fn program_uses(&self, program: ProgramId) -> &[u32] {
        &self.uses[program]
    }

    /// Returns the summary of a step whose children already have theirs.
    fn summary(&self, graph: &Graph, effects: &Effects, step: StepId) -> Summary {
        let own = effects.of(step);
        let mut sum = Summary::default();
        match &graph.steps[step].kind {
            StepKind::Execute(_) | StepKind::Copy(_) | StepKind::Effect(_) => {}
            // A tile runs the branches in the order of the text.
            StepKind::Seq(list) | StepKind::Par(list) => {
                list.iter().rev().for_each(|&s| sum.prepend_summary(&self.steps[s]));
            }
            StepKind::Repeat { count: 0, .. } => {}
            StepKind::Repeat { body, .. } => sum = self.steps[*body].clone(),
            StepKind::While { before, body, .. } => {
                // A `while` runs before, cond, and then any number of times body, before, cond.
                sum = self.iteration(effects, step, *before, *body);
                sum.kills.clear();
                sum.prepend(own.uses.iter().copied(), []);
                sum.prepend_summary(&self.steps[*before]);
                return sum;
            }
            StepKind::If { then, els, .. } => sum = self.either(&[*then, *els]),
            StepKind::Switch { cases, default, .. } => {
                let arms: Vec<StepId> = cases.iter().map(|(_, s)| *s).chain([*default]).collect();
                sum = self.either(&arms);
            }
            StepKind::Call(p) => {
                sum.prepend(self.uses[*p].iter().copied(), self.kills[*p].iter().copied());
            }
        }
        sum.prepend(own.uses.iter().copied(), own.kills.iter().copied());
        sum
    }

    /// Returns the summary of one iteration of a `while`: `body`, `before` and the test.
    fn iteration(&self, effects: &Effects, step: StepId, before: StepId, body: StepId) -> Summary {
        let mut sum = Summary::default();
        sum.prepend(effects.of(step).uses.iter().copied(), []);
        sum.prepend_summary(&self.steps[before]);
        sum.prepend_summary(&self.steps[body]);
        sum
    }

    fn either(&self, arms: &[StepId]) -> Summary {
        let arms: Vec<&Summary> = arms.iter().map(|&s| &self.steps[s]).collect();
        let uses = arms.iter().flat_map(|s| s.uses.iter().copied()).collect();
        let (first, rest) = (arms[0], &arms[1..]);
        let kills = first.kills.iter().copied().filter(|k| rest.iter().all(|s| s.kills.contains(k))).collect();
        Summary { uses, kills }
    }
}

/// The `undef`s whose variable may be read before it is written again, with that variable.
pub(super) type ReadUndefs = BTreeSet<(StepId, VarId)>;

/// The backward pass from the ends of programs to their beginnings.
pub(super) struct Flow<'a> {
    graph: &'a Graph,
    order: &'a LivenessOrder,
    atoms: &'a Atoms,
    effects: &'a Effects,
    summaries: &'a Summaries,
    /// The live range of each variable, by id.
    hulls: Vec<Option<Range<u32>>>,
    /// The `undef`s whose variable may be read before it is written again.
    ended: ReadUndefs,
    /// A function that returns the variables that a step writes, or `None` if the step must stay. A step is dead if
    /// none of its variables is live after it.
    removable: Option<&'a dyn Fn(StepId) -> Option<Vec<VarId>>>,
    dead: Vec<StepId>,
    /// The atoms that are live after a call of each program, over all calls so far.
    after: SecondaryMap<ProgramId, Option<FixedBitSet>>,
}

impl<'a> Flow<'a> {
    pub fn new(
        graph: &'a Graph,
        order: &'a LivenessOrder,
        atoms: &'a Atoms,
        effects: &'a Effects,
        summaries: &'a Summaries,
    ) -> Flow<'a> {
        let hulls = vec![None; graph.vars.len()];
        let ended = BTreeSet::new();
        let (removable, dead, after) = (None, vec![], SecondaryMap::new());
        Flow { graph, order, atoms, effects, summaries, hulls, ended, removable, dead, after }
    }

    /// Returns the steps that can be removed, ascending.
    pub fn dead(mut self, removable: &'a dyn Fn(StepId) -> Option<Vec<VarId>>) -> Vec<StepId> {
        self.removable = Some(removable);
        self.programs();
        self.dead.sort_unstable();
        self.dead
    }

    /// Returns the live range of each variable, and the `undef`s whose variable may be read before it is written again.
    pub fn ranges(mut self) -> (Vec<Option<Range<u32>>>, ReadUndefs) {
        self.programs();
        (self.hulls, self.ended)
    }

    /// Walks all programs, callers first.
    fn programs(&mut self) {
        let empty = FixedBitSet::with_capacity(self.atoms.len());
        for &program in &self.order.callers_first {
            let mut live = self.after[program].take().unwrap_or_else(|| empty.clone());
            self.walk(self.graph.programs[program].body, &mut live);
        }
    }

    /// Turns the set that is live after a step into the set that is live before it. Recursion is as deep as steps are
    /// nested, which a limit bounds.
    fn walk(&mut self, step: StepId, live: &mut FixedBitSet) {
        let (graph, summaries) = (self.graph, self.summaries);
        match &graph.steps[step].kind {
            StepKind::Execute(_) | StepKind::Copy(_) | StepKind::Effect(_) => self.leaf(step, live),
            StepKind::Seq(list) | StepKind::Par(list) => list.iter().rev().for_each(|&s| self.walk(s, live)),
            StepKind::Repeat { count, body, .. } => self.repeat(step, *count, *body, live),
            StepKind::While { before, body, .. } => {
                let iteration = summaries.iteration(self.effects, step, *before, *body);
                iteration.uses.iter().for_each(|&a| live.insert(a as usize));
                self.leaf(step, live);
                self.walk(*before, live);
                self.extend_over(live, self.order.range(step));
                self.walk(*body, &mut live.clone());
            }
            StepKind::If { then, els, .. } => self.arms(step, &[*then, *els], live),
            StepKind::Switch { cases, default, .. } => {
                let arms: Vec<StepId> = cases.iter().map(|(_, s)| *s).chain([*default]).collect();
                self.arms(step, &arms, live);
            }
            StepKind::Call(p) => {
                match &mut self.after[*p] {
                    Some(set) => set.union_with(live),
                    none => *none = Some(live.clone()),
                }
                let (at, inside) = (self.order.at(step), self.order.range(graph.programs[*p].body));
                for &a in &summaries.kills[*p] {
                    if live.contains(a as usize) {
                        self.extend(a, at.clone());
                        live.remove(a as usize);
                    }
                }
                // What is needed after the call, but not made in it, is needed while the program runs.
                self.extend_over(live, inside.clone());
                for &a in &summaries.uses[*p] {
                    self.extend(a, at.clone());
                    self.extend(a, inside.start..inside.start + 1);
                    live.insert(a as usize);
                }
            }
        }
    }

    fn leaf(&mut self, step: StepId, live: &mut FixedBitSet) {
        let effect = self.effects.of(step);
        let written = self.removable.and_then(|removable| removable(step));
        if written.is_some_and(|vars| vars.iter().all(|&var| !self.atoms.any_in(var, live))) {
            self.dead.push(step);
            return;
        }
        let at = self.order.at(step);
        effect.touched.iter().for_each(|&a| self.extend(a, at.clone()));
        if let StepKind::Effect(Effect::Undef { .. }) = self.graph.steps[step].kind {
            let read = effect.kills.iter().filter(|&&a| live.contains(a as usize));
            self.ended.extend(read.map(|&a| (step, self.atoms.owner(a))));
        }
        effect.kills.iter().for_each(|&a| live.remove(a as usize));
        effect.uses.iter().for_each(|&a| live.insert(a as usize));
    }

    fn repeat(&mut self, step: StepId, count: u64, body: StepId, live: &mut FixedBitSet) {
        let after = live.clone();
        let kills = &self.effects.of(step).kills;
        if count > 1 {
            let again = self.summaries.steps[body].uses.iter().filter(|a| !kills.contains(a));
            again.for_each(|&a| live.insert(a as usize));
        }
        self.walk(body, live);
        self.leaf(step, live);
        match count {
            0 => *live = after,
            1 => {}
            _ => self.extend_over(live, self.order.range(step)),
        }
    }

    fn arms(&mut self, step: StepId, arms: &[StepId], live: &mut FixedBitSet) {
        let after = live.clone();
        live.clear();
        for &arm in arms {
            let mut one = after.clone();
            self.walk(arm, &mut one);
            live.union_with(&one);
        }
        self.leaf(step, live);
    }

    fn extend_over(&mut self, live: &FixedBitSet, range: Range<u32>) {
        for atom in live.ones() {
            self.extend(atom as u32, range.clone());
        }
    }

    fn extend(&mut self, atom: u32, range: Range<u32>) {
        let hull = &mut self.hulls[self.atoms.owner(atom).index()];
        *hull = Some(match hull {
            Some(h) => h.start.min(range.start)..h.end.max(range.end),
            None => range,
        });
    }
}
