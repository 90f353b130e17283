//! The calling convention between an engine and compiled codelets: everything that both must agree on stands here.
//!
//! One [`KernelFn`] belongs to one *kernel*: a specialisation of a codelet with the concrete shape, byte strides and
//! sizes of its fields. It runs vertices ("instances") `first..last` of a [`Batch`], in order, each `multi` one for
//! worker 0, 1, … in turn, and stops at the first check that fails.
//!
//! # Note: Addresses
//! Instance `i` finds element (0, …, 0) of the view of edge field `f` at `base + offset(i, f)`, where edge fields are
//! the fields that are not `const`, counted from 0 in the order of declaration. With
//! [`Addressing::Affine`](girder_codelet::kernel::Addressing), `offset(i, f) = start[f] + i * step[f]` (wrapping); with
//! a table, it is entry `i * edges + f` of `offsets`. With `Mixed` some fields are found in one way, the others in the
//! other. Element (i, j, …) is at that address plus the kernel's byte strides times the indices. Nothing needs
//! alignment. A kernel that was compiled with [`Lines`](girder_codelet::kernel::Lines) runs neighbouring instances
//! together: its offsets and constants must be as regular as they say, whatever part of the batch a call is for.
//!
//! # Note: Sound calls
//! A call is sound if every element of every view of instances `first..last` lies in memory that the caller may read
//! (`in`) or write (`out`, `inout`), no element written through one field is touched through another field or by
//! another thread (the race rule), every stored `bool` is 0 or 1, and all pointers of the batch are valid for
//! `first..last`, `counters` for one word per point (and worker) of each instance. The kernel touches nothing else,
//! keeps no pointer, and never unwinds.
//!
//! Invariant: `repr(C)`, and the offsets in `offset` are those of the structures.

use crate::helpers::Imports;

/// A compiled kernel. See the notes of this module for what makes a call sound.
pub type KernelFn = unsafe extern "C" fn(batch: *mut Batch, first: u64, last: u64) -> u64;

/// What a [`KernelFn`] returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All instances ran.
    Done,
    /// A check failed; [`Batch::failure`] says which. Later instances did not run.
    Failed,
    /// [`Batch::cancel`] was seen set; an instance may have stopped half way.
    Cancelled,
}

impl Status {
    /// From what a kernel returned.
    pub fn of(code: u64) -> Status {
        match code {
            0 => Status::Done,
            1 => Status::Failed,
            _ => Status::Cancelled,
        }
    }

    pub(crate) fn code(self) -> i64 {
        match self {
            Status::Done => 0,
            Status::Failed => 1,
            Status::Cancelled => 2,
        }
    }
}

/// What a kernel works on. Pointers that the kernel's [addressing](girder_codelet::kernel::Addressing) does not name
/// may be null.
#[repr(C)]
#[derive(Debug)]
pub struct Batch {
    /// What offsets are relative to.
    pub base: *mut u8,
    /// Instance-major, one entry per edge field that is not straight.
    pub offsets: *const u8,
    /// `Affine`, `Mixed`: one per edge field.
    pub start: *const u64,
    /// `Affine`, `Mixed`: one per edge field.
    pub step: *const i64,
    /// Bits of the `const` fields, in the order of declaration, in the low end of a word each; those of instance `i`
    /// begin at word `i * const_step`. May be null without `const` fields.
    pub consts: *const u64,
    /// Words from one instance's `const` fields to the next one's; 0 if all share one record.
    pub const_step: u64,
    /// Not zero: stop soon. Another thread may set it.
    pub cancel: *const u8,
    /// Functions that compiled code calls.
    pub imports: *const Imports,
    /// How many iterations one execution of a loop may have.
    pub iterations: u64,
    /// How many iterations all loops of one instance (of one worker's run) may have together.
    pub total_iterations: u64,
    /// Workers of a tile, at least 1.
    pub workers: u64,
    /// Where a kernel that [counts](girder_codelet::KernelSpec::points) adds its counters, instance-major; worker by
    /// worker inside an instance of a `multi` codelet. Null for all other kernels.
    pub counters: *mut u64,
    /// Set when the kernel returns [`Status::Failed`].
    pub failure: Failure,
}

/// The check that failed.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failure {
    /// Which instance of the batch.
    pub instance: u64,
    /// [`SiteId`](girder_ir::ids::SiteId) of the codelet.
    pub site: u32,
    /// Which worker, for a `multi` codelet, else 0.
    pub worker: u32,
    /// As `girder_codelet::interpret::Failure::values`.
    pub values: [i64; 2],
}

/// Offsets of what compiled code reads and writes.
pub(crate) mod offset {
    use super::{Batch, Failure};
    use std::mem::offset_of;

    pub(crate) const BASE: i32 = offset_of!(Batch, base) as i32;
    pub(crate) const OFFSETS: i32 = offset_of!(Batch, offsets) as i32;
    pub(crate) const START: i32 = offset_of!(Batch, start) as i32;
    pub(crate) const STEP: i32 = offset_of!(Batch, step) as i32;
    pub(crate) const CONSTS: i32 = offset_of!(Batch, consts) as i32;
    pub(crate) const CONST_STEP: i32 = offset_of!(Batch, const_step) as i32;
    pub(crate) const CANCEL: i32 = offset_of!(Batch, cancel) as i32;
    pub(crate) const IMPORTS: i32 = offset_of!(Batch, imports) as i32;
    pub(crate) const ITERATIONS: i32 = offset_of!(Batch, iterations) as i32;
    pub(crate) const TOTAL_ITERATIONS: i32 = offset_of!(Batch, total_iterations) as i32;
    pub(crate) const WORKERS: i32 = offset_of!(Batch, workers) as i32;
    pub(crate) const COUNTERS: i32 = offset_of!(Batch, counters) as i32;
    const FAILURE: usize = offset_of!(Batch, failure);
    pub(crate) const INSTANCE: i32 = (FAILURE + offset_of!(Failure, instance)) as i32;
    pub(crate) const SITE: i32 = (FAILURE + offset_of!(Failure, site)) as i32;
    pub(crate) const WORKER: i32 = (FAILURE + offset_of!(Failure, worker)) as i32;
    pub(crate) const VALUES: i32 = (FAILURE + offset_of!(Failure, values)) as i32;
}
