//! The open shop of one processor: its transfers as edges between senders and groups of receivers.
//!
//! # Note: The sender among its receivers
//! If a member of a group sends a word itself, the word goes only to the other members, so each sender of a group has
//! its own group, without itself. These groups are treated as one port, in which the sender receives nothing. Only the
//! tiles that cannot receive other words at the same time matter.
//!
//! Invariant: no two ports have the same tiles. Every receiver on the processor is in the port of exactly one edge of
//! each of its transfers.

use crate::schedule_exchange::ports;
use girder_ir::plan::{Loc, Object, Phase, To};
use girder_ir::schedule::Served;
use girder_machine::Machine;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of destinations of a word up to which its receivers are distinguished.
const PLACES: usize = 4;

/// The key that distinguishes destinations: the index of the block among the blocks of the tile that words of the phase
/// reach, and the byte if there is at most one such block on each tile.
pub(super) type LandingKey = (u32, u32);

/// The transfers of one processor with their ports.
pub(super) struct OpenShop<'a> {
    pub machine: &'a Machine,
    pub edges: Vec<Edge>,
    /// The tiles of each receiving port, relative to the processor's first, ascending; no two ports have the same.
    pub tiles: Vec<Vec<u32>>,
    /// The receivers of edges that serve only some.
    pub served: Vec<u32>,
}

/// A transfer to all of its receivers on the processor, or to some.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub transfer: u32,
    /// The tile, relative to the processor's first.
    pub sender: u32,
    pub port: u32,
    pub words: u32,
    pub cycles: u64,
    /// The receivers; if they are only some of the transfer's, they are in [`OpenShop::served`].
    pub to: Served,
}

/// Receivers that are served together: their port, and their positions.
type PortShare = (u32, Served);

/// The ports found so far, by their tiles.
#[derive(Default)]
struct PortTiles {
    numbers: FxHashMap<Vec<u32>, u32>,
    list: Vec<Vec<u32>>,
}

impl PortTiles {
    fn number(&mut self, tiles: Vec<u32>) -> u32 {
        *self.numbers.entry(tiles).or_insert_with_key(|tiles| {
            self.list.push(tiles.clone());
            self.list.len() as u32 - 1
        })
    }
}

impl<'a> OpenShop<'a> {
    /// Creates the problem with all receivers of a transfer together, or separately by destination block.
    pub fn new(
        phase: &Phase,
        machine: &'a Machine,
        ipu: u32,
        transfers: &[u32],
        blocks: Option<&Blocks>,
    ) -> OpenShop<'a> {
        let (first, count) = (ipu * machine.chip.tiles, machine.chip.tiles);
        let here = |tile: u32| tile.checked_sub(first).filter(|t| *t < count);
        let (mut tiles, mut served) = (PortTiles::default(), vec![]);
        let mut of_group: Vec<Option<Vec<PortShare>>> = vec![None; phase.groups.len()];
        let mut of_one: Vec<Option<PortShare>> = vec![None; count as usize];
        let mut edges = Vec::with_capacity(transfers.len());
        for &t in transfers {
            let transfer = &phase.transfers[t as usize];
            let one;
            let parts: &[PortShare] = match transfer.to {
                To::Group { group, .. } => of_group[group as usize].get_or_insert_with(|| {
                    let places = (0..).zip(&phase.groups[group as usize]);
                    let own = places
                        .filter_map(|(k, l)| here(l.tile).map(|t| (t, k, blocks.map_or((0, 0), |b| b.place(t, l)))));
                    parts(&own.collect::<Vec<_>>(), &mut tiles, &mut served)
                }),
                To::One(loc) => match here(loc.tile) {
                    Some(tile) => {
                        let all = || (tiles.number(vec![tile]), Served::All);
                        one = [*of_one[tile as usize].get_or_insert_with(all)];
                        &one
                    }
                    None => continue,
                },
            };
            let (sender, words) = (transfer.from.tile - first, transfer.words);
            let cycles = ports::cycles(words, false, machine);
            for &(port, to) in parts {
                if let Some(to) = without_sender(to, phase, t, &mut served) {
                    edges.push(Edge { transfer: t, sender, port, words, cycles, to });
                }
            }
        }
        let mut shop = OpenShop { machine, edges, tiles: tiles.list, served };
        shop.join_senders(tiles.numbers);
        shop
    }

    /// Merges ports that differ only by their single sender.
    fn join_senders(&mut self, numbers: FxHashMap<Vec<u32>, u32>) {
        // The sender of each port, if there is only one.
        let mut only: Vec<Option<Option<u32>>> = vec![None; self.tiles.len()];
        for edge in &self.edges {
            let known = only[edge.port as usize].get_or_insert(Some(edge.sender));
            *known = known.filter(|&s| s == edge.sender);
        }
        let mut unions: FxHashMap<Vec<u32>, Vec<u32>> = FxHashMap::default();
        for (port, sender) in (0..).zip(only) {
            let tiles = &self.tiles[port as usize];
            if let Some(Some(sender)) = sender
                && let Err(at) = tiles.binary_search(&sender)
                && tiles.len() > 1
            {
                let mut union = tiles.clone();
                union.insert(at, sender);
                unions.entry(union).or_default().push(port);
            }
        }
        let mut joined: Vec<u32> = (0..self.tiles.len() as u32).collect();
        let mut unions: Vec<_> = unions.into_iter().collect();
        unions.sort_unstable_by(|a, b| a.1.cmp(&b.1));
        for (union, own) in unions {
            let target = match numbers.get(&union) {
                Some(&port) => port,
                None if own.len() > 1 => {
                    self.tiles.push(union);
                    self.tiles.len() as u32 - 1
                }
                None => continue,
            };
            own.iter().for_each(|&port| joined[port as usize] = target);
        }
        self.edges.iter_mut().for_each(|e| e.port = joined[e.port as usize]);
        self.renumber();
    }

    /// Drops the ports without edges.
    fn renumber(&mut self) {
        let mut number = vec![u32::MAX; self.tiles.len()];
        self.edges.iter().for_each(|e| number[e.port as usize] = 0);
        let mut tiles = vec![];
        for (number, own) in number.iter_mut().zip(std::mem::take(&mut self.tiles)) {
            if *number == 0 {
                *number = tiles.len() as u32;
                tiles.push(own);
            }
        }
        self.tiles = tiles;
        self.edges.iter_mut().for_each(|e| e.port = number[e.port as usize]);
    }

    /// Returns whether some edge serves only some receivers.
    pub fn is_cut(&self) -> bool {
        self.edges.iter().any(|e| e.to != Served::All)
    }

    /// Returns whether ports of several tiles receive at least this many transfers for each member.
    pub fn is_shared(&self, least: usize) -> bool {
        let several = |port: u32| Some(self.tiles[port as usize].len()).filter(|&n| n > 1).unwrap_or(0);
        let places: usize = (0..self.tiles.len() as u32).map(several).sum();
        places > 0 && self.edges.iter().map(|e| several(e.port)).sum::<usize>() >= least * places
    }

    /// Returns the number of arrivals of transfers at tiles.
    pub fn receipts(&self) -> usize {
        self.edges.iter().map(|e| self.tiles[e.port as usize].len()).sum()
    }
}

/// Returns some receivers of a group as positions among those of a transfer whose sender may be in the group, or `None`
/// if the sender is the only one.
fn without_sender(to: Served, phase: &Phase, transfer: u32, served: &mut Vec<u32>) -> Option<Served> {
    let (Served::Some { first, count }, transfer) = (to, &phase.transfers[transfer as usize]) else { return Some(to) };
    let To::Group { group, .. } = transfer.to else { return Some(to) };
    let Ok(own) = phase.groups[group as usize].binary_search_by_key(&transfer.from.tile, |l| l.tile) else {
        return Some(to);
    };
    let (own, start) = (own as u32, served.len());
    for k in first as usize..(first + count) as usize {
        let position = served[k];
        if position != own {
            served.push(position - (position > own) as u32);
        }
    }
    let left = served.len() - start;
    (left > 0).then_some(Served::Some { first: start as u32, count: left as u32 })
}

/// The destination blocks of each tile.
pub(super) struct Blocks {
    /// The blocks of each tile, ascending.
    of_tile: Vec<SmallVec<[Object; 2]>>,
    /// Whether no tile has more than one block.
    are_alone: bool,
}

impl Blocks {
    /// Returns the destination blocks of one processor.
    pub fn of(phase: &Phase, machine: &Machine, ipu: u32) -> Blocks {
        let (first, count) = (ipu * machine.chip.tiles, machine.chip.tiles);
        let mut of_tile = vec![SmallVec::new(); count as usize];
        let mut add = |loc: &Loc| {
            if let Some(list) = loc.tile.checked_sub(first).and_then(|t| of_tile.get_mut(t as usize))
                && !list.contains(&loc.object)
            {
                list.push(loc.object);
            }
        };
        phase.groups.iter().flatten().for_each(&mut add);
        for transfer in &phase.transfers {
            if let To::One(loc) = &transfer.to {
                add(loc);
            }
        }
        of_tile.iter_mut().for_each(|list| list.sort_unstable());
        Blocks { are_alone: of_tile.iter().all(|list| list.len() < 2), of_tile }
    }

    /// Returns the key of a destination on a tile, relative to the processor's first.
    pub fn place(&self, tile: u32, loc: &Loc) -> LandingKey {
        let list = &self.of_tile[tile as usize];
        let number = list.binary_search(&loc.object).unwrap_or(0) as u32;
        (number, if self.are_alone { loc.offset } else { 0 })
    }
}

/// Returns the parts of a group on a processor (tile relative to its first, position, key): one for each key, or a
/// single one if there are too many keys.
fn parts(own: &[(u32, u32, LandingKey)], tiles: &mut PortTiles, served: &mut Vec<u32>) -> Vec<PortShare> {
    if own.is_empty() {
        return vec![];
    }
    let mut places: SmallVec<[LandingKey; 8]> = own.iter().map(|o| o.2).collect();
    places.sort_unstable();
    places.dedup();
    if places.len() == 1 || places.len() > PLACES {
        return vec![(tiles.number(own.iter().map(|o| o.0).collect()), Served::All)];
    }
    let part = |&place: &LandingKey| {
        let some = || own.iter().filter(|o| o.2 == place);
        let first = served.len() as u32;
        served.extend(some().map(|o| o.1));
        let port = tiles.number(some().map(|o| o.0).collect());
        (port, Served::Some { first, count: served.len() as u32 - first })
    };
    places.iter().map(part).collect()
}
