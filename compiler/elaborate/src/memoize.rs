//! Memoization: remembers the values of static calls, so that an equal call is not evaluated again.
//!
//! Invariant: a call is remembered only if evaluating it changed no state of the graph and read none.

use crate::elaborator::Elaborator;
use crate::memo_table::{Callee, StaticCall};
use crate::value::{Given, Place, Value};
use girder_source::Result;

/// The state, besides its arguments, that a function may read or change.
#[derive(PartialEq, Eq)]
pub struct State {
    emitted: Option<usize>,
    entities: [usize; 5],
    reads: u64,
}

impl Elaborator<'_> {
    /// Returns the call if all arguments are static.
    pub fn static_call(&self, callee: Callee<'_>, given: &[Given]) -> Option<StaticCall> {
        // Only `tile` and `linear` tell apart places of one size at one position in their processors.
        let place = self.current_place();
        let like = Place { first: place.first % self.machine.chip.tiles, ..place };
        StaticCall::new(callee, like, given)
    }

    /// Returns the remembered value of a call. If there is none, makes the call, and remembers its value if it had no
    /// effect.
    pub fn memoized(
        &mut self,
        key: Option<StaticCall>,
        call: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        if let Some(value) = key.as_ref().and_then(|k| self.memo_table.value(k)) {
            return Ok(value);
        }
        let before = self.state();
        let value = call(self)?;
        if let Some(key) = key.filter(|_| self.state() == before) {
            self.memo_table.remember(key, &value);
        }
        Ok(value)
    }

    /// Returns the state that only a function with effects changes.
    pub fn state(&self) -> State {
        let graph = &self.graph;
        let (vars, streams, sets) = (graph.vars.len(), graph.streams.len(), graph.sets.len());
        let entities = [vars, streams, sets, graph.families.len(), graph.copies.len()];
        State { emitted: self.emission.count(), entities, reads: self.memo_table.reads }
    }
}
