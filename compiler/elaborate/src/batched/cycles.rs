//! Batched evaluation of `cycles(codelet, …)`: the codelet is looked up once, and its closed form is evaluated for all
//! iterations.
//!
//! Invariant: numbers that are an error in some iteration are left to evaluation one iteration at a time.

use super::evaluator::Evaluator;
use super::expr::given;
use super::{Batch, Found, Ints, Stop, point_count};
use crate::cycles::query::Slot;
use crate::value::{Given, Value};
use girder_codelet::cost::TileCosts;
use girder_source::Span;
use girder_syntax::ast;
use rustc_hash::FxHashMap;

impl<'a> Evaluator<'_, 'a> {
    /// Evaluates `cycles(codelet, name: value, …)`.
    pub(super) fn cycles(&mut self, args: &[ast::Arg], span: Span) -> Found<Batch> {
        let (codelet, rest) = self.base.codelet_argument(args, span)?;
        let tree = self.base.tree();
        let count = point_count(&self.extents);
        let mut arguments: Vec<Given> = vec![];
        let mut moving: Vec<(usize, Vec<i64>)> = vec![];
        for a in rest {
            match self.expr(a.value)? {
                Batch::Ints(ints) => {
                    let list = ints.list(&self.extents);
                    let first = *list.first().ok_or(Stop::Leave)?;
                    if list.iter().any(|&n| n < 0) {
                        return Err(Stop::Leave);
                    }
                    moving.push((arguments.len(), list));
                    let first = Batch::Uniform(Value::Int(first));
                    arguments.push(given(first, a, tree)?);
                }
                batch => arguments.push(given(batch, a, tree)?),
            }
        }
        let names: Vec<_> = moving.iter().map(|(at, _)| arguments[*at].name.clone()).collect();
        let mut query = self.base.query(codelet, arguments, span)?;
        let slots: Vec<Slot> = names.iter().map(|n| query.slot(n)).collect::<Option<_>>().ok_or(Stop::Leave)?;
        self.base.charge_many(count as u64, span)?;
        let costs = TileCosts::from(self.base.machine);
        let mut known: FxHashMap<Vec<i64>, i64> = FxHashMap::default();
        let mut values = Vec::with_capacity(count);
        for k in 0..count {
            let numbers: Vec<i64> = moving.iter().map(|(_, list)| list[k]).collect();
            let cycles = match known.get(&numbers) {
                Some(&cycles) => cycles,
                None => {
                    slots.iter().zip(&numbers).try_for_each(|(&s, &n)| query.set(s, n)).ok_or(Stop::Leave)?;
                    let (cycles, executed) = query.cycles(&costs).ok_or(Stop::Leave)?;
                    self.base.charge_many(executed, span)?;
                    known.insert(numbers, cycles);
                    cycles
                }
            };
            values.push(cycles);
        }
        match moving.is_empty() {
            true => Ok(Batch::Uniform(Value::Int(*values.first().ok_or(Stop::Leave)?))),
            false => Ok(Batch::Ints(Ints::Each(values.into()))),
        }
    }
}
