//! Tests of the diagnostics of broken text: each case marks the span of its error with `«` and `»`.

use girder_source::{Diagnostics, Session, SourceMap};
use girder_syntax::{ast, parse};

fn parsed(text: &str) -> (ast::Module, SourceMap, Diagnostics) {
    let mut map = SourceMap::default();
    let file = map.add("test.gir", text).expect("small");
    let mut diagnostics = Diagnostics::default();
    let module = parse(&map, file, &Session::default(), &mut diagnostics);
    (module, map, diagnostics)
}

/// Returns the marked spans of a text, and the text without marks.
fn unmarked(marked: &str) -> (String, Vec<(u32, u32)>) {
    let (mut text, mut places) = (String::new(), vec![]);
    for c in marked.chars() {
        match c {
            '«' => places.push((text.len() as u32, 0)),
            '»' => places.last_mut().expect("an opening mark").1 = text.len() as u32,
            c => text.push(c),
        }
    }
    (text, places)
}

/// Asserts that the errors of a text are at its marks and say, in order, what is expected: a code and words of the
/// message or the help.
fn check(marked: &str, expected: &[(&str, &str)]) {
    let (text, places) = unmarked(marked);
    let (_, map, diagnostics) = parsed(&text);
    let shown: String = diagnostics.iter().map(|d| d.render(&map, false, 100)).collect();
    assert_eq!(diagnostics.len(), expected.len(), "in\n{marked}\n{shown}");
    assert_eq!(places.len(), expected.len(), "marks in\n{marked}\n{shown}");
    for ((d, (code, words)), (lo, hi)) in diagnostics.iter().zip(expected).zip(places) {
        let report = format!("{} / {}", d.message, d.help.as_deref().unwrap_or(""));
        assert_eq!(d.code, *code, "{report} in\n{marked}");
        assert!(report.contains(words), "`{words}` is not in `{report}`");
        let at = d.labels[0].span;
        assert_eq!((at.lo - 1, at.hi - 1), (lo, hi), "the span of `{report}` in\n{marked}");
    }
}

/// Checks the errors of a statement inside a program.
fn check_stmt(marked: &str, words: &str) {
    check(&format!("program p {{\n    let a = 1;\n    {marked}\n    let z = 2;\n}}"), &[("syntax::unexpected", words)]);
}

#[test]
fn a_missing_semicolon_is_reported_once_and_both_statements_stay() {
    let (text, _) = unmarked("program p { let a = 1\n «let» b = 2; a = b\n «c» = a; }");
    let (module, _, diagnostics) = parsed(&text);
    assert_eq!(diagnostics.len(), 2);
    let ast::ItemKind::Program(p) = &module.items[0].kind else { panic!("a program") };
    assert_eq!(p.body.stmts.len(), 4);
    check_stmt("let b = 1\n    «let» c = 2;", "expected `;` after `1`, found `let`");
    check_stmt("a = b\n    «c» = d;", "expected `;` after `b`, found `c`");
    check_stmt("f(a)\n    «g»(b);", "expected `;` after `)`, found `g`");
    check_stmt("if a { return 1 «}»", "expected `;` after `1`, found `}`");
    check("var x: f32\n«var» y: f32;", &[("syntax::unexpected", "expected `;` after `f32`")]);
    check("use nn\n«fn» f() {}", &[("syntax::unexpected", "expected `;` after `nn`, found `fn`")]);
}

#[test]
fn one_error_does_not_hide_the_next() {
    check(
        "program p {\n    x = «=» 1;\n    y <- «;»\n    for i in «{» ok(); } «;»\n    z y «z»;\n}\n\
         var a: «;»\nlet b = «;»",
        &[
            ("syntax::unexpected", "expected an expression after `=`, found `=`"),
            ("syntax::unexpected", "expected an expression after `<-`, found `;`"),
            ("syntax::unexpected", "expected an expression after `in`, found `{`"),
            ("syntax::unexpected", "this `;` ends nothing"),
            ("syntax::unexpected", "expected `in` after `y`, found `z`"),
            ("syntax::unexpected", "expected a type after `:`, found `;`"),
            ("syntax::unexpected", "expected an expression after `=`, found `;`"),
        ],
    );
    check(
        "fn f(x: «)» { y = «=» 1; }\ncompute c { vertex a«(»; vertex b(x: 1) «x»; vertex c(); }",
        &[
            ("syntax::unexpected", "expected a type after `:`, found `)`"),
            ("syntax::unexpected", "expected an expression after `=`, found `=`"),
            ("syntax::unclosed", "this `(` is not closed"),
            ("syntax::unexpected", "expected `;`, `on` or `for` after `)`, found `x`"),
        ],
    );
}

#[test]
fn brackets_are_matched_with_what_was_meant() {
    let unclosed = |words: &'static str| [("syntax::unclosed", words)];
    check("program p «{» repeat 3 { f(); }\nfn g() { 3 }", &unclosed("this `{` is not closed"));
    check("program p { f«(»a, [1, 2]; g(b); }", &unclosed("this `(` is not closed"));
    check("program p { let a = f(«[»1, 2);\n let b = 3; }", &unclosed("this `[` is not closed"));
    check("program p { let a = «[»1, 2;\n let b = 3; }", &unclosed("this `[` is not closed"));
    check("program p { f(a)«)»; g(b); }", &unclosed("this `)` closes nothing"));
    check("program p { }\n«}»\nvar x: f32;", &unclosed("this `}` closes nothing"));
    check("program p { a = [0; 3]; }\ngrad f(x; y; z) {}", &[]);
    check("program p «{» a();", &unclosed("this `{` is not closed"));
}

#[test]
fn typical_mistakes_have_their_own_help() {
    check_stmt("copy { for i in 0..4 { «let» j = i; a[i] <- b[j]; } }", "a `copy` holds rows");
    check_stmt("copy { «if» a { b <- c; } }", "a `copy` holds rows");
    check_stmt("let («mut» a, b) = c;", "`mut` stands before the whole pattern");
    check_stmt("let (a, «mut» b) = c;", "`mut` stands before the whole pattern");
    check_stmt("let «on» = 3;", "`on` is a word of the language and cannot be a name");
    check_stmt("let c = a < b «<» c;", "comparisons do not chain");
    check_stmt("if a «<-»3 { f(); }", "write `a < -b`");
    check_stmt("if a «=» 3 { f(); }", "`==` compares");
    check_stmt("let b «<-» 3;", "takes `=`");
    check_stmt("copy { a «=» b; }", "`to <- from;`");
    check_stmt("let c = a «and» b;", "written `&&`");
    check_stmt("a+«+»;", "write `x += 1`");
    check_stmt("a @«=» b;", "x <- x @ y");
    check_stmt("f(x «=» 3);", "named with `:`");
    check_stmt("for i «=» 0..3 { f(); }", "write `i in 0..n`");
    check_stmt("if a { f(); }«;»", "remove it");
    check_stmt(
        "if a { f(); } «else» { } else { }".replace("«else» { } else", "else { } «else»").as_str(),
        "no `if` before it",
    );
    check_stmt("let b = 1.«;»", "a digit after its point");
    check_stmt("let b = «.»5;", "a digit before its point");
    check_stmt("let b = a «as» f32;", "converted by calls");
    check_stmt("let b = nn:«:»relu(a);".replace(":«:»", "«:»:").as_str(), "joined with `.`");
    check_stmt("if a «return»;", "a body is written in braces");
    check_stmt("if a { f(); } elif b «{» g(); }", "write `else if`");
    check_stmt("repeat f() in 0..3 { g(); }".replace("f()", "«f()»").as_str(), "is not a name");
    check("«function» f() { }", &[("syntax::unexpected", "start with `fn`")]);
    check("«x» <- 3;", &[("syntax::unexpected", "in the body of a `fn` or `program`")]);
    check("fn f() { }«;»", &[("syntax::unexpected", "needs no `;`")]);
    check("fn f() «:» f32 { }", &[("syntax::unexpected", "follows `->`")]);
    check("var x «=» 3;", &[("syntax::unexpected", "a variable needs a type")]);
    check("grad f(x; y«)» { }", &[("syntax::unexpected", "parameters, results and their adjoints")]);
    check("use nn;\n«module m;»", &[("syntax::unexpected", "make it the first line")]);
}

#[test]
fn errors_of_the_lexer_are_reported_once_at_their_spans() {
    check("let a = «'b'»;", &[("syntax::character", "double quotes")]);
    check("let a = b «ä» c;", &[("syntax::character", "unexpected character `ä`")]);
    check("let a = b «$$» c;", &[("syntax::character", "unexpected characters")]);
    check("let a = «\"b;»\nlet b = 2;", &[("syntax::string", "not closed")]);
    check("let a = \"b«\\q»\";", &[("syntax::string", "unknown escape")]);
    check("let a = «18446744073709551616»;", &[("syntax::number", "does not fit 64 bits")]);
    check(
        "let a = «12px» + «0b12» + «0x» + «1e999» + «1e»;",
        &[
            ("syntax::number", "`p` is not allowed"),
            ("syntax::number", "`2` is not allowed"),
            ("syntax::number", "has no digits"),
            ("syntax::number", "larger than any float"),
            ("syntax::number", "has no digits"),
        ],
    );
    check("«/*» a comment */ let a = 1;", &[("syntax::character", "start with `//`")]);
    check("let a = 1; «# a comment»\nlet b = 2;", &[("syntax::character", "start with `//`")]);
}

#[test]
fn files_of_every_shape_are_read() {
    for text in ["", "\n\n", "\u{feff}", "// only a comment", "\u{feff}use nn;\r\n// ä\r\nlet s = \"ß\";\r\n"] {
        let (_, map, diagnostics) = parsed(text);
        assert!(
            diagnostics.is_empty(),
            "{text:?}: {}",
            diagnostics.iter().map(|d| d.render(&map, false, 99)).collect::<String>()
        );
    }
    let (_, _, diagnostics) = parsed(&"$ ; ".repeat(1000));
    assert_eq!(diagnostics.len(), 101);
    assert_eq!(diagnostics.iter().last().map(|d| d.code), Some("syntax::many"));
}

#[test]
fn no_nesting_is_deep_enough_to_overflow_the_stack() {
    const N: usize = 20_000;
    let cases = [
        ("let x = ", "(", "1", ")", ";"),
        ("let x = ", "-", "1", "", ";"),
        ("let x = ", "1 + (", "1", ")", ";"),
        ("let x = a", ".b", "", "", ";"),
        ("let x = a", "()", "", "", ";"),
        ("let x = ", "f([", "1", "])", ";"),
        ("let x = ", "sum i in r { ", "1", "}", ";"),
        ("let ", "(", "x", ")", " = 1;"),
        ("var x: ", "[", "f32", "]", ";"),
        ("program p { ", "if a { } else ", "{ }", "", "}"),
        ("program p ", "{", "", "}", ""),
        ("compute c { ", "if a { } else ", "{ }", "", "}"),
        ("compute c { ", "for i in r { ", "", "}", "}"),
        ("layout ", "{ on a ", "{ }", "}", ""),
        ("let x = ", "if ", "a", " { }", ";"),
        ("let x = ", "{", "", "", ";"),
        ("", "= ", "", "", ""),
        ("", "fn ", "", "", ""),
    ];
    for (start, open, inner, close, end) in cases {
        let text = [start, &open.repeat(N), inner, &close.repeat(N), end].concat();
        let (module, _, diagnostics) = parsed(&text);
        assert!(!diagnostics.is_empty(), "{start}{open}…");
        assert!(diagnostics.len() <= 101);
        girder_syntax::format(&module, &text);
    }
    // Length alone does not nest.
    let long = format!("let x = {}1;\n", "1 + 2 * ".repeat(5 * N));
    let (module, _, diagnostics) = parsed(&long);
    assert!(diagnostics.is_empty());
    let formatted = girder_syntax::format(&module, &long);
    let (again, _, diagnostics) = parsed(&formatted);
    assert!(diagnostics.is_empty());
    assert_eq!(girder_syntax::format(&again, &formatted), formatted);
    let deepest = format!("let x = {}1{};", "(".repeat(190), ")".repeat(190));
    assert!(parsed(&deepest).2.is_empty());
}
