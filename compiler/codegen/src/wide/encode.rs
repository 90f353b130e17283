//! Bytes of the instructions that strips are made of: EVEX with 512-bit vectors and VEX for masks, VEX with 256-bit and
//! 128-bit vectors where strips are made of halves; [`general`] has the few on general registers.
//!
//! The formats are those of Intel's manual, volume 2, sections 2.3 (VEX) and 2.7 (EVEX). Displacements always have four
//! bytes, so that lengths do not depend on values.
//!
//! Invariant: an instruction that reads a constant finds it before itself, in the same bytes.

mod general;

pub(crate) use general::Jump;

use std::fmt::Write;

/// How an instruction on vectors is encoded, and its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Code {
    pub name: &'static str,
    /// 1: 0F, 2: 0F38, 3: 0F3A.
    pub map: u8,
    /// 0: none, 1: 66, 2: F3, 3: F2.
    pub prefix: u8,
    pub w: u8,
    pub opcode: u8,
    /// On 128 bits, where the others have 256.
    pub short: bool,
}

/// A general register, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpr(pub u8);

pub(crate) const RAX: Gpr = Gpr(0);
pub(crate) const RDX: Gpr = Gpr(2);
pub(crate) const RSP: Gpr = Gpr(4);
pub(crate) const RSI: Gpr = Gpr(6);
pub(crate) const RDI: Gpr = Gpr(7);
pub(crate) const R14: Gpr = Gpr(14);

/// The operand that may be memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rm {
    Register(u8),
    Memory {
        base: Gpr,
        /// A register and the logarithm of its factor; of a gather, a vector register.
        index: Option<(u8, u8)>,
        offset: i32,
    },
    /// A byte of the code.
    Constant(usize),
}

/// The mask of an instruction: none has number 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Masking {
    pub register: u8,
    /// Lanes that are left out become zero instead of staying what they were.
    pub zeroing: bool,
}

impl Code {
    /// On 128 bits, where the others have 256.
    pub const fn short(self) -> Code {
        Code { short: true, ..self }
    }

    /// The name of the same instruction without EVEX.
    fn name_in_halves(self) -> &'static str {
        match self.name {
            "vpandd" | "vpandq" => "vpand",
            "vpord" | "vporq" => "vpor",
            "vpxord" | "vpxorq" => "vpxor",
            "vrndscaleps" => "vroundps",
            "vrndscalepd" => "vroundpd",
            name => name,
        }
    }

    /// Whether the operand that may be memory is the result, of those that only halves have.
    fn stores_in_halves(self) -> bool {
        matches!((self.map, self.opcode), (2, 0x2e | 0x2f) | (3, 0x14 | 0x15 | 0x16 | 0x19 | 0x39) | (1, 0xd6))
    }
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
            Rm::Memory { base, index: Some((n @ (0 | 2), scale)), offset } if !gathers => {
                format!("[{} + {} * {} + {offset}]", base.name(), Gpr(n).name(), 1 << scale)
            }
            Rm::Memory { base, index: Some((n, _)), offset } => {
                format!("[{} + {} + {offset}]", base.name(), register(n))
            }
        }
    }
}

/// Whether the operand that may be memory is the result.
fn is_reversed(code: Code) -> bool {
    matches!(
        (code.map, code.prefix, code.opcode),
        (1, _, 0x11) | (2, 2, 0x31 | 0x33 | 0x35) | (2, 1, 0xa2) | (3, 1, 0x1b)
    )
}

/// Code in the making.
#[derive(Default)]
pub(crate) struct Bytes {
    pub bytes: Vec<u8>,
    /// The same for people, a line for each instruction, if it is wanted.
    pub listing: Option<String>,
    /// Vectors have 256 bits, and instructions on them no masks.
    pub halves: bool,
}

impl Bytes {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a line to the listing: the place in the code, and the words.
    fn say(&mut self, words: std::fmt::Arguments<'_>) {
        let at = self.bytes.len();
        if let Some(listing) = &mut self.listing {
            // Writing to a string does not fail.
            let _ = writeln!(listing, "  {at:#06x}  {words}");
        }
    }

    fn say_vector(&mut self, code: Code, first: u8, second: Option<u8>, rm: Rm, masking: Masking, last: Option<u8>) {
        let vector = |r: u8| match (self.halves, code.short) {
            (false, _) => format!("zmm{r}"),
            (true, false) => format!("ymm{r}"),
            (true, true) => format!("xmm{r}"),
        };
        let name = if self.halves { code.name_in_halves() } else { code.name };
        let result = match name {
            _ if !self.halves && ["vcmp", "vpcmp", "vptest"].iter().any(|start| name.starts_with(start)) => {
                format!("k{first}")
            }
            _ if matches!(code.opcode, 0x72 | 0x73) => String::new(),
            _ => vector(first),
        };
        let mask = match masking {
            Masking { register: 0, .. } => String::new(),
            Masking { register, zeroing: false } => format!(" {{k{register}}}"),
            Masking { register, zeroing: true } => format!(" {{k{register}}}{{z}}"),
        };
        let number = last.map(|n| n.to_string());
        let mut all = [
            Some(result),
            second.map(vector),
            Some(rm.show(&vector, name.contains("gather") || name.contains("scatter"))),
            number,
        ];
        if is_reversed(code) || code.stores_in_halves() && self.halves {
            all.swap(0, 2);
        }
        let all: Vec<String> = all.into_iter().flatten().filter(|o| !o.is_empty()).collect();
        self.say(format_args!("{name}{mask} {}", all.join(", ")));
    }

    /// An instruction with vectors: `first` is the register operand, `second` the one in `vvvv`.
    pub fn vector(
        &mut self,
        code: Code,
        first: u8,
        second: Option<u8>,
        rm: Rm,
        masking: Masking,
        immediate: Option<u8>,
    ) {
        if self.listing.is_some() {
            self.say_vector(code, first, second, rm, masking, immediate);
        }
        let second = second.unwrap_or(0);
        if self.halves {
            return self.half(code, first, second, rm, immediate);
        }
        let (b, x) = match rm {
            Rm::Register(r) => (r >> 3 & 1, r >> 4 & 1),
            Rm::Memory { base, index, .. } => (base.0 >> 3, index.map_or(0, |i| i.0 >> 3 & 1)),
            Rm::Constant(_) => (0, 0),
        };
        // The index of a gather has five bits; the instruction has no second operand then.
        let fifth = match rm {
            Rm::Memory { index: Some((i, _)), .. } if i >= 16 => 1,
            _ => second >> 4 & 1,
        };
        let not = |bit: u8| bit & 1 ^ 1;
        let r = not(first >> 3) << 7 | not(x) << 6 | not(b) << 5 | not(first >> 4) << 4 | code.map;
        let v = code.w << 7 | (!second & 15) << 3 | 4 | code.prefix;
        let z = u8::from(masking.zeroing) << 7 | 2 << 5 | not(fifth) << 3 | masking.register;
        self.put(&[0x62, r, v, z, code.opcode]);
        self.operands(first, rm, immediate);
    }

    /// An instruction with 256-bit vectors, or 128-bit ones.
    fn half(&mut self, code: Code, first: u8, second: u8, rm: Rm, immediate: Option<u8>) {
        let (b, x) = match rm {
            Rm::Register(r) => (r >> 3 & 1, 0),
            Rm::Memory { base, index, .. } => (base.0 >> 3, index.map_or(0, |i| i.0 >> 3 & 1)),
            Rm::Constant(_) => (0, 0),
        };
        // The broadcast of 64 bits is the one whose `W` differs between the two encodings.
        let w = if (code.map, code.opcode) == (2, 0x19) { 0 } else { code.w };
        let not = |bit: u8| bit & 1 ^ 1;
        let r = not(first >> 3) << 7 | not(x) << 6 | not(b) << 5 | code.map;
        let v = w << 7 | (!second & 15) << 3 | u8::from(!code.short) << 2 | code.prefix;
        self.put(&[0xc4, r, v, code.opcode]);
        self.operands(first, rm, immediate);
    }

    /// An instruction on masks; `second` is the operand in `vvvv`.
    pub fn mask(&mut self, code: Code, first: u8, second: Option<u8>, rm: Rm, immediate: Option<u8>) {
        if self.listing.is_some() {
            let mask = |r: u8| format!("k{r}");
            let general = |r: u8| Gpr(r).name().to_string();
            let number = immediate.map(|n| n.to_string());
            let from: &dyn Fn(u8) -> String = if code.opcode == 0x92 { &general } else { &mask };
            let all = [Some(mask(first)), second.map(mask), Some(rm.show(from, false)), number];
            let all: Vec<String> = all.into_iter().flatten().collect();
            self.say(format_args!("{} {}", code.name, all.join(", ")));
        }
        let long = second.is_some();
        let second = second.unwrap_or(0);
        let b = match rm {
            Rm::Register(r) => r >> 3 & 1,
            Rm::Memory { base, .. } => base.0 >> 3,
            Rm::Constant(_) => 0,
        };
        let r = (first >> 3 & 1 ^ 1) << 7 | 1 << 6 | (b ^ 1) << 5 | code.map;
        let v = code.w << 7 | (!second & 15) << 3 | u8::from(long) << 2 | code.prefix;
        self.put(&[0xc4, r, v, code.opcode]);
        self.operands(first, rm, immediate);
    }

    fn operands(&mut self, first: u8, rm: Rm, immediate: Option<u8>) {
        let reg = (first & 7) << 3;
        match rm {
            Rm::Register(r) => self.put(&[0xc0 | reg | r & 7]),
            Rm::Constant(at) => {
                let end = self.bytes.len() as i64 + 5 + i64::from(immediate.is_some());
                self.put(&[reg | 5]);
                self.put(&((at as i64 - end) as i32).to_le_bytes());
            }
            Rm::Memory { base, index: None, offset } if base.0 & 7 != 4 => {
                self.put(&[0x80 | reg | base.0 & 7]);
                self.put(&offset.to_le_bytes());
            }
            Rm::Memory { base, index, offset } => {
                let (index, scale) = index.unwrap_or((4, 0));
                self.put(&[0x80 | reg | 4, scale << 6 | (index & 7) << 3 | base.0 & 7]);
                self.put(&offset.to_le_bytes());
            }
        }
        self.bytes.extend(immediate);
    }
}
