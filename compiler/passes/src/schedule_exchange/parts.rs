//! Multicasts served in parts.
//!
//! # Note: Slack of a sender
//! A multicast waits until all its receivers are free at once, which random ones seldom are. Serving a few of them at a
//! time waits less but costs the sender a repetition. A sender whose load is L may repeat all its words ⌊B / L⌋ times
//! before it becomes the fullest port itself, where B is the bound. So each of its multicasts is cut into that many
//! parts, but into no more than leave `size` receivers in each ([`parts`]). Alternatively each multicast is cut into as
//! many parts as there are receivers while there is slack, and the rest into fewer ([`singles`]).
//!
//! Invariant: the load of no port exceeds the bound of the whole, or the given limit.

use super::ports::{Job, Jobs, Ports};

/// Returns the jobs with multicasts cut into parts of at most `size` receivers, where the sender's slack allows, or
/// `None` if none is cut. Receivers of a part are neighbours in the order of tiles.
pub(super) fn parts(jobs: &Jobs, ports: &Ports, size: u64) -> Option<Jobs> {
    let bound = ports.bound();
    cut(jobs, |k| {
        let slack = bound / fullest_out(ports, k, &ports.load).max(1);
        most_parts(jobs, k, size).min(slack).max(1)
    })
}

/// Returns the jobs with most multicasts cut, or `None` if none is cut. A sender's multicasts are cut into parts of one
/// receiver as far as its slack allows, the others into larger parts. No sender is busy for longer than `limit`, which
/// is not below the bound.
pub(super) fn singles(jobs: &Jobs, ports: &Ports, limit: u64) -> Option<Jobs> {
    let mut by_sender: Vec<(u32, u32)> = (0..ports.len() as u32)
        .filter(|&k| ports.is_multicast(k as usize))
        .map(|k| (jobs.from[k as usize], k))
        .collect();
    by_sender.sort_unstable();
    let mut load = ports.load.clone();
    let mut counts = vec![1; ports.len()];
    for own in by_sender.chunk_by(|a, b| a.0 == b.0) {
        // The least size to which all may be cut, then half of that as long as there is room.
        let most = own.iter().map(|&(_, k)| jobs.receivers(k as usize).len() as u64).max().unwrap_or(1);
        let sizes = || std::iter::successors(Some(1), |s| Some(2 * s)).take_while(|&s| s < most);
        let repeats = |k: usize, size: u64| (most_parts(jobs, k, size) - 1) * ports.cycles[k];
        let needed = |size: u64| own.iter().map(|o| repeats(o.1 as usize, size)).sum::<u64>();
        let room = |o: &(u32, u32)| limit - fullest_out(ports, o.1 as usize, &load);
        let slack = own.iter().map(room).min().unwrap_or(0);
        let size = sizes().find(|&size| needed(size) <= slack).unwrap_or(most);
        for size in [size, (size / 2).max(1)] {
            for &(_, k) in own {
                let k = k as usize;
                let more = most_parts(jobs, k, size).saturating_sub(counts[k]);
                let more = more.min((limit - fullest_out(ports, k, &load)) / ports.cycles[k]);
                counts[k] += more;
                let outs = ports.holds(k).iter().filter(|&&p| ports.is_out[p as usize]);
                outs.for_each(|&p| load[p as usize] += more * ports.cycles[k]);
            }
        }
    }
    cut(jobs, |k| counts[k])
}

/// Returns the greatest of some loads among the output ports of a job.
fn fullest_out(ports: &Ports, job: usize, load: &[u64]) -> u64 {
    let outs = ports.holds(job).iter().filter(|&&p| ports.is_out[p as usize]);
    outs.map(|&p| load[p as usize]).max().unwrap_or(0)
}

/// Returns the number of receivers that stay together: two for a job at the rate of pairs.
fn unit(job: &Job) -> u64 {
    if job.paired { 2 } else { 1 }
}

/// Returns the number of parts of at most `size` receivers into which a job may be cut.
fn most_parts(jobs: &Jobs, job: usize, size: u64) -> u64 {
    let (n, unit) = (jobs.receivers(job).len() as u64, unit(&jobs.list[job]));
    if n.is_multiple_of(unit) { n.div_ceil(size.max(unit)) } else { 1 }
}

/// Returns the jobs, with job k cut into `parts(k)` parts, or `None` if none is cut.
fn cut(jobs: &Jobs, parts: impl Fn(usize) -> u64) -> Option<Jobs> {
    let count = (0..jobs.list.len()).map(|k| parts(k) as usize).sum();
    if count == jobs.list.len() {
        return None;
    }
    let mut result = Jobs::with_capacity(count, jobs.to.len());
    for (k, job) in jobs.list.iter().enumerate() {
        let (n, unit, parts) = (jobs.receivers(k).len() as u64, unit(job), parts(k));
        for p in 0..parts {
            let edge = |p: u64| if p == parts { n as usize } else { (p * (n / unit) / parts * unit) as usize };
            result.add_part(jobs, k, job.first..job.first + job.words, edge(p)..edge(p + 1));
        }
    }
    Some(result)
}
