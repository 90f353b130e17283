//! The profile of a run on the machine, for people to read.
//!
//! [`Profiler`] listens to a run and advances one clock per IPU by the modelled times of steps (`profiler`), or follows
//! the text without running it (`estimate`). The result is a [`Profile`] (`profile`) with the cycles of each step and
//! the memory of tiles (`memory`), also of what is kept for reverse programs (`kept`), and a better cut of a pipeline
//! (`cut`). `packets` follows the host where it moves packets while tiles compute. `table` prints a profile. A
//! [`Timeline`] (`timeline`) has what each processor does when.
//!
//! Invariant: the same program, data and machine give the same profile, whatever the mode of the engine, the number of
//! threads or the host.

mod cut;
mod estimate;
mod kept;
mod memory;
mod processors;
mod packets;
mod profile;
mod profiler;
mod table;
mod timeline;

pub use estimate::Assumed;
pub use profile::{
    Category, Cut, CutStage, KeptForReverse, KeptValues, MemoryUse, Profile, RemoteMemory, StepKind, StepProfile,
    TileMemory, Total,
};
pub use profiler::Profiler;
pub use timeline::{Interval, Timeline};
