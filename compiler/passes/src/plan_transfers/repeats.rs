//! Finds reads that may repeat on a tile, without a table of all reads.
//!
//! # Note: Two passes
//! Where reads are irregular nearly every one is unique, and a table of shared landings would be filled for nothing. So
//! each read is first hashed to a bit. The second of two equal reads always finds its bit set, and only keys with such
//! bits are looked up in the table.
//!
//! Invariant: a key that occurs twice may repeat. Among the other keys few do, by chance.

use fixedbitset::FixedBitSet;

/// A read: tile, number of the form, offset.
pub(super) type Key = (u32, u32, i64);

/// The number of bits for each key.
const ROOM: usize = 8;

/// A filter of keys: those that may occur more than once pass it.
#[derive(Default)]
pub(super) struct Repeats {
    again: FixedBitSet,
    /// The shift from a 64-bit hash to a bit.
    shift: u32,
}

impl Repeats {
    /// Creates the filter of some keys.
    pub fn of(count: usize, keys: impl Iterator<Item = Key>) -> Repeats {
        let bits = (ROOM * count.max(64)).next_power_of_two();
        let mut seen = FixedBitSet::with_capacity(bits);
        let mut repeats = Repeats { again: seen.clone(), shift: 64 - bits.ilog2() };
        for key in keys {
            let bit = repeats.bit(&key);
            if seen.put(bit) {
                repeats.again.insert(bit);
            }
        }
        repeats
    }

    /// Returns whether a key may occur more than once.
    pub fn may_repeat(&self, key: &Key) -> bool {
        self.again.contains(self.bit(key))
    }

    fn bit(&self, &(tile, form, offset): &Key) -> usize {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (offset as u64).wrapping_mul(ODD) ^ ((tile as u64) << 32 | form as u64);
        ((mixed ^ mixed >> 29).wrapping_mul(ODD) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_seen_and_others_mostly_are_not() {
        let key = |k: u32| (k % 1472, k % 3, i64::from(k) * 7919 % 1_000_003);
        let keys = || (0..30_000).chain(0..1_000).map(key);
        let repeats = Repeats::of(31_000, keys());
        assert!((0..1_000).all(|k| repeats.may_repeat(&key(k))));
        let by_chance = (1_000..30_000).filter(|&k| repeats.may_repeat(&key(k))).count();
        assert!(by_chance < 29_000 / 4, "{by_chance} of 29000 keys look like repetitions");
    }

    #[test]
    fn nothing_repeats_where_there_are_no_keys() {
        assert!(!Repeats::of(0, std::iter::empty()).may_repeat(&(0, 0, 0)));
    }
}
