//! Tables to items.
//!
//! Invariant: what a row may leave out is left out, so that equal tables have equal text.

use super::{WIDE, copy_name, phase_name};
use girder_elaborate::print::Printer;
use girder_ir::graph::Graph;
use girder_ir::ids::FamilyId;
use girder_ir::plan::{FieldLandings, Loc, LocalCopy, Object, Plan};
use girder_ir::schedule::Schedule;
use girder_passes::plan_transfers::rows::{Landed, Row, to_rows};
use girder_source::Span;
use girder_syntax::ast::{Arg, ExprId, Index, ItemKind, TableRow};
use girder_syntax::make::{Make, arg, named, path, table};

/// Adds the items of all compute sets, then of all copies.
pub fn print(p: &mut Printer<'_>, graph: &Graph, plan: &Plan, schedule: Option<&Schedule>) {
    for (id, set) in &graph.sets {
        let landings: Vec<&[FieldLandings]> = set.families.iter().map(|&f| &plan.landings[f][..]).collect();
        let rows = to_rows(&plan.sets[id], &landings, schedule.map(|s| &s.sets[id]));
        item(&mut p.make, graph, &set.name, &set.families, &rows);
    }
    for (id, copy) in &graph.copies {
        let rows = to_rows(&plan.copies[id], &[], schedule.map(|s| &s.copies[id]));
        item(&mut p.make, graph, &copy.name, &[], &rows);
    }
}

fn item(make: &mut Make, graph: &Graph, name: &str, families: &[FamilyId], rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let mut writer = Writer { make, graph, families };
    let rows = rows.iter().map(|r| writer.row(r)).collect();
    make.item(ItemKind::Exchange { name: path(name), options: vec![], table: table(rows) });
}

struct Writer<'a> {
    make: &'a mut Make,
    graph: &'a Graph,
    families: &'a [FamilyId],
}

impl Writer<'_> {
    fn row(&mut self, row: &Row) -> TableRow {
        let (key, values, to) = match row {
            &Row::Cycles { phase, first, count, cycles } => {
                let args = [self.make.name(phase_name(phase)), self.some(first as u64, count as u64)];
                let key = self.make.call_name("cycles", args.map(arg).into());
                (key, vec![arg(self.make.uint(cycles as u64))], None)
            }
            &Row::Links { phase, cycles } => {
                let phase = self.make.name(phase_name(phase));
                let key = self.make.call_name("links", vec![arg(phase)]);
                (key, vec![arg(self.make.uint(cycles as u64))], None)
            }
            Row::Piece { phase, piece, to } => {
                let phase = self.make.name(phase_name(*phase));
                let args = [phase, self.make.uint(piece.transfer as u64), self.make.uint(piece.start as u64)];
                let key = self.timed("piece", args.into(), piece.wide);
                let words = self.make.span(piece.first as u64, piece.first as u64 + piece.words as u64);
                let mut values = vec![arg(words)];
                if !to.is_empty() {
                    let to = to.iter().map(|&(first, count)| self.some(first as u64, count as u64)).collect();
                    values.push(named("to", self.make.list(to)));
                }
                (key, values, None)
            }
            &Row::Buffers { first, count, tile, next, bytes } => {
                let key = self.buffer(first, count);
                let mut values = vec![named("tile", self.make.uint(tile as u64))];
                self.unless_zero(&mut values, "next", next as i64);
                values.push(named("bytes", self.make.uint(bytes as u64)));
                (key, values, None)
            }
            Row::Landings { family, field, first, count, at } => {
                (self.landing_key(*family, *field, *first, *count), self.landed(at), None)
            }
            Row::Copy { phase, gather, copy } => {
                let key = self.make.name(copy_name(*phase, *gather));
                let to = self.loc(copy.to, 1);
                (key, self.copied(copy), Some(to))
            }
            Row::Transfer { phase, start, from, words, to } => {
                let name = phase_name(*phase);
                let key = match start {
                    None => self.make.name(name),
                    Some((cycle, wide)) => {
                        let cycle = self.make.uint(*cycle as u64);
                        self.timed(name, vec![cycle], *wide)
                    }
                };
                let from = self.loc(*from, 1);
                let values = vec![arg(from), named("words", self.make.uint(*words as u64))];
                let to = to.iter().map(|r| self.loc(r.first, r.count)).collect();
                (key, values, Some(self.make.list(to)))
            }
        };
        TableRow::Row { key, values, to, family: vec![], span: Span::NONE }
    }

    /// `name(args)`, `name(args, wide)`
    fn timed(&mut self, name: &str, mut args: Vec<ExprId>, wide: bool) -> ExprId {
        args.extend(wide.then(|| self.make.name(WIDE)));
        self.make.call_name(name, args.into_iter().map(arg).collect())
    }

    fn landing_key(&mut self, family: u32, field: u32, first: u64, count: u64) -> ExprId {
        let f = &self.graph.families[self.families[family as usize]];
        let name = &self.graph.codelets[f.codelet].fields[f.fields[field as usize].field].name;
        let args = [self.make.uint(family as u64), self.make.name(name), self.some(first, count)];
        self.make.call_name("field", args.map(arg).into())
    }

    fn landed(&mut self, at: &Landed) -> Vec<Arg> {
        let mut values = vec![];
        match at {
            Landed::InPlace { byte, step, strides } => {
                values.push(named("byte", self.make.uint(*byte as u64)));
                self.unless_zero(&mut values, "step", *step);
                if !strides.is_empty() {
                    let strides = strides.iter().map(|&s| self.make.int(s as i64)).collect();
                    values.push(named("strides", self.make.list(strides)));
                }
            }
            &Landed::Buffer { buffer, next, byte, step } => {
                values.push(named("buffer", self.make.uint(buffer as u64)));
                self.unless_zero(&mut values, "next", next);
                values.push(named("byte", self.make.uint(byte as u64)));
                self.unless_zero(&mut values, "step", step);
            }
        }
        values
    }

    fn copied(&mut self, copy: &LocalCopy) -> Vec<Arg> {
        let mut values = vec![arg(self.loc(copy.from, 1)), named("bytes", self.make.uint(copy.bytes as u64))];
        if copy.count != 1 {
            values.push(named("count", self.make.uint(copy.count as u64)));
        }
        if (copy.from_step, copy.to_step) != (0, 0) {
            let steps = [copy.from_step, copy.to_step].map(|s| self.make.int(s as i64));
            values.push(named("steps", self.make.list(steps.into())));
        }
        values
    }

    fn unless_zero(&mut self, values: &mut Vec<Arg>, name: &str, value: i64) {
        if value != 0 {
            values.push(named(name, self.make.int(value)));
        }
    }

    /// `3`, `3..7`
    fn some(&mut self, first: u64, count: u64) -> ExprId {
        if count == 1 { self.make.uint(first) } else { self.make.span(first, first + count) }
    }

    fn buffer(&mut self, first: u32, count: u32) -> ExprId {
        let which = self.some(first as u64, count as u64);
        self.make.call_name("buffer", vec![arg(which)])
    }

    /// `x[3, 64]`, `buffer(4)[0]`; over several tiles or buffers `x[3..5, 64]`, `buffer(4..6)[0]`
    fn loc(&mut self, loc: Loc, count: u32) -> ExprId {
        let byte = Index::Expr(self.make.uint(loc.offset as u64));
        match loc.object {
            Object::Var(var) => {
                let base = self.make.name(&self.graph.vars[var].name);
                let tile = Index::Expr(self.some(loc.tile as u64, count as u64));
                self.make.index(base, vec![tile, byte])
            }
            Object::Buffer(b) => {
                let base = self.buffer(b, count);
                self.make.index(base, vec![byte])
            }
        }
    }
}
