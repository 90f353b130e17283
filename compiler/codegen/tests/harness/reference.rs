//! Vector kernels, evaluated instead of compiled.
//!
//! Invariant: a kernel touches the memory of its case and the stack of the function that calls it only, which live as
//! long as the call.

use girder_simd::{Bytes, Kernel, Reference};

/// The function that compiled code calls instead of a vector kernel.
pub const EVALUATE: Reference = evaluate;

/// All memory of the process.
struct Raw;

impl Bytes for Raw {
    fn read(&self, address: u64, to: &mut [u8]) {
        // SAFETY: kernels read elements of the case's views and of local arrays only.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) }
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) }
    }
}

extern "sysv64" fn evaluate(record: *mut u8, iterations: u64, kernel: *const Kernel) {
    // SAFETY: compiled code passes the kernel that it was made with, and a record that has all of the kernel's bytes.
    let (kernel, record) = unsafe {
        let kernel = &*kernel;
        (kernel, std::slice::from_raw_parts_mut(record, kernel.record_bytes()))
    };
    girder_simd::evaluate(kernel, record, &mut Raw, iterations);
}
