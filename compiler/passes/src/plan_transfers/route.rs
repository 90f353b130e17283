//! Turns moves into the transfers and copies of one phase.
//!
//! # Note: Words
//! The exchange moves whole words. A piece with the same position within a word at both ends travels directly, as far
//! as it fills words that belong to it alone. Its remaining bytes, and pieces whose ends differ, travel as the words
//! that hold them to a staging buffer of the receiver, from which copies take exact bytes to their destinations. So no
//! transfer writes a byte that is not its own, except padding of a landing region.
//!
//! # Note: Small pieces
//! Many small pieces at equal distances would cost a transfer each. If there are at least [`MANY_PIECES`] that are
//! shorter than [`few_bytes`](SmallPieces::few_bytes) bytes, or longer ones where memory is scarce, the sender
//! makes them contiguous, sends them at once, and the receiver spreads them if necessary. The published rows of V8
//! (docs/validation.md) show that the vendor's compiler does so: before the exchange a tile copies about as many bytes
//! as its strided edges have. A plan that sent such pieces one by one would model another program. The same holds for
//! pieces of consecutive vertices, so a move stays open until that of the next vertex comes. Many small sends of
//! neighbouring words between two tiles, and sends that mostly repeat the same words, are also replaced by one to a
//! staging buffer ([`scattered`]). Those of other words are made contiguous too if their receiver would need much
//! exchange code for them (module `packed`).
//!
//! # Note: Moves within a tile
//! A landing buffer also takes elements that are on the tile already. These copies are done together with the copies
//! before the exchange if there are any, otherwise after it: the machine model charges a fixed time for each of the
//! two, and the one before the exchange is the longer one (1,395 against 242 cycles).
//!
//! Invariant: everything that is sent is read from, and arrives in, bytes that no other transfer of the phase writes.

use super::buffers::{BufferUse, Buffers, PlanError};
use super::moves::{Move, ends, form, join, piece};
use super::order::{order, ranks};
use super::packed::pack;
use super::scene::Scene;
use super::shared::{Sharing, receivers};
use super::transfers::{Cutting, Send, assemble, scattered};
use crate::small_pieces::{MANY_PIECES, SmallPieces};
use girder_ir::plan::{Grouping, Loc, LocalCopy, Object, Phase};
use girder_machine::Arrange;
use indexmap::IndexMap;
use indexmap::map::Entry;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::ops::Range;

/// The largest number of moves for which capacity is reserved: there may turn out to be fewer.
const MOST_EXPECTED: usize = 1 << 18;

/// The ends of a move's pieces with only padding between them and the next word.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Pad {
    /// No end.
    Neither,
    /// Ends that coincide with an end of this range.
    ElementHome(Range<u32>),
    /// Both ends of every piece.
    Both,
}

/// When moves within a tile are done.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum OwnMoves {
    /// After the exchange.
    #[default]
    After,
    /// Before the exchange, if other copies are.
    WithGathers,
    /// Before the exchange.
    Before,
}

/// Collects the moves of one phase.
#[derive(Default)]
pub(super) struct Router {
    /// The send buffers of gathered moves, by move (with `to` at the position within a word).
    gathered: IndexMap<Move, Loc, FxBuildHasher>,
    sends: Vec<Send>,
    /// Moves whose source words go to a staging buffer. The pieces of one lie in words that are sent together.
    staged: Vec<Move>,
    copies: Vec<LocalCopy>,
    /// The open move of each slot.
    open: Vec<Option<(Move, Pad)>>,
    /// The number of pieces that may still be added.
    left: usize,
    /// Which pieces travel together.
    small: SmallPieces,
    /// Moves within a tile.
    own: Vec<LocalCopy>,
    order: OwnMoves,
    cutting: Cutting,
    /// The groups of shared locations.
    groups: Grouping,
}

impl Router {
    /// Creates a router for as many pieces as one step may move.
    pub fn new(scene: &Scene) -> Router {
        Router { left: scene.limit, small: scene.small, ..Router::default() }
    }

    /// Creates a router for a phase whose destinations are landing buffers. No word is sent from these, so moves within
    /// a tile may come before the exchange or after it: where other copies are, or where they take less time.
    pub fn to_landings(scene: &Scene) -> Router {
        let Arrange { before, after } = &scene.machine.arrange;
        let is_dear = before.fixed_cycles > after.fixed_cycles;
        let order = if is_dear { OwnMoves::WithGathers } else { OwnMoves::Before };
        let cutting = Cutting::Busy { processor_tiles: scene.machine.chip.tiles };
        Router { order, cutting, ..Router::new(scene) }
    }

    /// Adds a move, which continues the last one of its slot if possible.
    pub fn add(&mut self, slot: usize, m: Move, pad: Pad, buffers: &mut Buffers) -> Result<(), PlanError> {
        if slot >= self.open.len() {
            self.open.resize(slot + 1, None);
        }
        if let Some((last, both)) = &mut self.open[slot]
            && ends(last) == ends(&m)
            && join(last, &m)
        {
            if pad != Pad::Both || *both != Pad::Both {
                *both = Pad::Neither;
            }
            return Ok(());
        }
        match self.open[slot].replace((m, pad)) {
            Some((last, pad)) => self.route(last, &pad, buffers),
            None => Ok(()),
        }
    }

    /// Reserves capacity for moves that will come `times` times each, as far as they are allowed; growing takes longer.
    pub fn make_room(&mut self, moves: &[Move], times: usize) {
        let gathered = moves
            .iter()
            .filter(|m| m.count >= MANY_PIECES && m.bytes < self.small.few_bytes && m.from_step != 0)
            .count();
        let room = |moves: usize| moves.saturating_mul(times).min(MOST_EXPECTED);
        self.sends.reserve(room(moves.len()));
        self.gathered.reserve(room(gathered));
    }

    /// Returns the landings of vertices on several tiles that read the same elements as one shared location.
    pub fn sharing(&mut self, landings: Vec<Loc>) -> Sharing {
        Sharing::new(landings, &mut self.groups)
    }

    /// Adds a move of whole words to landings on several tiles.
    pub fn add_shared(&mut self, slot: usize, m: Move, to: &Sharing, buffers: &mut Buffers) -> Result<(), PlanError> {
        let (others, own) = to.split(m);
        // The landing on the sender's own tile continues independently of the others.
        for (slot, m) in [(2 * slot, others), (2 * slot + 1, own)] {
            m.map_or(Ok(()), |m| self.add(slot, m, Pad::Neither, buffers))?;
        }
        Ok(())
    }

    /// Routes the open moves. Slots are then numbered from 0 again.
    pub fn close(&mut self, buffers: &mut Buffers) -> Result<(), PlanError> {
        let open = std::mem::take(&mut self.open);
        open.into_iter().flatten().try_for_each(|(m, pad)| self.route(m, &pad, buffers))
    }

    /// Decides how a move travels.
    fn route(&mut self, m: Move, pad: &Pad, buffers: &mut Buffers) -> Result<(), PlanError> {
        let apart = m.from_step != 0 && (m.count < MANY_PIECES || m.bytes >= self.small.few_bytes);
        let pieces_sent = if apart { m.count as usize } else { 1 };
        self.left = self.left.checked_sub(pieces_sent).ok_or(PlanError::TooMany)?;
        if m.from.tile == m.to.tile {
            self.own.push(m);
        } else if m.count == 1 {
            self.deliver(m, pad);
        } else if m.from_step == 0 {
            self.staged.push(m);
        } else if apart {
            pieces(&m).for_each(|p| self.deliver(p, pad));
        } else if m.from_step.unsigned_abs() <= m.bytes.next_multiple_of(4) {
            self.staged.push(m);
        } else {
            let from = self.gather(m, buffers)?;
            let bytes = m.bytes as i32;
            match m.to_step == bytes {
                true => self.deliver(piece(from, m.to, m.count * m.bytes), pad),
                false => self.staged.push(Move { from, from_step: bytes, ..m }),
            }
        }
        Ok(())
    }

    /// Makes the pieces of a move contiguous on the sender, at the receiver's position within a word.
    fn gather(&mut self, m: Move, buffers: &mut Buffers) -> Result<Loc, PlanError> {
        let to_step = m.bytes as i32;
        let phase = if m.to_step == to_step { m.to.offset % 4 } else { 0 };
        let key = Move { to: Loc { tile: m.from.tile, object: Object::Buffer(0), offset: phase }, to_step, ..m };
        let slot = match self.gathered.entry(key) {
            Entry::Occupied(slot) => return Ok(*slot.get()),
            Entry::Vacant(slot) => slot,
        };
        let (buffer, offset) = buffers.room(m.from.tile, BufferUse::Send, m.count as u64 * m.bytes as u64, phase, 4)?;
        Ok(*slot.insert(Loc { tile: m.from.tile, object: Object::Buffer(buffer), offset }))
    }

    /// Sends one piece: see the note on words.
    fn deliver(&mut self, m: Move, pad: &Pad) {
        let (start, end) = (m.to.offset, m.to.offset + m.bytes);
        if m.from.offset % 4 != start % 4 {
            return self.staged.push(m);
        }
        let padded = |edge: u32| match pad {
            Pad::Neither => false,
            Pad::ElementHome(range) => range.start == edge || range.end == edge,
            Pad::Both => true,
        };
        let first = if padded(start) { start & !3 } else { start.next_multiple_of(4) };
        let last = if padded(end) { end.next_multiple_of(4) } else { end & !3 };
        if first >= last {
            return self.staged.push(m);
        }
        let shifted = |at: u32| (m.from.offset + at) - start;
        let part = |at: u32, to: u32| piece(Loc { offset: shifted(at), ..m.from }, Loc { offset: at, ..m.to }, to - at);
        if start < first {
            self.staged.push(part(start, first));
        }
        if last < end {
            self.staged.push(part(last, end));
        }
        let (from, to) = (Loc { offset: shifted(first), ..m.from }, Loc { offset: first, ..m.to });
        self.sends.push(Send { from, to, words: (last - first) / 4 });
    }

    /// Returns the phase: lays out the staging buffers and joins sends.
    pub fn finish(mut self, buffers: &mut Buffers) -> Result<Phase, PlanError> {
        self.close(buffers)?;
        let scattered = scattered(&mut self.sends, self.small.few_bytes);
        self.staged.extend(scattered.iter().map(|s| piece(s.from, s.to, 4 * s.words)));
        let gathered: FxHashSet<(u32, Object)> = self.gathered.values().map(|loc| (loc.tile, loc.object)).collect();
        let may_be_packed =
            |s: &Send| 4 * s.words < self.small.few_bytes && !gathered.contains(&(s.from.tile, s.from.object));
        let mut packed = pack(&mut self.sends, self.small.most_received, may_be_packed, buffers)?;
        self.staged.append(&mut packed.staged);
        self.join_staged();
        self.stage_per_receiver()?;
        self.staged.sort_unstable_by_key(|m| (m.to.tile, m.from.tile, m.from.object, words(m).start, m.to));
        let mut rest = self.staged.as_slice();
        while let Some(first) = rest.first() {
            let ends = |m: &Move| (m.to.tile, m.from.tile, m.from.object);
            let (mut sent, mut n) = (words(first), 0);
            while let Some(m) = rest.get(n).filter(|m| ends(m) == ends(first) && words(m).start <= sent.end) {
                sent.end = sent.end.max(words(m).end);
                n += 1;
            }
            let bytes = sent.end - sent.start;
            let (buffer, offset) = buffers.room(first.to.tile, BufferUse::Stage, bytes as u64, 0, 4)?;
            let stage = Loc { tile: first.to.tile, object: Object::Buffer(buffer), offset };
            self.sends.push(Send { from: Loc { offset: sent.start, ..first.from }, to: stage, words: bytes / 4 });
            for m in &rest[..n] {
                self.copies.push(Move { from: Loc { offset: offset + m.from.offset - sent.start, ..stage }, ..*m });
            }
            rest = &rest[n..];
        }
        let mut gathers: Vec<LocalCopy> = self.gathered.into_iter().map(|(m, to)| Move { to, ..m }).collect();
        gathers.append(&mut packed.copies);
        let is_early = match self.order {
            OwnMoves::After => false,
            OwnMoves::WithGathers => !gathers.is_empty(),
            OwnMoves::Before => true,
        };
        if is_early { &mut gathers } else { &mut self.copies }.append(&mut self.own);
        let [before, after] = [gathers, self.copies].map(|copies| sorted_by_form(&interchanged(copies)));
        let (transfers, groups) = assemble(self.sends, self.groups, self.cutting);
        Ok(Phase { before, transfers, after, groups })
    }

    /// Joins staged moves that continue one another, as long as the pieces of a move lie in words that are sent
    /// together. A shared location counts as one receiver, so this comes before [`Self::stage_per_receiver`].
    fn join_staged(&mut self) {
        let order = |m: &Move| (m.to.tile, m.to.object, m.from.tile, m.from.object, m.from.offset, m.to.offset);
        self.staged.sort_unstable_by_key(order);
        self.staged.dedup_by(|next, last| {
            let is_near = |gap: u32| last.count > 1 || gap <= last.bytes.next_multiple_of(4);
            ends(last) == ends(next) && is_near(next.from.offset - last.from.offset) && join(last, next)
        });
    }

    /// Splits staged moves to several tiles into one for each, since every tile has a staging buffer of its own.
    fn stage_per_receiver(&mut self) -> Result<(), PlanError> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let mut apart = vec![];
        for m in std::mem::take(&mut self.staged) {
            apart.extend(receivers(&self.groups, m.to, m.from.tile).map(|to| Move { to, ..m }));
            if apart.len() > self.left {
                return Err(PlanError::TooMany);
            }
        }
        self.staged = apart;
        Ok(())
    }
}

/// Exchanges the loops of equal copies at equal distances where this leaves fewer copies. All pieces stay.
fn interchanged(copies: Vec<LocalCopy>) -> Vec<LocalCopy> {
    let shape = |m: &Move| (ends(m), m.bytes, m.count, m.from_step, m.to_step);
    let gap = |a: Loc, b: Loc| b.offset as i64 - a.offset as i64;
    let mut result = Vec::with_capacity(copies.len());
    let mut rest = copies.as_slice();
    while let Some(first) = rest.first() {
        let steps = |pair: &[LocalCopy]| (gap(pair[0].from, pair[1].from), gap(pair[0].to, pair[1].to));
        let distance = rest.get(..2).map_or((0, 0), steps);
        let follows = |pair: &&[LocalCopy]| shape(&pair[0]) == shape(&pair[1]) && steps(pair) == distance;
        let most = if first.count > 1 && distance.1 != 0 { u32::MAX as usize } else { 0 };
        let n = 1 + rest.windows(2).take(most).take_while(follows).count();
        match (i32::try_from(distance.0), i32::try_from(distance.1)) {
            (Ok(from_step), Ok(to_step)) if n > first.count as usize => {
                let whole = |m: Move| Move { count: n as u32, from_step, to_step, ..m };
                result.extend(pieces(first).map(whole));
            }
            _ => result.extend_from_slice(&rest[..n]),
        }
        rest = &rest[n..];
    }
    result
}

/// Sorts independent copies: equal copies on several tiles are neighbours, by tile.
fn sorted_by_form(copies: &[LocalCopy]) -> Vec<LocalCopy> {
    let shape = |m: &Move| (m.bytes, m.count, m.from_step, m.to_step, form(m.from.object), form(m.to.object));
    let ranks = ranks(copies.iter().map(shape));
    let key = |k: usize| {
        let m = &copies[k];
        [ranks[k] as u64, m.to.offset as u64, m.from.offset as u64, m.to.tile as u64]
    };
    let order = order(copies.len(), key, |k| copies[k].to.object);
    order.into_iter().map(|k| copies[k as usize]).collect()
}

/// Returns the pieces of a move one by one.
fn pieces(m: &Move) -> impl Iterator<Item = Move> {
    let m = *m;
    let shift =
        |loc: Loc, k: u32, step: i32| Loc { offset: (loc.offset as i64 + k as i64 * step as i64) as u32, ..loc };
    (0..m.count).map(move |k| piece(shift(m.from, k, m.from_step), shift(m.to, k, m.to_step), m.bytes))
}

/// Returns the bytes of the words that hold all pieces of a move at its source.
fn words(m: &Move) -> Range<u32> {
    let last = (m.from.offset as i64 + (m.count as i64 - 1) * m.from_step as i64) as u32;
    let (lo, hi) = (m.from.offset.min(last), m.from.offset.max(last));
    lo & !3..(hi + m.bytes).next_multiple_of(4)
}
