//! The fields of a compute set's vertices, and where their landings say that their elements are.

use super::memory::Elements;
use girder_codelet::{Cover, Sizes, bind_sizes, facts};
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::Family;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::plan::{FieldLandings, Landing, Object, Plan, StepPlan};
use girder_ir::stage::RaceFree;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::{View, copy_runs};

/// One field of one vertex with its landing.
pub(super) struct FieldSite<'a> {
    family: &'a Family,
    codelet: &'a Codelet,
    index: usize,
    instance: u64,
    position: usize,
    pub tile: u32,
    pub dir: Dir,
    bytes: u32,
    fetched: bool,
    landing: Landing,
    strides: &'a [i32],
    buffers: &'a StepPlan,
}

/// All fields of all vertices of a set.
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
        let landings = &plan.landings[f];
        if landings.len() != family.fields.len() {
            return Err(format!("family {position} has landings for {} fields", landings.len()));
        }
        let Some(tiles) = &race_free.placement.families[f] else { return Err("a family has no tiles".into()) };
        let full = full(codelet, family);
        for (index, (field, landings)) in family.fields.iter().zip(landings).enumerate() {
            let decl = &codelet.fields[field.field];
            let fetched = decl.dir != Dir::Out || !full.contains(&index);
            for instance in 0..family.domain.count() {
                let (landing, strides) = landing(landings, instance)?;
                let (tile, bytes, dir) = (tiles.at(&family.domain, instance), decl.ty.bytes(), decl.dir);
                let buffers = steps;
                let site = FieldSite {
                    family,
                    codelet,
                    index,
                    instance,
                    position,
                    tile,
                    dir,
                    bytes,
                    fetched,
                    landing,
                    strides,
                    buffers,
                };
                result.push(site);
            }
        }
    }
    Ok(result)
}

fn landing(landings: &FieldLandings, instance: u64) -> Result<(Landing, &[i32]), String> {
    let missing = || format!("vertex {instance} has a field without a landing");
    let landing = *landings.at.get(instance as usize).ok_or_else(missing)?;
    if let Landing::Buffer { .. } = landing {
        return Ok((landing, &[]));
    }
    let index = *landings.strides_of.get(instance as usize).ok_or_else(missing)?;
    Ok((landing, landings.strides.get(index as usize).ok_or_else(missing)?))
}

/// Positions of the fields that are written fully for certain.
fn full(codelet: &Codelet, family: &Family) -> Vec<usize> {
    let shape = |id| family.fields.iter().find(|f| f.field == id).map(|f| f.shape()).unwrap_or_default();
    let shapes: Vec<_> = codelet.fields.keys().map(shape).collect();
    let value = |id| family.consts.iter().find(|c| c.0 == id).filter(|_| family.domain.count() > 0);
    let value = |id| value(id).map_or(Scalar::zero(ElemType::I64), |c| c.1.at(0));
    let consts: Vec<_> = codelet.fields.keys().map(value).collect();
    let cover = |sizes: &Sizes| facts(codelet, sizes).cover;
    let Ok(cover) = bind_sizes(codelet, &shapes, &consts).map(|sizes| cover(&sizes)) else { return vec![] };
    (0..family.fields.len()).filter(|&k| cover[family.fields[k].field] == Cover::Full).collect()
}

impl FieldSite<'_> {
    pub fn name(&self) -> String {
        let field = &self.codelet.fields[self.family.fields[self.index].field].name;
        format!("field `{field}` of vertex {} of family {}", self.instance, self.position)
    }

    /// A number for the vertex, the same for all its fields.
    fn vertex(&self) -> u64 {
        (self.position as u64) << 40 | self.instance
    }

    /// Whether its elements must be there before the vertex runs: it is fetched, or it is where its elements live.
    pub fn shows_tokens(&self) -> bool {
        self.fetched || matches!(self.landing, Landing::InPlace(_))
    }

    /// Calls `f` with the elements of the field in row-major order, and the object of the tile that should hold them.
    pub fn each(&self, mut f: impl FnMut(Object, &Elements) -> Result<(), String>) -> Result<(), String> {
        let view = self.family.fields[self.index].view(&self.family.domain, self.instance);
        if view.is_empty() {
            return Ok(());
        }
        let nowhere = || format!("{} has no place on its tile", self.name());
        let (object, places) = self.places(&view).ok_or_else(nowhere)?;
        for run in copy_runs(&places, &view) {
            // Which element is where: bytes take the place of the destination's elements.
            let (at, pitch) = (run.dst_start as i64, run.dst_stride);
            let last = (run.len as i64 - 1).checked_mul(pitch).and_then(|n| n.checked_add(at));
            if [Some(at), last].iter().any(|byte| byte.is_none_or(|b| u32::try_from(b).is_err())) {
                return Err(nowhere());
            }
            let (first, stride) = (run.src_start, run.src_stride);
            f(object, &Elements { var: run.src_var, first, stride, count: run.len, at, pitch })?;
        }
        Ok(())
    }

    /// Returns the object of the landing, and its bytes as a view: what is at a row-major position is the first byte of
    /// the element.
    fn places(&self, view: &View) -> Option<(Object, View)> {
        let bytes = self.bytes as i64;
        match self.landing {
            Landing::Buffer { buffer, offset } => {
                self.buffers.buffers.get(buffer as usize).filter(|b| b.tile == self.tile)?;
                let places = View::strided(VarId::from_u32(0), offset as i64, &[view.len()], &[bytes]);
                Some((Object::Buffer(buffer), places))
            }
            Landing::InPlace(base) => {
                let [part] = view.parts.as_slice() else { return None };
                let shape = view.shape();
                if shape.len() != self.strides.len() {
                    return None;
                }
                let strides: Vec<i64> = self.strides.iter().map(|&s| s as i64).collect();
                let places = View::strided(VarId::from_u32(0), base as i64, &shape, &strides);
                Some((Object::Var(part.var), places))
            }
        }
    }
}

/// Which granules of a block which fields store into.
pub(super) struct Stores<'a> {
    /// Bytes of a granule.
    width: u32,
    /// Granules, one past the last, and whose they are.
    all: Vec<(u32, Object, u32, u32, &'a FieldSite<'a>)>,
}

impl<'a> Stores<'a> {
    /// No stores yet, in granules of some bytes.
    pub fn new(width: u32) -> Stores<'a> {
        Stores { width, all: vec![] }
    }

    /// Adds the elements of a field.
    pub fn add(&mut self, site: &'a FieldSite<'a>, object: Object, e: &Elements) {
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
        // Of the stores so far into the block at hand, the one that ends last.
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
