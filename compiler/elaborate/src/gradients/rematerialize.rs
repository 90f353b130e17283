//! Rematerialization: the reverse loop computes some values of a loop's body again instead of reading a stash. These
//! are integers that are computed from indices, and rows of tensors that are still there.
//!
//! Invariant: a value is computed again by the same operations from equal operands, so it has the same bits.

use super::order::Moment;
use super::state::ReverseWalk;
use super::tape::{EachOf, Entry, EntryKind};
use crate::elaborator::Elaborator;
use crate::value::{Given, Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::view::View;
use girder_source::{Failed, Result};
use std::rc::Rc;

/// The greatest number of operations by which a value is rematerialized. A stash takes one step in the forward loop and
/// one in the reverse loop.
const OPERATIONS: u32 = 3;

impl Elaborator<'_> {
    /// Rematerializes a value of an iteration, if that is as cheap as keeping it. Loop `k` is the innermost in which it
    /// varies; `since` is the moment at which it is needed.
    pub(super) fn rematerialized(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        t: &Tensor,
        since: Moment,
    ) -> Result<Option<Tensor>> {
        let mut left = OPERATIONS;
        if !self.can_rematerialize(w, k, t, since, &mut left) {
            return Ok(None);
        }
        let Some((e, made)) = self.maker_in_loop(w, k, t, since) else { return Ok(None) };
        let given = |name: &str, value: Value| Given { name: name.into(), value, span: e.span };
        let mut list = vec![];
        let call = match &e.kind {
            EntryKind::Each { function, operands, .. } => {
                for (v, _) in operands {
                    let value = match v {
                        Value::Tensor(x) => self.need(w, x, &e, false)?.into(),
                        number => number.clone(),
                    };
                    list.push(given("", value));
                }
                Some(function.clone())
            }
            EntryKind::Rows { x, at, count, .. } => {
                list.push(given("", self.need(w, x, &e, false)?.into()));
                list.push(given("", self.need(w, at, &e, false)?.into()));
                list.extend(count.map(|n| given("count", Value::Int(n as i64))));
                None
            }
            _ => return Ok(None),
        };
        let rows = if list.len() > 2 { "rows" } else { "row" };
        let depth = w.loops[k].depth;
        let new = self.hoisted(depth, |this| {
            this.untaped(|this| match call {
                None => this.prelude_given(rows, list, e.span),
                Some(EachOf::Fn(module, item)) => this.call_fn(module, item, list, e.span),
                Some(_) => match list.pop().map(|g| g.value) {
                    Some(Value::Tensor(x)) => this.convert_each(Tensor::clone(&x), t.ty, e.span).map(Value::from),
                    _ => Err(Failed),
                },
            })
        })?;
        let Value::Tensor(new) = new else { return Err(Failed) };
        Ok(seen_in(&t.view, &made.view, &new.view).map(|view| Tensor { view, ty: t.ty }))
    }

    /// Returns whether a value of an iteration can be rematerialized by at most `left` operations. Takes them from
    /// `left`.
    fn can_rematerialize(&self, w: &ReverseWalk, k: usize, t: &Tensor, since: Moment, left: &mut u32) -> bool {
        let Some((e, made)) = self.maker_in_loop(w, k, t, since) else { return false };
        if *left == 0 || seen_in(&t.view, &made.view, &made.view).is_none() {
            return false;
        }
        *left -= 1;
        let at = e.during.start;
        match &e.kind {
            EntryKind::Each { function: EachOf::Fn(..) | EachOf::Convert, operands, outs } => {
                outs.len() == 1
                    && !t.ty.is_float()
                    && t.view.len() == 1
                    && operands.iter().all(|(v, ty)| match v {
                        Value::Tensor(x) => !ty.is_float() && self.has_operand(w, x, at, left),
                        _ => true,
                    })
            }
            EntryKind::Rows { put: false, x, at: index, .. } => {
                let kept: u64 = w.loops[..=k].iter().map(|l| l.count).product::<u64>().saturating_mul(made.view.len());
                let lasting = x.view.vars().iter().all(|&v| self.graph.vars[v].is_persistent()) || x.view.len() <= kept;
                lasting && self.is_still_there(w, x, at) && self.has_operand(w, index, at, left)
            }
            _ => false,
        }
    }

    /// Returns whether the reverse loop has an operand without a stash.
    fn has_operand(&self, w: &ReverseWalk, x: &Tensor, at: Moment, left: &mut u32) -> bool {
        match (0..w.loops.len()).rev().find(|&k| self.varies(w, k, &x.view)) {
            Some(k) if w.loops[k].index.is_some_and(|(v, ..)| x.view.parts.iter().any(|p| p.var == v)) => true,
            Some(k) => self.can_rematerialize(w, k, x, at, left),
            None => self.lost(w, &x.view, at).is_none(),
        }
    }

    fn is_still_there(&self, w: &ReverseWalk, x: &Tensor, at: Moment) -> bool {
        !(0..w.loops.len()).any(|k| self.varies(w, k, &x.view)) && self.lost(w, &x.view, at).is_none()
    }

    /// Returns the operation, directly in the body of a loop, that alone makes a tensor, and what it makes.
    fn maker_in_loop(&self, w: &ReverseWalk, k: usize, t: &Tensor, since: Moment) -> Option<(Rc<Entry>, Tensor)> {
        let [part] = &t.view.parts[..] else { return None };
        let made = |e: &&Rc<Entry>| {
            let mut makes = false;
            e.results(&mut |v| makes |= v.parts.iter().any(|p| p.var == part.var));
            makes && e.during.end <= since
        };
        let e = w.loops[k].body.iter().rev().find(made)?;
        let alone = self.recorder.writes_of(part.var, &w.loops[k].during).all(|write| e.during.contains(&write.at));
        let result = match &e.kind {
            EntryKind::Each { outs, .. } => outs.first()?,
            EntryKind::Rows { put: false, value, .. } => value,
            _ => return None,
        };
        alone.then(|| (e.clone(), result.clone()))
    }
}

/// Returns a view of the variable of `made` as the same view of the variable of `new`, if the two are alike.
fn seen_in(view: &View, made: &View, new: &View) -> Option<View> {
    let ([_], [_], [part]) = (&view.parts[..], &made.parts[..], &new.parts[..]) else { return None };
    let moved = |view: &View, to: VarId| {
        let mut view = view.clone();
        view.parts.iter_mut().for_each(|p| p.var = to);
        view
    };
    (moved(made, part.var) == *new).then(|| moved(view, part.var))
}
