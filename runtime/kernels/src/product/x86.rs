//! Vectors of AVX-512 and AVX2.
//!
//! Invariant: each function is called only where the instructions of its module exist.

use super::vector::Vector;
use std::arch::x86_64::*;

/// Functions of tiles by rows and vectors, from 1 on.
macro_rules! table {
    ($tile:ident, $f:ident, [$($m:literal)*], $columns:tt) => { [$(table!(@row $tile, $f, $m, $columns)),*] };
    (@row $tile:ident, $f:ident, $m:literal, [$($n:literal)*]) => { &[$($tile::<$m, $n> as $f<Float>),*] };
}

/// A module with the product in one kind of vector.
macro_rules! kernel {
    ($name:ident, $vector:ident, $features:literal, $rows:tt, $columns:tt, $linked:tt) => {
        pub(super) mod $name {
            use crate::product::blocked::{self, Kernels};
            use crate::product::flat::{self, FlatFn};
            use crate::product::linked::{self, LinkedKernels, LinkedProduct, LinkedTile, LinkedTileFn};
            use crate::product::pack::{self, PanelSource};
            use crate::product::tile::{self, Tile, TileFn};
            use crate::product::vector::Vector;
            use crate::product::x86::$vector;
            use crate::product::{Product, Start};

            type Float = <$vector as Vector>::Float;

            /// # Safety
            /// As `tile::tile`.
            #[target_feature(enable = $features)]
            unsafe fn tile<const M: usize, const N: usize>(tile: &Tile<Float>) {
                // SAFETY: passed on.
                unsafe { tile::tile::<$vector, M, N>(tile) }
            }

            /// # Safety
            /// As `linked::tile`.
            #[target_feature(enable = $features)]
            unsafe fn linked_tile<const M: usize, const N: usize>(tile: &LinkedTile<'_, Float>) {
                // SAFETY: passed on.
                unsafe { linked::tile::<$vector, M, N>(tile) }
            }

            /// # Safety
            /// As `flat::flat`.
            #[target_feature(enable = $features)]
            unsafe fn flat<const M: usize>(call: &Product, start: Start<Float>) {
                // SAFETY: passed on.
                unsafe { flat::flat::<$vector, M>(call, start) }
            }

            /// # Safety
            /// As `pack::pack`.
            #[target_feature(enable = $features)]
            unsafe fn pack(source: &PanelSource, vectors: usize, to: *mut Float) {
                // SAFETY: passed on.
                unsafe { pack::pack::<$vector>(source, vectors, to) }
            }

            const KERNELS: Kernels<Float> = Kernels {
                tiles: &table!(tile, TileFn, $rows, $columns),
                flats: &[flat::<1> as FlatFn<Float>, flat::<2>, flat::<3>, flat::<4>],
                pack,
            };

            const LINKED: LinkedKernels<Float> =
                LinkedKernels { tiles: &table!(linked_tile, LinkedTileFn, $rows, $linked), pack };

            /// Computes a whole product.
            ///
            /// # Safety
            /// The machine has the instructions, and the call satisfies the note on sound access.
            pub(in crate::product) unsafe fn product(call: &Product, start: Start<Float>) {
                // SAFETY: passed on.
                unsafe { blocked::product::<$vector>(call, start, &KERNELS) }
            }

            /// Computes a whole linked product.
            ///
            /// # Safety
            /// As `product`.
            pub(in crate::product) unsafe fn linked(call: &LinkedProduct<'_>, start: Start<Float>) {
                // SAFETY: passed on.
                unsafe { linked::product::<$vector>(call, start, &LINKED) }
            }
        }
    };
}

kernel!(f32x16, F32x16, "avx512f", [1 2 3 4 5 6 7 8], [1 2 3], [1 2 3 4]);
kernel!(f64x8, F64x8, "avx512f", [1 2 3 4 5 6 7 8], [1 2 3], [1 2 3 4]);
kernel!(f32x8, F32x8, "avx2,fma", [1 2 3 4 5 6], [1 2], [1 2]);
kernel!(f64x4, F64x4, "avx2,fma", [1 2 3 4 5 6], [1 2], [1 2]);

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F32x16(__m512);
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F64x8(__m512d);
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F32x8(__m256);
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F64x4(__m256d);

macro_rules! common {
    ($splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident) => {
        #[inline(always)]
        unsafe fn splat(x: Self::Float) -> Self {
            // SAFETY: the caller's promise, here and below.
            unsafe { Self($splat(x)) }
        }
        #[inline(always)]
        unsafe fn load(at: *const Self::Float) -> Self {
            unsafe { Self($load(at)) }
        }
        #[inline(always)]
        unsafe fn store(self, at: *mut Self::Float) {
            unsafe { $store(at, self.0) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { Self($fma(a.0, b.0, self.0)) }
        }
        #[inline(always)]
        unsafe fn add(self, b: Self) -> Self {
            unsafe { Self($add(self.0, b.0)) }
        }
    };
}

/// Masks in their own registers.
macro_rules! masks_512 {
    ($mask:ty, $load:ident, $store:ident) => {
        type Mask = $mask;
        #[inline(always)]
        fn first(lanes: usize) -> Self::Mask {
            ((1u32 << lanes) - 1) as $mask
        }
        #[inline(always)]
        unsafe fn load_some(at: *const Self::Float, mask: Self::Mask) -> Self {
            // SAFETY: the caller's promise; other lanes are not read.
            unsafe { Self($load(mask, at)) }
        }
        #[inline(always)]
        unsafe fn store_some(self, at: *mut Self::Float, mask: Self::Mask) {
            // SAFETY: the caller's promise; other lanes are not written.
            unsafe { $store(at, mask, self.0) }
        }
    };
}

/// Masks that are vectors of integers.
macro_rules! masks_256 {
    ($int:ty, $load:ident, $store:ident) => {
        type Mask = [$int; Self::LANES];
        #[inline(always)]
        fn first(lanes: usize) -> Self::Mask {
            std::array::from_fn(|n| if n < lanes { -1 } else { 0 })
        }
        #[inline(always)]
        unsafe fn load_some(at: *const Self::Float, mask: Self::Mask) -> Self {
            // SAFETY: the caller's promise; other lanes are not read. The mask has 32 bytes.
            unsafe { Self($load(at, _mm256_loadu_si256(mask.as_ptr().cast()))) }
        }
        #[inline(always)]
        unsafe fn store_some(self, at: *mut Self::Float, mask: Self::Mask) {
            // SAFETY: the caller's promise; other lanes are not written. The mask has 32 bytes.
            unsafe { $store(at, _mm256_loadu_si256(mask.as_ptr().cast()), self.0) }
        }
    };
}

// SAFETY of all `transpose` below: the caller's promise: 16 bytes may be read at each of `LANES` addresses, and `QUAD`
// vectors written.

impl Vector for F32x16 {
    type Float = f32;
    const LANES: usize = 16;
    const ROWS: usize = 8;
    const WIDTH: usize = 3;
    const LINKED_WIDTH: usize = 4;
    const SUMS: usize = 24;
    common!(_mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps);
    masks_512!(__mmask16, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps);

    #[inline(always)]
    unsafe fn transpose(from: *const u8, step: i64, to: *mut f32, ahead: usize) {
        unsafe {
            // The quads of rows r, r + 4, r + 8 and r + 12, side by side.
            macro_rules! rows {
                ($r:expr) => {{
                    let r: i64 = $r;
                    macro_rules! quad {
                        ($q:expr) => {
                            _mm_loadu_ps(from.offset((($q) * step) as isize).cast())
                        };
                    }
                    let v = _mm512_castps128_ps512(quad!(r));
                    let v = _mm512_insertf32x4::<1>(v, quad!(r + 4));
                    let v = _mm512_insertf32x4::<2>(v, quad!(r + 8));
                    _mm512_insertf32x4::<3>(v, quad!(r + 12))
                }};
            }
            let [a, b, c, d] = [rows!(0), rows!(1), rows!(2), rows!(3)];
            let (ab, cd) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
            let (ef, gh) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
            _mm512_storeu_ps(to, _mm512_shuffle_ps::<0b01_00_01_00>(ab, cd));
            _mm512_storeu_ps(to.add(ahead), _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd));
            _mm512_storeu_ps(to.add(2 * ahead), _mm512_shuffle_ps::<0b01_00_01_00>(ef, gh));
            _mm512_storeu_ps(to.add(3 * ahead), _mm512_shuffle_ps::<0b11_10_11_10>(ef, gh));
        }
    }
}

impl Vector for F64x8 {
    type Float = f64;
    const LANES: usize = 8;
    const ROWS: usize = 8;
    const WIDTH: usize = 3;
    const LINKED_WIDTH: usize = 4;
    const SUMS: usize = 24;
    common!(_mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd);
    masks_512!(__mmask8, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd);

    #[inline(always)]
    unsafe fn transpose(from: *const u8, step: i64, to: *mut f64, ahead: usize) {
        unsafe {
            // The pairs of rows r, r + 2, r + 4 and r + 6, side by side.
            macro_rules! rows {
                ($r:expr) => {{
                    let r: i64 = $r;
                    macro_rules! pair {
                        ($q:expr) => {
                            _mm256_castpd128_pd256(_mm_loadu_pd(from.offset((($q) * step) as isize).cast()))
                        };
                    }
                    let low = _mm256_insertf128_pd::<1>(pair!(r), _mm256_castpd256_pd128(pair!(r + 2)));
                    let high = _mm256_insertf128_pd::<1>(pair!(r + 4), _mm256_castpd256_pd128(pair!(r + 6)));
                    _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high)
                }};
            }
            let [a, b] = [rows!(0), rows!(1)];
            _mm512_storeu_pd(to, _mm512_unpacklo_pd(a, b));
            _mm512_storeu_pd(to.add(ahead), _mm512_unpackhi_pd(a, b));
        }
    }
}

impl Vector for F32x8 {
    type Float = f32;
    const LANES: usize = 8;
    const ROWS: usize = 6;
    const WIDTH: usize = 2;
    const LINKED_WIDTH: usize = 2;
    const SUMS: usize = 12;
    common!(_mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps);
    masks_256!(i32, _mm256_maskload_ps, _mm256_maskstore_ps);

    #[inline(always)]
    unsafe fn transpose(from: *const u8, step: i64, to: *mut f32, ahead: usize) {
        unsafe {
            // The quads of rows r and r + 4, side by side.
            macro_rules! rows {
                ($r:expr) => {{
                    let r: i64 = $r;
                    macro_rules! quad {
                        ($q:expr) => {
                            _mm_loadu_ps(from.offset((($q) * step) as isize).cast())
                        };
                    }
                    _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(quad!(r)), quad!(r + 4))
                }};
            }
            let [a, b, c, d] = [rows!(0), rows!(1), rows!(2), rows!(3)];
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ef, gh) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            _mm256_storeu_ps(to, _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd));
            _mm256_storeu_ps(to.add(ahead), _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd));
            _mm256_storeu_ps(to.add(2 * ahead), _mm256_shuffle_ps::<0b01_00_01_00>(ef, gh));
            _mm256_storeu_ps(to.add(3 * ahead), _mm256_shuffle_ps::<0b11_10_11_10>(ef, gh));
        }
    }
}

impl Vector for F64x4 {
    type Float = f64;
    const LANES: usize = 4;
    const ROWS: usize = 6;
    const WIDTH: usize = 2;
    const LINKED_WIDTH: usize = 2;
    const SUMS: usize = 12;
    common!(_mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd);
    masks_256!(i64, _mm256_maskload_pd, _mm256_maskstore_pd);

    #[inline(always)]
    unsafe fn transpose(from: *const u8, step: i64, to: *mut f64, ahead: usize) {
        unsafe {
            // The pairs of rows r and r + 2, side by side.
            macro_rules! rows {
                ($r:expr) => {{
                    let r: i64 = $r;
                    macro_rules! pair {
                        ($q:expr) => {
                            _mm_loadu_pd(from.offset((($q) * step) as isize).cast())
                        };
                    }
                    _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(pair!(r)), pair!(r + 2))
                }};
            }
            let [a, b] = [rows!(0), rows!(1)];
            _mm256_storeu_pd(to, _mm256_unpacklo_pd(a, b));
            _mm256_storeu_pd(to.add(ahead), _mm256_unpackhi_pd(a, b));
        }
    }
}
