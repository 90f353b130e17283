//! What a virtual machine is: tiles, workers, memories, exchange, sync, costs. Data only, no behaviour beyond
//! arithmetic on the data; nothing here knows the graph, and no pass knows a machine by name.
//!
//! Invariant: a [`Machine`] that exists has been checked: every count is at least one and all totals fit 32 bits.

mod machine;
mod targets;

pub use machine::{Exchange, Machine, MachineError, Memory, Region, Sync};
pub use targets::{builtin, builtin_names, builtin_text};
