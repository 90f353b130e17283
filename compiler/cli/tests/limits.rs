//! Programs that ask for too much memory or time, `tests/limits/<claim>.gir`: each ends in a diagnostic, soon.
//!
//! A comment `// $ girder …` is the command line, without the file. `//~ code` is on the line of the diagnostic's first
//! label; `//~! code` is at the end of the file if the diagnostic has no label. A `//~ none` means that the command
//! succeeds, though the text looks long.
//!
//! Invariant: the command runs as a child process whose address space is limited, so a table that is not charged and
//! grows without end shows as another end of the command than the expected one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Kilobytes of address space: two gigabytes for the stack of elaboration, which is reserved and hardly used, and the
/// rest for everything else.
const ADDRESSES: u32 = 4_000_000;
/// A program that takes longer hangs. Each takes a few seconds at most, even without optimisation.
const LONGEST: Duration = Duration::from_secs(60);

#[test]
fn programs_that_ask_for_too_much_end_in_a_diagnostic() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/limits");
    let mut programs: Vec<PathBuf> = std::fs::read_dir(&directory)
        .expect("tests/limits")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "gir"))
        .collect();
    programs.sort();
    assert!(programs.len() >= 24, "{} has few programs", directory.display());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut problems = vec![];
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            problems.extend(problem(program).map(|p| format!("{}: {p}", program.display())));
        }
        problems
    };
    let problems = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|t| t.join().expect("a thread")).collect::<Vec<_>>()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Runs a program; returns what is wrong with its end, or with its comments.
fn problem(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).expect("a program");
    let Some(line) = text.lines().find_map(|l| l.strip_prefix("// $ girder ")) else {
        return Some("no line is `// $ girder …`".into());
    };
    let marks = text.lines().enumerate().filter_map(|(k, l)| Some((k + 1, l.split_once("//~")?.1)));
    let [(at, mark)] = marks.collect::<Vec<_>>()[..] else { return Some("it expects no end, or several".into()) };
    let (code, has_line) = (mark.trim_start_matches('!').trim(), !mark.starts_with('!'));
    let start = Instant::now();
    let done = Command::new("timeout")
        .arg(LONGEST.as_secs().to_string())
        .args(["sh", "-c", &format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_girder")])
        .args(line.split(' '))
        .args(["--message-format", "json"])
        .arg(path)
        .output()
        .expect("a shell");
    let (errors, took) = (String::from_utf8_lossy(&done.stderr), start.elapsed());
    let shown =
        || format!("after {took:?}, code {:?}: {}", done.status.code(), errors.chars().take(2000).collect::<String>());
    if code == "none" {
        return (done.status.code() != Some(0)).then(shown);
    }
    let expected = format!("\"code\":\"{code}\"");
    let line = format!("\"line\":{at},");
    let found = errors.lines().any(|l| l.contains(&expected) && (!has_line || l.contains(&line)));
    (!found || done.status.code() != Some(1)).then(shown)
}
