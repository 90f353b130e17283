//! Time slots: if no small number of layers of disjoint groups is balanced, a group receives in several slots.
//!
//! # Note: Slots
//! In one slot, ports without a common tile receive. The ports whose tiles have the most words left on average come
//! first, and each gets as many cycles as the slot has. A port thus gets its words in parts, between which other ports
//! get theirs. The problem is then not which layer a port belongs to, but how long each set of disjoint ports receives.
//! More slots approximate the load of the fullest tile better, but cut more transfers.
//!
//! # Note: Senders
//! Ports that receive at the same time would all begin with the first senders. So each begins at another position of
//! its list.
//!
//! Invariant: every word of a transfer is in one slice. [`LOOKS`] bounds the work.

use super::{Layered, OpenShop, Ports};
use crate::schedule_exchange::ports;
use girder_ir::schedule::TransferSlice;
use std::cmp::Reverse;

/// The number of slots that fill the fullest tile.
const SLOTS: u64 = 64;
/// The maximal number of visits to members of ports.
const LOOKS: usize = 1 << 23;

/// Ports without a common tile that receive at the same time, and their maximal number of cycles.
struct TimeSlot {
    ports: Vec<u32>,
    cycles: u64,
}

/// A part of a transfer, by its edge.
struct TransferPart {
    edge: u32,
    first: u32,
    words: u32,
    cycles: u64,
}

/// Returns the schedule of ports in time slots, or `None` if it is longer than `limit`.
pub(super) fn in_time_slots(shop: &OpenShop, limit: u64) -> Option<Layered> {
    let mut queues = Queues::new(shop);
    let (mut pieces, mut end) = (vec![], 0);
    for slot in slots(shop, limit)? {
        let mut parts: Vec<(u32, TransferPart)> = vec![];
        for &port in &slot.ports {
            queues.take(port, slot.cycles, |part| parts.push((port, part)));
        }
        let (start, length) = schedule_slot(shop, &parts);
        pieces.extend(parts.iter().zip(start).map(|((_, part), start)| TransferSlice {
            transfer: shop.edges[part.edge as usize].transfer,
            first: part.first,
            words: part.words,
            start: (end + start) as u32,
            to: shop.edges[part.edge as usize].to,
            paired: false,
        }));
        end += length;
        if end > limit {
            return None;
        }
    }
    queues.is_empty().then(|| Layered { pieces, served: shop.served.clone(), end, is_good: false })
}

/// Returns the slots, or `None` if they take longer than `limit` or too long to find.
fn slots(shop: &OpenShop, limit: u64) -> Option<Vec<TimeSlot>> {
    let mut left = shop.port_loads();
    let mut needs = vec![0u64; shop.machine.chip.tiles as usize];
    for (tiles, &load) in shop.tiles.iter().zip(&left) {
        tiles.iter().for_each(|&t| needs[t as usize] += load);
    }
    let most = (limit / SLOTS).max(1);
    let mut waiting: Vec<u32> = (0..left.len() as u32).filter(|&p| left[p as usize] > 0).collect();
    let (mut slots, mut total, mut looks) = (vec![], 0, LOOKS);
    let mut taken = vec![0u32; needs.len()];
    while !waiting.is_empty() {
        let places = waiting.iter().map(|&p| shop.tiles[p as usize].len()).sum();
        looks = looks.checked_sub(places)?;
        let mean = |tiles: &[u32]| tiles.iter().map(|&t| needs[t as usize]).sum::<u64>() / tiles.len().max(1) as u64;
        waiting.sort_by_cached_key(|&p| (Reverse(mean(&shop.tiles[p as usize])), Reverse(left[p as usize]), p));
        let number = slots.len() as u32 + 1;
        let mut ports = vec![];
        for &port in &waiting {
            let tiles = &shop.tiles[port as usize];
            if tiles.iter().all(|&t| taken[t as usize] != number) {
                tiles.iter().for_each(|&t| taken[t as usize] = number);
                ports.push(port);
            }
        }
        let cycles = ports.iter().map(|&p| left[p as usize]).min().unwrap_or(0).min(most);
        for &port in &ports {
            left[port as usize] -= cycles;
            shop.tiles[port as usize].iter().for_each(|&t| needs[t as usize] -= cycles);
        }
        waiting.retain(|&p| left[p as usize] > 0);
        slots.push(TimeSlot { ports, cycles });
        total += cycles;
        if total > limit {
            return None;
        }
    }
    Some(slots)
}

/// The words that each port still has to receive.
struct Queues<'a> {
    shop: &'a OpenShop<'a>,
    /// For each port, its edges from the last on, and how many words of the last one have been taken.
    of_port: Vec<(Vec<u32>, u32)>,
}

impl<'a> Queues<'a> {
    fn new(shop: &'a OpenShop) -> Queues<'a> {
        let mut of_port: Vec<(Vec<u32>, u32)> = vec![(vec![], 0); shop.tiles.len()];
        let mut order: Vec<u32> = (0..shop.edges.len() as u32).collect();
        order.sort_by_key(|&e| Reverse(shop.edges[e as usize].sender));
        order.iter().for_each(|&e| of_port[shop.edges[e as usize].port as usize].0.push(e));
        let ports = of_port.len();
        for (k, (edges, _)) in of_port.iter_mut().enumerate() {
            let first = k * edges.len() / ports;
            edges.rotate_left(first);
        }
        Queues { shop, of_port }
    }

    /// Takes the words that a port receives in some cycles.
    fn take(&mut self, port: u32, mut cycles: u64, mut f: impl FnMut(TransferPart)) {
        let rate = self.shop.machine.exchange.bytes_per_cycle as u64;
        let (edges, taken) = &mut self.of_port[port as usize];
        while let Some(&edge) = edges.last() {
            let left = self.shop.edges[edge as usize].words - *taken;
            let words = (left as u64).min(cycles * rate / 4) as u32;
            if words == 0 {
                break;
            }
            let part =
                TransferPart { edge, first: *taken, words, cycles: ports::cycles(words, false, self.shop.machine) };
            cycles -= part.cycles;
            f(part);
            *taken += words;
            if words == left {
                edges.pop();
                *taken = 0;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.of_port.iter().all(|q| q.0.is_empty())
    }
}

/// Returns the starts of the parts of one slot, and its length.
fn schedule_slot(shop: &OpenShop, parts: &[(u32, TransferPart)]) -> (Vec<u64>, u64) {
    let edges = parts.iter().map(|(port, part)| (shop.edges[part.edge as usize].sender, *port, part.cycles));
    shop.schedule(Ports::between(edges, shop.machine.chip.tiles, shop.tiles.len() as u32))
}
