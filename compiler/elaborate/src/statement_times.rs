//! The time that elaboration takes for each statement of the programs that the host runs, for `girder check --time --by
//! step`.
//!
//! Invariant: no clock is read unless times were asked for; the time of a statement does not include that of the
//! statements inside it.

use girder_source::Span;
use rustc_hash::FxHashMap;
use std::time::Duration;

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

    /// Begins a statement. Returns the time so far of the statements inside the one around it.
    pub fn begin(&mut self) -> Duration {
        std::mem::take(&mut self.inside)
    }

    /// Ends a statement that took some time, with the statements inside it.
    pub fn end(&mut self, span: Span, time: Duration, before: Duration) {
        *self.times.entry(span).or_default() += time.saturating_sub(self.inside);
        self.inside = before + time;
    }
}
