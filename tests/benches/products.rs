//! `x @ y` in `f32` through the library on `gc200`, against the `gemm` crate called directly on the same matrices, both
//! with the best instructions that the host has.
//!
//! `cargo bench -p girder-tests --bench products [-- SUBSTRING]` prints a row for each shape (rows, terms, columns) and
//! number of threads: the median time of one product in both, with interleaved repetitions, and the ratio of the
//! speeds. The last line is the worst ratio. `gemm_f32` is the part of `gemm` that its front hands products of `f32`
//! to.
//!
//! An iteration of the program is the product and the copy of its result into a variable, superstep by superstep; the
//! time of a run is divided by its iterations. Results are compared element by element.
//!
//! Invariant: what is timed is what is compared.

// With the memory that the command has.
use girder::{Arguments, Compilation, Options, Stage};
use girder_engine::{Engine, Executable, Mode, Silent};
use girder_ir::ids::{ProgramId, VarId};
use girder_source::Session;
use girder_tests as _;
use std::time::Instant;

const SHAPES: [[usize; 3]; 6] =
    [[64, 64, 64], [128, 128, 128], [256, 256, 256], [512, 512, 512], [1024, 1024, 1024], [64, 784, 512]];
const THREADS: [usize; 2] = [1, 2];
/// Pairs of measurements.
const ROUNDS: usize = 25;
/// Multiply-adds of one measurement, about.
const WORK: usize = 1 << 25;

fn main() {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    println!("{:>16} {:>8} {:>12} {:>12} {:>7}", "shape", "threads", "girder GF/s", "gemm GF/s", "ratio");
    let mut worst = f64::INFINITY;
    for shape in SHAPES {
        let name = shape.map(|n| n.to_string()).join("x");
        if !name.contains(&wanted) {
            continue;
        }
        let case = Case::new(shape);
        for threads in THREADS {
            let (ours, theirs) = case.measure(threads);
            let speed = |seconds: f64| 2e-9 * shape.iter().product::<usize>() as f64 / seconds;
            let ratio = theirs / ours;
            println!("{name:>16} {threads:>8} {:>12.1} {:>12.1} {ratio:>7.3}", speed(ours), speed(theirs));
            worst = worst.min(ratio);
        }
    }
    println!("{worst:.3}");
}

/// A product in both ways.
struct Case {
    shape: [usize; 3],
    iterations: usize,
    executable: Executable,
    x: Vec<f32>,
    y: Vec<f32>,
}

impl Case {
    fn new(shape: [usize; 3]) -> Case {
        let [m, k, n] = shape;
        let iterations = WORK.div_ceil(m * k * n);
        let text = format!(
            "var x: f32[{m}, {k}];\nvar y: f32[{k}, {n}];\nvar z: f32[{m}, {n}];\n
            program main() {{ repeat {iterations} {{ z <- x @ y; }} }}\n"
        );
        let machine = girder_machine::builtin("gc200").expect("a machine that is built in");
        let options = Options { machine, arguments: Arguments::default(), session: Session::default() };
        let mut compilation = Compilation::new(options);
        let root = compilation.add("products.gir", text).expect("a small text");
        let stage = compilation.stage(root, Stage::Allocated);
        let executable = stage.and_then(|s| compilation.executable(s, &[Mode::Fast])).unwrap_or_else(|_| {
            let reports = compilation.diagnostics.iter().map(|d| d.render(&compilation.map, false, 120));
            panic!("it does not compile\n{}", reports.collect::<String>())
        });
        Case { shape, iterations, executable, x: numbers(m * k, 13), y: numbers(k * n, 77) }
    }

    /// Seconds of one product, here and by `gemm`.
    fn measure(&self, threads: usize) -> (f64, f64) {
        let [m, _, n] = self.shape;
        let session = Session::default();
        let mut engine = Engine::load(&self.executable, Mode::Fast, threads, &session).expect("the engine loads");
        let graph = &self.executable.allocated;
        let var = |name: &str| graph.vars.iter().find(|(_, v)| v.name == name).expect("a variable of this name").0;
        engine.set(var("x"), &bytes(&self.x)).expect("x can be set");
        engine.set(var("y"), &bytes(&self.y)).expect("y can be set");
        let program = graph.programs.iter().find(|(_, p)| p.name == "main").expect("the program").0;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let mut z = vec![0.0; m * n];
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..=ROUNDS {
            times[0].push(self.timed(|| run(&mut engine, program)));
            times[1]
                .push(pool.install(|| self.timed(|| (0..self.iterations).for_each(|_| self.gemm(threads, &mut z)))));
        }
        compare(&engine, var("z"), &z);
        // The first round only warms up.
        let [ours, theirs] = times.map(|t| median(t[1..].to_vec()));
        (ours, theirs)
    }

    fn timed(&self, f: impl FnOnce()) -> f64 {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64() / self.iterations as f64
    }

    /// `gemm` wants columns of the result side by side, so that it computes `zᵀ = yᵀ xᵀ`, as its front would.
    fn gemm(&self, threads: usize, z: &mut [f32]) {
        let [m, k, n] = self.shape;
        let parallel = match threads {
            1 => gemm_common::Parallelism::None,
            n => gemm_common::Parallelism::Rayon(n),
        };
        let (rows, terms) = (n as isize, k as isize);
        let (x, y) = (self.x.as_ptr(), self.y.as_ptr());
        let product = gemm_f32::gemm::f32::get_gemm_fn();
        // SAFETY: the strides are those of the row-major matrices, and `z` shares nothing with them.
        unsafe {
            let z = z.as_mut_ptr();
            product(n, m, k, z, rows, 1, false, y, rows, 1, x, terms, 1, 0.0, 1.0, false, false, false, parallel);
        }
    }
}

fn run(engine: &mut Engine<'_>, program: ProgramId) {
    engine.run(program, &mut Silent).expect("it runs");
}

/// Both have added the same numbers, in whatever order.
fn compare(engine: &Engine<'_>, z: VarId, theirs: &[f32]) {
    let ours = engine.get(z).expect("z has a value");
    let ours = ours.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    for (ours, theirs) in ours.zip(theirs) {
        assert!((ours - theirs).abs() <= 1e-3 * (1.0 + theirs.abs()), "{ours} and {theirs}");
    }
}

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + seed) % 1009) as f32 / 504.0 - 1.0).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
