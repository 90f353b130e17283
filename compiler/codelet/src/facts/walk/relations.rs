//! What bounds the index of a loop: a relation between it and the values from which its range is computed.
//!
//! ```text
//! for j in max(0, s - 1 - u) / s..min(n, (w - u + s - 1) / s) { y[j] = x[j * s + u]; }
//! ```
//!
//! If nothing is known of `u`, an interval says nothing of `j * s + u`. But a quotient is rounded, so `s * j` is at
//! least `-u` and at most `w - u - 1`, and the index is inside of `x[w]`.
//!
//! Invariant: a relation holds in every iteration of the loop; no sum that it stands for can have wrapped.

use super::FactsWalk;
use crate::facts::affine::{Affine, Symbol};
use crate::facts::interval::Interval;
use crate::facts::value::State;
use girder_ir::codelet::{BinaryOp, ExprKind};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// The greatest depth of an expression that is searched for bounds.
const DEPTH: u32 = 6;

/// `factor * value` is at least, or at most, `form`; the factor is positive.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    factor: i64,
    form: Affine,
}

pub(super) type Relations = SmallVec<[Relation; 2]>;

/// What is known of a symbol.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub range: Interval,
    pub least: Relations,
    pub most: Relations,
}

impl Relation {
    fn new(factor: i64, form: Affine) -> Relation {
        Relation { factor, form }
    }

    /// Returns the relation of the value plus a number.
    fn plus(&self, n: i64) -> Option<Relation> {
        let form = self.form.add_scaled(&Affine::constant(n), self.factor)?;
        Some(Relation::new(self.factor, form))
    }

    /// Returns the relation of a quotient by `divisor`, given the relation of its dividend plus `rest`.
    fn divided(&self, divisor: i64, rest: i64) -> Option<Relation> {
        let form = self.form.add_scaled(&Affine::constant(rest), self.factor)?;
        Some(Relation::new(self.factor.checked_mul(divisor)?, form))
    }
}

impl FactsWalk<'_> {
    /// Returns lower bounds of the index of a loop that begins with `lo`.
    pub(super) fn least(&mut self, lo: ExprId, state: &State) -> Relations {
        self.lower(lo, state, DEPTH)
    }

    /// Returns upper bounds of the index of a loop that ends before `hi`, in its iterations. No index is below `first`.
    pub(super) fn most(&mut self, hi: ExprId, first: i128, state: &State) -> Relations {
        let bounds = self.upper(hi, first.saturating_add(1), state, DEPTH);
        bounds.iter().filter_map(|bound| bound.plus(-1)).collect()
    }

    /// Returns forms that are at most a multiple of an expression.
    fn lower(&mut self, e: ExprId, state: &State, depth: u32) -> Relations {
        let mut found: Relations = self.eval(e, state).affine.map(|form| Relation::new(1, form)).into_iter().collect();
        let Some(depth) = depth.checked_sub(1) else { return found };
        if let Some((x, n)) = self.shifted(e, state) {
            found.extend(self.lower(x, state, depth).iter().filter_map(|r| r.plus(n)));
        } else if let Some((x, divisor)) = self.quotient(e, state)
            && self.eval(x, state).range.lo >= 0
        {
            found.extend(self.lower(x, state, depth).iter().filter_map(|r| r.divided(divisor, 1 - divisor)));
        } else if let Some([a, b]) = self.computed(BinaryOp::Max, e) {
            found.extend(self.lower(a, state, depth));
            found.extend(self.lower(b, state, depth));
        }
        found
    }

    /// Returns forms that are at least a multiple of an expression which is known to be at least `least`.
    fn upper(&mut self, e: ExprId, least: i128, state: &State, depth: u32) -> Relations {
        let mut found: Relations = self.eval(e, state).affine.map(|form| Relation::new(1, form)).into_iter().collect();
        let Some(depth) = depth.checked_sub(1) else { return found };
        if let Some((x, n)) = self.shifted(e, state) {
            let least = least.saturating_sub(n.into());
            found.extend(self.upper(x, least, state, depth).iter().filter_map(|r| r.plus(n)));
        } else if let Some((x, divisor)) = self.quotient(e, state)
            && least >= 1
        {
            // Division rounds down, because the quotient is positive.
            let least = least.saturating_mul(divisor.into());
            found.extend(self.upper(x, least, state, depth).iter().filter_map(|r| r.divided(divisor, 0)));
        } else if let Some([a, b]) = self.computed(BinaryOp::Min, e) {
            found.extend(self.upper(a, least, state, depth));
            found.extend(self.upper(b, least, state, depth));
        } else if let Some([a, b]) = self.computed(BinaryOp::Max, e) {
            // An operand below the least value of the maximum is not the greater one.
            for (low, other) in [(a, b), (b, a)] {
                if self.eval(low, state).range.hi < least {
                    found.extend(self.upper(other, least, state, depth));
                }
            }
        }
        found
    }

    /// Returns the operands of an expression with this operator. A local stands for its value if one statement sets it
    /// and nothing has changed the operands of that value since.
    fn computed(&self, wanted: BinaryOp, mut e: ExprId) -> Option<[ExprId; 2]> {
        loop {
            match self.codelet.exprs[e].kind {
                ExprKind::Local(local) => e = self.only[local].filter(|&value| self.stays(value))?,
                ExprKind::Binary { op, a, b, .. } => return (op == wanted).then_some([a, b]),
                _ => return None,
            }
        }
    }

    /// Returns whether an expression has one value wherever a local that holds it may be read.
    fn stays(&self, e: ExprId) -> bool {
        let kind = &self.codelet.exprs[e].kind;
        let own = match *kind {
            ExprKind::Local(local) => self.sets[local] == 1,
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => false,
            _ => true,
        };
        own && kind.operands().iter().all(|&x| self.stays(x))
    }

    /// Returns the operand and the number of a sum or difference with a number that cannot wrap.
    fn shifted(&mut self, e: ExprId, state: &State) -> Option<(ExprId, i64)> {
        let ([a, b], sign) = match self.computed(BinaryOp::Add, e) {
            Some(operands) => (operands, 1),
            None => (self.computed(BinaryOp::Sub, e)?, -1),
        };
        let number = |range: Interval| range.is_point().and_then(|n| i64::try_from(n).ok());
        let (x, y) = (self.eval(a, state).range, self.eval(b, state).range);
        let (operand, range, n) = match (number(x), number(y)) {
            (_, Some(n)) => (a, x, n.checked_mul(sign)?),
            (Some(n), None) if sign == 1 => (b, y, n),
            _ => return None,
        };
        let ends = [range.lo, range.hi].map(|v| v.checked_add(n.into()));
        let all = Interval::of(ElemType::I64);
        let fits = self.codelet.exprs[e].ty == ElemType::I64 && ends.iter().all(|v| v.is_some_and(|v| all.contains(v)));
        fits.then_some((operand, n))
    }

    /// Returns the dividend and the positive divisor of a quotient by a number.
    fn quotient(&mut self, e: ExprId, state: &State) -> Option<(ExprId, i64)> {
        let [a, b] = self.computed(BinaryOp::Div, e)?;
        let divisor = self.eval(b, state).range.is_point().and_then(|n| i64::try_from(n).ok())?;
        (divisor > 0 && self.codelet.exprs[e].ty == ElemType::I64).then_some((a, divisor))
    }

    /// Returns whether a form is certainly at most `limit` in the enclosing loops: either by the intervals of its
    /// symbols, or after a multiple of a loop's bound, which is never positive, has been subtracted.
    pub(super) fn is_at_most(&self, form: &Affine, limit: i128) -> bool {
        let fits = |form: &Affine| self.greatest(form).is_some_and(|greatest| greatest <= limit);
        fits(form)
            || self.around.iter().flat_map(|&symbol| self.bounds_of(symbol)).any(|bound| {
                form.terms.iter().any(|&(symbol, factor)| {
                    let times = factor.checked_div(bound.factor(symbol)).filter(|&times| times > 0);
                    times.and_then(|times| form.add_scaled(&bound, -times)).is_some_and(|form| fits(&form))
                })
            })
    }

    /// Returns the bounds of the index of a loop as forms that are not positive.
    fn bounds_of(&self, symbol: Symbol) -> impl Iterator<Item = Affine> {
        let Bounds { least, most, .. } = self.of_symbol(symbol);
        let below = least.iter().map(|r| (&r.form, r.factor, -1));
        let above = most.iter().map(|r| (&r.form, r.factor, 1));
        below.chain(above).filter_map(move |(form, factor, sign)| {
            let index = Affine::symbol(symbol).scaled(factor)?;
            index.add_scaled(form, -1)?.scaled(sign)
        })
    }

    /// Returns an upper bound of a form.
    fn greatest(&self, form: &Affine) -> Option<i128> {
        form.terms.iter().try_fold(i128::from(form.base), |sum, &(symbol, factor)| {
            let range = self.of_symbol(symbol).range;
            let end = if factor > 0 { range.hi } else { range.lo };
            sum.checked_add(end.checked_mul(factor.into())?)
        })
    }

    fn of_symbol(&self, symbol: Symbol) -> &Bounds {
        &self.symbols[symbol.0 as usize]
    }
}
