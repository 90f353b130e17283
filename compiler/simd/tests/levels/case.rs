//! A kernel with its memory, and what a run leaves of them.
//!
//! Invariant: all elements lie in the memory, and every access has elements of its own.

use crate::choices::Choices;
use girder_simd::ir::*;
use girder_simd::{Level, Options, evaluate};

impl Choices<'_> {
    /// The bits of an element, often at an edge of its range.
    pub fn bits(&mut self, lane: Lane) -> u64 {
        let word = self.word();
        let edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e10, -1e10, 2147483648.0, 4294967295.0, 127.5, 65535.0];
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-310, 1e-40, -2147483649.0];
        let bits = match (lane.is_float(), word % 4) {
            (true, 0 | 1) => lane.float_bits(edges[(word >> 8) as usize % edges.len()]),
            (true, 2) => lane.float_bits(special[(word >> 8) as usize % special.len()]),
            (true, _) => lane.float_bits(((word >> 16) as i32 as f64) / 1024.0),
            (false, 0) => word >> 56,
            (false, 1) => (word as i8 as i64) as u64,
            (false, 2) => 1 << (word % 64),
            (false, _) => word,
        };
        bits & lane.ones()
    }
}

/// A kernel with its inputs; pointers in the record are offsets in the memory.
pub struct Case {
    pub kernel: Kernel,
    pub record: Vec<u8>,
    pub memory: Vec<u8>,
    pub iterations: u64,
    /// The trips of the outer loop.
    pub trips: u64,
    /// Whether iterations store to elements that they load, so that none may run twice.
    pub updates: bool,
    /// The floats that are stored: where, and their lanes.
    pub floats: Vec<(usize, Lane)>,
    /// Whether it consists of conversions that AVX2 does not have.
    pub only_avx512: bool,
}

/// The results of a run.
pub struct Outcome {
    pub record: Vec<u8>,
    pub memory: Vec<u8>,
}

impl Case {
    pub fn new(choices: &mut Choices<'_>, per_iteration: u8) -> Case {
        let iterations = choices.pick(&[1, 5, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 130]);
        let (record, memory) = (Vec::new(), vec![0xa5; 64]);
        let kernel = Kernel::new(per_iteration);
        Case { kernel, record, memory, iterations, trips: 1, updates: false, floats: Vec::new(), only_avx512: false }
    }

    /// Appends bytes to the record.
    pub fn put(&mut self, bytes: &[u8]) -> u32 {
        self.record.resize(self.record.len().next_multiple_of(8), 0);
        let offset = self.record.len() as u32;
        self.record.extend_from_slice(bytes);
        offset
    }

    /// Memory for an element of each iteration, `stride` bytes apart, and `width` bytes of each; and a pointer to it,
    /// which moves from trip to trip by some elements of `width` bytes.
    pub fn array(&mut self, (stride, ahead): (i64, i64), width: i64, displaced: i32) -> (Memory, usize) {
        let outer = ahead * width;
        let row = stride.unsigned_abs() as i64 * (self.iterations as i64 - 1) + width;
        let span = row + outer.abs() * (self.trips as i64 - 1);
        let first = self.memory.len() as i64 + 3;
        self.memory.resize((first + span) as usize + 5, 0xa5);
        let origin = if stride < 0 { first + row - width } else { first };
        let origin = if outer < 0 { origin + span - row } else { origin };
        let offset = self.put(&(origin - i64::from(displaced)).to_le_bytes());
        let pointer = self.kernel.pointer(Moving { offset, stride, outer });
        (Memory { pointer, offset: displaced }, origin as usize)
    }

    /// Adds an outer loop.
    pub fn repeat(&mut self, trips: u64) {
        self.trips = trips;
        self.kernel.outer = Some(self.put(&trips.to_le_bytes()));
    }

    pub fn fill(&mut self, choices: &mut Choices<'_>, lane: Lane, at: usize) {
        let bits = choices.bits(lane);
        let bytes = lane.bytes() as usize;
        self.memory[at..at + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
    }

    /// Returns the outcome of the evaluator.
    pub fn evaluate(&self) -> Outcome {
        let (mut record, mut memory) = (self.record.clone(), self.memory.clone());
        evaluate(&self.kernel, &mut record, memory.as_mut_slice(), self.iterations);
        Outcome { record, memory }
    }

    /// Returns the options with which the kernel is made; none may change the outcome.
    pub fn options(&self) -> Vec<Options> {
        let plain = Options::default();
        let known = Options { iterations: Some(self.iterations), ..plain };
        vec![
            plain,
            known,
            Options { idempotent: !self.updates, ..known },
            Options { interleave: false, ..plain },
            Options { whole_vectors: self.kernel.per_iteration > 1, ..plain },
            Options { interleave: false, whole_vectors: self.kernel.per_iteration > 1, ..known },
        ]
        .into_iter()
        .filter(|options| options.iterations.is_some() || self.kernel.outer.is_none())
        .filter(|options| options.whole_vectors || !self.has_narrow_strides())
        .collect()
    }

    /// Returns whether narrow elements are strided, for which vectors must be whole.
    fn has_narrow_strides(&self) -> bool {
        self.kernel.defs.iter().any(|def| match def.op {
            Op::Load(from) => def.lane.bytes() < 4 && !self.kernel.is_contiguous(def.lane, from),
            _ => false,
        })
    }

    /// Returns whether a level has all conversions.
    pub fn is_for(&self, level: Level) -> bool {
        level == Level::Avx512 || !self.only_avx512
    }

    /// Describes the difference between outcomes; all NaNs count as equal.
    pub fn difference(&self, expected: &Outcome, found: &Outcome) -> Option<String> {
        let nan = |lane: Lane, bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            lane.is_float() && lane.float_value(u64::from_le_bytes(word)).is_nan()
        };
        let (mut a, mut b) = (expected.memory.clone(), found.memory.clone());
        for &(at, lane) in &self.floats {
            let end = at + lane.bytes() as usize;
            if nan(lane, &a[at..end]) && nan(lane, &b[at..end]) {
                a[at..end].fill(0);
                b[at..end].fill(0);
            }
        }
        if let Some(at) = (0..a.len()).find(|&n| a[n] != b[n]) {
            let origins = self.kernel.pointers.iter().map(|p| {
                let at = p.offset as usize;
                i64::from_le_bytes(self.record[at..at + 8].try_into().expect("there are eight bytes"))
            });
            let origins: Vec<i64> = origins.collect();
            let upto = |bytes: &[u8]| format!("{:02x?}", &bytes[at..(at + 8).min(bytes.len())]);
            return Some(format!("byte {at} of memory, of {origins:?}: {} and not {}", upto(&b), upto(&a)));
        }
        let (mut a, mut b) = (expected.record.clone(), found.record.clone());
        for accumulator in &self.kernel.accumulators {
            let bytes = accumulator.lane.bytes() as usize;
            if self.kernel.per_iteration > 1 && accumulator.any_order {
                // Only the sum of all elements matters.
                [&mut a, &mut b].into_iter().for_each(|record| add_up(&mut record[accumulator.offset as usize..]));
                continue;
            }
            for n in 0..GROUP as usize {
                let at = accumulator.offset as usize + n * bytes;
                if nan(accumulator.lane, &a[at..at + bytes]) && nan(accumulator.lane, &b[at..at + bytes]) {
                    a[at..at + bytes].fill(0);
                    b[at..at + bytes].fill(0);
                }
            }
        }
        (0..a.len()).find(|&n| a[n] != b[n]).map(|at| format!("byte {at} of the record: {} and not {}", b[at], a[at]))
    }
}

/// Replaces a group of 32-bit elements by their sum and zeros.
fn add_up(record: &mut [u8]) {
    let elements = &mut record[..4 * GROUP as usize];
    let words = elements.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().expect("there are four bytes")));
    let sum = words.fold(0, u32::wrapping_add);
    elements.fill(0);
    elements[..4].copy_from_slice(&sum.to_le_bytes());
}
