//! The IPUs that take part in each step: those on which it, or a step inside it, computes, moves words, or tests a
//! condition.
//!
//! Invariant: an IPU that takes no part in a step has nothing to wait for in it.

use crate::steps::{callers_first, children, steps_of};
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::program::StepKind;
use girder_ir::stage::Allocated;
use girder_ir::timing::{StepTime, Timing};
use girder_ir::view::View;
use girder_machine::Machine;

/// The IPUs of each step that a program reaches.
pub(super) type StepIpus = SecondaryMap<StepId, FixedBitSet>;

/// Returns the IPUs of all steps; `timing` has the times of compute sets, copies and packets.
pub(super) fn step_ipus(allocated: &Allocated, machine: &Machine, timing: &Timing) -> StepIpus {
    let mut found: StepIpus = SecondaryMap::new();
    let mut programs: SecondaryMap<ProgramId, FixedBitSet> = SecondaryMap::new();
    for program in callers_first(allocated).into_iter().rev() {
        let body = allocated.programs[program].body;
        let steps: Vec<StepId> = steps_of(allocated, body).collect();
        for &id in steps.iter().rev() {
            let mut ipus = FixedBitSet::with_capacity(machine.ipus as usize);
            let mut add = |time: &StepTime| time.ipus.iter().for_each(|(ipu, _)| ipus.insert(*ipu as usize));
            let kind = &allocated.steps[id].kind;
            match kind {
                StepKind::Execute(set) => add(&timing.sets[*set]),
                StepKind::Copy(copy) => add(&timing.copies[*copy]),
                StepKind::Call(callee) => ipus.union_with(&programs[*callee]),
                StepKind::Effect(girder_ir::program::Effect::Sync) => ipus.insert_range(..),
                StepKind::Effect(_) => add(&timing.packets[id]),
                StepKind::If { cond: on, .. } | StepKind::While { cond: on, .. } | StepKind::Switch { on, .. } => {
                    ipus.extend(home(allocated, machine, on));
                }
                StepKind::Seq(_) | StepKind::Par(_) | StepKind::Repeat { .. } => {}
            }
            children(kind, |child| ipus.union_with(&found[child]));
            found[id] = ipus;
        }
        programs[program] = found[body].clone();
    }
    found
}

/// Returns the IPU of a scalar.
fn home(allocated: &Allocated, machine: &Machine, scalar: &View) -> Option<usize> {
    let run = scalar.runs().next()?;
    let mapping = allocated.placement.vars[run.var].as_ref()?;
    let tile = mapping.tile_of(allocated.vars[run.var].len(), run.start);
    Some(machine.ipu_of(tile) as usize)
}

/// Returns the steps in branches of a `par` that join the clock of an IPU of another branch, ascending.
pub(super) fn waits(allocated: &Allocated, timing: &Timing, ipus: &StepIpus) -> Vec<StepId> {
    let mut found = vec![];
    for step in allocated.steps.values() {
        let StepKind::Par(branches) = &step.kind else { continue };
        for (k, &branch) in branches.iter().enumerate() {
            let mut others = FixedBitSet::new();
            branches.iter().enumerate().filter(|b| b.0 != k).for_each(|(_, b)| others.union_with(&ipus[*b]));
            found.extend(steps_of(allocated, branch).filter(|&id| {
                let joined = match &allocated.steps[id].kind {
                    StepKind::Execute(set) => timing.sets[*set].joined,
                    StepKind::Copy(copy) => timing.copies[*copy].joined,
                    StepKind::Effect(_) => timing.packets[id].joined,
                    _ => false,
                };
                joined && !ipus[id].is_disjoint(&others)
            }));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
