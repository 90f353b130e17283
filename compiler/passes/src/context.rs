//! The context that every pass is given.
//!
//! Invariant: a pass that returns `Err` has pushed an error to the diagnostics first.

use crate::StepTimes;
use crate::footprint::Covers;
use crate::small_pieces::SmallPieces;
use girder_ir::graph::Graph;
use girder_machine::Machine;
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Session, Span};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The target machine, the session and the diagnostics of a compilation.
pub struct PassContext<'a> {
    /// The target machine.
    pub machine: &'a Machine,
    /// The limits and the stop flag.
    pub session: &'a Session,
    /// The diagnostics so far.
    pub diagnostics: &'a mut Diagnostics,
    /// The time of each pass that has run, or whose table has been checked, in order. Verifiers that run after a pass
    /// are not counted.
    pub timings: Vec<(&'static str, Duration)>,
    /// The time that passes take for each step, if it is measured.
    pub step_times: StepTimes,
    /// How `place-tiles` estimates memory.
    pub(crate) estimate: MemoryEstimate,
    /// Whether few tiles had too little memory, or others had much left: another placement may fit.
    pub(crate) may_fit: bool,
    covers: Option<Arc<Covers>>,
}

/// How `place-tiles` estimates memory, and how `plan-transfers` saves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryEstimate {
    /// The share of a tile's memory that is filled. The rest is for what the estimate ignores.
    pub room: f64,
    /// Whether the state of vertices counts, and exchange code counts towards the memory that can run code.
    pub is_full: bool,
    /// Whether the search also changes the orders of all vertices, so that exchanges have fewer pieces.
    pub reorders: bool,
    /// Which pieces of transfers travel together.
    pub small: SmallPieces,
}

/// The estimates that `place-tiles` uses, one after the other until a program fits. The first one serves most programs.
/// A full one assumes that one tile has the most code of every exchange, which overestimates. `plan-transfers` makes
/// larger pieces contiguous where memory is scarce.
pub(crate) const ESTIMATES: [MemoryEstimate; 6] = [
    MemoryEstimate { room: 0.75, is_full: false, reorders: false, small: SmallPieces::USUAL },
    MemoryEstimate { room: 0.75, is_full: true, reorders: false, small: SmallPieces::USUAL },
    MemoryEstimate { room: 0.75, is_full: true, reorders: true, small: SmallPieces::IF_SCARCE },
    MemoryEstimate { room: 0.65, is_full: true, reorders: true, small: SmallPieces::IF_SCARCE },
    MemoryEstimate { room: 0.4, is_full: true, reorders: true, small: SmallPieces::IF_SCARCE },
    MemoryEstimate { room: 0.25, is_full: true, reorders: true, small: SmallPieces::IF_SCARCE },
];

impl<'a> PassContext<'a> {
    /// Creates a context without timings.
    pub fn new(machine: &'a Machine, session: &'a Session, diagnostics: &'a mut Diagnostics) -> PassContext<'a> {
        let step_times = StepTimes::default();
        PassContext {
            machine,
            session,
            diagnostics,
            timings: vec![],
            step_times,
            estimate: ESTIMATES[0],
            may_fit: false,
            covers: None,
        }
    }

    /// Runs a pass and records its time under a name.
    pub fn time<T>(&mut self, name: &'static str, pass: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.poll()?;
        let start = Instant::now();
        let result = pass(self);
        self.timings.push((name, start.elapsed()));
        result
    }

    /// Returns which `out` fields vertices write in full. This is found once in a compilation.
    pub(crate) fn covers(&mut self, graph: &Graph) -> Arc<Covers> {
        self.covers.get_or_insert_with(|| Arc::new(Covers::of(graph))).clone()
    }

    /// Forgets what is known about families, because a pass has changed them.
    pub(crate) fn forget_families(&mut self) {
        self.covers = None;
    }

    /// Returns the largest size of a memory block in bytes.
    pub fn block_limit(&self) -> u32 {
        // Offsets within blocks can then be added without overflow.
        const MOST: u32 = 1 << 30;
        if self.session.allow_over_memory { MOST } else { self.machine.usable_bytes() }
    }

    /// Charges the bytes of tables that are about to be made. An error points to `span`, whose text asks for them.
    ///
    /// # Errors
    /// `session::too_much_memory` if all tables of the compilation exceed the limit.
    pub fn charge_bytes(&mut self, bytes: u64, span: Span) -> Result<()> {
        self.session.charge_bytes(bytes).map_err(|exceeded| {
            self.diagnostics.push(exceeded.of_memory(span));
            Failed
        })
    }

    /// Checks whether the user has cancelled the compilation.
    ///
    /// # Errors
    /// `session::cancelled` if so.
    pub fn poll(&mut self) -> Result<()> {
        if self.session.cancel.is_cancelled() {
            self.diagnostics.push(Diagnostic::error("session::cancelled", Span::NONE, "the compilation was stopped"));
            return Err(Failed);
        }
        Ok(())
    }

    /// Reports a table of this compiler that its verifier rejects.
    ///
    /// # Errors
    /// `internal::verifier`, which is a bug of the compiler.
    pub fn verified(&mut self, pass: &'static str, verdict: std::result::Result<(), String>) -> Result<()> {
        verdict.map_err(|what| {
            let message = format!("the compiler is wrong: after `{pass}`, {what}");
            let help = "this is a bug in girder; please report it with the input";
            self.diagnostics.push(Diagnostic::error("internal::verifier", Span::NONE, message).help(help));
            Failed
        })
    }

    /// Reports a table read from text that its verifier rejects.
    ///
    /// # Errors
    /// `resume::bad_table`.
    pub fn accepted(&mut self, pass: &'static str, verdict: std::result::Result<(), String>) -> Result<()> {
        verdict.map_err(|what| {
            let message = format!("the table of `{pass}` does not hold: {what}");
            let help = format!("take the text from before `{pass}`, or correct the table");
            self.diagnostics.push(Diagnostic::error("resume::bad_table", Span::NONE, message).help(help));
            Failed
        })
    }
}
