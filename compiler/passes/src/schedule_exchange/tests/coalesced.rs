//! Coalesced jobs come apart to valid schedules of their transfers.

use super::*;

proptest! {
    #[test]
    fn coalesced_transfers_are_valid(
        list in proptest::collection::vec(
            (0u32..12, proptest::collection::btree_set(0u32..12, 1..5), 1u32..7, 1usize..60),
            1..16,
        ),
        pair_bytes in proptest::sample::select(vec![4u32, 8]),
    ) {
        let sends = list.into_iter().flat_map(|(from, to, words, times)| {
            let to: Vec<u32> = to.into_iter().filter(|&r| r != from).collect();
            vec![(from, to, words); times]
        });
        let phase = phase(sends.filter(|(_, to, _)| !to.is_empty()));
        let mut machine = machine(1, 12);
        machine.exchange.pair_bytes_per_cycle = pair_bytes;
        let schedule = schedule_coalesced(&phase, &machine, 1).unwrap();
        check(&phase, &machine, &schedule).unwrap();
        replay(&phase, &machine, &schedule);
    }
}

#[test]
fn coalesced_jobs_are_as_short_as_their_transfers() {
    // Eight senders send two words to each of the same three receivers, thirty times.
    let machine = machine(1, 16);
    let sends = (0..30).flat_map(|_| (0..8).map(|k| (k, vec![8, 9, 10 + k % 6], 2)));
    let phase = phase(sends);
    let jobs = &Jobs::of(&phase, &machine, |_| true)[0];
    let coalesced = Coalesced::of(jobs, &machine, 1).unwrap();
    assert!(coalesced.jobs.list.len() <= 8 * 3, "{}", coalesced.jobs.list.len());
    let schedule = schedule_coalesced(&phase, &machine, 1).unwrap();
    check(&phase, &machine, &schedule).unwrap();
    assert!(achieved_over_bound(&phase, &schedule, &machine) <= 1.1);
}
