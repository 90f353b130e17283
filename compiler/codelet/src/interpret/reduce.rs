//! Reductions in the fixed order of the language: sixteen lanes, folded by 8, 4, 2, 1.
//!
//! Invariant: the lane of an element depends only on its row-major position, so skipping elements moves no others.

use super::frame::{Frame, Halt};
use super::trips;
use crate::scalar;
use girder_ir::codelet::{BinaryOp, Reduce, ReduceOp};
use girder_ir::ids::{ExprId, SiteId};
use girder_ir::types::ElemType;

/// Number of lanes of a reduction.
pub(crate) const LANES: usize = 16;

/// The state of a reduction.
enum Taken {
    /// Lanes, whether any element was taken, the operator and its operands' type.
    Lanes { lanes: [u64; LANES], any: bool, op: BinaryOp, ty: ElemType },
    /// Position and value of the best element.
    Best { best: Option<(u64, u64)>, better: BinaryOp, ty: ElemType },
}

impl<'a> Frame<'a> {
    pub(super) fn reduce(&mut self, reduce: &'a Reduce) -> Result<(), Halt> {
        let mut ranges = Vec::with_capacity(reduce.binders.len());
        for binder in &reduce.binders {
            let (lo, hi) = (self.int(binder.lo)?, self.int(binder.hi)?);
            ranges.push((self.offsets[binder.var], lo, binder.step, trips(lo, hi, binder.step), 0));
        }
        self.charge(ranges.iter().fold(1, |n: u64, r| n.saturating_mul(r.3)), reduce.iterations)?;
        let mut taken = Taken::new(reduce.op, self.expr(reduce.value).ty);
        if ranges.iter().all(|r| r.3 > 0) {
            let mut position = 0;
            for &(slot, lo, ..) in &ranges {
                self.locals[slot] = lo as u64;
            }
            loop {
                self.tick()?;
                self.take(reduce, position, &mut taken)?;
                position += 1;
                if !self.advance(&mut ranges) {
                    break;
                }
            }
        }
        let result = self.result(taken, reduce.site)?;
        self.locals[self.offsets[reduce.dst]] = result;
        Ok(())
    }

    /// Advances to the next element in row-major order; returns `false` after the last.
    fn advance(&mut self, ranges: &mut [(usize, i64, i64, u64, u64)]) -> bool {
        for (slot, lo, step, count, iteration) in ranges.iter_mut().rev() {
            *iteration += 1;
            if *iteration < *count {
                self.locals[*slot] = self.locals[*slot].wrapping_add(*step as u64);
                return true;
            }
            *iteration = 0;
            self.locals[*slot] = *lo as u64;
        }
        false
    }

    fn take(&mut self, reduce: &'a Reduce, position: u64, taken: &mut Taken) -> Result<(), Halt> {
        if let Some(filter) = reduce.filter {
            self.block(&reduce.filter_before)?;
            if self.eval(filter)? == 0 {
                return Ok(());
            }
        }
        self.block(&reduce.before)?;
        match taken {
            Taken::Lanes { lanes, any, op, ty } => {
                let lane = &mut lanes[(position % LANES as u64) as usize];
                *lane = self.lane_with(reduce.value, reduce.factors, *op, *ty, *lane)?;
                *any = true;
            }
            Taken::Best { best, better, ty } => {
                let value = self.eval(reduce.value)?;
                if best.is_none_or(|(_, old)| beats(*better, *ty, value, old)) {
                    *best = Some((position, value));
                }
            }
        }
        Ok(())
    }

    fn lane_with(
        &mut self,
        value: ExprId,
        factors: Option<(ExprId, ExprId)>,
        op: BinaryOp,
        ty: ElemType,
        lane: u64,
    ) -> Result<u64, Halt> {
        Ok(match factors {
            Some((x, y)) => scalar::fma(ty, self.eval(x)?, self.eval(y)?, lane),
            None => combine(op, ty, lane, self.eval(value)?),
        })
    }

    fn result(&mut self, taken: Taken, site: SiteId) -> Result<u64, Halt> {
        match taken {
            Taken::Lanes { any: false, op: BinaryOp::Add, .. } => Ok(0),
            Taken::Lanes { lanes, op, ty, .. } => Ok(fold(lanes, op, ty)),
            Taken::Best { best: Some((position, _)), .. } => Ok(position),
            Taken::Best { best: None, .. } => Err(self.fail(site, [0, 0])),
        }
    }
}

impl Taken {
    fn new(op: ReduceOp, ty: ElemType) -> Taken {
        match op {
            ReduceOp::ArgMin => Taken::Best { best: None, better: BinaryOp::Lt, ty },
            ReduceOp::ArgMax => Taken::Best { best: None, better: BinaryOp::Gt, ty },
            _ => Taken::Lanes { lanes: [identity(op, ty); LANES], any: false, op: op.operator(), ty },
        }
    }
}

/// Returns the initial value of a lane. `ArgMin` and `ArgMax` have no lanes and get zero.
pub fn identity(op: ReduceOp, ty: ElemType) -> u64 {
    let float = |v: f64| scalar::convert(ElemType::F64, ty, v.to_bits());
    match (op, scalar::int_range(ty)) {
        (ReduceOp::Sum, None) => float(-0.0),
        (ReduceOp::Product, None) => float(1.0),
        (ReduceOp::Min, None) => float(f64::INFINITY),
        (ReduceOp::Max, None) => float(f64::NEG_INFINITY),
        (ReduceOp::Product | ReduceOp::All, Some(_)) => 1,
        (ReduceOp::Min, Some((_, greatest))) => greatest as u64,
        (ReduceOp::Max, Some((least, _))) => scalar::mask(ty, least as u64),
        _ => 0,
    }
}

/// Returns `a op b` for operators that cannot fail.
fn combine(op: BinaryOp, ty: ElemType, a: u64, b: u64) -> u64 {
    scalar::binary(op, ty, a, b).unwrap_or_default()
}

fn fold(mut lanes: [u64; LANES], op: BinaryOp, ty: ElemType) -> u64 {
    for s in [8, 4, 2, 1] {
        for l in 0..s {
            lanes[l] = combine(op, ty, lanes[l], lanes[l + s]);
        }
    }
    lanes[0]
}

/// Returns whether a later value replaces the best so far; the first NaN stays.
fn beats(better: BinaryOp, ty: ElemType, value: u64, best: u64) -> bool {
    let is_nan = |x| combine(BinaryOp::Ne, ty, x, x) != 0;
    !is_nan(best) && (is_nan(value) || combine(better, ty, value, best) != 0)
}
