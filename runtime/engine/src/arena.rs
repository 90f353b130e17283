//! One block of host memory that holds all data of a compiled mode, and the movement of bytes inside it.
//!
//! # Note: Shared memory
//! Threads write to one arena at the same time through a shared reference. That is sound because of what they are
//! given to do. A [`Task`](crate::task::Task) is cut so that its threads never touch a common byte of which one is
//! written: vertices of one compute set, because it is race-free (`check-races`) and each landing buffer belongs to
//! one vertex (`plan-transfers`); moves of one list, because no byte is written twice, or both read and written, in
//! one copy or one exchange phase. Between tasks, only the thread that owns the engine touches the arena, and the
//! pool's barrier orders that with what the other threads did.
//!
//! Invariant: every access stays inside the block; this is checked here, for single accesses when they happen and for
//! lists of moves when they are made.

use crate::error::EngineError;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Of the block; a cache line.
const ALIGN: usize = 64;

/// A block of zeroed memory. Pages that are never touched cost nothing.
#[derive(Debug)]
pub(crate) struct Arena {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block is owned by the arena and is not tied to a thread; see the note on shared memory for concurrent
// access through a shared reference.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// `bytes` zeros; at most `limit`.
    pub(crate) fn zeroed(bytes: u64, limit: u64) -> Result<Arena, EngineError> {
        let refused = EngineError::HostMemory { needed: bytes, limit };
        if bytes > limit {
            return Err(refused);
        }
        let Some(layout) = usize::try_from(bytes).ok().and_then(|n| Layout::from_size_align(n.max(ALIGN), ALIGN).ok())
        else {
            return Err(refused);
        };
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        NonNull::new(base).map(|base| Arena { base, layout }).ok_or(refused)
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.layout.size() as u64
    }

    /// The first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Reads `into.len() / size` elements of `size` bytes that lie `step` bytes apart, from byte `at` on.
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
    pub(crate) fn perform(&self, moves: &Moves, range: std::ops::Range<usize>) {
        assert!(moves.reach <= self.bytes(), "a move of the engine leaves its memory");
        for m in &moves.list[range] {
            // SAFETY: every move of the list lies below its `reach`, and no other thread touches what it writes, nor
            // writes what it reads (see the note on shared memory).
            unsafe { self.perform_one(m) };
        }
    }

    /// # Safety
    /// The move lies inside, and no other thread touches what it writes or writes what it reads.
    #[inline]
    unsafe fn perform_one(&self, m: &Move) {
        // SAFETY: passed on to the caller.
        unsafe {
            match m.bytes {
                _ if m.count == 1 => std::ptr::copy(self.byte(m.from), self.byte(m.to), m.bytes as usize),
                1 => self.pieces::<[u8; 1]>(m),
                2 => self.pieces::<[u8; 2]>(m),
                4 => self.pieces::<[u8; 4]>(m),
                8 => self.pieces::<[u8; 8]>(m),
                16 => self.pieces::<[u8; 16]>(m),
                n => {
                    for i in 0..m.count as i64 {
                        let (from, to) = (m.from + i * m.from_step, m.to + i * m.to_step);
                        std::ptr::copy(self.byte(from), self.byte(to), n as usize);
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

    /// The byte at an offset that is known to be inside.
    fn byte(&self, at: i64) -> *mut u8 {
        self.base.as_ptr().wrapping_add(at as usize)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no reference outlives the arena.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// Whether `count` pieces of `size` bytes, `step` bytes apart from byte `at` on, lie below `end`.
pub(crate) fn inside(at: u64, step: i64, size: u64, count: u64, end: u64) -> bool {
    let span = step as i128 * (count as i128 - 1);
    count == 0 || (at as i128 + span.min(0) >= 0 && at as i128 + span.max(0) + size as i128 <= end as i128)
}

/// Bytes moved inside the arena: `count` pieces of `bytes` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    /// First byte of the first piece.
    pub from: i64,
    /// First byte of where it goes.
    pub to: i64,
    /// Bytes of each piece.
    pub bytes: u32,
    /// How many pieces.
    pub count: u32,
    /// Bytes from piece to piece at the source.
    pub from_step: i64,
    /// Bytes from piece to piece at the destination.
    pub to_step: i64,
}

/// A list of moves that was checked to stay below a size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    list: Vec<Move>,
    reach: u64,
}

impl Moves {
    /// Checks that all moves lie in a block of `bytes` bytes.
    pub(crate) fn new(list: Vec<Move>, bytes: u64) -> Result<Moves, EngineError> {
        let fits = |m: &Move| {
            let end = |at: i64, step: i64| {
                u64::try_from(at).is_ok_and(|at| inside(at, step, m.bytes as u64, m.count as u64, bytes))
            };
            end(m.from, m.from_step) && end(m.to, m.to_step)
        };
        match list.iter().all(fits) {
            true => Ok(Moves { list, reach: bytes }),
            false => Err(EngineError::Internal("a move leaves the memory of the engine".to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(bytes: &[u8]) -> Arena {
        let arena = Arena::zeroed(bytes.len() as u64, 1 << 20).unwrap();
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
        for bytes in [1u32, 2, 3, 4, 8, 12, 16] {
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
    fn elements_at_a_distance_are_read_and_written_in_order() {
        let a = arena(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut read = [0; 4];
        a.read(6, -4, 2, &mut read);
        assert_eq!(read, [7, 8, 3, 4]);
        a.write(0, 3, 1, &[10, 11, 12]);
        assert_eq!(content(&a, 8), [10, 2, 3, 11, 5, 6, 12, 8]);
    }

    #[test]
    fn moves_that_leave_the_block_are_refused() {
        let m = Move { from: 0, to: 8, bytes: 4, count: 3, from_step: 4, to_step: -4 };
        assert!(Moves::new(vec![m], 20).is_ok());
        assert!(Moves::new(vec![m], 11).is_err());
        assert!(Moves::new(vec![Move { to: 7, ..m }], 20).is_err());
        assert!(Arena::zeroed(65, 64).is_err());
    }
}
