//! The host plan and the kernels of a program, as text.

use crate::Program;
use girder::{AnyStage, Stage};
use girder_codegen::{CodeTarget, CodegenError, Level};
use girder_codelet::KernelSpec;
use girder_host::{HostPlan, HostedGraph, plan};
use girder_ir::stage::Allocated;

impl Program {
    /// Prints the plan of the program for a host of a level, which this host may lack.
    ///
    /// # Panics
    /// If the program does not compile.
    pub fn host_plan(&self, level: Level) -> String {
        let (_, allocated, plan) = self.planned(level);
        plan.print(&allocated)
    }

    /// Prints the code of each kernel of the program for a host of a level, which this host may lack.
    ///
    /// # Panics
    /// If the program does not compile.
    pub fn kernels(
        &self,
        level: Level,
        print: impl Fn(&CodeTarget, &KernelSpec) -> Result<String, CodegenError>,
    ) -> Vec<String> {
        let (target, allocated, plan) = self.planned(level);
        let text = |id| print(&target, &plan.kernels.spec(&allocated, id)).expect("the kernel compiles");
        plan.kernels.kernels.keys().map(text).collect()
    }

    fn planned(&self, level: Level) -> (CodeTarget, Allocated, HostPlan) {
        let stage = self.stage(Stage::Allocated).unwrap_or_else(|e| panic!("the program does not compile\n{e}"));
        let AnyStage::Allocated(allocated) = stage else { panic!("the stage is not allocated") };
        let target = CodeTarget::with(level).expect("a host of any level can be described");
        let hosted = HostedGraph::of(&allocated, self.machine.chip.workers);
        let plan = plan(hosted, None, target.kernel_target()).expect("the program has a plan");
        (target, allocated, plan)
    }
}
