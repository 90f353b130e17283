//! Rounds by edge colouring: transfers of one length form a bipartite graph of senders and receivers, whose edges König's
//! theorem colours with as many colours as the fullest port has edges; each colour is a set of transfers without
//! conflicts.
//!
//! Invariant: edges of one colour share no port. The colouring is the alternating-path proof itself, with a bound on its
//! steps.

use super::ports::Ports;
use std::cmp::Reverse;

/// Transfers above which colouring is not tried.
const MAX_TRANSFERS: usize = 400_000;
/// Entries (ports × colours) above which colouring is not tried.
const MAX_TABLE: usize = 16 << 20;
/// Steps along alternating paths, per edge, after which colouring gives up.
const MAX_STEPS: usize = 64;

/// Start cycles of all transfers; `None` where the method does not apply (several receivers, links) or is too slow.
pub(super) fn rounds(ports: &Ports) -> Option<Vec<u64>> {
    if ports.has_links() || ports.has_multicast() || ports.len() > MAX_TRANSFERS {
        return None;
    }
    let mut by_length: Vec<u32> = (0..ports.len() as u32).collect();
    let length = |t: u32| ports.holds(t as usize)[0].cycles;
    by_length.sort_by_key(|&t| Reverse(length(t)));
    let mut start = vec![0; ports.len()];
    let mut free_at = vec![0; ports.load.len()];
    for class in by_length.chunk_by(|&a, &b| length(a) == length(b)) {
        let edges: Vec<[u32; 2]> =
            class.iter().map(|&t| ports.holds(t as usize)).map(|h| [h[0].port, h[1].port]).collect();
        let colours = Colouring::new(&edges, ports.load.len())?.colour()?;
        let mut order: Vec<usize> = (0..class.len()).collect();
        order.sort_by_key(|&e| colours[e]);
        // Appending in the order of the rounds never ends later than the rounds themselves would.
        for e in order {
            let [s, r] = edges[e].map(|p| p as usize);
            let begin = std::cmp::max(free_at[s], free_at[r]);
            start[class[e] as usize] = begin;
            (free_at[s], free_at[r]) = (begin + length(class[e]), begin + length(class[e]));
        }
    }
    Some(start)
}

const NONE: u32 = u32::MAX;

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
