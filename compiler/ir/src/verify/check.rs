//! Conditions and their messages, shared by all checks of a graph.

use crate::graph::{Graph, Var};
use crate::ids::VarId;

/// The result of a check; the error is for the compiler's developers.
pub type Result = std::result::Result<(), String>;

/// Returns an error with this message unless the condition holds.
pub(super) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(message()) }
}

/// Returns a function that puts the name of an entity before an error about it.
pub(super) fn within(entity: std::fmt::Arguments<'_>) -> impl FnOnce(String) -> String + use<> {
    let entity = entity.to_string();
    move |message| format!("{entity}: {message}")
}

/// Returns the variable of an id, or an error if there is none.
pub(super) fn var(graph: &Graph, id: VarId) -> std::result::Result<&Var, String> {
    graph.vars.get(id).ok_or_else(|| format!("there is no {id}"))
}
