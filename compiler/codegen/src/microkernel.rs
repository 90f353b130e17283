//! The matrix-product unit in native code, with the widest vectors that the host has.
//!
//! # Note: Order
//! Every element of `c` takes its products in the order of k, each by one `fma`; elements are independent, so tiles
//! of them are computed side by side, and blocks of k one after the other. The result is that of the three plain
//! loops, to the bit.
//!
//! # Note: Sound access
//! [`AmpCall`] comes from compiled code that has checked (or whose facts prove) that all corners of the three views
//! lie inside their fields or arrays. Indices below `m`, `n`, `k` therefore address memory that the kernel may touch,
//! and `c` shares none with `a` and `b`. All accesses are unaligned.
//!
//! Invariant: no element outside `m × n`, `m × k` and `k × n` is accessed.

#[cfg(target_arch = "x86_64")]
mod x86;

use std::mem::offset_of;

/// A matrix: the address of element (0, 0) and byte strides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AmpMatrix {
    at: *mut u8,
    row: i64,
    col: i64,
}

/// The arguments of a product, as compiled code lays them out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AmpCall {
    c: AmpMatrix,
    a: AmpMatrix,
    b: AmpMatrix,
    m: u64,
    n: u64,
    k: u64,
}

/// Offsets in [`AmpCall`]; a matrix is three words.
pub(crate) mod call_offset {
    use super::{AmpCall, offset_of};

    pub(crate) const C: i32 = offset_of!(AmpCall, c) as i32;
    pub(crate) const A: i32 = offset_of!(AmpCall, a) as i32;
    pub(crate) const B: i32 = offset_of!(AmpCall, b) as i32;
    pub(crate) const M: i32 = offset_of!(AmpCall, m) as i32;
    pub(crate) const N: i32 = offset_of!(AmpCall, n) as i32;
    pub(crate) const K: i32 = offset_of!(AmpCall, k) as i32;
    pub(crate) const SIZE: u32 = size_of::<AmpCall>() as u32;
}

impl AmpMatrix {
    /// The address of an element. Nothing is accessed, so nothing can go wrong.
    fn element(&self, i: u64, j: u64) -> *mut u8 {
        let ahead = (i as i64).wrapping_mul(self.row).wrapping_add((j as i64).wrapping_mul(self.col));
        self.at.wrapping_offset(ahead as isize)
    }

    /// The part that begins at an element.
    fn from(&self, i: u64, j: u64) -> AmpMatrix {
        AmpMatrix { at: self.element(i, j), ..*self }
    }

    fn transposed(self) -> AmpMatrix {
        AmpMatrix { at: self.at, row: self.col, col: self.row }
    }
}

impl AmpCall {
    /// The same product with rows and columns swapped, `cᵀ += bᵀ aᵀ`, if that makes rows of `c` contiguous. The
    /// factors of each `fma` change places, which changes no bit.
    fn contiguous(self, element: i64) -> AmpCall {
        if self.c.col == element || self.c.row != element {
            return self;
        }
        let [c, a, b] = [self.c, self.b, self.a].map(AmpMatrix::transposed);
        AmpCall { c, a, b, m: self.n, n: self.m, k: self.k }
    }
}

/// `f32` and `f64`.
///
/// # Safety
/// `call` points to an [`AmpCall`] as the note of this module asks.
pub(crate) unsafe extern "C" fn amp_f32(call: *const AmpCall) {
    // SAFETY: the caller's promise is passed on; each variant runs only where its instructions exist.
    unsafe {
        let call = (*call).contiguous(4);
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                return x86::f32x16::product(&call);
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                return x86::f32x8::product(&call);
            }
        }
        plain_f32(&call);
    }
}

/// As [`amp_f32`].
///
/// # Safety
/// `call` points to an [`AmpCall`] as the note of this module asks.
pub(crate) unsafe extern "C" fn amp_f64(call: *const AmpCall) {
    // SAFETY: as in `amp_f32`.
    unsafe {
        let call = (*call).contiguous(8);
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                return x86::f64x8::product(&call);
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                return x86::f64x4::product(&call);
            }
        }
        plain_f64(&call);
    }
}

macro_rules! plain {
    ($name:ident, $float:ty) => {
        /// Three loops.
        ///
        /// # Safety
        /// See the note of this module.
        unsafe fn $name(call: &AmpCall) {
            for i in 0..call.m {
                for j in 0..call.n {
                    // SAFETY: i < m, j < n, k < k: all three elements are inside.
                    unsafe {
                        let c = call.c.element(i, j).cast::<$float>();
                        let mut sum = c.read_unaligned();
                        for k in 0..call.k {
                            let a = call.a.element(i, k).cast::<$float>().read_unaligned();
                            let b = call.b.element(k, j).cast::<$float>().read_unaligned();
                            sum = a.mul_add(b, sum);
                        }
                        c.write_unaligned(sum);
                    }
                }
            }
        }
    };
}
plain!(plain_f32, f32);
plain!(plain_f64, f64);

#[cfg(test)]
mod tests;
