//! Calls of which the value is remembered.
//!
//! Invariant: a call is remembered only if evaluating it changed no state of the graph and read none.

use crate::elaborator::Elaborator;
use crate::static_calls::{Callee, StaticCall};
use crate::value::{Given, Place, Value};
use girder_source::Result;

/// The state on which the value of a function may depend, and that it may change, beside its arguments.
#[derive(PartialEq, Eq)]
pub struct State {
    emitted: Option<usize>,
    entities: [usize; 5],
    reads: u64,
}

impl Elaborator<'_> {
    /// Returns the call if all arguments are static.
    pub fn static_call(&self, callee: Callee<'_>, given: &[Given]) -> Option<StaticCall> {
        // Places of one size at one position in their processors are alike, but for `tile` and `linear`.
        let place = self.current_place();
        let like = Place { first: place.first % self.machine.chip.tiles, ..place };
        StaticCall::new(callee, like, given)
    }

    /// Returns the value of a call, which is made unless it is remembered.
    pub fn remembered(
        &mut self,
        key: Option<StaticCall>,
        call: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        if let Some(value) = key.as_ref().and_then(|k| self.static_calls.value(k)) {
            return Ok(value);
        }
        let before = self.state();
        let value = call(self)?;
        if let Some(key) = key.filter(|_| self.state() == before) {
            self.static_calls.remember(key, &value);
        }
        Ok(value)
    }

    /// Returns the state that a function without effects leaves as it is.
    pub fn state(&self) -> State {
        let graph = &self.graph;
        let (vars, streams, sets) = (graph.vars.len(), graph.streams.len(), graph.sets.len());
        let entities = [vars, streams, sets, graph.families.len(), graph.copies.len()];
        State { emitted: self.emission.count(), entities, reads: self.static_calls.reads }
    }
}
