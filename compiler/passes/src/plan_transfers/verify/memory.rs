//! The blocks that a step touches, and the replay of a phase on them.
//!
//! Invariant: a block is made with the tokens of its elements when it is first touched; every access is checked against
//! its size, so that a wrong table is an error.

use super::block::{Block, Piece, Segment};
use super::tokens::Tokens;
use girder_ir::ids::VarId;
use girder_ir::plan::{Buffer, Loc, LocalCopy, Object, Phase, To, Transfer};
use girder_machine::Machine;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// Elements of a variable at equal distances, and their bytes in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    /// The variable whose elements they are.
    pub var: VarId,
    /// The first flat element.
    pub first: u64,
    /// The distance from one element to the next.
    pub stride: i64,
    /// The number of elements, at least 1.
    pub count: u64,
    /// The byte of the first element in the block.
    pub at: i64,
    /// The distance in bytes from one element to the next in the block.
    pub pitch: i64,
}

/// Words of a block: tile, object, first, one past the last.
type Words = (u32, Object, u32, u32);

/// The blocks that a step touches.
pub(super) struct Memory<'a> {
    tokens: &'a Tokens<'a>,
    buffers: &'a [Buffer],
    blocks: FxHashMap<(u32, Object), Block>,
}

impl<'a> Memory<'a> {
    /// Creates a memory of which nothing has been touched.
    ///
    /// # Errors
    /// A buffer is on no tile of the machine, is too large, or does not consist of whole words.
    pub fn new(tokens: &'a Tokens<'a>, buffers: &'a [Buffer]) -> Result<Memory<'a>, String> {
        let wrong =
            |b: &&Buffer| b.tile >= tokens.machine.tiles() || b.bytes > tokens.limit || !b.bytes.is_multiple_of(4);
        match buffers.iter().find(wrong) {
            Some(b) => Err(format!("there is a buffer of {} bytes on tile {}", b.bytes, b.tile)),
            None => Ok(Memory { tokens, buffers, blocks: FxHashMap::default() }),
        }
    }

    /// Returns the block of an object on a tile.
    fn block(&mut self, tile: u32, object: Object) -> Result<&mut Block, String> {
        match self.blocks.entry((tile, object)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(fresh(self.tokens, self.buffers, tile, object)?)),
        }
    }

    /// Returns whether a vertex stores into an object.
    pub fn is_computed(&self, tile: u32, object: Object) -> bool {
        self.blocks.get(&(tile, object)).is_some_and(|b| b.computed)
    }

    /// Returns the first of some elements that the block does not hold at its place.
    ///
    /// # Errors
    /// An element lies outside the block.
    pub fn hidden(&mut self, tile: u32, object: Object, e: &Elements) -> Result<Option<u64>, String> {
        let (token, step, bytes) = self.tokens.of(e);
        let block = self.block(tile, object)?;
        if e.count == 1 || e.pitch == bytes as i64 {
            let at = block.range(e.at, e.count.saturating_mul(bytes as u64))?;
            let wanted = Segment::pieces(token, bytes, step, e.count as u32);
            return Ok(block.difference(at, &wanted).map(|k| e.element((k / bytes) as u64)));
        }
        let (lo, len) = e.hull(bytes)?;
        let lo = block.range(lo, len)?;
        // If the elements are at their homes, the block holds all bytes from the first element to the last.
        if step == e.pitch
            && block.plain_token(lo, len as u32).is_some_and(|t| t.wrapping_add((e.at - lo as i64) as u64) == token)
        {
            return Ok(None);
        }
        let wanted = |k: u64| Segment::plain(token.wrapping_add_signed(k as i64 * step), bytes);
        let wrong = (0..e.count).find(|&k| block.difference(e.byte(k), &wanted(k)).is_some());
        Ok(wrong.map(|k| e.element(k)))
    }

    /// Writes new values of elements, which a vertex computes.
    ///
    /// # Errors
    /// An element lies outside the block.
    pub fn compute(&mut self, tile: u32, object: Object, e: &Elements) -> Result<(), String> {
        let (token, step, bytes) = self.tokens.of(e);
        self.block(tile, object)?.computed = true;
        self.put(tile, object, e, (token + FRESH, step), bytes)
    }

    fn put(
        &mut self,
        tile: u32,
        object: Object,
        e: &Elements,
        (token, step): (u64, i64),
        bytes: u32,
    ) -> Result<(), String> {
        let block = self.block(tile, object)?;
        if e.count == 1 || e.pitch == bytes as i64 {
            let at = block.range(e.at, e.count.saturating_mul(bytes as u64))?;
            let segment = Segment::pieces(token, bytes, step, e.count as u32);
            block.write(at, segment.len(), &[(0, segment)]);
            return Ok(());
        }
        let (lo, len) = e.hull(bytes)?;
        block.range(lo, len)?;
        for k in 0..e.count {
            block.write(e.byte(k), bytes, &[(0, Segment::plain(token.wrapping_add_signed(k as i64 * step), bytes))]);
        }
        Ok(())
    }

    /// Writes elements at their homes. `values` are the token of the first element and the distance from token to
    /// token.
    fn put_home(&mut self, e: &Elements, values: (u64, i64)) -> Result<(), String> {
        let (token, step) = values;
        let homes = self.tokens.homes(e.var);
        let bytes = homes.elem_bytes;
        let mut k = 0;
        while k < e.count {
            // Takes as many consecutive elements, ascending or descending, as one run of the mapping holds.
            let element = e.element(k);
            let Some(run) = homes.runs.get(homes.run_of(element)) else {
                return Err("there is no such element".into());
            };
            let count = match e.stride {
                1 => (run.end as u64 - element).min(e.count - k),
                -1 => (element - run.start as u64 + 1).min(e.count - k),
                _ => 1,
            };
            let (low, token, step) = match e.stride {
                -1 => (element - (count - 1), token.wrapping_add_signed((k + count - 1) as i64 * step), -step),
                _ => (element, token.wrapping_add_signed(k as i64 * step), step),
            };
            let at = run.offset as i64 + (low as i64 - run.start as i64) * bytes as i64;
            let there = Elements { first: low, stride: 1, count, at, pitch: bytes as i64, ..*e };
            self.put(run.tile, Object::Var(e.var), &there, (token, step), bytes)?;
            k += count;
        }
        Ok(())
    }

    /// Writes the new values of computed elements to their homes, where they are expected at the end.
    pub fn expect_computed(&mut self, e: &Elements) -> Result<(), String> {
        let (token, step, _) = self.tokens.of(e);
        self.put_home(e, (token + FRESH, step))
    }

    /// Writes the values of the elements `from` to the homes of the elements `e`, where they are expected at the end.
    pub fn expect_copied(&mut self, e: &Elements, from: &Elements) -> Result<(), String> {
        let (token, step, _) = self.tokens.of(from);
        self.put_home(e, (token, step))
    }

    /// Replays a phase. Only with `homes` may it write blocks of variables.
    pub fn replay(&mut self, phase: &Phase, homes: bool) -> Result<(), String> {
        let targets = phase.transfers.iter().flat_map(|t| phase.receivers(t));
        let copied = phase.before.iter().chain(&phase.after).map(|c| c.to);
        if !homes && targets.chain(copied).any(|l| matches!(l.object, Object::Var(_))) {
            return Err("the phase before writes into a variable".into());
        }
        phase.before.iter().try_for_each(|c| self.copy(c))?;
        let mut read: Vec<Words> = vec![];
        // The pieces of all sends, and for each receipt its words and the range of its pieces.
        let mut pieces: Vec<Piece> = vec![];
        let mut arriving: Vec<(Words, Range<usize>)> = vec![];
        for transfer in &phase.transfers {
            check(phase, transfer, self.tokens.machine)?;
            let (from, first) = (transfer.from, pieces.len());
            let block = self.block(from.tile, from.object)?;
            block.range(from.offset as i64, 4 * transfer.words as u64)?;
            block.read_to(from.offset, 4 * transfer.words, |piece| pieces.push(piece));
            let words = |l: &Loc| (l.tile, l.object, l.offset / 4, (l.offset / 4).saturating_add(transfer.words));
            read.push(words(&from));
            for to in phase.receivers(transfer) {
                arriving.push((words(&to), first..pieces.len()));
            }
        }
        arriving.sort_unstable_by_key(|a| a.0);
        let meets = |a: &Words, b: &Words| (a.0, a.1) == (b.0, b.1) && b.2 < a.3;
        if let Some(pair) = arriving.windows(2).find(|pair| meets(&pair[0].0, &pair[1].0)) {
            return Err(format!("two transfers write one word of tile {}", pair[0].0.0));
        }
        for r in &read {
            // Received words ascend and are disjoint, so only the last ones before the end of the sent words can
            // overlap them.
            let behind = arriving.partition_point(|(w, _)| (w.0, w.1, w.2) < (r.0, r.1, r.3));
            if behind.checked_sub(1).is_some_and(|k| meets(&arriving[k].0, r)) {
                return Err(format!("a word of tile {} is both sent and received", r.0));
            }
        }
        for of_block in arriving.chunk_by(|a, b| (a.0.0, a.0.1) == (b.0.0, b.0.1)) {
            let (tile, object, ..) = of_block[0].0;
            let block = self.block(tile, object)?;
            for (words, _) in of_block {
                block.range(4 * i64::from(words.2), 4 * u64::from(words.3 - words.2))?;
            }
            block.write_all(of_block.iter().map(|(words, sent)| (4 * words.2..4 * words.3, &pieces[sent.clone()])));
        }
        phase.after.iter().try_for_each(|c| self.copy(c))
    }

    fn copy(&mut self, copy: &LocalCopy) -> Result<(), String> {
        let LocalCopy { from, to, count, bytes, from_step, to_step } = *copy;
        if from.tile != to.tile {
            return Err(format!("a copy on a tile leads from tile {} to {}", from.tile, to.tile));
        }
        if count == 0 || bytes == 0 || (count > 1 && to_step.unsigned_abs() < bytes) {
            return Err("a copy on a tile has no pieces, or they overlap where they arrive".into());
        }
        let hull = |loc: Loc, step: i32| {
            let last = loc.offset as i64 + (count - 1) as i64 * step as i64;
            let (lo, hi) = (last.min(loc.offset as i64), last.max(loc.offset as i64));
            match lo < 0 {
                true => Err("a copy leaves its block".to_string()),
                false => Ok((lo, (hi - lo) as u64 + bytes as u64)),
            }
        };
        let (source, target) = (hull(from, from_step)?, hull(to, to_step)?);
        self.block(to.tile, to.object)?.range(target.0, target.1)?;
        let block = self.block(from.tile, from.object)?;
        let low = block.range(source.0, source.1)?;
        let meets = source.0 < target.0 + target.1 as i64 && target.0 < source.0 + source.1 as i64;
        let packed = count == 1 || (to_step == bytes as i32 && !(from.object == to.object && meets));
        if packed && (count == 1 || from_step == bytes as i32) {
            let pieces = block.read(from.offset, bytes * count);
            self.block(to.tile, to.object)?.write(to.offset, bytes * count, &pieces);
            return Ok(());
        }
        // Plain bytes gathered into a packed column become one segment.
        if packed && let Some(token) = block.plain_token(low, source.1 as u32) {
            let first = token + (from.offset - low) as u64;
            let segment = Segment::pieces(first, bytes, from_step as i64, count);
            self.block(to.tile, to.object)?.write(to.offset, segment.len(), &[(0, segment)]);
            return Ok(());
        }
        let shift = |loc: Loc, step: i32, k: u32| (loc.offset as i64 + k as i64 * step as i64) as u32;
        if from.object == to.object {
            let block = self.block(to.tile, to.object)?;
            for k in 0..count {
                let piece = block.read(shift(from, from_step, k), bytes);
                block.write(shift(to, to_step, k), bytes, &piece);
            }
            return Ok(());
        }
        // Takes the source block out of the table while the target block is written.
        let source = std::mem::replace(self.block(from.tile, from.object)?, Block::new(0));
        let target = self.block(to.tile, to.object)?;
        for k in 0..count {
            target.write(shift(to, to_step, k), bytes, &source.read(shift(from, from_step, k), bytes));
        }
        *self.block(from.tile, from.object)? = source;
        Ok(())
    }

    /// Checks the elements of every block that has been written or about which something is expected. The elements of
    /// all other blocks are at home as they were.
    ///
    /// # Errors
    /// The first element that is not as expected.
    pub fn check_homes(&mut self, expected: &mut Memory<'a>) -> Result<(), String> {
        let mut touched: Vec<(u32, VarId)> = vec![];
        let written = self.blocks.iter().filter(|(_, block)| block.is_written()).map(|(key, _)| key);
        touched.extend(written.chain(expected.blocks.keys()).filter_map(|&(tile, object)| match object {
            Object::Var(var) => Some((tile, var)),
            Object::Buffer(_) => None,
        }));
        touched.sort_unstable();
        touched.dedup();
        let tokens = self.tokens;
        for (tile, var) in touched {
            let bytes = tokens.homes(var).elem_bytes;
            let wanted = expected.block(tile, Object::Var(var))?;
            let found = self.block(tile, Object::Var(var))?;
            for run in tokens.runs(var, tile) {
                for (behind, segment) in wanted.read(run.offset, (run.end - run.start) * bytes) {
                    let Some(k) = found.difference(run.offset + behind, &segment) else { continue };
                    let element = run.start + (behind + k) / bytes;
                    let (own, at) = (tokens.first(var, element as u64), run.offset + (element - run.start) * bytes);
                    return Err(match wanted.plain_token(at, bytes) == Some(own) {
                        true => format!("element {element} of a variable on tile {tile} is overwritten"),
                        false => format!("a written element is not at home on tile {tile}"),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Returns a block as it is at the start.
fn fresh(tokens: &Tokens, buffers: &[Buffer], tile: u32, object: Object) -> Result<Block, String> {
    match object {
        Object::Buffer(b) => match buffers.get(b as usize) {
            Some(buffer) if buffer.tile == tile => Ok(Block::new(buffer.bytes)),
            _ => Err(format!("there is no buffer {b} on tile {tile}")),
        },
        Object::Var(var) => tokens.block(var, tile),
    }
}

/// The difference between the token of a computed value and the token of its element.
const FRESH: u64 = 1 << 60;

impl Elements {
    /// Returns the k-th element.
    pub fn element(&self, k: u64) -> u64 {
        (self.first as i64 + k as i64 * self.stride) as u64
    }

    /// Returns the first byte of the k-th element.
    pub fn byte(&self, k: u64) -> u32 {
        (self.at + k as i64 * self.pitch) as u32
    }

    /// Returns the least byte of all elements, which are `bytes` wide, and the number of bytes to the end of the last
    /// one.
    fn hull(&self, bytes: u32) -> Result<(i64, u64), String> {
        let last = (self.count as i64 - 1).checked_mul(self.pitch).and_then(|n| n.checked_add(self.at));
        let last = last.ok_or("an element lies outside its block")?;
        let (lo, hi) = (last.min(self.at), last.max(self.at));
        Ok((lo, hi.abs_diff(lo).saturating_add(bytes as u64)))
    }
}

/// Checks the form of a transfer.
fn check(phase: &Phase, transfer: &Transfer, machine: &Machine) -> Result<(), String> {
    let aligned = |l: &Loc| l.offset.is_multiple_of(4) && l.tile < machine.tiles();
    if transfer.words == 0 || !aligned(&transfer.from) || !phase.receivers(transfer).all(|l| aligned(&l)) {
        return Err("a transfer is not of whole words between tiles of the machine".into());
    }
    let all = match transfer.to {
        To::One(_) => &[][..],
        To::Group { group, .. } => phase.groups.get(group as usize).map_or(&[][..], Vec::as_slice),
    };
    let ascending = all.is_sorted_by(|a, b| a.tile < b.tile);
    let receivers = || phase.receivers(transfer);
    if receivers().next().is_none() || !ascending || receivers().any(|l| l.tile == transfer.from.tile) {
        return Err(format!("a transfer from tile {} has no ascending receivers other than it", transfer.from.tile));
    }
    Ok(())
}
