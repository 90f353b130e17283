//! The operations on vectors that products need.

/// Elements of a matrix.
pub(super) trait Float: Copy + PartialEq {
    /// +0.
    const ZERO: Self;
    /// Returns `self * b + c`, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// Returns `self + b`, rounded.
    fn add(self, b: Self) -> Self;
}

impl Float for f32 {
    const ZERO: f32 = 0.0;
    fn mul_add(self, b: f32, c: f32) -> f32 {
        f32::mul_add(self, b, c)
    }
    fn add(self, b: f32) -> f32 {
        self + b
    }
}

impl Float for f64 {
    const ZERO: f64 = 0.0;
    fn mul_add(self, b: f64, c: f64) -> f64 {
        f64::mul_add(self, b, c)
    }
    fn add(self, b: f64) -> f64 {
        self + b
    }
}

/// A vector register. All functions are inlined into one that enables the instructions.
///
/// # Safety
/// Every function needs the instructions of the implementation. Functions that load or store need valid memory at their
/// addresses, without alignment.
pub(super) trait Vector: Copy {
    /// The type of a lane.
    type Float: Float;
    /// A set of lanes.
    type Mask: Copy;
    /// Lanes of a vector.
    const LANES: usize;
    /// Rows of the tallest tile.
    const ROWS: usize;
    /// Vectors of the widest tile.
    const WIDTH: usize;
    /// Vectors of the widest tile of a linked product.
    const LINKED_WIDTH: usize;
    /// Vectors of sums in the largest tile of a linked product.
    const SUMS: usize;
    /// Lanes of 16 bytes.
    const QUAD: usize = 16 / size_of::<Self::Float>();

    /// Returns the mask of the first lanes, at most all.
    fn first(lanes: usize) -> Self::Mask;
    /// Returns a vector of equal lanes.
    unsafe fn splat(x: Self::Float) -> Self;
    /// Loads all lanes.
    unsafe fn load(at: *const Self::Float) -> Self;
    /// Loads some lanes; the others are zero.
    unsafe fn load_some(at: *const Self::Float, mask: Self::Mask) -> Self;
    /// Stores all lanes.
    unsafe fn store(self, at: *mut Self::Float);
    /// Stores some lanes.
    unsafe fn store_some(self, at: *mut Self::Float, mask: Self::Mask);
    /// Returns `a * b + self`, rounded once.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// Returns `self + b`, rounded.
    unsafe fn add(self, b: Self) -> Self;
    /// Reads `QUAD` elements at each of `LANES` addresses at a stride of `step` bytes, and writes them by columns:
    /// vector q goes to `to + q * ahead` elements and holds element q of each.
    unsafe fn transpose(from: *const u8, step: i64, to: *mut Self::Float, ahead: usize);
}
