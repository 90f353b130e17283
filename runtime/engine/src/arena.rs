//! One block of host memory that holds all data of a compiled mode, and the movement of bytes inside it.
//!
//! # Note: Shared memory
//! Threads write to one arena at the same time through a shared reference. This is sound because a
//! [`Task`](crate::task::Task) is cut so that no thread touches a byte that another one writes: vertices of one compute
//! set, because it is race-free (`check-races`) and each landing buffer belongs to one vertex (`plan-transfers`); moves
//! of one list, because no byte is written twice, or both read and written, in one copy or one exchange phase. Between
//! tasks, only the thread that owns the engine touches the arena, and the pool's barrier orders its accesses with those
//! of the other threads.
//!
//! Invariant: every access stays inside the block. Single accesses are checked on each call, lists of moves when they
//! are made.

use crate::error::EngineError;
use memmap2::MmapMut;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment of the blocks: a page, as the host layout assumes.
const ALIGN: usize = 4096;

/// A block of zeroed memory for each replica, one after the other, in pages from the system: those that are never
/// touched cost nothing. An allocator gives no such promise; mimalloc writes the zeros of a large block itself.
///
/// All functions access the block of the replica that was selected last.
#[derive(Debug)]
pub(crate) struct Arena {
    first: NonNull<u8>,
    /// Bytes of a block.
    bytes: u64,
    /// Bytes from one block to the next.
    stride: usize,
    replicas: u32,
    /// Bytes from the first block to the selected one.
    selected: AtomicUsize,
    /// The pages, which are accessed through `first` alone.
    _pages: MmapMut,
}

// SAFETY: the block is owned by the arena and is not tied to a thread; see the note on shared memory for concurrent
// access through a shared reference.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Allocates `bytes` zeros for each of some replicas, at most `limit` in all.
    pub(crate) fn zeroed(bytes: u64, replicas: u32, limit: u64) -> Result<Arena, EngineError> {
        let stride =
            if replicas == 1 { bytes } else { bytes.checked_next_multiple_of(ALIGN as u64).unwrap_or(u64::MAX) };
        let needed = stride.saturating_mul(u64::from(replicas));
        let refused = EngineError::HostMemory { needed, limit };
        if needed > limit {
            return Err(refused);
        }
        let Ok(length) = usize::try_from(needed) else { return Err(refused) };
        let Ok(mut pages) = MmapMut::map_anon(length) else { return Err(refused) };
        // Huge pages are a matter of speed alone.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::HugePage);
        let Some(first) = NonNull::new(pages.as_mut_ptr()) else { return Err(refused) };
        Ok(Arena { first, bytes, stride: stride as usize, replicas, selected: AtomicUsize::new(0), _pages: pages })
    }

    /// Selects the block of a replica; for use between tasks only.
    pub(crate) fn select(&self, replica: u32) {
        assert!(replica < self.replicas, "there is no such replica");
        self.selected.store(replica as usize * self.stride, Ordering::Relaxed);
    }

    /// Makes the blocks of all other replicas equal to that of the first one.
    pub(crate) fn replicate(&self) {
        for replica in 1..self.replicas as usize {
            // SAFETY: both blocks are inside the allocation and do not overlap; nothing else touches the arena now.
            unsafe {
                let first = self.first.as_ptr();
                std::ptr::copy_nonoverlapping(first, first.add(replica * self.stride), self.bytes as usize);
            }
        }
    }

    /// Returns the size of a block in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the address of the first byte of the selected block.
    pub(crate) fn base(&self) -> *mut u8 {
        self.first.as_ptr().wrapping_add(self.selected.load(Ordering::Relaxed))
    }

    /// Reads `into.len() / size` elements of `size` bytes at a stride of `step` bytes, from byte `at` on.
    pub(crate) fn read(&self, at: u64, step: i64, size: usize, into: &mut [u8]) {
        let count = (into.len() / size) as u64;
        self.check(at, step, size as u64, count);
        if step == size as i64 {
            // SAFETY: checked to be inside; nothing else touches the arena between tasks.
            unsafe { std::ptr::copy_nonoverlapping(self.byte(at as i64), into.as_mut_ptr(), into.len()) };
            return;
        }
        for (i, element) in into.chunks_exact_mut(size).enumerate() {
            let from = at as i64 + i as i64 * step;
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(self.byte(from), element.as_mut_ptr(), size) };
        }
    }

    /// Writes elements where [`Arena::read`] would read them.
    pub(crate) fn write(&self, at: u64, step: i64, size: usize, from: &[u8]) {
        let count = (from.len() / size) as u64;
        self.check(at, step, size as u64, count);
        if step == size as i64 {
            // SAFETY: checked to be inside; nothing else touches the arena between tasks.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.byte(at as i64), from.len()) };
            return;
        }
        for (i, element) in from.chunks_exact(size).enumerate() {
            let to = at as i64 + i as i64 * step;
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(element.as_ptr(), self.byte(to), size) };
        }
    }

    fn check(&self, at: u64, step: i64, size: u64, count: u64) {
        assert!(inside(at, step, size, count, self.bytes()), "an access of the engine leaves its memory");
    }

    /// Performs some of a list's moves, in order.
    pub(crate) fn perform(&self, moves: &Moves, range: Range<usize>) {
        assert!(moves.reach <= self.bytes(), "a move of the engine leaves its memory");
        for group in moves.groups_in(&range) {
            let own = group.range.start.max(range.start)..group.range.end.min(range.end);
            // SAFETY: every move of the list, and so every pair, lies below its `reach`, and no other thread touches
            // what it writes, nor writes what it reads (see the note on shared memory).
            unsafe {
                match group.bytes {
                    1 => self.each::<[u8; 1]>(&moves.pairs[own]),
                    2 => self.each::<[u8; 2]>(&moves.pairs[own]),
                    4 => self.each::<[u8; 4]>(&moves.pairs[own]),
                    8 => self.each::<[u8; 8]>(&moves.pairs[own]),
                    16 => self.each::<[u8; 16]>(&moves.pairs[own]),
                    32 => self.each::<[u8; 32]>(&moves.pairs[own]),
                    64 => self.each::<[u8; 64]>(&moves.pairs[own]),
                    128 => self.each::<[u8; 128]>(&moves.pairs[own]),
                    _ => moves.list[own].iter().for_each(|m| self.perform_one(m)),
                }
            }
        }
    }

    /// Performs all moves of a list from the block of one replica to that of another.
    pub(crate) fn perform_between(&self, moves: &Moves, sender: u32, receiver: u32) {
        assert!(moves.reach <= self.bytes() && sender.max(receiver) < self.replicas, "a move leaves the memory");
        let block = |replica: u32| self.first.as_ptr().wrapping_add(replica as usize * self.stride);
        let (source, target) = (block(sender), block(receiver));
        for m in &moves.list {
            for i in 0..i64::from(m.count) {
                let (from, to) = (m.from + i * m.from_step, m.to + i * m.to_step);
                let (from, to) = (source.wrapping_add(from as usize), target.wrapping_add(to as usize));
                // SAFETY: every move of the list lies below its `reach`, which no block is smaller than, and no other
                // thread touches what it writes, nor writes what it reads (see the note on shared memory).
                unsafe { piece(from, to, m.bytes as usize) };
            }
        }
    }

    /// # Safety
    /// A `T` at each address lies inside, and no other thread touches what is written or writes what is read.
    #[inline]
    unsafe fn each<T: Copy>(&self, pairs: &[Pair]) {
        for p in pairs {
            let (from, to) = (self.byte(p.from as i64).cast::<T>(), self.byte(p.to as i64).cast::<T>());
            // SAFETY: passed on to the caller; byte arrays need no alignment.
            unsafe { to.write_unaligned(from.read_unaligned()) };
        }
    }

    /// # Safety
    /// The move lies inside, and no other thread touches what it writes or writes what it reads.
    #[inline]
    unsafe fn perform_one(&self, m: &Move) {
        // SAFETY: passed on to the caller.
        unsafe {
            match m.bytes {
                _ if m.count == 1 => piece(self.byte(m.from), self.byte(m.to), m.bytes as usize),
                1 => self.pieces::<[u8; 1]>(m),
                2 => self.pieces::<[u8; 2]>(m),
                4 => self.pieces::<[u8; 4]>(m),
                8 => self.pieces::<[u8; 8]>(m),
                16 => self.pieces::<[u8; 16]>(m),
                32 => self.pieces::<[u8; 32]>(m),
                64 => self.pieces::<[u8; 64]>(m),
                128 => self.pieces::<[u8; 128]>(m),
                n => {
                    for i in 0..m.count as i64 {
                        let (from, to) = (m.from + i * m.from_step, m.to + i * m.to_step);
                        piece(self.byte(from), self.byte(to), n as usize);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Arena::perform_one`].
    #[inline]
    unsafe fn pieces<T: Copy>(&self, m: &Move) {
        let (mut from, mut to) = (m.from, m.to);
        for _ in 0..m.count {
            // SAFETY: passed on to the caller; byte arrays need no alignment.
            unsafe { self.byte(to).cast::<T>().write_unaligned(self.byte(from).cast::<T>().read_unaligned()) };
            (from, to) = (from + m.from_step, to + m.to_step);
        }
    }

    /// Returns the address of the byte at an offset that is known to be inside.
    fn byte(&self, at: i64) -> *mut u8 {
        self.base().wrapping_add(at as usize)
    }
}

/// Bytes that are copied at once if the copy of the C library is slow.
type CopyUnit = [u8; 64];
/// Length from which the C library may copy with one string instruction.
const BY_STRING: usize = 2048;
/// The string instruction is slow if the destination is less than this far after the source, modulo a page.
const CLOSE: usize = 16;
const PAGE: usize = 4096;

/// Copies `n` bytes. The x86 string instruction, with which the C library copies some kilobytes, is ten times slower
/// than loads and stores if the destination is a few bytes after the source modulo a page, as in rows that shift by an
/// element.
///
/// # Safety
/// Both ranges lie inside one block, and no other thread touches what is written or writes what is read.
#[inline]
unsafe fn piece(from: *const u8, to: *mut u8, n: usize) {
    let ahead = (to as usize).wrapping_sub(from as usize) % PAGE;
    let disjoint = (to as usize).abs_diff(from as usize) >= n;
    // SAFETY: passed on to the caller; units need no alignment, and all of them lie in the ranges.
    unsafe {
        if n < BY_STRING || !(1..CLOSE).contains(&ahead) || !disjoint {
            return std::ptr::copy(from, to, n);
        }
        let unit =
            |at: usize| to.add(at).cast::<CopyUnit>().write_unaligned(from.add(at).cast::<CopyUnit>().read_unaligned());
        (0..n / size_of::<CopyUnit>()).for_each(|k| unit(k * size_of::<CopyUnit>()));
        unit(n - size_of::<CopyUnit>());
    }
}

/// Returns whether `count` pieces of `size` bytes, at a stride of `step` bytes from byte `at` on, are below `end`.
pub(crate) fn inside(at: u64, step: i64, size: u64, count: u64, end: u64) -> bool {
    let span = step as i128 * (count as i128 - 1);
    count == 0 || (at as i128 + span.min(0) >= 0 && at as i128 + span.max(0) + size as i128 <= end as i128)
}

/// A move inside the arena: `count` pieces of `bytes` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    /// First byte of the first piece.
    pub from: i64,
    /// First byte of its destination.
    pub to: i64,
    /// Bytes of each piece.
    pub bytes: u32,
    /// The number of pieces.
    pub count: u32,
    /// Bytes from piece to piece at the source.
    pub from_step: i64,
    /// Bytes from piece to piece at the destination.
    pub to_step: i64,
}

/// Source and destination of one piece, in an arena below 4 GiB.
#[derive(Clone, Copy, Debug)]
struct Pair {
    from: u32,
    to: u32,
}

/// Neighbouring moves of a list that one loop performs.
#[derive(Clone, Debug)]
struct EqualMoves {
    range: Range<usize>,
    /// Bytes of each of their single pieces; 0 if they are performed one by one.
    bytes: u32,
}

/// A list of moves that was checked to stay below a size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    list: Vec<Move>,
    /// One pair per move if there are groups, otherwise none. A pair takes less of the caches than a move.
    pairs: Vec<Pair>,
    /// The groups, ascending; together they are the whole list.
    groups: Vec<EqualMoves>,
    reach: u64,
}

/// Length from which neighbouring moves are a group.
const FEWEST_EQUAL: usize = 8;

impl Moves {
    /// Returns the groups that overlap a range.
    fn groups_in(&self, range: &Range<usize>) -> &[EqualMoves] {
        let first = self.groups.partition_point(|a| a.range.end <= range.start);
        let last = self.groups.partition_point(|a| a.range.start < range.end);
        &self.groups[first..last.max(first)]
    }

    /// Returns all moves.
    pub(crate) fn list(&self) -> &[Move] {
        &self.list
    }

    /// Checks that all moves lie in a block of `bytes` bytes.
    pub(crate) fn new(list: Vec<Move>, bytes: u64) -> Result<Moves, EngineError> {
        let fits = |m: &Move| {
            let end = |at: i64, step: i64| {
                u64::try_from(at).is_ok_and(|at| inside(at, step, m.bytes as u64, m.count as u64, bytes))
            };
            end(m.from, m.from_step) && end(m.to, m.to_step)
        };
        match list.iter().all(fits) {
            true => {
                let groups = groups(&list, bytes);
                let place = |m: &Move| Pair { from: m.from as u32, to: m.to as u32 };
                let some = groups.iter().any(|a| a.bytes > 0);
                let pairs = if some { list.iter().map(place).collect() } else { Vec::new() };
                Ok(Moves { list, pairs, groups, reach: bytes })
            }
            false => Err(EngineError::Internal("a move leaves the memory of the engine".to_string())),
        }
    }
}

/// Groups neighbouring moves of one piece each and the same length.
fn groups(list: &[Move], reach: u64) -> Vec<EqualMoves> {
    let single = |m: &Move| match m.bytes {
        1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 if m.count == 1 && reach <= u32::MAX as u64 => m.bytes,
        _ => 0,
    };
    let mut groups: Vec<EqualMoves> = Vec::new();
    let mut start = 0;
    for own in list.chunk_by(|a, b| single(a) == single(b)) {
        let range = start..start + own.len();
        start = range.end;
        let bytes = if own.len() < FEWEST_EQUAL { 0 } else { single(&own[0]) };
        match groups.last_mut() {
            Some(last) if last.bytes == 0 && bytes == 0 => last.range.end = range.end,
            _ => groups.push(EqualMoves { range, bytes }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(bytes: &[u8]) -> Arena {
        let arena = Arena::zeroed(bytes.len() as u64, 1, 1 << 20).unwrap();
        arena.write(0, 1, 1, bytes);
        arena
    }

    fn content(arena: &Arena, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        arena.read(0, 1, 1, &mut bytes);
        bytes
    }

    #[test]
    fn pieces_of_every_width_arrive() {
        for bytes in [1u32, 2, 3, 4, 8, 12, 16, 20] {
            let start: Vec<u8> = (0..200).collect();
            let a = arena(&start);
            let m = Move { from: 60, to: 100, bytes, count: 3, from_step: -20, to_step: 30 };
            a.perform(&Moves::new(vec![m], 200).unwrap(), 0..1);
            let mut expected = start.clone();
            for i in 0..3 {
                let n = bytes as usize;
                expected[100 + 30 * i..100 + 30 * i + n].copy_from_slice(&start[60 - 20 * i..60 - 20 * i + n]);
            }
            assert_eq!(content(&a, 200), expected, "{bytes} bytes");
        }
    }

    #[test]
    fn long_pieces_arrive_however_far_they_shift() {
        let start: Vec<u8> = (0..20_000u32).map(|n| (n * 7 + n / 256) as u8).collect();
        for n in [2047usize, 2048, 2049, 4095, 5000] {
            for to in (8192 - 2..8192 + 18).chain([1, 5, 300]) {
                let a = arena(&start);
                let m = Move { from: 0, to: to as i64, bytes: n as u32, count: 1, from_step: 0, to_step: 0 };
                a.perform(&Moves::new(vec![m], 20_000).unwrap(), 0..1);
                let mut expected = start.clone();
                expected.copy_within(0..n, to);
                assert_eq!(content(&a, 20_000), expected, "{n} bytes to {to}");
            }
        }
    }

    #[test]
    fn neighbours_of_one_length_arrive_whatever_part_is_asked_for() {
        let lengths = [[4; 20].as_slice(), &[64; 9], &[3, 5, 128], &[128; 12], &[1; 8], &[8; 7]].concat();
        let total: u32 = lengths.iter().sum();
        let start: Vec<u8> = (0..2 * total).map(|b| (b % 251) as u8).collect();
        let mut at = 0;
        let list: Vec<Move> = (lengths.iter().map(|&bytes| {
            at += bytes as i64;
            let from = at - bytes as i64;
            Move { from, to: total as i64 + from, bytes, count: 1, from_step: 0, to_step: 0 }
        }))
        .collect();
        let moves = Moves::new(list.clone(), 2 * total as u64).unwrap();
        for range in [0..59, 0..1, 3..25, 19..21, 28..30, 29..33, 40..59, 7..7] {
            let a = arena(&start);
            a.perform(&moves, range.clone());
            let mut expected = start.clone();
            for m in &list[range] {
                expected.copy_within(m.from as usize..m.from as usize + m.bytes as usize, m.to as usize);
            }
            assert_eq!(content(&a, start.len()), expected);
        }
    }

    #[test]
    fn elements_at_a_distance_are_read_and_written_in_order() {
        let a = arena(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut read = [0; 4];
        a.read(6, -4, 2, &mut read);
        assert_eq!(read, [7, 8, 3, 4]);
        a.write(0, 3, 1, &[10, 11, 12]);
        assert_eq!(content(&a, 8), [10, 2, 3, 11, 5, 6, 12, 8]);
    }

    #[test]
    fn replicas_have_blocks_of_their_own() {
        let a = Arena::zeroed(8, 3, 1 << 20).unwrap();
        a.write(0, 1, 1, &[1, 2, 3, 4, 5, 6, 7, 8]);
        a.replicate();
        a.select(2);
        a.perform(
            &Moves::new(vec![Move { from: 0, to: 4, bytes: 4, count: 1, from_step: 0, to_step: 0 }], 8).unwrap(),
            0..1,
        );
        assert_eq!(content(&a, 8), [1, 2, 3, 4, 1, 2, 3, 4]);
        a.select(1);
        assert_eq!(content(&a, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn moves_that_leave_the_block_are_refused() {
        let m = Move { from: 0, to: 8, bytes: 4, count: 3, from_step: 4, to_step: -4 };
        assert!(Moves::new(vec![m], 20).is_ok());
        assert!(Moves::new(vec![m], 11).is_err());
        assert!(Moves::new(vec![Move { to: 7, ..m }], 20).is_err());
        assert!(Arena::zeroed(65, 1, 64).is_err());
        assert!(Arena::zeroed(64, 2, 4096).is_err());
    }
}
