//! Construction of short lists of moves, and their division among threads.
//!
//! Invariant: a finished list moves the same bytes to the same addresses as the original list. Its order may differ, so
//! it is used only for copies and exchanges, whose order does not matter.

use crate::arena::Move;
use std::ops::Range;

/// Maximal bytes or pieces of one move, so that sums do not overflow.
const MOST: u64 = 1 << 30;
/// Cost of a list, in bytes, below which a single thread performs it.
const WORTH_SHARING: u64 = 64 << 10;
/// Overhead of a move, in bytes.
const PER_MOVE: u64 = 16;
/// Minimal cost of a piece of a strided move, in bytes.
const PER_PIECE: u64 = 8;

/// A move of fewer pieces takes as much memory as separate moves of its pieces.
const FEW_PIECES: u32 = 5;

/// Elements at equal distances, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// First byte.
    pub start: i64,
    /// Bytes from one element to the next.
    pub step: i64,
}

/// Appends the moves of `count` elements of `size` bytes: one piece if they are contiguous on both sides.
pub(crate) fn push_elements(list: &mut Vec<Move>, from: Row, to: Row, size: u32, count: u64) {
    let contiguous = count == 1 || (from.step == size as i64 && to.step == size as i64);
    let most = MOST / size as u64;
    for first in (0..count).step_by(most as usize) {
        let n = (count - first).min(most) as u32;
        let (from_start, to_start) = (from.start + first as i64 * from.step, to.start + first as i64 * to.step);
        list.push(match contiguous {
            true => Move { from: from_start, to: to_start, bytes: size * n, count: 1, from_step: 0, to_step: 0 },
            false => {
                Move { from: from_start, to: to_start, bytes: size, count: n, from_step: from.step, to_step: to.step }
            }
        });
    }
}

/// Coalesces a list whose moves are all performed, and sorts single pieces by length, so that one loop copies all
/// pieces of one length.
pub(crate) fn by_length(list: Vec<Move>) -> Vec<Move> {
    // Any two moves of one length make a move of two pieces, which gains nothing.
    let pieces = |m: Move| {
        let cut = if m.count < FEW_PIECES { m.count } else { 1 };
        (0..cut as i64).map(move |i| match cut {
            1 => m,
            _ => Move {
                from: m.from + i * m.from_step,
                to: m.to + i * m.to_step,
                count: 1,
                from_step: 0,
                to_step: 0,
                ..m
            },
        })
    };
    let mut list: Vec<Move> = coalesce(list).into_iter().flat_map(pieces).collect();
    list.sort_by_key(|m| if m.count == 1 { m.bytes } else { u32::MAX });
    list
}

/// Joins moves that continue one another, first to longer pieces, then to more pieces. Drops moves onto themselves.
pub(crate) fn coalesce(list: Vec<Move>) -> Vec<Move> {
    let moving = |m: &Move| (m.from, m.from_step) != (m.to, m.to_step);
    let longer = join(list.into_iter().filter(moving), lengthen);
    join(longer.into_iter(), repeat)
}

fn join(list: impl Iterator<Item = Move>, joined: impl Fn(&Move, &Move) -> Option<Move>) -> Vec<Move> {
    let mut out: Vec<Move> = Vec::new();
    for m in list {
        match out.last_mut() {
            Some(last) => match joined(last, &m) {
                Some(both) => *last = both,
                None => out.push(m),
            },
            None => out.push(m),
        }
    }
    out
}

fn lengthen(a: &Move, b: &Move) -> Option<Move> {
    let bytes = a.bytes as u64 + b.bytes as u64;
    let follows = b.from - a.from == a.bytes as i64 && b.to - a.to == a.bytes as i64;
    (a.count == 1 && b.count == 1 && follows && bytes <= MOST).then_some(Move { bytes: bytes as u32, ..*a })
}

fn repeat(a: &Move, b: &Move) -> Option<Move> {
    let count = a.count as i64;
    let (from_step, to_step) = match count {
        1 => (b.from - a.from, b.to - a.to),
        _ => (a.from_step, a.to_step),
    };
    let follows = b.from - a.from == count * from_step && b.to - a.to == count * to_step;
    let fits = a.bytes == b.bytes && b.count == 1 && follows && (a.count as u64) < MOST;
    fits.then_some(Move { count: a.count + 1, from_step, to_step, ..*a })
}

/// Cuts a list into at most `threads` ranges of about equal cost; long moves are split for it.
pub(crate) fn share(list: Vec<Move>, threads: usize) -> (Vec<Move>, Vec<Range<usize>>) {
    let total: u64 = list.iter().map(cost).sum();
    if threads <= 1 || total < WORTH_SHARING {
        let all = 0..list.len();
        return (list, vec![all]);
    }
    let grain = (total / threads as u64 / 4).max(4096);
    let list: Vec<Move> = list.into_iter().flat_map(|m| split(m, grain)).collect();
    let mut parts = Vec::with_capacity(threads);
    let (mut start, mut sum) = (0, 0);
    for (i, m) in list.iter().enumerate() {
        sum += cost(m);
        if sum >= total * (parts.len() as u64 + 1) / threads as u64 && parts.len() + 1 < threads {
            parts.push(start..i + 1);
            start = i + 1;
        }
    }
    parts.push(start..list.len());
    (list, parts)
}

/// Returns the cost of a move, in bytes.
pub(crate) fn cost(m: &Move) -> u64 {
    PER_MOVE + m.count as u64 * if m.count == 1 { m.bytes as u64 } else { (m.bytes as u64).max(PER_PIECE) }
}

/// Splits a move into several of about `grain` bytes each.
fn split(m: Move, grain: u64) -> impl Iterator<Item = Move> {
    let one = m.count == 1;
    let (units, per) = if one { (m.bytes as u64, grain) } else { (m.count as u64, (grain / m.bytes as u64).max(1)) };
    (0..units.div_ceil(per)).map(move |k| {
        let n = per.min(units - k * per) as u32;
        let at = (k * per) as i64;
        match one {
            true => Move { from: m.from + at, to: m.to + at, bytes: n, ..m },
            false => Move { from: m.from + at * m.from_step, to: m.to + at * m.to_step, count: n, ..m },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (from, to) of every byte.
    fn bytes(list: &[Move]) -> Vec<(i64, i64)> {
        let piece = |m: &Move, i: i64| (m.from + i * m.from_step, m.to + i * m.to_step, m.bytes as i64);
        let pieces = list.iter().flat_map(|m| (0..m.count as i64).map(move |i| piece(m, i)));
        let mut all: Vec<_> = pieces.flat_map(|(f, t, n)| (0..n).map(move |b| (f + b, t + b))).collect();
        all.sort_unstable();
        all
    }

    fn moves(from: (i64, i64), to: (i64, i64), size: u32, count: u64) -> Vec<Move> {
        let mut out = Vec::new();
        push_elements(&mut out, Row { start: from.0, step: from.1 }, Row { start: to.0, step: to.1 }, size, count);
        out
    }

    #[test]
    fn elements_arrive_whatever_their_distances() {
        for (from, to) in [((0, 4), (900, 4)), ((100, -4), (900, 4)), ((8, 0), (900, 12)), ((0, 12), (900, -8))] {
            let byte = |b: i64| (0..7).map(move |i| (from.0 + i * from.1 + b, to.0 + i * to.1 + b));
            let mut expected: Vec<_> = (0..4).flat_map(byte).collect();
            expected.sort_unstable();
            assert_eq!(bytes(&moves(from, to, 4, 7)), expected);
        }
        assert_eq!(moves((0, 4), (900, 4), 4, 7).len(), 1);
    }

    #[test]
    fn a_regular_pattern_becomes_one_move() {
        let one = |i: i64| moves((i / 4 * 64 + i % 4 * 4, 4), (10_000 + 4 * i, 4), 4, 1);
        let list: Vec<Move> = (0..40).flat_map(one).collect();
        let short = coalesce(list.clone());
        assert_eq!(short, [Move { from: 0, to: 10_000, bytes: 16, count: 10, from_step: 64, to_step: 16 }]);
        assert_eq!(bytes(&short), bytes(&list));
    }

    #[test]
    fn single_pieces_stand_by_length() {
        let mut list: Vec<Move> =
            (0..60).flat_map(|i| moves((100 * i, 4), (10_000 + 50 * (i * 7 % 60), 4), 4, 1 + i as u64 % 3)).collect();
        list.extend((0..20).flat_map(|i| moves((40_000 + 64 * i, 4), (50_000 + 64 * (i * 7 % 20), 4), 4, 4)));
        list.extend(moves((20_000, 8), (30_000, 4), 4, 9));
        let sorted = by_length(list.clone());
        assert_eq!(bytes(&sorted), bytes(&list));
        assert!(sorted.is_sorted_by_key(|m| if m.count == 1 { m.bytes } else { u32::MAX }));
        assert_eq!(sorted.iter().filter(|m| m.count > 1).map(|m| m.count).collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn a_move_onto_itself_is_dropped() {
        let m = Move { from: 8, to: 8, bytes: 64, count: 1, from_step: 0, to_step: 0 };
        assert_eq!(coalesce(vec![m]), []);
    }

    #[test]
    fn parts_cover_the_list_and_split_what_is_long() {
        let long = Move { from: 0, to: 1 << 20, bytes: 300_001, count: 1, from_step: 0, to_step: 0 };
        let strided = Move { from: 2 << 20, to: 3 << 20, bytes: 4, count: 9_999, from_step: 12, to_step: 4 };
        for threads in 1..5 {
            let (list, parts) = share(vec![long, strided], threads);
            assert_eq!(bytes(&list), bytes(&[long, strided]));
            assert_eq!(parts.len(), threads);
            assert!(parts.windows(2).all(|w| w[0].end == w[1].start));
            assert_eq!((parts[0].start, parts[threads - 1].end), (0, list.len()));
        }
    }
}
