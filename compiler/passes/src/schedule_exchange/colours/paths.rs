//! Colouring by alternating paths. If the ends of an edge lack no common colour, exchanging two colours along a path
//! makes them lack one.
//!
//! # Note: Spare colours
//! A path that meets a multicast cannot be exchanged, and no path is once the bound on steps is reached. Spare colours
//! beyond those that the fullest port needs are then used; there are a few per cent of them.
//!
//! Invariant: at any time no port has two edges of one colour, and an edge has at most one colour.

use super::NONE;
use crate::schedule_exchange::ports::Ports;
use smallvec::SmallVec;

/// The number of steps along alternating paths, per edge, after which no further path is followed.
const MAX_STEPS: usize = 64;
/// The number of pairs of colours that are tried if paths meet multicasts.
const TRIES: usize = 8;
/// There is one spare colour for this many colours.
const SPARE: usize = 32;

/// In [`Colouring::ends`]: the edge has more than two ends.
const MANY: u32 = u32::MAX;

/// A partial edge colouring.
struct Colouring {
    /// The number of colours that the fullest vertex needs.
    needed: usize,
    /// The number of colours, including spare ones.
    colours: usize,
    /// The edge at each (vertex, colour).
    at: Vec<u32>,
    /// A bit set of the colours that each vertex lacks, of `words` words.
    lacks: Vec<u64>,
    words: usize,
    /// For each vertex, the first nonzero word of its set, or one before it.
    first: Vec<u32>,
    /// The two ends of each edge, combined by exclusive or so that one gives the other; or `MANY`.
    ends: Vec<u32>,
    /// Whether some edge has more than two ends.
    many: bool,
    /// The number of steps that may still be taken.
    steps: usize,
}

/// Returns the colours of jobs, or [`NONE`] for a job that multicasts or the bound on steps leave without one.
pub(super) fn colour(ports: &Ports, jobs: &[u32]) -> Vec<u32> {
    let (numbers, degrees) = vertices(ports, jobs);
    let vertex = |port: u32| numbers[port as usize] as usize;
    let mut colouring = Colouring::new(&degrees, jobs.len());
    let edges = || (0..).zip(jobs).map(|(e, &job)| (e, ports.holds(job as usize)));
    for (e, holds) in edges().filter(|e| e.1.len() > 2) {
        let vertices: Vec<usize> = holds.iter().map(|&p| vertex(p)).collect();
        colouring.add_many(e, &vertices);
    }
    for (e, holds) in edges() {
        if let &[u, v] = holds {
            colouring.add(e, vertex(u), vertex(v));
        }
    }
    colouring.finish()
}

/// Returns the numbers of the ports that take part, and the number of edges of each.
fn vertices(ports: &Ports, jobs: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut numbers, mut degrees) = (vec![NONE; ports.load.len()], vec![]);
    for &port in jobs.iter().flat_map(|&j| ports.holds(j as usize)) {
        let number = &mut numbers[port as usize];
        if *number == NONE {
            *number = degrees.len() as u32;
            degrees.push(0);
        }
        degrees[*number as usize] += 1;
    }
    (numbers, degrees)
}

impl Colouring {
    fn new(degrees: &[u32], edges: usize) -> Colouring {
        let needed = degrees.iter().copied().max().unwrap_or(0) as usize;
        let colours = needed + needed.div_ceil(SPARE);
        let words = colours.div_ceil(64);
        let mut lacks = vec![u64::MAX; degrees.len() * words];
        if !colours.is_multiple_of(64) {
            lacks.iter_mut().skip(words - 1).step_by(words).for_each(|w| *w = (1 << (colours % 64)) - 1);
        }
        Colouring {
            needed,
            colours,
            at: vec![NONE; degrees.len() * colours],
            lacks,
            words,
            first: vec![0; degrees.len()],
            ends: vec![MANY; edges],
            many: false,
            steps: edges * MAX_STEPS,
        }
    }

    /// Colours an edge of two ends.
    fn add(&mut self, edge: u32, u: usize, v: usize) {
        self.ends[edge as usize] = u as u32 ^ v as u32;
        let common = self.common(&[u, v]);
        let colour = match common.filter(|&c| c < self.needed) {
            Some(colour) => Some(colour),
            None => self.make_common(u, v).or(common),
        };
        if let Some(colour) = colour {
            [u, v].into_iter().for_each(|w| self.set(w, colour, edge));
        }
    }

    /// Colours an edge of many ends.
    fn add_many(&mut self, edge: u32, vertices: &[usize]) {
        self.many = true;
        if let Some(colour) = self.common(vertices) {
            vertices.iter().for_each(|&v| self.set(v, colour, edge));
        }
    }

    /// Returns the first colour that none of some vertices has.
    fn common(&self, vertices: &[usize]) -> Option<usize> {
        let lacked = |k: usize| vertices.iter().fold(u64::MAX, |bits, &v| bits & self.lacks[v * self.words + k]);
        let first = vertices.iter().map(|&v| self.first[v] as usize).max().unwrap_or(0);
        let found = (first..self.words).map(|k| (k, lacked(k))).find(|w| w.1 != 0);
        found.map(|(k, bits)| 64 * k + bits.trailing_zeros() as usize)
    }

    /// Returns the colours among the needed ones that a vertex lacks.
    fn lacked(&self, vertex: usize) -> impl Iterator<Item = usize> + use<'_> {
        let words = (self.first[vertex] as usize..self.words).map(move |k| (k, self.lacks[vertex * self.words + k]));
        let rest = |bits: u64| Some(bits & (bits - 1)).filter(|&b| b != 0);
        let bits = move |(k, word): (usize, u64)| {
            let all = std::iter::successors(Some(word).filter(|&w| w != 0), move |&b| rest(b));
            all.map(move |b| 64 * k + b.trailing_zeros() as usize)
        };
        words.flat_map(bits).take_while(|&c| c < self.needed)
    }

    /// Exchanges colours along a path, so that two vertices lack the same one. Each vertex lacks one, because it has no
    /// more edges than are needed.
    fn make_common(&mut self, u: usize, v: usize) -> Option<usize> {
        let pairs: SmallVec<[(usize, usize); TRIES]> = self.lacked(u).zip(self.lacked(v)).take(TRIES).collect();
        let (a, b) = pairs.into_iter().find(|&(a, b)| self.is_open(v, a, b))?;
        self.exchange(v, a, b);
        Some(a)
    }

    fn set(&mut self, vertex: usize, colour: usize, edge: u32) {
        self.at[vertex * self.colours + colour] = edge;
        self.flip(vertex, colour);
        let row = vertex * self.words;
        while (self.first[vertex] as usize) < self.words && self.lacks[row + self.first[vertex] as usize] == 0 {
            self.first[vertex] += 1;
        }
    }

    /// Toggles a colour of a vertex.
    fn flip(&mut self, vertex: usize, colour: usize) {
        self.lacks[vertex * self.words + colour / 64] ^= 1 << (colour % 64);
        self.first[vertex] = self.first[vertex].min(colour as u32 / 64);
    }

    /// Returns whether the path of colours `a` and `b` that leaves a vertex by `a` has only edges of two ends.
    fn is_open(&mut self, from: usize, a: usize, b: usize) -> bool {
        let (mut vertex, mut colours) = (from, (a, b));
        // Without multicasts there is nothing to look for.
        while self.many && self.steps > 0 {
            self.steps -= 1;
            let edge = self.at[vertex * self.colours + colours.0];
            if edge == NONE {
                return true;
            }
            if self.ends[edge as usize] == MANY {
                return false;
            }
            vertex ^= self.ends[edge as usize] as usize;
            colours = (colours.1, colours.0);
        }
        self.steps > 0
    }

    /// Exchanges two colours on the path that leaves a vertex, which lacks `b`, by `a`. In a bipartite graph the path
    /// cannot end at a neighbour that lacks `a`, so both ends of a new edge lack it afterwards.
    fn exchange(&mut self, from: usize, a: usize, b: usize) {
        let (mut vertex, mut colours) = (from, (a, b));
        self.flip(from, a);
        self.flip(from, b);
        loop {
            let row = vertex * self.colours;
            let next = self.at[row + colours.0];
            self.at.swap(row + colours.0, row + colours.1);
            if next == NONE {
                break;
            }
            vertex ^= self.ends[next as usize] as usize;
            colours = (colours.1, colours.0);
            self.steps = self.steps.saturating_sub(1);
        }
        // The last vertex of the path had one of the two colours.
        self.flip(vertex, a);
        self.flip(vertex, b);
    }

    fn finish(self) -> Vec<u32> {
        let mut of = vec![NONE; self.ends.len()];
        for row in self.at.chunks_exact(self.colours.max(1)) {
            for (colour, &edge) in (0..).zip(row).filter(|e| *e.1 != NONE) {
                of[edge as usize] = colour;
            }
        }
        of
    }
}
