//! Packings of random items: no conflicting items overlap, and peaks are near the largest live set.

use super::*;
use proptest::prelude::*;

const SEARCH: Effort = Effort { enough: 0, steps: STEPS };

fn check(items: &[Item], space: &Space, effort: Effort) -> Packing {
    let packing = pack(items, space, effort);
    let range = |i: usize| packing.address[i]..packing.address[i] + items[i].bytes;
    for i in 0..items.len() {
        assert_eq!(packing.address[i] % space.align, 0);
        assert!(packing.address[i] >= space.floor() && range(i).end <= packing.peak);
        let zone = space.zone(items[i].zone);
        assert!(zone.iter().any(|z| z.start <= range(i).start && range(i).end <= z.end), "{i} leaves its zone");
        for j in 0..i {
            let (a, b) = (&items[i].live, &items[j].live);
            let together = a.start < b.end && b.start < a.end && !a.is_empty() && !b.is_empty();
            let clear = |a: Range<u64>, b: Range<u64>| a.end <= b.start || b.end <= a.start;
            let empty = items[i].bytes == 0 || items[j].bytes == 0;
            assert!(clear(range(i), range(j)) || !together || empty, "{i} and {j} overlap");
            if items[i].apart.contains(&(j as u32)) && !empty {
                assert!(clear(space.elements(&range(i)), space.elements(&range(j))), "{i} and {j} share an element");
            }
        }
    }
    packing
}

fn plain(items: &[(u64, u32, u32)]) -> Vec<Item> {
    items.iter().map(|&(bytes, at, n)| Item::plain(bytes, at..at + n)).collect()
}

/// Items that are never live must not prolong the search: it cannot push the peak below their size.
#[test]
fn items_that_are_never_live_have_room_and_do_not_prolong_the_search() {
    let effort = Effort { enough: 4096, steps: u64::MAX };
    let packing = check(&plain(&[(1000, 0, 0), (8, 0, 1), (8, 1, 1)]), &Space::plain(0, 8), effort);
    assert_eq!(packing.peak, 1000);
}

/// The live ranges of typical straight-line programs: most values die soon, some live long; sizes repeat.
fn typical() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    let bytes = prop_oneof![3 => Just(4096u64), 3 => Just(1024), 2 => Just(16384), 2 => 1u64..2000];
    let length = prop_oneof![8 => 2u32..6, 2 => 6u32..40, 1 => 40u32..120];
    prop::collection::vec((bytes, 0u32..120, length), 1..150)
}

/// The items of a tile: each with a zone, a rank, and perhaps a partner with which it must not share a memory element.
type Requesting = Vec<((u64, u32, u32), u8, Option<u32>)>;

fn requesting() -> impl Strategy<Value = Requesting> {
    let item = (1u64..30_000, 0u32..12, 1u32..12);
    prop::collection::vec((item, 0u8..6, prop::option::weighted(0.3, 0u32..24)), 0..24)
}

proptest! {
    #[test]
    fn nothing_live_together_overlaps(
        items in prop::collection::vec((0u64..50, 0u32..12, 0u32..12), 0..24),
        floor in 0u64..40,
    ) {
        check(&plain(&items), &Space::plain(floor, 8), SEARCH);
    }

    #[test]
    fn zones_and_elements_are_kept(requesting in requesting()) {
        let space = Space::of_tile(&girder_machine::builtin("gc200").unwrap(), 8);
        let zones = [Zone::Executable, Zone::Interleaved, Zone::Any, Zone::Any, Zone::Any, Zone::Any];
        let mut items: Vec<Item> = vec![];
        for (item, rank, _) in &requesting {
            items.push(Item { zone: zones[*rank as usize], rank: *rank, ..plain(&[*item])[0].clone() });
        }
        for (i, (_, _, other)) in requesting.iter().enumerate() {
            if let Some(j) = other.filter(|&j| (j as usize) < items.len() && j as usize != i) {
                items[i].apart.push(j);
                items[j as usize].apart.push(i as u32);
            }
        }
        check(&items, &space, Effort { enough: u64::MAX, steps: 2_000 });
    }

    #[test]
    fn the_peak_is_near_the_largest_live_set(items in typical()) {
        let items = plain(&items);
        let packing = check(&items, &Space::plain(0, 8), SEARCH);
        let bound = largest_live_set(&items, 8);
        prop_assert!(packing.peak <= bound + bound / 10, "{} of {}", packing.peak, bound);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn long_programs_pack_as_short_ones(
        items in prop::collection::vec(
            (1u64..400, 0u32..20_000, prop_oneof![9 => 1u32..30, 1 => 1u32..9000]),
            900..1400,
        ),
    ) {
        check(&plain(&items), &Space::plain(24, 8), Effort { enough: u64::MAX, steps: 0 });
    }
}

#[test]
fn items_that_are_never_live_together_share_an_address() {
    let packing = check(&plain(&[(100, 0, 2), (60, 2, 2), (8, 1, 2)]), &Space::plain(0, 8), SEARCH);
    assert_eq!(packing.address, [0, 0, 104]);
    assert_eq!(packing.peak, 112);
}

/// Many items that cannot fit are not packed, because packing takes quadratic time.
#[test]
fn many_items_that_cannot_fit_are_not_packed() {
    let items = vec![Item::plain(4, 0..u32::MAX); 1_000_000];
    let packing = pack(&items, &Space::plain(0, 8), Effort { enough: 1 << 16, steps: STEPS });
    assert_eq!((packing.peak, packing.address[1], packing.address[999_999]), (8_000_000, 8, 7_999_992));
}

#[test]
fn items_that_are_not_packed_stay_in_their_zones() {
    let space = Space::of_tile(&girder_machine::builtin("gc200").unwrap(), 8);
    let zones = [Zone::Any, Zone::Executable, Zone::Interleaved];
    let item = |k: usize| Item { zone: zones[k % 3], ..Item::plain(100, 0..u32::MAX) };
    let items: Vec<Item> = (0..CROWD + 3).map(item).collect();
    check(&items, &space, Effort { enough: 1000, steps: STEPS });
}
