//! What a run is made from: the tables of all stages and the compiled kernels.
//!
//! Invariant: kernels belong to the tables they were compiled from; an engine in a mode whose kernels are missing is
//! refused.

use crate::counts::Counting;
use crate::engine::Mode;
use crate::error::EngineError;
use crate::exact::ExactCode;
use crate::fast::FastCode;
use crate::hosted::Hosted;
use crate::kernels::CodeForm;
use girder_ir::stage::Allocated;
use girder_machine::Machine;

/// A compiled graph.
pub struct Executable {
    /// The tables.
    pub allocated: Allocated,
    /// What it was compiled for.
    pub machine: Machine,
    pub(crate) counting: Option<Counting>,
    pub(crate) fast: Option<FastCode>,
    pub(crate) exact: Option<ExactCode>,
}

impl Executable {
    /// Compiles the kernels that some modes need; [`Mode::Interpret`] needs none.
    pub fn compile(allocated: Allocated, machine: Machine, modes: &[Mode]) -> Result<Executable, EngineError> {
        Executable::with(allocated, machine, None, modes)
    }

    /// As [`compile`](Executable::compile), and counts what modelled time cannot know before a run. Slower.
    pub fn compile_counting(allocated: Allocated, machine: Machine, modes: &[Mode]) -> Result<Executable, EngineError> {
        let counting = Counting::of(&allocated, &machine);
        Executable::with(allocated, machine, Some(counting), modes)
    }

    fn with(
        allocated: Allocated,
        machine: Machine,
        counting: Option<Counting>,
        modes: &[Mode],
    ) -> Result<Executable, EngineError> {
        let mut executable = Executable { allocated, machine, counting, fast: None, exact: None };
        modes.iter().try_for_each(|&mode| executable.prepare(mode))?;
        Ok(executable)
    }

    /// With code that was compiled ahead, if it is that of these variables and nothing is to be counted.
    pub fn with_code(
        allocated: Allocated,
        machine: Machine,
        ahead: Option<FastCode>,
        modes: &[Mode],
    ) -> Result<Executable, EngineError> {
        let fast = ahead.filter(|code| code.is_for(&allocated.host));
        let mut executable = Executable { allocated, machine, counting: None, fast, exact: None };
        modes.iter().try_for_each(|&mode| executable.prepare(mode))?;
        Ok(executable)
    }

    /// The kernels of mode fast as text.
    pub fn code_text(allocated: &Allocated, form: CodeForm) -> Result<String, EngineError> {
        FastCode::text(Hosted::of(allocated), form)
    }

    /// Compiles the kernels of one more mode, if they are not there.
    pub fn prepare(&mut self, mode: Mode) -> Result<(), EngineError> {
        match mode {
            Mode::Fast if self.fast.is_none() => {
                self.fast = Some(FastCode::compile(Hosted::of(&self.allocated), self.counting.as_ref())?)
            }
            Mode::Exact if self.exact.is_none() => {
                self.exact = Some(ExactCode::compile(&self.allocated, self.counting.as_ref())?)
            }
            _ => {}
        }
        Ok(())
    }
}
