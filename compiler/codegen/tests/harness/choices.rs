//! Values of elements drawn from a string of bytes.

#[path = "../../../simd/tests/levels/choices.rs"]
mod bytes;

pub use bytes::Choices;

use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

/// Types that are compiled.
pub const TYPES: [ElemType; 11] = [F32, I64, I32, F64, Bool, U8, U32, U64, I8, I16, U16];

impl Choices<'_> {
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
