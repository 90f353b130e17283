//! The size of exchange code: the instructions of each tile to send and to receive.
//!
//! # Note: Instructions
//! A tile runs one send for every `words_per_send` words of a slice, and `receive_instructions` for every slice that it
//! receives (the sender's number and the destination). In a pair that receives together, both tiles run the latter.
//! Words for other processors or replicas count as one slice. Branches, returns and the sync are not counted.
//!
//! Invariant: the size is a function of plan, schedule and machine alone.

use cranelift_entity::SecondaryMap;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::plan::{Phase, StepPlan, To};
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
    let sets = planned.sets.keys().map(|s| (&planned.plan.sets[s], &schedule.sets[s]));
    let copies = planned.copies.keys().map(|c| (&planned.plan.copies[c], &schedule.copies[c]));
    let steps: Vec<_> = sets.chain(copies).collect();
    let mut found = par_map_slice(&steps, |(plan, schedule)| step(plan, schedule, machine)).into_iter();
    let mut code = ExchangeCode::default();
    for (s, own) in planned.sets.keys().zip(&mut found) {
        code.sets[s] = own;
    }
    for (c, own) in planned.copies.keys().zip(found) {
        code.copies[c] = own;
    }
    code
}

/// Returns the bytes of a step's exchange code, by tile.
pub(super) fn step(plan: &StepPlan, schedule: &StepSchedule, machine: &Machine) -> Vec<(u32, u32)> {
    if [&plan.before, &plan.after].iter().all(|p| p.transfers.is_empty()) {
        return vec![];
    }
    let mut instructions = vec![0; machine.tiles() as usize];
    if plan.before.transfers.iter().any(|t| plan.before.receivers(t).any(|to| to.tile >= machine.tiles())) {
        between_replicas(&plan.before, machine, &mut instructions);
        return listed(instructions, machine);
    }
    phase(&plan.before, &schedule.before, machine, &mut instructions);
    phase(&plan.after, &schedule.after, machine, &mut instructions);
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
fn phase(phase: &Phase, schedule: &PhaseSchedule, machine: &Machine, instructions: &mut [i64]) {
    let sends = |words: u32| words.div_ceil(machine.exchange.words_per_send.max(1)) as i64;
    let receipt = machine.exchange.receive_instructions as i64;
    // Slices from one processor to all of a group's tiles on it are counted first.
    let mut to_groups: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for piece in &schedule.slices {
        let Some(transfer) = phase.transfers.get(piece.transfer as usize) else { continue };
        let sender = transfer.from.tile;
        instructions[sender as usize] += sends(piece.words);
        let home = machine.ipu_of(sender);
        match (piece.to, transfer.to) {
            (Served::All, To::Group { group, .. }) => {
                *to_groups.entry((group, home)).or_default() += receipt;
                // A sender that is a member of the group receives nothing.
                let places = &phase.groups[group as usize];
                if places.binary_search_by_key(&sender, |l| l.tile).is_ok() {
                    instructions[sender as usize] -= receipt;
                }
            }
            (Served::All, To::One(to)) if machine.ipu_of(to.tile) == home => {
                instructions[to.tile as usize] += receipt;
            }
            _ => {
                let to = schedule.receivers(piece, phase, transfer, machine.chip.tiles);
                to.iter().for_each(|l| instructions[l.tile as usize] += receipt);
            }
        }
    }
    for ((group, home), receipts) in to_groups {
        let here = phase.groups[group as usize].iter().filter(|l| machine.ipu_of(l.tile) == home);
        here.for_each(|l| instructions[l.tile as usize] += receipts);
    }
    if machine.ipus > 1 {
        between(phase, machine, instructions);
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
