//! Executions of the blocks that the costs of codelets cannot know before a run.
//!
//! Invariant: every mode counts the same; nothing is counted, and nothing is slower, unless somebody asked for it.

use cranelift_entity::SecondaryMap;
use girder_codelet::cost::{Points, TileCosts, cost_of};
use girder_ir::graph::Graph;
use girder_ir::ids::{FamilyId, SpecId};
use girder_ir::trace::Counts;
use girder_machine::Machine;

/// Which blocks of each codelet are counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counting {
    points: SecondaryMap<SpecId, Points>,
    workers: usize,
}

impl Counting {
    /// What the costs of all codelets on a machine need.
    pub(crate) fn of(graph: &Graph, machine: &Machine) -> Counting {
        let costs = TileCosts::from(machine);
        let mut points = SecondaryMap::new();
        for (id, codelet) in &graph.codelets {
            if let Ok(cost) = cost_of(codelet, &costs) {
                points[id] = cost.points().clone();
            }
        }
        Counting { points, workers: machine.chip.workers as usize }
    }

    /// Of one codelet.
    pub(crate) fn points(&self, codelet: SpecId) -> &Points {
        &self.points[codelet]
    }

    /// Numbers that one vertex of a codelet counts.
    pub(crate) fn row(&self, graph: &Graph, codelet: SpecId) -> usize {
        let turns = if graph.codelets[codelet].multi { self.workers } else { 1 };
        self.points[codelet].len() * turns
    }
}

/// What was counted in one compute set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    rows: SecondaryMap<FamilyId, Vec<u64>>,
}

impl Counted {
    /// Sets the numbers of one vertex of a family of `instances`.
    pub(crate) fn set(
        &mut self,
        family: FamilyId,
        instances: u64,
        instance: u64,
        numbers: impl ExactSizeIterator<Item = u64>,
    ) {
        let own = numbers.len();
        let rows = &mut self.rows[family];
        rows.resize(own * instances as usize, 0);
        rows[own * instance as usize..].iter_mut().zip(numbers).for_each(|(row, n)| *row = n);
    }
}

impl Counts for Counted {
    fn of(&self, family: FamilyId) -> &[u64] {
        &self.rows[family]
    }
}
