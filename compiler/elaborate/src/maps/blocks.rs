//! The elements that a `map` puts on tiles, as blocks: equally spaced rows of one length, such as a rectangle of a
//! matrix.
//!
//! # Note: A grid of blocks
//! Rows of horizontally adjacent blocks of a matrix alternate, so the order of a variable's runs differs widely from
//! the order of its blocks. If the rows of all blocks have the same pitch and no row wraps around, a sweep over the
//! rows of the matrix finds the runs in order: each row meets the blocks of the row before it, from left to right,
//! except for blocks that begin or end there.
//!
//! Invariant: the rows of a block ascend; a block has at least one row of at least one element.

use girder_ir::placement::TileRun;
use girder_ir::view::Run;

/// Equally spaced rows of a variable's elements on one tile. The type is small because there may be many blocks; a
/// variable has fewer than 2³² elements.
#[derive(Clone, Copy, Debug)]
pub struct ElementBlock {
    /// First element.
    start: u32,
    /// The number of rows.
    rows: u32,
    /// Elements from one row to the next.
    pitch: u32,
    /// Elements of a row.
    len: u32,
    /// The tile.
    tile: u32,
}

impl ElementBlock {
    /// Returns the runs of a view of one variable as blocks, all on tile 0.
    pub fn of(runs: &[&Run]) -> Vec<ElementBlock> {
        let of_run = |run: &&Run| match run.stride {
            1 => ElementBlock { start: run.start as u32, rows: 1, pitch: run.len as u32, len: run.len as u32, tile: 0 },
            0 => ElementBlock { start: run.start as u32, rows: 1, pitch: 1, len: 1, tile: 0 },
            stride => {
                let last = (run.start as i64 + (run.len as i64 - 1) * stride) as u64;
                let (start, pitch) = (run.start.min(last) as u32, stride.unsigned_abs() as u32);
                ElementBlock { start, rows: run.len as u32, pitch, len: 1, tile: 0 }
            }
        };
        let blocks: Vec<ElementBlock> = runs.iter().map(of_run).collect();
        let [first, second, ..] = blocks[..] else { return blocks };
        let pitch = second.start.wrapping_sub(first.start);
        let follows = |w: &[ElementBlock]| w[1].start.wrapping_sub(w[0].start) == pitch;
        let equal = |b: &ElementBlock| (b.rows, b.len) == (1, first.len);
        match second.start > first.start && blocks.iter().all(equal) && blocks.windows(2).all(follows) {
            true => vec![ElementBlock { rows: blocks.len() as u32, pitch, ..first }],
            false => blocks,
        }
    }

    /// Returns the block shifted by some elements, on another tile.
    pub fn shifted(self, by: i64, tile: u32) -> ElementBlock {
        ElementBlock { start: (self.start as i64 + by) as u32, tile, ..self }
    }

    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.rows as usize
    }

    /// Returns its rows, ascending.
    pub fn runs(self) -> impl Iterator<Item = TileRun> {
        let start = move |row: u32| self.start as u64 + row as u64 * self.pitch as u64;
        (0..self.rows).map(move |row| (start(row), start(row) + self.len as u64, self.tile))
    }
}

/// A block in a matrix: first row, end row, first column, end column, tile; ends are exclusive.
type InMatrix = (u64, u64, u64, u64, u32);

/// Disjoint blocks of one matrix. See the note.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Elements of a row of the matrix.
    pitch: u64,
    /// Bands of rows with the same blocks: first row, end row, and the end of the band's blocks in `blocks`.
    bands: Vec<(u64, u64, usize)>,
    /// The blocks of each band, from left to right: first column, end column, tile.
    blocks: Vec<(u64, u64, u32)>,
}

impl Grid {
    /// Makes a grid of blocks; `None` if they are not disjoint blocks of one matrix.
    pub fn of(blocks: &[ElementBlock]) -> Option<Grid> {
        let pitch = blocks.iter().find(|b| b.rows > 1)?.pitch as u64;
        let placed = |b: &ElementBlock| {
            let (row, column) = (b.start as u64 / pitch, b.start as u64 % pitch);
            let (rows, len) = (b.rows as u64, b.len as u64);
            let fits = (b.rows == 1 || b.pitch as u64 == pitch) && column + len <= pitch;
            fits.then_some((row, row + rows, column, column + len, b.tile))
        };
        let mut waiting: Vec<InMatrix> = blocks.iter().map(placed).collect::<Option<_>>()?;
        waiting.sort_unstable();
        let mut waiting = waiting.into_iter().peekable();
        let mut grid = Grid { pitch, ..Grid::default() };
        // The blocks in the current row, by ascending column.
        let mut open: Vec<InMatrix> = vec![];
        while let Some(mut row) = waiting.peek().map(|b| b.0) {
            loop {
                open.retain(|b| b.1 > row);
                while let Some(block) = waiting.next_if(|b| b.0 == row) {
                    let at = open.partition_point(|b| b.2 < block.2);
                    let meets = |other: Option<&InMatrix>| other.is_some_and(|o| o.2 < block.3 && block.2 < o.3);
                    if meets(open.get(at)) || meets(at.checked_sub(1).and_then(|k| open.get(k))) {
                        return None;
                    }
                    open.insert(at, block);
                }
                let Some(end) = open.iter().map(|b| b.1).chain(waiting.peek().map(|b| b.0)).min() else { break };
                if open.is_empty() {
                    break;
                }
                grid.blocks.extend(open.iter().map(|b| (b.2, b.3, b.4)));
                grid.bands.push((row, end, grid.blocks.len()));
                row = end;
            }
        }
        Some(grid)
    }

    /// Returns the number of rows of all its blocks.
    pub fn count(&self) -> usize {
        let begins = std::iter::once(0).chain(self.bands.iter().map(|b| b.2));
        self.bands.iter().zip(begins).map(|(b, begin)| (b.1 - b.0) as usize * (b.2 - begin)).sum()
    }

    /// Returns the rows of all its blocks, ascending.
    pub fn runs(&self) -> impl Iterator<Item = TileRun> {
        let begins = std::iter::once(0).chain(self.bands.iter().map(|b| b.2));
        self.bands.iter().zip(begins).flat_map(move |(&(first, end, last), begin)| {
            let row = move |row: u64| {
                let shifted = move |&(from, to, tile): &(u64, u64, u32)| (row + from, row + to, tile);
                self.blocks[begin..last].iter().map(shifted)
            };
            (first..end).flat_map(move |k| row(k * self.pitch))
        })
    }

    /// Returns whether the blocks cover the elements `0..len`.
    pub fn covers(&self, len: u64) -> bool {
        let (mut row, mut begin) = (0, 0);
        let whole = self.bands.iter().all(|&(first, end, last)| {
            let own = &self.blocks[begin..last];
            let tight = own.iter().try_fold(0, |at, b| (b.0 == at).then_some(b.1)) == Some(self.pitch);
            let follows = std::mem::replace(&mut row, end) == first;
            begin = last;
            tight && follows
        });
        whole && row * self.pitch == len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32, rows: u32, pitch: u32, len: u32, tile: u32) -> ElementBlock {
        ElementBlock { start, rows, pitch, len, tile }
    }

    #[test]
    fn rows_of_blocks_side_by_side_alternate() {
        let blocks = [block(3, 2, 8, 5, 1), block(0, 2, 8, 3, 0), block(16, 1, 8, 8, 2)];
        let expected = [(0, 3, 0), (3, 8, 1), (8, 11, 0), (11, 16, 1), (16, 24, 2)];
        let grid = Grid::of(&blocks).unwrap();
        assert_eq!(grid.runs().collect::<Vec<_>>(), expected);
        assert!(grid.covers(24));
        assert!(!grid.covers(32));
    }

    #[test]
    fn blocks_that_meet_or_have_other_rows_are_left() {
        assert!(Grid::of(&[block(0, 2, 8, 3, 0), block(2, 2, 8, 3, 1)]).is_none());
        assert!(Grid::of(&[block(0, 2, 8, 3, 0), block(40, 2, 7, 3, 1)]).is_none());
        assert!(Grid::of(&[block(6, 2, 8, 3, 0)]).is_none());
    }

    #[test]
    fn the_sweep_finds_the_rows_of_all_blocks() {
        let mut state = 1u64;
        let mut roll = |n: u32| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u32 % n
        };
        let mut found = [0, 0];
        for _ in 0..4000 {
            let mut blocks = vec![];
            for tile in 0..1 + roll(6) {
                let (row, rows, len) = (roll(12), 1 + roll(4), 1 + roll(4));
                blocks.push(block(9 * row + roll(10 - len), rows, 9, len, tile));
            }
            if blocks.iter().all(|b| b.rows == 1) {
                continue;
            }
            let mut rows: Vec<TileRun> = blocks.iter().flat_map(|b| b.runs()).collect();
            rows.sort_unstable();
            let disjoint = rows.windows(2).all(|w| w[0].1 <= w[1].0);
            found[disjoint as usize] += 1;
            let grid = Grid::of(&blocks);
            let covers = |len: u64| rows.iter().try_fold(0, |at, r| (r.0 == at).then_some(r.1)) == Some(len);
            assert!(grid.iter().all(|g| [9, 18, 27, 36].iter().all(|&len| g.covers(len) == covers(len))));
            assert_eq!(grid.map(|g| g.runs().collect::<Vec<_>>()), disjoint.then_some(rows));
        }
        assert!(found.iter().all(|&n| n > 500), "{found:?}");
    }
}
