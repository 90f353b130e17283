//! The files of one compilation (the root module, its imports, and the prelude), and the meaning of each name of a
//! module.
//!
//! Invariant: every module is parsed once. Imports may form cycles; the values of items may not, and their graph
//! (`references`) spans all modules.

mod attributes;
mod duplicates;
mod library;

pub use attributes::{needless_arguments, unknown_attribute};
pub use library::Library;

use girder_source::{Diagnostic, Diagnostics, FileId, Session, SourceMap, Span};
use girder_syntax::ast;
use girder_syntax::token::Token;
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A static array from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub ty: girder_ir::types::ElemType,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Elements, row-major and little-endian.
    pub bytes: Arc<[u8]>,
}

/// Access to everything outside the text: the library, other files, arrays.
pub trait Loader {
    /// Returns the library.
    fn library(&self) -> &Library;
    /// Returns the text of a file named relative to `importer`, and the path under which it is known.
    fn file(&self, importer: &Path, name: &str) -> Result<(PathBuf, String), String>;
    /// Returns an array from a file named relative to `importer`; `key` selects one of an archive. An array of more
    /// than `most` bytes is an error, and is not read.
    fn array(&self, importer: &Path, name: &str, key: Option<&str>, most: u64) -> Result<Array, String>;
}

/// The meaning of a name of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// An item, by index.
    Item(usize),
    /// A whole module.
    Module(ModuleRef),
    /// An item of another module.
    Other(ModuleRef, usize),
}

/// One parsed file with its names.
#[derive(Clone, Debug)]
pub struct Module {
    /// The path as the user named it.
    pub path: PathBuf,
    /// The prefix that qualifies its items in printed text; empty for the root.
    pub prefix: SmolStr,
    /// Its syntax.
    pub tree: Arc<ast::Module>,
    /// `let var param const temp stream remote fn`, imports.
    pub values: FxHashMap<SmolStr, Entry>,
    /// `codelet`
    pub codelets: FxHashMap<SmolStr, Entry>,
    /// `compute` and `copy`
    pub sets: FxHashMap<SmolStr, Entry>,
    /// `program`
    pub programs: FxHashMap<SmolStr, Entry>,
    /// Whether some value has a dotted name, as in printed text.
    pub dotted: bool,
}

impl Module {
    /// Makes a module of a tree, without the names that it imports.
    fn of(path: PathBuf, prefix: SmolStr, tree: ast::Module, diagnostics: &mut Diagnostics) -> Module {
        duplicates::duplicates(&tree, diagnostics);
        attributes::attributes(&tree, diagnostics);
        let tree = Arc::new(tree);
        let mut module = Module {
            path,
            prefix,
            tree: tree.clone(),
            values: FxHashMap::default(),
            codelets: FxHashMap::default(),
            sets: FxHashMap::default(),
            programs: FxHashMap::default(),
            dotted: false,
        };
        let mut spans = FxHashMap::default();
        for (i, item) in tree.items.iter().enumerate() {
            declare(&mut module, i, item, &mut spans, diagnostics);
        }
        module
    }
}

/// All modules.
#[derive(Debug)]
pub struct Modules {
    list: Vec<Module>,
    /// The module whose names need no `use`.
    pub prelude: ModuleRef,
}

/// The prelude's name.
pub const PRELUDE: &str = "prelude";

impl Modules {
    /// Parses the root file, the prelude, and everything they import.
    pub fn load(
        map: &mut SourceMap,
        root: FileId,
        loader: &dyn Loader,
        session: &Session,
        diagnostics: &mut Diagnostics,
    ) -> Modules {
        let known = FxHashMap::default();
        let mut this = Loading { map, loader, session, diagnostics, list: vec![], known, names: vec![] };
        let path = this.map.file(root).path.clone();
        this.add(path, SmolStr::default(), root);
        let prelude = this.library(PRELUDE, Span::NONE).unwrap_or(ModuleRef(0));
        let mut next = 0;
        while next < this.list.len() {
            this.imports(ModuleRef(next as u32));
            next += 1;
        }
        this.import_names();
        Modules { list: this.list, prelude }
    }

    /// The id of the root module.
    pub const ROOT: ModuleRef = ModuleRef(0);

    /// Returns the number of modules.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns whether some module mentions a name in an expression.
    pub fn mentions(&self, name: &str) -> bool {
        let in_tree =
            |m: &Module| m.tree.exprs.written().iter().any(|e| matches!(&e.kind, ast::ExprKind::Name(n) if n == name));
        !self.is_printed() && self.list.iter().any(in_tree)
    }

    /// Returns the name of the graph: `module name;`, or the root file's name.
    pub fn root_name(&self) -> SmolStr {
        let root = self.get(Modules::ROOT);
        if let Some(h) = &root.tree.header {
            return h.name.dotted();
        }
        let stem = root.path.file_stem().and_then(|s| s.to_str()).unwrap_or("main");
        let ident = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let name: String = stem.chars().map(ident).collect();
        // A word of the grammar, or a name that begins like a number, could not be printed.
        let word = girder_syntax::token::lex(&name, 0).lexemes.first().map(|l| l.token);
        let is_name = word.is_some_and(|t| t == Token::Ident && name != "_" || t.is_contextual());
        if is_name { name.into() } else { format!("m_{name}").into() }
    }

    /// Returns whether the text is the printed text of a stage.
    pub fn is_printed(&self) -> bool {
        let header = self.get(Modules::ROOT).tree.header.as_ref();
        header.is_some_and(|h| h.options.iter().any(|o| o.name.as_ref().is_some_and(|n| n.name == "after")))
    }

    /// Returns a module.
    pub fn get(&self, module: ModuleRef) -> &Module {
        &self.list[module.0 as usize]
    }

    /// Returns the name of an item in printed text. Generated modules use names that are qualified already.
    pub fn qualified(&self, module: ModuleRef, name: &str) -> SmolStr {
        match self.list.get(module.0 as usize) {
            Some(m) if !m.prefix.is_empty() => format!("{}.{name}", m.prefix).into(),
            _ => name.into(),
        }
    }

    /// Returns all modules; the root first.
    pub fn iter(&self) -> impl Iterator<Item = (ModuleRef, &Module)> {
        self.list.iter().enumerate().map(|(i, m)| (ModuleRef(i as u32), m))
    }

    /// Returns the item that an entry of a module names.
    pub fn item(&self, module: ModuleRef, entry: Entry) -> Option<(ModuleRef, usize, &ast::Item)> {
        let (module, index) = match entry {
            Entry::Item(i) => (module, i),
            Entry::Other(m, i) => (m, i),
            Entry::Module(_) => return None,
        };
        Some((module, index, &self.get(module).tree.items[index]))
    }

    /// Resolves a dotted name in a module: first in the module itself, then in its imports (`nn.relu`), then in the
    /// prelude. `table` selects the kind of name.
    pub fn find(
        &self,
        module: ModuleRef,
        name: &str,
        table: impl Fn(&Module) -> &FxHashMap<SmolStr, Entry> + Copy,
    ) -> Option<(ModuleRef, Entry)> {
        if let Some(&e) = table(self.get(module)).get(name) {
            return Some((module, e));
        }
        if let Some((first, rest)) = name.split_once('.') {
            if let Some(&Entry::Module(m)) = self.get(module).values.get(first) {
                return table(self.get(m)).get(rest).map(|&e| (m, e));
            }
            // The qualified names of printed text reach library modules without `use`.
            let by_prefix = self.iter().find(|(_, m)| m.prefix == first);
            if let Some((m, data)) = by_prefix {
                return table(data).get(rest).map(|&e| (m, e));
            }
        }
        table(self.get(self.prelude)).get(name).map(|&e| (self.prelude, e))
    }
}

/// The help for a module whose name the importing module already has.
const IMPORT_AS: &str = "import it under another name with `as`";

struct Loading<'a> {
    map: &'a mut SourceMap,
    loader: &'a dyn Loader,
    session: &'a Session,
    diagnostics: &'a mut Diagnostics,
    list: Vec<Module>,
    known: FxHashMap<PathBuf, ModuleRef>,
    /// Names to import, `use m.{a};`.
    names: Vec<Import>,
}

/// A name that a module imports from another, which may itself import it.
struct Import {
    into: ModuleRef,
    from: ModuleRef,
    /// The other module as the importing one writes it.
    path: SmolStr,
    name: ast::Ident,
    found: bool,
    /// Whether it is bound as a value; a codelet may have the same name.
    bound: bool,
}

impl Loading<'_> {
    fn add(&mut self, path: PathBuf, prefix: SmolStr, file: FileId) -> ModuleRef {
        let tree = girder_syntax::parse_charged(self.map, file, self.session, self.diagnostics);
        duplicates::built_in(&tree, self.diagnostics);
        let module = Module::of(path, prefix, tree, self.diagnostics);
        self.push(module)
    }

    fn push(&mut self, module: Module) -> ModuleRef {
        let id = ModuleRef(self.list.len() as u32);
        self.known.insert(module.path.clone(), id);
        self.list.push(module);
        id
    }

    fn library(&mut self, name: &str, at: Span) -> Option<ModuleRef> {
        let path = PathBuf::from(format!("<{name}>"));
        if let Some(&m) = self.known.get(&path) {
            return Some(m);
        }
        let loader = self.loader;
        let Some(parsed) = loader.library().module(name) else {
            self.diagnostics.push(no_such_module(loader.library(), name, at));
            return None;
        };
        self.map.add_library(parsed.file.clone());
        self.diagnostics.extend(parsed.diagnostics.iter().cloned());
        Some(self.push(parsed.module.clone()))
    }

    fn file(&mut self, importer: ModuleRef, name: &str, alias: &ast::Ident, at: Span) -> Option<ModuleRef> {
        let importer_path = self.list[importer.0 as usize].path.clone();
        let (path, text) = match self.loader.file(&importer_path, name) {
            Ok(found) => found,
            Err(why) => {
                let d = Diagnostic::error("names::no_such_file", at, format!("cannot import \"{name}\": {why}"));
                self.diagnostics.push(d.help("the path is taken relative to this file"));
                return None;
            }
        };
        if let Some(&m) = self.known.get(&path) {
            return Some(m);
        }
        let Some(file) = self.map.add(path.clone(), text) else {
            let d = Diagnostic::error("names::too_much_text", at, "all files together exceed 4,080 MiB of text");
            self.diagnostics.push(d);
            return None;
        };
        Some(self.add(path, alias.name.clone(), file))
    }

    fn imports(&mut self, module: ModuleRef) {
        let uses: Vec<ast::Use> = self.list[module.0 as usize]
            .tree
            .items
            .iter()
            .filter_map(|item| match &item.kind {
                ast::ItemKind::Use(u) => Some(u.clone()),
                _ => None,
            })
            .collect();
        for u in uses {
            match u {
                ast::Use::Library { name, alias } => {
                    if let Some(m) = self.library(&name.dotted(), name.span) {
                        let alias = alias.unwrap_or_else(|| name.parts[name.parts.len() - 1].clone());
                        self.bind(module, &alias, Entry::Module(m), IMPORT_AS);
                    }
                }
                ast::Use::File { path, span, alias } => {
                    if let Some(m) = self.file(module, &path, &alias, span) {
                        self.bind(module, &alias, Entry::Module(m), IMPORT_AS);
                    }
                }
                ast::Use::Names { name, names } => {
                    let dotted = name.dotted();
                    let known = match self.list[module.0 as usize].values.get(&dotted) {
                        Some(Entry::Module(m)) => Some(*m),
                        _ => self.library(&dotted, name.span),
                    };
                    if let Some(from) = known {
                        let all = names.into_iter().map(|name| Import {
                            into: module,
                            from,
                            path: dotted.clone(),
                            name,
                            found: false,
                            bound: false,
                        });
                        self.names.extend(all);
                    }
                }
            }
        }
    }

    /// Imports names until no module gets another one: what a module imports, others may import from it.
    fn import_names(&mut self) {
        let mut names = std::mem::take(&mut self.names);
        let mut more = true;
        while more {
            more = false;
            for n in &mut names {
                more |= self.import_name(n);
            }
        }
        for n in names.iter().filter(|n| !n.found) {
            let source = &self.list[n.from.0 as usize];
            let all = source.values.keys().chain(source.codelets.keys()).map(SmolStr::as_str);
            let near = girder_source::closest(&n.name.name, all);
            let message = format!("module `{}` has no item `{}`", source.prefix, n.name.name);
            let d = Diagnostic::error("names::unknown", n.name.span, message);
            self.diagnostics.push(match near {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d,
            });
        }
    }

    /// Imports a name as far as its module has it already; returns whether that adds anything.
    fn import_name(&mut self, n: &mut Import) -> bool {
        let source = &self.list[n.from.0 as usize];
        let find = |table: &FxHashMap<SmolStr, Entry>| match table.get(&n.name.name) {
            Some(Entry::Item(i)) => Some(Entry::Other(n.from, *i)),
            other => other.copied(),
        };
        let (value, codelet, program) = (find(&source.values), find(&source.codelets), find(&source.programs));
        let mut more = false;
        if let Some(e) = value
            && !n.bound
        {
            // Single names have no other name here, so the module is imported instead.
            let known = matches!(self.list[n.into.0 as usize].values.get(&n.path), Some(Entry::Module(_)));
            let module = if known { String::new() } else { format!("`use {};` and ", n.path) };
            let help = format!("instead of this import write {module}`{}.{}`", n.path, n.name.name);
            self.bind(n.into, &n.name, e, &help);
            (n.found, n.bound, more) = (true, true, true);
        }
        let m = &mut self.list[n.into.0 as usize];
        for (table, entry) in [(&mut m.codelets, codelet), (&mut m.programs, program)] {
            let Some(e) = entry else { continue };
            n.found = true;
            if !table.contains_key(&n.name.name) {
                table.insert(n.name.name.clone(), e);
                more = true;
            }
        }
        more
    }

    /// Binds an imported name; `help` is for a name that the module already has.
    fn bind(&mut self, module: ModuleRef, name: &ast::Ident, entry: Entry, help: &str) {
        let m = &mut self.list[module.0 as usize];
        match m.values.get(&name.name) {
            Some(&old) if old != entry => {
                let message = format!("`{}` is imported, but this module already has an item of that name", name.name);
                let d = Diagnostic::error("names::duplicate", name.span, message);
                self.diagnostics.push(d.help(help));
            }
            _ => {
                m.values.insert(name.name.clone(), entry);
            }
        }
    }
}

/// Returns the diagnostic for a name that no module of the library has.
fn no_such_module(library: &Library, name: &str, at: Span) -> Diagnostic {
    let d = Diagnostic::error("names::no_such_module", at, format!("the library has no module `{name}`"));
    if let Some((module, function)) = name.rsplit_once('.')
        && library.has_function(module, function)
    {
        return d.help(format!("`{function}` is a function of `{module}`: write `use {module}.{{{function}}};`"));
    }
    let names: Vec<&str> = library.names().collect();
    match girder_source::closest(name, names.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help(format!("it has {}; a file is imported with `use \"file.gir\" as name;`", names.join(", "))),
    }
}

/// Records the names of one item.
fn declare(
    m: &mut Module,
    index: usize,
    item: &ast::Item,
    spans: &mut FxHashMap<(u8, SmolStr), Span>,
    diagnostics: &mut Diagnostics,
) {
    let mut enter = |table: u8, name: SmolStr, span: Span| {
        if let Some(&first) = spans.get(&(table, name.clone())) {
            let d = Diagnostic::error("names::duplicate", span, format!("`{name}` is declared twice"));
            diagnostics.push(d.here("second declaration").label(first, "first declaration"));
            return;
        }
        spans.insert((table, name.clone()), span);
        m.dotted |= table == 0 && name.contains('.');
        let map = [&mut m.values, &mut m.codelets, &mut m.sets, &mut m.programs].into_iter().nth(table as usize);
        if let Some(map) = map {
            map.insert(name, Entry::Item(index));
        }
    };
    use ast::ItemKind::*;
    match &item.kind {
        Fn(f) => enter(0, f.name.dotted(), f.name.span),
        Stream(s) => enter(0, s.name.dotted(), s.name.span),
        Decl(ast::Decl::Let(l)) => pattern_names(&l.pattern, &mut |i| enter(0, i.name.clone(), i.span)),
        Decl(ast::Decl::Var(v)) => enter(0, v.name.dotted(), v.name.span),
        Codelet(c) => enter(1, c.name.dotted(), c.name.span),
        Compute { name, .. } | Copy { name, .. } => enter(2, name.dotted(), name.span),
        Program(p) => enter(3, p.name.dotted(), p.name.span),
        Use(_) | Grad(_) | Decl(ast::Decl::Map { .. }) | Exchange { .. } | Layout { .. } | Error => {}
    }
}

/// Returns the names that an item declares.
pub fn item_names(item: &ast::Item) -> Vec<SmolStr> {
    use ast::ItemKind::*;
    match &item.kind {
        Decl(ast::Decl::Let(l)) => {
            let mut names = Vec::new();
            pattern_names(&l.pattern, &mut |i| names.push(i.name.clone()));
            names
        }
        Decl(ast::Decl::Var(v)) => vec![v.name.dotted()],
        Stream(s) => vec![s.name.dotted()],
        Fn(f) => vec![f.name.dotted()],
        Program(p) => vec![p.name.dotted()],
        Codelet(c) => vec![c.name.dotted()],
        _ => vec![],
    }
}

/// Calls `f` with the names that a pattern binds, in order.
pub fn pattern_names(pattern: &ast::Pattern, f: &mut impl FnMut(&ast::Ident)) {
    match pattern {
        ast::Pattern::Name(i) => f(i),
        ast::Pattern::Wildcard(_) => {}
        ast::Pattern::Tuple(parts, _) => parts.iter().for_each(|p| pattern_names(p, f)),
    }
}
