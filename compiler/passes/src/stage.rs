//! The stages of a compilation: their names, and a compilation at any one of them.
//!
//! Invariant: stages are ordered as [`girder_ir::stage`] nests them. A stage contains every earlier stage.

use girder_ir::graph::Graph;
use girder_ir::stage::{Allocated, Placed, Planned, RaceFree, Scheduled};

/// The stages, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Stage {
    Graph,
    Placed,
    RaceFree,
    Planned,
    Scheduled,
    Allocated,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 6] =
        [Stage::Graph, Stage::Placed, Stage::RaceFree, Stage::Planned, Stage::Scheduled, Stage::Allocated];

    /// Returns the name that `girder build --stage` takes.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Graph => "graph",
            Stage::Placed => "placed",
            Stage::RaceFree => "race-free",
            Stage::Planned => "planned",
            Stage::Scheduled => "scheduled",
            Stage::Allocated => "allocated",
        }
    }

    /// Returns the stage with the given name.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// A compilation at any stage.
#[derive(Clone, Debug)]
#[allow(missing_docs, clippy::large_enum_variant)]
pub enum AnyStage {
    Graph(Graph),
    Placed(Placed),
    RaceFree(RaceFree),
    Planned(Planned),
    Scheduled(Scheduled),
    Allocated(Allocated),
}

impl AnyStage {
    /// Returns the stage.
    pub fn stage(&self) -> Stage {
        match self {
            AnyStage::Graph(_) => Stage::Graph,
            AnyStage::Placed(_) => Stage::Placed,
            AnyStage::RaceFree(_) => Stage::RaceFree,
            AnyStage::Planned(_) => Stage::Planned,
            AnyStage::Scheduled(_) => Stage::Scheduled,
            AnyStage::Allocated(_) => Stage::Allocated,
        }
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        match self {
            AnyStage::Graph(s) => s,
            AnyStage::Placed(s) => s,
            AnyStage::RaceFree(s) => s,
            AnyStage::Planned(s) => s,
            AnyStage::Scheduled(s) => s,
            AnyStage::Allocated(s) => s,
        }
    }

    /// Returns the stages that the compilation contains and that have tables of their own.
    pub fn tables(&self) -> Tables<'_> {
        let (placed, planned, scheduled, allocated) = match self {
            AnyStage::Graph(_) => (None, None, None, None),
            AnyStage::Placed(s) => (Some(s), None, None, None),
            AnyStage::RaceFree(s) => (Some(&s.placed), None, None, None),
            AnyStage::Planned(s) => (Some(&s.race_free.placed), Some(s), None, None),
            AnyStage::Scheduled(s) => (Some(&s.planned.race_free.placed), Some(&s.planned), Some(s), None),
            AnyStage::Allocated(s) => {
                let planned = &s.scheduled.planned;
                (Some(&planned.race_free.placed), Some(planned), Some(&s.scheduled), Some(s))
            }
        };
        Tables { placed, planned, scheduled, allocated }
    }
}

/// The stages of a compilation that have tables of their own, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// The stage with the placement.
    pub placed: Option<&'a Placed>,
    /// The stage with the plan.
    pub planned: Option<&'a Planned>,
    /// The stage with the schedule.
    pub scheduled: Option<&'a Scheduled>,
    /// The stage with the layout.
    pub allocated: Option<&'a Allocated>,
}

/// A stage as a Rust type: the input or result of a pass.
pub trait StageData: Into<AnyStage> + TryFrom<AnyStage, Error = AnyStage> {
    /// The stage.
    const STAGE: Stage;

    /// Returns this stage within a compilation, or `None` if the compilation is at an earlier stage.
    fn within(any: &mut AnyStage) -> Option<&mut Self>;
}

macro_rules! stage_data {
    ($($stage:ident: |$next:ident| $within:expr;)*) => { $(
        impl From<$stage> for AnyStage {
            fn from(data: $stage) -> AnyStage {
                AnyStage::$stage(data)
            }
        }

        impl TryFrom<AnyStage> for $stage {
            type Error = AnyStage;

            fn try_from(any: AnyStage) -> Result<$stage, AnyStage> {
                match any {
                    AnyStage::$stage(data) => Ok(data),
                    other => Err(other),
                }
            }
        }

        impl StageData for $stage {
            const STAGE: Stage = Stage::$stage;

            fn within(any: &mut AnyStage) -> Option<&mut $stage> {
                match any {
                    AnyStage::$stage(data) => Some(data),
                    $next => $within,
                }
            }
        }
    )* };
}
stage_data! {
    Graph: |next| Placed::within(next).map(|s| &mut s.graph);
    Placed: |next| RaceFree::within(next).map(|s| &mut s.placed);
    RaceFree: |next| Planned::within(next).map(|s| &mut s.race_free);
    Planned: |next| Scheduled::within(next).map(|s| &mut s.planned);
    Scheduled: |next| Allocated::within(next).map(|s| &mut s.scheduled);
    Allocated: |_last| None;
}
