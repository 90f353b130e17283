//! Merged copies have the effect of the original sequence, and only permitted copies are merged.

use super::*;
use crate::build::{Build, Tree, machine};
use girder_ir::graph::VarClass;
use girder_ir::view::View;
use girder_source::{Diagnostics, Session};
use proptest::prelude::*;

fn merged(graph: Graph) -> Graph {
    let (machine, session, mut diagnostics) = (machine(), Session::default(), Diagnostics::default());
    let mut cx = PassContext::new(&machine, &session, &mut diagnostics);
    let graph = MergeCopies::run(graph, &mut cx).unwrap();
    MergeCopies::verify(&graph, &cx).unwrap();
    graph
}

/// Families of the copies that are executed, in order; 0 for an effect.
fn order(graph: &Graph) -> Vec<usize> {
    let leaf = |kind: &StepKind| match kind {
        StepKind::Copy(copy) => Some(graph.copies[*copy].families.len()),
        StepKind::Effect(_) => Some(0),
        _ => None,
    };
    graph.steps.values().filter_map(|s| leaf(&s.kind)).collect()
}

/// Returns element 0, 1, … of variable 0, then of variable 1, …, after all copies, each of which reads before it
/// writes.
fn run_copies(graph: &Graph) -> Vec<u64> {
    let first: Vec<u64> = graph
        .vars
        .values()
        .scan(0, |at, v| {
            let first = *at;
            *at += v.len();
            Some(first)
        })
        .collect();
    let mut memory: Vec<u64> = (0..graph.vars.values().map(|v| v.len()).sum()).collect();
    for step in graph.steps.values() {
        let StepKind::Copy(copy) = step.kind else { continue };
        let place = |(var, e): (girder_ir::ids::VarId, u64)| (first[var.as_u32() as usize] + e) as usize;
        let mut writes = vec![];
        for family in &graph.copies[copy].families {
            let (dst, src) = (family.dst.view(&family.domain, 0), family.src.view(&family.domain, 0));
            writes.extend(dst.elements().zip(src.elements()).map(|(d, s)| (place(d), memory[place(s)])));
        }
        writes.into_iter().for_each(|(at, value)| memory[at] = value);
    }
    memory
}

#[test]
fn copies_join_until_one_depends_on_another() {
    let mut b = Build::new();
    let v: Vec<View> = (0..5).map(|n| b.var(&format!("v{n}"), VarClass::Var, &[8], None)).collect();
    let part = |v: &View, at: u64| v.slice(0, at, 4, 1);
    let print = b.print_step(&v[4]);
    let nested = vec![b.copy_step(&part(&v[0], 4), &part(&v[1], 4)), b.copy_step(&v[3], &v[2])];
    let mut steps = vec![b.copy_step(&part(&v[0], 0), &part(&v[1], 0)), Tree::Seq(nested)];
    // A read of a written element, a write of a read element, and a repeated write; each starts a new exchange.
    steps.extend([b.copy_step(&v[4], &v[3]), b.copy_step(&v[3], &v[2]), b.copy_step(&part(&v[3], 1), &part(&v[1], 1))]);
    steps.push(print);
    steps.push(b.copy_step(&v[0], &v[1]));
    b.program("main", true, &Tree::Seq(steps));
    let before = run_copies(&b.graph);
    let graph = merged(b.graph);
    assert_eq!(order(&graph), [3, 1, 1, 1, 0, 1]);
    assert_eq!(run_copies(&graph), before);
}

#[test]
fn a_copy_that_two_steps_share_and_one_that_races_stay_alone() {
    let mut b = Build::new();
    let v: Vec<View> = (0..4).map(|n| b.var(&format!("v{n}"), VarClass::Var, &[8], None)).collect();
    let shared = b.copy("shared", &[(v[0].clone(), v[1].clone())]);
    let races = b.copy("races", &[(v[2].clone(), v[1].clone()), (v[2].clone(), v[1].clone())]);
    let other = b.copy_step(&v[3], &v[1]);
    b.program("main", true, &Tree::Seq(vec![Tree::Copy(shared), other, Tree::Copy(shared), Tree::Copy(races)]));
    assert_eq!(order(&merged(b.graph)), [1, 1, 1, 2]);
}

proptest! {
    #[test]
    fn merged_copies_do_what_they_did_in_order(
        copies in proptest::collection::vec((0..3u32, 0..9u64, 0..3u32, 0..9u64, 1..6u64), 1..12),
    ) {
        let mut b = Build::new();
        let v: Vec<View> = (0..3).map(|n| b.var(&format!("v{n}"), VarClass::Var, &[12], None)).collect();
        let part = |var: u32, at: u64, len: u64| v[var as usize].slice(0, at, len.min(12 - at), 1);
        let mut steps = vec![];
        for (dst, to, src, from, len) in copies {
            let len = len.min(12 - to).min(12 - from);
            // A copy never reads what it writes.
            if dst != src || to + len <= from || from + len <= to {
                steps.push(b.copy_step(&part(dst, to, len), &part(src, from, len)));
            }
        }
        b.program("main", true, &Tree::Seq(steps));
        let before = run_copies(&b.graph);
        let graph = merged(b.graph);
        prop_assert_eq!(run_copies(&graph), before);
    }
}
