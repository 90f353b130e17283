//! A view as runs of elements at equal distances, in row-major order.
//!
//! # Note: Ranges
//! Along each digit the boxes of the parts cut the index space into ranges. Inside a range, either one part holds all
//! inner digits, or the next digit is cut in turn. The tree of ranges is as small as the list of parts allows; walking
//! it visits the elements in order, one part at a time.

use super::{Run, View, ViewPart};
use crate::ids::VarId;
use smallvec::SmallVec;

/// A run that is copied to another run of the same length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CopyRun {
    /// The variable that is written.
    pub dst_var: VarId,
    /// First flat element written.
    pub dst_start: u64,
    /// Distance between written elements.
    pub dst_stride: i64,
    /// The variable that is read.
    pub src_var: VarId,
    /// First flat element read.
    pub src_start: u64,
    /// Distance between read elements.
    pub src_stride: i64,
    /// Number of elements, at least 1.
    pub len: u64,
}

impl View {
    /// Returns the number of pieces of consecutive elements that row-major order consists of, part by part.
    pub fn contiguous_regions(&self) -> u64 {
        let of_part = |p: &ViewPart| {
            let mut piece = 1;
            for k in (0..p.len.len()).rev() {
                let joins = p.len[k] == 1 || p.stride[k] == piece;
                piece *= if joins { p.len[k] as i64 } else { 1 };
                if !joins || p.len[k] < self.digits[k] {
                    break;
                }
            }
            p.len.iter().map(|&n| n as u64).product::<u64>() / piece as u64
        };
        self.parts.iter().map(of_part).sum()
    }

    /// Returns its elements as runs in row-major order: along the innermost joined digits, contiguous ones as long as
    /// possible.
    pub fn runs(&self) -> Runs {
        Runs { boxes: Boxes::new(self.flat()), rows: None, held: None }
    }
}

/// An iterator over the runs of a view.
#[derive(Clone, Debug)]
pub struct Runs {
    boxes: Boxes,
    rows: Option<Rows>,
    held: Option<Run>,
}

impl Runs {
    fn next_row(&mut self) -> Option<Run> {
        loop {
            if let Some(run) = self.rows.as_mut().and_then(Rows::next) {
                return Some(run);
            }
            self.rows = Some(self.boxes.next()?);
        }
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut run = self.held.take().or_else(|| self.next_row())?;
        while let Some(next) = self.next_row() {
            if !run.append(next) {
                self.held = Some(next);
                break;
            }
        }
        Some(run)
    }
}

impl Run {
    /// Appends `next` if it continues this run, and if single elements would not join at a distance.
    fn append(&mut self, next: Run) -> bool {
        let stride = if self.len > 1 { self.stride } else { 1 };
        let fits = (next.len == 1 && stride == 1) || (next.stride == stride && next.len > 1);
        if self.var != next.var || !fits || self.at(self.len - 1) as i64 + stride != next.start as i64 {
            return false;
        }
        (self.stride, self.len) = (stride, self.len + next.len);
        true
    }
}

/// The rows of one strided box.
#[derive(Clone, Debug)]
struct Rows {
    var: VarId,
    start: i64,
    row: (u64, i64),
    outer: SmallVec<[(u64, i64); 4]>,
    at: SmallVec<[u64; 4]>,
    done: bool,
}

impl Rows {
    fn new(var: VarId, start: i64, dims: impl DoubleEndedIterator<Item = (u64, i64)>) -> Rows {
        let mut outer: SmallVec<[(u64, i64); 4]> = SmallVec::new();
        for (len, stride) in dims.rev().filter(|d| d.0 > 1) {
            match outer.last_mut() {
                Some(last) if stride == last.0 as i64 * last.1 => last.0 *= len,
                _ => outer.push((len, stride)),
            }
        }
        let row = if outer.is_empty() { (1, 1) } else { outer.remove(0) };
        let at = SmallVec::from_elem(0, outer.len());
        Rows { var, start, row, outer, at, done: false }
    }

    fn next(&mut self) -> Option<Run> {
        if self.done {
            return None;
        }
        let run = Run { var: self.var, start: self.start as u64, len: self.row.0, stride: self.row.1 };
        self.done = true;
        for (at, &(len, stride)) in self.at.iter_mut().zip(&self.outer) {
            *at += 1;
            self.start += stride;
            if *at < len {
                self.done = false;
                break;
            }
            self.start -= len as i64 * stride;
            *at = 0;
        }
        Some(run)
    }
}

/// A walk over the ranges of a view; see the note.
#[derive(Clone, Debug)]
struct Boxes {
    view: View,
    nodes: Vec<Vec<IndexRange>>,
    /// For each digit on the path: node, range in it, value of the digit.
    path: Vec<(usize, usize, u32)>,
}

#[derive(Clone, Debug)]
struct IndexRange {
    first: u32,
    count: u32,
    inside: Inside,
}

#[derive(Clone, Copy, Debug)]
enum Inside {
    Part(usize),
    Node(usize),
}

impl Boxes {
    fn new(view: View) -> Boxes {
        let mut boxes = Boxes { view, nodes: Vec::new(), path: Vec::new() };
        let all: Vec<usize> = (0..boxes.view.parts.len()).collect();
        if all.len() > 1 {
            let root = boxes.build(0, &all);
            boxes.path.push((root, 0, boxes.nodes[root][0].first));
        } else if all.len() == 1 {
            boxes.nodes.push(vec![IndexRange { first: 0, count: 1, inside: Inside::Part(0) }]);
            boxes.path.push((0, 0, 0));
        }
        boxes
    }

    /// Builds the ranges of digit `k` for the parts that overlap under fixed outer digits; there are at least two.
    fn build(&mut self, k: usize, parts: &[usize]) -> usize {
        let edge = |&p: &usize| [self.view.parts[p].lo[k], self.view.parts[p].lo[k] + self.view.parts[p].len[k]];
        let mut edges: Vec<u32> = parts.iter().flat_map(edge).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut sorted = parts.to_vec();
        sorted.sort_by_key(|&p| self.view.parts[p].lo[k]);
        let (mut ranges, mut active, mut next) = (Vec::with_capacity(edges.len()), Vec::new(), 0);
        for pair in edges.windows(2) {
            let end = |&p: &usize| self.view.parts[p].lo[k] + self.view.parts[p].len[k];
            active.retain(|p| end(p) > pair[0]);
            while next < sorted.len() && self.view.parts[sorted[next]].lo[k] == pair[0] {
                active.push(sorted[next]);
                next += 1;
            }
            let inside = match active[..] {
                [part] => Inside::Part(part),
                _ => Inside::Node(self.build(k + 1, &active)),
            };
            ranges.push(IndexRange { first: pair[0], count: pair[1] - pair[0], inside });
        }
        self.nodes.push(ranges);
        self.nodes.len() - 1
    }

    fn next(&mut self) -> Option<Rows> {
        loop {
            let &(node, range, value) = self.path.last()?;
            let IndexRange { count, inside, .. } = self.nodes[node][range];
            match inside {
                Inside::Node(inner) => self.path.push((inner, 0, self.nodes[inner][0].first)),
                Inside::Part(p) => {
                    let rows = self.rows(p, value, count);
                    self.advance_past(count);
                    return Some(rows);
                }
            }
        }
    }

    /// Returns the rows of a part under the digits on the path, `count` values of the last digit.
    fn rows(&self, p: usize, value: u32, count: u32) -> Rows {
        let part: &ViewPart = &self.view.parts[p];
        if self.view.parts.len() == 1 {
            return Rows::new(
                part.var,
                part.offset,
                part.len.iter().map(|&n| n as u64).zip(part.stride.iter().copied()),
            );
        }
        let k = self.path.len() - 1;
        debug_assert_eq!(self.path[k].2, value);
        let shift = |(j, step): (usize, &(usize, usize, u32))| (step.2 - part.lo[j]) as i64 * part.stride[j];
        let start = part.offset + self.path.iter().enumerate().map(shift).sum::<i64>();
        let inner = (k + 1..part.len.len()).map(|j| (part.len[j] as u64, part.stride[j]));
        let dims: SmallVec<[(u64, i64); 6]> = std::iter::once((count as u64, part.stride[k])).chain(inner).collect();
        Rows::new(part.var, start, dims.into_iter())
    }

    /// Advances by `count` values along the last digit of the path, and further out where a digit ends.
    fn advance_past(&mut self, mut count: u32) {
        while let Some(step) = self.path.last_mut() {
            let ranges = &self.nodes[step.0];
            step.2 += count;
            if step.2 < ranges[step.1].first + ranges[step.1].count {
                return;
            }
            step.1 += 1;
            if step.1 < ranges.len() {
                return;
            }
            self.path.pop();
            count = 1;
        }
    }
}

/// Returns the element-wise copy of one view to another of the same length, both in row-major order.
pub fn copy_runs(dst: &View, src: &View) -> Vec<CopyRun> {
    debug_assert_eq!(dst.len(), src.len());
    let (mut dst, mut src) = (dst.runs(), src.runs());
    let (mut to, mut from) = (dst.next(), src.next());
    let mut copies: Vec<CopyRun> = Vec::new();
    while let (Some(d), Some(s)) = (to, from) {
        let len = d.len.min(s.len);
        let copy = CopyRun {
            dst_var: d.var,
            dst_start: d.start,
            dst_stride: d.stride,
            src_var: s.var,
            src_start: s.start,
            src_stride: s.stride,
            len,
        };
        if !copies.last_mut().is_some_and(|last| last.append(&copy)) {
            copies.push(copy);
        }
        let rest = |r: Run| (r.len > len).then(|| Run { start: r.at(len), len: r.len - len, ..r });
        to = rest(d).or_else(|| dst.next());
        from = rest(s).or_else(|| src.next());
    }
    copies
}

impl CopyRun {
    /// Appends `next` if it continues both sides at the same distances.
    fn append(&mut self, next: &CopyRun) -> bool {
        let strides = |c: &CopyRun| if c.len > 1 { (c.dst_stride, c.src_stride) } else { (1, 1) };
        let (d, s) = strides(self);
        let goes_on = |start: u64, stride: i64, len: u64, next: u64| start as i64 + stride * len as i64 == next as i64;
        let fits = self.dst_var == next.dst_var
            && self.src_var == next.src_var
            && strides(next) == (d, s)
            && goes_on(self.dst_start, d, self.len, next.dst_start)
            && goes_on(self.src_start, s, self.len, next.src_start);
        if fits {
            (self.dst_stride, self.src_stride, self.len) = (d, s, self.len + next.len);
        }
        fits
    }
}
