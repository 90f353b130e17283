//! Plans how a graph runs on the host.
//!
//! ```text
//! Graph, HostLayout ─plan→ HostPlan ─KernelTable::spec→ kernel specifications ─girder_codegen→ code
//! ```
//!
//! - [`plan()`] makes a [`HostPlan`]: a table that an engine executes, and that [`HostPlan::print`] shows.
//! - `products` finds matrix products, `windows` joins vertices with adjacent fields, `fuse` makes one task of
//!   elementwise steps, `kernels` collects the kernels that all of them need.
//! - [`rewrite()`] makes codelets that compile to faster code; [`KernelTable::spec`] returns rewritten ones.
//!
//! The addresses in a plan are those of a [`HostLayout`](girder_ir::layout::HostLayout), which depends on the graph
//! alone. Threads, cache blocks and memory belong to the engine.
//!
//! Invariant: a plan has no effect that a program can observe, except on time and on the memory between the host's
//! variables.

mod plan;
mod products;
mod windows;
mod fuse;
mod kernels;
mod rewrite;
mod hosted;
mod error;

pub use error::HostError;
pub use fuse::{FusedRows, FusedSteps};
pub use girder_fusion::strides;
pub use hosted::HostedGraph;
pub use kernels::{CodeletSource, HostKernel, KernelId, KernelSet, KernelTable, RowLines, ShapedId};
pub use plan::{
    FamilyPlan, FieldAccess, GroupRun, HostPlan, PartId, Sequence, SetPart, SetParts, StepUnit, Unit, UnitGroup, plan,
};
pub use products::{LinkedProduct, LinkedRow, MatrixLayout, MatrixProduct, ProductLink, ProductStart, SummedProducts};
pub use rewrite::{Rewritten, rewrite};
