//! Schedules of random and regular patterns are valid and close to the bound.
//!
//! Two independent checks accept every schedule: the verifier, and a replay of each word, cycle by cycle, over wires
//! with different delays ([`replay`]).

mod coalesced;
mod groups;
mod mutated;
mod patterns;
mod replay;

use super::verify::phase as check;
use super::*;
use girder_ir::plan::{Grouping, Loc, Object, Transfer};
use proptest::prelude::*;
use replay::replay;

fn machine(ipus: u32, tiles_per_ipu: u32) -> Machine {
    girder_machine::builtin("small").unwrap().resized(ipus, tiles_per_ipu)
}

/// Returns a phase of (sender, receivers, words).
fn phase(list: impl IntoIterator<Item = (u32, Vec<u32>, u32)>) -> Phase {
    let loc = |tile| Loc { tile, object: Object::Buffer(0), offset: 0 };
    let mut groups = Grouping::default();
    let transfer = |(from, to, words): (u32, Vec<u32>, u32)| {
        let to: Vec<Loc> = to.into_iter().map(loc).collect();
        Transfer { from: loc(from), to: groups.to(&to), words }
    };
    Phase { transfers: list.into_iter().map(transfer).collect(), groups: groups.into_groups(), ..Phase::default() }
}

/// Returns the ratio of the achieved cycles to the bound, after checking the schedule.
fn ratio(phase: &Phase, machine: &Machine) -> f64 {
    let schedule = schedule(phase, machine).unwrap();
    check(phase, machine, &schedule).unwrap();
    achieved_over_bound(phase, &schedule, machine)
}

/// Returns the load of the fullest port, counted from the words of a phase inside one processor.
fn fullest(phase: &Phase, tiles: u32) -> u32 {
    let (mut out, mut into) = (vec![0; tiles as usize], vec![0; tiles as usize]);
    for t in &phase.transfers {
        out[t.from.tile as usize] += t.words;
        phase.receivers(t).for_each(|to| into[to.tile as usize] += t.words);
    }
    out.into_iter().chain(into).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn random_unicast_reaches_the_bound(
        list in proptest::collection::vec((0u32..12, 0u32..12, 1u32..40), 0..120),
    ) {
        let sends = list.into_iter().filter(|(s, r, _)| s != r).map(|(s, r, w)| (s, vec![r], w));
        let (phase, machine) = (phase(sends), machine(1, 12));
        let schedule = schedule(&phase, &machine).unwrap();
        check(&phase, &machine, &schedule).unwrap();
        replay(&phase, &machine, &schedule);
        let fullest = fullest(&phase, 12);
        prop_assert_eq!(bound(&phase, &machine), vec![fullest as u64]);
        prop_assert!(schedule.tile_cycles() as f64 <= GOOD * fullest as f64 + 4.0, "{schedule:?}");
    }

    #[test]
    fn random_multicast_over_links_is_valid(
        list in proptest::collection::vec((0u32..12, proptest::collection::btree_set(0u32..12, 1..6), 1u32..40), 0..80),
    ) {
        let sends = list.into_iter().map(|(s, r, w)| (s, r.into_iter().filter(|&r| r != s).collect::<Vec<_>>(), w));
        let (phase, machine) = (phase(sends.filter(|(_, r, _)| !r.is_empty())), machine(4, 3));
        let schedule = schedule(&phase, &machine).unwrap();
        check(&phase, &machine, &schedule).unwrap();
        replay(&phase, &machine, &schedule);
    }
}

#[test]
fn pairs_that_take_one_stream_take_it_at_double_width() {
    let paired = machine(1, 8);
    let mut narrow = paired.clone();
    narrow.exchange.pair_bytes_per_cycle = narrow.exchange.bytes_per_cycle;
    let cycles = |machine: &Machine, list: &[(u32, Vec<u32>, u32)]| {
        let phase = phase(list.iter().cloned());
        let schedule = schedule(&phase, machine).unwrap();
        check(&phase, machine, &schedule).unwrap();
        replay(&phase, machine, &schedule);
        schedule.tile_cycles()
    };
    let to_all = [(0, (1..8).collect(), 101)];
    // The receivers are whole pairs and the sender's partner, which borrows the sender's wires; a lone tile prevents
    // pairing.
    assert_eq!((cycles(&paired, &to_all), cycles(&narrow, &to_all)), (51, 101));
    assert_eq!(cycles(&paired, &[(2, vec![0, 1, 4, 5], 101)]), 51);
    assert_eq!(cycles(&paired, &[(2, vec![0, 1, 4], 101)]), 101);
    assert_eq!(cycles(&paired, &[(2, vec![1, 4], 101)]), 101);
    assert_eq!(cycles(&paired, &[(2, vec![4], 100)]), 100);
    assert_eq!(cycles(&paired, &[(2, vec![3], 100)]), 100);
    // The partner's own sends must fit within the bound.
    assert_eq!(cycles(&paired, &[(2, vec![4, 5], 100), (3, vec![6, 7], 100)]), 100);
    assert_eq!(cycles(&paired, &[(2, vec![4, 5], 100), (3, vec![6], 50)]), 100);
    assert_eq!(cycles(&paired, &[(2, vec![4, 5], 100), (0, vec![4, 5], 100)]), 100);
}

#[test]
fn double_width_needs_whole_pairs_and_a_partner_that_rests() {
    let machine = machine(1, 8);
    let phase = phase([(2, vec![4, 5], 8), (3, vec![6], 2), (4, vec![5, 6], 2)]);
    let piece = |transfer, start, paired| {
        let words = phase.transfers[transfer as usize].words;
        TransferSlice { transfer, first: 0, words, start, to: Served::All, paired }
    };
    let of = |pieces: [TransferSlice; 3], end| {
        let schedule = PhaseSchedule { slices: pieces.into(), cycles: vec![(0, end)], ..PhaseSchedule::default() };
        check(&phase, &machine, &schedule)
    };
    assert_eq!(of([piece(0, 0, true), piece(1, 4, false), piece(2, 6, false)], 8), Ok(()));
    let error = of([piece(0, 0, true), piece(1, 3, false), piece(2, 6, false)], 8).unwrap_err();
    assert_eq!(error, "the sends of tile 3 at cycles 0..4 and 3..5 overlap");
    let error = of([piece(0, 0, true), piece(1, 4, false), piece(2, 6, true)], 7).unwrap_err();
    assert_eq!(error, "tile 6 receives at double width, but its partner does not");
}

#[test]
fn words_between_processors_take_the_fullest_link_group() {
    let machine = machine(4, 4);
    let fixed = machine.links.fixed_cycles;
    let links = |list: &[(u32, Vec<u32>, u32)]| {
        let phase = phase(list.iter().cloned());
        let schedule = schedule(&phase, &machine).unwrap();
        check(&phase, &machine, &schedule).unwrap();
        schedule.link_cycles
    };
    assert_eq!(links(&[(0, vec![1], 100)]), 0);
    // A tile sends one word in a cycle, even if the links could take more.
    assert_eq!(links(&[(0, vec![4], 100)]), fixed + 100);
    // The word is sent once, though it goes to two processors and to five tiles.
    assert_eq!(links(&[(0, vec![2, 4, 5, 8, 9], 100)]), fixed + 100);
    // The words go from all four tiles of processor 0 to processor 2, over two upward links of 4 bytes per cycle each.
    let up: Vec<_> = (0..4).map(|t| (t, vec![8 + t], 100)).collect();
    assert_eq!(links(&up), fixed + 200);
}

#[test]
fn exchange_code_counts_sends_and_receipts() {
    let machine = machine(2, 4);
    let phase = phase([(0, vec![1, 2, 5], 130), (3, vec![2], 64)]);
    let schedule = StepSchedule { before: schedule(&phase, &machine).unwrap().into(), ..StepSchedule::default() };
    let bytes = code::step(&StepPlan { before: phase, ..StepPlan::default() }, Some(&schedule), &machine);
    // 130 words take three sends, and as many again to the other processor; every receipt takes two instructions of 4
    // bytes.
    assert_eq!(bytes, [(0, 4 * 6), (1, 4 * 2), (2, 4 * 4), (3, 4), (5, 4 * 2)]);
}

#[test]
fn an_overlap_is_found() {
    let machine = machine(1, 4);
    let phase = phase([(0, vec![1], 4), (2, vec![1], 4)]);
    let piece = |transfer, start| TransferSlice { transfer, first: 0, words: 4, start, to: Served::All, paired: false };
    let of = |second: u32, end| PhaseSchedule {
        slices: vec![piece(0, 0), piece(1, second)],
        cycles: vec![(0, end)],
        ..PhaseSchedule::default()
    };
    let message = check(&phase, &machine, &of(3, 7)).unwrap_err();
    assert_eq!(message, "the receipts of tile 1 at cycles 0..4 and 3..7 overlap");
    check(&phase, &machine, &of(4, 8)).unwrap();
}

#[test]
fn every_word_must_arrive_once() {
    let machine = machine(1, 4);
    let phase = phase([(0, vec![1, 2], 4)]);
    let some = |first, count| Served::Some { first, count };
    let piece = |first, words, start, to| TransferSlice { transfer: 0, first, words, start, to, paired: false };
    let of = |pieces: Vec<TransferSlice>| {
        let end = pieces.iter().map(|p| p.start + p.words).max().unwrap();
        let schedule = PhaseSchedule { slices: pieces, served: vec![0, 1, 7], cycles: vec![(0, end)], link_cycles: 0 };
        check(&phase, &machine, &schedule)
    };
    let all = Served::All;
    assert_eq!(of(vec![piece(0, 4, 0, some(0, 1)), piece(0, 4, 4, some(1, 1))]), Ok(()));
    assert_eq!(of(vec![piece(2, 2, 0, all), piece(0, 2, 2, all)]), Ok(()));
    let wrong = [
        (vec![piece(0, 4, 0, some(0, 1))], "word 0 of transfer 0 never reaches tile 2"),
        (vec![piece(0, 2, 0, all), piece(1, 3, 2, all)], "word 1 of transfer 0 reaches tile 1 twice"),
        (vec![piece(0, 1, 0, all), piece(2, 2, 2, all)], "word 1 of transfer 0 reaches tile 1 never"),
        (vec![piece(0, 5, 0, all)], "word 4 of transfer 0 is no word to send to tile 1"),
        (vec![piece(0, 4, 0, some(2, 1))], "a piece of transfer 0 names a receiver it has not"),
        (vec![piece(0, 4, 0, some(2, 9))], "a piece names receivers that are not there"),
    ];
    for (pieces, message) in wrong {
        assert_eq!(of(pieces), Err(message.to_string()));
    }
}
