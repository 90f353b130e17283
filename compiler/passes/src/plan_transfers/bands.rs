//! Equal runs of a view at equal distances, as the rows of a box are, and how the mapping cuts them.
//!
//! # Note: Rows that are cut alike
//! Blocks of a mapping cut many rows of a box at the same places. Where the first row of such is cut is looked up; of the
//! others it is only asked whether the runs as far on hold what is as far on, which takes a few comparisons for each, or none
//! where they are the rows of the mapping's own blocks ([`RunRows`](girder_ir::plan::RunRows)).
//!
//! Invariant: rows that are said to be alike are those that a cut of each would find so.

use super::moves::At;
use girder_ir::plan::Homes;
use girder_ir::view::Run;
use smallvec::SmallVec;

/// Equal runs at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Band {
    /// The first.
    pub run: Run,
    /// How many, at least 1.
    pub count: u32,
    /// Elements from the first of one to the first of the next.
    pub distance: i64,
}

/// Runs in their order as few bands.
pub(super) fn bands(runs: impl Iterator<Item = Run>) -> SmallVec<[Band; 1]> {
    let mut bands: SmallVec<[Band; 1]> = SmallVec::new();
    for run in runs {
        if let Some(last) = bands.last_mut()
            && (Run { start: run.start, ..last.run }) == run
            && last.count < u32::MAX
        {
            let gap = run.start.wrapping_sub(last.row(last.count - 1)) as i64;
            if last.count == 1 || gap == last.distance {
                (last.distance, last.count) = (gap, last.count + 1);
                continue;
            }
        }
        bands.push(Band { run, count: 1, distance: 0 });
    }
    bands
}

impl Band {
    /// The first element of a row.
    pub fn row(&self, k: u32) -> u64 {
        self.run.start.wrapping_add((self.distance as u64).wrapping_mul(k as u64))
    }

    /// What is left from a row on, so many elements further on.
    pub fn behind(&self, row: u32, shift: i64) -> Band {
        let start = self.row(row).wrapping_add(shift as u64);
        Band { run: Run { start, ..self.run }, count: self.count - row, ..*self }
    }
}

/// What one run of the mapping holds of a row.
pub(super) struct Cut {
    /// The first of its elements in the row.
    pub first: u64,
    /// How many.
    pub len: u64,
    /// Where they are.
    pub at: At,
    /// The run.
    pub run: usize,
    /// Bytes from them to the same of the next row, if more than one row is alike.
    pub step: i64,
}

/// Cuts up to which rows are compared.
const FEW: usize = 8;

/// How many rows of a band are cut as its first is, that one included: at the same places, on the same tiles, from there on
/// evenly apart. 1 if a row's cuts are more than a few, not contiguous, or twice on a tile.
pub(super) fn alike(homes: &Homes, band: &Band, cuts: &mut [Cut]) -> u32 {
    let is_contiguous = |c: &Cut| band.run.stride == 1 || c.len == 1;
    let is_alone = |k: usize| cuts[..k].iter().all(|c| c.at.tile != cuts[k].at.tile);
    let fits = cuts.len() <= FEW && cuts.iter().all(is_contiguous) && (0..cuts.len()).all(is_alone);
    if band.count == 1 || !fits {
        return 1;
    }
    let rows = &homes.rows;
    if rows.jump > 0 && band.distance as u64 == rows.distance {
        for cut in cuts.iter_mut() {
            let next = homes.runs.get(cut.run + rows.jump);
            cut.step = next.map_or(0, |r| r.offset as i64 - homes.runs[cut.run].offset as i64);
        }
        let fits = |c: &Cut| if i32::try_from(c.step).is_ok() { rows.again[c.run] } else { 0 };
        let again = cuts.iter().map(fits).min().unwrap_or(0);
        return band.count.min(again.saturating_add(1));
    }
    let jump = homes.run_of(band.row(1)).wrapping_sub(cuts[0].run);
    let bytes = homes.elem_bytes;
    let mut rows = band.count;
    for cut in cuts {
        let first = band.run.start.wrapping_add((band.run.stride as u64).wrapping_mul(cut.first));
        let base = cut.at.byte(bytes) as i64;
        let (mut element, mut run) = (first, cut.run);
        for k in 1..rows {
            (element, run) = (element.wrapping_add(band.distance as u64), run.wrapping_add(jump));
            let byte = match homes.runs.get(run) {
                Some(r) if r.start as u64 <= element && element + cut.len <= r.end as u64 && r.tile == cut.at.tile => {
                    r.offset as i64 + (element as u32 - r.start) as i64 * bytes as i64
                }
                _ => {
                    rows = k;
                    break;
                }
            };
            if k == 1 {
                cut.step = byte - base;
            }
            if byte != base + k as i64 * cut.step || i32::try_from(cut.step).is_err() {
                rows = k;
                break;
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;
    use girder_ir::ids::VarId;

    fn run(start: u64, len: u64, stride: i64) -> Run {
        Run { var: VarId::new(0), start, len, stride }
    }

    #[test]
    fn rows_of_a_box_are_one_band_and_others_are_their_own() {
        let starts = [10, 30, 50, 70, 71, 40];
        let found = bands(starts.into_iter().map(|s| run(s, 5, 1)).chain([run(60, 6, 1), run(80, 6, 1)]));
        let expected = [(10, 4, 20, 5), (71, 2, -31, 5), (60, 2, 20, 6)];
        let band = |(start, count, distance, len)| Band { run: run(start, len, 1), count, distance };
        assert_eq!(found.as_slice(), expected.map(band));
        assert_eq!(found[1].row(1), 40);
        assert_eq!(found[0].behind(2, 7), Band { run: run(57, 5, 1), count: 2, distance: 20 });
    }
}
