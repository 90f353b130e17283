//! Temporaries that a loop fills row by row: `repeat i in 0..n { x[i] <- …; }`.
//!
//! One iteration writes one row, so without this the values before the loop seem to be needed. If all steps of the body
//! that touch the variable write the row of the iteration, an `undef` before the loop ends them.
//!
//! Invariant: the elements of such an `undef` are written before anything reads them.

use crate::elaborator::{Body, Elaborator, Node, NodeKind, RowWrite};
use crate::gradients::order::Moment;
use crate::pipelines::accesses::{Touch, each_touch};
use crate::rows::RunTimeIndex;
use crate::value::{Range, Tensor};
use girder_ir::graph::VarClass;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::program::{Effect, UntilWritten};
use girder_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

impl Elaborator<'_> {
    /// Notes that the last step of the innermost body writes a row of `x`.
    pub fn note_row_write(&mut self, x: &Tensor, index: &RunTimeIndex) {
        let ([part], [number]) = (&x.view.parts[..], &index.start.view.parts[..]) else { return };
        let (var, number) = (part.var, number.var);
        if index.count.is_some() || self.graph.vars[var].class != VarClass::Temp || x.view.has_aliases() {
            return;
        }
        let Some(body) = self.emission.body_mut() else { return };
        if let Some(NodeKind::Execute(set)) = body.nodes.last().map(|n| &n.kind) {
            let (of, axis, set) = (x.view.clone(), index.axis, *set);
            body.row_writes.push(RowWrite { index: number, var, of, axis, set });
        }
    }

    /// Ends the values of the temporaries that a loop with this body fills, before the loop. It began at a moment.
    pub fn end_before_filling(&mut self, body: &Body, index: VarId, range: Range, begin: Moment, span: Span) {
        let (stage, reverse) = (self.emission.stage(), self.emission.is_reverse());
        if stage.is_some() || range.step.abs() != 1 || range.count == 0 || body.row_writes.is_empty() {
            return;
        }
        let mut met = self.touched_beside_rows(body);
        let first = range.start.min(range.at(range.count - 1));
        let origin = self.origin_at(span);
        for w in body.row_writes.iter().filter(|w| w.index == index) {
            let (start, rows) = (u64::try_from(first).unwrap_or(u64::MAX), w.of.shape()[w.axis]);
            if start.saturating_add(range.count) > rows || !met.insert(w.var) {
                continue;
            }
            let what = w.of.slice(w.axis, start, range.count, 1).canonical();
            let Some(around) = self.emission.body_mut().filter(|_| what.parts.len() == 1) else { continue };
            let kind = NodeKind::Effect(Effect::Undef { what, until_written: UntilWritten::Unread });
            around.nodes.push(Node { kind, origin, at: begin, reverse, stage });
        }
    }

    /// Returns the variables that steps of a body touch, but for rows that they write.
    fn touched_beside_rows(&self, body: &Body) -> FxHashSet<VarId> {
        let mut rows: FxHashMap<ComputeSetId, Vec<VarId>> = FxHashMap::default();
        body.row_writes.iter().for_each(|w| rows.entry(w.set).or_default().push(w.var));
        let mut all = FxHashSet::default();
        for node in &body.nodes {
            let own = match node.kind {
                NodeKind::Execute(set) => rows.get(&set).map_or(&[][..], Vec::as_slice),
                _ => &[],
            };
            let mut add = |var: VarId| {
                if !own.contains(&var) {
                    all.insert(var);
                }
            };
            each_touch(&self.graph, node, false, &mut |touch| match touch {
                Touch::Field { field, .. } => field.parts.iter().for_each(|p| add(p.var)),
                Touch::View { view, .. } => view.parts.iter().for_each(|p| add(p.var)),
                Touch::Index(index) => add(index),
                Touch::Stream(_) | Touch::Ordered(_) => {}
            });
        }
        all
    }
}
