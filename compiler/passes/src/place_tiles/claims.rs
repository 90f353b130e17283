//! Variables that follow the vertices and copies that use them.
//!
//! # Note: Claims
//! Every field of every compute set whose vertices have tiles claims the elements that it touches for those tiles. A
//! claim is worth the executions of its step, twice if it writes (a result that stays is neither sent home nor fetched
//! before), divided by how many tiles share an element. Where claims meet the one that is worth more wins; elements that
//! nobody claims lie with their neighbours if they are few, else evenly.
//!
//! Invariant: narrow elements of one granule lie on one tile.

use super::accesses::{Accesses, Piece, Touch, What};
use super::trial::{Trial, VarRule};
use super::{given, linear};
use girder_ir::codelet::Dir;
use girder_ir::graph::Var;
use girder_ir::ids::{FamilyId, VarId};
use girder_ir::placement::{Mapping, TileRun, UNPLACED};

/// A field whose elements are shared by more vertices than this claims nothing: wherever they are, they travel.
const SHARED: f64 = 8.0;

/// Who uses a variable, by index into [`Accesses::items`].
#[derive(Default, Clone)]
pub(super) struct Users {
    /// Item, family in it, field.
    pub fields: Vec<(usize, usize, usize)>,
    /// Copies between it and another variable.
    pub copies: Vec<usize>,
    /// All items that touch it.
    pub items: Vec<usize>,
}

/// A field's claim.
struct Claim<'a> {
    worth: f64,
    family: FamilyId,
    touch: &'a Touch,
}

/// Places a variable by a rule, over the first `tiles` tiles where it is spread.
pub(super) fn place(id: VarId, var: &Var, rule: VarRule, users: &Users, accesses: &Accesses, trial: &Trial) -> Mapping {
    let bytes = var.ty.bytes();
    if var.is_empty() {
        return Mapping::One(0);
    }
    let given = given::mapping(var);
    let (painted, tiles) = match rule {
        VarRule::Spread { least, tiles } => {
            let open = given.map_or(var.len(), |m| linear::open_elements(m, var.len()));
            let spread = linear::spread(open, bytes, 0, linear::tiles_for(open, bytes, least, tiles));
            return given.map_or(spread.clone(), |m| linear::fill(var, m, &spread));
        }
        VarRule::Follow { first, tiles } => (followed(id, var, first, users, accesses, trial), tiles),
        VarRule::Partner { copy, tiles } => {
            let layers = partnered(id, copy, users, accesses, trial);
            (given::over(given, Mapping::overlay(None, var.len(), &layers), var.len()), tiles)
        }
    };
    complete(var, whole_granules(var, painted), tiles)
}

/// Moves the ends of runs to whole words.
fn whole_granules(var: &Var, mapping: Mapping) -> Mapping {
    let granule = (4 / u64::from(var.ty.bytes())).max(1);
    if granule == 1 || var.mapping.is_some() {
        return mapping;
    }
    let mut start = 0;
    let runs: Vec<TileRun> = mapping
        .runs(var.len())
        .map(|(_, end, tile)| {
            let end = end.next_multiple_of(granule).min(var.len());
            (std::mem::replace(&mut start, end), end, tile)
        })
        .collect();
    Mapping::from_runs(runs)
}

/// What claims leave open.
fn complete(var: &Var, mapping: Mapping, tiles: u32) -> Mapping {
    if mapping.is_complete() {
        return mapping;
    }
    let few = linear::BYTES_PER_TILE / u64::from(var.ty.bytes());
    let mut runs: Vec<TileRun> = mapping.runs(var.len()).collect();
    for k in 0..runs.len() {
        if runs[k].2 == UNPLACED && runs[k].1 - runs[k].0 <= few {
            let before = k.checked_sub(1).map(|b| runs[b].2);
            let after = runs.get(k + 1).map(|r| r.2);
            runs[k].2 = before.filter(|&t| t != UNPLACED).or(after).unwrap_or(UNPLACED);
        }
    }
    let mapping = Mapping::from_runs(runs);
    if mapping.is_complete() {
        return mapping;
    }
    let (open, bytes) = (linear::open_elements(&mapping, var.len()), var.ty.bytes());
    let spread = linear::spread(open, bytes, 0, linear::tiles_for(open, bytes, linear::BYTES_PER_TILE, tiles));
    linear::fill(var, &mapping, &spread)
}

/// The claims on a variable laid over each other, beginning with the one that wins, until nothing is open. Claim `first`
/// wins over all.
fn followed(id: VarId, var: &Var, first: Option<u32>, users: &Users, accesses: &Accesses, trial: &Trial) -> Mapping {
    let mut claims: Vec<(bool, Claim)> = vec![];
    for (k, &(item, family, field)) in users.fields.iter().enumerate() {
        let What::Set(set, families) = &accesses.items[item].what else { continue };
        let vertices = &families[family];
        if !trial.is_settled(*set, vertices.family) {
            continue;
        }
        let touch = &vertices.fields[field];
        let writes = if touch.dir == Dir::In { 1.0 } else { 2.0 };
        let named: u64 = touch.parts.iter().filter(|p| p.var == id).map(|p| p.first.len() as u64 * length(p)).sum();
        let shared = (named as f64 / touched(touch, id) as f64).max(1.0);
        if shared <= SHARED {
            let worth = accesses.items[item].weight as f64 * writes / shared;
            claims.push((first == Some(k as u32), Claim { worth, family: vertices.family, touch }));
        }
    }
    // Stable: of equal claims the first in the text wins.
    claims.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.worth.total_cmp(&a.1.worth)));
    let mut painted = given::mapping(var).cloned().unwrap_or(Mapping::One(UNPLACED));
    for (_, claim) in claims {
        if painted.is_complete() {
            break;
        }
        let tiles = trial.tiles(claim.family);
        let mut layers = vec![];
        for part in claim.touch.parts.iter().filter(|p| p.var == id) {
            // The first of several vertices wins.
            for (&first, &tile) in part.first.iter().zip(tiles).rev() {
                layers.extend(part.runs.iter().map(|r| (first + r.0, first + r.0 + r.1, tile)));
            }
        }
        painted = given::over(Some(&painted), Mapping::overlay(None, var.len(), &layers), var.len());
    }
    painted
}

fn length(part: &super::accesses::TouchedPart) -> u64 {
    part.runs.iter().map(|r| r.1).sum()
}

/// At most how many different elements of a variable a field touches.
fn touched(touch: &Touch, id: VarId) -> u64 {
    let parts = touch.parts.iter().filter(|p| p.var == id);
    let ends = parts.map(|p| {
        let lo = p.first.iter().min().copied().unwrap_or(0);
        let hi = p.first.iter().max().copied().unwrap_or(0) + p.runs.last().map_or(0, |r| r.0 + r.1);
        (hi - lo).min(p.first.len() as u64 * length(p))
    });
    ends.sum::<u64>().max(1)
}

/// Layers that lay a variable where the other end of a copy is.
fn partnered(id: VarId, copy: usize, users: &Users, accesses: &Accesses, trial: &Trial) -> Vec<TileRun> {
    let Some(What::Copy(pieces)) = users.copies.get(copy).map(|&i| &accesses.items[i].what) else { return vec![] };
    let mut layers = vec![];
    for &Piece { to, from, len } in pieces {
        for (own, other) in [(to, from), (from, to)] {
            if own.0 == id && other.0 != id {
                let runs = trial.homes(other.0).runs_in(other.1, other.1 + len);
                let shift = |at: u64| at - other.1 + own.1;
                layers.extend(runs.map(|r| (shift(r.start), shift(r.end), r.tile)));
            }
        }
    }
    layers
}
