//! Every row of the table against an independent disassembler.

use super::{Bytes, Gpr, Masking, Rm};
use crate::x86::Level;
use crate::x86::table::{Code, Levels, ResultClass};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};

/// Numbers of vector registers, low and high ones.
fn registers(level: Level) -> &'static [[u8; 3]] {
    match level {
        Level::Avx2 => &[[0, 1, 2], [7, 8, 15], [15, 3, 9]],
        Level::Avx512 => &[[0, 1, 2], [7, 8, 15], [31, 17, 9], [12, 25, 30]],
    }
}

/// Addresses with short and long displacements, and each kind of base.
fn addresses(gathers: bool) -> Vec<Rm> {
    let mut all = Vec::new();
    for base in [0, 4, 5, 12, 13, 15].map(Gpr) {
        for offset in [0, 1, -8, 64, 128, 1024, -4096, 123_456] {
            let index = if gathers { Some((11, 0)) } else { None };
            all.push(Rm::Memory { base, index, offset });
            if !gathers {
                all.push(Rm::Memory { base, index: Some((0, 2)), offset });
            }
        }
    }
    all
}

/// The one instruction that the bytes are.
fn decoded(bytes: &[u8]) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid() && instruction.len() == bytes.len()).then_some(instruction)
}

/// Numbers of the registers that are operands, in any order.
fn numbers(instruction: &Instruction) -> Vec<u8> {
    let mut numbers: Vec<u8> = (0..instruction.op_count())
        .filter(|&n| instruction.op_kind(n) == OpKind::Register)
        .map(|n| instruction.op_register(n).number() as u8)
        .collect();
    numbers.sort_unstable();
    numbers
}

struct Case {
    code: Code,
    level: Level,
    second: bool,
    immediate: bool,
}

impl Case {
    fn encoded(&self, [first, second, _]: [u8; 3], rm: Rm, masking: Masking) -> Vec<u8> {
        let mut out = Bytes::new(self.level);
        let (second, immediate) = (self.second.then_some(second), self.immediate.then_some(0x10));
        match self.code.facts().levels {
            Levels::Masks => out.mask(self.code, first, second, rm, immediate),
            _ => out.vector(self.code, first, second, rm, masking, immediate),
        }
        out.bytes
    }

    /// Returns whether the disassembler finds the instruction with these operands.
    fn agrees(&self, of: [u8; 3], rm: Rm, masking: Masking) -> bool {
        let facts = self.code.facts();
        let bytes = self.encoded(of, rm, masking);
        let Some(found) = decoded(&bytes) else { return false };
        let name = format!("{:?}", found.mnemonic()).to_lowercase();
        let mut wanted: Vec<u8> = vec![of[0]];
        wanted.extend(self.second.then_some(of[1]));
        if let Rm::Register(r) = rm {
            wanted.push(r);
        }
        // The fourth operand of a blend stands in the immediate.
        if name.starts_with("vblendv") || name == "vpblendvb" {
            wanted.push(1);
        }
        wanted.sort_unstable();
        let address = match rm {
            Rm::Memory { base, index, offset } => {
                let scale = index.filter(|_| !facts.gathers).map_or(1, |i| 1 << i.1);
                let index = index.map(|i| i.0);
                let found_index = (found.memory_index() != Register::None).then(|| found.memory_index().number() as u8);
                found.memory_base().number() as u8 == base.0
                    && found_index == index
                    && (index.is_none() || found.memory_index_scale() == scale)
                    && found.memory_displacement64() as i64 == i64::from(offset)
            }
            _ => true,
        };
        let mask = found.op_mask();
        let masked = match masking.register {
            0 => mask == Register::None,
            register => mask.number() as u8 == register && found.zeroing_masking() == masking.zeroing,
        };
        name == facts.name_at(self.level) && numbers(&found) == wanted && address && masked
    }
}

/// What the instruction takes: the only combination of operands that is one with memory or registers.
fn shapes(code: Code, level: Level) -> Vec<Case> {
    let plain = Masking::default();
    let all = [(false, false), (true, false), (false, true), (true, true)];
    let cases = all.map(|(second, immediate)| Case { code, level, second, immediate });
    let works = |case: &Case| {
        let memory = addresses(code.facts().gathers)[0];
        let of = [3, 1, 2];
        case.agrees(of, Rm::Register(2), plain)
            || case.agrees(of, memory, plain)
            || case.agrees(of, memory, Masking { register: 5, zeroing: false })
    };
    cases.into_iter().filter(works).collect()
}

#[test]
fn a_disassembler_reads_every_instruction() {
    for level in Level::ALL {
        for &code in Code::ALL.iter().filter(|code| code.facts().is_at(level)) {
            let shapes = shapes(code, level);
            assert!(!shapes.is_empty(), "{code:?} at {level:?} is nothing that the disassembler knows");
            for case in shapes {
                check(&case);
            }
        }
    }
}

fn check(case: &Case) {
    let facts = case.code.facts();
    let (masks, vectors) = (facts.levels == Levels::Masks, case.level == Level::Avx512);
    let plain = Masking::default();
    let registers = if masks { &[[1, 2, 3], [7, 5, 6]] } else { registers(case.level) };
    // A gather uses up its mask, and has none of its own with VEX.
    let own = if facts.gathers && vectors { Masking { register: 3, zeroing: false } } else { plain };
    let says = |of: [u8; 3], rm: Rm, masking: Masking| {
        let bytes = case.encoded(of, rm, masking);
        format!("{} {of:?} {rm:?} {masking:?} at {:?}: {bytes:02x?}, {:?}", facts.name, case.level, decoded(&bytes))
    };
    let with_register = case.agrees([3, 1, 2], Rm::Register(2), own);
    let with_memory = case.agrees([3, 1, 2], addresses(facts.gathers)[0], own);
    assert!(with_register || with_memory, "{}", says([3, 1, 2], Rm::Register(2), own));
    for &(mut of) in registers {
        if facts.result != ResultClass::Vector {
            of[0] &= 7;
        }
        if with_register {
            assert!(case.agrees(of, Rm::Register(of[2]), own), "{}", says(of, Rm::Register(of[2]), own));
        }
        for rm in addresses(facts.gathers).into_iter().filter(|_| with_memory) {
            assert!(case.agrees(of, rm, own), "{}", says(of, rm, own));
        }
    }
    if vectors && facts.masked && !masks && with_register && facts.result == ResultClass::Vector {
        for masking in [Masking { register: 4, zeroing: false }, Masking { register: 7, zeroing: true }] {
            let of = [3, 1, 2];
            assert!(case.agrees(of, Rm::Register(2), masking), "{}", says(of, Rm::Register(2), masking));
        }
    }
}

#[test]
fn a_constant_is_found_before_its_instruction() {
    let mut out = Bytes::new(Level::Avx512);
    out.align(64);
    out.bytes.extend([0; 64]);
    out.vector(Code::Vbroadcastss, 3, None, Rm::Constant(16), Masking::default(), None);
    let instruction = decoded(&out.bytes[64..]).expect("it is one instruction");
    // The decoder begins at 0, the code at 64.
    assert_eq!(instruction.ip_rel_memory_address() as i64 + 64, 16);
}
