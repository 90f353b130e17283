//! The modules of the library, each parsed once in a process.
//!
//! Invariant: the offset of a module in a [`SourceMap`] is a function of the library alone, so that all compilations
//! can share its tree.

use super::Module;
use girder_source::{Diagnostics, LIBRARY_START, Session, SourceFile, SourceMap};
use girder_syntax::ast;
use std::sync::{Arc, OnceLock};

/// The modules from which programs take functions, in the order in which they are searched. Others hold parts of these,
/// or are in the prelude.
const FACES: [&str; 7] = ["sorting", "collectives", "stages", "nn", "optim", "random", "linalg"];

/// The library: names and texts of its modules, and what has been parsed of them.
#[derive(Debug)]
pub struct Library {
    modules: Vec<LibraryModule>,
}

#[derive(Debug)]
struct LibraryModule {
    name: &'static str,
    text: &'static str,
    base: u32,
    parsed: OnceLock<Parsed>,
}

/// A module of the library, before the names that it imports are bound.
#[derive(Debug)]
pub(super) struct Parsed {
    pub file: Arc<SourceFile>,
    pub module: Module,
    /// Empty, unless the library itself is wrong.
    pub diagnostics: Diagnostics,
}

impl Library {
    /// Makes a library of modules with these names and texts, of 16 MiB at most.
    pub fn new(modules: &[(&'static str, &'static str)]) -> Library {
        let mut base = LIBRARY_START;
        let module = |&(name, text): &(&'static str, &'static str)| {
            let module = LibraryModule { name, text, base, parsed: OnceLock::new() };
            base += text.len() as u32 + 1;
            module
        };
        Library { modules: modules.iter().map(module).collect() }
    }

    /// Returns the names of all modules.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.modules.iter().map(|m| m.name)
    }

    /// Returns the module from which a program takes a function of this name.
    pub fn module_of(&self, function: &str) -> Option<&'static str> {
        self.modules_of(function).first().copied()
    }

    /// Returns the modules from which a program takes functions of this name, one for each function.
    pub fn modules_of(&self, function: &str) -> Vec<&'static str> {
        let mut origins: Vec<String> = vec![];
        let is_other = |name: &&'static str| {
            let Some(origin) = self.origin(name, function) else { return false };
            let is_new = !origins.contains(&origin);
            origins.push(origin);
            is_new
        };
        FACES.into_iter().filter(is_other).collect()
    }

    /// Returns whether there is a module of this name with this function.
    pub fn has_function(&self, module: &str, function: &str) -> bool {
        self.origin(module, function).is_some()
    }

    /// Returns the name of the module from which a module has a function of this name: its own, unless it imports it.
    fn origin(&self, module: &str, function: &str) -> Option<String> {
        self.module(module)?.module.tree.items.iter().find_map(|item| match &item.kind {
            ast::ItemKind::Fn(f) if f.name.dotted() == function => Some(module.to_string()),
            ast::ItemKind::Use(ast::Use::Names { name, names }) if names.iter().any(|n| n.name == function) => {
                Some(name.dotted().to_string())
            }
            _ => None,
        })
    }

    pub(super) fn module(&self, name: &str) -> Option<&Parsed> {
        let module = self.modules.iter().find(|m| m.name == name)?;
        Some(module.parsed.get_or_init(|| module.parse()))
    }
}

impl LibraryModule {
    /// Parses the module. Limits that the user sets apply to the user's text, not to the library.
    fn parse(&self) -> Parsed {
        let path = format!("<{}>", self.name).into();
        let file = Arc::new(SourceFile { path, text: self.text.into(), base: self.base });
        let mut map = SourceMap::default();
        let id = map.add_library(file.clone());
        let mut diagnostics = Diagnostics::default();
        let tree = girder_syntax::parse(&map, id, &Session::default(), &mut diagnostics);
        let module = Module::of(file.path.clone(), self.name.into(), tree, &mut diagnostics);
        Parsed { file, module, diagnostics }
    }
}
