//! Which consecutive maps run as one, and what of their elements is in memory before and after.
//!
//! # Note: Fused maps
//! Maps over the same places may run place by place, one after another at each, if no place touches an element that
//! another one writes. That holds if any two accesses of one variable of which one writes are the same element at every
//! place, or have no byte in common; and the same of any two accesses that are in memory, because variables share it.
//! What a map writes is then handed on in a register to those after it; it goes to memory only if
//! somebody may read it there: a step outside, the host, or the first of these maps when they run again.
//!
//! Invariant: the steps of a [`Chain`] leave every byte that anything else reads as they would one after another.

use super::map::{Function, Map};
use super::space::{Access, Space};
use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::{StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::View;

/// The most maps of a chain.
const MOST_MAPS: usize = 24;
/// The most expressions of the functions of a chain.
const MOST_EXPRESSIONS: usize = 1 << 12;
/// The most elements at a place: what a kernel has registers for.
const MOST_SLOTS: usize = 12;
/// The most places of a row: loops of no more turns are not counted (see the note on turns in
/// `girder_codelet::interpret`).
pub(super) const MOST_PLACES: u64 = girder_codelet::interpret::FREE_ITERATIONS;

/// The first and the last step that touch each variable.
pub(super) struct Lifetimes(SecondaryMap<VarId, Option<(StepId, StepId)>>);

impl Lifetimes {
    pub fn of(graph: &Graph) -> Lifetimes {
        let mut all = Lifetimes(SecondaryMap::new());
        for (id, step) in &graph.steps {
            match &step.kind {
                StepKind::Execute(set) => {
                    let fields = graph.sets[*set].families.iter().flat_map(|&f| &graph.families[f].fields);
                    fields.flat_map(|f| &f.parts).for_each(|p| all.touch(p.var, id));
                }
                StepKind::Copy(copy) => {
                    let fields = graph.copies[*copy].families.iter().flat_map(|f| [&f.dst, &f.src]);
                    fields.flat_map(|f| &f.parts).for_each(|p| all.touch(p.var, id));
                }
                StepKind::Repeat { index, .. } => index.iter().for_each(|i| all.touch(i.0, id)),
                StepKind::While { cond: view, .. }
                | StepKind::If { cond: view, .. }
                | StepKind::Switch { on: view, .. }
                | StepKind::Effect(
                    Effect::Print { value: view, .. }
                    | Effect::Abort { when: Some(view), .. }
                    | Effect::Read { into: view, .. }
                    | Effect::Write { from: view, .. },
                ) => all.touch_view(view, id),
                StepKind::Seq(_)
                | StepKind::Par(_)
                | StepKind::Call(_)
                | StepKind::Effect(Effect::Abort { when: None, .. } | Effect::Say { .. } | Effect::Sync) => {}
            }
        }
        all
    }

    fn touch_view(&mut self, view: &View, step: StepId) {
        view.parts.iter().for_each(|p| self.touch(p.var, step));
    }

    fn touch(&mut self, var: VarId, step: StepId) {
        let (first, last) = self.0[var].unwrap_or((step, step));
        self.0[var] = Some((first.min(step), last.max(step)));
    }

    /// Whether only these steps touch a variable.
    fn is_within(&self, var: VarId, first: StepId, last: StepId) -> bool {
        self.0[var].is_some_and(|(from, to)| first <= from && to <= last)
    }
}

/// An element of each place.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub access: Access,
    /// The variables that it is an element of: more than one where they share memory one after another.
    vars: Vec<VarId>,
    /// The variables as which it is read before it is written.
    loaded: Vec<VarId>,
    /// The variables as which it is written.
    written: Vec<VarId>,
}

/// Consecutive maps over the same places.
#[derive(Clone, Debug)]
pub(super) struct Chain<'g> {
    pub maps: Vec<Map<'g>>,
    /// The slot of each access of each map.
    pub at: Vec<Vec<usize>>,
    pub slots: Vec<Slot>,
    /// With an access for each slot.
    pub space: Space,
}

/// What of a chain is in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kept {
    /// Slots that are read from memory first.
    pub loads: Vec<bool>,
    /// Slots that are written to memory at last.
    pub stores: Vec<bool>,
    /// The places, with the accesses of the slots that are in memory, in order: at most two extents.
    pub space: Space,
}

impl<'g> Chain<'g> {
    /// Of one map.
    pub fn new(map: &Map<'g>) -> Chain<'g> {
        let space = Space { extents: map.space.extents.clone(), accesses: Vec::new() };
        let mut chain = Chain { maps: Vec::new(), at: Vec::new(), slots: Vec::new(), space };
        chain.push(map, &map.space);
        chain
    }

    /// Appends a map over the same places that touches what the others touch; `false` if this is none.
    pub fn take(&mut self, map: &Map<'g>) -> bool {
        let size: usize = self.maps.iter().map(|m| m.size).sum();
        let fits = self.maps.len() < MOST_MAPS && size + map.size <= MOST_EXPRESSIONS;
        if !fits || self.space.len() != map.space.len() {
            return false;
        }
        let (own, other) = (self.space.cut_at(&map.space.products()), map.space.cut_at(&self.space.products()));
        let (Some(own), Some(other)) = (own, other) else { return false };
        if !other.accesses.iter().any(|a| own.accesses.iter().any(|b| is_same(a, b))) {
            return false;
        }
        self.slots.iter_mut().zip(&own.accesses).for_each(|(slot, access)| slot.access = access.clone());
        self.space = own;
        self.push(map, &other);
        true
    }

    fn push(&mut self, map: &Map<'g>, space: &Space) {
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
            // A slot that this map has written through another access is in a register already.
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

    /// What is in memory if these are the steps from `first` to `last`; `None` if they cannot run place by place.
    pub fn kept(&self, graph: &Graph, lifetimes: &Lifetimes, first: StepId, last: StepId) -> Option<Kept> {
        let inside = |var: VarId| !graph.vars[var].is_persistent() && lifetimes.is_within(var, first, last);
        let loads: Vec<bool> = self.slots.iter().map(|s| !s.loaded.is_empty()).collect();
        let wanted = |s: &Slot| s.written.iter().any(|v| !inside(*v) || s.loaded.contains(v));
        let stores: Vec<bool> = self.slots.iter().map(wanted).collect();
        let in_memory: Vec<usize> = (0..self.slots.len()).filter(|&n| loads[n] || stores[n]).collect();
        let extents = &self.space.extents;
        let hulls: Vec<_> = self.slots.iter().map(|s| s.access.hull(extents)).collect();
        let clash = |a: usize, b: usize| {
            let (one, other) = (&self.slots[a], &self.slots[b]);
            let meet = hulls[a].start < hulls[b].end && hulls[b].start < hulls[a].end;
            // Of two variables that share memory, one may be in it while the other is in registers only.
            let of_one = one.vars.iter().any(|v| other.vars.contains(v));
            let both = in_memory.contains(&a) && in_memory.contains(&b);
            let writes = of_one && !(one.written.is_empty() && other.written.is_empty());
            meet && (writes || both && (stores[a] || stores[b]))
        };
        if in_memory.len() > MOST_SLOTS || (0..hulls.len()).any(|a| (0..a).any(|b| clash(a, b))) {
            return None;
        }
        let accesses = in_memory.iter().map(|&n| self.slots[n].access.clone()).collect();
        let mut space = Space { extents: extents.clone(), accesses };
        space.join();
        let fits = match &space.extents[..] {
            [] | [_] => true,
            [_, inner] => *inner <= MOST_PLACES,
            _ => false,
        };
        (fits && stores.contains(&true)).then_some(Kept { loads, stores, space })
    }

    /// Whether it is more than copies.
    pub fn computes(&self) -> bool {
        self.maps.iter().any(|m| matches!(m.function, Function::Codelet(_)))
    }
}

/// Whether two accesses of one space are the same elements, perhaps of two variables that share memory.
fn is_same(a: &Access, b: &Access) -> bool {
    (a.start, a.ty, &a.strides) == (b.start, b.ty, &b.strides)
}
