//! Parses texts with repeated statements twice, as runs and one by one, and compares the trees.

use super::*;
use crate::ast::{ExprId, RepeatedId, StmtId};
use crate::format;
use proptest::prelude::*;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Returns a tree as text, with the nodes themselves instead of their ids.
fn tree(module: &Module) -> String {
    let head = shown(module, &(&module.header, &module.items));
    format!("{head}\n{:?}", module.comments)
}

/// Returns the position of the first quote that no backslash escapes.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    let is_end = |c: char| {
        let end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        end
    };
    text.find(is_end).unwrap()
}

fn shown(module: &Module, node: &impl Debug) -> String {
    let text = format!("{node:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '"') {
        let (before, word) = rest.split_at(at);
        let end = |w: &str| w.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(w.len());
        let len = word.strip_prefix('"').map_or_else(|| end(word), |quoted| 2 + closing_quote(quoted));
        let (word, after) = word.split_at(len);
        out += before;
        let number = word.get(1..).and_then(|n| n.parse::<u32>().ok());
        out += &match (word.as_bytes()[0], number) {
            (b'e', Some(n)) => shown(module, &module.exprs[ExprId::from_u32(n)]),
            (b's', Some(n)) => shown(module, &module.stmts[StmtId::from_u32(n)]),
            _ if word == "Repeated" => {
                let (id, behind) = after[2..].split_once(')').unwrap();
                rest = behind;
                let id = RepeatedId::from_u32(id.parse().unwrap());
                let vertices = module.exprs.others(id).iter().map(|v| shown(module, v));
                let others: Vec<String> =
                    vertices.chain(module.exprs.other_rows(id).iter().map(|row| shown(module, row))).collect();
                out += &others.join(", ");
                continue;
            }
            _ => word.to_string(),
        };
        rest = after;
    }
    out + rest
}

/// Parses a text both ways and compares the trees; returns the number of runs.
fn check(text: &str) -> usize {
    let mut map = SourceMap::default();
    map.add("before.gir", "var before: f32;").unwrap();
    let file = map.add("test.gir", text).unwrap();
    let (session, mut diagnostics) = (Session::default(), Diagnostics::default());
    let at_once = parse(&map, file, &session, &mut diagnostics);
    let (single, problems) = parse_tokens(lex(text, map.file(file).base), text, map.file(file).base, &session);
    let mut reported = Diagnostics::default();
    reported.extend(problems);
    assert_eq!(format!("{diagnostics:?}"), format!("{reported:?}"), "{text}");
    assert_eq!(format(&at_once, text), format(&single, text), "{text}");
    let Lexed { runs, integers, .. } = lex_in_runs(text, map.file(file).base, usize::MAX);
    // A list of integers is another node, whose text is the same.
    if integers.is_empty() || !diagnostics.is_empty() {
        assert_eq!(tree(&at_once), tree(&single), "{text}");
    }
    runs.iter().for_each(|r| assert!(r.values.iter().all(|c| c.len() == r.starts.len())));
    runs.len()
}

/// Collects all `.gir` files under a directory of the workspace.
fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "gir") {
            out.push(path);
        }
    }
}

#[test]
fn files_have_the_same_tree_and_messages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![];
    ["examples", "tests/programs", "tests/diagnostics", "stdlib"].iter().for_each(|d| files(&root.join(d), &mut all));
    assert!(all.len() > 100, "only {} files", all.len());
    all.iter().filter_map(|path| std::fs::read_to_string(path).ok()).for_each(|text| _ = check(&text));
}

#[test]
fn statements_that_differ_in_integers_are_one_token() {
    let vertices = |body: &str| format!("compute set {{{body}\n}}\nvar x: f32[4];\n");
    let several =
        vertices("\n  vertex c(x[1], 20);\n  vertex c(x[300], 4);\n  vertex c(x[5], 0);\n  vertex c(x[6], 70);");
    assert_eq!(check(&several), 1);
    let tokens = lex_in_runs(&several, 0, usize::MAX).lexemes;
    assert_eq!(tokens.iter().filter(|l| l.token == Token::Vertex).count(), 1);
    assert_eq!(check(&vertices("vertex c;vertex c;vertex c;")), 1);
    assert_eq!(
        check(&vertices("\nvertex d(x[1]);\nvertex c(x[1]);\nvertex c(x[2]);\nvertex e(x[1]);\nvertex e(y: 2);")),
        1
    );
    assert_eq!(check(&vertices("\nvertex c(1);\nvertex c(2);\nvertex c(3);\nvertex d(1);\nvertex d(5);")), 2);
}

#[test]
fn statements_that_differ_in_more_are_taken_one_by_one() {
    let pairs = [
        ("vertex c(1);", "vertex c(1.5);"),
        ("vertex c(1);", "vertex c(01);"),
        ("vertex c(0x10);", "vertex c(0x11);"),
        ("vertex c(1);", "vertex c(1e5);"),
        ("vertex c(1);", "vertex c(12px);"),
        ("vertex c(1);", "vertex c(9999999999999999999);"),
        ("vertex c(x, 1);", "vertex c(y, 1);"),
        ("vertex c(1); // one", "vertex c(2); // two"),
        ("vertex c(1);", " vertex c(2);"),
        ("vertex c(i) for i in 0..2;", "vertex c(i) for i in 0..3;"),
        ("let a = 1;", "let a = 2;"),
        ("vertex c(1", "vertex c(2"),
    ];
    for (a, b) in pairs {
        assert_eq!(check(&format!("compute set {{\n{a}\n{b}\n}}\n")), 0, "{a} {b}");
    }
}

/// A tree is whole, or it is empty and the limit is reported.
#[test]
fn a_text_that_exceeds_the_memory_has_no_tree() {
    // Rows of four tokens in four bytes, each of which is repeated once; for some limit the tokens end with the item.
    let rows: String = (0..80).map(|k| format!("0:{n};0:{n};x:{n};x:{n};", n = k % 10)).collect();
    let text = format!("exchange a {{{rows}}} var y: f32;");
    let mut map = SourceMap::default();
    let file = map.add("test.gir", text.as_str()).unwrap();
    let whole = tree(&parse(&map, file, &Session::default(), &mut Diagnostics::default()));
    let mut refused = 0;
    for bytes in (0..60 * text.len() as u64).step_by(50) {
        let (mut session, mut diagnostics) = (Session::default(), Diagnostics::default());
        session.limits.compile_bytes = bytes;
        let module = parse_charged(&map, file, &session, &mut diagnostics);
        match diagnostics.iter().map(|d| d.code).collect::<Vec<_>>()[..] {
            [] => assert_eq!(tree(&module), whole, "{bytes}"),
            ["session::too_much_memory"] => {
                assert!(module.items.is_empty(), "{bytes}");
                refused += 1;
            }
            ref codes => panic!("{bytes}: {codes:?}"),
        }
    }
    assert!(refused > 0 && refused < 60 * text.len() / 50, "{refused}");
}

#[test]
fn an_error_is_reported_at_its_statement() {
    let runs = "vertex c(x[1]);\n vertex c(x[22]);\n vertex c(x[3]);\n";
    for broken in
        ["vertex c(x[1);", "vertex c(x[1])", "vertex c x[1];", "}", "(", "?", "vertex c(99999999999999999999);"]
    {
        check(&format!("compute set {{\n {runs} {broken}\n {runs} }}\n"));
        check(&format!("var y: f32 = {broken} compute set {{\n {runs} }}\n program p {{ vertex {runs} {broken} }}"));
    }
    check(&format!("fn f() {{ {runs} }} let l = [{runs}]; codelet c({runs}) {{ }}"));
}

#[test]
fn the_numbers_of_a_list_have_the_same_tree() {
    let numbers = |n: usize| (0..n).map(|k| (k * 7919 % 1000).to_string()).collect::<Vec<_>>().join(", ");
    let is_run = |t: Token| matches!(t, Token::Numbers | Token::Integers);
    let tokens = |text: &str| lex_in_runs(text, 0, usize::MAX).lexemes.iter().filter(|l| is_run(l.token)).count();
    let twenty = numbers(20);
    let taken = [
        format!("let l = [{twenty}];"),
        format!("let l = [{twenty},];"),
        format!("let l = [ -1,\n{},\n    x ];", twenty.replace(", 919", ",\r\n\t-9.5e-3 ,0x1f")),
        format!("let l = [[{twenty} ], [{twenty}, 3 + 4], [0.5, {twenty} // last\n]];"),
        format!("let l = a[1, {twenty}];"),
        format!("let l = [1, {twenty}, 99999999999999999999, 5];"),
        format!("let l = [1, {twenty}, 5 = 3];"),
    ];
    for text in taken {
        check(&text);
        assert!(tokens(&text) > 0, "{text}");
    }
    let left = [format!("let l = [{}];", numbers(16)), format!("f({twenty});"), format!("let l = [a, {twenty}; 3];")];
    for text in left {
        check(&text);
        assert_eq!(tokens(&text), 0, "{text}");
    }
}

#[test]
fn integers_of_a_list_have_the_same_text() {
    let pairs = |n: i64| (0..n).map(|k| format!("({}, {})", k * 7919 % 1000, k - 3)).collect::<Vec<_>>().join(", ");
    let tokens = |text: &str| lex_in_runs(text, 0, usize::MAX).integers;
    let twelve = pairs(12);
    let taken = [
        format!("let l = [{twelve}];"),
        format!("let l = [ (  -5 ,-6 ) ,{twelve} , ] ;"),
        format!("let l = [{}];", twelve.replace(", (", ",\r\n\t( ")),
        format!("copy a {{ x[i] <- y[j] for (i, j) in [{twelve}]; y[i] <- x[j] for (i, j) in [{twelve},]; }}"),
        format!("let l = f([{twelve}], [(1, 2, 3), {}]);", "(4, 5, -6), ".repeat(9)),
        format!("let l = [[{twelve}], [{twelve}] // last\n];"),
        format!("let l = [{twelve}] + ;"),
        format!("let l = [{}-5 , 6\n,];", "3, ".repeat(20)),
        format!("let l = [(1, 2), (3, 4), (5, 6), (7, 8), {twelve}\n]; let m = [(0, 1)];"),
    ];
    for text in taken {
        check(&text);
        assert!(!tokens(&text).is_empty(), "{text}");
    }
    let left = [
        format!("let l = [{}];", pairs(8)),
        format!("let l = [(0x1, 2), {twelve}];"),
        format!("let l = [{twelve}, (1, 2, 3)];"),
        format!("let l = [{twelve}, (01, 2)];"),
        format!("let l = [{twelve}, (1.5, 2)];"),
        format!("let l = [{twelve}, (- 1, 2)];"),
        format!("let l = [{twelve}, (1, 99999999999999999999)];"),
        format!("let l = [{twelve}, x];"),
        format!("let l = [(1, 2), // one\n {twelve}];"),
        format!("let l = [ // none\n {twelve}];"),
        format!("let l = [{twelve}, // last\n];"),
        format!("let l = f((1, 2), {twelve});"),
        format!("let l = [{twelve}; 3];"),
        format!("let l = [{}1.5];", "3, ".repeat(20)),
        format!("let l = [{}x];", "3, ".repeat(20)),
        format!("let l = [(3), {} 3];", "3, ".repeat(20)),
        format!("let l = [1, {twelve}];"),
    ];
    for text in left {
        check(&text);
        assert!(tokens(&text).is_empty(), "{text}");
    }
    assert_eq!(check("let l = 3;"), 0);
    let [found] = &tokens(&format!("let l = [{}];", pairs(9)))[..] else { panic!("one list") };
    assert_eq!((found.len(), found.width(), &found.entry(1)[..]), (9, 2, &[919, -2][..]));
    assert_eq!((found.span(0), found.span(1)), (Span::new(9, 16), Span::new(18, 27)));
}

/// Generates the statements of a compute set, most of whose numbers are in shortest form.
fn statements() -> impl Strategy<Value = String> {
    repeated(vec![
        "vertex c(x[#], y[#]) on tile(#);",
        "vertex lib.c<#, f32>(a: x[#..#, ...], b: (x[..# by #])) on ipu(#).tile(#);",
        "vertex c(-#, \"a#\", 2.5, [#, n + #], f(k: #).shape[#], x.y[# - 1..], true);",
        "vertex c(x.reshape([#, #])[#..=#]);",
        "#[quick(#)] vertex c(x[#]);",
        "vertex c(v[#]) for i in 0..#;",
        "vertex c(v[#]) on { #: 0..1; };",
        "let k = #;",
        "if # < 3 { vertex c(x[#]); vertex c(x[#]); } else { vertex c(#); }",
        "for i in 0..# { vertex c(x[#]); vertex c(x[#]); vertex c(x[#]); }",
        "// a comment #",
    ])
}

/// Generates the rows of a table.
fn rows() -> impl Strategy<Value = String> {
    repeated(vec![
        "#: #..#;",
        "#..#: x.0.w, live: #..#;",
        "#: -#..#;",
        "before: a.b[#, #], words: # -> [buffer(#..# by #)[#], a.b[# - 1, #]];",
        "piece(before, #, #, wide): #..#, to: [#, #..#];",
        "before(4 * i + #): x[#, i], words: # -> [y[#, #]] for i in 0..#;",
        "out(#):\n        tile: #,\n        bytes: #;",
        "on tile(#) { #: a; #: b; #: b; }",
        "// a comment #",
    ])
}

/// Generates runs of some forms, with a number for each `#`.
fn repeated(forms: Vec<&'static str>) -> impl Strategy<Value = String> {
    let number = prop_oneof![
        8 => (0..12000u32).prop_map(|n| n.to_string()),
        1 => prop::sample::select(vec!["007", "0x1f", "1_000", "18446744073709551615", "999999999999999999", "0"])
            .prop_map(String::from),
    ];
    let space = prop::sample::select(vec!["\n    ", "\n    ", "\n    ", " ", "\n\n"]);
    let row = prop::collection::vec(number, 8);
    let run = (prop::sample::select(forms), space, prop::collection::vec(row, 1..6)).prop_map(|(form, space, rows)| {
        let fill = |row: &Vec<String>| row.iter().fold(form.to_string(), |text, n| text.replacen('#', n, 1));
        let line = |row| format!("{space}{}{}", fill(row), if form.starts_with("//") { "\n" } else { "" });
        rows.iter().map(line).collect::<String>()
    });
    prop::collection::vec(run, 1..5).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_statements_have_the_same_tree(first in statements(), second in statements()) {
        check(&format!("compute a {{{first}}}\nprogram p {{ compute {{{second}}} }}\n"));
    }

    #[test]
    fn random_rows_have_the_same_tree(first in rows(), second in rows()) {
        check(&format!("exchange a {{{first}}}\nvar x: f32[8] on {{{second}}};\n"));
    }
}
