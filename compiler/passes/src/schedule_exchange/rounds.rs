//! Rounds in closed form: transfers of one length over one distance form a matching if no tile sends two of them, so
//! that they take place at the same time.
//!
//! # Note: What becomes rounds
//! A halo is one round for each direction; an all-to-all is one for each distance, a cyclic skew; a transposition or
//! any other permutation is a single one; a gather, a scatter or a broadcast is one port in its order.
//!
//! Where lengths differ a little, as at the edges of blocks that are not all of one size, transfers over one distance are
//! still one round, or those of one length are: whichever ends first.
//!
//! Invariant: no search; the time is that of two sorts.

use super::ports::Ports;
use std::cmp::Reverse;

/// Start cycles of all jobs: round after round, long ones first.
pub(super) fn rounds(ports: &Ports) -> Vec<u64> {
    if ports.cycles.iter().all(|c| *c == ports.cycles[0]) {
        return ports.append(by_skew(ports));
    }
    let mut by_length: Vec<(Reverse<u64>, u32, u32)> =
        (0..ports.len()).map(|j| (Reverse(ports.cycles[j]), ports.skew[j], j as u32)).collect();
    by_length.sort_unstable();
    let by_length = ports.append(by_length.into_iter().map(|o| o.2));
    let by_distance = ports.append(by_distance(ports));
    if ports.end(&by_distance) < ports.end(&by_length) { by_distance } else { by_length }
}

/// All jobs by skew, the skew with the longest job first; of one skew the longest first.
fn by_distance(ports: &Ports) -> Vec<u32> {
    let most = ports.skew.iter().copied().max().unwrap_or(0) as usize;
    let mut longest = vec![0; most + 1];
    for (&skew, &cycles) in ports.skew.iter().zip(&ports.cycles) {
        longest[skew as usize] = cycles.max(longest[skew as usize]);
    }
    let mut order: Vec<u32> = (0..ports.len() as u32).collect();
    let key = |j: u32| (Reverse(longest[ports.skew[j as usize] as usize]), ports.skew[j as usize]);
    order.sort_by_key(|&j| (key(j), Reverse(ports.cycles[j as usize])));
    order
}

/// All jobs by skew, those that agree in their order.
fn by_skew(ports: &Ports) -> Vec<u32> {
    let most = ports.skew.iter().copied().max().unwrap_or(0) as usize;
    let mut at = vec![0u32; most + 2];
    ports.skew.iter().for_each(|&s| at[s as usize + 1] += 1);
    (1..at.len()).for_each(|k| at[k] += at[k - 1]);
    let mut order = vec![0; ports.len()];
    for (j, &skew) in (0..).zip(&ports.skew) {
        order[at[skew as usize] as usize] = j;
        at[skew as usize] += 1;
    }
    order
}
