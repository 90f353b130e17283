//! Lane types, and a table with the properties of each.
//!
//! Invariant: the rest of this crate looks properties up here instead of matching on lane types.

/// The type of the elements of a vector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// A signed integer of 8 bits.
    I8,
    /// An unsigned integer of 8 bits.
    U8,
    /// A signed integer of 16 bits.
    I16,
    /// An unsigned integer of 16 bits.
    U16,
    /// A signed integer of 32 bits.
    I32,
    /// An unsigned integer of 32 bits.
    U32,
    /// A signed integer of 64 bits.
    I64,
    /// An unsigned integer of 64 bits.
    U64,
    /// An IEEE 754 number of 32 bits.
    F32,
    /// An IEEE 754 number of 64 bits.
    F64,
    /// A truth value for each iteration. Has no bytes in memory.
    Mask,
    /// A truth value for each element of 8 bits, in kernels with several elements per iteration.
    Mask8,
    /// A truth value for each element of 16 bits, in such kernels.
    Mask16,
}

/// The kind of numbers of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Two's complement.
    Signed,
    /// Unsigned, modulo a power of two.
    Unsigned,
    /// IEEE 754.
    Float,
    /// 0 or 1.
    Truth,
}

/// A row of the table.
struct LaneRow {
    name: &'static str,
    bytes: u32,
    kind: Kind,
    /// The integer of the same width.
    integer: Lane,
    /// The bits of the NaN that [`Op::Bits`](super::Op::Bits) gives.
    nan: u64,
}

const FACTS: [LaneRow; 13] = [
    facts("i8", 1, Kind::Signed, Lane::I8, 0),
    facts("u8", 1, Kind::Unsigned, Lane::U8, 0),
    facts("i16", 2, Kind::Signed, Lane::I16, 0),
    facts("u16", 2, Kind::Unsigned, Lane::U16, 0),
    facts("i32", 4, Kind::Signed, Lane::I32, 0),
    facts("u32", 4, Kind::Unsigned, Lane::U32, 0),
    facts("i64", 8, Kind::Signed, Lane::I64, 0),
    facts("u64", 8, Kind::Unsigned, Lane::U64, 0),
    facts("f32", 4, Kind::Float, Lane::U32, 0x7fc0_0000),
    facts("f64", 8, Kind::Float, Lane::U64, 0x7ff8_0000_0000_0000),
    facts("mask", 0, Kind::Truth, Lane::Mask, 0),
    facts("mask8", 0, Kind::Truth, Lane::Mask8, 0),
    facts("mask16", 0, Kind::Truth, Lane::Mask16, 0),
];

const fn facts(name: &'static str, bytes: u32, kind: Kind, integer: Lane, nan: u64) -> LaneRow {
    LaneRow { name, bytes, kind, integer, nan }
}

impl Lane {
    /// All lane types that have bytes in memory.
    pub const NUMBERS: [Lane; 10] =
        [Lane::I8, Lane::U8, Lane::I16, Lane::U16, Lane::I32, Lane::U32, Lane::I64, Lane::U64, Lane::F32, Lane::F64];

    const fn facts(self) -> &'static LaneRow {
        &FACTS[self as usize]
    }

    /// Returns the name in printed kernels.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the bytes of an element in memory; 0 for masks.
    pub const fn bytes(self) -> u32 {
        self.facts().bytes
    }

    /// Returns the bits of an element; 0 for masks.
    pub const fn bits(self) -> u32 {
        8 * self.bytes()
    }

    /// Returns the kind of numbers.
    pub const fn kind(self) -> Kind {
        self.facts().kind
    }

    /// Returns the integer lane of the same width.
    pub fn integer(self) -> Lane {
        self.facts().integer
    }

    /// Returns whether elements are IEEE 754 numbers.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// Returns whether elements are integers.
    pub fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Returns whether elements are signed integers.
    pub fn is_signed(self) -> bool {
        self.kind() == Kind::Signed
    }

    /// Returns whether elements are truth values.
    pub fn is_mask(self) -> bool {
        self.kind() == Kind::Truth
    }

    /// Returns whether elements have 64 bits.
    pub const fn is_long(self) -> bool {
        self.bytes() == 8
    }

    /// Returns the lane of a comparison's mask, in a kernel with `per_iteration` elements per iteration.
    pub fn mask(self, per_iteration: u8) -> Lane {
        match (per_iteration, self.bytes()) {
            (1, _) => Lane::Mask,
            (_, 1) => Lane::Mask8,
            _ => Lane::Mask16,
        }
    }

    /// Returns a word with all bits of an element set.
    pub fn ones(self) -> u64 {
        match self.bits() {
            0 => 1,
            bits => u64::MAX >> (64 - bits),
        }
    }

    /// Returns the canonical NaN; `None` for integers.
    pub fn nan(self) -> Option<u64> {
        self.is_float().then(|| self.facts().nan)
    }

    /// Returns the value of an integer's bits.
    pub fn integer_value(self, bits: u64) -> i128 {
        let unused = 64 - self.bits();
        match self.kind() {
            Kind::Signed => i128::from(((bits << unused) as i64) >> unused),
            _ => i128::from(bits & self.ones()),
        }
    }

    /// Returns the least and the greatest value of an integer.
    pub fn integer_range(self) -> (i128, i128) {
        let bits = self.bits();
        match self.kind() {
            Kind::Signed => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        }
    }

    /// Returns the value of a float's bits.
    pub fn float_value(self, bits: u64) -> f64 {
        if self.is_long() { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() }
    }

    /// Returns the bits of the float nearest to a number.
    pub fn float_bits(self, number: f64) -> u64 {
        if self.is_long() { number.to_bits() } else { (number as f32).to_bits().into() }
    }
}
