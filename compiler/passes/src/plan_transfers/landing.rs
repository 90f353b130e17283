//! Which instances of a field are in place, and at which byte strides.
//!
//! Invariant: in place means that all elements are on the vertex's tile and that the byte of the element at index
//! (i, j, …) is `base + i · stride₀ + j · stride₁ + …` of the tile's block of one variable.

use super::Scene;
use super::buffers::Stop;
use super::moves::{Move, Moves, locate};
use girder_ir::family::{Domain, Field, FieldPart};
use girder_ir::plan::{FieldLandings, Landing, Loc, Object};
use smallvec::SmallVec;

/// One field of a family: where it is in place.
#[derive(Default)]
pub(super) struct InPlace {
    /// Per instance: the first byte in the block, or `None` if it has to land in a buffer.
    pub at: Vec<Option<u32>>,
    /// Distinct byte strides.
    pub strides: Vec<Vec<i32>>,
    /// Per instance: index into `strides`.
    pub strides_of: Vec<u32>,
}

impl InPlace {
    fn reserve(&mut self, instances: usize) {
        self.at.reserve_exact(instances);
        self.strides_of.reserve_exact(instances);
    }

    fn push(&mut self, found: Option<(u32, &[i32])>) {
        self.at.push(found.map(|f| f.0));
        self.strides_of.push(found.map_or(0, |f| intern(&mut self.strides, f.1)));
    }
}

/// The index of strides in a list of distinct ones, which takes them in if they are new.
fn intern(list: &mut Vec<Vec<i32>>, strides: &[i32]) -> u32 {
    let index = list.iter().rposition(|s| s == strides).unwrap_or_else(|| {
        list.push(strides.to_vec());
        list.len() - 1
    });
    index as u32
}

/// The landings of a field that is in place everywhere; else the field as it was.
pub(super) fn all_in_place(found: InPlace) -> Result<FieldLandings, InPlace> {
    if found.at.contains(&None) {
        return Err(found);
    }
    let InPlace { at, strides, strides_of } = found;
    let at = at.into_iter().flatten().map(Landing::InPlace).collect();
    Ok(FieldLandings { at, strides, strides_of })
}

/// Room for the landings of so many instances.
pub(super) fn with_capacity(instances: usize) -> FieldLandings {
    FieldLandings { at: Vec::with_capacity(instances), strides: vec![], strides_of: Vec::with_capacity(instances) }
}

/// Adds the landing of the next instance, with its strides if it is in place.
pub(super) fn add(landings: &mut FieldLandings, at: Landing, strides: &[i32]) {
    let index = match at {
        Landing::InPlace(_) => intern(&mut landings.strides, strides),
        Landing::Buffer { .. } => 0,
    };
    landings.at.push(at);
    landings.strides_of.push(index);
}

/// Adds the landings of instances that follow one another in a buffer from the first one's, so many bytes each.
pub(super) fn add_buffers(landings: &mut FieldLandings, first: Landing, count: usize, bytes: u64) {
    let Landing::Buffer { buffer, offset } = first else { return add(landings, first, &[]) };
    landings.at.extend((0..count).map(|k| Landing::Buffer { buffer, offset: offset + (k as u64 * bytes) as u32 }));
    landings.strides_of.resize(landings.at.len(), 0);
}

/// Decides for all instances of a field; `tiles` are those of the vertices.
pub(super) fn in_place(scene: &Scene, field: &Field, domain: &Domain, tiles: &[u32]) -> Result<InPlace, Stop> {
    let (mut result, mut moves) = (InPlace::default(), Moves::new(scene));
    if field.is_empty() {
        let strides = vec![0; field.axes.len()];
        tiles.iter().for_each(|_| result.push(Some((0, &strides))));
        return Ok(result);
    }
    let [part] = field.parts.as_slice() else {
        tiles.iter().for_each(|_| result.push(None));
        return Ok(result);
    };
    let homes = &scene.homes[part.var];
    let (low, high) = hull(part);
    let regular = axis_strides(field, part, homes.elem_bytes);
    let mut hint = 0;
    result.reserve(tiles.len());
    for ((instance, &tile), offset) in tiles.iter().enumerate().zip(part.offset.values(domain)) {
        let at = locate(homes, (offset + low) as u64, &mut hint);
        let run = &homes.runs[hint];
        if run.tile != tile {
            result.push(None);
        } else if (offset + high) < run.end as i64 {
            let base = at.loc(part.var, homes.elem_bytes).offset as i64 - low * homes.elem_bytes as i64;
            result.push(regular.as_ref().map(|s| (base as u32, s.as_slice())));
        } else if field.len() * homes.elem_bytes as u64 > scene.block_limit as u64 {
            // Too long to be laid out row by row; as a landing it is refused.
            result.push(None);
        } else {
            let view = field.view(domain, instance as u64);
            moves.gather(scene, &view, Loc { tile, object: Object::Buffer(0), offset: 0 })?;
            let found = strided_box(&moves.list, tile, &field.shape(), homes.elem_bytes);
            result.push(found.as_ref().map(|(base, strides)| (*base, strides.as_slice())));
        }
    }
    Ok(result)
}

/// The least and the greatest element of a part, from its offset.
fn hull(part: &FieldPart) -> (i64, i64) {
    let mut hull = (0, 0);
    for (&len, &stride) in part.len.iter().zip(&part.stride) {
        let span = (len as i64 - 1) * stride;
        hull = (hull.0 + span.min(0), hull.1 + span.max(0));
    }
    hull
}

/// Bytes from one index to the next along each axis (0 for an axis of length 1) where elements keep their distances;
/// `None` if the digits of an axis do not form one stride.
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

/// The base and byte strides of the sources of moves that together gather a field of this shape to byte 0 on, if they
/// are a strided box on one tile.
fn strided_box(moves: &[Move], tile: u32, shape: &[u64], bytes: u32) -> Option<(u32, Vec<i32>)> {
    if moves.iter().any(|m| m.from.tile != tile) {
        return None;
    }
    let base = source(moves, 0)?;
    let mut weight = bytes as u64;
    let mut strides = vec![0; shape.len()];
    // Axes of more than one element, innermost first, those that form one stride joined.
    let mut axes: SmallVec<[(u64, i64); 4]> = SmallVec::new();
    for (k, &len) in shape.iter().enumerate().rev().filter(|s| *s.1 > 1) {
        let stride = source(moves, weight)? - base;
        strides[k] = i32::try_from(stride).ok()?;
        match axes.last_mut() {
            Some(inner) if stride == inner.1 * inner.0 as i64 => inner.0 *= len,
            _ => axes.push((len, stride)),
        }
        weight *= len;
    }
    let fits = |m: &Move| {
        (0..m.count as i64).all(|c| {
            let from = m.from.offset as i64 + c * m.from_step as i64;
            let to = m.to.offset as i64 + c * m.to_step as i64;
            fits(&axes, base, from, to as u64 / bytes as u64, (m.bytes / bytes) as u64, bytes)
        })
    };
    moves.iter().all(fits).then_some((base as u32, strides))
}

/// The byte that is gathered to byte `at`.
fn source(moves: &[Move], at: u64) -> Option<i64> {
    moves.iter().find_map(|m| {
        let behind = at.checked_sub(m.to.offset as u64)?;
        let piece = if m.count > 1 { behind / m.to_step as u64 } else { 0 };
        let inside = behind - piece * m.to_step as u64;
        let found = piece < m.count as u64 && inside < m.bytes as u64;
        found.then(|| m.from.offset as i64 + piece as i64 * m.from_step as i64 + inside as i64)
    })
}

/// Whether `n` contiguous elements from byte `from` on are those at row-major position `at` and after of a box.
fn fits(axes: &[(u64, i64)], base: i64, mut from: i64, mut at: u64, mut n: u64, bytes: u32) -> bool {
    while n > 0 {
        let (mut expected, mut rest) = (base, at);
        for &(len, stride) in axes {
            expected += (rest % len) as i64 * stride;
            rest /= len;
        }
        let (len, stride) = axes.first().copied().unwrap_or((1, 0));
        let row = n.min(len - at % len);
        if expected != from || (row > 1 && stride != bytes as i64) {
            return false;
        }
        (from, at, n) = (from + row as i64 * bytes as i64, at + row, n - row);
    }
    true
}
