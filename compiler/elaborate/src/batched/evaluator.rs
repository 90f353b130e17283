//! The state of a batched evaluation: the enclosing loops, the names inside them, and the splitting of iterations.
//!
//! Invariant: every batch in scope has one value for each iteration of `extents`.

use super::statement::Statement;
use super::subset::{Subset, inside, inside_ints};
use super::{Batch, Extents, Found, Ints, Named, Stop, point_count};
use crate::elaborator::Elaborator;
use crate::value::Value;
use girder_syntax::ast;

/// Maximal number of parts into which shapes and branches may split one loop; beyond it, iterations are evaluated one
/// by one.
const MAX_PARTS: usize = 256;

/// A batched evaluation.
pub(super) struct Evaluator<'n, 'a> {
    /// The state outside the loops.
    pub base: &'n mut Elaborator<'a>,
    /// The box of iterations that are evaluated together.
    pub extents: Extents,
    /// Names of the loops and of `let`s inside them, innermost last; integers of repeated statements.
    pub names: Vec<(Named, Batch)>,
    /// The iteration of each loop, counted from 0.
    pub counters: Vec<Ints>,
    /// The indices of the loops, for messages.
    pub indices: Vec<Ints>,
    /// The extents of the loops in the text, even if only some of their iterations are evaluated.
    pub loop_extents: Vec<u32>,
    /// The position of the current statement: numbers of items and iterations of loops.
    pub path: Vec<Ints>,
    /// The statements evaluated so far.
    pub found: Vec<Statement<'a>>,
    /// Maximal number of iterations.
    limit: usize,
}

/// The state of an evaluator while it evaluates a subset of iterations or an inner loop.
struct Saved {
    extents: Extents,
    names: Vec<(Named, Batch)>,
    counters: Vec<Ints>,
    indices: Vec<Ints>,
    path: Vec<Ints>,
}

impl Saved {
    /// Returns the bytes of its tables.
    fn bytes(&self) -> u64 {
        let lists = self.counters.iter().chain(&self.indices).chain(&self.path).map(Ints::bytes);
        self.names.iter().map(|(_, batch)| batch.bytes()).chain(lists).sum()
    }
}

impl<'n, 'a> Evaluator<'n, 'a> {
    /// Creates an evaluator outside all loops, with a limit on iterations.
    pub(super) fn new(base: &'n mut Elaborator<'a>, limit: usize) -> Evaluator<'n, 'a> {
        Evaluator {
            base,
            extents: Extents::new(),
            names: vec![],
            counters: vec![],
            indices: vec![],
            loop_extents: vec![],
            path: vec![],
            found: vec![],
            limit,
        }
    }

    /// Runs `f`; if it asks for a split, runs it again for each part of the iterations.
    pub(super) fn split(&mut self, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        match f(self) {
            Err(Stop::Split(keys)) => self.split_by(&keys, &mut |this| this.split(f)),
            done => done,
        }
    }

    /// Runs `f` for the iterations of each key.
    pub(super) fn split_by(&mut self, keys: &Ints, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        let parts = Subset::by_key(keys, &self.extents, MAX_PARTS).ok_or(Stop::Leave)?;
        let mut failed = false;
        for (_, subset) in parts {
            match self.within(&subset, f) {
                Ok(()) => {}
                Err(Stop::Failed) => failed = true,
                Err(stop) => return Err(stop),
            }
        }
        if failed { Err(Stop::Failed) } else { Ok(()) }
    }

    /// Runs `f` for a non-empty subset of the iterations.
    pub(super) fn within(&mut self, subset: &Subset, f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        let extents = &self.extents;
        let part = Saved {
            extents: subset.extents(),
            names: self.names.iter().map(|(n, batch)| (n.clone(), subset.batch(batch, extents))).collect(),
            counters: self.counters.iter().map(|c| subset.ints(c, extents)).collect(),
            indices: self.indices.iter().map(|c| subset.ints(c, extents)).collect(),
            path: self.path.iter().map(|c| subset.ints(c, extents)).collect(),
        };
        self.base.takes(part.bytes());
        let all = self.swap(part);
        let done = f(self);
        self.swap(all);
        done
    }

    fn swap(&mut self, saved: Saved) -> Saved {
        Saved {
            extents: std::mem::replace(&mut self.extents, saved.extents),
            names: std::mem::replace(&mut self.names, saved.names),
            counters: std::mem::replace(&mut self.counters, saved.counters),
            indices: std::mem::replace(&mut self.indices, saved.indices),
            path: std::mem::replace(&mut self.path, saved.path),
        }
    }

    /// Runs `f` inside loops.
    pub(super) fn under(&mut self, binders: &'a [ast::Binder], f: &mut dyn FnMut(&mut Self) -> Found<()>) -> Found<()> {
        let Some((first, rest)) = binders.split_first() else { return f(self) };
        self.split(&mut |this| {
            let span = this.base.tree().exprs[first.range].span;
            let range = this.expr(first.range)?;
            let count = this.iterations(&range)?;
            this.base.charge_many(count, span)?;
            if count == 0 {
                return Ok(());
            }
            let total = point_count(&this.extents) as u64 * count;
            // Lists of this length would not fit; one at a time, iterations are charged as they are evaluated.
            let room = this.base.room() / (4 * size_of::<i64>() as u64);
            if total > room.min(this.limit as u64) {
                return Err(Stop::Leave);
            }
            let n = count as u32;
            let dim = this.extents.len();
            let mut saved = Saved {
                extents: this.extents.iter().copied().chain([n]).collect(),
                names: this.names.iter().map(|(name, c)| (name.clone(), inside(c, n))).collect(),
                counters: this.counters.iter().map(|c| inside_ints(c, n)).collect(),
                indices: this.indices.iter().map(|c| inside_ints(c, n)).collect(),
                path: this.path.iter().map(|c| inside_ints(c, n)).collect(),
            };
            this.base.charge_bytes(saved.bytes(), span)?;
            saved.counters.push(Ints::index(dim));
            saved.path.push(Ints::index(dim));
            let outer = this.swap(saved);
            this.loop_extents.push(n);
            let done = this.nth(range, &outer.extents, n).and_then(|item| {
                let index = if let Batch::Ints(ints) = &item { ints.clone() } else { Ints::index(dim) };
                this.indices.push(index);
                this.bind(&first.pattern, item)?;
                this.under(rest, f)
            });
            this.loop_extents.pop();
            this.swap(outer);
            done
        })
    }

    /// Counts the iterations that a `for` over a batch has in each iteration.
    fn iterations(&mut self, range: &Batch) -> Found<u64> {
        match range {
            Batch::Range { count, .. } => Ok(*count),
            Batch::Uniform(Value::Range(r)) => Ok(r.count),
            Batch::Uniform(Value::List(l)) => Ok(l.len() as u64),
            _ => Err(Stop::Leave),
        }
    }

    /// Returns the batch of a loop index over `range`; the loop is inside those of `outer`.
    fn nth(&mut self, range: Batch, outer: &Extents, n: u32) -> Found<Batch> {
        let iteration = Ints::index(outer.len());
        match range {
            Batch::Uniform(Value::Range(r)) => {
                self.nth(Batch::Range { start: Ints::constant(r.start), count: r.count, step: r.step }, outer, n)
            }
            Batch::Range { start, step, .. } => {
                let start = inside_ints(&start, n);
                Ok(Batch::Ints(iteration.scale(step, &self.extents)?.add(&start, &self.extents)?))
            }
            Batch::Uniform(Value::List(l)) => {
                if l.iter().any(|v| matches!(v, Value::Tensor(_) | Value::Array(_))) {
                    return Err(Stop::Leave);
                }
                let int = |k: i64| if let Value::Int(i) = l[k as usize] { Some(i) } else { None };
                if let Ok(ints) = iteration.map(&self.extents, int) {
                    return Ok(Batch::Ints(ints));
                }
                let all = iteration.values(&self.extents).map(|k| l[k as usize].clone()).collect();
                Ok(Batch::of(all))
            }
            _ => Err(Stop::Leave),
        }
    }

    /// Binds the names of a pattern to a batch.
    pub(super) fn bind(&mut self, pattern: &ast::Pattern, value: Batch) -> Found<()> {
        match pattern {
            ast::Pattern::Name(name) => self.names.push((Named::Name(name.name.clone()), value)),
            ast::Pattern::Wildcard(_) => {}
            ast::Pattern::Tuple(parts, _) => {
                for (k, part) in parts.iter().enumerate() {
                    let member = self.member_of(&value, k, parts.len())?;
                    self.bind(part, member)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the k-th of `count` members of a tuple.
    fn member_of(&self, value: &Batch, k: usize, count: usize) -> Found<Batch> {
        let member = |v: &Value| match v {
            Value::Tuple(t) if t.values.len() == count => Some(t.values[k].clone()),
            Value::List(l) if l.len() == count => Some(l[k].clone()),
            _ => None,
        };
        match value {
            Batch::Uniform(v) => member(v).map(Batch::Uniform).ok_or(Stop::Leave),
            Batch::Tuple { parts, .. } if parts.len() == count => Ok(parts[k].clone()),
            Batch::Values(all) => all.iter().map(member).collect::<Option<Vec<_>>>().map(Batch::of).ok_or(Stop::Leave),
            _ => Err(Stop::Leave),
        }
    }
}
