//! Duplicate names in one list: a pattern, the binders of a loop, parameters, or generics; and names that are built in.
//!
//! Invariant: only the text is examined, so each duplicate is reported once, however often the text is evaluated.

use girder_source::{Diagnostic, Diagnostics};
use girder_syntax::ast::{self, CopyItem, Decl, ExprKind, Ident, ItemKind, StmtKind, VertexItem};

/// Reports every name that occurs twice in one list.
pub fn duplicates(tree: &ast::Module, diagnostics: &mut Diagnostics) {
    let mut check = Check { diagnostics };
    for item in &tree.items {
        check.item(item);
    }
    for (_, stmt) in tree.stmts.iter() {
        check.stmt(&stmt.kind);
    }
    for expr in tree.exprs.written() {
        match &expr.kind {
            ExprKind::Reduce(r) => check.binders(&r.binders),
            ExprKind::Fn(f) => check.function(f),
            _ => {}
        }
    }
}

/// Reports every codelet function with the name of a built-in one, which codelets would call instead. The library has
/// such functions: they are what the built-in ones do with tensors.
pub fn built_in(tree: &ast::Module, diagnostics: &mut Diagnostics) {
    for item in &tree.items {
        let ItemKind::Fn(f) = &item.kind else { continue };
        let name = f.name.dotted();
        if f.codelet && girder_typing::is_builtin(&name) {
            let message = format!("`{name}` is a built-in function of codelets");
            let d = Diagnostic::error("names::duplicate", f.name.span, message);
            let help = "a codelet function needs a name of its own, because codelets call the built-in one";
            diagnostics.push(d.help(help));
        }
    }
}

struct Check<'d> {
    diagnostics: &'d mut Diagnostics,
}

impl Check<'_> {
    fn item(&mut self, item: &ast::Item) {
        match &item.kind {
            ItemKind::Fn(f) => self.function(f),
            ItemKind::Program(p) => self.names(p.params.iter().map(|p| &p.name)),
            // The names of its pattern are items, which are recorded one by one.
            ItemKind::Decl(Decl::Let(_)) => {}
            ItemKind::Decl(d) => self.decl(d),
            ItemKind::Compute { vertices, .. } => self.vertices(vertices),
            ItemKind::Copy { copies, .. } => self.copies(copies),
            _ => {}
        }
    }

    fn function(&mut self, f: &ast::Fn) {
        self.names(f.generics.iter().map(|g| &g.name));
        self.names(f.params.iter().map(|p| &p.name));
    }

    fn stmt(&mut self, kind: &StmtKind) {
        match kind {
            StmtKind::Decl(d) => self.decl(d),
            StmtKind::For { binders, .. } => self.binders(binders),
            StmtKind::Compute { vertices, .. } => self.vertices(vertices),
            StmtKind::Copy { copies, .. } => self.copies(copies),
            _ => {}
        }
    }

    fn decl(&mut self, d: &Decl) {
        match d {
            Decl::Let(l) => self.pattern(&l.pattern),
            Decl::Map { family, .. } => self.binders(family),
            Decl::Var(_) => {}
        }
    }

    fn vertices(&mut self, items: &[VertexItem]) {
        for item in items {
            match item {
                VertexItem::Vertex(v) => self.binders(&v.family),
                // Repeated statements bind no names.
                VertexItem::Repeated(_) => {}
                VertexItem::Let(l) => self.pattern(&l.pattern),
                VertexItem::For { binders, body, .. } => {
                    self.binders(binders);
                    self.vertices(body);
                }
                VertexItem::If { then, els, .. } => {
                    self.vertices(then);
                    self.vertices(els.as_deref().unwrap_or_default());
                }
            }
        }
    }

    fn copies(&mut self, items: &[CopyItem]) {
        for item in items {
            match item {
                CopyItem::Copy { family, .. } => self.binders(family),
                CopyItem::For { binders, body, .. } => {
                    self.binders(binders);
                    self.copies(body);
                }
            }
        }
    }

    fn pattern(&mut self, pattern: &ast::Pattern) {
        let mut names = vec![];
        collect(pattern, &mut names);
        self.names(names.into_iter());
    }

    fn binders(&mut self, binders: &[ast::Binder]) {
        let mut names = vec![];
        binders.iter().for_each(|b| collect(&b.pattern, &mut names));
        self.names(names.into_iter());
    }

    fn names<'t>(&mut self, names: impl Iterator<Item = &'t Ident>) {
        let mut seen: Vec<&Ident> = vec![];
        for name in names {
            if let Some(first) = seen.iter().find(|s| s.name == name.name) {
                let d = Diagnostic::error("names::duplicate", name.span, format!("`{}` occurs twice here", name.name));
                self.diagnostics.push(d.here("second declaration").label(first.span, "first declaration"));
            }
            seen.push(name);
        }
    }
}

fn collect<'t>(pattern: &'t ast::Pattern, out: &mut Vec<&'t Ident>) {
    match pattern {
        ast::Pattern::Name(i) => out.push(i),
        ast::Pattern::Wildcard(_) => {}
        ast::Pattern::Tuple(parts, _) => parts.iter().for_each(|p| collect(p, out)),
    }
}
