//! The plan of mode `fast` with its compiled kernels.
//!
//! Invariant: `kernels` are those of the plan.

use crate::compile::{CodeForm, compile_kernels, detect, kernel_text};
use crate::error::EngineError;
use crate::kernel::Kernel;
use cranelift_entity::PrimaryMap;
use girder_codelet::cost::CountedBlocks;
use girder_host::{HostPlan, HostedGraph, KernelId, plan};
use girder_ir::graph::Graph;
use girder_ir::layout::HostLayout;
use girder_ir::stage::Allocated;

/// The compiled code of mode `fast`.
pub struct FastCode {
    pub(super) plan: HostPlan,
    pub(super) kernels: PrimaryMap<KernelId, Kernel>,
}

impl FastCode {
    /// Plans the execution of a graph and compiles its kernels.
    pub(crate) fn compile(hosted: HostedGraph<'_>, counting: Option<&CountedBlocks>) -> Result<FastCode, EngineError> {
        let host = detect()?;
        let plan = plan(hosted, counting, host.target())?;
        let kernels = compile_kernels(&host, hosted.graph, &plan.kernels)?;
        Ok(FastCode { plan, kernels })
    }

    /// Compiles a graph before it is placed on tiles, because the code does not depend on them. `layout` has the
    /// addresses of the variables in the fast engine, `workers` is the number of workers of a tile. No blocks are
    /// counted.
    ///
    /// # Errors
    /// As [`Executable::compile`](crate::Executable::compile).
    pub fn ahead(graph: &Graph, layout: &HostLayout, workers: u32) -> Result<FastCode, EngineError> {
        FastCode::compile(HostedGraph { graph, layout, workers, total_iterations: u64::MAX }, None)
    }

    /// Returns whether it is the code for variables at these addresses.
    pub(crate) fn is_for(&self, layout: &HostLayout) -> bool {
        self.plan.layout == *layout
    }

    /// Returns the code for a limit on the iterations of a vertex, if this one leaves out checks that may fail.
    pub(crate) fn within(
        &self,
        allocated: &Allocated,
        counting: Option<&CountedBlocks>,
        workers: u32,
        limit: u64,
    ) -> Result<Option<FastCode>, EngineError> {
        let hosted = HostedGraph { total_iterations: limit, ..HostedGraph::of(allocated, workers) };
        (self.plan.iterations > limit).then(|| FastCode::compile(hosted, counting)).transpose()
    }

    /// Returns the kernels as text.
    pub(crate) fn text(hosted: HostedGraph<'_>, form: CodeForm) -> Result<String, EngineError> {
        let host = detect()?;
        let plan = plan(hosted, None, host.target())?;
        kernel_text(&host, hosted.graph, &plan.kernels, form)
    }
}
