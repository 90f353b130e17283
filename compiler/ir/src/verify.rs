//! Checks of the invariants that the modules of this crate state. A failure is a bug of the compiler, never of the
//! user's program.
//!
//! Checked elsewhere: the inside of a codelet (`girder_codelet::verify`), sizes that a codelet binds, races, and the
//! machine's tiles.

mod check;
mod elements;
mod families;
mod steps;
#[cfg(test)]
mod tests;
mod tiles;

pub use check::Result;

use crate::graph::{Graph, Init, Var, VarClass};
use check::{ensure, within};
use rustc_hash::FxHashSet;

/// Checks every entity of a graph; stops at the first violation.
pub fn verify_graph(graph: &Graph) -> Result {
    names("variable", graph.vars.values().map(|v| v.name.as_str()))?;
    let steps = graph.sets.values().map(|s| &s.name).chain(graph.copies.values().map(|c| &c.name));
    names("compute set or copy", steps.map(|n| n.as_str()))?;
    names("program", graph.programs.values().map(|p| p.name.as_str()))?;
    names("stream", graph.streams.values().map(|s| s.name.as_str()))?;
    names("codelet item", graph.items.values().map(|i| i.name.as_str()))?;
    for (id, var) in &graph.vars {
        variable(var).map_err(within(format_args!("variable {id} `{}`", var.name)))?;
    }
    families::verify(graph)?;
    steps::verify(graph)
}

fn names<'a>(what: &str, mut all: impl Iterator<Item = &'a str>) -> Result {
    let mut seen = FxHashSet::default();
    match all.find(|n| !seen.insert(*n)) {
        Some(name) => Err(format!("two of a kind ({what}) are named `{name}`")),
        None => Ok(()),
    }
}

fn variable(var: &Var) -> Result {
    let len = var.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    ensure(len.is_some_and(|n| n.checked_mul(8).is_some()), || "its size overflows".into())?;
    ensure(var.init.is_none() || var.is_persistent(), || "a temporary has an initial value".into())?;
    match &var.init {
        Some(Init::Fill(value)) => {
            ensure(value.ty == var.ty, || format!("filled with {}, but is {}", value.ty, var.ty))?;
        }
        Some(Init::Data(data)) => {
            ensure(data.len() as u64 == var.bytes(), || format!("{} bytes of data for {}", data.len(), var.bytes()))?;
        }
        Some(Init::Drawn(drawn)) => {
            ensure(var.ty.is_float(), || format!("numbers are drawn for {}", var.ty))?;
            ensure(drawn.law.is_valid(), || format!("no distribution: {:?}", drawn.law))?;
        }
        Some(Init::ReplicaIndex) => {
            ensure(var.ty == crate::types::ElemType::I32, || format!("the number of a replica for {}", var.ty))?;
            ensure(var.class == VarClass::Const, || "the number of a replica can be written".into())?;
        }
        None => {}
    }
    tiles::range(var.within)?;
    var.mapping.as_ref().map_or(Ok(()), |m| tiles::mapping(m, var.len()))
}
