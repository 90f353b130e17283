//! Schedules with one number changed: the verifier refuses exactly what the replay cycle by cycle refuses.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The numbers of a schedule that a replay depends on.
fn numbers(schedule: &mut PhaseSchedule) -> Vec<&mut u32> {
    let PhaseSchedule { slices, served, cycles, link_cycles: _ } = schedule;
    let mut all = vec![];
    for TransferSlice { transfer: _, first, words, start, to, paired: _ } in slices {
        all.extend([first, words, start]);
        if let Served::Some { first, count } = to {
            all.extend([first, count]);
        }
    }
    all.extend(served);
    all.extend(cycles.iter_mut().flat_map(|(ipu, cycles)| [ipu, cycles]));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn a_changed_number_is_refused_as_a_replay_refuses_it(
        list in proptest::collection::vec((0u32..12, proptest::collection::btree_set(0u32..12, 1..6), 1u32..20), 1..24),
        ipus in prop::sample::select(vec![1, 2]),
        which: usize,
        by in prop::sample::select(vec![1, -1, 2, -2, 5]),
    ) {
        let sends = list.into_iter().map(|(s, r, w)| (s, r.into_iter().filter(|&r| r != s).collect::<Vec<_>>(), w));
        let (phase, machine) = (phase(sends.filter(|(_, r, _)| !r.is_empty())), machine(ipus, 12 / ipus));
        let mut schedule = schedule(&phase, &machine).unwrap();
        let mut all = numbers(&mut schedule);
        prop_assume!(!all.is_empty());
        let which = which % all.len();
        *all[which] = all[which].saturating_add_signed(by);
        let found = check(&phase, &machine, &schedule);
        let replayed = catch_unwind(AssertUnwindSafe(|| replay(&phase, &machine, &schedule)));
        prop_assert_eq!(found.is_ok(), replayed.is_ok(), "{:?}", found);
        schedule.link_cycles += 1;
        prop_assert!(check(&phase, &machine, &schedule).is_err());
    }
}
