//! Every form of expression and statement is the same after printing and reading; what has no text is refused.

mod common;

use common::runs::compare_runs;
use common::same_codelet;
use girder_codelet::verify;
use girder_ir::codelet::{Codelet, Elementary, Expr, ExprKind, Stmt};
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostics, Session, SourceMap};
use girder_syntax::ast;
use girder_typing::print::{Printed, Unprintable, codelet_text};
use girder_typing::{Meaning, ModuleRef, Scope, specialise};

/// A text and the prelude.
struct World {
    trees: [ast::Module; 2],
}

impl World {
    fn new(source: &str) -> World {
        let prelude = girder_stdlib::module("prelude").expect("the prelude");
        let trees = [source, prelude].map(|text| {
            let (mut map, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
            let file = map.add("test.gir", text).expect("small");
            let tree = girder_syntax::parse(&map, file, &Session::default(), &mut diagnostics);
            let reports: String = diagnostics.iter().map(|d| d.render(&map, false, 120)).collect();
            assert!(reports.is_empty(), "{reports}\n{text}");
            tree
        });
        World { trees }
    }

    fn codelet(&self) -> Codelet {
        let item = self.trees[0].items.iter().find_map(|i| match &i.kind {
            ast::ItemKind::Codelet(c) => Some((c, &i.attrs)),
            _ => None,
        });
        let ((item, attrs), mut diagnostics) = (item.expect("a codelet"), Diagnostics::default());
        let made = specialise(self, ModuleRef(0), item, attrs, &[], &Session::default(), &mut diagnostics);
        let reports: Vec<_> = diagnostics.iter().map(|d| format!("{}: {}", d.code, d.message)).collect();
        made.unwrap_or_else(|_| panic!("{reports:?}"))
    }
}

impl Scope for World {
    fn lookup(&self, _: ModuleRef, path: &str) -> Option<Meaning<'_>> {
        let path = path.strip_prefix("prelude.").unwrap_or(path);
        (0u32..2).zip(&self.trees).find_map(|(k, tree)| {
            tree.items.iter().find_map(|i| match &i.kind {
                ast::ItemKind::Fn(f) if f.codelet && f.name.dotted() == path => {
                    Some(Meaning::CodeletFn { module: ModuleRef(k), item: f })
                }
                _ => None,
            })
        })
    }

    fn elementary(&self, module: ModuleRef, item: &ast::Fn) -> Option<Elementary> {
        if module.0 == 1 { Elementary::from_name(&item.name.dotted()) } else { None }
    }

    fn tree(&self, module: ModuleRef) -> &ast::Module {
        &self.trees[module.0 as usize]
    }
}

/// Prints a codelet, reads the text, and compares; returns the text.
fn again(codelet: &Codelet) -> String {
    verify(codelet).expect("a codelet");
    let Printed { text, .. } = codelet_text(codelet, "again").expect("a text");
    let read = World::new(&text).codelet();
    if let Err(why) = same_codelet(codelet, &read) {
        panic!("{why}\n{text}");
    }
    compare_runs(codelet, &read);
    text
}

/// Reads a codelet, prints it, and compares; returns the text.
fn check(source: &str) -> String {
    again(&World::new(source).codelet())
}

fn body(statements: &str) -> String {
    check(&format!(
        "codelet c(in x: f32[n], in u: i32[n, 4], in p: bool, inout y: f32[n], out z: i64, const k: i32) {{
             {statements}
         }}"
    ))
}

#[test]
fn arithmetic_of_all_types() {
    for ty in ["u8", "u32", "i32", "u64", "i64"] {
        check(
            &format!(
                "codelet c(in x: {ty}[n], out y: {ty}[n], const k: {ty}) {{
                 for i in 0..n {{
                     let a = x[i] + k * 3 - x[i] / 7 % (k << 2) ^ (x[i] >> 1) & ~x | 1;
                     y[i] = min(max(a, 2), popcount(x[i]) + clz(a)) + abs(x[i]) + select(a < 3, a, 5);
                 }}
             }}"
            )
            .replace("~x", "!x[i]"),
        );
    }
    for ty in ["f32", "f64"] {
        check(&format!(
            "codelet c(in x: {ty}[n], out y: {ty}[n], const k: {ty}) {{
                 for i in 0..n {{
                     let a = -x[i] + 0.1 * k - x[i] / 1e-30 % 3.4e38;
                     y[i] = fma(sqrt(a), floor(x[i]), ceil(-0.0 + a)) + round(a) * trunc({ty}.inf - a)
                         + {ty}.nan + {ty}.max * {ty}.epsilon + {ty}(i) + {ty}(a > 1.0) + {ty}(u8(a));
                 }}
             }}"
        ));
    }
}

#[test]
fn constants_are_not_folded_and_keep_their_bits() {
    body("z = i64(3) & 4; y[0] = f32(2.0) + 3.0; y[1] = -f32(2.0); y[2] = f32(int(5));");
    body("y[0] = f32.bits(0x7fc00001); y[1] = f32.bits(0xff800000); y[2] = -0.0; y[3] = f32(i64.min);");
    body("z = i64.bits(3) + i64.bits(4); z = -9223372036854775808; z = min(i64.bits(3), 4) << i64.bits(1);");
    body("let b = bool(1) & p; if b && bool(0) || !bool(1) { z = 1; } assert(bool(0), \"a \\\"quoted\\\" word\");");
    body("let mut a = 3; let mut b = 2.5; let mut c = true; a += 1; b = 3.0; c = a > 2; if c { z = a; y[0] = b; }");
}

#[test]
fn branches_are_statements_or_values() {
    body("let t = if x[0] > 1.0 { x[n - 1] / 3.0 } else { 2.0 }; y[0] = t;");
    body("let t = if p { let q = x[0] + 1.0; q * q } else if x[1] > 2.0 { 1.0 } else { x[2] }; y[0] = t;");
    body("let (a, b) = if p { (x[0], u[0, 1]) } else { z = 3; (1.0, 2) }; y[b] = a;");
    body("let t = switch u[0, 0] { 0 => { 1.0 } 1, 3..5 => { 2.0 } _ => { 3.0 } }; y[0] = t;");
    body("if p { y[0] = 1.0; } else if u[0, 0] == 3 { y[1] = 1.0; return; } else { z = 0; } y[2] = 4.0;");
    body("let t = if p { return; 1.0 } else { x[0] }; y[0] = t;");
    body("let t = p && (sum i in 0..n { x[i] }) > 1.0; if t || any i in 0..n { x[i] < 0.0 } { z = 1; }");
}

#[test]
fn loops_jump() {
    body("for i in 0..n, j in 0..4 { if u[i, j] == 3 { break; } if u[i, j] == 2 { continue; } y[i] = x[i]; }");
    body("for i in 0..n { for j in 0..4 { if u[i, j] == 3 { break; } y[i] = x[i]; } }");
    body("for i in n - 1..-1 by -1 { let mut s = 0.0; for j in 0..i by 3 { s = s + x[j]; } y[i] = s; }");
    body("for i in 0..n by k { y[i] = 1.0; }");
    body("let mut i = 0; while i < n && x[i] > 0.0 { i = i + 1; if i == 3 { continue; } y[i] = 1.0; }");
    body("let mut i = 0; while (sum j in 0..i { x[j] }) < 3.0 { i = i + 1; if i == n { break; } } z = i;");
    body("let mut i = 0; while true { i = i + 1; if i > n { return; } }");
    check("multi codelet c(in x: f32[n], out y: f32[n]) { for i in worker..n by workers { y[i] = x[i]; } }");
}

#[test]
fn reductions_and_arrays() {
    body("y[0] = sum i in 0..n { x[i] * x[i] }; y[1] = product i in 0..n where x[i] > 0.0 { x[i] + 1.0 };");
    body("z = argmax i in 0..n { x[i] }; y[0] = min i in 0..n, j in 0..4 by 2 { f32(u[i, j]) * x[i] };");
    body("z = sum i in 0..n where all j in 0..4 { u[i, j] > 0 } { let q = i * 2; q * q };");
    body("let s = sum i in 0..n { square(x[i]) }; y[0] = s; y[1] = sum i in 0..n { exp(x[i]) };");
    body("let mut a = [0.0; 4]; let b = [[i32(1); 3]; 2]; a[1] = f32(b[1, 2]); y[0] = a[k]; let c = [1.0, 2.0];");
}

#[test]
fn products_of_matrices() {
    check(
        "codelet c(in a: f32[m, k], in b: f32[n, k], inout c: f32[m, n], in l: i32, in h: i32) {
             let (lo, hi) = (int(l), int(h));
             amp(c[lo..hi], a[lo..hi], b.transpose());
             amp(c, a, b.transpose(), first: true);
             amp(c[1..3, 0..4], a[1..3], b[0..4].transpose());
         }",
    );
}

#[test]
fn fields_and_attributes() {
    check(
        "#[cycles(3 * n + k)]
         codelet c(in x: f32[n + 2], #[align(16)] in w: f32[n, 8], out y: f32, const k: i64) { y = x[n] + w[0, k]; }",
    );
    check(
        "#[pipelined(apart)]
         codelet c(in x: f32[n], out y: f32[n]) { for i in 0..n { y[i] = 2.0 * x[i]; } }",
    );
}

#[test]
fn calls_are_printed_as_calls() {
    for f in ["exp", "log", "tanh", "sigmoid", "rsqrt", "sin", "cos"] {
        for ty in ["f32", "f64"] {
            let text = check(&format!(
                "codelet c(in x: {ty}[n], out y: {ty}[n], const k: {ty}) {{
                     for i in 0..n {{ let a = x[i] * 2.0; y[i] = {f}(a) + {f}({f}(x[i] + a)) * {f}(k); }}
                 }}"
            ));
            assert!(text.len() < 500, "{text}");
            assert_eq!(text.matches(&format!("prelude.{f}(")).count(), 4, "{text}");
        }
    }
}

/// What a chain of maps gives: the value of the first map is a local, and the next map copies it for its argument.
#[test]
fn a_copy_for_an_argument_stays() {
    let text = body("for i in 0..n { let mut s = x[i] + 1.0; let t = exp(s); let mut r = t; y[i] = tanh(r) + t; }");
    assert!(text.contains("let t = prelude.exp(s);") && text.contains("tanh(r)"), "{text}");
}

#[test]
fn names_of_locals_are_made_unique() {
    let text = body("let mut t = 1; { let mut t = t; let mut exp = x[0]; exp = exp + 1.0; z = t; y[0] = exp; } t = 2;");
    assert!(text.contains("t1") && text.contains("let mut exp = "), "{text}");
}

fn refused(codelet: &Codelet) -> String {
    let Err(Unprintable(why)) = codelet_text(codelet, "c") else { panic!("printed") };
    why
}

#[test]
fn what_has_no_text_is_refused() {
    let source = "codelet fn f(x: f32) -> f32 { for i in 0..3 { if x > 1.0 { return 2.0; } } return x; }
                  codelet c(in x: f32, out y: f32) { y = f(x); }";
    assert!(refused(&World::new(source).codelet()).contains("`return`"));
    let source = "codelet c(in x: f32[n], out y: i64) { y = argmax i in 2..n { x[i] }; }";
    assert!(refused(&World::new(source).codelet()).contains("search"));
    // A conversion of a type to itself.
    let mut codelet = World::new("codelet c(in x: f32, out y: f32) { y = x; }").codelet();
    if let Stmt::Store { value, .. } = &mut codelet.body[0] {
        let (kind, span) = (ExprKind::Convert { x: *value }, codelet.span);
        *value = codelet.exprs.push(Expr { kind, ty: ElemType::F32, span });
    }
    assert!(refused(&codelet).contains("its own type"));
    // A statement after a jump.
    let mut codelet = World::new("codelet c(in x: f32, out y: f32) { y = x; }").codelet();
    codelet.body.insert(0, Stmt::Return);
    assert!(refused(&codelet).contains("reached"));
    // The statements of a function without its result.
    let mut codelet = World::new("codelet c(in x: f32, out y: f32) { y = exp(x); }").codelet();
    let last = codelet.body.iter().rposition(|s| matches!(s, Stmt::Set { .. })).expect("a result");
    let one =
        codelet.exprs.push(Expr { kind: ExprKind::Const(Scalar::f32(1.0)), ty: ElemType::F32, span: codelet.span });
    if let Stmt::Set { local, .. } = codelet.body[last] {
        codelet.body.push(Stmt::Set { local, value: one });
    }
    assert!(refused(&codelet).contains("assigned again"));
}
