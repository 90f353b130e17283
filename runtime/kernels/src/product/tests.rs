//! Compares every level with plain loops, to the bit: shapes around the sizes of vectors, tiles and blocks, all kinds
//! of strides, special values, parts.

use super::*;
use vector::Float;

/// Memory that contains a matrix, at an odd address.
struct Memory {
    bytes: Vec<u8>,
    row: i64,
    col: i64,
}

/// The layout of a matrix in memory.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Rows,
    Columns,
    /// Rows with gaps, last one first.
    Gaps,
}

const LAYOUTS: [Layout; 3] = [Layout::Rows, Layout::Columns, Layout::Gaps];

/// Returns a number whose sums depend on their order, occasionally a special value.
fn value(i: u64, special: bool) -> f64 {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-310, f64::MAX];
    if special && i % 97 == 5 { odd[(i / 97 % 6) as usize] } else { ((i * 7919 + 13) % 1009) as f64 / 37.0 - 11.0 }
}

impl Memory {
    fn new(m: u64, n: u64, element: i64, layout: Layout, value: impl Fn(u64) -> Vec<u8>) -> Memory {
        let (m, n) = (m.max(1) as i64, n.max(1) as i64);
        let (row, col) = match layout {
            Layout::Rows => (n * element, element),
            Layout::Columns => (element, m * element),
            Layout::Gaps => (-(3 * n * element + 5), 3 * element),
        };
        let elements = 3 * (m + 1) * (n + 2);
        let bytes = [1u8].into_iter().chain((0..elements as u64).flat_map(value)).collect();
        Memory { bytes, row, col }
    }

    fn matrix(&mut self, m: u64) -> Matrix {
        let first = 1 + if self.row < 0 { -self.row * (m.max(1) as i64 - 1) } else { 0 };
        Matrix { at: self.bytes.as_mut_ptr().wrapping_offset(first as isize), row: self.row, col: self.col }
    }
}

/// The element types under test.
trait Number: Float + PartialEq + std::fmt::Debug + 'static {
    fn of(x: f64) -> Self;
    fn bytes(self) -> Vec<u8>;
    fn is_nan(self) -> bool;
    unsafe fn product(level: Level, call: &Product, start: Start<Self>);
}

macro_rules! number {
    ($float:ty, $product:ident) => {
        impl Number for $float {
            fn of(x: f64) -> Self {
                x as $float
            }
            fn bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            unsafe fn product(level: Level, call: &Product, start: Start<Self>) {
                // SAFETY: passed on.
                unsafe { $product(level, call, start) }
            }
        }
    };
}
number!(f32, product_f32);
number!(f64, product_f64);

/// Runs a product in separate memory, and returns all bytes of `c`'s memory, with NaNs made equal.
fn run<F: Number>(
    (m, n, k): (u64, u64, u64),
    block: u64,
    layouts: [Layout; 3],
    special: bool,
    f: impl Fn(&Product),
) -> Vec<u8> {
    let element = size_of::<F>() as i64;
    let fill = |seed: u64, special: bool| move |i: u64| F::of(value(i + seed, special)).bytes();
    let mut c = Memory::new(m, n, element, layouts[0], fill(0, special));
    let mut a = Memory::new(m, k, element, layouts[1], fill(3, special));
    let mut b = Memory::new(k, n, element, layouts[2], fill(7, false));
    f(&Product { c: c.matrix(m), a: a.matrix(m), b: b.matrix(k), m, n, k, block });
    let at = c.matrix(m);
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        // SAFETY: inside the matrix, which lies inside its memory.
        unsafe {
            let at = at.element(i, j).cast::<F>();
            if at.read_unaligned().is_nan() {
                at.write_unaligned(F::of(f64::NAN));
            }
        }
    }
    c.bytes
}

/// Compares all levels, for all starts, with one block of terms and with several.
fn agree<F: Number>(shape: (u64, u64, u64), layouts: [Layout; 3], special: bool) {
    let starts = [Start::Old, Start::Value(F::of(-0.0)), Start::Value(F::of(2.5)), Start::Added];
    for (number, start) in starts.into_iter().enumerate() {
        agree_in_blocks::<F>(shape, u64::MAX, start, layouts, special);
        agree_in_blocks::<F>(shape, [8, 3, 72, 16][number], start, layouts, special);
    }
}

fn agree_in_blocks<F: Number>(
    shape: (u64, u64, u64),
    block: u64,
    start: Start<F>,
    layouts: [Layout; 3],
    special: bool,
) {
    let run = |f: &dyn Fn(&Product)| run::<F>(shape, block, layouts, special, f);
    // SAFETY: the matrices lie in memory of their own, and only levels of this machine run.
    let plain = run(&|call| unsafe { plain::product(call, start) });
    for level in Level::ALL.into_iter().filter(|l| l.is_here()) {
        // SAFETY: as above.
        let found = run(&|call| unsafe { F::product(level, call, start) });
        assert!(plain == found, "{shape:?} {block} {start:?} {layouts:?} {level:?} {special}");
        let parts = run(&|call| call.parts(3).iter().for_each(|p| unsafe { F::product(level, p, start) }));
        assert!(plain == parts, "{shape:?} {block} {start:?} {layouts:?} {level:?} in parts");
    }
}

#[test]
fn levels_agree_in_all_layouts() {
    for shape in
        [(1, 1, 1), (9, 33, 2), (3, 70, 9), (17, 40, 8), (20, 5, 30), (4, 0, 3), (0, 3, 2), (5, 18, 0), (2, 45, 6)]
    {
        for variant in 0..27 {
            let layouts = [1, 3, 9].map(|d| LAYOUTS[variant / d % 3]);
            agree::<f32>(shape, layouts, false);
            agree::<f64>(shape, layouts, false);
        }
    }
}

#[test]
fn levels_agree_on_special_values() {
    for shape in [(6, 19, 40), (2, 31, 17), (33, 1, 50), (1, 1, 200)] {
        agree::<f32>(shape, [Layout::Rows; 3], true);
        agree::<f64>(shape, [Layout::Columns, Layout::Rows, Layout::Gaps], true);
    }
}

#[test]
fn levels_agree_across_blocks() {
    let (rows, columns, gaps) = (Layout::Rows, Layout::Columns, Layout::Gaps);
    agree::<f32>((2, 1100, 9), [rows; 3], false);
    agree::<f32>((5, 1070, 3), [rows, rows, gaps], false);
    agree::<f32>((150, 100, 5), [rows, columns, rows], false);
    agree::<f32>((6, 20, 530), [rows; 3], false);
    agree::<f64>((10, 530, 3), [rows, gaps, columns], false);
    agree::<f64>((9, 20, 270), [columns; 3], false);
    agree::<f32>((200, 120, 600), [rows; 3], false);
}

#[test]
fn blocks_longer_than_those_of_the_cache() {
    let layouts = [Layout::Rows; 3];
    agree_in_blocks::<f32>((60, 70, 1500), 700, Start::Value(0.0), layouts, false);
    agree_in_blocks::<f32>((9, 70, 1500), 1000, Start::Added, [Layout::Rows, Layout::Columns, Layout::Columns], false);
    agree_in_blocks::<f32>((3, 1200, 700), 300, Start::Added, layouts, false);
}

#[test]
fn blocks_of_terms_are_sums_of_their_own() {
    // 2^24 absorbs single ones that are added to it, but not the sum of a block of them.
    let values = [16777216f32, 1.0, 1.0, 1.0, 1.0, 1.0];
    let ones = [1f32; 6];
    let sum = |block: u64, start: Start<f32>| {
        let mut c = 10f32;
        let row = |at: *mut u8| Matrix { at, row: 4, col: 4 };
        let (a, b) = (row(values.as_ptr().cast_mut().cast()), row(ones.as_ptr().cast_mut().cast()));
        let c_matrix = Matrix { at: (&raw mut c).cast(), row: 0, col: 0 };
        // SAFETY: all elements are inside their arrays.
        unsafe { product_f32(Level::Portable, &Product { c: c_matrix, a, b, m: 1, n: 1, k: 6, block }, start) };
        c
    };
    assert_eq!(sum(6, Start::Value(0.0)), 16777216.0);
    assert_eq!(sum(2, Start::Value(0.0)), 16777220.0);
    assert_eq!(sum(2, Start::Value(4.0)), 16777224.0);
    assert_eq!(sum(2, Start::Added), 16777230.0);
}

#[test]
fn parts_are_of_whole_units() {
    let matrix = Matrix { at: std::ptr::null_mut(), row: 0, col: 0 };
    let sizes = |m, n, parts| {
        let call = Product { c: matrix, a: matrix, b: matrix, m, n, k: 1, block: 1 };
        call.parts(parts).iter().map(|p| (p.m, p.n)).collect::<Vec<_>>()
    };
    assert_eq!(sizes(64, 100, 2), [(64, 48), (64, 52)]);
    assert_eq!(sizes(100, 10, 3), [(32, 10), (32, 10), (36, 10)]);
    assert_eq!(sizes(5, 7, 4), [(5, 7)]);
    assert_eq!(sizes(0, 0, 2), [(0, 0)]);
}
