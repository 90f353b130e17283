//! What every step touches, listed once and independent of any placement.
//!
//! # Note: Samples
//! A field is kept as the closed form that the family has, and at most [`RUNS`] of its contiguous runs stand for all of
//! them; a copy is at most [`PIECES`] pieces, each of which stands for as many others. So the list is as long as the text
//! is, whatever the number of vertices and elements.

use super::often::Often;
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::{Busy, Cost, CostInputs, MemFacts, TileCosts, cost_of};
use girder_codelet::vertices::{bind_family, vertex_consts};
use girder_ir::codelet::Dir;
use girder_ir::family::{CopyFamily, Domain, Family, Field, FieldPart, Offset};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, SpecId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::{Run, copy_runs};
use girder_machine::Machine;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Runs of one part that are looked at.
const RUNS: u64 = 16;
/// Pieces of one copy, or runs of one packet, that are looked at.
const PIECES: u64 = 1 << 12;
/// Vertices of one family whose times are told apart.
const TOLD_APART: u64 = 1 << 12;

/// A step that takes time.
pub(super) struct Item<'a> {
    /// Executions.
    pub weight: u64,
    pub what: What<'a>,
}

pub(super) enum What<'a> {
    Set(ComputeSetId, Vec<Vertices<'a>>),
    Copy(Vec<Piece>),
    Packet(Vec<Chunk>),
}

/// The vertices of one family; it has some.
pub(super) struct Vertices<'a> {
    pub id: FamilyId,
    pub family: &'a Family,
    pub fields: Vec<Touch<'a>>,
    pub busy: Work,
}

/// For how long vertices keep their contexts.
pub(super) enum Work {
    Alike(Busy),
    Each(Vec<Busy>),
}

/// What one field touches.
pub(super) struct Touch<'a> {
    pub dir: Dir,
    /// Names what is touched by shape, so that equal offsets of equal shapes are the same elements.
    pub shape: u64,
    /// At most so many vertices see different elements.
    pub distinct: u64,
    pub parts: Vec<TouchedPart<'a>>,
}

/// Runs of one variable, moved by an offset.
pub(super) struct TouchedPart<'a> {
    pub var: VarId,
    pub part: &'a FieldPart,
    /// The least element where the offset is 0.
    base: i64,
    /// Start (from the least element) and length of runs, ascending.
    pub runs: Vec<(u64, u64)>,
    /// How many runs each of them stands for.
    pub each: f64,
    /// Elements of one vertex.
    pub elements: u64,
    /// From the least element of all vertices to the greatest.
    pub reach: u64,
}

/// Elements that a copy moves, contiguous at both ends.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub to: (VarId, u64),
    pub from: (VarId, u64),
    pub len: u64,
    /// How many pieces it stands for.
    pub each: f64,
}

/// Neighbouring elements of a packet.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub var: VarId,
    pub start: u64,
    pub len: u64,
    /// How many chunks it stands for.
    pub each: f64,
}

/// Everything that is executed at all.
pub(super) fn items<'a>(graph: &'a Graph, machine: &Machine) -> Vec<Item<'a>> {
    let often = Often::of(graph);
    let costs = TileCosts::from(machine);
    let mut codelets: SecondaryMap<SpecId, Option<Cost>> = SecondaryMap::new();
    for (id, codelet) in &graph.codelets {
        codelets[id] = cost_of(codelet, &costs).ok();
    }
    let mut items = vec![];
    for (id, set) in graph.sets.iter().filter(|(id, _)| often.sets[*id] > 0) {
        let families = set.families.iter().filter(|f| graph.families[**f].domain.count() > 0);
        let vertices = |&f: &FamilyId| vertices(graph, f, codelets[graph.families[f].codelet].as_ref(), &costs);
        items.push(Item { weight: often.sets[id], what: What::Set(id, families.map(vertices).collect()) });
    }
    for (id, copy) in graph.copies.iter().filter(|(id, _)| often.copies[*id] > 0) {
        let mut pieces = vec![];
        copy.families.iter().for_each(|f| copied(f, PIECES / copy.families.len().max(1) as u64, &mut pieces));
        items.push(Item { weight: often.copies[id], what: What::Copy(pieces) });
    }
    for (id, step) in graph.steps.iter().filter(|(id, _)| often.packets[*id] > 0) {
        if let StepKind::Effect(Effect::Read { into: view, .. } | Effect::Write { from: view, .. }) = &step.kind {
            let mut chunks = vec![];
            let runs: Vec<Run> = view.runs().collect();
            let (some, each) = some_of(runs.len() as u64, PIECES);
            some.for_each(|k| chunked(runs[k as usize], each, PIECES / runs.len().max(1) as u64, &mut chunks));
            items.push(Item { weight: often.packets[id], what: What::Packet(chunks) });
        }
    }
    items
}

impl Item<'_> {
    /// The variables that it touches, ascending.
    pub(super) fn vars(&self) -> Vec<VarId> {
        let mut vars: Vec<VarId> = match &self.what {
            What::Set(_, families) => {
                families.iter().flat_map(|v| &v.fields).flat_map(|f| &f.parts).map(|p| p.var).collect()
            }
            What::Copy(pieces) => pieces.iter().flat_map(|p| [p.to.0, p.from.0]).collect(),
            What::Packet(chunks) => chunks.iter().map(|c| c.var).collect(),
        };
        vars.sort_unstable();
        vars.dedup();
        vars
    }
}

/// At most `most` (at least 2) of the numbers below `n`, evenly, with the first and the last; how many each stands for.
fn some_of(n: u64, most: u64) -> (impl Iterator<Item = u64>, f64) {
    let taken = n.min(most.max(2));
    let at =
        move |k: u64| if taken == n { k } else { (u128::from(k) * u128::from(n - 1) / u128::from(taken - 1)) as u64 };
    ((0..taken).map(at), n as f64 / taken.max(1) as f64)
}

fn vertices<'a>(graph: &'a Graph, id: FamilyId, cost: Option<&Cost>, costs: &TileCosts) -> Vertices<'a> {
    let family = &graph.families[id];
    let codelet = &graph.codelets[family.codelet];
    let fields = family.fields.iter().filter(|f| !f.is_empty());
    let fields = fields.map(|f| touch(&family.domain, f, codelet.fields[f.field].dir)).collect();
    Vertices { id, family, fields, busy: busy(graph, family, cost, costs).unwrap_or(Work::Alike(Busy::One(0))) }
}

fn touch<'a>(domain: &Domain, field: &'a Field, dir: Dir) -> Touch<'a> {
    let mut shape = FxHasher::default();
    let mut distinct = 1;
    let part = |p: &'a FieldPart| {
        let region = p.region_at(0);
        let (lo, hi) = p.offset.bounds(domain).unwrap_or((0, 0));
        let reach = (hi - lo + region.hull().1 - region.hull().0 + 1) as u64;
        (p.var, &region).hash(&mut shape);
        distinct = distinct.max(match &p.offset {
            Offset::Affine(a) => a.coef.iter().zip(&domain.0).filter(|c| *c.0 != 0).map(|c| u64::from(*c.1)).product(),
            Offset::Table(_) => domain.count(),
        });
        let whole = region.dims.first().filter(|d| d.1 == 1).is_some();
        let (len, outer) = if whole { (region.dims[0].0, &region.dims[1..]) } else { (1, &region.dims[..]) };
        let count = outer.iter().map(|d| d.0).product();
        let start = |k: u64| {
            let digit = |(k, at), &(n, stride): &(u64, i64)| (k / n, at + k % n * stride as u64);
            outer.iter().fold((k, 0), digit).1
        };
        let (some, each) = some_of(count, RUNS);
        let runs = some.map(|k| (start(k), len)).collect();
        TouchedPart { var: p.var, part: p, base: region.offset, runs, each, elements: count * len, reach }
    };
    let parts = field.parts.iter().map(part).collect();
    Touch { dir, parts, shape: shape.finish(), distinct }
}

impl TouchedPart<'_> {
    /// The least element that an instance touches.
    pub(super) fn first(&self, domain: &Domain, instance: u64) -> u64 {
        (self.part.offset.at(domain, instance) + self.base) as u64
    }
}

/// As modelled time has it, but that a block whose executions data decide counts once for each element of the vertex.
fn busy(graph: &Graph, family: &Family, cost: Option<&Cost>, costs: &TileCosts) -> Option<Work> {
    let (cost, sizes) = (cost?, bind_family(graph, family).ok()??);
    let facts = MemFacts::granting(cost.wants());
    let workers = if cost.is_multi() { costs.workers as usize } else { 1 };
    let elements: u64 = family.fields.iter().map(Field::len).sum();
    let counters = vec![elements.div_ceil(workers as u64); cost.points().len() * workers];
    let of = |instance: u64| {
        let consts = vertex_consts(&graph.codelets[family.codelet], family, instance);
        let at = CostInputs {
            sizes: &sizes,
            consts: &consts,
            worker: 0,
            workers: costs.workers,
            counters: &counters,
            facts: &facts,
        };
        cost.busy(&at)
    };
    let count = family.domain.count();
    Some(match cost.reads_constants() && count <= TOLD_APART {
        true => Work::Each((0..count).map(of).collect()),
        false => Work::Alike(of(count / 2)),
    })
}

impl Work {
    pub(super) fn of(&self, instance: u32) -> &Busy {
        match self {
            Work::Alike(busy) => busy,
            Work::Each(list) => &list[instance as usize],
        }
    }
}

/// Contiguous chunks of a run, at most `most`.
fn chunked(run: Run, each: f64, most: u64, out: &mut Vec<Chunk>) {
    let (count, len) = if run.stride == 1 { (1, run.len) } else { (run.len, 1) };
    let (some, more) = some_of(count, most);
    let start = |k: u64| (run.start as i64 + k as i64 * run.stride) as u64;
    out.extend(some.map(|k| Chunk { var: run.var, start: start(k), len, each: each * more }));
}

/// The pieces of a copy, about `most`.
fn copied(family: &CopyFamily, most: u64, out: &mut Vec<Piece>) {
    let (instances, each) = some_of(family.domain.count(), most / 4);
    for instance in instances {
        let (to, from) = (family.dst.view(&family.domain, instance), family.src.view(&family.domain, instance));
        let runs = copy_runs(&to, &from);
        let (some, more) = some_of(runs.len() as u64, most);
        for run in some.map(|k| &runs[k as usize]) {
            let whole = run.dst_stride == 1 && run.src_stride == 1;
            let (count, len) = if whole { (1, run.len) } else { (run.len, 1) };
            let (some, most) = some_of(count, most / runs.len() as u64);
            let at = |start: u64, stride: i64, k: u64| (start as i64 + k as i64 * stride) as u64;
            out.extend(some.map(|k| Piece {
                to: (run.dst_var, at(run.dst_start, run.dst_stride, k)),
                from: (run.src_var, at(run.src_start, run.src_stride, k)),
                len,
                each: each * more * most,
            }));
        }
    }
}
