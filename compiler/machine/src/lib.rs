//! The description of a virtual machine: tiles, workers, memories, exchange, sync, links, costs of code. Machines are
//! data with arithmetic on them; nothing here knows the graph, and no pass knows a machine by name.
//!
//! Invariant: every [`Machine`] has been checked: every count is at least one, all totals fit 32 bits, every rate is
//! positive and finite, and the network has a route between any two processors.

mod machine;
mod costs;
mod network;
mod tiles;
mod document;
mod table;
mod read;
mod canonical;
mod check;
mod partition;
mod targets;

pub use costs::{Arrange, Bundles, Copying, HostCosts, IntegerBundles, MultiplyAdds, Streaming, Tile};
pub use machine::{Chip, Exchange, Machine, MachineError, Memory, MemoryRegion, Partition, Sync};
pub use network::{Group, Link, Links, Topology};
pub use targets::{base_of, builtin, builtin_base, builtin_names, builtin_text};
