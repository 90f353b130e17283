//! The values that are kept for reverse programs: what a step outside of them writes and a step of one reads.
//!
//! The steps themselves say which of them are part of a reverse program, so the list holds after every pass and is the
//! same for printed text. Parameters, states and constants are not counted: they are there anyway.
//!
//! Invariant: a value is counted once, however many steps read it, with all elements of its variable.

use crate::memory::most_at_once;
use crate::profile::{KeptForReverse, KeptValues};
use girder_ir::codelet::Dir;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::{FamilyId, StepId, VarId};
use girder_ir::layout::{Content, Layout, MemoryBlock};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Returns the values kept for reverse programs and the bytes of their elements; `at` gives the file and line of a
/// step.
pub(crate) fn kept(graph: &Graph, layout: &Layout, at: impl Fn(StepId) -> Option<String>) -> KeptForReverse {
    let made = made_for_reverse(graph);
    let mut kept = KeptForReverse::default();
    let mut of: FxHashMap<VarId, usize> = FxHashMap::default();
    for &(var, step) in &made {
        let name = unnumbered(&graph.vars[var].name).to_string();
        let location = at(step);
        let known = kept.values.iter().position(|v| v.name == name && v.location == location);
        let row = known.unwrap_or_else(|| {
            kept.values.push(KeptValues { name, location, count: 0, bytes: 0, worst: 0 });
            kept.values.len() - 1
        });
        kept.values[row].count += 1;
        kept.values[row].bytes += graph.vars[var].bytes();
        of.insert(var, row);
    }
    for class in layout.classes() {
        let row_of = |b: &MemoryBlock| match b.content {
            Content::Var(v) => of.get(&v).copied(),
            _ => None,
        };
        let mut blocks: Vec<Vec<&MemoryBlock>> = vec![vec![]; kept.values.len()];
        class.blocks.iter().for_each(|b| row_of(b).into_iter().for_each(|row| blocks[row].push(b)));
        for (row, blocks) in kept.values.iter_mut().zip(&blocks) {
            row.worst = row.worst.max(most_at_once(blocks).0);
        }
        kept.worst = kept.worst.max(most_at_once(&blocks.concat()).0);
    }
    kept.bytes = kept.values.iter().map(|v| v.bytes).sum();
    kept.values.sort_by(|a, b| (Reverse(a.bytes), &a.name).cmp(&(Reverse(b.bytes), &b.name)));
    kept
}

/// Returns the variables that steps of reverse programs read and others write, each with the last of the latter before
/// the first of the former, in the order of the text.
fn made_for_reverse(graph: &Graph) -> Vec<(VarId, StepId)> {
    let mut read: FxHashSet<VarId> = FxHashSet::default();
    let mut last: FxHashMap<VarId, StepId> = FxHashMap::default();
    for (id, step) in &graph.steps {
        if step.reverse {
            reads(graph, &step.kind, &mut |v| _ = read.insert(v));
        } else {
            // A later write, as that of the next iteration, counts only if there is none before.
            writes(graph, &step.kind, &mut |v| {
                if !read.contains(&v) || !last.contains_key(&v) {
                    last.insert(v, id);
                }
            });
        }
    }
    let own = made_backwards(graph);
    let counts = |v: &VarId| matches!(graph.vars[*v].class, VarClass::Temp | VarClass::Var) && !own.contains(v);
    let mut made: Vec<(VarId, StepId)> =
        read.into_iter().filter(counts).filter_map(|v| Some((v, *last.get(&v)?))).collect();
    made.sort_unstable();
    made
}

/// Returns the variables whose values reverse programs make. Other steps only make them constant, such as the sums of a
/// pipeline's gradients, or copy them, such as adjoints on their way to another processor.
fn made_backwards(graph: &Graph) -> FxHashSet<VarId> {
    let (mut all, mut forwards): (FxHashSet<VarId>, FxHashSet<VarId>) = Default::default();
    let mut moves: Vec<(VarId, VarId)> = vec![];
    for step in graph.steps.values() {
        match &step.kind {
            kind if step.reverse => writes(graph, kind, &mut |v| _ = all.insert(v)),
            StepKind::Copy(copy) => {
                for family in &graph.copies[*copy].families {
                    let from = |to: VarId| family.src.parts.iter().map(move |p| (to, p.var));
                    moves.extend(family.dst.parts.iter().flat_map(|p| from(p.var)));
                }
            }
            StepKind::Execute(set) => {
                for &id in &graph.sets[*set].families {
                    let fields = &graph.codelets[graph.families[id].codelet].fields;
                    if graph.families[id].fields.iter().any(|f| fields[f.field].dir != Dir::Out) {
                        of_family(graph, id, |dir| dir != Dir::In, &mut |v| _ = forwards.insert(v));
                    }
                }
            }
            kind => writes(graph, kind, &mut |v| _ = forwards.insert(v)),
        }
    }
    all.extend(moves.iter().map(|m| m.0));
    loop {
        let before = forwards.len();
        for (to, from) in &moves {
            if forwards.contains(from) || !all.contains(from) {
                forwards.insert(*to);
            }
        }
        if forwards.len() == before {
            break;
        }
    }
    all.retain(|v| !forwards.contains(v));
    all
}

/// Returns the variables that a step itself reads, some of them more than once.
pub(crate) fn read_by(graph: &Graph, step: StepId) -> Vec<VarId> {
    let mut all = vec![];
    reads(graph, &graph.steps[step].kind, &mut |v| all.push(v));
    all
}

/// Calls `f` with each variable that a step itself reads.
fn reads(graph: &Graph, kind: &StepKind, f: &mut dyn FnMut(VarId)) {
    let mut view = |v: &View| v.parts.iter().for_each(|p| f(p.var));
    match kind {
        StepKind::Execute(set) => each_field(graph, *set, |dir| matches!(dir, Dir::In | Dir::InOut), f),
        StepKind::Copy(copy) => {
            graph.copies[*copy].families.iter().flat_map(|c| &c.src.parts).for_each(|p| f(p.var));
        }
        StepKind::If { cond: v, .. } | StepKind::While { cond: v, .. } | StepKind::Switch { on: v, .. } => view(v),
        StepKind::Effect(
            Effect::Print { value: v, .. }
            | Effect::Write { from: v, .. }
            | Effect::Seek { row: v, .. }
            | Effect::Abort { when: Some(v), .. },
        ) => view(v),
        _ => {}
    }
}

/// Calls `f` with each variable that a step itself writes.
fn writes(graph: &Graph, kind: &StepKind, f: &mut dyn FnMut(VarId)) {
    match kind {
        StepKind::Execute(set) => each_field(graph, *set, |dir| matches!(dir, Dir::Out | Dir::InOut), f),
        StepKind::Copy(copy) => {
            graph.copies[*copy].families.iter().flat_map(|c| &c.dst.parts).for_each(|p| f(p.var));
        }
        StepKind::Repeat { index: Some((v, ..)), .. } => f(*v),
        StepKind::Effect(Effect::Read { into, .. }) => into.parts.iter().for_each(|p| f(p.var)),
        _ => {}
    }
}

fn each_field(
    graph: &Graph,
    set: girder_ir::ids::ComputeSetId,
    wanted: impl Fn(Dir) -> bool,
    f: &mut dyn FnMut(VarId),
) {
    graph.sets[set].families.iter().for_each(|&family| of_family(graph, family, &wanted, f));
}

fn of_family(graph: &Graph, family: FamilyId, wanted: impl Fn(Dir) -> bool, f: &mut dyn FnMut(VarId)) {
    let family = &graph.families[family];
    let fields = &graph.codelets[family.codelet].fields;
    let wanted = family.fields.iter().filter(|field| wanted(fields[field.field].dir));
    wanted.flat_map(|field| &field.parts).for_each(|p| f(p.var));
}

/// Returns a name without the number that keeps it apart from equal ones.
fn unnumbered(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((base, number))
            if !base.is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    }
}
