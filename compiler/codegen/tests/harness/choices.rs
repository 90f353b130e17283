//! Numbers drawn from a string of bytes, so that failing cases shrink.
//!
//! Invariant: zeros come after the end of the string, so that short strings make small codelets.

use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

/// Types that are compiled.
pub const TYPES: [ElemType; 11] = [F32, I64, I32, F64, Bool, U8, U32, U64, I8, I16, U16];

/// Numbers drawn from a string of bytes; zeros after its end, so that short strings make small codelets.
pub struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes, at: 0 }
    }

    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes.get(self.at - 1).copied().unwrap_or(0)
    }

    pub fn spent(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.byte() as usize % n
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |w, _| w << 8 | u64::from(self.byte()))
    }

    /// A value of a type, often one at an edge of its range.
    pub fn value(&mut self, ty: ElemType) -> u64 {
        let word = match (self.below(4), ty) {
            (_, Bool) => self.below(2) as u64,
            (0, F32) => f64_bits(ty, f64::from(self.byte() as i8) / 4.0),
            (0, F64) => f64_bits(ty, f64::from(self.byte() as i8) / 4.0),
            (1 | 2, F32 | F64) => {
                let edges = [
                    0.0,
                    -0.0,
                    1.0,
                    -1.0,
                    0.5,
                    2.5,
                    -0.5,
                    1.5,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    f64::NAN,
                    1e-40,
                    255.5,
                    -129.0,
                    65536.0,
                    2147483648.0,
                    -2147483649.0,
                    4294967296.0,
                    9.3e18,
                    1.9e19,
                    -9.3e18,
                    1e300,
                    1e-300,
                    16777217.0,
                    3.0,
                    0.1,
                ];
                f64_bits(ty, self.pick(&edges))
            }
            (3, F32 | F64) => self.word(),
            (0 | 1, _) => self.byte() as i8 as i64 as u64,
            (2, _) => {
                let width = 8 * ty.bytes();
                let half = 1u64 << (width - 1);
                self.pick(&[half, half - 1, half.wrapping_sub(2), u64::MAX, 0, 1, half + 1])
            }
            _ => self.word(),
        };
        girder_codelet::scalar::mask(ty, word)
    }
}

fn f64_bits(ty: ElemType, v: f64) -> u64 {
    girder_codelet::scalar::convert(F64, ty, v.to_bits())
}
