//! The steps between which each variable is used.
//!
//! Invariant: steps are numbered in pre-order, so that the steps of a body are between its first and its last one.

use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;

/// The first and the last step that touch each variable.
pub(super) struct Lifetimes(SecondaryMap<VarId, Option<(StepId, StepId)>>);

impl Lifetimes {
    /// Finds the lifetimes of all variables of a graph.
    pub fn of(graph: &Graph) -> Lifetimes {
        let mut all = Lifetimes(SecondaryMap::new());
        for (id, step) in &graph.steps {
            match &step.kind {
                StepKind::Execute(set) => {
                    let fields = graph.sets[*set].families.iter().flat_map(|&f| &graph.families[f].fields);
                    fields.flat_map(|f| &f.parts).for_each(|p| all.touch(p.var, id));
                }
                StepKind::Copy(copy) => {
                    let fields = graph.copies[*copy].families.iter().flat_map(|f| [&f.dst, &f.src]);
                    fields.flat_map(|f| &f.parts).for_each(|p| all.touch(p.var, id));
                }
                StepKind::Repeat { index, .. } => index.iter().for_each(|i| all.touch(i.0, id)),
                StepKind::While { cond: view, .. }
                | StepKind::If { cond: view, .. }
                | StepKind::Switch { on: view, .. }
                | StepKind::Effect(
                    Effect::Print { value: view, .. }
                    | Effect::Abort { when: Some(view), .. }
                    | Effect::Read { into: view, .. }
                    | Effect::Undef { what: view }
                    | Effect::Write { from: view, .. },
                ) => all.touch_view(view, id),
                StepKind::Seq(_)
                | StepKind::Par(_)
                | StepKind::Call(_)
                | StepKind::Effect(Effect::Abort { when: None, .. } | Effect::PrintText { .. } | Effect::Sync) => {}
            }
        }
        all
    }

    fn touch_view(&mut self, view: &View, step: StepId) {
        view.parts.iter().for_each(|p| self.touch(p.var, step));
    }

    fn touch(&mut self, var: VarId, step: StepId) {
        let (first, last) = self.0[var].unwrap_or((step, step));
        self.0[var] = Some((first.min(step), last.max(step)));
    }

    /// Returns whether no step outside a range touches a variable.
    pub fn is_within(&self, var: VarId, first: StepId, last: StepId) -> bool {
        self.0[var].is_some_and(|(from, to)| first <= from && to <= last)
    }
}
