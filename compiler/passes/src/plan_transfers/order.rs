//! The order of many copies or transfers, by what they are as numbers.
//!
//! Invariant: the order depends on what is ordered, and on its order before only where nothing tells two apart.

/// The numbers of things by ascending keys; those of equal keys by `tie`.
pub(super) fn order<K: Ord>(keys: impl Iterator<Item = u128>, tie: impl Fn(u32) -> K) -> Vec<u32> {
    let mut keys: Vec<(u128, u32)> = keys.zip(0..).collect();
    // Digit by digit: comparing that many takes longer.
    radsort::sort_by_key(&mut keys, |k| k.0);
    for same in keys.chunk_by_mut(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        same.sort_by_key(|k| tie(k.1));
    }
    keys.into_iter().map(|k| k.1).collect()
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn keys_come_first_then_ties_then_places() {
        let keys = [3u128 << 90, 1, 3 << 90, 1, 0, 1];
        let ties = [2, 9, 1, 7, 0, 9];
        assert_eq!(order(keys.into_iter(), |k| ties[k as usize]), [4, 3, 1, 5, 2, 0]);
    }

    #[test]
    fn many_are_ordered_as_comparisons_would() {
        let key = |k: u128| k.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_0c8b_1d2e_3f45) >> (k % 120);
        let keys: Vec<u128> = (0..5000).map(|k| key(k % 1700)).collect();
        let mut expected: Vec<u32> = (0..5000).collect();
        expected.sort_by_key(|&k| (keys[k as usize], k % 7));
        assert_eq!(order(keys.iter().copied(), |k| k % 7), expected);
    }
}
