//! The table of codelets: each is read, generated and specialised once.
//!
//! Invariant: a codelet that failed is remembered as failed, so that its errors are reported once.

use crate::cycles::query::CodeletCost;
use crate::modules::Modules;
use crate::value::Closure;
use girder_ir::codelet::GenericArg;
use girder_ir::ids::{FieldId, SpecId};
use girder_ir::types::ElemType;
use girder_syntax::ast::{self, ExprId};
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

/// A module that the compiler generated.
#[derive(Debug)]
pub enum Generated {
    /// A codelet as its only item.
    Codelet {
        /// Its syntax.
        tree: Box<ast::Module>,
        /// The codelet functions that the codelet calls.
        callees: Vec<(ModuleRef, usize)>,
    },
    /// A closure as its only function.
    Closure(Closed),
}

/// A closure as a function of codelets.
#[derive(Debug)]
pub struct Closed {
    /// The closure.
    pub closure: Arc<Closure>,
    /// Its name in printed text.
    pub name: SmolStr,
    /// The names that it captured, by their paths.
    pub names: FxHashMap<SmolStr, Captured>,
}

/// The meaning in a codelet of a name that a closure captured.
#[derive(Debug)]
pub enum Captured {
    /// A static integer.
    Int(i64),
    /// A static float.
    Float(f64),
    /// A static condition.
    Bool(bool),
    /// An element type.
    Type(ElemType),
    /// A function.
    Fn(CapturedFn),
    /// What a codelet cannot use, in the words of messages.
    Other(&'static str),
}

/// A captured function: an item of a module, or the only function of a generated module.
#[derive(Debug)]
pub struct CapturedFn {
    /// The module.
    pub module: ModuleRef,
    /// Its item there.
    pub item: usize,
}

/// What is known about the texts of closures.
#[derive(Debug, Default)]
pub struct Closures {
    /// The words that may be names.
    pub names: FxHashMap<(ModuleRef, ExprId), Arc<[SmolStr]>>,
    /// These words, and the dotted names.
    pub paths: FxHashMap<(ModuleRef, ExprId), Arc<[SmolStr]>>,
}

/// Codelets by item.
#[derive(Debug, Default)]
pub struct CodeletTable {
    /// Specialisations; `None` for one that failed.
    pub specs: FxHashMap<SpecKey, Option<SpecId>>,
    /// Costs of specialisations; `None` for one that failed.
    pub costs: FxHashMap<SpecKey, Option<Arc<CodeletCost>>>,
    /// The minimal numbers of elements of pieces of element-wise codelets.
    pub least_pieces: FxHashMap<SpecId, u64>,
    /// Headers; `None` for one that failed.
    pub headers: FxHashMap<(ModuleRef, usize), Option<Arc<Header>>>,
    /// Modules that the compiler generated, numbered after those that were loaded.
    pub generated: Vec<Generated>,
    /// Generated codelets of element-wise steps, by name; each is the only item of its module.
    pub elementwise: FxHashMap<SmolStr, ModuleRef>,
    /// Generated modules of closures, by expression and captured constants.
    pub closures: FxHashMap<(ModuleRef, ExprId, String), ModuleRef>,
    /// Functions that are arguments of generics, by their names in printed text.
    pub functions: FxHashMap<SmolStr, (ModuleRef, usize)>,
    /// Items whose text is in the graph.
    pub printed: FxHashSet<(ModuleRef, usize)>,
    /// Fields about which a warning was reported.
    pub warned: FxHashSet<(SpecId, FieldId)>,
}

impl CodeletTable {
    /// Returns the closure of a generated module.
    pub fn closed(&self, modules: &Modules, module: ModuleRef) -> Option<&Closed> {
        match self.generated.get((module.0 as usize).checked_sub(modules.count())?)? {
            Generated::Closure(closed) => Some(closed),
            Generated::Codelet { .. } => None,
        }
    }

    /// Returns the specialisations that failed.
    pub fn failures(&self) -> FxHashSet<SpecKey> {
        self.specs.iter().filter(|(_, spec)| spec.is_none()).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets the failures that are not among `known`, so that they occur, and are reported, again.
    pub fn forget_failures_since(&mut self, known: &FxHashSet<SpecKey>) {
        self.specs.retain(|key, spec| spec.is_some() || known.contains(key));
    }
}
