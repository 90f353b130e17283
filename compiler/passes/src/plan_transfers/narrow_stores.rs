//! Stores that are narrower than the machine's narrowest. Such a store reads, changes and writes a whole granule, so
//! two workers of a tile must not store into one granule even if their elements differ.
//!
//! Invariant: afterwards, among all vertices of a compute set that write into one granule of a home block, at most one
//! does so in place. The others land in buffers, whose regions share no granule.

use super::buffers::PlanError;
use super::in_place::InPlace;
use super::moves::Moves;
use super::scene::Scene;
use girder_ir::codelet::Dir;
use girder_ir::family::Family;
use girder_ir::ids::VarId;
use girder_ir::plan::{Loc, Object};

/// A granule that a vertex writes only in part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    tile: u32,
    var: VarId,
    granule: u32,
    /// The vertex, as (position of its family, instance).
    vertex: (u32, u32),
    field: u32,
}

/// Moves fields that would share a granule into buffers. `tiles` and `in_place` are by family, the latter also by
/// field.
pub(super) fn separate(
    scene: &Scene,
    families: &[&Family],
    tiles: &[Vec<u32>],
    in_place: &mut [Vec<InPlace>],
) -> Result<(), PlanError> {
    let mut claims = vec![];
    let mut moves = Moves::new(scene);
    for (f, family) in families.iter().enumerate() {
        for (k, found) in in_place[f].iter().enumerate() {
            claim(scene, family, (f, k), &tiles[f], found, &mut moves, &mut claims)?;
        }
    }
    claims.sort_unstable();
    for granule in claims.chunk_by(|a, b| (a.tile, a.var, a.granule) == (b.tile, b.var, b.granule)) {
        for claim in granule.iter().filter(|c| c.vertex != granule[0].vertex) {
            let (f, instance) = claim.vertex;
            in_place[f as usize][claim.field as usize].at[instance as usize] = None;
        }
    }
    Ok(())
}

/// Adds the granules that the instances of one field write in part and in place.
fn claim(
    scene: &Scene,
    family: &Family,
    (f, k): (usize, usize),
    tiles: &[u32],
    in_place: &InPlace,
    moves: &mut Moves,
    claims: &mut Vec<Claim>,
) -> Result<(), PlanError> {
    let field = &family.fields[k];
    let decl = &scene.graph.codelets[family.codelet].fields[field.field];
    let granule = scene.machine.memory.store_bytes;
    if !matches!(decl.dir, Dir::Out | Dir::InOut) || decl.ty.bytes() >= granule {
        return Ok(());
    }
    for (instance, &tile) in tiles.iter().enumerate().filter(|(i, _)| in_place.at[*i].is_some()) {
        let vertex = (f as u32, instance as u32);
        let view = field.view(&family.domain, instance as u64);
        moves.gather(scene, &view, Loc { tile, object: Object::Buffer(0), offset: 0 })?;
        for m in &moves.list {
            let Object::Var(var) = m.from.object else { continue };
            for c in 0..m.count as i64 {
                let start = (m.from.offset as i64 + c * m.from_step as i64) as u32;
                let end = start + m.bytes;
                for edge in [start, end].into_iter().filter(|e| !e.is_multiple_of(granule)) {
                    claims.push(Claim { tile, var, granule: edge / granule, vertex, field: k as u32 });
                }
            }
        }
    }
    Ok(())
}
