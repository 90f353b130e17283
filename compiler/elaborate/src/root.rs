//! The root module: elaboration of its items in order, and checks of the whole module.
//!
//! Invariant: every item is elaborated, even after errors in earlier ones.

use crate::elaborator::{Elaborator, Global};
use crate::modules::{Modules, pattern_names};
use crate::programs::is_called;
use crate::references::{ItemId, References};
use crate::value::Value;
use girder_source::{Failed, Result, Span, closest};
use girder_syntax::ast::{self, Decl, ItemKind};
use rustc_hash::FxHashSet;

impl Elaborator<'_> {
    /// Elaborates all items of the root module, and the declarations of what it imports, in order.
    pub fn root(&mut self) {
        // Wrong arguments of the command line are reported alone, before the program is elaborated.
        if self.check_arguments().is_err() {
            return;
        }
        self.declare_all();
        let tree = &self.modules.get(Modules::ROOT).tree;
        for item in &tree.items {
            if let ItemKind::Decl(Decl::Map { view, place, family, span }) = &item.kind {
                // Errors have been reported.
                let _ = self.at_top(Modules::ROOT, |this| this.map_statement(*view, place, family, *span));
            }
        }
        for (index, item) in tree.items.iter().enumerate() {
            match &item.kind {
                ItemKind::Compute { .. } | ItemKind::Copy { .. } => _ = self.define_set(Modules::ROOT, index),
                _ => {}
            }
        }
        self.root_programs();
        self.make_mappings();
        self.check_unused_codelets();
    }

    /// Declares all items of the root module that have values, and the `let`s of its imports. Each comes after the
    /// items that it mentions, so that evaluation need not nest; otherwise they are in the order of the text.
    fn declare_all(&mut self) {
        let mut items: Vec<ItemId> = vec![];
        for (m, module) in self.modules.iter() {
            for (index, item) in module.tree.items.iter().enumerate() {
                match &item.kind {
                    ItemKind::Decl(Decl::Let(_)) => items.push((m, index)),
                    // The variables of a library module exist only if they are used.
                    ItemKind::Decl(Decl::Var(_)) | ItemKind::Stream(_) if m == Modules::ROOT => items.push((m, index)),
                    _ => {}
                }
            }
        }
        let wanted: FxHashSet<ItemId> = items.iter().copied().collect();
        let order = References::new(self.modules, &items).order(&items);
        // Items in cycles come last: they are errors, unless evaluation does not follow the cycle.
        for (module, index) in order.into_iter().filter(|i| wanted.contains(i)).chain(items) {
            self.declare_item(module, index);
        }
    }

    /// Checks that every `--arg` names a `let` of the module or a parameter of a program and has a value of its kind,
    /// and that every parameter without a default has one.
    fn check_arguments(&mut self) -> Result<()> {
        let mut done = self.check_names_of_arguments();
        let tree = &self.modules.get(Modules::ROOT).tree;
        for (index, item) in tree.items.iter().enumerate() {
            done = match &item.kind {
                ItemKind::Decl(Decl::Let(l)) => self.check_argument_of_let(index, l).and(done),
                ItemKind::Program(p) if !is_called(item) && !self.only_called(p) => {
                    self.at_top(Modules::ROOT, |this| this.program_arguments(p)).map(drop).and(done)
                }
                _ => done,
            };
        }
        done
    }

    /// Evaluates a `let` that an argument sets.
    fn check_argument_of_let(&mut self, index: usize, l: &ast::Let) -> Result<()> {
        let ast::Pattern::Name(name) = &l.pattern else { return Ok(()) };
        if self.arguments.get(&name.name).is_none() {
            return Ok(());
        }
        self.declare_item(Modules::ROOT, index);
        match self.scopes.global(Modules::ROOT, &name.name) {
            Some(Global::Known(Value::Error)) => Err(Failed),
            _ => Ok(()),
        }
    }

    fn check_names_of_arguments(&mut self) -> Result<()> {
        let tree = &self.modules.get(Modules::ROOT).tree;
        let mut known = Vec::new();
        for item in &tree.items {
            match &item.kind {
                ItemKind::Decl(Decl::Let(l)) => {
                    pattern_names(&l.pattern, &mut |n| known.push(n.name.clone()));
                }
                ItemKind::Program(p) => known.extend(p.params.iter().map(|q| q.name.name.clone())),
                _ => {}
            }
        }
        let mut done = Ok(());
        for (name, text) in self.arguments.list.iter().filter(|(name, _)| !known.contains(name)) {
            let near = closest(name, known.iter().map(|n| n.as_str()));
            let help = match near {
                Some(n) => format!("did you mean `{n}`?"),
                None if known.is_empty() => "this module has neither".to_string(),
                None => format!("it has {}", known.join(", ")),
            };
            let message = format!("`--arg {name}={text}` names no `let` of the module and no parameter of a program");
            done = Err(self.error_help("elaborate::unknown_argument", Span::NONE, message, help));
        }
        done
    }

    /// Checks codelets of the root module without generics even if no vertex runs them.
    fn check_unused_codelets(&mut self) {
        let tree = &self.modules.get(Modules::ROOT).tree;
        let (specs, items) = (self.graph.codelets.clone(), self.graph.items.clone());
        for (index, item) in tree.items.iter().enumerate() {
            if let ItemKind::Codelet(c) = &item.kind
                && c.generics.is_empty()
            {
                let _ = self.specialised(Modules::ROOT, index, &[], Span::NONE);
            }
        }
        // A codelet that no vertex runs is not part of the graph.
        (self.graph.codelets, self.graph.items) = (specs, items);
    }
}
