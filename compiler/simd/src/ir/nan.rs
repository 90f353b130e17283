//! Bits of floats that may be those of any NaN.
//!
//! [`Op::Bits`] yields one NaN, which takes two instructions more than the bits themselves. In functions such as
//!
//! ```text
//! k = x * log2(e) + c;  p = polynomial(x, k);  y = p * float(bits(k) << 23);
//! ```
//!
//! they are unnecessary: if `k` is NaN, so is `x`, then `p` is NaN too, and so is `y`, whatever the bits are.
//!
//! Invariant: with the bits of any NaN, each effect and each loaded element is the same, except for the bits of a NaN.

use super::{Item, Kernel, Op, Rounding, Value};

/// The most definitions of a kernel, times the conversions in it, that are examined.
const MOST: usize = 1 << 22;

/// Returns which values of a kernel are [`Op::Bits`] whose NaN may have any bits.
pub(crate) fn any_nan(kernel: &Kernel) -> Vec<bool> {
    let is_bits = |v: &usize| kernel.defs[*v].op == Op::Bits && kernel.lane(kernel.defs[*v].args[0]).is_float();
    let all: Vec<usize> = (0..kernel.defs.len()).filter(is_bits).collect();
    let mut any = vec![false; kernel.defs.len()];
    if all.len() * kernel.defs.len() <= MOST {
        all.into_iter().for_each(|v| any[v] = is_absorbed(kernel, v));
    }
    any
}

/// Returns whether no effect depends on the bits of a NaN.
fn is_absorbed(kernel: &Kernel, bits: usize) -> bool {
    let root = source(kernel, kernel.defs[bits].args[0]);
    // Whether each value is NaN if the root is, whatever the bits are; and whether it may depend on them otherwise.
    let (mut nan, mut depends) = (vec![false; kernel.defs.len()], vec![false; kernel.defs.len()]);
    kernel.items.iter().all(|item| match item {
        Item::Make(value) => {
            let (v, def) = (value.0 as usize, kernel.def(*value));
            let is_nan = |a: &Value| nan[a.0 as usize];
            nan[v] = *value == root
                || match def.op {
                    Op::Select => def.args[1..].iter().all(is_nan),
                    Op::Convert => def.lane.is_float() && is_nan(&def.args[0]),
                    op => propagates(op) && def.lane.is_float() && def.args.iter().any(is_nan),
                };
            let of_operands = def.args.iter().any(|a| depends[a.0 as usize]);
            depends[v] = v == bits || of_operands && !nan[v];
            !(of_operands && def.op.loads())
        }
        Item::Do(effect) => !effect.reads().iter().any(|read| depends[read.0 as usize]),
    })
}

/// Returns whether the result for floats is NaN if an operand is.
fn propagates(op: Op) -> bool {
    use Op::{Abs, Add, Div, Fma, Max, Min, Mul, Neg, Round, Sqrt, Sub};
    matches!(op, Neg | Abs | Sqrt | Round(_) | Add | Sub | Mul | Div | Min | Max | Fma)
}

/// Returns a value that is NaN whenever another is: an operand that is combined with constants only.
fn source(kernel: &Kernel, mut x: Value) -> Value {
    loop {
        let def = kernel.def(x);
        let number =
            |v: Value| kernel.constant_bits(v).map(|bits| def.lane.float_value(bits)).filter(|n| n.is_finite());
        let factor = |v: Value| number(v).is_some_and(|n| n != 0.0);
        x = match (def.op, def.args.as_slice()) {
            (Op::Neg | Op::Abs, [a]) => *a,
            (Op::Round(Rounding::Nearest | Rounding::Floor | Rounding::Ceil | Rounding::Trunc), [a]) => *a,
            (Op::Add | Op::Sub | Op::Min | Op::Max, &[a, b]) if number(b).is_some() => a,
            (Op::Add | Op::Sub | Op::Min | Op::Max, &[a, b]) if number(a).is_some() => b,
            (Op::Mul, &[a, b]) if factor(b) => a,
            (Op::Mul, &[a, b]) if factor(a) => b,
            (Op::Fma, &[a, b, c]) if factor(b) && number(c).is_some() => a,
            (Op::Fma, &[a, b, c]) if factor(a) && number(c).is_some() => b,
            _ => return x,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Lane, Memory, Moving};

    fn kernel() -> (Kernel, Memory, Value) {
        let mut kernel = Kernel::new(1);
        let at = Memory { pointer: kernel.pointer(Moving { offset: 0, stride: 4, outer: 0 }), offset: 0 };
        let x = kernel.load(Lane::F32, at, None);
        (kernel, at, x)
    }

    #[test]
    fn bits_that_meet_a_nan_are_absorbed() {
        let (mut kernel, at, x) = kernel();
        let [factor, magic] = [1.4, 12582912.0f32].map(|n| kernel.constant(Lane::F32, n.to_bits().into()));
        let k = kernel.fma(x, factor, magic);
        let (bits, p) = (kernel.bits(Lane::I32, k), kernel.binary(Op::Mul, x, x));
        let power = kernel.unary(Op::Shl { by: 23 }, bits);
        let power = kernel.bits(Lane::F32, power);
        let y = kernel.binary(Op::Mul, p, power);
        let zero = kernel.constant(Lane::I32, 0);
        let negative = kernel.compare(super::super::Cond::Lt, bits, zero);
        let minus = kernel.unary(Op::Neg, y);
        let signed = kernel.select(negative, minus, y);
        kernel.store(at, signed, None);
        assert!(any_nan(&kernel)[bits.0 as usize]);
        kernel.store(at, power, None);
        assert!(!any_nan(&kernel)[bits.0 as usize], "they are stored");
    }

    #[test]
    fn bits_of_a_nan_that_has_another_source_are_not_absorbed() {
        let (mut kernel, at, x) = kernel();
        let root = kernel.unary(Op::Sqrt, x);
        let bits = kernel.bits(Lane::I32, root);
        let float = kernel.bits(Lane::F32, bits);
        let y = kernel.binary(Op::Add, x, float);
        kernel.store(at, y, None);
        assert!(!any_nan(&kernel)[bits.0 as usize], "the root of -1 is NaN, but -1 is not");
        let (mut kernel, at, x) = self::kernel();
        let bits = kernel.bits(Lane::I32, x);
        kernel.store(at, bits, None);
        assert!(!any_nan(&kernel)[bits.0 as usize], "they are stored");
    }
}
