//! Element types and single values.

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum ElemType {
    Bool,
    U8,
    I8,
    U16,
    I16,
    F16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl ElemType {
    /// Every type, in a fixed order.
    pub const ALL: [ElemType; 12] = {
        use ElemType::*;
        [Bool, U8, I8, U16, I16, F16, U32, I32, F32, U64, I64, F64]
    };

    /// Returns the bytes of one element.
    pub fn bytes(self) -> u32 {
        use ElemType::*;
        match self {
            Bool | U8 | I8 => 1,
            U16 | I16 | F16 => 2,
            U32 | I32 | F32 => 4,
            U64 | I64 | F64 => 8,
        }
    }

    /// Returns its name in the language.
    pub fn name(self) -> &'static str {
        use ElemType::*;
        match self {
            Bool => "bool",
            U8 => "u8",
            I8 => "i8",
            U16 => "u16",
            I16 => "i16",
            F16 => "f16",
            U32 => "u32",
            I32 => "i32",
            F32 => "f32",
            U64 => "u64",
            I64 => "i64",
            F64 => "f64",
        }
    }

    /// Returns the type of a name.
    pub fn from_name(name: &str) -> Option<ElemType> {
        ElemType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Returns whether the engines compute with it; other types parse and are reported as not yet supported.
    pub fn is_supported(self) -> bool {
        use ElemType::*;
        !matches!(self, I8 | U16 | I16 | F16)
    }

    /// Returns whether it is one of `f16 f32 f64`.
    pub fn is_float(self) -> bool {
        matches!(self, ElemType::F16 | ElemType::F32 | ElemType::F64)
    }

    /// Returns whether it is an integer type: all but the floats and `bool`.
    pub fn is_int(self) -> bool {
        !self.is_float() && self != ElemType::Bool
    }

    /// Returns whether it is one of `i8 i16 i32 i64`.
    pub fn is_signed_int(self) -> bool {
        matches!(self, ElemType::I8 | ElemType::I16 | ElemType::I32 | ElemType::I64)
    }

    /// Returns whether it is a type of numbers: all but `bool`.
    pub fn is_number(self) -> bool {
        self != ElemType::Bool
    }
}

impl std::fmt::Display for ElemType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A value: a type and its bits.
///
/// Invariant: bits above the type's width are zero (`i32` -1 is `0xffff_ffff`), so equal bits are equal values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scalar {
    /// Its type.
    pub ty: ElemType,
    /// Its bits, in the low end of the word.
    pub bits: u64,
}

impl Scalar {
    /// Builds a value from bits; those above the width are dropped.
    pub fn new(ty: ElemType, bits: u64) -> Scalar {
        let width = ty.bytes() * 8;
        Scalar { ty, bits: if width == 64 { bits } else { bits & ((1 << width) - 1) } }
    }

    /// Returns zero, or `false`.
    pub fn zero(ty: ElemType) -> Scalar {
        Scalar { ty, bits: 0 }
    }

    /// Returns `true` or `false`.
    pub fn bool(v: bool) -> Scalar {
        Scalar { ty: ElemType::Bool, bits: v as u64 }
    }

    /// Returns an `f32`.
    pub fn f32(v: f32) -> Scalar {
        Scalar { ty: ElemType::F32, bits: v.to_bits() as u64 }
    }

    /// Returns an `f64`.
    pub fn f64(v: f64) -> Scalar {
        Scalar { ty: ElemType::F64, bits: v.to_bits() }
    }

    /// Returns an integer of a type; `None` if it does not fit.
    pub fn int(ty: ElemType, v: i128) -> Option<Scalar> {
        let width = ty.bytes() * 8;
        let (lo, hi) = match (ty.is_int(), ty.is_signed_int()) {
            (true, true) => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
            (true, false) => (0, (1i128 << width) - 1),
            _ => return None,
        };
        (lo..=hi).contains(&v).then(|| Scalar::new(ty, v as u64))
    }

    /// Returns the value of an integer or `bool`; `None` for floats.
    pub fn as_int(self) -> Option<i128> {
        let width = self.ty.bytes() * 8;
        match self.ty {
            ElemType::Bool => Some(self.bits as i128),
            t if t.is_signed_int() => Some((((self.bits << (64 - width)) as i64) >> (64 - width)) as i128),
            t if t.is_int() => Some(self.bits as i128),
            _ => None,
        }
    }

    /// Returns the value of a float; `None` for others.
    pub fn as_float(self) -> Option<f64> {
        match self.ty {
            ElemType::F16 => Some(f64_of_f16(self.bits as u16)),
            ElemType::F32 => Some(f32::from_bits(self.bits as u32) as f64),
            ElemType::F64 => Some(f64::from_bits(self.bits)),
            _ => None,
        }
    }

    /// Returns its bytes, little-endian.
    pub fn to_le_bytes(self) -> impl Iterator<Item = u8> {
        self.bits.to_le_bytes().into_iter().take(self.ty.bytes() as usize)
    }

    /// Reads a value from the first bytes of a slice, little-endian.
    ///
    /// # Panics
    /// If the slice is shorter than an element.
    pub fn from_le_bytes(ty: ElemType, bytes: &[u8]) -> Scalar {
        let mut bits = [0; 8];
        bits[..ty.bytes() as usize].copy_from_slice(&bytes[..ty.bytes() as usize]);
        Scalar { ty, bits: u64::from_le_bytes(bits) }
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ty {
            ElemType::Bool => write!(f, "{}", self.bits != 0),
            ElemType::F32 => write!(f, "{}", f32::from_bits(self.bits as u32)),
            ElemType::F64 => write!(f, "{}", f64::from_bits(self.bits)),
            _ => match self.as_int() {
                Some(v) => write!(f, "{v}"),
                None => write!(f, "{:#x}", self.bits),
            },
        }
    }
}

/// Returns the number whose bits as an `f16` are `x`: a sign, 5 bits of an exponent and 10 of a fraction (IEEE 754
/// binary16). Every such number is an `f64`.
fn f64_of_f16(x: u16) -> f64 {
    let (exponent, fraction) = ((x >> 10) & 31, f64::from(x & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if x >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are examples of IEEE 754's binary16 that many texts list.
    #[test]
    fn halves_are_the_numbers_of_ieee_754() {
        let known = [
            (0x0000, 0.0),
            (0x0001, 0.000000059604645),
            (0x03ff, 0.000060975552),
            (0x0400, 0.00006103515625),
            (0x3555, 0.33325195),
            (0x3bff, 0.99951172),
            (0x3c00, 1.0),
            (0x3c01, 1.00097656),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x7c00, f64::INFINITY),
            (0xfc00, f64::NEG_INFINITY),
        ];
        let value = |bits: u64| Scalar::new(ElemType::F16, bits).as_float().unwrap();
        for (bits, number) in known {
            let found = value(bits);
            assert!(found == number || (found - number).abs() <= 1e-7 * number.abs(), "{bits:#x} is {found}");
        }
        assert!(value(0x7e00).is_nan());
    }
}
