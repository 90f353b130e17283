//! A group: the vertices of one key, which become one family.
//!
//! Invariant: while an offset is a closed form, the vertices fill the box of iterations from `lo` to `hi`.

use super::block::{Instance, Loops, VertexBlock};
use super::boxes::volume;
use super::lists::{Constants, Offsets};
use crate::batched::{Extents, Ints};
use girder_ir::affine::Affine;
use girder_ir::family::{Domain, Field, FieldPart};
use girder_ir::ids::FieldId;
use girder_ir::view::{View, ViewPart};
use girder_source::Span;
use smallvec::SmallVec;

/// Vertices of one key.
#[derive(Debug)]
pub struct Group {
    /// The number of vertices.
    pub count: usize,
    /// Extents of the enclosing loops, in the text.
    loop_extents: Vec<u32>,
    /// The least and the greatest iteration of each loop.
    lo: Vec<u32>,
    hi: Vec<u32>,
    /// The views of the first vertex; those of the others differ only in offsets.
    pub like: Vec<View>,
    /// Offsets by view and part.
    offsets: Vec<Vec<Offsets>>,
    /// Constants by `const` field.
    pub consts: Vec<Constants>,
    /// The tiles of all vertices; empty if they have none.
    pub tiles: Vec<u32>,
    /// The statements, if there is more than one.
    pub spans: Vec<Span>,
    /// By loop, the index of each vertex.
    pub indices: Vec<Vec<i64>>,
}

impl Group {
    /// Creates a group of one vertex.
    pub fn new(vertex: Instance, loops: &Loops) -> Group {
        let listed = |offset: i64| Offsets::Listed(vec![offset as u32]);
        Group {
            count: 1,
            loop_extents: loops.extents.clone(),
            lo: loops.at.clone(),
            hi: loops.at.clone(),
            offsets: vertex.views.iter().map(|v| v.offsets().map(listed).collect()).collect(),
            like: vertex.views,
            consts: vertex.consts.into_iter().map(Constants::Same).collect(),
            tiles: Vec::from_iter(vertex.tile),
            spans: vec![vertex.span],
            indices: vertex.index.into_iter().map(|i| vec![i]).collect(),
        }
    }

    /// Creates a group of the vertices of a block.
    pub fn of_block(block: VertexBlock, count: usize) -> Group {
        let extents = &block.extents;
        let bounds: Vec<(i64, i64)> = block.counters.iter().map(|c| c.bounds(extents)).collect();
        let lo: Vec<u32> = bounds.iter().map(|b| b.0 as u32).collect();
        let hi: Vec<u32> = bounds.iter().map(|b| b.1 as u32).collect();
        // The block is in a single iteration of each outer loop.
        let outer = lo.len() - extents.len().min(lo.len());
        let spread = lo.iter().zip(&hi).map(|(&l, &h)| h - l + 1);
        let fills =
            lo.len() >= extents.len() && spread.eq(std::iter::repeat_n(1, outer).chain(extents.iter().copied()));
        let offset_of = |offset: i64, shift: &Ints| match shift.as_affine().filter(|_| fills) {
            Some(a) => {
                let coef: SmallVec<[i64; 4]> = std::iter::repeat_n(0, outer).chain(a.coef.iter().copied()).collect();
                Offsets::Closed(Affine { base: a.base + offset, coef })
            }
            None => Offsets::Listed(shift.list(extents).into_iter().map(|s| (s + offset) as u32).collect()),
        };
        let offsets_of = |(view, shift): (&View, &Ints)| view.offsets().map(|o| offset_of(o, shift)).collect();
        let offsets = block.like.iter().zip(&block.shifts).map(offsets_of).collect();
        Group {
            count,
            loop_extents: block.loop_extents,
            lo,
            hi,
            like: block.like,
            offsets,
            consts: block.consts.into_iter().map(Constants::from).collect(),
            tiles: block.tiles.unwrap_or_default(),
            spans: block.spans,
            indices: block.indices.iter().map(|c| c.values(extents).collect()).collect(),
        }
    }

    /// Adds a vertex.
    pub fn push(&mut self, vertex: Instance, loops: &Loops) {
        self.open();
        self.count += 1;
        for (offsets, view) in self.offsets.iter_mut().zip(&vertex.views) {
            offsets.iter_mut().zip(view.offsets()).for_each(|(all, offset)| all.push(offset));
        }
        self.consts.iter_mut().zip(vertex.consts).for_each(|(all, c)| all.push(c, self.count));
        self.tiles.extend(vertex.tile);
        self.indices.iter_mut().zip(vertex.index).for_each(|(all, i)| all.push(i));
        self.widen(&loops.at, &loops.at);
        if loops.extents.is_empty() {
            self.spans.push(vertex.span);
        }
    }

    /// Adds the vertices of another group.
    pub fn append(&mut self, mut other: Group) {
        self.open();
        other.open();
        for (all, more) in self.offsets.iter_mut().flatten().zip(other.offsets.into_iter().flatten()) {
            all.append(more);
        }
        for (all, more) in self.consts.iter_mut().zip(other.consts) {
            for k in 0..other.count {
                all.push(more.at(k), self.count + k + 1);
            }
        }
        self.count += other.count;
        self.tiles.extend(other.tiles);
        if self.loop_extents.is_empty() {
            self.spans.extend(other.spans);
        }
        self.indices.iter_mut().zip(other.indices).for_each(|(all, more)| all.extend(more));
        self.widen(&other.lo, &other.hi);
    }

    /// Puts the vertices in another order. Precondition: offsets are listed, as after [`Group::append`].
    pub fn reorder(&mut self, order: &[usize]) {
        self.offsets.iter_mut().flatten().for_each(|offsets| offsets.reorder(order));
        self.consts.iter_mut().for_each(|constants| constants.reorder(order));
        let indices = self.indices.iter_mut().filter(|list| list.len() == order.len());
        indices.for_each(|list| *list = order.iter().map(|&k| list[k]).collect());
        if self.tiles.len() == order.len() {
            self.tiles = order.iter().map(|&k| self.tiles[k]).collect();
        }
    }

    /// Adds vertices of other loops or outside loops; the group then has no loops.
    pub fn join(&mut self, mut other: Group) {
        for group in [&mut *self, &mut other] {
            group.open();
            group.loop_extents.clear();
            group.lo.clear();
            group.hi.clear();
            group.indices.clear();
        }
        self.append(other);
    }

    /// Converts every offset to a list, so that vertices can be added.
    fn open(&mut self) {
        let extents = self.extents();
        self.offsets.iter_mut().flatten().for_each(|offsets| offsets.open(&extents));
    }

    /// Returns the box from `lo` to `hi`.
    fn extents(&self) -> Extents {
        self.lo.iter().zip(&self.hi).map(|(l, h)| h - l + 1).collect()
    }

    fn widen(&mut self, lo: &[u32], hi: &[u32]) {
        self.lo.iter_mut().zip(lo).for_each(|(a, &b)| *a = b.min(*a));
        self.hi.iter_mut().zip(hi).for_each(|(a, &b)| *a = b.max(*a));
    }

    /// Returns the domain of the group's family and the loops to which its indices belong: the box of the loops if the
    /// vertices fill it; otherwise the part that they fill, without indices of one value; otherwise a domain of one
    /// dimension.
    pub fn domain(&self) -> (Domain, Option<Vec<usize>>) {
        let fills = |extents: &[u32]| volume(extents) == Some(self.count as u64);
        if !self.loop_extents.is_empty() && fills(&self.loop_extents) {
            let all = (0..self.loop_extents.len()).collect();
            return (Domain(self.loop_extents.iter().copied().collect()), Some(all));
        }
        let extents = self.extents();
        if fills(&extents) {
            let dims: Vec<usize> = (0..extents.len()).filter(|&k| extents[k] != 1).collect();
            return (Domain(dims.iter().map(|&k| extents[k]).collect()), Some(dims));
        }
        (Domain::line(self.count as u32), None)
    }

    /// Returns the view `k` as a field over a domain; `dims` gives the loop of each of its indices.
    pub fn field(&self, k: usize, id: FieldId, domain: &Domain, dims: Option<&[usize]>) -> Field {
        let extents = self.extents();
        let part = |(p, offsets): (&ViewPart, &Offsets)| FieldPart {
            lo: p.lo.clone(),
            len: p.len.clone(),
            var: p.var,
            offset: offsets.over(domain, dims, &extents),
            stride: p.stride.clone(),
        };
        let like = &self.like[k];
        let parts = like.parts.iter().zip(&self.offsets[k]).map(part).collect();
        Field { field: id, digits: like.digits.clone(), axes: like.axes.clone(), parts }
    }
}
