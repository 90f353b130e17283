//! Calls of compiled vertices.
//!
//! # Note: Sound launches
//! A [`Launch`] is checked when it is made: by the byte ranges of its kernel's fields, every element that any of its
//! rows can reach is inside the arena. By the race rule, no row touches an element that another one writes at the same
//! time (see the note on shared memory in [`arena`](crate::arena)). Bytes of `bool` elements are 0 or 1 because only
//! compiled code, initial values and normalised input write them.
//!
//! Invariant: a kernel's function is called with a batch of the addressing that it was compiled for, while its code is
//! alive.

use crate::arena::Arena;
use crate::error::EngineError;
use cranelift_entity::EntityRef;
use girder_codegen::abi::{self, Batch, KernelFn, Status};
use girder_codegen::{Code, Imports};
use girder_codelet::interpret::Failure;
use girder_ir::ids::SiteId;
use std::iter::{Skip, StepBy};
use std::ops::Range;
use std::ptr::null;
use std::slice::Iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A compiled kernel with the properties that a call needs.
#[derive(Clone)]
pub(crate) struct Kernel {
    /// Its entry point.
    pub function: KernelFn,
    /// Keeps the entry point alive.
    pub _code: Arc<Code>,
    /// The functions that it calls.
    pub imports: &'static Imports,
    /// For each edge field, the bytes that its elements occupy, relative to element (0, …, 0); `None` if it has no
    /// elements.
    pub byte_ranges: Vec<Option<(i64, i64)>>,
    /// For each edge field, whether elements are written through it.
    pub writes: Vec<bool>,
    /// Whether it runs every worker.
    pub multi: bool,
}

/// The byte offsets of the fields of a launch's rows in the arena.
#[derive(Clone, Debug)]
pub(crate) enum Offsets {
    /// Row `i` finds field `f` at `start[f] + i * step[f]`.
    Affine {
        /// Offset of each field in row 0.
        start: Vec<u64>,
        /// Bytes of each field from row to row.
        step: Vec<i64>,
    },
    /// One entry per row and field.
    Table32(Vec<u32>),
    /// One entry per row and field.
    Table64(Vec<u64>),
    /// Some fields have a first offset and a step, the others table entries.
    Mixed {
        /// Offset of each field in row 0; not read for fields in the table.
        start: Vec<u64>,
        /// Bytes of each field from row to row; not read for fields in the table.
        step: Vec<i64>,
        /// Index of each field's entry in a row of the table, if it has one.
        column: Vec<Option<usize>>,
        /// Entries in a row of the table.
        width: usize,
        /// The entries, row after row.
        table: Vec<u32>,
    },
}

impl Offsets {
    /// Returns the offset of a field in a row.
    fn at(&self, row: u64, field: usize, fields: usize) -> i128 {
        if let Some((start, step)) = self.line(field) {
            return start as i64 as i128 + row as i128 * step as i128;
        }
        let row = row as usize;
        match self {
            Offsets::Affine { .. } => 0,
            Offsets::Table32(t) => t[row * fields + field] as i128,
            Offsets::Table64(t) => t[row * fields + field] as i128,
            Offsets::Mixed { column, width, table, .. } => {
                column[field].map_or(0, |column| table[row * width + column] as i128)
            }
        }
    }

    /// Returns the first offset and the step of a field that is not in a table.
    fn line(&self, field: usize) -> Option<(u64, i64)> {
        match self {
            Offsets::Affine { start, step } => Some((start[field], step[field])),
            Offsets::Mixed { start, step, column, .. } if column[field].is_none() => Some((start[field], step[field])),
            _ => None,
        }
    }

    /// Returns whether there is an entry for every row and field.
    fn is_complete(&self, rows: u64, fields: usize) -> bool {
        match self {
            Offsets::Affine { start, step } => start.len() == fields && step.len() == fields,
            Offsets::Table32(t) => t.len() as u64 == rows * fields as u64,
            Offsets::Table64(t) => t.len() as u64 == rows * fields as u64,
            Offsets::Mixed { start, step, column, width, table } => {
                [start.len(), step.len(), column.len()] == [fields; 3]
                    && column.iter().flatten().all(|c| c < width)
                    && table.len() as u64 == rows * *width as u64
            }
        }
    }

    /// Returns whether a field's offset never decreases from row to row.
    fn ascends(&self, field: usize, rows: u64, fields: usize) -> bool {
        match self.line(field) {
            Some((_, step)) => step >= 0,
            None => match self.listed(0..rows, field, fields) {
                Listed::Narrow(offsets) => offsets.is_sorted(),
                Listed::Wide(offsets) => offsets.is_sorted(),
            },
        }
    }

    /// Returns the least and the greatest offset of a field in some rows, at least one.
    fn ends(&self, rows: Range<u64>, field: usize, fields: usize) -> (i128, i128) {
        let at = |row| self.at(row, field, fields);
        // The offsets of a line lie between those of its ends.
        if self.line(field).is_some() {
            let (a, b) = (at(rows.start), at(rows.end - 1));
            return (a.min(b), a.max(b));
        }
        match self.listed(rows, field, fields) {
            Listed::Narrow(offsets) => ends(offsets.map(|&o| o as u64)),
            Listed::Wide(offsets) => ends(offsets.copied()),
        }
    }

    /// Returns the table entries of a field in some rows.
    fn listed(&self, rows: Range<u64>, field: usize, fields: usize) -> Listed<'_> {
        let entries = |width: usize| rows.start as usize * width..rows.end as usize * width;
        match self {
            Offsets::Affine { .. } => Listed::Wide([].iter().skip(field).step_by(1)),
            Offsets::Table32(t) => Listed::Narrow(t[entries(fields)].iter().skip(field).step_by(fields.max(1))),
            Offsets::Table64(t) => Listed::Wide(t[entries(fields)].iter().skip(field).step_by(fields.max(1))),
            Offsets::Mixed { column, width, table, .. } => {
                let column = column[field].unwrap_or(0);
                Listed::Narrow(table[entries(*width)].iter().skip(column).step_by((*width).max(1)))
            }
        }
    }
}

/// Offsets of one field, row after row.
enum Listed<'a> {
    Narrow(StepBy<Skip<Iter<'a, u32>>>),
    Wide(StepBy<Skip<Iter<'a, u64>>>),
}

/// Returns the least and the greatest of some offsets.
fn ends(offsets: impl Iterator<Item = u64>) -> (i128, i128) {
    let (lo, hi) = offsets.fold((u64::MAX, 0), |(lo, hi), x| (lo.min(x), hi.max(x)));
    (lo as i128, hi as i128)
}

/// Vertices of one kernel.
pub(crate) struct Launch {
    kernel: Kernel,
    rows: u64,
    offsets: Offsets,
    /// Bits of the constants, row after row, or one record for all rows.
    consts: Vec<u64>,
    const_step: u64,
    /// Bytes of the arena for which it was checked.
    reach: u64,
    /// Counters of a row.
    counted: usize,
    /// Counters of all rows. The thread that runs a row writes its counters; they are read between tasks.
    counters: Vec<AtomicU64>,
}

/// The arguments that all calls of kernels share.
pub(crate) struct Context<'a> {
    /// The stop flag.
    pub cancel: &'a AtomicBool,
    /// Maximal number of iterations of a loop.
    pub iterations: u64,
    /// Maximal number of iterations of all loops of a vertex together.
    pub total_iterations: u64,
    /// Workers of a tile.
    pub workers: u32,
}

/// The reason why a launch ended early.
pub(crate) enum LaunchStop {
    /// A check of this row failed.
    Failed(u64, Failure),
    /// The stop flag was seen.
    Cancelled,
}

impl Launch {
    /// Checks that `rows` rows stay in an arena of `reach` bytes. `consts` holds one record, or one per row.
    pub(crate) fn new(
        kernel: Kernel,
        rows: u64,
        offsets: Offsets,
        consts: Vec<u64>,
        const_step: u64,
        reach: u64,
    ) -> Result<Launch, EngineError> {
        let (counted, counters) = (0, Vec::new());
        let launch = Launch { kernel, rows, offsets, consts, const_step, reach, counted, counters };
        if launch.is_inside() { Ok(launch) } else { Err(EngineError::Internal("a vertex leaves the memory".into())) }
    }

    fn is_inside(&self) -> bool {
        let fields = self.kernel.byte_ranges.len();
        let consts = self.const_step == 0 || self.consts.len() as u64 == self.const_step * self.rows;
        let inside = |(field, span): (usize, &Option<(i64, i64)>)| {
            let Some((lo, hi)) = *span else { return true };
            let (least, greatest) = self.offsets.ends(0..self.rows, field, fields);
            least + lo as i128 >= 0 && greatest + hi as i128 <= self.reach as i128
        };
        let complete = self.offsets.is_complete(self.rows, fields);
        complete && consts && (self.rows == 0 || self.kernel.byte_ranges.iter().enumerate().all(inside))
    }

    /// Provides counters for each row, as many as the kernel was compiled for.
    pub(crate) fn counting(mut self, numbers: usize) -> Launch {
        self.counted = numbers;
        self.counters.resize_with(numbers * self.rows as usize, AtomicU64::default);
        self
    }

    /// Returns the counters of a row after its last run.
    pub(crate) fn counted(&self, row: u64) -> impl ExactSizeIterator<Item = u64> {
        self.counters[self.counted * row as usize..][..self.counted].iter().map(|n| n.load(Ordering::Relaxed))
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of edge fields of its kernel.
    pub(crate) fn fields(&self) -> usize {
        self.kernel.byte_ranges.len()
    }

    /// Returns whether no field is found through a table.
    pub(crate) fn is_straight(&self) -> bool {
        matches!(self.offsets, Offsets::Affine { .. })
    }

    /// Returns whether a field is written.
    pub(crate) fn writes(&self, field: usize) -> bool {
        self.kernel.writes[field]
    }

    /// Returns the bounding byte range of a field in some rows, or `None` if they touch no element.
    pub(crate) fn touched(&self, field: usize, rows: Range<u64>) -> Option<Range<i64>> {
        let (lo, hi) = self.kernel.byte_ranges[field].filter(|_| !rows.is_empty())?;
        let (least, greatest) = self.offsets.ends(rows, field, self.fields());
        // `new` has checked that these bytes are in the arena.
        Some((least + lo as i128) as i64..(greatest + hi as i128) as i64)
    }

    /// Returns, for each of some ascending bytes, the first row whose elements of a field begin at or after the byte,
    /// or `None` if rows do not ascend.
    pub(crate) fn rows_at(&self, field: usize, bytes: &[i64]) -> Option<Vec<u64>> {
        let (fields, (lo, _)) = (self.fields(), self.kernel.byte_ranges[field]?);
        let first_at = |byte: i64| {
            let (mut from, mut to) = (0, self.rows);
            while from < to {
                let middle = from.midpoint(to);
                let before = self.offsets.at(middle, field, fields) + (lo as i128) < byte as i128;
                if before { from = middle + 1 } else { to = middle }
            }
            from
        };
        self.offsets.ascends(field, self.rows, fields).then(|| bytes.iter().map(|&b| first_at(b)).collect())
    }

    /// Runs rows `first..last` in order, up to the first whose check fails.
    pub(crate) fn run(&self, arena: &Arena, context: &Context, first: u64, last: u64) -> Result<(), LaunchStop> {
        /// Rows between two polls of the stop flag, for kernels whose loops do not poll.
        const PER_POLL: u64 = 1 << 16;
        assert!(last <= self.rows && arena.bytes() >= self.reach, "a launch of the engine leaves its tables");
        self.counters[self.counted * first as usize..self.counted * last as usize]
            .iter()
            .for_each(|n| n.store(0, Ordering::Relaxed));
        let mut from = first;
        while from < last {
            if context.cancel.load(Ordering::Relaxed) {
                return Err(LaunchStop::Cancelled);
            }
            let to = last.min(from + PER_POLL);
            self.call(arena, context, from, to)?;
            from = to;
        }
        Ok(())
    }

    fn call(&self, arena: &Arena, context: &Context, first: u64, last: u64) -> Result<(), LaunchStop> {
        let mut batch = Batch {
            base: arena.base(),
            offsets: null(),
            start: null(),
            step: null(),
            consts: self.consts.as_ptr(),
            const_step: self.const_step,
            cancel: context.cancel.as_ptr().cast_const().cast(),
            imports: self.kernel.imports,
            iterations: context.iterations,
            total_iterations: context.total_iterations,
            workers: context.workers as u64,
            counters: self.counters.as_ptr().cast::<u64>().cast_mut(),
            failure: abi::Failure::default(),
        };
        match &self.offsets {
            Offsets::Affine { start, step } => (batch.start, batch.step) = (start.as_ptr(), step.as_ptr()),
            Offsets::Table32(t) => batch.offsets = t.as_ptr().cast(),
            Offsets::Table64(t) => batch.offsets = t.as_ptr().cast(),
            Offsets::Mixed { start, step, table, .. } => {
                (batch.start, batch.step, batch.offsets) = (start.as_ptr(), step.as_ptr(), table.as_ptr().cast());
            }
        }
        // SAFETY: the code is alive (`kernel._code`), the tables have an entry for each row below `rows` and the batch
        // outlives the call; the counters of a row belong to the thread that runs it, and there are as many as the
        // kernel was compiled to count; for the elements see the note on sound launches.
        let status = unsafe { (self.kernel.function)(&mut batch, first, last) };
        match Status::of(status) {
            Status::Done => Ok(()),
            Status::Cancelled => Err(LaunchStop::Cancelled),
            Status::Failed => {
                let f = batch.failure;
                let worker = self.kernel.multi.then_some(f.worker);
                let site = SiteId::new(f.site as usize);
                Err(LaunchStop::Failed(f.instance, Failure { site, values: f.values, worker }))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! Kernels without a codelet.
    use super::*;
    use crate::natives::imports;
    use girder_codegen::Level;

    /// Bytes of each of the two fields of [`mixing`].
    pub(crate) const BYTES: i64 = 8;

    /// Returns a kernel of fields `x` and `y` that computes `y = 3 y + x + 1` for each byte. With `table`, its offsets
    /// are a table.
    pub(crate) fn mixing(table: bool) -> Kernel {
        let function: KernelFn = if table { mix_table } else { mix_affine };
        let _code = Arc::new(girder_codegen::compile(&[]).unwrap());
        let (byte_ranges, writes) = (vec![Some((0, BYTES)); 2], vec![false, true]);
        Kernel { function, _code, imports: imports(Level::Portable), byte_ranges, writes, multi: false }
    }

    unsafe extern "C" fn mix_affine(batch: *mut Batch, first: u64, last: u64) -> u64 {
        // SAFETY: called as `abi` says; the kernel has two fields.
        unsafe {
            let at = |row: u64, field: usize| {
                let (start, step) = (*(*batch).start.add(field), *(*batch).step.add(field));
                start as i64 + row as i64 * step
            };
            (first..last).for_each(|row| mix((*batch).base, at(row, 0), at(row, 1)));
        }
        0
    }

    unsafe extern "C" fn mix_table(batch: *mut Batch, first: u64, last: u64) -> u64 {
        // SAFETY: called as `abi` says; the kernel has two fields.
        unsafe {
            let table: *const u32 = (*batch).offsets.cast();
            let at = |row: u64, field: usize| i64::from(*table.add(2 * row as usize + field));
            (first..last).for_each(|row| mix((*batch).base, at(row, 0), at(row, 1)));
        }
        0
    }

    /// # Safety
    /// Both fields lie in memory that the caller may touch.
    unsafe fn mix(base: *mut u8, x: i64, y: i64) {
        for k in 0..BYTES {
            // SAFETY: passed on to the caller.
            unsafe {
                let (x, y) = (base.offset((x + k) as isize), base.offset((y + k) as isize));
                *y = (*y).wrapping_mul(3).wrapping_add(*x).wrapping_add(1);
            }
        }
    }
}
