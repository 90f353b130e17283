//! The stages of a compilation. Each owns the one before it plus one table, and reads through to it.
//!
//! Invariant: a stage is made by its pass, or by reading its text and checking every table with the same verifier; a
//! wrong order of passes does not compile.

use crate::graph::Graph;
use crate::layout::{HostLayout, Layout};
use crate::placement::Placement;
use crate::plan::Plan;
use crate::schedule::Schedule;
use std::ops::Deref;
use std::sync::Arc;

/// After `place-tiles`: every element and vertex has a tile.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The placed graph.
    pub graph: Graph,
    /// The tiles.
    pub placement: Arc<Placement>,
}

/// After `check-races`: no element is accessed by two fields of a compute set if one of them writes it.
#[derive(Clone, Debug)]
pub struct RaceFree {
    /// The checked stage.
    pub placed: Placed,
}

/// After `plan-transfers`: every field reaches its data.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The planned stage.
    pub race_free: RaceFree,
    /// The data movement.
    pub plan: Plan,
}

/// After `schedule-exchange`: every word has a time.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The scheduled stage.
    pub planned: Planned,
    /// The times.
    pub schedule: Schedule,
}

/// After `allocate-memory`: every byte has an address, on the tiles and in the fast engine.
#[derive(Clone, Debug)]
pub struct Allocated {
    /// The allocated stage.
    pub scheduled: Scheduled,
    /// Addresses on the tiles.
    pub layout: Layout,
    /// Addresses in the fast engine; a function of the graph, not part of the text.
    pub host: HostLayout,
}

macro_rules! reads_through {
    ($($stage:ident . $field:ident : $below:ty;)*) => { $(
        impl Deref for $stage {
            type Target = $below;
            fn deref(&self) -> &$below {
                &self.$field
            }
        }
    )* };
}
reads_through! {
    Placed.graph: Graph;
    RaceFree.placed: Placed;
    Planned.race_free: RaceFree;
    Scheduled.planned: Planned;
    Allocated.scheduled: Scheduled;
}
