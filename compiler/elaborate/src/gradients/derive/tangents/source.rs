//! What is differentiated: a codelet function for operands of some types, or the codelet of an element of a derivative.
//!
//! Invariant: the codelet has a field for each operand, then one for each result; all are scalars.

use super::super::flatten::{Flatten, Refusal};
use crate::codelets::Names;
use crate::gradients::rule_table::Rules;
use girder_ir::codelet::Elementary;
use girder_ir::types::ElemType;
use girder_source::{Diagnostics, Session, Span};
use girder_syntax::ast;
use girder_typing::{Apart, Meaning, ModuleRef, Scope};
use smol_str::SmolStr;

/// A function of scalars, and the names that it sees.
pub struct Source<'s> {
    names: Ruled<'s>,
    session: &'s Session,
    of: Of<'s>,
    name: SmolStr,
}

/// The names that codelets see; calls of functions with a rule stay apart.
struct Ruled<'s> {
    names: &'s Names<'s>,
    rules: &'s Rules,
}

enum Of<'s> {
    Function(ModuleRef, &'s ast::Fn, Vec<ElemType>),
    Codelet(ModuleRef, &'s ast::Codelet),
}

impl<'s> Source<'s> {
    /// A codelet function for operands of some types.
    pub fn function(
        (names, rules, session): (&'s Names<'s>, &'s Rules, &'s Session),
        (module, item): (ModuleRef, usize),
        types: &[ElemType],
    ) -> Option<Source<'s>> {
        let f = names.function_at(module, item)?;
        let name = names.qualified_fn(module, f);
        Some(Source { names: Ruled { names, rules }, session, of: Of::Function(module, f, types.to_vec()), name })
    }

    /// A codelet of scalars, whose names are those that a generated codelet sees.
    pub fn codelet(
        (names, rules, session): (&'s Names<'s>, &'s Rules, &'s Session),
        module: ModuleRef,
        name: SmolStr,
    ) -> Option<Source<'s>> {
        let (codelet, _) = names.codelet(module, 0)?;
        Some(Source { names: Ruled { names, rules }, session, of: Of::Codelet(module, codelet), name })
    }

    /// Returns the function's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the typed codelet.
    pub(super) fn typed(&self) -> Result<Apart<'_>, Refusal> {
        let mut diagnostics = Diagnostics::default();
        let d = &mut diagnostics;
        let made = match &self.of {
            Of::Function(module, f, types) => {
                girder_typing::scalar_function(&self.names, (*module, f), types, Span::NONE, self.session, d)
            }
            Of::Codelet(module, codelet) => {
                girder_typing::codelet_apart(&self.names, *module, codelet, self.session, d)
            }
        };
        made.map_err(|_| {
            let error = diagnostics.iter().next().cloned().map(Box::new);
            Refusal { span: Span::NONE, what: "an error", inside: None, error }
        })
    }

    /// Returns an empty formula.
    pub(super) fn flatten(&self) -> Flatten<'s> {
        Flatten::new(self.names.names, self.names.rules)
    }

    /// Returns the number of a function in its module, and its name in printed text.
    pub(super) fn printed(&self, module: ModuleRef, f: &ast::Fn) -> Option<(usize, SmolStr)> {
        self.names.names.printed(module, f)
    }
}

impl Scope for Ruled<'_> {
    fn lookup(&self, module: ModuleRef, path: &str) -> Option<Meaning<'_>> {
        self.names.lookup(module, path)
    }

    fn elementary(&self, module: ModuleRef, item: &ast::Fn) -> Option<Elementary> {
        self.names.elementary(module, item)
    }

    fn function(&self, name: &str) -> Option<(ModuleRef, &ast::Fn)> {
        self.names.function(name)
    }

    fn stays_apart(&self, module: ModuleRef, item: &ast::Fn) -> bool {
        self.names.printed(module, item).is_some_and(|(k, _)| self.rules.of((module, k)).is_some())
    }

    fn tree(&self, module: ModuleRef) -> &ast::Module {
        self.names.tree(module)
    }
}
