//! Codelets against C: the same arrays, in turn, on one thread.
//!
//! `cargo bench -p girder-tests --bench codelets [-- SUBSTRING]` compiles the C below with
//! `cc -O3 -march=native -ffast-math`, and each codelet as the engine compiles it. One call of a C function is compared
//! with one superstep: a compute set of one vertex, in a `repeat` in fast mode, so that what the engine does around a
//! vertex counts too. A size is that of one array of the kernel. Prints both rates, the ratio (above 1: Girder is
//! faster), and on the last line the least ratio of those kernels that have a bar.
//!
//! Each figure is the median of windows that alternate between the two sides, in the time of the thread.
//!
//! Invariant: both sides begin with equal arrays, and what they compute is compared before anything is timed.

// With the memory that the command has.
use girder::{Compilation, Options, Stage};
use girder_engine::{Engine, Mode, Silent};
use girder_ir::graph::Graph;
use girder_ir::ids::ProgramId;
use girder_tests as _;
use std::ffi::{CString, c_char, c_int, c_void};
use std::process::Command;

#[path = "codelets/kernels.rs"]
mod kernels;
#[path = "codelets/patterns.rs"]
mod patterns;

use kernels::{KERNELS, OTHERS};
use patterns::PATTERNS;

/// A kernel in both languages.
struct Kernel {
    name: &'static str,
    /// What the rate counts.
    unit: Unit,
    /// `void NAME(long n, const void *x, const void *w, void *y)`, the body; `n` elements (a square for the stencil).
    c: &'static str,
    /// `codelet NAME(in x, in w, inout or out y)`.
    girder: &'static str,
    /// Element types of `x`, `w`, `y`, and how many there are of each.
    arrays: [(Type, Count); 3],
    /// Greatest difference of a result, as a part of the greatest result.
    close: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Type {
    F32,
    F64,
    U8,
    I32,
    U64,
}

#[derive(Clone, Copy)]
enum Count {
    One,
    Bins,
    /// The side of the square.
    Side,
    Size,
    /// Three rows of the size.
    Three,
    /// The size in rows of so many.
    Rows(usize),
    Square,
    Cube,
}

enum Unit {
    /// Floating-point operations of an element.
    Flop(f64),
    /// Bytes moved for an element.
    Bytes(f64),
}

/// Bytes of an array of `f32`, and what is asked for there.
const SIZES: [(usize, &str, f64); 3] =
    [(32 << 10, "32 KiB", 0.75), (512 << 10, "512 KiB", 0.9), (16 << 20, "16 MiB", 0.9)];

/// Windows of each side, and nanoseconds that one should take.
const WINDOWS: usize = 15;
const WINDOW: f64 = 2e6;

type Function = unsafe extern "C" fn(i64, *const c_void, *const c_void, *mut c_void);

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn clock_gettime(clock: c_int, time: *mut [i64; 2]) -> c_int;
}

/// Nanoseconds that this thread has run.
fn now() -> f64 {
    const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
    let mut time = [0; 2];
    // SAFETY: on 64-bit Linux a `timespec` is two such words.
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time[0] as f64 * 1e9 + time[1] as f64
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::U8 => "u8",
            Self::I32 => "i32",
            Self::U64 => "u64",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::U64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::U8 => 1,
        }
    }

    /// Some elements: between -2 and 2, or any number below 256.
    fn fill(self, count: usize) -> Vec<u8> {
        let mut seed = 88172645463325252u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed >> 40
        };
        match self {
            Self::F32 => (0..count).flat_map(|_| (next() as f32 / (1 << 22) as f32 - 2.0).to_le_bytes()).collect(),
            Self::F64 => (0..count).flat_map(|_| (next() as f64 / (1 << 22) as f64 - 2.0).to_le_bytes()).collect(),
            Self::U8 => (0..count).map(|_| next() as u8).collect(),
            Self::I32 => (0..count).flat_map(|_| (next() as i32 & 255).to_le_bytes()).collect(),
            Self::U64 => (0..count).flat_map(|_| (next() << 40 | next()).to_le_bytes()).collect(),
        }
    }

    fn numbers(self, bytes: &[u8]) -> Vec<f64> {
        let words = bytes.chunks_exact(self.bytes());
        match self {
            Self::F32 => words.map(|w| f32::from_le_bytes(w.try_into().expect("four bytes")).into()).collect(),
            Self::F64 => words.map(|w| f64::from_le_bytes(w.try_into().expect("eight bytes"))).collect(),
            Self::U8 => bytes.iter().map(|&b| b.into()).collect(),
            Self::I32 => words.map(|w| i32::from_le_bytes(w.try_into().expect("four bytes")).into()).collect(),
            Self::U64 => words.map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")) as f64).collect(),
        }
    }
}

impl Count {
    fn of(self, n: usize) -> Vec<usize> {
        match self {
            Self::One => vec![],
            Self::Bins => vec![256],
            Self::Side | Self::Size => vec![n],
            Self::Three => vec![3, n],
            Self::Rows(length) => vec![n / length, length],
            Self::Square => vec![n, n],
            Self::Cube => vec![n, n, n],
        }
    }
}

impl Kernel {
    /// The length that makes an array of `f32` so large.
    fn length(&self, bytes: usize) -> usize {
        let n = bytes / 4;
        match self.arrays[0].1 {
            Count::Square => n.isqrt(),
            Count::Cube => (n as f64).cbrt() as usize,
            _ => n,
        }
    }

    fn elements(&self, n: usize) -> f64 {
        self.arrays[0].1.of(n).iter().product::<usize>() as f64
    }

    fn program(&self, n: usize, repeats: usize) -> String {
        let vars = ["x", "w", "y"].iter().zip(&self.arrays).map(|(name, (ty, count))| {
            let dims: Vec<String> = count.of(n).iter().map(usize::to_string).collect();
            let dims = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) };
            format!("var {name}: {}{dims} on tile(0);\n", ty.name())
        });
        let vars: String = vars.collect();
        format!(
            "{vars}codelet kernel({}\nprogram once() {{ compute set {{ vertex kernel(x, w, y) on tile(0); }} }}\n\
             program main() {{ repeat {repeats} {{ compute set {{ vertex kernel(x, w, y) on tile(0); }} }} }}\n",
            self.girder
        )
    }

    fn identifier(&self) -> String {
        self.name.replace([' ', '-'], "_")
    }
}

/// The kernels in C, compiled.
struct Library(*mut c_void);

impl Library {
    fn compile() -> Library {
        let folder = std::env::temp_dir().join(format!("girder-codelets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for C");
        let (source, object) = (folder.join("kernels.c"), folder.join("kernels.so"));
        let function = |k: &Kernel| {
            format!("void k_{}(long n, const void *X, const void *W, void *restrict Y) {{ {} }}\n", k.identifier(), k.c)
        };
        let text = format!(
            "#include <math.h>\n{}",
            KERNELS.iter().chain(OTHERS).chain(PATTERNS).map(function).collect::<String>()
        );
        std::fs::write(&source, text).expect("C is written");
        let mut cc = Command::new("cc");
        cc.args(["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source).arg("-lm");
        assert!(cc.status().expect("`cc` runs").success(), "`cc` refuses the kernels");
        let path = CString::new(object.to_str().expect("a plain path")).expect("no zero in it");
        // SAFETY: the path is a string; the library has no initialisers of its own.
        let library = unsafe { dlopen(path.as_ptr(), 2) };
        assert!(!library.is_null(), "the library loads");
        let _ = std::fs::remove_dir_all(&folder);
        Library(library)
    }

    fn function(&self, kernel: &Kernel) -> Function {
        let name = CString::new(format!("k_{}", kernel.identifier())).expect("no zero in it");
        // SAFETY: the library is never closed, and all its functions have this type.
        unsafe {
            let symbol = dlsym(self.0, name.as_ptr());
            assert!(!symbol.is_null(), "the library has {name:?}");
            std::mem::transmute::<*mut c_void, Function>(symbol)
        }
    }
}

fn program(graph: &Graph, name: &str) -> ProgramId {
    graph.programs.iter().find(|(_, p)| p.name == name).expect("the text has it").0
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Nanoseconds of one run in C and in Girder.
fn measure(kernel: &Kernel, n: usize, function: Function) -> (f64, f64) {
    let mut arrays: Vec<Vec<u8>> = kernel
        .arrays
        .iter()
        .map(|(ty, count)| {
            let room = ty.fill(count.of(n).iter().product());
            // A little more room, to begin at a line of the cache as Girder's arrays do.
            [room, vec![0; 64]].concat()
        })
        .collect();
    let bytes: Vec<usize> = arrays.iter().map(|a| a.len() - 64).collect();
    let at: Vec<*mut c_void> = arrays
        .iter_mut()
        .zip(&bytes)
        .map(|(a, &len)| {
            let shift = a.as_ptr().align_offset(64);
            a.copy_within(..len, shift);
            // SAFETY: the shift is less than the room that was added.
            unsafe { a.as_mut_ptr().add(shift).cast() }
        })
        .collect();
    // SAFETY: the arrays are as long as the kernel's text says, and start at these addresses.
    let run_c = || unsafe { function(n as i64, at[0], at[1], at[2]) };
    let content = |k: usize| {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(at[k].cast::<u8>(), bytes[k]) }.to_vec()
    };
    let start: Vec<Vec<u8>> = (0..3).map(content).collect();
    run_c();
    let expected = content(2);
    // The first run is slow: its pages are new.
    let begun = now();
    (0..4).for_each(|_| run_c());
    let count = ((4.0 * WINDOW / (now() - begun).max(1.0)) as usize).clamp(4, 20_000);
    let text = kernel.program(n, count);
    let machine = girder_machine::builtin("gc200").expect("it comes with Girder");
    let session = girder_source::Session { allow_over_memory: true, ..Default::default() };
    let mut compilation = Compilation::new(Options { machine, arguments: Default::default(), session });
    let root = compilation.add("kernel.gir", text).expect("a small text");
    let stage = compilation.stage(root, Stage::Allocated);
    let executable = stage.and_then(|s| compilation.executable(s, &[Mode::Fast]));
    let executable = executable.unwrap_or_else(|_| {
        compilation.diagnostics.iter().for_each(|d| eprint!("{}", d.render(&compilation.map, false, 120)));
        panic!("{} compiles", kernel.name)
    });
    let graph: &Graph = &executable.allocated;
    let mut engine = Engine::load(&executable, Mode::Fast, 1, &compilation.options.session).expect("memory");
    let var = |name: &str| graph.vars.iter().find(|(_, v)| v.name == name).expect("the text has it").0;
    for (name, bytes) in ["x", "w", "y"].into_iter().zip(&start) {
        engine.set(var(name), bytes).expect("the array fits");
    }
    engine.run(program(graph, "once"), &mut Silent).expect("it runs");
    compare(kernel, &expected, &engine.get(var("y")).expect("it ran"));
    let (once, main) = (program(graph, "once"), program(graph, "main"));
    engine.run(once, &mut Silent).expect("it runs");
    let (mut c, mut girder) = (vec![], vec![]);
    for _ in 0..WINDOWS {
        let begun = now();
        (0..count).for_each(|_| run_c());
        c.push((now() - begun) / count as f64);
        let begun = now();
        engine.run(main, &mut Silent).expect("it runs");
        girder.push((now() - begun) / count as f64);
    }
    (median(c), median(girder))
}

/// Long sums in C lose more than short ones, the more so the fewer lanes the host's vectors have.
fn compare(kernel: &Kernel, expected: &[u8], found: &[u8]) {
    let ty = kernel.arrays[2].0;
    let (expected, found) = (ty.numbers(expected), ty.numbers(found));
    let greatest = expected.iter().fold(0.0f64, |g, x| g.max(x.abs()));
    let close = kernel.close * (expected.len() as f64 / 65536.0).sqrt().max(1.0);
    for (at, (e, f)) in expected.iter().zip(&found).enumerate() {
        assert!((e - f).abs() <= close * greatest, "{}: element {at} is {f}, in C {e}", kernel.name);
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let library = Library::compile();
    println!("{:<16} {:>8} {:>16} {:>16} {:>7}", "kernel", "size", "C", "Girder", "ratio");
    let mut worst: Option<(f64, f64, String)> = None;
    let asked = KERNELS.iter().map(|k| (k, true)).chain(OTHERS.iter().chain(PATTERNS).map(|k| (k, false)));
    for (kernel, asked) in asked.filter(|(k, _)| k.name.contains(&wanted)) {
        for (bytes, label, bar) in SIZES {
            let n = kernel.length(bytes);
            let (c, girder) = measure(kernel, n, library.function(kernel));
            let (per, unit) = match kernel.unit {
                Unit::Flop(per) => (per, "GFLOP/s"),
                Unit::Bytes(per) => (per, "GB/s"),
            };
            let rate = |time: f64| format!("{:.2} {unit}", per * kernel.elements(n) / time);
            let ratio = c / girder;
            println!("{:<16} {label:>8} {:>16} {:>16} {ratio:>7.2}", kernel.name, rate(c), rate(girder));
            let bar = if matches!(kernel.name, "sigmoid" | "softmax row") { 0.9 } else { bar };
            if asked && worst.as_ref().is_none_or(|w| ratio / bar < w.0 / w.1) {
                worst = Some((ratio, bar, format!("{}, {label}", kernel.name)));
            }
        }
    }
    if let Some((ratio, bar, place)) = worst {
        println!("worst ratio to C, against its bar: {ratio:.2} of {bar:.2} ({place})");
    }
}
