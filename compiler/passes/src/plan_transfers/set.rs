//! The plan of one compute set.
//!
//! # Note: What is read alike
//! Where vertices on several tiles read the same elements, as the blocks of a product do, what moves is a matter of the
//! elements and not of who reads them: it is found once, and goes to a group of landings
//! ([`shared`](super::shared)). So a plan takes time for each word that is sent, not for each that arrives.
//!
//! Invariant: every instance of every field has a landing; what is fetched before and sent home after is exactly what
//! the note on landing in the module above says.

use super::apart::keep_apart;
use super::bands::{Band, bands};
use super::buffers::{Buffers, Stop, Use};
use super::landing::{self, InPlace, in_place};
use super::moves::{Hint, Move, Moves, home_run};
use super::repeats::{Key, Repeats};
use super::route::{Pad, Router};
use super::{Scene, add_copy};
use cranelift_entity::EntityRef;
use girder_codelet::{Cover, bind_sizes, facts};
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::{Family, Field};
use girder_ir::graph::ComputeSet;
use girder_ir::ids::{CopyId, FieldId};
use girder_ir::plan::{FieldLandings, Landing, Loc, Object, StepPlan};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::{Run, View};
use girder_source::par_map_slice;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Views of at most so many bytes are as soon planned for each of their readers as once for all.
const SHORT: u64 = 16;

/// The landings of a compute set: per family, per field.
pub(super) type Landings = Vec<Vec<FieldLandings>>;

/// Plans a compute set, with a copy that moves in its phase before.
pub(super) fn plan(scene: &Scene, set: &ComputeSet, carries: Option<CopyId>) -> Result<(StepPlan, Landings), Stop> {
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
    keep_apart(scene, &families, &tiles, &mut in_places)?;
    let forms = forms(scene, &families);
    let mut planner = Planner {
        scene,
        buffers: Buffers::new(scene.block_limit),
        before: Router::to_landings(scene.limit),
        after: Router::new(scene.limit),
        shared: FxHashMap::default(),
        shared_parts: FxHashMap::default(),
        repeats: repeats(scene, &families, &tiles, &in_places, &forms),
        forms,
        moves: Moves::new(scene),
    };
    let mut landings = vec![];
    for (f, (family, fields)) in families.iter().zip(in_places).enumerate() {
        landings.push(planner.family(f, family, &tiles[f], fields)?);
    }
    let Planner { mut before, after, mut buffers, mut moves, .. } = planner;
    if let Some(copy) = carries {
        add_copy(scene, &scene.graph.copies[copy], &mut moves, &mut before, &mut buffers)?;
    }
    let before = before.finish(&mut buffers)?;
    let after = after.finish(&mut buffers)?;
    Ok((StepPlan { buffers: buffers.list, before, after, carries }, landings))
}

/// What the fields of one part see, numbered, and how many `in` fields see it.
type Forms = FxHashMap<View, (u32, u32)>;

fn forms(scene: &Scene, families: &[&Family]) -> Forms {
    let mut forms = Forms::default();
    for family in families.iter().filter(|f| f.domain.count() > 0) {
        let codelet = &scene.graph.codelets[family.codelet];
        let read = |f: &&Field| codelet.fields[f.field].dir == Dir::In && !f.is_empty();
        for field in family.fields.iter().filter(read) {
            let next = forms.len() as u32;
            if let Some(view) = common(family, field) {
                forms.entry(view).or_insert((next, 0)).1 += 1;
            }
        }
    }
    forms
}

/// What fields of one part read through landings more than once on a tile.
fn repeats(
    scene: &Scene,
    families: &[&Family],
    tiles: &[Vec<u32>],
    in_places: &[Vec<InPlace>],
    forms: &Forms,
) -> Repeats {
    let mut reads = vec![];
    for ((family, tiles), in_places) in families.iter().zip(tiles).zip(in_places) {
        for (field, found) in family.fields.iter().zip(in_places) {
            let form = common(family, field).and_then(|view| forms.get(&view));
            let is_read = scene.graph.codelets[family.codelet].fields[field.field].dir == Dir::In;
            if let (Some(&(form, _)), true) = (form, is_read && found.at.contains(&None)) {
                reads.push((*family, field, tiles, found, form));
            }
        }
    }
    let keys = reads.iter().flat_map(|&(family, field, tiles, found, form)| {
        let offsets = field.parts[0].offset.values(&family.domain);
        let landed = tiles.iter().zip(offsets).zip(&found.at).filter(|(_, at)| at.is_none());
        landed.map(move |((&tile, offset), _)| (tile, form, offset))
    });
    Repeats::of(reads.iter().map(|r| r.2.len()).sum(), keys)
}

struct Planner<'a> {
    scene: &'a Scene<'a>,
    buffers: Buffers,
    before: Router,
    after: Router,
    /// Landings of `in` fields, by tile and elements.
    shared: FxHashMap<(u32, View), Landing>,
    /// The same for fields of one part: by tile, what they see but for the offset, as a number of `forms`, and the offset.
    shared_parts: FxHashMap<Key, Landing>,
    /// Which of these are worth a place there.
    repeats: Repeats,
    /// What fields of one part see, with offset 0, numbered; and how many `in` fields see that.
    forms: Forms,
    moves: Moves,
}

/// What the instances of a field of one part have in common.
struct Form {
    /// In [`Planner::forms`].
    id: u32,
    /// Its runs, from the offset.
    bands: SmallVec<[Band; 1]>,
}

/// Runs up to which those of all instances are found by shifting the first's, which are kept.
const MAX_RUNS: usize = 1 << 16;

/// One field of one family, as far as its instances agree.
struct Site<'a> {
    family: &'a Family,
    field: &'a Field,
    of: Use,
    dir: Dir,
    ty: ElemType,
    /// Of one instance.
    bytes: u64,
    fetched: bool,
    /// If it has one part and not too many runs.
    form: Option<Form>,
    /// Of each instance, if it has a form.
    offsets: Vec<i64>,
    /// Whether no other vertex of the set may read the same elements through a landing of its own.
    alone: bool,
    /// Whether vertices read the same elements, twice or more on average, all of them in whole words and not few.
    repeated: bool,
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
            let found = match landing::all_in_place(found) {
                Ok(all) => {
                    landings.push(all);
                    continue;
                }
                Err(found) => found,
            };
            let field = &family.fields[k];
            let fetched = match codelet.fields[field.field].dir {
                Dir::Out => {
                    let covers = covers.get_or_insert_with(|| fully_written(codelet, family));
                    !covers.contains(&field.field)
                }
                Dir::In | Dir::InOut | Dir::Const => true,
            };
            let site = self.site(family, field, Use::Field(f as u32, k as u32), fetched);
            landings.push(self.field(&site, &found, tiles)?);
            self.before.close(&mut self.buffers)?;
            self.after.close(&mut self.buffers)?;
        }
        Ok(landings)
    }

    fn site(&self, family: &'a Family, field: &'a Field, of: Use, fetched: bool) -> Site<'a> {
        let decl = &self.scene.graph.codelets[family.codelet].fields[field.field];
        let bytes = field.len() * decl.ty.bytes() as u64;
        let known = |view| self.forms.get(&view).copied().unwrap_or_default();
        let form = common(family, field).and_then(|view| Some((known(view), bands_of(field, family)?)));
        let offsets: Vec<i64> = match form {
            Some(_) => field.parts[0].offset.values(&family.domain).collect(),
            None => vec![],
        };
        let fields = form.as_ref().map_or(0, |f| f.0.1);
        let alone = decl.dir != Dir::In || (fields == 1 && offsets.is_sorted_by(|a, b| a < b));
        let form = form.map(|((id, _), bands)| Form { id, bands });
        let words = bytes > SHORT && decl.ty.bytes().is_multiple_of(4);
        let repeated = !alone && words && 2 * distinct(&offsets) <= offsets.len();
        Site { family, field, of, dir: decl.dir, ty: decl.ty, bytes, fetched, form, offsets, alone, repeated }
    }

    /// The landings of one field.
    fn field(&mut self, site: &Site, found: &InPlace, tiles: &[u32]) -> Result<FieldLandings, Stop> {
        if let (Some(form), true) = (&site.form, site.repeated) {
            return self.repeated(site, form, found, tiles);
        }
        let mut all = landing::with_capacity(tiles.len());
        let (mut instance, mut hint) = (0, Hint::default());
        while instance < tiles.len() && !self.scene.is_cancelled() {
            if let Some(byte) = found.at[instance] {
                let strides = &found.strides[found.strides_of[instance] as usize];
                all.push(Landing::InPlace(byte), strides);
                instance += 1;
                continue;
            }
            let count = self.together(site, found, tiles, instance, &mut hint);
            let first = self.land(site, instance, count, tiles[instance])?;
            landing::add_buffers(&mut all, first, count, site.bytes);
            instance += count;
        }
        Ok(all)
    }

    /// The landings of a field whose instances read the same elements on several tiles: what moves is found once for all
    /// of these.
    fn repeated(&mut self, site: &Site, form: &Form, found: &InPlace, tiles: &[u32]) -> Result<FieldLandings, Stop> {
        let mut all = landing::with_capacity(tiles.len());
        let mut views: Vec<(i64, Vec<Loc>)> = vec![];
        let mut known: FxHashMap<i64, usize> = FxHashMap::default();
        for (instance, (&tile, &offset)) in tiles.iter().zip(&site.offsets).enumerate() {
            if let Some(byte) = found.at[instance] {
                all.push(Landing::InPlace(byte), &found.strides[found.strides_of[instance] as usize]);
                continue;
            }
            let key = (tile, form.id, offset);
            let shared = self.repeats.may_repeat(&key);
            let landing = match self.shared_parts.get(&key).filter(|_| shared) {
                Some(&landing) => landing,
                None => {
                    let landing = self.room(site, tile, 0, 1)?;
                    let view = *known.entry(offset).or_insert(views.len());
                    if view == views.len() {
                        views.push((offset, vec![]));
                    }
                    views[view].1.push(landing.1);
                    if shared {
                        self.shared_parts.insert(key, landing.0);
                    }
                    landing.0
                }
            };
            all.push(landing, &[]);
        }
        let to = Loc { tile: 0, object: Object::Buffer(0), offset: 0 };
        let count = views.len();
        for (k, (offset, landings)) in views.into_iter().enumerate() {
            if self.scene.is_cancelled() {
                break;
            }
            self.moves.gather_bands(self.scene, &form.bands, offset, to)?;
            if k == 0 {
                // The others are about as many.
                self.before.make_room(&self.moves.list, count);
            }
            let sharing = self.before.sharing(landings);
            for (slot, &m) in self.moves.list.iter().enumerate() {
                self.before.add_shared(slot, m, &sharing, &mut self.buffers)?;
            }
        }
        Ok(all)
    }

    /// How many instances, from one on, land behind one another what is contiguous at one home: one move fetches or sends
    /// it all.
    fn together(&self, site: &Site, found: &InPlace, tiles: &[u32], first: usize, hint: &mut Hint) -> usize {
        let Some(Form { bands, .. }) = &site.form else { return 1 };
        let [Band { run, count: 1, .. }] = bands.as_slice() else { return 1 };
        let align = self.align(site);
        if !site.alone || (run.stride != 1 && run.len > 1) || !site.bytes.is_multiple_of(align as u64) {
            return 1;
        }
        let start = |k: usize| run.start.wrapping_add(site.offsets[k] as u64);
        let here = start(first);
        let (offset, end) = home_run(&self.scene.homes[run.var], here, hint);
        // In whole words, so that each begins at a word as the first does.
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

    /// Gives one field of one vertex a landing in a buffer, and plans its filling and its way home; of several vertices, if
    /// they are [`together`](Self::together), the landing of the first.
    fn land(&mut self, site: &Site, instance: usize, count: usize, tile: u32) -> Result<Landing, Stop> {
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
        if shared && let Some(&landing) = self.shared_parts.get(&key) {
            return Ok(landing);
        }
        self.moves.gather_bands(self.scene, &form.bands, offset, to)?;
        let landing = self.fill(site, tile, 1)?;
        if shared {
            self.shared_parts.insert(key, landing);
        }
        Ok(landing)
    }

    /// The number that the landings of a field begin at a multiple of.
    fn align(&self, site: &Site) -> u32 {
        site.ty.bytes().max(self.scene.machine.memory.store_bytes).max(4)
    }

    /// The same for a field of several parts or many runs.
    fn land_view(&mut self, site: &Site, instance: u64, tile: u32) -> Result<Landing, Stop> {
        let view = site.field.view(&site.family.domain, instance);
        if site.dir == Dir::In
            && let Some(&landing) = self.shared.get(&(tile, view.clone()))
        {
            return Ok(landing);
        }
        self.moves.gather(self.scene, &view, Loc { tile, object: Object::Buffer(0), offset: 0 })?;
        let landing = self.fill(site, tile, 1)?;
        if site.dir == Dir::In {
            self.shared.insert((tile, view), landing);
        }
        Ok(landing)
    }

    /// Whether one landing of a field fits a tile, so that it may be looked at byte by byte.
    fn fits(&self, site: &Site, tile: u32) -> Result<(), Stop> {
        match site.bytes > self.scene.block_limit as u64 {
            true => Err(Stop::TooLarge { tile, bytes: site.bytes }),
            false => Ok(()),
        }
    }

    /// A region of a buffer for so many vertices, which begins at a place within a word.
    fn room(&mut self, site: &Site, tile: u32, phase: u32, count: usize) -> Result<(Landing, Loc), Stop> {
        self.fits(site, tile)?;
        let (buffer, offset) = self.buffers.room(tile, site.of, site.bytes * count as u64, phase, self.align(site))?;
        Ok((Landing::Buffer { buffer, offset }, Loc { tile, object: Object::Buffer(buffer), offset }))
    }

    /// A region of a buffer for what was gathered for so many vertices.
    fn fill(&mut self, site: &Site, tile: u32, count: usize) -> Result<Landing, Stop> {
        let bytes = site.bytes * count as u64;
        let (landing, start) = self.room(site, tile, phase(&self.moves.list, tile), count)?;
        let region = start.offset..start.offset + bytes as u32;
        for (slot, m) in self.moves.list.iter().enumerate() {
            let to = Loc { offset: start.offset + m.to.offset, ..start };
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
        Ok(landing)
    }
}

/// How many different numbers there are.
fn distinct(numbers: &[i64]) -> usize {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// What the instances of a field have in common, if it has one part: a view with offset 0.
fn common(family: &Family, field: &Field) -> Option<View> {
    let mut view = field.view(&family.domain, 0);
    let [part] = view.parts.as_mut_slice() else { return None };
    part.offset = 0;
    Some(view)
}

/// The runs of a view of one part with offset 0, if they are not too many.
fn bands_of(field: &Field, family: &Family) -> Option<SmallVec<[Band; 1]>> {
    let view = field.view(&family.domain, 0);
    let offset = view.parts.first()?.offset as u64;
    let from_offset = |run: Run| Run { start: run.start.wrapping_sub(offset), ..run };
    let bands = bands(view.runs().take(MAX_RUNS + 1).map(from_offset));
    (bands.iter().map(|b| b.count as usize).sum::<usize>() <= MAX_RUNS).then_some(bands)
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
