//! Independence: whether copies may happen at the same time as each other or as a compute set.
//!
//! Invariant: the admitted copies obey the race rule as one step.

use super::decide::is_free;
use super::touch::{Touch, of_copy, of_set};
use super::{by_written_var, is_constant};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId, VarId};
use girder_ir::program::StepKind;
use girder_source::Cancel;
use rustc_hash::FxHashMap;

/// Returns whether a copy and a compute set are independent: neither accesses what the other writes.
pub(crate) fn are_independent(graph: &Graph, copy: CopyId, set: ComputeSetId, cancel: &Cancel) -> bool {
    let (copied, touched) = (of_copy(graph, copy), of_set(graph, set));
    by_written_var(copied.iter().chain(&touched))
        .into_iter()
        .all(|(var, touches)| !is_constant(graph, var) && is_free(graph.vars[var].len(), &touches, cancel))
}

/// The accesses of a compute set or a copy, or of several.
pub(crate) struct Touches {
    of_var: FxHashMap<VarId, Vec<Touch>>,
    /// The variables that are written, ascending.
    written: Vec<VarId>,
}

impl Touches {
    /// Returns the accesses of a step, or `None` if it is neither a compute set nor a copy.
    pub(crate) fn of_step(graph: &Graph, step: StepId) -> Option<Touches> {
        let all = match graph.steps[step].kind {
            StepKind::Execute(set) => of_set(graph, set),
            StepKind::Copy(copy) => of_copy(graph, copy),
            _ => return None,
        };
        let mut touches = Touches { of_var: FxHashMap::default(), written: vec![] };
        all.into_iter().for_each(|touch| touches.add(touch));
        Some(touches)
    }

    /// Adds the accesses of another step.
    pub(crate) fn join(&mut self, other: Touches) {
        other.of_var.into_values().flatten().for_each(|touch| self.add(touch));
    }

    /// Returns whether the step writes elements of a variable.
    pub(crate) fn writes(&self, var: VarId) -> bool {
        self.written.binary_search(&var).is_ok()
    }

    fn add(&mut self, touch: Touch) {
        let var = touch.print.var;
        if touch.written
            && let Err(at) = self.written.binary_search(&var)
        {
            self.written.insert(at, var);
        }
        self.of_var.entry(var).or_default().push(touch);
    }

    /// Returns whether neither step accesses what the other one writes.
    pub(crate) fn are_independent_of(&self, other: &Touches, graph: &Graph, cancel: &Cancel) -> bool {
        let mut vars: Vec<VarId> = self.written.iter().chain(&other.written).copied().collect();
        vars.sort_unstable();
        vars.dedup();
        vars.into_iter().all(|var| match (self.of_var.get(&var), other.of_var.get(&var)) {
            (Some(a), Some(b)) => is_free(graph.vars[var].len(), &a.iter().chain(b).collect::<Vec<_>>(), cancel),
            _ => true,
        })
    }

    /// Returns whether the step obeys the race rule.
    pub(crate) fn obey_the_race_rule(&self, graph: &Graph, cancel: &Cancel) -> bool {
        self.written.iter().all(|&var| {
            let touches: Vec<&Touch> = self.of_var.get(&var).into_iter().flatten().collect();
            !is_constant(graph, var) && is_free(graph.vars[var].len(), &touches, cancel)
        })
    }
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
