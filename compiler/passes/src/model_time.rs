//! `model-time`: the time of each step of an allocated program on the machine.
//!
//! This is not a pass: nothing later depends on it, so it runs only on request. `phases` is the time of exchanges,
//! `compute` that of vertices, and `control` that of steps between supersteps. The formulas are in
//! [`superstep`](crate::superstep), the costs of codelets in [`girder_codelet::cost`].
//!
//! Invariant: modelled time depends on the machine, the tables and counted blocks, never on the host.

mod compute;
mod control;
mod ipus;
mod phases;

pub use compute::Counted;

use girder_ir::program::{Effect, StepKind};
use girder_ir::stage::Allocated;
use girder_ir::timing::{PacketAhead, Timing};
use girder_machine::Machine;

/// Returns the times of all steps, and the costs of vertices for times that depend on data.
pub fn model_time<'a>(allocated: &'a Allocated, machine: &'a Machine) -> (Timing, Counted<'a>) {
    let counted = Counted::new(allocated, machine);
    let mut timing = Timing { sync: control::sync_time(machine), ..Timing::default() };
    for id in allocated.sets.keys() {
        let compute = counted.without_counts(id);
        let ipus: Vec<u32> = compute.iter().map(|c| c.0).collect();
        let mut time = phases::step_time(machine, &allocated.plan.sets[id], &allocated.schedule.sets[id], &ipus);
        for (ipu, part) in &mut time.ipus {
            if let Some((_, vertices)) = compute.iter().find(|c| c.0 == *ipu) {
                part.compute = *vertices;
            }
        }
        timing.sets[id] = time;
    }
    for id in allocated.copies.keys() {
        let (plan, schedule) = (&allocated.plan.copies[id], &allocated.schedule.copies[id]);
        timing.copies[id] = match allocated.copies[id].crosses() {
            true => phases::between_replicas(machine, plan, schedule, &allocated.copies[id].pair_lists()),
            false => phases::step_time(machine, plan, schedule, &[]),
        };
    }
    for (id, step) in &allocated.steps {
        let StepKind::Effect(Effect::Read { stream, into: view } | Effect::Write { stream, from: view }) = &step.kind
        else {
            continue;
        };
        let (ahead, placement) = (allocated.streams[*stream].ahead > 0, &allocated.placement);
        if allocated.streams[*stream].rows.is_some() {
            timing.packets[id] = control::row_time(machine, allocated, placement, view);
            continue;
        }
        timing.packets[id] = control::packet_time(machine, allocated, placement, view, ahead);
        timing.ahead[id] = ahead.then(|| {
            let host = control::packet_host_cycles(machine, allocated, placement, view);
            PacketAhead { stream: *stream, host }
        });
    }
    let ipus = ipus::step_ipus(allocated, machine, &timing);
    for (id, step) in &allocated.steps {
        if let StepKind::If { .. } | StepKind::While { .. } | StepKind::Switch { .. } = &step.kind {
            let ipus: Vec<u32> = ipus[id].ones().map(|ipu| ipu as u32).collect();
            timing.predicates[id] = control::predicate_time(machine, &ipus);
        }
    }
    timing.waits = ipus::waits(allocated, &timing, &ipus);
    (timing, counted)
}
