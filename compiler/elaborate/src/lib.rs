//! Module to Graph: names, shapes, static evaluation, codelet types.
//!
//! A tour: [`modules`] loads the files and enters their names. The `Elaborator` walks the root
//! module: `expr`, `operators`, `indexing`, `calls`, `builtins` and `reduce` give expressions their values;
//! `statements`, `control`, `declarations`, `effects` and `programs` emit the program; `vertices` and `copies` group
//! what is alike into `families`, `columns` for all turns of a loop at once; `each` applies codelet functions to tensors. [`codelet`] turns codelets into typed,
//! specialised ones; `codelets` connects the two.
//!
//! Invariant: a graph is made only if no error was said; elaboration depends on the text, the arguments and the
//! machine, never on the host.

pub mod codelet;
pub mod modules;
pub mod value;
mod spelling;
mod integers;
mod nodes;
mod elaborator;
mod scope;
mod duplicates;
mod attributes;
mod expr;
mod operators;
mod indexing;
mod types;
mod calls;
mod builtins;
mod reduce;
mod statements;
mod control;
mod arms;
mod declarations;
mod places;
mod maps;
mod vertices;
mod families;
mod columns;
mod each;
mod copies;
mod retarget;
mod effects;
mod programs;
mod arguments;
mod codelets;

pub use elaborator::Arguments;
pub use modules::{Array, Loader, Modules};

use elaborator::Elaborator;
use girder_ir::graph::Graph;
use girder_machine::Machine;
use girder_source::{Diagnostics, FileId, Result, Session, SourceMap};
use girder_syntax::ast::ItemKind;

/// What elaboration works on, beside the text.
pub struct Context<'a> {
    /// All text; what the compiler makes on the way is added.
    pub map: &'a mut SourceMap,
    /// The machine whose facts the text may ask for.
    pub machine: &'a Machine,
    /// Limits.
    pub session: &'a Session,
    /// The library, files and arrays.
    pub loader: &'a dyn Loader,
    /// `--arg`
    pub arguments: &'a Arguments,
    /// What is said.
    pub diagnostics: &'a mut Diagnostics,
}

/// The graph of a root file and its imports.
pub fn elaborate(root: FileId, cx: &mut Context<'_>) -> Result<Graph> {
    let modules = Modules::load(cx.map, root, cx.loader, cx.session, cx.diagnostics);
    elaborate_modules(&modules, cx)
}

/// The graph of modules that are already loaded.
pub fn elaborate_modules(modules: &Modules, cx: &mut Context<'_>) -> Result<Graph> {
    let had_errors = cx.diagnostics.has_errors();
    let mut e = Elaborator::new(modules, cx);
    e.root();
    let graph = e.graph;
    cx.diagnostics.check().map(|()| graph).inspect_err(|_| debug_assert!(had_errors || cx.diagnostics.has_errors()))
}

impl Elaborator<'_> {
    /// Elaborates all items of the root module, and the declarations of what it imports, in order.
    fn root(&mut self) {
        self.check_arguments();
        for (m, module) in self.modules.iter() {
            for (index, item) in module.tree.items.iter().enumerate() {
                match &item.kind {
                    ItemKind::Decl(girder_syntax::ast::Decl::Let(_)) => self.declare_item(m, index),
                    // The variables of a library module exist only where they are used.
                    _ if m == Modules::ROOT => self.declare_item(m, index),
                    _ => {}
                }
            }
        }
        let tree = &self.modules.get(Modules::ROOT).tree;
        for item in &tree.items {
            if let ItemKind::Decl(girder_syntax::ast::Decl::Map { view, place, family, span }) = &item.kind {
                // Errors have been said.
                let _ = self.at_top(Modules::ROOT, |this| this.map_statement(*view, place, family, *span));
            }
        }
        for (index, item) in tree.items.iter().enumerate() {
            match &item.kind {
                ItemKind::Compute { .. } | ItemKind::Copy { .. } => _ = self.define_set(Modules::ROOT, index),
                ItemKind::Grad(g) => _ = self.unsupported(g.name.span, "`grad`"),
                _ => {}
            }
        }
        self.root_programs();
        self.settle_maps();
        self.check_unused_codelets();
    }

    /// Every `--arg` must name a `let` of the module or a parameter of a program.
    fn check_arguments(&mut self) {
        let tree = &self.modules.get(Modules::ROOT).tree;
        let mut known = Vec::new();
        for item in &tree.items {
            match &item.kind {
                ItemKind::Decl(girder_syntax::ast::Decl::Let(l)) => {
                    modules::pattern_names(&l.pattern, &mut |n| known.push(n.name.clone()));
                }
                ItemKind::Program(p) => known.extend(p.params.iter().map(|q| q.name.name.clone())),
                _ => {}
            }
        }
        for (name, text) in &self.arguments.list {
            if !known.contains(name) {
                let near = spelling::closest(name, known.iter().map(|n| n.as_str()));
                let help = match near {
                    Some(n) => format!("did you mean `{n}`?"),
                    None if known.is_empty() => "this module has neither".to_string(),
                    None => format!("it has {}", known.join(", ")),
                };
                let message =
                    format!("`--arg {name}={text}` names no `let` of the module and no parameter of a program");
                self.error_help("elaborate::unknown_argument", girder_source::Span::NONE, message, help);
            }
        }
    }

    /// Codelets of the root module that no vertex runs are checked all the same where they have no generics.
    fn check_unused_codelets(&mut self) {
        let tree = &self.modules.get(Modules::ROOT).tree;
        let (specs, items) = (self.graph.codelets.clone(), self.graph.items.clone());
        for (index, item) in tree.items.iter().enumerate() {
            if let ItemKind::Codelet(c) = &item.kind
                && c.generics.is_empty()
            {
                let _ = self.specialised(Modules::ROOT, index, &[], girder_source::Span::NONE);
            }
        }
        // What no vertex runs is not part of the graph.
        (self.graph.codelets, self.graph.items) = (specs, items);
    }
}
