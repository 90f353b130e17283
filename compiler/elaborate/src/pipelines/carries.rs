//! Carries: values that one phase writes and another reads.
//!
//! On one place the value waits in its variable if the reader runs before the writer runs again, or else in a *ring*:
//! a row for each micro-batch between them, by its number modulo the number of rows. On the way to another place a copy
//! at the end of the writer's slot moves the value to a *landing* variable there. It stays until the writer has run
//! again; what is read later moves on to a ring there. All readers on a place share its landing and its ring.
//!
//! A phase that writes a carried variable writes a copy of its own, so each phase has its version of it.
//!
//! Invariant: a reader runs before its value is overwritten, because phases with a later first slot run first in a
//! slot.

use super::Locals;
use super::accesses::{Accesses, rename};
use super::elements::{self, Intervals};
use super::phases::Phase;
use super::schedule::{PhaseKind, Slots};
use crate::elaborator::{Elaborator, Node, NodeKind};
use crate::value::{Given, Place, Tensor, Value};
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_ir::program::{Effect, UntilWritten};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Failed, Result, Span};
use girder_syntax::ast::BinaryOp;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};

/// A value that a phase reads and an earlier one has written last.
#[derive(Clone, Copy, Debug)]
struct Carry {
    var: VarId,
    from: usize,
    to: usize,
    /// Whether the reader writes it too.
    is_written: bool,
}

/// A copy of a carried value to another place, at the end of a slot in which its phase has run.
#[derive(Clone, Copy, Debug)]
pub struct CarryCopy {
    /// The phase.
    pub from: usize,
    /// The variable that it writes.
    pub src: VarId,
    /// The landing on another place.
    pub dst: VarId,
}

/// The phases of a pipeline in their slots, and what moves between them.
#[derive(Debug)]
pub struct Carried {
    /// The phases, with those that only keep what has landed.
    pub phases: Vec<Phase>,
    /// Their slots.
    pub slots: Slots,
    /// The copies at the ends of slots.
    pub copies: Vec<CarryCopy>,
    /// Steps before the pipeline.
    pub zeros: Vec<Node>,
    /// The number of the place of each phase.
    places: Vec<usize>,
    micro_batches: u64,
    landed: FxHashMap<(VarId, usize), VarId>,
    rings: FxHashMap<(VarId, usize), Ring>,
    /// The number of the micro-batch of a phase modulo a number of rows.
    turns: BTreeMap<(usize, u64), Tensor>,
    span: Span,
}

/// Values that wait.
#[derive(Clone, Debug)]
struct Ring {
    rows: u64,
    tensor: Tensor,
}

/// Returns the carries of each variable, in the order of the phases that read.
fn carries(touched: &[Accesses], is_local: impl Fn(VarId) -> bool) -> Vec<Carry> {
    let mut writers: FxHashMap<VarId, usize> = FxHashMap::default();
    let mut all = vec![];
    for (to, phase) in touched.iter().enumerate() {
        let mut vars: Vec<VarId> = phase.reads.keys().chain(phase.writes.keys()).copied().collect();
        vars.sort_unstable();
        vars.dedup();
        for var in vars.into_iter().filter(|&v| is_local(v)) {
            let is_written = phase.writes.contains_key(&var);
            if let Some(&from) = writers.get(&var) {
                all.push(Carry { var, from, to, is_written });
            }
            if is_written {
                writers.insert(var, to);
            }
        }
    }
    all
}

impl Carried {
    /// Returns the rows of the ring in which a value waits from one phase to another; 0 if it needs none.
    fn rows(&self, from: usize, to: usize) -> u64 {
        let distance = self.slots.first[to] - self.slots.first[from];
        let rows = distance.div_ceil(self.slots.period);
        match self.places[from] == self.places[to] {
            true if distance <= self.slots.period => 0,
            true => rows.min(self.micro_batches),
            false => (rows - 1).min(self.micro_batches),
        }
    }

    /// Returns the phase that keeps what has landed on the place of a phase.
    fn keeper(&mut self, from: usize, to: usize) -> usize {
        let (place, first) = (self.places[to], self.slots.first[from] + self.slots.period);
        let known = (0..self.phases.len()).find(|&k| self.places[k] == place && self.slots.first[k] == first);
        known.unwrap_or_else(|| {
            let Phase { place: tiles, span, .. } = self.phases[to];
            let (before, nodes, after) = (vec![], vec![], vec![]);
            let name = format_smolstr!("kept.{}", self.phases[from].name);
            self.phases.push(Phase { name, place: tiles, span, before, nodes, after });
            self.places.push(place);
            self.slots.first.push(first);
            self.phases.len() - 1
        })
    }
}

impl Elaborator<'_> {
    /// Puts phases into their slots and lets them pass on what they make.
    pub(super) fn carried(
        &mut self,
        phases: Vec<Phase>,
        touched: &[Accesses],
        locals: &Locals,
        (slots, kinds): (Slots, &[PhaseKind]),
        micro_batches: u64,
        span: Span,
    ) -> Result<Carried> {
        let is_local = |v: VarId| locals.contains(&v) && self.graph.vars[v].class == VarClass::Temp;
        let all = carries(touched, is_local);
        let places = kinds.iter().map(|k| k.place).collect();
        let (copies, zeros, turns) = (vec![], vec![], BTreeMap::new());
        let (landed, rings) = (FxHashMap::default(), FxHashMap::default());
        let mut c = Carried { phases, slots, copies, zeros, places, micro_batches, landed, rings, turns, span };
        // The most rows that a reader on a place needs of a variable's version.
        let mut rows: FxHashMap<(VarId, usize, usize), u64> = FxHashMap::default();
        for carry in &all {
            let most = rows.entry((carry.var, carry.from, c.places[carry.to])).or_default();
            *most = (*most).max(c.rows(carry.from, carry.to));
        }
        self.end_parts(&mut c, &all, touched)?;
        // The variable that holds what each phase wrote.
        let mut versions: FxHashMap<(VarId, usize), VarId> = FxHashMap::default();
        for to in 0..touched.len() {
            let mut names = FxHashMap::default();
            for carry in all.iter().filter(|carry| carry.to == to) {
                let version = versions.get(&(carry.var, carry.from)).copied().unwrap_or(carry.var);
                let most = rows.get(&(carry.var, carry.from, c.places[to])).copied().unwrap_or(0);
                let source = self.arrived(&mut c, carry, version, most)?;
                if carry.is_written {
                    versions.insert((carry.var, to), source);
                }
                names.insert(carry.var, source);
            }
            rename(&mut self.graph, &mut c.phases[to].nodes, &names);
        }
        self.count_turns(&mut c)?;
        Ok(c)
    }

    /// Ends the values of variables that several phases write in parts, before the pipeline: whole variables move
    /// between phases, so elements that a later phase writes would seem to be read first.
    fn end_parts(&mut self, c: &mut Carried, all: &[Carry], touched: &[Accesses]) -> Result<()> {
        let vars: BTreeSet<VarId> = all.iter().map(|carry| carry.var).collect();
        for var in vars {
            let Some(first) = touched.iter().position(|a| a.writes.contains_key(&var)) else { continue };
            if !self.is_made_in_parts(&c.phases, touched, var) {
                continue;
            }
            let (span, name) = (c.span, self.graph.vars[var].name.clone());
            let what = self.whole(var).view.canonical();
            let ((), nodes) = self.named_nodes(c.phases[first].place, &name, true, |this| {
                this.push(NodeKind::Effect(Effect::Undef { what, until_written: UntilWritten::MayBeRead }), span)
            })?;
            c.zeros.extend(nodes);
        }
        Ok(())
    }

    /// Returns whether the first phase that writes a variable leaves out some elements, and each phase reads only what
    /// it and those before have written.
    fn is_made_in_parts(&self, phases: &[Phase], touched: &[Accesses], var: VarId) -> bool {
        /// Larger variables are not looked at, because their elements are listed.
        const MOST: u64 = 1 << 22;
        let len: u64 = self.graph.vars[var].shape.iter().product();
        let mut made = Intervals::default();
        let mut touches = (0..touched.len()).filter(|&k| touched[k].touch(var).is_some()).peekable();
        let is_partial = touches.peek().is_some_and(|&k| {
            let regions = elements::written(&self.graph, &phases[k].nodes, var);
            len <= MOST && elements::count(&regions) < len
        });
        is_partial
            && touches.all(|k| {
                made.add(&elements::written(&self.graph, &phases[k].nodes, var));
                made.contains(&Intervals::of(&elements::read(&self.graph, &phases[k].nodes, var)))
            })
    }

    /// Returns the variable in which a phase finds a value.
    fn arrived(&mut self, c: &mut Carried, carry: &Carry, version: VarId, most: u64) -> Result<VarId> {
        let Carry { from, to, is_written, .. } = *carry;
        let place = c.places[to];
        let mut shared = version;
        let mut keeper = from;
        let waits = c.rows(from, to) > 0;
        if c.places[from] != place {
            shared = match c.landed.get(&(version, place)) {
                Some(&landed) => landed,
                None => {
                    let dst = self.like(c, to, version, "landed")?;
                    c.copies.push(CarryCopy { from, src: version, dst });
                    c.landed.insert((version, place), dst);
                    dst
                }
            };
            if waits {
                keeper = c.keeper(from, to);
            }
        }
        if waits {
            let ring = match c.rings.get(&(version, place)) {
                Some(ring) => ring.clone(),
                None => {
                    let backwards = self.is_made_backwards(&c.phases[from], version);
                    self.ring(c, keeper, (shared, backwards), most, (version, place))?
                }
            };
            if ring.rows > 1 {
                return self.row_of(c, to, &ring, version);
            }
            shared = ring.tensor.view.vars().first().copied().unwrap_or(shared);
        }
        if !is_written {
            return Ok(shared);
        }
        let own = self.like(c, to, version, "own")?;
        let (own_t, from_t) = (self.whole(own), self.whole(shared));
        self.prepare(c, to, &format_smolstr!("{}.own", self.graph.vars[version].name), |this, span| {
            this.write(&own_t, from_t.into(), span)
        })?;
        Ok(own)
    }

    /// Returns whether the last step of a phase that writes a variable is one of the reverse program.
    fn is_made_backwards(&self, phase: &Phase, var: VarId) -> bool {
        let writes = |n: &&Node| Accesses::of(&self.graph, [*n]).writes.contains_key(&var);
        let ends = |n: &&Node| matches!(n.kind, NodeKind::Effect(Effect::Undef { .. }));
        phase.nodes.iter().rev().filter(|n| !ends(n)).find(writes).is_some_and(|n| n.reverse)
    }

    /// Makes a ring on the place of a phase, which puts a variable's elements into it, in the reverse program if they
    /// are made `backwards`.
    fn ring(
        &mut self,
        c: &mut Carried,
        keeper: usize,
        (value, backwards): (VarId, bool),
        rows: u64,
        key: (VarId, usize),
    ) -> Result<Ring> {
        let (tiles, name) = (c.phases[keeper].place, format_smolstr!("{}.ring", self.graph.vars[key.0].name));
        let value = self.whole(value);
        let leading = (rows > 1).then_some(rows);
        let shape: Vec<u64> = leading.into_iter().chain(value.view.shape()).collect();
        let span = c.span;
        let turn = if rows > 1 { Some(self.turn(c, keeper, rows)?) } else { None };
        let (tensor, zeros) = self.named_nodes(tiles, &name, true, |this| {
            let tensor = this.temporary_named(&name, value.ty, &shape, span)?;
            if rows > 1 {
                // Rows are written one by one, and each before it is read.
                let what = tensor.view.clone().canonical();
                this.push(NodeKind::Effect(Effect::Undef { what, until_written: UntilWritten::MayBeRead }), span)?;
            }
            Ok(tensor)
        })?;
        c.zeros.extend(zeros);
        let ((), put) = self.named_nodes(tiles, &name, backwards, |this| match &turn {
            Some(turn) => {
                let given = |value: &Tensor| Given { name: SmolStr::default(), value: value.clone().into(), span };
                this.prelude_given("put_row", vec![given(&tensor), given(turn), given(&value)], span).map(drop)
            }
            None => this.write(&tensor, value.clone().into(), span),
        })?;
        c.phases[keeper].after.extend(put);
        let ring = Ring { rows, tensor };
        c.rings.insert(key, ring.clone());
        Ok(ring)
    }

    /// Returns a variable of a phase with the row of a ring for its micro-batch.
    fn row_of(&mut self, c: &mut Carried, to: usize, ring: &Ring, version: VarId) -> Result<VarId> {
        let turn = self.turn(c, to, ring.rows)?;
        let (shape, tensor) = (self.whole(version).view.shape(), ring.tensor.clone());
        let name = format_smolstr!("{}.row", self.graph.vars[version].name);
        self.prepare(c, to, &name, |this, span| {
            let row = this.prelude_call("row", vec![tensor.into(), turn.into()], span)?;
            let Value::Tensor(row) = row else { return Err(Failed) };
            let is_whole = |v: VarId| row.view == View::whole(v, &this.graph.vars[v].shape).reshape(&shape);
            match row.view.vars()[..] {
                [var] if is_whole(var) => Ok(var),
                _ => Ok(this.copy_of(&row, span)?.view.vars()[0]),
            }
        })
    }

    /// Returns the number of a phase's micro-batch modulo a number of rows.
    fn turn(&mut self, c: &mut Carried, phase: usize, rows: u64) -> Result<Tensor> {
        if let Some(turn) = c.turns.get(&(phase, rows)) {
            return Ok(turn.clone());
        }
        let (place, span) = (c.phases[phase].place, c.span);
        let (turn, zeros) = self.nodes_at(place, false, |this| {
            let turn = this.temporary("turn", ElemType::I32, &[], span)?;
            this.fill(&turn, girder_ir::types::Scalar { ty: ElemType::I32, bits: 0 }, span)?;
            Ok(turn)
        })?;
        c.zeros.extend(zeros);
        c.turns.insert((phase, rows), turn.clone());
        Ok(turn)
    }

    /// Lets each phase count its micro-batches at its end.
    fn count_turns(&mut self, c: &mut Carried) -> Result<()> {
        for ((phase, rows), turn) in c.turns.clone() {
            let (span, name) = (c.span, self.qualified("turn"));
            let Phase { place, ref nodes, ref after, .. } = c.phases[phase];
            let backwards = match nodes.is_empty() {
                true => after.first().is_some_and(|n| n.reverse),
                false => c.phases[phase].begins_backwards(),
            };
            let ((), count) = self.named_nodes(place, &name, backwards, |this| {
                let next = this.binary(BinaryOp::Add, turn.clone().into(), Value::Int(1), span)?;
                let next = this.binary(BinaryOp::Rem, next, Value::Int(rows as i64), span)?;
                this.write(&turn, next, span)
            })?;
            c.phases[phase].after.extend(count);
        }
        Ok(())
    }

    /// Emits steps at the beginning of a phase.
    fn prepare<T>(
        &mut self,
        c: &mut Carried,
        phase: usize,
        name: &str,
        f: impl FnOnce(&mut Self, Span) -> Result<T>,
    ) -> Result<T> {
        let (place, span) = (c.phases[phase].place, c.span);
        let reverse = c.phases[phase].begins_backwards();
        let (value, nodes) = self.named_nodes(place, name, reverse, |this| f(this, span))?;
        c.phases[phase].before.extend(nodes);
        Ok(value)
    }

    /// Runs `f` on a place, under a name instead of those of the calls around, and returns the steps that it emits.
    fn named_nodes<T>(
        &mut self,
        place: Place,
        name: &str,
        reverse: bool,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Node>)> {
        let path = self.emission.replace_path(vec![name.into()]);
        let done = self.nodes_at(place, reverse, f);
        self.emission.replace_path(path);
        done
    }

    /// Makes a temporary like another one, on the place of a phase.
    fn like(&mut self, c: &Carried, phase: usize, var: VarId, suffix: &str) -> Result<VarId> {
        let t = self.whole(var);
        let name = format_smolstr!("{}.{suffix}", self.graph.vars[var].name);
        let (t, _) = self.nodes_at(c.phases[phase].place, false, |this| {
            this.temporary_named(&name, t.ty, &t.view.shape(), c.span)
        })?;
        t.view.vars().first().copied().ok_or(Failed)
    }

    fn temporary_named(&mut self, name: &str, ty: ElemType, shape: &[u64], span: Span) -> Result<Tensor> {
        let path = self.emission.replace_path(vec![]);
        let t = self.temporary(name, ty, shape, span);
        self.emission.replace_path(path);
        t
    }

    fn whole(&self, var: VarId) -> Tensor {
        let v = &self.graph.vars[var];
        Tensor { view: View::whole(var, &v.shape), ty: v.ty }
    }
}
