//! The plan of one compute set.
//!
//! # Note: Shared reads
//! Vertices on several tiles may read the same elements, as the blocks of a product do. The moves are then found once
//! and go to a group of landings ([`shared`](super::shared)). So a plan takes time for each word that is sent, not for
//! each word that arrives.
//!
//! Invariant: every instance of every field has a location. What is fetched before and sent home after is exactly what
//! the note on landing in the parent module says.

use super::bands::Band;
use super::buffers::{BufferUse, Buffers, PlanError};
use super::copies::add_copy;
use super::homes::{RunHint, home_run};
use super::in_place::{self, InPlace, in_place};
use super::moves::{Move, Moves};
use super::narrow_stores::separate;
use super::repeats::{Key, Repeats};
use super::route::{Pad, Router};
use super::scene::Scene;
use super::sites::{Forms, LandingField, ViewForm, forms, repeats};
use girder_ir::codelet::Dir;
use girder_ir::family::{Family, Field};
use girder_ir::graph::ComputeSet;
use girder_ir::ids::{CopyId, FamilyId};
use girder_ir::plan::{FieldLocation, FieldLocations, Loc, Object, StepPlan};
use girder_ir::view::{Run, View};
use girder_source::par_map_slice;
use rustc_hash::FxHashMap;

/// The locations of a compute set, by family and field.
pub(super) type Locations = Vec<Vec<FieldLocations>>;

/// Plans a compute set, with a copy that moves in its phase before.
pub(super) fn plan(
    scene: &Scene,
    set: &ComputeSet,
    carries: Option<CopyId>,
) -> Result<(StepPlan, Locations), PlanError> {
    let families: Vec<&Family> = set.families.iter().map(|&f| &scene.graph.families[f]).collect();
    let map = |id| scene.placement.families[id].as_ref().expect("a placed graph has a tile for every vertex");
    let tiles: Vec<Vec<u32>> =
        set.families.iter().zip(&families).map(|(&id, f)| map(id).iter(&f.domain).collect()).collect();
    let fields: Vec<(usize, &Field)> =
        families.iter().enumerate().flat_map(|(f, family)| family.fields.iter().map(move |k| (f, k))).collect();
    let found = par_map_slice(&fields, |&(f, k)| in_place(scene, k, &families[f].domain, &tiles[f]));
    let mut found = found.into_iter();
    let mut in_places = vec![];
    for family in &families {
        in_places.push(found.by_ref().take(family.fields.len()).collect::<Vec<_>>());
    }
    separate(scene, &families, &tiles, &mut in_places)?;
    let forms = forms(scene, &families);
    let mut planner = Planner {
        scene,
        buffers: Buffers::new(scene.block_limit),
        before: Router::to_landings(scene),
        after: Router::new(scene),
        shared: FxHashMap::default(),
        shared_parts: FxHashMap::default(),
        repeats: repeats(scene, &families, &tiles, &in_places, &forms),
        forms,
        moves: Moves::new(scene),
    };
    let mut locations = vec![];
    for (f, (&id, fields)) in set.families.iter().zip(in_places).enumerate() {
        locations.push(planner.family(f, id, &tiles[f], fields)?);
    }
    let Planner { mut before, after, mut buffers, mut moves, .. } = planner;
    if let Some(copy) = carries {
        add_copy(scene, &scene.graph.copies[copy], &mut moves, &mut before, &mut buffers)?;
    }
    let before = before.finish(&mut buffers)?;
    let after = after.finish(&mut buffers)?;
    Ok((StepPlan { buffers: buffers.list, before, after, carries }, locations))
}

struct Planner<'a> {
    scene: &'a Scene<'a>,
    buffers: Buffers,
    before: Router,
    after: Router,
    /// The locations of `in` fields, by tile and elements.
    shared: FxHashMap<(u32, View), FieldLocation>,
    /// The locations of fields of one part, by tile, form and offset.
    shared_parts: FxHashMap<Key, FieldLocation>,
    /// The keys that may occur more than once.
    repeats: Repeats,
    /// The forms of fields of one part, and how many `in` fields have each.
    forms: Forms,
    moves: Moves,
}

impl<'a> Planner<'a> {
    fn family(
        &mut self,
        f: usize,
        id: FamilyId,
        tiles: &[u32],
        fields: Vec<InPlace>,
    ) -> Result<Vec<FieldLocations>, PlanError> {
        let family = &self.scene.graph.families[id];
        let codelet = &self.scene.graph.codelets[family.codelet];
        let mut locations = vec![];
        for (k, found) in fields.into_iter().enumerate() {
            let found = match in_place::all_in_place(found) {
                Ok(all) => {
                    locations.push(all);
                    continue;
                }
                Err(found) => found,
            };
            let field = &family.fields[k];
            let fetched = match codelet.fields[field.field].dir {
                Dir::Out => !self.scene.covers.is_full(id, field.field),
                Dir::In | Dir::InOut | Dir::Const => true,
            };
            let site =
                LandingField::of(self.scene, &self.forms, family, field, BufferUse::Field(f as u32, k as u32), fetched);
            locations.push(self.field(&site, &found, tiles)?);
            self.before.close(&mut self.buffers)?;
            self.after.close(&mut self.buffers)?;
        }
        Ok(locations)
    }

    /// Returns the locations of one field.
    fn field(&mut self, site: &LandingField, found: &InPlace, tiles: &[u32]) -> Result<FieldLocations, PlanError> {
        if let (Some(form), true) = (&site.form, site.repeated) {
            return self.repeated(site, form, found, tiles);
        }
        let mut all = in_place::with_capacity(tiles.len());
        let (mut instance, mut hint) = (0, RunHint::default());
        while instance < tiles.len() && !self.scene.is_cancelled() {
            if let Some(byte) = found.at[instance] {
                let strides = &found.strides[found.strides_of[instance] as usize];
                all.push(FieldLocation::InPlace(byte), strides);
                instance += 1;
                continue;
            }
            let count = self.together(site, found, tiles, instance, &mut hint);
            let first = self.land(site, instance, count, tiles[instance])?;
            in_place::add_buffers(&mut all, first, count, site.bytes);
            instance += count;
        }
        Ok(all)
    }

    /// Returns the locations of a field whose instances read the same elements on several tiles. The moves are found
    /// once for all of these.
    fn repeated(
        &mut self,
        site: &LandingField,
        form: &ViewForm,
        found: &InPlace,
        tiles: &[u32],
    ) -> Result<FieldLocations, PlanError> {
        let mut all = in_place::with_capacity(tiles.len());
        let mut views: Vec<(i64, Vec<Loc>)> = vec![];
        let mut known: FxHashMap<i64, usize> = FxHashMap::default();
        for (instance, (&tile, &offset)) in tiles.iter().zip(&site.offsets).enumerate() {
            if let Some(byte) = found.at[instance] {
                all.push(FieldLocation::InPlace(byte), &found.strides[found.strides_of[instance] as usize]);
                continue;
            }
            let key = (tile, form.id, offset);
            let shared = self.repeats.may_repeat(&key);
            let location = match self.shared_parts.get(&key).filter(|_| shared) {
                Some(&location) => location,
                None => {
                    let location = self.room(site, tile, 0, 1)?;
                    let view = *known.entry(offset).or_insert(views.len());
                    if view == views.len() {
                        views.push((offset, vec![]));
                    }
                    views[view].1.push(location.1);
                    if shared {
                        self.shared_parts.insert(key, location.0);
                    }
                    location.0
                }
            };
            all.push(location, &[]);
        }
        let to = Loc { tile: 0, object: Object::Buffer(0), offset: 0 };
        let count = views.len();
        for (k, (offset, landings)) in views.into_iter().enumerate() {
            if self.scene.is_cancelled() {
                break;
            }
            self.moves.gather_bands(self.scene, &form.bands, offset, to)?;
            if k == 0 {
                // The other views have about as many moves.
                self.before.make_room(&self.moves.list, count);
            }
            let sharing = self.before.sharing(landings);
            for (slot, &m) in self.moves.list.iter().enumerate() {
                self.before.add_shared(slot, m, &sharing, &mut self.buffers)?;
            }
        }
        Ok(all)
    }

    /// Returns the number of instances, from one on, whose elements are contiguous at one home and land one after the
    /// other: one move serves them all.
    fn together(&self, site: &LandingField, found: &InPlace, tiles: &[u32], first: usize, hint: &mut RunHint) -> usize {
        let Some(ViewForm { bands, .. }) = &site.form else { return 1 };
        let [Band { run, count: 1, .. }] = bands.as_slice() else { return 1 };
        let align = self.align(site);
        if !site.alone || (run.stride != 1 && run.len > 1) || !site.bytes.is_multiple_of(align as u64) {
            return 1;
        }
        let start = |k: usize| run.start.wrapping_add(site.offsets[k] as u64);
        let here = start(first);
        let (offset, end) = home_run(&self.scene.homes[run.var], here, hint);
        // Only whole words let each instance begin at a word as the first does.
        if !(offset as u64).is_multiple_of(4) || here + run.len > end {
            return 1;
        }
        let most = (((end - here) / run.len).min(self.scene.block_limit as u64 / site.bytes.max(1)) as usize).max(1);
        let follows = |&k: &usize| {
            let there = here + (k - first) as u64 * run.len;
            tiles[k] == tiles[first] && found.at[k].is_none() && start(k) == there
        };
        1 + (first + 1..tiles.len().min(first + most)).take_while(follows).count()
    }

    /// Gives one field of one vertex a location in a buffer, and plans its filling and its way home. For several
    /// vertices that are [`together`](Self::together), returns the location of the first.
    fn land(
        &mut self,
        site: &LandingField,
        instance: usize,
        count: usize,
        tile: u32,
    ) -> Result<FieldLocation, PlanError> {
        self.fits(site, tile)?;
        let Some(form) = &site.form else { return self.land_view(site, instance as u64, tile) };
        let offset = site.offsets[instance];
        let to = Loc { tile, object: Object::Buffer(0), offset: 0 };
        if count > 1 {
            let run = form.bands[0].run;
            let whole = Run { len: run.len * count as u64, stride: 1, ..run };
            self.moves.gather_bands(self.scene, &[Band { run: whole, count: 1, distance: 0 }], offset, to)?;
            return self.fill(site, tile, count);
        }
        let key = (tile, form.id, offset);
        let shared = !site.alone && self.repeats.may_repeat(&key);
        if shared && let Some(&location) = self.shared_parts.get(&key) {
            return Ok(location);
        }
        self.moves.gather_bands(self.scene, &form.bands, offset, to)?;
        let location = self.fill(site, tile, 1)?;
        if shared {
            self.shared_parts.insert(key, location);
        }
        Ok(location)
    }

    /// Returns the alignment of a field's locations.
    fn align(&self, site: &LandingField) -> u32 {
        site.ty.bytes().max(self.scene.machine.memory.store_bytes).max(4)
    }

    /// Gives a field of several parts or many runs a location.
    fn land_view(&mut self, site: &LandingField, instance: u64, tile: u32) -> Result<FieldLocation, PlanError> {
        let view = site.field.view(&site.family.domain, instance);
        if site.dir == Dir::In
            && let Some(&location) = self.shared.get(&(tile, view.clone()))
        {
            return Ok(location);
        }
        self.moves.gather(self.scene, &view, Loc { tile, object: Object::Buffer(0), offset: 0 })?;
        let location = self.fill(site, tile, 1)?;
        if site.dir == Dir::In {
            self.shared.insert((tile, view), location);
        }
        Ok(location)
    }

    /// Checks that one landing of a field fits a tile, so that it may be visited byte by byte.
    fn fits(&self, site: &LandingField, tile: u32) -> Result<(), PlanError> {
        match site.bytes > self.scene.block_limit as u64 {
            true => Err(PlanError::TooLarge { tile, bytes: site.bytes }),
            false => Ok(()),
        }
    }

    /// Reserves a region of a buffer for some vertices, at a position within a word.
    fn room(
        &mut self,
        site: &LandingField,
        tile: u32,
        phase: u32,
        count: usize,
    ) -> Result<(FieldLocation, Loc), PlanError> {
        self.fits(site, tile)?;
        let (buffer, offset) = self.buffers.room(tile, site.of, site.bytes * count as u64, phase, self.align(site))?;
        Ok((FieldLocation::Buffer { buffer, offset }, Loc { tile, object: Object::Buffer(buffer), offset }))
    }

    /// Reserves a region of a buffer for the gathered moves of some vertices, and plans them.
    fn fill(&mut self, site: &LandingField, tile: u32, count: usize) -> Result<FieldLocation, PlanError> {
        let bytes = site.bytes * count as u64;
        let (location, start) = self.room(site, tile, phase(&self.moves.list, tile), count)?;
        let region = start.offset..start.offset + bytes as u32;
        for (slot, m) in self.moves.list.iter().enumerate() {
            let to = Loc { offset: start.offset + m.to.offset, ..start };
            let m = Move { to, ..*m };
            if site.fetched {
                let whole = m.count == 1 && m.to.offset == region.start && m.bytes as u64 == bytes;
                let pad = if whole { Pad::Both } else { Pad::ElementHome(region.clone()) };
                self.before.add(slot, m, pad, &mut self.buffers)?;
            }
            if site.dir != Dir::In {
                let home = Move { from: to, to: m.from, from_step: m.to_step, to_step: m.from_step, ..m };
                self.after.add(slot, home, Pad::Neither, &mut self.buffers)?;
            }
        }
        Ok(location)
    }
}

/// Returns the position within a word at which a location begins, so that the longest piece from another tile keeps its
/// own.
fn phase(moves: &[Move], tile: u32) -> u32 {
    let away = moves.iter().filter(|m| m.from.tile != tile && m.count == 1);
    // Takes the first of the longest; `max_by_key` would take the last.
    let longest = away.min_by_key(|m| std::cmp::Reverse(m.bytes));
    longest.map_or(0, |m| m.from.offset.wrapping_sub(m.to.offset) % 4)
}
