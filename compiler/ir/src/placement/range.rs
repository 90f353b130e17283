//! Ranges of tiles.
//!
//! Invariant: the tile after the last one is a `u32`.

/// Neighbouring tiles, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TileRange {
    /// The first tile.
    pub first: u32,
    /// The number of tiles.
    pub count: u32,
}

impl TileRange {
    /// Returns the tile after the last.
    pub fn end(self) -> u32 {
        self.first + self.count
    }

    /// Returns whether a tile is one of these.
    pub fn contains(self, tile: u32) -> bool {
        (self.first..self.end()).contains(&tile)
    }

    /// Returns whether all tiles of `other` are among these.
    pub fn includes(self, other: TileRange) -> bool {
        self.first <= other.first && other.end() <= self.end()
    }
}
