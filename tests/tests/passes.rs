//! The decisions of each pass, as text: `tests/passes/<pass>/<what_is_true>.gir`, with the part of the printed stage
//! that the pass added in the snapshot beside it.
//!
//! The first line of a case states its claim in a sentence. For each case the test also checks, besides the snapshot,
//! that the stage reads back and prints again to the same bytes, that a second compilation prints the same, and that
//! all modes agree if the case has a program to run and compiles. Lines `// prints: …` at the end of a case are its
//! expected output.

use girder::{After, AnyStage, Stage};
use girder_codegen::{Level, clif_text, simd_text};
use girder_tests::cases::{self, Case};
use girder_tests::{MODES, Program, files};
use libtest_mimic::Trial;
use std::process::ExitCode;

/// Minimal number of cases of each pass.
const LEAST: usize = 10;

/// The items of a printed stage that show the decisions of a pass, by their first words; all of them if there are none.
const SHOWN: [(&str, &[&str]); 13] = [
    ("elaborate", &[]),
    ("check-replicas", &["nothing"]),
    ("promote-temporaries", &["var", "param", "const", "temp"]),
    ("fold-constants", &["temp", "const", "compute", "program"]),
    ("remove-dead-steps", &["temp", "compute", "copy", "program"]),
    ("fuse-elementwise", &["codelet", "temp", "compute", "copy", "program"]),
    ("merge-compute-sets", &["compute", "program"]),
    ("merge-copies", &["copy", "program"]),
    ("place-tiles", &["var", "param", "const", "temp", "compute"]),
    ("check-races", &["nothing"]),
    ("plan-transfers", &["exchange"]),
    ("schedule-exchange", &["exchange"]),
    ("allocate-memory", &["layout"]),
];

/// Prints the code or plan of a program.
type Print = fn(&Program) -> String;

/// Parts of code generation with cases of their own, and their printers. The level of the host's instruction set is
/// fixed, so that snapshots do not depend on the machine.
const CODE: [(&str, Print); 3] = [
    ("host", |program| program.host_plan(Level::Avx512)),
    ("simd", |program| program.kernels(Level::Avx512, simd_text).join("\n")),
    ("clif", |program| program.kernels(Level::Portable, clif_text).join("\n")),
];

fn main() -> ExitCode {
    let complete = || {
        every_pass_has_its_cases();
        Ok(())
    };
    cases::main("tests/passes", snapshot, vec![Trial::test("every_pass_has_its_cases", complete)])
}

fn every_pass_has_its_cases() {
    let passes: Vec<&str> = After::all().map(After::name).collect();
    let shown: Vec<&str> = SHOWN.iter().map(|s| s.0).collect();
    assert_eq!(passes, shown, "the passes of the compiler are those that have snapshots");
    for pass in shown.into_iter().chain(CODE.iter().map(|c| c.0)) {
        let count = files::under(format!("tests/passes/{pass}"), ".gir").len();
        assert!(count >= LEAST, "`{pass}` has {count} cases, fewer than {LEAST}");
    }
}

/// Returns the snapshot of a case, after all other checks.
fn snapshot(case: &Case) -> String {
    let claim = case.claim().unwrap_or_default();
    assert!(claim.ends_with('.'), "the first line of a case is its claim, a sentence");
    let (pass, program) = (case.folder(), case.program());
    if let Some((_, print)) = CODE.iter().find(|c| c.0 == pass) {
        let text = print(&program);
        assert_eq!(text, print(&program), "a second compilation prints something else");
        let stage = program.stage(Stage::Graph).unwrap_or_else(|e| panic!("the case does not compile\n{e}"));
        runs(case, &stage);
        return text;
    }
    let after = After::named(pass).unwrap_or_else(|| panic!("there is no pass `{pass}`"));
    let (lowered, again) = (program.lowered(after), program.lowered(after));
    assert_eq!(lowered.report, again.report, "a second compilation reports something else");
    assert_eq!(lowered.text, again.text, "a second compilation prints something else");
    let Some(stage) = lowered.stage else { return lowered.report };
    let resumed = program.resumed(lowered.text.clone()).lowered(after);
    assert_eq!(lowered.text, resumed.text, "the stage prints differently when it was read:\n{}", resumed.report);
    runs(case, &stage);
    let shown = match pass {
        "check-races" => "no race\n".into(),
        "check-replicas" => "replicas meet\n".into(),
        _ => decisions(case, &lowered.text),
    };
    if lowered.report.is_empty() { shown } else { format!("{}\n{shown}", lowered.report) }
}

/// Returns the items of a printed stage that show the decisions of a pass, without codelets that the case has as well.
fn decisions(case: &Case, text: &str) -> String {
    let pass = case.folder();
    let (_, words) = SHOWN.iter().find(|s| s.0 == pass).unwrap_or_else(|| panic!("there is no pass `{pass}`"));
    let items = files::items(text);
    let shown = items.into_iter().filter(|item| {
        let word = item.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        (words.is_empty() || words.contains(&word)) && !(word == "codelet" && case.text.contains(item))
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

/// Runs the program of a case, if it has one and compiles, in all modes.
fn runs(case: &Case, stage: &AnyStage) {
    let promised = case.promised_prints();
    if stage.graph().programs.values().any(|p| p.entry)
        && let Ok(compiled) = case.program().try_compile(&MODES)
    {
        let done = compiled.run_on(&MODES, &[1, 2]);
        assert!(promised.is_empty() || done.prints == promised, "the case prints {:#?}", done.prints);
    } else {
        assert!(promised.is_empty(), "the case cannot run, so it prints nothing");
    }
}
