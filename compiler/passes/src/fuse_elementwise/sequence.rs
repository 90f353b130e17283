//! The steps of a sequence, and the chains that can be formed in it.
//!
//! Invariant: a step is moved only over steps that it does not depend on, and never over an effect.

use super::Candidate;
use crate::race_rule::Touches;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_fusion::chain::Chain;
use girder_fusion::map::Map;
use girder_ir::graph::Graph;
use girder_ir::ids::{StepId, VarId};
use girder_source::Cancel;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The number of steps after the first one of a chain that are considered for it.
const WINDOW: usize = 48;
/// Maximal number of expressions in the functions of a chain.
const MOST_EXPRESSIONS: usize = 1 << 10;

/// The steps of a sequence that are still to be visited.
pub(super) struct Sequence<'g, 'c> {
    graph: &'g Graph,
    /// The steps in their present order.
    steps: Vec<StepId>,
    maps: FxHashMap<StepId, Map<'g>>,
    touches: FxHashMap<StepId, Option<Touches>>,
    /// One more than the position of the step that is visited.
    at: usize,
    /// The variables that reverse programs access.
    in_reverse: &'c EntitySet<VarId>,
    cancel: &'c Cancel,
}

impl<'g, 'c> Sequence<'g, 'c> {
    /// Creates a sequence with its maps.
    pub fn new(
        graph: &'g Graph,
        steps: Vec<StepId>,
        maps: Vec<Option<Map<'g>>>,
        in_reverse: &'c EntitySet<VarId>,
        cancel: &'c Cancel,
    ) -> Sequence<'g, 'c> {
        let maps = steps.iter().zip(maps).filter_map(|(&step, map)| Some((step, map?))).collect();
        Sequence { graph, steps, maps, touches: FxHashMap::default(), at: 0, in_reverse, cancel }
    }

    /// Goes on to the next step.
    pub fn next_step(&mut self) -> Option<StepId> {
        self.at += 1;
        self.steps.get(self.at - 1).copied()
    }

    /// Returns the longest chain that begins with the step that is visited. `inside` returns whether only some given
    /// steps access a variable.
    pub fn chain(&mut self, inside: impl Fn(&[StepId], VarId) -> bool) -> Option<Candidate<'g>> {
        let first = self.steps[self.at - 1];
        let mut chain = Chain::new(self.maps.get(&first)?);
        let mut steps = vec![first];
        let mut memory = chain.memory_slots(|var| inside(&steps, var))?;
        // The position of the chain, and the steps after it that are not in it.
        let mut at = self.at - 1;
        let mut between: Vec<StepId> = vec![];
        let mut reverse = self.graph.steps[first].reverse;
        for n in self.at..self.steps.len().min(self.at + WINDOW) {
            let step = self.steps[n];
            if self.touches(step).is_none() {
                break;
            }
            let with_step = || steps.iter().copied().chain([step]).collect::<Vec<StepId>>();
            let grown = self.grown(&chain, step).filter(|_| match (reverse, self.graph.steps[step].reverse) {
                (false, true) => {
                    let all = with_step();
                    steps.iter().all(|&s| self.keeps_nothing(s, |var| inside(&all, var)))
                }
                (true, false) => self.keeps_nothing(step, |_| false),
                _ => true,
            });
            let moves_up = grown.is_some() && between.iter().all(|&other| self.are_independent(step, other));
            let moves_down = || {
                let of_chain = |other: &StepId| steps.iter().all(|&s| self.are_independent(s, *other));
                grown.is_some() && between.iter().all(of_chain)
            };
            let joins = moves_up || moves_down();
            let taken = grown.filter(|_| joins).and_then(|grown| {
                let all = with_step();
                let memory = grown.memory_slots(|var| inside(&all, var))?;
                Some((grown, memory, all))
            });
            match taken {
                Some(taken) => {
                    (chain, memory, steps) = taken;
                    reverse |= self.graph.steps[step].reverse;
                    if !moves_up {
                        at = n;
                        between.clear();
                    }
                }
                None => between.push(step),
            }
        }
        let at = self.steps[at];
        chain.computes().then_some(Candidate { chain, memory, steps, at })
    }

    /// Returns the chain with one more step, if it is a map that may join it.
    fn grown(&self, chain: &Chain<'g>, step: StepId) -> Option<Chain<'g>> {
        let map = self.maps.get(&step)?;
        let within = |map: &Map| map.family.map(|f| self.graph.families[f].within);
        let own = chain.maps.iter().find_map(within);
        let agrees = own.is_none_or(|own| within(map).is_none_or(|within| within == own));
        let size: usize = chain.maps.iter().map(|m| m.size).sum();
        let mut grown = chain.clone();
        (agrees && size + map.size <= MOST_EXPRESSIONS && grown.take(map)).then_some(grown)
    }

    /// Returns whether nothing that a map writes is kept for a reverse program, so that it may become part of one.
    /// `inside` tells which variables only the other steps of a chain access.
    fn keeps_nothing(&self, step: StepId, inside: impl Fn(VarId) -> bool) -> bool {
        let is_kept =
            |var: VarId| !self.graph.vars[var].is_persistent() && self.in_reverse.contains(var) && !inside(var);
        self.maps.get(&step).is_some_and(|map| {
            let all = map.space.accesses.iter().zip(&map.uses);
            !all.filter(|(_, uses)| uses.writes).any(|(access, _)| is_kept(access.var))
        })
    }

    /// Goes back to the start.
    pub fn rewind(&mut self) {
        self.at = 0;
    }

    /// Removes steps that have become part of one of them. They are near the step that is visited.
    pub fn take(&mut self, steps: &[StepId], at: StepId) {
        let near = self.near();
        let is_left = |s: &&StepId| **s == at || !steps.contains(s);
        let (before, after) = self.steps[near.clone()].split_at(self.at - near.start);
        let left: Vec<StepId> = before.iter().filter(is_left).chain(after.iter().filter(is_left)).copied().collect();
        self.at = near.start + before.iter().filter(is_left).count();
        self.steps.splice(near, left);
        steps.iter().for_each(|s| _ = self.maps.remove(s));
        // The touches of the fused step are those of all of its steps.
        steps.iter().for_each(|&s| _ = self.touches(s));
        let mut all = steps.iter().filter_map(|s| self.touches.remove(s)?);
        let joined = all.next().map(|mut first| {
            all.for_each(|other| first.join(other));
            first
        });
        self.touches.insert(at, joined);
    }

    /// Returns the positions of the steps that a chain at the step that is visited can have, or can join.
    fn near(&self) -> Range<usize> {
        self.at.saturating_sub(1 + WINDOW)..self.steps.len().min(self.at + WINDOW)
    }

    fn position(&self, step: StepId) -> Option<usize> {
        self.near().find(|&n| self.steps[n] == step)
    }

    /// Returns whether a step is a map.
    pub fn is_map(&self, step: StepId) -> bool {
        self.maps.contains_key(&step)
    }

    /// Returns the chain that writes a variable which only one later step reads. The chain writes nothing else, can be
    /// moved to that step, and reads nothing that another map of the sequence writes.
    pub fn chain_before(
        &mut self,
        reader: StepId,
        var: VarId,
        users: &SecondaryMap<VarId, Vec<StepId>>,
    ) -> Option<Candidate<'g>> {
        let end = self.position(reader)?;
        let mut wanted = var;
        // Positions, in order.
        let mut chosen: Vec<usize> = vec![];
        loop {
            let is_known = |s: &StepId| *s == reader || chosen.iter().any(|&n| self.steps[n] == *s);
            let mut others = users[wanted].iter().filter(|s| !is_known(s));
            let (Some(&writer), None) = (others.next(), others.next()) else { return None };
            let at = (end.saturating_sub(WINDOW)..end).rfind(|&n| self.steps[n] == writer)?;
            if !self.is_map(writer) || !self.moves_to(at, end, &chosen) {
                return None;
            }
            chosen.insert(chosen.partition_point(|&n| n < at), at);
            let candidate = self.candidate(&chosen, reader, users)?;
            match self.operand_of_map(&candidate, end, users) {
                None => return Some(candidate),
                Some(var) if self.graph.vars[var].is_persistent() => return None,
                Some(var) => wanted = var,
            }
        }
    }

    /// Returns a variable that a chain reads and that another map of equally many iterations, before position `end`,
    /// writes.
    fn operand_of_map(
        &mut self,
        candidate: &Candidate<'g>,
        end: usize,
        users: &SecondaryMap<VarId, Vec<StepId>>,
    ) -> Option<VarId> {
        let Candidate { chain, memory, steps, .. } = candidate;
        let loaded = (0..memory.loads.len()).filter(|&slot| memory.loads[slot]);
        let mut vars = loaded.map(|slot| chain.slots[slot].access.var);
        vars.find(|&var| {
            let is_like = |map: &Map| map.space.len() == chain.space.len();
            let is_other = |s: &&StepId| !steps.contains(s) && self.maps.get(s).is_some_and(is_like);
            let others: Vec<StepId> = users[var].iter().filter(is_other).copied().collect();
            others.into_iter().any(|s| self.steps[..end].contains(&s) && self.touches(s).is_some_and(|t| t.writes(var)))
        })
    }

    /// Returns whether the step at a position can be moved to a later one, with some of those between.
    fn moves_to(&mut self, from: usize, to: usize, with: &[usize]) -> bool {
        let step = self.steps[from];
        (from + 1..to).filter(|n| !with.contains(n)).all(|n| {
            let other = self.steps[n];
            let known = self.touches(step).is_some() && self.touches(other).is_some();
            known && self.are_independent(step, other)
        })
    }

    /// Returns the chain of the steps at some positions, which only one step reads.
    fn candidate(
        &self,
        chosen: &[usize],
        reader: StepId,
        users: &SecondaryMap<VarId, Vec<StepId>>,
    ) -> Option<Candidate<'g>> {
        let steps: Vec<StepId> = chosen.iter().map(|&n| self.steps[n]).collect();
        let reverse = self.graph.steps[reader].reverse;
        let mut maps = steps.iter().map(|s| self.maps.get(s));
        let mut chain = Chain::new(maps.next()??);
        for map in maps {
            if !chain.append(map?) {
                return None;
            }
        }
        let inside = |var: VarId| !self.graph.vars[var].is_persistent() && users[var].iter().all(|u| steps.contains(u));
        let memory = chain.memory_slots(inside)?;
        let agrees = steps.iter().all(|&s| self.graph.steps[s].reverse == reverse);
        agrees.then_some(Candidate { chain, memory, steps, at: reader })
    }

    /// Returns the last step before a chain that writes a variable which the chain reads, and the place where both can
    /// run: the place of one of them, to which the other can be moved.
    pub fn writer_before(&mut self, steps: &[StepId], at: StepId, var: VarId) -> Option<(StepId, StepId)> {
        let end = self.position(at)?;
        let least = end.saturating_sub(WINDOW);
        let start = (least..end).rev().find(|&n| {
            let step = self.steps[n];
            !steps.contains(&step) && self.touches(step).is_none_or(|t| t.writes(var))
        })?;
        let writer = self.steps[start];
        let reverse = self.graph.steps[writer].reverse == self.graph.steps[at].reverse;
        let between: Vec<StepId> = self.steps[start + 1..end].iter().filter(|s| !steps.contains(s)).copied().collect();
        for &step in between.iter().chain(steps).chain([&writer]) {
            self.touches(step)?;
        }
        let moves = |step: &StepId| between.iter().all(|&other| self.are_independent(*step, other));
        let to = if moves(&writer) { Some(at) } else { steps.iter().all(moves).then_some(writer) };
        Some((writer, to.filter(|_| reverse)?))
    }

    fn touches(&mut self, step: StepId) -> Option<&Touches> {
        let graph = self.graph;
        self.touches.entry(step).or_insert_with(|| Touches::of_step(graph, step)).as_ref()
    }

    fn are_independent(&self, a: StepId, b: StepId) -> bool {
        match (self.touches.get(&a), self.touches.get(&b)) {
            (Some(Some(a)), Some(Some(b))) => a.are_independent_of(b, self.graph, self.cancel),
            _ => false,
        }
    }
}
