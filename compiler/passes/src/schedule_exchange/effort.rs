//! Bounds on effort: how near a schedule has to come to its bound before no other method is tried.

/// The factor over the bound up to which no other method is tried.
pub(super) const GOOD: f64 = 1.02;
/// The number of receivers on one processor from which on each method is tried once.
pub(super) const MANY: usize = 1 << 16;
/// The number of receivers on one processor from which on transfers with the same ports are one job. The exchange may
/// take a tenth longer for it, so that the greedy comes to its end in seconds.
pub(super) const COALESCED: usize = 1 << 20;
/// The number of pieces for each job that are tried before the greedy.
pub(super) const FEW_PIECES: usize = 8;
/// The factor over the bound up to which the greedy, which takes longest, is then not tried.
pub(super) const GOOD_AT_SCALE: f64 = 1.05;
/// How much shorter the bound of many jobs has to become by the rate of pairs before it is tried first.
pub(super) const GAIN_OF_PAIRS: f64 = 1.15;
/// The factor over that bound within which schedules of many jobs at the rate of pairs are found: 1.19 to 1.47, the
/// median 1.26, in fourteen phases of five programs.
pub(super) const PAIRS_AT_SCALE: f64 = 1.25;
/// A schedule's pace is judged after one part in this many of its limit.
const JUDGED: u64 = 8;

/// Returns whether a schedule of much work, made in the order of time, should be given up at cycle `now`, when `left`
/// of `all` cycles of ports have not begun. Ports find partners more easily at first than at last, so a schedule that
/// is slower than an even pace does not catch up before `limit`.
pub(super) fn lags(now: u64, limit: u64, left: u64, all: u64) -> bool {
    let at_pace = all as u128 * now as u128;
    now >= limit / JUDGED && ((all - left) as u128) < at_pace / limit.max(1) as u128
}

#[cfg(test)]
mod tests {
    use super::lags;

    #[test]
    fn a_schedule_lags_if_less_has_begun_than_at_an_even_pace() {
        assert!(!lags(10, 100, 1000, 1000), "too early");
        assert!(lags(50, 100, 501, 1000) && !lags(50, 100, 500, 1000));
        assert!(!lags(1 << 40, u64::MAX, 1000, 1000));
    }
}
