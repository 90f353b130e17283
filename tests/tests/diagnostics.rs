//! Broken programs, `tests/diagnostics/<stage>/<claim>.gir`, and what is said about them: `//~ code` stands on the line
//! of the main place of each diagnostic, `//~! code` at the end of the file if it has no place there.
//!
//! Invariant: nothing else is said, and every code that a text can lead to has a program that leads to it.

use girder_source::par_map_slice;
use girder_tests::{Program, Said, files, said};
use std::collections::BTreeSet;
use std::path::PathBuf;

const PROGRAMS: &str = "tests/diagnostics";

#[test]
fn broken_programs_are_told_so_on_their_lines() {
    let files = files::under(PROGRAMS, ".gir");
    let wrong: Vec<String> = par_map_slice(&files, check).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

fn check(path: &PathBuf) -> Option<String> {
    let text = files::text(path);
    let expected = expected(&text);
    let (found, shown) = said(&Program::small(path));
    (found != expected).then(|| format!("{}\n  expected {expected:?}\n  found    {found:?}\n{shown}", path.display()))
}

/// What the comments of a program say, sorted.
fn expected(text: &str) -> Vec<Said> {
    let mut list = vec![];
    for (k, line) in text.lines().enumerate() {
        for mark in line.split("//~").skip(1) {
            let (line, code) = match mark.strip_prefix('!') {
                Some(code) => (None, code),
                None => (Some(k as u32 + 1), mark),
            };
            list.push(Said { line, code: code.trim().to_string() });
        }
    }
    list.sort();
    list.dedup();
    list
}

/// Codes without a program here, and why.
const ELSEWHERE: [(&str, &[&str]); 4] = [
    (
        "the command says them (compiler/cli/tests/command.rs)",
        &[
            "driver::cannot_read",
            "driver::cannot_write",
            "driver::exists",
            "driver::header",
            "driver::not_text",
            "machine::cannot_read",
            "machine::invalid",
            "machine::unknown",
            "run::cannot_read",
            "run::constant",
            "run::host_memory",
            "run::no_program",
            "run::no_stream",
            "run::no_variable",
            "run::wrong_array",
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

#[test]
fn every_code_has_a_program_or_a_reason() {
    let programs = files::under(PROGRAMS, ".gir");
    let covered: BTreeSet<String> =
        programs.iter().flat_map(|p| expected(&files::text(p))).map(|said| said.code).collect();
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
    for code in files::codes() {
        let (here, there) = (covered.contains(&code), elsewhere.contains(code.as_str()));
        assert!(here || there, "no program of {PROGRAMS} leads to `{code}`");
        assert!(!(here && there), "`{code}` has a program now: take it out of `ELSEWHERE`");
    }
}
