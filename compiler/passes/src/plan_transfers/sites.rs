//! Fields that land in buffers, and what their instances have in common.
//!
//! Invariant: equal forms access the same elements at equal offsets.

use super::bands::{Band, bands};
use super::buffers::BufferUse;
use super::in_place::InPlace;
use super::repeats::Repeats;
use super::scene::Scene;
use girder_ir::codelet::Dir;
use girder_ir::family::{Family, Field};
use girder_ir::types::ElemType;
use girder_ir::view::{Run, View};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The size in bytes up to which a view is planned separately for each of its readers.
const SHORT: u64 = 16;

/// The common form of the instances of a field of one part.
pub(super) struct ViewForm {
    /// The number of the form in [`Forms`].
    pub id: u32,
    /// The runs, relative to the offset.
    pub bands: SmallVec<[Band; 1]>,
}

/// The number of runs up to which the runs of all instances are found by shifting those of the first.
const MAX_RUNS: usize = 1 << 16;

/// One field of a family that lands in buffers.
pub(super) struct LandingField<'a> {
    pub family: &'a Family,
    pub field: &'a Field,
    pub of: BufferUse,
    pub dir: Dir,
    pub ty: ElemType,
    /// The size of one instance.
    pub bytes: u64,
    pub fetched: bool,
    /// The form, if the field has one part and not too many runs.
    pub form: Option<ViewForm>,
    /// The offset of each instance, if there is a form.
    pub offsets: Vec<i64>,
    /// Whether no other vertex of the set may read the same elements through a landing of its own.
    pub alone: bool,
    /// Whether elements are read twice or more on average, all in whole words and not few.
    pub repeated: bool,
}

impl<'a> LandingField<'a> {
    /// Returns a field that lands in buffers of use `of`; `fetched` if its elements are needed there before vertices
    /// run.
    pub fn of(
        scene: &Scene,
        forms: &Forms,
        family: &'a Family,
        field: &'a Field,
        of: BufferUse,
        fetched: bool,
    ) -> LandingField<'a> {
        let decl = &scene.graph.codelets[family.codelet].fields[field.field];
        let bytes = field.len() * decl.ty.bytes() as u64;
        let known = |view| forms.get(&view).copied().unwrap_or_default();
        let form = common(family, field).and_then(|view| Some((known(view), bands_of(field, family)?)));
        let offsets: Vec<i64> = match form {
            Some(_) => field.parts[0].offset.values(&family.domain).collect(),
            None => vec![],
        };
        let fields = form.as_ref().map_or(0, |f| f.0.1);
        let alone = decl.dir != Dir::In || (fields == 1 && offsets.is_sorted_by(|a, b| a < b));
        let form = form.map(|((id, _), bands)| ViewForm { id, bands });
        let words = bytes > SHORT && decl.ty.bytes().is_multiple_of(4);
        let repeated = !alone && words && 2 * distinct(&offsets) <= offsets.len();
        LandingField { family, field, of, dir: decl.dir, ty: decl.ty, bytes, fetched, form, offsets, alone, repeated }
    }
}

/// The forms of fields of one part, numbered, and how many `in` fields have each.
pub(super) type Forms = FxHashMap<View, (u32, u32)>;

pub(super) fn forms(scene: &Scene, families: &[&Family]) -> Forms {
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

/// Returns the reads of fields of one part that may repeat on a tile.
pub(super) fn repeats(
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

/// Returns the number of distinct values.
fn distinct(numbers: &[i64]) -> usize {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// Returns the view of a field of one part at offset 0, or `None` if it has several parts.
fn common(family: &Family, field: &Field) -> Option<View> {
    let mut view = field.view(&family.domain, 0);
    let [part] = view.parts.as_mut_slice() else { return None };
    part.offset = 0;
    Some(view)
}

/// Returns the bands of a field of one part, relative to its offset, or `None` if there are too many runs.
fn bands_of(field: &Field, family: &Family) -> Option<SmallVec<[Band; 1]>> {
    let view = field.view(&family.domain, 0);
    let offset = view.parts.first()?.offset as u64;
    let from_offset = |run: Run| Run { start: run.start.wrapping_sub(offset), ..run };
    let bands = bands(view.runs().take(MAX_RUNS + 1).map(from_offset));
    (bands.iter().map(|b| b.count as usize).sum::<usize>() <= MAX_RUNS).then_some(bands)
}
