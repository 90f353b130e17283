//! Building trees in memory, for text that the compiler prints.
//!
//! Invariant: every node made here has [`Span::NONE`], and its text reads back as the same value.

use crate::ast::*;
use girder_source::Span;
use smol_str::{SmolStr, format_smolstr};

/// A module under construction. Methods add nodes; items are pushed to `module.items`.
#[derive(Debug, Default)]
pub struct Make {
    /// The module so far.
    pub module: Module,
}

impl Make {
    /// Returns an expression of any kind.
    pub fn expr(&mut self, kind: ExprKind) -> ExprId {
        self.module.exprs.push(Expr { kind, span: Span::NONE })
    }

    /// Returns a statement of any kind, without attributes.
    pub fn stmt(&mut self, kind: StmtKind) -> StmtId {
        self.module.stmts.push(Stmt { attrs: vec![], kind, span: Span::NONE })
    }

    /// Adds an item without attributes.
    pub fn item(&mut self, kind: ItemKind) {
        self.module.items.push(Item { attrs: vec![], kind, span: Span::NONE });
    }

    /// Returns `a.b.c`: a name and the fields read from it.
    pub fn name(&mut self, dotted: &str) -> ExprId {
        let mut parts = dotted.split('.');
        let first = parts.next().unwrap_or_default();
        let mut e = self.expr(ExprKind::Name(first.into()));
        for part in parts {
            e = self.field(e, part);
        }
        e
    }

    /// Returns `base.name`.
    pub fn field(&mut self, base: ExprId, name: &str) -> ExprId {
        self.expr(ExprKind::Field { base, name: ident(name) })
    }

    /// Returns `42`.
    pub fn uint(&mut self, value: u64) -> ExprId {
        self.expr(ExprKind::Int { value, text: format_smolstr!("{value}") })
    }

    /// Returns `0x0002a`, with at least this many digits.
    pub fn hex(&mut self, value: u64, digits: usize) -> ExprId {
        self.expr(ExprKind::Int { value, text: format_smolstr!("0x{value:0digits$x}") })
    }

    /// Returns `42`, `-42`
    pub fn int(&mut self, value: i64) -> ExprId {
        let e = self.uint(value.unsigned_abs());
        if value < 0 { self.unary(UnaryOp::Neg, e) } else { e }
    }

    /// Returns the shortest text that reads back as the same `f64`. A value without a literal becomes a call with its
    /// bits: `f64.bits(0x7ff8000000000000)`.
    pub fn float(&mut self, value: f64) -> ExprId {
        if !value.is_finite() {
            return self.bits("f64", value.to_bits());
        }
        self.finite(format_smolstr!("{:?}", value.abs()), value.is_sign_negative())
    }

    /// Returns the shortest text that reads back as the same `f32`; a value without a literal becomes
    /// `f32.bits(0x7fc00000)`.
    pub fn float32(&mut self, value: f32) -> ExprId {
        if !value.is_finite() {
            return self.bits("f32", value.to_bits().into());
        }
        let short = format_smolstr!("{:?}", value.abs());
        // Read as `f64` and rounded again, the shortest text might yield a neighbouring value.
        let exact = short.parse::<f64>().is_ok_and(|v| v as f32 == value.abs());
        let text = if exact { short } else { format_smolstr!("{:?}", f64::from(value.abs())) };
        self.finite(text, value.is_sign_negative())
    }

    fn finite(&mut self, text: SmolStr, negative: bool) -> ExprId {
        let value = text.parse().unwrap_or_default();
        let e = self.expr(ExprKind::Float { value, text });
        if negative { self.unary(UnaryOp::Neg, e) } else { e }
    }

    /// Returns `type.bits(0x…)`: the value of an element type with these bits.
    pub fn bits(&mut self, element: &str, bits: u64) -> ExprId {
        let callee = self.name(element);
        let callee = self.field(callee, "bits");
        let value = self.hex(bits, 1);
        self.call(callee, vec![arg(value)])
    }

    /// Returns `"…"`.
    pub fn str(&mut self, value: impl Into<SmolStr>) -> ExprId {
        self.expr(ExprKind::Str(value.into()))
    }

    /// Returns `true`, `false`
    pub fn bool(&mut self, value: bool) -> ExprId {
        self.expr(ExprKind::Bool(value))
    }

    /// Returns `op value`.
    pub fn unary(&mut self, op: UnaryOp, value: ExprId) -> ExprId {
        self.expr(ExprKind::Unary { op, value })
    }

    /// Returns `left op right`; parentheses are added where needed.
    pub fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId) -> ExprId {
        self.expr(ExprKind::Binary { op, left, right })
    }

    /// Returns `callee(args)`.
    pub fn call(&mut self, callee: ExprId, args: Vec<Arg>) -> ExprId {
        self.expr(ExprKind::Call { callee, args })
    }

    /// Returns `name(args)`.
    pub fn call_name(&mut self, dotted: &str, args: Vec<Arg>) -> ExprId {
        let callee = self.name(dotted);
        self.call(callee, args)
    }

    /// Returns `base[index, …]`.
    pub fn index(&mut self, base: ExprId, index: Vec<Index>) -> ExprId {
        self.expr(ExprKind::Index { base, index })
    }

    /// Returns `start..end`.
    pub fn range(&mut self, start: ExprId, end: ExprId) -> ExprId {
        self.expr(ExprKind::Range { start, end, closed: false, by: None })
    }

    /// Returns `start..end by step`.
    pub fn range_by(&mut self, start: ExprId, end: ExprId, by: ExprId) -> ExprId {
        self.expr(ExprKind::Range { start, end, closed: false, by: Some(by) })
    }

    /// Returns `start..end` of numbers.
    pub fn span(&mut self, start: u64, end: u64) -> ExprId {
        let (start, end) = (self.uint(start), self.uint(end));
        self.range(start, end)
    }

    /// Returns `[a, b]`.
    pub fn list(&mut self, list: Vec<ExprId>) -> ExprId {
        self.expr(ExprKind::List(list))
    }

    /// Returns `[1, 2]`, or `[(1, 2), (3, 4)]`.
    pub fn integers(&mut self, list: IntegerList) -> ExprId {
        self.expr(ExprKind::Integers(Box::new(list)))
    }

    /// Returns `(a, name: b)`.
    pub fn tuple(&mut self, args: Vec<Arg>) -> ExprId {
        self.expr(ExprKind::Tuple(args))
    }

    /// Returns `name in range`.
    pub fn binder(&mut self, name: &str, range: ExprId) -> Binder {
        Binder { pattern: Pattern::Name(ident(name)), range, span: Span::NONE }
    }

    /// Returns `element[d0, d1]`, or `element` for rank 0.
    pub fn tensor(&mut self, element: &str, dims: &[u64]) -> Type {
        let list: Vec<Dim> = dims.iter().map(|d| Dim::Expr(self.uint(*d))).collect();
        let dims = (!list.is_empty()).then_some(list);
        Type { kind: TypeKind::Name { name: path(element), dims }, span: Span::NONE }
    }
}

/// Returns an identifier.
pub fn ident(name: &str) -> Ident {
    Ident { name: name.into(), span: Span::NONE }
}

/// Returns `a.b.c` as a name.
pub fn path(dotted: &str) -> Path {
    Path { parts: dotted.split('.').map(ident).collect(), span: Span::NONE }
}

/// Returns `value` as an argument.
pub fn arg(value: ExprId) -> Arg {
    Arg { name: None, value }
}

/// Returns `name: value`.
pub fn named(name: &str, value: ExprId) -> Arg {
    Arg { name: Some(ident(name)), value }
}

/// Returns `#[name]`, `#[name(args)]`
pub fn attr(name: &str, args: Option<Vec<Arg>>) -> Attr {
    Attr { name: ident(name), args, span: Span::NONE }
}

/// Returns `{ statements }`.
pub fn body(stmts: Vec<StmtId>) -> Body {
    Body { stmts, value: None, span: Span::NONE }
}

/// Returns `{ value }`.
pub fn value_body(value: ExprId) -> Body {
    Body { stmts: vec![], value: Some(value), span: Span::NONE }
}

/// Returns `{ rows }`.
pub fn table(rows: Vec<TableRow>) -> Table {
    Table { rows, span: Span::NONE }
}

/// Returns `key: values;`.
pub fn row(key: ExprId, values: Vec<Arg>) -> TableRow {
    TableRow::Row { key, values, to: None, family: vec![], span: Span::NONE }
}
