//! Batched evaluation of reductions over static values: the body is evaluated once for all iterations. A reduction
//! inside another one goes over the same values in all of its iterations, one value after the other.
//!
//! Invariant: the values are those of evaluation one iteration at a time, in its order. A body that cannot be batched,
//! or would be an error in some iteration, is left to it.

use super::evaluator::Evaluator;
use super::expr::{bools, uniform};
use super::subset::Subset;
use super::{Batch, Found, Named, Stop, point_count};
use crate::elaborator::Elaborator;
use crate::integers;
use crate::reduce::REDUCTIONS;
use crate::value::{Range, Tuple, Value};
use girder_source::{Result, Span};
use girder_syntax::ast::{self, BinaryOp, ExprId};
use smol_str::SmolStr;
use std::sync::Arc;

/// Maximal number of iterations of one reduction, which bounds the memory of its evaluation.
const MAX_ITERATIONS: usize = 1 << 20;
/// Below this number of iterations, batching does not pay.
const FEW: usize = 16;
/// The number of outer iterations for which an iteration of an inner reduction is charged as one more step: each of its
/// operations goes over all of them, and it may be repeated without end.
const POINTS: u64 = 16;

/// A value to reduce, with the values of the binders if needed.
type Point = (Value, Option<Value>);
/// Points by iteration.
pub type Reduced = Vec<Point>;

/// The values of an inner reduction so far.
enum Total {
    /// Values that are the same in all outer iterations.
    Values(Vec<Value>),
    /// Their total, if some are not.
    Batch(Box<Batch>),
}

impl<'a> Elaborator<'a> {
    /// Evaluates the values to reduce, with the values of the binders if `located`; `None` if the reduction cannot be
    /// batched.
    pub fn reduced_batched(
        &mut self,
        binders: &'a [ast::Binder],
        filter: Option<ExprId>,
        body: &'a ast::Body,
        located: bool,
    ) -> Result<Option<Reduced>> {
        let parts = self.attempt(|this| {
            let mut parts: Vec<(Vec<Vec<i64>>, Reduced)> = vec![];
            Evaluator::new(this, MAX_ITERATIONS).under(binders, &mut |this| {
                this.split(&mut |this| {
                    this.passed(filter, &mut |this| this.reduced(binders, body, located, &mut parts))
                })
            })?;
            Ok(parts)
        });
        let Some(mut parts) = parts? else { return Ok(None) };
        if let [(_, only)] = &mut parts[..] {
            return Ok(Some(std::mem::take(only)));
        }
        // Restores the order of split iterations.
        let iteration = |at: &[Vec<i64>], k: usize| at.iter().map(|loop_| loop_[k]).collect::<Vec<i64>>();
        let points = parts.into_iter().flat_map(|(at, reduced)| {
            let iterations: Vec<Vec<i64>> = (0..reduced.len()).map(|k| iteration(&at, k)).collect();
            iterations.into_iter().zip(reduced)
        });
        let mut points: Vec<(Vec<i64>, Point)> = points.collect();
        points.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Some(points.into_iter().map(|t| t.1).collect()))
    }
}

impl<'a> Evaluator<'_, 'a> {
    /// Runs `f` in the iterations that pass a filter.
    fn passed(&mut self, filter: Option<ExprId>, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        if point_count(&self.extents) < FEW {
            return Err(Stop::Leave);
        }
        let Some(filter) = filter else { return f(self) };
        match self.expr(filter)? {
            Batch::Uniform(Value::Bool(true)) => f(self),
            Batch::Uniform(Value::Bool(false)) => Ok(()),
            Batch::Bools(bools) => {
                let parts = Subset::by_key(&bools, &self.extents, 2).ok_or(Stop::Leave)?;
                let pass = parts.iter().find(|p| p.0 == 1);
                pass.map_or(Ok(()), |(_, subset)| self.within(subset, &mut |this| this.split(f)))
            }
            _ => Err(Stop::Leave),
        }
    }

    /// Evaluates the body in all iterations.
    fn reduced(
        &mut self,
        binders: &'a [ast::Binder],
        body: &'a ast::Body,
        located: bool,
        parts: &mut Vec<(Vec<Vec<i64>>, Reduced)>,
    ) -> Found<()> {
        let (value, false) = self.body(body)? else { return Err(Stop::Leave) };
        let values = self.listed(&value)?;
        let mut names: Vec<SmolStr> = vec![];
        for b in binders.iter().filter(|_| located) {
            crate::modules::pattern_names(&b.pattern, &mut |n| names.push(n.name.clone()));
        }
        let of = |name: &SmolStr| {
            let named = Named::Name(name.clone());
            let found = self.names.iter().rev().find(|(n, _)| *n == named).ok_or(Stop::Leave)?;
            self.listed(&found.1)
        };
        let batches = names.iter().map(of).collect::<Found<Vec<Vec<Value>>>>()?;
        let binder_values = |k: usize| match &batches[..] {
            [one] => one[k].clone(),
            many => Value::Tuple(Arc::new(Tuple::plain(many.iter().map(|c| c[k].clone()).collect()))),
        };
        let count = values.len();
        self.base.charge_values(count as u64, body.span)?;
        let reduced = values.into_iter().enumerate().map(|(k, v)| (v, located.then(|| binder_values(k)))).collect();
        let at = self.counters.iter().map(|c| c.list(&self.extents)).collect();
        parts.push((at, reduced));
        Ok(())
    }

    /// Evaluates a reduction inside the loops, if its range and its filter are the same in all iterations.
    pub(super) fn inner_reduction(&mut self, r: &'a ast::Reduce, span: Span) -> Found<Batch> {
        let op = r.op.name.as_str();
        // The place of the best value may differ from iteration to iteration.
        if !REDUCTIONS.contains(&op) || op.starts_with("arg") || op == "minimize" {
            return Err(Stop::Leave);
        }
        let (mark, bytes) = (self.names.len(), self.base.session.memory.used());
        let mut total = Total::Values(vec![]);
        let done = self.each_inner(&r.binders, &mut |this| {
            if let Some(filter) = r.filter {
                match this.expr(filter)? {
                    Batch::Uniform(Value::Bool(true)) => {}
                    Batch::Uniform(Value::Bool(false)) => return Ok(()),
                    _ => return Err(Stop::Leave),
                }
            }
            let (value, false) = this.body(&r.body)? else { return Err(Stop::Leave) };
            this.base.charge_values(1, span)?;
            total = this.joined_total(op, std::mem::replace(&mut total, Total::Values(vec![])), value, span)?;
            // Only the total stays.
            let Total::Batch(batch) = &total else { return Ok(()) };
            this.base.session.memory.set_back(bytes + 2 * batch.bytes());
            Ok(())
        });
        self.names.truncate(mark);
        done?;
        match total {
            Total::Batch(batch) => Ok(*batch),
            // Of no values there is no minimum, which is an error.
            Total::Values(values) if values.is_empty() && matches!(op, "min" | "max") => Err(Stop::Leave),
            Total::Values(values) => Ok(Batch::Uniform(self.base.folded(op, values, vec![], span)?)),
        }
    }

    /// Adds a value to those before it.
    fn joined_total(&mut self, op: &str, total: Total, value: Batch, span: Span) -> Found<Total> {
        let (before, value) = match (total, value) {
            // On tensors, an operator is a step.
            (_, Batch::Uniform(Value::Tensor(_) | Value::Array(_))) => return Err(Stop::Leave),
            (Total::Values(mut values), Batch::Uniform(value)) => {
                values.push(value);
                return Ok(Total::Values(values));
            }
            (_, _) if op == "list" => return Err(Stop::Leave),
            (Total::Values(values), value) if values.is_empty() => return Ok(Total::Batch(Box::new(value))),
            (Total::Values(values), value) => (Batch::Uniform(self.base.folded(op, values, vec![], span)?), value),
            (Total::Batch(before), value) => (*before, value),
        };
        let total = match op {
            "sum" => self.binary(BinaryOp::Add, before, value, span)?,
            "product" => self.binary(BinaryOp::Mul, before, value, span)?,
            "any" => Batch::Bools(bools(before)?.zip(&bools(value)?, &self.extents, |a, b| Some(a | b))?),
            "all" => Batch::Bools(bools(before)?.zip(&bools(value)?, &self.extents, |a, b| Some(a & b))?),
            _ => self.folded(vec![before, value], integers::of_two(op).ok_or(Stop::Leave)?)?,
        };
        Ok(Total::Batch(Box::new(total)))
    }

    /// Runs `f` for every combination of values of nested binders, with their names bound.
    fn each_inner(&mut self, binders: &'a [ast::Binder], f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        let Some((first, rest)) = binders.split_first() else { return f(self) };
        let span = self.base.tree().exprs[first.range].span;
        let range = uniform(self.expr(first.range)?)?;
        if !matches!(range, Value::Range(_) | Value::List(_) | Value::Tuple(_)) {
            return Err(Stop::Leave);
        }
        let steps = 1 + point_count(&self.extents) as u64 / POINTS;
        for k in 0..self.base.count(&range, span)? {
            self.base.charge_many(steps, span)?;
            let mark = self.names.len();
            let item = self.base.nth(&range, k);
            let done = self.bind(&first.pattern, Batch::Uniform(item)).and_then(|()| self.each_inner(rest, f));
            self.names.truncate(mark);
            done?;
        }
        Ok(())
    }

    /// Lists a batch as values by iteration.
    fn listed(&self, batch: &Batch) -> Found<Vec<Value>> {
        let count = point_count(&self.extents);
        Ok(match batch {
            Batch::Uniform(Value::Tensor(_) | Value::Array(_)) => return Err(Stop::Leave),
            Batch::Uniform(value) => vec![value.clone(); count],
            Batch::Ints(ints) => ints.list(&self.extents).into_iter().map(Value::Int).collect(),
            Batch::Bools(bools) => bools.list(&self.extents).into_iter().map(|b| Value::Bool(b != 0)).collect(),
            Batch::Values(values) => values.to_vec(),
            Batch::Range { start, count, step } => {
                let range = |start| Value::Range(Range { start, count: *count, step: *step });
                start.list(&self.extents).into_iter().map(range).collect()
            }
            Batch::Tuple { names, parts } => {
                let parts = parts.iter().map(|p| self.listed(p)).collect::<Found<Vec<_>>>()?;
                let tuple =
                    |k: usize| Tuple { names: names.to_vec(), values: parts.iter().map(|p| p[k].clone()).collect() };
                (0..count).map(|k| Value::Tuple(Arc::new(tuple(k)))).collect()
            }
            Batch::View { .. } | Batch::Tile(_) => return Err(Stop::Leave),
        })
    }
}
