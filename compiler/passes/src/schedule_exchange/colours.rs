//! Rounds by edge colouring. Jobs of one length form a bipartite graph of senders and receivers. By König's theorem,
//! its edges can be coloured with as many colours as the fullest port has edges. Each colour is a set of jobs without
//! conflicts.
//!
//! # Note: Halves
//! A graph that needs too large a table is first halved, and the halves are coloured separately. At every port the
//! edges are joined two by two, which makes paths and even cycles of edges; neighbours on these go to different halves.
//! So each port has half of its edges in each half, up to one, and each halving adds at most one colour.
//!
//! # Note: Multicasts
//! A job of several receivers is coloured before the others, with the first colour that all its ports lack. Theory
//! promises no bound near the most edges of a port, so other methods do better with many multicasts. Halving treats a
//! multicast as an edge to its first receiver.
//!
//! Invariant: jobs of one colour share no port. A job without a colour comes after all others. The time grows with the
//! number of jobs, with the logarithm of the most at one port, and with a bound on steps per job.

mod paths;

use super::ports::{Jobs, Ports, cycles};
use girder_machine::Machine;
use girder_source::par_map;
use std::cmp::Reverse;

/// The number of pieces that [`pieces`] makes of a few jobs.
pub(super) const MANY_EDGES: usize = 500_000;
/// The number of lengths above which [`whole`] is good only where everything else is worse.
const MANY_LENGTHS: usize = 64;
/// The table size (ports × colours) above which a graph is halved.
const MAX_TABLE: u64 = 16 << 20;
/// The number of colours above which a graph is halved: the search for a common colour looks at 64 colours at a time.
const MAX_COLOURS: u64 = 8192;
/// The number of pieces into which [`pieces`] cuts the load of a full port.
const PIECES: u64 = 1024;
/// The colour of a job that has none.
const NONE: u32 = u32::MAX;

/// Returns the start cycles of whole jobs. Those of one length are coloured together, long ones first. Exact if each
/// length is regular and there are no multicasts.
pub(super) fn whole(ports: &Ports) -> Vec<u64> {
    let mut by_length: Vec<u32> = (0..ports.len() as u32).collect();
    let length = |j: u32| ports.cycles[j as usize];
    by_length.sort_by_key(|&j| Reverse(length(j)));
    let mut order = Vec::with_capacity(ports.len());
    for class in by_length.chunk_by(|&a, &b| length(a) == length(b)) {
        let colours = colour(ports, class);
        order.extend(rounds(&colours).into_iter().map(|k| class[k as usize]));
    }
    // Appending in the order of the rounds never ends later than the rounds themselves.
    ports.append(order)
}

/// Returns the cycles of the rounds that [`whole`] would find: those that the fullest port needs, length by length.
pub(super) fn whole_rounds(ports: &Ports) -> u64 {
    let mut lengths: Vec<u64> = ports.cycles.clone();
    lengths.sort_unstable();
    lengths.dedup();
    if lengths.len() > MANY_LENGTHS {
        return u64::MAX;
    }
    let mut counts = vec![0; lengths.len() * ports.load.len()];
    for (j, cycles) in ports.cycles.iter().enumerate() {
        let class = lengths.partition_point(|l| l < cycles) * ports.load.len();
        ports.holds(j).iter().for_each(|&p| counts[class + p as usize] += 1);
    }
    let fullest = counts.chunks_exact(ports.load.len()).map(|c| c.iter().copied().max().unwrap_or(0));
    lengths.iter().zip(fullest).map(|(length, most): (_, u64)| length * most).sum()
}

/// Returns positions by ascending colour.
fn rounds(colours: &[u32]) -> Vec<u32> {
    let count = count(colours);
    let mut at = vec![0u32; count as usize + 2];
    let slot = |colour: u32| colour.min(count) as usize;
    colours.iter().for_each(|&c| at[slot(c) + 1] += 1);
    (1..at.len()).for_each(|k| at[k] += at[k - 1]);
    let mut order = vec![0; colours.len()];
    for (k, &colour) in (0..).zip(colours) {
        let place = &mut at[slot(colour)];
        order[*place as usize] = k;
        *place += 1;
    }
    order
}

/// Returns the number of used colours.
fn count(colours: &[u32]) -> u32 {
    colours.iter().filter(|&&c| c != NONE).max().map_or(0, |c| c + 1)
}

/// Cuts jobs into about `count` pieces of about one length, or one or two pieces each if that is more, and colours
/// them. Returns the pieces, their starts and the end. The result is as exact as the pieces are fine. Returns `None` if
/// some job moves at the rate of pairs, or if the fullest port alone needs more cycles than `limit`.
pub(super) fn pieces(
    jobs: &Jobs,
    ports: &Ports,
    count: usize,
    limit: u64,
    machine: &Machine,
) -> Option<(Jobs, Vec<u64>, u64)> {
    if ports.len() == 0 || jobs.list.iter().any(|job| job.paired) {
        return None;
    }
    let common = jobs.list.iter().fold(0, |a, job| gcd(a, job.words));
    let most = ports.bound() * machine.exchange.bytes_per_cycle as u64 / 4;
    let total: u64 = jobs.list.iter().map(|job| job.words as u64).sum();
    // Pieces of the common length waste nothing; otherwise the last piece of a job wastes half of one.
    let room = count.max(2 * ports.len()) - ports.len();
    let least = match total / common as u64 <= 2 * ports.len() as u64 {
        true => 0,
        false => (most / PIECES).max(total / room as u64),
    };
    let size = u32::try_from(common as u64 * least.div_ceil(common as u64).max(1)).ok()?;
    let count = |j: usize| jobs.list[j].words.div_ceil(size) as usize;
    let mut edges: Vec<u32> = Vec::with_capacity((0..jobs.list.len()).map(count).sum());
    (0..jobs.list.len()).for_each(|j| edges.resize(edges.len() + count(j), j as u32));
    let fullest = most_at_a_port(ports, &edges).0;
    if fullest.saturating_mul(cycles(size, false, machine)) > limit {
        return None;
    }
    let mut colours = colour(ports, &edges);
    let receivers = (0..jobs.list.len()).map(|j| count(j) * jobs.receivers(j).len()).sum();
    let (mut cut, mut times) = (Jobs::with_capacity(edges.len(), receivers), Vec::with_capacity(edges.len()));
    let mut at = 0;
    for (j, job) in jobs.list.iter().enumerate() {
        // Pieces of a job are interchangeable: its words go in the order of time.
        colours[at..at + count(j)].sort_unstable();
        at += count(j);
        for k in 0..count(j) as u32 {
            let (start, end) = (job.first + k * size, job.first + job.words.min((k + 1) * size));
            cut.add_part(jobs, j, start..end, 0..job.to.len());
            times.push(cycles(end - start, false, machine));
        }
    }
    let start = ports.append_parts(&edges, &times, rounds(&colours));
    let end = start.iter().zip(&times).map(|(s, t)| s + t).max().unwrap_or(0);
    Some((cut, start, end))
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the colours of some jobs (see the note on halves). A job may occur several times.
fn colour(ports: &Ports, jobs: &[u32]) -> Vec<u32> {
    let (most, count) = most_at_a_port(ports, jobs);
    let parts = (most * count).div_ceil(MAX_TABLE).max(most.div_ceil(MAX_COLOURS)).max(1);
    halved(ports, jobs, parts.next_power_of_two().ilog2())
}

/// Returns the largest number of jobs that hold one port, and the number of held ports.
fn most_at_a_port(ports: &Ports, jobs: &[u32]) -> (u64, u64) {
    let mut edges = vec![0u64; ports.load.len()];
    jobs.iter().flat_map(|&j| ports.holds(j as usize)).for_each(|&p| edges[p as usize] += 1);
    (edges.iter().copied().max().unwrap_or(0), edges.iter().filter(|&&n| n > 0).count() as u64)
}

/// Returns the colours of some jobs after halving the graph `times` times.
fn halved(ports: &Ports, jobs: &[u32], times: u32) -> Vec<u32> {
    if times == 0 {
        return paths::colour(ports, jobs);
    }
    let second = halve(ports, jobs);
    let half = |k: usize| {
        let own = jobs.iter().zip(&second).filter(|e| *e.1 == (k == 1)).map(|e| *e.0);
        halved(ports, &own.collect::<Vec<_>>(), times - 1)
    };
    let mut halves = par_map(2, half).into_iter().map(Vec::into_iter);
    let (mut low, mut high) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    let shift = count(low.as_slice());
    let shifted = |c: u32| if c == NONE { NONE } else { c + shift };
    let own = |second| if second { high.next().map(shifted) } else { low.next() };
    second.into_iter().map(own).map(|c| c.unwrap_or(NONE)).collect()
}

/// Returns for each job whether it is in the second half.
fn halve(ports: &Ports, jobs: &[u32]) -> Vec<bool> {
    let mut joined = vec![[NONE; 2]; jobs.len()];
    let mut waiting = vec![NONE; ports.load.len()];
    for (e, &job) in jobs.iter().enumerate() {
        for (side, &port) in ports.holds(job as usize)[..2].iter().enumerate() {
            match std::mem::replace(&mut waiting[port as usize], NONE) {
                NONE => waiting[port as usize] = e as u32,
                other => (joined[e][side], joined[other as usize][side]) = (other, e as u32),
            }
        }
    }
    let (mut second, mut known) = (vec![false; jobs.len()], vec![false; jobs.len()]);
    // Paths begin in alternate halves, so that further receivers of multicasts are divided too.
    let mut begin = false;
    for e in 0..jobs.len() {
        if std::mem::replace(&mut known[e], true) {
            continue;
        }
        begin = !begin;
        second[e] = begin;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns jobs from 40 senders to 40 receivers, with repetitions, by a simple rule that favours none.
    fn edges(count: u32) -> Ports {
        let mut jobs = Jobs::default();
        (0..count).for_each(|k| jobs.add(k, 0..1, k * k % 40, [(0, 40 + (k * 7 + k / 40 * 3) % 40)]));
        Ports::new(&jobs, &girder_machine::builtin("small").unwrap().resized(1, 80))
    }

    #[test]
    fn halving_shares_the_edges_of_each_port() {
        let ports = edges(3001);
        let second = halve(&ports, &(0..3001).collect::<Vec<_>>());
        for port in 0..ports.load.len() as u32 {
            let holds = |e: &(usize, &bool)| ports.holds(e.0).contains(&port);
            let own: Vec<bool> = second.iter().enumerate().filter(holds).map(|e| *e.1).collect();
            let there = own.iter().filter(|&&s| s).count();
            assert!(there.abs_diff(own.len() - there) <= 1, "port {port} has {there} of {} edges", own.len());
        }
    }

    #[test]
    fn each_halving_adds_at_most_one_colour() {
        let ports = edges(3001);
        for times in 0..3 {
            let colours = halved(&ports, &(0..3001).collect::<Vec<_>>(), times);
            assert!(!colours.contains(&NONE));
            assert!(count(&colours) < ports.bound() as u32 + (1 << times), "halved {times} times");
            let mut seen = std::collections::HashSet::new();
            for (e, colour) in colours.iter().enumerate() {
                assert!(ports.holds(e).iter().all(|&p| seen.insert((p, *colour))), "job {e} meets another");
            }
        }
    }
}
