//! What the forms of code bring: each kernel once with a form and once without it.
//!
//! `cargo bench -p girder-simd --bench forms` prints for each level of this machine the nanoseconds of 1,000 elements
//! in both ways and their ratio (above 1: the form is faster), and how long translating the kernel takes.
//!
//! - `whole vectors`: elements two apart in memory are loaded as whole vectors and shuffled, instead of gathered.
//! - `narrow`: bytes stay bytes, instead of becoming 32-bit integers.
//! - `interleave`: groups (with AVX2: the two vectors of a group) advance step by step together.
//!
//! Invariant: both ways leave the same bits. A figure is the lower quartile of interleaved windows.

use girder_simd::ir::{Effect, Kernel, Lane, Memory, Moving, Op};
use girder_simd::{Level, Machine, Options, assemble};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use std::time::Instant;

/// Elements of each array: they fit the first-level cache.
const ELEMENTS: usize = 1000;
const WINDOWS: usize = 41;
const RUNS: usize = 2000;

/// Machine code that can be called.
struct Code(extern "sysv64" fn(*mut u8, u64));

impl Code {
    fn new(machine: &Machine) -> Code {
        let length = machine.bytes.len().next_multiple_of(4096);
        // SAFETY: the mapping is new, of this length, and never unmapped; it is written before it becomes executable.
        unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let code = mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::PRIVATE).expect("memory");
            std::ptr::copy_nonoverlapping(machine.bytes.as_ptr(), code.cast::<u8>(), machine.bytes.len());
            mprotect(code, length, MprotectFlags::READ | MprotectFlags::EXEC).expect("code may run");
            Code(std::mem::transmute::<*mut u8, extern "sysv64" fn(*mut u8, u64)>(code.cast::<u8>().add(machine.entry)))
        }
    }
}

/// A kernel, its options, and its number of iterations.
struct Way {
    kernel: Kernel,
    options: Options,
    iterations: u64,
}

impl Way {
    fn new(kernel: Kernel, options: Options) -> Way {
        let iterations = (ELEMENTS / usize::from(kernel.per_iteration)) as u64;
        Way { kernel, options: Options { iterations: Some(iterations), ..options }, iterations }
    }
}

/// Arrays `x` and `y`, and a kernel's record that points to them.
struct Arrays {
    x: Vec<u8>,
    y: Vec<u8>,
}

impl Arrays {
    fn new() -> Arrays {
        let floats = (0..2 * ELEMENTS).flat_map(|n| (0.25 + (n % 97) as f32 / 128.0).to_le_bytes());
        Arrays { x: floats.collect(), y: vec![0; 8 * ELEMENTS] }
    }

    fn run(&mut self, code: &Code, way: &Way) {
        let mut record = vec![0u8; way.kernel.record_bytes().max(64)];
        record[..8].copy_from_slice(&(self.x.as_ptr() as u64).to_le_bytes());
        record[8..16].copy_from_slice(&(self.y.as_mut_ptr() as u64).to_le_bytes());
        (code.0)(record.as_mut_ptr(), way.iterations);
    }
}

fn main() {
    println!("{:<8} {:<28} {:>9} {:>9} {:>6} {:>14}", "level", "kernel", "with", "without", "ratio", "translation");
    let plain = Options::default();
    for level in Level::ALL.into_iter().filter(|level| level.is_here()) {
        let rows = [
            (
                "whole vectors: |z|^2",
                Way::new(squares(), plain),
                Way::new(squares(), Options { whole_vectors: false, ..plain }),
            ),
            ("narrow: average of u8", Way::new(narrow_average(), plain), Way::new(average(), plain)),
            (
                "interleave: polynomial of 24",
                Way::new(polynomial(24), plain),
                Way::new(polynomial(24), Options { interleave: false, ..plain }),
            ),
            (
                "interleave: polynomial of 60",
                Way::new(polynomial(60), plain),
                Way::new(polynomial(60), Options { interleave: false, ..plain }),
            ),
        ];
        for (name, with, without) in rows {
            let [a, b] = compare(level, [&with, &without]);
            let started = Instant::now();
            (0..200).for_each(|_| drop(assemble(&with.kernel, level, &with.options)));
            let translation = started.elapsed().as_nanos() as f64 / 200e3;
            println!("{:<8} {name:<28} {a:>6.0} ns {b:>6.0} ns {:>6.2} {translation:>11.1} us", level.name(), b / a);
        }
    }
}

/// Nanoseconds of a run in each way.
fn compare(level: Level, ways: [&Way; 2]) -> [f64; 2] {
    let codes = ways.map(|way| Code::new(&assemble(&way.kernel, level, &way.options)));
    let results = [0, 1].map(|n| {
        let mut arrays = Arrays::new();
        arrays.run(&codes[n], ways[n]);
        arrays.y
    });
    assert!(results[0] == results[1], "both ways leave the same bits");
    let mut arrays = Arrays::new();
    let mut windows = [vec![], vec![]];
    for _ in 0..WINDOWS {
        for n in 0..2 {
            let started = Instant::now();
            (0..RUNS).for_each(|_| arrays.run(&codes[n], ways[n]));
            windows[n].push(started.elapsed().as_nanos() as f64 / RUNS as f64);
        }
    }
    windows.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[WINDOWS / 4]
    })
}

fn pointers(kernel: &mut Kernel, strides: [i64; 2]) -> [Memory; 2] {
    let mut next = 0;
    strides.map(|stride| {
        let pointer = kernel.pointer(Moving { offset: next, stride, outer: 0 });
        next += 8;
        Memory { pointer, offset: 0 }
    })
}

/// `y[i] = x[2 * i]^2 + x[2 * i + 1]^2`
fn squares() -> Kernel {
    let mut k = Kernel::new(1);
    let [x, y] = pointers(&mut k, [8, 4]);
    let re = k.load(Lane::F32, x, None);
    let im = k.load(Lane::F32, Memory { offset: 4, ..x }, None);
    let square = k.binary(Op::Mul, re, re);
    let sum = k.fma(im, im, square);
    k.store(y, sum, None);
    k
}

/// `y[i] = (x[i] + x[i + 1000] + 1) >> 1` of bytes.
fn average() -> Kernel {
    let mut k = Kernel::new(1);
    let [x, y] = pointers(&mut k, [1, 1]);
    let (a, b) = (k.load(Lane::U8, x, None), k.load(Lane::U8, Memory { offset: ELEMENTS as i32, ..x }, None));
    let (a, b) = (k.convert(Lane::I32, a), k.convert(Lane::I32, b));
    let one = k.constant(Lane::I32, 1);
    let sum = k.binary(Op::Add, a, b);
    let sum = k.binary(Op::Add, sum, one);
    let half = k.unary(Op::Shr { by: 1 }, sum);
    let byte = k.convert(Lane::U8, half);
    k.effect(Effect::Store { to: y, value: byte, mask: None });
    k
}

fn narrow_average() -> Kernel {
    let mut k = Kernel::new(4);
    let [x, y] = pointers(&mut k, [4, 4]);
    let (a, b) = (k.load(Lane::U8, x, None), k.load(Lane::U8, Memory { offset: ELEMENTS as i32, ..x }, None));
    let average = k.binary(Op::Average, a, b);
    k.effect(Effect::Store { to: y, value: average, mask: None });
    k
}

/// A polynomial of a degree by Horner's rule.
fn polynomial(degree: u32) -> Kernel {
    let mut k = Kernel::new(1);
    let [x, y] = pointers(&mut k, [4, 4]);
    let v = k.load(Lane::F32, x, None);
    let mut sum = k.constant(Lane::F32, 1.0f32.to_bits().into());
    for n in 0..degree {
        let next = k.constant(Lane::F32, (0.5 + n as f32 / 64.0).to_bits().into());
        sum = k.fma(sum, v, next);
    }
    k.store(y, sum, None);
    k
}
