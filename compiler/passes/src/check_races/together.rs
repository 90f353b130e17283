//! Whether copies may happen at one time, alone or with a compute set.
//!
//! Invariant: what has been admitted obeys the race rule as one step.

use super::decide::decide;
use super::touch::{Touch, of_copy, of_set};
use super::{by_written_var, is_constant};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, VarId};
use girder_source::Cancel;
use rustc_hash::FxHashMap;

/// Whether a copy and a compute set have nothing to do with one another: neither touches what the other writes.
pub(crate) fn apart(graph: &Graph, copy: CopyId, set: ComputeSetId, cancel: &Cancel) -> bool {
    let (copied, touched) = (of_copy(graph, copy), of_set(graph, set));
    by_written_var(copied.iter().chain(&touched)).into_iter().all(|(var, touches)| {
        !is_constant(graph, var) && decide(graph.vars[var].len(), &touches, cancel).conflicts.is_empty()
    })
}

/// Copies that happen in one exchange.
pub(crate) struct Together {
    touches: FxHashMap<VarId, Vec<Touch>>,
    families: usize,
}

impl Together {
    /// One copy.
    pub(crate) fn of(graph: &Graph, copy: CopyId) -> Together {
        let mut together = Together { touches: FxHashMap::default(), families: 0 };
        together.add(graph, copy, of_copy(graph, copy));
        together
    }

    /// How many families they have.
    pub(crate) fn families(&self) -> usize {
        self.families
    }

    /// Adds a copy, if it may happen together with those that are there. A copy that breaks the rule by itself never
    /// may.
    pub(crate) fn admit(&mut self, graph: &Graph, copy: CopyId, cancel: &Cancel) -> bool {
        let new = of_copy(graph, copy);
        let mut vars: Vec<VarId> = new.iter().map(|t| t.print.var).collect();
        vars.sort_unstable();
        vars.dedup();
        let old = vars.iter().filter_map(|v| self.touches.get(v)).flatten();
        let free = by_written_var(old.chain(&new)).into_iter().all(|(var, touches)| {
            !is_constant(graph, var) && decide(graph.vars[var].len(), &touches, cancel).conflicts.is_empty()
        });
        if free {
            self.add(graph, copy, new);
        }
        free
    }

    fn add(&mut self, graph: &Graph, copy: CopyId, touches: Vec<Touch>) {
        self.families += graph.copies[copy].families.len();
        for touch in touches {
            self.touches.entry(touch.print.var).or_default().push(touch);
        }
    }
}
