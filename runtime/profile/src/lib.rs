//! What a run takes on the machine, in numbers that a person can read.
//!
//! [`Profiler`] listens to a run and walks one clock per IPU with the modelled times of the steps (`profiler`), or walks what the text decides without running it (`estimate`). It ends
//! as a [`Profile`] (`profile`): cycles by step, and the memory of the tiles (`memory`). `table` prints it.
//!
//! Invariant: the same program, data and machine give the same profile, whatever the engine's mode, its threads or the
//! host.

mod estimate;
mod memory;
mod profile;
mod profiler;
mod table;

pub use estimate::Assumed;
pub use profile::{Category, Memory, Profile, StepKind, StepProfile, TileMemory, Total};
pub use profiler::Profiler;
