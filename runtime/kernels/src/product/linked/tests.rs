//! Compares every level with plain loops, to the bit: rows, columns, links and blocks around the sizes of tiles, panels
//! and slabs.

use super::*;
use crate::Level;
use crate::product::{linked_f32, linked_f64};

/// The element types under test.
trait Number: Float + 'static {
    fn of(x: f64) -> Self;
    fn bits(self) -> u64;
    unsafe fn run(level: Level, call: &LinkedProduct<'_>, start: Start<Self>);
}

macro_rules! number {
    ($float:ty, $run:ident) => {
        impl Number for $float {
            fn of(x: f64) -> Self {
                x as $float
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            unsafe fn run(level: Level, call: &LinkedProduct<'_>, start: Start<Self>) {
                // SAFETY: passed on.
                unsafe { $run(level, call, start) }
            }
        }
    };
}
number!(f32, linked_f32);
number!(f64, linked_f64);

/// A convolution of an image of `side`² elements of `c` channels by 3×3 taps, as links.
struct Case {
    side: i64,
    c: i64,
    n: i64,
    /// Whether the kernel has the output channels first.
    turned: bool,
    /// After how many links a block begins; 0 for a single block.
    block: usize,
    columns: (u64, u64),
}

impl Case {
    /// Returns the bits of the result at a level.
    fn result<F: Number>(&self, level: Level, start: Start<F>) -> Vec<u64> {
        let size = size_of::<F>() as i64;
        let Case { side, c, n, .. } = *self;
        let result = side - 2;
        let (x, k) = (side * side * c, 9 * c * n);
        let y = result * result * n;
        let mut memory: Vec<F> = (0..x + k + y).map(|i| F::of(((i * 7919 + 13) % 1009) as f64 / 37.0 - 11.0)).collect();
        let rows = (0..result * result)
            .map(|e| Row { c: (x + k + e * n) * size, a: (e / result * side + e % result) * c * size });
        let rows: Vec<Row> = rows.collect();
        let (b_step, b_col) = if self.turned { (size, c * size) } else { (n * size, size) };
        let links = (0..9).map(|tap| Link {
            a: (tap / 3 * side + tap % 3) * c * size,
            b: (x + tap * c * n) * size,
            a_step: size,
            b_step,
            terms: c as u64,
            fresh: self.block > 0 && tap as usize % self.block == self.block - 1,
        });
        let links: Vec<Link> = links.collect();
        let base = memory.as_mut_ptr().cast();
        let call = LinkedProduct { base, rows: &rows, columns: self.columns, b_col, links: &links };
        // SAFETY: all rows and links lie in the memory, the rows are apart, and the machine has the level.
        unsafe { F::run(level, &call, start) };
        memory.into_iter().map(Number::bits).collect()
    }

    fn agree<F: Number>(&self) {
        for start in [Start::Old, Start::Value(F::of(2.5)), Start::Added] {
            let plain = self.result(Level::Portable, start);
            for level in Level::ALL.into_iter().filter(|level| level.is_here()) {
                assert!(self.result(level, start) == plain, "{level:?}");
            }
        }
    }
}

#[test]
fn every_level_computes_the_same_bits() {
    for (side, c, n) in [(3, 1, 1), (5, 3, 7), (6, 8, 16), (9, 5, 33), (12, 2, 70), (7, 40, 129)] {
        for turned in [false, true] {
            for block in [0, 1, 4] {
                for columns in [(0, n as u64), (n as u64 / 3, n as u64 - n as u64 / 4)] {
                    let case = Case { side, c, n, turned, block, columns };
                    case.agree::<f32>();
                    case.agree::<f64>();
                }
            }
        }
    }
}

#[test]
fn slabs_are_whole_blocks_or_continue() {
    let link = |fresh| Link { a: 0, b: 0, a_step: 4, b_step: 4, terms: 1000, fresh };
    let lengths = |slabs: Vec<Vec<SlabPart>>| -> Vec<u64> {
        slabs.iter().map(|slab| slab.iter().map(|part| part.terms).sum()).collect()
    };
    let most = SLAB_BYTES / 256;
    assert_eq!(lengths(slabs(&[link(false); 2], 256, false)), [most, most, 2000 - 2 * most]);
    assert_eq!(lengths(slabs(&[link(false); 2], 256, true)), [2000]);
    assert_eq!(lengths(slabs(&[link(false), link(true), link(false)], 256, false)), [1000, 2000]);
    assert_eq!(lengths(slabs(&[], 256, false)), [0]);
}
