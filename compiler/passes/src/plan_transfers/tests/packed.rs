//! Vertices that read and write single elements, at random: small pieces at unequal distances.

use super::random::Choices;
use super::*;
use crate::small_pieces::SmallPieces;
use proptest::prelude::*;

const MOST_RECEIVED: u32 = SmallPieces::USUAL.most_received;

/// Vertices on tile 3 that copy one element each of a variable on tiles 0 to 2. Their results are on tile 0.
fn graph(c: &mut Choices, n: u64, in_order: bool) -> Build {
    let mut b = Build::new();
    let mut from = vec![0];
    (1..n).for_each(|k| from.push(from[k as usize - 1] + 2 + c.below(4)));
    if !in_order {
        (1..n).for_each(|k| from.swap(k as usize, c.below(k + 1) as usize));
    }
    let len = 6 * n;
    let (mut end, mut tile): (Vec<u32>, Vec<u32>) = (vec![], vec![]);
    while end.last() != Some(&(len as u32)) {
        end.push((end.last().unwrap_or(&0) + 1 + c.below(len / 2) as u32).min(len as u32));
        tile.push((tile.last().unwrap_or(&0) + 1 + c.below(2) as u32) % 3);
    }
    let x = b.var(ElemType::F32, &[len], Mapping::Runs { end: end.into(), tile: tile.into() });
    let y = b.var(ElemType::F32, &[len], Mapping::One(0));
    let codelet = b.codelet(&[(Dir::In, ElemType::F32, 0), (Dir::Out, ElemType::F32, 1)], true);
    let reads = from.iter().map(|&k| x.index(0, k)).collect();
    let writes = from.iter().map(|&k| y.slice(0, k, 1, 1)).collect();
    b.set(codelet, &[reads, writes], &vec![3; n as usize]);
    b
}

/// Returns the numbers of transfers before the vertices and of copies after these transfers.
fn transfers(b: Build) -> (usize, usize) {
    let planned = b.plan();
    let before = &planned.plan.sets.values().next().unwrap().before;
    (before.transfers.len(), before.after.len())
}

/// The same graph with all elements that vertices read on tile 0.
fn from_one_tile(n: u64) -> Build {
    let mut b = graph(&mut Choices(vec![0, 3, 1, 2, 2], 0), n, true);
    b.placement.vars[VarId::from_u32(0)] = Some(Mapping::One(0));
    b
}

#[test]
fn few_small_pieces_travel_one_by_one() {
    assert_eq!(transfers(from_one_tile(u64::from(MOST_RECEIVED))), (MOST_RECEIVED as usize, 0));
}

#[test]
fn many_small_pieces_travel_together() {
    assert_eq!(transfers(from_one_tile(u64::from(MOST_RECEIVED) + 1)), (1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn pieces_arrive_where_they_should(
        choices in proptest::collection::vec(any::<u32>(), 20..80),
        n in u64::from(MOST_RECEIVED) - 20..u64::from(MOST_RECEIVED) + 150,
        in_order: bool,
    ) {
        // The replay in `plan` checks where all elements are.
        let (before, _) = transfers(graph(&mut Choices(choices, 0), n, in_order));
        prop_assert!(n <= u64::from(MOST_RECEIVED) || before < n as usize, "{before} transfers");
    }
}
