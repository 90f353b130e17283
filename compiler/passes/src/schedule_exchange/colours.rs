//! Rounds by edge colouring: jobs of one length form a bipartite graph of senders and receivers, whose edges König's
//! theorem colours with as many colours as the fullest port has edges; each colour is a set of jobs without conflicts.
//!
//! # Note: Halves
//! A large graph is halved first, and the halves are coloured apart: at every port its edges are joined two by two, which
//! makes paths and even circles of edges, and neighbours on these go to different halves. So each port has half of its
//! edges in each, but for one, and each halving adds at most one colour.
//!
//! Invariant: edges of one colour share no port. The colouring is the alternating-path proof itself, with a bound on its
//! steps.

use super::ports::{Jobs, Ports};
use girder_machine::Machine;
use girder_source::par_map;
use std::cmp::Reverse;

/// Edges above which a graph is halved, and [`pieces`] is not tried.
const MAX_EDGES: usize = 500_000;
/// Entries (ports × colours) above which colouring is not tried.
const MAX_TABLE: usize = 16 << 20;
/// Steps along alternating paths, per edge, after which colouring gives up.
const MAX_STEPS: usize = 64;
/// Into how many pieces [`pieces`] cuts what fills a port.
const PIECES: u64 = 1024;

/// Start cycles of whole jobs, those of one length coloured together, long ones first; `None` where the method does not
/// apply (several receivers) or is too slow. Exact where each length is regular.
pub(super) fn whole(ports: &Ports) -> Option<Vec<u64>> {
    if ports.has_multicast() {
        return None;
    }
    let mut by_length: Vec<u32> = (0..ports.len() as u32).collect();
    let length = |j: u32| ports.cycles[j as usize];
    by_length.sort_by_key(|&j| Reverse(length(j)));
    let mut order = Vec::with_capacity(ports.len());
    for class in by_length.chunk_by(|&a, &b| length(a) == length(b)) {
        let edges: Vec<[u32; 2]> = class.iter().map(|&j| ends(ports, j as usize)).collect();
        let colours = colour(&edges, ports.load.len())?;
        let mut rounds: Vec<(u32, u32)> = colours.into_iter().zip(class.iter().copied()).collect();
        rounds.sort_unstable();
        order.extend(rounds.into_iter().map(|r| r.1));
    }
    // Appending in the order of the rounds never ends later than the rounds themselves would.
    Some(ports.append(order))
}

/// Jobs to one receiver each, cut into pieces of about one length, which are coloured: with their starts. As exact as
/// the pieces are fine. `None` where it does not apply or is too slow.
pub(super) fn pieces(jobs: &Jobs, ports: &Ports, machine: &Machine) -> Option<(Jobs, Vec<u64>)> {
    if ports.has_multicast() || ports.len() >= MAX_EDGES || ports.len() == 0 {
        return None;
    }
    let common = jobs.list.iter().fold(0, |a, job| gcd(a, job.words));
    let most = ports.bound() * machine.exchange.bytes_per_cycle as u64 / 4;
    let total: u64 = jobs.list.iter().map(|job| job.words as u64).sum();
    // A piece of the common length wastes nothing; else the last piece of a job wastes half of one.
    let least = (most / PIECES).max(total / (MAX_EDGES - jobs.list.len()).max(1) as u64);
    let size = u32::try_from(common as u64 * least.div_ceil(common as u64).max(1)).ok()?;
    let count = |j: usize| jobs.list[j].words.div_ceil(size) as usize;
    let edges: Vec<[u32; 2]> =
        (0..jobs.list.len()).flat_map(|j| std::iter::repeat_n(ends(ports, j), count(j))).collect();
    let colours = Colouring::new(&edges, ports.load.len())?.colour()?;
    let mut cut = Jobs::default();
    let mut order = vec![];
    let mut at = 0;
    for (j, job) in jobs.list.iter().enumerate() {
        // Pieces of a job are interchangeable: its words go in the order of time.
        let mut rounds = colours[at..at + count(j)].to_vec();
        rounds.sort_unstable();
        for (k, colour) in (0..).zip(rounds) {
            let (start, end) = (job.first + k * size, job.first + job.words.min((k + 1) * size));
            order.push((colour, cut.list.len() as u32));
            cut.add_part(jobs, j, start..end, 0..1);
        }
        at += count(j);
    }
    order.sort_unstable();
    let start = Ports::new(&cut, machine).append(order.into_iter().map(|o| o.1));
    Some((cut, start))
}

fn ends(ports: &Ports, job: usize) -> [u32; 2] {
    let holds = ports.holds(job);
    [holds[0], holds[1]]
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

const NONE: u32 = u32::MAX;

/// The colours of all edges, see the note on halves; `None` if it takes too many steps.
fn colour(edges: &[[u32; 2]], ports: usize) -> Option<Vec<u32>> {
    if edges.len() <= MAX_EDGES {
        return Colouring::new(edges, ports)?.colour();
    }
    let second = halve(edges, ports);
    let half = |k: usize| {
        let own = edges.iter().zip(&second).filter(|e| *e.1 == (k == 1)).map(|e| *e.0);
        colour(&own.collect::<Vec<_>>(), ports)
    };
    let mut halves = par_map(2, half).into_iter();
    let (low, high) = (halves.next()??, halves.next()??);
    let shift = low.iter().max().map_or(0, |c| c + 1);
    let (mut low, mut high) = (low.into_iter(), high.into_iter().map(|c| c + shift));
    second.into_iter().map(|second| if second { high.next() } else { low.next() }).collect()
}

/// Of each edge: whether it is in the second half.
fn halve(edges: &[[u32; 2]], ports: usize) -> Vec<bool> {
    let mut joined = vec![[NONE; 2]; edges.len()];
    let mut waiting = vec![NONE; ports];
    for (e, ends) in edges.iter().enumerate() {
        for (side, &port) in ends.iter().enumerate() {
            match std::mem::replace(&mut waiting[port as usize], NONE) {
                NONE => waiting[port as usize] = e as u32,
                other => (joined[e][side], joined[other as usize][side]) = (other, e as u32),
            }
        }
    }
    let (mut second, mut known) = (vec![false; edges.len()], vec![false; edges.len()]);
    for e in 0..edges.len() {
        if std::mem::replace(&mut known[e], true) {
            continue;
        }
        for first_side in [0, 1] {
            let (mut at, mut side) = (e, first_side);
            loop {
                let next = joined[at][side];
                if next == NONE || std::mem::replace(&mut known[next as usize], true) {
                    break;
                }
                second[next as usize] = !second[at];
                (at, side) = (next as usize, 1 - side);
            }
        }
    }
    second
}

/// A partial edge colouring of a bipartite multigraph.
struct Colouring<'a> {
    edges: &'a [[u32; 2]],
    /// How many colours: the greatest degree.
    colours: usize,
    /// The vertex numbers of ports that have edges.
    dense: Vec<u32>,
    /// Edge at (vertex, colour).
    at: Vec<u32>,
    /// Bits of the colours that each vertex does not use yet.
    unused: Vec<u64>,
    of: Vec<u32>,
}

impl<'a> Colouring<'a> {
    fn new(edges: &'a [[u32; 2]], ports: usize) -> Option<Colouring<'a>> {
        let (mut dense, mut degree) = (vec![NONE; ports], vec![]);
        for &port in edges.iter().flatten() {
            let vertex = &mut dense[port as usize];
            if *vertex == NONE {
                *vertex = degree.len() as u32;
                degree.push(0usize);
            }
            degree[*vertex as usize] += 1;
        }
        let colours = degree.iter().copied().max().unwrap_or(0);
        let table = degree.len().checked_mul(colours).filter(|&n| n <= MAX_TABLE)?;
        let words = colours.div_ceil(64);
        let mut unused = vec![u64::MAX; degree.len() * words];
        if !colours.is_multiple_of(64) {
            unused.iter_mut().skip(words - 1).step_by(words).for_each(|w| *w = (1 << (colours % 64)) - 1);
        }
        Some(Colouring { edges, colours, dense, at: vec![NONE; table], unused, of: vec![NONE; edges.len()] })
    }

    /// The colour of each edge; `None` if it takes too many steps.
    fn colour(mut self) -> Option<Vec<u32>> {
        let mut steps = self.edges.len() * MAX_STEPS;
        for e in 0..self.edges.len() {
            let [u, v] = self.ends(e);
            let colour = match self.common(u, v) {
                Some(c) => c,
                None => {
                    let (a, b) = (self.first_unused(u), self.first_unused(v));
                    steps = steps.checked_sub(self.swap(v, a, b))?;
                    a
                }
            };
            self.set(e, colour);
        }
        Some(self.of)
    }

    fn ends(&self, edge: usize) -> [usize; 2] {
        self.edges[edge].map(|p| self.dense[p as usize] as usize)
    }

    fn words(&self, vertex: usize) -> &[u64] {
        let n = self.colours.div_ceil(64);
        &self.unused[vertex * n..(vertex + 1) * n]
    }

    /// A colour that neither vertex uses.
    fn common(&self, u: usize, v: usize) -> Option<u32> {
        let words = self.words(u).iter().zip(self.words(v));
        words.enumerate().find(|(_, (a, b))| *a & *b != 0).map(|(k, (a, b))| 64 * k as u32 + (a & b).trailing_zeros())
    }

    /// A vertex with an edge to colour has a colour left: it has at most `colours` edges.
    fn first_unused(&self, vertex: usize) -> u32 {
        let words = self.words(vertex).iter().enumerate();
        words.filter(|(_, w)| **w != 0).map(|(k, w)| 64 * k as u32 + w.trailing_zeros()).next().unwrap_or(0)
    }

    /// Exchanges colours `a` and `b` on the path that leaves a vertex by `a`; returns its length. In a bipartite graph
    /// it cannot end at a neighbour that lacks `a`, so that both ends of the new edge then lack it.
    fn swap(&mut self, from: usize, a: u32, b: u32) -> usize {
        let (mut path, mut vertex, mut colour) = (vec![], from, a);
        loop {
            let edge = self.at[vertex * self.colours + colour as usize];
            if edge == NONE {
                break;
            }
            path.push(edge as usize);
            let [u, v] = self.ends(edge as usize);
            vertex = if vertex == u { v } else { u };
            colour = if colour == a { b } else { a };
        }
        for &edge in &path {
            self.mark(edge, self.of[edge], NONE);
        }
        for &edge in &path {
            self.set(edge, if self.of[edge] == a { b } else { a });
        }
        path.len()
    }

    fn set(&mut self, edge: usize, colour: u32) {
        self.of[edge] = colour;
        self.mark(edge, colour, edge as u32);
    }

    /// Writes the table at both ends of an edge.
    fn mark(&mut self, edge: usize, colour: u32, value: u32) {
        let words = self.colours.div_ceil(64);
        for vertex in self.ends(edge) {
            self.at[vertex * self.colours + colour as usize] = value;
            let word = &mut self.unused[vertex * words + colour as usize / 64];
            let bit = 1 << (colour % 64);
            *word = if value == NONE { *word | bit } else { *word & !bit };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Colouring, halve};

    /// 40 senders to 40 receivers, with repetitions, by a simple rule that favours none.
    fn edges() -> Vec<[u32; 2]> {
        (0..3001u32).map(|k| [k * k % 40, 40 + (k * 7 + k / 40 * 3) % 40]).collect()
    }

    #[test]
    fn halving_shares_the_edges_of_each_port() {
        let edges = edges();
        let second = halve(&edges, 80);
        for port in 0..80 {
            let own: Vec<bool> = edges.iter().zip(&second).filter(|e| e.0.contains(&port)).map(|e| *e.1).collect();
            let there = own.iter().filter(|&&s| s).count();
            assert!(there.abs_diff(own.len() - there) <= 1, "port {port} has {there} of {} edges", own.len());
        }
    }

    #[test]
    fn halves_are_coloured_with_at_most_one_colour_more() {
        let edges = edges();
        let degree = |port: u32| edges.iter().filter(|e| e.contains(&port)).count() as u32;
        let most = (0..80).map(degree).max().unwrap();
        let second = halve(&edges, 80);
        let colours = [false, true].map(|s| {
            let own: Vec<_> = edges.iter().zip(&second).filter(|e| *e.1 == s).map(|e| *e.0).collect();
            Colouring::new(&own, 80).unwrap().colour().unwrap().into_iter().max().unwrap() + 1
        });
        assert!(colours[0] + colours[1] <= most + 1, "{colours:?} of {most}");
    }
}
