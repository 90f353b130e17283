//! Bands: equal runs of a view at equal distances, such as the rows of a box, and how the mapping cuts them.
//!
//! # Note: Equally cut rows
//! The blocks of a mapping cut many rows of a box at the same positions. The cuts of the first row are looked up. For
//! the rows after it, only a few comparisons check that the corresponding runs hold the corresponding elements, and
//! none are needed if the rows are those of the mapping's own blocks ([`RunRows`](girder_ir::plan::RunRows)).
//!
//! Invariant: rows that count as equally cut are those for which a lookup of each row gives equal cuts.

use super::homes::ElementHome;
use girder_ir::plan::Homes;
use girder_ir::view::Run;
use smallvec::SmallVec;

/// Equal runs at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Band {
    /// The first run.
    pub run: Run,
    /// The number of runs, at least 1.
    pub count: u32,
    /// The distance in elements from one run to the next.
    pub distance: i64,
}

/// Returns runs, in order, as few bands.
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
    /// Returns the first element of a row.
    pub fn row(&self, k: u32) -> u64 {
        self.run.start.wrapping_add((self.distance as u64).wrapping_mul(k as u64))
    }

    /// Returns the band from a row on, shifted by some elements.
    pub fn behind(&self, row: u32, shift: i64) -> Band {
        let start = self.row(row).wrapping_add(shift as u64);
        Band { run: Run { start, ..self.run }, count: self.count - row, ..*self }
    }
}

/// The elements of a row that one run of the mapping holds.
pub(super) struct RowCut {
    /// The position of the first element in the row.
    pub first: u64,
    /// The number of elements.
    pub len: u64,
    /// The home of the first element.
    pub at: ElementHome,
    /// The index of the run.
    pub run: usize,
    /// The distance in bytes to the same elements of the next row, if several rows are equally cut.
    pub step: i64,
}

/// The number of cuts up to which rows are compared.
const FEW: usize = 8;

/// Returns the number of rows, from the first on, that are cut as the first is: at the same positions, on the same
/// tiles, and evenly spaced. Returns 1 if a row has more than a few cuts, cuts that are not contiguous, or two cuts on
/// one tile.
pub(super) fn equally_cut_rows(homes: &Homes, band: &Band, cuts: &mut [RowCut]) -> u32 {
    let is_contiguous = |c: &RowCut| band.run.stride == 1 || c.len == 1;
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
        let fits = |c: &RowCut| if i32::try_from(c.step).is_ok() { rows.again[c.run] } else { 0 };
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
