//! Activity: which variables depend on a wanted tensor, and from which moment on.
//!
//! Invariant: a variable that depends on a wanted tensor is active; others may be, by variable and not by element.

use super::order::Moment;
use girder_ir::ids::VarId;
use girder_ir::view::View;
use rustc_hash::FxHashMap;

/// The active variables, each with the moment from which on it is.
#[derive(Clone, Debug, Default)]
pub struct Active(FxHashMap<VarId, Moment>);

impl Active {
    /// Makes a variable active from a moment on.
    pub fn insert(&mut self, var: VarId, since: Moment) -> bool {
        let old = self.0.entry(var).or_insert(Moment::MAX);
        let earlier = since < *old;
        *old = since.min(*old);
        earlier
    }

    /// Returns whether a view of a float is active at a moment.
    pub fn holds(&self, view: &View, at: Moment) -> bool {
        view.parts.iter().any(|p| self.has_at(p.var, at))
    }

    /// Returns whether a variable is active at a moment.
    pub fn has_at(&self, var: VarId, at: Moment) -> bool {
        self.0.get(&var).is_some_and(|&since| since <= at)
    }

    /// Returns the moment from which on a variable is active.
    pub fn since(&self, var: VarId) -> Option<Moment> {
        self.0.get(&var).copied()
    }

    /// Returns whether a variable is active at any moment.
    pub fn has(&self, var: VarId) -> bool {
        self.0.contains_key(&var)
    }

    /// Lets a copy of a variable be as active as the variable.
    pub fn copy(&mut self, from: VarId, to: VarId) {
        if self.0.contains_key(&from) {
            self.0.insert(to, 0);
        }
    }
}
