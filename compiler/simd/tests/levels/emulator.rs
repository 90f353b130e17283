//! The instructions of AVX-512 that the lowering uses, one at a time, for machines that have none.
//!
//! Bytes are decoded by `iced-x86`; what an instruction does is written from Intel's manual, volume 2.
//!
//! Invariant: lanes that are not under an instruction's mask touch no memory.

use super::case::{Case, Outcome};
use girder_simd::Machine;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// The address of the code in the address space of a run.
const CODE: u64 = 4096;

struct Cpu {
    space: Vec<u8>,
    vectors: [[u8; 64]; 32],
    masks: [u64; 8],
    general: [u64; 16],
    /// The carry and the zero flag.
    flags: (bool, bool),
}

/// Runs a kernel on copies of a case's record and memory.
pub fn run(case: &Case, machine: &Machine) -> Outcome {
    let record = CODE + machine.bytes.len().next_multiple_of(64) as u64 + 64;
    let memory = record + case.record.len().next_multiple_of(64) as u64 + 64;
    let stack = memory + case.memory.len().next_multiple_of(64) as u64 + (1 << 16);
    let mut space = vec![0u8; stack as usize + 64];
    let mut put = |at: u64, bytes: &[u8]| space[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    put(CODE, &machine.bytes);
    put(record, &case.record);
    put(memory, &case.memory);
    for pointer in &case.kernel.pointers {
        let at = pointer.offset as usize;
        let offset = u64::from_le_bytes(case.record[at..at + 8].try_into().expect("there are eight bytes"));
        put(record + at as u64, &memory.wrapping_add(offset).to_le_bytes());
    }
    let mut cpu = Cpu { space, vectors: [[0xcc; 64]; 32], masks: [0xcccc; 8], general: [0; 16], flags: (false, false) };
    (cpu.general[7], cpu.general[6], cpu.general[4]) = (record, case.iterations, stack);
    cpu.run(CODE + machine.entry as u64, machine.bytes.len());
    let mut bytes = cpu.space[record as usize..record as usize + case.record.len()].to_vec();
    for pointer in &case.kernel.pointers {
        let at = pointer.offset as usize;
        bytes[at..at + 8].copy_from_slice(&case.record[at..at + 8]);
    }
    let memory = cpu.space[memory as usize..memory as usize + case.memory.len()].to_vec();
    Outcome { record: bytes, memory }
}

/// The low bits of a word.
fn low(word: u64, bytes: usize) -> u64 {
    word & u64::MAX >> (64 - 8 * bytes)
}

/// A word as a signed number.
fn signed(word: u64, bytes: usize) -> i64 {
    (word << (64 - 8 * bytes)) as i64 >> (64 - 8 * bytes)
}

fn float(word: u64, bytes: usize) -> f64 {
    if bytes == 4 { f32::from_bits(word as u32).into() } else { f64::from_bits(word) }
}

fn bits(value: f64, bytes: usize) -> u64 {
    if bytes == 4 { (value as f32).to_bits().into() } else { value.to_bits() }
}

/// Compares floats as the immediate of an instruction states.
fn compared(how: u8, a: f64, b: f64) -> bool {
    match how {
        0 => a == b,
        0x11 => a < b,
        0x12 => a <= b,
        3 => a.is_nan() || b.is_nan(),
        4 => a != b,
        7 => !(a.is_nan() || b.is_nan()),
        0x1d => a >= b,
        0x1e => a > b,
        // The same conditions inverted.
        0x15 | 0x16 | 0x19 | 0x1a => !compared(how ^ 4, a, b),
        _ => panic!("no lowering compares by {how:#x}"),
    }
}

/// Converts to an integer; a value out of range gives the integer with only the sign bit set, or all ones.
fn cut(value: f64, bytes: usize, is_signed: bool) -> u64 {
    let value = value.trunc();
    let limit = (2.0f64).powi(8 * bytes as i32 - i32::from(is_signed));
    match is_signed {
        true if value >= -limit && value < limit => low(value as i64 as u64, bytes),
        true => 1 << (8 * bytes - 1),
        false if value > -1.0 && value < limit => value as u64,
        false => low(u64::MAX, bytes),
    }
}

impl Cpu {
    fn run(&mut self, entry: u64, length: usize) {
        let code = self.space[CODE as usize..CODE as usize + length].to_vec();
        let mut at = entry;
        for _ in 0..4_000_000 {
            let mut decoder = Decoder::with_ip(64, &code[(at - CODE) as usize..], at, DecoderOptions::NONE);
            let i = decoder.decode();
            at = i.next_ip();
            match i.mnemonic() {
                Mnemonic::Ret => return,
                Mnemonic::Jb if self.flags.0 => at = i.near_branch64(),
                Mnemonic::Jae if !self.flags.0 => at = i.near_branch64(),
                Mnemonic::Je if self.flags.1 => at = i.near_branch64(),
                Mnemonic::Jne if !self.flags.1 => at = i.near_branch64(),
                Mnemonic::Jb | Mnemonic::Jae | Mnemonic::Je | Mnemonic::Jne => {}
                Mnemonic::Nop | Mnemonic::Vzeroupper => {}
                _ if i.op0_register().is_k() || i.op_count() > 1 && i.op1_register().is_k() => self.mask(&i),
                _ if (0..i.op_count()).any(|n| i.op_register(n).is_vector_register()) => self.vector(&i),
                _ => self.general(&i),
            }
        }
        panic!("the kernel does not end");
    }

    fn read(&self, at: u64, bytes: usize) -> u64 {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&self.space[at as usize..at as usize + bytes]);
        u64::from_le_bytes(word)
    }

    fn write(&mut self, at: u64, bytes: usize, word: u64) {
        self.space[at as usize..at as usize + bytes].copy_from_slice(&word.to_le_bytes()[..bytes]);
    }

    fn address(&self, i: &Instruction) -> u64 {
        if i.is_ip_rel_memory_operand() {
            return i.ip_rel_memory_address();
        }
        let mut at = self.general[i.memory_base().number()].wrapping_add(i.memory_displacement64());
        if i.memory_index().is_gpr() {
            let index = self.general[i.memory_index().number()];
            at = at.wrapping_add(index.wrapping_mul(i.memory_index_scale().into()));
        }
        at
    }

    fn general(&mut self, i: &Instruction) {
        let size = |r: Register| if r.is_gpr32() { 4 } else { 8 };
        let bytes = if i.op_register(0).is_gpr() { size(i.op_register(0)) } else { 8 };
        let value = |s: &Self, n: u32| match i.op_kind(n) {
            OpKind::Register => low(s.general[i.op_register(n).number()], size(i.op_register(n))),
            OpKind::Memory => s.read(s.address(i), bytes),
            _ => i.immediate(n),
        };
        let limited = |x: u64, n: u64| if n >= 8 * bytes as u64 { x } else { x & ((1u64 << n) - 1) };
        let result = match i.mnemonic() {
            Mnemonic::Push => {
                self.general[4] -= 8;
                let (at, word) = (self.general[4], value(self, 0));
                return self.write(at, 8, word);
            }
            Mnemonic::Pop => {
                let word = self.read(self.general[4], 8);
                self.general[4] += 8;
                word
            }
            Mnemonic::Mov => value(self, 1),
            Mnemonic::Add => value(self, 0).wrapping_add(value(self, 1)),
            Mnemonic::And => value(self, 0) & value(self, 1),
            Mnemonic::Xor => value(self, 0) ^ value(self, 1),
            Mnemonic::Cmp => {
                self.flags = (value(self, 0) < value(self, 1), value(self, 0) == value(self, 1));
                return;
            }
            Mnemonic::Bzhi => limited(value(self, 1), value(self, 2) & 255),
            Mnemonic::Imul => value(self, 1).wrapping_mul(value(self, 2)),
            Mnemonic::Shr => value(self, 0) >> value(self, 1),
            other => panic!("no lowering uses {other:?}"),
        };
        if matches!(i.mnemonic(), Mnemonic::And | Mnemonic::Add) {
            self.flags = (false, low(result, bytes) == 0);
        }
        match i.op_kind(0) {
            OpKind::Register => self.general[i.op_register(0).number()] = low(result, bytes),
            _ => self.write(self.address(i), bytes, result),
        }
    }

    fn mask(&mut self, i: &Instruction) {
        use Mnemonic::*;
        let n = i.op_register(0).number();
        let k = |s: &Self, n: u32| s.masks[i.op_register(n).number()];
        let bytes = match i.mnemonic() {
            Kmovq | Kandq | Korq | Knotq => 8,
            _ => 2,
        };
        let result = match i.mnemonic() {
            Kmovw | Kmovq if i.op0_kind() == OpKind::Memory => {
                let word = k(self, 1);
                return self.write(self.address(i), bytes, word);
            }
            Kmovw | Kmovq => match i.op1_kind() {
                OpKind::Memory => self.read(self.address(i), bytes),
                _ if i.op1_register().is_k() => k(self, 1),
                _ => self.general[i.op1_register().number()],
            },
            Kandw | Kandq => k(self, 1) & k(self, 2),
            Kandnw => !k(self, 1) & k(self, 2),
            Korw | Korq => k(self, 1) | k(self, 2),
            Kxnorw => !(k(self, 1) ^ k(self, 2)),
            Kxorw => k(self, 1) ^ k(self, 2),
            Knotw | Knotq => !k(self, 1),
            Kunpckbw => (k(self, 1) & 255) << 8 | k(self, 2) & 255,
            Kshiftrw => low(k(self, 1), 2) >> i.immediate8(),
            _ => return self.set_mask_from_vector(i),
        };
        self.masks[n] = low(result, bytes);
    }

    /// An element of an operand.
    fn get(&self, i: &Instruction, operand: u32, lane: usize, bytes: usize) -> u64 {
        match i.op_kind(operand) {
            OpKind::Register => {
                let mut word = [0; 8];
                let vector = &self.vectors[i.op_register(operand).number()];
                word[..bytes].copy_from_slice(&vector[lane * bytes..(lane + 1) * bytes]);
                u64::from_le_bytes(word)
            }
            _ => self.read(self.address(i) + (lane * bytes) as u64, bytes),
        }
    }

    /// Comparisons of vectors.
    fn set_mask_from_vector(&mut self, i: &Instruction) {
        let name = format!("{:?}", i.mnemonic());
        let (kind, bytes) = match name.as_str() {
            "Vcmpps" => ("float", 4),
            "Vcmppd" => ("float", 8),
            "Vptestmd" => ("test", 4),
            "Vptestmq" => ("test", 8),
            "Vptestnmd" => ("test none", 4),
            "Vptestnmq" => ("test none", 8),
            _ => {
                let bytes = match name.as_bytes()[name.len() - 1] {
                    b'b' => 1,
                    b'w' => 2,
                    b'd' => 4,
                    _ => 8,
                };
                (if name.starts_with("Vpcmpu") { "unsigned" } else { "signed" }, bytes)
            }
        };
        let how = if kind.starts_with("test") { 0 } else { i.immediate8() };
        let holds = |lane: usize| {
            let (a, b) = (self.get(i, 1, lane, bytes), self.get(i, 2, lane, bytes));
            let order = match kind {
                "float" => return compared(how, float(a, bytes), float(b, bytes)),
                "test" => return a & b != 0,
                "test none" => return a & b == 0,
                "signed" => signed(a, bytes).cmp(&signed(b, bytes)),
                _ => a.cmp(&b),
            };
            match how {
                0 => order.is_eq(),
                1 => order.is_lt(),
                2 => order.is_le(),
                4 => order.is_ne(),
                5 => order.is_ge(),
                _ => order.is_gt(),
            }
        };
        let result = (0..64 / bytes).filter(|&lane| holds(lane)).fold(0, |mask, lane| mask | 1 << lane);
        self.masks[i.op0_register().number()] = result;
    }

    /// Sets lanes of the result, a register or memory, under the instruction's mask.
    fn set(&mut self, i: &Instruction, (count, bytes): (usize, usize), of: impl Fn(&Self, usize) -> u64) {
        let mask = match i.op_mask() {
            Register::None => u64::MAX,
            k => self.masks[k.number()],
        };
        let words: Vec<Option<u64>> = (0..count).map(|lane| (mask >> lane & 1 == 1).then(|| of(self, lane))).collect();
        if i.op0_kind() == OpKind::Memory {
            let at = self.address(i);
            for (lane, word) in words.into_iter().enumerate() {
                word.into_iter().for_each(|word| self.write(at + (lane * bytes) as u64, bytes, word));
            }
            return;
        }
        let old = self.vectors[i.op0_register().number()];
        let mut new = [0; 64];
        for (lane, word) in words.into_iter().enumerate() {
            let at = lane * bytes..(lane + 1) * bytes;
            match word {
                Some(word) => new[at].copy_from_slice(&word.to_le_bytes()[..bytes]),
                None if i.zeroing_masking() => {}
                None => new[at.clone()].copy_from_slice(&old[at]),
            }
        }
        self.vectors[i.op0_register().number()] = new;
    }

    fn vector(&mut self, i: &Instruction) {
        let name = format!("{:?}", i.mnemonic()).to_lowercase();
        let name = name.as_str();
        let bytes = match name {
            _ if name.ends_with("pd") || name == "vbroadcastsd" || name.ends_with('q') => 8,
            _ if name.ends_with("ps") || name.ends_with("ss") || name.ends_with('d') => 4,
            _ if name.ends_with('w') => 2,
            _ => 1,
        };
        let all = (64 / bytes, bytes);
        let a = move |s: &Self, lane: usize| s.get(i, 1, lane, bytes);
        let b = move |s: &Self, lane: usize| s.get(i, 2, lane, bytes);
        let floats = |f: fn(f64, f64) -> f64| {
            move |s: &Self, lane: usize| bits(f(float(a(s, lane), bytes), float(b(s, lane), bytes)), bytes)
        };
        let least = |x: f64, y: f64| if x < y { x } else { y };
        let greatest = |x: f64, y: f64| if x > y { x } else { y };
        let by = if i.op_count() > 2 { i.immediate8() } else { 0 };
        match name {
            "vaddps" | "vaddpd" => self.set(i, all, floats(|x, y| x + y)),
            "vsubps" | "vsubpd" => self.set(i, all, floats(|x, y| x - y)),
            "vmulps" | "vmulpd" => self.set(i, all, floats(|x, y| x * y)),
            "vdivps" | "vdivpd" => self.set(i, all, floats(|x, y| x / y)),
            "vminps" | "vminpd" => self.set(i, all, floats(least)),
            "vmaxps" | "vmaxpd" => self.set(i, all, floats(greatest)),
            "vsqrtps" | "vsqrtpd" => self.set(i, all, |s, n| bits(float(a(s, n), bytes).sqrt(), bytes)),
            "vrangeps" | "vrangepd" => {
                let is_min = i.immediate8() == 4;
                self.set(i, all, |s, n| {
                    let (x, y) = (float(a(s, n), bytes), float(b(s, n), bytes));
                    let first = match (x.is_nan(), y.is_nan()) {
                        (true, _) => false,
                        (_, true) => true,
                        _ if x == y => x.is_sign_negative() == is_min,
                        _ => (x < y) == is_min,
                    };
                    if first { a(s, n) } else { b(s, n) }
                })
            }
            "vrndscaleps" | "vrndscalepd" => {
                let how = i.immediate8() & 3;
                self.set(i, all, |s, n| {
                    let x = float(a(s, n), bytes);
                    let rounded = [x.round_ties_even(), x.floor(), x.ceil(), x.trunc()][usize::from(how)];
                    bits(rounded, bytes)
                })
            }
            _ if name.starts_with("vfmadd") || name.starts_with("vfnmadd") => {
                let is_213 = name.contains("213");
                self.set(i, all, |s, n| {
                    let (d, x, y) = (s.get(i, 0, n, bytes), a(s, n), b(s, n));
                    let (p, q, r) = if is_213 { (x, d, y) } else { (x, y, d) };
                    let p = if name.starts_with("vfnmadd") { p ^ 1 << (8 * bytes - 1) } else { p };
                    match bytes {
                        4 => {
                            let [p, q, r] = [p, q, r].map(|w| f32::from_bits(w as u32));
                            p.mul_add(q, r).to_bits().into()
                        }
                        _ => f64::from_bits(p).mul_add(f64::from_bits(q), f64::from_bits(r)).to_bits(),
                    }
                })
            }
            _ if name.starts_with("vblendm") || name.starts_with("vpblendm") => {
                let mask = self.masks[i.op_mask().number()];
                let number = i.op0_register().number();
                for lane in 0..64 / bytes {
                    let word = if mask >> lane & 1 == 1 { b(self, lane) } else { a(self, lane) };
                    let word = word.to_le_bytes();
                    // The result may be an operand, whose lane is not read again.
                    self.vectors[number][lane * bytes..(lane + 1) * bytes].copy_from_slice(&word[..bytes]);
                }
            }
            "vpaddb" | "vpaddw" | "vpaddd" | "vpaddq" => self.set(i, all, |s, n| a(s, n).wrapping_add(b(s, n))),
            "vpsubb" | "vpsubw" | "vpsubd" | "vpsubq" => self.set(i, all, |s, n| a(s, n).wrapping_sub(b(s, n))),
            "vpmullw" | "vpmulld" | "vpmullq" => self.set(i, all, |s, n| a(s, n).wrapping_mul(b(s, n))),
            "vpmuludq" => self.set(i, all, |s, n| low(a(s, n), 4) * low(b(s, n), 4)),
            "vpmuldq" => self.set(i, all, |s, n| signed(a(s, n), 4).wrapping_mul(signed(b(s, n), 4)) as u64),
            _ if name.starts_with("vpmins") => {
                self.set(i, all, |s, n| signed(a(s, n), bytes).min(signed(b(s, n), bytes)) as u64)
            }
            _ if name.starts_with("vpmaxs") => {
                self.set(i, all, |s, n| signed(a(s, n), bytes).max(signed(b(s, n), bytes)) as u64)
            }
            _ if name.starts_with("vpminu") => self.set(i, all, |s, n| a(s, n).min(b(s, n))),
            _ if name.starts_with("vpmaxu") => self.set(i, all, |s, n| a(s, n).max(b(s, n))),
            _ if name.starts_with("vpabs") => self.set(i, all, |s, n| signed(a(s, n), bytes).unsigned_abs()),
            _ if name.starts_with("vpavg") => self.set(i, all, |s, n| (a(s, n) + b(s, n) + 1) >> 1),
            _ if name.starts_with("vplzcnt") => {
                self.set(i, all, |s, n| u64::from(a(s, n).leading_zeros()) - (64 - 8 * bytes as u64))
            }
            _ if name.starts_with("vpopcnt") => self.set(i, all, |s, n| a(s, n).count_ones().into()),
            "vpandd" | "vpandq" => self.set(i, all, |s, n| a(s, n) & b(s, n)),
            "vpord" | "vporq" => self.set(i, all, |s, n| a(s, n) | b(s, n)),
            "vpxord" | "vpxorq" => self.set(i, all, |s, n| a(s, n) ^ b(s, n)),
            "vpsllw" | "vpslld" | "vpsllq" => self.set(i, all, |s, n| a(s, n) << by),
            "vpsrlw" | "vpsrld" | "vpsrlq" => self.set(i, all, |s, n| a(s, n) >> by),
            "vpsraw" | "vpsrad" | "vpsraq" => self.set(i, all, |s, n| (signed(a(s, n), bytes) >> by) as u64),
            "vbroadcastss" | "vbroadcastsd" | "vpbroadcastb" | "vpbroadcastw" => {
                let word = a(self, 0);
                self.set(i, all, |_, _| word)
            }
            "vmovups" | "vmovupd" | "vmovaps" | "vmovapd" => self.set(i, all, a),
            "vmovdqu8" => self.set(i, (64, 1), |s, n| s.get(i, 1, n, 1)),
            "vgatherdps" | "vgatherdpd" => self.gather(i, bytes),
            "vscatterdps" | "vscatterdpd" => self.scatter(i, bytes),
            "vpermps" | "vpermpd" => {
                self.set(i, all, |s, n| s.get(i, 2, a(s, n) as usize % (64 / bytes), bytes));
            }
            "vpermt2ps" | "vpermt2pd" => self.set(i, all, |s, n| {
                let (lanes, at) = (64 / bytes, a(s, n) as usize);
                s.get(i, if at & lanes == 0 { 0 } else { 2 }, at % lanes, bytes)
            }),
            "vpshufb" => self.set(i, (64, 1), |s, n| {
                let at = s.get(i, 2, n, 1);
                if at & 0x80 != 0 { 0 } else { s.get(i, 1, n / 16 * 16 + (at & 15) as usize, 1) }
            }),
            "vpmaddwd" => self.set(i, (16, 4), |s, n| {
                let product = |n| signed(s.get(i, 1, n, 2), 2) * signed(s.get(i, 2, n, 2), 2);
                (product(2 * n) + product(2 * n + 1)) as u64
            }),
            "vpmaddubsw" => self.set(i, (32, 2), |s, n| {
                let product = |n| s.get(i, 1, n, 1) as i64 * signed(s.get(i, 2, n, 1), 1);
                (product(2 * n) + product(2 * n + 1)).clamp(-32768, 32767) as u64
            }),
            "vpsadbw" => self.set(i, (8, 8), |s, n| {
                (8 * n..8 * n + 8).map(|byte| s.get(i, 1, byte, 1).abs_diff(s.get(i, 2, byte, 1))).sum()
            }),
            "vextractf64x4" => {
                let half = 4 * usize::from(i.immediate8());
                self.set(i, (4, 8), |s, n| s.get(i, 1, half + n, 8));
            }
            "vinsertf64x4" => self.set(i, (8, 8), |s, n| match n {
                0..4 => s.get(i, 1, n, 8),
                _ => s.get(i, 2, n - 4, 8),
            }),
            _ => self.convert(i, name),
        }
    }

    fn gather(&mut self, i: &Instruction, bytes: usize) {
        let (base, mask) = (self.address(i), i.op_mask().number());
        let index = i.memory_index().number();
        self.set(i, (64 / bytes, bytes), |s, n| {
            let offset = i32::from_le_bytes(s.vectors[index][4 * n..4 * n + 4].try_into().expect("four bytes"));
            s.read(base.wrapping_add(offset as i64 as u64), bytes)
        });
        self.masks[mask] = 0;
    }

    fn scatter(&mut self, i: &Instruction, bytes: usize) {
        let (base, mask) = (self.address(i), i.op_mask().number());
        let index = i.memory_index().number();
        for n in (0..64 / bytes).filter(|n| self.masks[mask] >> n & 1 == 1).collect::<Vec<_>>() {
            let offset = i32::from_le_bytes(self.vectors[index][4 * n..4 * n + 4].try_into().expect("four bytes"));
            let word = self.get(i, 1, n, bytes);
            self.write(base.wrapping_add(offset as i64 as u64), bytes, word);
        }
        self.masks[mask] = 0;
    }

    fn convert(&mut self, i: &Instruction, name: &str) {
        let of = |s: &Self, n: usize, bytes: usize| s.get(i, 1, n, bytes);
        match name {
            "vcvtdq2ps" => self.set(i, (16, 4), |s, n| u64::from((of(s, n, 4) as i32 as f32).to_bits())),
            "vcvtudq2ps" => self.set(i, (16, 4), |s, n| u64::from((of(s, n, 4) as u32 as f32).to_bits())),
            "vcvttps2dq" => self.set(i, (16, 4), |s, n| cut(float(of(s, n, 4), 4), 4, true)),
            "vcvttps2udq" => self.set(i, (16, 4), |s, n| cut(float(of(s, n, 4), 4), 4, false)),
            "vcvtdq2pd" => self.set(i, (8, 8), |s, n| f64::from(of(s, n, 4) as i32).to_bits()),
            "vcvtudq2pd" => self.set(i, (8, 8), |s, n| f64::from(of(s, n, 4) as u32).to_bits()),
            "vcvtps2pd" => self.set(i, (8, 8), |s, n| float(of(s, n, 4), 4).to_bits()),
            "vpmovsxdq" => self.set(i, (8, 8), |s, n| signed(of(s, n, 4), 4) as u64),
            "vpmovzxdq" => self.set(i, (8, 8), |s, n| of(s, n, 4)),
            "vcvttpd2dq" => self.set(i, (8, 4), |s, n| cut(f64::from_bits(of(s, n, 8)), 4, true)),
            "vcvttpd2udq" => self.set(i, (8, 4), |s, n| cut(f64::from_bits(of(s, n, 8)), 4, false)),
            "vcvtpd2ps" => self.set(i, (8, 4), |s, n| bits(f64::from_bits(of(s, n, 8)), 4)),
            "vcvtqq2ps" => self.set(i, (8, 4), |s, n| u64::from((of(s, n, 8) as i64 as f32).to_bits())),
            "vcvtuqq2ps" => self.set(i, (8, 4), |s, n| u64::from((of(s, n, 8) as f32).to_bits())),
            "vpmovqd" => self.set(i, (8, 4), |s, n| of(s, n, 8)),
            "vcvtqq2pd" => self.set(i, (8, 8), |s, n| (of(s, n, 8) as i64 as f64).to_bits()),
            "vcvtuqq2pd" => self.set(i, (8, 8), |s, n| (of(s, n, 8) as f64).to_bits()),
            "vcvttpd2qq" => self.set(i, (8, 8), |s, n| cut(f64::from_bits(of(s, n, 8)), 8, true)),
            "vcvttpd2uqq" => self.set(i, (8, 8), |s, n| cut(f64::from_bits(of(s, n, 8)), 8, false)),
            "vpmovzxbd" => self.set(i, (16, 4), |s, n| of(s, n, 1)),
            "vpmovsxbd" => self.set(i, (16, 4), |s, n| signed(of(s, n, 1), 1) as u64),
            "vpmovzxwd" => self.set(i, (16, 4), |s, n| of(s, n, 2)),
            "vpmovsxwd" => self.set(i, (16, 4), |s, n| signed(of(s, n, 2), 2) as u64),
            "vpmovdb" => self.set(i, (16, 1), |s, n| of(s, n, 4)),
            "vpmovdw" => self.set(i, (16, 2), |s, n| of(s, n, 4)),
            _ => panic!("no lowering uses {name}"),
        }
    }
}
