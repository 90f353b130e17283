//! The replay of a plan byte by byte: a slow reference for the verifier, which works on segments.
//!
//! Every byte of every element is a unique token. Blocks hold the tokens of their elements; the phase before is
//! replayed; each field must show its tokens at its landing; written fields then take fresh tokens; the phase after is
//! replayed; at the end every element must be at home with the token that it should have.

use super::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::result::Result;

/// Checks a plan as [`verify`](super::super::verify) does.
pub(super) fn verify(race_free: &RaceFree, machine: &Machine, plan: &Plan) -> Result<(), String> {
    let tokens = Tokens::new(race_free, machine, machine.usable_bytes());
    for (s, set) in &race_free.sets {
        check_set(race_free, &tokens, plan, s).map_err(|e| format!("in the exchange of `{}`, {e}", set.name))?;
    }
    for (c, copy) in &race_free.copies {
        check_copy(race_free, &tokens, plan, c).map_err(|e| format!("in the exchange of `{}`, {e}", copy.name))?;
    }
    Ok(())
}

/// What each element should hold at the end, where that is not its own token.
type Expected = FxHashMap<(VarId, u64), u64>;

fn check_copy(race_free: &RaceFree, tokens: &Tokens, plan: &Plan, id: CopyId) -> Result<(), String> {
    if plan.sets.values().any(|s| s.carries == Some(id)) {
        // Its elements are looked at with those of the set.
        let empty = plan.copies[id] == StepPlan::default();
        return if empty { Ok(()) } else { Err("what a compute set carries moves".into()) };
    }
    let steps = &plan.copies[id];
    let expected = copied(race_free, tokens, id);
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    memory.replay(&steps.before, true)?;
    memory.replay(&steps.after, true)?;
    memory.check_homes(&expected)
}

/// What each element that a copy writes holds after it.
fn copied(race_free: &RaceFree, tokens: &Tokens, id: CopyId) -> Expected {
    let mut expected = Expected::default();
    for family in &race_free.copies[id].families {
        for instance in 0..family.domain.count() {
            let (dst, src) = (family.dst.view(&family.domain, instance), family.src.view(&family.domain, instance));
            for at in 0..dst.len() {
                let (var, element) = src.element(at);
                expected.insert(dst.element(at), tokens.first(var, element));
            }
        }
    }
    expected
}

fn check_set(race_free: &RaceFree, tokens: &Tokens, plan: &Plan, id: ComputeSetId) -> Result<(), String> {
    let steps = &plan.sets[id];
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    let mut expected = steps.carries.map(|copy| copied(race_free, tokens, copy)).unwrap_or_default();
    memory.replay(&steps.before, !expected.is_empty())?;
    let accesses = accesses(race_free, plan, id)?;
    if let Some(a) = accesses.iter().find(|a| expected.contains_key(&a.element)) {
        return Err(format!("a vertex touches {:?} which a carried copy writes", a.element));
    }
    let own = |a: &Access| tokens.first(a.element.0, a.element.1);
    for a in accesses.iter().filter(|a| a.needed) {
        if memory.load(a.at, a.bytes)? != own(a) {
            return Err(format!("vertex {:?} does not see {:?}", a.vertex, a.element));
        }
    }
    for a in accesses.iter().filter(|a| a.dir != Dir::In) {
        expected.insert(a.element, own(a) + FRESH);
        memory.store(a.at, a.bytes, own(a) + FRESH, a.vertex)?;
    }
    // What is only read must not lie where anything is written, in whatever order vertices run.
    for a in accesses.iter().filter(|a| a.dir == Dir::In) {
        if memory.load(a.at, a.bytes)? != own(a) {
            return Err(format!("what vertex {:?} sees is overwritten by another vertex", a.vertex));
        }
    }
    memory.replay(&steps.after, true)?;
    memory.check_homes(&expected)
}

/// One element of a field of one vertex.
struct Access {
    /// The vertex: position of its family in the set, and instance.
    vertex: (usize, u64),
    dir: Dir,
    element: (VarId, u64),
    /// Its first byte where the location says that it is.
    at: Loc,
    bytes: u32,
    /// Whether it must be there before the vertex runs.
    needed: bool,
}

/// Lists the elements of all fields of all vertices of a set.
fn accesses(race_free: &RaceFree, plan: &Plan, id: ComputeSetId) -> Result<Vec<Access>, String> {
    let mut all = vec![];
    for (position, &f) in race_free.sets[id].families.iter().enumerate() {
        let family = &race_free.families[f];
        let codelet = &race_free.codelets[family.codelet];
        // A codelet of these tests writes all of its `out` fields, or does nothing.
        let writes = !codelet.body.is_empty();
        for (instance, k) in (0..family.domain.count()).flat_map(|i| (0..family.fields.len()).map(move |k| (i, k))) {
            let tile = race_free.placement.families[f].as_ref().unwrap().at(&family.domain, instance);
            let field = &codelet.fields[family.fields[k].field];
            let (dir, bytes) = (field.dir, field.ty.bytes());
            let view = family.fields[k].view(&family.domain, instance);
            let locations = &plan.locations[f][k];
            let location = locations.at[instance as usize];
            let in_place = matches!(location, FieldLocation::InPlace(_));
            let strides = locations.strides.get(locations.strides_of[instance as usize] as usize);
            if in_place && strides.is_none() {
                return Err("there are no such strides".into());
            }
            for at in 0..view.len() {
                let element = view.element(at);
                let (object, offset) = match location {
                    FieldLocation::Buffer { buffer, offset } => {
                        if plan.sets[id].buffers.get(buffer as usize).is_none_or(|b| b.tile != tile) {
                            return Err("a field lands in a buffer that its tile does not have".into());
                        }
                        (Object::Buffer(buffer), offset as i64 + (at * bytes as u64) as i64)
                    }
                    FieldLocation::InPlace(byte) => (Object::Var(element.0), byte as i64 + strided(&view, at, strides)),
                };
                let Ok(offset) = u32::try_from(offset) else { return Err("an element is nowhere".into()) };
                let needed = dir != Dir::Out || !writes || in_place;
                let at = Loc { tile, object, offset };
                all.push(Access { vertex: (position, instance), dir, element, at, bytes, needed });
            }
        }
    }
    Ok(all)
}

/// Returns the distance of the element at a row-major position from the first one, by byte strides along the axes.
fn strided(view: &View, at: u64, strides: Option<&Vec<i32>>) -> i64 {
    let shape = view.shape();
    let stride = |axis: usize| strides.map_or(0, |s| s[axis] as i64);
    let index = |axis: usize| (at / shape[axis + 1..].iter().product::<u64>() % shape[axis]) as i64;
    (0..shape.len()).map(|axis| index(axis) * stride(axis)).sum()
}

/// What the token of a computed value adds to the token of its element.
const FRESH: u64 = 1 << 60;

/// The tokens of all elements: byte b of element e of variable v is `base[v] + e · bytes + b`; 0 is no token.
struct Tokens<'a> {
    machine: &'a Machine,
    /// The most bytes of a block.
    limit: u32,
    base: SecondaryMap<VarId, u64>,
    homes: SecondaryMap<VarId, Homes>,
    /// By variable: its runs by tile.
    runs: SecondaryMap<VarId, FxHashMap<u32, Vec<usize>>>,
}

impl<'a> Tokens<'a> {
    fn new(race_free: &RaceFree, machine: &'a Machine, limit: u32) -> Tokens<'a> {
        let (mut base, mut homes, mut runs) = (SecondaryMap::new(), SecondaryMap::new(), SecondaryMap::new());
        let mut next = 1;
        for (id, var) in &race_free.vars {
            base[id] = next;
            next += var.bytes();
            let Some(mapping) = &race_free.placement.vars[id] else { continue };
            let of = Homes::of(var, mapping);
            let by_tile: &mut FxHashMap<u32, Vec<usize>> = &mut runs[id];
            of.runs.iter().enumerate().for_each(|(k, run)| by_tile.entry(run.tile).or_default().push(k));
            homes[id] = of;
        }
        Tokens { machine, limit, base, homes, runs }
    }

    /// The token of an element's first byte.
    fn first(&self, var: VarId, element: u64) -> u64 {
        self.base[var] + element * self.homes[var].elem_bytes as u64
    }
}

/// The blocks that a step touches.
struct Memory<'a> {
    tokens: &'a Tokens<'a>,
    buffers: &'a [Buffer],
    blocks: FxHashMap<(u32, Object), Vec<u64>>,
    /// Who stored into each granule.
    stores: FxHashMap<(u32, Object, u32), (usize, u64)>,
}

impl<'a> Memory<'a> {
    fn new(tokens: &'a Tokens<'a>, buffers: &'a [Buffer]) -> Result<Memory<'a>, String> {
        let wrong =
            |b: &&Buffer| b.tile >= tokens.machine.tiles() || b.bytes > tokens.limit || !b.bytes.is_multiple_of(4);
        match buffers.iter().find(wrong) {
            Some(b) => Err(format!("there is a buffer of {} bytes on tile {}", b.bytes, b.tile)),
            None => Ok(Memory { tokens, buffers, blocks: FxHashMap::default(), stores: FxHashMap::default() }),
        }
    }

    /// The bytes of a block from a place on.
    fn bytes(&mut self, at: Loc, n: u64) -> Result<&mut [u64], String> {
        let fresh = match self.blocks.contains_key(&(at.tile, at.object)) {
            true => None,
            false => Some(self.block(at)?),
        };
        let block = self.blocks.entry((at.tile, at.object)).or_insert_with(|| fresh.unwrap_or_default());
        let (start, size) = (at.offset as usize, block.len());
        let end = start.saturating_add(n as usize);
        block.get_mut(start..end).ok_or_else(|| format!("bytes {start}..{end} lie outside a block of {size} bytes"))
    }

    /// A block as it is at the start.
    fn block(&self, at: Loc) -> Result<Vec<u64>, String> {
        match at.object {
            Object::Buffer(b) => match self.buffers.get(b as usize) {
                Some(buffer) if buffer.tile == at.tile => Ok(vec![0; buffer.bytes as usize]),
                _ => Err(format!("there is no buffer {b} on tile {}", at.tile)),
            },
            Object::Var(var) => {
                let Some(homes) = self.tokens.homes.get(var) else { return Err("there is no such variable".into()) };
                let bytes = homes.block(at.tile).filter(|&b| b <= self.tokens.limit);
                let bytes = bytes.ok_or_else(|| format!("tile {} does not hold the variable", at.tile))?;
                // The next block starts at a multiple of 8; until there, the words of the last elements go on.
                let mut block = vec![0; bytes.next_multiple_of(8) as usize];
                for run in self.tokens.runs[var][&at.tile].iter().map(|&k| homes.runs[k]) {
                    let n = (run.end - run.start) as u64 * homes.elem_bytes as u64;
                    let first = self.tokens.first(var, run.start as u64);
                    (0..n).for_each(|b| block[run.offset as usize + b as usize] = first + b);
                }
                Ok(block)
            }
        }
    }

    /// The token of an element's first byte, if all its bytes are there; else 0.
    fn load(&mut self, at: Loc, bytes: u32) -> Result<u64, String> {
        let found = self.bytes(at, bytes as u64)?;
        let whole = found.iter().enumerate().all(|(k, &token)| token == found[0] + k as u64);
        Ok(if whole { found[0] } else { 0 })
    }

    /// Writes an element for a vertex.
    fn store(&mut self, at: Loc, bytes: u32, token: u64, vertex: (usize, u64)) -> Result<(), String> {
        self.bytes(at, bytes as u64)?.iter_mut().zip(token..).for_each(|(b, t)| *b = t);
        let width = self.tokens.machine.memory.store_bytes;
        for granule in at.offset / width..(at.offset + bytes).div_ceil(width) {
            let writer = *self.stores.entry((at.tile, at.object, granule)).or_insert(vertex);
            if writer != vertex {
                return Err(format!("shares a granule of {width} bytes with another vertex"));
            }
        }
        Ok(())
    }

    /// Replays a phase; `homes` says whether it may write blocks of variables.
    fn replay(&mut self, phase: &Phase, homes: bool) -> Result<(), String> {
        let targets = phase.transfers.iter().flat_map(|t| phase.receivers(t));
        let copied = phase.before.iter().chain(&phase.after).map(|c| c.to);
        if !homes && targets.chain(copied).any(|l| matches!(l.object, Object::Var(_))) {
            return Err("the phase before writes into a variable".into());
        }
        phase.before.iter().try_for_each(|c| self.copy(c))?;
        let (mut read, mut written) = (FxHashSet::default(), FxHashSet::default());
        let mut arriving = vec![];
        for transfer in &phase.transfers {
            check(phase, transfer, self.tokens.machine)?;
            let n = 4 * transfer.words as u64;
            let words = self.bytes(transfer.from, n)?.to_vec();
            let word = |l: &Loc, k: u32| (l.tile, l.object, l.offset / 4 + k);
            read.extend((0..transfer.words).map(|k| word(&transfer.from, k)));
            for to in phase.receivers(transfer) {
                if !(0..transfer.words).all(|k| written.insert(word(&to, k))) {
                    return Err(format!("two transfers write one word of tile {}", to.tile));
                }
                arriving.push((to, words.clone()));
            }
        }
        if let Some((tile, ..)) = read.intersection(&written).min() {
            return Err(format!("a word of tile {tile} is both sent and received"));
        }
        for (to, words) in arriving {
            self.bytes(to, words.len() as u64)?.copy_from_slice(&words);
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
        let shift = |loc: Loc, k: u32, step: i32| {
            let offset = u32::try_from(loc.offset as i64 + k as i64 * step as i64);
            offset.map(|offset| Loc { offset, ..loc }).map_err(|_| "a copy leaves its block".to_string())
        };
        for k in 0..count {
            let piece = self.bytes(shift(from, k, from_step)?, bytes as u64)?.to_vec();
            self.bytes(shift(to, k, to_step)?, bytes as u64)?.copy_from_slice(&piece);
        }
        Ok(())
    }

    /// Returns whether every element is at home, with its own token or the one that is expected.
    fn check_homes(&mut self, expected: &Expected) -> Result<(), String> {
        let tokens = self.tokens;
        for (&(var, element), &token) in expected {
            let (tile, offset) = tokens.homes[var].locate(element);
            let at = Loc { tile, object: Object::Var(var), offset };
            if self.load(at, tokens.homes[var].elem_bytes)? != token {
                return Err(format!("a written element is not at home on tile {tile}"));
            }
        }
        let mut touched: Vec<(u32, VarId)> = vec![];
        touched.extend(self.blocks.keys().filter_map(|&(tile, object)| match object {
            Object::Var(var) => Some((tile, var)),
            Object::Buffer(_) => None,
        }));
        touched.sort_unstable();
        for (tile, var) in touched {
            let homes = &tokens.homes[var];
            for run in tokens.runs[var][&tile].iter().map(|&k| homes.runs[k]) {
                for element in run.elements().filter(|&e| !expected.contains_key(&(var, e))) {
                    let offset = run.offset + (element as u32 - run.start) * homes.elem_bytes;
                    let at = Loc { tile, object: Object::Var(var), offset };
                    if self.load(at, homes.elem_bytes)? != tokens.first(var, element) {
                        return Err(format!("element {element} of a variable on tile {tile} is overwritten"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The form of a transfer.
fn check(phase: &Phase, transfer: &Transfer, machine: &Machine) -> Result<(), String> {
    let to: Vec<Loc> = phase.receivers(transfer).collect();
    let aligned = to.iter().chain([&transfer.from]).all(|l| l.offset.is_multiple_of(4) && l.tile < machine.tiles());
    if transfer.words == 0 || !aligned {
        return Err("a transfer is not of whole words between tiles of the machine".into());
    }
    let all = match transfer.to {
        To::One(_) => &[][..],
        To::Group { group, .. } => phase.groups.get(group as usize).map_or(&[][..], Vec::as_slice),
    };
    let ascending = all.is_sorted_by(|a, b| a.tile < b.tile);
    if to.is_empty() || !ascending || to.iter().any(|l| l.tile == transfer.from.tile) {
        return Err(format!("a transfer from tile {} has no ascending receivers other than it", transfer.from.tile));
    }
    Ok(())
}
