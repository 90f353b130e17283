//! Decides whether touches of one variable conflict: by strides, by corners, or by marking every run.
//!
//! Invariant: an empty answer is a proof. A conflict names two touches of its element, the first of which writes.

use super::boxes::surely_disjoint_boxes;
use super::touch::Touch;
use crate::footprint::Footprint;
use fixedbitset::FixedBitSet;
use girder_source::Cancel;

/// Conflicts beyond these are only counted.
const MAX_CONFLICTS: usize = 4;
/// The number of elements that are searched for conflicts between other pairs of touches.
const MAX_TRIES: usize = 256;

/// Two touches of neighbouring elements.
#[derive(Debug, PartialEq)]
pub(crate) struct Conflict {
    /// The first element.
    pub start: u64,
    /// One past the last element.
    pub end: u64,
    /// The index of the touch that writes, and its instance.
    pub first: (usize, u64),
    /// The index of the other touch, and its instance.
    pub second: (usize, u64),
}

/// The conflicts among the touches of one variable.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Conflicts between different pairs of touches.
    pub conflicts: Vec<Conflict>,
    /// The number of elements in conflict.
    pub elements: u64,
}

/// Returns the conflicts among touches of one variable of `len` elements.
pub(crate) fn decide(len: u64, touches: &[&Touch], cancel: &Cancel) -> Verdict {
    if surely_free(touches) || surely_disjoint_boxes(touches) {
        return Verdict::default();
    }
    let mut search = Search { touches, tried: 0, verdict: Verdict::default() };
    overlaps(len, touches, cancel, |marks, start, end| {
        search.conflicts(marks, start, end);
        true
    });
    search.verdict
}

/// Returns whether there is no conflict among touches of one variable of `len` elements.
pub(super) fn is_free(len: u64, touches: &[&Touch], cancel: &Cancel) -> bool {
    if surely_free(touches) || surely_disjoint_boxes(touches) {
        return true;
    }
    let mut free = true;
    overlaps(len, touches, cancel, |_, _, _| {
        free = false;
        false
    });
    free
}

/// Calls `f` with each run of which some elements are marked as written, until it returns `false`.
fn overlaps(len: u64, touches: &[&Touch], cancel: &Cancel, mut f: impl FnMut(&Marks, u64, u64) -> bool) {
    let mut marks = Marks::new(len);
    let (written, read): (Vec<&Touch>, Vec<&Touch>) = touches.iter().copied().partition(|t| t.written);
    for t in written.into_iter().chain(read) {
        let mut more = true;
        mark(&t.print, cancel, |start, end| {
            more = !marks.any(start, end) || f(&marks, start, end);
            if t.written {
                marks.set(start, end);
            }
            more
        });
        if !more {
            return;
        }
    }
}

/// Returns the conflicts between touches of one variable in different branches; touches are in the order of branches.
pub(crate) fn decide_branches(len: u64, touches: &[&Touch], cancel: &Cancel) -> Verdict {
    let is_clear = |i: usize, j: usize| {
        touches[i].branch == touches[j].branch
            || !(touches[i].written || touches[j].written)
            || touches[i].print.surely_disjoint(&touches[j].print)
    };
    if touches.len() <= 64 && (0..touches.len()).all(|i| (0..i).all(|j| is_clear(i, j))) {
        return Verdict::default();
    }
    let (mut written, mut touched) = (Marks::new(len), Marks::new(len));
    let mut verdict = Verdict::default();
    let mut from = 0;
    while from < touches.len() {
        let to = from + touches[from..].partition_point(|t| t.branch == touches[from].branch);
        for (i, t) in touches.iter().enumerate().take(to).skip(from) {
            let earlier = if t.written { &touched } else { &written };
            mark(&t.print, cancel, |start, end| {
                if earlier.any(start, end) {
                    verdict.elements += earlier.count(start, end);
                    if verdict.conflicts.is_empty() {
                        let first = earlier.next(start, end);
                        verdict.conflicts.extend(first.and_then(|e| across(touches, from, i, e)));
                    }
                }
                true
            });
        }
        for t in &touches[from..to] {
            mark(&t.print, cancel, |start, end| {
                touched.set(start, end);
                if t.written {
                    written.set(start, end);
                }
                true
            });
        }
        from = to;
    }
    verdict
}

/// Returns the conflict at an element between touch `i` and one before `from`.
fn across(touches: &[&Touch], from: usize, i: usize, element: u64) -> Option<Conflict> {
    let at = |k: usize| touches[k].print.instances_at(element, 1).first().map(|&n| (k, n));
    let here = at(i)?;
    let there = (0..from).filter(|&k| touches[k].written || touches[i].written).find_map(at)?;
    let (first, second) = if touches[there.0].written { (there, here) } else { (here, there) };
    Some(Conflict { start: element, end: common_end(touches, element, first, second), first, second })
}

fn common_end(touches: &[&Touch], element: u64, a: (usize, u64), b: (usize, u64)) -> u64 {
    let end = |(touch, instance): (usize, u64)| touches[touch].print.run_end(element, instance);
    if a == b { element + 1 } else { end(a).min(end(b)) }
}

/// Returns whether strides prove that there is no conflict.
fn surely_free(touches: &[&Touch]) -> bool {
    if !touches.iter().filter(|t| t.written).all(|t| t.print.surely_injective()) {
        return false;
    }
    let mut by_start: Vec<((u64, u64), usize)> = touches.iter().map(|t| t.print.hull()).zip(0..).collect();
    by_start.sort_unstable();
    // More pairs than this cost more than marking.
    let mut pairs = 16 * touches.len() + 1024;
    for (k, &((_, hi), i)) in by_start.iter().enumerate() {
        for &(_, j) in by_start[k + 1..].iter().take_while(|((lo, _), _)| *lo <= hi) {
            pairs -= 1;
            let reads = !(touches[i].written || touches[j].written);
            if pairs == 0 || !(reads || touches[i].print.surely_disjoint(&touches[j].print)) {
                return false;
            }
        }
    }
    true
}

/// Calls `f` with the start and end of each run until it returns `false`. Polls the stop flag now and then.
fn mark(print: &Footprint, cancel: &Cancel, mut f: impl FnMut(u64, u64) -> bool) {
    let mut runs = 0u32;
    print.runs(|start, len| {
        let more = f(start, start + len);
        runs = runs.wrapping_add(1);
        more && !(runs.is_multiple_of(1 << 16) && cancel.is_cancelled())
    });
}

struct Search<'a> {
    touches: &'a [&'a Touch],
    tried: usize,
    verdict: Verdict,
}

impl Search<'_> {
    /// Records the marked elements of a run, which are written and touched once more.
    fn conflicts(&mut self, marks: &Marks, mut start: u64, end: u64) {
        self.verdict.elements += marks.count(start, end);
        while self.verdict.conflicts.len() < MAX_CONFLICTS && self.tried < MAX_TRIES {
            let Some(element) = marks.next(start, end) else { return };
            let known = self.verdict.conflicts.iter().find(|c| (c.start..c.end).contains(&element));
            start = known.map_or(element + 1, |c| c.end);
            if known.is_none() {
                self.conflict(element);
            }
        }
    }

    /// Records an element that is written and touched once more.
    fn conflict(&mut self, element: u64) {
        self.tried += 1;
        let known = &self.verdict.conflicts;
        let instances = |(k, t): (usize, &&Touch)| t.print.instances_at(element, 2).into_iter().map(move |n| (k, n));
        let mut all: Vec<(usize, u64)> = self.touches.iter().enumerate().flat_map(instances).collect();
        let Some(writer) = all.iter().position(|&(k, _)| self.touches[k].written) else { return };
        let first = all.remove(writer);
        // A second writer explains the conflict better than a reader.
        let second = all.iter().find(|&&(k, _)| self.touches[k].written).or(all.first());
        let Some(&second) = second else { return };
        if known.iter().any(|c| (c.first.0, c.second.0) == (first.0, second.0)) {
            return;
        }
        let end = common_end(self.touches, element, first, second);
        self.verdict.conflicts.push(Conflict { start: element, end, first, second });
    }
}

/// A set of elements of a variable, a bit for each.
struct Marks(FixedBitSet);

impl Marks {
    fn new(len: u64) -> Marks {
        Marks(FixedBitSet::with_capacity(len as usize))
    }

    fn set(&mut self, start: u64, end: u64) {
        self.0.insert_range(start as usize..end as usize);
    }

    /// Returns whether an element of `start..end` is marked.
    fn any(&self, start: u64, end: u64) -> bool {
        self.0.contains_any_in_range(start as usize..end as usize)
    }

    /// Counts the marked elements of `start..end`.
    fn count(&self, start: u64, end: u64) -> u64 {
        self.0.count_ones(start as usize..end as usize) as u64
    }

    /// Returns the first marked element of `start..end`, which may be empty.
    fn next(&self, start: u64, end: u64) -> Option<u64> {
        (start..end).find(|&e| self.0.contains(e as usize))
    }
}
