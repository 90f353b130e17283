//! Sets of tiles, short where they are regular.
//!
//! Invariant: the strided ranges of a set are disjoint.

/// Tiles at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StridedTiles {
    /// The first.
    pub first: u32,
    /// Number of tiles, at least 1.
    pub count: u32,
    /// Distance from one tile to the next, at least 1.
    pub step: u32,
}

impl StridedTiles {
    /// Returns the last tile.
    pub fn last(&self) -> u32 {
        self.first + (self.count - 1) * self.step
    }

    /// Returns its tiles, ascending.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |k| self.first + k * self.step)
    }
}

/// A set of tiles.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TileSet(Vec<StridedTiles>);

impl TileSet {
    /// Builds a set from ascending tiles.
    pub fn from_ascending(tiles: impl IntoIterator<Item = u32>) -> TileSet {
        let mut set = TileSet::default();
        tiles.into_iter().for_each(|t| set.push(t));
        set
    }

    /// Builds a set from tiles in any order; repeated tiles are listed once.
    pub fn new(mut tiles: Vec<u32>) -> TileSet {
        tiles.sort_unstable();
        tiles.dedup();
        TileSet::from_ascending(tiles)
    }

    /// Adds a tile that is greater than all so far.
    pub fn push(&mut self, tile: u32) {
        let Some(last) = self.0.last_mut() else {
            return self.0.push(StridedTiles { first: tile, count: 1, step: 1 });
        };
        let step = tile - last.last();
        match last.count {
            1 => (last.count, last.step) = (2, step),
            _ if step == last.step => last.count += 1,
            // Two tiles do not make a stride yet: 0, 5, 6, 7 are 0 and 5..8.
            2 if last.step > 1 => {
                let first = last.last();
                (last.count, last.step) = (1, 1);
                self.0.push(StridedTiles { first, count: 2, step });
            }
            _ => self.0.push(StridedTiles { first: tile, count: 1, step: 1 }),
        }
    }

    /// Returns its strided ranges.
    pub fn strided(&self) -> &[StridedTiles] {
        &self.0
    }

    /// Returns its tiles.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|s| s.iter())
    }

    /// Returns the number of tiles.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|s| s.count as u64).sum()
    }

    /// Returns the least tile.
    pub fn first(&self) -> Option<u32> {
        self.0.iter().map(|s| s.first).min()
    }

    /// Returns the greatest tile plus one.
    pub fn end(&self) -> Option<u32> {
        self.0.iter().map(|s| s.last() + 1).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strided(tiles: &[u32]) -> Vec<(u32, u32, u32)> {
        TileSet::from_ascending(tiles.iter().copied()).0.iter().map(|s| (s.first, s.count, s.step)).collect()
    }

    #[test]
    fn regular_sets_are_short() {
        assert_eq!(strided(&[0, 1, 2, 3]), [(0, 4, 1)]);
        assert_eq!(strided(&[1, 3, 5, 7]), [(1, 4, 2)]);
        assert_eq!(strided(&[0, 5, 6, 7]), [(0, 1, 1), (5, 3, 1)]);
        assert_eq!(strided(&[0, 1, 2, 8, 9, 10]), [(0, 3, 1), (8, 3, 1)]);
    }

    proptest! {
        #[test]
        fn a_set_lists_its_tiles(tiles in prop::collection::vec(0u32..60, 0..40)) {
            let set = TileSet::new(tiles.clone());
            let mut expected = tiles;
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(set.count(), expected.len() as u64);
            prop_assert_eq!(set.first(), expected.first().copied());
            prop_assert_eq!(set.end(), expected.last().map(|t| t + 1));
        }
    }
}
