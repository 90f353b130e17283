//! The bytes of a block as segments of tokens.
//!
//! # Note: Segments
//! Byte `i` of a segment holds the token `first + (i / unit) · step + i mod unit`: pieces of `unit` bytes, each with
//! consecutive tokens, whose first tokens differ by `step`. A plain segment is one piece. A row of a matrix is one
//! plain segment; a gathered column is one segment with a piece for each element. So the replay of a plan takes time
//! by rows and strides, not by bytes.
//!
//! Invariant: segments do not overlap, are not empty and lie inside the block. Bytes without a segment hold nothing.

use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// Consecutive bytes of a block; see the note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    len: u32,
    first: u64,
    unit: u32,
    step: u64,
}

/// A segment and the number of bytes before it.
pub(super) type Piece = (u32, Segment);

/// The segments of a range of bytes; usually one.
pub(super) type Pieces = SmallVec<[Piece; 1]>;

/// If a block has more than this many segments for each write, its segments are updated in place instead of rebuilt.
const FEW: usize = 8;

/// The unit of a plain segment; no segment is as long.
const PLAIN: u32 = u32::MAX;

impl Segment {
    /// Creates a segment of consecutive tokens.
    pub fn plain(first: u64, len: u32) -> Segment {
        Segment { len, first, unit: PLAIN, step: 0 }
    }

    /// Creates a segment of `count` pieces of `unit` bytes, whose first tokens are `step` apart; less than 2³² bytes in
    /// all.
    pub fn pieces(first: u64, unit: u32, step: i64, count: u32) -> Segment {
        match count == 1 || step == unit as i64 {
            true => Segment::plain(first, unit * count),
            false => Segment { len: unit * count, first, unit, step: step as u64 },
        }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns the token of a byte.
    fn token(&self, i: u32) -> u64 {
        let piece = self.step.wrapping_mul((i / self.unit) as u64);
        self.first.wrapping_add(piece).wrapping_add((i % self.unit) as u64)
    }

    /// Returns the number of bytes from `i` to the end of its piece.
    fn left(&self, i: u32) -> u32 {
        (self.len - i).min(self.unit - i % self.unit)
    }

    /// Calls `f` with the segments of the bytes `from..to`, each with its start.
    fn slice(&self, from: u32, to: u32, mut f: impl FnMut(u32, Segment)) {
        let mut at = from;
        if !at.is_multiple_of(self.unit) {
            let n = self.left(at).min(to - at);
            f(at, Segment::plain(self.token(at), n));
            at += n;
        }
        let whole = (to - at) / self.unit;
        if whole > 0 {
            f(at, Segment::pieces(self.token(at), self.unit, self.step as i64, whole));
            at += whole * self.unit;
        }
        if at < to {
            f(at, Segment::plain(self.token(at), to - at));
        }
    }

    /// Returns both as one segment, if `next` continues this one.
    fn join(&self, next: &Segment) -> Option<Segment> {
        let whole = self.unit == PLAIN || self.len.is_multiple_of(self.unit);
        let form = (self.unit, self.step) == (next.unit, next.step) || (next.unit, next.len) == (PLAIN, self.unit);
        (whole && form && self.token(self.len) == next.first).then_some(Segment { len: self.len + next.len, ..*self })
    }

    /// Compares `n` bytes from `i` here and from `j` there. Returns the first position at which their tokens differ.
    fn difference(&self, i: u32, other: &Segment, j: u32, n: u32) -> Option<u32> {
        let same_form = (self.unit, self.step) == (other.unit, other.step);
        if same_form && (self.unit == PLAIN || i % self.unit == j % self.unit) {
            return (self.token(i) != other.token(j)).then_some(0);
        }
        let mut k = 0;
        while k < n {
            if self.token(i + k) != other.token(j + k) {
                return Some(k);
            }
            k += self.left(i + k).min(other.left(j + k)).min(n - k);
        }
        None
    }
}

/// Ascending segments, joined where one continues another.
#[derive(Default)]
struct Joined(Vec<Piece>);

impl Joined {
    fn push(&mut self, at: u32, segment: Segment) {
        match self.0.last_mut() {
            Some((start, last))
                if *start + last.len == at
                    && let Some(both) = last.join(&segment) =>
            {
                *last = both
            }
            _ => self.0.push((at, segment)),
        }
    }

    /// Returns the byte after the last segment.
    fn end(&self) -> u32 {
        self.0.last().map_or(0, |(at, segment)| at + segment.len)
    }
}

/// The tokens of a block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    size: u32,
    segments: BTreeMap<u32, Segment>,
    /// No segment reaches beyond this byte.
    end: u32,
    written: bool,
    /// Whether a vertex stores into it.
    pub computed: bool,
}

impl Block {
    /// Creates a block that holds nothing.
    pub fn new(size: u32) -> Block {
        Block { size, segments: BTreeMap::new(), end: 0, written: false, computed: false }
    }

    /// Creates a block from ascending segments.
    pub fn of(size: u32, pieces: impl Iterator<Item = Piece>) -> Block {
        let mut joined = Joined::default();
        pieces.for_each(|(at, segment)| joined.push(at, segment));
        Block { end: joined.end(), segments: joined.0.into_iter().collect(), ..Block::new(size) }
    }

    /// Returns whether anything has been written into it since it was made.
    pub fn is_written(&self) -> bool {
        self.written
    }

    /// Returns `start` as an offset, if all `bytes` bytes from it are in the block.
    ///
    /// # Errors
    /// Some of the bytes lie outside.
    pub fn range(&self, start: i64, bytes: u64) -> Result<u32, String> {
        let end = start.saturating_add_unsigned(bytes);
        match u32::try_from(start) {
            Ok(first) if end <= self.size as i64 => Ok(first),
            _ => Err(format!("bytes {start}..{end} lie outside a block of {} bytes", self.size)),
        }
    }

    /// Returns the segment that holds a byte, with its start.
    fn at(&self, byte: u32) -> Option<(u32, &Segment)> {
        let (&start, segment) = self.segments.range(..=byte).next_back()?;
        (byte - start < segment.len).then_some((start, segment))
    }

    /// Returns the token of the first of `len` bytes, if they are consecutive tokens of one segment.
    pub fn plain_token(&self, start: u32, len: u32) -> Option<u64> {
        let (from, segment) = self.at(start)?;
        (start - from + len <= segment.len && segment.unit == PLAIN).then(|| segment.token(start - from))
    }

    /// Returns the segments of `len` bytes.
    pub fn read(&self, start: u32, len: u32) -> Pieces {
        let mut pieces = Pieces::new();
        self.read_to(start, len, |piece| pieces.push(piece));
        pieces
    }

    /// Calls `f` with each segment of `len` bytes.
    pub fn read_to(&self, start: u32, len: u32, mut f: impl FnMut(Piece)) {
        let end = start + len;
        let mut add = |at: u32, segment: &Segment| {
            let (from, to) = (start.max(at), end.min(at + segment.len));
            if from < to {
                segment.slice(from - at, to - at, |i, s| f((at + i - start, s)));
            }
        };
        if let Some((at, segment)) = self.at(start) {
            add(at, segment);
            if end - at <= segment.len {
                return;
            }
        }
        self.segments.range(start + 1..end.max(start + 1)).for_each(|(&at, segment)| add(at, segment));
    }

    /// Replaces `len` bytes.
    pub fn write(&mut self, start: u32, len: u32, pieces: &[Piece]) {
        self.written = true;
        if start >= self.end {
            return pieces.iter().for_each(|&(behind, segment)| self.append(start + behind, segment));
        }
        let last = self.segments.range(..start + len).next_back();
        if last.is_some_and(|(&at, segment)| at + segment.len > start) {
            self.cut(start);
            self.cut(start + len);
            while let Some((&at, _)) = self.segments.range(start..start + len).next() {
                self.segments.remove(&at);
            }
        }
        pieces.iter().for_each(|&(behind, segment)| self.insert(start + behind, segment));
    }

    /// Replaces ranges of bytes, which ascend and are disjoint.
    pub fn write_all<'p>(&mut self, writes: impl Iterator<Item = (Range<u32>, &'p [Piece])> + Clone) {
        let add = |joined: &mut Joined, (bytes, pieces): (Range<u32>, &[Piece])| {
            pieces.iter().for_each(|&(behind, segment)| joined.push(bytes.start + behind, segment));
        };
        self.written = true;
        // A few writes change the segments in place.
        if !self.segments.is_empty() && writes.clone().count() < self.segments.len() / FEW {
            return writes.for_each(|(bytes, pieces)| self.write(bytes.start, bytes.end - bytes.start, pieces));
        }
        let mut joined = Joined::default();
        let mut writes = writes.peekable();
        // Everything before this byte has been copied.
        let mut from = 0;
        for (at, segment) in std::mem::take(&mut self.segments) {
            let end = at + segment.len;
            from = from.max(at);
            // Writes before this segment, or into it.
            while let Some((bytes, pieces)) = writes.next_if(|w| w.0.start < end) {
                if from < bytes.start {
                    segment.slice(from - at, bytes.start - at, |i, s| joined.push(at + i, s));
                }
                from = from.max(bytes.end);
                add(&mut joined, (bytes, pieces));
            }
            if from < end {
                segment.slice(from - at, end - at, |i, s| joined.push(at + i, s));
            }
        }
        writes.for_each(|write| add(&mut joined, write));
        self.end = joined.end();
        self.segments = joined.0.into_iter().collect();
    }

    /// Adds a segment after all others.
    fn append(&mut self, at: u32, segment: Segment) {
        self.end = at + segment.len;
        if let Some(mut last) = self.segments.last_entry()
            && *last.key() + last.get().len == at
            && let Some(joined) = last.get().join(&segment)
        {
            *last.get_mut() = joined;
            return;
        }
        self.segments.insert(at, segment);
    }

    /// Adds a segment where there is none.
    fn insert(&mut self, mut at: u32, mut segment: Segment) {
        self.end = self.end.max(at + segment.len);
        if let Some((&start, previous)) = self.segments.range_mut(..at).next_back()
            && start + previous.len == at
            && let Some(joined) = previous.join(&segment)
        {
            *previous = joined;
            (at, segment) = (start, joined);
        } else {
            self.segments.insert(at, segment);
        }
        if let Some(joined) = self.segments.get(&(at + segment.len)).and_then(|next| segment.join(next)) {
            self.segments.remove(&(at + segment.len));
            self.segments.insert(at, joined);
        }
    }

    /// Splits the segment that contains the byte `at`, unless it begins there.
    fn cut(&mut self, at: u32) {
        let Some((&start, &segment)) = self.segments.range(..at).next_back() else { return };
        if at - start < segment.len {
            segment.slice(0, at - start, |i, s| _ = self.segments.insert(start + i, s));
            segment.slice(at - start, segment.len, |i, s| _ = self.segments.insert(start + i, s));
        }
    }

    /// Returns the first byte of a wanted segment, from `start` on, that the block does not hold.
    pub fn difference(&self, start: u32, wanted: &Segment) -> Option<u32> {
        let mut done = 0;
        while done < wanted.len {
            let Some((at, segment)) = self.at(start + done) else { return Some(done) };
            let from = start + done - at;
            let n = (segment.len - from).min(wanted.len - done);
            if let Some(k) = segment.difference(from, wanted, done, n) {
                return Some(done + k);
            }
            done += n;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tokens of a block one by one; 0 where it holds nothing.
    fn bytes(block: &Block) -> Vec<u64> {
        let mut all = vec![0; block.size as usize];
        for (&at, segment) in &block.segments {
            for i in 0..segment.len {
                assert_eq!(std::mem::replace(&mut all[(at + i) as usize], segment.token(i)), 0, "segments overlap");
            }
        }
        all
    }

    const SIZE: u32 = 64;

    proptest! {
        /// Segments behave as an array of tokens does.
        #[test]
        fn a_block_is_an_array(
            ops in proptest::collection::vec((0u8..4, 0..SIZE, 1..SIZE, 0..SIZE, 1u32..5, -6i64..9), 1..30),
        ) {
            let mut block = Block::new(SIZE);
            let mut array = vec![0u64; SIZE as usize];
            for (k, (kind, a, n, b, unit, step)) in ops.into_iter().enumerate() {
                let n = n.min(SIZE - a).min(SIZE - b);
                match kind {
                    0 => {
                        let count = n.div_ceil(unit).min((SIZE - a) / unit);
                        if count == 0 { continue }
                        let segment = Segment::pieces(1000 + b as u64, unit, step, count);
                        block.write(a, segment.len, &[(0, segment)]);
                        (0..segment.len).for_each(|i| array[(a + i) as usize] = segment.token(i));
                        prop_assert_eq!(block.difference(a, &segment), None);
                    }
                    // The first bytes, to two places in ascending order.
                    3 => {
                        let (n, pieces) = (n.min(SIZE / 4), block.read(0, n.min(SIZE / 4)));
                        let copied = array[..n as usize].to_vec();
                        let (low, high) = ((a.min(b)) % (SIZE / 2 - n + 1), SIZE / 2 + (a.max(b)) % (SIZE / 2 - n + 1));
                        let writes = [low, high].map(|at| (at..at + n, &pieces[..]));
                        block.write_all(writes.iter().skip(k % 2).cloned());
                        for at in [low, high].into_iter().skip(k % 2) {
                            array[at as usize..(at + n) as usize].copy_from_slice(&copied);
                        }
                    }
                    1 => {
                        let pieces = block.read(a, n);
                        block.write(b, n, &pieces);
                        let copied = array[a as usize..(a + n) as usize].to_vec();
                        array[b as usize..(b + n) as usize].copy_from_slice(&copied);
                    }
                    _ => {
                        let wanted = Segment::pieces(1000 + b as u64, unit, step, (n / unit).max(1));
                        if a + wanted.len > SIZE { continue }
                        let differs = |i: &u32| array[(a + i) as usize] != wanted.token(*i);
                        prop_assert_eq!(block.difference(a, &wanted), (0..wanted.len).find(differs));
                    }
                }
                prop_assert_eq!(&bytes(&block), &array);
            }
        }
    }
}
