//! The fields of a compute set's vertices, and where their locations say that their elements are.
//!
//! # Note: Shared runs
//! If the field of a family is one part, the elements of its vertices form the same runs, moved by one distance, and so
//! do their bytes under locations of equal strides. The runs are then made once and shared.

use super::memory::Elements;
use girder_codelet::{Cover, Sizes, bind_sizes, facts_on};
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::{Family, Field};
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::plan::{FieldLocation, FieldLocations, Object, Plan, StepPlan};
use girder_ir::stage::RaceFree;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::{View, copy_runs};
use std::rc::Rc;

/// One field of one vertex with its location.
pub(super) struct FieldSite<'a> {
    codelet: &'a Codelet,
    family: &'a Family,
    index: usize,
    instance: u64,
    position: usize,
    pub tile: u32,
    pub dir: Dir,
    bytes: u32,
    fetched: bool,
    /// The object of the tile that should hold its elements.
    pub object: Object,
    runs: Rc<Runs>,
    /// The distance of its elements, and of its bytes, from those of `runs`.
    moved: (i64, i64),
}

/// The elements of a field in row-major order, and their bytes.
struct Runs {
    elements: Vec<Elements>,
    /// The least and the greatest first byte of an element; `None` if they are beyond all blocks.
    hull: Option<(i64, i64)>,
}

/// Returns all fields with elements, of all vertices of a compute set.
pub(super) fn sites<'a>(
    race_free: &'a RaceFree,
    plan: &'a Plan,
    id: ComputeSetId,
    steps: &'a StepPlan,
) -> Result<Vec<FieldSite<'a>>, String> {
    let mut result = vec![];
    for (position, &f) in race_free.sets[id].families.iter().enumerate() {
        let family = &race_free.families[f];
        let codelet = &race_free.codelets[family.codelet];
        let locations = &plan.locations[f];
        if locations.len() != family.fields.len() {
            return Err(format!("family {position} has landings for {} fields", locations.len()));
        }
        let Some(tiles) = &race_free.placement.families[f] else { return Err("a family has no tiles".into()) };
        let full = full(codelet, family, race_free.workers);
        for (index, (field, locations)) in family.fields.iter().zip(locations).enumerate() {
            let decl = &codelet.fields[field.field];
            let fetched = decl.dir != Dir::Out || !full.contains(&index);
            let (bytes, dir) = (decl.ty.bytes(), decl.dir);
            // Runs that vertices share: in buffers, and in place by strides.
            let (mut packed, mut in_place) = (None, vec![None; locations.strides.len()]);
            for instance in 0..family.domain.count() {
                let (location, strides) = location(locations, instance)?;
                if field.is_empty() {
                    continue;
                }
                let tile = tiles.at(&family.domain, instance);
                let nowhere =
                    || format!("{} has no place on its tile", name(codelet, family, index, instance, position));
                let base = base(location, field, steps, tile).ok_or_else(nowhere)?;
                let shared = match strides {
                    None => &mut packed,
                    Some(k) => &mut in_place[k],
                };
                let strides = strides.map(|k| locations.strides[k].as_slice());
                let first = field.parts[0].offset.at(&family.domain, instance);
                let (like, runs) = match shared.take().filter(|_| field.parts.len() == 1) {
                    Some(known) => known,
                    None => {
                        let view = field.view(&family.domain, instance);
                        (first, Rc::new(runs(&view, strides, bytes).ok_or_else(nowhere)?))
                    }
                };
                *shared = Some((like, runs.clone()));
                let is_byte = |at: i64| at.checked_add(base.1).is_some_and(|b| u32::try_from(b).is_ok());
                if !runs.hull.is_some_and(|(lo, hi)| is_byte(lo) && is_byte(hi)) {
                    return Err(nowhere());
                }
                let (object, moved) = (base.0, (first - like, base.1));
                result.push(FieldSite {
                    codelet,
                    family,
                    index,
                    instance,
                    position,
                    tile,
                    dir,
                    bytes,
                    fetched,
                    object,
                    runs,
                    moved,
                });
            }
        }
    }
    Ok(result)
}

/// Returns the object of a location on a tile, and its first byte there.
fn base(location: FieldLocation, field: &Field, steps: &StepPlan, tile: u32) -> Option<(Object, i64)> {
    match location {
        FieldLocation::Buffer { buffer, offset } => {
            steps.buffers.get(buffer as usize).filter(|b| b.tile == tile)?;
            Some((Object::Buffer(buffer), offset as i64))
        }
        FieldLocation::InPlace(byte) => {
            let [part] = field.parts.as_slice() else { return None };
            Some((Object::Var(part.var), byte as i64))
        }
    }
}

/// Returns the elements of a view with their bytes, from the first byte of its location. Elements are `bytes` wide and
/// packed if no strides are given.
fn runs(view: &View, strides: Option<&[i32]>, bytes: u32) -> Option<Runs> {
    // A view of bytes: its element at a row-major position is the first byte of the field's element.
    let var = VarId::from_u32(0);
    let places = match strides {
        None => View::strided(var, 0, &[view.len()], &[bytes as i64]),
        Some(strides) => {
            let shape = view.shape();
            let strides: Vec<i64> = strides.iter().map(|&s| s as i64).collect();
            (shape.len() == strides.len()).then(|| View::strided(var, 0, &shape, &strides))?
        }
    };
    let mut hull = Some((0, 0));
    let mut elements = vec![];
    for run in copy_runs(&places, view) {
        let (at, pitch) = (run.dst_start as i64, run.dst_stride);
        let last = (run.len as i64 - 1).checked_mul(pitch).and_then(|n| n.checked_add(at));
        hull = hull.zip(last).map(|((lo, hi), last): ((i64, i64), i64)| (lo.min(at).min(last), hi.max(at).max(last)));
        let (first, stride) = (run.src_start, run.src_stride);
        elements.push(Elements { var: run.src_var, first, stride, count: run.len, at, pitch });
    }
    Some(Runs { elements, hull })
}

/// Returns the location of a vertex, and the index of its strides if it is in place.
fn location(locations: &FieldLocations, instance: u64) -> Result<(FieldLocation, Option<usize>), String> {
    let missing = || format!("vertex {instance} has a field without a landing");
    let location = *locations.at.get(instance as usize).ok_or_else(missing)?;
    if let FieldLocation::Buffer { .. } = location {
        return Ok((location, None));
    }
    let index = *locations.strides_of.get(instance as usize).ok_or_else(missing)? as usize;
    let known = Some(index).filter(|&k| k < locations.strides.len());
    Ok((location, Some(known.ok_or_else(missing)?)))
}

/// Returns the positions of the fields that are certainly written in full.
fn full(codelet: &Codelet, family: &Family, workers: u32) -> Vec<usize> {
    let shape = |id| family.fields.iter().find(|f| f.field == id).map(|f| f.shape()).unwrap_or_default();
    let shapes: Vec<_> = codelet.fields.keys().map(shape).collect();
    let value = |id| family.consts.iter().find(|c| c.0 == id).filter(|_| family.domain.count() > 0);
    let value = |id| value(id).map_or(Scalar::zero(ElemType::I64), |c| c.1.at(0));
    let consts: Vec<_> = codelet.fields.keys().map(value).collect();
    let cover = |sizes: &Sizes| facts_on(codelet, sizes, workers).cover;
    let Ok(cover) = bind_sizes(codelet, &shapes, &consts).map(|sizes| cover(&sizes)) else { return vec![] };
    (0..family.fields.len()).filter(|&k| cover[family.fields[k].field] == Cover::Full).collect()
}

fn name(codelet: &Codelet, family: &Family, index: usize, instance: u64, position: usize) -> String {
    let field = &codelet.fields[family.fields[index].field].name;
    format!("field `{field}` of vertex {instance} of family {position}")
}

impl FieldSite<'_> {
    pub fn name(&self) -> String {
        name(self.codelet, self.family, self.index, self.instance, self.position)
    }

    /// Returns a number that identifies the vertex.
    fn vertex(&self) -> u64 {
        (self.position as u64) << 40 | self.instance
    }

    /// Returns whether its elements must be present before the vertex runs: they are fetched, or the field is in place.
    pub fn shows_tokens(&self) -> bool {
        self.fetched || matches!(self.object, Object::Var(_))
    }

    /// Returns the elements of the field in row-major order, with their bytes in the object.
    pub fn elements(&self) -> impl Iterator<Item = Elements> {
        let moved =
            |e: &Elements| Elements { first: e.first.wrapping_add_signed(self.moved.0), at: e.at + self.moved.1, ..*e };
        self.runs.elements.iter().map(moved)
    }
}

/// The granules of blocks into which fields store.
pub(super) struct Stores<'a> {
    /// The size of a granule in bytes.
    width: u32,
    /// Tile, object, first granule, one past the last granule, and field of each store.
    all: Vec<(u32, Object, u32, u32, &'a FieldSite<'a>)>,
}

impl<'a> Stores<'a> {
    /// Creates an empty list for granules of `width` bytes.
    pub fn new(width: u32) -> Stores<'a> {
        Stores { width, all: vec![] }
    }

    /// Adds the elements of a field.
    pub fn add(&mut self, site: &'a FieldSite<'a>, e: &Elements) {
        let object = site.object;
        let bytes = site.bytes as u64;
        let (parts, len) = match e.pitch == bytes as i64 {
            true => (1, e.count * bytes),
            false => (e.count, bytes),
        };
        for at in (0..parts).map(|k| e.byte(k)) {
            let (first, end) = (at / self.width, (at as u64 + len).div_ceil(self.width as u64) as u32);
            match self.all.last_mut() {
                Some(last)
                    if last.0 == site.tile
                        && last.1 == object
                        && last.4.vertex() == site.vertex()
                        && (last.2..=last.3).contains(&first) =>
                {
                    last.3 = last.3.max(end);
                }
                _ => self.all.push((site.tile, object, first, end, site)),
            }
        }
    }

    /// Checks that no two vertices store into one granule.
    pub fn check(mut self) -> Result<(), String> {
        self.all.sort_by_key(|s| (s.0, s.1, s.2));
        // The store that reaches furthest among those into the current block so far.
        let mut longest: Option<&(u32, Object, u32, u32, &FieldSite)> = None;
        for store in &self.all {
            match longest.filter(|l| (l.0, l.1) == (store.0, store.1)) {
                Some(l) if store.2 < l.3 && l.4.vertex() != store.4.vertex() => {
                    let name = store.4.name();
                    return Err(format!("{name} shares a granule of {} bytes with another vertex", self.width));
                }
                Some(l) if store.3 <= l.3 => {}
                _ => longest = Some(store),
            }
        }
        Ok(())
    }
}
