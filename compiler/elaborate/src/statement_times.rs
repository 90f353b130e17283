//! The time that elaboration takes for each statement of the programs that the host runs, for `girder check --time --by
//! step`.
//!
//! Invariant: no clock is read unless times were asked for; the time of a statement does not include that of the
//! statements inside it.

use crate::elaborator::Elaborator;
use crate::statements::Ended;
use girder_source::{Result, Span};
use girder_syntax::ast::StmtId;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// The time of each statement.
#[derive(Debug, Default)]
pub struct StatementTimes {
    times: FxHashMap<Span, Duration>,
    /// The time of the statements inside the one that is being evaluated.
    inside: Duration,
}

impl StatementTimes {
    /// Returns the statements with their times, in the order of the text.
    pub fn list(self) -> Vec<(Span, Duration)> {
        let mut list: Vec<_> = self.times.into_iter().collect();
        list.sort_unstable();
        list
    }
}

impl Elaborator<'_> {
    /// Evaluates a statement of a body; measures its time if it is a program's.
    pub fn measured_statement(&mut self, stmt: StmtId, last: bool) -> Result<Ended> {
        let of_program = self.functions.is_empty() && !self.programs.is_empty();
        let Some(times) = self.statement_times.as_mut().filter(|_| of_program) else {
            return self.statement(stmt, last);
        };
        let before = std::mem::take(&mut times.inside);
        let start = Instant::now();
        let done = self.statement(stmt, last);
        let time = start.elapsed();
        let span = self.tree().stmts[stmt].span;
        if let Some(times) = self.statement_times.as_mut() {
            *times.times.entry(span).or_default() += time.saturating_sub(times.inside);
            times.inside = before + time;
        }
        done
    }
}
