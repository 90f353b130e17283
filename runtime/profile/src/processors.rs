//! The processors of a machine of several, and the programs that others call, such as the phases of a pipeline.
//!
//! Invariant: the cycles of a call are those of its steps, without the waits of its processors for others.

use crate::profile::{CalledProgram, Cut, Processor, Stages};
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::layout::{Content, Layout};
use girder_ir::program::StepKind;
use girder_machine::Machine;
use girder_passes::rings::waits;
use girder_source::OriginId;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the processors with the cycles in which each was busy; none if there is one.
pub(crate) fn processors(graph: &Graph, layout: &Layout, machine: &Machine, busy: &[u64]) -> Vec<Processor> {
    if machine.ipus < 2 {
        return vec![];
    }
    let mut all: Vec<Processor> =
        (0..).zip(busy).map(|(ipu, &busy)| Processor { ipu, busy, ..Processor::default() }).collect();
    for class in layout.classes() {
        let mut sums = Processor::default();
        for block in &class.blocks {
            let bytes = u64::from(block.bytes);
            *match block.content {
                Content::Var(var) => match graph.vars[var].class {
                    VarClass::Param => &mut sums.params,
                    VarClass::State => &mut sums.states,
                    VarClass::Temp if waits(&graph.vars[var]) => &mut sums.rings,
                    _ => &mut sums.values,
                },
                Content::SetBuffer(..) | Content::CopyBuffer(..) | Content::Packets(_) => &mut sums.values,
                _ => &mut sums.code,
            } += bytes;
        }
        for tile in class.tiles.iter() {
            let Some(p) = all.get_mut(machine.ipu_of(tile) as usize) else { continue };
            p.params += sums.params;
            p.states += sums.states;
            p.rings += sums.rings;
            p.values += sums.values;
            p.code += sums.code;
        }
    }
    all
}

/// Returns the programs that others call, in the order of their steps; `row` has the executions and cycles of a step,
/// and `ipus` its processors.
pub(crate) fn called(
    graph: &Graph,
    row: impl Fn(StepId) -> Option<(u64, u64)>,
    ipus: impl Fn(StepId) -> Vec<u32>,
    location: impl Fn(ProgramId) -> Option<String>,
) -> Vec<CalledProgram> {
    let overlapping = overlapping(graph);
    let mut all = vec![];
    for (id, program) in graph.programs.iter().filter(|(_, p)| !p.entry) {
        let (mut cycles, mut left) = (0u64, vec![program.body]);
        let mut on = BTreeSet::new();
        while let Some(step) = left.pop() {
            cycles = cycles.saturating_add(row(step).map_or(0, |(_, cycles)| cycles));
            on.extend(ipus(step));
            left.extend(graph.steps[step].children());
        }
        // A step that stands in no loop and in no branch runs once in each call.
        let StepKind::Seq(top) = &graph.steps[program.body].kind else { continue };
        let Some((calls, _)) = top.iter().find_map(|&s| row(s)).filter(|(calls, _)| *calls > 0) else { continue };
        all.push(CalledProgram {
            program: id,
            name: program.name.to_string(),
            location: location(id),
            calls,
            cycles: cycles / calls,
            ipus: on.into_iter().collect(),
            overlaps: overlapping.contains(&id),
        });
    }
    all
}

/// Returns the programs that branches of a `par` call.
fn overlapping(graph: &Graph) -> FxHashSet<ProgramId> {
    let mut all = FxHashSet::default();
    for step in graph.steps.values() {
        let StepKind::Par(branches) = &step.kind else { continue };
        let mut left = branches.clone();
        while let Some(step) = left.pop() {
            if let StepKind::Call(program) = graph.steps[step].kind {
                all.insert(program);
            }
            left.extend(graph.steps[step].children());
        }
    }
    all
}

/// Returns the stages of the pipeline that takes most of a run: its overlapping programs by processors, and a better
/// cut of them. None if there are not two stages.
pub(crate) fn stages(
    graph: &Graph,
    called: &[CalledProgram],
    processors: &[Processor],
    cycles: u64,
    cut: impl FnOnce(&[&CalledProgram]) -> Option<Cut>,
) -> Option<Stages> {
    // The phases of a pipeline stand where the pipeline stands.
    let mut pipelines: BTreeMap<Option<OriginId>, (u64, Vec<&CalledProgram>)> = BTreeMap::new();
    for program in called.iter().filter(|c| c.overlaps) {
        let around = graph.origins.get(graph.programs[program.program].origin).parent;
        let (sum, phases) = pipelines.entry(around).or_default();
        *sum = sum.saturating_add(program.cycles.saturating_mul(program.calls));
        phases.push(program);
    }
    let (_, (_, phases)) = pipelines.into_iter().max_by_key(|(around, (sum, _))| (*sum, Reverse(*around)))?;
    let mut by_ipus: BTreeMap<&[u32], (u64, Vec<String>)> = BTreeMap::new();
    for program in &phases {
        let (sum, names) = by_ipus.entry(&program.ipus).or_default();
        *sum = sum.saturating_add(program.cycles);
        names.push(program.name.clone());
    }
    let (slowest, (most, programs)) = by_ipus.iter().max_by_key(|(ipus, (sum, _))| (*sum, Reverse(**ipus)))?;
    let all = by_ipus.values().fold(0u64, |all, (sum, _)| all.saturating_add(*sum));
    // Processors that have no part in the program wait for nothing.
    let used: Vec<f64> = processors.iter().map(|p| p.busy as f64).filter(|&busy| busy > 0.0).collect();
    let busy = used.iter().sum::<f64>();
    (by_ipus.len() > 1).then(|| Stages {
        slowest: slowest.to_vec(),
        programs: programs.clone(),
        cycles: *most,
        mean: all / by_ipus.len() as u64,
        bubble: (1.0 - busy / (used.len().max(1) as f64 * cycles.max(1) as f64)).max(0.0),
        cut: cut(&phases),
    })
}
