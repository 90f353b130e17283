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

/// The compiled code of mode `fast`.
pub(crate) struct FastCode {
    pub(super) plan: HostPlan,
    pub(super) kernels: PrimaryMap<KernelId, Kernel>,
}

impl FastCode {
    /// Plans the execution of a graph and compiles its kernels.
    pub(crate) fn compile(hosted: HostedGraph<'_>, counting: Option<&CountedBlocks>) -> Result<FastCode, EngineError> {
        let target = detect()?;
        let plan = plan(hosted, counting, target.kernel_target())?;
        let kernels = compile_kernels(&target, hosted.graph, &plan.kernels)?;
        Ok(FastCode { plan, kernels })
    }

    /// Returns the code for a limit on the iterations of a vertex, if this one leaves out checks that may fail.
    pub(crate) fn within(
        &self,
        hosted: HostedGraph<'_>,
        counting: Option<&CountedBlocks>,
        limit: u64,
    ) -> Result<Option<FastCode>, EngineError> {
        let hosted = HostedGraph { total_iterations: limit, ..hosted };
        (self.plan.iterations > limit).then(|| FastCode::compile(hosted, counting)).transpose()
    }

    /// Returns the kernels as text.
    pub(crate) fn text(hosted: HostedGraph<'_>, form: CodeForm) -> Result<String, EngineError> {
        let target = detect()?;
        let plan = plan(hosted, None, target.kernel_target())?;
        kernel_text(&target, hosted.graph, &plan.kernels, form)
    }
}

/// A graph that can run in mode `fast`. It needs no tables of tiles, so it can run while the passes make them.
pub struct FastGraph<'g> {
    pub(crate) hosted: HostedGraph<'g>,
    pub(crate) code: FastCode,
}

impl<'g> FastGraph<'g> {
    /// Compiles a graph. `layout` has the addresses of its variables on the host, and `workers` is the number of
    /// workers of a tile. No blocks are counted.
    ///
    /// # Errors
    /// As [`Executable::compile`](crate::Executable::compile).
    pub fn compile(graph: &'g Graph, layout: &'g HostLayout, workers: u32) -> Result<FastGraph<'g>, EngineError> {
        let hosted = HostedGraph { graph, layout, workers, total_iterations: u64::MAX };
        Ok(FastGraph { hosted, code: FastCode::compile(hosted, None)? })
    }

    /// Returns the graph.
    pub fn graph(&self) -> &'g Graph {
        self.hosted.graph
    }
}
