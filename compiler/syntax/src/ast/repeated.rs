//! Statements that are like the one before them but for their integers: a table of these.
//!
//! Whoever looks at statements one by one sees all of them: their nodes are made when one is asked for, and
//! are numbered behind those that were written out. Whoever can looks at the table, as elaboration does.
//!
//! Invariant: the statements are those that the parser would make of their text, but for the numbers of their nodes.
//! See the note in [`crate::token::alike`] for which statements are taken.

use super::*;
use crate::token::repeated::Run;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// `vertex` statements that are like the one before them.
#[derive(Clone, Debug)]
pub struct RepeatedStatements {
    /// The one before them.
    pub like: Box<Vertex>,
    /// Its integers, in the order of the text.
    pub numbers: Vec<Number>,
    /// Where each of the others begins.
    starts: Vec<u32>,
    /// The expressions of the one before them.
    nodes: Range<usize>,
    /// How many expressions the runs before this one have.
    base: usize,
    others: OnceLock<Others>,
}

/// An integer of statements that are alike.
#[derive(Clone, Debug)]
pub struct Number {
    /// In the statement before them.
    pub expr: ExprId,
    /// What stands there in each of the others.
    pub values: Arc<[i64]>,
    /// Where it is in the statement before them.
    span: Span,
}

/// Statements of a run one by one.
#[derive(Clone, Debug)]
struct Others {
    vertices: Vec<VertexItem>,
    exprs: Vec<Expr>,
}

impl RepeatedStatements {
    /// Returns a statement, whose expressions end those that were written so far, and what is like it; `None` if these are not
    /// its numbers, or there are too many.
    pub fn new(
        like: &Vertex,
        run: Run,
        exprs: &[Expr],
        before: Option<&RepeatedStatements>,
    ) -> Option<RepeatedStatements> {
        let from = exprs.iter().rposition(|e| e.span.lo < like.span.lo).map_or(0, |k| k + 1);
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
        let like = Box::new(like.clone());
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

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns how many expressions each has.
    pub fn expr_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns where one of them stands.
    pub fn span(&self, other: usize) -> Span {
        let lo = self.starts[other];
        let longer: u32 = self.numbers.iter().map(|n| digits(n.values[other])).sum();
        let first: u32 = self.numbers.iter().map(|n| n.span.hi - n.span.lo).sum();
        Span::new(lo, lo + (self.like.span.hi - self.like.span.lo) + longer - first)
    }

    /// Returns where all of them stand.
    pub fn whole(&self) -> Span {
        self.span(0).to(self.span(self.count() - 1))
    }

    /// Makes them one by one; `written` are the expressions that were written out.
    fn make(&self, written: &[Expr]) -> Others {
        let count = self.count() * self.nodes.len();
        let mut others = Others { vertices: Vec::with_capacity(self.count()), exprs: Vec::with_capacity(count) };
        for k in 0..self.count() {
            let from = others.exprs.len();
            let place = Moved { all: self, other: k, nodes: written.len() + self.base + from };
            let mut vertex = self.like.clone();
            place.vertex(&mut vertex);
            others.vertices.push(VertexItem::Vertex(vertex));
            others.exprs.extend_from_slice(&written[self.nodes.clone()]);
            others.exprs[from..].iter_mut().for_each(|e| place.expr(e));
            for n in &self.numbers {
                let (value, text) = (n.values[k] as u64, smol_str::format_smolstr!("{}", n.values[k]));
                others.exprs[from + n.expr.as_u32() as usize - self.nodes.start].kind = ExprKind::Int { value, text };
            }
        }
        others
    }
}

/// Returns how many digits a number takes that is not negative.
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
    /// Returns those that are written out, and the runs of statements, by number.
    pub fn new(written: Vec<Expr>, repeated: Vec<RepeatedStatements>) -> Exprs {
        Exprs { written, repeated }
    }

    /// Adds one to a module without runs.
    pub fn push(&mut self, expr: Expr) -> ExprId {
        self.written.push(expr);
        ExprId::from_u32(self.written.len() as u32 - 1)
    }

    /// Returns those that are written out.
    pub fn written(&self) -> &[Expr] {
        &self.written
    }

    /// Statements that are alike.
    pub fn repeated(&self, id: RepeatedId) -> &RepeatedStatements {
        &self.repeated[id.as_u32() as usize]
    }

    /// Returns the statements of a run one by one.
    pub fn others(&self, id: RepeatedId) -> &[VertexItem] {
        &self.made(self.repeated(id)).vertices
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

/// Nodes of the statement before a run on their way to one of the run.
struct Moved<'a> {
    all: &'a RepeatedStatements,
    other: usize,
    /// The number of its first expression there.
    nodes: usize,
}

impl Moved<'_> {
    /// Returns each number before a place moves it by the digits that it has more or less.
    fn at(&self, place: u32) -> u32 {
        let before = self.all.numbers.iter().take_while(|n| n.span.lo < place);
        let longer = |n: &Number| digits(n.values[self.other]) as i64 - (n.span.hi - n.span.lo) as i64;
        let shift = self.all.starts[self.other] as i64 - self.all.like.span.lo as i64;
        (place as i64 + shift + before.map(longer).sum::<i64>()) as u32
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
    }

    /// An expression; those with bodies and those with a `;` do not stand in such statements.
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
