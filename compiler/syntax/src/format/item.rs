//! Items, declarations, types and tables.
//!
//! Invariant: an attribute stays on the line of its item if it was written there.

use super::Printer;
use super::block::{Braces, Brackets};
use super::expr::{ADD, BLOCK, OR, POSTFIX, RANGE};
use crate::ast::*;

impl Printer<'_> {
    /// Writes `module name with (…);`.
    pub fn header(&mut self, header: &Header) {
        self.word("module ");
        self.path(&header.name);
        self.reserving(1, |p| p.options(&header.options, header.span.hi));
        self.word(";");
    }

    /// Writes an item with its attributes.
    pub fn item(&mut self, item: &Item) {
        let own_line = matches!(
            item.kind,
            ItemKind::Codelet(_)
                | ItemKind::Fn(_)
                | ItemKind::Grad(_)
                | ItemKind::Program(_)
                | ItemKind::Compute { .. }
        );
        self.attrs(&item.attrs, own_line);
        self.group(|p| p.item_now(item));
    }

    fn item_now(&mut self, item: &Item) {
        let hi = item.span.hi;
        match &item.kind {
            ItemKind::Use(u) => self.use_item(u),
            ItemKind::Codelet(c) => self.codelet(c),
            ItemKind::Fn(f) => self.function(f),
            ItemKind::Grad(g) => self.grad(g),
            ItemKind::Program(p) => self.program(p),
            ItemKind::Stream(s) => {
                self.word("stream ");
                self.path(&s.name);
                self.word(if s.input { ": in " } else { ": out " });
                self.ty(&s.ty);
                self.reserving(1, |p| p.options(&s.options, hi));
                self.word(";");
            }
            ItemKind::Decl(decl) => self.decl(decl),
            ItemKind::Compute { name, vertices } => {
                self.word("compute ");
                self.path(name);
                self.word(" ");
                self.vertices(vertices, hi);
            }
            ItemKind::Copy { name, copies } => {
                self.word("copy ");
                self.path(name);
                self.word(" ");
                self.copies(copies, hi);
            }
            ItemKind::Exchange { name, options, table } => {
                self.word("exchange ");
                self.path(name);
                self.reserving(2, |p| p.options(options, table.span.lo));
                self.word(" ");
                self.table(table);
            }
            ItemKind::Layout { options, table } => {
                self.word("layout");
                self.reserving(2, |p| p.options(options, table.span.lo));
                self.word(" ");
                self.table(table);
            }
            ItemKind::Error => self.verbatim(item.span),
        }
    }

    /// Writes `#[name(args)]`, each followed by a line end if it was written so; in memory, if `own_line`.
    pub fn attrs(&mut self, attrs: &[Attr], own_line: bool) {
        for attr in attrs {
            self.word("#[");
            self.word(&attr.name.name);
            if let Some(args) = &attr.args {
                self.reserving(1, |p| p.group(|p| p.args(args, attr.span.hi)));
            }
            self.word("]");
            let next = if attr.span.is_none() { 0 } else { self.next_token(attr.span.hi) };
            match if next == 0 { own_line } else { self.starts_line(next) } {
                true if self.line.is_flat() => return self.line.fail(),
                true => self.separate(next, true, false),
                false => self.word(" "),
            }
        }
    }

    fn use_item(&mut self, u: &Use) {
        self.word("use ");
        match u {
            Use::Library { name, alias } => {
                self.path(name);
                if let Some(alias) = alias {
                    self.word(" as ");
                    self.word(&alias.name);
                }
            }
            Use::File { path, alias, .. } => {
                self.word(&crate::token::quote(path));
                self.word(" as ");
                self.word(&alias.name);
            }
            Use::Names { name, names } => {
                self.path(name);
                self.word(".");
                let brackets = Brackets { open: "{", close: "}", hi: 0 };
                self.list(brackets, names, |_, n| n.span.lo, |p, n| p.word(&n.name));
            }
        }
        self.word(";");
    }

    fn codelet(&mut self, c: &Codelet) {
        self.reserving(2, |p| {
            p.group(|p| {
                p.word(if c.multi { "multi codelet " } else { "codelet " });
                p.path(&c.name);
                p.generics(&c.generics);
                let brackets = Brackets { open: "(", close: ")", hi: c.body.span.lo };
                p.list(brackets, &c.fields, |_, f| f.span.lo, Self::field);
            })
        });
        self.word(" ");
        self.body(&c.body);
    }

    fn field(&mut self, field: &CodeletField) {
        self.attrs(&field.attrs, false);
        self.word(match field.dir {
            FieldDir::In => "in ",
            FieldDir::Out => "out ",
            FieldDir::InOut => "inout ",
            FieldDir::Const => "const ",
        });
        self.word(&field.name.name);
        self.word(": ");
        self.ty(&field.ty);
    }

    fn generics(&mut self, generics: &[Generic]) {
        if generics.is_empty() {
            return;
        }
        self.word("<");
        for (i, g) in generics.iter().enumerate() {
            self.word(if i > 0 { ", " } else { "" });
            self.word(&g.name.name);
            if let Some(bound) = &g.bound {
                self.word(": ");
                self.ty(bound);
            }
        }
        self.word(">");
    }

    fn function(&mut self, f: &Fn) {
        self.function_from(f, if f.codelet { "codelet fn " } else { "fn " }, Some(&f.name));
    }

    /// Writes `fn(x) { … }`.
    pub fn closure(&mut self, f: &Fn) {
        self.function_from(f, "fn", None);
    }

    fn function_from(&mut self, f: &Fn, word: &str, name: Option<&Path>) {
        self.reserving(2, |p| {
            p.group(|p| {
                p.word(word);
                if let Some(name) = name {
                    p.path(name);
                }
                p.generics(&f.generics);
                let hi = f.result.as_ref().map_or(f.body.span.lo, |r| r.span.lo);
                p.params(&f.params, hi);
                if let Some(result) = &f.result {
                    p.word(" -> ");
                    p.ty(result);
                }
            })
        });
        self.word(" ");
        self.body(&f.body);
    }

    fn params(&mut self, params: &[Param], hi: u32) {
        let brackets = Brackets { open: "(", close: ")", hi };
        self.list(
            brackets,
            params,
            |_, q| q.span.lo,
            |p, q| {
                p.word(&q.name.name);
                if let Some(ty) = &q.ty {
                    p.word(": ");
                    p.ty(ty);
                }
                if let Some(value) = q.default {
                    p.word(" = ");
                    p.expr(value, BLOCK);
                }
            },
        );
    }

    fn grad(&mut self, g: &Grad) {
        self.word("grad ");
        self.path(&g.name);
        self.word("(");
        for (part, end) in [(&g.params, "; "), (&g.results, "; "), (&g.adjoints, ") ")] {
            for (i, name) in part.iter().enumerate() {
                self.word(if i > 0 { ", " } else { "" });
                self.word(&name.name);
            }
            self.word(end);
        }
        self.body(&g.body);
    }

    fn program(&mut self, program: &Program) {
        self.reserving(2, |p| {
            p.group(|p| {
                p.word("program ");
                p.path(&program.name);
                p.params(&program.params, program.body.span.lo);
            })
        });
        self.word(" ");
        self.body(&program.body);
    }

    fn options(&mut self, options: &[Arg], hi: u32) {
        if !options.is_empty() {
            self.word(" with ");
            self.group(|p| p.list(Brackets { open: "(", close: ")", hi }, options, Self::arg_lo, Self::arg));
        }
    }

    /// Writes a declaration with its semicolon.
    pub fn decl(&mut self, decl: &Decl) {
        match decl {
            Decl::Let(l) => self.let_decl(l),
            Decl::Var(v) => {
                self.word(match v.kind {
                    VarKind::Var => "var ",
                    VarKind::Param => "param ",
                    VarKind::State => "state ",
                    VarKind::Const => "const ",
                    VarKind::Temp => "temp ",
                    VarKind::Remote => "remote ",
                });
                self.path(&v.name);
                self.word(": ");
                self.ty(&v.ty);
                if let Some(init) = v.init {
                    self.word(" = ");
                    // A place after the value is on its last line as a whole.
                    let place = match &v.place {
                        Some(place @ Place::Expr(_)) => self.width_of(|p| p.place(Some(place))),
                        Some(Place::Table(_)) => " on {".len(),
                        None => 0,
                    };
                    let within = self.width_of(|p| p.within(v.within));
                    self.reserving(1 + place + within, |p| p.expr(init, BLOCK));
                }
                self.reserving(1, |p| p.place(v.place.as_ref()));
                self.within(v.within);
                self.word(";");
            }
            Decl::Map { view, place, family, .. } => {
                self.word("map ");
                self.reserving(4, |p| p.expr(*view, POSTFIX));
                self.place(Some(place));
                self.family(family);
                self.word(";");
            }
        }
    }

    /// Writes `let … ;`.
    pub fn let_decl(&mut self, l: &Let) {
        self.word(if l.mutable { "let mut " } else { "let " });
        self.pattern(&l.pattern);
        if let Some(ty) = &l.ty {
            self.word(": ");
            self.ty(ty);
        }
        self.word(" = ");
        self.reserving(1, |p| p.expr(l.value, BLOCK));
        self.word(";");
    }

    /// Writes the left side of a `let` or a binder.
    pub fn pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Name(name) => self.word(&name.name),
            Pattern::Wildcard(_) => self.word("_"),
            Pattern::Tuple(parts, _) => {
                self.word("(");
                for (i, part) in parts.iter().enumerate() {
                    self.word(if i > 0 { ", " } else { "" });
                    self.pattern(part);
                }
                self.word(")");
            }
        }
    }

    /// Writes `a.b.c`.
    pub fn path(&mut self, path: &Path) {
        for (i, part) in path.parts.iter().enumerate() {
            self.word(if i > 0 { "." } else { "" });
            self.word(&part.name);
        }
    }

    /// Writes a type.
    pub fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Name { name, dims } => {
                self.path(name);
                let Some(dims) = dims else { return };
                self.word("[");
                for (i, dim) in dims.iter().enumerate() {
                    self.word(if i > 0 { ", " } else { "" });
                    match dim {
                        Dim::Expr(e) => self.expr(*e, ADD),
                        Dim::Spread(name) => {
                            self.word("..");
                            self.word(&name.name);
                        }
                        Dim::Shape(e) => {
                            self.word("..");
                            self.expr(*e, POSTFIX);
                        }
                    }
                }
                self.word("]");
            }
            TypeKind::List(inner) => {
                self.word("[");
                self.ty(inner);
                self.word("]");
            }
            TypeKind::Tuple(parts) => {
                self.word("(");
                for (i, (name, ty)) in parts.iter().enumerate() {
                    self.word(if i > 0 { ", " } else { "" });
                    if let Some(name) = name {
                        self.word(&name.name);
                        self.word(": ");
                    }
                    self.ty(ty);
                }
                self.word(")");
            }
        }
    }

    /// Writes `{ key: values; … }`.
    pub fn table(&mut self, table: &Table) {
        let lo = |p: &Self, row: &&TableRow| match row {
            TableRow::On { place, .. } => p.before_on(p.lo(*place)),
            row => row.span().lo,
        };
        let rows: Vec<&TableRow> = self.module.exprs.each_row(&table.rows).collect();
        self.block(Braces { hi: table.span.hi, most: 8 }, &rows, lo, |p, row| p.group(|p| p.row(row)));
    }

    /// Writes a row; over several lines, each value has its own.
    fn row(&mut self, row: &TableRow) {
        match row {
            TableRow::Row { key, values, to, family, .. } => {
                self.reserving(1, |p| p.expr(*key, RANGE));
                self.word(": ");
                match self.list_head(family) {
                    0 => self.row_values(values, *to),
                    columns => self.reserving(columns, |p| p.group(|p| p.row_values(values, *to))),
                }
                self.family(family);
                self.word(";");
            }
            // The caller takes rows one by one.
            TableRow::Repeated(_) => {}
            TableRow::On { place, table } => {
                self.word("on ");
                self.reserving(2, |p| p.expr(*place, OR));
                self.word(" ");
                self.table(table);
            }
        }
    }

    fn row_values(&mut self, values: &[Arg], to: Option<ExprId>) {
        self.line.indent += 1;
        for (i, arg) in values.iter().enumerate() {
            if i > 0 && self.line.is_flat() {
                self.word(", ");
                self.gap(self.arg_lo(arg));
            } else if i > 0 {
                self.word(",");
                self.separate(self.arg_lo(arg), true, false);
            }
            self.reserving(1, |p| p.arg(arg));
        }
        if let Some(to) = to {
            self.word(" -> ");
            self.expr(to, OR);
        }
        self.line.indent -= 1;
    }

    /// Returns the width of ` for (i, j) in [` before a list that has lines of its own; 0 for other families.
    fn list_head(&mut self, family: &[Binder]) -> usize {
        let [Binder { pattern, range, .. }] = family else { return 0 };
        match self.module.exprs[*range].kind.has_own_brackets() {
            false => 0,
            true => self.width_of(|p| {
                p.word(" for ");
                p.pattern(pattern);
                p.word(" in [");
            }),
        }
    }
}
