//! The calling convention between an engine and compiled codelets. Everything that both must agree on is in this
//! module.
//!
//! One [`KernelFn`] belongs to one *kernel*: a specialisation of a codelet for concrete shapes, byte strides and sizes
//! of its fields. It runs vertices ("instances") `first..last` of a [`Batch`] in order, and each instance of a `multi`
//! codelet for workers 0, 1, … in order. It stops at the first check that fails.
//!
//! # Note: Addresses
//! For instance `i`, element (0, …, 0) of the view of edge field `f` is at `base + offset(i, f)`. Edge fields are the
//! fields that are not `const`, counted from 0 in the order of declaration. With
//! [`Addressing::Affine`](girder_codelet::kernel::Addressing), `offset(i, f) = start[f] + i * step[f]` (wrapping). With
//! a table, it is entry `i * edges + f` of `offsets`. With `Mixed`, some fields use the first way and the others the
//! second. Element (i, j, …) is at that address plus the kernel's byte strides times the indices. Nothing needs
//! alignment. A kernel that is compiled with [`Lines`](girder_codelet::kernel::Lines) runs neighbouring instances
//! together: its offsets and constants must have the regularity that the lines specify, whatever part of the batch a
//! call is for.
//!
//! # Note: Sound calls
//! A call is sound if every element of every view of instances `first..last` is in memory that the caller may read
//! (`in`) or write (`out`, `inout`), no element written through one field is accessed through another field or by
//! another thread (the race rule), every stored `bool` is 0 or 1, and all pointers of the batch are valid for
//! `first..last`, `counters` for one word per point (and worker) of each instance. The kernel accesses nothing else,
//! keeps no pointer, and never unwinds.
//!
//! Invariant: the structures are `repr(C)`, and the constants in `offset` are the offsets of their fields.

use crate::helpers::Imports;

/// A compiled kernel. The notes of this module state when a call is sound.
pub type KernelFn = unsafe extern "C" fn(batch: *mut Batch, first: u64, last: u64) -> u64;

/// The result of a [`KernelFn`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// All instances ran.
    Done,
    /// A check failed; [`Batch::failure`] identifies it. Later instances did not run.
    Failed,
    /// [`Batch::cancel`] was set. An instance may be incomplete.
    Cancelled,
}

impl Status {
    /// Returns the status of a return value.
    pub fn of(code: u64) -> Status {
        match code {
            0 => Status::Done,
            1 => Status::Failed,
            _ => Status::Cancelled,
        }
    }

    /// Returns the number that compiled code returns.
    pub(crate) fn code(self) -> i64 {
        match self {
            Status::Done => 0,
            Status::Failed => 1,
            Status::Cancelled => 2,
        }
    }
}

/// The arguments of a kernel. Pointers that the kernel's [addressing](girder_codelet::kernel::Addressing) does not use
/// may be null.
#[repr(C)]
#[derive(Debug)]
pub struct Batch {
    /// The address to which offsets are relative.
    pub base: *mut u8,
    /// The table: instance-major, one entry per edge field that is not straight.
    pub offsets: *const u8,
    /// `Affine`, `Mixed`: one per edge field.
    pub start: *const u64,
    /// `Affine`, `Mixed`: one per edge field.
    pub step: *const i64,
    /// The bits of the `const` fields, in the order of declaration, each in the low bits of a word. Those of instance
    /// `i` begin at word `i * const_step`. The pointer may be null if there are no `const` fields.
    pub consts: *const u64,
    /// The number of words from one instance's `const` fields to those of the next; 0 if all instances share one
    /// record.
    pub const_step: u64,
    /// The stop flag. If it is not zero, the kernel stops soon. Another thread may set it.
    pub cancel: *const u8,
    /// The functions that compiled code calls.
    pub imports: *const Imports,
    /// The greatest number of iterations of one execution of a loop.
    pub iterations: u64,
    /// The greatest number of iterations of all loops of one instance (of one worker's run) together.
    pub total_iterations: u64,
    /// The number of workers of a tile, at least 1.
    pub workers: u64,
    /// The counters that a kernel that [counts](girder_codelet::KernelSpec::points) increments, instance-major; inside
    /// an instance of a `multi` codelet, worker by worker. Null for all other kernels.
    pub counters: *mut u64,
    /// The failed check, set when the kernel returns [`Status::Failed`].
    pub failure: Failure,
}

/// The check that failed.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failure {
    /// The number of the instance in the batch.
    pub instance: u64,
    /// The [`SiteId`](girder_ir::ids::SiteId) in the codelet.
    pub site: u32,
    /// The worker of a `multi` codelet; otherwise 0.
    pub worker: u32,
    /// The same values as `girder_codelet::interpret::Failure::values`.
    pub values: [i64; 2],
}

/// The offsets of the fields that compiled code reads and writes.
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
