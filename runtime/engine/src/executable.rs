//! What a run is made from: the tables of all stages and the compiled kernels.
//!
//! Invariant: kernels belong to the tables they were compiled from; an engine in a mode whose kernels are missing is
//! refused.

use crate::engine::Mode;
use crate::error::EngineError;
use crate::exact::ExactCode;
use crate::fast::FastCode;
use girder_ir::stage::Allocated;
use girder_machine::Machine;

/// A compiled graph.
pub struct Executable {
    /// The tables.
    pub allocated: Allocated,
    /// What it was compiled for.
    pub machine: Machine,
    pub(crate) fast: Option<FastCode>,
    pub(crate) exact: Option<ExactCode>,
}

impl Executable {
    /// Compiles the kernels that some modes need; [`Mode::Interpret`] needs none.
    pub fn compile(allocated: Allocated, machine: Machine, modes: &[Mode]) -> Result<Executable, EngineError> {
        let mut executable = Executable { allocated, machine, fast: None, exact: None };
        modes.iter().try_for_each(|&mode| executable.prepare(mode))?;
        Ok(executable)
    }

    /// Compiles the kernels of one more mode, if they are not there.
    pub fn prepare(&mut self, mode: Mode) -> Result<(), EngineError> {
        match mode {
            Mode::Fast if self.fast.is_none() => self.fast = Some(FastCode::compile(&self.allocated)?),
            Mode::Exact if self.exact.is_none() => self.exact = Some(ExactCode::compile(&self.allocated)?),
            _ => {}
        }
        Ok(())
    }
}
