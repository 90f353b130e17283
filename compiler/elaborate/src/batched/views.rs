//! Batched evaluation of indexing and views: one view, and its shift in each iteration.
//!
//! Invariant: in every iteration the view is the one that indexing with that iteration's values gives. So an index that
//! varies is accepted only if the form of the result does not depend on it: along an axis that every part spans at the
//! same strides, and, for a range, of one digit. Ranges of several digits are split by where they start.

use super::evaluator::Evaluator;
use super::expr::given;
use super::{Batch, Found, Ints, Stop};
use crate::value::Given;
use crate::value::{Range, Tensor, Value};
use girder_ir::view::{View, ViewPart};
use girder_source::Span;
use girder_syntax::ast::{self, Index};
use std::sync::Arc;

/// The elements that one index selects along an axis.
enum AxisIndex {
    One(Ints),
    Many { start: Ints, count: u64, step: i64 },
    Rest,
}

impl Evaluator<'_, '_> {
    /// Evaluates `base[index, …]`.
    pub(super) fn index(&mut self, base: Batch, index: &[Index]) -> Found<Batch> {
        match base {
            Batch::Uniform(Value::Tensor(t)) => self.index_view(Arc::unwrap_or_clone(t), Ints::constant(0), index),
            Batch::View { like, shift } => self.index_view(like, shift, index),
            Batch::Uniform(Value::List(items)) => {
                let AxisIndex::One(at) = self.only(index, items.len() as u64)? else { return Err(Stop::Leave) };
                if let Some(at) = at.as_constant() {
                    return Ok(Batch::Uniform(items[at as usize].clone()));
                }
                let int = |i: i64| if let Value::Int(i) = items[i as usize] { Some(i) } else { None };
                if let Ok(ints) = at.map(&self.extents, int) {
                    return Ok(Batch::Ints(ints));
                }
                if items.iter().any(|v| matches!(v, Value::Tensor(_) | Value::Array(_))) {
                    return Err(Stop::Leave);
                }
                Ok(Batch::of(at.values(&self.extents).map(|i| items[i as usize].clone()).collect()))
            }
            // Elements that vary are numbers of a vector, such as the bounds of the rows of a sparse matrix.
            Batch::Uniform(Value::Array(a)) if a.shape.len() == 1 => {
                let AxisIndex::One(at) = self.only(index, a.shape[0])? else { return Err(Stop::Leave) };
                Ok(Batch::Ints(at.map(&self.extents, |k| a.int(k as u64))?))
            }
            Batch::Uniform(Value::Range(r)) => match self.only(index, r.count)? {
                AxisIndex::One(at) => {
                    let scaled = at.scale(r.step, &self.extents)?;
                    Ok(Batch::Ints(scaled.add(&Ints::constant(r.start), &self.extents)?))
                }
                _ => Err(Stop::Leave),
            },
            Batch::Uniform(Value::Tuple(t)) => {
                let parts: Vec<Batch> = t.values.iter().cloned().map(Batch::Uniform).collect();
                self.part(&parts, index)
            }
            Batch::Tuple { parts, .. } => self.part(&parts, index),
            Batch::Values(all) => {
                let [Index::Expr(e)] = index else { return Err(Stop::Leave) };
                let at = self.expr(*e)?.ints()?;
                let one = |(v, i): (&Value, i64)| {
                    let i = usize::try_from(i).ok()?;
                    match v {
                        Value::List(l) => l.get(i).cloned(),
                        Value::Tuple(t) => t.values.get(i).cloned(),
                        Value::Range(r) if (i as u64) < r.count => Some(Value::Int(r.at(i as u64))),
                        _ => None,
                    }
                };
                let values: Option<Vec<Value>> = all.iter().zip(at.values(&self.extents)).map(one).collect();
                values.map(Batch::of).ok_or(Stop::Leave)
            }
            _ => Err(Stop::Leave),
        }
    }

    /// Returns the part of a tuple that the only index names in all iterations.
    fn part(&mut self, parts: &[Batch], index: &[Index]) -> Found<Batch> {
        let AxisIndex::One(at) = self.only(index, parts.len() as u64)? else { return Err(Stop::Leave) };
        at.as_constant().map(|k| parts[k as usize].clone()).ok_or(Stop::Leave)
    }

    /// Evaluates the only index, along an axis of length `len`.
    fn only(&mut self, index: &[Index], len: u64) -> Found<AxisIndex> {
        match index {
            [one] => self.axis_index(one, len),
            _ => Err(Stop::Leave),
        }
    }

    fn index_view(&mut self, t: Tensor, mut shift: Ints, index: &[Index]) -> Found<Batch> {
        let mut view = t.view;
        let rank = view.rank();
        let named = index.iter().filter(|i| !matches!(i, Index::Rest(_))).count();
        if named > rank || index.len() - named > 1 {
            return Err(Stop::Leave);
        }
        let mut axis = 0;
        for one in index {
            let len = view.shape().get(axis).copied().unwrap_or(0);
            match self.axis_index(one, len)? {
                AxisIndex::One(i) => {
                    shift = self.moved(&view, axis, &i, shift)?;
                    view = view.index(axis, i.first() as u64);
                }
                AxisIndex::Many { start, count, step } => {
                    let whole = step == 1 && count == len && start.as_constant() == Some(0);
                    if !whole {
                        // A range over several digits has a form that depends on where it starts.
                        if start.as_constant().is_none() && view.axes[axis] > 1 {
                            return Err(Stop::Split(start));
                        }
                        shift = if count > 0 { self.moved(&view, axis, &start, shift)? } else { Ints::constant(0) };
                        view = view.slice(axis, start.first().max(0) as u64, count, step);
                    }
                    axis += 1;
                }
                AxisIndex::Rest => axis += rank - named,
            }
        }
        if view.parts.len() > self.base.session.limits.view_parts as usize {
            return Err(Stop::Leave);
        }
        if view.parts.is_empty() {
            shift = Ints::constant(0);
        }
        Ok(moving(Tensor { view, ty: t.ty }, shift))
    }

    /// Adds to `shift` the movement of a view that is taken at `at` along an axis, relative to the first iteration.
    /// Every part moves alike if each spans the axis at the same strides.
    fn moved(&mut self, view: &View, axis: usize, at: &Ints, shift: Ints) -> Found<Ints> {
        if at.as_constant().is_some() {
            return Ok(shift);
        }
        let digits = view.axis(axis);
        let Some((first, others)) = view.parts.split_first() else { return Ok(shift) };
        let spans = |p: &ViewPart| digits.clone().all(|k| p.len[k] == view.digits[k]);
        if !view.parts.iter().all(spans)
            || others.iter().any(|p| p.stride[digits.clone()] != first.stride[digits.clone()])
        {
            return Err(Stop::Leave);
        }
        let moved = match &first.stride[digits.clone()] {
            [] => return Ok(shift),
            [stride] => at.scale(*stride, &self.extents)?,
            strides => {
                let offset = |i: i64| {
                    let mut rest = i;
                    let of_digit = |(&n, &stride): (&u32, &i64)| {
                        let digit = rest % n as i64;
                        rest /= n as i64;
                        digit * stride
                    };
                    Some(view.digits[digits.clone()].iter().zip(strides).rev().map(of_digit).sum())
                };
                at.map(&self.extents, offset)?
            }
        };
        moved.sub(&Ints::constant(moved.first()), &self.extents)?.add(&shift, &self.extents)
    }

    /// Evaluates one index of an axis of length `len`; an index that is out of range in some iteration is left to
    /// evaluation one iteration at a time.
    fn axis_index(&mut self, index: &Index, len: u64) -> Found<AxisIndex> {
        let range = match index {
            Index::Rest(_) => return Ok(AxisIndex::Rest),
            Index::Expr(e) => match self.expr(*e)? {
                Batch::Uniform(Value::Int(i)) if (0..len as i64).contains(&i) => {
                    return Ok(AxisIndex::One(Ints::constant(i)));
                }
                Batch::Ints(at) => {
                    let (lo, hi) = at.bounds(&self.extents);
                    return if lo < 0 || hi >= len as i64 { Err(Stop::Leave) } else { Ok(AxisIndex::One(at)) };
                }
                range => range,
            },
            Index::Open { start, end, by, .. } => {
                let step = match by {
                    None => 1,
                    Some(by) => self.expr(*by)?.ints()?.as_constant().ok_or(Stop::Leave)?,
                };
                let (first, last) = if step < 0 { (len as i64 - 1, -1) } else { (0, len as i64) };
                let mut bound = |e: &Option<ast::ExprId>, open: i64| match e {
                    None => Ok(Ints::constant(open)),
                    Some(e) => self.expr(*e)?.ints(),
                };
                let (start, end) = (bound(start, first)?, bound(end, last)?);
                self.make_range(start, end, false, step)?
            }
        };
        let (start, count, step) = match range {
            Batch::Uniform(Value::Range(Range { start, count, step })) => (Ints::constant(start), count, step),
            Batch::Range { start, count, step } => (start, count, step),
            _ => return Err(Stop::Leave),
        };
        // An empty range with a negative bound is an error.
        let is_range =
            matches!(index, Index::Expr(e) if matches!(self.base.tree().exprs[*e].kind, ast::ExprKind::Range { .. }));
        if count == 0 && step > 0 && (is_range || matches!(index, Index::Open { end: Some(_), .. })) {
            return Err(Stop::Leave);
        }
        if count > 0 {
            let (lo, hi) = start.bounds(&self.extents);
            let reach = (count as i128 - 1) * step as i128;
            let least = lo as i128 + reach.min(0);
            let most = hi as i128 + reach.max(0);
            if least < 0 || most >= len as i128 {
                return Err(Stop::Leave);
            }
        }
        Ok(AxisIndex::Many { start, count, step })
    }

    /// Evaluates `base.name(args)` of a view. A method that regroups or repeats digits keeps the shift.
    pub(super) fn view_method(
        &mut self,
        base: Batch,
        name: &ast::Ident,
        given: Vec<Given>,
        span: Span,
    ) -> Found<Batch> {
        let (like, shift) = match base {
            Batch::Uniform(Value::Tensor(t)) => (Arc::unwrap_or_clone(t), Ints::constant(0)),
            Batch::View { like, shift } => (like, shift),
            _ => return Err(Stop::Leave),
        };
        if !crate::members::METHODS.contains(&name.name.as_str()) {
            return Err(Stop::Leave);
        }
        match self.base.method(like.into(), name, given, span)? {
            Value::Tensor(like) => {
                let shift = if like.view.parts.is_empty() { Ints::constant(0) } else { shift };
                Ok(moving(Arc::unwrap_or_clone(like), shift))
            }
            _ => Err(Stop::Leave),
        }
    }

    /// Evaluates `base.strided(offset, dims, strides)` of printed text: the view moves with its offset.
    pub(super) fn strided(&mut self, base: Batch, name: &ast::Ident, args: &[ast::Arg], span: Span) -> Found<Batch> {
        let Batch::Uniform(Value::Tensor(t)) = base else { return Err(Stop::Leave) };
        let tree = self.base.tree();
        let (mut all, mut offset) = (vec![], None);
        for a in args {
            all.push(match self.expr(a.value)? {
                Batch::Ints(at) if offset.is_none() && a.name.as_ref().is_some_and(|n| n.name == "offset") => {
                    let first = Batch::Uniform(Value::Int(at.first()));
                    offset = Some(at);
                    given(first, a, tree)?
                }
                other => given(other, a, tree)?,
            });
        }
        let Some(offset) = offset else {
            return Ok(Batch::Uniform(self.base.method(Value::Tensor(t), name, all, span)?));
        };
        let list = |name: &str| {
            let of = all.iter().find(|g| g.name == name).map(|g| &g.value);
            let Some(Value::List(items)) = of else { return None };
            items.iter().map(|v| if let Value::Int(i) = v { Some(*i) } else { None }).collect::<Option<Vec<i64>>>()
        };
        let (Some(dims), Some(strides)) = (list("dims"), list("strides")) else { return Err(Stop::Leave) };
        // Inside the tensor at the least and the greatest offset, the view is inside at all of them.
        let (least, most) = crate::members::reach(&dims, &strides);
        let (lo, hi) = offset.bounds(&self.extents);
        if lo as i128 + least < 0 || hi as i128 + most >= t.view.len() as i128 {
            return Err(Stop::Leave);
        }
        let Value::Tensor(like) = self.base.method(Value::Tensor(t), name, all, span)? else { return Err(Stop::Leave) };
        let moved = offset.sub(&Ints::constant(offset.first()), &self.extents)?;
        let shift = if like.view.parts.is_empty() { Ints::constant(0) } else { moved };
        Ok(moving(Arc::unwrap_or_clone(like), shift))
    }
}

/// Makes a batch of a view and its shift.
fn moving(like: Tensor, shift: Ints) -> Batch {
    match shift.as_constant() {
        Some(0) => Batch::Uniform(like.into()),
        _ => Batch::View { like, shift },
    }
}
