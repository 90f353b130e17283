//! The check of the plan of a copy between replicas: the plan is replayed byte by byte.
//!
//! The blocks of the sender and of the receiver of each list of pairs hold different tokens. Afterwards every element
//! that the copy writes must have the sender's token, and every other one its own.
//!
//! Invariant: a wrong table is an error, never a panic.

use super::copied;
use super::memory::Elements;
use super::tokens::Tokens;
use girder_ir::graph::CopySet;
use girder_ir::ids::CopyId;
use girder_ir::plan::{Loc, LocalCopy, Object, StepPlan};
use girder_ir::stage::RaceFree;
use rustc_hash::FxHashMap;

/// The difference between the token of a receiver's element and that of the same element of the sender.
const RECEIVER: u64 = 1 << 62;

/// The tokens of the bytes of blocks, by tile and object.
struct Blocks<'a> {
    tokens: &'a Tokens<'a>,
    plan: &'a StepPlan,
    lists: u32,
    of: FxHashMap<(u32, Object), Vec<u64>>,
}

/// Checks the plan of a copy between replicas.
pub(super) fn check(race_free: &RaceFree, tokens: &Tokens, plan: &StepPlan, id: CopyId) -> Result<(), String> {
    let copy: &CopySet = &race_free.copies[id];
    let lists = copy.pair_lists();
    let blocks = || Blocks { tokens, plan, lists: lists.len() as u32, of: FxHashMap::default() };
    let (mut found, mut expected) = (blocks(), blocks());
    if plan.after != Default::default() || plan.carries.is_some() {
        return Err("a copy between replicas has a phase too many".into());
    }
    plan.before.before.iter().try_for_each(|c| found.copy(c))?;
    let tiles = tokens.machine.tiles();
    for transfer in &plan.before.transfers {
        for to in plan.before.receivers(transfer) {
            if transfer.from.tile >= tiles || to.tile < tiles {
                return Err(format!("tile {} sends to tile {}", transfer.from.tile, to.tile));
            }
            let bytes = transfer.words.checked_mul(4).ok_or("a transfer is too long")?;
            found.move_bytes(transfer.from, to, bytes)?;
        }
    }
    plan.before.after.iter().try_for_each(|c| found.copy(c))?;
    for (family, source) in copy.families.iter().map(|f| &f.source).enumerate() {
        let list = lists.iter().position(|list| Some(list) == source.pairs());
        let first = list.map_or(0, |k| tiles * (k as u32 + 1));
        copied(race_free, id, Some(family), |to, from| expected.expect(first, to, from))?;
    }
    let keys: Vec<(u32, Object)> = found.of.keys().chain(expected.of.keys()).copied().collect();
    for key in keys.into_iter().filter(|key| matches!(key.1, Object::Var(_))) {
        if found.block(key)? != expected.block(key)? {
            return Err(format!("tile {} does not have the elements that the copy gives it", key.0));
        }
    }
    Ok(())
}

impl Blocks<'_> {
    fn block(&mut self, (tile, object): (u32, Object)) -> Result<&mut Vec<u64>, String> {
        if !self.of.contains_key(&(tile, object)) {
            let block = self.fresh(tile, object)?;
            self.of.insert((tile, object), block);
        }
        Ok(self.of.entry((tile, object)).or_default())
    }

    fn fresh(&self, tile: u32, object: Object) -> Result<Vec<u64>, String> {
        let tiles = self.tokens.machine.tiles();
        let (own, receives) = (tile % tiles, tile >= tiles);
        if tile / tiles > self.lists {
            return Err(format!("tile {tile} is that of no replica"));
        }
        match object {
            Object::Buffer(k) => match self.plan.buffers.get(k as usize) {
                Some(b) if b.tile == tile && b.bytes <= self.tokens.limit => Ok(vec![0; b.bytes as usize]),
                _ => Err(format!("tile {tile} has no buffer {k}")),
            },
            Object::Var(var) => {
                let homes = self.tokens.homes(var);
                let size = homes.blocks.iter().find(|b| b.0 == own).map(|b| b.1);
                let size = size.ok_or_else(|| format!("tile {tile} has nothing of a variable that moves"))?;
                // The block is padded as that of a variable without replicas.
                let mut block = vec![0; size.next_multiple_of(8) as usize];
                for run in self.tokens.runs(var, own) {
                    let bytes = u64::from(run.end - run.start) * u64::from(homes.elem_bytes);
                    let first = self.tokens.first(var, u64::from(run.start)) + if receives { RECEIVER } else { 0 };
                    let places = block.iter_mut().skip(run.offset as usize).take(bytes as usize);
                    places.zip(first..).for_each(|(place, token)| *place = token);
                }
                Ok(block)
            }
        }
    }

    fn copy(&mut self, c: &LocalCopy) -> Result<(), String> {
        if c.from.tile != c.to.tile {
            return Err(format!("a copy goes from tile {} to tile {}", c.from.tile, c.to.tile));
        }
        for k in 0..i64::from(c.count) {
            let at = |loc: Loc, step: i32| {
                let offset = i64::from(loc.offset) + k * i64::from(step);
                let offset = u32::try_from(offset).map_err(|_| "a copy leaves its block".to_string())?;
                Ok::<Loc, String>(Loc { offset, ..loc })
            };
            self.move_bytes(at(c.from, c.from_step)?, at(c.to, c.to_step)?, c.bytes)?;
        }
        Ok(())
    }

    fn move_bytes(&mut self, from: Loc, to: Loc, bytes: u32) -> Result<(), String> {
        let range = |loc: Loc| loc.offset as usize..loc.offset as usize + bytes as usize;
        let outside = || "a move leaves its block".to_string();
        let read = self.block((from.tile, from.object))?.get(range(from)).ok_or_else(outside)?.to_vec();
        self.block((to.tile, to.object))?.get_mut(range(to)).ok_or_else(outside)?.copy_from_slice(&read);
        Ok(())
    }

    /// Gives elements of the receiver, whose tiles are counted from `first`, the tokens of the sender's.
    fn expect(&mut self, first: u32, to: &Elements, from: &Elements) -> Result<(), String> {
        let bytes = self.tokens.homes(to.var).elem_bytes;
        for k in 0..to.count {
            let element = |e: &Elements| e.first.wrapping_add_signed(k as i64 * e.stride);
            let token = self.tokens.first(from.var, element(from));
            let homes = self.tokens.homes(to.var);
            let run = homes.runs.get(homes.run_of(element(to))).ok_or("an element has no home")?;
            let at = run.offset as usize + (element(to) as u32 - run.start) as usize * bytes as usize;
            let block = self.block((first + run.tile, Object::Var(to.var)))?;
            let places = block.get_mut(at..at + bytes as usize).ok_or("an element lies outside its block")?;
            places.iter_mut().zip(token..).for_each(|(place, token)| *place = token);
        }
        Ok(())
    }
}
