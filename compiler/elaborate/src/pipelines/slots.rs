//! The steps of a pipeline: a loop over the micro-batches if stages do not overlap, or else programs for the phases,
//! and slots that call them.
//!
//! Invariant: a phase is made once, however often it is called.

use super::accesses::Accesses;
use super::carries::Carried;
use super::phases::Phase;
use super::schedule::Schedule;
use super::stages::Stage;
use super::{Locals, Options};
use crate::copies::CopyRow;
use crate::elaborator::{Body, Elaborator, Node, NodeKind, add_body};
use crate::value::{Place, Value};
use girder_ir::ids::{CopyId, ProgramId, VarId};
use girder_ir::program::Program;
use girder_ir::view::View;
use girder_source::{Result, Span};
use rustc_hash::FxHashMap;

/// The variables from outside that a pipeline reads and writes.
pub type Outside = (Vec<VarId>, Vec<VarId>);

impl Elaborator<'_> {
    /// Emits a pipeline whose body has been elaborated. Returns its value and what it touches outside.
    pub(super) fn scheduled(
        &mut self,
        nodes: Vec<Node>,
        stages: &[Stage],
        locals: Locals,
        value: Value,
        options: Options,
        span: Span,
    ) -> Result<(Value, Outside)> {
        let mut phases = self.phases_of(nodes, stages, &locals, options, span)?;
        let (value, zeros) = self.accumulated(&mut phases, value, span)?;
        let touched: Vec<Accesses> = phases.iter().map(|p| Accesses::of(&self.graph, &p.nodes)).collect();
        let count = options.micro_batches;
        let in_turn = options.schedule == Schedule::Sharded || phases.len() == 1 || count == 1;
        self.check_pipeline(&phases, &touched, &locals, in_turn, span)?;
        let outside = |var: &&VarId| !locals.contains(var);
        let reads = touched.iter().flat_map(|a| a.reads.keys()).filter(outside).copied().collect();
        let writes = touched.iter().flat_map(|a| a.writes.keys()).filter(outside).copied().collect();
        self.place_nodes(zeros);
        if in_turn {
            let nodes = phases.into_iter().flat_map(|p| p.nodes).collect();
            let body = Body { nodes, ..Body::default() };
            self.push(NodeKind::Repeat { count, index: None, body }, span)?;
            return Ok((value, (reads, writes)));
        }
        let mut places = vec![];
        let kinds: Vec<_> = phases.iter().map(|p| p.kind(&mut places)).collect();
        let slots = options.schedule.slots(&kinds, count);
        let mut carried = self.carried(phases, &touched, &locals, (slots, &kinds), count, span)?;
        self.place_nodes(std::mem::take(&mut carried.zeros));
        let phases = std::mem::take(&mut carried.phases);
        let tiles: Vec<Place> = phases.iter().map(|p| p.place).collect();
        let (phases, programs) = (phases.into_iter().map(Some).collect(), vec![None; tiles.len()]);
        let mut slots = SlotPrograms { phases, programs, tiles, copies: FxHashMap::default(), span };
        for stretch in carried.slots.stretches(count) {
            if stretch.times == 1 {
                stretch.slots.iter().try_for_each(|slot| self.slot(&mut slots, &carried, slot))?;
                continue;
            }
            self.emission.open();
            let done = stretch.slots.iter().try_for_each(|slot| self.slot(&mut slots, &carried, slot));
            let body = self.emission.close();
            done?;
            self.push(NodeKind::Repeat { count: stretch.times, index: None, body }, span)?;
        }
        Ok((value, (reads, writes)))
    }

    /// Appends steps that were emitted aside.
    fn place_nodes(&mut self, nodes: Vec<Node>) {
        if let Some(body) = self.emission.body_mut() {
            body.nodes.extend(nodes);
        }
    }

    /// Emits a call of a phase. Its program is made at the first call, as it is when printed text is read.
    fn call_phase(&mut self, slots: &mut SlotPrograms, k: usize) -> Result<()> {
        if let Some(phase) = slots.phases[k].take() {
            slots.programs[k] = Some(self.program_of(phase));
        }
        let Some(program) = slots.programs[k] else { return Ok(()) };
        self.push(NodeKind::Call(program), slots.span)
    }

    fn program_of(&mut self, phase: Phase) -> ProgramId {
        let Phase { name, span, before, nodes, after, .. } = phase;
        let name = self.qualified(&name);
        let name = self.entities.programs.unique(name);
        let origin = self.origin_at(span);
        let nodes = before.into_iter().chain(nodes).chain(after).collect();
        let body = add_body(&mut self.graph, Body { nodes, ..Body::default() }, origin);
        self.graph.programs.push(Program { name, entry: false, body, origin })
    }

    /// Emits a slot: the phases that run in it, and the copies between IPUs.
    fn slot(&mut self, slots: &mut SlotPrograms, carried: &Carried, phases: &[usize]) -> Result<()> {
        let groups = slots.apart(phases);
        match &groups[..] {
            [] => {}
            [group] => group.iter().try_for_each(|&k| self.call_phase(slots, k))?,
            _ => {
                let mut branches = vec![];
                for group in &groups {
                    self.emission.open();
                    let done = group.iter().try_for_each(|&k| self.call_phase(slots, k));
                    branches.push(self.emission.close());
                    done?;
                }
                self.push(NodeKind::Par(branches), slots.span)?;
            }
        }
        let moved: Vec<usize> =
            (0..carried.copies.len()).filter(|&k| phases.contains(&carried.copies[k].from)).collect();
        if moved.is_empty() {
            return Ok(());
        }
        let copy = match slots.copies.get(&moved) {
            Some(&copy) => copy,
            None => {
                let view = |var: VarId| View::whole(var, &self.graph.vars[var].shape);
                let row = |k: &usize| {
                    let carry = carried.copies[*k];
                    CopyRow::single(view(carry.dst), view(carry.src), slots.span)
                };
                let rows = moved.iter().map(row).collect();
                let name = self.unique_set_name(Some("boundary"), "");
                let copy = self.add_copy(name, rows, slots.span)?;
                slots.copies.insert(moved, copy);
                copy
            }
        };
        self.push(NodeKind::Copy(copy), slots.span)
    }
}

/// What the slots of a pipeline call.
struct SlotPrograms {
    /// The phases that have no program yet.
    phases: Vec<Option<Phase>>,
    /// The program of each phase.
    programs: Vec<Option<ProgramId>>,
    /// The tiles of each phase.
    tiles: Vec<Place>,
    /// The copies at the end of a slot, by the values that they move.
    copies: FxHashMap<Vec<usize>, CopyId>,
    span: Span,
}

impl SlotPrograms {
    /// Returns phases in groups that share no tile, in the order of their tiles.
    fn apart(&self, phases: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: Vec<(u32, u32, Vec<usize>)> = vec![];
        for (position, &k) in phases.iter().enumerate() {
            let Place { first, count, .. } = self.tiles[k];
            let (mut lo, mut hi, mut all) = (first, first + count, vec![position]);
            groups.retain(|(a, b, group)| {
                let meets = *a < hi && lo < *b;
                if meets {
                    (lo, hi) = (lo.min(*a), hi.max(*b));
                    all.extend(group);
                }
                !meets
            });
            all.sort_unstable();
            groups.push((lo, hi, all));
        }
        groups.sort_by_key(|g| g.0);
        groups.into_iter().map(|(.., all)| all.into_iter().map(|position| phases[position]).collect()).collect()
    }
}
