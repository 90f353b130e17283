//! The native kernels that compiled code calls, at each level of the instruction set.
//!
//! Invariant: a table is used only with code that was compiled for its level.

use girder_codegen::Imports;
use girder_codegen::native::{MatrixArg, NativeKernels, ProductArgs};
use girder_kernels::{Level, Matrix, Product, Start, product_f32, product_f64};

/// Returns the native functions for code that was compiled for a level.
pub(crate) fn imports(level: girder_codegen::Level) -> &'static Imports {
    static PORTABLE: Imports = Imports::new(NativeKernels { product_f32: f32_portable, product_f64: f64_portable });
    static AVX2: Imports = Imports::new(NativeKernels { product_f32: f32_avx2, product_f64: f64_avx2 });
    static AVX512: Imports = Imports::new(NativeKernels { product_f32: f32_avx512, product_f64: f64_avx512 });
    match level {
        girder_codegen::Level::Portable => &PORTABLE,
        girder_codegen::Level::Avx2 => &AVX2,
        girder_codegen::Level::Avx512 => &AVX512,
    }
}

/// Returns the instructions that native kernels may use at a level.
pub(crate) fn level(level: girder_codegen::Level) -> Level {
    match level {
        girder_codegen::Level::Portable => Level::Portable,
        girder_codegen::Level::Avx2 => Level::Avx2,
        girder_codegen::Level::Avx512 => Level::Avx512,
    }
}

fn product(args: &ProductArgs) -> Product {
    let matrix = |m: MatrixArg| Matrix { at: m.at, row: m.row, col: m.col };
    Product {
        c: matrix(args.c),
        a: matrix(args.a),
        b: matrix(args.b),
        m: args.m,
        n: args.n,
        k: args.k,
        block: u64::MAX,
    }
}

macro_rules! entries {
    ($($name:ident = $product:ident($level:ident);)*) => {$(
        /// # Safety
        /// The arguments satisfy `girder_codegen::native`, and the machine has the level's instructions.
        unsafe extern "C" fn $name(args: *const ProductArgs) {
            // SAFETY: the caller's promise.
            unsafe { $product(Level::$level, &product(&*args), Start::Old) }
        }
    )*};
}
entries! {
    f32_portable = product_f32(Portable);
    f64_portable = product_f64(Portable);
    f32_avx2 = product_f32(Avx2);
    f64_avx2 = product_f64(Avx2);
    f32_avx512 = product_f32(Avx512);
    f64_avx512 = product_f64(Avx512);
}
