//! The memory of a tile as the packer sees it: zones, and the addresses that share a memory element.
//!
//! Memory continues without limit after its real end. Blocks that do not fit are placed there, so their addresses show
//! the excess.
//!
//! Invariant: the ranges of a zone ascend and are disjoint, and the last one has no end.

use girder_machine::{Machine, MemoryRegion};
use std::ops::Range;

/// Blocks start at multiples of this.
pub(super) const ALIGN: u64 = 8;

/// The part of memory where an item may be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Zone {
    /// All memory.
    Any,
    /// Memory that can run code.
    Executable,
    /// Memory with interleaved elements.
    Interleaved,
}

/// A memory to pack.
#[derive(Clone, Debug)]
pub struct Space {
    /// The alignment of addresses.
    pub align: u64,
    /// The first usable address.
    floor: u64,
    executable: Vec<Range<u64>>,
    interleaved: Vec<Range<u64>>,
    /// The starts of elements; those after the last one are all `element` long.
    bounds: Vec<u64>,
    element: u64,
}

impl Space {
    /// Returns memory without structure, from an address on.
    pub fn plain(floor: u64, align: u64) -> Space {
        let floor = floor.next_multiple_of(align);
        Space { align, floor, executable: vec![], interleaved: vec![], bounds: vec![0], element: 1 << 40 }
    }

    /// Returns a tile's memory.
    pub fn of_tile(machine: &Machine, align: u64) -> Space {
        let memory = &machine.memory;
        let element = memory.element_bytes as u64;
        let (mut at, mut bounds) = (0, vec![]);
        for region in &memory.regions {
            // Interleaved elements are accessed in pairs, so two addresses of one pair may conflict.
            let step = if region.interleaved { 2 * element } else { element };
            let end = at + region.bytes as u64;
            bounds.extend((at..end).step_by(step.max(1) as usize));
            at = end;
        }
        bounds.push(at);
        Space {
            align,
            floor: 0,
            executable: zone(machine, |r| r.executable),
            interleaved: zone(machine, |r| r.interleaved),
            bounds,
            element: element.max(align),
        }
    }

    /// Returns the ranges of a zone.
    pub fn zone(&self, zone: Zone) -> &[Range<u64>] {
        let all = std::slice::from_ref(const { &(0..u64::MAX) });
        match zone {
            Zone::Executable if !self.executable.is_empty() => &self.executable,
            Zone::Interleaved if !self.interleaved.is_empty() => &self.interleaved,
            _ => all,
        }
    }

    /// Returns the first address that anything may have.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns the elements that a range touches, as a range.
    pub fn elements(&self, range: &Range<u64>) -> Range<u64> {
        let last = *self.bounds.last().unwrap_or(&0);
        let behind = |at: u64, round: fn(u64, u64) -> u64| last + round(at - last, self.element);
        let start = match self.bounds.partition_point(|&b| b <= range.start) {
            _ if range.start >= last => behind(range.start, |n, e| n / e * e),
            k => self.bounds[k - 1],
        };
        let end = match self.bounds.partition_point(|&b| b < range.end) {
            k if k < self.bounds.len() => self.bounds[k],
            _ => behind(range.end, u64::next_multiple_of),
        };
        start..end
    }
}

/// Returns the usable addresses of regions of a kind, and everything after the end of memory. Neighbouring regions are
/// merged.
fn zone(machine: &Machine, is: impl Fn(&MemoryRegion) -> bool) -> Vec<Range<u64>> {
    let (mut at, mut ranges): (u64, Vec<Range<u64>>) = (0, vec![]);
    for region in &machine.memory.regions {
        let end = at + region.bytes as u64;
        let usable = at..end.min(machine.usable_bytes() as u64);
        match ranges.last_mut() {
            _ if !is(region) || usable.is_empty() => {}
            Some(last) if last.end == at => last.end = usable.end,
            _ => ranges.push(usable),
        }
        at = end;
    }
    ranges.push(at..u64::MAX);
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_those_of_the_regions() {
        let space = Space::of_tile(&girder_machine::builtin("gc200").unwrap(), 8);
        let (kib, plain) = (1024, 13 * 16 * 1024);
        assert_eq!(space.elements(&(0..8)), 0..16 * kib);
        assert_eq!(space.elements(&(16 * kib - 8..16 * kib + 8)), 0..32 * kib);
        assert_eq!(space.elements(&(plain + 8..plain + 20 * kib)), plain..plain + 32 * kib);
        let end = 624 * kib;
        assert_eq!(space.elements(&(end - 8..end + 8)), end - 32 * kib..end + 16 * kib);
        assert_eq!(space.elements(&(end + 17 * kib..end + 18 * kib)), end + 16 * kib..end + 32 * kib);
        assert_eq!(space.zone(Zone::Interleaved)[0].start, plain);
        assert_eq!(space.zone(Zone::Executable)[0], 0..plain);
    }
}
