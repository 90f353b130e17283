//! Joins vertices whose fields are adjacent to fewer vertices with longer fields, so that their loops are long.
//!
//! A family is a grid of *windows*: from index to index of its domain every field moves along one of its axes, or
//! stays. Windows are joined first along the index that moves through memory in the smallest steps, and are split along
//! another one if they grow too large for the cache. The family then has fewer or more vertices along an index, which
//! together do the same as the original ones (see the note on neighbours in `girder_codelet::neighbours`). Of the
//! original vertices only a failure can be observed: it is that of the first one of those that are joined.
//!
//! Invariant: the vertices of a joined family touch the same elements as those of the family, in the order in which
//! each vertex touches its own.

use cranelift_entity::SecondaryMap;
use girder_codelet::interpret::FREE_ITERATIONS;
use girder_codelet::neighbours::{Joined, Motion, join};
use girder_codelet::vertices::bind_family;
use girder_fusion::strides::field_strides;
use girder_ir::affine::Affine;
use girder_ir::codelet::{Codelet, DimDecl, Dir};
use girder_ir::family::{Const, Domain, Family, Field, FieldPart, Offset};
use girder_ir::graph::Graph;
use girder_ir::ids::{FieldId, SizeId};
use girder_ir::view::Digits;
use smallvec::{SmallVec, smallvec};

type Motions = SecondaryMap<FieldId, Option<Motion>>;

/// Bounds of the number of elements up to which windows are joined, counted in the largest field that a vertex writes.
/// At the lower bound rows are long; at the upper bound several fields still fit into a core's cache.
const ELEMENTS: (u64, u64) = (4096, 8192);
/// Minimal number of vertices for threads and cache blocks to share, if there are enough elements.
const VERTICES: u64 = 32;

/// A family whose vertices do the work of those of another one.
#[derive(Clone, Debug)]
pub struct JoinedFamily {
    /// The family.
    pub family: Family,
    /// The first original vertex of each of its vertices, if they may fail.
    pub first: Option<Vec<u32>>,
}

/// Returns the family with longer windows, or `None` if none of its vertices can be joined.
pub(crate) fn joined(graph: &Graph, family: &Family) -> Option<JoinedFamily> {
    let total = Grid::new(graph, family).written(family).saturating_mul(family.domain.count());
    joined_up_to(graph, family, (total / VERTICES).clamp(ELEMENTS.0, ELEMENTS.1))
}

/// Works like [`joined`]; a vertex writes at most `wanted` elements of a field, or what it already wrote if that is
/// more.
fn joined_up_to(graph: &Graph, family: &Family, wanted: u64) -> Option<JoinedFamily> {
    let grid = Grid::new(graph, family);
    if family.domain.count() < 2 || !is_regular(family) {
        return None;
    }
    let mut indices: Vec<Index> = (0..family.domain.0.len()).filter_map(|at| grid.index(family, at)).collect();
    indices.sort_by_key(|index| (index.reach, usize::MAX - index.at));
    let order: Vec<usize> = indices.iter().map(|index| index.at).collect();
    let best = indices.iter().find_map(|first| {
        let vertices = family.domain.0[first.at];
        let longest = (FREE_ITERATIONS / first.elements).min(u64::from(vertices)) as u32;
        let counts = (2..=longest).rev().filter(|n| vertices.is_multiple_of(*n));
        counts.into_iter().find_map(|count| {
            let (long, joined) = grid.grown(family, first, count)?;
            let others = order.iter().filter(|&&at| at != first.at);
            let fitting = others.fold(long, |long, &at| grid.fitted(long, at, wanted, joined.may_fail));
            (grid.written(&fitting) <= wanted.max(grid.written(family))).then_some((fitting, joined))
        })
    });
    let (best, Joined { may_fail }) = best?;
    let first = may_fail.then(|| first_vertices(&family.domain, &best.domain));
    Some(JoinedFamily { family: compact(best), first })
}

/// Returns the first vertex of `domain` in each vertex of another domain, in which each index counts several of them.
fn first_vertices(domain: &Domain, joined: &Domain) -> Vec<u32> {
    let first = |vertex: u64| {
        let (mut rest, mut first, mut stride) = (vertex, 0, 1);
        for (&n, &groups) in domain.0.iter().zip(&joined.0).rev() {
            first += rest % u64::from(groups) * u64::from(n / groups) * stride;
            (rest, stride) = (rest / u64::from(groups), stride * u64::from(n));
        }
        first as u32
    };
    (0..joined.count()).map(first).collect()
}

/// The windows of a codelet's families.
struct Grid<'a> {
    graph: &'a Graph,
    codelet: &'a Codelet,
}

/// An index of the domain along which fields move through their axes.
struct Index {
    at: usize,
    motion: Motions,
    /// The least stride of an axis along which a field moves, in elements.
    reach: u64,
    /// The least motion, in elements.
    elements: u64,
}

/// Returns whether every field has a stride for each axis and an affine offset, and all vertices the same constants.
fn is_regular(family: &Family) -> bool {
    let field = |f: &Field| {
        let affine = |part: &FieldPart| matches!(part.offset, Offset::Affine(_));
        !f.is_empty() && f.parts.iter().all(affine) && field_strides(f, 1).is_some()
    };
    let shares = |(_, value): &(FieldId, Const)| matches!(value, Const::Uniform(_));
    family.fields.iter().all(field) && family.consts.iter().all(shares)
}

/// Removes the indices that have one value.
fn compact(mut family: Family) -> Family {
    let kept = |at: usize| family.domain.0[at] > 1;
    let kept: Vec<usize> = (0..family.domain.0.len()).filter(|&at| kept(at)).collect();
    for field in &mut family.fields {
        let coef: Vec<i64> = kept.iter().map(|&at| step(field, at)).collect();
        for part in &mut field.parts {
            if let Offset::Affine(affine) = &mut part.offset {
                *affine = Affine::new(affine.base, &coef);
            }
        }
    }
    family.domain = Domain(kept.iter().map(|&at| family.domain.0[at]).collect());
    family
}

impl<'a> Grid<'a> {
    fn new(graph: &'a Graph, family: &Family) -> Grid<'a> {
        Grid { graph, codelet: &graph.codelets[family.codelet] }
    }

    /// Returns the elements of the largest field that a vertex writes.
    fn written(&self, family: &Family) -> u64 {
        let written = |f: &&Field| self.codelet.fields[f.field].dir != Dir::In;
        family.fields.iter().filter(written).map(Field::len).max().unwrap_or(0)
    }

    /// Describes an index. Returns `None` if it has only one value, or some field moves along none of its axes.
    fn index(&self, family: &Family, at: usize) -> Option<Index> {
        let mut index = Index { at, motion: SecondaryMap::new(), reach: u64::MAX, elements: u64::MAX };
        let mut longer: SmallVec<[(SizeId, i64); 4]> = SmallVec::new();
        for field in family.fields.iter().filter(|f| step(f, at) != 0) {
            let (motion, stride) = along(&field.shape(), &field_strides(field, 1)?, step(field, at))?;
            index.motion[field.field] = Some(motion);
            index.reach = index.reach.min(stride.unsigned_abs());
            index.elements = index.elements.min(motion.elements.unsigned_abs());
            longer.extend(self.size(field.field, motion.axis).map(|size| (size, motion.elements)));
        }
        // An axis of stride 0 repeats its elements, so its motion is that of an axis of the same size.
        for field in family.fields.iter().filter(|f| step(f, at) == 0) {
            let strides = field_strides(field, 1)?;
            let repeated = |axis: usize| {
                let size = self.size(field.field, axis).filter(|_| strides[axis] == 0)?;
                let (_, elements) = *longer.iter().find(|l| l.0 == size)?;
                Some(Motion { axis, elements })
            };
            index.motion[field.field] = (0..strides.len()).find_map(repeated);
        }
        (index.reach < u64::MAX && family.domain.0[at] > 1).then_some(index)
    }

    /// Returns the size that an axis declares.
    fn size(&self, field: FieldId, axis: usize) -> Option<SizeId> {
        match self.codelet.fields[field].dims.get(axis) {
            Some(DimDecl::Size(size)) => Some(*size),
            _ => None,
        }
    }

    /// Joins `count` vertices along an index.
    fn grown(&self, family: &Family, index: &Index, count: u32) -> Option<(Family, Joined)> {
        let all = scaled(family, index, |n| n.checked_mul(i64::from(count)))?;
        let joined = self.joined((family, &all), count, &index.motion)?;
        Some((all, joined))
    }

    /// Splits each vertex into `count` along an index, unless it may fail.
    fn split(&self, family: &Family, index: &Index, count: u32) -> Option<Family> {
        let divided = |n: i64| (n % i64::from(count) == 0).then(|| n / i64::from(count));
        let one = scaled(family, index, divided)?;
        let mut motion = index.motion.clone();
        for m in motion.values_mut().flatten() {
            m.elements = divided(m.elements)?;
        }
        self.joined((&one, family), count, &motion).is_some_and(|joined| !joined.may_fail).then_some(one)
    }

    /// Joins or splits along another index, so that a vertex writes approximately `wanted` elements.
    fn fitted(&self, family: Family, at: usize, wanted: u64, may_fail: bool) -> Family {
        let Some(index) = self.index(&family, at) else { return family };
        let (now, vertices) = (self.written(&family), u64::from(family.domain.0[at]));
        let changed = if now > wanted {
            let counts = (now.div_ceil(wanted)..=index.elements).filter(|n| index.elements % n == 0);
            counts.into_iter().find_map(|n| self.split(&family, &index, n as u32))
        } else {
            let most = (wanted / now.max(1)).min(vertices).min(FREE_ITERATIONS / index.elements);
            let counts = (2..=most).rev().filter(|n| vertices % n == 0);
            let grown = |n| self.grown(&family, &index, n as u32).filter(|(_, joined)| joined.may_fail == may_fail);
            counts.into_iter().find_map(|n| Some(grown(n)?.0))
        };
        changed.unwrap_or(family)
    }

    /// Returns how a vertex of `all` does the work of `count` vertices of `one`, if it does.
    fn joined(&self, (one, all): (&Family, &Family), count: u32, motion: &Motions) -> Option<Joined> {
        let sizes = |family| bind_family(self.graph, family).ok().flatten();
        join(self.codelet, (&sizes(one)?, &sizes(all)?), u64::from(count), motion)
    }
}

/// Scales the motions along an index: windows grow by the same number of elements, and there are fewer of them.
fn scaled(family: &Family, index: &Index, scale: impl Fn(i64) -> Option<i64>) -> Option<Family> {
    let mut scaled = family.clone();
    let mut steps: Option<(i64, i64)> = None;
    for field in &mut scaled.fields {
        let Some(motion) = index.motion[field.field] else { continue };
        let elements = scale(motion.elements)?;
        steps = Some((motion.elements, elements));
        let mut shape = field.shape();
        let length = (shape[motion.axis] as i64).checked_add(elements)?.checked_sub(motion.elements)?;
        shape[motion.axis] = u64::try_from(length).ok().filter(|&n| n > 0)?;
        let mut strides: SmallVec<[i64; 4]> = field_strides(field, 1)?.into_iter().collect();
        strides[motion.axis] = step(field, index.at) / motion.elements;
        let len: Digits = shape.iter().map(|&n| u32::try_from(n).ok()).collect::<Option<_>>()?;
        let offset = offset(field, index.at, strides[motion.axis].checked_mul(elements)?);
        let (lo, axes) = (shape.iter().map(|_| 0).collect(), shape.iter().map(|_| 1).collect());
        let part = FieldPart { lo, len: len.clone(), var: field.parts.first()?.var, offset, stride: strides };
        *field = Field { field: field.field, digits: len, axes, parts: smallvec![part] };
    }
    let (old, new) = steps?;
    let reach = i64::from(family.domain.0[index.at]).checked_mul(old)?;
    let vertices = (reach % new == 0).then(|| u32::try_from(reach / new).ok())??;
    scaled.domain.0[index.at] = vertices;
    Some(scaled)
}

/// Returns the elements of its variable by which a field moves along an index.
fn step(field: &Field, index: usize) -> i64 {
    match field.parts.first().map(|part| &part.offset) {
        Some(Offset::Affine(affine)) => affine.coef.get(index).copied().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the offset of a field with another step along an index.
fn offset(field: &Field, index: usize, step: i64) -> Offset {
    let Some(Offset::Affine(affine)) = field.parts.first().map(|part| &part.offset) else {
        return Offset::Affine(Affine::default());
    };
    let mut coef = affine.coef.clone();
    coef.resize(coef.len().max(index + 1), 0);
    coef[index] = step;
    Offset::Affine(Affine::new(affine.base, &coef))
}

/// Returns the axis along which a step leads to a window that begins inside this one or directly after it, and the
/// stride of the axis. An axis of one element may have any stride.
fn along(shape: &[u64], strides: &[i64], step: i64) -> Option<(Motion, i64)> {
    let fits = |axis: usize| {
        let (length, stride) = (shape[axis] as i64, strides[axis]);
        let near = length > 1 && stride != 0 && step % stride == 0 && (1..=length).contains(&(step / stride));
        near.then(|| (Motion { axis, elements: step / stride }, stride))
    };
    let near = (0..shape.len()).filter_map(fits).max_by_key(|(_, stride)| stride.unsigned_abs());
    let single = || shape.iter().position(|&n| n == 1).map(|axis| (Motion { axis, elements: 1 }, step));
    near.or_else(single)
}

#[cfg(test)]
mod tests;
