//! Sorts many copies or transfers by rows of numbers.
//!
//! # Note: Digits
//! A key is a row of numbers, the first of which is the most significant. Each number takes as many bits as its range
//! needs. All of them together nearly always fit a machine word, which is sorted digit by digit; comparisons would take
//! longer.
//!
//! Invariant: the order depends only on the sorted things, and on their order before where keys and ties are equal.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;

/// Returns the dense rank of each value; fast if there are few distinct values.
pub(super) fn ranks<T: Ord + Hash + Copy>(things: impl Iterator<Item = T>) -> Vec<u32> {
    let mut known: IndexSet<T, FxBuildHasher> = IndexSet::default();
    let mut last: Option<(T, u32)> = None;
    let mut number = |thing: T| match last {
        Some((known, number)) if known == thing => number,
        _ => {
            let number = known.insert_full(thing).0 as u32;
            last = Some((thing, number));
            number
        }
    };
    let numbers: Vec<u32> = things.map(&mut number).collect();
    let mut ascending: Vec<usize> = (0..known.len()).collect();
    ascending.sort_unstable_by_key(|&k| known[k]);
    let mut rank = vec![0; known.len()];
    (0..).zip(ascending).for_each(|(r, k)| rank[k] = r);
    numbers.into_iter().map(|k| rank[k as usize]).collect()
}

/// Returns the numbers below `count` by ascending key; those of equal keys by `tie`.
pub(super) fn order<const N: usize, K: Ord>(
    count: usize,
    key: impl Fn(usize) -> [u64; N],
    tie: impl Fn(usize) -> K,
) -> Vec<u32> {
    let (mut least, mut most) = ([u64::MAX; N], [0; N]);
    for key in (0..count).map(&key) {
        for (k, &number) in key.iter().enumerate() {
            (least[k], most[k]) = (least[k].min(number), most[k].max(number));
        }
    }
    let bits = |k: usize| u64::BITS - most[k].saturating_sub(least[k]).leading_zeros();
    let all: u32 = (0..N).map(bits).sum();
    let widths: [u32; N] = std::array::from_fn(bits);
    let numbers = |i: usize| key(i).into_iter().zip(least).map(|(number, least)| number - least).zip(widths);
    match all {
        ..=64 => sorted(
            (0..count).map(|i| numbers(i).fold(0u64, |all, (n, width)| shifted(all as u128, width) as u64 | n)),
            tie,
        ),
        65..=128 => {
            sorted((0..count).map(|i| numbers(i).fold(0u128, |all, (n, width)| shifted(all, width) | n as u128)), tie)
        }
        _ => {
            let mut order: Vec<u32> = (0..count as u32).collect();
            order.sort_by_cached_key(|&i| (key(i as usize), tie(i as usize)));
            order
        }
    }
}

fn shifted(all: u128, width: u32) -> u128 {
    all << width
}

fn sorted<T: radsort::Key + Ord + Copy, K: Ord>(keys: impl Iterator<Item = T>, tie: impl Fn(usize) -> K) -> Vec<u32> {
    let mut keys: Vec<(T, u32)> = keys.zip(0..).collect();
    radsort::sort_by_key(&mut keys, |k| k.0);
    for same in keys.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        same.sort_by_key(|k| tie(k.1 as usize));
    }
    keys.into_iter().map(|k| k.1).collect()
}

#[cfg(test)]
mod tests {
    use super::{order, ranks};

    #[test]
    fn ranks_are_those_of_the_different_ones() {
        assert_eq!(ranks([7, 7, 3, 9, 3, 7, 1].into_iter()), [2, 2, 1, 3, 1, 2, 0]);
    }

    #[test]
    fn keys_come_first_then_ties_then_places() {
        let keys = [[3, 1], [1, 7], [3, 1], [1, 7], [0, 9], [1, 7]];
        let ties = [2, 9, 1, 7, 0, 9];
        assert_eq!(order(6, |k| keys[k], |k| ties[k]), [4, 3, 1, 5, 2, 0]);
        assert!(order(0, |_| [0u64], |_| ()).is_empty());
    }

    #[test]
    fn many_are_ordered_as_comparisons_would() {
        for width in [3, 17, 40, 60, 64] {
            let number = |k: usize, salt: u64| {
                ((k as u64 % 1700) ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(k as u32 % 64)
                    >> (64 - width)
            };
            let key = |k: usize| [number(k, 1) % 5, number(k, 2), number(k, 3)];
            let mut expected: Vec<u32> = (0..5000).collect();
            expected.sort_by_key(|&k| (key(k as usize), k % 7));
            assert_eq!(order(5000, key, |k| k % 7), expected, "{width} bits");
        }
    }
}
