//! `merge-copies`: neighbouring copies that are independent become one exchange.
//!
//! A copy costs a sync and the latency of an exchange, whatever it moves; two neighbouring copies need these only once.
//! Copies are merged if the merged copy obeys the race rule: it writes no element twice and reads none that it writes.
//! Only copies with nothing between them are considered, including those of nested sequences. Copies between replicas
//! stay as they are.
//!
//! Invariant: every element keeps its final value, and only copies move.

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use crate::race_rule::JoinedCopies;
use crate::steps::sequences;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_ir::graph::{CopySet, Graph};
use girder_ir::ids::{CopyId, StepId};
use girder_ir::program::{Step, StepKind};
use girder_source::{Cancel, Result};

/// The pass `merge-copies`.
pub struct MergeCopies;

impl Pass for MergeCopies {
    const NAME: &'static str = "merge-copies";
    const SENTENCE: &'static str = "joins neighbouring copies that do not depend on one another into one exchange";
    const OPTIONAL: bool = true;
    type From = Graph;
    type To = Graph;

    /// Merges copies.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        let into = joins(&graph, &cx.session.cancel);
        cx.poll()?;
        if into.values().any(Option::is_some) {
            join(&mut graph, &into);
        }
        Ok(graph)
    }

    /// Checks that steps are in pre-order and that those that copy name a copy.
    fn verify(graph: &Graph, _: &PassContext) -> Verdict {
        for (id, step) in &graph.steps {
            if step.children().iter().any(|&child| child <= id || !graph.steps.is_valid(child)) {
                return Err(format!("{id} has a child that does not follow it"));
            }
            if matches!(step.kind, StepKind::Copy(copy) if !graph.copies.is_valid(copy)) {
                return Err(format!("{id} makes a copy that does not exist"));
            }
        }
        Ok(())
    }
}

/// A merged copy has at most this many families, so each copy is compared with a bounded number of others.
const MOST_FAMILIES: usize = 1024;

/// Which earlier copy each copy joins, if any.
type Joins = SecondaryMap<CopyId, Option<CopyId>>;

fn joins(graph: &Graph, cancel: &Cancel) -> Joins {
    let mut uses: SecondaryMap<CopyId, u32> = SecondaryMap::new();
    for step in graph.steps.values() {
        if let StepKind::Copy(copy) = step.kind {
            uses[copy] += 1;
        }
    }
    let mut into = Joins::new();
    for seq in sequences(graph) {
        let mut open: Option<(CopyId, JoinedCopies)> = None;
        for step in seq {
            let StepKind::Copy(copy) = graph.steps[step].kind else {
                open = None;
                continue;
            };
            let copies = &graph.copies[copy];
            let alone = uses[copy] == 1 && !copies.families.is_empty() && !copies.crosses();
            if let Some((first, joined)) = open.as_mut().filter(|_| alone)
                && joined.families() + graph.copies[copy].families.len() <= MOST_FAMILIES
                && joined.admit(graph, copy, cancel)
            {
                into[copy] = Some(*first);
                continue;
            }
            open = alone.then(|| (copy, JoinedCopies::of(graph, copy)));
        }
    }
    into
}

/// Moves families into the copies that they join, and renumbers the copies and steps that are left.
fn join(graph: &mut Graph, into: &Joins) {
    let mut copies: PrimaryMap<CopyId, CopySet> = PrimaryMap::new();
    let mut new: SecondaryMap<CopyId, Option<CopyId>> = SecondaryMap::new();
    let mut joining = vec![];
    for (id, copy) in std::mem::take(&mut graph.copies) {
        match into[id] {
            Some(first) => joining.push((first, copy.families)),
            None => new[id] = Some(copies.push(copy)),
        }
    }
    for (first, families) in joining {
        let first = new[first].expect("a copy that others join stays");
        copies[first].families.extend(families);
    }
    graph.copies = copies;
    let mut kept: SecondaryMap<StepId, Option<StepId>> = SecondaryMap::new();
    let mut steps: PrimaryMap<StepId, Step> = PrimaryMap::new();
    for (id, step) in std::mem::take(&mut graph.steps) {
        match step.kind {
            StepKind::Copy(copy) => {
                let kind = new[copy].map(StepKind::Copy);
                kept[id] = kind.map(|kind| steps.push(Step { kind, ..step }));
            }
            _ => kept[id] = Some(steps.push(step)),
        }
    }
    let renamed = |id: &mut StepId| *id = kept[*id].unwrap_or(*id);
    for step in steps.values_mut() {
        if let StepKind::Seq(all) = &mut step.kind {
            all.retain(|&s| kept[s].is_some());
        }
        step.children_mut().into_iter().for_each(renamed);
    }
    graph.programs.values_mut().for_each(|p| renamed(&mut p.body));
    graph.steps = steps;
}

#[cfg(test)]
mod tests;
