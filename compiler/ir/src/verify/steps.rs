//! Checks of programs and their steps.

use super::check::{Result, ensure, var, within};
use super::elements;
use crate::graph::Graph;
use crate::ids::{ProgramId, StreamId};
use crate::program::{Effect, Step, StepKind};
use crate::types::ElemType;
use crate::view::View;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Checks all programs: their steps are the graph's in pre-order, and calls do not recurse.
pub fn verify(graph: &Graph) -> Result {
    let mut next = 0;
    let mut calls: SecondaryMap<ProgramId, Vec<ProgramId>> = SecondaryMap::new();
    for (id, program) in &graph.programs {
        let mut stack = vec![program.body];
        while let Some(at) = stack.pop() {
            let entity = || within(format_args!("{at} of program `{}`", program.name));
            ensure(at.index() == next, || format!("is in the position of step{next}")).map_err(entity())?;
            next += 1;
            let step = graph.steps.get(at).ok_or_else(|| "does not exist".to_string()).map_err(entity())?;
            verify_step(graph, step).map_err(entity())?;
            if let StepKind::Call(callee) = step.kind {
                calls[id].push(callee);
            }
            stack.extend(step.children().into_iter().rev());
        }
    }
    ensure(next == graph.steps.len(), || format!("step{next} belongs to no program"))?;
    recursion(graph, &calls)
}

/// Removes programs whose calls have all been removed, until none remains.
fn recursion(graph: &Graph, calls: &SecondaryMap<ProgramId, Vec<ProgramId>>) -> Result {
    let mut callers: SecondaryMap<ProgramId, Vec<ProgramId>> = SecondaryMap::new();
    let mut open: SecondaryMap<ProgramId, usize> = SecondaryMap::new();
    for id in graph.programs.keys() {
        open[id] = calls[id].len();
        calls[id].iter().for_each(|&c| callers[c].push(id));
    }
    let mut done: Vec<ProgramId> = graph.programs.keys().filter(|&id| open[id] == 0).collect();
    let mut k = 0;
    while k < done.len() {
        for &caller in &callers[done[k]] {
            open[caller] -= 1;
            if open[caller] == 0 {
                done.push(caller);
            }
        }
        k += 1;
    }
    ensure(done.len() == graph.programs.len(), || "a program calls itself".into())
}

fn verify_step(graph: &Graph, step: &Step) -> Result {
    let exists = |found: bool| ensure(found, || "names what does not exist".into());
    match &step.kind {
        StepKind::Seq(_) | StepKind::Par(_) => Ok(()),
        StepKind::Execute(set) => exists(graph.sets.is_valid(*set)),
        StepKind::Copy(copy) => exists(graph.copies.is_valid(*copy)),
        StepKind::Call(program) => exists(graph.programs.is_valid(*program)),
        StepKind::Repeat { index: None, .. } => Ok(()),
        StepKind::Repeat { index: Some((id, ..)), .. } => {
            let var = var(graph, *id)?;
            let fits = var.ty == ElemType::I32 && var.shape.is_empty();
            ensure(fits, || format!("`{}` cannot hold the index of a repeat", var.name))
        }
        StepKind::While { cond, .. } | StepKind::If { cond, .. } => scalar(graph, cond, |t| t == ElemType::Bool),
        StepKind::Switch { on, cases, .. } => {
            ensure(cases.iter().flat_map(|c| &c.0).all(|k| k.0 <= k.1), || "an empty range of keys".into())?;
            scalar(graph, on, ElemType::is_int)
        }
        StepKind::Effect(effect) => verify_effect(graph, effect),
    }
}

fn verify_effect(graph: &Graph, effect: &Effect) -> Result {
    match effect {
        Effect::Print { value: view, .. } | Effect::Agree { what: view } => elements::view(graph, view).map(|_| ()),
        Effect::Abort { when, .. } => when.as_ref().map_or(Ok(()), |cond| scalar(graph, cond, |t| t == ElemType::Bool)),
        Effect::Read { stream, into } => {
            packet(graph, *stream, into, true)?;
            elements::writable(graph, into.vars().into_iter())?;
            ensure(!into.has_aliases(), || "reads into an element twice".into())
        }
        Effect::Write { stream, from } => packet(graph, *stream, from, false),
        Effect::Undef { what, .. } => {
            elements::view(graph, what)?;
            elements::writable(graph, what.vars().into_iter())?;
            ensure(!what.has_aliases(), || "an element is named twice".into())
        }
        Effect::Seek { stream, row } => {
            let remote = graph.streams.get(*stream).is_some_and(|s| s.rows.is_some());
            ensure(remote, || "selects a row of what is no remote buffer".into())?;
            scalar(graph, row, |t| t == ElemType::I32)
        }
        Effect::PrintText { .. } | Effect::Sync => Ok(()),
    }
}

fn packet(graph: &Graph, id: StreamId, view: &View, input: bool) -> Result {
    let stream = graph.streams.get(id).ok_or_else(|| format!("there is no {id}"))?;
    let ty = elements::view(graph, view)?;
    ensure(stream.input == input || stream.rows.is_some(), || format!("the wrong way of `{}`", stream.name))?;
    let fits = view.shape() == stream.shape && ty.is_none_or(|t| t == stream.ty);
    ensure(fits, || format!("not a packet of `{}`", stream.name))
}

fn scalar(graph: &Graph, view: &View, fits: impl FnOnce(ElemType) -> bool) -> Result {
    let ty = elements::view(graph, view)?;
    ensure(view.rank() == 0 && ty.is_some_and(fits), || "a condition that is no scalar of its type".into())
}
