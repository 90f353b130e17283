//! Broken programs, `tests/diagnostics/<stage>/<claim>.gir`, and their diagnostics.
//!
//! `//~ code` is on the line of the first label of each diagnostic; `//~! code` is at the end of the file if the
//! diagnostic has no label there. They are written by hand, so that accepting a snapshot cannot hide a lost error. The
//! snapshot beside the program is the whole report as the user sees it.
//!
//! Invariant: no other diagnostic is reported, and every code that a text can lead to has a program that leads to it.

use girder_tests::cases::{self, Case};
use girder_tests::{Report, Reported, files};
use libtest_mimic::Trial;
use std::collections::BTreeSet;
use std::process::ExitCode;

const PROGRAMS: &str = "tests/diagnostics";
/// A snapshot of more reports than these shows the first and the last of them.
const MANY: usize = 50;

fn main() -> ExitCode {
    let complete = || {
        every_code_has_a_program_or_a_reason();
        Ok(())
    };
    cases::main(PROGRAMS, snapshot, vec![Trial::test("every_code_has_a_program_or_a_reason", complete)])
}

/// Returns the report, after checking that it has the codes that the comments of the program expect, on their lines.
fn snapshot(case: &Case) -> String {
    let report = Report::of(&case.program());
    assert_eq!(report.list, expected(&case.text), "\n{}", report.texts.concat());
    match &report.texts[..] {
        [] => "nothing is reported\n".into(),
        [first, others @ .., last] if others.len() > MANY => {
            format!("{first}\n(and {} reports like it)\n\n{last}", others.len())
        }
        texts => texts.concat(),
    }
}

/// Reads the expected diagnostics from the comments of a program, sorted.
fn expected(text: &str) -> Vec<Reported> {
    let mut list = vec![];
    for (k, line) in text.lines().enumerate() {
        for mark in line.split("//~").skip(1) {
            let (line, code) = match mark.strip_prefix('!') {
                Some(code) => (None, code),
                None => (Some(k as u32 + 1), mark),
            };
            list.push(Reported { line, code: code.trim().to_string() });
        }
    }
    list.sort();
    list.dedup();
    list
}

/// Codes without a program here, and the reasons.
const ELSEWHERE: [(&str, &[&str]); 4] = [
    (
        "the command reports them (compiler/cli/tests/command.rs)",
        &[
            "driver::cannot_read",
            "driver::cannot_write",
            "driver::exists",
            "driver::header",
            "driver::not_text",
            "machine::cannot_read",
            "machine::invalid",
            "machine::replicas",
            "machine::unknown",
            "run::cannot_read",
            "run::constant",
            "run::host_memory",
            "run::no_plot",
            "run::no_program",
            "run::no_stream",
            "run::no_variable",
            "run::too_much_work",
            "run::nothing_to_save",
            "run::wrong_array",
            "run::wrong_checkpoint",
            "usage::argument",
            "usage::unknown_code",
        ],
    ),
    (
        "the library's callers meet them (runtime/engine/tests)",
        &["run::after_failure", "run::not_entry", "run::not_prepared", "run::temporary", "run::wrong_size"],
    ),
    (
        "they depend on the host, on when someone stops it, or on more text than a test should have",
        &[
            "driver::no_thread",
            "driver::too_much_text",
            "elaborate::cancelled",
            "exchange::too_long",
            "names::too_much_text",
            "run::cancelled",
            "run::nesting",
            "session::cancelled",
        ],
    ),
    (
        "only a bug of the compiler or its library leads to them",
        &[
            "codegen::refused",
            "elaborate::no_library",
            "internal::family",
            "internal::stage",
            "internal::verifier",
            "run::internal",
        ],
    ),
];

fn every_code_has_a_program_or_a_reason() {
    let programs = files::under(PROGRAMS, ".gir");
    let covered: BTreeSet<String> = programs.iter().flat_map(|p| expected(&files::text(p))).map(|r| r.code).collect();
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
    for code in files::codes() {
        let (here, there) = (covered.contains(&code), elsewhere.contains(code.as_str()));
        assert!(here || there, "no program of {PROGRAMS} leads to `{code}`");
        assert!(!(here && there), "`{code}` has a program now: take it out of `ELSEWHERE`");
    }
}
