//! Standard normal numbers, by the inverse of the distribution function.
//!
//! With p and q the probabilities below and above a number z, x = p - q and w = -log(4 p q) = -log(1 - x²), the
//! quotient z / x is a smooth function of w (Giles, "Approximating the erfinv function", 2011). It is a polynomial of w
//! or √w, interpolated at the Chebyshev nodes of an interval and computed with 50 digits. Its relative error is at most
//! 3e-8 (`f32`) and 3e-16 (`f64`).
//!
//! Invariant: the operations and their order are those of `stdlib/random.gir`, so the bits are the same.

use super::TOGETHER;

/// Coefficients of t, where w = 2.5 + t < 5.
const NEAR: [f32; 10] = [
    2.1233134,
    0.34880203,
    -0.0059077255,
    -0.0017716227,
    0.00030879266,
    -7.0320634e-06,
    -4.898815e-06,
    6.620377e-07,
    3.3002042e-08,
    -1.2631651e-08,
];

/// Coefficients of t, where √w = 4 + t < 5.95.
const FAR: [f32; 13] = [
    5.4302745,
    1.4276383,
    0.0017798314,
    -0.0012227903,
    0.00046122016,
    -0.00018194197,
    6.837463e-05,
    -2.9022845e-05,
    3.264053e-05,
    -2.2327122e-05,
    3.022629e-06,
    2.2984484e-06,
    -6.5081133e-07,
];

/// Coefficients of t, where w = 3.125 + t < 6.25.
const NEAR_F64: [f64; 23] = [
    2.338620710026593,
    0.33963495870114085,
    -0.00853289917726757,
    -0.0010475115695030076,
    0.00026408204954264024,
    -1.9632852817479085e-05,
    -1.9310650328765146e-06,
    5.988894294256318e-07,
    -4.111173507827262e-08,
    -5.8161415131622495e-09,
    1.486649926123177e-09,
    -7.658591205111031e-11,
    -1.835296386245696e-11,
    3.724433936330848e-12,
    -1.1464455824953867e-13,
    -5.735221444041998e-14,
    9.308290460578683e-15,
    3.064593190079847e-17,
    -1.825328774880696e-16,
    1.5734249840893945e-17,
    1.5595624147452077e-18,
    -2.37408706321372e-19,
    -3.3408952670514297e-22,
];

/// Coefficients of t, where √w = 3.25 + t < 4.
const MIDDLE_F64: [f64; 19] = [
    4.36127285516533,
    1.421650865810257,
    0.007595620203989041,
    -0.005305009946686139,
    0.0035234312043213086,
    -0.0023875821885560207,
    0.0013481547306223936,
    -0.0005020988739988229,
    3.398547982401634e-05,
    9.656934757201043e-05,
    -6.691991993623399e-05,
    1.7642799936726544e-05,
    4.139929483756993e-06,
    -5.676577434959346e-06,
    2.1154178620497004e-06,
    2.5914049149097858e-08,
    -3.7987156169677647e-07,
    1.282967553472886e-07,
    -5.417908649728695e-10,
];

/// Coefficients of t, where √w = 5.75 + t < 7.65.
const FAR_F64: [f64; 23] = [
    7.930178610396882,
    1.4281181575144801,
    -0.0006104424499386442,
    -9.648827645921623e-05,
    4.16285560950051e-05,
    -1.0359253359366116e-05,
    2.1863607896493277e-06,
    -4.248739023868323e-07,
    7.841600579326749e-08,
    -1.3982221053973424e-08,
    2.47028792844265e-09,
    -4.652646431141564e-10,
    1.0485434148292604e-10,
    -3.4571274345370164e-11,
    2.0646367795337003e-11,
    -1.141793848350938e-11,
    3.251391700364798e-12,
    -7.211291801327885e-13,
    7.133813796321447e-13,
    -3.720469844718271e-13,
    2.684750550881196e-14,
    2.639823337873268e-14,
    -5.3370753580429856e-15,
];

/// A float type of which numbers are drawn.
pub(super) trait Float: Copy {
    /// The elements that a block of four words yields.
    const PER_BLOCK: usize;
    /// The words of an element.
    type Word: Word<Self>;

    /// Computes each element of a part from its words.
    fn each(words: &[[u32; TOGETHER]; 4], part: &mut [Self], f: impl Fn(Self::Word) -> Self);

    /// Returns `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// Returns the greater number.
    fn max_of(self, other: Self) -> Self;

    /// Returns the lesser number.
    fn min_of(self, other: Self) -> Self;
}

/// The words of an element.
pub(super) trait Word<T>: Copy {
    /// Returns a number in [0, 1).
    fn uniform(self) -> T;

    /// Returns a standard normal number.
    fn normal(self) -> T;

    /// Returns a standard normal number within bounds, given the probabilities below, above and between them.
    fn normal_between(self, below: T, above: T, between: T) -> T;
}

impl Float for f32 {
    const PER_BLOCK: usize = 4;
    type Word = u32;

    #[inline(always)]
    fn each(words: &[[u32; TOGETHER]; 4], part: &mut [f32], f: impl Fn(u32) -> f32) {
        let mut values = [[0.0; TOGETHER]; 4];
        for (to, from) in values.iter_mut().zip(words) {
            to.iter_mut().zip(from).for_each(|(y, &w)| *y = f(w));
        }
        for (i, y) in part.iter_mut().enumerate() {
            *y = values[i % 4][i / 4];
        }
    }

    #[inline(always)]
    fn mul_add(self, a: f32, b: f32) -> f32 {
        f32::mul_add(self, a, b)
    }

    #[inline(always)]
    fn max_of(self, other: f32) -> f32 {
        if self < other { other } else { self }
    }

    #[inline(always)]
    fn min_of(self, other: f32) -> f32 {
        if self > other { other } else { self }
    }
}

impl Float for f64 {
    const PER_BLOCK: usize = 2;
    type Word = u64;

    #[inline(always)]
    fn each(words: &[[u32; TOGETHER]; 4], part: &mut [f64], f: impl Fn(u64) -> f64) {
        let mut values = [[0.0; TOGETHER]; 2];
        for (h, to) in values.iter_mut().enumerate() {
            let pairs = words[2 * h].iter().zip(&words[2 * h + 1]);
            to.iter_mut().zip(pairs).for_each(|(y, (&a, &b))| *y = f(u64::from(a) | u64::from(b) << 32));
        }
        for (i, y) in part.iter_mut().enumerate() {
            *y = values[i % 2][i / 2];
        }
    }

    #[inline(always)]
    fn mul_add(self, a: f64, b: f64) -> f64 {
        f64::mul_add(self, a, b)
    }

    #[inline(always)]
    fn max_of(self, other: f64) -> f64 {
        if self < other { other } else { self }
    }

    #[inline(always)]
    fn min_of(self, other: f64) -> f64 {
        if self > other { other } else { self }
    }
}

impl Word<f32> for u32 {
    #[inline(always)]
    fn uniform(self) -> f32 {
        (self >> 8) as i32 as f32 * 5.960_464_5e-8
    }

    #[inline(always)]
    fn normal(self) -> f32 {
        let q = ((self.min(!self) as i32) as f32 + 0.5) * 2.328_306_4e-10;
        let x = ((self ^ 0x8000_0000) as i32 as f32 + 0.5) * 4.656_613e-10;
        quantile_f32(x, 4.0 * q * (1.0 - q))
    }

    #[inline(always)]
    fn normal_between(self, below: f32, above: f32, between: f32) -> f32 {
        let u = ((self >> 1) as i32 as f32 + 0.5) * 4.656_613e-10;
        let v = ((!self >> 1) as i32 as f32 + 0.5) * 4.656_613e-10;
        let (p, q) = (u.mul_add(between, below), v.mul_add(between, above));
        quantile_f32(p - q, 4.0 * p * q)
    }
}

impl Word<f64> for u64 {
    #[inline(always)]
    fn uniform(self) -> f64 {
        (self >> 11) as i64 as f64 * 1.110_223_024_625_156_5e-16
    }

    #[inline(always)]
    fn normal(self) -> f64 {
        let q = ((self.min(!self) as i64) as f64 + 0.5) * 5.421_010_862_427_522e-20;
        let x = ((self ^ (1 << 63)) as i64 as f64 + 0.5) * 1.084_202_172_485_504_4e-19;
        quantile_f64(x, 4.0 * q * (1.0 - q))
    }

    #[inline(always)]
    fn normal_between(self, below: f64, above: f64, between: f64) -> f64 {
        let u = ((self >> 1) as i64 as f64 + 0.5) * 1.084_202_172_485_504_4e-19;
        let v = ((!self >> 1) as i64 as f64 + 0.5) * 1.084_202_172_485_504_4e-19;
        let (p, q) = (u.mul_add(between, below), v.mul_add(between, above));
        quantile_f64(p - q, 4.0 * p * q)
    }
}

/// Returns the number of x = p - q and 4 p q.
#[inline(always)]
fn quantile_f32(x: f32, y: f32) -> f32 {
    let w = -log_f32(y);
    let (near, far) = (w - 2.5, w.sqrt() - 4.0);
    x * if w < 5.0 { polynomial_f32(&NEAR, near) } else { polynomial_f32(&FAR, far) }
}

#[inline(always)]
fn quantile_f64(x: f64, y: f64) -> f64 {
    let w = -log_f64(y);
    let s = w.sqrt();
    let (near, middle, far) = (
        polynomial_f64(&NEAR_F64, w - 3.125),
        polynomial_f64(&MIDDLE_F64, s - 3.25),
        polynomial_f64(&FAR_F64, s - 5.75),
    );
    x * if w < 6.25 { near } else { if s < 4.0 { middle } else { far } }
}

#[inline(always)]
fn polynomial_f32<const N: usize>(c: &[f32; N], t: f32) -> f32 {
    (0..N - 1).rev().fold(c[N - 1], |p, k| p.mul_add(t, c[k]))
}

#[inline(always)]
fn polynomial_f64<const N: usize>(c: &[f64; N], t: f64) -> f64 {
    (0..N - 1).rev().fold(c[N - 1], |p, k| p.mul_add(t, c[k]))
}

/// Returns the logarithm of a positive normal number, computed as in the prelude.
#[inline(always)]
fn log_f32(x: f32) -> f32 {
    let b = x.to_bits() as i32;
    let k = b.wrapping_sub(0x3f35_04f3) >> 23;
    let n = k as f32;
    let f = f32::from_bits(b.wrapping_sub(k << 23) as u32) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let u = z * w.mul_add(0.284_987_87, 0.666_666_6);
    let t = w.mul_add(w.mul_add(0.242_790_79, 0.400_009_72), u);
    let h = 0.5 * f * f;
    s.mul_add(h + t, n * 9.058_001e-6) - h + f + n * 0.693_138_1
}

/// Returns the logarithm of a positive normal number, computed as in the prelude.
#[inline(always)]
fn log_f64(x: f64) -> f64 {
    let b = x.to_bits() as i64;
    let k = b.wrapping_sub(0x3fe6_a09e_667f_3bcd) >> 52;
    let n = k as f64;
    let f = f64::from_bits(b.wrapping_sub(k << 52) as u64) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let t = w * w.mul_add(w.mul_add(0.153_138_376_992_093_73, 0.222_221_984_321_497_84), 0.399_999_999_994_094_2);
    let v = w.mul_add(w.mul_add(0.147_981_986_051_165_86, 0.181_835_721_616_180_5), 0.285_714_287_436_623_9);
    let u = w.mul_add(v, 0.666_666_666_666_673_5);
    let rest = s * (0.5 * f * f + z.mul_add(u, t));
    n.mul_add(1.908_214_929_270_587_7e-10, rest) - 0.5 * f * f + f + n * 0.693_147_180_369_123_8
}
