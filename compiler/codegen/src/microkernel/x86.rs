//! Tiles of `c` in vector registers: up to eight rows of one or two vectors, or up to two rows of four, whose columns
//! lie side by side in `b`. Rows of `b` that are not contiguous are packed first.
//!
//! Invariant: the last vector of a row is loaded and stored under a mask, so that no column beyond the last is
//! touched.

use super::{AmpCall, AmpMatrix};
use std::mem::MaybeUninit;

/// Rows of a tile of one or two vectors.
const ROWS: u64 = 8;
/// Up to this many rows, tiles are four vectors wide: fewer would leave the arithmetic units waiting.
const FLAT: u64 = 2;
/// Products taken at a time: a packed panel stays in the first-level cache.
const BLOCK: u64 = 128;

macro_rules! kernel {
    ($name:ident, $float:ty, $vector:ident, $lanes:literal, $features:literal, $masks:ident,
     $load:ident, $store:ident, $splat:ident, $fma:ident) => {
        pub(super) mod $name {
            use super::*;
            use std::arch::x86_64::{$fma, $load, $splat, $store, $vector};

            const LANES: usize = $lanes;
            const WIDEST: usize = 4 * LANES;
            const ELEMENT: i64 = size_of::<$float>() as i64;
            type Panel = [MaybeUninit<$float>; WIDEST * BLOCK as usize];

            /// Some rows of `b`: where column 0 of the tile is, and bytes from row to row.
            #[derive(Clone, Copy)]
            struct Rows {
                at: *const u8,
                step: i64,
                count: u64,
            }

            /// The whole product.
            ///
            /// # Safety
            /// The host has the instructions, and the call is as the note of `microkernel` asks.
            #[target_feature(enable = $features)]
            pub(in crate::microkernel) unsafe fn product(call: &AmpCall) {
                let mut buffer: Panel = [const { MaybeUninit::uninit() }; WIDEST * BLOCK as usize];
                let widest = if call.m <= FLAT { WIDEST } else { WIDEST / 2 } as u64;
                let mut j = 0;
                while j < call.n {
                    let columns = (call.n - j).min(widest);
                    let mut k = 0;
                    while k < call.k {
                        let count = (call.k - k).min(BLOCK);
                        // SAFETY: the parts lie inside the matrices: j + columns <= n and k + count <= k.
                        unsafe {
                            let rows = panel(call.b.from(k, j), count, columns, &mut buffer);
                            block(call.m, call.c.from(0, j), call.a.from(0, k), rows, columns);
                        }
                        k += count;
                    }
                    j += columns;
                }
            }

            /// `count` rows of `columns` columns, contiguous.
            ///
            /// # Safety
            /// The rows and columns are inside `b`.
            #[target_feature(enable = $features)]
            unsafe fn panel(b: AmpMatrix, count: u64, columns: u64, buffer: &mut Panel) -> Rows {
                if b.col == ELEMENT {
                    return Rows { at: b.at, step: b.row, count };
                }
                for k in 0..count {
                    for j in 0..columns {
                        // SAFETY: k < count and j < columns are inside.
                        let value = unsafe { b.element(k, j).cast::<$float>().read_unaligned() };
                        buffer[(k * columns + j) as usize] = MaybeUninit::new(value);
                    }
                }
                Rows { at: buffer.as_ptr().cast(), step: columns as i64 * ELEMENT, count }
            }

            /// All `m` rows of `c` for one panel.
            ///
            /// # Safety
            /// `c` and `a` have `m` rows, `c` has the columns, `a` as many as the panel has rows.
            #[target_feature(enable = $features)]
            unsafe fn block(m: u64, c: AmpMatrix, a: AmpMatrix, rows: Rows, columns: u64) {
                let mut i = 0;
                while i < m {
                    let vectors = columns.div_ceil(LANES as u64);
                    let height = (m - i).min(if vectors > 2 { FLAT } else { ROWS });
                    let (c, a) = (c.from(i, 0), a.from(i, 0));
                    // SAFETY: the tile is inside: i + height <= m.
                    unsafe {
                        match (vectors, height) {
                            (1, _) => tile_of::<1>(height, c, a, rows, columns),
                            (2, _) => tile_of::<2>(height, c, a, rows, columns),
                            (3, 1) => tile::<1, 3>(c, a, rows, columns),
                            (3, _) => tile::<2, 3>(c, a, rows, columns),
                            (_, 1) => tile::<1, 4>(c, a, rows, columns),
                            _ => tile::<2, 4>(c, a, rows, columns),
                        }
                    }
                    i += height;
                }
            }

            /// # Safety
            /// As `tile`, with `height` rows, 1 to 8.
            #[target_feature(enable = $features)]
            unsafe fn tile_of<const N: usize>(height: u64, c: AmpMatrix, a: AmpMatrix, rows: Rows, columns: u64) {
                // SAFETY: passed on.
                unsafe {
                    match height {
                        1 => tile::<1, N>(c, a, rows, columns),
                        2 => tile::<2, N>(c, a, rows, columns),
                        3 => tile::<3, N>(c, a, rows, columns),
                        4 => tile::<4, N>(c, a, rows, columns),
                        5 => tile::<5, N>(c, a, rows, columns),
                        6 => tile::<6, N>(c, a, rows, columns),
                        7 => tile::<7, N>(c, a, rows, columns),
                        _ => tile::<8, N>(c, a, rows, columns),
                    }
                }
            }

            /// A row of `N` vectors, the last one in part.
            ///
            /// # Safety
            /// The lanes of `N - 1` vectors and those that `last` selects may be read.
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn row<const N: usize>(at: *const $float, last: $masks::Mask) -> [$vector; N] {
                let mut row = [$splat(0.0); N];
                for n in 0..N {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let at = at.wrapping_add(n * LANES);
                        row[n] = if n + 1 < N { $load(at) } else { $masks::load(at, last) };
                    }
                }
                row
            }

            /// `M` rows of `N` vectors.
            ///
            /// # Safety
            /// `c` has `M` rows of `columns` columns, which take `N` vectors; `a` has `M` rows and as many columns as
            /// the panel has rows; the panel's rows have the columns.
            #[target_feature(enable = $features)]
            unsafe fn tile<const M: usize, const N: usize>(c: AmpMatrix, a: AmpMatrix, rows: Rows, columns: u64) {
                let side_by_side = c.col == ELEMENT;
                let last = $masks::first(columns - ((N - 1) * LANES) as u64);
                let mut edge = [[0.0 as $float; WIDEST]; M];
                let mut sums = [[$splat(0.0); N]; M];
                // SAFETY: rows below `M` and columns below `columns` are inside `c`, and `last` selects the columns
                // of the last vector; `edge` has room for four vectors per row; (i, k) is inside `a`, and row k of
                // the panel has the columns.
                unsafe {
                    for i in 0..M {
                        let mut from = c.element(i as u64, 0).cast::<$float>().cast_const();
                        if !side_by_side {
                            for j in 0..columns {
                                edge[i][j as usize] = c.element(i as u64, j).cast::<$float>().read_unaligned();
                            }
                            from = edge[i].as_ptr();
                        }
                        sums[i] = row::<N>(from, last);
                    }
                    let mut at = rows.at;
                    for k in 0..rows.count {
                        let b = row::<N>(at.cast(), last);
                        for i in 0..M {
                            let x = $splat(a.element(i as u64, k).cast::<$float>().read_unaligned());
                            for n in 0..N {
                                sums[i][n] = $fma(x, b[n], sums[i][n]);
                            }
                        }
                        at = at.wrapping_offset(rows.step as isize);
                    }
                    for i in 0..M {
                        let to = c.element(i as u64, 0).cast::<$float>();
                        let to = if side_by_side { to } else { edge[i].as_mut_ptr() };
                        for n in 0..N - 1 {
                            $store(to.wrapping_add(n * LANES), sums[i][n]);
                        }
                        $masks::store(to.wrapping_add((N - 1) * LANES), last, sums[i][N - 1]);
                        if !side_by_side {
                            for j in 0..columns {
                                c.element(i as u64, j).cast::<$float>().write_unaligned(edge[i][j as usize]);
                            }
                        }
                    }
                }
            }
        }
    };
}

/// Masks in their own registers.
macro_rules! masks_512 {
    ($name:ident, $float:ty, $vector:ident, $mask:ident, $load:ident, $store:ident) => {
        mod $name {
            use std::arch::x86_64::{$load, $mask, $store, $vector};

            pub(super) type Mask = $mask;

            /// The first lanes, at least one and at most all.
            pub(super) fn first(lanes: u64) -> Mask {
                Mask::MAX >> (u64::from(Mask::BITS) - lanes)
            }

            /// # Safety
            /// The selected lanes may be read.
            #[inline]
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn load(at: *const $float, mask: Mask) -> $vector {
                // SAFETY: the caller's promise; other lanes are not read.
                unsafe { $load(mask, at) }
            }

            /// # Safety
            /// The selected lanes may be written.
            #[inline]
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn store(at: *mut $float, mask: Mask, value: $vector) {
                // SAFETY: the caller's promise; other lanes are not written.
                unsafe { $store(at, mask, value) }
            }
        }
    };
}

/// Masks that are vectors of integers.
macro_rules! masks_256 {
    ($name:ident, $float:ty, $vector:ident, $int:ty, $lanes:literal, $load:ident, $store:ident) => {
        mod $name {
            use std::arch::x86_64::{__m256i, _mm256_loadu_si256, $load, $store, $vector};

            pub(super) type Mask = [$int; $lanes];

            /// The first lanes, at least one and at most all.
            pub(super) fn first(lanes: u64) -> Mask {
                std::array::from_fn(|n| if (n as u64) < lanes { -1 } else { 0 })
            }

            /// # Safety
            /// The selected lanes may be read.
            #[inline]
            #[target_feature(enable = "avx2")]
            pub(super) unsafe fn load(at: *const $float, mask: Mask) -> $vector {
                // SAFETY: the caller's promise; other lanes are not read. The mask has 32 bytes.
                unsafe { $load(at, _mm256_loadu_si256(mask.as_ptr().cast::<__m256i>())) }
            }

            /// # Safety
            /// The selected lanes may be written.
            #[inline]
            #[target_feature(enable = "avx2")]
            pub(super) unsafe fn store(at: *mut $float, mask: Mask, value: $vector) {
                // SAFETY: the caller's promise; other lanes are not written. The mask has 32 bytes.
                unsafe { $store(at, _mm256_loadu_si256(mask.as_ptr().cast::<__m256i>()), value) }
            }
        }
    };
}

masks_512!(masks_f32x16, f32, __m512, __mmask16, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps);
masks_512!(masks_f64x8, f64, __m512d, __mmask8, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd);
masks_256!(masks_f32x8, f32, __m256, i32, 8, _mm256_maskload_ps, _mm256_maskstore_ps);
masks_256!(masks_f64x4, f64, __m256d, i64, 4, _mm256_maskload_pd, _mm256_maskstore_pd);

kernel!(
    f32x16,
    f32,
    __m512,
    16,
    "avx512f",
    masks_f32x16,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_set1_ps,
    _mm512_fmadd_ps
);
kernel!(
    f32x8,
    f32,
    __m256,
    8,
    "avx2,fma",
    masks_f32x8,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_set1_ps,
    _mm256_fmadd_ps
);
kernel!(
    f64x8,
    f64,
    __m512d,
    8,
    "avx512f",
    masks_f64x8,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_set1_pd,
    _mm512_fmadd_pd
);
kernel!(
    f64x4,
    f64,
    __m256d,
    4,
    "avx2,fma",
    masks_f64x4,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_set1_pd,
    _mm256_fmadd_pd
);
