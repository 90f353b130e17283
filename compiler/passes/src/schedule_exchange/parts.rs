//! Multicasts served in parts.
//!
//! # Note: Slack of a sender
//! A multicast waits until all its receivers are free at once, which random ones seldom are. Serving a few of them at a
//! time needs no such luck but costs the sender a repetition. A sender whose load is L may repeat all its words ⌊B / L⌋
//! times before it becomes the fullest port itself, where B is the bound: so many parts it makes of each multicast, but
//! no more than leave `size` receivers in each.
//!
//! Invariant: the load of no port exceeds the bound of the whole.

use super::ports::{Jobs, Ports};

/// The jobs with multicasts cut into parts of at most `size` receivers, where the sender's slack allows; `None` if none
/// is cut. Receivers of a part are neighbours in the order of tiles.
pub(super) fn parts(jobs: &Jobs, ports: &Ports, size: u64) -> Option<Jobs> {
    let bound = ports.bound();
    let mut result = Jobs::default();
    for (k, job) in jobs.list.iter().enumerate() {
        let n = jobs.receivers(k).len() as u64;
        // Pairs stay whole where they are served at their rate.
        let unit = if job.wide { 2 } else { 1 };
        let sends = ports.holds(k).iter().filter(|&&p| ports.is_out[p as usize]).map(|&p| ports.load[p as usize]);
        let slack = bound / sends.max().unwrap_or(0).max(1);
        let parts = match n % unit {
            0 => n.div_ceil(size.max(unit)).min(slack).max(1),
            _ => 1,
        };
        for p in 0..parts {
            let edge = |p: u64| if p == parts { n as usize } else { (p * (n / unit) / parts * unit) as usize };
            result.add_part(jobs, k, job.first..job.first + job.words, edge(p)..edge(p + 1));
        }
    }
    (result.list.len() > jobs.list.len()).then_some(result)
}
