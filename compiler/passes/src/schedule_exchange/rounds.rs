//! Rounds in closed form. Transfers of one length over one distance form a matching if no tile sends two of them, so
//! they may happen at the same time.
//!
//! A halo is one round for each direction. An all-to-all is one round for each distance (a cyclic skew). A
//! transposition or any other permutation is a single round. In a gather, a scatter or a broadcast, a single port takes
//! its transfers in order.
//!
//! If lengths differ a little, as at the edges of blocks of unequal sizes, a round consists either of the transfers
//! over one distance or of those of one length, whichever ends first.
//!
//! Invariant: there is no search. The time is that of a few iterations over the jobs.

use super::effort::GOOD;
use super::ports::Ports;
use std::cmp::Reverse;

/// Returns the start cycles of all jobs: round after round, long ones first.
pub(super) fn rounds(ports: &Ports) -> Vec<u64> {
    let skews: Vec<u32> = (0..ports.len()).map(|j| ports.skew(j)).collect();
    let skew = |j: u32| skews[j as usize];
    let by_skew = sorted((0..ports.len() as u32).collect(), skew);
    if ports.cycles.iter().all(|c| *c == ports.cycles[0]) {
        return ports.append(by_skew);
    }
    let lengths = distinct(&ports.cycles);
    let rank = |cycles: u64| lengths.partition_point(|&l| l > cycles) as u32;
    let ranks: Vec<u32> = ports.cycles.iter().map(|&c| rank(c)).collect();
    let by_length = sorted(by_skew, |j| ranks[j as usize]);
    let start = ports.append(by_length.iter().copied());
    let end = ports.end(&start);
    if end <= (ports.bound() as f64 * GOOD) as u64 {
        return start;
    }
    // The longest length of each skew; the skew with the longest of all comes first.
    let most = skews.iter().copied().max().unwrap_or(0) as usize;
    let mut longest = vec![u32::MAX; most + 1];
    for (&skew, &rank) in skews.iter().zip(&ranks) {
        longest[skew as usize] = rank.min(longest[skew as usize]);
    }
    let by_distance = sorted(sorted(by_length, skew), |j| longest[skew(j) as usize]);
    let other = ports.append(by_distance);
    if ports.end(&other) < end { other } else { start }
}

/// Returns the distinct values, descending.
fn distinct(numbers: &[u64]) -> Vec<u64> {
    let mut list: Vec<u64> = numbers.to_vec();
    list.dedup();
    list.sort_unstable_by_key(|&n| Reverse(n));
    list.dedup();
    list
}

/// Returns jobs sorted by a small number; the sort is stable.
fn sorted(jobs: Vec<u32>, key: impl Fn(u32) -> u32) -> Vec<u32> {
    let most = jobs.iter().map(|&j| key(j)).max().unwrap_or(0) as usize;
    let mut at = vec![0u32; most + 2];
    jobs.iter().for_each(|&j| at[key(j) as usize + 1] += 1);
    (1..at.len()).for_each(|k| at[k] += at[k - 1]);
    let mut order = vec![0; jobs.len()];
    for j in jobs {
        let place = &mut at[key(j) as usize];
        order[*place as usize] = j;
        *place += 1;
    }
    order
}
