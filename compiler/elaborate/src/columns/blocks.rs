//! What a `map` puts on tiles, as blocks: rows of one length at one distance, such as a rectangle of a matrix has.
//!
//! # Note: A grid of blocks
//! Rows of blocks that stand side by side in a matrix follow one another in turn, so that a variable's runs are far from the
//! order in which its blocks come. Where all blocks have rows at the same distance and none goes on into the next row, a
//! sweep over the rows finds them in order: from row to row the same blocks are met from left to right, but for those that
//! begin or end there.
//!
//! Invariant: the rows of a block ascend; a block has at least one row of at least one element.

use girder_ir::placement::TileRun;
use girder_ir::view::Run;

/// Rows of a variable's elements on one tile.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// First element.
    start: u64,
    /// How many.
    rows: u64,
    /// Elements from one row to the next.
    pitch: u64,
    /// Elements of a row.
    len: u64,
    /// Where.
    tile: u32,
}

impl Block {
    /// The runs of a view of one variable as blocks, all on tile 0.
    pub fn of(runs: &[&Run]) -> Vec<Block> {
        let of_run = |run: &&Run| match run.stride {
            1 => Block { start: run.start, rows: 1, pitch: run.len, len: run.len, tile: 0 },
            0 => Block { start: run.start, rows: 1, pitch: 1, len: 1, tile: 0 },
            stride => {
                let last = (run.start as i64 + (run.len as i64 - 1) * stride) as u64;
                let (start, pitch) = (run.start.min(last), stride.unsigned_abs());
                Block { start, rows: run.len, pitch, len: 1, tile: 0 }
            }
        };
        let blocks: Vec<Block> = runs.iter().map(of_run).collect();
        let [first, second, ..] = blocks[..] else { return blocks };
        let pitch = second.start.wrapping_sub(first.start);
        let follows = |w: &[Block]| w[1].start.wrapping_sub(w[0].start) == pitch;
        let alike = |b: &Block| (b.rows, b.len) == (1, first.len);
        match second.start > first.start && blocks.iter().all(alike) && blocks.windows(2).all(follows) {
            true => vec![Block { rows: blocks.len() as u64, pitch, ..first }],
            false => blocks,
        }
    }

    /// The same so many elements further on, on a tile.
    pub fn shifted(self, by: i64, tile: u32) -> Block {
        Block { start: (self.start as i64 + by) as u64, tile, ..self }
    }

    /// Its rows, ascending.
    pub fn runs(self) -> impl Iterator<Item = TileRun> {
        let start = move |row: u64| self.start + row * self.pitch;
        (0..self.rows).map(move |row| (start(row), start(row) + self.len, self.tile))
    }
}

/// A block in the rows of a matrix: its first row, one past its last, its first column, one past its last, its tile.
type Placed = (u64, u64, u64, u64, u32);

/// The rows of all blocks, ascending, if they are blocks of one matrix that share no element.
pub fn in_rows(blocks: &[Block]) -> Option<Vec<TileRun>> {
    let pitch = blocks.iter().find(|b| b.rows > 1)?.pitch;
    let placed = |b: &Block| {
        let (row, column) = (b.start / pitch, b.start % pitch);
        let fits = (b.rows == 1 || b.pitch == pitch) && column + b.len <= pitch;
        fits.then_some((row, row + b.rows, column, column + b.len, b.tile))
    };
    let mut waiting: Vec<Placed> = blocks.iter().map(placed).collect::<Option<_>>()?;
    waiting.sort_unstable();
    let mut waiting = waiting.into_iter().peekable();
    let mut runs = Vec::with_capacity(blocks.iter().map(|b| b.rows as usize).sum());
    // By column.
    let mut open: Vec<Placed> = vec![];
    while let Some(mut row) = waiting.peek().map(|b| b.0) {
        loop {
            open.retain(|b| b.1 > row);
            while let Some(block) = waiting.next_if(|b| b.0 == row) {
                let at = open.partition_point(|b| b.2 < block.2);
                let meets = |other: Option<&Placed>| other.is_some_and(|o| o.2 < block.3 && block.2 < o.3);
                if meets(open.get(at)) || meets(at.checked_sub(1).and_then(|k| open.get(k))) {
                    return None;
                }
                open.insert(at, block);
            }
            let Some(end) = open.iter().map(|b| b.1).chain(waiting.peek().map(|b| b.0)).min() else { break };
            if open.is_empty() {
                break;
            }
            for row in row..end {
                runs.extend(open.iter().map(|b| (row * pitch + b.2, row * pitch + b.3, b.4)));
            }
            row = end;
        }
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, rows: u64, pitch: u64, len: u64, tile: u32) -> Block {
        Block { start, rows, pitch, len, tile }
    }

    #[test]
    fn rows_of_blocks_side_by_side_take_turns() {
        let blocks = [block(3, 2, 8, 5, 1), block(0, 2, 8, 3, 0), block(16, 1, 8, 8, 2)];
        let expected = [(0, 3, 0), (3, 8, 1), (8, 11, 0), (11, 16, 1), (16, 24, 2)];
        assert_eq!(in_rows(&blocks).unwrap(), expected);
    }

    #[test]
    fn blocks_that_meet_or_have_other_rows_are_left() {
        assert!(in_rows(&[block(0, 2, 8, 3, 0), block(2, 2, 8, 3, 1)]).is_none());
        assert!(in_rows(&[block(0, 2, 8, 3, 0), block(40, 2, 7, 3, 1)]).is_none());
        assert!(in_rows(&[block(6, 2, 8, 3, 0)]).is_none());
    }

    #[test]
    fn the_sweep_finds_the_rows_of_all_blocks() {
        let mut state = 1u64;
        let mut roll = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut found = [0, 0];
        for _ in 0..4000 {
            let mut blocks = vec![];
            for tile in 0..1 + roll(6) {
                let (row, rows, len) = (roll(12), 1 + roll(4), 1 + roll(4));
                blocks.push(block(9 * row + roll(10 - len), rows, 9, len, tile as u32));
            }
            if blocks.iter().all(|b| b.rows == 1) {
                continue;
            }
            let mut rows: Vec<TileRun> = blocks.iter().flat_map(|b| b.runs()).collect();
            rows.sort_unstable();
            let disjoint = rows.windows(2).all(|w| w[0].1 <= w[1].0);
            found[disjoint as usize] += 1;
            assert_eq!(in_rows(&blocks), disjoint.then_some(rows));
        }
        assert!(found.iter().all(|&n| n > 500), "{found:?}");
    }
}
