//! The meaning of kernels: a scalar evaluator, the reference for tests of the lowerings.
//!
//! Invariant: there is one definition of each operation, in `scalar`, for one element.

mod scalar;

use crate::ir::{AccumulatorId, Effect, GROUP, Item, Kernel, Lane, Memory, Moving, Op, Value, interleaved_elements};
use scalar::{binary, compare, convert, fma, unary};

/// The memory that the addresses of a record refer to.
pub trait Bytes {
    /// Reads the bytes at an address.
    fn read(&self, address: u64, to: &mut [u8]);

    /// Writes the bytes at an address.
    fn write(&mut self, address: u64, from: &[u8]);
}

/// An address is an offset.
///
/// Panics if an element lies outside.
impl Bytes for [u8] {
    fn read(&self, address: u64, to: &mut [u8]) {
        let at = address as usize;
        to.copy_from_slice(&self[at..at + to.len()]);
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        let at = address as usize;
        self[at..at + from.len()].copy_from_slice(from);
    }
}

/// Runs a number of iterations of a kernel.
pub fn evaluate(kernel: &Kernel, record: &mut [u8], memory: &mut (impl Bytes + ?Sized), iterations: u64) {
    let mut run = KernelRun {
        kernel,
        record,
        memory,
        values: vec![Vec::new(); kernel.defs.len()],
        accumulators: Vec::new(),
        trip: 0,
        first: 0,
        active: 0,
    };
    run.accumulators = kernel.accumulators.iter().map(|a| run.begin(a.lane, a.offset, a.start)).collect();
    let trips = kernel.outer.map_or(1, |at| element(run.record, at as usize, Lane::U64));
    while run.trip < trips {
        run.first = 0;
        while run.first < iterations {
            run.active = GROUP.min(iterations - run.first) as usize;
            for item in &kernel.items {
                match item {
                    Item::Make(value) => {
                        let elements = run.make(*value);
                        run.values[value.0 as usize] = elements;
                    }
                    Item::Do(effect) => run.effect(effect),
                }
            }
            run.first += GROUP;
        }
        run.trip += 1;
    }
    if let Some(at) = kernel.outer {
        run.record[at as usize..][..8].fill(0);
    }
    for (n, accumulator) in kernel.accumulators.iter().enumerate() {
        let bytes = accumulator.lane.bytes() as usize;
        for (i, bits) in run.accumulators[n].iter().enumerate() {
            let at = accumulator.offset as usize + i * bytes;
            run.record[at..at + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
        }
    }
}

/// Reads an element.
fn element(bytes: &[u8], at: usize, lane: Lane) -> u64 {
    let size = lane.bytes() as usize;
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(word)
}

struct KernelRun<'a, M: ?Sized> {
    kernel: &'a Kernel,
    record: &'a mut [u8],
    memory: &'a mut M,
    /// The bits of each value's elements, for active iterations.
    values: Vec<Vec<u64>>,
    accumulators: Vec<Vec<u64>>,
    /// The trip of the outer loop.
    trip: u64,
    /// The first iteration of the group.
    first: u64,
    /// The number of active iterations of the group.
    active: usize,
}

impl<M: Bytes + ?Sized> KernelRun<'_, M> {
    fn begin(&self, lane: Lane, offset: u32, start: Option<u64>) -> Vec<u64> {
        let at = |n: usize| element(self.record, offset as usize + n * lane.bytes() as usize, lane);
        (0..GROUP as usize).map(|n| start.unwrap_or_else(|| at(n))).collect()
    }

    /// Returns the elements of each iteration for a lane.
    fn per_iteration(&self, lane: Lane) -> usize {
        if lane.bytes() >= 4 || lane == Lane::Mask { 1 } else { self.kernel.per_iteration.into() }
    }

    fn address(&self, at: Memory) -> i64 {
        let Moving { offset, outer, .. } = self.kernel.pointers[at.pointer.0 as usize];
        let ahead = (self.trip as i64).wrapping_mul(outer);
        (element(self.record, offset as usize, Lane::U64) as i64).wrapping_add(ahead).wrapping_add(at.offset.into())
    }

    /// Returns the address of the element of an iteration of the group.
    fn element_address(&self, at: Memory, lane: Lane, n: usize) -> u64 {
        let per = self.per_iteration(lane);
        let iteration = self.first as i64 + (n / per) as i64;
        let within = (n % per) as i64 * i64::from(lane.bytes());
        self.address(at).wrapping_add(iteration * self.kernel.stride(at) + within) as u64
    }

    fn make(&self, value: Value) -> Vec<u64> {
        let def = self.kernel.def(value);
        let lane = def.lane;
        let of = |n: usize| &self.values[def.args[n].0 as usize];
        let from = def.args.first().map_or(lane, |&a| self.kernel.lane(a));
        let count = self.active * self.per_iteration(lane);
        let each = |element: &dyn Fn(usize) -> u64| (0..count).map(element).collect();
        match def.op {
            Op::Constant { bits } => vec![bits; count],
            Op::Uniform { offset } => vec![element(self.record, offset as usize, lane); count],
            Op::Index { offset, step } => {
                let start = element(self.record, offset as usize, lane);
                let grown = |n: usize| step.wrapping_mul((self.first as i64).wrapping_add(n as i64)) as u64;
                each(&|n| start.wrapping_add(grown(n)) & lane.ones())
            }
            Op::Load(at) => {
                let is_active = |n: usize| def.args.is_empty() || of(0)[n / self.per_iteration(lane)] != 0;
                each(&|n| if is_active(n) { self.load(at, lane, n) } else { 0 })
            }
            Op::LoadPermuted { from, order } => each(&|n| {
                let number = (order >> (4 * n) & 15) as i64;
                let ahead = self.first as i64 * self.kernel.stride(from) + number * i64::from(lane.bytes());
                self.load_at(self.address(from).wrapping_add(ahead) as u64, lane)
            }),
            Op::Compare(cond) => each(&|n| compare(from, cond, of(0)[n], of(1)[n]).into()),
            Op::Select => each(&|n| if of(0)[n] != 0 { of(1)[n] } else { of(2)[n] }),
            Op::Fma => each(&|n| fma(lane, of(0)[n], of(1)[n], of(2)[n])),
            Op::Convert => each(&|n| convert(from, lane, of(0)[n])),
            Op::Bits => each(&|n| match from.nan() {
                Some(nan) if from.float_value(of(0)[n]).is_nan() => nan,
                _ => of(0)[n],
            }),
            Op::SumNeighbours | Op::DotNeighbours => {
                let per = self.per_iteration(from);
                let factor = |n: usize| if def.op == Op::DotNeighbours { from.integer_value(of(1)[n]) } else { 1 };
                let term = |n: usize| from.integer_value(of(0)[n]) * factor(n);
                each(&|n| (n * per..(n + 1) * per).map(term).sum::<i128>() as u64 & lane.ones())
            }
            op if def.args.len() == 1 => each(&|n| unary(lane, op, of(0)[n])),
            op => each(&|n| binary(lane, op, of(0)[n], of(1)[n])),
        }
    }

    fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Store { to, value, mask } => {
                let lane = self.kernel.lane(*value);
                for n in 0..self.values[value.0 as usize].len() {
                    if self.is_under(*mask, n / self.per_iteration(lane)) {
                        self.store(*to, *value, n);
                    }
                }
            }
            Effect::StoreInterleaved { to, values } => {
                for &(phase, value) in values {
                    let to = interleaved_elements(*to, self.kernel.lane(value), phase);
                    (0..self.active).for_each(|n| self.store(to, value, n));
                }
            }
            Effect::Accumulate { accumulator, op, value, mask } => {
                let lane = self.kernel.lane(*value);
                self.accumulate(*accumulator, *mask, |run, n, old| {
                    binary(lane, op.op(), old, run.values[value.0 as usize][n])
                });
            }
            Effect::AccumulateProduct { accumulator, factors: [a, b], mask } => {
                let lane = self.kernel.lane(*a);
                self.accumulate(*accumulator, *mask, |run, n, old| {
                    fma(lane, run.values[a.0 as usize][n], run.values[b.0 as usize][n], old)
                });
            }
        }
    }

    fn load(&self, at: Memory, lane: Lane, n: usize) -> u64 {
        self.load_at(self.element_address(at, lane, n), lane)
    }

    fn load_at(&self, address: u64, lane: Lane) -> u64 {
        let mut word = [0; 8];
        self.memory.read(address, &mut word[..lane.bytes() as usize]);
        u64::from_le_bytes(word)
    }

    fn is_under(&self, mask: Option<Value>, n: usize) -> bool {
        mask.is_none_or(|mask| self.values[mask.0 as usize][n] != 0)
    }

    fn store(&mut self, to: Memory, value: Value, n: usize) {
        let lane = self.kernel.lane(value);
        let (at, bits) = (self.element_address(to, lane, n), self.values[value.0 as usize][n]);
        self.memory.write(at, &bits.to_le_bytes()[..lane.bytes() as usize]);
    }

    fn accumulate(&mut self, id: AccumulatorId, mask: Option<Value>, new: impl Fn(&Self, usize, u64) -> u64) {
        for n in (0..self.active).filter(|&n| self.is_under(mask, n)).collect::<Vec<_>>() {
            let old = self.accumulators[id.0 as usize][n];
            self.accumulators[id.0 as usize][n] = new(self, n, old);
        }
    }
}
