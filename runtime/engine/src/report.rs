//! What a run leaves behind beside its values: how many supersteps it took, and modelled cycles of exchange.
//!
//! Invariant: modelled cycles depend on the machine, the tables and the path through the program; never on the mode,
//! the threads or the host.

use cranelift_entity::SecondaryMap;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::plan::{Phase, StepPlan};
use girder_ir::schedule::{PhaseSchedule, StepSchedule};
use girder_ir::stage::Allocated;
use girder_machine::Machine;

/// What a run took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunReport {
    /// Compute sets and copies executed.
    pub supersteps: u64,
    /// Per processor: cycles spent in sync and exchange, waiting for the other processors of a step included; vertices
    /// and on-tile copies are not counted. Empty where no schedule is known (a bare graph).
    pub exchange_cycles: Vec<u64>,
}

/// What a superstep costs in exchange.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct StepCost {
    /// The processors that take part, ascending.
    ipus: Vec<u32>,
    /// Whether they wait for each other.
    joined: bool,
    /// Sync and exchange, each phase from its sync to its last word.
    cycles: u64,
}

/// The costs of all compute sets and copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    ipus: usize,
    sets: SecondaryMap<ComputeSetId, StepCost>,
    copies: SecondaryMap<CopyId, StepCost>,
}

impl Costs {
    /// From the plan and its schedule.
    pub(crate) fn new(allocated: &Allocated, machine: &Machine) -> Costs {
        let mut costs = Costs { ipus: machine.ipus as usize, ..Costs::default() };
        for (id, set) in &allocated.sets {
            let tiles = set.families.iter().flat_map(|&f| {
                let family = &allocated.families[f];
                allocated.placement.families[f].iter().flat_map(|map| map.iter(&family.domain))
            });
            let compute = ipus_of(machine, tiles);
            costs.sets[id] = step_cost(machine, &allocated.plan.sets[id], &allocated.schedule.sets[id], compute);
        }
        for id in allocated.copies.keys() {
            let (plan, schedule) = (&allocated.plan.copies[id], &allocated.schedule.copies[id]);
            costs.copies[id] = step_cost(machine, plan, schedule, Vec::new());
        }
        costs
    }

    /// Clocks at zero.
    pub(crate) fn clocks(&self) -> Vec<u64> {
        vec![0; self.ipus]
    }

    /// Advances the clocks over a compute set.
    pub(crate) fn execute(&self, set: ComputeSetId, clocks: &mut [u64]) {
        advance(&self.sets[set], clocks);
    }

    /// Advances the clocks over a copy.
    pub(crate) fn copy(&self, copy: CopyId, clocks: &mut [u64]) {
        advance(&self.copies[copy], clocks);
    }
}

fn advance(cost: &StepCost, clocks: &mut [u64]) {
    let latest = cost.ipus.iter().map(|&i| clocks[i as usize]).max().unwrap_or(0);
    for &i in &cost.ipus {
        let clock = &mut clocks[i as usize];
        *clock = if cost.joined { latest } else { *clock } + cost.cycles;
    }
}

/// The processors of some tiles, ascending; a lone processor takes part in everything.
fn ipus_of(machine: &Machine, tiles: impl Iterator<Item = u32>) -> Vec<u32> {
    if machine.ipus == 1 {
        return vec![0];
    }
    let mut seen = vec![false; machine.ipus as usize];
    for tile in tiles {
        if let Some(s) = seen.get_mut(machine.ipu_of(tile) as usize) {
            *s = true;
        }
    }
    (0..machine.ipus).filter(|&i| seen[i as usize]).collect()
}

fn step_cost(machine: &Machine, plan: &StepPlan, schedule: &StepSchedule, compute: Vec<u32>) -> StepCost {
    let transfers = plan.before.transfers.iter().chain(&plan.after.transfers);
    let ends = transfers.flat_map(|t| t.to.iter().map(|l| l.tile).chain([t.from.tile]));
    let locals = [&plan.before, &plan.after].into_iter().flat_map(|p| p.before.iter().chain(&p.after));
    let touched = ends.chain(locals.map(|c| c.from.tile));
    let mut ipus = ipus_of(machine, touched);
    ipus.extend(compute);
    ipus.sort_unstable();
    ipus.dedup();
    let phases = [(&plan.before, &schedule.before), (&plan.after, &schedule.after)];
    let joined = phases.iter().any(|(p, _)| crosses(machine, p));
    let cycles = phases.iter().map(|(p, s)| phase_cycles(machine, p, s)).sum();
    StepCost { ipus, joined, cycles }
}

/// Whether words leave their processor.
fn crosses(machine: &Machine, phase: &Phase) -> bool {
    let ipu = |tile| machine.ipu_of(tile);
    phase.transfers.iter().any(|t| t.to.iter().any(|l| ipu(l.tile) != ipu(t.from.tile)))
}

fn phase_cycles(machine: &Machine, phase: &Phase, schedule: &PhaseSchedule) -> u64 {
    if phase.transfers.is_empty() {
        return 0;
    }
    let sync = match crosses(machine, phase) {
        true => machine.sync_cycles(0..machine.ipus),
        false => machine.sync.internal_cycles as u64,
    };
    let inside = match schedule.tile_cycles() {
        0 => 0,
        cycles => machine.latency_bound() as u64 + cycles as u64,
    };
    sync + inside + schedule.link_cycles as u64
}
