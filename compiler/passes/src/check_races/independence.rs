//! Independence: whether copies may happen at the same time as each other or as a compute set.
//!
//! Invariant: the admitted copies obey the race rule as one step.

use super::decide::is_free;
use super::touch::{Touch, of_copy, of_set};
use super::{by_written_var, is_constant};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, VarId};
use girder_source::Cancel;
use rustc_hash::FxHashMap;

/// Returns whether a copy and a compute set are independent: neither accesses what the other writes.
pub(crate) fn are_independent(graph: &Graph, copy: CopyId, set: ComputeSetId, cancel: &Cancel) -> bool {
    let (copied, touched) = (of_copy(graph, copy), of_set(graph, set));
    by_written_var(copied.iter().chain(&touched))
        .into_iter()
        .all(|(var, touches)| !is_constant(graph, var) && is_free(graph.vars[var].len(), &touches, cancel))
}

/// Copies that share one exchange.
pub(crate) struct JoinedCopies {
    touches: FxHashMap<VarId, Vec<Touch>>,
    families: usize,
}

impl JoinedCopies {
    /// Creates the set of one copy.
    pub(crate) fn of(graph: &Graph, copy: CopyId) -> JoinedCopies {
        let mut joined = JoinedCopies { touches: FxHashMap::default(), families: 0 };
        joined.add(graph, copy, of_copy(graph, copy));
        joined
    }

    /// Returns the number of families.
    pub(crate) fn families(&self) -> usize {
        self.families
    }

    /// Adds a copy if it is independent of the others. A copy that breaks the rule by itself is never added.
    pub(crate) fn admit(&mut self, graph: &Graph, copy: CopyId, cancel: &Cancel) -> bool {
        let new = of_copy(graph, copy);
        let mut vars: Vec<VarId> = new.iter().map(|t| t.print.var).collect();
        vars.sort_unstable();
        vars.dedup();
        let old = vars.iter().filter_map(|v| self.touches.get(v)).flatten();
        let free = by_written_var(old.chain(&new))
            .into_iter()
            .all(|(var, touches)| !is_constant(graph, var) && is_free(graph.vars[var].len(), &touches, cancel));
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
