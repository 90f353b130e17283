//! The plan of one compute set.
//!
//! Invariant: every instance of every field has a landing; what is fetched before and sent home after is exactly what
//! the note on landing in the module above says.

use super::Scene;
use super::apart::keep_apart;
use super::buffers::{Buffers, Stop, Use};
use super::landing::{self, InPlace, in_place};
use super::moves::{Move, Moves};
use super::route::{Pad, Router};
use cranelift_entity::EntityRef;
use girder_codelet::{Cover, bind_sizes, facts};
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::{Family, Field};
use girder_ir::graph::ComputeSet;
use girder_ir::ids::FieldId;
use girder_ir::plan::{FieldLandings, Landing, Loc, Object, StepPlan};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use rustc_hash::FxHashMap;

/// The landings of a compute set: per family, per field.
pub(super) type Landings = Vec<Vec<FieldLandings>>;

/// Plans a compute set.
pub(super) fn plan(scene: &Scene, set: &ComputeSet) -> Result<(StepPlan, Landings), Stop> {
    let families: Vec<&Family> = set.families.iter().map(|&f| &scene.graph.families[f]).collect();
    let (mut tiles, mut in_places) = (vec![], vec![]);
    let mut planner = Planner {
        scene,
        buffers: Buffers::new(scene.block_limit),
        before: Router::new(scene.limit),
        after: Router::new(scene.limit),
        shared: FxHashMap::default(),
        moves: Moves::new(scene),
    };
    for (&id, family) in set.families.iter().zip(&families) {
        let map = scene.placement.families[id].as_ref().expect("a placed graph has a tile for every vertex");
        let of: Vec<u32> = map.iter(&family.domain).collect();
        let field = |field| in_place(scene, field, &family.domain, &of, &mut planner.moves);
        in_places.push(family.fields.iter().map(field).collect::<Result<Vec<_>, _>>()?);
        tiles.push(of);
    }
    keep_apart(scene, &families, &tiles, &mut in_places)?;
    let mut landings = vec![];
    for (f, (family, fields)) in families.iter().zip(in_places).enumerate() {
        landings.push(planner.family(f, family, &tiles[f], fields)?);
    }
    let before = planner.before.finish(&mut planner.buffers)?;
    let after = planner.after.finish(&mut planner.buffers)?;
    Ok((StepPlan { buffers: planner.buffers.list, before, after }, landings))
}

struct Planner<'a> {
    scene: &'a Scene<'a>,
    buffers: Buffers,
    before: Router,
    after: Router,
    /// Landings of `in` fields, by tile and elements.
    shared: FxHashMap<(u32, View), Landing>,
    moves: Moves,
}

/// One field of one family, as far as its instances agree.
struct Site<'a> {
    family: &'a Family,
    field: &'a Field,
    of: Use,
    dir: Dir,
    ty: ElemType,
    fetched: bool,
}

impl<'a> Planner<'a> {
    fn family(
        &mut self,
        f: usize,
        family: &'a Family,
        tiles: &[u32],
        fields: Vec<InPlace>,
    ) -> Result<Vec<FieldLandings>, Stop> {
        let codelet = &self.scene.graph.codelets[family.codelet];
        let mut covers = None;
        let mut landings = vec![];
        for (k, found) in fields.into_iter().enumerate() {
            let field = &family.fields[k];
            let decl = &codelet.fields[field.field];
            let fetched = match decl.dir {
                Dir::Out if found.at.contains(&None) => {
                    let covers = covers.get_or_insert_with(|| fully_written(codelet, family));
                    !covers.contains(&field.field)
                }
                dir => dir != Dir::Out,
            };
            let of = Use::Field(f as u32, k as u32);
            let site = Site { family, field, of, dir: decl.dir, ty: decl.ty, fetched };
            let mut all = FieldLandings::default();
            for (instance, place) in found.at.into_iter().enumerate() {
                match place {
                    Some(byte) => {
                        let strides = &found.strides[found.strides_of[instance] as usize];
                        landing::add(&mut all, Landing::InPlace(byte), strides);
                    }
                    None if self.scene.is_cancelled() => break,
                    None => landing::add(&mut all, self.land(&site, instance as u64, tiles[instance])?, &[]),
                }
            }
            landings.push(all);
            self.before.close(&mut self.buffers)?;
            self.after.close(&mut self.buffers)?;
        }
        Ok(landings)
    }

    /// Gives one field of one vertex a landing in a buffer, and plans its filling and its way home.
    fn land(&mut self, site: &Site, instance: u64, tile: u32) -> Result<Landing, Stop> {
        let view = site.field.view(&site.family.domain, instance);
        if site.dir == Dir::In
            && let Some(&landing) = self.shared.get(&(tile, view.clone()))
        {
            return Ok(landing);
        }
        let (width, bytes) = (site.ty.bytes(), view.len() * site.ty.bytes() as u64);
        if bytes > self.scene.block_limit as u64 {
            return Err(Stop::TooLarge { tile, bytes });
        }
        self.moves.gather(self.scene, &view, Loc { tile, object: Object::Buffer(0), offset: 0 })?;
        let align = width.max(self.scene.machine.memory.store_bytes).max(4);
        let phase = phase(&self.moves.list, tile);
        let (buffer, offset) = self.buffers.room(tile, site.of, bytes, phase, align)?;
        let region = offset..offset + bytes as u32;
        for (slot, m) in self.moves.list.iter().enumerate() {
            let to = Loc { tile, object: Object::Buffer(buffer), offset: offset + m.to.offset };
            let m = Move { to, ..*m };
            if site.fetched {
                let whole = m.count == 1 && m.to.offset == region.start && m.bytes as u64 == bytes;
                let pad = if whole { Pad::Both } else { Pad::At(region.clone()) };
                self.before.add(slot, m, pad, &mut self.buffers)?;
            }
            if site.dir != Dir::In {
                let home = Move { from: to, to: m.from, from_step: m.to_step, to_step: m.from_step, ..m };
                self.after.add(slot, home, Pad::Neither, &mut self.buffers)?;
            }
        }
        let landing = Landing::Buffer { buffer, offset };
        if site.dir == Dir::In {
            self.shared.insert((tile, view), landing);
        }
        Ok(landing)
    }
}

/// The place within a word at which a landing begins, so that the longest piece from another tile keeps its own.
fn phase(moves: &[Move], tile: u32) -> u32 {
    let away = moves.iter().filter(|m| m.from.tile != tile && m.count == 1);
    // The first of the longest: `max_by_key` would take the last.
    let longest = away.min_by_key(|m| std::cmp::Reverse(m.bytes));
    longest.map_or(0, |m| m.from.offset.wrapping_sub(m.to.offset) % 4)
}

/// The fields that every vertex of a family is certain to write fully.
fn fully_written(codelet: &Codelet, family: &Family) -> Vec<FieldId> {
    let mut shapes = vec![Default::default(); codelet.fields.len()];
    let mut consts = vec![Scalar::zero(ElemType::I64); codelet.fields.len()];
    for field in &family.fields {
        shapes[field.field.index()] = field.shape();
    }
    if family.domain.count() > 0 {
        family.consts.iter().for_each(|(field, value)| consts[field.index()] = value.at(0));
    }
    let Ok(sizes) = bind_sizes(codelet, &shapes, &consts) else { return vec![] };
    let cover = facts(codelet, &sizes).cover;
    codelet.fields.keys().filter(|&field| cover[field] == Cover::Full).collect()
}
