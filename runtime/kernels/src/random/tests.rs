//! Known answers, and equality of the levels.

use super::*;

/// `kat_vectors` of Random123: counter, key, block.
#[test]
fn philox_equals_the_published_known_answers() {
    let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    let expected = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
    assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), expected);
}

const SEQUENCE: Sequence = Sequence { seed: 5 + (7 << 32), site: 11 + (13 << 32) };

fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn truncated<T>(lo: f64, hi: f64, round: impl Fn(f64) -> T) -> Law<T> {
    let (below, above, between) = (round(cdf(lo)), round(cdf(-hi)), round(cdf(hi) - cdf(lo)));
    Law::Truncated { mean: round(0.0), scale: round(1.0), lo: round(lo), hi: round(hi), below, above, between }
}

/// The greatest distance between the distribution of numbers and a distribution function: the statistic of Kolmogorov
/// and Smirnov. With 50,000 numbers it exceeds 0.0087 once in a thousand samples.
fn distance(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let apart = |(i, &x): (usize, &f64)| (cdf(x) - i as f64 / n).abs().max((cdf(x) - (i + 1) as f64 / n).abs());
    values.iter().enumerate().map(apart).fold(0.0, f64::max)
}

#[test]
fn numbers_have_their_distribution() {
    const COUNT: usize = 50_000;
    let single = |law| {
        let mut y = vec![0.0; COUNT];
        draw_f32(Level::Portable, SEQUENCE, law, 0, &mut y);
        y.into_iter().map(f64::from).collect::<Vec<f64>>()
    };
    let double = |law| {
        let mut y = vec![0.0; COUNT];
        draw_f64(Level::Portable, SEQUENCE, law, 0, &mut y);
        y
    };
    let inside = |x: f64| (cdf(x) - cdf(4.0)) / (cdf(9.0) - cdf(4.0));
    let shifted = |x: f64| cdf((x - 2.0) / 3.0);
    assert!(distance(single(Law::Uniform { lo: 0.0, range: 1.0 }), |x| x) < 0.0087);
    assert!(distance(double(Law::Uniform { lo: 0.0, range: 1.0 }), |x| x) < 0.0087);
    assert!(distance(single(Law::Normal { mean: 2.0, scale: 3.0 }), shifted) < 0.0087);
    assert!(distance(double(Law::Normal { mean: 2.0, scale: 3.0 }), shifted) < 0.0087);
    assert!(distance(single(truncated(4.0, 9.0, |x| x as f32)), inside) < 0.0087);
    assert!(distance(double(truncated(4.0, 9.0, |x| x)), inside) < 0.0087);
}

/// The distribution function of the libm of musl, at each number, gives back the probability of its words.
#[test]
fn normal_numbers_are_the_inverse_of_the_distribution_function() {
    const COUNT: usize = 20_000;
    let mut words = vec![];
    for block in 0..COUNT as u32 / 2 {
        words.extend(philox([block, 0, 11, 13], [5, 7]).map(u64::from));
    }
    let mut y = vec![0.0; COUNT];
    draw_f64(Level::Portable, SEQUENCE, Law::Normal { mean: 0.0, scale: 1.0 }, 0, &mut y);
    for (i, &z) in y.iter().enumerate() {
        let w = words[2 * i] | words[2 * i + 1] << 32;
        let tail = (w.min(!w) as f64 + 0.5) / 2.0f64.powi(64);
        assert!((cdf(-z.abs()) / tail - 1.0).abs() < 1e-13, "{i}: {z}");
    }
    let mut y = vec![0.0; 2 * COUNT];
    draw_f32(Level::Portable, SEQUENCE, Law::Normal { mean: 0.0, scale: 1.0 }, 0, &mut y);
    for (i, &z) in y.iter().enumerate() {
        let tail = (words[i].min(0xffff_ffff - words[i]) as f64 + 0.5) / 2.0f64.powi(32);
        assert!((cdf(-f64::from(z).abs()) / tail - 1.0).abs() < 4e-6, "{i}: {z}");
    }
}

#[test]
fn levels_and_parts_give_the_same_bits() {
    let laws = [
        Law::Uniform { lo: -1.0, range: 3.0 },
        Law::Normal { mean: 1.0, scale: 0.1 },
        truncated(-1.0, 3.0, |x| x as f32),
    ];
    for law in laws {
        let mut whole = vec![0.0; 1003];
        draw_f32(Level::Portable, SEQUENCE, law, 0, &mut whole);
        for level in Level::ALL {
            let mut parts = vec![0.0; 1003];
            for (k, part) in parts.chunks_mut(100).enumerate() {
                draw_f32(level, SEQUENCE, law, 100 * k as u64, part);
            }
            assert_eq!(parts.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), {
                whole.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            });
        }
    }
    for law in [Law::Normal { mean: 1.0, scale: 0.1 }, truncated(-1.0, 3.0, |x| x)] {
        let mut whole = vec![0.0; 1003];
        draw_f64(Level::Portable, SEQUENCE, law, 0, &mut whole);
        for level in Level::ALL {
            let mut parts = vec![0.0; 1003];
            for (k, part) in parts.chunks_mut(50).enumerate() {
                draw_f64(level, SEQUENCE, law, 50 * k as u64, part);
            }
            assert_eq!(parts.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), {
                whole.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            });
        }
    }
}
