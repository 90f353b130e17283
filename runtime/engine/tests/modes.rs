//! Random graphs give the same values, prints and failures in all modes, on any number of threads, with the naive plan
//! and with that of the passes.

mod common;

use common::codelets::{blend, pick, rows, scale};
use common::stages::{allocate, lower};
use common::{Maker, Recorder, Tree, int};
use girder_engine::{Engine, Executable, Mode, RunError};
use girder_ir::family::{Const, TileMap};
use girder_ir::graph::{Graph, Init};
use girder_ir::ids::{FamilyId, ProgramId, SpecId, VarId};
use girder_ir::placement::Mapping;
use girder_ir::program::Effect;
use girder_ir::stage::Allocated;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_machine::builtin;
use girder_source::Session;
use proptest::prelude::*;
use smol_str::SmolStr;

const TILES: u32 = 16;
/// The number of variables: three persistent ones, then temporaries.
const VARS: u64 = 6;

/// A reproducible generator of pseudo-random numbers (Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn between(&mut self, lo: u64, hi: u64) -> u64 {
        lo + self.below(hi - lo + 1)
    }

    fn mapping(&mut self, len: u64) -> Mapping {
        let tiles = self.between(1, (TILES as u64).min(len)) as u32;
        match self.below(3) {
            0 => Mapping::One(self.below(TILES as u64) as u32),
            1 => Mapping::Linear { first: self.below((TILES - tiles) as u64 + 1) as u32, tiles, grain: 1 },
            _ => {
                let mut runs: Vec<(u32, u32)> = Vec::new();
                for end in 1..=len as u32 {
                    let tile = self.below(TILES as u64) as u32;
                    match runs.last_mut() {
                        Some(last) if last.1 == tile || self.below(2) == 0 => last.0 = end,
                        _ => runs.push((end, tile)),
                    }
                }
                Mapping::Runs { end: runs.iter().map(|r| r.0).collect(), tile: runs.iter().map(|r| r.1).collect() }
            }
        }
    }
}

/// A random graph under construction: variables of one type.
struct Random {
    dice: Dice,
    maker: Maker,
    ty: ElemType,
    vars: Vec<VarId>,
    keys: VarId,
    codelets: [SpecId; 4],
}

impl Random {
    fn new(seed: u64) -> Random {
        let mut dice = Dice(seed);
        let ty = [ElemType::I32, ElemType::F32, ElemType::F64, ElemType::U64][dice.below(4) as usize];
        let mut maker = Maker::new();
        let mut vars = Vec::new();
        for k in 0..VARS {
            let shape = [dice.between(1, 6), dice.between(2, 9)];
            let mapping = dice.mapping(shape[0] * shape[1]);
            if k >= 3 {
                vars.push(maker.temp(&format!("t{k}"), ty, &shape, mapping));
                continue;
            }
            let var = maker.var(&format!("v{k}"), ty, &shape, mapping);
            let data = (0..shape[0] * shape[1]).flat_map(|_| small(ty, dice.below(40) as i64 - 9).to_le_bytes());
            maker.init(var, Init::Data(data.collect::<Vec<u8>>().into()));
            vars.push(var);
        }
        let mapping = dice.mapping(8);
        let keys = maker.var("keys", ElemType::I32, &[8], mapping);
        // Key 7 is sometimes out of range for `pick`.
        let data = (0..8).flat_map(|_| int(dice.below(150) as i32 / 21).to_le_bytes());
        maker.init(keys, Init::Data(data.collect::<Vec<u8>>().into()));
        let codelets = [scale(ty), rows(ty), pick(ty), blend(ty)].map(|c| maker.graph.codelets.push(c));
        Random { dice, maker, ty, vars, keys, codelets }
    }

    /// Returns two different variables.
    fn two(&mut self) -> (VarId, VarId) {
        let a = self.dice.below(VARS) as usize;
        let b = (a + self.dice.between(1, VARS - 1) as usize) % VARS as usize;
        (self.vars[a], self.vars[b])
    }

    /// Returns all elements of a variable in a random order.
    fn shuffled(&mut self, var: VarId) -> View {
        let whole = self.maker.whole(var);
        let flat = match self.dice.below(4) {
            0 => whole.transpose().flatten(),
            1 => whole.reverse(1).flatten(),
            _ => whole.flatten(),
        };
        match self.dice.below(4) {
            0 => {
                let cut = self.dice.between(1, flat.len() - 1);
                View::concat(&[flat.slice(0, cut, flat.len() - cut, 1), flat.slice(0, 0, cut, 1)], 0)
            }
            _ => flat,
        }
    }

    /// Returns `n` elements, perhaps with repetitions.
    fn some(&mut self, var: VarId, n: u64) -> View {
        let all = self.shuffled(var);
        let start = self.dice.below(all.len());
        match self.dice.below(3) {
            0 if start + n <= all.len() => all.slice(0, start, n, 1),
            1 if start + 1 >= n => all.slice(0, start, n, -1),
            _ => all.slice(0, start, 1, 1).broadcast(n, 0),
        }
    }

    fn tiles(&mut self, n: u64) -> TileMap {
        TileMap::Table((0..n).map(|_| self.dice.below(TILES as u64) as u32).collect())
    }

    /// Builds a compute set over adjacent windows of a variable.
    fn windows(&mut self, name: &str) -> Tree {
        let (dst, src) = self.two();
        let shape = |maker: &Maker, var: VarId| maker.graph.vars[var].shape.clone();
        let (to, from) = (shape(&self.maker, dst), shape(&self.maker, src));
        let most = [to[0].min(from[0]), to[1].min(from[1])];
        let window = most.map(|n| self.dice.between(1, n.min(3)));
        let grid = [most[0] / window[0], most[1] / window[1]];
        let (whole, other) = (self.maker.whole(dst), self.maker.whole(src));
        // If the row of `s` stays, all windows read that of the first.
        let (row, moves) = (self.dice.below(from[0]), self.dice.below(3) > 0);
        let at = |view: &View, i: u64, j: u64| {
            view.slice(0, i * window[0], window[0], 1).slice(1, j * window[1], window[1], 1)
        };
        let mut fields = vec![Vec::new(); 3];
        for (i, j) in (0..grid[0]).flat_map(|i| (0..grid[1]).map(move |j| (i, j))) {
            let start = if moves { j * window[1] } else { 0 };
            fields[0].push(at(&other, i, j));
            fields[1].push(other.index(0, row).slice(0, start, window[1], 1));
            fields[2].push(at(&whole, i, j));
        }
        let set = self.maker.set(name);
        let tiles = self.tiles(grid[0] * grid[1]);
        self.maker.family(set, self.codelets[3], &grid.map(|n| n as u32), fields, vec![], tiles);
        Tree::Execute(set)
    }

    /// Builds a compute set over disjoint pieces of one variable.
    fn compute(&mut self, name: &str) -> Tree {
        let (dst, src) = self.two();
        let all = self.shuffled(dst);
        let n = self.dice.between(1, all.len().min(4));
        let count = self.dice.between(1, all.len() / n);
        let pieces: Vec<View> = (0..count).map(|i| all.slice(0, i * n, n, 1)).collect();
        let set = self.maker.set(name);
        let kind = self.dice.below(3) as usize;
        let mut instances: Vec<Vec<View>> = Vec::new();
        for piece in pieces {
            instances.push(match kind {
                0 => vec![self.some(src, n), piece],
                1 => {
                    let columns = self.dice.between(1, 3);
                    vec![self.some(src, n * columns).reshape(&[n, columns]), piece]
                }
                _ => {
                    let key = self.dice.below(8);
                    let key = self.maker.whole(self.keys).index(0, key);
                    vec![self.some(src, 7), key, piece]
                }
            });
        }
        // Neighbours of one signature share a family.
        while !instances.is_empty() {
            let matches_first = |v: &Vec<View>| v.iter().zip(&instances[0]).all(|(a, b)| a.same_signature(b));
            let m = instances.iter().take_while(|v| matches_first(v)).count();
            let family: Vec<Vec<View>> = instances.drain(..m).collect();
            let fields = (0..family[0].len()).map(|f| family.iter().map(|v| v[f].clone()).collect()).collect();
            let values: Vec<Scalar> = (0..m).map(|_| small(self.ty, self.dice.below(5) as i64)).collect();
            let consts = match self.dice.below(2) {
                0 => Const::Uniform(values[0]),
                _ => Const::Table(values.into()),
            };
            let consts = if kind == 0 { vec![consts] } else { vec![] };
            let tiles = self.tiles(m as u64);
            self.maker.family(set, self.codelets[kind], &[m as u32], fields, consts, tiles);
        }
        Tree::Execute(set)
    }

    fn copy(&mut self, name: &str) -> Tree {
        let (dst, src) = self.two();
        let all = self.shuffled(dst);
        let n = self.dice.between(1, all.len());
        let (to, from) = (all.slice(0, all.len() - n, n, 1), self.some(src, n));
        Tree::Copy(self.maker.copy(name, vec![(to, from)]))
    }

    fn steps(&mut self, depth: u32, path: &str) -> Tree {
        let count = self.dice.between(1, 4);
        let mut list = Vec::new();
        for k in 0..count {
            let name = format!("{path}.{k}");
            list.push(match self.dice.below(if depth == 0 { 5 } else { 6 }) {
                0 => self.compute(&name),
                1 if self.dice.below(2) == 0 => self.windows(&name),
                1 => self.compute(&name),
                2 | 3 => self.copy(&name),
                4 => {
                    let var = self.vars[self.dice.below(VARS) as usize];
                    Tree::Effect(Effect::Print { label: name.into(), value: self.shuffled(var) })
                }
                _ => {
                    let body = self.steps(depth - 1, &name);
                    Tree::Repeat(self.dice.below(4), None, Box::new(body))
                }
            });
        }
        Tree::Seq(list)
    }

    fn finish(mut self) -> (Maker, ProgramId) {
        let tree = self.steps(2, "main");
        let program = self.maker.program("main", tree);
        (self.maker, program)
    }
}

/// Returns a small value of any type; unsigned ones wrap.
fn small(ty: ElemType, v: i64) -> Scalar {
    match ty {
        ElemType::F32 => Scalar::f32(v as f32 / 4.0),
        ElemType::F64 => Scalar::f64(v as f64 / 4.0),
        _ => Scalar::new(ty, v as u64),
    }
}

type Outcome = (Result<u64, RunError>, Vec<Vec<u8>>, Recorder);

/// Runs a program twice, and reads variables by name, because passes number them anew.
fn run(mut engine: Engine, graph: &Graph, names: &[SmolStr], program: ProgramId) -> Outcome {
    let mut host = Recorder::default();
    let mut run = || engine.run(program, &mut host).map(|r| r.supersteps);
    // Values are kept from run to run.
    let result = run().and_then(|first| run().map(|second| first + second));
    // After a failed run no variable can be read.
    let id = |name: &SmolStr| graph.vars.iter().find(|(_, var)| var.name == *name).unwrap().0;
    let value = |name: &SmolStr| if result.is_ok() { engine.get(id(name)).unwrap() } else { vec![] };
    let values = names.iter().map(value).collect();
    (result, values, host)
}

/// Removes the tile of a vertex, which the graph alone does not know.
fn without_place(outcome: Outcome) -> Outcome {
    let (result, values, host) = outcome;
    let result = result.map_err(|e| match e {
        RunError::Check { family, instance, check, mut diagnostic } => {
            diagnostic.labels.clear();
            RunError::Check { family, instance, check, diagnostic }
        }
        other => other,
    });
    (result, values, host)
}

/// Returns the common outcome of all modes on any number of threads.
fn common(allocated: Allocated, names: &[SmolStr], program: ProgramId) -> Outcome {
    let modes = [Mode::Interpret, Mode::Fast, Mode::Exact];
    let graph: Graph = Graph::clone(&allocated);
    let executable = Executable::compile(allocated, builtin("small").unwrap(), &modes).unwrap();
    let session = Session::default();
    let outcome = |mode, threads| {
        let engine = Engine::load(&executable, mode, threads, &session).unwrap();
        without_place(run(engine, &graph, names, program))
    };
    let first = outcome(Mode::Interpret, 1);
    for mode in modes {
        for threads in [1, 2, 5] {
            assert_eq!(outcome(mode, threads), first, "{mode:?} on {threads} threads");
        }
    }
    first
}

/// Removes what passes may change: the number of supersteps, because they merge copies, and the numbers of families,
/// because they remove compute sets.
fn without_numbers((result, values, mut host): Outcome) -> Outcome {
    host.progress.clear();
    let result = result.map(|_| 0).map_err(|e| match e {
        RunError::Check { instance, check, diagnostic, .. } => {
            RunError::Check { family: FamilyId::from_u32(0), instance, check, diagnostic }
        }
        other => other,
    });
    (result, values, host)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_modes_agree_on_random_graphs(seed in any::<u64>()) {
        let (maker, program) = Random::new(seed).finish();
        let graph = maker.graph;
        let vars: Vec<SmolStr> = graph.vars.values().filter(|v| v.is_persistent()).map(|v| v.name.clone()).collect();
        let session = Session::default();
        let expected = without_place(run(Engine::interpret(&graph, 6, &session).unwrap(), &graph, &vars, program));
        prop_assert_eq!(&common(allocate(graph.clone()), &vars, program), &expected);
        let lowered = common(lower(graph), &vars, program);
        prop_assert_eq!(without_numbers(lowered), without_numbers(expected));
    }
}
