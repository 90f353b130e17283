//! The budget of static evaluation: the number of steps that it may still take, and that it may still emit.
//!
//! Invariant: once the budget has stopped, every later charge fails.

use girder_source::Cancel;

/// The remaining steps.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    /// The number of steps of the graph that may still be emitted.
    graph_steps: u64,
    stopped: bool,
}

impl Budget {
    /// Creates a budget.
    pub fn new(steps: u64, graph_steps: u64) -> Budget {
        Budget { left: steps, graph_steps, stopped: false }
    }

    /// Takes one step; `false` if none is left or the user cancelled, which is polled now and then.
    #[must_use]
    pub fn take(&mut self, cancel: &Cancel) -> bool {
        if self.left == 0 || (self.left.is_multiple_of(1024) && cancel.is_cancelled()) {
            return false;
        }
        self.left -= 1;
        true
    }

    /// Counts a step of the graph; `false` if there may be no more.
    #[must_use]
    pub fn emit(&mut self) -> bool {
        let left = self.graph_steps.checked_sub(1);
        self.graph_steps = left.unwrap_or(0);
        left.is_some()
    }

    /// Takes at most `steps` of the remaining steps.
    pub fn take_up_to(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Returns the number of remaining steps.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Sets the number of remaining steps, after an attempt whose steps are charged in another way, or not charged.
    pub fn set_left(&mut self, steps: u64) {
        if !self.stopped {
            self.left = steps;
        }
    }

    /// Ends all evaluation; returns `true` the first time, when it must be reported.
    pub fn stop(&mut self) -> bool {
        self.left = 0;
        !std::mem::replace(&mut self.stopped, true)
    }

    /// Returns whether evaluation has ended because it took too many steps, or was cancelled.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }
}
