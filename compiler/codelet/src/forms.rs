//! Bounds of integers by the form of their expressions, relative to values that are not known.
//!
//! `min(n, i + 3)` is at most `n` and at most `i + 3`; `max(0, i)` is at least 0 and at least `i`. So a loop between
//! the two has at most three iterations, although `i` is not known, and `r + i` is less than `n` if
//! `r < max(0, n - i)`.
//!
//! A local that one statement sets, or that is the index of one loop, is looked through if all its reads are in the
//! scope of that statement: they see the value of the current iteration.
//!
//! Invariant: forms hold for whole numbers. The caller says for which expressions the arithmetic of the codelet is that
//! of whole numbers, because it does not wrap.

mod form;

pub use form::{Atom, Form};

use crate::locals::count_sets;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, Stmt, UnaryOp};
use girder_ir::ids::{ExprId, LocalId};
use std::cell::Cell;

/// How deeply expressions and locals are looked through.
const DEPTH: u32 = 12;
/// The most expressions that are visited for one.
const STEPS: u32 = 400;
/// The most forms of an expression.
const MOST: usize = 32;

/// Which side of a value forms are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// They are at most the value.
    Below,
    /// They are at least the value.
    Above,
}

impl Side {
    fn other(self) -> Side {
        if self == Side::Below { Side::Above } else { Side::Below }
    }
}

/// What is known about the expressions of a codelet at some point of it.
pub trait Known {
    /// Returns the value of an expression, if it is known.
    fn number(&self, e: ExprId) -> Option<i64>;

    /// Returns whether an operator or a conversion gives the result that whole numbers have.
    fn is_exact(&self, e: ExprId) -> bool;
}

/// Where a local has its value from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Value(ExprId),
    /// `lo..hi`, upwards.
    Index(ExprId, ExprId),
}

/// The forms of the expressions of a codelet.
#[derive(Clone, Debug)]
pub struct Forms<'a> {
    codelet: &'a Codelet,
    origins: SecondaryMap<LocalId, Option<Origin>>,
}

impl<'a> Forms<'a> {
    /// Finds the locals that can be looked through.
    pub fn new(codelet: &'a Codelet) -> Forms<'a> {
        let mut sets = SecondaryMap::new();
        count_sets(&codelet.body, &mut sets);
        let mut scopes = Scopes { codelet, sets, open: EntitySet::new(), leaks: EntitySet::new(), origins: vec![] };
        scopes.block(&codelet.body);
        let mut forms = Forms { codelet, origins: SecondaryMap::new() };
        for (local, origin) in scopes.origins {
            let stays = match origin {
                Origin::Value(value) => forms.stays(value),
                Origin::Index(lo, hi) => forms.stays(lo) && forms.stays(hi),
            };
            forms.origins[local] = Some(origin).filter(|_| stays && !scopes.leaks.contains(local));
        }
        forms
    }

    /// Returns whether all locals of an expression are looked through, so that it keeps its value in their scope.
    fn stays(&self, e: ExprId) -> bool {
        let kind = &self.codelet.exprs[e].kind;
        let local = if let ExprKind::Local(local) = *kind { self.origins[local].is_some() } else { true };
        local && kind.operands().iter().all(|&x| self.stays(x))
    }

    /// Returns the greatest trip count that a loop from `lo` to `hi` can have, if the forms of its bounds tell it.
    pub fn trips(&self, (lo, hi, step): (ExprId, ExprId, i64), known: &dyn Known) -> Option<i64> {
        let below = self.of(lo, Side::Below, known);
        let above = self.of(hi, Side::Above, known);
        let pairs = above.iter().flat_map(|h| below.iter().map(move |l| (h, l)));
        let apart = pairs.filter_map(|(h, l)| h.apart(l)).min()?;
        Some(apart.max(0).checked_add(step.checked_sub(1)?)? / step.max(1))
    }

    /// Returns whether the forms of an expression show that it is at least a number.
    pub fn is_at_least(&self, e: ExprId, least: i64, known: &dyn Known) -> bool {
        self.of(e, Side::Below, known).iter().filter_map(Form::value).any(|n| n >= least)
    }

    /// Returns whether the forms of an expression show that it is less than a number.
    pub fn is_less(&self, e: ExprId, end: i64, known: &dyn Known) -> bool {
        self.of(e, Side::Above, known).iter().filter_map(Form::value).any(|n| n < end)
    }

    /// Returns forms that are on one side of an integer expression.
    pub fn of(&self, e: ExprId, side: Side, known: &dyn Known) -> Vec<Form> {
        Search { forms: self, known, left: Cell::new(STEPS) }.forms(e, side, DEPTH, i64::MIN)
    }
}

struct Search<'s, 'a> {
    forms: &'s Forms<'a>,
    known: &'s dyn Known,
    /// The expressions that may still be visited.
    left: Cell<u32>,
}

impl Search<'_, '_> {
    /// Returns forms on one side of an expression whose value is at least `least`.
    fn forms(&self, e: ExprId, side: Side, depth: u32, least: i64) -> Vec<Form> {
        if let Some(n) = self.known.number(e) {
            return vec![Form::number(n)];
        }
        let expr = &self.forms.codelet.exprs[e];
        let left = self.left.replace(self.left.get().saturating_sub(1));
        let Some(depth) = depth.checked_sub(1).filter(|_| left > 0 && expr.ty.is_int()) else { return vec![] };
        let is_exact = || self.known.is_exact(e);
        let of = |x: ExprId, side: Side| self.forms(x, side, depth, i64::MIN);
        let negated = |x: ExprId| of(x, side.other()).iter().filter_map(|f| f.times(-1, side)).collect::<Vec<_>>();
        let mut forms = match expr.kind {
            ExprKind::Local(local) => self.of_local(local, side, depth, least),
            ExprKind::ConstField(field) => vec![Form::atom(Atom::Const(field))],
            ExprKind::Convert { x } if is_exact() => self.forms(x, side, depth, least),
            ExprKind::Unary { op: UnaryOp::Neg, x } if is_exact() => negated(x),
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } if is_exact() => match self.known.number(b) {
                Some(n) => sums(&self.forms(a, side, depth, least.saturating_sub(n)), &[Form::number(n)]),
                None => sums(&of(a, side), &of(b, side)),
            },
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } if is_exact() => match self.known.number(b) {
                Some(n) => {
                    let less = n.checked_neg().map(Form::number);
                    sums(&self.forms(a, side, depth, least.saturating_add(n)), less.as_slice())
                }
                None => sums(&of(a, side), &negated(b)),
            },
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } if is_exact() => {
                let (x, n) = match (self.known.number(a), self.known.number(b)) {
                    (Some(n), _) => (b, n),
                    (_, Some(n)) => (a, n),
                    _ => return vec![],
                };
                let x = of(x, if n < 0 { side.other() } else { side });
                x.iter().filter_map(|f| f.times(n, side)).collect()
            }
            ExprKind::Binary { op: BinaryOp::Div, a, b, .. } => match self.known.number(b) {
                Some(n) if n > 0 => self.quotients((a, n), side, depth, least),
                _ => vec![],
            },
            ExprKind::Binary { op: BinaryOp::Rem, b, .. } => {
                let most = self.known.number(b).and_then(|n| n.checked_abs()).filter(|&n| n > 0);
                most.into_iter().map(|n| Form::number(if side == Side::Above { n - 1 } else { 1 - n })).collect()
            }
            ExprKind::Binary { op: BinaryOp::Min, a, b, .. } => {
                let (x, y) = (self.forms(a, side, depth, least), self.forms(b, side, depth, least));
                if side == Side::Above { either(x, y) } else { of_both(&x, &y, i64::min) }
            }
            ExprKind::Binary { op: BinaryOp::Max, a, b, .. } => match (self.known.number(a), self.known.number(b)) {
                // The number is too small to be the greater one.
                (Some(n), _) if n < least => self.forms(b, side, depth, least),
                (_, Some(n)) if n < least => self.forms(a, side, depth, least),
                _ if side == Side::Below => either(of(a, side), of(b, side)),
                _ => of_both(&of(a, side), &of(b, side), i64::max),
            },
            _ => vec![],
        };
        forms.truncate(MOST);
        forms
    }

    fn of_local(&self, local: LocalId, side: Side, depth: u32, least: i64) -> Vec<Form> {
        let mut forms = match self.forms.origins[local] {
            None => return vec![],
            Some(Origin::Value(value)) => self.forms(value, side, depth, least),
            Some(Origin::Index(lo, _)) if side == Side::Below => self.forms(lo, side, depth, i64::MIN),
            Some(Origin::Index(lo, hi)) => {
                let first = self.forms(lo, Side::Below, depth, i64::MIN).iter().filter_map(Form::value).max();
                // There is an iteration, so the end is greater than the first index.
                let least = first.unwrap_or(i64::MIN).max(least).saturating_add(1);
                sums(&self.forms(hi, side, depth, least), &[Form::number(-1)])
            }
        };
        forms.insert(0, Form::atom(Atom::Local(local)));
        forms
    }

    /// Returns forms on one side of `a / n`, rounded towards zero.
    fn quotients(&self, (a, n): (ExprId, i64), side: Side, depth: u32, least: i64) -> Vec<Form> {
        // A positive quotient has a dividend of at least n times as much.
        let least = if least > 0 { least.saturating_mul(n) } else { i64::MIN };
        let below = self.forms(a, Side::Below, depth, least);
        let is_positive = least >= 0 || below.iter().any(|f| f.value().is_some_and(|v| v >= 0));
        // A negative quotient is rounded upwards.
        let more = if side == Side::Above && !is_positive { n - 1 } else { 0 };
        let forms = if side == Side::Below { below } else { self.forms(a, side, depth, least) };
        forms.into_iter().filter_map(|f| f.over(n, more)).collect()
    }
}

fn either(mut x: Vec<Form>, y: Vec<Form>) -> Vec<Form> {
    x.extend(y);
    x
}

/// Returns the numbers that bound the greater or the lesser of two values on the side of the other.
fn of_both(x: &[Form], y: &[Form], which: impl Fn(i64, i64) -> i64) -> Vec<Form> {
    let numbers = |forms: &[Form]| forms.iter().filter_map(Form::value).collect::<Vec<_>>();
    let (x, y) = (numbers(x), numbers(y));
    x.iter().flat_map(|&a| y.iter().map(|&b| Form::number(which(a, b))).collect::<Vec<_>>()).collect()
}

/// Returns the sums of each two forms that have one.
fn sums(a: &[Form], b: &[Form]) -> Vec<Form> {
    a.iter().flat_map(|f| b.iter().filter_map(|g| f.plus(g))).take(MOST).collect()
}

/// A walk over the scopes of locals that one statement sets.
struct Scopes<'a> {
    codelet: &'a Codelet,
    sets: SecondaryMap<LocalId, u32>,
    /// The locals that the current iteration has set in an enclosing block.
    open: EntitySet<LocalId>,
    /// The locals that are read elsewhere.
    leaks: EntitySet<LocalId>,
    origins: Vec<(LocalId, Origin)>,
}

impl Scopes<'_> {
    fn block(&mut self, block: &[Stmt]) {
        let mut opened = Vec::new();
        for stmt in block {
            if !matches!(stmt, Stmt::Reduce(_)) {
                stmt.for_each_expr(|e| self.reads(e));
            }
            match stmt {
                Stmt::Set { local, value } => {
                    self.open(*local, Origin::Value(*value), &mut opened);
                }
                Stmt::For { var, lo, hi, step, body, .. } => {
                    let mut index = Vec::new();
                    if *step > 0 {
                        self.open(*var, Origin::Index(*lo, *hi), &mut index);
                    }
                    self.block(body);
                    self.close(index);
                }
                Stmt::Reduce(r) => {
                    let mut indices = Vec::new();
                    for b in &r.binders {
                        self.reads(b.lo);
                        self.reads(b.hi);
                    }
                    for b in r.binders.iter().filter(|b| b.step > 0) {
                        self.open(b.var, Origin::Index(b.lo, b.hi), &mut indices);
                    }
                    // The value is computed in the scope of the statements before it.
                    let within = self.scope(&r.filter_before);
                    r.filter.into_iter().for_each(|e| self.reads(e));
                    indices.extend(within);
                    let within = self.scope(&r.before);
                    let factors = r.factors.map_or(vec![], |(x, y)| vec![x, y]);
                    [r.value].into_iter().chain(factors).for_each(|e| self.reads(e));
                    indices.extend(within);
                    self.close(indices);
                }
                other => other.blocks().for_each(|inner| self.block(inner)),
            }
        }
        self.close(opened);
    }

    /// Walks a block whose scope goes on after it, and returns the locals that it has opened.
    fn scope(&mut self, block: &[Stmt]) -> Vec<LocalId> {
        let mut opened = Vec::new();
        for stmt in block {
            match stmt {
                Stmt::Set { local, value } => {
                    self.reads(*value);
                    self.open(*local, Origin::Value(*value), &mut opened);
                }
                other => self.block(std::slice::from_ref(other)),
            }
        }
        opened
    }

    fn open(&mut self, local: LocalId, origin: Origin, opened: &mut Vec<LocalId>) {
        if self.sets[local] == 1 {
            self.origins.push((local, origin));
            self.open.insert(local);
            opened.push(local);
        }
    }

    fn close(&mut self, opened: Vec<LocalId>) {
        opened.into_iter().for_each(|local| _ = self.open.remove(local));
    }

    fn reads(&mut self, e: ExprId) {
        let kind = &self.codelet.exprs[e].kind;
        if let ExprKind::Local(local) = *kind
            && !self.open.contains(local)
        {
            self.leaks.insert(local);
        }
        kind.operands().iter().for_each(|&x| self.reads(x));
    }
}
