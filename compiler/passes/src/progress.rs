//! How far the passes have come, for work that runs at the same time on another thread.
//!
//! Invariant: once the passes have ended, nobody waits, even if they ended by a panic.

use crate::stage::AnyStage;
use girder_ir::placement::Placement;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How far the passes have come; other threads wait on it.
#[derive(Default)]
pub struct Progress {
    point: Mutex<Point>,
    moved: Condvar,
}

#[derive(Default)]
struct Point {
    /// The placement of the graph.
    placement: Option<Arc<Placement>>,
    /// Whether all passes have succeeded, once they have ended.
    ended: Option<bool>,
}

impl Progress {
    /// Waits until the graph is placed, and returns its placement; `None` if a pass has failed before.
    pub fn placement(&self) -> Option<Arc<Placement>> {
        self.wait(|point| point.placement.is_some() || point.ended.is_some()).placement.clone()
    }

    /// Waits for the last pass. Returns whether all passes have succeeded.
    pub fn succeeded(&self) -> bool {
        self.wait(|point| point.ended.is_some()).ended == Some(true)
    }

    /// Notes the stage that a pass has made.
    pub(crate) fn reached(&self, at: &AnyStage) {
        if let AnyStage::Placed(placed) = at {
            self.note(|point| point.placement = Some(placed.placement.clone()));
        }
    }

    /// Returns a value that notes the end of the passes when it is dropped; until then they have failed.
    pub(crate) fn end(&self) -> End<'_> {
        End { progress: self, succeeded: false }
    }

    fn note(&self, change: impl FnOnce(&mut Point)) {
        change(&mut self.lock());
        self.moved.notify_all();
    }

    fn wait(&self, until: impl Fn(&Point) -> bool) -> MutexGuard<'_, Point> {
        self.moved.wait_while(self.lock(), |point| !until(point)).unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Point> {
        self.point.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Progress::end`].
pub(crate) struct End<'a> {
    progress: &'a Progress,
    /// Whether all passes have succeeded.
    pub succeeded: bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.progress.note(|point| point.ended = Some(self.succeeded));
    }
}
