//! Small pieces from one tile to another, at any distances, that travel together.
//!
//! The sender copies them to its send buffer in the order of their destinations. Where these are contiguous, the pieces
//! travel to them directly; otherwise they travel to a staging buffer, from which the receiver copies them.
//!
//! # Note: Only where code is dear
//! The copies take time, and the receiver needs memory for the staging buffer while the step runs. A piece that is sent
//! by itself takes exchange code at both ends, which stays in memory for good. So pieces are packed for tiles that
//! would receive very many of them. A piece that several tiles receive is sent once as it is.
//!
//! Invariant: a send buffer takes pieces of variables and landing buffers, never of send buffers.

use super::buffers::{BufferUse, Buffers, PlanError};
use super::moves::{Move, ends, join, piece};
use super::shared;
use super::transfers::{Send, number, same_words};
use crate::small_pieces::MANY_PIECES;
use girder_ir::plan::{Loc, LocalCopy, Object};

/// What replaces sends of small pieces.
#[derive(Default)]
pub(super) struct Packed {
    /// Copies to send buffers.
    pub copies: Vec<LocalCopy>,
    /// Moves from send buffers by way of a staging buffer.
    pub staged: Vec<Move>,
}

/// Removes small pieces from sends, where `may_be_packed` allows it, and sends them together, for tiles that would
/// receive more than `most` of them.
pub(super) fn pack(
    sends: &mut Vec<Send>,
    most: u32,
    may_be_packed: impl Fn(&Send) -> bool,
    buffers: &mut Buffers,
) -> Result<Packed, PlanError> {
    let is_small = |s: &Send| shared::group(s.to).is_none() && may_be_packed(s);
    let mut received: Vec<u32> = vec![];
    for send in sends.iter().filter(|s| is_small(s)) {
        let tile = send.to.tile as usize;
        received.resize(received.len().max(tile + 1), 0);
        received[tile] += 1;
    }
    let is_busy = |s: &Send| is_small(s) && received[s.to.tile as usize] > most;
    if !sends.iter().any(is_busy) {
        return Ok(Packed::default());
    }
    sends.sort_unstable_by_key(|s| (number(s.from), s.words, number(s.to)));
    let (mut small, mut kept) = (vec![], Vec::with_capacity(sends.len()));
    for same in sends.chunk_by(same_words) {
        let is_alone = same.len() == 1 && is_busy(&same[0]);
        if is_alone { &mut small } else { &mut kept }.extend_from_slice(same);
    }
    small.sort_unstable_by_key(|s| (s.from.tile, number(s.to), number(s.from)));
    let mut packed = Packed::default();
    for pieces in small.chunk_by(|a, b| (a.from.tile, a.to.tile) == (b.from.tile, b.to.tile)) {
        if pieces.len() < MANY_PIECES as usize {
            kept.extend_from_slice(pieces);
            continue;
        }
        let words = pieces.iter().map(|s| s.words).sum::<u32>();
        let tile = pieces[0].from.tile;
        let (buffer, mut offset) = buffers.room(tile, BufferUse::Send, 4 * u64::from(words), 0, 4)?;
        let from = Loc { tile, object: Object::Buffer(buffer), offset };
        let is_contiguous = pieces.windows(2).all(|w| end(&w[0]) == w[1].to);
        if is_contiguous {
            kept.push(Send { from, to: pieces[0].to, words });
        }
        for s in pieces {
            let at = Loc { offset, ..from };
            offset += 4 * s.words;
            add(&mut packed.copies, piece(s.from, at, 4 * s.words));
            if !is_contiguous {
                add(&mut packed.staged, piece(at, s.to, 4 * s.words));
            }
        }
    }
    *sends = kept;
    Ok(packed)
}

/// Returns the byte behind the destination of a send.
fn end(s: &Send) -> Loc {
    Loc { offset: s.to.offset + 4 * s.words, ..s.to }
}

/// Adds a move, which continues the last one if possible.
fn add(moves: &mut Vec<Move>, m: Move) {
    let is_joined = moves.last_mut().is_some_and(|last| ends(last) == ends(&m) && join(last, &m));
    if !is_joined {
        moves.push(m);
    }
}
