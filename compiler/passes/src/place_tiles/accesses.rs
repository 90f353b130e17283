//! The accesses of every step, listed once and independently of any placement.
//!
//! # Note: Samples
//! A field keeps the closed form of its family, and at most [`RUNS`] of its contiguous runs stand for all of them. A
//! copy is at most [`PIECES`] slices, each of which stands for several. So the list is as long as the text, whatever
//! the number of vertices and elements.

use super::executions::Executions;
use crate::Part;
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::{Busy, Cost, CostInputs, Deciding, MemFacts, TileCosts, cost_of, known_counts};
use girder_codelet::vertices::{bind_family, vertex_consts};
use girder_ir::codelet::Dir;
use girder_ir::family::{CopyFamily, Domain, Family, Field, FieldPart, Offset};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, SpecId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::{Run, copy_runs};
use girder_machine::Machine;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// The number of runs of one part that are sampled.
const RUNS: u64 = 16;
/// The number of slices of one copy, or runs of one packet, that are sampled.
const PIECES: u64 = 1 << 12;
/// The number of vertices of one family whose times are distinguished.
const DISTINGUISHED: u64 = 1 << 12;

/// The number of statements that may be executed to find how often the blocks of one family's vertices run.
const ALLOWED: u64 = 50_000;

/// A step that takes time.
pub(super) struct Item<'a> {
    /// The number of executions.
    pub weight: u64,
    /// The step, as `check --time` knows it.
    pub part: Part,
    pub what: StepAccess<'a>,
}

/// The accesses of a step to elements.
pub(super) enum StepAccess<'a> {
    Set(ComputeSetId, Vec<FamilyAccess<'a>>),
    Copy(Vec<CopySlice>),
    Packet(Vec<PacketRun>),
}

/// The vertices of one family, of which there is at least one.
pub(super) struct FamilyAccess<'a> {
    pub id: FamilyId,
    pub family: &'a Family,
    pub fields: Vec<FieldAccess<'a>>,
    pub busy: VertexTimes,
}

/// The times for which vertices occupy worker contexts.
pub(super) enum VertexTimes {
    Equal(Busy),
    Each(Vec<Busy>),
}

/// The elements that one field accesses.
pub(super) struct FieldAccess<'a> {
    pub dir: Dir,
    /// A hash of the accessed shape. Fields of equal shape at equal offsets access the same elements.
    pub shape: u64,
    /// An upper bound of the number of vertices that access different elements.
    pub distinct: u64,
    pub parts: Vec<PartAccess<'a>>,
}

/// The accesses of one part of a field: runs of one variable, moved by an offset.
pub(super) struct PartAccess<'a> {
    pub var: VarId,
    pub part: &'a FieldPart,
    /// The least element at offset 0.
    base: i64,
    /// The start (relative to the least element) and length of runs, ascending.
    pub runs: Vec<(u64, u64)>,
    /// The number of runs that each run of the list stands for.
    pub each: f64,
    /// The number of elements of one vertex.
    pub elements: u64,
    /// The number of elements from the least to the greatest that any vertex accesses.
    pub reach: u64,
}

/// Elements that a copy moves, contiguous at both ends.
#[derive(Clone, Copy)]
pub(super) struct CopySlice {
    pub to: (VarId, u64),
    pub from: (VarId, u64),
    pub len: u64,
    /// The number of slices that it stands for.
    pub each: f64,
}

/// Neighbouring elements of a packet.
#[derive(Clone, Copy)]
pub(super) struct PacketRun {
    pub var: VarId,
    pub start: u64,
    pub len: u64,
    /// The number of runs that it stands for.
    pub each: f64,
}

/// The uses of a variable, as indices into `PlacementProblem::items`.
#[derive(Default, Clone)]
pub(super) struct Users {
    /// Fields, as (item, family, field).
    pub fields: Vec<(usize, usize, usize)>,
    /// Copies between it and another variable.
    pub copies: Vec<usize>,
    /// All items that touch it.
    pub items: Vec<usize>,
}

/// Returns all steps that are executed and take time.
pub(super) fn items<'a>(graph: &'a Graph, machine: &Machine) -> Vec<Item<'a>> {
    let executions = Executions::of(graph);
    let costs = TileCosts::from(machine);
    let mut codelets: SecondaryMap<SpecId, Option<Cost>> = SecondaryMap::new();
    for (id, codelet) in &graph.codelets {
        codelets[id] = cost_of(codelet, &costs).ok();
    }
    let mut items = vec![];
    for (id, set) in graph.sets.iter().filter(|(id, _)| executions.sets[*id] > 0) {
        let families = set.families.iter().filter(|f| graph.families[**f].domain.count() > 0);
        let vertices = |&f: &FamilyId| vertices(graph, f, codelets[graph.families[f].codelet].as_ref(), &costs);
        let what = StepAccess::Set(id, families.map(vertices).collect());
        items.push(Item { weight: executions.sets[id], part: Part::Set(id), what });
    }
    for (id, copy) in graph.copies.iter().filter(|(id, _)| executions.copies[*id] > 0) {
        let mut pieces = vec![];
        copy.families.iter().for_each(|f| copied(f, PIECES / copy.families.len().max(1) as u64, &mut pieces));
        items.push(Item { weight: executions.copies[id], part: Part::Copy(id), what: StepAccess::Copy(pieces) });
    }
    for (id, step) in graph.steps.iter().filter(|(id, _)| executions.packets[*id] > 0) {
        if let StepKind::Effect(Effect::Read { into: view, .. } | Effect::Write { from: view, .. }) = &step.kind {
            let mut chunks = vec![];
            let runs: Vec<Run> = view.runs().collect();
            let (some, each) = some_of(runs.len() as u64, PIECES);
            some.for_each(|k| packet_runs(runs[k as usize], each, PIECES / runs.len().max(1) as u64, &mut chunks));
            items.push(Item { weight: executions.packets[id], part: Part::Step(id), what: StepAccess::Packet(chunks) });
        }
    }
    items
}

impl Item<'_> {
    /// Returns the variables that the step accesses, ascending.
    pub(super) fn vars(&self) -> Vec<VarId> {
        let mut vars: Vec<VarId> = match &self.what {
            StepAccess::Set(_, families) => {
                families.iter().flat_map(|v| &v.fields).flat_map(|f| &f.parts).map(|p| p.var).collect()
            }
            StepAccess::Copy(pieces) => pieces.iter().flat_map(|p| [p.to.0, p.from.0]).collect(),
            StepAccess::Packet(chunks) => chunks.iter().map(|c| c.var).collect(),
        };
        vars.sort_unstable();
        vars.dedup();
        vars
    }
}

/// Returns at most `most` (at least 2) evenly spaced numbers below `n`, including the first and the last, and how many
/// numbers each of them stands for.
fn some_of(n: u64, most: u64) -> (impl Iterator<Item = u64>, f64) {
    let taken = n.min(most.max(2));
    let at =
        move |k: u64| if taken == n { k } else { (u128::from(k) * u128::from(n - 1) / u128::from(taken - 1)) as u64 };
    ((0..taken).map(at), n as f64 / taken.max(1) as f64)
}

fn vertices<'a>(graph: &'a Graph, id: FamilyId, cost: Option<&Cost>, costs: &TileCosts) -> FamilyAccess<'a> {
    let family = &graph.families[id];
    let codelet = &graph.codelets[family.codelet];
    let fields = family.fields.iter().filter(|f| !f.is_empty());
    let fields = fields.map(|f| touch(&family.domain, f, codelet.fields[f.field].dir)).collect();
    FamilyAccess {
        id,
        family,
        fields,
        busy: busy(graph, family, cost, costs).unwrap_or(VertexTimes::Equal(Busy::One(0))),
    }
}

fn touch<'a>(domain: &Domain, field: &'a Field, dir: Dir) -> FieldAccess<'a> {
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
        PartAccess { var: p.var, part: p, base: region.offset, runs, each, elements: count * len, reach }
    };
    let parts = field.parts.iter().map(part).collect();
    FieldAccess { dir, parts, shape: shape.finish(), distinct }
}

impl PartAccess<'_> {
    /// Returns the least element that an instance accesses.
    pub(super) fn first(&self, domain: &Domain, instance: u64) -> u64 {
        (self.part.offset.at(domain, instance) + self.base) as u64
    }
}

/// Returns the times of a family's vertices as modelled time has them, except that a block whose number of executions
/// only the data decide counts once for each element of the vertex. So does one that is found only by executing more
/// than [`ALLOWED`] statements.
fn busy(graph: &Graph, family: &Family, cost: Option<&Cost>, costs: &TileCosts) -> Option<VertexTimes> {
    let (cost, sizes) = (cost?, bind_family(graph, family).ok()??);
    let facts = MemFacts::granting(cost.requests());
    let workers = if cost.is_multi() { costs.workers as usize } else { 1 };
    let elements: u64 = family.fields.iter().map(Field::len).sum();
    let codelet = &graph.codelets[family.codelet];
    let consts = |instance: u64| vertex_consts(codelet, family, instance);
    let counts_are_known = !cost.points().is_empty() && Deciding::of(codelet).is_some();
    let mut allowed = ALLOWED;
    let mut of = |consts: Vec<u64>| {
        let at = CostInputs {
            sizes: &sizes,
            consts: &consts,
            worker: 0,
            workers: costs.workers,
            counters: &[],
            facts: &facts,
        };
        let known =
            counts_are_known.then(|| known_counts(codelet, cost.points(), &sizes, &consts, at.workers, &mut allowed));
        let counters = known.flatten().unwrap_or_else(|| cost.counters(&at, elements.div_ceil(workers as u64)));
        cost.busy(&CostInputs { counters: &counters, ..at })
    };
    let count = family.domain.count();
    Some(match cost.reads_constants() && count <= DISTINGUISHED {
        true => {
            // Few constants differ: those of blocks at an edge.
            let mut known: FxHashMap<Vec<u64>, Busy> = FxHashMap::default();
            let mut time = |consts: Vec<u64>| match known.get(&consts) {
                Some(busy) => busy.clone(),
                None => {
                    let busy = of(consts.clone());
                    known.insert(consts, busy.clone());
                    busy
                }
            };
            VertexTimes::Each((0..count).map(|k| time(consts(k))).collect())
        }
        false => VertexTimes::Equal(of(consts(count / 2))),
    })
}

impl VertexTimes {
    /// Returns the time of a vertex.
    pub(super) fn of(&self, instance: u32) -> &Busy {
        match self {
            VertexTimes::Equal(busy) => busy,
            VertexTimes::Each(list) => &list[instance as usize],
        }
    }
}

/// Adds at most `most` contiguous runs of a run.
fn packet_runs(run: Run, each: f64, most: u64, out: &mut Vec<PacketRun>) {
    let (count, len) = if run.stride == 1 { (1, run.len) } else { (run.len, 1) };
    let (some, more) = some_of(count, most);
    let start = |k: u64| (run.start as i64 + k as i64 * run.stride) as u64;
    out.extend(some.map(|k| PacketRun { var: run.var, start: start(k), len, each: each * more }));
}

/// Adds about `most` slices of a copy.
fn copied(family: &CopyFamily, most: u64, out: &mut Vec<CopySlice>) {
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
            out.extend(some.map(|k| CopySlice {
                to: (run.dst_var, at(run.dst_start, run.dst_stride, k)),
                from: (run.src_var, at(run.src_start, run.src_stride, k)),
                len,
                each: each * more * most,
            }));
        }
    }
}
