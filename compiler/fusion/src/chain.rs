//! Chains of consecutive maps that run as one, and the elements of a chain that are in memory.
//!
//! # Note: Fused maps
//! Maps over the same iterations may run iteration by iteration, one map after another in each, if no iteration touches
//! an element that another iteration writes. This holds under two conditions. Any two accesses of one variable, at
//! least one of them a write, name the same element in every iteration, or share no byte. The same holds for any two
//! accesses in memory, because variables share memory. An element that a map writes is then passed to the later maps in
//! a register. It is stored only if other code may read it: a step outside the chain, the host, or an earlier map of
//! the chain when it runs again.
//!
//! Invariant: the steps of a [`Chain`] leave every byte that other code reads as the separate steps would.

use crate::map::{Function, Map};
use crate::space::{Access, IterationSpace};
use girder_ir::ids::VarId;

/// Maximal number of maps in a chain.
const MOST_MAPS: usize = 24;
/// Maximal number of expressions in the functions of a chain.
const MOST_EXPRESSIONS: usize = 1 << 12;
/// Maximal number of elements per iteration in memory, for which a kernel has registers.
const MOST_SLOTS: usize = 12;
/// An element of each iteration, by its address.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The element.
    pub access: Access,
    /// The variables to which the element belongs; several variables may share memory at different times.
    vars: Vec<VarId>,
    /// The variables through which it is read before it is written.
    loaded: Vec<VarId>,
    /// The variables through which it is written.
    written: Vec<VarId>,
}

/// Consecutive maps over the same iterations.
#[derive(Clone, Debug)]
pub struct Chain<'g> {
    /// The maps, in the order in which they run.
    pub maps: Vec<Map<'g>>,
    /// The slot of each access of each map.
    pub at: Vec<Vec<usize>>,
    /// The elements that the maps access.
    pub slots: Vec<Slot>,
    /// The iterations, with an access for each slot.
    pub space: IterationSpace,
}

/// The slots of a chain that are in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySlots {
    /// Slots that are loaded at the beginning of an iteration.
    pub loads: Vec<bool>,
    /// Slots that are stored at the end of an iteration.
    pub stores: Vec<bool>,
    /// The iterations, with the accesses of the slots in memory, in order.
    pub space: IterationSpace,
}

impl<'g> Chain<'g> {
    /// Returns the chain of one map.
    pub fn new(map: &Map<'g>) -> Chain<'g> {
        let space = IterationSpace { extents: map.space.extents.clone(), accesses: Vec::new() };
        let mut chain = Chain { maps: Vec::new(), at: Vec::new(), slots: Vec::new(), space };
        chain.push(map, &map.space);
        chain
    }

    /// Appends a map over the same iterations that shares an element with the others; returns whether it was appended.
    pub fn take(&mut self, map: &Map<'g>) -> bool {
        self.append_if(map, |own, other| other.accesses.iter().any(|a| own.accesses.iter().any(|b| is_same(a, b))))
    }

    /// Appends a map over the same iterations; returns whether it was appended.
    pub fn append(&mut self, map: &Map<'g>) -> bool {
        self.append_if(map, |_, _| true)
    }

    fn append_if(&mut self, map: &Map<'g>, fits: impl Fn(&IterationSpace, &IterationSpace) -> bool) -> bool {
        let size: usize = self.maps.iter().map(|m| m.size).sum();
        let is_small = self.maps.len() < MOST_MAPS && size + map.size <= MOST_EXPRESSIONS;
        if !is_small || self.space.len() != map.space.len() {
            return false;
        }
        let (own, other) = (self.space.cut_at(&map.space.products()), map.space.cut_at(&self.space.products()));
        let (Some(own), Some(other)) = (own, other) else { return false };
        if !fits(&own, &other) {
            return false;
        }
        self.slots.iter_mut().zip(&own.accesses).for_each(|(slot, access)| slot.access = access.clone());
        self.space = own;
        self.push(map, &other);
        true
    }

    fn push(&mut self, map: &Map<'g>, space: &IterationSpace) {
        let mut at = Vec::new();
        for (access, touch) in space.accesses.iter().zip(&map.uses) {
            let known = self.slots.iter().position(|s| is_same(&s.access, access));
            let slot = known.unwrap_or_else(|| {
                let (vars, loaded, written) = (Vec::new(), Vec::new(), Vec::new());
                self.slots.push(Slot { access: access.clone(), vars, loaded, written });
                self.space.accesses.push(access.clone());
                self.slots.len() - 1
            });
            at.push(slot);
            self.slots[slot].vars.push(access.var);
            // A slot that an earlier map has written is in a register.
            if touch.reads && self.slots[slot].written.is_empty() {
                self.slots[slot].loaded.push(access.var);
            }
        }
        for (&slot, (access, touch)) in at.iter().zip(space.accesses.iter().zip(&map.uses)) {
            if touch.writes {
                self.slots[slot].written.push(access.var);
            }
        }
        self.at.push(at);
        self.maps.push(map.clone());
    }

    /// Returns the slots in memory, or `None` if the maps cannot run iteration by iteration. `inside` tells whether no
    /// code but that of the chain touches a variable.
    pub fn memory_slots(&self, inside: impl Fn(VarId) -> bool) -> Option<MemorySlots> {
        let loads: Vec<bool> = self.slots.iter().map(|s| !s.loaded.is_empty()).collect();
        let is_stored = |s: &Slot| s.written.iter().any(|v| !inside(*v) || s.loaded.contains(v));
        let stores: Vec<bool> = self.slots.iter().map(is_stored).collect();
        let in_memory: Vec<usize> = (0..self.slots.len()).filter(|&n| loads[n] || stores[n]).collect();
        let extents = &self.space.extents;
        let hulls: Vec<_> = self.slots.iter().map(|s| s.access.hull(extents)).collect();
        let clash = |a: usize, b: usize| {
            let (one, other) = (&self.slots[a], &self.slots[b]);
            let meet = hulls[a].start < hulls[b].end && hulls[b].start < hulls[a].end;
            // Two variables that share memory conflict only if both are in memory.
            let of_one = one.vars.iter().any(|v| other.vars.contains(v));
            let both = in_memory.contains(&a) && in_memory.contains(&b);
            let writes = of_one && !(one.written.is_empty() && other.written.is_empty());
            meet && (writes || both && (stores[a] || stores[b]))
        };
        if in_memory.len() > MOST_SLOTS || (0..hulls.len()).any(|a| (0..a).any(|b| clash(a, b))) {
            return None;
        }
        let accesses = in_memory.iter().map(|&n| self.slots[n].access.clone()).collect();
        let mut space = IterationSpace { extents: extents.clone(), accesses };
        space.join();
        stores.contains(&true).then_some(MemorySlots { loads, stores, space })
    }

    /// Returns whether the chain contains more than copies.
    pub fn computes(&self) -> bool {
        self.maps.iter().any(|m| matches!(m.function, Function::Codelet(_)))
    }
}

/// Returns whether two accesses of one space are the same bytes, perhaps of two variables that share memory.
fn is_same(a: &Access, b: &Access) -> bool {
    (a.start, a.ty, &a.strides) == (b.start, b.ty, &b.strides)
}
