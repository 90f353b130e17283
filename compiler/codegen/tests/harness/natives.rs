//! Native kernels as plain loops.

use girder_codegen::Imports;
use girder_codegen::native::{MatrixArg, NativeKernels, ProductArgs};

/// The functions that the code under test calls.
pub static IMPORTS: Imports = Imports::new(NativeKernels { product_f32, product_f64 });

fn element<T>(m: &MatrixArg, i: u64, j: u64) -> *mut T {
    m.at.wrapping_offset((i as i64 * m.row + j as i64 * m.col) as isize).cast()
}

macro_rules! product {
    ($name:ident, $ty:ty) => {
        /// # Safety
        /// The arguments satisfy `girder_codegen::native`.
        unsafe extern "C" fn $name(args: *const ProductArgs) {
            // SAFETY: all elements lie in memory that the caller may touch.
            unsafe {
                let p = &*args;
                for (i, j) in (0..p.m).flat_map(|i| (0..p.n).map(move |j| (i, j))) {
                    let c: *mut $ty = element(&p.c, i, j);
                    let term = |sum: $ty, k: u64| {
                        let (a, b): (*mut $ty, *mut $ty) = (element(&p.a, i, k), element(&p.b, k, j));
                        a.read_unaligned().mul_add(b.read_unaligned(), sum)
                    };
                    c.write_unaligned((0..p.k).fold(c.read_unaligned(), term));
                }
            }
        }
    };
}
product!(product_f32, f32);
product!(product_f64, f64);
