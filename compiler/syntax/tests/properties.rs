//! Properties of any text: the parser ends and stays inside the file, formatting is idempotent, and comments survive
//! it.

use girder_source::{Diagnostics, Session, SourceMap};
use girder_syntax::{ast, format, parse, token};
use proptest::prelude::*;

const PROGRAMS: [&str; 7] = [
    include_str!("programs/cnn_pipeline.gir"),
    include_str!("programs/heat.gir"),
    include_str!("programs/matvec.gir"),
    include_str!("programs/matvec_cut.gir"),
    include_str!("programs/perceptron.gir"),
    include_str!("programs/printed_stage.gir"),
    include_str!("programs/every_form.gir"),
];

fn parsed(text: &str) -> (ast::Module, Diagnostics) {
    let mut map = SourceMap::default();
    let file = map.add("test.gir", text).expect("small");
    let mut diagnostics = Diagnostics::default();
    let module = parse(&map, file, &Session::default(), &mut diagnostics);
    for label in diagnostics.iter().flat_map(|d| &d.labels) {
        assert_eq!(map.file_of(label.span), Some(file), "a label outside the file");
        assert!(label.span.lo <= label.span.hi && label.span.hi <= 1 + text.len() as u32);
    }
    (module, diagnostics)
}

/// Checks that formatting a text without errors twice equals formatting it once.
fn check(text: &str) {
    let (module, diagnostics) = parsed(text);
    let once = format(&module, text);
    if diagnostics.is_empty() {
        let (again, after) = parsed(&once);
        assert!(after.is_empty(), "{:?}\n{text}\n---\n{once}", after.iter().collect::<Vec<_>>());
        assert_eq!(once, format(&again, &once), "of\n{text}");
        let words = |m: &ast::Module| m.comments.iter().map(|c| c.text.clone()).collect::<Vec<_>>();
        assert_eq!(words(&module), words(&again), "comments of\n{text}");
    }
}

/// Returns the tokens of a program as text.
fn pieces(program: &str) -> Vec<String> {
    let lexemes = token::lex(program, 1).lexemes;
    lexemes.iter().map(|l| program[l.span.lo as usize - 1..l.span.hi as usize - 1].to_string()).collect()
}

fn word() -> impl Strategy<Value = String> {
    let words: Vec<String> = PROGRAMS.iter().flat_map(|p| pieces(p)).collect();
    prop_oneof![
        9 => proptest::sample::select(words),
        1 => proptest::sample::select(vec!["\n", "// c\n", "'", "\"", "0x", "1e", "#[", "ä", "/*", "\r\n"])
            .prop_map(String::from),
    ]
}

#[derive(Clone, Debug)]
enum Change {
    Remove,
    Insert(String),
    Replace(String),
    NewLine,
    Comment,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Remove),
        word().prop_map(Change::Insert),
        word().prop_map(Change::Replace),
        Just(Change::NewLine),
        Just(Change::Comment),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_to_its_end(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn any_words_are_parsed_to_their_end(words in proptest::collection::vec(word(), 0..120)) {
        check(&words.join(" "));
    }

    #[test]
    fn changed_programs_are_parsed_to_their_end(
        program in 0..PROGRAMS.len(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), change()), 1..6),
    ) {
        let mut words = pieces(PROGRAMS[program]);
        for (at, change) in changes {
            let at = at.index(words.len());
            match change {
                Change::Remove => drop(words.remove(at)),
                Change::Insert(w) => words.insert(at, w),
                Change::Replace(w) => words[at] = w,
                Change::NewLine => words.insert(at, "\n\n".into()),
                Change::Comment => words.insert(at, "// a comment\n".into()),
            }
        }
        check(&words.join(" "));
    }

    #[test]
    fn comments_anywhere_survive(
        program in 0..PROGRAMS.len(),
        places in proptest::collection::vec((any::<proptest::sample::Index>(), any::<bool>()), 1..12),
    ) {
        let mut words = pieces(PROGRAMS[program]);
        for (i, (at, own)) in places.into_iter().enumerate() {
            let at = at.index(words.len() + 1);
            words.insert(at, format!("{}// comment {i}\n", if own { "\n" } else { "" }));
        }
        let text = words.join(" ");
        let (_, diagnostics) = parsed(&text);
        prop_assert!(diagnostics.is_empty());
        check(&text);
    }
}
