//! Executables: the tables of all stages and the compiled kernels.
//!
//! Invariant: kernels belong to the tables from which they were compiled; an engine in a mode whose kernels are missing
//! is refused.

use crate::compile::CodeForm;
use crate::error::EngineError;
use crate::exact::ExactCode;
use crate::fast::FastCode;
use crate::mode::Mode;
use girder_codelet::cost::CountedBlocks;
use girder_host::HostedGraph;
use girder_ir::stage::Allocated;
use girder_machine::Machine;

/// A compiled graph.
pub struct Executable {
    /// The tables.
    pub allocated: Allocated,
    /// The machine that it was compiled for.
    pub machine: Machine,
    pub(crate) counting: Option<CountedBlocks>,
    pub(crate) fast: Option<FastCode>,
    pub(crate) exact: Option<ExactCode>,
}

impl Executable {
    /// Compiles the kernels that some modes need; [`Mode::Interpret`] needs none.
    pub fn compile(allocated: Allocated, machine: Machine, modes: &[Mode]) -> Result<Executable, EngineError> {
        Executable::with(allocated, machine, None, modes)
    }

    /// Compiles as [`compile`](Executable::compile) does, and counts the executions of blocks that modelled time cannot
    /// know before a run. This is slower.
    pub fn compile_counting(allocated: Allocated, machine: Machine, modes: &[Mode]) -> Result<Executable, EngineError> {
        let counting = CountedBlocks::of(&allocated, &machine);
        Executable::with(allocated, machine, Some(counting), modes)
    }

    fn with(
        allocated: Allocated,
        machine: Machine,
        counting: Option<CountedBlocks>,
        modes: &[Mode],
    ) -> Result<Executable, EngineError> {
        let mut executable = Executable { allocated, machine, counting, fast: None, exact: None };
        modes.iter().try_for_each(|&mode| executable.prepare(mode))?;
        Ok(executable)
    }

    /// Returns the kernels of mode fast as text, for a machine with some workers on a tile.
    pub fn code_text(allocated: &Allocated, workers: u32, form: CodeForm) -> Result<String, EngineError> {
        FastCode::text(HostedGraph::of(allocated, workers), form)
    }

    /// Compiles the kernels of one more mode, if they are missing.
    pub fn prepare(&mut self, mode: Mode) -> Result<(), EngineError> {
        match mode {
            Mode::Fast if self.fast.is_none() => {
                let hosted = HostedGraph::of(&self.allocated, self.machine.chip.workers);
                self.fast = Some(FastCode::compile(hosted, self.counting.as_ref())?)
            }
            Mode::Exact if self.exact.is_none() => {
                self.exact = Some(ExactCode::compile(&self.allocated, self.counting.as_ref())?)
            }
            _ => {}
        }
        Ok(())
    }
}
