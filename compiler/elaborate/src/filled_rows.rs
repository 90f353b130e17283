//! Temporaries that loops fill element by element or row by row: `repeat i in 0..n { x[i] <- …; }`, or `x[i + 1]`.
//!
//! One iteration writes one row, so without this the values before the loop seem to be needed. If all steps of the body
//! that touch the variable write the row of the iteration, an `undef` before the loop ends them. In nested loops, as in
//! `repeat i in 0..n { repeat j in 0..m { x[i, j] <- …; } }`, the inner one fills what the outer one counts as a row.
//!
//! Invariant: the elements of such an `undef` are written before anything reads them.

use crate::elaborator::{Body, Elaborator, Node, NodeKind, RowWrite, Writer};
use crate::gradients::order::Moment;
use crate::pipelines::accesses::{Touch, each_touch};
use crate::rows::RunTimeIndex;
use crate::value::{Range, Tensor};
use girder_ir::graph::VarClass;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::program::{Effect, UntilWritten};
use girder_ir::view::View;
use girder_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most parts of variables that are ended before one loop.
const MOST_PARTS: usize = 64;

impl Elaborator<'_> {
    /// Notes that the last step of the innermost body writes the elements of `x` at some indices. If there are several,
    /// it writes back a copy, `read`, of the rows that the first one selects.
    pub fn note_row_write(&mut self, x: &Tensor, at: &[RunTimeIndex], read: Option<&View>) {
        let [part] = &x.view.parts[..] else { return };
        let var = part.var;
        if self.graph.vars[var].class != VarClass::Temp || x.view.has_aliases() {
            return;
        }
        let mut indices = vec![];
        for index in at {
            let ([number], None) = (&index.start.view.parts[..], index.count) else { return };
            let (var, plus) = index.sum.unwrap_or((number.var, 0));
            indices.push((index.axis, var, plus));
        }
        let Some(body) = self.emission.body() else { return };
        let Some(NodeKind::Execute(writer)) = body.nodes.last().map(|n| &n.kind) else { return };
        let mut sets = vec![*writer];
        if let Some(copy) = read {
            let Some(reader) = self.reader_of_rows(body, var, copy) else { return };
            sets.push(reader);
        }
        let write = RowWrite { at: indices, var, of: x.view.clone(), by: Writer::Sets(sets) };
        if let Some(body) = self.emission.body_mut() {
            body.row_writes.push(write);
        }
    }

    /// Returns the compute set of a body that copies rows of a variable, if it does not read the variable otherwise.
    fn reader_of_rows(&self, body: &Body, var: VarId, copy: &View) -> Option<ComputeSetId> {
        let [copy] = &copy.parts[..] else { return None };
        let sets = body.nodes.iter().rev().filter_map(|node| match node.kind {
            NodeKind::Execute(set) => Some(set),
            _ => None,
        });
        // The copy is written by the step that reads the rows, and then by those that change it.
        let touches = |set: ComputeSetId, var: VarId| {
            let of_set = self.graph.sets[set].families.iter().map(|&f| &self.graph.families[f]);
            of_set.filter(|f| f.fields.iter().any(|f| f.parts.iter().any(|p| p.var == var))).collect::<Vec<_>>()
        };
        let set = sets.skip(1).find(|&set| !touches(set, var).is_empty() && !touches(set, copy.var).is_empty())?;
        let copies = |f: &girder_ir::family::Family| f.fields.iter().any(|f| f.parts.iter().any(|p| p.var == copy.var));
        touches(set, var).into_iter().all(copies).then_some(set)
    }

    /// Ends the values of the temporaries that a loop with this body fills, before the loop. It began at a moment.
    pub fn end_before_filling(&mut self, body: &Body, index: Option<VarId>, range: Range, begin: Moment, span: Span) {
        let (stage, reverse) = (self.emission.stage(), self.emission.is_reverse());
        if stage.is_some() || range.count == 0 || body.row_writes.is_empty() {
            return;
        }
        let touched = self.touched_beside_rows(body);
        let (mut filled, mut pending): (Vec<View>, Vec<RowWrite>) = (vec![], vec![]);
        for w in body.row_writes.iter().filter(|w| !touched.contains(&w.var)) {
            let Some(w) = after_loop(w, index, range) else { continue };
            if !w.at.is_empty() {
                pending.push(w);
                continue;
            }
            let what = w.of.canonical();
            if what.parts.len() == 1 && filled.len() < MOST_PARTS && !filled.contains(&what) {
                filled.push(what);
            }
        }
        let origin = self.origin_at(span);
        let Some(around) = self.emission.body_mut() else { return };
        for what in filled {
            let kind = NodeKind::Effect(Effect::Undef { what, until_written: UntilWritten::Unread });
            around.nodes.push(Node { kind, origin, at: begin, reverse, stage });
        }
        let by = Writer::Step(around.nodes.len());
        around.row_writes.extend(pending.into_iter().map(|w| RowWrite { by: by.clone(), ..w }));
    }

    /// Returns the variables that steps of a body touch, but for elements that they write at run-time indices.
    fn touched_beside_rows(&self, body: &Body) -> FxHashSet<VarId> {
        let mut by_set: FxHashMap<ComputeSetId, Vec<VarId>> = FxHashMap::default();
        let mut by_step: FxHashMap<usize, Vec<VarId>> = FxHashMap::default();
        for w in &body.row_writes {
            match &w.by {
                Writer::Sets(sets) => sets.iter().for_each(|&set| by_set.entry(set).or_default().push(w.var)),
                Writer::Step(at) => by_step.entry(*at).or_default().push(w.var),
            }
        }
        let mut all = FxHashSet::default();
        for (at, node) in body.nodes.iter().enumerate() {
            let own = match node.kind {
                NodeKind::Execute(set) => by_set.get(&set),
                _ => by_step.get(&at),
            };
            let mut add = |var: VarId| {
                if own.is_none_or(|own| !own.contains(&var)) {
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

/// Returns what all iterations of a loop together write, if each does a write; `None` if that is not known.
fn after_loop(write: &RowWrite, index: Option<VarId>, range: Range) -> Option<RowWrite> {
    let mut all = write.clone();
    all.at.retain(|&(_, number, _)| Some(number) != index);
    match write.at.len() - all.at.len() {
        0 => return Some(all),
        1 if range.step.abs() == 1 => {}
        // Of `x[i, i]`, a loop writes the diagonal.
        _ => return None,
    }
    let (axis, _, plus) = *write.at.iter().find(|&&(_, number, _)| Some(number) == index)?;
    let least = range.start.min(range.at(range.count - 1)).checked_add(plus)?;
    let start = u64::try_from(least).ok()?;
    let rows = write.of.shape()[axis];
    if start.saturating_add(range.count) > rows {
        return None;
    }
    all.of = write.of.slice(axis, start, range.count, 1);
    Some(all)
}
