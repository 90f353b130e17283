//! Random views, alone and as fields of families, are printed as texts that read back to the same views.

mod common;

use common::{print, read, run, same};
use girder::Stage;
use girder_engine::Mode;

/// A generator of reproducible pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }
}

/// The text of a view, with its shape.
#[derive(Clone)]
struct Made {
    text: String,
    shape: Vec<u64>,
}

fn start(dice: &mut Dice) -> Made {
    let (name, shape): (_, &[u64]) =
        [("a", &[4, 6][..]), ("b", &[2, 3, 5]), ("c", &[24]), ("d", &[1, 8, 1])][dice.roll(4) as usize];
    Made { text: name.into(), shape: shape.to_vec() }
}

fn list(shape: &[u64]) -> String {
    format!("{shape:?}")
}

/// Applies one more random operation.
fn step(m: Made, dice: &mut Dice) -> Made {
    let Made { text, shape } = m;
    let (rank, len) = (shape.len() as u64, shape.iter().product::<u64>());
    if rank == 0 {
        return Made { text: format!("{text}.expand(0)"), shape: vec![1] };
    }
    let axis = dice.roll(rank) as usize;
    let n = shape[axis];
    let with = |n: u64| {
        let mut shape = shape.clone();
        shape[axis] = n;
        shape
    };
    match dice.roll(10) {
        0 if rank > 1 => {
            let i = dice.roll(n);
            let open = ".., ".repeat(axis);
            let shape = [&shape[..axis], &shape[axis + 1..]].concat();
            Made { text: format!("{text}[{open}{i}]"), shape }
        }
        0..=2 => {
            let (lo, by) = (dice.roll(n), 1 + dice.roll(3));
            let hi = lo + 1 + dice.roll(n - lo);
            let open = ".., ".repeat(axis);
            Made { text: format!("{text}[{open}{lo}..{hi} by {by}]"), shape: with((hi - lo).div_ceil(by)) }
        }
        3 | 4 => {
            let all: Vec<Vec<u64>> = (1..=len)
                .filter(|a| len.is_multiple_of(*a))
                .flat_map(|a| {
                    (1..=len / a).filter(move |b| (len / a).is_multiple_of(*b)).map(move |b| vec![a, b, len / a / b])
                })
                .collect();
            let shape = all[dice.roll(all.len() as u64) as usize].clone();
            Made { text: format!("{text}.reshape({})", list(&shape)), shape }
        }
        5 => Made { text: format!("{text}.transpose()"), shape: shape.into_iter().rev().collect() },
        6 => Made { text: format!("{text}.reverse(axis: {axis})"), shape },
        7 if len < 60 => {
            let times = 1 + dice.roll(3);
            Made { text: format!("{text}.broadcast({times}, axis: {axis})"), shape: with(n * times) }
        }
        _ if len < 100 => {
            let other = start(dice);
            let size = other.shape.iter().product::<u64>();
            let rest = len / n;
            let cut = size / rest;
            if cut == 0 || rest > size {
                return Made { text: format!("concat([{text}, {text}], axis: {axis})"), shape: with(2 * n) };
            }
            let piece = format!("{}.flatten()[0..{}].reshape({})", other.text, cut * rest, list(&with(cut)));
            Made { text: format!("concat([{text}, {piece}], axis: {axis})"), shape: with(n + cut) }
        }
        _ => Made { text, shape },
    }
}

fn program(dice: &mut Dice) -> String {
    let mut text = "codelet add(in x: f32[n], out y: f32) { y = sum i in 0..n { x[i] }; }
        var a: f32[4, 6] = list i in 0..4 { list j in 0..6 { 10 * i + j } };
        var b: f32[2, 3, 5] = 0.5;
        var c: f32[24] = list i in 0..24 { i };
        var d: f32[1, 8, 1] = 3.0;
        program main() {\n"
        .to_string();
    for k in 0..4 {
        let mut m = start(dice);
        for _ in 0..1 + dice.roll(6) {
            m = step(m, dice);
        }
        text += &format!("let v{k} = {};\n", m.text);
        match (k % 2, m.shape.first()) {
            (0, Some(&n)) => {
                text += &format!("var y{k}: f32[{n}];\n");
                text += &format!("compute {{ for i in 0..{n} {{ vertex add(x: v{k}[i].flatten(), y: y{k}[i]); }} }}\n");
                text += &format!("print(\"y{k}\", y{k});\n");
            }
            _ => text += &format!("print(\"v{k}\", v{k});\n"),
        }
    }
    text + "}\n"
}

#[test]
fn random_views_read_back_as_themselves() {
    let rounds = std::env::var("GIRDER_VIEWS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    for round in 0..rounds {
        let source = program(&mut Dice(round));
        let text = print(&source, Stage::Graph);
        same(&text, &print(&text, Stage::Graph), Stage::Graph);
        let placed = print(&source, Stage::Placed);
        same(&placed, &print(&placed, Stage::Placed), Stage::Placed);
        let results = [&source, &text, &placed].map(|t| {
            let (c, stage) = read(t, Stage::Allocated);
            run(c, stage, Mode::Interpret)
        });
        assert!(results.iter().all(|r| *r == results[0]), "{source}\n{text}");
    }
}
