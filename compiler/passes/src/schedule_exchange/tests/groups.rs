//! Transfers that share groups of receivers, and receivers that join multicasts.

use super::*;
use crate::schedule_exchange::joining::joining;

/// Returns the transfers of a grid of rows × columns of tiles, for `senders` tiles: tile s has a word for each row and
/// one for each column, or for every `step`-th of them.
fn grid(rows: u32, columns: u32, step: u32, senders: u32) -> Vec<(u32, Vec<u32>, u32)> {
    let tile = |i: u32, j: u32| (i * columns + j) * step;
    let row = |i: u32| (0..columns).map(|j| tile(i, j)).collect::<Vec<_>>();
    let column = |j: u32| (0..rows).map(|i| tile(i, j)).collect::<Vec<_>>();
    let to_rows = (0..senders).flat_map(|s| (0..rows).map(move |i| (s, row(i), 1)));
    let to_columns = (0..senders).flat_map(|s| (0..columns).map(move |j| (s, column(j), 1)));
    to_rows.chain(to_columns).collect()
}

/// Returns a schedule that both checks accept.
fn replayed(phase: &Phase, machine: &Machine) -> PhaseSchedule {
    let schedule = schedule(phase, machine).unwrap();
    check(phase, machine, &schedule).unwrap();
    replay(phase, machine, &schedule);
    schedule
}

/// Panics unless each piece serves all receivers of its transfer, and the schedule is close to the bound.
fn assert_whole_and_good(phase: &Phase, machine: &Machine) {
    let schedule = replayed(phase, machine);
    assert!(schedule.slices.iter().all(|p| p.to == Served::All));
    let ratio = achieved_over_bound(phase, &schedule, machine);
    assert!(ratio <= GOOD_AT_SCALE, "{ratio}");
}

#[test]
fn rows_and_columns_of_a_grid_are_two_layers_of_whole_transfers() {
    let machine = machine(1, 120);
    let phase = phase(grid(6, 5, 3, 97));
    assert_eq!((phase.groups.len(), phase.transfers.len()), (11, 97 * 11));
    let schedule = replayed(&phase, &machine);
    assert_eq!(schedule.slices.len(), phase.transfers.len());
    // 97 words for the row and 97 for the column of each tile.
    let bound = bound(&phase, &machine)[0];
    assert!(
        bound >= 192 && schedule.tile_cycles() as f64 <= GOOD * bound as f64,
        "{} of {bound}",
        schedule.tile_cycles()
    );
}

#[test]
fn groups_without_their_senders_are_whole_rows_and_columns() {
    // Each tile of a grid has two words for the other tiles of its row and of its column.
    let (rows, columns) = (40, 36);
    let machine = machine(1, rows * columns);
    let own = |s: u32| {
        let row = (0..columns).map(move |j| s / columns * columns + j).filter(move |&t| t != s);
        let column = (0..rows).map(move |i| i * columns + s % columns).filter(move |&t| t != s);
        [(s, row.collect(), 2), (s, column.collect(), 2)]
    };
    let phase = phase((0..rows * columns).flat_map(own));
    assert_whole_and_good(&phase, &machine);
}

#[test]
fn a_group_with_its_sender_may_be_another_group_but_for_its_own() {
    // With its sender, the last group equals the first; the first with its own sender is a third group: whole pairs,
    // but not pairs of the last.
    let machine = machine(1, 8);
    let sends = [(1, vec![0, 2, 3]), (0, vec![1, 2, 3]), (3, vec![0, 2])];
    let phase = phase((0..8).flat_map(|_| sends.iter().map(|(s, to)| (*s, to.clone(), 4))));
    replayed(&phase, &machine);
}

#[test]
fn crosses_are_served_by_the_destinations_of_their_words() {
    // Word w goes to row w mod 46 and to column w mod 32 of a grid, into separate blocks; a tile in both stores it in
    // one block.
    let (rows, columns, words) = (46, 32, 8832);
    let machine = machine(1, rows * columns);
    let mut groups = Grouping::default();
    let transfer = |w: u32| {
        let from = w * 7 % (rows * columns);
        let (i, j) = (w % rows, w % columns);
        let place = |tile: u32, kind| Loc { tile, object: Object::Buffer(2 * tile + kind), offset: w / rows * 4 };
        let of_row = (0..columns).map(|j| place(i * columns + j, 0));
        let of_column = (0..rows).filter(|&r| r != i).map(|r| place(r * columns + j, 1));
        let mut to: Vec<Loc> = of_row.chain(of_column).collect();
        to.sort_unstable();
        // Every other group has its sender in it, which receives nothing.
        to.retain(|l| l.tile != from || w.is_multiple_of(2));
        Transfer { from: Loc { tile: from, object: Object::Buffer(0), offset: 4 * w }, to: groups.to(&to), words: 1 }
    };
    let transfers = (0..words).map(transfer).collect();
    let phase = Phase { transfers, groups: groups.into_groups(), ..Phase::default() };
    let schedule = replayed(&phase, &machine);
    assert!(schedule.slices.len() <= 2 * phase.transfers.len());
    let ratio = achieved_over_bound(&phase, &schedule, &machine);
    assert!(ratio <= 1.1, "{ratio}");
}

/// Returns groups of `of` tiles in a ring of `tiles`; each begins `step` tiles after the last, from tile 1 on.
fn ring(tiles: u32, of: u32, step: u32) -> impl Iterator<Item = Vec<u32>> {
    (0..tiles).step_by(step as usize).map(move |first| {
        let mut group: Vec<u32> = (1..=of).map(|k| (first + k) % tiles).collect();
        group.sort_unstable();
        group
    })
}

#[test]
fn groups_that_overlap_in_a_ring_take_turns() {
    // Each tile is in five of 128 groups, of which 25 are disjoint: five layers are not enough, and six too many.
    // Groups begin and end with half a pair, so that none moves at the rate of pairs.
    let machine = machine(1, 1280);
    let sends = ring(1280, 50, 10).enumerate();
    let phase =
        phase(sends.flat_map(|(g, group)| (0..32).map(move |s| ((g as u32 * 7 + s * 40) % 1280, group.clone(), 16))));
    assert_whole_and_good(&phase, &machine);
}

/// Returns the bytes of exchange code, counted slice by slice and receiver by receiver.
fn counted(phase: &Phase, schedule: &PhaseSchedule, machine: &Machine) -> Vec<(u32, u32)> {
    let exchange = &machine.exchange;
    let mut bytes = std::collections::BTreeMap::new();
    let mut add = |tile, instructions| *bytes.entry(tile).or_default() += instructions * exchange.instruction_bytes;
    for piece in &schedule.slices {
        let transfer = &phase.transfers[piece.transfer as usize];
        add(transfer.from.tile, piece.words.div_ceil(exchange.words_per_send));
        let to = schedule.receivers(piece, phase, transfer, machine.chip.tiles);
        to.iter().for_each(|l| add(l.tile, exchange.receive_instructions));
    }
    for transfer in &phase.transfers {
        let home = machine.ipu_of(transfer.from.tile);
        let away: Vec<Loc> = phase.receivers(transfer).filter(|l| machine.ipu_of(l.tile) != home).collect();
        if !away.is_empty() {
            add(transfer.from.tile, transfer.words.div_ceil(exchange.words_per_send));
        }
        away.iter().for_each(|l| add(l.tile, exchange.receive_instructions));
    }
    bytes.into_iter().collect()
}

proptest! {
    #[test]
    fn transfers_to_shared_groups_are_valid(
        groups in proptest::collection::vec(proptest::collection::btree_set(0u32..24, 1..6), 1..6),
        list in proptest::collection::vec((0u32..24, 0usize..6, 1u32..4), 0..160),
        ipus in 1u32..4,
    ) {
        let to = |k: usize| groups[k % groups.len()].iter().copied().collect::<Vec<_>>();
        let sends = list.into_iter().map(|(s, k, w)| (s, to(k), w));
        let machine = machine(ipus, 24 / ipus);
        let phase = phase(sends.filter(|(s, to, _)| to.iter().any(|t| t != s) && to[..] != [*s]));
        let schedule = replayed(&phase, &machine);
        let counted = counted(&phase, &schedule, &machine);
        let step = StepSchedule { before: schedule.into(), ..StepSchedule::default() };
        let plan = StepPlan { before: phase, ..StepPlan::default() };
        let code = code::step(&plan, Some(&step), &machine);
        prop_assert_eq!(&code, &counted);
        // A plan alone gives no tile more code than a schedule of it does.
        let of: std::collections::BTreeMap<u32, u32> = code.into_iter().collect();
        for (tile, least) in code::step(&plan, None, &machine) {
            prop_assert!(of.get(&tile).is_some_and(|&bytes| least <= bytes), "tile {}: {} bytes", tile, least);
        }
    }

    #[test]
    fn receivers_that_join_get_each_transfer_once_and_one_at_a_time(
        list in proptest::collection::vec((0u32..16, proptest::collection::btree_set(0u32..16, 1..12), 1u32..6), 0..60),
    ) {
        let sends = list.into_iter().map(|(s, r, w)| (s, r.into_iter().filter(|&r| r != s).collect::<Vec<_>>(), w));
        let (phase, machine) = (phase(sends.filter(|(_, r, _)| !r.is_empty())), machine(1, 16));
        let jobs = Jobs::of(&phase, &machine, |_| true).remove(0);
        let ports = Ports::new(&jobs, &machine);
        let (cut, start) = joining(&jobs, &ports, u64::MAX).unwrap();
        let mut busy = std::collections::HashSet::new();
        let mut receipts = vec![];
        for (k, job) in cut.list.iter().enumerate() {
            for cycle in start[k]..start[k] + job.words as u64 {
                prop_assert!(busy.insert((true, cut.from[k], cycle)), "{} sends twice", cut.from[k]);
                for &(_, tile) in cut.receivers(k) {
                    prop_assert!(busy.insert((false, tile, cycle)), "{tile} receives twice");
                }
            }
            prop_assert_eq!((job.first, job.words), (0, phase.transfers[job.transfer as usize].words));
            receipts.extend(cut.receivers(k).iter().map(|&(position, tile)| (job.transfer, position, tile)));
        }
        receipts.sort_unstable();
        let all = phase.transfers.iter().enumerate();
        let places = all.flat_map(|(t, transfer)| {
            (0..).zip(phase.receivers(transfer)).map(move |(k, l)| (t as u32, k, l.tile))
        });
        prop_assert_eq!(receipts, places.collect::<Vec<_>>());
    }
}
