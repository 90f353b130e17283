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
pub(super) struct Conflict {
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
pub(super) struct Verdict {
    /// Conflicts between different pairs of touches.
    pub conflicts: Vec<Conflict>,
    /// The number of elements in conflict.
    pub elements: u64,
}

/// Returns the conflicts among touches of one variable of `len` elements.
pub(super) fn decide(len: u64, touches: &[&Touch], cancel: &Cancel) -> Verdict {
    if surely_free(touches) || surely_disjoint_boxes(touches) {
        return Verdict::default();
    }
    let mut marks = Marks::new(len);
    let mut search = Search { touches, tried: 0, verdict: Verdict::default() };
    for t in touches.iter().filter(|t| t.written) {
        mark(&t.print, cancel, |start, end| {
            marks.visit(start, end, |e| search.conflict(e));
            marks.set(start, end);
        });
    }
    for t in touches.iter().filter(|t| !t.written) {
        mark(&t.print, cancel, |start, end| marks.visit(start, end, |e| search.conflict(e)));
    }
    search.verdict
}

/// Returns the conflicts between touches of one variable in different branches; touches are in the order of branches.
pub(super) fn decide_branches(len: u64, touches: &[&Touch], cancel: &Cancel) -> Verdict {
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
                earlier.visit(start, end, |e| {
                    verdict.elements += 1;
                    if verdict.conflicts.is_empty() {
                        verdict.conflicts.extend(across(touches, from, i, e));
                    }
                });
            });
        }
        for t in &touches[from..to] {
            mark(&t.print, cancel, |start, end| {
                touched.set(start, end);
                if t.written {
                    written.set(start, end);
                }
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

/// Calls `f` with the start and end of each run. Polls the stop flag now and then.
fn mark(print: &Footprint, cancel: &Cancel, mut f: impl FnMut(u64, u64)) {
    let mut runs = 0u32;
    print.runs(|start, len| {
        f(start, start + len);
        runs = runs.wrapping_add(1);
        !(runs.is_multiple_of(1 << 16) && cancel.is_cancelled())
    });
}

struct Search<'a> {
    touches: &'a [&'a Touch],
    tried: usize,
    verdict: Verdict,
}

impl Search<'_> {
    /// Records an element that is written and touched once more.
    fn conflict(&mut self, element: u64) {
        self.verdict.elements += 1;
        let known = &self.verdict.conflicts;
        let seen = known.iter().any(|c| (c.start..c.end).contains(&element));
        if seen || known.len() >= MAX_CONFLICTS || self.tried >= MAX_TRIES {
            return;
        }
        self.tried += 1;
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

    /// Calls `f` with each element of `start..end` that is marked.
    fn visit(&self, start: u64, end: u64, mut f: impl FnMut(u64)) {
        if self.0.contains_any_in_range(start as usize..end as usize) {
            (start..end).filter(|&e| self.0.contains(e as usize)).for_each(&mut f);
        }
    }
}
