//! Live ranges of small programs by hand, and of random programs against runs of them.

mod random;

use super::*;
use crate::build::{Build, Tree, Vertices};
use cranelift_entity::EntityRef;
use girder_ir::codelet::Dir;
use girder_ir::graph::VarClass;
use girder_ir::view::View;

/// Four temporaries `t` of four elements each, and a persistent `p`.
fn start() -> (Build, View, Vec<View>) {
    let mut b = Build::new();
    let p = b.var("p", VarClass::Var, &[4], None);
    let t = (0..4).map(|i| b.temp(&format!("t{i}"), &[4])).collect();
    (b, p, t)
}

fn ranges(b: &Build) -> Vec<Option<Range<u32>>> {
    Liveness::of(&b.graph).ranges.split_off(1)
}

fn exposed(b: &Build) -> Vec<usize> {
    Liveness::of(&b.graph).exposed.iter().map(|e| e.var.index()).collect()
}

#[test]
fn a_value_is_live_from_its_write_to_its_last_read() {
    let (mut b, p, t) = start();
    // seq 0; t0 <- p 1; t1 <- t0 2; t2 <- t0 3; p <- t2 4; t1 is never read.
    let steps = [(&t[0], &p), (&t[1], &t[0]), (&t[2], &t[0]), (&p, &t[2])];
    let steps = steps.map(|(d, s)| b.copy_step(d, s));
    b.program("main", true, &Tree::Seq(steps.to_vec()));
    assert_eq!(ranges(&b), [Some(1..4), Some(2..3), Some(3..5), None]);
    assert!(exposed(&b).is_empty());
}

#[test]
fn a_value_that_an_iteration_passes_to_the_next_is_live_for_the_whole_loop() {
    let (mut b, p, t) = start();
    // seq 0; t0 <- p 1; repeat 2 { seq 3; t1 <- t0 4; t0 <- t1 5; t2 <- p 6; p <- t2 7 }; t3 <- p 8
    let steps = [(&t[1], &t[0]), (&t[0], &t[1]), (&t[2], &p), (&p, &t[2])];
    let body = Tree::Seq(steps.map(|(d, s)| b.copy_step(d, s)).to_vec());
    let (first, last) = (b.copy_step(&t[0], &p), b.copy_step(&t[3], &p));
    b.program("main", true, &Tree::Seq(vec![first, Tree::Repeat(3, None, Box::new(body)), last]));
    assert_eq!(ranges(&b), [Some(1..8), Some(4..6), Some(6..8), Some(8..9)]);
}

#[test]
fn arms_do_not_meet() {
    let (mut b, p, t) = start();
    // if 0 { seq 1; t0 <- p 2; p <- t0 3 } else { seq 4; t1 <- p 5; p <- t1 6 }
    let mut arm = |t: &View| {
        let steps = vec![b.copy_step(t, &p), b.copy_step(&p, t)];
        Box::new(Tree::Seq(steps))
    };
    let (then, els) = (arm(&t[0]), arm(&t[1]));
    b.program("main", true, &Tree::If(p.index(0, 0), then, els));
    assert_eq!(ranges(&b), [Some(2..4), Some(5..7), None, None]);
}

#[test]
fn the_test_of_a_while_comes_between_before_and_body() {
    let (mut b, p, t) = start();
    // seq { before: t0 <- p 1; test 2; body: t1 <- p 3 }
    let (before, body) = (b.copy_step(&t[0], &p), b.copy_step(&t[1], &p));
    b.program("main", true, &Tree::Seq(vec![Tree::While(Box::new(before), t[0].index(0, 0), Box::new(body))]));
    assert_eq!(ranges(&b), [Some(1..3), Some(3..4), None, None]);
}

#[test]
fn a_temporary_that_a_loop_may_not_write_is_exposed_after_it() {
    let (mut b, p, t) = start();
    let body = b.copy_step(&t[0], &p);
    let never = Tree::Repeat(0, None, Box::new(body.clone()));
    let read = b.copy_step(&p, &t[0]);
    b.program("zero", true, &Tree::Seq(vec![never, read.clone()]));
    assert_eq!(exposed(&b), [1]);

    let (mut b, p, t) = start();
    let body = b.copy_step(&t[0], &p);
    let read = b.copy_step(&p, &t[0]);
    b.program("twice", true, &Tree::Seq(vec![Tree::Repeat(2, None, Box::new(body)), read]));
    assert!(exposed(&b).is_empty());
    assert_eq!(ranges(&b)[0], Some(2..4));
}

#[test]
fn pieces_that_make_up_the_whole_expose_nothing() {
    let (mut b, p, t) = start();
    let half = |v: &View, at| v.slice(0, at, 2, 1);
    let even = |v: &View, at| v.slice(0, at, 2, 2);
    // t0 by halves, t1 by even and odd elements, t2 only in its first half.
    let steps = [
        (half(&t[0], 0), half(&p, 0)),
        (half(&t[0], 2), half(&p, 2)),
        (even(&t[1], 0), half(&p, 0)),
        (even(&t[1], 1), half(&p, 0)),
        (half(&t[2], 0), half(&p, 0)),
        (p.clone(), t[0].clone()),
        (p.clone(), t[1].clone()),
        (p.clone(), t[2].clone()),
    ];
    let steps = steps.iter().map(|(d, s)| b.copy_step(d, s)).collect();
    b.program("main", true, &Tree::Seq(steps));
    assert_eq!(exposed(&b), [3]);
    let l = Liveness::of(&b.graph);
    assert_eq!(l.exposed[0].reader.map(|s| l.order.point(s)), Some(8));
    assert_eq!(ranges(&b)[..2], [Some(1..7), Some(3..8)]);
}

#[test]
fn a_field_that_may_stay_unwritten_reads() {
    let (mut b, p, t) = start();
    let copy = b.codelet("first", &[Dir::In, Dir::Out]);
    // The codelet writes element 0 only: all of a view of one element, part of one of four.
    let views = |v: &View| (0..4).map(|i| v.slice(0, i, 1, 1)).collect::<Vec<_>>();
    let full = b.set("full", &[Vertices { codelet: copy, views: &[views(&p), views(&t[0])], tiles: None }]);
    let part = b.set("part", &[Vertices { codelet: copy, views: &[vec![p.clone()], vec![t[1].clone()]], tiles: None }]);
    let read = [&t[0], &t[1]].map(|v| b.print_step(v));
    let steps = [Tree::Execute(full), Tree::Execute(part)].into_iter().chain(read).collect();
    b.program("main", true, &Tree::Seq(steps));
    assert_eq!(exposed(&b), [2]);
    assert_eq!(ranges(&b)[0], Some(1..4));
}

#[test]
fn a_program_that_is_called_twice_shares_no_memory_with_its_callers() {
    let (mut b, p, t) = start();
    let inner = [b.copy_step(&t[0], &p), b.copy_step(&p, &t[0])];
    let f = b.program("f", false, &Tree::Seq(inner.to_vec()));
    let outer = [b.copy_step(&t[1], &p), b.copy_step(&p, &t[1]), b.copy_step(&t[2], &p), b.copy_step(&p, &t[2])];
    let [w1, r1, w2, r2] = outer;
    // main: seq 0; t1 1; call 2 { f: seq 3; t0 4; 5 }; read 6; t2 7; call 8; read 9. The second call runs 3 to 5 too.
    b.program("main", true, &Tree::Seq(vec![w1, Tree::Call(f), r1, w2, Tree::Call(f), r2]));
    assert_eq!(ranges(&b), [Some(4..6), Some(1..7), Some(3..10), None]);
}

#[test]
fn a_temporary_that_one_program_leaves_for_another_is_exposed() {
    let (mut b, p, t) = start();
    let (write, read) = (b.copy_step(&t[0], &p), b.copy_step(&p, &t[0]));
    b.program("first", true, &write);
    b.program("second", true, &read);
    assert_eq!(exposed(&b), [1]);
}

#[test]
fn branches_of_par_follow_one_another_on_a_tile() {
    let (mut b, p, t) = start();
    let mut branch = |t: &View, at: u64| {
        let part = p.slice(0, at, 2, 1);
        let half = t.slice(0, 0, 2, 1);
        Tree::Seq(vec![b.copy_step(&half, &part), b.copy_step(&part, &half)])
    };
    let (x, y) = (branch(&t[0], 0), branch(&t[1], 2));
    b.program("main", true, &Tree::Par(vec![x, y]));
    assert_eq!(ranges(&b), [Some(2..4), Some(5..7), None, None]);
}

#[test]
fn a_program_called_from_a_branch_is_live_in_its_call() {
    let (mut b, p, t) = start();
    let inner = [b.copy_step(&t[0], &p), b.copy_step(&p, &t[0])];
    let f = b.program("f", false, &Tree::Seq(inner.to_vec()));
    let other = b.copy_step(&t[1], &p);
    // par 0 { call 1 { f: seq 2; 3; 4 }; t1 <- p 5 }
    b.program("main", true, &Tree::Par(vec![Tree::Call(f), other]));
    assert_eq!(ranges(&b), [Some(3..5), Some(5..6), None, None]);
}
