//! Loops and reductions inside a strip's body, written out.
//!
//! An index of theirs is a number in each turn: nothing but [`Lower::ahead`] says which, so what it scales goes into
//! the offsets of instructions.
//!
//! Invariant: a place takes the elements of its reduction in the order of the language.

use super::Wide;
use crate::lower::Lower;
use crate::lower::reduce::LANES;
use crate::lower::vector::steps::{Reduction, Step};
use crate::wide::Value as Lanes;
use girder_codelet::interpret::identity;
use girder_codelet::scalar::is_ordered;
use girder_codelet::work;
use girder_ir::codelet::{BinaryOp, ReduceOp};
use girder_ir::ids::{ExprId, LocalId};

/// Lanes of a reduction whose order does not matter: its steps take a few cycles each.
const UNORDERED: usize = 4;

/// The turns of an inner loop: its index, the first value, by how much it grows, and how many there are.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    index: LocalId,
    first: i64,
    step: i64,
    count: u64,
}

impl Lower<'_, '_> {
    /// Nodes of steps whose inner loops are written out; `None` if it is not known how often one turns.
    pub(in crate::lower::vector) fn written_out_size(&self, steps: &[Step]) -> Option<u64> {
        let code = |e: ExprId| work::code_of(self.codelet, e);
        steps.iter().try_fold(0u64, |sum, step| {
            let size = match step {
                Step::Set { value, .. } | Step::Store { value, .. } => code(*value),
                Step::Total(total) => total.values().into_iter().map(code).sum(),
                Step::If { cond, then, els, .. } => {
                    code(*cond) + self.written_out_size(then)? + self.written_out_size(els)?
                }
                Step::For { lo, hi, step, body, .. } => {
                    self.known_trips(*lo, *hi, *step)?.saturating_mul(self.written_out_size(body)?)
                }
                Step::Reduce(r) => {
                    let trips = r.binders().iter().map(|b| self.known_trips(b.lo, b.hi, b.step));
                    let places = trips.into_iter().try_fold(1u64, |n, trips| Some(n.saturating_mul(trips?)))?;
                    let each = r.values().into_iter().map(code).sum::<u64>() + self.written_out_size(&r.before)?;
                    places.saturating_mul(each)
                }
            };
            Some(sum.saturating_add(size))
        })
    }

    /// The turns of a range whose bounds are known.
    pub(super) fn inner_turns(&self, index: LocalId, (lo, hi, step): (ExprId, ExprId, i64)) -> Turns {
        let count = self.known_trips(lo, hi, step).expect("a plan for a strip knows how often inner loops turn");
        Turns { index, first: self.known(lo).unwrap_or(0), step, count }
    }

    /// Runs `body` for each value of some indices, which are numbers there.
    pub(super) fn written_out_turns<'p>(
        &mut self,
        wide: &mut Wide<'p>,
        indices: &[Turns],
        body: &mut dyn FnMut(&mut Self, &mut Wide<'p>),
    ) {
        let Some((turns, inner)) = indices.split_first() else { return body(self, wide) };
        let zero = match wide.zero {
            Some(zero) => zero,
            None => *wide.zero.insert(self.i64(0)),
        };
        self.write(turns.index, zero);
        for n in 0..turns.count as i64 {
            self.ahead[turns.index] = turns.first.wrapping_add(n.wrapping_mul(turns.step));
            self.written_out_turns(wide, inner, body);
        }
        self.ahead[turns.index] = 0;
    }

    /// A reduction of each place's own elements: sixteen lanes, folded by 8, 4, 2, 1, if their order matters, else as many
    /// as do not wait for each other.
    pub(super) fn wide_reduction(&mut self, wide: &mut Wide<'_>, r: &Reduction) -> Lanes {
        let (op, ty) = (r.source.op.operator(), self.ty(r.source.value));
        let count = if is_ordered(r.source.op, ty) { LANES as usize } else { UNORDERED };
        let indices: Vec<Turns> = r.binders().iter().map(|b| self.inner_turns(b.var, (b.lo, b.hi, b.step))).collect();
        let mut lanes: Vec<Lanes> = Vec::new();
        let mut place = 0;
        self.written_out_turns(wide, &indices, &mut |l, wide| {
            l.wide_steps(wide, &r.before);
            let new = l.taken(wide, r, lanes.get(place % count));
            match lanes.get_mut(place % count) {
                Some(lane) => *lane = new,
                None => lanes.push(new),
            }
            place += 1;
        });
        // Lanes that no element comes to hold the identity, which changes nothing.
        for s in [8, 4, 2, 1] {
            for n in s..lanes.len() {
                lanes[n - s] = wide.program.binary(op, &lanes[n - s], &lanes[n]);
            }
            lanes.truncate(s);
        }
        let nothing = if r.source.op == ReduceOp::Sum { 0 } else { identity(r.source.op, ty) };
        lanes.pop().unwrap_or_else(|| wide.program.splat(ty, nothing))
    }

    /// A lane of a reduction that has taken an element; the first one alone if there is no `lane`.
    fn taken(&mut self, wide: &mut Wide<'_>, r: &Reduction, lane: Option<&Lanes>) -> Lanes {
        match (r.source.factors, lane) {
            (Some((x, y)), lane) => {
                let (x, y) = (self.wide_value(wide, x), self.wide_value(wide, y));
                match lane {
                    Some(lane) => wide.program.fma(&x, &y, lane),
                    // `fma(x, y, -0.0)` is the rounded product.
                    None => wide.program.binary(BinaryOp::Mul, &x, &y),
                }
            }
            (None, Some(lane)) => {
                let value = self.wide_value(wide, r.source.value);
                wide.program.binary(r.source.op.operator(), lane, &value)
            }
            (None, None) => self.wide_value(wide, r.source.value),
        }
    }
}
