//! Loops and reductions inside the body of a vector kernel, fully unrolled.
//!
//! In each copy of the body, the index of such a loop is a constant. Only [`Lower::ahead`] has it, so that its
//! multiples become offsets in instructions.
//!
//! Invariant: an iteration reduces its elements in the order of the language.

use super::lanes::{binary, lane};
use super::{Lanes, VectorKernel};
use crate::lower::Lower;
use crate::lower::reduce::LANES;
use crate::lower::vector::steps::{Reduction, Step};
use girder_codelet::interpret::identity;
use girder_codelet::scalar::is_ordered;
use girder_codelet::work;
use girder_ir::codelet::{BinaryOp, ReduceOp};
use girder_ir::ids::{ExprId, LocalId};

/// The number of lanes of a reduction whose order does not matter. It hides the latency of a step, which is a few
/// cycles.
const UNORDERED: usize = 4;

/// The range of an inner loop: its index, the first value, the step and the trip count.
#[derive(Clone, Copy)]
pub(super) struct InnerRange {
    index: LocalId,
    first: i64,
    step: i64,
    count: u64,
}

impl Lower<'_, '_> {
    /// Returns the number of operations of steps with their inner loops fully unrolled; `None` if a trip count is not known.
    pub(in crate::lower::vector) fn written_out_size(&self, steps: &[Step]) -> Option<u64> {
        let code = |e: ExprId| work::operations_of(self.codelet, e);
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
                    let elements = trips.into_iter().try_fold(1u64, |n, trips| Some(n.saturating_mul(trips?)))?;
                    let each = r.values().into_iter().map(code).sum::<u64>() + self.written_out_size(&r.before)?;
                    elements.saturating_mul(each)
                }
            };
            Some(sum.saturating_add(size))
        })
    }

    /// Returns the range of a loop whose bounds are known.
    pub(super) fn inner_range(&self, index: LocalId, (lo, hi, step): (ExprId, ExprId, i64)) -> InnerRange {
        let count =
            self.known_trips(lo, hi, step).expect("a plan for a vector kernel knows the trip counts of inner loops");
        InnerRange { index, first: self.known(lo).unwrap_or(0), step, count }
    }

    /// Runs `body` for each combination of values of several indices, which are constants there.
    pub(super) fn written_out_range<'p>(
        &mut self,
        vk: &mut VectorKernel<'p>,
        ranges: &[InnerRange],
        body: &mut dyn FnMut(&mut Self, &mut VectorKernel<'p>),
    ) {
        let Some((range, inner)) = ranges.split_first() else { return body(self, vk) };
        let zero = match vk.zero {
            Some(zero) => zero,
            None => *vk.zero.insert(self.i64(0)),
        };
        self.write(range.index, zero);
        for n in 0..range.count as i64 {
            self.ahead[range.index] = range.first.wrapping_add(n.wrapping_mul(range.step));
            self.written_out_range(vk, inner, body);
        }
        self.ahead[range.index] = 0;
    }

    /// Translates a reduction over each iteration's own elements. If the order matters, it has sixteen lanes, folded by
    /// 8, 4, 2, 1. Otherwise it has enough lanes to hide the latency.
    pub(super) fn kernel_reduction(&mut self, vk: &mut VectorKernel<'_>, r: &Reduction) -> Lanes {
        let (op, ty) = (r.source.op.operator(), self.ty(r.source.value));
        let count = if is_ordered(r.source.op, ty) { LANES as usize } else { UNORDERED };
        let indices: Vec<InnerRange> =
            r.binders().iter().map(|b| self.inner_range(b.var, (b.lo, b.hi, b.step))).collect();
        let mut lanes: Vec<Lanes> = Vec::new();
        let mut element = 0;
        self.written_out_range(vk, &indices, &mut |l, vk| {
            l.kernel_steps(vk, &r.before);
            let new = l.taken(vk, r, lanes.get(element % count).copied());
            match lanes.get_mut(element % count) {
                Some(lane) => *lane = new,
                None => lanes.push(new),
            }
            element += 1;
        });
        // Lanes without elements have the identity, which changes nothing.
        for s in [8, 4, 2, 1] {
            for n in s..lanes.len() {
                lanes[n - s] = binary(&mut vk.ir, op, lanes[n - s], lanes[n]);
            }
            lanes.truncate(s);
        }
        let nothing = if r.source.op == ReduceOp::Sum { 0 } else { identity(r.source.op, ty) };
        lanes.pop().unwrap_or_else(|| vk.ir.constant(lane(ty), nothing))
    }

    /// Combines an element with a lane of a reduction. If there is no `lane`, returns the element alone.
    fn taken(&mut self, vk: &mut VectorKernel<'_>, r: &Reduction, lane: Option<Lanes>) -> Lanes {
        match (r.source.factors, lane) {
            (Some((x, y)), lane) => {
                let (x, y) = (self.kernel_value(vk, x), self.kernel_value(vk, y));
                match lane {
                    Some(lane) => vk.ir.fma(x, y, lane),
                    // `fma(x, y, -0.0)` is the rounded product.
                    None => binary(&mut vk.ir, BinaryOp::Mul, x, y),
                }
            }
            (None, Some(lane)) => {
                let value = self.kernel_value(vk, r.source.value);
                binary(&mut vk.ir, r.source.op.operator(), lane, value)
            }
            (None, None) => self.kernel_value(vk, r.source.value),
        }
    }
}
