//! What it costs to read a printed stage back and to check it, beside making it.
//!
//! `cargo bench -p girder-tests --bench read_back` walks every example at every stage. *Making* is what `girder build
//! --stage` does: it compiles up to the stage and prints it. *Reading* is what `girder check` does with the text: it
//! parses the text and verifies every table. Bars: reading takes at most ten times what making took, and all round
//! trips together take less than a minute. Times below [`NOISE`] are not held against the first bar.

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
    let mut worst: Option<(f64, String)> = None;
    println!("{:<44} {:<10} {:>9} {:>9} {:>9} {:>6}", "example", "stage", "text, kB", "make, ms", "read, ms", "ratio");
    for path in files::examples() {
        let program = Program::file(&path);
        for to in Stage::ALL {
            let (make, text) = least(|| {
                let stage = program.stage(to).unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
                girder::text::print(&stage, program.machine())
            });
            let resumed = program.resumed(text.clone());
            let (read, again) = least(|| resumed.stage(to));
            let again = again.unwrap_or_else(|failure| panic!("{}, {}: {failure}", path.display(), to.name()));
            assert!(girder::text::print(&again, program.machine()) == text, "{}: another text", path.display());
            let ratio = read.as_secs_f64() / make.as_secs_f64();
            let name = path.display().to_string();
            let [kb, make_ms, read_ms] = [text.len() as f64 / 1e3, make.as_secs_f64() * 1e3, read.as_secs_f64() * 1e3];
            let mark = if ratio > RATIO && read > NOISE { " too long" } else { "" };
            println!("{name:<44} {:<10} {kb:>9.0} {make_ms:>9.1} {read_ms:>9.1} {ratio:>6.1}{mark}", to.name());
            if read > NOISE && worst.as_ref().is_none_or(|w| w.0 < ratio) {
                worst = Some((ratio, format!("{name}, {}", to.name())));
            }
            total += make + read;
        }
    }
    let (ratio, name) = worst.unwrap_or((0.0, "no example".into()));
    println!("worst ratio: {ratio:.1} ({name}); bar: {RATIO}");
    println!("all round trips: {:.1} s; bar: {} s", total.as_secs_f64(), TOTAL.as_secs());
    if ratio > RATIO || total > TOTAL { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
