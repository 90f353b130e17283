//! What it costs to read a printed stage back and to check it, beside making it.
//!
//! `cargo bench -p girder-tests --bench read_back` walks every example at every stage. Bars: reading back takes at most
//! ten times what making the stage took, and all round trips together take less than a minute. Times below
//! [`NOISE`] are not held against the first bar.

use girder::Stage;
use girder_tests::{Program, files};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The most that reading may take, as a multiple of making.
const RATIO: f64 = 10.0;
/// The most that all round trips may take.
const TOTAL: Duration = Duration::from_secs(60);
/// What a machine with other work may add to a short time.
const NOISE: Duration = Duration::from_millis(50);

/// Returns the least time of three calls, and the last result.
fn least<T>(mut f: impl FnMut() -> T) -> (Duration, T) {
    let mut once = || {
        let start = Instant::now();
        let made = f();
        (start.elapsed(), made)
    };
    let first = once().0.min(once().0);
    let (last, made) = once();
    (first.min(last), made)
}

fn main() -> ExitCode {
    let mut total = Duration::ZERO;
    let mut failed = false;
    println!("{:<44} {:<10} {:>9} {:>9} {:>9} {:>6}", "example", "stage", "text, kB", "make, ms", "read, ms", "ratio");
    for path in files::under("examples", ".gir") {
        let program = Program::file(&path);
        for to in Stage::ALL {
            let (make, stage) = least(|| program.stage(to));
            let stage = stage.unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
            let text = girder::text::print(&stage, program.machine());
            let resumed = program.resumed(text.clone());
            let (read, again) = least(|| resumed.stage(to));
            let again = again.unwrap_or_else(|failure| panic!("{}, {}: {failure}", path.display(), to.name()));
            assert!(girder::text::print(&again, program.machine()) == text, "{}: another text", path.display());
            let ratio = read.as_secs_f64() / make.as_secs_f64();
            let late = ratio > RATIO && read > NOISE;
            let name = path.display().to_string();
            let [kb, make_ms, read_ms] = [text.len() as f64 / 1e3, make.as_secs_f64() * 1e3, read.as_secs_f64() * 1e3];
            let mark = if late { " too long" } else { "" };
            println!("{name:<44} {:<10} {kb:>9.0} {make_ms:>9.1} {read_ms:>9.1} {ratio:>6.1}{mark}", to.name());
            failed |= late;
            total += make + read;
        }
    }
    println!("all round trips: {:.1} s", total.as_secs_f64());
    if failed || total > TOTAL { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
