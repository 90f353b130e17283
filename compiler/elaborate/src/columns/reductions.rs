//! Reductions over static values in columns: what is reduced is evaluated once for all turns.
//!
//! Invariant: values and places are those of the evaluation turn by turn, in its order; what cannot be evaluated so, or would be
//! an error in some turn, is left to it.

use super::nest::Nest;
use super::pick::Pick;
use super::{Column, Found, Named, Stop, point_count};
use crate::elaborator::Elaborator;
use crate::value::{Range, Tuple, Value};
use girder_source::Result;
use girder_syntax::ast::{self, ExprId};
use smol_str::SmolStr;
use std::sync::Arc;

/// Turns of one reduction, which take room while they are evaluated.
const MAX_TURNS: usize = 1 << 20;
/// Fewer turns are as soon evaluated one by one.
const FEW: usize = 16;

/// What is reduced, and what the binders are worth there.
type Point = (Value, Option<Value>);
/// By turn.
pub type Reduced = Vec<Point>;

impl<'a> Elaborator<'a> {
    /// What a reduction reduces, with what its binders are worth if `placed`; nothing if it is left.
    pub fn reduced_in_columns(
        &mut self,
        binders: &'a [ast::Binder],
        filter: Option<ExprId>,
        body: &'a ast::Body,
        placed: bool,
    ) -> Result<Option<Reduced>> {
        let parts = self.attempt(|this| {
            let mut parts: Vec<(Vec<Vec<i64>>, Reduced)> = vec![];
            Nest::new(this, MAX_TURNS).under(binders, &mut |this| {
                this.parted(&mut |this| {
                    this.passed(filter, &mut |this| this.reduced(binders, body, placed, &mut parts))
                })
            })?;
            Ok(parts)
        });
        let Some(mut parts) = parts? else { return Ok(None) };
        if let [(_, only)] = &mut parts[..] {
            return Ok(Some(std::mem::take(only)));
        }
        // Turns that were parted go back to where they were.
        let turn = |at: &[Vec<i64>], k: usize| at.iter().map(|loop_| loop_[k]).collect::<Vec<i64>>();
        let turns = parts.into_iter().flat_map(|(at, reduced)| {
            let turns: Vec<Vec<i64>> = (0..reduced.len()).map(|k| turn(&at, k)).collect();
            turns.into_iter().zip(reduced)
        });
        let mut turns: Vec<(Vec<i64>, Point)> = turns.collect();
        turns.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Some(turns.into_iter().map(|t| t.1).collect()))
    }
}

impl<'a> Nest<'_, 'a> {
    /// Runs `f` in the turns that pass a filter.
    fn passed(&mut self, filter: Option<ExprId>, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        if point_count(&self.lens) < FEW {
            return Err(Stop::Leave);
        }
        let Some(filter) = filter else { return f(self) };
        match self.expr(filter)? {
            Column::Known(Value::Bool(true)) => f(self),
            Column::Known(Value::Bool(false)) => Ok(()),
            Column::Bools(bools) => {
                let parts = Pick::by_key(&bools, &self.lens, 2).ok_or(Stop::Leave)?;
                let pass = parts.iter().find(|p| p.0 == 1);
                pass.map_or(Ok(()), |(_, pick)| self.within(pick, &mut |this| this.parted(f)))
            }
            _ => Err(Stop::Leave),
        }
    }

    fn reduced(
        &mut self,
        binders: &'a [ast::Binder],
        body: &'a ast::Body,
        placed: bool,
        parts: &mut Vec<(Vec<Vec<i64>>, Reduced)>,
    ) -> Found<()> {
        let (value, false) = self.body(body)? else { return Err(Stop::Leave) };
        let values = self.listed(&value)?;
        let mut names: Vec<SmolStr> = vec![];
        for b in binders.iter().filter(|_| placed) {
            crate::modules::pattern_names(&b.pattern, &mut |n| names.push(n.name.clone()));
        }
        let of = |name: &SmolStr| {
            let named = Named::Name(name.clone());
            let found = self.names.iter().rev().find(|(n, _)| *n == named).ok_or(Stop::Leave)?;
            self.listed(&found.1)
        };
        let columns = names.iter().map(of).collect::<Found<Vec<Vec<Value>>>>()?;
        let place = |k: usize| match &columns[..] {
            [one] => one[k].clone(),
            many => Value::Tuple(Arc::new(Tuple::plain(many.iter().map(|c| c[k].clone()).collect()))),
        };
        let count = values.len();
        self.base.charge_values(count as u64, body.span)?;
        let reduced = values.into_iter().enumerate().map(|(k, v)| (v, placed.then(|| place(k)))).collect();
        let at = self.counters.iter().map(|c| c.list(&self.lens)).collect();
        parts.push((at, reduced));
        Ok(())
    }

    /// A column as values by turn.
    fn listed(&self, column: &Column) -> Found<Vec<Value>> {
        let count = point_count(&self.lens);
        Ok(match column {
            Column::Known(Value::Tensor(_) | Value::Array(_)) => return Err(Stop::Leave),
            Column::Known(value) => vec![value.clone(); count],
            Column::Ints(ints) => ints.list(&self.lens).into_iter().map(Value::Int).collect(),
            Column::Bools(bools) => bools.list(&self.lens).into_iter().map(|b| Value::Bool(b != 0)).collect(),
            Column::Values(values) => values.to_vec(),
            Column::Range { start, count, step } => {
                let range = |start| Value::Range(Range { start, count: *count, step: *step });
                start.list(&self.lens).into_iter().map(range).collect()
            }
            Column::Tuple { names, parts } => {
                let parts = parts.iter().map(|p| self.listed(p)).collect::<Found<Vec<_>>>()?;
                let tuple =
                    |k: usize| Tuple { names: names.to_vec(), values: parts.iter().map(|p| p[k].clone()).collect() };
                (0..count).map(|k| Value::Tuple(Arc::new(tuple(k)))).collect()
            }
            Column::View { .. } | Column::Tile(_) => return Err(Stop::Leave),
        })
    }
}
