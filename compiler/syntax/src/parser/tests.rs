//! Items in pieces of any size against items as a whole.

use super::*;
use std::path::{Path, PathBuf};

/// The tree and the messages of a text.
fn shown(text: &str, least: usize) -> (String, String) {
    let (mut map, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let file = map.add("test.gir", text).unwrap();
    let module = parse_in_pieces(&map, file, &Session::default(), &mut diagnostics, least);
    (format!("{module:?}"), format!("{diagnostics:?}"))
}

fn check(text: &str, what: &str) {
    let whole = shown(text, usize::MAX / 2);
    for least in [1, 7, 40] {
        assert!(shown(text, least) == whole, "{what} in pieces of {least}");
    }
}

/// All `.gir` files under a directory of the workspace.
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
fn pieces_make_the_tree_and_the_messages_of_the_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![];
    ["examples", "tests/programs", "tests/diagnostics", "stdlib"].iter().for_each(|d| files(&root.join(d), &mut all));
    assert!(all.len() > 100, "only {} files", all.len());
    for path in all {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        check(&text, &path.display().to_string());
    }
}

#[test]
fn every_form_of_statement_moves() {
    let text = "program p(n: int) {
        let (a, b): (int, [float]) = (1 + n, [2.0, -x[..3 by 2, ..., i]]); var v: f32[n, 2 * n] = 0.0 on tile(1);
        map v[i] on tile(i) for i in 0..4; var w: f32[4] on { 0: 0..2; 1: i + 2..i + 3 for i in 0..2; };
        #[note(n)] v <- v + 1.0; v[0] *= w[1]; x = y; f(a, k: b).g; while any(v > 0.0) { v <- w; break; }
        for (i, _) in l, j in 0..i { continue; } repeat k in 0..n by 2 { call q(n); return a; }
        compute set { let k = 3; #[quick(k)] vertex c<f32, n>(a: v[k..], v) on tile(k) for i in 0..k;
            for i in 0..2 { vertex c(v[i]); } if n > 2 { vertex c(v); } else if n > 3 { vertex c(w); } else { } vertex c(w); }
        copy { v[i] <- w[i] for i in 0..4; for i in 0..n { v[i] <- w[n - i]; } }
        par { on tile(0) { v <- w; } on tile(1..3) { w <- v; } } execute s; exchange e; v <- w; { v <- w; } v <- w;
        if n > 1 { v <- w; } else if n > 2 { w <- v; } with block(\"b\") { v <- w; } switch n { 0, 1..3 => { v <- w; } _ => { } }
        let l = list i in 0..n where i > 2 { i * i }; let m = [0; n]; let c = if n > 1 { \"a\" } else { { \"b\" } }; on ipu(n) { v <- w; }
        let z = !(n < 2) && true || 0x1f == n; pipeline(depth: n) { v <- w; } a + n
    }
    compute named { vertex c(v); vertex c(w[n]) on tile(n); vertex d(v); }";
    assert_eq!(shown(text, usize::MAX / 2).1, shown("", usize::MAX / 2).1);
    check(text, "all forms");
    check(&text.replace("v <- w;", "v <- w"), "broken statements");
    check(&text.replace("vertex d(v)", "vertex d(v))"), "an unbalanced bracket");
}

#[test]
fn long_items_are_cut() {
    let tokens = lex(
        &format!("program p() {{ {} compute {{ {} }} x = 1; }}", "x = 1; ".repeat(10), "vertex c(v); ".repeat(9)),
        0,
    );
    let text = "x".repeat(400);
    let text = pieces::Text { text: &text, base: 0, limit: 100, least: 8 };
    let (left, parsed) = pieces::parse_apart(&tokens.lexemes, &text).unwrap();
    assert_eq!((left.len(), parsed.len()), (5 + 5 + 2 + 4 + 6 + 1 + 4 + 1, 5 + 4));
}
