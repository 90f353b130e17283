//! The size of exchange code: the instructions of each tile to send and to receive.
//!
//! # Note: Instructions
//! A tile runs one send for every `words_per_send` words of a slice, and `receive_instructions` for every slice that it
//! receives (the sender's number and the destination). In a pair that receives together, both tiles run the latter.
//! Words for other processors or replicas count as one slice. Branches, returns and the sync are not counted.
//! A schedule moves each transfer in one slice or in several, so a plan alone gives the least code.
//!
//! Invariant: the size is a function of plan, schedule and machine alone.

use cranelift_entity::SecondaryMap;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::plan::{Phase, StepPlan, To, Transfer};
use girder_ir::schedule::{PhaseSchedule, Schedule, Served, StepSchedule};
use girder_ir::stage::Planned;
use girder_machine::Machine;
use girder_source::par_map_slice;
use rustc_hash::FxHashMap;

/// The bytes of exchange code of each step, for each tile that takes part, by ascending tile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExchangeCode {
    /// The code of every compute set, both phases.
    pub sets: SecondaryMap<ComputeSetId, Vec<(u32, u32)>>,
    /// The code of every copy.
    pub copies: SecondaryMap<CopyId, Vec<(u32, u32)>>,
}

/// Returns the bytes of exchange code per tile and step.
pub fn exchange_code_bytes(planned: &Planned, schedule: &Schedule, machine: &Machine) -> ExchangeCode {
    let sets = planned.sets.keys().map(|s| (&planned.plan.sets[s], Some(&schedule.sets[s])));
    let copies = planned.copies.keys().map(|c| (&planned.plan.copies[c], Some(&schedule.copies[c])));
    of_steps(planned, &sets.chain(copies).collect::<Vec<_>>(), machine)
}

/// Returns the least bytes of exchange code per tile and step that any schedule of a plan has.
pub fn least_exchange_code_bytes(planned: &Planned, machine: &Machine) -> ExchangeCode {
    let sets = planned.sets.keys().map(|s| (&planned.plan.sets[s], None));
    let copies = planned.copies.keys().map(|c| (&planned.plan.copies[c], None));
    of_steps(planned, &sets.chain(copies).collect::<Vec<_>>(), machine)
}

/// Returns the code of all compute sets, then of all copies.
fn of_steps(planned: &Planned, steps: &[(&StepPlan, Option<&StepSchedule>)], machine: &Machine) -> ExchangeCode {
    let mut found = par_map_slice(steps, |&(plan, schedule)| step(plan, schedule, machine)).into_iter();
    let mut code = ExchangeCode::default();
    for (s, own) in planned.sets.keys().zip(&mut found) {
        code.sets[s] = own;
    }
    for (c, own) in planned.copies.keys().zip(found) {
        code.copies[c] = own;
    }
    code
}

/// Returns the bytes of a step's exchange code, by tile; without a schedule, the least.
pub(super) fn step(plan: &StepPlan, schedule: Option<&StepSchedule>, machine: &Machine) -> Vec<(u32, u32)> {
    if [&plan.before, &plan.after].iter().all(|p| p.transfers.is_empty()) {
        return vec![];
    }
    let mut instructions = vec![0; machine.tiles() as usize];
    if plan.before.transfers.iter().any(|t| plan.before.receivers(t).any(|to| to.tile >= machine.tiles())) {
        between_replicas(&plan.before, machine, &mut instructions);
        return listed(instructions, machine);
    }
    phase(&plan.before, schedule.map(|s| &*s.before), machine, &mut instructions);
    phase(&plan.after, schedule.map(|s| &*s.after), machine, &mut instructions);
    listed(instructions, machine)
}

fn listed(instructions: Vec<i64>, machine: &Machine) -> Vec<(u32, u32)> {
    let bytes = |n: i64| u32::try_from(n * machine.exchange.instruction_bytes as i64).unwrap_or(u32::MAX);
    (0..).zip(instructions).filter(|(_, n)| *n > 0).map(|(tile, n)| (tile, bytes(n))).collect()
}

/// Adds the instructions for words to other replicas. All replicas have the code to send and to receive.
fn between_replicas(phase: &Phase, machine: &Machine, instructions: &mut [i64]) {
    let tiles = machine.tiles();
    for transfer in &phase.transfers {
        let sends = transfer.words.div_ceil(machine.exchange.words_per_send.max(1)) as i64;
        instructions[(transfer.from.tile % tiles) as usize] += sends;
        for to in phase.receivers(transfer) {
            instructions[(to.tile % tiles) as usize] += machine.exchange.receive_instructions as i64;
        }
    }
}

/// Adds the instructions of one phase, by tile.
fn phase(phase: &Phase, schedule: Option<&PhaseSchedule>, machine: &Machine, instructions: &mut [i64]) {
    let mut slices = Slices { phase, machine, instructions, to_groups: FxHashMap::default() };
    match schedule {
        Some(schedule) => {
            for slice in &schedule.slices {
                let Some(transfer) = phase.transfers.get(slice.transfer as usize) else { continue };
                match slice.to {
                    Served::All => slices.add(transfer, slice.words),
                    Served::Some { .. } => {
                        slices.send(transfer, slice.words);
                        let to = schedule.receivers(slice, phase, transfer, machine.chip.tiles);
                        to.iter().for_each(|l| slices.receive(l.tile));
                    }
                }
            }
        }
        None => {
            for transfer in phase.transfers.iter().filter(|t| machine.ipus == 1 || stays(phase, t, machine)) {
                slices.add(transfer, transfer.words);
            }
        }
    }
    slices.end();
    if machine.ipus > 1 {
        between(phase, machine, instructions);
    }
}

/// Returns whether a transfer has a receiver on its sender's processor.
fn stays(phase: &Phase, transfer: &Transfer, machine: &Machine) -> bool {
    let home = machine.ipu_of(transfer.from.tile);
    phase.receivers(transfer).any(|to| machine.ipu_of(to.tile) == home)
}

/// The slices of a phase whose words stay on a processor.
struct Slices<'a> {
    phase: &'a Phase,
    machine: &'a Machine,
    instructions: &'a mut [i64],
    /// The receive instructions of slices from one processor to all of a group's tiles on it.
    to_groups: FxHashMap<(u32, u32), i64>,
}

impl Slices<'_> {
    fn send(&mut self, transfer: &Transfer, words: u32) {
        let sends = words.div_ceil(self.machine.exchange.words_per_send.max(1));
        self.instructions[transfer.from.tile as usize] += i64::from(sends);
    }

    fn receive(&mut self, tile: u32) {
        self.instructions[tile as usize] += self.receipt();
    }

    fn receipt(&self) -> i64 {
        i64::from(self.machine.exchange.receive_instructions)
    }

    /// Adds a slice to all receivers on the sender's processor.
    fn add(&mut self, transfer: &Transfer, words: u32) {
        self.send(transfer, words);
        let sender = transfer.from.tile;
        let home = self.machine.ipu_of(sender);
        match transfer.to {
            To::Group { group, .. } => {
                let receipt = self.receipt();
                *self.to_groups.entry((group, home)).or_default() += receipt;
                // A sender that is a member of the group receives nothing.
                let places = &self.phase.groups[group as usize];
                if places.binary_search_by_key(&sender, |l| l.tile).is_ok() {
                    self.instructions[sender as usize] -= receipt;
                }
            }
            To::One(to) if self.machine.ipu_of(to.tile) == home => self.receive(to.tile),
            To::One(_) => {}
        }
    }

    /// Adds what the tiles of groups receive.
    fn end(self) {
        for ((group, home), receipts) in self.to_groups {
            let here = self.phase.groups[group as usize].iter().filter(|l| self.machine.ipu_of(l.tile) == home);
            here.for_each(|l| self.instructions[l.tile as usize] += receipts);
        }
    }
}

/// Adds the instructions for words to other processors.
fn between(phase: &Phase, machine: &Machine, instructions: &mut [i64]) {
    let sends = |words: u32| words.div_ceil(machine.exchange.words_per_send.max(1)) as i64;
    for transfer in &phase.transfers {
        let home = machine.ipu_of(transfer.from.tile);
        let mut away = phase.receivers(transfer).map(|l| l.tile).filter(|&t| machine.ipu_of(t) != home).peekable();
        if away.peek().is_some() {
            instructions[transfer.from.tile as usize] += sends(transfer.words);
            away.for_each(|tile| instructions[tile as usize] += machine.exchange.receive_instructions as i64);
        }
    }
}
