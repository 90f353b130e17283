//! Products as plain loops, for any machine.

use super::vector::Float;
use super::{Product, Start};

/// # Safety
/// See the note on sound access.
pub(super) unsafe fn product<F: Float>(call: &Product, start: Start<F>) {
    for i in 0..call.m {
        for j in 0..call.n {
            let c = call.c.element(i, j).cast::<F>();
            let mut first = 0;
            // At least once: sums without terms are their start.
            loop {
                let terms = call.block.min(call.k - first);
                // SAFETY: i < m, j < n, k < `call.k`: all three elements are inside.
                unsafe {
                    let (mut sum, added) = match start {
                        _ if first > 0 => (F::ZERO, true),
                        Start::Old => (c.read_unaligned(), false),
                        Start::Value(value) => (value, false),
                        Start::Added => (F::ZERO, true),
                    };
                    for k in first..first + terms {
                        let a = call.a.element(i, k).cast::<F>().read_unaligned();
                        let b = call.b.element(k, j).cast::<F>().read_unaligned();
                        sum = a.mul_add(b, sum);
                    }
                    c.write_unaligned(if added { c.read_unaligned().add(sum) } else { sum });
                }
                first += terms;
                if first >= call.k {
                    break;
                }
            }
        }
    }
}
