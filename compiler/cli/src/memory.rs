//! The allocator of the command, and the bound on the memory that it gives.
//!
//! `compile_bytes` is charged where tables are made, which names the statement that asks for too much. This bound is
//! the last resort for what is not charged, such as machine code that is being made: without it the system would end
//! the command, or another process, without a word.
//!
//! Invariant: no more bytes live than the limits, a quarter of them and a few megabytes; what exceeds this is a
//! diagnostic.

use crate::report::Report;
use girder::source::{Diagnostic, Limits, SourceMap, Span};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

/// Allocates with mimalloc, which uses huge pages, so that first touches cost less, and for which threads do not
/// contend; counts the bytes that live.
pub struct Bounded;

/// The bytes that live, without those that threads have not added yet.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// The bytes that may live.
static BOUND: AtomicI64 = AtomicI64::new(i64::MAX);
/// The text for more bytes than that. It is rendered before it is needed, because rendering takes memory.
static EXCEEDED: Mutex<Option<String>> = Mutex::new(None);
/// The bytes that a thread counts alone before it adds them to [`LIVE`].
const OWN: i64 = 1 << 20;

thread_local! {
    static COUNTED: Cell<i64> = const { Cell::new(0) };
}

/// Bounds the memory of a compilation, and of a run if one follows.
pub fn bound(limits: &Limits, runs: bool, report: &Report) {
    let bytes = limits.compile_bytes.saturating_add(if runs { limits.host_bytes } else { 0 });
    let what = if runs { "the compilation and the run take" } else { "the compilation takes" };
    let also = match runs {
        true => "`--limit compile_bytes=N` and `--limit host_bytes=N` allow",
        false => "`--limit compile_bytes=N` allows",
    };
    let message = format!("{what} more than {bytes} bytes of memory, or more than the host has");
    let d = Diagnostic::error("session::too_much_memory", Span::NONE, message);
    let d = d.help(format!("make fewer or smaller statements, or views of fewer pieces; {also} more"));
    let text = report.text(&d, &SourceMap::default());
    if let Ok(mut exceeded) = EXCEEDED.lock() {
        *exceeded = Some(text);
    }
    // Charges come first; they do not know what is allocated for a moment.
    let most = bytes.saturating_add(bytes / 4).saturating_add(64 << 20);
    BOUND.store(i64::try_from(most).unwrap_or(i64::MAX), Ordering::Relaxed);
}

/// Counts bytes that begin or cease to live.
fn count(bytes: i64) {
    let all = COUNTED.try_with(|own| {
        let sum = own.get() + bytes;
        let rare = sum.abs() > OWN;
        own.set(if rare { 0 } else { sum });
        rare.then_some(sum)
    });
    // A thread that ends counts at once.
    if let Some(sum) = all.unwrap_or(Some(bytes))
        && LIVE.fetch_add(sum, Ordering::Relaxed) + sum > BOUND.load(Ordering::Relaxed)
        && sum > 0
    {
        exceeded();
    }
}

/// Ends the command.
#[cold]
fn exceeded() -> ! {
    BOUND.store(i64::MAX, Ordering::Relaxed);
    // Nothing is allocated while the text is replaced, so the lock is free, or another thread reports already.
    if let Ok(exceeded) = EXCEEDED.try_lock() {
        let text = exceeded.as_deref().unwrap_or("the host has no more memory\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    std::process::exit(1)
}

/// Returns an allocation, or ends the command if the host has no more memory.
fn given(address: *mut u8) -> *mut u8 {
    if address.is_null() { exceeded() } else { address }
}

// SAFETY: every call is passed on to mimalloc with the caller's own arguments; counting allocates nothing.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        given(unsafe { MiMalloc.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        given(unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(address, layout) }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise.
        given(unsafe { MiMalloc.realloc(address, layout, size) })
    }
}
