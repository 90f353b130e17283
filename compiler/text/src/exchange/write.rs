//! Prints tables as items `exchange NAME { … }`.
//!
//! Invariant: optional values with their defaults are left out, so that equal tables have equal text. The numbers of a
//! row are written in the order of [`Row::numbers`].

use super::rows::{Indices, LocationRun, Receivers, Row, RowFamily, RowRuns, fold, to_rows};
use super::{COLUMNS, INDICES, WIDE, copy_name, phase_name};
use crate::graph::Printer;
use girder_ir::graph::Graph;
use girder_ir::ids::FamilyId;
use girder_ir::plan::{FieldLocations, Loc, Object, Plan};
use girder_ir::schedule::Schedule;
use girder_source::Span;
use girder_syntax::ast::{Arg, BinaryOp, Binder, ExprId, Index, ItemKind, Pattern, TableRow};
use girder_syntax::make::{Make, arg, ident, named, path, table};

/// Adds the items of all compute sets, then of all copies.
pub fn print(p: &mut Printer<'_>, graph: &Graph, plan: &Plan, schedule: Option<&Schedule>) {
    for (id, set) in &graph.sets {
        let locations: Vec<&[FieldLocations]> = set.families.iter().map(|&f| &plan.locations[f][..]).collect();
        let rows = to_rows(&plan.sets[id], &locations, schedule.map(|s| &s.sets[id]));
        item(&mut p.make, graph, &set.name, &set.families, rows);
        p.flush();
    }
    for (id, copy) in &graph.copies {
        let rows = to_rows(&plan.copies[id], &[], schedule.map(|s| &s.copies[id]));
        item(&mut p.make, graph, &copy.name, &[], rows);
        p.flush();
    }
}

fn item(make: &mut Make, graph: &Graph, name: &str, families: &[FamilyId], rows: RowRuns) {
    if rows.0.is_empty() {
        return;
    }
    let rows = fold(rows).iter().map(|family| Writer::new(make, graph, families, family).row()).collect();
    make.item(ItemKind::Exchange { name: path(name), options: vec![], table: table(rows) });
}

/// Writes one family of rows.
struct Writer<'a> {
    make: &'a mut Make,
    graph: &'a Graph,
    families: &'a [FamilyId],
    rows: &'a RowFamily,
    /// The numbers that have not been written.
    numbers: std::vec::IntoIter<Number>,
}

/// A number of a row: its value where all indices are 0, and its step for each index.
#[derive(Clone, PartialEq, Default)]
struct Number {
    base: i64,
    steps: Vec<i64>,
}

impl Number {
    fn is(&self, value: i64) -> bool {
        self.base == value && self.steps.iter().all(|&s| s == 0)
    }

    fn times(mut self, factor: i64) -> Number {
        self.base *= factor;
        self.steps.iter_mut().for_each(|step| *step *= factor);
        self
    }

    fn plus(mut self, other: &Number) -> Number {
        self.base += other.base;
        self.steps.resize(self.steps.len().max(other.steps.len()), 0);
        self.steps.iter_mut().zip(&other.steps).for_each(|(a, b)| *a += b);
        self
    }
}

impl<'a> Writer<'a> {
    fn new(make: &'a mut Make, graph: &'a Graph, families: &'a [FamilyId], rows: &'a RowFamily) -> Writer<'a> {
        let number = |(k, first): (usize, i64)| match &rows.indices {
            Indices::Box(dims) => {
                Number { base: first, steps: dims.iter().map(|d| d.step.get(k).copied().unwrap_or(0)).collect() }
            }
            Indices::Table(table) => {
                let steps: Vec<i64> = table.steps.iter().map(|s| s.get(k).copied().unwrap_or(0)).collect();
                // The first row is at the first entry.
                let there: i64 = steps.iter().zip(table.list.entry(0)).map(|(step, value)| step * value).sum();
                Number { base: first - there, steps }
            }
        };
        let numbers: Vec<Number> = rows.first.numbers().into_iter().enumerate().map(number).collect();
        Writer { make, graph, families, rows, numbers: numbers.into_iter() }
    }

    fn row(mut self) -> TableRow {
        let rows = self.rows;
        let (key, values, to) = match &rows.first {
            Row::Cycles { phase, .. } => {
                let args = [self.make.name(phase_name(*phase)), self.some()];
                let key = self.make.call_name("cycles", args.map(arg).into());
                (key, vec![arg(self.int())], None)
            }
            Row::Links { phase, .. } => {
                let phase = self.make.name(phase_name(*phase));
                let key = self.make.call_name("links", vec![arg(phase)]);
                (key, vec![arg(self.int())], None)
            }
            Row::Carries { copy } => {
                let copy = self.make.name(&self.graph.copies[*copy].name);
                (self.make.name("carries"), vec![arg(copy)], None)
            }
            Row::Slice { phase, slice, to } => self.slice(phase_name(*phase), slice.paired, to.len()),
            Row::Buffers { .. } => {
                let which = self.some();
                let key = self.make.call_name("buffer", vec![arg(which)]);
                let mut values = vec![named("tile", self.int())];
                self.unless_zero(&mut values, "next");
                values.push(named("bytes", self.int()));
                (key, values, None)
            }
            Row::Locations { family, field, at, .. } => {
                let key = self.field_key(*family, *field);
                (key, self.location(at), None)
            }
            Row::Copy { phase, gather, copy } => {
                let key = self.make.name(copy_name(*phase, *gather));
                let values = self.copied(copy.from.object);
                (key, values, Some(self.loc(copy.to.object)))
            }
            Row::Transfer { phase, start, from, to, .. } => self.transfer(phase_name(*phase), *start, *from, to),
        };
        let family = self.binders();
        TableRow::Row { key, values, to, family, span: Span::NONE }
    }

    /// Returns the `for` of the row.
    fn binders(&mut self) -> Vec<Binder> {
        match &self.rows.indices {
            Indices::Box(dims) => {
                let binder = |(name, count): (&&str, u32)| {
                    let range = self.make.span(0, u64::from(count));
                    self.make.binder(name, range)
                };
                INDICES.iter().zip(dims.iter().map(|d| d.count)).map(binder).collect()
            }
            Indices::Table(table) => {
                let columns = table.steps.len();
                let mut names: Vec<Pattern> = COLUMNS[..columns].iter().map(|n| Pattern::Name(ident(n))).collect();
                let pattern = if columns == 1 { names.remove(0) } else { Pattern::Tuple(names, Span::NONE) };
                let range = self.make.integers(table.list.clone());
                vec![Binder { pattern, range, span: Span::NONE }]
            }
        }
    }

    /// Returns the name of an index.
    fn index(&self, k: usize) -> &'static str {
        match self.rows.indices {
            Indices::Box(_) => INDICES[k],
            Indices::Table(_) => COLUMNS[k],
        }
    }

    /// Takes the next number.
    fn next(&mut self) -> Number {
        self.numbers.next().unwrap_or_default()
    }

    /// Takes the next number as an expression.
    fn int(&mut self) -> ExprId {
        let number = self.next();
        self.expr(&number)
    }

    /// Returns an expression such as `5` or `5 + 3 * i - j`.
    fn expr(&mut self, number: &Number) -> ExprId {
        let steps = number.steps.iter().enumerate().filter(|s| *s.1 != 0);
        let base = (number.base != 0 || number.is(0)).then(|| self.make.int(number.base));
        steps
            .fold(base, |sum, (k, &step)| Some(self.term(sum, step, self.index(k))))
            .unwrap_or_else(|| self.make.uint(0))
    }

    /// Adds `step * index` to a sum; `None` is the empty sum.
    fn term(&mut self, sum: Option<ExprId>, step: i64, index: &str) -> ExprId {
        let name = self.make.name(index);
        // After a sum, the sign becomes the operator.
        let factor = if sum.is_some() { step.unsigned_abs() as i64 } else { step };
        let term = match factor {
            1 => name,
            _ => {
                let factor = self.make.int(factor);
                self.make.binary(BinaryOp::Mul, factor, name)
            }
        };
        match sum {
            None => term,
            Some(sum) if step < 0 => self.make.binary(BinaryOp::Sub, sum, term),
            Some(sum) => self.make.binary(BinaryOp::Add, sum, term),
        }
    }

    /// Takes a first number and a count; returns `3` or `3..7`.
    fn some(&mut self) -> ExprId {
        let (first, count) = (self.next(), self.next());
        self.range(first, &count)
    }

    fn range(&mut self, first: Number, count: &Number) -> ExprId {
        let start = self.expr(&first);
        if count.is(1) {
            return start;
        }
        let end = self.expr(&first.plus(count));
        self.make.range(start, end)
    }

    /// Returns `3..11 by 2`.
    fn strided(&mut self, first: Number, count: &Number, step: u32) -> ExprId {
        let (start, by) = (self.expr(&first), self.make.uint(u64::from(step)));
        let end = self.expr(&first.plus(&count.clone().times(i64::from(step))));
        self.make.range_by(start, end, by)
    }

    fn unless_zero(&mut self, values: &mut Vec<Arg>, name: &str) {
        let number = self.next();
        if !number.is(0) {
            values.push(named(name, self.expr(&number)));
        }
    }

    /// Returns `name(args)` or `name(args, wide)`.
    fn timed(&mut self, name: &str, mut args: Vec<ExprId>, paired: bool) -> ExprId {
        args.extend(paired.then(|| self.make.name(WIDE)));
        self.make.call_name(name, args.into_iter().map(arg).collect())
    }

    fn slice(&mut self, phase: &str, paired: bool, receivers: usize) -> (ExprId, Vec<Arg>, Option<ExprId>) {
        let args = vec![self.make.name(phase), self.int(), self.int()];
        let key = self.timed("piece", args, paired);
        let (first, words) = (self.next(), self.next());
        let (start, end) = (self.expr(&first), self.expr(&first.clone().plus(&words)));
        let mut values = vec![arg(self.make.range(start, end))];
        if receivers > 0 {
            let to = (0..receivers).map(|_| self.some()).collect();
            values.push(named("to", self.make.list(to)));
        }
        (key, values, None)
    }

    fn transfer(
        &mut self,
        phase: &str,
        start: Option<(u32, bool)>,
        from: Loc,
        to: &[Receivers],
    ) -> (ExprId, Vec<Arg>, Option<ExprId>) {
        let key = match start {
            None => self.make.name(phase),
            Some((_, paired)) => {
                let cycle = self.int();
                self.timed(phase, vec![cycle], paired)
            }
        };
        let from = self.loc(from.object);
        let values = vec![arg(from), named("words", self.int())];
        let to = to
            .iter()
            .map(|group| {
                let count = self.next();
                self.locs(group.first.object, &count, group.step)
            })
            .collect();
        (key, values, Some(self.make.list(to)))
    }

    fn field_key(&mut self, family: u32, field: u32) -> ExprId {
        let f = &self.graph.families[self.families[family as usize]];
        let name = &self.graph.codelets[f.codelet].fields[f.fields[field as usize].field].name;
        let args = [self.make.uint(family as u64), self.make.name(name), self.some()];
        self.make.call_name("field", args.map(arg).into())
    }

    fn location(&mut self, at: &LocationRun) -> Vec<Arg> {
        let mut values = vec![];
        match at {
            LocationRun::InPlace { strides, .. } => {
                values.push(named("byte", self.int()));
                self.unless_zero(&mut values, "step");
                if !strides.is_empty() {
                    let strides = strides.iter().map(|_| self.int()).collect();
                    values.push(named("strides", self.make.list(strides)));
                }
            }
            LocationRun::Buffer { .. } => {
                values.push(named("buffer", self.int()));
                self.unless_zero(&mut values, "next");
                values.push(named("byte", self.int()));
                self.unless_zero(&mut values, "step");
            }
        }
        values
    }

    fn copied(&mut self, from: Object) -> Vec<Arg> {
        let mut values = vec![arg(self.loc(from)), named("bytes", self.int())];
        let count = self.next();
        if !count.is(1) {
            values.push(named("count", self.expr(&count)));
        }
        let steps = [self.next(), self.next()];
        if !steps.iter().all(|s| s.is(0)) {
            let steps = steps.map(|s| self.expr(&s));
            values.push(named("steps", self.make.list(steps.into())));
        }
        values
    }

    fn loc(&mut self, object: Object) -> ExprId {
        self.locs(object, &Number { base: 1, steps: vec![] }, 1)
    }

    /// Returns `x[3, 64]` or `buffer(4)[0]`; over several tiles or buffers, `x[3..5, 64]` or `buffer(4..10 by 2)[0]`.
    fn locs(&mut self, object: Object, count: &Number, step: u32) -> ExprId {
        let (first, byte) = (self.next(), self.int());
        let which = match step {
            1 => self.range(first, count),
            step => self.strided(first, count, step),
        };
        match object {
            Object::Var(var) => {
                let base = self.make.name(&self.graph.vars[var].name);
                self.make.index(base, vec![Index::Expr(which), Index::Expr(byte)])
            }
            Object::Buffer(_) => {
                let base = self.make.call_name("buffer", vec![arg(which)]);
                self.make.index(base, vec![Index::Expr(byte)])
            }
        }
    }
}
