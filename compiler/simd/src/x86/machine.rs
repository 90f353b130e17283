//! What translation takes besides a kernel, and the machine code that it makes.
//!
//! Invariant: machine code refers to nothing outside of itself but what its arguments point to.

use crate::ir::Kernel;

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
