//! Trees that are built in memory print as text that parses to equal trees.

use girder_source::{Diagnostics, Session, SourceMap, Span};
use girder_syntax::ast::*;
use girder_syntax::make::*;
use girder_syntax::{format, parse};
use proptest::prelude::*;
use smallvec::SmallVec;

fn parsed(text: &str) -> Module {
    let mut map = SourceMap::default();
    let file = map.add("test.gir", text).expect("small");
    let mut diagnostics = Diagnostics::default();
    let module = parse(&map, file, &Session::default(), &mut diagnostics);
    let all: String = diagnostics.iter().map(|d| d.render(&map, false, 100)).collect();
    assert!(all.is_empty(), "{text}\n{all}");
    module
}

/// Returns an expression as text, without parentheses and spans.
fn shape(m: &Module, e: ExprId) -> String {
    let s = |e: &ExprId| shape(m, *e);
    let args = |args: &[Arg]| {
        let one = |a: &Arg| format!("{}:{}", a.name.as_ref().map_or("", |n| n.name.as_str()), s(&a.value));
        args.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let body = |b: &Body| {
        let last = b.stmts.last().map(|s| match &m.stmts[*s].kind {
            StmtKind::Expr { expr, .. } => *expr,
            other => panic!("{other:?}"),
        });
        b.value.or(last).map_or(String::new(), |e| shape(m, e))
    };
    match &m.exprs[e].kind {
        ExprKind::Paren(e) => s(e),
        ExprKind::Name(n) => n.to_string(),
        ExprKind::Int { value, .. } => format!("{value}"),
        ExprKind::Float { value, .. } => format!("{value:?}f"),
        ExprKind::Str(v) => format!("{v:?}"),
        ExprKind::Bool(v) => format!("{v}"),
        ExprKind::Tuple(a) => format!("(tuple {})", args(a)),
        ExprKind::List(l) => format!("(list {})", l.iter().map(s).collect::<Vec<_>>().join(" ")),
        ExprKind::Integers(list) => {
            let value = |v: &i64| if *v < 0 { format!("(Neg {})", -v) } else { format!("{v}") };
            let entry = |t: SmallVec<[i64; 8]>| match &t[..] {
                [one] => value(one),
                t => format!("(tuple :{})", t.iter().map(value).collect::<Vec<_>>().join(" :")),
            };
            format!("(list {})", list.entries().map(entry).collect::<Vec<_>>().join(" "))
        }
        ExprKind::Fill { value, count } => format!("(fill {} {})", s(value), s(count)),
        ExprKind::Field { base, name } => format!("(field {} {})", s(base), name.name),
        ExprKind::Call { callee, args: a } => format!("(call {} {})", s(callee), args(a)),
        ExprKind::Index { base, index } => {
            let one = |i: &Index| match i {
                Index::Expr(e) => s(e),
                Index::Rest(_) => "...".into(),
                Index::Open { start, end, by, .. } => {
                    let part = |e: &Option<ExprId>| e.as_ref().map_or("_".into(), s);
                    format!("(open {} {} {})", part(start), part(end), part(by))
                }
            };
            format!("(index {} {})", s(base), index.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        ExprKind::Unary { op, value } => format!("({op:?} {})", s(value)),
        ExprKind::Binary { op, left, right } => format!("({op:?} {} {})", s(left), s(right)),
        ExprKind::Range { start, end, closed, by } => {
            format!("(range {} {} {closed} {})", s(start), s(end), by.as_ref().map_or("_".into(), s))
        }
        ExprKind::Reduce(r) => {
            let one = |b: &Binder| s(&b.range);
            let ranges = r.binders.iter().map(one).collect::<Vec<_>>().join(" ");
            format!("({} {ranges} {} {})", r.op.name, r.filter.as_ref().map_or("_".into(), s), body(&r.body))
        }
        ExprKind::Fn(f) => {
            let one = |p: &Param| format!("{} {}", p.name.name, p.default.as_ref().map_or("_".into(), s));
            let params = f.params.iter().map(one).collect::<Vec<_>>().join(" ");
            format!("(fn {} ({params}) {} {})", f.generics.len(), f.result.is_some(), body(&f.body))
        }
        ExprKind::Block(b) => format!("(block {})", body(b)),
        ExprKind::If { cond, then, els } => {
            format!("(if {} {} {})", s(cond), body(then), els.as_ref().map_or("_".into(), s))
        }
        ExprKind::On { stage, place, body: b } => format!("(on {stage} {} {})", s(place), body(b)),
        ExprKind::With { mode, body: b } => format!("(with {} {})", s(mode), body(b)),
        ExprKind::Pipeline { args: a, body: b } => format!("(pipeline {} {})", args(a), body(b)),
        ExprKind::Switch { on, arms } => {
            let one = |a: &Arm| {
                let keys: Vec<String> = a.keys.iter().map(|k| k.as_ref().map_or("_".into(), s)).collect();
                format!("({}: {})", keys.join(" "), body(&a.body))
            };
            format!("(switch {} {})", s(on), arms.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        ExprKind::Error => panic!("an error"),
    }
}

/// A random tree to build: its form and its parts.
#[derive(Clone, Debug)]
struct Tree {
    form: u8,
    parts: Vec<Tree>,
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = (0..6u8).prop_map(|form| Tree { form, parts: vec![] });
    leaf.prop_recursive(7, 60, 4, |inner| {
        (0..50u8, proptest::collection::vec(inner, 3)).prop_map(|(form, parts)| Tree { form: form + 6, parts })
    })
}

const OPS: [BinaryOp; 19] = {
    use BinaryOp::*;
    [Add, Sub, Mul, Div, Rem, MatMul, And, Or, BitAnd, BitOr, BitXor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge]
};

fn build(m: &mut Make, t: &Tree) -> ExprId {
    let parts: Vec<ExprId> = t.parts.iter().map(|p| build(m, p)).collect();
    let [a, b, c] = parts[..] else {
        return match t.form {
            0 => m.name("x"),
            1 => m.uint(7),
            2 => m.float(0.1),
            3 => m.str("a \" b"),
            4 => m.name("a_rather_long_name.of_a_variable"),
            _ => m.bool(true),
        };
    };
    match t.form - 6 {
        op @ 0..19 => m.binary(OPS[op as usize], a, b),
        19 | 20 => m.unary(UnaryOp::Neg, a),
        21 => m.unary(UnaryOp::Not, a),
        22 => m.call(a, vec![arg(b), named("last", c)]),
        23 => m.call(a, vec![]),
        24 => m.index(a, vec![Index::Expr(b), Index::Rest(Span::NONE)]),
        25 => m.index(a, vec![Index::Open { start: Some(b), end: None, by: Some(c), span: Span::NONE }]),
        26 => m.index(a, vec![Index::Open { start: None, end: Some(b), by: None, span: Span::NONE }]),
        27 => m.field(a, "shape"),
        28 => m.range(a, b),
        29 => m.range_by(a, b, c),
        30 => m.expr(ExprKind::Range { start: a, end: b, closed: true, by: None }),
        31 => m.list(parts),
        32 => m.tuple(vec![arg(a)]),
        33 => m.tuple(vec![named("w", a), named("b", b)]),
        34 => m.expr(ExprKind::Fill { value: a, count: b }),
        35 | 36 => {
            let els = m.expr(ExprKind::Block(Box::new(value_body(c))));
            m.expr(ExprKind::If { cond: a, then: Box::new(value_body(b)), els: Some(els) })
        }
        37 => m.expr(ExprKind::On { stage: true, place: a, body: Box::new(value_body(b)) }),
        38 => m.expr(ExprKind::With { mode: a, body: Box::new(value_body(b)) }),
        39 => m.expr(ExprKind::Pipeline { args: vec![named("n", a)], body: Box::new(value_body(b)) }),
        40 => {
            let arm = |keys, value| Arm { keys, body: value_body(value), span: Span::NONE };
            m.expr(ExprKind::Switch { on: a, arms: vec![arm(vec![Some(b)], c), arm(vec![None], b)] })
        }
        41 => m.expr(ExprKind::Block(Box::new(value_body(a)))),
        // Few integers, which are read one by one, and many.
        form @ (46..=49) => {
            let count = if form % 2 == 0 { 12 } else { 60 };
            let values: Vec<i64> = (0..count).map(|k| k * 7 - 30).collect();
            m.integers(IntegerList::new(if form < 48 { 1 } else { 3 }, &values, vec![]))
        }
        42 | 43 => {
            let param = |name, default| Param { name: ident(name), ty: None, default, span: Span::NONE };
            let params = vec![param("p", None), param("q", Some(a))];
            let bound = Generic { name: ident("T"), bound: None };
            let generics = if t.form - 6 == 42 { vec![] } else { vec![bound] };
            let body = value_body(b);
            let name = path("closure");
            m.expr(ExprKind::Fn(Box::new(Fn { codelet: false, name, generics, params, result: None, body })))
        }
        _ => {
            let binders = vec![m.binder("i", a)];
            m.expr(ExprKind::Reduce(Box::new(Reduce {
                op: ident("sum"),
                binders,
                filter: Some(b),
                body: value_body(c),
            })))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_tree_reads_back_as_itself(tree in tree()) {
        let mut m = Make::default();
        let value = build(&mut m, &tree);
        let before = shape(&m.module, value);
        let pattern = Pattern::Name(ident("v"));
        m.item(ItemKind::Decl(Decl::Let(Let { mutable: false, pattern, ty: None, value, span: Span::NONE })));
        let text = format(&m.module, "");
        let again = parsed(&text);
        let ItemKind::Decl(Decl::Let(l)) = &again.items[0].kind else { panic!("a let") };
        prop_assert_eq!(before, shape(&again, l.value), "{}", text);
        prop_assert_eq!(&text, &format(&again, &text));
    }

    #[test]
    fn every_float_reads_back_to_the_bit(bits in any::<u64>(), bits32 in any::<u32>()) {
        let (value, value32) = (f64::from_bits(bits), f32::from_bits(bits32));
        let mut m = Make::default();
        let (e, f) = (m.float(value), m.float32(value32));
        let read = |m: &Module, e: ExprId| match &m.exprs[e].kind {
            ExprKind::Unary { value, .. } => match &m.exprs[*value].kind {
                ExprKind::Float { value, text } => Some((-value, text.clone())),
                _ => None,
            },
            ExprKind::Float { value, text } => Some((*value, text.clone())),
            _ => None,
        };
        if value.is_finite() {
            let (v, text) = read(&m.module, e).expect("a float");
            prop_assert_eq!(v.to_bits(), bits);
            prop_assert_eq!(text.parse::<f64>().expect("a float").to_bits(), value.abs().to_bits());
        }
        if value32.is_finite() {
            let (v, _) = read(&m.module, f).expect("a float");
            prop_assert_eq!((v as f32).to_bits(), bits32);
        }
    }
}

/// Builds a stage as the compiler prints one.
fn stage() -> Module {
    let mut m = Make::default();
    let options = vec![named("after", m.str("place-tiles")), named("version", m.uint(1))];
    m.module.header = Some(Header { name: path("matvec"), options, span: Span::NONE });
    let var = |m: &mut Make, kind, name: &str, dims: &[u64], place| {
        let ty = m.tensor("f32", dims);
        let v = VarDecl { kind, name: path(name), ty, init: None, place: Some(place), within: None, span: Span::NONE };
        m.item(ItemKind::Decl(Decl::Var(v)));
    };
    let rows = (0..2).map(|i| row(m.uint(i), vec![arg(m.span(i * 3920, (i + 1) * 3920))])).collect();
    var(&mut m, VarKind::Var, "w", &[10, 784], Place::Table(table(rows)));
    let zero = m.uint(0);
    let tile = m.call_name("tile", vec![arg(zero)]);
    var(&mut m, VarKind::Var, "x", &[784], Place::Expr(tile));
    var(&mut m, VarKind::Temp, "main.matvec.y", &[10], Place::Expr(tile));
    let i = m.name("i");
    let whole = m.span(0, 784);
    let w = m.name("w");
    let w = m.index(w, vec![Index::Expr(i), Index::Expr(whole)]);
    let (x, y) = (m.name("x"), m.name("main.matvec.y"));
    let y = m.index(y, vec![Index::Expr(i)]);
    let ten = m.span(0, 10);
    let family = vec![m.binder("i", ten)];
    let minus = m.int(-4);
    let vertex = Vertex {
        attrs: vec![attr("at", Some(vec![arg(m.str("matvec.gir")), arg(m.uint(12)), arg(m.uint(5))]))],
        codelet: path("dot"),
        generics: vec![minus],
        args: vec![named("a", w), named("b", x), named("y", y)],
        place: Some(Place::Expr(tile)),
        within: None,
        family,
        span: Span::NONE,
    };
    m.item(ItemKind::Compute { name: path("main.matvec"), vertices: vec![VertexItem::Vertex(Box::new(vertex))] });
    let numbers: Vec<ExprId> = (0..60).map(|i| m.int(i * 37 - 200)).collect();
    let value = m.list(numbers);
    let ty = Some(m.tensor("i32", &[60]));
    let pattern = Pattern::Name(ident("tiles_of_sums"));
    m.item(ItemKind::Decl(Decl::Let(Let { mutable: false, pattern, ty, value, span: Span::NONE })));
    let specials = [f64::NAN, f64::NEG_INFINITY, -0.0, 1e300, 0.1].map(|v| m.float(v)).to_vec();
    let mut more = [f32::INFINITY, 0.1, 16777216.0].map(|v| m.float32(v)).to_vec();
    more.extend(specials);
    let value = m.list(more);
    let pattern = Pattern::Name(ident("numbers"));
    m.item(ItemKind::Decl(Decl::Let(Let { mutable: false, pattern, ty: None, value, span: Span::NONE })));
    let steps = vec![m.stmt(StmtKind::Exchange(path("main.matvec"))), m.stmt(StmtKind::Execute(path("main.matvec")))];
    let three = m.uint(3);
    let again = m.stmt(StmtKind::Repeat { index: Some(path("main.i")), range: three, body: body(steps) });
    let one = m.stmt(StmtKind::Execute(path("main.matvec")));
    let step = m.stmt(StmtKind::Par(body(vec![one])));
    m.item(ItemKind::Program(Program { name: path("main"), params: vec![], body: body(vec![again, step]) }));
    m.module
}

#[test]
fn a_stage_is_printed_the_same_when_it_was_read() {
    let text = format(&stage(), "");
    insta::assert_snapshot!(text);
    assert_eq!(text, format(&parsed(&text), &text));
}
