//! The blocks of each codelet whose executions decide its cost and are known only when it runs.

use super::{Points, TileCosts, cost_of};
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::SpecId;
use girder_machine::Machine;

/// The blocks of a graph's codelets that are counted while their vertices run.
#[derive(Clone, Debug, Default)]
pub struct CountedBlocks {
    points: SecondaryMap<SpecId, Points>,
    workers: usize,
}

impl CountedBlocks {
    /// Finds the blocks that the costs of all codelets on a machine need.
    pub fn of(graph: &Graph, machine: &Machine) -> CountedBlocks {
        let costs = TileCosts::from(machine);
        let mut points = SecondaryMap::new();
        for (id, codelet) in &graph.codelets {
            if let Ok(cost) = cost_of(codelet, &costs) {
                points[id] = cost.points().clone();
            }
        }
        CountedBlocks { points, workers: machine.chip.workers as usize }
    }

    /// Returns the blocks of one codelet.
    pub fn points(&self, codelet: SpecId) -> &Points {
        &self.points[codelet]
    }

    /// Returns how many counters one vertex of a codelet has: one per block, and per worker of a `multi` codelet.
    pub fn counters(&self, graph: &Graph, codelet: SpecId) -> usize {
        let workers = if graph.codelets[codelet].multi { self.workers } else { 1 };
        self.points[codelet].len() * workers
    }
}
