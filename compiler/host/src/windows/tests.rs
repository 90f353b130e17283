//! Joined families have the effects of the originals: random windows and loops in the interpreter.

#[path = "../../tests/common/codelets.rs"]
#[allow(dead_code)]
mod codelets;

use super::*;
use codelets::Builder;
use cranelift_entity::EntityRef;
use girder_codelet::{Interpreter, Stop, VertexMemory};
use girder_ir::codelet::*;
use girder_ir::ids::{ComputeSetId, ExprId, LocalId, SiteId, VarId};
use girder_ir::types::ElemType;
use girder_source::{OriginId, Session};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::BTreeMap;

const I64: ElemType = ElemType::I64;

/// A tape of random choices; it continues with zeros, which are always the simplest choice.
struct Tape<'a>(std::slice::Iter<'a, u32>);

impl Tape<'_> {
    fn below(&mut self, n: i64) -> i64 {
        self.0.next().map_or(0, |&v| i64::from(v) % n)
    }

    /// Rarely returns `true`: the joined family would then not have the same effect.
    fn spoils(&mut self) -> bool {
        self.below(24) == 23
    }
}

/// The elements of `indices` and of `table`.
const LENGTHS: [i64; 2] = [8, 2];

/// The positions of the windows of a grid.
#[derive(Debug)]
struct Plan {
    /// Vertices along both indices.
    grid: [i64; 2],
    /// Elements of `v`.
    window: [i64; 2],
    /// The number of elements by which `u` extends beyond `v`.
    ring: [i64; 2],
    /// Elements of `u` from one of `v` to the next.
    stride: [i64; 2],
    /// The axes of `s` that move along with `v`; the others stay, and have as many elements as `v`.
    follows: [bool; 2],
    /// Whether the indices of the domain are those of the axes in reverse order.
    turned: bool,
}

/// The fields of a codelet, and what loops give. `table` stays, and `indices` may move along the first index only.
struct Made<'t, 'p> {
    b: Builder,
    tape: Tape<'t>,
    plan: &'p Plan,
    u: FieldId,
    s: FieldId,
    v: FieldId,
    indices: FieldId,
    table: FieldId,
    n: SizeId,
    sum: LocalId,
    read: LocalId,
}

impl Made<'_, '_> {
    /// `iteration * stride + offset`
    fn index(&mut self, iteration: ExprId, stride: i64, offset: i64) -> ExprId {
        let (stride, offset) = (self.b.int(stride), self.b.int(offset));
        let scaled = self.b.binary(BinaryOp::Mul, iteration, stride);
        if self.tape.below(2) == 0 {
            return self.b.binary(BinaryOp::Add, offset, scaled);
        }
        let zero = self.b.int(0);
        let back = self.b.binary(BinaryOp::Sub, zero, offset);
        self.b.binary(BinaryOp::Sub, scaled, back)
    }

    fn value(&mut self, at: [ExprId; 2], depth: u32) -> ExprId {
        if self.tape.spoils() {
            return match self.tape.below(4) {
                0 => at[0],
                1 => at[1],
                2 => self.b.length(self.n),
                _ => {
                    let zero = self.b.int(0);
                    self.b.load(self.u, &[zero, zero])
                }
            };
        }
        if self.tape.below(8) == 7 {
            let (first, most) = (self.b.int(0), self.b.int(3));
            let index = if self.tape.below(6) == 5 {
                // Of the elements, which have 24 bits, one in 16 leads outside the table.
                let (element, bound) = (self.b.load(self.v, &at), self.b.int(15 << 20));
                let less = self.b.binary(BinaryOp::Lt, element, bound);
                self.b.expr(I64, ExprKind::Select { cond: less, a: first, b: most })
            } else {
                // Of indices up to 3, half are outside the table.
                let any = self.tape.below(LENGTHS[0]);
                let any = self.b.int(any);
                let index = self.b.load(self.indices, &[first, any]);
                self.b.binary(BinaryOp::And, index, most)
            };
            return self.b.load(self.table, &[first, index]);
        }
        match self.tape.below(if depth == 0 { 3 } else { 5 }) {
            0 => {
                let [i, j] = [0, 1].map(|k| {
                    let offset = self.tape.below(self.plan.ring[k] + 1);
                    self.index(at[k], self.plan.stride[k], offset)
                });
                self.b.load(self.u, &[i, j])
            }
            1 => self.b.load(self.v, &at),
            2 => {
                let first = self.b.int(0);
                let own = [0, 1].map(|k| if self.plan.follows[k] || self.tape.spoils() { at[k] } else { first });
                self.b.load(self.s, &own)
            }
            3 => {
                let (x, y) = (self.value(at, depth - 1), self.value(at, depth - 1));
                self.b.binary(BinaryOp::Add, x, y)
            }
            _ => {
                let (x, y) = (self.value(at, depth - 1), self.value(at, depth - 1));
                let less = self.b.binary(BinaryOp::Lt, x, y);
                self.b.expr(I64, ExprKind::Select { cond: less, a: y, b: x })
            }
        }
    }

    fn reduce(&mut self, at: [ExprId; 2]) -> Stmt {
        let var = self.b.local(I64);
        let (lo, hi, k) = (self.b.int(0), self.b.int(self.plan.ring[0] + 1), self.b.get(var));
        let row = self.index(at[0], self.plan.stride[0], 0);
        let (row, column) = (self.b.binary(BinaryOp::Add, row, k), self.index(at[1], self.plan.stride[1], 0));
        let value = self.b.load(self.u, &[row, column]);
        let (site, iterations) = (self.b.site(Check::Empty), self.b.site(Check::Iterations));
        let binders = vec![Binder { var, lo, hi, step: 1 }];
        let op = [ReduceOp::Sum, ReduceOp::Max][self.tape.below(2) as usize];
        let (filter_before, before) = (vec![], vec![]);
        Stmt::Reduce(Box::new(Reduce {
            dst: self.sum,
            op,
            binders,
            filter_before,
            filter: None,
            before,
            value,
            factors: None,
            site,
            iterations,
        }))
    }

    fn body(&mut self, at: [ExprId; 2]) -> StmtBlock {
        let first = self.value(at, 1);
        let mut body = vec![match self.tape.below(3) {
            0 => self.reduce(at),
            _ => Stmt::Set { local: self.sum, value: first },
        }];
        let (sum, other) = (self.b.get(self.sum), self.value(at, 2));
        let mut total = self.b.binary(BinaryOp::Add, sum, other);
        if self.tape.spoils() {
            // An element that an earlier iteration has read.
            let carried = self.b.get(self.read);
            total = self.b.binary(BinaryOp::Add, total, carried);
            body.push(Stmt::Set { local: self.read, value: total });
        }
        let store = self.b.store(self.v, &at, total);
        if self.tape.below(3) == 0 {
            let (x, y) = (self.value(at, 0), self.value(at, 0));
            let cond = self.b.binary(BinaryOp::Lt, x, y);
            let other = self.value(at, 1);
            let els = vec![self.b.store(self.v, &at, other)];
            body.push(Stmt::If { cond, then: vec![store], els: if self.tape.below(2) == 0 { els } else { vec![] } });
        } else {
            body.push(store);
        }
        body
    }

    fn nest(&mut self, sizes: [SizeId; 2]) -> Stmt {
        let turned = self.tape.below(2) == 1;
        let skips = self.tape.spoils();
        let (outer, inner) = if turned { (1, 0) } else { (0, 1) };
        let vars = [0, 1].map(|_| self.b.local(I64));
        let at = vars.map(|var| self.b.get(var));
        let body = self.body(at);
        let mut lo = [0, i64::from(skips && !turned)].map(|lo| self.b.int(lo));
        let mut hi = sizes.map(|size| self.b.length(size));
        if skips && turned {
            lo[0] = self.b.int(1);
        }
        if self.b.codelet.multi {
            (lo[0], hi[0]) = self.share(hi[0]);
        }
        let mut counted = |var: usize, body| Stmt::For {
            var: vars[var],
            lo: lo[var],
            hi: hi[var],
            step: 1,
            label: Label(self.b.codelet.sites.len() as u32),
            body,
            site: self.b.site(Check::Iterations),
        };
        let inside = counted(inner, body);
        counted(outer, vec![inside])
    }

    /// Returns the bounds of a worker's share of `n` iterations.
    fn share(&mut self, n: ExprId) -> (ExprId, ExprId) {
        let (worker, one) = (self.b.expr(I64, ExprKind::Worker), self.b.int(1));
        let next = self.b.binary(BinaryOp::Add, worker, one);
        let workers = self.b.expr(I64, ExprKind::Workers);
        let [lo, hi] = [worker, next].map(|worker| {
            let product = self.b.binary(BinaryOp::Mul, worker, n);
            self.b.binary(BinaryOp::Div, product, workers)
        });
        (lo, hi)
    }
}

fn codelet(mut tape: Tape<'_>, plan: &Plan) -> Codelet {
    let mut b = Builder::new("test");
    b.codelet.multi = tape.below(8) == 7;
    let [h, w, m, n, one, p, q] = ["h", "w", "m", "n", "one", "p", "q"].map(|name| b.size(name));
    let own = [(0, m), (1, n)].map(|(k, size)| if plan.follows[k] { size } else { b.size("own") });
    let u = b.field("u", Dir::In, I64, &[h, w]);
    let v = b.field("v", Dir::InOut, I64, &[m, n]);
    let s = b.field("s", Dir::In, I64, &own);
    let (indices, table) = (b.field("indices", Dir::In, I64, &[one, p]), b.field("table", Dir::In, I64, &[one, q]));
    let (sum, read) = (b.local(I64), b.local(I64));
    let zero = b.int(0);
    let mut made = Made { b, tape, plan, u, s, v, indices, table, n, sum, read };
    let mut body = vec![Stmt::Set { local: read, value: zero }];
    for _ in 0..1 + made.tape.below(2) {
        body.push(made.nest([m, n]));
    }
    made.b.finish(body)
}

/// Returns the field of windows that move by some elements of a variable along each axis.
fn field(id: usize, len: [i64; 2], stride: [i64; 2], coef: [i64; 2]) -> Field {
    let digits: Digits = len.iter().map(|&n| n as u32).collect();
    let part = FieldPart {
        lo: smallvec![0, 0],
        len: digits.clone(),
        var: VarId::new(id),
        offset: Offset::Affine(Affine::new(3, &coef)),
        stride: stride.into_iter().collect(),
    };
    Field { field: FieldId::new(id), digits, axes: smallvec![1, 1], parts: smallvec![part] }
}

fn family(plan: &Plan) -> Family {
    let by_index = |[i, j]: [i64; 2]| if plan.turned { [j, i] } else { [i, j] };
    let moves = [0, 1].map(|k| plan.window[k] * plan.stride[k]);
    let u_len = [0, 1].map(|k| (plan.window[k] - 1) * plan.stride[k] + 1 + plan.ring[k]);
    let u_row = plan.grid[1] * moves[1] + plan.ring[1] + 5;
    let row = plan.grid[1] * plan.window[1] + 2;
    // Axes of `s` that stay are one element for all, like a broadcast, if the other axis moves.
    let spread = [0, 1].map(|k| plan.follows[k] && plan.follows[1 - k] && plan.ring[0] == k as i64);
    let s_stride = [if spread[0] { 0 } else { row }, i64::from(!spread[1])];
    let s_coef = [0, 1].map(|k| if plan.follows[k] { s_stride[k] * plan.window[k] } else { 0 });
    Family {
        set: ComputeSetId::new(0),
        codelet: girder_ir::ids::SpecId::new(0),
        domain: Domain(by_index(plan.grid).iter().map(|&n| n as u32).collect()),
        fields: smallvec![
            field(0, u_len, [u_row, 1], by_index([moves[0] * u_row, moves[1]])),
            field(1, plan.window, [row, 1], by_index([plan.window[0] * row, plan.window[1]])),
            field(2, plan.window, s_stride, by_index(s_coef)),
            field(3, [1, LENGTHS[0]], [LENGTHS[0], 1], by_index([if plan.stride[0] == 2 { LENGTHS[0] } else { 0 }, 0])),
            field(4, [1, LENGTHS[1]], [LENGTHS[1], 1], [0, 0]),
        ],
        consts: smallvec![],
        tile: None,
        within: None,
        origin: OriginId::from_u32(0),
        statements: None,
    }
}

/// Elements by variable and number; the initial value of an element depends on both.
struct Memory {
    stored: BTreeMap<(VarId, u64), u64>,
    /// The elements of the current vertex, by field.
    elements: Vec<Vec<(VarId, u64)>>,
}

impl VertexMemory for Memory {
    fn load(&mut self, field: FieldId, flat: u64) -> u64 {
        let at = self.elements[field.index()][flat as usize];
        let fresh = (at.1 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at.0.as_u32() as u64) >> 40;
        self.stored.get(&at).copied().unwrap_or(fresh)
    }

    fn store(&mut self, field: FieldId, flat: u64, bits: u64) {
        self.stored.insert(self.elements[field.index()][flat as usize], bits);
    }
}

/// What vertices have stored, or the first failure: the vertex, the check, its values, and the worker.
type Outcome = Result<BTreeMap<(VarId, u64), u64>, (u64, SiteId, [i64; 2], Option<u32>)>;

fn run(graph: &Graph, family: &Family) -> Outcome {
    let codelet = &graph.codelets[family.codelet];
    let sizes = bind_family(graph, family).unwrap().unwrap();
    let mut memory = Memory { stored: BTreeMap::new(), elements: Vec::new() };
    for instance in 0..family.domain.count() {
        let elements = |f: &Field| f.view(&family.domain, instance).elements().collect();
        memory.elements = family.fields.iter().map(elements).collect();
        match Interpreter::new(codelet).run(&sizes, &mut memory, &[], graph.workers, &Session::default()) {
            Ok(()) => {}
            Err(Stop::Failed(failure)) => return Err((instance, failure.site, failure.values, failure.worker)),
            Err(stop) => panic!("{stop:?}"),
        }
    }
    Ok(memory.stored)
}

/// Runs joined vertices; a failure names the first vertex of those that are joined.
fn run_joined(graph: &Graph, joined: &JoinedFamily) -> Outcome {
    run(graph, &joined.family).map_err(|(instance, site, values, worker)| {
        let first = joined.first.as_ref().expect("vertices that may fail");
        (u64::from(first[instance as usize]), site, values, worker)
    })
}

fn graph(codelet: Codelet) -> Graph {
    girder_codelet::verify(&codelet).unwrap();
    let mut graph = Graph { workers: 3, ..Graph::default() };
    graph.codelets.push(codelet);
    graph
}

fn plan() -> impl Strategy<Value = Plan> {
    let pair = |lo: i64, hi: i64| [lo..hi, lo..hi];
    let grid = proptest::sample::select(vec![[1, 6], [4, 3], [2, 8], [5, 1], [3, 12], [2, 2]]);
    (grid, pair(1, 7), pair(0, 3), pair(1, 3), any::<[bool; 2]>(), any::<bool>())
        .prop_map(|(grid, window, ring, stride, follows, turned)| Plan { grid, window, ring, stride, follows, turned })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn joined_vertices_have_the_effects_of_the_originals(
        plan in plan(),
        tape in prop::collection::vec(any::<u32>(), 0..80),
        wanted in 1u64..120,
    ) {
        let graph = graph(codelet(Tape(tape.iter()), &plan));
        let family = family(&plan);
        if let Some(joined) = joined_up_to(&graph, &family, wanted) {
            prop_assert_eq!(run_joined(&graph, &joined), run(&graph, &family));
        }
    }
}

/// Returns a stencil over 64 × 64 points in windows of 8 × 8.
fn stencil(turned: bool) -> (Graph, Family) {
    let (grid, window, ring) = ([8, 8], [8, 8], [2, 2]);
    let plan = Plan { grid, window, ring, stride: [1, 1], follows: [true, true], turned };
    (graph(codelet(Tape([].iter()), &plan)), family(&plan))
}

#[test]
fn windows_of_a_grid_become_rows_of_it() {
    for turned in [false, true] {
        let (graph, family) = stencil(turned);
        for (wanted, vertices, shape) in [(1 << 12, 1, [64, 64]), (256, 16, [4, 64]), (64, 64, [1, 64])] {
            let joined = joined_up_to(&graph, &family, wanted).unwrap();
            let of = &joined.family;
            assert_eq!((of.domain.count(), &of.fields[1].shape()[..]), (vertices, &shape[..]), "{wanted}");
            assert_eq!(run_joined(&graph, &joined), run(&graph, &family));
        }
    }
}

#[test]
fn most_random_windows_join() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut joined, mut failed) = (0, 0);
    for _ in 0..400 {
        let plan = plan().new_tree(&mut runner).unwrap().current();
        let tape = prop::collection::vec(any::<u32>(), 80).new_tree(&mut runner).unwrap().current();
        let graph = graph(codelet(Tape(tape.iter()), &plan));
        let found = joined_up_to(&graph, &family(&plan), 100);
        joined += u32::from(found.is_some());
        failed += u32::from(found.is_some_and(|joined| run(&graph, &joined.family).is_err()));
    }
    assert!(joined > 120 && failed > 3, "{joined} of 400 join, of which {failed} fail");
}
