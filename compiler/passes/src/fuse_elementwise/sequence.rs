//! The steps of a sequence, and the chains that can be formed in it.
//!
//! Invariant: a step is moved only over steps that it does not depend on, and never over an effect.

use super::Candidate;
use crate::check_races::Touches;
use girder_fusion::chain::Chain;
use girder_fusion::map::Map;
use girder_ir::graph::Graph;
use girder_ir::ids::{StepId, VarId};
use girder_source::Cancel;
use rustc_hash::FxHashMap;

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
    /// The position of the step that is visited; one more than it.
    at: usize,
    cancel: &'c Cancel,
}

impl<'g, 'c> Sequence<'g, 'c> {
    /// Creates a sequence with its maps.
    pub fn new(
        graph: &'g Graph,
        steps: Vec<StepId>,
        maps: Vec<Option<Map<'g>>>,
        cancel: &'c Cancel,
    ) -> Sequence<'g, 'c> {
        let maps = steps.iter().zip(maps).filter_map(|(&step, map)| Some((step, map?))).collect();
        Sequence { graph, steps, maps, touches: FxHashMap::default(), at: 0, cancel }
    }

    /// Goes on to the next step.
    pub fn next_step(&mut self) -> Option<StepId> {
        self.at += 1;
        self.steps.get(self.at - 1).copied()
    }

    /// Returns the longest chain that begins with the step that is visited. `inside` tells whether no steps but some
    /// access a variable.
    pub fn chain(&mut self, inside: impl Fn(&[StepId], VarId) -> bool) -> Option<Candidate<'g>> {
        let first = self.steps[self.at - 1];
        let mut chain = Chain::new(self.maps.get(&first)?);
        let mut steps = vec![first];
        let mut memory = chain.memory_slots(|var| inside(&steps, var))?;
        // The position of the chain, and the steps after it that are not in it.
        let mut at = self.at - 1;
        let mut between: Vec<StepId> = vec![];
        let reverse = self.graph.steps[first].reverse;
        for n in self.at..self.steps.len().min(self.at + WINDOW) {
            let step = self.steps[n];
            if self.touches(step).is_none() {
                break;
            }
            let grown = self.grown(&chain, step, reverse);
            let moves_up = grown.is_some() && between.iter().all(|&other| self.are_independent(step, other));
            let moves_down = || {
                let of_chain = |other: &StepId| steps.iter().all(|&s| self.are_independent(s, *other));
                grown.is_some() && between.iter().all(of_chain)
            };
            let joins = moves_up || moves_down();
            let taken = grown.filter(|_| joins).and_then(|grown| {
                let all: Vec<StepId> = steps.iter().copied().chain([step]).collect();
                let memory = grown.memory_slots(|var| inside(&all, var))?;
                Some((grown, memory, all))
            });
            match taken {
                Some(taken) => {
                    (chain, memory, steps) = taken;
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
    fn grown(&self, chain: &Chain<'g>, step: StepId, reverse: bool) -> Option<Chain<'g>> {
        let map = self.maps.get(&step).filter(|_| self.graph.steps[step].reverse == reverse)?;
        let within = |map: &Map| map.family.map(|f| self.graph.families[f].within);
        let own = chain.maps.iter().find_map(within);
        let agrees = own.is_none_or(|own| within(map).is_none_or(|within| within == own));
        let size: usize = chain.maps.iter().map(|m| m.size).sum();
        let mut grown = chain.clone();
        (agrees && size + map.size <= MOST_EXPRESSIONS && grown.take(map)).then_some(grown)
    }

    /// Replaces steps by one of them.
    pub fn take(&mut self, steps: &[StepId], at: StepId) {
        let first = self.at - 1;
        self.steps.retain(|s| *s == at || !steps.contains(s));
        self.maps.remove(&at);
        // The touches of the fused step are those of all of its steps.
        let mut all = steps.iter().filter_map(|s| self.touches.remove(s)?);
        let joined = all.next().map(|mut first| {
            all.for_each(|other| first.join(other));
            first
        });
        self.touches.insert(at, joined);
        let comes_later = self.steps.get(first).is_none_or(|&s| s != at);
        self.at = if comes_later { first } else { first + 1 };
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
