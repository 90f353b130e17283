//! The elements of a view as strided runs in row-major order: the oracle's own definition of a view. It shares no code
//! with the queries of `girder_ir::view`, which the compiled modes use, so that an error in either shows as a
//! disagreement.
//!
//! Invariant: the runs of a view, one after another, are its elements in row-major order of its index space.

use girder_ir::ids::VarId;
use girder_ir::view::{Digits, Run, View, ViewPart};

/// Returns the runs of a view, in order.
pub(crate) fn runs_of(view: &View) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for_each_run(view, |run| {
        if !runs.last_mut().is_some_and(|last| extend(last, run)) {
            runs.push(run);
        }
    });
    runs
}

/// Appends `next` to `last` if the elements of both lie at equal distances.
fn extend(last: &mut Run, next: Run) -> bool {
    let gap = next.start as i64 - (last.start as i64 + (last.len as i64 - 1) * last.stride);
    let fits = last.var == next.var && (last.len == 1 || last.stride == gap) && (next.len == 1 || next.stride == gap);
    if fits {
        (last.len, last.stride) = (last.len + next.len, gap);
    }
    fits
}

/// Calls a function with one run per row of the innermost digit and part.
fn for_each_run(view: &View, mut f: impl FnMut(Run)) {
    if view.digits.contains(&0) {
        return;
    }
    let inner = view.digits.iter().rposition(|&n| n > 1).unwrap_or(0);
    let mut parts: Vec<&ViewPart> = view.parts.iter().collect();
    parts.sort_by_key(|p| p.lo.get(inner).copied());
    let mut point: Digits = Digits::from_elem(0, view.digits.len());
    loop {
        for part in parts.iter().filter(|p| holds(p, &point, inner)) {
            f(row(part, &point, inner));
        }
        if !advance(&mut point, &view.digits, inner) {
            return;
        }
    }
}

/// Returns whether the row at `point` along digit `inner` crosses a part.
fn holds(part: &ViewPart, point: &[u32], inner: usize) -> bool {
    (0..point.len()).all(|k| k == inner || (part.lo[k]..part.lo[k] + part.len[k]).contains(&point[k]))
}

fn row(part: &ViewPart, point: &[u32], inner: usize) -> Run {
    let along = |k: usize| (point[k] - part.lo[k]) as i64 * part.stride[k];
    let start = part.offset + (0..point.len()).filter(|&k| k != inner).map(along).sum::<i64>();
    let (len, stride) = match part.len.get(inner) {
        Some(&len) if len > 1 => (len as u64, part.stride[inner]),
        _ => (1, 1),
    };
    Run { var: part.var, start: start as u64, len, stride }
}

/// Advances to the next point in row-major order of all digits but `inner`; returns `false` after the last.
fn advance(point: &mut [u32], digits: &[u32], inner: usize) -> bool {
    for k in (0..point.len()).rev().filter(|&k| k != inner) {
        point[k] += 1;
        if point[k] < digits[k] {
            return true;
        }
        point[k] = 0;
    }
    false
}

/// The runs of a view, searchable by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located {
    runs: Vec<Run>,
    /// Elements before each run.
    before: Vec<u64>,
}

impl Located {
    /// Collects the runs of a view.
    pub(crate) fn new(view: &View) -> Located {
        let runs = runs_of(view);
        let mut sum = 0;
        let mut before = Vec::with_capacity(runs.len());
        for run in &runs {
            before.push(sum);
            sum += run.len;
        }
        Located { runs, before }
    }

    /// Returns the variable and the flat element at a row-major position of the view.
    #[inline]
    pub(crate) fn at(&self, position: u64) -> (VarId, u64) {
        let k = if self.runs.len() == 1 { 0 } else { self.before.partition_point(|&b| b <= position) - 1 };
        let run = self.runs[k];
        (run.var, (run.start as i64 + (position - self.before[k]) as i64 * run.stride) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;
    use smallvec::smallvec;

    fn part(lo: &[u32], len: &[u32], var: usize, offset: i64, stride: &[i64]) -> ViewPart {
        let (lo, len) = (Digits::from_slice(lo), Digits::from_slice(len));
        ViewPart { lo, len, var: VarId::new(var), offset, stride: stride.iter().copied().collect() }
    }

    fn elements(view: &View) -> Vec<(VarId, u64)> {
        let at = |r: &Run, i: u64| (r.var, (r.start as i64 + i as i64 * r.stride) as u64);
        runs_of(view).iter().flat_map(|r| (0..r.len).map(move |i| at(r, i))).collect()
    }

    /// Row-major enumeration, straight from the definition of a part.
    fn expected(view: &View) -> Vec<(VarId, u64)> {
        let count: u64 = view.digits.iter().map(|&n| n as u64).product();
        let point = |mut i: u64| {
            let mut p: Vec<u32> = view.digits.iter().rev().map(|&n| (i % n as u64, i /= n as u64).0 as u32).collect();
            p.reverse();
            p
        };
        let find = |p: &[u32]| {
            let inside = |q: &&ViewPart| (0..p.len()).all(|k| q.lo[k] <= p[k] && p[k] < q.lo[k] + q.len[k]);
            let q = view.parts.iter().find(inside).unwrap();
            let along = (0..p.len()).map(|k| (p[k] - q.lo[k]) as i64 * q.stride[k]).sum::<i64>();
            (q.var, (q.offset + along) as u64)
        };
        (0..count).map(|i| find(&point(i))).collect()
    }

    #[test]
    fn runs_are_the_elements_in_row_major_order() {
        let views = [
            View { digits: smallvec![], axes: smallvec![], parts: smallvec![part(&[], &[], 3, 7, &[])] },
            View { digits: smallvec![0, 4], axes: smallvec![1, 1], parts: smallvec![] },
            View {
                digits: smallvec![3, 4, 1],
                axes: smallvec![1, 1, 1],
                parts: smallvec![part(&[0, 0, 0], &[3, 4, 1], 0, 11, &[-4, 1, 9])],
            },
            View {
                digits: smallvec![3, 4],
                axes: smallvec![1, 1],
                parts: smallvec![
                    part(&[0, 2], &[3, 2], 1, 0, &[2, 1]),
                    part(&[0, 0], &[2, 2], 0, 5, &[0, 3]),
                    part(&[2, 0], &[1, 2], 2, 9, &[1, 0]),
                ],
            },
        ];
        for view in &views {
            assert_eq!(elements(view), expected(view));
            let located = Located::new(view);
            for (i, e) in expected(view).into_iter().enumerate() {
                assert_eq!(located.at(i as u64), e);
            }
        }
    }

    #[test]
    fn neighbouring_rows_become_one_run() {
        let view = View {
            digits: smallvec![8, 16],
            axes: smallvec![1, 1],
            parts: smallvec![part(&[0, 0], &[8, 16], 0, 32, &[16, 1])],
        };
        assert_eq!(runs_of(&view), [Run { var: VarId::new(0), start: 32, len: 128, stride: 1 }]);
    }
}
