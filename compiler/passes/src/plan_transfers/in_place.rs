//! Decides which instances of a field are in place, and at which byte strides.
//!
//! Invariant: in place means that all elements are on the vertex's tile and that the byte of element (i, j, …) is `base
//! + i · stride₀ + j · stride₁ + …` of the tile's block of one variable.

use super::homes::{RunHint, locate};
use super::scene::Scene;
use girder_ir::family::{Domain, Field, FieldPart};
use girder_ir::plan::{FieldLocation, FieldLocations, HomeRun, Homes, intern_strides};
use smallvec::SmallVec;

/// The instances of one field of a family that are in place.
#[derive(Default)]
pub(super) struct InPlace {
    /// For each instance, the first byte in the block, or `None` if it has to land in a buffer.
    pub at: Vec<Option<u32>>,
    /// The distinct byte strides.
    pub strides: Vec<Vec<i32>>,
    /// For each instance, the index into `strides`.
    pub strides_of: Vec<u32>,
}

impl InPlace {
    fn reserve(&mut self, instances: usize) {
        self.at.reserve_exact(instances);
        self.strides_of.reserve_exact(instances);
    }

    fn push(&mut self, found: Option<(u32, &[i32])>) {
        self.at.push(found.map(|f| f.0));
        self.strides_of.push(found.map_or(0, |f| intern_strides(&mut self.strides, f.1)));
    }
}

/// Returns the locations of a field whose instances are all in place; otherwise the field as it was.
pub(super) fn all_in_place(found: InPlace) -> Result<FieldLocations, InPlace> {
    if found.at.contains(&None) {
        return Err(found);
    }
    let InPlace { at, strides, strides_of } = found;
    let at = at.into_iter().flatten().map(FieldLocation::InPlace).collect();
    Ok(FieldLocations { at, strides, strides_of })
}

/// Returns empty locations with capacity for some instances.
pub(super) fn with_capacity(instances: usize) -> FieldLocations {
    FieldLocations { at: Vec::with_capacity(instances), strides: vec![], strides_of: Vec::with_capacity(instances) }
}

/// Adds the locations of consecutive instances that lie one after the other in a buffer.
pub(super) fn add_buffers(locations: &mut FieldLocations, first: FieldLocation, count: usize, bytes: u64) {
    let FieldLocation::Buffer { buffer, offset } = first else { return locations.push(first, &[]) };
    locations
        .at
        .extend((0..count).map(|k| FieldLocation::Buffer { buffer, offset: offset + (k as u64 * bytes) as u32 }));
    locations.strides_of.resize(locations.at.len(), 0);
}

/// Decides for all instances of a field whether they are in place; `tiles` are those of the vertices.
pub(super) fn in_place(scene: &Scene, field: &Field, domain: &Domain, tiles: &[u32]) -> InPlace {
    let mut result = InPlace::default();
    if field.is_empty() {
        let strides = vec![0; field.axes.len()];
        tiles.iter().for_each(|_| result.push(Some((0, &strides))));
        return result;
    }
    let [part] = field.parts.as_slice() else {
        tiles.iter().for_each(|_| result.push(None));
        return result;
    };
    let homes = &scene.homes[part.var];
    let (low, high) = part.hull_at(0);
    let regular = axis_strides(field, part, homes.elem_bytes);
    let byte_box = ByteBox::new(homes, field, part);
    let mut hint = RunHint::default();
    result.reserve(tiles.len());
    for (&tile, offset) in tiles.iter().zip(part.offset.values(domain)) {
        let at = locate(homes, (offset + low) as u64, &mut hint);
        let run = &homes.runs[hint.at];
        if run.tile != tile {
            result.push(None);
        } else if (offset + high) < run.end as i64 {
            let base = at.loc(part.var, homes.elem_bytes).offset as i64 - low * homes.elem_bytes as i64;
            result.push(regular.as_ref().map(|s| (base as u32, s.as_slice())));
        } else if field.len() * homes.elem_bytes as u64 > scene.block_limit as u64 {
            // The field is too long to be laid out row by row; its location will be rejected.
            result.push(None);
        } else {
            let found = byte_box.at(offset, tile, &mut hint);
            result.push(found.as_ref().map(|(base, strides)| (*base, strides.as_slice())));
        }
    }
    result
}

/// Returns the byte stride of each axis (0 for an axis of length 1) if elements keep their distances, or `None` if the
/// digits of an axis do not form one stride.
fn axis_strides(field: &Field, part: &FieldPart, bytes: u32) -> Option<Vec<i32>> {
    let mut digits = field.digits.iter().zip(&part.stride);
    let mut strides = vec![];
    for &n in &field.axes {
        let mut axis: Option<(i64, i64)> = None;
        let of_axis: SmallVec<[_; 4]> = digits.by_ref().take(n as usize).filter(|d| *d.0 > 1).collect();
        for (&len, &stride) in of_axis.into_iter().rev() {
            axis = match axis {
                None => Some((len as i64, stride)),
                Some((inner, s)) if stride == s * inner => Some((inner * len as i64, s)),
                Some(_) => return None,
            };
        }
        strides.push(i32::try_from(axis.map_or(0, |a| a.1) * bytes as i64).ok()?);
    }
    Some(strides)
}

/// The common facts of a box's rows, and the position of the last one.
struct RowCheck<'a> {
    /// The length, stride and byte stride of a row.
    row: (u64, i64, i64),
    tile: u32,
    /// The number of runs from the last row but one to the last.
    jump: usize,
    hint: &'a mut RunHint,
}

/// The elements of a field as a box of bytes on one tile, whatever runs of the mapping hold them.
struct ByteBox<'a> {
    homes: &'a Homes,
    /// The length and stride of each digit of more than one element, outermost first, by axis.
    axes: Vec<SmallVec<[(u64, i64); 4]>>,
}

impl<'a> ByteBox<'a> {
    fn new(homes: &'a Homes, field: &Field, part: &FieldPart) -> ByteBox<'a> {
        let mut digits = field.digits.iter().zip(&part.stride).map(|(&len, &stride)| (len as u64, stride));
        let axis = |&n: &u8| digits.by_ref().take(n as usize).filter(|d| d.0 > 1).collect();
        ByteBox { homes, axes: field.axes.iter().map(axis).collect() }
    }

    /// Returns the first byte and the byte strides of the axes (0 for an axis of length 1) for a first element.
    fn at(&self, first: i64, tile: u32, hint: &mut RunHint) -> Option<(u32, Vec<i32>)> {
        let base = self.byte(first, tile, hint)?;
        let mut strides = vec![];
        // The digits with their distances in elements and in bytes, innermost first. Digits that continue each other in
        // both are merged.
        let mut dims: SmallVec<[(u64, i64, i64); 6]> = SmallVec::new();
        for axis in self.axes.iter().rev() {
            let mut of_axis: Option<(u64, i64)> = None;
            for &(len, stride) in axis.iter().rev() {
                let bytes = self.byte(first + stride, tile, hint)? - base;
                of_axis = match of_axis {
                    None => Some((len, bytes)),
                    Some((inner, step)) if bytes == step * inner as i64 => Some((inner * len, step)),
                    Some(_) => return None,
                };
                match dims.last_mut() {
                    Some(d) if stride == d.1 * d.0 as i64 && bytes == d.2 * d.0 as i64 => d.0 *= len,
                    _ => dims.push((len, stride, bytes)),
                }
            }
            strides.push(i32::try_from(of_axis.map_or(0, |a| a.1)).ok()?);
        }
        strides.reverse();
        let (row, outer) = match dims.split_first() {
            Some((&row, outer)) => (row, outer),
            None => ((1, 0, 0), &[][..]),
        };
        let mut check = RowCheck { row, tile, jump: 0, hint };
        self.rows(first, base, outer, &mut check).then_some((base as u32, strides))
    }

    /// Returns whether all rows under the outer dimensions are on the tile at the expected bytes.
    fn rows(&self, first: i64, base: i64, outer: &[(u64, i64, i64)], check: &mut RowCheck) -> bool {
        match outer.split_last() {
            None => {
                let guess = check.hint.at.wrapping_add(check.jump);
                if self.is_within(guess, first, base, check) {
                    check.hint.at = guess;
                    return true;
                }
                let last = check.hint.at;
                let is_row = self.is_row(first, base, check.row, check.tile, check.hint);
                check.jump = check.hint.at.wrapping_sub(last);
                is_row
            }
            Some((&(len, stride, bytes), inner)) => {
                let is_row =
                    |k: i64, check: &mut RowCheck| self.rows(first + k * stride, base + k * bytes, inner, check);
                let again = |check: &RowCheck| {
                    let run = check.hint.at;
                    inner.is_empty()
                        && self.comes_again(run, (len, stride, bytes))
                        && self.is_within(run, first, base, check)
                };
                is_row(0, check) && (again(check) || (1..len as i64).all(|k| is_row(k, check)))
            }
        }
    }

    /// Returns whether a run of the mapping recurs in all rows at these distances in elements and bytes.
    fn comes_again(&self, run: usize, (len, stride, bytes): (u64, i64, i64)) -> bool {
        let rows = &self.homes.rows;
        let step = |next: &HomeRun| next.offset as i64 - self.homes.runs[run].offset as i64;
        rows.jump > 0
            && rows.distance as i64 == stride
            && rows.again[run] as u64 + 1 >= len
            && self.homes.runs.get(run + rows.jump).is_some_and(|next| step(next) == bytes)
    }

    /// Returns whether one run of the mapping holds a row at the expected bytes.
    fn is_within(&self, run: usize, first: i64, base: i64, check: &RowCheck) -> bool {
        let (len, stride, bytes) = check.row;
        let span = (len as i64 - 1) * stride;
        let (low, high) = (first + span.min(0), first + span.max(0));
        let each = self.homes.elem_bytes as i64;
        self.homes.runs.get(run).is_some_and(|r| {
            let holds = r.start as i64 <= low && high < r.end as i64 && r.tile == check.tile;
            holds && (len == 1 || bytes == stride * each) && r.offset as i64 + (first - r.start as i64) * each == base
        })
    }

    /// Returns whether the elements of a row are on the tile at equal distances from a byte on.
    fn is_row(&self, first: i64, base: i64, row: (u64, i64, i64), tile: u32, hint: &mut RunHint) -> bool {
        let (len, stride, bytes) = row;
        let mut k = 0;
        while k < len as i64 {
            if self.byte(first + k * stride, tile, hint) != Some(base + k * bytes) {
                return false;
            }
            // Within a run of the mapping, distances in bytes follow from those in elements.
            let (run, at) = (&self.homes.runs[hint.at], first + k * stride);
            let here = match stride {
                0 => len as i64,
                1.. => (run.end as i64 - 1 - at) / stride + 1,
                _ => (at - run.start as i64) / -stride + 1,
            };
            let n = here.min(len as i64 - k);
            if n > 1 && bytes != stride * self.homes.elem_bytes as i64 {
                return false;
            }
            k += n;
        }
        true
    }

    /// Returns the byte of an element in the tile's block, or `None` if it is on another tile.
    fn byte(&self, element: i64, tile: u32, hint: &mut RunHint) -> Option<i64> {
        let at = locate(self.homes, element as u64, hint);
        (at.tile == tile).then(|| at.byte(self.homes.elem_bytes) as i64)
    }
}
