//! The table of codelets: each is read, generated and specialised once.
//!
//! Invariant: a codelet that failed is remembered as failed, so that its errors are reported once.

use girder_ir::codelet::GenericArg;
use girder_ir::ids::{FieldId, SpecId};
use girder_syntax::ast;
use girder_typing::{Header, ModuleRef};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::sync::Arc;

/// The identity of a specialisation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SpecKey {
    /// The module of the codelet.
    pub module: ModuleRef,
    /// Its item there.
    pub item: usize,
    /// Its generics.
    pub args: Vec<GenericArg>,
}

/// A module that the compiler generated, with a codelet as its only item.
#[derive(Debug)]
pub struct Generated {
    /// Its syntax.
    pub tree: ast::Module,
    /// The codelet function that the codelet calls.
    pub callee: Option<(ModuleRef, usize)>,
}

/// Codelets by item.
#[derive(Debug, Default)]
pub struct CodeletTable {
    /// Specialisations; `None` for one that failed.
    pub specs: FxHashMap<SpecKey, Option<SpecId>>,
    /// Headers; `None` for one that failed.
    pub headers: FxHashMap<(ModuleRef, usize), Option<Arc<Header>>>,
    /// Modules that the compiler generated, numbered after those that were loaded.
    pub generated: Vec<Generated>,
    /// Generated codelets of element-wise steps, by name; each is the only item of its module.
    pub elementwise: FxHashMap<SmolStr, ModuleRef>,
    /// Functions that are arguments of generics, by their names in printed text.
    pub functions: FxHashMap<SmolStr, (ModuleRef, usize)>,
    /// Items whose text is in the graph.
    pub printed: FxHashSet<(ModuleRef, usize)>,
    /// Fields about which a warning was reported.
    pub warned: FxHashSet<(SpecId, FieldId)>,
}

impl CodeletTable {
    /// Returns the specialisations that failed.
    pub fn failures(&self) -> FxHashSet<SpecKey> {
        self.specs.iter().filter(|(_, spec)| spec.is_none()).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets the failures that are not among `known`, so that they occur, and are reported, again.
    pub fn forget_failures_since(&mut self, known: &FxHashSet<SpecKey>) {
        self.specs.retain(|key, spec| spec.is_some() || known.contains(key));
    }
}
