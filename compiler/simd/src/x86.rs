//! Translates kernels to machine code for x86-64.
//!
//! - [`table`], `pairs`: the instructions, and descriptive names for them
//! - `encode`: the encoding of instructions
//! - `inst`, `program`: machine programs over virtual registers
//! - `avx512`, `avx2`: one lowering from the IR to machine programs for each level
//! - `integers`, `interleaved`: code that both lowerings share
//! - `interleave`: interleaves the steps of several groups
//! - `registers`: register allocation
//! - `constants`: constants in front of the code
//! - `emit`, `step`: the loop around a body, and the code of one step
//!
//! Invariant: code is position-independent: it reads only its own constants and the memory that its arguments point to.

mod avx2;
mod avx512;
mod constants;
mod emit;
mod encode;
mod inst;
mod integers;
mod interleave;
mod interleaved;
mod pairs;
mod program;
mod registers;
mod step;
pub mod table;

use crate::ir::{Effect, GROUP, Item, Kernel, Lane, Memory, Op};

/// A level of the instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// 256-bit vectors with fused multiplication and addition: AVX2, FMA, BMI1, BMI2, LZCNT.
    Avx2,
    /// 512-bit vectors with masks: AVX-512 F, BW, CD, DQ and VL besides.
    Avx512,
}

/// The known facts about the loop that a kernel runs, and the choices of the caller.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of iterations, if it is known.
    pub iterations: Option<u64>,
    /// Whether an iteration may run twice.
    pub idempotent: bool,
    /// Whether the host has a population count of 512-bit vectors (AVX512_VPOPCNTDQ).
    pub counts_ones: bool,
    /// Whether groups may run interleaved, and with AVX2 the two vectors of a group.
    pub interleave: bool,
    /// Whether accesses with a stride of a few elements may load or store whole vectors.
    pub whole_vectors: bool,
    /// Whether to produce a readable listing.
    pub listing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            iterations: None,
            idempotent: false,
            counts_ones: false,
            interleave: true,
            whole_vectors: true,
            listing: false,
        }
    }
}

/// Position-independent machine code of an `extern "sysv64" fn(record: *mut u8, iterations: u64)`, and the offset of
/// its entry. `iterations` is at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The code, which has to be aligned to [`Machine::ALIGNMENT`].
    pub bytes: Vec<u8>,
    /// The offset of its first instruction.
    pub entry: usize,
    /// A readable listing of the code, if it was requested.
    pub listing: Option<String>,
    /// The text of the kernel, if a listing was requested.
    pub kernel: Option<String>,
}

/// A function that interprets a kernel by [`evaluate`](crate::evaluate()), instead of machine code for it.
pub type Reference = extern "sysv64" fn(record: *mut u8, iterations: u64, kernel: *const Kernel);

impl Machine {
    /// Returns code that calls a function with a kernel.
    pub fn calling(reference: Reference, kernel: &'static Kernel) -> Machine {
        // mov rdx, kernel; mov rax, reference; jmp rax
        let mut bytes = vec![0x48, 0xba];
        bytes.extend_from_slice(&(std::ptr::from_ref(kernel) as u64).to_le_bytes());
        bytes.extend_from_slice(&[0x48, 0xb8]);
        bytes.extend_from_slice(&(reference as usize as u64).to_le_bytes());
        bytes.extend_from_slice(&[0xff, 0xe0]);
        Machine { bytes, entry: 0, listing: None, kernel: None }
    }

    /// The alignment of the first byte.
    pub const ALIGNMENT: usize = 64;
}

/// Translates a kernel for a level.
pub fn assemble(kernel: &Kernel, level: Level, options: &Options) -> Machine {
    let program = match level {
        Level::Avx2 => avx2::program(kernel, options),
        Level::Avx512 => avx512::program(kernel, options),
    };
    let kernel = options.listing.then(|| kernel.to_string());
    Machine { kernel, ..emit::emit(&program, options) }
}

impl Level {
    /// All levels, the lowest first.
    pub const ALL: [Level; 2] = [Level::Avx2, Level::Avx512];

    /// Returns the name of the level in listings.
    pub fn name(self) -> &'static str {
        match self {
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Returns whether this machine has the level.
    pub fn is_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                use std::is_x86_feature_detected as has;
                has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                use std::is_x86_feature_detected as has;
                let parts = has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
                Level::Avx2.is_here() && has!("avx512f") && parts
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Returns the bytes of a vector.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// Returns the number of vector registers that the allocator may use.
    pub(crate) const fn registers(self) -> u8 {
        match self {
            // One register is for masks that an instruction clobbers.
            Level::Avx2 => 15,
            Level::Avx512 => 32,
        }
    }

    /// Returns the number of registers that a value takes for a group.
    pub fn vectors(self, lane: Lane) -> usize {
        (GROUP as usize * lane.bytes().max(4) as usize).div_ceil(self.bytes() as usize)
    }

    /// Returns the registers for accumulators and indices if the body is to have as many.
    pub fn spare_registers(self) -> usize {
        usize::from(self.registers() / 2)
    }

    /// Returns the most registers for accumulators and indices.
    pub fn most_carried(self) -> usize {
        usize::from(self.registers() - registers::WIDEST)
    }

    /// Returns the most indices that a kernel may carry.
    pub fn most_indices(self) -> usize {
        match self {
            Level::Avx2 => 1,
            Level::Avx512 => 4,
        }
    }

    /// Returns whether the level converts one lane type to another.
    pub fn converts(self, from: Lane, to: Lane) -> bool {
        let long = from.is_int() && from.is_long();
        self == Level::Avx512 || !(long && to == Lane::F32)
    }

    /// Returns the number of unrolled groups with accumulators of their own, where the order does not matter.
    pub fn parallel_accumulators(self) -> usize {
        match self {
            Level::Avx2 => 1,
            Level::Avx512 => emit::MOST_UNROLLED,
        }
    }
}

/// Returns the stride in elements, if an access may be whole vectors whose lanes are permuted.
pub fn interleaved_stride(lane: Lane, stride: i64) -> Option<i64> {
    let bytes = i64::from(lane.bytes());
    (bytes > 0 && stride % bytes == 0 && matches!(stride / bytes, -1 | 2..=4)).then(|| stride / bytes)
}

/// Returns the program's form of each pointer of a kernel.
fn moving(kernel: &Kernel) -> Vec<program::Moving> {
    let mut sizes: Vec<Option<u32>> = vec![None; kernel.pointers.len()];
    let mut unit = vec![true; kernel.pointers.len()];
    let mut note = |lane: Lane, at: Memory| {
        let n = at.pointer.0 as usize;
        let bytes = lane.bytes() * u32::from(kernel.per_iteration);
        unit[n] &= kernel.is_contiguous(lane, at) && sizes[n].is_none_or(|b| b == bytes);
        sizes[n] = Some(bytes);
    };
    for item in &kernel.items {
        match item {
            Item::Make(value) => {
                if let Op::Load(from) = kernel.def(*value).op {
                    note(kernel.lane(*value), from);
                }
            }
            Item::Do(Effect::Store { to, value, .. }) => note(kernel.lane(*value), *to),
            Item::Do(Effect::StoreInterleaved { to, values }) => {
                values.iter().for_each(|v| note(kernel.lane(v.1), *to));
            }
            Item::Do(_) => {}
        }
    }
    let moving =
        |(n, p): (usize, &crate::ir::Moving)| program::Moving { offset: p.offset, stride: p.stride, unit: unit[n] };
    kernel.pointers.iter().enumerate().map(moving).collect()
}

/// Returns the offset of the first iteration's element of phase 0 of an access with this stride, and the access's
/// phase.
pub fn phase(offset: i32, bytes: u32, steps: i64) -> (i32, u8) {
    let bytes = bytes as i32;
    let phase = if steps < 0 { 0 } else { offset.div_euclid(bytes).rem_euclid(steps as i32) };
    (offset - phase * bytes, phase as u8)
}
