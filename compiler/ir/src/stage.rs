//! The stages of a compilation: each owns the one before it plus one table, and reads through to it.
//!
//! Invariant: a stage is made by its pass, or by reading its text and checking every table with the same verifier; a
//! wrong order of passes does not compile.

use crate::graph::Graph;
use crate::layout::{HostLayout, Layout};
use crate::placement::Placement;
use crate::plan::Plan;
use crate::schedule::Schedule;
use std::ops::Deref;

/// `place-tiles`: everything has a tile.
#[derive(Clone, Debug)]
pub struct Placed {
    /// What is placed.
    pub graph: Graph,
    /// Where.
    pub placement: Placement,
}

/// `check-races`: no element is touched by two fields of a compute set if one of them writes it.
#[derive(Clone, Debug)]
pub struct RaceFree {
    /// What was checked.
    pub placed: Placed,
}

/// `plan-transfers`: how data reach the vertices.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What is planned.
    pub race_free: RaceFree,
    /// How.
    pub plan: Plan,
}

/// `schedule-exchange`: when each word moves.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// What is scheduled.
    pub planned: Planned,
    /// When.
    pub schedule: Schedule,
}

/// `allocate-memory`: where each byte lies, on the tiles and in the fast engine.
#[derive(Clone, Debug)]
pub struct Allocated {
    /// What is allocated.
    pub scheduled: Scheduled,
    /// On the tiles.
    pub layout: Layout,
    /// In the fast engine; a function of the graph, not part of the text.
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
