//! Runs the programs of `tests/programs` at each level of the instruction set, as one test for each level, so that
//! `cargo test` shows which levels the host has.
//!
//! Each level runs in a process of its own, because `GIRDER_ISA` forces a level for a whole process.
//!
//! Invariant: every level whose features the operating system lists is run.

use girder_codegen::Level;
use girder_engine::Mode;
use girder_source::par_map_slice;
use girder_tests::cases::Case;
use girder_tests::{Program, files};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::{Command, ExitCode};

/// Set in the process of a level.
const CHILD: &str = "GIRDER_TEST_LEVEL";

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let level = |level: Level| {
        let trial = Trial::test(level.name(), move || run(level)).with_kind("level");
        trial.with_ignored_flag(!level.is_here())
    };
    let mut trials: Vec<Trial> = Level::ALL.into_iter().map(level).collect();
    trials.push(Trial::test("every_level_of_the_host_runs", || {
        every_level_of_the_host_runs();
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs the programs in a process that uses a level.
fn run(level: Level) -> Result<(), Failed> {
    let me = std::env::current_exe().expect("the test has a path");
    let done =
        Command::new(me).env(CHILD, "1").env("GIRDER_ISA", level.name()).output().expect("the test can be started");
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned().into()),
    }
}

/// Runs the programs in the modes that run compiled code.
fn child() -> ExitCode {
    let modes = [Mode::Fast, Mode::Exact];
    let wrong = par_map_slice(&files::under("tests/programs", ".gir"), |path| {
        let case = Case::read(path);
        let done = Program::small(path).compile(&modes).run_on(&modes, &[1, 2]);
        let right = done.failure.is_none() && done.prints == case.promised_prints();
        (!right).then(|| format!("{}: {:?} {:#?}", path.display(), done.failure, done.prints))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    eprintln!("{}", wrong.join("\n"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares the levels that run with the features that Linux lists. Continuous integration must be able to list them.
fn every_level_of_the_host_runs() {
    let listed = std::fs::read_to_string("/proc/cpuinfo");
    let Ok(listed) = listed else {
        assert!(std::env::var_os("CI").is_none(), "the features of this host are not known");
        return;
    };
    let flags: Vec<&str> =
        listed.lines().find_map(|l| l.strip_prefix("flags")).unwrap_or_default().split_whitespace().collect();
    let has = |names: &[&str]| names.iter().all(|name| flags.contains(name));
    let avx2 = has(&["avx2", "fma", "bmi1", "bmi2", "abm", "popcnt"]);
    let avx512 = avx2 && has(&["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]);
    let found: Vec<Level> = Level::ALL.into_iter().filter(|level| level.is_here()).collect();
    let expected: Vec<Level> = [(Level::Portable, true), (Level::Avx2, avx2), (Level::Avx512, avx512)]
        .into_iter()
        .filter_map(|(level, is_listed)| is_listed.then_some(level))
        .collect();
    assert_eq!(found, expected, "the levels that run are those of the host");
}
