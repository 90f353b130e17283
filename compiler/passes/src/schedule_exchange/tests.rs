//! Schedules of random and of regular patterns: always valid, and close to the bound.

use super::verify::phase as check;
use super::*;
use girder_ir::plan::{Loc, Object, Transfer};
use proptest::prelude::*;

fn machine(ipus: u32, tiles_per_ipu: u32) -> Machine {
    girder_machine::builtin("small").unwrap().resized(ipus, tiles_per_ipu)
}

/// A phase of (sender, receivers, words).
fn phase(list: impl IntoIterator<Item = (u32, Vec<u32>, u32)>) -> Phase {
    let loc = |tile| Loc { tile, object: Object::Buffer(0), offset: 0 };
    let transfer = |(from, to, words): (u32, Vec<u32>, u32)| Transfer {
        from: loc(from),
        to: to.into_iter().map(loc).collect(),
        words,
    };
    Phase { transfers: list.into_iter().map(transfer).collect(), ..Phase::default() }
}

/// Achieved over bound, after checking.
fn ratio(phase: &Phase, machine: &Machine) -> f64 {
    let schedule = schedule(phase, machine).unwrap();
    check(phase, machine, &schedule).unwrap();
    achieved_over_bound(phase, &schedule, machine)
}

proptest! {
    #[test]
    fn random_unicast_is_valid_and_within_twice_the_bound(
        list in proptest::collection::vec((0u32..12, 0u32..12, 1u32..40), 0..120),
    ) {
        let sends = list.into_iter().filter(|(s, r, _)| s != r).map(|(s, r, w)| (s, vec![r], w));
        prop_assert!(ratio(&phase(sends), &machine(1, 12)) <= 2.0);
    }

    #[test]
    fn random_multicast_over_links_is_valid(
        list in proptest::collection::vec((0u32..12, proptest::collection::btree_set(0u32..12, 1..6), 1u32..40), 0..80),
    ) {
        let sends = list.into_iter().map(|(s, r, w)| (s, r.into_iter().filter(|&r| r != s).collect::<Vec<_>>(), w));
        ratio(&phase(sends.filter(|(_, r, _)| !r.is_empty())), &machine(3, 4));
    }
}

#[test]
fn regular_patterns_are_close_to_the_bound() {
    let machine = machine(1, 256);
    let n = 256;
    let broadcast = phase([(0, (1..n).collect(), 784)]);
    let gather = phase((1..n).map(|s| (s, vec![0], 3 + s % 5)));
    let all_to_all = phase((0..n).flat_map(|s| (0..n).filter(move |&r| r != s).map(move |r| (s, vec![r], 2))));
    let all_gather = phase((0..64).map(|s| (s, (0..64).filter(|&r| r != s).collect(), 7)));
    let transpose = phase((0..n).filter(|s| s / 16 != s % 16).map(|s| (s, vec![s % 16 * 16 + s / 16], 9)));
    let halo = phase((0..n).flat_map(|s| {
        let (i, j) = (s as i32 / 16, s as i32 % 16);
        let sides = [(i - 1, j, 16), (i + 1, j, 16), (i, j - 1, 48), (i, j + 1, 48)];
        let inside = |&(i, j, _): &(i32, i32, u32)| (0..16).contains(&i) && (0..16).contains(&j);
        sides.into_iter().filter(inside).map(move |(i, j, w)| (s, vec![(16 * i + j) as u32], w))
    }));
    for (name, phase, limit) in [
        ("broadcast", broadcast, 1.0),
        ("gather", gather, 1.0),
        ("all to all", all_to_all, 1.02),
        ("all gather", all_gather, 1.02),
        ("transpose", transpose, 1.0),
        ("halo", halo, 1.0),
    ] {
        let ratio = ratio(&phase, &machine);
        assert!(ratio <= limit, "{name}: {ratio}");
    }
}

#[test]
fn a_broadcast_is_not_starved_by_small_sends() {
    let small = (0..64).flat_map(|s| (1..9).map(move |d| (s, vec![(s + 7 * d) % 64], 1 + (s * d) % 5)));
    let broadcast = (0..4).map(|s| (s, (0..64).filter(|&r| r != s).collect(), 40));
    let ratio = ratio(&phase(small.chain(broadcast)), &machine(1, 64));
    assert!(ratio <= 1.3, "{ratio}");
}

#[test]
fn an_overlap_is_found() {
    let machine = machine(1, 4);
    let phase = phase([(0, vec![1], 4), (2, vec![1], 4)]);
    let wrong = PhaseSchedule { start: vec![0, 3], cycles: 7 };
    let message = check(&phase, &machine, &wrong).unwrap_err();
    assert_eq!(message, "the receipts of tile 1 at cycles 0..4 and 3..7 overlap");
    check(&phase, &machine, &PhaseSchedule { start: vec![0, 4], cycles: 8 }).unwrap();
}
