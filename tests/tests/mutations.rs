//! Mutated programs of the repository keep the properties that hold for any text: a fuzz run without a fuzzer.
//!
//! The corpus is every program of the repository, and `tests/fuzz/kept` for texts that once broke a property. Each
//! property is tried on a fixed number of texts, so that a run of the tests has a known length; with
//! `GIRDER_MUTANTS=100000` it is tried on as many, beginning with the same ones. `cargo fuzz run check` in `tests/fuzz`
//! goes on from there.

use girder_source::par_map;
use girder_tests::mutate::Corpus;
use girder_tests::properties;
use std::panic::{AssertUnwindSafe, catch_unwind};

const FOLDERS: [&str; 6] =
    ["tests/fuzz/kept", "tests/diagnostics", "tests/limits", "tests/passes", "tests/programs", "examples"];

/// Tries a property on the corpus's mutants.
fn holds(property: fn(&str), by_default: usize) {
    let corpus = Corpus::read(&FOLDERS);
    assert!(corpus.len() > 300, "the corpus has {} programs", corpus.len());
    let count = std::env::var("GIRDER_MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(by_default);
    let failing = |seed: usize| {
        let text = corpus.mutant(seed as u64);
        catch_unwind(AssertUnwindSafe(|| property(&text))).is_err().then_some(text)
    };
    let failed: Vec<String> = par_map(count, failing).into_iter().flatten().collect();
    let shown = failed.iter().take(3).map(|text| format!("----\n{text}\n"));
    assert!(failed.is_empty(), "{} of {count} texts break it\n{}", failed.len(), shown.collect::<String>());
}

#[test]
fn any_text_formats_to_a_fixed_point() {
    holds(properties::formats, 20_000);
}

#[test]
fn any_text_compiles_or_is_reported() {
    holds(properties::compiles_or_reports, 1_000);
}

#[test]
fn modes_agree_on_any_text() {
    holds(properties::modes_agree, 500);
}

/// Texts that once broke a property keep all of them.
#[test]
fn the_kept_corpus_holds() {
    for path in girder_tests::files::under("tests/fuzz/kept", ".gir") {
        let text = girder_tests::files::text(&path);
        for property in [properties::formats, properties::compiles_or_reports, properties::modes_agree] {
            property(&text);
        }
    }
}
