//! Memory of a thread for packed blocks. It grows to the size of the largest plan and is kept, so that a product that
//! runs again does not allocate.
//!
//! Invariant: no call reads what an earlier one wrote.

use std::cell::RefCell;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

thread_local! {
    static SCRATCH: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Calls a function with some bytes, aligned to cache lines.
pub(super) fn with(bytes: usize, f: impl FnOnce(*mut u8)) {
    if bytes == 0 {
        return f(std::ptr::null_mut());
    }
    SCRATCH.with_borrow_mut(|lines| {
        let needed = bytes.div_ceil(size_of::<Line>());
        if lines.len() < needed {
            lines.resize(needed, Line([0; 64]));
        }
        f(lines.as_mut_ptr().cast());
    });
}
