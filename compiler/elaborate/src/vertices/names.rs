//! Codelets, compute sets and copies by name.
//!
//! Invariant: a set of a module is made once, when it is first needed, and a codelet's header is read once.

use crate::elaborator::NodeKind;
use crate::elaborator::{Elaborator, Set};
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast;
use girder_typing::{Header, ModuleRef};
use smol_str::SmolStr;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Elaborates `execute name;`.
    pub fn execute(&mut self, name: &ast::Path) -> Result<()> {
        match self.find_set(name)? {
            Set::Compute(s) => self.push(NodeKind::Execute(s), name.span),
            Set::Copy(c) => self.push(NodeKind::Copy(c), name.span),
        }
    }

    /// Returns a compute set or copy of the module, made when it is first needed.
    pub fn find_set(&mut self, name: &ast::Path) -> Result<Set> {
        let dotted = name.dotted();
        let found = self.modules.find(self.module(), &dotted, |m| &m.sets);
        let Some((module, item)) = found.and_then(|(m, e)| self.modules.item(m, e)).map(|(m, i, _)| (m, i)) else {
            let all = self.modules.get(self.module()).sets.keys().map(SmolStr::as_str);
            let near = girder_source::closest(&dotted, all);
            let message = format!("there is no compute set or copy `{dotted}`");
            let d = Diagnostic::error("names::unknown", name.span, message);
            return Err(self.report(match near {
                Some(n) => d.help(format!("did you mean `{n}`?")),
                None => d.help("define it at the top of the module: `compute name { … }`"),
            }));
        };
        self.define_set(module, item)
    }

    /// Makes a module's compute set or copy.
    pub fn define_set(&mut self, module: ModuleRef, item: usize) -> Result<Set> {
        let it = &self.modules.get(module).tree.items[item];
        let name = match &it.kind {
            ast::ItemKind::Compute { name, .. } | ast::ItemKind::Copy { name, .. } => name.dotted(),
            _ => return Err(Failed),
        };
        let key = (module, name.clone());
        if let Some(&s) = self.entities.made_sets.get(&key) {
            return Ok(s);
        }
        let set = self.at_top(module, |this| {
            let name = this.unique_set_name(Some(&name), "");
            match &it.kind {
                ast::ItemKind::Compute { vertices, .. } => this.compute_set(name, vertices, it.span).map(Set::Compute),
                ast::ItemKind::Copy { copies, .. } => this.copy_set(name, copies, it.span).map(Set::Copy),
                _ => Err(Failed),
            }
        })?;
        self.entities.made_sets.insert(key, set);
        Ok(set)
    }

    /// Returns the codelet that a path names.
    pub fn find_codelet(&mut self, path: &ast::Path) -> Result<(ModuleRef, usize)> {
        self.codelet_named(&path.dotted(), path.span)
    }

    /// Returns the codelet of a dotted name.
    pub fn codelet_named(&mut self, dotted: &str, span: Span) -> Result<(ModuleRef, usize)> {
        let found = self.modules.find(self.module(), dotted, |m| &m.codelets);
        if let Some((m, i, _)) = found.and_then(|(m, e)| self.modules.item(m, e)) {
            return Ok((m, i));
        }
        let data = self.modules.get(self.module());
        let near = girder_source::closest(dotted, data.codelets.keys().map(SmolStr::as_str));
        let d = Diagnostic::error("names::unknown", span, format!("there is no codelet `{dotted}`"));
        let is_fn = data.values.contains_key(dotted);
        Err(self.report(match near {
            _ if is_fn => d.help(format!("`{dotted}` is a function; a vertex runs a `codelet`")),
            Some(n) => d.help(format!("did you mean `{n}`?")),
            None => d,
        }))
    }

    pub fn header(&mut self, module: ModuleRef, item: usize) -> Result<Arc<Header>> {
        if let Some(h) = self.codelets.headers.get(&(module, item)) {
            return h.clone().ok_or(Failed);
        }
        let header = self.with_scope(|names, diagnostics| {
            let (c, _) = names.codelet(module, item)?;
            girder_typing::header(names, module, c, diagnostics).ok().map(Arc::new)
        });
        self.codelets.headers.insert((module, item), header.clone());
        header.ok_or(Failed)
    }
}
