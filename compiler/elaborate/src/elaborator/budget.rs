//! The budget: how many steps static evaluation may still take.
//!
//! Invariant: once it has stopped, every later charge fails.

use girder_source::Cancel;

/// Steps that are left.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    stopped: bool,
}

impl Budget {
    /// A budget of so many steps.
    pub fn new(steps: u64) -> Budget {
        Budget { left: steps, stopped: false }
    }

    /// Takes one step; `false` if none is left or the user cancelled, who is asked once in a while.
    #[must_use]
    pub fn take(&mut self, cancel: &Cancel) -> bool {
        if self.left == 0 || (self.left.is_multiple_of(1024) && cancel.is_cancelled()) {
            return false;
        }
        self.left -= 1;
        true
    }

    /// Takes as many steps as there are, up to `steps`.
    pub fn take_up_to(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Returns how many steps are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Sets how many steps are left, after an attempt that is charged otherwise or not at all.
    pub fn set_left(&mut self, steps: u64) {
        if !self.stopped {
            self.left = steps;
        }
    }

    /// Ends all evaluation; `true` the first time, when it has to be reported.
    pub fn stop(&mut self) -> bool {
        self.left = 0;
        !std::mem::replace(&mut self.stopped, true)
    }

    /// Returns whether evaluation has ended because it took too many steps, or was cancelled.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }
}
