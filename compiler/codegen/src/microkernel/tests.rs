//! Every variant against the plain loops, for shapes around the sizes of tiles and all kinds of strides.

use super::*;

/// Numbers whose sums depend on their order.
fn fill(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 / 37.0 - 11.0).collect()
}

/// Layouts of an m × n matrix: row-major, column-major, and with gaps.
fn layouts(m: u64, n: u64, element: i64) -> [(i64, i64); 3] {
    [(n as i64 * element, element), (element, m as i64 * element), (3 * n as i64 * element + 5, 3 * element)]
}

macro_rules! agrees {
    ($test:ident, $float:ty, $plain:ident, $($variant:path, $features:expr);*) => {
        #[test]
        fn $test() {
            let element = size_of::<$float>() as i64;
            for (m, n, k) in [(1, 1, 1), (1, 70, 9), (2, 64, 130), (2, 45, 3), (8, 32, 5), (9, 33, 2), (3, 16, 300), (7, 15, 1), (17, 40, 8), (4, 0, 3), (2, 5, 0)] {
                for variant in 0..27 {
                    let pick = |d: usize, rows, cols| layouts(rows, cols, element)[variant / d % 3];
                    let [c, a, b] = [(1, m, n), (3, m, k), (9, k, n)].map(|(d, rows, cols)| {
                        let (row, col) = pick(d, rows, cols);
                        AmpMatrix { at: std::ptr::null_mut(), row, col }
                    });
                    let values: Vec<u8> =
                        fill(60000).into_iter().flat_map(|v| (v as $float).to_ne_bytes()).collect();
                    let run = |f: &dyn Fn(&AmpCall)| {
                        let (mut vc, mut va, mut vb) = (values.clone(), values.clone(), values.clone());
                        let call = AmpCall {
                            c: AmpMatrix { at: vc.as_mut_ptr(), ..c },
                            a: AmpMatrix { at: va.as_mut_ptr(), ..a },
                            b: AmpMatrix { at: vb.as_mut_ptr(), ..b },
                            m,
                            n,
                            k,
                        };
                        f(&call);
                        vc
                    };
                    // SAFETY: the buffers have room for the largest layout, and the features are tested.
                    let expected = run(&|call| unsafe { $plain(call) });
                    $(if $features {
                        // SAFETY: as above.
                        assert_eq!(expected, run(&|call| unsafe { $variant(call) }), "{m} x {n} x {k}, {variant}");
                        // SAFETY: as above.
                        let turned = run(&|call| unsafe { $variant(&call.contiguous(element)) });
                        assert_eq!(expected, turned, "{m} x {n} x {k}, {variant}, turned");
                    })*
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::microkernel::x86::{f32x8, f32x16, f64x4, f64x8};
    use std::is_x86_feature_detected as has;

    agrees!(f32_variants_agree, f32, plain_f32,
        f32x16::product, has!("avx512f"); f32x8::product, has!("avx2") && has!("fma"));
    agrees!(f64_variants_agree, f64, plain_f64,
        f64x8::product, has!("avx512f"); f64x4::product, has!("avx2") && has!("fma"));
}
