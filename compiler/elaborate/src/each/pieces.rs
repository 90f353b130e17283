//! The pieces of an element-wise step: their positions, and the views of all pieces of one size at once.
//!
//! Invariant: the pieces of all boxes are disjoint and cover the shape.

use crate::batched::{Extents, Ints};
use crate::families::VertexBlock;
use girder_ir::affine::Affine;
use girder_ir::family::Const;
use girder_ir::ids::SpecId;
use girder_ir::placement::TileRange;
use girder_ir::types::Scalar;
use girder_ir::view::View;
use girder_source::Span;

/// The cut of a shape: equal pieces along each axis, the last perhaps shorter.
pub(super) struct Pieces<'p> {
    pub shape: &'p [u64],
    /// The length of a piece along each axis.
    pub grid: &'p [u64],
    /// The tiles of the place around the step; `None` means all.
    pub within: Option<TileRange>,
}

impl Pieces<'_> {
    /// Returns the boxes of pieces of one size, by their first piece: along each axis, the whole pieces or the shorter
    /// last one.
    pub fn boxes(&self) -> Vec<(Extents, Extents)> {
        let mut boxes = vec![(Extents::new(), Extents::new())];
        for (&n, &chunk) in self.shape.iter().zip(self.grid) {
            let (whole, rest) = ((n / chunk) as u32, n % chunk > 0);
            let spans = [(0, whole), (whole, rest as u32)].into_iter().filter(|s| s.1 > 0);
            let extend = |(first, extents): &(Extents, Extents), span: (u32, u32)| {
                let mut longer = (first.clone(), extents.clone());
                longer.0.push(span.0);
                longer.1.push(span.1);
                longer
            };
            boxes = boxes.iter().flat_map(|b| spans.clone().map(move |s| extend(b, s))).collect();
        }
        boxes
    }

    /// Returns the part of a view of the shape in the piece at a point; a scalar is in every piece.
    pub fn piece(&self, view: &View, at: &[u64]) -> View {
        let mut piece = view.clone();
        for (axis, (&k, &chunk)) in at.iter().zip(self.grid).enumerate().take(view.rank()) {
            piece = piece.slice(axis, k * chunk, chunk.min(self.shape[axis] - k * chunk), 1);
        }
        piece
    }

    /// Returns all pieces of a box. Precondition: each view is a scalar, or has one part and one digit for each axis.
    pub fn block(
        &self,
        spec: SpecId,
        span: Span,
        views: &[View],
        consts: &[Scalar],
        first: Extents,
        extents: Extents,
    ) -> VertexBlock {
        let at: Vec<u64> = first.iter().map(|&f| f as u64).collect();
        let like = views.iter().map(|v| self.piece(v, &at).canonical()).collect();
        let shift = |v: &View| {
            let mut strides = v.parts[0].stride.iter();
            let stride = |&digits: &u8| if digits == 0 { 0 } else { *strides.next().unwrap_or(&0) };
            let coef: Vec<i64> = v.axes.iter().map(stride).zip(self.grid).map(|(s, &c)| s * c as i64).collect();
            Ints::affine(Affine::new(0, &coef))
        };
        let shifts = views.iter().map(|v| if v.rank() == 0 { Ints::constant(0) } else { shift(v) }).collect();
        let counter = |(k, &f): (usize, &u32)| {
            let mut coef = vec![0; k];
            coef.push(1);
            Ints::affine(Affine::new(f as i64, &coef))
        };
        let counters = first.iter().enumerate().map(counter).collect();
        let loop_extents = self.shape.iter().zip(self.grid).map(|(n, c)| n.div_ceil(*c) as u32).collect();
        let consts = consts.iter().map(|&c| Const::Uniform(c)).collect();
        VertexBlock {
            spec,
            spans: vec![span],
            like,
            shifts,
            consts,
            tiles: None,
            within: self.within,
            extents,
            loop_extents,
            counters,
            indices: vec![],
        }
    }
}
