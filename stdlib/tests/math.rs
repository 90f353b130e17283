//! Compares the functions of one number in the prelude, as the interpreter computes them from their text, with the
//! host's functions and exact values.
//!
//! Invariant: the test goes through parser, typing and verifier.

#[path = "math/run.rs"]
mod run;

use girder_ir::types::ElemType;
use run::{F32, F64, Function};

/// Samples of every exponent and sign of `f32`, and the boundaries of each case.
fn samples_f32() -> Vec<f32> {
    let dense = (0..=u32::MAX / 200_003).map(|i| f32::from_bits(i * 200_003));
    use std::f32::consts::*;
    let near = [
        0.0f32,
        1.0,
        0.5,
        2.0,
        0.625,
        FRAC_1_SQRT_2,
        SQRT_2,
        88.72284,
        88.72285,
        103.97208,
        87.33655,
        1e-40,
        1e-45,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        16777216.0,
        1048576.0,
        FRAC_PI_4,
        FRAC_PI_2,
        9.010913,
        LN_2 / 2.0,
    ];
    let around = near.into_iter().flat_map(|x| (-3..=3).map(move |d: i32| step(x, d)));
    let fine = (0..20_000).map(|i| -10.0 + i as f32 * 0.001_003);
    dense.chain(around.clone()).chain(around.map(|x| -x)).chain(fine).chain([f32::NAN, -0.0]).collect()
}

fn step(x: f32, d: i32) -> f32 {
    f32::from_bits((x.to_bits() as i32 + d).max(0) as u32)
}

/// As [`samples_f32`], for `f64`.
fn samples_f64() -> Vec<f64> {
    // The host's `powf` distinguishes signalling NaNs; the library does not.
    let quiet = |x: f64| if x.is_nan() { f64::NAN } else { x };
    let wide = (0..40_000u64).map(|i| f64::from_bits(i.wrapping_mul(0x0003_3a91_7c55_1f07).rotate_left(7)));
    let fine = (0..20_000).map(|i| -20.0 + i as f64 * 0.002_000_3);
    let small = (0..4_000).map(|i| f64::exp2(-(i as f64) * 0.0201) * if i % 2 == 0 { 1.0 } else { -1.0 });
    let near = [
        0.0f64,
        1.0,
        2.0,
        0.5,
        709.782712893384,
        709.7827128933841,
        745.1332191019411,
        745.1332191019412,
        708.4,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::INFINITY,
        1048575.99,
        1048576.0,
        1e22,
        std::f64::consts::FRAC_PI_2,
        36.7,
        22.0,
    ];
    let signed = near.into_iter().flat_map(|x| [x, -x]);
    wide.map(quiet).chain(fine).chain(small).chain(signed).chain([f64::NAN]).collect()
}

/// Distance of an `f32` from an exact value in units of the last place; infinite if special values differ.
fn ulps_f32(y: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if same(y as f64, rounded as f64) {
        return if y.is_finite() { (y as f64 - exact).abs() / unit(exact, -126, 23) } else { 0.0 };
    }
    if !y.is_finite() || !rounded.is_finite() || y.is_sign_negative() != rounded.is_sign_negative() {
        return f64::INFINITY;
    }
    (y as f64 - exact).abs() / unit(exact, -126, 23)
}

fn ulps_f64(y: f64, exact: f64) -> f64 {
    if same(y, exact) {
        return 0.0;
    }
    if !y.is_finite() || !exact.is_finite() || y.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    // Dividing twice keeps the unit from underflowing.
    (y - exact).abs() / f64::exp2(exponent(exact).max(-1022) as f64) * f64::exp2(52.0)
}

fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
}

fn exponent(x: f64) -> i32 {
    let e = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    if e == -1023 { -1022 } else { e }
}

fn unit(x: f64, least: i32, mantissa: i32) -> f64 {
    f64::exp2((exponent(x).max(least) - mantissa) as f64)
}

/// Asserts the maximal error of a function over samples.
#[track_caller]
fn f32_within(limit: f64, name: &str, exact: impl Fn(f64) -> f64) {
    let x = samples_f32();
    let y = Function::new(name, F32, 1).f32(&[&x]);
    let worst = x.iter().zip(&y).map(|(&x, &y)| (ulps_f32(y, exact(x as f64)), x, y));
    let (error, x, y) = worst.max_by(|a, b| a.0.total_cmp(&b.0)).expect("samples");
    assert!(error <= limit, "{name}({x:e}) = {y:e} is {error} ulp from {:e}", exact(x as f64));
}

#[track_caller]
fn f64_within(limit: f64, name: &str, host: impl Fn(f64) -> f64) {
    let x = samples_f64();
    let y = Function::new(name, F64, 1).f64(&[&x]);
    let worst = x.iter().zip(&y).map(|(&x, &y)| (ulps_f64(y, host(x)), x, y));
    let (error, x, y) = worst.max_by(|a, b| a.0.total_cmp(&b.0)).expect("samples");
    assert!(error <= limit, "{name}({x:e}) = {y:e} is {error} ulp from {:e}", host(x));
}

fn sigmoid(x: f64) -> f64 {
    if x < -40.0 { x.exp() } else { 1.0 / (1.0 + (-x).exp()) }
}

fn silu(x: f64) -> f64 {
    match x {
        f64::NEG_INFINITY => -0.0,
        _ if x < -40.0 => x * (x / 2.0).exp() * (x / 2.0).exp(),
        _ => x / (1.0 + (-x).exp()),
    }
}

/// By the series of e²ˣ where the sum would lose bits.
fn softplus(x: f64) -> f64 {
    if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() }
}

fn selu(x: f64) -> f64 {
    1.0507009873554805 * if x > 0.0 { x } else { 1.6732632423543772 * x.exp_m1() }
}

fn acosh(x: f64) -> f64 {
    // The host's function has an error of some units near 1, and overflows.
    match x {
        _ if x >= 1e8 => x.ln() + std::f64::consts::LN_2,
        _ if x >= 1.0 => (x - 1.0 + ((x - 1.0) * (x + 1.0)).sqrt()).ln_1p(),
        _ => f64::NAN,
    }
}

/// The host's function loses bits near -1.
fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (a.ln_1p() - (-a).ln_1p())).copysign(x)
}

fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let y = if a < 1e8 { (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p() } else { a.ln() + std::f64::consts::LN_2 };
    y.copysign(x)
}

#[test]
fn f32_functions_are_accurate() {
    f32_within(1.0, "exp", f64::exp);
    f32_within(1.0, "log", f64::ln);
    f32_within(1.5, "tanh", f64::tanh);
    f32_within(1.6, "sigmoid", sigmoid);
    f32_within(1.5, "log1p", f64::ln_1p);
    f32_within(1.5, "expm1", f64::exp_m1);
    f32_within(1.0, "exp2", f64::exp2);
    f32_within(1.0, "log2", f64::log2);
    f32_within(1.0, "log10", f64::log10);
    f32_within(1.0, "sin", f64::sin);
    f32_within(1.0, "cos", f64::cos);
    f32_within(1.5, "tan", f64::tan);
    f32_within(1.5, "rsqrt", |x| 1.0 / x.sqrt());
    f32_within(1.5, "asin", f64::asin);
    f32_within(1.5, "acos", f64::acos);
    f32_within(1.5, "atan", f64::atan);
    f32_within(2.0, "sinh", f64::sinh);
    f32_within(1.5, "cosh", f64::cosh);
    f32_within(2.0, "asinh", asinh);
    f32_within(2.0, "acosh", acosh);
    f32_within(1.5, "atanh", atanh);
    f32_within(1.0, "cbrt", f64::cbrt);
    f32_within(3.0, "silu", silu);
    f32_within(2.0, "softplus", softplus);
    f32_within(3.0, "selu", selu);
}

#[test]
fn f64_functions_are_accurate() {
    f64_within(2.0, "exp", f64::exp);
    f64_within(2.0, "log", f64::ln);
    f64_within(3.0, "tanh", f64::tanh);
    f64_within(3.0, "sigmoid", sigmoid);
    f64_within(2.0, "log1p", f64::ln_1p);
    f64_within(2.5, "expm1", f64::exp_m1);
    f64_within(2.0, "sin", f64::sin);
    f64_within(2.0, "cos", f64::cos);
    f64_within(3.0, "tan", f64::tan);
    f64_within(2.0, "rsqrt", |x| 1.0 / x.sqrt());
    f64_within(2.0, "exp2", f64::exp2);
    f64_within(1.0, "log2", f64::log2);
    f64_within(1.0, "log10", f64::log10);
    f64_within(2.0, "asin", f64::asin);
    f64_within(2.0, "acos", f64::acos);
    f64_within(2.0, "atan", f64::atan);
    f64_within(3.0, "sinh", f64::sinh);
    f64_within(2.0, "cosh", f64::cosh);
    f64_within(3.0, "asinh", asinh);
    f64_within(3.0, "acosh", acosh);
    f64_within(3.0, "atanh", atanh);
    f64_within(1.0, "cbrt", f64::cbrt);
    f64_within(4.0, "silu", silu);
    f64_within(4.0, "softplus", softplus);
    f64_within(4.0, "selu", selu);
}

#[test]
fn powers_are_accurate() {
    let ys =
        [0.5, -0.5, 3.0, -3.0, 2.0, 0.1, 17.0, -25.3, 1e10, 0.0, -0.0, 1e-3, f64::INFINITY, -f64::INFINITY, f64::NAN];
    let xs: Vec<f64> =
        samples_f64().into_iter().step_by(13).chain([1.0, -1.0, 0.0, -0.0, -8.0, -f64::INFINITY]).collect();
    let pairs: Vec<(f64, f64)> = ys.iter().flat_map(|&y| xs.iter().map(move |&x| (x, y))).collect();
    // Close to 1, where the result is in range for great exponents only.
    let close = (1..2000).map(|i| (1.0 + i as f64 * 3.7e-9 * if i % 2 == 0 { 1.0 } else { -1.0 }, 1e8 / i as f64));
    let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().chain(close).unzip();
    let z = Function::new("pow", F64, 2).f64(&[&x, &y]);
    for ((&x, &y), &z) in x.iter().zip(&y).zip(&z) {
        let host = x.powf(y);
        assert!(ulps_f64(z, host) <= 2.0, "pow({x:e}, {y:e}) = {z:e}, not {host:e}");
    }
    let (x, y): (Vec<f32>, Vec<f32>) = x.iter().zip(&y).map(|(&x, &y)| (x as f32, y as f32)).unzip();
    let z = Function::new("pow", F32, 2).f32(&[&x, &y]);
    for ((&x, &y), &z) in x.iter().zip(&y).zip(&z) {
        let exact = (x as f64).powf(y as f64);
        assert!(ulps_f32(z, exact) <= 2.0, "pow({x:e}, {y:e}) = {z:e}, not {exact:e}");
    }
}

/// x and erf(x), from 60 digits.
const ERF: [(f64, f64); 35] = [
    (1e-300, 1.1283791670955126e-300),
    (1e-10, 1.1283791670955126e-10),
    (1e-05, 1.1283791670579e-05),
    (0.01, 0.011283415555849618),
    (0.1, 0.1124629160182849),
    (0.2, 0.22270258921047847),
    (0.25, 0.27632639016823696),
    (0.3, 0.3286267594591274),
    (0.4, 0.42839235504666845),
    (0.5, 0.5204998778130465),
    (0.6, 0.6038560908479259),
    (0.7, 0.6778011938374184),
    (0.8, 0.7421009647076605),
    (0.84375, 0.7672256612323416),
    (0.9, 0.7969082124228322),
    (0.95, 0.8208908072732779),
    (0.999, 0.8422852702064969),
    (1.0, 0.8427007929497149),
    (1.001, 0.8431154854780762),
    (1.1, 0.8802050695740817),
    (1.25, 0.9229001282564583),
    (1.5, 0.9661051464753108),
    (1.75, 0.9866716712191824),
    (2.0, 0.9953222650189527),
    (2.25, 0.9985372834133188),
    (2.5, 0.999593047982555),
    (3.0, 0.9999779095030014),
    (3.5, 0.9999992569016276),
    (4.0, 0.9999999845827421),
    (4.5, 0.9999999998033839),
    (5.0, 0.9999999999984626),
    (5.5, 0.9999999999999927),
    (5.9, 0.9999999999999999),
    (6.0, 1.0),
    (7.0, 1.0),
];

#[test]
fn erf_is_accurate() {
    let (mut x, mut exact): (Vec<f64>, Vec<f64>) = ERF.into_iter().unzip();
    x.extend([f64::INFINITY, 1e300, 0.0]);
    exact.extend([1.0, 1.0, 0.0]);
    let negative = x.clone();
    x.extend(negative.iter().map(|x| -x));
    exact.extend(exact.clone().iter().map(|x| -x));
    x.push(f64::NAN);
    exact.push(f64::NAN);
    let y = Function::new("erf", F64, 1).f64(&[&x]);
    for ((&x, &y), &exact) in x.iter().zip(&y).zip(&exact) {
        assert!(ulps_f64(y, exact) <= 1.0, "erf({x:e}) = {y:e}, not {exact:e}");
    }
    // For other values than these, `f64` is exact enough.
    let mut x = samples_f32();
    x.extend((0..40_000).map(|i| i as f32 * 1.1e-4 - 2.2));
    let wide: Vec<f64> = x.iter().map(|&x| x as f64).collect();
    let exact = Function::new("erf", F64, 1).f64(&[&wide]);
    let y = Function::new("erf", F32, 1).f32(&[&x]);
    for ((&x, &y), &exact) in x.iter().zip(&y).zip(&exact) {
        assert!(ulps_f32(y, exact) <= 1.5, "erf({x:e}) = {y:e}, not {exact:e}");
    }
    let zeros = Function::new("erf", F32, 1).f32(&[&[0.0, -0.0]]);
    let bits: Vec<u32> = zeros.iter().map(|y| y.to_bits()).collect();
    assert_eq!(bits, [0.0f32.to_bits(), (-0.0f32).to_bits()]);
}

/// x, gelu(x) and gelu(-x), from 60 digits.
const GELU: [(f64, f64, f64); 26] = [
    (1e-300, 5e-301, -5e-301),
    (1e-10, 5.000000000398942e-11, -4.999999999601058e-11),
    (1e-05, 5.0000398942280396e-06, -4.999960105771961e-06),
    (0.01, 0.005039893563146316, -0.004960106436853684),
    (0.1, 0.053982783727702904, -0.0460172162722971),
    (0.25, 0.14967658142073093, -0.10032341857926907),
    (0.5, 0.34573123063700656, -0.15426876936299344),
    (0.75, 0.5800294857173488, -0.16997051428265114),
    (1.0, 0.8413447460685429, -0.15865525393145705),
    (1.5, 1.399789198096713, -0.1002108019032871),
    (2.0, 1.9544997361036416, -0.04550026389635842),
    (2.5, 2.4844758366855597, -0.015524163314440337),
    (3.0, 2.99595030590511, -0.0040496940948902835),
    (4.0, 3.9998733150326675, -0.0001266849673324797),
    (5.0, 4.999998566742141, -1.4332578593959695e-06),
    (6.0, 5.999999994080474, -5.9195258702261885e-09),
    (7.5, 7.499999999999761, -2.393168754683172e-13),
    (9.0, 9.0, -1.0157295653584566e-18),
    (11.0, 11.0, -2.1017255319485433e-27),
    (13.0, 13.0, -7.952313719414843e-38),
    (13.5, 13.5, -1.0555389862638154e-40),
    (17.0, 17.0, -6.98019354356814e-64),
    (20.0, 20.0, -5.507248237212468e-88),
    (26.0, 26.0, -6.437764620308812e-148),
    (33.0, 33.0, -1.3401912549022322e-237),
    (37.0, 37.0, -2.1184613523340935e-298),
];

#[test]
fn gelu_is_accurate() {
    let mut x: Vec<f64> = GELU.iter().flat_map(|g| [g.0, -g.0]).collect();
    let mut exact: Vec<f64> = GELU.iter().flat_map(|g| [g.1, g.2]).collect();
    x.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0]);
    exact.extend([f64::INFINITY, -0.0, f64::NAN, 0.0]);
    let y = Function::new("gelu", F64, 1).f64(&[&x]);
    for ((&x, &y), &exact) in x.iter().zip(&y).zip(&exact) {
        assert!(ulps_f64(y, exact) <= 6.0, "gelu({x:e}) = {y:e}, not {exact:e}");
    }
    let x = samples_f32();
    let wide: Vec<f64> = x.iter().map(|&x| x as f64).collect();
    let exact = Function::new("gelu", F64, 1).f64(&[&wide]);
    let y = Function::new("gelu", F32, 1).f32(&[&x]);
    for ((&x, &y), &exact) in x.iter().zip(&y).zip(&exact) {
        assert!(ulps_f32(y, exact) <= 6.0, "gelu({x:e}) = {y:e}, not {exact:e}");
    }
}

#[test]
fn atan2_is_accurate() {
    let special = [0.0, 1.0, 2.5, 1e-45, 1e-320, 3e38, 1e300, f64::INFINITY];
    let mut all: Vec<f64> = special.into_iter().flat_map(|x| [x, -x]).chain([f64::NAN]).collect();
    all.extend((0..60).map(|i| f64::from((i - 30) * (i - 31)) * 0.37 * if i % 2 == 0 { 1.0 } else { -1.0 }));
    let (y, x): (Vec<f64>, Vec<f64>) = all.iter().flat_map(|&y| all.iter().map(move |&x| (y, x))).unzip();
    let z = Function::new("atan2", F64, 2).f64(&[&y, &x]);
    for ((&y, &x), &z) in y.iter().zip(&x).zip(&z) {
        assert!(ulps_f64(z, y.atan2(x)) <= 2.0, "atan2({y:e}, {x:e}) = {z:e}, not {:e}", y.atan2(x));
    }
    let (y, x): (Vec<f32>, Vec<f32>) = y.iter().zip(&x).map(|(&y, &x)| (y as f32, x as f32)).unzip();
    let z = Function::new("atan2", F32, 2).f32(&[&y, &x]);
    for ((&y, &x), &z) in y.iter().zip(&x).zip(&z) {
        let exact = (y as f64).atan2(x as f64);
        assert!(ulps_f32(z, exact) <= 2.0, "atan2({y:e}, {x:e}) = {z:e}, not {exact:e}");
    }
}

#[test]
fn powers_of_bases_have_exact_logarithms() {
    let x: Vec<f32> = (-149..128).map(|k| f64::exp2(f64::from(k)) as f32).collect();
    let y: Vec<f32> = (-149i16..128).map(f32::from).collect();
    assert_eq!(Function::new("log2", F32, 1).f32(&[&x]), y);
    let x: Vec<f64> = (-1074..1024).map(|k| f64::exp2(f64::from(k))).collect();
    let y: Vec<f64> = (-1074..1024).map(f64::from).collect();
    assert_eq!(Function::new("log2", F64, 1).f64(&[&x]), y);
    assert_eq!(Function::new("exp2", F64, 1).f64(&[&y]), x);
    let tens: Vec<f64> = (0..23).map(|k| format!("1e{k}").parse().expect("a number")).collect();
    let y: Vec<f64> = (0..23).map(f64::from).collect();
    assert_eq!(Function::new("log10", F64, 1).f64(&[&tens]), y);
    let tens: Vec<f32> = (0..11).map(|k| format!("1e{k}").parse().expect("a number")).collect();
    let y: Vec<f32> = (0..11u8).map(f32::from).collect();
    assert_eq!(Function::new("log10", F32, 1).f32(&[&tens]), y);
}

#[test]
fn small_functions() {
    let one = |name: &str, x: f32| Function::new(name, F32, 1).f32(&[&[x]])[0];
    let two = |name: &str, x: f32, y: f32| Function::new(name, F32, 2).f32(&[&[x], &[y]])[0];
    assert_eq!((one("relu", -2.0), one("relu", 3.0)), (0.0, 3.0));
    assert!(one("relu", f32::NAN).is_nan() && one("sign", f32::NAN).is_nan());
    assert_eq!((one("sign", -2.0), one("sign", 0.0), one("sign", 5.0)), (-1.0, 0.0, 1.0));
    assert_eq!(one("square", -3.0), 9.0);
    assert_eq!((two("minimum", 1.0, 2.0), two("maximum", 1.0, 2.0)), (1.0, 2.0));
    assert_eq!((two("add", 1.0, 2.0), two("sub", 1.0, 2.0), two("rem", -5.0, 3.0)), (3.0, -1.0, -2.0));
    let clamped = Function::new("clamp", F32, 3).f32(&[&[-1.0, 0.5, 9.0], &[0.0; 3], &[1.0; 3]]);
    assert_eq!(clamped, [0.0, 0.5, 1.0]);
    for ty in [ElemType::U8, ElemType::I32, ElemType::U32, ElemType::I64, ElemType::U64] {
        let (name, two) = (["relu", "square", "sign"], ["minimum", "maximum", "bit_and", "shl"]);
        name.iter().for_each(|f| drop(Function::new(f, ty, 1)));
        two.iter().for_each(|f| drop(Function::new(f, ty, 2)));
    }
}
