//! Rounds in closed form: transfers of one length over one distance form a matching if no tile sends two of them, so
//! that they take place at the same time.
//!
//! # Note: What becomes rounds
//! A halo is one round for each direction; an all-to-all is one for each distance, a cyclic skew; a transposition or
//! any other permutation is a single one; a gather, a scatter or a broadcast is one port in its order.
//!
//! Invariant: no search; the time is that of one sort.

use super::ports::Ports;
use std::cmp::Reverse;

/// Start cycles of all jobs: round after round, long ones first.
pub(super) fn rounds(ports: &Ports) -> Vec<u64> {
    if ports.cycles.iter().all(|c| *c == ports.cycles[0]) {
        return ports.append(by_skew(ports));
    }
    let mut order: Vec<(Reverse<u64>, u32, u32)> =
        (0..ports.len()).map(|j| (Reverse(ports.cycles[j]), ports.skew[j], j as u32)).collect();
    order.sort_unstable();
    ports.append(order.into_iter().map(|o| o.2))
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
