//! Encodes instructions on vectors and masks; [`general`] encodes the few on general registers.
//!
//! The formats are those of Intel's manual, volume 2, sections 2.3 (VEX) and 2.7 (EVEX).
//!
//! The encoder is our own because the lowerings and the register allocator read the same table, and because it is fast:
//! of the 239 µs that a polynomial of degree 60 takes to translate (AVX2, 338 instructions), encoding takes 4 µs. The
//! encoder of `iced-x86` takes 13 µs for instructions that are already built, and adds 5.6 s to a build. The tests
//! decode every instruction of the table with `iced-x86`.
//!
//! Invariant: a constant precedes the instructions that read it, in the same code.

mod general;
#[cfg(test)]
mod tests;

pub(super) use general::Jump;

use super::Level;
use super::table::{Code, OpcodeRow, ResultClass};
use std::fmt::Write;

/// A general register, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpr(pub u8);

pub(super) const RAX: Gpr = Gpr(0);
pub(super) const RDX: Gpr = Gpr(2);
pub(super) const RSP: Gpr = Gpr(4);
pub(super) const RSI: Gpr = Gpr(6);
pub(super) const RDI: Gpr = Gpr(7);
pub(super) const R14: Gpr = Gpr(14);

/// An operand that may be memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rm {
    Register(u8),
    Memory {
        base: Gpr,
        /// The index register and the logarithm of its scale; for a gather, a vector register.
        index: Option<(u8, u8)>,
        offset: i32,
    },
    /// An offset in the code.
    Constant(usize),
}

/// The mask of an instruction; number 0 means no mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Masking {
    pub register: u8,
    /// Whether masked-out lanes become zero instead of keeping their values.
    pub zeroing: bool,
}

impl Gpr {
    fn name(self) -> &'static str {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
            "r15",
        ];
        NAMES[self.0 as usize & 15]
    }
}

impl Rm {
    fn show(self, register: &dyn Fn(u8) -> String, gathers: bool) -> String {
        match self {
            Rm::Register(r) => register(r),
            Rm::Constant(at) => format!("[{at:#06x}]"),
            Rm::Memory { base, index: None, offset } => format!("[{} + {offset}]", base.name()),
            Rm::Memory { base, index: Some((n, scale)), offset } if !gathers => {
                format!("[{} + {} * {} + {offset}]", base.name(), Gpr(n).name(), 1 << scale)
            }
            Rm::Memory { base, index: Some((n, _)), offset } => {
                format!("[{} + {} + {offset}]", base.name(), register(n))
            }
        }
    }

    /// Returns the bits of the base and the index that a prefix has: base, index, and the fifth bit of the index.
    fn high_bits(self) -> (u8, u8, u8) {
        match self {
            Rm::Register(r) => (r >> 3 & 1, r >> 4 & 1, 0),
            Rm::Memory { base, index, .. } => {
                let index = index.map_or(0, |i| i.0);
                (base.0 >> 3, index >> 3 & 1, index >> 4 & 1)
            }
            Rm::Constant(_) => (0, 0, 0),
        }
    }
}

/// Code under construction.
pub(crate) struct Bytes {
    pub bytes: Vec<u8>,
    /// A readable listing with a line for each instruction, if it was requested.
    pub listing: Option<String>,
    pub level: Level,
}

fn not(bit: u8) -> u8 {
    bit & 1 ^ 1
}

impl Bytes {
    pub fn new(level: Level) -> Bytes {
        Bytes { bytes: Vec::new(), listing: None, level }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a line to the listing: the offset in the code, and the text.
    fn list(&mut self, words: std::fmt::Arguments<'_>) {
        let at = self.bytes.len();
        if let Some(listing) = &mut self.listing {
            // Writing to a string does not fail.
            let _ = writeln!(listing, "  {at:#06x}  {words}");
        }
    }

    fn list_vector(
        &mut self,
        facts: &OpcodeRow,
        first: u8,
        second: Option<u8>,
        rm: Rm,
        masking: Masking,
        last: Option<u8>,
    ) {
        let kind = match self.level {
            Level::Avx512 => "zmm",
            Level::Avx2 if facts.xmm => "xmm",
            Level::Avx2 => "ymm",
        };
        let vector = |r: u8| format!("{kind}{r}");
        let result = match facts.result {
            _ if facts.digit.is_some() => None,
            ResultClass::Mask if self.level == Level::Avx512 => Some(format!("k{first}")),
            ResultClass::General => Some(Gpr(first).name().to_string()),
            _ => Some(vector(first)),
        };
        let mask = match masking {
            Masking { register: 0, .. } => String::new(),
            Masking { register, zeroing: false } => format!(" {{k{register}}}"),
            Masking { register, zeroing: true } => format!(" {{k{register}}}{{z}}"),
        };
        let number = last.map(|n| n.to_string());
        let mut all = [result, second.map(vector), Some(rm.show(&vector, facts.gathers)), number];
        if facts.stores {
            all.swap(0, 2);
        }
        let all: Vec<String> = all.into_iter().flatten().collect();
        let name = facts.name_at(self.level);
        self.list(format_args!("{name}{mask} {}", all.join(", ")));
    }

    /// Encodes an instruction on vectors: `first` is the register operand, `second` the one in `vvvv`.
    pub fn vector(
        &mut self,
        code: Code,
        first: u8,
        second: Option<u8>,
        rm: Rm,
        masking: Masking,
        immediate: Option<u8>,
    ) {
        let facts = code.facts();
        debug_assert!(facts.is_at(self.level), "{:?} has no {}", self.level, facts.name);
        if self.listing.is_some() {
            self.list_vector(facts, first, second, rm, masking, immediate);
        }
        // A digit takes the place of the first operand, which is then in `vvvv`.
        let (first, second) = match facts.digit {
            Some(digit) => (digit, first),
            None => (first, second.unwrap_or(0)),
        };
        match self.level {
            Level::Avx512 => self.evex(facts, first, second, rm, masking),
            Level::Avx2 => {
                self.vex((facts.map, facts.prefix, facts.vex_w), !facts.xmm, first, second, rm, facts.opcode)
            }
        }
        let scale = if self.level == Level::Avx512 { facts.scale } else { 1 };
        self.operands(first, rm, immediate, scale);
    }

    /// Encodes the prefix and the opcode of an instruction on 512-bit vectors.
    fn evex(&mut self, facts: &OpcodeRow, first: u8, second: u8, rm: Rm, masking: Masking) {
        let (b, x, index) = rm.high_bits();
        // The vector index of a gather has five bits; the instruction has no second operand.
        let fifth = second >> 4 & 1 | if facts.gathers { index } else { 0 };
        let r = not(first >> 3) << 7 | not(x) << 6 | not(b) << 5 | not(first >> 4) << 4 | facts.map;
        let v = facts.w << 7 | (!second & 15) << 3 | 4 | facts.prefix;
        let z = u8::from(masking.zeroing) << 7 | 2 << 5 | not(fifth) << 3 | masking.register;
        self.put(&[0x62, r, v, z, facts.opcode]);
    }

    /// Encodes the prefix and the opcode of an instruction on 256-bit vectors (if `long`), on 128-bit vectors, or on
    /// masks.
    fn vex(&mut self, (map, prefix, w): (u8, u8, u8), long: bool, first: u8, second: u8, rm: Rm, opcode: u8) {
        let (b, x, _) = match rm {
            Rm::Register(r) => (r >> 3 & 1, 0, 0),
            memory => memory.high_bits(),
        };
        let v = (!second & 15) << 3 | u8::from(long) << 2 | prefix;
        if (map, w, b, x) == (1, 0, 0, 0) {
            return self.put(&[0xc5, not(first >> 3) << 7 | v, opcode]);
        }
        let r = not(first >> 3) << 7 | not(x) << 6 | not(b) << 5 | map;
        self.put(&[0xc4, r, w << 7 | v, opcode]);
    }

    /// Encodes an instruction on masks; `second` is the operand in `vvvv`.
    pub fn mask(&mut self, code: Code, first: u8, second: Option<u8>, rm: Rm, immediate: Option<u8>) {
        let facts = code.facts();
        if self.listing.is_some() {
            let mask = |r: u8| format!("k{r}");
            let general = |r: u8| Gpr(r).name().to_string();
            let number = immediate.map(|n| n.to_string());
            let from: &dyn Fn(u8) -> String = if facts.opcode == 0x92 { &general } else { &mask };
            let mut all = [Some(mask(first)), second.map(mask), Some(rm.show(from, false)), number];
            if facts.stores {
                all.swap(0, 2);
            }
            let all: Vec<String> = all.into_iter().flatten().collect();
            self.list(format_args!("{} {}", facts.name, all.join(", ")));
        }
        let (long, second) = (second.is_some(), second.unwrap_or(0));
        self.vex((facts.map, facts.prefix, facts.w), long, first, second, rm, facts.opcode);
        self.operands(first, rm, immediate, 1);
    }

    /// Encodes what follows the opcode; displacements of one byte count in units of `scale` bytes.
    fn operands(&mut self, first: u8, rm: Rm, immediate: Option<u8>, scale: u8) {
        let reg = (first & 7) << 3;
        match rm {
            Rm::Register(r) => self.put(&[0xc0 | reg | r & 7]),
            Rm::Constant(at) => {
                let end = self.bytes.len() as i64 + 5 + i64::from(immediate.is_some());
                self.put(&[reg | 5]);
                self.put(&((at as i64 - end) as i32).to_le_bytes());
            }
            Rm::Memory { base, index, offset } => {
                let short = i8::try_from(offset / i32::from(scale)).ok().filter(|_| offset % i32::from(scale) == 0);
                let mode = if short.is_some() { 0x40 } else { 0x80 };
                match index {
                    None if base.0 & 7 != 4 => self.put(&[mode | reg | base.0 & 7]),
                    index => {
                        let (index, factor) = index.unwrap_or((4, 0));
                        self.put(&[mode | reg | 4, factor << 6 | (index & 7) << 3 | base.0 & 7]);
                    }
                }
                match short {
                    Some(short) => self.put(&short.to_le_bytes()),
                    None => self.put(&offset.to_le_bytes()),
                }
            }
        }
        self.bytes.extend(immediate);
    }
}
