//! The few instructions on general registers: pointers, loop counters, the bits of masks, and jumps.
//!
//! Invariant: a [`Forward`] or a [`Number`] is filled in later and always takes four bytes, so that no code moves.

use super::{Bytes, Code, Gpr, Masking, R14, RDX, RSI, Rm};

/// A condition of a jump.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Jump {
    Below = 0x2,
    /// After [`Bytes::unless_bit`] has tested a bit: if it is clear.
    AboveOrEqual = 0x3,
    Equal = 0x4,
    NotEqual = 0x5,
}

impl Jump {
    fn name(self) -> &'static str {
        match self {
            Jump::Below => "jb",
            Jump::AboveOrEqual => "jae",
            Jump::Equal => "je",
            Jump::NotEqual => "jne",
        }
    }
}

/// A jump whose target is not yet known: the position of its displacement.
#[must_use]
pub(crate) struct Forward(usize);

/// The position of a number in the code.
pub(crate) struct Number(usize);

impl Bytes {
    /// Encodes an instruction on 64-bit general registers; `reg` may be part of the opcode.
    ///
    /// The caller adds it to the listing.
    fn general(&mut self, opcode: u8, reg: u8, rm: Rm) {
        let (b, x) = match rm {
            Rm::Register(r) => (r >> 3, 0),
            Rm::Memory { base, index, .. } => (base.0 >> 3, index.map_or(0, |i| i.0 >> 3)),
            Rm::Constant(_) => (0, 0),
        };
        self.put(&[0x48 | (reg >> 3) << 2 | x << 1 | b, opcode]);
        self.operands(reg, rm, None, 1);
    }

    /// Encodes `to = [base + offset]`.
    pub fn load(&mut self, to: Gpr, base: Gpr, offset: i32) {
        self.list(format_args!("mov {}, [{} + {offset}]", to.name(), base.name()));
        self.general(0x8b, to.0, Rm::Memory { base, index: None, offset });
    }

    /// Encodes `to = from`.
    pub fn copy(&mut self, to: Gpr, from: Gpr) {
        self.list(format_args!("mov {}, {}", to.name(), from.name()));
        self.general(0x89, from.0, Rm::Register(to.0));
    }

    /// Encodes `to = number`.
    pub fn set(&mut self, to: Gpr, number: i32) {
        self.list(format_args!("mov {}, {number}", to.name()));
        self.general(0xc7, 0, Rm::Register(to.0));
        self.put(&number.to_le_bytes());
    }

    /// Encodes `to += number`; returns the position of the number.
    pub fn add(&mut self, to: Gpr, number: i32) -> Number {
        self.list(format_args!("add {}, {number}", to.name()));
        self.general(0x81, 0, Rm::Register(to.0));
        self.put(&number.to_le_bytes());
        Number(self.bytes.len() - 4)
    }

    /// Changes a number that has been encoded. The listing keeps the old one.
    pub fn set_number(&mut self, at: Number, number: i32) {
        self.bytes[at.0..at.0 + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// Encodes `[base + offset] += number`.
    pub fn add_in_memory(&mut self, base: Gpr, offset: i32, number: i32) {
        self.list(format_args!("add qword [{} + {offset}], {number}", base.name()));
        self.general(0x81, 0, Rm::Memory { base, index: None, offset });
        self.put(&number.to_le_bytes());
    }

    /// Encodes `to &= number`, which sets the flags.
    pub fn and(&mut self, to: Gpr, number: i32) {
        self.list(format_args!("and {}, {number}", to.name()));
        self.general(0x81, 4, Rm::Register(to.0));
        self.put(&number.to_le_bytes());
    }

    /// Encodes `rax = 0`.
    pub fn clear_rax(&mut self) {
        self.list(format_args!("xor eax, eax"));
        self.put(&[0x31, 0xc0]);
    }

    /// Sets the flags by `a - b`.
    pub fn compare(&mut self, a: Gpr, b: Gpr) {
        self.list(format_args!("cmp {}, {}", a.name(), b.name()));
        self.general(0x39, b.0, Rm::Register(a.0));
    }

    /// Encodes `to = 2^edx - 1`, for `edx` below 32 and one of the first eight registers.
    pub fn low_bits_to(&mut self, to: Gpr) {
        let name = to.name();
        self.list(format_args!("mov {name}, -1 (32 bits); bzhi {name}, {name}, rdx"));
        self.put(&[0xb8 | to.0, 0xff, 0xff, 0xff, 0xff]);
        // bzhi to, to, edx
        self.put(&[0xc4, 0xe2, !RDX.0 << 3 & 0x78, 0xf5, 0xc0 | to.0 << 3 | to.0]);
    }

    /// Encodes `rsi = (2^(rdx * times + plus) - 1) >> shift`; the constant at `ones` is 64 one bits.
    pub fn low_bits_to_rsi(&mut self, (times, plus): (i32, i32), shift: u8, ones: usize) {
        self.list(format_args!("imul rsi, rdx, {times}"));
        self.put(&[0x48, 0x69, 0xc0 | RSI.0 << 3 | RDX.0]);
        self.put(&times.to_le_bytes());
        self.add(RSI, plus);
        self.list(format_args!("bzhi rsi, [{ones:#06x}], rsi; shr rsi, {shift}"));
        // bzhi rsi, [ones], rsi
        self.put(&[0xc4, 0xe2, 0x80 | !RSI.0 << 3 & 0x78, 0xf5]);
        self.operands(RSI.0, Rm::Constant(ones), None, 1);
        self.put(&[0x48, 0xc1, 0xe8 | RSI.0, shift]);
    }

    /// Encodes `rdx = -rdx`.
    pub fn negate_rdx(&mut self) {
        self.list(format_args!("neg rdx"));
        self.put(&[0x48, 0xf7, 0xda]);
    }

    /// Sets `rsi` to the address of a byte of the code.
    pub fn point_rsi(&mut self, at: usize) {
        self.list(format_args!("lea rsi, [{at:#06x}]"));
        self.put(&[0x48, 0x8d]);
        self.operands(RSI.0, Rm::Constant(at), None, 1);
    }

    /// Moves the sign bits of a vector's lanes to `r14`.
    pub fn signs_to_r14(&mut self, code: Code, vector: u8) {
        self.vector(code, R14.0, None, Rm::Register(vector), Masking::default(), None);
    }

    /// Skips the following code if a bit of `r14` is clear.
    pub fn unless_bit(&mut self, bit: u8) -> Forward {
        self.list(format_args!("bt r14, {bit}"));
        self.put(&[0x49, 0x0f, 0xba, 0xe0 | R14.0 & 7, bit]);
        self.jump(Jump::AboveOrEqual)
    }

    pub fn push(&mut self, r: Gpr) {
        self.list(format_args!("push {}", r.name()));
        self.put(&[0x41 - u8::from(r.0 < 8), 0x50 | r.0 & 7]);
    }

    pub fn pop(&mut self, r: Gpr) {
        self.list(format_args!("pop {}", r.name()));
        self.put(&[0x41 - u8::from(r.0 < 8), 0x58 | r.0 & 7]);
    }

    /// Encodes `vzeroupper` and `ret`.
    pub fn leave(&mut self) {
        self.list(format_args!("vzeroupper; ret"));
        self.put(&[0xc5, 0xf8, 0x77, 0xc3]);
    }

    /// Encodes a backward jump.
    pub fn jump_back(&mut self, jump: Jump, to: usize) {
        self.list(format_args!("{} {to:#06x}", jump.name()));
        self.put(&[0x0f, 0x80 | jump as u8]);
        let end = self.bytes.len() as i64 + 4;
        self.put(&((to as i64 - end) as i32).to_le_bytes());
    }

    /// Encodes a jump to the position that [`Bytes::land`] marks.
    pub fn jump(&mut self, jump: Jump) -> Forward {
        self.list(format_args!("{} forward", jump.name()));
        self.put(&[0x0f, 0x80 | jump as u8, 0, 0, 0, 0]);
        Forward(self.bytes.len())
    }

    /// Sets the target of a forward jump to this position.
    pub fn land(&mut self, jump: Forward) {
        self.list(format_args!("; from {:#06x}", jump.0 - 6));
        let distance = (self.bytes.len() - jump.0) as i32;
        self.bytes[jump.0 - 4..jump.0].copy_from_slice(&distance.to_le_bytes());
    }

    /// Aligns the code to a multiple of `n` with as few no-op instructions as possible.
    pub fn align(&mut self, n: usize) {
        let mut left = self.bytes.len().next_multiple_of(n) - self.bytes.len();
        while left > 0 {
            let now = left.min(9);
            let long: &[u8] = match now {
                1 => &[0x90],
                2 => &[0x66, 0x90],
                3 => &[0x0f, 0x1f, 0x00],
                4 => &[0x0f, 0x1f, 0x40, 0],
                5 => &[0x0f, 0x1f, 0x44, 0, 0],
                6 => &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
                7 => &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
                8 => &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
                _ => &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            };
            self.put(long);
            left -= now;
        }
    }
}
