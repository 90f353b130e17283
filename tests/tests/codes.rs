//! `girder explain` has an entry for every code, and its examples are right: the first program of an entry leads to the
//! code; the others lead to no report and print the lines of their comments `// prints: …`. The blocks of commands run
//! in `compiler/cli/tests/command.rs`.

use girder_source::par_map_slice;
use girder_tests::{Program, Report, files};

/// An entry: its code, its summary, and its blocks of code with their languages.
struct Entry {
    code: String,
    summary: String,
    blocks: Vec<(String, String)>,
}

/// Reads all entries of `compiler/cli/explain`.
fn entries() -> Vec<Entry> {
    let pages = files::under("compiler/cli/explain", ".md");
    pages.iter().flat_map(|p| files::text(p).split("## ").skip(1).map(entry).collect::<Vec<_>>()).collect()
}

fn entry(text: &str) -> Entry {
    let (code, rest) = text.split_once("\n\n").expect("a heading and its text");
    let summary = rest.lines().next().unwrap_or_default().to_string();
    let blocks = rest.split("```").skip(1).step_by(2).filter_map(|b| b.split_once('\n'));
    let blocks = blocks.map(|(language, text)| (language.to_string(), text.to_string())).collect();
    Entry { code: code.to_string(), summary, blocks }
}

#[test]
fn every_code_is_explained_and_every_explanation_has_a_use() {
    let explained: Vec<String> = entries().into_iter().map(|e| e.code).collect();
    let mut sorted = explained.clone();
    sorted.sort();
    assert_eq!(explained, sorted, "entries are sorted by code");
    let used = files::codes();
    let missing: Vec<_> = used.iter().filter(|c| !explained.contains(c)).collect();
    assert!(missing.is_empty(), "compiler/cli/explain has no entry for {missing:?}");
    let idle: Vec<_> = explained.iter().filter(|c| !used.contains(c)).collect();
    assert!(idle.is_empty(), "no source reports {idle:?}");
}

#[test]
fn summaries_are_lower_case_sentences_without_a_stop() {
    for e in entries() {
        let lower = e.summary.starts_with(|c: char| !c.is_ascii_uppercase());
        assert!(lower && !e.summary.ends_with('.') && !e.summary.is_empty(), "{}: {}", e.code, e.summary);
    }
}

#[test]
fn wrong_examples_lead_to_their_code_and_right_ones_to_nothing() {
    let wrong: Vec<String> = par_map_slice(&entries(), check).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(e: &Entry) -> Vec<String> {
    let programs: Vec<&String> =
        e.blocks.iter().filter(|(language, _)| language == "gir").map(|(_, text)| text).collect();
    let mut problems = vec![];
    if programs.len() == 1 {
        problems.push(format!("{} has a wrong example without a right one", e.code));
    }
    for (k, &text) in programs.iter().enumerate() {
        let report = Report::of(&Program::text(text));
        let holds = if k == 0 { report.list.iter().any(|r| r.code == e.code) } else { report.list.is_empty() };
        // A program with so many errors that some are hidden is too long for an explanation.
        let is_too_long = k == 0 && e.code == "syntax::many";
        if !holds && !is_too_long {
            problems.push(format!("{}, block {k}:\n{text}{}", e.code, report.texts.concat()));
        }
        let promised: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("// prints: ")).collect();
        if !promised.is_empty() && report.prints != promised {
            problems.push(format!("{}, block {k}:\n{text}prints {:#?}", e.code, report.prints));
        }
    }
    problems
}
