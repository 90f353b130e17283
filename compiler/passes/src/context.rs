//! What every pass is given.
//!
//! Invariant: a pass that returns `Err` has pushed an error first.

use girder_machine::Machine;
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Session, Span};
use std::time::{Duration, Instant};

/// The surroundings of a pass.
pub struct PassContext<'a> {
    /// What is compiled for.
    pub machine: &'a Machine,
    /// Limits and the stop flag.
    pub session: &'a Session,
    /// What is said to the user.
    pub diagnostics: &'a mut Diagnostics,
    /// How long each pass took, in the order in which they ran; verifiers are not counted.
    pub timings: Vec<(&'static str, Duration)>,
}

impl<'a> PassContext<'a> {
    /// Without timings so far.
    pub fn new(machine: &'a Machine, session: &'a Session, diagnostics: &'a mut Diagnostics) -> PassContext<'a> {
        PassContext { machine, session, diagnostics, timings: vec![] }
    }

    /// Runs a pass and notes its time.
    pub fn time<T>(&mut self, name: &'static str, pass: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.poll()?;
        let start = Instant::now();
        let result = pass(self);
        self.timings.push((name, start.elapsed()));
        result
    }

    /// The most bytes that one block on a tile may have.
    pub fn block_limit(&self) -> u32 {
        // So that offsets in blocks can be added without care.
        const MOST: u32 = 1 << 30;
        if self.session.allow_over_memory { MOST } else { self.machine.usable_bytes() }
    }

    /// `Err` if the user has asked to stop.
    pub fn poll(&mut self) -> Result<()> {
        if self.session.cancel.is_cancelled() {
            self.diagnostics.push(Diagnostic::error("session::cancelled", Span::NONE, "the compilation was stopped"));
            return Err(Failed);
        }
        Ok(())
    }

    /// Reports what a verifier found wrong with a table that a pass of this compiler made.
    pub fn verified(&mut self, pass: &'static str, verdict: std::result::Result<(), String>) -> Result<()> {
        verdict.map_err(|what| {
            let message = format!("the compiler is wrong: after `{pass}`, {what}");
            let help = "this is a bug in girder; please report it with the input";
            self.diagnostics.push(Diagnostic::error("internal::verifier", Span::NONE, message).help(help));
            Failed
        })
    }

    /// Reports what a verifier found wrong with a table that was read from text.
    pub fn accepted(&mut self, pass: &'static str, verdict: std::result::Result<(), String>) -> Result<()> {
        verdict.map_err(|what| {
            let message = format!("the table of `{pass}` does not hold: {what}");
            let help = format!("take the text from before `{pass}`, or correct the table");
            self.diagnostics.push(Diagnostic::error("resume::bad_table", Span::NONE, message).help(help));
            Failed
        })
    }
}
