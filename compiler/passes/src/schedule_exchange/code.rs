//! The size of exchange code: what each tile must run to send and to receive.
//!
//! # Note: Instructions
//! A tile runs one send for every `words_per_send` words of a piece, and `receive_instructions` for every piece that it
//! receives (the sender's number and where to put it); a pair that receives together needs them on both tiles. What goes to
//! other processors counts likewise, as one piece. Branches, returns and the sync are not counted.
//!
//! Invariant: a function of plan, schedule and machine alone.

use cranelift_entity::SecondaryMap;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::plan::{Phase, StepPlan};
use girder_ir::schedule::{PhaseSchedule, Schedule, Served, StepSchedule};
use girder_ir::stage::Planned;
use girder_machine::Machine;

/// Bytes of exchange code of each step: by ascending tile, of the tiles that take part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExchangeCode {
    /// Of every compute set, both phases.
    pub sets: SecondaryMap<ComputeSetId, Vec<(u32, u32)>>,
    /// Of every copy.
    pub copies: SecondaryMap<CopyId, Vec<(u32, u32)>>,
}

/// Bytes of exchange code per tile and step.
pub fn exchange_code_bytes(planned: &Planned, schedule: &Schedule, machine: &Machine) -> ExchangeCode {
    let mut code = ExchangeCode::default();
    for s in planned.sets.keys() {
        code.sets[s] = step(&planned.plan.sets[s], &schedule.sets[s], machine);
    }
    for c in planned.copies.keys() {
        code.copies[c] = step(&planned.plan.copies[c], &schedule.copies[c], machine);
    }
    code
}

pub(super) fn step(plan: &StepPlan, schedule: &StepSchedule, machine: &Machine) -> Vec<(u32, u32)> {
    if [&plan.before, &plan.after].iter().all(|p| p.transfers.is_empty()) {
        return vec![];
    }
    let mut instructions = vec![0; machine.tiles() as usize];
    phase(&plan.before, &schedule.before, machine, &mut instructions);
    phase(&plan.after, &schedule.after, machine, &mut instructions);
    let bytes = |n: u64| u32::try_from(n * machine.exchange.instruction_bytes as u64).unwrap_or(u32::MAX);
    (0..).zip(instructions).filter(|(_, n)| *n > 0).map(|(tile, n)| (tile, bytes(n))).collect()
}

/// Adds the instructions of one phase, by tile.
fn phase(phase: &Phase, schedule: &PhaseSchedule, machine: &Machine, instructions: &mut [u64]) {
    let mut add = |from: u32, words: u32, to: &mut dyn Iterator<Item = u32>| {
        let sends = words.div_ceil(machine.exchange.words_per_send.max(1));
        instructions[from as usize] += sends as u64;
        to.for_each(|tile| {
            instructions[tile as usize] += machine.exchange.receive_instructions as u64;
        });
    };
    for piece in &schedule.pieces {
        let Some(transfer) = phase.transfers.get(piece.transfer as usize) else { continue };
        match piece.to {
            Served::All => {
                let home = machine.ipu_of(transfer.from.tile);
                let tiles = transfer.to.iter().map(|l| l.tile);
                add(transfer.from.tile, piece.words, &mut tiles.filter(|&t| machine.ipu_of(t) == home));
            }
            Served::Some { first, count } => {
                let some = schedule.served.iter().skip(first as usize).take(count as usize);
                let tiles = some.filter_map(|&k| transfer.to.get(k as usize)).map(|l| l.tile);
                add(transfer.from.tile, piece.words, &mut { tiles });
            }
        }
    }
    for transfer in &phase.transfers {
        let home = machine.ipu_of(transfer.from.tile);
        let mut away = transfer.to.iter().map(|l| l.tile).filter(|&t| machine.ipu_of(t) != home).peekable();
        if away.peek().is_some() {
            add(transfer.from.tile, transfer.words, &mut away);
        }
    }
}
