//! Tables of repeated statements: statements that differ from the one before them in integers only.
//!
//! Code that visits statements one by one sees all of them: their nodes are made on demand, and are numbered after the
//! nodes that were parsed. Elaboration reads the table instead.
//!
//! Invariant: the statements are those that the parser would make of their text, except for the numbers of their nodes.
//! The note in [`crate::token::repeated`] defines which statements are taken.

use super::decl::{Place, TableRow, Vertex, VertexItem};
use super::expr::{Expr, ExprKind, Index};
use super::name::{Arg, ExprId, RepeatedId};
use crate::token::repeated::Repetitions;
use girder_source::Span;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The statement that others repeat.
#[derive(Clone, Debug)]
pub enum Like {
    /// A statement of a compute set.
    Vertex(Box<Vertex>),
    /// A row of a table, without indices.
    Row(Box<TableRow>),
}

impl Like {
    fn span(&self) -> Span {
        match self {
            Like::Vertex(vertex) => vertex.span,
            Like::Row(row) => row.span(),
        }
    }
}

/// `vertex` statements, or rows of a table, that repeat the one before them.
#[derive(Clone, Debug)]
pub struct RepeatedStatements {
    /// The first statement, before the repeated ones.
    pub like: Like,
    /// The integers of the first statement, in the order of the text.
    pub numbers: Vec<Number>,
    /// The start of each repeated statement.
    starts: Vec<u32>,
    /// The expressions of the first statement.
    nodes: Range<usize>,
    /// The number of expressions in the runs before this one.
    base: usize,
    others: OnceLock<Others>,
}

/// An integer of repeated statements.
#[derive(Clone, Debug)]
pub struct Number {
    /// The expression in the first statement.
    pub expr: ExprId,
    /// Its value in each repeated statement.
    pub values: Arc<[i64]>,
    /// The span in the first statement.
    span: Span,
}

/// The statements of a run, made one by one.
#[derive(Clone, Debug)]
struct Others {
    vertices: Vec<VertexItem>,
    rows: Vec<TableRow>,
    exprs: Vec<Expr>,
}

impl RepeatedStatements {
    /// Builds the table of a run from its first statement, whose expressions are the last ones parsed. Returns `None`
    /// if its integers do not match the run, or there are too many statements.
    pub fn new(
        like: Like,
        run: Repetitions,
        exprs: &[Expr],
        before: Option<&RepeatedStatements>,
    ) -> Option<RepeatedStatements> {
        let from = exprs.iter().rposition(|e| e.span.lo < like.span().lo).map_or(0, |k| k + 1);
        let plain = |e: &Expr| match &e.kind {
            ExprKind::Int { value, text } => value.to_string() == text.as_str() && i64::try_from(*value).is_ok(),
            _ => false,
        };
        let ids: Vec<usize> = (from..exprs.len()).filter(|&k| plain(&exprs[k])).collect();
        let number = |(k, values): (usize, Vec<i64>)| Number {
            expr: ExprId::from_u32(k as u32),
            values: values.into(),
            span: exprs[k].span,
        };
        if ids.len() != run.values.len() || !ids.is_sorted_by_key(|&k| exprs[k].span.lo) {
            return None;
        }
        let numbers = ids.into_iter().zip(run.values).map(number).collect();
        let base = before.map_or(0, |b| b.base + b.count() * b.nodes.len());
        let all = RepeatedStatements {
            like,
            numbers,
            starts: run.starts,
            nodes: from..exprs.len(),
            base,
            others: OnceLock::new(),
        };
        (base + all.count() * all.nodes.len() <= i32::MAX as usize).then_some(all)
    }

    /// Returns the number of repeated statements.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns the number of expressions of each statement.
    pub fn expr_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the first row, if the statements are rows.
    pub fn row(&self) -> Option<&TableRow> {
        match &self.like {
            Like::Row(row) => Some(row),
            Like::Vertex(_) => None,
        }
    }

    /// Returns the span of a repeated statement.
    pub fn span(&self, other: usize) -> Span {
        let lo = self.starts[other];
        let longer: u32 = self.numbers.iter().map(|n| digits(n.values[other])).sum();
        let first: u32 = self.numbers.iter().map(|n| n.span.hi - n.span.lo).sum();
        let like = self.like.span();
        Span::new(lo, lo + (like.hi - like.lo) + longer - first)
    }

    /// Returns the value of an integer of the first statement in a repeated one, if it is in the table.
    pub fn value(&self, expr: ExprId, other: usize) -> Option<i64> {
        let at = self.numbers.binary_search_by_key(&expr.as_u32(), |n| n.expr.as_u32()).ok()?;
        Some(self.numbers[at].values[other])
    }

    /// Returns the span of all repeated statements.
    pub fn whole(&self) -> Span {
        self.span(0).to(self.span(self.count() - 1))
    }

    /// Makes the statements one by one; `written` are the expressions that were parsed.
    fn make(&self, written: &[Expr]) -> Others {
        let count = self.count() * self.nodes.len();
        let mut others = Others { vertices: vec![], rows: vec![], exprs: Vec::with_capacity(count) };
        for k in 0..self.count() {
            let from = others.exprs.len();
            let moved = Moved { all: self, other: k, nodes: written.len() + self.base + from };
            match &self.like {
                Like::Vertex(vertex) => {
                    let mut vertex = vertex.clone();
                    moved.vertex(&mut vertex);
                    others.vertices.push(VertexItem::Vertex(vertex));
                }
                Like::Row(row) => {
                    let mut row = TableRow::clone(row);
                    moved.row(&mut row);
                    others.rows.push(row);
                }
            }
            others.exprs.extend_from_slice(&written[self.nodes.clone()]);
            others.exprs[from..].iter_mut().for_each(|e| moved.expr(e));
            for n in &self.numbers {
                let (value, text) = (n.values[k] as u64, smol_str::format_smolstr!("{}", n.values[k]));
                others.exprs[from + n.expr.as_u32() as usize - self.nodes.start].kind = ExprKind::Int { value, text };
            }
        }
        others
    }
}

/// Returns the number of digits of a number that is not negative.
fn digits(number: i64) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

/// All expressions of a module.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    written: Vec<Expr>,
    repeated: Vec<RepeatedStatements>,
}

impl Exprs {
    /// Returns the parsed expressions with the runs of statements, by number.
    pub fn new(written: Vec<Expr>, repeated: Vec<RepeatedStatements>) -> Exprs {
        Exprs { written, repeated }
    }

    /// Adds an expression to a module without runs.
    pub fn push(&mut self, expr: Expr) -> ExprId {
        self.written.push(expr);
        ExprId::from_u32(self.written.len() as u32 - 1)
    }

    /// Returns the expressions that were parsed.
    pub fn written(&self) -> &[Expr] {
        &self.written
    }

    /// Returns a run of repeated statements.
    pub fn repeated(&self, id: RepeatedId) -> &RepeatedStatements {
        &self.repeated[id.as_u32() as usize]
    }

    /// Returns the `vertex` statements of a run one by one.
    pub fn others(&self, id: RepeatedId) -> &[VertexItem] {
        &self.made(self.repeated(id)).vertices
    }

    /// Returns the rows of a run one by one.
    pub fn other_rows(&self, id: RepeatedId) -> &[TableRow] {
        &self.made(self.repeated(id)).rows
    }

    /// Returns the rows of a table one by one.
    pub fn each_row<'e>(&'e self, rows: &'e [TableRow]) -> impl Iterator<Item = &'e TableRow> {
        rows.iter().flat_map(|row| match row {
            TableRow::Repeated(id) => self.other_rows(*id),
            row => std::slice::from_ref(row),
        })
    }

    fn made<'e>(&'e self, all: &'e RepeatedStatements) -> &'e Others {
        all.others.get_or_init(|| all.make(&self.written))
    }
}

impl std::ops::Index<ExprId> for Exprs {
    type Output = Expr;

    fn index(&self, id: ExprId) -> &Expr {
        let k = id.as_u32() as usize;
        if let Some(expr) = self.written.get(k) {
            return expr;
        }
        let behind = k - self.written.len();
        let all = &self.repeated[self.repeated.partition_point(|a| a.base <= behind) - 1];
        &self.made(all).exprs[behind - all.base]
    }
}

/// A translation of nodes of the first statement to nodes of a repeated one.
struct Moved<'a> {
    all: &'a RepeatedStatements,
    other: usize,
    /// The number of its first expression.
    nodes: usize,
}

impl Moved<'_> {
    /// Translates an offset: each integer before it shifts it by the difference in digits.
    fn at(&self, offset: u32) -> u32 {
        let before = self.all.numbers.iter().take_while(|n| n.span.lo < offset);
        let longer = |n: &Number| digits(n.values[self.other]) as i64 - (n.span.hi - n.span.lo) as i64;
        let shift = self.all.starts[self.other] as i64 - self.all.like.span().lo as i64;
        (offset as i64 + shift + before.map(longer).sum::<i64>()) as u32
    }

    fn span(&self, span: &mut Span) {
        *span = Span::new(self.at(span.lo), self.at(span.hi));
    }

    fn id(&self, e: &mut ExprId) {
        *e = ExprId::from_u32((self.nodes + e.as_u32() as usize - self.all.nodes.start) as u32);
    }

    fn ids<'e>(&self, ids: impl IntoIterator<Item = &'e mut ExprId>) {
        ids.into_iter().for_each(|e| self.id(e));
    }

    fn vertex(&self, v: &mut Vertex) {
        self.span(&mut v.span);
        self.span(&mut v.codelet.span);
        v.codelet.parts.iter_mut().for_each(|p| self.span(&mut p.span));
        self.ids(&mut v.generics);
        self.args(&mut v.args);
        if let Some(Place::Expr(e)) = &mut v.place {
            self.id(e);
        }
        self.ids(&mut v.within);
    }

    fn row(&self, row: &mut TableRow) {
        if let TableRow::Row { key, values, to, span, .. } = row {
            self.id(key);
            self.args(values);
            self.ids(to);
            self.span(span);
        }
    }

    /// Translates an expression; forms with bodies or with a `;` do not occur in such statements.
    fn expr(&self, expr: &mut Expr) {
        self.span(&mut expr.span);
        match &mut expr.kind {
            ExprKind::Paren(e) | ExprKind::Unary { value: e, .. } => self.id(e),
            ExprKind::Field { base, name } => {
                self.id(base);
                self.span(&mut name.span);
            }
            ExprKind::Tuple(args) => self.args(args),
            ExprKind::List(list) => self.ids(list),
            ExprKind::Call { callee, args } => {
                self.id(callee);
                self.args(args);
            }
            ExprKind::Index { base, index } => {
                self.id(base);
                index.iter_mut().for_each(|i| self.index(i));
            }
            ExprKind::Binary { left, right, .. } => self.ids([left, right]),
            ExprKind::Range { start, end, by, .. } => self.ids([start, end].into_iter().chain(by)),
            _ => {}
        }
    }

    fn args(&self, args: &mut [Arg]) {
        for arg in args {
            arg.name.iter_mut().for_each(|n| self.span(&mut n.span));
            self.id(&mut arg.value);
        }
    }

    fn index(&self, index: &mut Index) {
        match index {
            Index::Expr(e) => self.id(e),
            Index::Rest(span) => self.span(span),
            Index::Open { start, end, by, span } => {
                self.ids([start, end, by].into_iter().flatten());
                self.span(span);
            }
        }
    }
}
