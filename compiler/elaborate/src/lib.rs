//! Elaboration of a module to a graph: names, shapes, static evaluation.
//!
//! A tour. [`modules`] loads the files and records their names; `root` goes through the items of the root module. The
//! state is in `elaborator`, in parts: names and their values, emission, the budget, entities. Expressions are
//! evaluated in `expr`, `scope`, `operators`, `indexing`, `members`, `calls`, `builtins` and `reduce`; `binding`
//! assigns arguments to parameters, `types` checks stated types, `integers` computes, `memoize` evaluates equal static
//! calls once. Programs are emitted by `statements`, `control`, `declarations`, `effects` and `programs`; `variables`,
//! `persistent_names`, `places` and `maps` make, name and place variables; `drawn` has initial values that are drawn at
//! load. `vertices` and `copies` group instances of one signature into `families`, and `batched` evaluates a loop once
//! for all its iterations. `replicas` has what copies of a program know of one another, and `optimiser_steps` warns of
//! steps of optimisers. `each` applies codelet functions to tensors, element by element. `codelets` connects to
//! `girder_typing`, which translates and specialises codelets. `gradients` differentiates. `pipelines` lets the stages
//! of a pipeline overlap.
//!
//! `elaborator` imports files that do not import it; the files with `impl Elaborator` import `elaborator`.
//!
//! Invariant: a graph is made only if no error was reported; elaboration depends on the text, the arguments and the
//! machine, never on the host.

pub mod modules;
pub mod value;
mod context;
mod elaborator;
mod root;
mod trees;
mod references;
mod scope;
mod foreign;
mod arrays;
mod expr;
mod integers;
mod operators;
mod indexing;
mod lengths;
mod literals;
mod elements;
mod rows;
mod filled_rows;
mod members;
mod binding;
mod types;
mod calls;
mod closures;
mod memo_table;
mod memoize;
mod builtins;
mod reduce;
mod statements;
mod statement_times;
mod control;
mod declarations;
mod drawn;
mod variables;
mod persistent_names;
mod arguments;
mod places;
mod maps;
mod vertices;
mod cycles;
mod families;
mod batched;
mod each;
mod gradients;
mod pipelines;
mod copies;
mod replicas;
mod remotes;
mod copy_elision;
mod effects;
mod optimiser_steps;
mod programs;
mod codelets;

pub use context::{Arguments, Context};
pub use modules::{Array, Library, Loader, Modules};
pub use statement_times::StatementTimes;

use elaborator::Elaborator;
use girder_ir::graph::Graph;
use girder_source::{FileId, Result};

/// Elaborates a root file and its imports.
pub fn elaborate(root: FileId, cx: &mut Context<'_>) -> Result<Graph> {
    let modules = Modules::load(cx.map, root, cx.loader, cx.session, cx.diagnostics);
    elaborate_modules(&modules, cx)
}

/// Elaborates modules that are already loaded.
pub fn elaborate_modules(modules: &Modules, cx: &mut Context<'_>) -> Result<Graph> {
    let mut elaborator = Elaborator::new(modules, cx);
    elaborator.root();
    let graph = elaborator.graph;
    cx.diagnostics.check().map(|()| graph)
}
