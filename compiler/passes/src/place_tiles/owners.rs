//! The owners of a variable's open elements: the vertices that use them, or the other ends of a copy.
//!
//! # Note: Claims
//! Every field of every compute set claims the elements that it accesses for the tiles of its vertices. The value of a
//! claim is the number of executions of its step, doubled if it writes (a result that stays is neither sent home nor
//! fetched before), divided by the number of vertices that share an element. Where claims overlap, the most valuable
//! one wins. Unclaimed elements go with their neighbours if they are few, and are spread evenly otherwise. The owner of
//! an element does not depend on tiles. It is computed once, and maps every placement of vertices to one of variables.
//!
//! Invariant: owners cover all elements.

use super::accesses::{CopySlice, FamilyAccess, FieldAccess, Item, StepAccess, Users};
use super::homes::Even;
use super::vertex_runs::{VertexRun, ascending, list};
use super::{linear, regions, text_placement};
use cranelift_entity::PrimaryMap;
use girder_ir::codelet::Dir;
use girder_ir::family::{Domain, Offset, TileMap};
use girder_ir::graph::Var;
use girder_ir::ids::{FamilyId, VarId};
use girder_ir::placement::UNPLACED;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// If more vertices than this share an element on average, the field claims nothing: the elements travel in any case.
const SHARED: f64 = 8.0;
/// A claim with more runs than this, and more than one for each vertex, is not listed; its elements are spread evenly.
const LISTED: u64 = 1 << 20;

/// The owner of an element, which determines its tile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Owner {
    /// The text places it.
    Tile(u32),
    /// It goes with a vertex.
    Vertex(FamilyId, u32),
    /// It goes with an element of another variable; neighbours go with neighbours.
    Element(VarId, u32),
    /// It is spread evenly.
    Even,
    /// It is an element, by number, of a range that is spread over the region that uses it, by number; neighbours go
    /// with neighbours.
    Spread(u32, u32),
}

/// Consecutive elements and the owner of the first.
#[derive(Clone, Copy, Debug)]
struct Owned {
    start: u32,
    end: u32,
    owner: Owner,
}

impl Owner {
    /// Returns the owner of the element that is `elements` after an element with this owner in the same run.
    fn after(self, elements: u32) -> Owner {
        match self {
            Owner::Element(var, first) => Owner::Element(var, first + elements),
            Owner::Spread(range, first) => Owner::Spread(range, first + elements),
            owner => owner,
        }
    }

    /// Returns whether the tiles of neighbouring elements of a run may differ.
    fn varies(self) -> bool {
        matches!(self, Owner::Element(..) | Owner::Spread(..))
    }
}

/// The owners of one variable's open elements.
pub(super) enum Owners {
    Closed(ClosedForm),
    Runs(OwnerRuns),
}

/// The owners of runs of elements.
#[derive(Default)]
pub(super) struct OwnerRuns {
    /// The end (exclusive) and owner of each run, ascending. There may be millions, so they are small.
    runs: Vec<(u32, Owner)>,
    /// The families among the owners.
    families: Vec<FamilyId>,
    /// The ranges that are spread over regions, by number.
    spread: Vec<Even>,
}

/// A variable that one field of one family tiles: the digits of an element's number are indices of the family's domain,
/// or lie inside the vertex.
pub(super) struct ClosedForm {
    pub family: FamilyId,
    /// The extent of each digit and its dimension of the domain, if any; the most significant digit comes first.
    digits: SmallVec<[(u32, Option<u8>); 4]>,
    /// The place value of each digit in elements.
    worth: SmallVec<[u64; 4]>,
    /// The number of instances between neighbouring values of a digit; 0 inside the vertex.
    instances: SmallVec<[u64; 4]>,
    /// The number of neighbouring elements with one owner.
    pub block: u64,
}

/// A field's claim.
struct Claim<'a> {
    worth: f64,
    vertices: &'a FamilyAccess<'a>,
    touch: &'a FieldAccess<'a>,
}

impl Owners {
    /// Divides a variable by claims, the most valuable first, until no element is open. Claim `first` takes precedence
    /// over all.
    pub(super) fn by_claims(id: VarId, var: &Var, first: Option<usize>, users: &Users, items: &[&Item]) -> Owners {
        let claims = claims(id, var, first, users, items);
        let placed = text_placement::mapping(var);
        if let (None, Some(claim)) = (placed, claims.first())
            && let Some(closed) = closed(claim, id, var.len())
        {
            return Owners::Closed(closed);
        }
        let mut field = Division::new(var);
        for claim in claims {
            if field.open.is_empty() {
                break;
            }
            field.claim(&claim, id);
        }
        if var.within.is_none() {
            field.spread_in_regions(id, var, users, items);
        }
        field.finish(var)
    }

    /// Assigns the elements of a copy to its other ends.
    pub(super) fn by_copy(id: VarId, vars: &PrimaryMap<VarId, Var>, pieces: &[CopySlice]) -> Owners {
        let var = &vars[id];
        let mut field = Division::new(var);
        let stays = |other: VarId| var.within.is_none_or(|tiles| regions::elements_stay(&vars[other], tiles));
        for &CopySlice { to, from, len, .. } in pieces {
            for (own, other) in [(to, from), (from, to)] {
                if own.0 == id && other.0 != id && stays(other.0) {
                    let owner = Owner::Element(other.0, other.1 as u32);
                    field.paint(&[Owned { start: own.1 as u32, end: (own.1 + len) as u32, owner }], |run| *run);
                }
            }
        }
        field.finish(var)
    }

    /// Returns the families among the owners.
    pub(super) fn families(&self) -> &[FamilyId] {
        match self {
            Owners::Closed(closed) => std::slice::from_ref(&closed.family),
            Owners::Runs(runs) => &runs.families,
        }
    }

    /// Returns whether the owners are in closed form, so that all vertices own equally many elements.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Owners::Closed(_))
    }

    /// Returns whether there are too many runs to visit all of them for an estimate.
    pub(super) fn is_long(&self) -> bool {
        const LONG: u64 = 1 << 14;
        match self {
            Owners::Closed(closed) => closed.instances_in_all() > LONG,
            Owners::Runs(runs) => runs.runs.len() as u64 > LONG,
        }
    }

    /// Returns the ranges that are spread over regions, by number.
    pub(super) fn spread(&self) -> &[Even] {
        match self {
            Owners::Closed(_) => &[],
            Owners::Runs(runs) => &runs.spread,
        }
    }

    /// Calls `each` with (start, end, owner) for `start..end` in order, until it returns `false`.
    pub(super) fn each_owner(&self, start: u64, end: u64, mut each: impl FnMut(u64, u64, Owner) -> bool) {
        let mut at = start;
        match self {
            Owners::Closed(closed) => {
                while at < end {
                    let to = ((at / closed.block + 1) * closed.block).min(end);
                    if !each(at, to, Owner::Vertex(closed.family, closed.instance(at))) {
                        return;
                    }
                    at = to;
                }
            }
            Owners::Runs(OwnerRuns { runs, .. }) => {
                for k in runs.partition_point(|r| u64::from(r.0) <= start).. {
                    let Some(&(stop, owner)) = runs.get(k).filter(|_| at < end) else { return };
                    let begin = if k == 0 { 0 } else { runs[k - 1].0 };
                    let owner = owner.after(at as u32 - begin);
                    let to = u64::from(stop).min(end);
                    if !each(at, to, owner) {
                        return;
                    }
                    at = to;
                }
            }
        }
    }
}

impl ClosedForm {
    fn instances_in_all(&self) -> u64 {
        self.digits.iter().filter(|d| d.1.is_some()).map(|d| u64::from(d.0)).product()
    }

    fn instance(&self, element: u64) -> u32 {
        let digits = self.digits.iter().zip(&self.worth).zip(&self.instances);
        digits.map(|((d, worth), step)| element / worth % u64::from(d.0) * step).sum::<u64>() as u32
    }

    /// Returns the tiles of the elements as a function of the digits, or `None` if those of the vertices have no closed
    /// form.
    pub(super) fn tiles(&self, map: &TileMap) -> Option<(Domain, TileMap)> {
        let TileMap::Separable { base, terms } = map else { return None };
        let mut found = terms.clone();
        for term in &mut found {
            term.dim = self.digits.iter().position(|d| d.1 == Some(term.dim))? as u8;
        }
        Some((Domain(self.digits.iter().map(|d| d.0).collect()), TileMap::Separable { base: *base, terms: found }))
    }
}

/// Returns the digits of a variable's elements, or `None` if the field does not tile it.
fn closed(claim: &Claim, id: VarId, len: u64) -> Option<ClosedForm> {
    let [part] = &claim.touch.parts[..] else { return None };
    let domain = &claim.vertices.family.domain;
    let Offset::Affine(affine) = &part.part.offset else { return None };
    let steps = domain.strides();
    let own = domain.0.iter().enumerate().map(|(k, &n)| (affine.coef.get(k).copied().unwrap_or(0), n, Some(k as u8)));
    let inside = part.part.stride.iter().zip(&part.part.len).map(|(&s, &n)| (s, n, None));
    let mut all: SmallVec<[(i64, u32, Option<u8>); 8]> = own.chain(inside).filter(|d| d.1 > 1).collect();
    all.sort_unstable_by_key(|d| std::cmp::Reverse(d.0));
    // The weight of each digit must be the number of values of the less significant digits.
    let mut counted = 1u64;
    for &(stride, n, _) in all.iter().rev() {
        if stride != counted as i64 {
            return None;
        }
        counted *= u64::from(n);
    }
    if affine.base != 0 || counted != len || part.var != id {
        return None;
    }
    let instance = |d: &(i64, u32, Option<u8>)| d.2.map_or(0, |k| steps[k as usize]);
    let block = all.iter().rev().find(|d| d.2.is_some()).map_or(len, |d| d.0 as u64);
    Some(ClosedForm {
        family: claim.vertices.id,
        digits: all.iter().map(|d| (d.1, d.2)).collect(),
        worth: all.iter().map(|d| d.0 as u64).collect(),
        instances: all.iter().map(instance).collect(),
        block,
    })
}

/// Returns the claims on a variable, the most valuable first.
fn claims<'a>(id: VarId, var: &Var, first: Option<usize>, users: &Users, items: &'a [&'a Item<'a>]) -> Vec<Claim<'a>> {
    let len = var.len().max(1);
    let mut claims: Vec<(bool, Claim)> = vec![];
    let mut read: FxHashMap<usize, f64> = FxHashMap::default();
    for (k, &(item, family, field)) in users.fields.iter().enumerate() {
        let StepAccess::Set(_, families) = &items[item].what else { continue };
        let vertices = &families[family];
        let touch = &vertices.fields[field];
        let writes = if touch.dir == Dir::In { 1.0 } else { 2.0 };
        let own = || touch.parts.iter().filter(|p| p.var == id);
        // Elements follow no vertex out of their place.
        if var.within.is_some_and(|tiles| !regions::vertices_stay(vertices.family, tiles)) {
            continue;
        }
        let count = vertices.family.domain.count();
        let named: u64 = own().map(|p| count.saturating_mul(p.elements)).fold(0, u64::saturating_add);
        let touched: u64 = own().map(|p| p.reach.min(touch.distinct.saturating_mul(p.elements))).sum();
        let shared = (named as f64 / touched.max(1) as f64).max(1.0);
        // A few vertices at the edge of a product read the same elements as all others.
        let mut read = || *read.entry(item).or_insert_with(|| times_read(families, id, len));
        if shared <= SHARED && !(touch.dir == Dir::In && read() > SHARED) {
            let worth = items[item].weight as f64 * writes / shared;
            claims.push((first == Some(k), Claim { worth, vertices, touch }));
        }
    }
    // The sort is stable: among equal claims the first in the text wins.
    claims.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.worth.total_cmp(&a.1.worth)));
    claims.into_iter().map(|c| c.1).collect()
}

/// Returns how often, on average, vertices read those elements of a variable that they read. Several families may read
/// the same blocks.
fn times_read(families: &[FamilyAccess], id: VarId, len: u64) -> f64 {
    let all = families.iter().flat_map(|v| v.fields.iter().map(move |f| (v, f)));
    let fields: Vec<(&FamilyAccess, &FieldAccess)> = all.filter(|(_, f)| f.dir == Dir::In).collect();
    let parts = |f: &FieldAccess| f.parts.iter().filter(|p| p.var == id).count() as u64;
    let listed = fields.iter().map(|(v, f)| v.family.domain.count() * parts(f)).fold(0, u64::saturating_add);
    let (mut named, mut touched) = (0.0, 0.0);
    let mut blocks: FxHashSet<(u64, u64)> = FxHashSet::default();
    for (v, field) in fields {
        let domain = &v.family.domain;
        for part in field.parts.iter().filter(|p| p.var == id) {
            named += domain.count() as f64 * part.elements as f64;
            match listed <= LISTED {
                true => blocks.extend((0..domain.count()).map(|k| (part.first(domain, k), part.elements))),
                false => touched += field.distinct as f64 * part.elements as f64,
            }
        }
    }
    touched += blocks.iter().map(|block| block.1 as f64).sum::<f64>();
    named / touched.clamp(1.0, len as f64)
}

/// A variable that is being divided among owners.
struct Division {
    /// The open ranges, ascending.
    open: Vec<(u32, u32)>,
    taken: Vec<Owned>,
    /// The ranges that are spread over regions, by number.
    spread: Vec<Even>,
}

impl Division {
    fn new(var: &Var) -> Division {
        let mut field = Division { open: vec![(0, var.len() as u32)], taken: vec![], spread: vec![] };
        if let Some(mapping) = text_placement::mapping(var) {
            let placed = mapping.runs(var.len()).filter(|r| r.2 != UNPLACED);
            let owned = |r: (u64, u64, u32)| Owned { start: r.0 as u32, end: r.1 as u32, owner: Owner::Tile(r.2) };
            let placed: Vec<Owned> = placed.map(owned).collect();
            field.paint(&placed, |run| *run);
        }
        field
    }

    /// Assigns open elements among ascending runs, as `of` reads them, to their owners. Among overlapping runs the
    /// first wins.
    fn paint<R>(&mut self, runs: &[R], of: impl Fn(&R) -> Owned) {
        let mut left = vec![];
        let mut next = 0;
        self.taken.reserve(runs.len());
        for &(mut start, end) in &self.open {
            while next < runs.len() && of(&runs[next]).end <= start {
                next += 1;
            }
            let mut k = next;
            while start < end {
                let Some(run) = runs.get(k).map(&of).filter(|r| r.start < end) else { break };
                k += 1;
                if run.end <= start {
                    continue;
                }
                if run.start > start {
                    left.push((start, run.start));
                    start = run.start;
                }
                let owned = Owned { start, end: run.end.min(end), owner: run.owner.after(start - run.start) };
                self.taken.push(owned);
                start = owned.end;
            }
            if start < end {
                left.push((start, end));
            }
        }
        self.open = left;
    }

    fn claim(&mut self, claim: &Claim, id: VarId) {
        let (family, domain) = (claim.vertices.id, &claim.vertices.family.domain);
        let mut runs: Vec<VertexRun> = vec![];
        for part in claim.touch.parts.iter().filter(|p| p.var == id) {
            let each = part.runs.len() as f64 * part.each;
            if each * domain.count() as f64 > LISTED.max(domain.count()) as f64 {
                return;
            }
            list(part, domain, &mut runs);
        }
        ascending(&mut runs);
        self.paint(&runs, |r| Owned { start: r.start, end: r.end, owner: Owner::Vertex(family, r.instance) });
    }

    /// Spreads open elements over the places of the vertices that use them. Where several places use an element, the
    /// first in the text has it.
    fn spread_in_regions(&mut self, id: VarId, var: &Var, users: &Users, items: &[&Item]) {
        for &(item, family, field) in &users.fields {
            let StepAccess::Set(_, families) = &items[item].what else { continue };
            let vertices = &families[family];
            let (None, Some(within)) = (&vertices.family.tile, vertices.family.within) else { continue };
            let domain = &vertices.family.domain;
            for part in vertices.fields[field].parts.iter().filter(|p| p.var == id) {
                let first = (0..domain.count()).map(|k| part.first(domain, k)).min().unwrap_or(0);
                let hull = (first as u32, (first + part.reach) as u32);
                let inside = self.open.iter().map(|o| (o.0.max(hull.0), o.1.min(hull.1))).filter(|o| o.0 < o.1);
                let spread = &mut self.spread;
                let runs = inside.map(|(start, end)| {
                    spread.push(Even::of_part(var, u64::from(end - start), within));
                    Owned { start, end, owner: Owner::Spread(spread.len() as u32 - 1, 0) }
                });
                let runs: Vec<Owned> = runs.collect();
                self.paint(&runs, |run| *run);
            }
        }
    }

    fn finish(mut self, var: &Var) -> Owners {
        if !self.taken.is_sorted_by_key(|r| r.start) {
            radsort::sort_by_key(&mut self.taken, |r| r.start);
        }
        let len = var.len() as u32;
        let few = (linear::BYTES_PER_TILE / u64::from(var.ty.bytes())) as u32;
        let mut runs: Vec<(u32, Owner)> = Vec::with_capacity(self.taken.len() + self.open.len());
        let mut open = std::mem::take(&mut self.open).into_iter().peekable();
        let mut taken = self.taken.into_iter().peekable();
        let mut at = 0;
        while at < len {
            let (end, owner) = match (open.next_if(|o| o.0 == at), taken.peek()) {
                (None, _) => taken.next().map_or((len, Owner::Even), |t| (t.end, t.owner)),
                (Some((start, end)), after) if end - start <= few => {
                    let near = runs.last().map(|r| r.1).or(after.map(|t| t.owner)).unwrap_or(Owner::Even);
                    (end, if near.varies() { Owner::Even } else { near })
                }
                (Some((_, end)), _) => (end, Owner::Even),
            };
            match runs.last_mut().filter(|r| r.1 == owner && !owner.varies()) {
                Some(last) => last.0 = end,
                None => runs.push((end, owner)),
            }
            at = end;
        }
        runs.shrink_to_fit();
        let mut families: Vec<FamilyId> =
            runs.iter().filter_map(|r| if let Owner::Vertex(f, _) = r.1 { Some(f) } else { None }).collect();
        families.sort_unstable();
        families.dedup();
        Owners::Runs(OwnerRuns { runs, families, spread: self.spread })
    }
}
