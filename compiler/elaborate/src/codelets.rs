//! Codelets of a graph: the names that their bodies see, their specialisations, and their printed text.
//!
//! Invariant: the text of an item in [`Graph::items`](girder_ir::graph::Graph) has the same meaning in a module of its
//! own: every outside name in it is qualified, and every constant of its module is a number.

use crate::closures::function_of;
use crate::elaborator::{Captured, Closed, CodeletTable, Elaborator, Generated, Global, Scopes, SpecKey, memory};
use crate::modules::{Entry, Modules};
use crate::trees::{expressions, statements};
use crate::value::Value;
use girder_ir::codelet::{Codelet, Elementary, GenericArg};
use girder_ir::graph::CodeletItem;
use girder_ir::ids::SpecId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostics, Failed, Result, SourceMap, Span};
use girder_syntax::ast::{self, ExprKind, ItemKind, StmtKind};
use girder_syntax::make::ident;
use girder_typing::{Meaning, ModuleRef, Scope};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// The names that codelet bodies see.
pub struct Names<'a> {
    modules: &'a Modules,
    codelets: &'a CodeletTable,
    scopes: &'a Scopes,
}

impl<'a> Names<'a> {
    /// Returns a codelet of a module, which may be generated.
    pub fn codelet(&self, module: ModuleRef, item: usize) -> Option<(&ast::Codelet, &[ast::Attr])> {
        let item = self.tree(module).items.get(item)?;
        match &item.kind {
            ItemKind::Codelet(c) => Some((c, &item.attrs)),
            _ => None,
        }
    }

    fn count(&self) -> u32 {
        self.modules.count() as u32
    }

    fn closed(&self, module: ModuleRef) -> Option<&'a Closed> {
        self.codelets.closed(self.modules, module)
    }

    /// Returns a function of a module; a generated module of a closure has only that one.
    pub fn function_at(&self, module: ModuleRef, item: usize) -> Option<&ast::Fn> {
        if let Some(closed) = self.closed(module) {
            return function_of(self.tree(module), &closed.closure);
        }
        match &self.tree(module).items.get(item)?.kind {
            ItemKind::Fn(f) => Some(f),
            _ => None,
        }
    }

    /// Returns the qualified name of a function.
    pub fn qualified_fn(&self, module: ModuleRef, f: &ast::Fn) -> SmolStr {
        self.modules.qualified(module, &f.name.dotted())
    }

    /// Returns the number of a function in its module, and its name in printed text.
    pub fn printed(&self, module: ModuleRef, f: &ast::Fn) -> Option<(usize, SmolStr)> {
        if let Some(closed) = self.closed(module) {
            return Some((0, closed.name.clone()));
        }
        let is_f = |i: &ast::Item| matches!(&i.kind, ItemKind::Fn(g) if g.name == f.name);
        let item = self.tree(module).items.iter().position(is_f)?;
        Some((item, self.modules.qualified(module, &f.name.dotted())))
    }

    /// Returns the meaning of a name that a closure captured.
    fn captured(&self, closed: &'a Closed, path: &str) -> Option<Meaning<'_>> {
        Some(match closed.names.get(path)? {
            Captured::Int(i) => Meaning::Int(*i),
            Captured::Float(x) => Meaning::Float(*x),
            Captured::Bool(b) => Meaning::Bool(*b),
            Captured::Type(t) => Meaning::Type(*t),
            Captured::Other(what) => Meaning::Other(what),
            Captured::Fn(f) => match self.function_at(f.module, f.item) {
                Some(item) if item.codelet || self.closed(f.module).is_some() => {
                    Meaning::CodeletFn { module: f.module, item }
                }
                _ => Meaning::Other("a function of the graph"),
            },
        })
    }
}

impl Scope for Names<'_> {
    fn lookup(&self, module: ModuleRef, path: &str) -> Option<Meaning<'_>> {
        let module = match self.closed(module) {
            Some(closed) => match self.captured(closed, path) {
                Some(meaning) => return Some(meaning),
                None => closed.closure.module,
            },
            // Generated codelets use qualified names, as the root module does.
            None if module.0 >= self.count() => Modules::ROOT,
            None => module,
        };
        let (m, entry) = self.modules.find(module, path, |m| &m.values)?;
        if matches!(entry, Entry::Module(_)) {
            return Some(Meaning::Other("a module"));
        }
        let (m, _, item) = self.modules.item(m, entry)?;
        Some(match &item.kind {
            ItemKind::Fn(f) if f.codelet => Meaning::CodeletFn { module: m, item: f },
            ItemKind::Fn(_) => Meaning::Other("a function of the graph"),
            ItemKind::Stream(_) => Meaning::Other("a stream"),
            ItemKind::Decl(ast::Decl::Var(_)) => Meaning::Other("a variable"),
            _ => {
                let own = path.rsplit('.').next().unwrap_or(path);
                match self.scopes.global(m, &own.into())? {
                    Global::Known(Value::Int(i)) => Meaning::Int(*i),
                    Global::Known(Value::Float(x)) => Meaning::Float(*x),
                    Global::Known(Value::Bool(b)) => Meaning::Bool(*b),
                    Global::Known(Value::Type(t)) => Meaning::Type(*t),
                    _ => Meaning::Other("a value of the graph"),
                }
            }
        })
    }

    fn elementary(&self, module: ModuleRef, item: &ast::Fn) -> Option<Elementary> {
        if module == self.modules.prelude { Elementary::from_name(&item.name.dotted()) } else { None }
    }

    fn function(&self, name: &str) -> Option<(ModuleRef, &ast::Fn)> {
        let &(module, item) = self.codelets.functions.get(name)?;
        Some((module, self.function_at(module, item)?))
    }

    fn tree(&self, module: ModuleRef) -> &ast::Module {
        match module.0.checked_sub(self.count()) {
            None => &self.modules.get(module).tree,
            Some(k) => match &self.codelets.generated[k as usize] {
                Generated::Codelet { tree, .. } => tree,
                Generated::Closure(closed) => &self.modules.get(closed.closure.module).tree,
            },
        }
    }
}

impl Elaborator<'_> {
    /// Runs a function with the names that codelet bodies see.
    pub fn with_scope<T>(&mut self, f: impl FnOnce(&Names<'_>, &mut Diagnostics) -> T) -> T {
        let mut diagnostics = Diagnostics::default();
        let value = f(&self.names(), &mut diagnostics);
        for d in diagnostics.iter() {
            self.report(d.clone());
        }
        value
    }

    /// Returns the specialisation of a codelet, which is made on first use.
    pub fn specialised(&mut self, module: ModuleRef, item: usize, args: &[GenericArg], span: Span) -> Result<SpecId> {
        let key = SpecKey { module, item, args: args.to_vec() };
        if let Some(&spec) = self.codelets.specs.get(&key) {
            return spec.ok_or(Failed);
        }
        self.specialises(self.codelets.specs.len(), memory::CODELET, span)?;
        self.reporter.enter_call(span);
        let session = self.session;
        let made = self.with_scope(|names, diagnostics| match names.codelet(module, item) {
            Some((c, attrs)) => girder_typing::specialise(names, module, c, attrs, args, session, diagnostics),
            None => Err(Failed),
        });
        self.reporter.leave_call();
        let spec = match made {
            Ok(mut codelet) => {
                self.pipeline_generated(module, &mut codelet);
                codelet.name = self.qualified_item(module, &codelet.name);
                self.print_arguments(args);
                self.print_item(module, item);
                self.takes(codelet.exprs.len() as u64 * memory::EXPR);
                Some(self.graph.codelets.push(codelet))
            }
            Err(Failed) => None,
        };
        self.codelets.specs.insert(key, spec);
        spec.ok_or(Failed)
    }

    /// Returns a function as an argument of a generic.
    pub fn generic_fn(&mut self, module: ModuleRef, item: usize, span: Span) -> Result<GenericArg> {
        let ItemKind::Fn(f) = &self.modules.get(module).tree.items[item].kind else { return Err(Failed) };
        let name = self.qualified_item(module, &f.name.dotted());
        if !f.codelet {
            let message = format!("`{name}` runs while the graph is built, so a codelet cannot call it");
            return Err(self.error_help("elaborate::type_mismatch", span, message, "declare it `codelet fn`"));
        }
        let known = *self.codelets.functions.entry(name.clone()).or_insert((module, item));
        if known != (module, item) {
            let message = format!("another function `{name}` is already an argument of a codelet");
            return Err(self.error_help("names::duplicate", span, message, "rename one of them"));
        }
        Ok(GenericArg::Fn(name))
    }

    /// Makes a generated codelet `#[pipelined]` if it can be. The loop of an element-wise step costs as much as one
    /// that is written by hand.
    fn pipeline_generated(&mut self, module: ModuleRef, codelet: &mut Codelet) {
        let Some(k) = (module.0 as usize).checked_sub(self.modules.count()) else { return };
        codelet.pipelined = true;
        codelet.pipelined = girder_codelet::cost::check(codelet).is_ok();
        if codelet.pipelined {
            let attr = ast::Attr { name: ident("pipelined"), args: None, span: Span::NONE };
            if let Generated::Codelet { tree, .. } = &mut self.codelets.generated[k] {
                tree.items[0].attrs.push(attr);
            }
        }
    }

    /// Returns the name of an item in printed text.
    pub fn qualified_item(&self, module: ModuleRef, name: &str) -> SmolStr {
        self.modules.qualified(module, name)
    }

    /// Adds the text of a codelet or codelet function, and of the functions that it calls, to the graph. Items of the
    /// prelude are not printed, because they need no `use`.
    pub fn print_item(&mut self, module: ModuleRef, item: usize) {
        if module == self.modules.prelude || !self.codelets.printed.insert((module, item)) {
            return;
        }
        let generated = (module.0 as usize).checked_sub(self.modules.count());
        let (name, text, calls) = match generated.map(|k| &self.codelets.generated[k]) {
            Some(Generated::Codelet { tree, callees }) => {
                let text = girder_syntax::format(tree, "").trim_end().to_string();
                (item_name(&tree.items[item]), text, callees.clone())
            }
            Some(Generated::Closure(Closed { closure, name, .. })) => {
                let tree = &self.modules.get(closure.module).tree;
                let Some(f) = function_of(tree, closure) else { return };
                let span = tree.exprs[closure.expr].span;
                let node = ast::Item { attrs: vec![], kind: ItemKind::Fn(f.clone()), span };
                let (edits, calls) = edits(&self.names(), module, &node, format!("codelet fn {name}"));
                (name.clone(), tidy(&self.edited(span, edits), self.session), calls)
            }
            None => {
                let names = self.names();
                let node = &names.tree(module).items[item];
                let name = self.modules.qualified(module, &item_name(node));
                let (edits, calls) = edits(&names, module, node, name.to_string());
                (name, tidy(&self.edited(node.span, edits), self.session), calls)
            }
        };
        let mut called = vec![];
        for (m, i) in calls.into_iter().filter(|call| call.0 != self.modules.prelude) {
            self.print_item(m, i);
            called.push(self.printed_name(m, i));
        }
        self.graph.items.push(CodeletItem { name, text: text.into(), calls: called });
    }

    /// Returns the name under which [`print_item`](Self::print_item) adds an item.
    fn printed_name(&self, module: ModuleRef, item: usize) -> SmolStr {
        let generated = (module.0 as usize).checked_sub(self.modules.count());
        match generated.map(|k| &self.codelets.generated[k]) {
            Some(Generated::Codelet { tree, .. }) => item_name(&tree.items[item]),
            Some(Generated::Closure(Closed { name, .. })) => name.clone(),
            None => self.modules.qualified(module, &item_name(&self.names().tree(module).items[item])),
        }
    }

    /// Returns the text of a span with some parts replaced.
    fn edited(&self, span: Span, edits: Vec<Edit>) -> String {
        let mut text = String::new();
        let mut at = span.lo;
        for (span, with) in edits {
            text.push_str(self.reporter.text(Span::new(at, span.lo)));
            text.push_str(&with);
            at = span.hi;
        }
        text.push_str(self.reporter.text(Span::new(at, span.hi)));
        text
    }

    /// Returns the names that codelet bodies see.
    pub fn names(&self) -> Names<'_> {
        Names { modules: self.modules, codelets: &self.codelets, scopes: &self.scopes }
    }
}

/// Returns the name of a codelet or function.
fn item_name(item: &ast::Item) -> SmolStr {
    match &item.kind {
        ItemKind::Codelet(c) => c.name.dotted(),
        ItemKind::Fn(f) => f.name.dotted(),
        _ => SmolStr::default(),
    }
}

/// A span of text and its replacement.
type Edit = (Span, String);

/// Formats the text of one item.
fn tidy(text: &str, session: &girder_source::Session) -> String {
    let mut map = SourceMap::default();
    let Some(file) = map.add("<item>", text) else { return text.into() };
    let tree = girder_syntax::parse(&map, file, session, &mut Diagnostics::default());
    girder_syntax::format(&tree, text).trim_end().to_string()
}

/// Returns the codelet functions that an item calls and, in order, the edits that give its text the same meaning in a
/// module of its own; `own` replaces its name.
fn edits(names: &Names<'_>, module: ModuleRef, node: &ast::Item, own: String) -> (Vec<Edit>, Vec<(ModuleRef, usize)>) {
    let tree = names.tree(module);
    let bound = bound_names(tree, node);
    let is_bound = |name: &str, at: Span| bound.get(name).is_some_and(|from| *from <= at.lo);
    let mut edits: Vec<Edit> = Vec::new();
    let mut calls = Vec::new();
    match &node.kind {
        ItemKind::Codelet(c) => edits.push((c.name.span, own)),
        ItemKind::Fn(f) => edits.push((f.name.span, own)),
        _ => {}
    }
    for (id, e) in expressions(tree, node) {
        if !matches!(e.kind, ExprKind::Name(_) | ExprKind::Field { .. }) {
            continue;
        }
        let Some(path) = crate::trees::dotted(tree, id) else { continue };
        let first = path.split('.').next().unwrap_or_default();
        // A built-in function of codelets hides the prelude's function of the same name.
        if is_bound(first, e.span) || girder_typing::is_builtin(&path) {
            continue;
        }
        let with = match names.lookup(module, &path) {
            Some(Meaning::CodeletFn { module: m, item: f }) => {
                let Some((item, name)) = names.printed(m, f) else { continue };
                calls.push((m, item));
                name.to_string()
            }
            Some(Meaning::Int(i)) => format!("({i})"),
            Some(Meaning::Float(x)) => float_text(x),
            Some(Meaning::Bool(b)) => b.to_string(),
            Some(Meaning::Type(t)) => t.name().to_string(),
            _ => continue,
        };
        edits.push((e.span, with));
    }
    for ty in stated_types(tree, node) {
        let ast::TypeKind::Name { name, .. } = &ty.kind else { continue };
        let path = name.dotted();
        if !is_bound(&path, ty.span)
            && ElemType::from_name(&path).is_none()
            && let Some(Meaning::Type(t)) = names.lookup(module, &path)
        {
            edits.push((name.span, t.name().to_string()));
        }
    }
    edits.sort_by_key(|(s, _)| (s.lo, std::cmp::Reverse(s.hi)));
    // In `nn.f` only the whole path is replaced, not the `nn` inside it.
    let mut end = 0;
    edits.retain(|(s, _)| {
        let keep = s.lo >= end;
        if keep {
            end = s.hi;
        }
        keep
    });
    (edits, calls)
}

/// Returns a static float as the text of an operand in a codelet.
fn float_text(x: f64) -> String {
    match x {
        _ if x.is_finite() => format!("({x:?})"),
        // These values have no literal; an operation on literals folds to them.
        _ if x.is_nan() => "(0.0 / 0.0)".into(),
        _ if x > 0.0 => "(1.0 / 0.0)".into(),
        _ => "(-1.0 / 0.0)".into(),
    }
}

/// Returns the types that an item states.
fn stated_types<'t>(tree: &'t ast::Module, node: &'t ast::Item) -> Vec<&'t ast::Type> {
    let mut types: Vec<&ast::Type> = match &node.kind {
        ItemKind::Codelet(c) => c.fields.iter().map(|f| &f.ty).collect(),
        ItemKind::Fn(f) => f.params.iter().filter_map(|p| p.ty.as_ref()).chain(&f.result).collect(),
        _ => vec![],
    };
    for (_, s) in statements(tree, node) {
        if let StmtKind::Decl(ast::Decl::Let(ast::Let { ty: Some(ty), .. })) = &s.kind {
            types.push(ty);
        }
    }
    types
}

/// Returns every name that an item binds, with the position from which it is bound; before it, as in `let k = 2.0 * k`,
/// the name is an outside name.
fn bound_names(tree: &ast::Module, node: &ast::Item) -> FxHashMap<SmolStr, u32> {
    let mut names: FxHashSet<SmolStr> = FxHashSet::default();
    let mut generics: &[ast::Generic] = &[];
    match &node.kind {
        ItemKind::Codelet(c) => {
            generics = &c.generics;
            names.extend(c.fields.iter().map(|f| f.name.name.clone()));
            c.fields.iter().for_each(|f| size_names(tree, &f.ty, &mut names));
        }
        ItemKind::Fn(f) => {
            generics = &f.generics;
            names.extend(f.params.iter().map(|p| p.name.name.clone()));
            f.params.iter().filter_map(|p| p.ty.as_ref()).for_each(|t| size_names(tree, t, &mut names));
        }
        _ => {}
    }
    names.extend(generics.iter().map(|g| g.name.name.clone()));
    let mut bound: FxHashMap<SmolStr, u32> = names.into_iter().map(|name| (name, node.span.lo)).collect();
    let mut add = |pattern: &ast::Pattern, from: u32| {
        crate::modules::pattern_names(pattern, &mut |i| {
            let first = bound.entry(i.name.clone()).or_insert(from);
            *first = from.min(*first);
        });
    };
    for (_, s) in statements(tree, node) {
        match &s.kind {
            StmtKind::Decl(ast::Decl::Let(l)) => add(&l.pattern, l.span.hi),
            StmtKind::For { binders, .. } => binders.iter().for_each(|b| add(&b.pattern, s.span.lo)),
            _ => {}
        }
    }
    for (_, e) in expressions(tree, node) {
        if let ExprKind::Reduce(r) = &e.kind {
            r.binders.iter().for_each(|b| add(&b.pattern, e.span.lo));
        }
    }
    bound
}

/// Returns the bare names in the dimensions of a type.
fn size_names(tree: &ast::Module, ty: &ast::Type, out: &mut FxHashSet<SmolStr>) {
    if let ast::TypeKind::Name { dims: Some(dims), .. } = &ty.kind {
        for d in dims {
            match d {
                ast::Dim::Spread(s) => _ = out.insert(s.name.clone()),
                ast::Dim::Shape(_) => {}
                ast::Dim::Expr(e) => {
                    if let ExprKind::Name(n) = &tree.exprs[*e].kind {
                        out.insert(n.clone());
                    }
                }
            }
        }
    }
}
