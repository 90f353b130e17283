//! Calls machine code.
//!
//! Invariant: this file has the only `unsafe` of these tests; a case's kernel touches only its memory and record.

use super::case::{Case, Outcome};
use girder_simd::Machine;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Runs a kernel on copies of a case's record and memory.
pub fn run(case: &Case, machine: &Machine) -> Outcome {
    let (mut record, mut memory) = (case.record.clone(), case.memory.clone());
    for pointer in &case.kernel.pointers {
        let at = pointer.offset as usize;
        let offset = u64::from_le_bytes(record[at..at + 8].try_into().expect("there are eight bytes"));
        let address = (memory.as_mut_ptr() as u64).wrapping_add(offset);
        record[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    call(machine, &mut record, case.iterations);
    for pointer in &case.kernel.pointers {
        let at = pointer.offset as usize;
        record[at..at + 8].copy_from_slice(&case.record[at..at + 8]);
    }
    Outcome { record, memory }
}

fn call(machine: &Machine, record: &mut [u8], iterations: u64) {
    let length = machine.bytes.len().next_multiple_of(4096);
    // SAFETY: the mapping is new and of this length, is written before it becomes executable, and unmapped after the
    // call;
    // the code has the convention that `Machine` states and touches only what the record points to.
    unsafe {
        let code = mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
            .expect("there is memory for code");
        std::ptr::copy_nonoverlapping(machine.bytes.as_ptr(), code.cast::<u8>(), machine.bytes.len());
        mprotect(code, length, MprotectFlags::READ | MprotectFlags::EXEC).expect("code may run");
        let entry = code.cast::<u8>().add(machine.entry);
        let entry = std::mem::transmute::<*mut u8, unsafe extern "sysv64" fn(*mut u8, u64)>(entry);
        entry(record.as_mut_ptr(), iterations);
        munmap(code, length).expect("it was mapped");
    }
}
