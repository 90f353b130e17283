//! Random programs, run along random paths: values that a run needs at one moment must be live together.

use super::*;
use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::program::Effect;
use girder_ir::program::StepKind;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TEMPS: usize = 7;

/// A program without ids: numbers are taken modulo the number of existing entities.
#[derive(Clone, Debug)]
enum Shape {
    /// Destination, source (0 is persistent) and part of each.
    Copy(usize, usize, usize),
    Print(usize),
    Seq(Vec<Shape>),
    Repeat(u64, Box<Shape>),
    While(Box<Shape>, usize, Box<Shape>),
    If(usize, Box<Shape>, Box<Shape>),
    Par(Box<Shape>, Box<Shape>),
    Call(usize),
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        6 => (0..=TEMPS, 0..=TEMPS, 0usize..5).prop_map(|(d, s, part)| Shape::Copy(d, s, part)),
        1 => (0..=TEMPS).prop_map(Shape::Print),
        1 => (0usize..2).prop_map(Shape::Call),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..6).prop_map(Shape::Seq),
            1 => (0u64..4, boxed()).prop_map(|(n, b)| Shape::Repeat(n, b)),
            1 => (boxed(), 1..=TEMPS, boxed()).prop_map(|(a, c, b)| Shape::While(a, c, b)),
            1 => (1..=TEMPS, boxed(), boxed()).prop_map(|(c, a, b)| Shape::If(c, a, b)),
            1 => (boxed(), boxed()).prop_map(|(a, b)| Shape::Par(a, b)),
        ]
    })
}

/// Copies, and values that are made and used at once, as is most common.
fn copies() -> impl Strategy<Value = Shape> {
    let copy = (0..=TEMPS, 0..=TEMPS, 0usize..2).prop_map(|(d, s, part)| Shape::Copy(d, s, part));
    let brief = (1..=TEMPS).prop_map(|t| Shape::Seq(vec![Shape::Copy(t, 0, 0), Shape::Copy(0, t, 0)]));
    prop::collection::vec(prop_oneof![copy, brief], 1..6).prop_map(Shape::Seq)
}

/// Loops over many copies, so that iterations pass values to each other.
fn loops() -> impl Strategy<Value = Shape> {
    let looped = || {
        (any::<bool>(), 1..=TEMPS, copies(), copies()).prop_map(|(counted, c, a, b)| match counted {
            true => Shape::Repeat(3, Box::new(Shape::Seq(vec![a, b]))),
            false => Shape::While(Box::new(a), c, Box::new(b)),
        })
    };
    (looped(), copies(), looped(), 1..=TEMPS, 0usize..3).prop_map(|(x, between, y, c, form)| match form {
        0 => Shape::Seq(vec![x, between, y]),
        1 => Shape::Repeat(2, Box::new(Shape::Seq(vec![x, between]))),
        _ => Shape::While(Box::new(between), c, Box::new(Shape::If(c, Box::new(x), Box::new(y)))),
    })
}

/// Calls among copies.
fn calls() -> impl Strategy<Value = Shape> {
    prop::collection::vec(prop_oneof![copies(), (0usize..2).prop_map(Shape::Call)], 2..9).prop_map(Shape::Seq)
}

/// `pool` are the temporaries that the tree may touch; calls reach the first `callees` programs.
fn tree(b: &mut Build, vars: &[View], pool: &[usize], shape: &Shape, callees: usize, in_par: bool) -> Tree {
    let pick = |k: usize| &vars[if k == 0 && !in_par { 0 } else { pool[k % pool.len()] }];
    let part = |v: &View, p: usize| match p {
        0 | 1 => v.clone(),
        2 => v.slice(0, 0, 2, 1),
        3 => v.slice(0, 2, 2, 1),
        _ => v.slice(0, 1, 2, 2),
    };
    let mut sub = |s: &Shape| Box::new(tree(b, vars, pool, s, callees, in_par));
    match shape {
        Shape::Copy(d, s, _) if std::ptr::eq(pick(*d), pick(*s)) => Tree::Effect(Effect::Sync),
        Shape::Copy(d, s, p) => b.copy_step(&part(pick(*d), *p), &part(pick(*s), *p)),
        Shape::Print(v) => b.print_step(pick(*v)),
        Shape::Seq(list) => Tree::Seq(list.iter().map(|s| *sub(s)).collect()),
        Shape::Repeat(n, body) => Tree::Repeat(*n, None, sub(body)),
        Shape::While(before, c, body) => Tree::While(sub(before), pick(*c).index(0, 0), sub(body)),
        Shape::If(c, then, els) => Tree::If(pick(*c).index(0, 0), sub(then), sub(els)),
        Shape::Par(x, y) if pool.len() >= 2 => {
            // Branches share nothing, as the race rule asks, and call nothing.
            let (left, right) = pool.split_at(pool.len() / 2);
            let x = tree(b, vars, left, x, 0, true);
            Tree::Par(vec![x, tree(b, vars, right, y, 0, true)])
        }
        Shape::Par(x, _) => *sub(x),
        Shape::Call(f) if *f < callees => Tree::Call(ProgramId::new(*f)),
        Shape::Call(_) => Tree::Effect(Effect::Sync),
    }
}

/// The elements of temporaries that one step of a run reads and overwrites.
#[derive(Clone, Default)]
struct Event {
    reads: BTreeSet<(VarId, u64)>,
    writes: BTreeSet<(VarId, u64)>,
}

/// A run: its events, along choices that a counter makes.
struct Run<'a> {
    graph: &'a Graph,
    choices: u64,
}

impl Run<'_> {
    fn choose(&mut self, n: u64) -> u64 {
        self.choices = self.choices.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.choices >> 33) % n
    }

    fn elements(&self, view: &View) -> BTreeSet<(VarId, u64)> {
        view.elements().filter(|e| !self.graph.vars[e.0].is_persistent()).collect()
    }

    fn read(&self, view: &View) -> Event {
        Event { reads: self.elements(view), writes: BTreeSet::new() }
    }

    fn step(&mut self, step: StepId, out: &mut Vec<Event>) {
        let graph = self.graph;
        if out.len() > 300 {
            return;
        }
        match &graph.steps[step].kind {
            // What one tile does: it runs the branches in order.
            StepKind::Seq(list) | StepKind::Par(list) => list.iter().for_each(|&s| self.step(s, out)),
            StepKind::Copy(copy) => {
                let mut event = Event::default();
                for f in &graph.copies[*copy].families {
                    event.reads.extend(self.elements(&f.src.view(&f.domain, 0)));
                    event.writes.extend(self.elements(&f.dst.view(&f.domain, 0)));
                }
                out.push(event);
            }
            StepKind::Repeat { count, body, .. } => (0..*count).for_each(|_| self.step(*body, out)),
            StepKind::While { before, cond, body } => {
                let iterations = self.choose(3);
                for iteration in 0..=iterations {
                    self.step(*before, out);
                    out.push(self.read(cond));
                    if iteration < iterations {
                        self.step(*body, out);
                    }
                }
            }
            StepKind::If { cond, then, els } => {
                out.push(self.read(cond));
                let arm = if self.choose(2) == 0 { *then } else { *els };
                self.step(arm, out);
            }
            StepKind::Call(p) => self.step(graph.programs[*p].body, out),
            StepKind::Effect(Effect::Print { value, .. }) => out.push(self.read(value)),
            _ => {}
        }
    }
}

fn check(graph: &Graph, liveness: &Liveness, choices: u64) {
    let exposed: BTreeSet<VarId> = liveness.exposed.iter().map(|e| e.var).collect();
    let together = |moment: &BTreeSet<(VarId, u64)>| {
        let vars: BTreeSet<VarId> = moment.iter().map(|e| e.0).filter(|v| !exposed.contains(v)).collect();
        for &v in &vars {
            for &w in &vars {
                let (x, y) = (liveness.ranges[v.index()].clone(), liveness.ranges[w.index()].clone());
                let (x, y) = (x.expect("touched"), y.expect("touched"));
                assert!(x.start.max(y.start) < x.end.min(y.end), "{v} {x:?} and {w} {y:?} are needed together");
            }
        }
    };
    for program in graph.programs.values().filter(|p| p.entry) {
        let mut events = vec![];
        Run { graph, choices }.step(program.body, &mut events);
        let mut live: BTreeSet<(VarId, u64)> = BTreeSet::new();
        for event in events.iter().rev() {
            // While a step runs, the live elements are those that it reads, those that it writes and those that are
            // needed later.
            let mut moment = live.clone();
            moment.extend(event.reads.iter().chain(&event.writes).copied());
            together(&moment);
            live.retain(|e| !event.writes.contains(e));
            live.extend(event.reads.iter().copied());
        }
        for (var, _) in live {
            assert!(exposed.contains(&var), "{var} is read before it is written");
        }
    }
}

/// Entries first write the temporaries of `set`, so that loop-carried values are defined.
fn build(programs: &[(Shape, bool)], set: usize) -> Graph {
    let mut b = Build::new();
    let mut vars = vec![b.var("p", VarClass::Var, &[4], None)];
    vars.extend((0..TEMPS).map(|i| b.temp(&format!("t{i}"), &[4])));
    let pool: Vec<usize> = (1..=TEMPS).collect();
    for (i, (shape, entry)) in programs.iter().enumerate() {
        // A program may call earlier programs that are not entries.
        let mut steps: Vec<Tree> = vec![];
        for k in (0..TEMPS).filter(|k| *entry && set >> k & 1 != 0) {
            steps.push(b.copy_step(&vars[k + 1], &vars[0]));
        }
        steps.push(tree(&mut b, &vars, &pool, shape, i.min(2), false));
        let tree = Tree::Seq(steps);
        b.program(&format!("p{i}"), *entry, &tree);
    }
    b.graph
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn values_needed_together_are_live_together(
        f in prop_oneof![shapes(), copies()], g in prop_oneof![shapes(), calls()],
        main in prop_oneof![1 => shapes(), 2 => loops(), 2 => calls()], other in shapes(), set in 0usize..1 << TEMPS,
        choices in prop::collection::vec(any::<u64>(), 6),
    ) {
        let graph = build(&[(f, false), (g, false), (main, true), (other, true)], set);
        let liveness = Liveness::of(&graph);
        for c in choices {
            check(&graph, &liveness, c);
        }
    }
}
