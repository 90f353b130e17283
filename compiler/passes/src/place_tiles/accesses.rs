//! What every step touches, listed once and independent of any placement.
//!
//! Invariant: the list is bounded by [`MOST`] and [`VERTICES`]; a graph that has more is not listed at all.

use super::often::Often;
use cranelift_entity::SecondaryMap;
use girder_codelet::cost::{At, Busy, Cost, MemFacts, TileCosts, cost_of};
use girder_codelet::vertices::{bind_family, vertex_consts};
use girder_ir::codelet::Dir;
use girder_ir::family::{CopyFamily, Family, Field, FieldPart};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, SpecId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::region::Region;
use girder_ir::view::{Run, copy_runs};
use girder_machine::Machine;

/// Contiguous runs of elements that are listed at most; what a trial costs grows with them.
const MOST: u64 = 1 << 22;
/// Vertices that are listed at most.
const VERTICES: u64 = 1 << 17;

/// A step that takes time.
pub(super) struct Item {
    /// Executions.
    pub weight: u64,
    /// Runs that are looked at to estimate it.
    pub work: u64,
    pub what: What,
}

pub(super) enum What {
    Set(ComputeSetId, Vec<Vertices>),
    /// Pieces of a copy.
    Copy(Vec<Piece>),
    /// Elements of a packet: variable, first, length.
    Packet(Vec<(VarId, u64, u64)>),
}

/// The vertices of one family.
pub(super) struct Vertices {
    pub family: FamilyId,
    pub fields: Vec<Touch>,
    pub busy: Work,
}

/// For how long vertices keep their contexts.
pub(super) enum Work {
    Alike(Busy),
    Each(Vec<Busy>),
}

/// What one field touches.
pub(super) struct Touch {
    pub dir: Dir,
    /// Names what is touched by shape, so that equal offsets of equal shapes are the same elements.
    pub shape: u64,
    pub parts: Vec<TouchedPart>,
}

/// Runs of one variable, moved by an offset.
pub(super) struct TouchedPart {
    pub var: VarId,
    /// Least element, by instance.
    pub first: Vec<u64>,
    /// Start (from the least element) and length of each run, ascending.
    pub runs: Vec<(u64, u64)>,
}

/// Elements that a copy moves, contiguous at both ends.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub to: (VarId, u64),
    pub from: (VarId, u64),
    pub len: u64,
}

/// Everything that is executed at all.
pub(super) struct Accesses {
    pub items: Vec<Item>,
}

impl Accesses {
    /// `None` if there is too much to look at.
    pub(super) fn of(graph: &Graph, machine: &Machine) -> Option<Accesses> {
        let sum = |of: fn(&Family) -> u64| graph.families.values().map(of).fold(0, u64::saturating_add);
        if sum(work_of) > MOST || sum(|f| f.domain.count()) > VERTICES {
            return None;
        }
        let often = Often::of(graph);
        let costs = TileCosts::from(machine);
        let mut codelets: SecondaryMap<SpecId, Option<Cost>> = SecondaryMap::new();
        for (id, codelet) in &graph.codelets {
            codelets[id] = cost_of(codelet, &costs).ok();
        }
        let mut items = vec![];
        for (id, set) in graph.sets.iter().filter(|(id, _)| often.sets[*id] > 0) {
            let vertices = |&f: &FamilyId| vertices(graph, f, codelets[graph.families[f].codelet].as_ref(), &costs);
            let what = What::Set(id, set.families.iter().map(vertices).collect());
            let work = set.families.iter().map(|&f| work_of(&graph.families[f])).sum();
            items.push(Item { weight: often.sets[id], work, what });
        }
        let mut left = MOST;
        for (id, copy) in graph.copies.iter().filter(|(id, _)| often.copies[*id] > 0) {
            let mut pieces = vec![];
            copy.families.iter().try_for_each(|f| copied(f, &mut left, &mut pieces))?;
            items.push(Item { weight: often.copies[id], work: pieces.len() as u64, what: What::Copy(pieces) });
        }
        for (id, step) in graph.steps.iter().filter(|(id, _)| often.packets[*id] > 0) {
            if let StepKind::Effect(Effect::Read { into: view, .. } | Effect::Write { from: view, .. }) = &step.kind {
                let mut runs = vec![];
                view.runs().try_for_each(|run| contiguous(run, &mut left, &mut runs))?;
                items.push(Item { weight: often.packets[id], work: runs.len() as u64, what: What::Packet(runs) });
            }
        }
        Some(Accesses { items })
    }
}

/// Runs of all fields of all vertices of a family.
fn work_of(family: &Family) -> u64 {
    let of_part = |p: &FieldPart| runs_of(&p.region_at(0));
    let each: u64 = family.fields.iter().flat_map(|f| &f.parts).map(of_part).fold(1, u64::saturating_add);
    each.saturating_mul(family.domain.count())
}

fn runs_of(region: &Region) -> u64 {
    let inner = region.dims.first().filter(|d| d.1 == 1).map_or(1, |d| d.0);
    region.dims.iter().map(|d| d.0).fold(1, u64::saturating_mul) / inner
}

fn vertices(graph: &Graph, id: FamilyId, cost: Option<&Cost>, costs: &TileCosts) -> Vertices {
    let family = &graph.families[id];
    let codelet = &graph.codelets[family.codelet];
    let fields = family.fields.iter().filter(|f| !f.is_empty() && family.domain.count() > 0);
    let fields = fields.map(|f| touch(family, f, codelet.fields[f.field].dir)).collect();
    Vertices { family: id, fields, busy: busy(graph, family, cost, costs).unwrap_or(Work::Alike(Busy::One(0))) }
}

fn touch(family: &Family, field: &Field, dir: Dir) -> Touch {
    let part = |p: &FieldPart| {
        let mut region = p.region_at(0);
        let base = std::mem::take(&mut region.offset);
        let mut intervals = vec![];
        region.list(p.var, &mut intervals);
        let mut runs: Vec<(u64, u64)> = intervals.into_iter().map(|i| (i.1, i.2 - i.1)).collect();
        runs.sort_unstable();
        TouchedPart { var: p.var, first: p.offset.values(&family.domain).map(|o| (o + base) as u64).collect(), runs }
    };
    let parts: Vec<TouchedPart> = field.parts.iter().map(part).collect();
    // FNV-1a over variables and runs: equal shapes of different families are found equal.
    let mut shape = 0xcbf2_9ce4_8422_2325u64;
    for part in &parts {
        let words = part.runs.iter().flat_map(|r| [r.0, r.1]);
        for word in [u64::from(part.var.as_u32())].into_iter().chain(words) {
            shape = (shape ^ word).wrapping_mul(0x100_0000_01b3);
        }
    }
    Touch { dir, shape, parts }
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
        let at = At {
            sizes: &sizes,
            consts: &consts,
            worker: 0,
            workers: costs.workers,
            counters: &counters,
            facts: &facts,
        };
        cost.busy(&at)
    };
    Some(match cost.reads_constants() {
        true => Work::Each((0..family.domain.count()).map(of).collect()),
        false => Work::Alike(of(0)),
    })
}

impl Work {
    pub(super) fn of(&self, instance: usize) -> &Busy {
        match self {
            Work::Alike(busy) => busy,
            Work::Each(list) => &list[instance],
        }
    }
}

/// Cuts a run into contiguous ones; `None` if no more may be listed.
fn contiguous(run: Run, left: &mut u64, out: &mut Vec<(VarId, u64, u64)>) -> Option<()> {
    let pieces = if run.stride == 1 { 1 } else { run.len };
    *left = left.checked_sub(pieces)?;
    let len = run.len / pieces.max(1);
    let start = |k: u64| (run.start as i64 + k as i64 * run.stride) as u64;
    out.extend((0..pieces).map(|k| (run.var, start(k), len)));
    Some(())
}

/// The pieces of a copy.
fn copied(family: &CopyFamily, left: &mut u64, out: &mut Vec<Piece>) -> Option<()> {
    for instance in 0..family.domain.count() {
        let (to, from) = (family.dst.view(&family.domain, instance), family.src.view(&family.domain, instance));
        for run in copy_runs(&to, &from) {
            let whole = run.dst_stride == 1 && run.src_stride == 1;
            let (pieces, len) = if whole { (1, run.len) } else { (run.len, 1) };
            *left = left.checked_sub(pieces)?;
            let at = |start: u64, stride: i64, k: u64| (start as i64 + k as i64 * stride) as u64;
            out.extend((0..pieces).map(|k| Piece {
                to: (run.dst_var, at(run.dst_start, run.dst_stride, k)),
                from: (run.src_var, at(run.src_start, run.src_stride, k)),
                len,
            }));
        }
    }
    Some(())
}
