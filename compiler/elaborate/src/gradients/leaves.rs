//! The gradients by wanted tensors, read out where the walk meets their last writes.
//!
//! The gradient is taken by the contents at the `grad`. If the last write covers a tensor, its adjoint there is the
//! gradient. If it covers a part, the other elements hold what earlier steps have read: the walk notes the adjoints of
//! the part and goes on. At the write before which no element has its contents, the parts are put together, unless
//! nothing was added since the first of them.
//!
//! Invariant: an adjoint by earlier contents never reaches a gradient.

use super::carried::covers;
use super::order::Moment;
use super::state::ReverseWalk;
use super::tape::{Entry, EntryKind, Tape};
use crate::elaborator::Elaborator;
use crate::value::{Given, Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::types::Scalar;
use girder_ir::view::{View, overlap};
use girder_source::{Failed, Result, Span};
use std::rc::Rc;

/// A wanted tensor.
#[derive(Debug)]
pub struct Leaf {
    /// The tensor.
    pub tensor: Tensor,
    /// The moment after its last write.
    pub written: Moment,
    /// The step that made it.
    pub writer: Option<Span>,
    /// The moment from which on some element has its contents; earlier than `written` if writes cover parts of it.
    pub since: Moment,
    /// The parts that were written last, the last first.
    parts: Vec<Part>,
    /// The adjoint of the whole tensor at the first of them, and the number by which additions are counted from there.
    whole: Option<(Option<Tensor>, usize)>,
    /// Its gradient, once it is known; none if the loss does not depend on the tensor.
    pub found: Option<Option<Tensor>>,
    /// The loops, branches and blocks that wrote it, the last first.
    pub controls: Vec<Control>,
    /// Whether the first of those in time perhaps left elements as they were.
    pub perhaps: bool,
}

/// A loop, branch or block that wrote elements of a wanted tensor.
#[derive(Debug)]
pub struct Control {
    /// Its entry.
    pub entry: Rc<Entry>,
    /// The elements that hold what it wrote.
    pub views: Vec<View>,
    /// Whether it writes all of these elements at once, so that no step inside reads some of them after it wrote
    /// others.
    pub at_once: bool,
}

/// Elements that were written, and their adjoint, which is zero if there is none.
#[derive(Debug)]
enum Part {
    /// Elements that a view names.
    Elements(View, Option<Tensor>),
    /// Rows of a tensor from an index on.
    Rows(Tensor, Tensor, Option<u64>, Option<Tensor>),
    /// Rows of a tensor that an index tensor names.
    Table(Tensor, Tensor, Option<Tensor>),
}

/// What an entry does to the elements of a view.
pub(super) enum Written {
    Nothing,
    All,
    /// A loop writes all, row by row.
    AllByRows,
    /// It certainly writes some of these elements, and no others.
    Part(Vec<View>),
    /// It writes all elements or none.
    AllOrNothing,
    /// It perhaps writes some elements.
    Perhaps,
}

impl Elaborator<'_> {
    /// Returns a wanted tensor with the moments of its writes.
    pub(super) fn leaf(&self, chain: &[Tape], tensor: Tensor, now: Moment) -> Leaf {
        let (mut controls, mut perhaps) = (vec![], false);
        let (mut last, mut writer, mut at) = (None, None, now);
        let since = loop {
            let made = self.recorder.written_last(&tensor.view, at);
            let e = entry_at(chain, made);
            let control = e.filter(|e| !e.bodies().is_empty());
            let written = control.map_or(made, |e| e.during.end);
            last = last.or(Some(written));
            writer = writer.or(e.map(|e| e.span));
            let Some(e) = e else { break written };
            let made = writes_to(e, &tensor.view);
            let at_once = match made {
                Written::AllByRows | Written::Perhaps => false,
                Written::AllOrNothing => self.was_written_at_once(chain, &tensor.view, e.during.start),
                _ => true,
            };
            let (part, views) = match made {
                Written::Part(views) => (true, views),
                // Rows that an index selects are noted as a part.
                Written::Perhaps if control.is_none() => (true, vec![]),
                Written::Perhaps | Written::AllOrNothing => {
                    perhaps = true;
                    (false, vec![tensor.view.clone()])
                }
                Written::All | Written::AllByRows | Written::Nothing => (false, vec![tensor.view.clone()]),
            };
            controls.extend(control.map(|e| Control { entry: e.clone(), views, at_once }));
            if !part {
                break written;
            }
            at = e.during.start;
        };
        let written = last.unwrap_or(since);
        Leaf { tensor, written, writer, since, parts: vec![], whole: None, found: None, controls, perhaps }
    }

    /// Returns whether all elements of a view had been written at once, or never, before a moment.
    fn was_written_at_once(&self, chain: &[Tape], view: &View, mut at: Moment) -> bool {
        loop {
            let Some(e) = entry_at(chain, self.recorder.written_last(view, at)) else { return true };
            match writes_to(e, view) {
                Written::All => return true,
                Written::AllOrNothing => at = e.during.start,
                _ => return false,
            }
        }
    }

    /// Reads out the gradients of the leaves whose contents are not older than a moment.
    pub(super) fn read_leaves(&mut self, w: &mut ReverseWalk, since: Moment) -> Result<()> {
        for k in 0..w.leaves.len() {
            let leaf = &mut w.leaves[k];
            if leaf.found.is_some() || leaf.since < since {
                continue;
            }
            let parts = std::mem::take(&mut leaf.parts);
            let t = leaf.tensor.clone();
            let found = match leaf.whole.take() {
                Some((whole, watch)) if w.adjoints.additions(watch) == 0 => whole,
                Some(_) => Some(self.put_together(w, &t, &parts)?),
                None => self.adjoint_now(w, &t, since > 0)?,
            };
            w.leaves[k].found = Some(found);
        }
        Ok(())
    }

    /// Returns the adjoint of a tensor, which later steps of the walk do not change.
    fn adjoint_now(&mut self, w: &mut ReverseWalk, t: &Tensor, goes_on: bool) -> Result<Option<Tensor>> {
        let Some(d) = self.adjoint_of(&mut w.adjoints, t, w.span)? else { return Ok(None) };
        let d = if goes_on && w.adjoints.changes(&d.view) { self.copy_of(&d, w.span)? } else { d };
        w.adjoints.held.extend(d.view.vars());
        Ok(Some(d))
    }

    /// Notes the adjoints of the parts of leaves that an entry wrote last.
    pub(super) fn note_parts(&mut self, w: &mut ReverseWalk, e: &Entry) -> Result<()> {
        let during = &e.during;
        for k in 0..w.leaves.len() {
            let leaf = &w.leaves[k];
            if leaf.found.is_some() || during.start < leaf.since || leaf.written <= during.start {
                continue;
            }
            let views = match writes_to(e, &leaf.tensor.view) {
                Written::Part(views) => views,
                Written::Perhaps => vec![],
                _ => continue,
            };
            let t = leaf.tensor.clone();
            if leaf.whole.is_none() {
                let whole = self.adjoint_now(w, &t, true)?;
                w.leaves[k].whole = Some((whole, w.adjoints.watch(&t.view)));
            }
            let part = match &e.kind {
                EntryKind::Rows { put: true, x, at, count, .. } => {
                    let d = self.adjoint_now(w, x, true)?;
                    let at = if d.is_some() { self.need(w, at, e, false)? } else { at.clone() };
                    let rows = match d {
                        Some(d) => Some(self.rows_of(&d, &at, *count, e.span)?),
                        None => None,
                    };
                    vec![Part::Rows(x.clone(), at, *count, rows)]
                }
                EntryKind::ScatterAdd { x, index, .. } => {
                    let d = self.adjoint_now(w, x, true)?;
                    let index = if d.is_some() { self.need(w, index, e, false)? } else { index.clone() };
                    let rows = match d {
                        Some(d) => Some(self.one_tensor("gather", vec![d.into(), index.clone().into()], e.span)?),
                        None => None,
                    };
                    vec![Part::Table(x.clone(), index, rows)]
                }
                _ => {
                    let mut parts = vec![];
                    for view in views {
                        let d = self.adjoint_now(w, &Tensor { view: view.clone(), ty: t.ty }, true)?;
                        parts.push(Part::Elements(view, d));
                    }
                    parts
                }
            };
            w.leaves[k].parts.extend(part);
        }
        Ok(())
    }

    fn rows_of(&mut self, x: &Tensor, at: &Tensor, count: Option<u64>, span: Span) -> Result<Tensor> {
        let given = |name: &str, value: Value| Given { name: name.into(), value, span };
        let mut list = vec![given("", x.clone().into()), given("", at.clone().into())];
        list.extend(count.map(|n| given("count", Value::Int(n as i64))));
        match self.prelude_given(if count.is_some() { "rows" } else { "row" }, list, span)? {
            Value::Tensor(t) => Ok(Tensor::clone(&t)),
            _ => Err(Failed),
        }
    }

    fn one_tensor(&mut self, function: &str, values: Vec<Value>, span: Span) -> Result<Tensor> {
        match self.prelude_call(function, values, span)? {
            Value::Tensor(t) => Ok(Tensor::clone(&t)),
            _ => Err(Failed),
        }
    }

    /// Returns the gradient by a tensor of which parts were written: the adjoint now, but for those parts.
    fn put_together(&mut self, w: &mut ReverseWalk, t: &Tensor, parts: &[Part]) -> Result<Tensor> {
        let span = w.span;
        let mut moved: Vec<(VarId, VarId)> = vec![];
        let mut touched: Vec<VarId> = t.view.vars().to_vec();
        parts.iter().for_each(|p| touched.extend(p.view().vars()));
        for var in touched {
            if moved.iter().any(|m| m.0 == var) {
                continue;
            }
            let shape = self.graph.vars[var].shape.clone();
            let whole = Tensor { view: View::whole(var, &shape), ty: t.ty };
            let own = self.temporary("gradient", t.ty, &shape, span)?;
            let now = match self.adjoint_of(&mut w.adjoints, &whole, span)? {
                Some(d) => d,
                None => self.zeros_of(t.ty, &shape, span)?,
            };
            self.write(&own, now.into(), span)?;
            moved.extend(own.view.parts.first().map(|p| (var, p.var)));
        }
        let through = |view: &View| {
            let mut view = view.clone();
            for p in &mut view.parts {
                p.var = moved.iter().find(|m| m.0 == p.var).map_or(p.var, |m| m.1);
            }
            Tensor { view, ty: t.ty }
        };
        // What was written later counts.
        for part in parts.iter().rev() {
            let to = through(part.view());
            match part {
                Part::Elements(_, Some(d)) => self.write(&to, d.clone().into(), span)?,
                Part::Elements(_, None) => self.fill(&to, Scalar { ty: t.ty, bits: 0 }, span)?,
                Part::Rows(_, at, count, d) => {
                    let d = match d {
                        Some(d) => d.clone(),
                        None => self.zeros_of(t.ty, &rows_shape(count.as_slice(), &to), span)?,
                    };
                    let given = |name: &str, value: Value| Given { name: name.into(), value, span };
                    let mut list = vec![given("", to.into()), given("", at.clone().into())];
                    list.extend(count.map(|n| given("count", Value::Int(n as i64))));
                    list.push(given("value", d.into()));
                    self.prelude_given(if count.is_some() { "put_rows" } else { "put_row" }, list, span)?;
                }
                Part::Table(_, index, d) => {
                    let d = match d {
                        Some(d) => d.clone(),
                        None => self.zeros_of(t.ty, &rows_shape(&index.view.shape(), &to), span)?,
                    };
                    self.prelude_call("update", vec![to.into(), index.clone().into(), d.into()], span)?;
                }
            }
        }
        let found = through(&t.view);
        w.adjoints.held.extend(found.view.vars());
        Ok(found)
    }
}

impl Part {
    /// Returns the tensor of which it is a part, or its elements.
    fn view(&self) -> &View {
        match self {
            Part::Elements(view, _) => view,
            Part::Rows(x, ..) | Part::Table(x, ..) => &x.view,
        }
    }
}

/// Returns the shape of rows of a tensor, after the axes that count them.
fn rows_shape(axes: &[u64], x: &Tensor) -> Vec<u64> {
    axes.iter().copied().chain(x.view.shape().iter().skip(1).copied()).collect()
}

/// Returns the entry of the open bodies that made a write.
fn entry_at(chain: &[Tape], written: Moment) -> Option<&Rc<Entry>> {
    chain.iter().flat_map(|tape| tape.iter()).find(|e| e.during.start < written && written <= e.during.end)
}

/// Returns what an entry does to the elements of a view. What a compute set writes counts as all.
pub(super) fn writes_to(e: &Entry, view: &View) -> Written {
    match &e.kind {
        EntryKind::Opaque { writes, .. } => match view.vars().iter().any(|v| writes.contains(v)) {
            true => Written::All,
            false => Written::Nothing,
        },
        EntryKind::Repeat { count: 0, .. } => Written::Nothing,
        EntryKind::Repeat { count, index, body, .. } => {
            // A loop over all rows.
            let fills = |e: &Rc<Entry>| match (&e.kind, index) {
                (EntryKind::Rows { put: true, x, at, count: None, .. }, Some((var, first, step))) => {
                    let last = i64::from(*first) + (*count as i64 - 1) * i64::from(*step);
                    let all = x.view.shape().first() == Some(count) && (*first).min(last as i32) == 0;
                    at.view == View::whole(*var, &[]) && all && step.abs() == 1 && covers(&x.view, view)
                }
                _ => false,
            };
            if body.iter().any(fills) { Written::AllByRows } else { together(body.iter().map(|e| writes_to(e, view))) }
        }
        EntryKind::Segment(body) => together(body.iter().map(|e| writes_to(e, view))),
        EntryKind::Par(arms) => together(arms.iter().flat_map(|t| t.iter()).map(|e| writes_to(e, view))),
        EntryKind::Branch { arms, .. } => {
            let of_arm = |t: &Rc<Tape>| together(t.iter().map(|e| writes_to(e, view)));
            arms.iter().map(of_arm).reduce(in_either).unwrap_or(Written::Nothing)
        }
        EntryKind::Rows { put: true, x, .. } | EntryKind::ScatterAdd { x, .. } => match overlap(&x.view, view) {
            Some(_) => Written::Perhaps,
            None => Written::Nothing,
        },
        _ => {
            let (mut part, mut all) = (vec![], false);
            e.results(&mut |v| {
                part.extend(overlap(v, view).map(|_| v.clone()));
                all |= covers(v, view);
            });
            match (all, part.is_empty()) {
                (true, _) => Written::All,
                (false, true) => Written::Nothing,
                (false, false) => Written::Part(part),
            }
        }
    }
}

/// Returns what entries that all run do.
fn together(all: impl Iterator<Item = Written>) -> Written {
    all.fold(Written::Nothing, |known, next| match (known, next) {
        (Written::Nothing, other) | (other, Written::Nothing) => other,
        (Written::All, Written::All | Written::AllOrNothing) | (Written::AllOrNothing, Written::All) => Written::All,
        (Written::AllOrNothing, Written::AllOrNothing) => Written::AllOrNothing,
        (Written::Part(mut views), Written::Part(more)) => {
            views.extend(more.into_iter().filter(|v| !views.contains(v)).collect::<Vec<_>>());
            Written::Part(views)
        }
        // Some elements were read after others had their last contents, perhaps.
        (Written::All | Written::AllByRows, _) | (_, Written::All | Written::AllByRows) => Written::AllByRows,
        _ => Written::Perhaps,
    })
}

/// Returns what two arms do of which one runs.
fn in_either(a: Written, b: Written) -> Written {
    match (a, b) {
        (Written::All, Written::All) => Written::All,
        (Written::Nothing, Written::Nothing) => Written::Nothing,
        (Written::All | Written::AllOrNothing, Written::Nothing | Written::AllOrNothing)
        | (Written::Nothing | Written::AllOrNothing, Written::All | Written::AllOrNothing) => Written::AllOrNothing,
        (Written::All | Written::AllByRows, Written::All | Written::AllByRows) => Written::AllByRows,
        (Written::Part(a), Written::Part(b)) if a.len() == b.len() && a.iter().all(|v| b.contains(v)) => {
            Written::Part(a)
        }
        _ => Written::Perhaps,
    }
}
