//! The import graph of the files of each crate: a file points to the files that define what it names, wherever a module
//! re-exports it. Calls of methods do not count, and neither does code for tests.

use girder_passes::pipeline::PASSES;
use girder_tests::files;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use petgraph::visit::Dfs;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The largest number of files that may import one another.
const LARGEST_CIRCLE: usize = 4;

/// A module, in a file of its own or inside another module.
struct Module {
    file: usize,
    parent: usize,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    /// Imported names and their paths.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Every path in the code.
    paths: Vec<Vec<String>>,
}

/// A crate; the first module is its root.
#[derive(Default)]
struct Crate {
    files: Vec<PathBuf>,
    modules: Vec<Module>,
}

type Seen = BTreeSet<(usize, Vec<String>, bool)>;

enum Found {
    Module(usize),
    ItemIn(usize),
}

impl Crate {
    fn add(&mut self, file: usize, parent: usize) -> usize {
        let (children, items, imports) = Default::default();
        self.modules.push(Module { file, parent, children, items, imports, globs: vec![], paths: vec![] });
        self.modules.len() - 1
    }

    fn add_file(&mut self, path: PathBuf, inside: &Path, parent: usize) -> usize {
        let tokens: TokenStream = files::text(&path).parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.files.push(path);
        let module = self.add(self.files.len() - 1, parent);
        self.scan(&tokens.into_iter().collect::<Vec<_>>(), module, inside, true);
        module
    }

    /// Adds what the tokens of a module define, import and name; `top` outside the bodies of items.
    fn scan(&mut self, tokens: &[TokenTree], module: usize, inside: &Path, top: bool) {
        let mut k = 0;
        while k < tokens.len() {
            let next = tokens.get(k + 1);
            match &tokens[k] {
                TokenTree::Punct(p) if p.as_char() == '#' && next.is_some_and(|t| t.to_string() == "[cfg (test)]") => {
                    let ends = |t: &TokenTree| {
                        is(t, ";") || matches!(t, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace)
                    };
                    k += tokens[k..].iter().position(ends).unwrap_or(tokens.len());
                }
                // The name of a lifetime, or of a field or method.
                TokenTree::Punct(p)
                    if matches!(p.as_char(), '\'' | '.') && matches!(next, Some(TokenTree::Ident(_))) =>
                {
                    k += 1
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                TokenTree::Group(g) => self.scan(&g.stream().into_iter().collect::<Vec<_>>(), module, inside, false),
                TokenTree::Ident(word) => {
                    let word = word.to_string();
                    let name = next.filter(|t| matches!(t, TokenTree::Ident(_))).map(TokenTree::to_string);
                    match (word.as_str(), name) {
                        // Not the `use<'_>` of a bound.
                        ("use", _) if !next.is_some_and(|t| is(t, "<")) => {
                            let end = k + tokens[k..].iter().position(|t| is(t, ";")).unwrap_or(0);
                            self.import(&tokens[k + 1..end], &[], module);
                            k = end;
                        }
                        ("mod", Some(name)) if top => {
                            let child = match &tokens[k + 2] {
                                TokenTree::Group(g) => {
                                    let child = self.add(self.modules[module].file, module);
                                    let body: Vec<_> = g.stream().into_iter().collect();
                                    self.scan(&body, child, &inside.join(&name), true);
                                    child
                                }
                                _ => self.add_file(inside.join(format!("{name}.rs")), &inside.join(&name), module),
                            };
                            self.modules[module].children.insert(name, child);
                            k += 2;
                        }
                        ("fn" | "struct" | "enum" | "trait" | "type" | "const" | "static", Some(name)) if top => {
                            self.modules[module].items.insert(name);
                        }
                        _ => {
                            let mut path = vec![word];
                            while let [a, b, TokenTree::Ident(part), ..] = &tokens[k + 1..]
                                && is(a, ":")
                                && is(b, ":")
                            {
                                path.push(part.to_string());
                                k += 3;
                            }
                            self.modules[module].paths.push(path);
                        }
                    }
                }
            }
            k += 1;
        }
    }

    /// Adds the names of a tree of imports.
    fn import(&mut self, tree: &[TokenTree], before: &[String], module: usize) {
        for part in tree.split(|t| is(t, ",")) {
            let mut path = before.to_vec();
            let mut alias = None;
            for (k, token) in part.iter().enumerate() {
                match token {
                    TokenTree::Group(g) => {
                        self.import(&g.stream().into_iter().collect::<Vec<_>>(), &path, module);
                        path.clear();
                    }
                    TokenTree::Ident(word) if word == "as" => alias = part.get(k + 1).map(TokenTree::to_string),
                    TokenTree::Ident(_) if alias.is_none() => path.push(token.to_string()),
                    TokenTree::Punct(p) if p.as_char() == '*' => {
                        self.modules[module].globs.push(std::mem::take(&mut path))
                    }
                    _ => {}
                }
            }
            path.truncate(path.len() - usize::from(path.len() > 1 && path.last().is_some_and(|w| w == "self")));
            if let Some(last) = path.last() {
                self.modules[module].imports.insert(alias.unwrap_or_else(|| last.clone()), path);
            }
        }
    }

    /// Returns what a path names in a module. A name of this crate that no module declares is made by a macro of the
    /// module that the path names. `seen` has the questions so far: re-exports may go in circles.
    fn resolve(&self, module: usize, path: &[String], qualified: bool, seen: &mut Seen) -> Option<Found> {
        let m = &self.modules[module];
        let Some((first, rest)) = path.split_first() else { return Some(Found::Module(module)) };
        if !seen.insert((module, path.to_vec(), qualified)) {
            return None;
        }
        match first.as_str() {
            "crate" => return self.resolve(0, rest, true, seen),
            "self" => return self.resolve(module, rest, true, seen),
            "super" => return self.resolve(m.parent, rest, true, seen),
            _ => {}
        }
        if let Some(&child) = m.children.get(first)
            && let Some(found) = self.resolve(child, rest, true, seen)
        {
            return Some(found);
        }
        if m.items.contains(first) {
            return Some(Found::ItemIn(m.file));
        }
        if let Some(import) = m.imports.get(first) {
            return match self.resolve(module, import, false, seen)? {
                Found::Module(other) => self.resolve(other, rest, true, seen),
                item => Some(item),
            };
        }
        let mut in_glob = |glob: &Vec<String>| match self.resolve(module, glob, false, seen)? {
            Found::Module(other) => self.resolve(other, path, false, seen),
            Found::ItemIn(_) => None,
        };
        let made = || (qualified && rest.is_empty()).then_some(Found::ItemIn(m.file));
        m.globs.iter().find_map(&mut in_glob).or_else(made)
    }

    fn graph(&self) -> DiGraphMap<usize, ()> {
        let mut graph = DiGraphMap::new();
        for (k, m) in self.modules.iter().enumerate() {
            for path in m.paths.iter().chain(m.imports.values()).chain(&m.globs) {
                match self.resolve(k, path, false, &mut Seen::new()) {
                    Some(Found::ItemIn(file)) => _ = graph.add_edge(m.file, file, ()),
                    Some(Found::Module(other)) if m.globs.contains(path) => {
                        graph.add_edge(m.file, self.modules[other].file, ());
                    }
                    _ => {}
                }
            }
        }
        graph
    }
}

fn is(token: &TokenTree, sign: &str) -> bool {
    matches!(token, TokenTree::Punct(p) if p.to_string() == sign)
}

/// Returns the files of a crate and which of them import which.
fn imports(source: &Path) -> (Crate, DiGraphMap<usize, ()>) {
    let root = ["lib.rs", "main.rs"].map(|f| source.join(f)).into_iter().find(|f| files::root().join(f).exists());
    let mut all = Crate::default();
    all.add_file(root.expect("the root of a crate"), source, 0);
    let graph = all.graph();
    (all, graph)
}

#[test]
fn few_files_import_one_another() {
    let mut circles = vec![];
    for folder in ["compiler", "runtime"] {
        for name in files::names(folder) {
            let source = Path::new(folder).join(name).join("src");
            let (all, graph) = imports(&source);
            assert!(graph.node_count() + 2 >= all.files.len(), "files of {} import nothing", source.display());
            for circle in tarjan_scc(&graph).into_iter().filter(|c| c.len() > LARGEST_CIRCLE) {
                let mut names: Vec<String> = circle.iter().map(|&f| all.files[f].display().to_string()).collect();
                names.sort();
                circles.push(names.join("\n"));
            }
        }
    }
    assert!(circles.is_empty(), "more than {LARGEST_CIRCLE} files import one another:\n\n{}", circles.join("\n\n"));
}

/// Neither directly nor through modules that passes share.
#[test]
fn no_pass_imports_a_later_pass() {
    let source = Path::new("compiler/passes/src");
    let (all, graph) = imports(source);
    // The place in the order of the pass that a file belongs to.
    let pass_of = |file: usize| {
        let inside = all.files[file].strip_prefix(source).expect("a file of the crate");
        let module = inside.iter().next().expect("a name").to_string_lossy();
        PASSES.iter().position(|pass| pass.name.replace('-', "_") == module.trim_end_matches(".rs"))
    };
    for (k, pass) in PASSES.iter().enumerate() {
        let mut visit = Dfs::empty(&graph);
        visit.stack.extend(graph.nodes().filter(|&file| pass_of(file) == Some(k)));
        assert!(!visit.stack.is_empty(), "no file of {}", pass.name);
        while let Some(file) = visit.next(&graph) {
            let later = pass_of(file).is_some_and(|other| other > k);
            assert!(!later, "{} imports {}", pass.name, all.files[file].display());
        }
    }
}
