//! Every stage of every program prints as text that reads back, prints again to the same bytes, and has the same
//! outcome.
//!
//! The programs are the examples and `tests/programs/<claim>.gir`, each with its claim in its first line and the lines
//! that it prints, computed by hand or by NumPy, in comments `// prints: …` at its end.

use girder::Stage;
use girder_engine::Mode;
use girder_source::par_map_slice;
use girder_tests::cases::Case;
use girder_tests::{Program, files};
use std::path::{Path, PathBuf};

const PROGRAMS: &str = "tests/programs";

#[test]
fn programs_print_what_they_should_in_every_mode() {
    let programs = files::under(PROGRAMS, ".gir");
    assert!(programs.len() >= 25, "only {} programs", programs.len());
    report(par_map_slice(&programs, |path| {
        let case = Case::read(path);
        let expected = case.promised_prints();
        let compiled = match Program::small(path).try_compile(&girder_tests::MODES) {
            Ok(compiled) => compiled,
            Err(failure) => return Some(format!("{} does not compile:\n{failure}", path.display())),
        };
        let done = compiled.run_everywhere();
        let right = done.prints == expected && !expected.is_empty() && done.failure.is_none();
        (!right).then(|| format!("{}\n  expected {expected:#?}\n  printed {:#?}", path.display(), done.prints))
    }));
}

#[test]
fn every_stage_of_a_program_reads_back() {
    let programs = files::under(PROGRAMS, ".gir");
    report(par_map_slice(&programs, |path| round_trip(&Program::small(path), path, &Stage::ALL)));
}

#[test]
fn every_stage_of_an_example_reads_back() {
    let examples = ["heat", "matvec", "operations", "suffix-sum", "variables"];
    report(par_map_slice(&examples, |name| {
        let path = PathBuf::from(format!("examples/{name}/{name}.gir"));
        round_trip(&Program::file(&path), &path, &Stage::ALL)
    }));
}

/// The first stages of `digits`, whose outcome is compared too.
#[test]
fn the_first_stages_of_digits_read_back() {
    let path = Path::new("examples/digits/digits.gir");
    report(vec![round_trip(&Program::file(path).arg("steps=1"), path, &[Stage::Graph, Stage::RaceFree])]);
}

/// A copy between replicas may move words of a replica between processors of its own.
#[test]
fn every_stage_of_a_program_of_replicas_reads_back() {
    let text = "use collectives;
        var a: f32[8] on tile(35);
        var b: f32[8] on tile(37);
        program main() {
            a <- f32(replica_index);
            b <- f32(replica_index);
            let s = collectives.all_reduce([a, b]);
            print(\"a\", s[0]);
        }";
    let program = Program::text(text).target("small-8").replicas(2);
    report(vec![round_trip(&program, Path::new("replicas.gir"), &Stage::ALL)]);
}

/// Every stage of the programs with long texts, which would run for long: their outcome is not compared.
///
/// `heat` has 1 instead of 64 million points here, as its text at full size has 19 MB; `cargo bench -p girder-tests
/// --bench read_back` reads all programs back at full size.
#[test]
fn every_stage_of_a_long_text_is_a_fixed_point() {
    let mut programs = files::under("examples/validation", ".gir");
    assert!(programs.len() >= 8, "only {} programs", programs.len());
    programs.push(PathBuf::from("examples/digits/digits.gir"));
    let all: Vec<(&PathBuf, Stage)> = programs.iter().flat_map(|p| Stage::ALL.map(|stage| (p, stage))).collect();
    report(par_map_slice(&all, |(path, to)| {
        let program = Program::file(path);
        let large = path.ends_with("examples/validation/heat.gir");
        fixed_point(&if large { program.arg("size=1000") } else { program }, path, *to).err()
    }));
}

fn report(wrong: Vec<Option<String>>) {
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prints stages of a program and reads them back. Returns what is wrong.
fn round_trip(program: &Program, path: &Path, stages: &[Stage]) -> Option<String> {
    let expected = program.compile(&[Mode::Fast]).run(Mode::Fast, 1);
    for &to in stages {
        let resumed = match fixed_point(program, path, to) {
            Ok(resumed) => resumed,
            Err(wrong) => return Some(wrong),
        };
        let say = |what: &str, text: &str| Some(format!("{}, {}: {what}\n{text}", path.display(), to.name()));
        let done = match resumed.try_compile(&[Mode::Fast]) {
            Ok(compiled) => compiled.run(Mode::Fast, 1),
            Err(failure) => return say("does not compile", &failure.to_string()),
        };
        if done.prints != expected.prints || done.packets != expected.packets {
            return say("prints something else", &format!("{:#?}\n{:#?}", expected.prints, done.prints));
        }
        if done.variables != expected.variables {
            return say("leaves other values", "");
        }
    }
    None
}

/// Prints a stage of a program, reads it back and prints it again. Returns the program of the text, or what is wrong.
fn fixed_point(program: &Program, path: &Path, to: Stage) -> Result<Program, String> {
    let say = |what: &str, text: &str| format!("{}, {}: {what}\n{text}", path.display(), to.name());
    let stage = program.stage(to).map_err(|failure| say("is not reached", &failure.to_string()))?;
    let text = girder::text::print(&stage, program.machine());
    let resumed = program.resumed(text.clone());
    let again = resumed.stage(to).map_err(|failure| say("does not read back", &failure.to_string()))?;
    let again = girder::text::print(&again, program.machine());
    if let Some((a, b)) = text.lines().zip(again.lines()).find(|(a, b)| a != b) {
        return Err(say("prints differently the second time", &format!("{a}\n{b}")));
    }
    if text != again {
        return Err(say("has another length the second time", ""));
    }
    Ok(resumed)
}
