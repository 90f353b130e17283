//! Reads the items `exchange NAME { … }` to tables.
//!
//! Invariant: a row of the wrong form is an error at its span; all rows of all items are read.

use super::rows::{
    Dim, Indices, LocationRun, Numbers, Receivers, Row, RowFamily, Table, Tables, When, WrongRow, from_rows,
};
use super::{WIDE, phase_name};
use crate::values::{Columns, HELP, MOST, Options, Values, Wrong, bad_row};
use girder_ir::graph::Graph;
use girder_ir::ids::{FamilyId, VarId};
use girder_ir::plan::{Loc, LocalCopy, Object, Plan};
use girder_ir::schedule::{Schedule, Served, TransferSlice};
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Span};
use girder_syntax::ast::{self, Arg, ExprId, ExprKind, Index, ItemKind, TableRow};
use std::collections::{HashMap, HashSet};

/// Reads the plan, and the schedule if there is one, from a text.
pub fn read(
    graph: &Graph,
    scheduled: bool,
    tree: &ast::Module,
    diagnostics: &mut Diagnostics,
) -> Result<(Plan, Option<Schedule>)> {
    let items = items(graph, tree, diagnostics);
    let vars = graph.vars.iter().map(|(id, v)| (v.name.as_str(), id)).collect();
    let mut reader = Reader { graph, values: Values::new(tree), vars, diagnostics, wrong: 0 };
    let mut failed = items.is_err();
    let items = items.unwrap_or_default();
    let (mut plan, mut schedule) = (Plan::default(), Schedule::default());
    for (id, set) in &graph.sets {
        let Ok(read) = reader.tables(items.get(set.name.as_str()), &set.name, &set.families, scheduled) else {
            failed = true;
            continue;
        };
        plan.sets[id] = read.plan;
        schedule.sets[id] = read.schedule.unwrap_or_default();
        for (&f, locations) in set.families.iter().zip(read.locations) {
            plan.locations[f] = locations;
        }
    }
    for (id, copy) in &graph.copies {
        let Ok(read) = reader.tables(items.get(copy.name.as_str()), &copy.name, &[], scheduled) else {
            failed = true;
            continue;
        };
        plan.copies[id] = read.plan;
        schedule.copies[id] = read.schedule.unwrap_or_default();
    }
    if failed { Err(Failed) } else { Ok((plan, scheduled.then_some(schedule))) }
}

/// The table of each compute set and copy by name, with the span of the item.
type Items<'a> = HashMap<&'a str, (&'a ast::Table, Span)>;

/// Collects the items by name.
fn items<'a>(graph: &'a Graph, tree: &'a ast::Module, diagnostics: &mut Diagnostics) -> Result<Items<'a>> {
    let sets = graph.sets.values().map(|s| s.name.as_str());
    let known: HashSet<&str> = sets.chain(graph.copies.values().map(|c| c.name.as_str())).collect();
    let mut items = Items::new();
    let mut failed = false;
    for item in &tree.items {
        let ItemKind::Exchange { name, table, .. } = &item.kind else { continue };
        let dotted = name.dotted();
        let error = match known.get(dotted.as_str()) {
            None => {
                let message = format!("there is no compute set or copy `{dotted}`");
                Diagnostic::error("names::unknown", name.span, message)
            }
            Some(&known) => match items.insert(known, (table, item.span)) {
                None => continue,
                Some((_, first)) => {
                    let message = format!("`{dotted}` has two tables");
                    let d = Diagnostic::error("resume::duplicate_table", name.span, message);
                    d.label(first, "the first").help("remove one")
                }
            },
        };
        diagnostics.push(error);
        failed = true;
    }
    if failed { Err(Failed) } else { Ok(items) }
}

/// Returns how the numbers of a row differ from those of another; `None` if the rows differ in more than numbers.
fn steps(first: &Row, next: &Row) -> Option<Numbers> {
    let differences = |a: Numbers, b: Numbers| a.iter().zip(&b).map(|(a, b)| a.wrapping_sub(*b)).collect();
    next.is_like(first).then(|| differences(next.numbers(), first.numbers()))
}

struct Reader<'a> {
    graph: &'a Graph,
    values: Values<'a>,
    vars: HashMap<&'a str, VarId>,
    diagnostics: &'a mut Diagnostics,
    /// Errors so far.
    wrong: usize,
}

impl<'a> Reader<'a> {
    /// Reads the tables of one step.
    fn tables(
        &mut self,
        item: Option<&(&'a ast::Table, Span)>,
        name: &str,
        families: &[FamilyId],
        scheduled: bool,
    ) -> Result<Tables> {
        let (rows, spans) = self.rows(item.map_or(&[], |i| &i.0.rows), families)?;
        let shape = |f: &FamilyId| (self.graph.families[*f].domain.count(), self.graph.families[*f].fields.len());
        let read = from_rows(&rows, &families.iter().map(shape).collect::<Vec<_>>());
        let whole = item.map_or(Span::NONE, |i| i.1);
        let error = match read {
            // The verifier of the schedule finds what is missing.
            Ok(read) if scheduled || read.schedule.is_none() => return Ok(read),
            Ok(_) => {
                let message = format!("`{name}` has start cycles, but the header says that it is not scheduled");
                bad_row(whole, &message, "write `after: \"schedule-exchange\"` in the header")
            }
            Err((WrongRow { family, member }, why)) => {
                let entry = rows.get(family).and_then(|row| match &row.indices {
                    Indices::Table(table) if member < table.list.len() => Some(table.list.span(member)),
                    _ => None,
                });
                let span = entry.or(spans.get(family).copied()).unwrap_or(whole);
                let why = if item.is_none() { format!("`{name}` has no table: {why}") } else { why };
                bad_row(span, &why, HELP)
            }
        };
        self.diagnostics.push(error);
        Err(Failed)
    }

    /// Reads the rows of one table. Also returns their spans.
    fn rows(&mut self, table: &'a [TableRow], families: &[FamilyId]) -> Result<(Vec<RowFamily>, Vec<Span>)> {
        let (mut rows, mut spans) = (Vec::with_capacity(table.len()), Vec::with_capacity(table.len()));
        let exprs = &self.values.tree().exprs;
        for row in table {
            match row {
                TableRow::On { place, .. } => {
                    let why = "`on` is not allowed here".into();
                    self.keep(exprs[*place].span, Err(why), &mut rows, &mut spans)?;
                }
                TableRow::Row { key, values, to, family, span } => {
                    let row = |r: &Self| r.row(*key, values, *to, families);
                    let columns = self.values.columns(family);
                    // A table may have thousands of lines, which a report leaves out.
                    let span = match (&columns, family.first()) {
                        (Some(_), Some(binder)) => &Span::new(span.lo, exprs[binder.range].span.lo),
                        _ => span,
                    };
                    match columns {
                        None => {
                            let read = self.over_box(family, row);
                            self.keep(*span, read, &mut rows, &mut spans)?;
                        }
                        Some(Ok(columns)) if let Some(read) = self.over_table(&columns, row) => {
                            self.keep(*span, Ok(read), &mut rows, &mut spans)?;
                        }
                        Some(Ok(columns)) => {
                            for (k, entry) in columns.list.entries().enumerate() {
                                let read = self.at(&columns.names, &entry, row).map(RowFamily::one);
                                let failed = read.is_err();
                                self.keep(columns.list.span(k), read, &mut rows, &mut spans)?;
                                // An error of the row is the same at all entries, so it is reported once.
                                if failed {
                                    break;
                                }
                            }
                        }
                        Some(Err((entry, why))) => {
                            self.keep(entry.unwrap_or(*span), Err(why), &mut rows, &mut spans)?;
                        }
                    }
                }
                TableRow::Repeated(id) => {
                    let (all, plain) = (exprs.repeated(*id), self.values);
                    for other in 0..all.count() {
                        self.values = plain.repeated(all, other);
                        let read = match all.row() {
                            Some(TableRow::Row { key, values, to, .. }) => self.row(*key, values, *to, families),
                            _ => Err("a row is needed here".into()),
                        };
                        self.values = plain;
                        self.keep(all.span(other), read.map(RowFamily::one), &mut rows, &mut spans)?;
                    }
                }
            }
        }
        if rows.len() == spans.len() { Ok((rows, spans)) } else { Err(Failed) }
    }

    /// Keeps a row that was read, or reports why it cannot be read.
    fn keep(
        &mut self,
        span: Span,
        read: std::result::Result<RowFamily, Wrong>,
        rows: &mut Vec<RowFamily>,
        spans: &mut Vec<Span>,
    ) -> Result<()> {
        match read {
            Ok(row) => rows.push(row),
            Err(why) if self.wrong < MOST => {
                self.diagnostics.push(bad_row(span, &why, HELP));
                self.wrong += 1;
            }
            Err(_) => return Err(Failed),
        }
        spans.push(span);
        Ok(())
    }

    /// Reads a row with values for its indices.
    fn at(
        &mut self,
        names: &[&'a str],
        values: &[i64],
        row: impl Fn(&Self) -> std::result::Result<Row, Wrong>,
    ) -> std::result::Result<Row, Wrong> {
        let plain = self.values;
        self.values = plain.at(names, values);
        let row = row(self);
        self.values = plain;
        row
    }

    /// Reads a row over a box of indices. Numbers are sums, so reading the row at 0 and at 1 of each index gives the
    /// step.
    fn over_box(
        &mut self,
        binders: &'a [ast::Binder],
        row: impl Fn(&Self) -> std::result::Result<Row, Wrong> + Copy,
    ) -> std::result::Result<RowFamily, Wrong> {
        let indices = self.values.indices(binders)?;
        let names: Vec<&str> = indices.iter().map(|i| i.0).collect();
        let first = self.at(&names, &vec![0; names.len()], row)?;
        let mut dims = vec![];
        for (k, &(_, count)) in indices.iter().enumerate() {
            let one: Vec<i64> = (0..names.len()).map(|d| i64::from(d == k)).collect();
            let next = self.at(&names, &one, row)?;
            let step = steps(&first, &next).ok_or("the rows of a family differ in numbers alone")?;
            dims.push(Dim { count, step });
        }
        Ok(RowFamily { first, indices: Indices::Box(dims) })
    }

    /// Reads a row over a table, at its first entry and at those next to it. Returns `None` if that is not possible,
    /// and the row must be read at each entry.
    fn over_table(
        &mut self,
        columns: &Columns<'a>,
        row: impl Fn(&Self) -> std::result::Result<Row, Wrong> + Copy,
    ) -> Option<RowFamily> {
        let start = columns.list.entry(0);
        let first = self.at(&columns.names, &start, row).ok()?;
        let column = |k: usize| {
            let mut next = start.clone();
            next[k] = next[k].checked_add(1)?;
            steps(&first, &self.at(&columns.names, &next, row).ok()?)
        };
        let steps = (0..start.len()).map(column).collect::<Option<Vec<_>>>()?;
        Some(RowFamily { first, indices: Indices::Table(Table { steps, list: columns.list.clone() }) })
    }

    fn row(
        &self,
        key: ExprId,
        values: &'a [Arg],
        to: Option<ExprId>,
        families: &[FamilyId],
    ) -> std::result::Result<Row, Wrong> {
        let v = self.values;
        let (name, args) = match (v.name(key), v.call(key)) {
            (Some(name), _) => (name, vec![]),
            (None, Some(call)) => call,
            (None, None) => return Err("a row of an exchange begins with its kind".into()),
        };
        let target = || to.ok_or_else(|| "a row that moves something has its target behind `->`".to_string());
        if to.is_some() && matches!(name.as_str(), "cycles" | "links" | "carries" | "piece" | "buffer" | "field") {
            return Err(format!("a row `{name}` has no target"));
        }
        match (name.as_str(), &args[..]) {
            ("cycles", &[phase, which]) => {
                let (first, count) = v.short_span(which)?;
                Ok(Row::Cycles { phase: self.when(phase)?, first, count, cycles: self.only(values)? })
            }
            ("links", &[phase]) => Ok(Row::Links { phase: self.when(phase)?, cycles: self.only(values)? }),
            ("carries", []) => self.carried(values),
            ("piece", &[phase, transfer, ref start @ ..]) => {
                let (start, paired) = self.start(start)?.ok_or("a piece has a start cycle")?;
                let slice =
                    TransferSlice { transfer: v.int(transfer)?, first: 0, words: 0, start, to: Served::All, paired };
                self.slice(self.when(phase)?, slice, values)
            }
            ("buffer", &[which]) => self.buffers(which, values),
            ("field", &[family, field, which]) => self.locations(family, field, which, values, families),
            ("gather_before", []) => self.copied(When::Before, true, values, target()?),
            ("spread_before", []) => self.copied(When::Before, false, values, target()?),
            ("gather_after", []) => self.copied(When::After, true, values, target()?),
            ("spread_after", []) => self.copied(When::After, false, values, target()?),
            ("before", start) => self.transfer(When::Before, start, values, target()?),
            ("after", start) => self.transfer(When::After, start, values, target()?),
            _ => Err(format!("an exchange has no rows `{name}` of this form")),
        }
    }

    /// Reads `before` or `after`.
    fn when(&self, e: ExprId) -> std::result::Result<When, Wrong> {
        [When::Before, When::After]
            .into_iter()
            .find(|&w| self.values.name(e).as_deref() == Some(phase_name(w)))
            .ok_or_else(|| "a phase is `before` or `after`".into())
    }

    /// Reads no argument, `cycle`, or `cycle, wide`.
    fn start(&self, args: &[ExprId]) -> std::result::Result<Option<(u32, bool)>, Wrong> {
        match *args {
            [] => Ok(None),
            [cycle] => Ok(Some((self.values.int(cycle)?, false))),
            [cycle, paired] if self.values.name(paired).as_deref() == Some(WIDE) => {
                Ok(Some((self.values.int(cycle)?, true)))
            }
            _ => Err("a start is a cycle, or a cycle and `wide`".into()),
        }
    }

    fn carried(&self, values: &[Arg]) -> std::result::Result<Row, Wrong> {
        let [Arg { name: None, value }] = values else { return Err("the name of a copy is needed here".into()) };
        let name = self.values.name(*value).ok_or("the name of a copy is needed here")?;
        let copy = self.graph.copies.iter().find(|c| c.1.name == name);
        copy.map(|(copy, _)| Row::Carries { copy }).ok_or_else(|| format!("there is no copy `{name}`"))
    }

    /// Reads the only value of a row.
    fn only(&self, values: &[Arg]) -> std::result::Result<u32, Wrong> {
        match values {
            [Arg { name: None, value }] => self.values.int(*value),
            _ => Err("one number is needed here".into()),
        }
    }

    fn slice(&self, phase: When, slice: TransferSlice, values: &'a [Arg]) -> std::result::Result<Row, Wrong> {
        let v = self.values;
        let [Arg { name: None, value }, rest @ ..] = values else {
            return Err("a piece begins with its words".into());
        };
        let (first, words) = v.short_span(*value)?;
        let mut o = Options::new(rest)?;
        let to = match o.take("to") {
            None => vec![],
            Some(list) => v.short_spans(list)?,
        };
        o.finish()?;
        Ok(Row::Slice { phase, slice: TransferSlice { first, words, ..slice }, to })
    }

    fn buffers(&self, which: ExprId, values: &'a [Arg]) -> std::result::Result<Row, Wrong> {
        let v = self.values;
        let (first, count) = v.short_span(which)?;
        let mut o = Options::new(values)?;
        let (tile, bytes) = (v.int(o.need("tile")?)?, v.int(o.need("bytes")?)?);
        let next = o.number(v, "next")?;
        o.finish().map(|()| Row::Buffers { first, count, tile, next, bytes })
    }

    fn locations(
        &self,
        family: ExprId,
        field: ExprId,
        which: ExprId,
        values: &'a [Arg],
        families: &[FamilyId],
    ) -> std::result::Result<Row, Wrong> {
        let v = self.values;
        let family: u32 = v.int(family)?;
        let f = families.get(family as usize).ok_or_else(|| format!("there is no family {family}"))?;
        let f = &self.graph.families[*f];
        let name = v.name(field).ok_or("a field's name is needed here")?;
        let codelet = &self.graph.codelets[f.codelet];
        let field = f.fields.iter().position(|x| codelet.fields[x.field].name == name);
        let field = field.ok_or_else(|| format!("codelet `{}` has no field `{name}` that lands", codelet.name))? as u32;
        let (first, count) = v.span(which)?;
        let mut o = Options::new(values)?;
        let byte = v.int(o.need("byte")?)?;
        let step = o.number(v, "step")?;
        let at = match o.take("buffer") {
            Some(b) => LocationRun::Buffer { buffer: v.int(b)?, next: o.number(v, "next")?, byte, step },
            None => {
                let strides = o.take("strides").map_or(Ok(vec![]), |s| v.ints(s))?;
                LocationRun::InPlace { byte, step, strides }
            }
        };
        o.finish().map(|()| Row::Locations { family, field, first, count, at })
    }

    fn copied(&self, phase: When, gather: bool, values: &'a [Arg], to: ExprId) -> std::result::Result<Row, Wrong> {
        let v = self.values;
        let (from, mut o) = self.first(values)?;
        let bytes = v.int(o.need("bytes")?)?;
        let count = o.take("count").map_or(Ok(1), |e| v.int(e))?;
        let steps: Vec<i32> = o.take("steps").map_or(Ok(vec![0, 0]), |e| v.ints(e))?;
        let [from_step, to_step] = steps[..] else { return Err("`steps` are two numbers".into()) };
        o.finish()?;
        let to = self.one(to)?;
        Ok(Row::Copy { phase, gather, copy: LocalCopy { from, to, count, bytes, from_step, to_step } })
    }

    fn transfer(
        &self,
        phase: When,
        start: &[ExprId],
        values: &'a [Arg],
        to: ExprId,
    ) -> std::result::Result<Row, Wrong> {
        let v = self.values;
        let start = self.start(start)?;
        let (from, mut o) = self.first(values)?;
        let words = v.int(o.need("words")?)?;
        o.finish()?;
        let to = v.list(to)?.iter().map(|&e| self.loc(e)).collect::<std::result::Result<_, _>>()?;
        Ok(Row::Transfer { phase, start, from, words, to })
    }

    /// Reads the source of a row that moves data. Also returns the other values.
    fn first(&self, values: &'a [Arg]) -> std::result::Result<(Loc, Options<'a>), Wrong> {
        match values {
            [Arg { name: None, value }, rest @ ..] => Ok((self.one(*value)?, Options::new(rest)?)),
            _ => Err("a row that moves something begins with where from".into()),
        }
    }

    fn one(&self, e: ExprId) -> std::result::Result<Loc, Wrong> {
        match self.loc(e)? {
            Receivers { first, count: 1, .. } => Ok(first),
            _ => Err("one place is needed here, not several".into()),
        }
    }

    /// Reads `x[3, 64]` or `buffer(4..6)[0]`.
    fn loc(&self, e: ExprId) -> std::result::Result<Receivers, Wrong> {
        let v = self.values;
        let ExprKind::Index { base, index } = &v.tree().exprs[e].kind else {
            return Err("a place is `x[tile, byte]` or `buffer(k)[byte]`".into());
        };
        let plain = |i: &Index| match i {
            Index::Expr(e) => Ok(*e),
            _ => Err("numbers are needed here".to_string()),
        };
        let index = index.iter().map(plain).collect::<std::result::Result<Vec<_>, _>>()?;
        match (v.call(*base), v.name(*base), &index[..]) {
            (Some((name, args)), _, &[byte]) if name == "buffer" && args.len() == 1 => {
                let (b, count, step) = v.strided(args[0])?;
                let first = Loc { tile: 0, object: Object::Buffer(b), offset: v.int(byte)? };
                Ok(Receivers { first, count, step })
            }
            (None, Some(name), &[tile, byte]) => {
                let var = *self.vars.get(name.as_str()).ok_or_else(|| format!("there is no variable `{name}`"))?;
                let (tile, count, step) = v.strided(tile)?;
                Ok(Receivers { first: Loc { tile, object: Object::Var(var), offset: v.int(byte)? }, count, step })
            }
            _ => Err("a place is `x[tile, byte]` or `buffer(k)[byte]`".into()),
        }
    }
}
