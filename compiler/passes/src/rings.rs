//! What a pipeline keeps for later phases, by the names that elaboration gives: the variables where values land end in
//! `.landed`, and their rings in `.ring`. A number may follow.

use girder_ir::graph::{Var, VarClass};

/// Returns whether a variable holds what a pipeline keeps for a later phase.
pub fn waits(var: &Var) -> bool {
    var.class == VarClass::Temp && matches!(last(&var.name), "ring" | "landed")
}

/// Returns the rows of a ring: the micro-batches that wait in it. `None` for other variables.
pub fn ring_rows(var: &Var) -> Option<u64> {
    let is_ring = var.class == VarClass::Temp && last(&var.name) == "ring";
    var.shape.first().copied().filter(|_| is_ring)
}

/// Returns the last part of a name, without its number.
fn last(name: &str) -> &str {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_')
}
