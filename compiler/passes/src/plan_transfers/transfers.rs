//! Merges sends to single receivers into transfers to many: what goes to several tiles is sent once.
//!
//! # Note: Tiles are independent
//! No decision here concerns words of two senders. So sends are grouped by sender, then sorted and joined in parallel.
//! Many short sorts are faster than a long one.
//!
//! # Note: Words that are shared in part
//! One vertex may read four words, and another the first of them. If the four are cut after the first, each word is
//! sent once, but the receivers of the four words get two transfers instead of one, which takes exchange code and makes
//! the schedule longer to find. So sends are only cut where the sender's time matters: if it would otherwise send for
//! more than half as long as the busiest tile receives, or over a link.
//!
//! Invariant: each receiver gets the words that were sent to it, at their destinations. The order of the result depends
//! on the sends alone.

use super::moves::form;
use super::order::{order, ranks};
use super::shared;
use crate::small_pieces::MANY_PIECES;
use cranelift_entity::EntityRef;
use girder_ir::plan::{Grouping, Loc, Object, To, Transfer};
use girder_source::{par_for_each, par_map_slice};

/// Whole words from one tile to another, or to a shared location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Send {
    /// First word.
    pub from: Loc,
    /// First word.
    pub to: Loc,
    /// How many.
    pub words: u32,
}

/// The factor by which cutting may multiply the number of sends.
const MAX_CUT: usize = 4;

/// Where sends that share only a part of their words are cut.
#[derive(Clone, Copy, Default)]
pub(super) enum Cutting {
    /// Everywhere.
    #[default]
    All,
    /// Where the sender's time matters, or on the way to another processor; `processor_tiles` is the number of tiles of
    /// a processor.
    Busy { processor_tiles: u32 },
}

/// Cuts sends that share only a part of their words, and merges those of the same words. No send continues another: see
/// [`scattered`]. Returns the transfers and the groups that they name.
pub(super) fn assemble(mut sends: Vec<Send>, mut groups: Grouping, cutting: Cutting) -> (Vec<Transfer>, Vec<Vec<Loc>>) {
    sends = sorted_by_source(sends);
    if let Some(cut) = cut(&sends, &groups, cutting) {
        sends = sorted_by_source(cut);
    }
    let mut transfers = Vec::with_capacity(sends.chunk_by(same_words).count());
    let mut places = vec![];
    for same in sends.chunk_by(same_words) {
        merge(same, &mut transfers, (&mut groups, &mut places));
    }
    drop(sends);
    let mut transfers = sorted_by_form(transfers, &groups);
    let groups = numbered(&mut transfers, groups);
    (transfers, groups)
}

/// Returns the sends by sender. Those of one sender keep their order.
fn by_sender(sends: &[Send]) -> Vec<Send> {
    let tiles = sends.iter().map(|s| s.from.tile as usize + 1).max().unwrap_or(0);
    let mut at = vec![0u32; tiles + 1];
    sends.iter().for_each(|s| at[s.from.tile as usize + 1] += 1);
    (1..at.len()).for_each(|t| at[t] += at[t - 1]);
    let mut order = vec![0u32; sends.len()];
    for (k, send) in (0..).zip(sends) {
        let place = &mut at[send.from.tile as usize];
        order[*place as usize] = k;
        *place += 1;
    }
    order.into_iter().map(|k| sends[k as usize]).collect()
}

fn is_one_sender(a: &Send, b: &Send) -> bool {
    a.from.tile == b.from.tile
}

fn sorted_by_source(sends: Vec<Send>) -> Vec<Send> {
    let mut sorted = match sends.is_sorted_by_key(|s| s.from.tile) {
        true => sends,
        false => by_sender(&sends),
    };
    par_for_each(sorted.chunk_by_mut(is_one_sender).collect(), |own: &mut [Send]| {
        own.sort_unstable_by_key(|s| (number(s.from), s.words, number(s.to)));
    });
    sorted
}

/// Returns the groups in the order in which transfers first name them.
fn numbered(transfers: &mut [Transfer], groups: Grouping) -> Vec<Vec<Loc>> {
    let mut groups = groups.into_groups();
    let (mut new, mut list) = (vec![u32::MAX; groups.len()], vec![]);
    for transfer in transfers {
        let To::Group { group, .. } = &mut transfer.to else { continue };
        let number = &mut new[*group as usize];
        if *number == u32::MAX {
            *number = list.len() as u32;
            list.push(std::mem::take(&mut groups[*group as usize]));
        }
        *group = *number;
    }
    list
}

pub(super) fn same_words(a: &Send, b: &Send) -> bool {
    a.from == b.from && a.words == b.words
}

/// Returns a location as a number in the same order: numbers are compared faster.
pub(super) fn number(loc: Loc) -> u128 {
    let object = match loc.object {
        Object::Var(var) => var.index() as u64,
        Object::Buffer(buffer) => 1 << 32 | buffer as u64,
    };
    (loc.tile as u128) << 96 | (object as u128) << 32 | loc.offset as u128
}

/// Sorts transfers by their forms. Transfers of one form keep the order of their sources.
fn sorted_by_form(transfers: Vec<Transfer>, groups: &Grouping) -> Vec<Transfer> {
    let ranks = ranks(transfers.iter().map(|t| TransferForm::of(t, groups).size));
    let key = |k: usize| {
        let (t, form) = (&transfers[k], TransferForm::of(&transfers[k], groups));
        [ranks[k] as u64, form.offsets.0 as u64, form.offsets.1 as u64, form.distance, t.from.tile as u64]
    };
    let order = order(transfers.len(), key, |k| number(transfers[k].from));
    order.into_iter().map(|k| transfers[k as usize]).collect()
}

/// The words, the number of receivers, and the variables of source and destination.
type Size = (u32, u32, u32, u32);

/// The form of a transfer. Transfers over the same distance, from and to the same bytes, are neighbours: they are one
/// round of the schedule, and one row of the text.
struct TransferForm {
    size: Size,
    /// The first bytes at the source and at the destination.
    offsets: (u32, u32),
    /// The distance from the sender to the first receiver, plus 2³² so that it is positive.
    distance: u64,
}

impl TransferForm {
    fn of(t: &Transfer, groups: &Grouping) -> TransferForm {
        let (to, count) = match t.to {
            To::One(loc) => (loc, 1),
            To::Group { group, offset } => {
                let places = groups.locations(group);
                (Loc { offset: places[0].offset + offset, ..places[0] }, places.len() as u32)
            }
        };
        let from = t.from;
        let object = |object| form(object).map_or(0, |var| 1 + var.as_u32());
        TransferForm {
            size: (t.words, count, object(from.object), object(to.object)),
            offsets: (from.offset, to.offset),
            distance: (to.tile as i64 - from.tile as i64 + (1 << 32)) as u64,
        }
    }
}

/// Joins sends of one tile that continue one another.
fn join(sends: &mut Vec<Send>) {
    sends.sort_unstable_by_key(|s| (number(s.to), number(s.from), s.words));
    sends.dedup_by(|next, last| continues(last, next) && grow(last, next.words));
}

/// Joins sends that continue one another, and removes those that should go to a staging buffer together. Among the
/// sends of neighbouring words of one block to one tile, these are many small ones, and those that send each word more
/// than twice. The sends that replace them are separate, so nothing continues another afterwards.
pub(super) fn scattered(sends: &mut Vec<Send>, few_bytes: u32) -> Vec<Send> {
    let grouped = by_sender(sends);
    let own: Vec<&[Send]> = grouped.chunk_by(is_one_sender).collect();
    let found = par_map_slice(&own, |own| (!is_spread(own)).then(|| scattered_of_one(own.to_vec(), few_bytes)));
    if found.iter().all(Option::is_none) {
        *sends = grouped;
        return vec![];
    }
    sends.clear();
    let mut taken = vec![];
    for (own, found) in own.into_iter().zip(found) {
        match found {
            None => sends.extend_from_slice(own),
            Some((kept, others)) => {
                sends.extend(kept);
                taken.extend(others);
            }
        }
    }
    taken
}

/// Returns whether each send of one tile goes to another receiver, in ascending order: there is nothing to join.
fn is_spread(own: &[Send]) -> bool {
    own.windows(2).all(|w| receiver(&w[0]) < receiver(&w[1]))
}

/// Does the same for the sends of one tile. Returns those that stay and those that are removed.
fn scattered_of_one(mut sends: Vec<Send>, few_bytes: u32) -> (Vec<Send>, Vec<Send>) {
    join(&mut sends);
    sends.sort_unstable_by_key(|s| (receiver(s), number(s.from), number(s.to), s.words));
    let (mut kept, mut taken) = (vec![], vec![]);
    let mut rest = sends.as_slice();
    while let Some(first) = rest.first() {
        let (mut end, mut words, mut n) = (first.from.offset, 0, 0);
        let near =
            |s: &Send, end: u32| (receiver(s), source(s)) == (receiver(first), source(first)) && s.from.offset <= end;
        while let Some(s) = rest.get(n).filter(|s| near(s, end)) {
            end = end.max(s.from.offset + 4 * s.words);
            words += s.words as u64;
            n += 1;
        }
        let distinct = (end - first.from.offset) as u64 / 4;
        let small = n >= MANY_PIECES as usize && 4 * words < n as u64 * few_bytes as u64;
        if small || words > 2 * distinct { &mut taken } else { &mut kept }.extend_from_slice(&rest[..n]);
        rest = &rest[n..];
    }
    (kept, taken)
}

/// Returns the tile, or the group of tiles, that a send is for.
fn receiver(s: &Send) -> (u32, u32) {
    (s.to.tile, shared::group(s.to).map_or(0, |g| g.0))
}

fn continues(last: &Send, next: &Send) -> bool {
    let follows = |a: Loc, b: Loc| (a.tile, a.object, a.offset + 4 * last.words) == (b.tile, b.object, b.offset);
    follows(last.from, next.from) && follows(last.to, next.to)
}

fn grow(send: &mut Send, words: u32) -> bool {
    send.words += words;
    true
}

/// Returns the sends, sorted by source and cut wherever another send of the same block starts or ends inside, as far as
/// that is worth it; `None` if none is cut or too many are.
fn cut(sends: &[Send], groups: &Grouping, cutting: Cutting) -> Option<Vec<Send>> {
    if sends.chunk_by(|a, b| source(a) == source(b)).all(share_no_words_in_part) {
        return None;
    }
    let most = match cutting {
        Cutting::All => 0,
        Cutting::Busy { .. } => most_received(sends, groups) / 2,
    };
    let mut result = Vec::with_capacity(sends.len());
    for own in sends.chunk_by(is_one_sender) {
        if is_idle(own, groups, cutting, most) {
            result.extend_from_slice(own);
            continue;
        }
        for block in own.chunk_by(|a, b| source(a) == source(b)) {
            cut_block(block, &mut result);
            if result.len() > MAX_CUT * sends.len() {
                return None;
            }
        }
    }
    (result.len() > sends.len()).then_some(result)
}

/// Adds the sends of a block, cut wherever another one starts or ends inside.
fn cut_block(block: &[Send], result: &mut Vec<Send>) {
    let end = |s: &Send| s.from.offset + 4 * s.words;
    let mut edges: Vec<u32> = block.iter().flat_map(|s| [s.from.offset, end(s)]).collect();
    edges.sort_unstable();
    edges.dedup();
    for send in block {
        let first = edges.partition_point(|&e| e <= send.from.offset);
        let mut at = send.from.offset;
        for &edge in edges[first..].iter().take_while(|&&e| e <= end(send)) {
            let shift = at - send.from.offset;
            let (from, to) = (Loc { offset: at, ..send.from }, Loc { offset: send.to.offset + shift, ..send.to });
            result.push(Send { from, to, words: (edge - at) / 4 });
            at = edge;
        }
    }
}

/// Returns the words that the busiest tile receives.
fn most_received(sends: &[Send], groups: &Grouping) -> u64 {
    let mut received: Vec<u64> = vec![];
    for send in sends {
        for to in shared::receivers(groups, send.to, send.from.tile) {
            let tile = to.tile as usize;
            if tile >= received.len() {
                received.resize(tile + 1, 0);
            }
            received[tile] += send.words as u64;
        }
    }
    received.into_iter().max().unwrap_or(0)
}

/// Returns whether a sender has time to send words more than once: at most `most` words in all, none of them to another
/// processor.
fn is_idle(own: &[Send], groups: &Grouping, cutting: Cutting, most: u64) -> bool {
    let Cutting::Busy { processor_tiles } = cutting else { return false };
    let words: u64 = own.chunk_by(same_words).map(|same| same[0].words as u64).sum();
    let processor = |tile: u32| tile / processor_tiles;
    let stays = |s: &Send| {
        let mut receivers = shared::receivers(groups, s.to, s.from.tile);
        receivers.all(|to| processor(to.tile) == processor(s.from.tile))
    };
    words <= most && own.iter().all(stays)
}

/// Returns whether any two sends of one block, sorted by source, have the same words or none in common, so that nothing
/// is cut.
fn share_no_words_in_part(block: &[Send]) -> bool {
    let end = |s: &Send| s.from.offset + 4 * s.words;
    block.windows(2).all(|w| same_words(&w[0], &w[1]) || w[1].from.offset >= end(&w[0]))
}

fn source(s: &Send) -> (u32, Object) {
    (s.from.tile, s.from.object)
}

/// Merges sends of the same words: one transfer, and another for each further location on the same tile.
fn merge(same: &[Send], transfers: &mut Vec<Transfer>, (groups, places): (&mut Grouping, &mut Vec<Loc>)) {
    let Send { from, words, .. } = same[0];
    if let [only] = same {
        return transfers.push(Transfer { from, to: shared::to(only.to), words });
    }
    places.clear();
    places.extend(same.iter().flat_map(|s| shared::receivers(groups, s.to, from.tile)));
    places.sort_unstable_by_key(|l| number(*l));
    if !places.is_empty() && places.windows(2).all(|w| w[0].tile != w[1].tile) {
        return transfers.push(Transfer { from, to: groups.to(places), words });
    }
    let mut lists: Vec<Vec<Loc>> = vec![];
    for tile in places.chunk_by(|a, b| a.tile == b.tile) {
        for (k, &place) in tile.iter().enumerate() {
            match lists.get_mut(k) {
                Some(list) => list.push(place),
                None => lists.push(vec![place]),
            }
        }
    }
    transfers.extend(lists.iter().map(|list| Transfer { from, to: groups.to(list), words }));
}
