//! Products as three loops, for any machine.

use super::vector::Float;
use super::{Product, Start};

/// # Safety
/// See the note on sound access.
pub(super) unsafe fn product<F: Float>(call: &Product, start: Start<F>) {
    for i in 0..call.m {
        for j in 0..call.n {
            // SAFETY: i < m, j < n, k < k: all three elements are inside.
            unsafe {
                let c = call.c.element(i, j).cast::<F>();
                let mut sum = match start {
                    Start::Old => c.read_unaligned(),
                    Start::Value(value) => value,
                };
                for k in 0..call.k {
                    let a = call.a.element(i, k).cast::<F>().read_unaligned();
                    let b = call.b.element(k, j).cast::<F>().read_unaligned();
                    sum = a.mul_add(b, sum);
                }
                c.write_unaligned(sum);
            }
        }
    }
}
