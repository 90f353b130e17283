//! Prologues and epilogues of reductions: chains that run inside the step that reads their result, or that writes what
//! they read.
//!
//! A reduction may load every element of a field once, and store every element of another one. If no other step reads
//! what a chain writes, each vertex of the reduction computes the elements that it loads. If a chain reads what the
//! reduction writes, each vertex goes on with the elements that it stores. Vertices keep their cut.
//!
//! # Note: Where it pays
//! A chain that runs alone costs the time of its vertices in the best of its cuts, the start of a compute set, a sync,
//! and an exchange for each operand that was written in other boxes, which includes the exchange between the chain and
//! the step. Inside the step it costs what the step's vertices take longer, and the exchanges of its operands to the
//! boxes of the step.
//!
//! Invariant: as for the pass. An element is computed once, as before.

use super::beside::Beside;
use super::choice::in_memory;
use super::cut::{Cut, FamilyField};
use super::families::constants;
use super::sequence::Sequence;
use super::{Candidate, ElementwiseFuser, FusedStep, codelet_of};
use crate::rewrite::vars_of;
use crate::superstep;
use cranelift_entity::{EntityRef, EntitySet};
use girder_codelet::facts::facts_on;
use girder_codelet::vertices::bind_vertices;
use girder_fusion::access::ElementAccess;
use girder_fusion::codelet::signature;
use girder_fusion::signature::{AroundAccess, FusedSignature, LoopLength};
use girder_fusion::space::IterationSpace;
use girder_ir::codelet::Dir;
use girder_ir::family::{Const, Family, Field, FieldPart, Offset};
use girder_ir::ids::{ComputeSetId, StepId, VarId};
use smallvec::SmallVec;

/// Maximal number of fields of a codelet, for which a kernel has registers.
const MOST_FIELDS: usize = 12;

/// Where a chain runs in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// Before the step's load of a variable that no other step reads.
    Before(VarId),
    /// After the step's store of a variable.
    After(VarId),
}

impl Side {
    fn var(self) -> VarId {
        match self {
            Side::Before(var) | Side::After(var) => var,
        }
    }
}

impl<'g> ElementwiseFuser<'g> {
    /// Moves chains into the steps of a sequence that read their results, where it pays.
    pub(super) fn prologues(&mut self, sequence: &mut Sequence<'g, '_>) -> Vec<FusedStep> {
        let mut fused: Vec<FusedStep> = vec![];
        while let Some(step) = sequence.next_step() {
            while let Some(joined) = self.prologue(sequence, step) {
                sequence.take(&joined.steps, step);
                match fused.last_mut().filter(|last| last.at == step) {
                    Some(last) => {
                        last.steps.extend(joined.steps.iter().filter(|&&s| s != step));
                        last.families = joined.families;
                    }
                    None => fused.push(joined),
                }
            }
        }
        sequence.rewind();
        fused
    }

    /// Returns a step with a chain inside that computes what it reads.
    fn prologue(&mut self, sequence: &mut Sequence<'g, '_>, step: StepId) -> Option<FusedStep> {
        let set = self.set_of(sequence, step)?;
        for var in self.variables(set, Dir::In) {
            if self.graph.vars[var].is_persistent() {
                continue;
            }
            let Some(candidate) = sequence.chain_before(step, var, &self.users) else { continue };
            if let Some(families) = self.around(set, Side::Before(var), &candidate) {
                self.note_readers(&families, &candidate.steps);
                let steps: Vec<StepId> = candidate.steps.iter().copied().chain([step]).collect();
                self.keep(set, &steps, step, &families);
                return Some(FusedStep { steps, at: step, set, families });
            }
        }
        None
    }

    /// Returns a chain inside the step that writes what it reads, where it pays.
    pub(super) fn epilogue(&mut self, candidate: &Candidate<'g>, sequence: &mut Sequence<'g, '_>) -> Option<FusedStep> {
        let loaded = (0..candidate.chain.slots.len()).filter(|&n| candidate.memory.loads[n]);
        let mut vars: Vec<VarId> = loaded.map(|n| candidate.chain.slots[n].access.var).collect();
        vars.sort_unstable();
        vars.dedup();
        for var in vars {
            let Some((step, at)) = sequence.writer_before(&candidate.steps, candidate.at, var) else { continue };
            let Some(set) = self.set_of(sequence, step) else { continue };
            if let Some(families) = self.around(set, Side::After(var), candidate) {
                let steps: Vec<StepId> = [step].into_iter().chain(candidate.steps.iter().copied()).collect();
                self.keep(set, &steps, at, &families);
                return Some(FusedStep { steps, at, set, families });
            }
        }
        None
    }

    /// Returns the compute set of a step that is no map, if its vertices may change.
    fn set_of(&self, sequence: &Sequence<'g, '_>, step: StepId) -> Option<ComputeSetId> {
        let of_graph = || self.set_of_step(step).filter(|_| !self.fused_at.contains(step));
        let set = self.joined_at.get(&step).copied().or_else(of_graph)?;
        let free = |f: &Family| f.tile.is_none();
        let changes = self.executions.0[set.index()] == 1 && self.families(set).iter().all(free);
        (changes && !sequence.is_map(step)).then_some(set)
    }

    /// Returns the variables that vertices access in one direction.
    fn variables(&self, set: ComputeSetId, dir: Dir) -> Vec<VarId> {
        let mut vars: Vec<VarId> = vec![];
        for family in &self.families(set) {
            let codelet = self.codelet(family.codelet);
            let fields = family.fields.iter().filter(|f| codelet.fields[f.field].dir == dir);
            vars.extend(fields.flat_map(|f| &f.parts).map(|p| p.var));
        }
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    /// Replaces the vertices of a compute set by those with a chain inside.
    fn keep(&mut self, set: ComputeSetId, steps: &[StepId], at: StepId, families: &[Family]) {
        self.joined.insert(set, families.to_vec());
        steps.iter().for_each(|s| _ = self.joined_at.remove(s));
        self.joined_at.insert(at, set);
        for &step in steps {
            for var in vars_of(self.graph, step) {
                let users = &mut self.users[var];
                users.iter_mut().filter(|s| **s == step).for_each(|s| *s = at);
                users.dedup();
            }
        }
    }

    /// Returns the vertices of a compute set with a chain inside, if that is possible and pays.
    fn around(&mut self, set: ComputeSetId, side: Side, candidate: &Candidate<'g>) -> Option<Vec<Family>> {
        let Candidate { chain, memory, .. } = candidate;
        let slots: Vec<usize> = in_memory(memory);
        let of_var = |n: &usize| memory.space.accesses[*n].var == side.var();
        let [own] = (0..slots.len()).filter(of_var).collect::<Vec<_>>()[..] else { return None };
        let stored = slots.iter().filter(|&&slot| memory.stores[slot]).count();
        let (loads, stores) = (memory.loads[slots[own]], memory.stores[slots[own]]);
        let fits = match side {
            Side::Before(_) => stores && !loads && stored == 1 && slots.len() > 1,
            Side::After(_) => loads && !stores,
        };
        let old = self.families(set);
        let within = chain.maps.iter().find_map(|m| m.family).map(|f| self.graph.families[f].within);
        let agrees = old.iter().all(|f| within.is_none_or(|within| within == f.within));
        if !fits || !agrees || !self.is_apart(&old, side, candidate) {
            return None;
        }
        let position = ChainPosition { side, own, slot: slots[own], keeps: self.keeps(set, side, candidate) };
        let fields: Vec<FamilyField> = old.iter().map(|f| self.field(f, side)).collect::<Option<_>>()?;
        let space = memory.space.clone().ordered_by(own);
        let first = self.offsets[side.var().index()] as i64;
        Cut::like(&space.accesses[own], &space.extents, first, &fields)?;
        let families: Vec<Family> =
            old.iter().map(|f| self.family_around(f, position, candidate, &space)).collect::<Option<_>>()?;
        let cut = self.cut_like(memory, own, &fields);
        self.pays(&old, &families, position, candidate, cut.as_ref()).then_some(families)
    }

    /// Returns the field of a family with the variable of a chain, if each vertex accesses other elements of it.
    fn field(&self, family: &Family, side: Side) -> Option<FamilyField> {
        let has_var = |f: &&Field| f.parts.iter().any(|p| p.var == side.var());
        let mut fields = family.fields.iter().filter(has_var);
        let (field, None) = (fields.next()?, fields.next()) else { return None };
        let [FieldPart { offset: Offset::Affine(affine), .. }] = &field.parts[..] else { return None };
        let moves = |(k, &n): (usize, &u32)| n == 1 || affine.coef.get(k).is_some_and(|&c| c != 0);
        let apart = family.domain.0.iter().enumerate().all(moves);
        apart.then(|| (family.domain.clone(), field.clone()))
    }

    /// Returns whether a step writes nothing that a chain reads, and accesses nothing that the chain writes, except for
    /// the variable between them.
    fn is_apart(&self, families: &[Family], side: Side, candidate: &Candidate<'g>) -> bool {
        let memory = &candidate.memory;
        in_memory(memory).iter().zip(&memory.space.accesses).filter(|(_, a)| a.var != side.var()).all(|(&slot, a)| {
            families.iter().all(|family| {
                let codelet = self.codelet(family.codelet);
                let clash = |f: &Field| {
                    let meets = f.parts.iter().any(|p| p.var == a.var);
                    meets && (memory.stores[slot] || codelet.fields[f.field].dir.writes())
                };
                !family.fields.iter().any(clash)
            })
        })
    }

    /// Returns whether the variable between a step and a chain has to stay in memory because other code needs it.
    fn keeps(&self, set: ComputeSetId, side: Side, candidate: &Candidate<'g>) -> bool {
        let Side::After(var) = side else { return false };
        let inside = |s: &StepId| {
            let of_set = self.set_of_step(*s) == Some(set);
            of_set || candidate.steps.contains(s)
        };
        self.graph.vars[var].is_persistent() || !self.users[var].iter().all(inside)
    }

    /// Returns a family with a chain in its vertices.
    fn family_around(
        &mut self,
        family: &Family,
        position: ChainPosition,
        candidate: &Candidate<'g>,
        space: &IterationSpace,
    ) -> Option<Family> {
        let Candidate { chain, memory, .. } = candidate;
        let (domain, own_field) = self.field(family, position.side)?;
        let base = self.codelet(family.codelet);
        if base.cycles.is_some() || base.separate_elements {
            return None;
        }
        let sizes = bind_vertices(base, family).ok()??;
        let facts = facts_on(base, &sizes, self.graph.workers);
        // A message would name a codelet that is not in the text.
        if base.sites.keys().any(|site| !facts.proven.contains(site)) {
            return None;
        }
        let access = match position.side {
            Side::Before(_) => ElementAccess::load(base, own_field.field, &facts),
            Side::After(_) => ElementAccess::store(base, own_field.field, &facts),
        }?;
        let (before, rank) = (base.fields.len(), own_field.axes.len());
        let beside = Beside::new(&domain, &own_field, &space.accesses[position.own], &space.extents, &self.offsets)?;
        let stores: Vec<bool> = in_memory(memory).iter().map(|&slot| memory.stores[slot]).collect();
        let (mut fields, mut along) = (vec![], vec![]);
        for (n, other) in space.accesses.iter().enumerate() {
            let (field, moves) = match n == position.own {
                true => (own_field.clone(), (0..rank).collect()),
                false => beside.field(other, &self.offsets)?,
            };
            // Words that several tiles write would be put together byte by byte.
            let bytes = field.len() * u64::from(other.ty.bytes());
            if stores[n] && n != position.own && bytes < superstep::WORD_BYTES && domain.count() > 1 {
                return None;
            }
            along.push(moves);
            fields.push(field);
        }
        fields.remove(position.own);
        let loops = SmallVec::from_elem(LoopLength::Bound, rank);
        let around =
            AroundAccess { spec: family.codelet, field: own_field.field, slot: position.slot, keeps: position.keeps };
        let signature = FusedSignature { around: Some(around), ..signature(chain, memory, loops, along) };
        self.make_around(chain, &signature, &access);
        let made = self.made.get(&signature)?.as_ref()?;
        let new = |is_const: bool| {
            let all = made.codelet.fields.iter().filter(move |(id, _)| id.index() >= before);
            all.filter(move |f| (f.1.dir == Dir::Const) == is_const).map(|f| f.0)
        };
        let free = (!position.keeps).then_some(own_field.field);
        let kept = family.fields.iter().filter(|f| position.keeps || f.field != own_field.field).cloned();
        let placed = free.into_iter().chain(new(false)).zip(fields).map(|(id, field)| Field { field: id, ..field });
        let mut all: SmallVec<[Field; 4]> = kept.chain(placed).collect();
        all.sort_by_key(|f| f.field);
        let values = new(true).zip(constants(chain)).map(|(id, value)| (id, Const::Uniform(value)));
        let consts = family.consts.iter().cloned().chain(values).collect();
        (all.len() <= MOST_FIELDS).then(|| Family { codelet: made.id, fields: all, consts, ..family.clone() })
    }

    /// See the note on where it pays. `cut` has the boxes of the step.
    fn pays(
        &mut self,
        old: &[Family],
        new: &[Family],
        position: ChainPosition,
        candidate: &Candidate<'g>,
        cut: Option<&Cut>,
    ) -> bool {
        let memory = &candidate.memory;
        let Some(alone) = self.cheapest(candidate) else { return false };
        let (Some(before), Some(after)) = (self.families_time(old), self.families_time(new)) else { return false };
        let vertices: u64 = new.iter().map(|f| f.domain.count()).sum();
        let elements = memory.space.len() / vertices.clamp(1, u64::from(self.machine.chip.tiles));
        let accesses = &memory.space.accesses;
        let moved = |n: usize| self.exchange(&accesses[n], elements);
        let is_like = cut.is_some_and(|cut| cut.has_boxes_of(&alone.like));
        let between = if is_like { 0 } else { moved(position.own) };
        let operands = (0..accesses.len()).filter(|&n| n != position.own).filter(|&n| {
            let apart = |written: Cut| !cut.is_some_and(|cut| cut.has_boxes_of(&written));
            self.cut_of_writers(memory, n).is_some_and(apart) && !self.follows(accesses[n].var, &candidate.steps)
        });
        let start = superstep::first_vertex_cycles(self.machine) + self.machine.sync_cycles([0]);
        after + operands.map(moved).sum::<u64>() <= before + start + alone.cycles + between
    }

    /// Records the boxes in which vertices read persistent variables that some steps read first, because `place-tiles`
    /// puts such a variable where its first reader is.
    pub(super) fn note_readers(&mut self, families: &[Family], steps: &[StepId]) {
        let all = families.iter().flat_map(|f| &f.fields).flat_map(|f| &f.parts).map(|p| p.var);
        let mut moved: EntitySet<VarId> = EntitySet::new();
        moved.extend(all.filter(|&var| self.follows(var, steps)));
        let (graph, made, made_at) = (self.graph, &self.made, &self.made_at);
        let families = families.iter().map(|f| (f, codelet_of(graph, made, made_at, f.codelet)));
        self.writers.add(families, |codelet, f| {
            codelet.fields[f.field].dir == Dir::In && f.parts.iter().all(|p| moved.contains(p.var))
        });
    }

    /// Returns whether a variable is persistent and some steps are the first to read it, so that it is placed where
    /// they run.
    pub(super) fn follows(&self, var: VarId, steps: &[StepId]) -> bool {
        self.graph.vars[var].is_persistent() && self.users[var].first().is_some_and(|s| steps.contains(s))
    }
}

/// Where a chain runs in a step, and the element between them.
#[derive(Clone, Copy)]
struct ChainPosition {
    side: Side,
    /// The access of the element, among those in memory.
    own: usize,
    /// Its slot.
    slot: usize,
    /// Whether it stays in memory.
    keeps: bool,
}
