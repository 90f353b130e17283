//! The passes: they lower a graph to a program that a machine can run, one stage after the other.
//!
//! Reading order: [`pipeline`] holds the registry of all passes in order. [`stage`] defines what passes take and make,
//! [`pass`] defines a pass, [`context`] is the context of every pass, and [`progress`] tells others how far the passes
//! have come. Three analyses serve several passes: [`footprint`] (which elements a family accesses), `race_rule` (which
//! steps may happen at the same time) and [`liveness`] (when a temporary holds a value that is still needed).
//! [`superstep`] holds the formulas of time, and `sizes` those of memory. Then come the passes in order:
//! [`check_replicas`], [`promote_temporaries`], [`fold_constants`], [`remove_dead_steps`], [`fuse_elementwise`],
//! [`merge_compute_sets`], [`merge_copies`], [`place_tiles`], [`check_races`], [`plan_transfers`],
//! [`schedule_exchange`], [`allocate_memory`]. With `rewrite`, passes from graph to graph change a program.
//! [`model_time`] computes the time of the result.
//!
//! Invariant: a pass is a function from one stage to the next. It reads the machine as data, reports to the user
//! through diagnostics, and leaves a table that its verifier accepts. A verifier shares no code with its pass.
//! What several passes need belongs to none of them, so no pass imports a later one.

pub mod pipeline;
pub mod stage;
pub mod pass;
pub mod context;
pub mod progress;
mod step_times;
mod steps;
pub mod footprint;
mod race_rule;
pub mod liveness;
mod small_pieces;
mod sizes;
pub mod promote_temporaries;
pub mod merge_copies;
mod rewrite;
pub mod fold_constants;
pub mod remove_dead_steps;
pub mod fuse_elementwise;
pub mod merge_compute_sets;
pub mod place_tiles;
pub mod check_races;
pub mod check_replicas;
pub mod plan_transfers;
pub mod schedule_exchange;
pub mod allocate_memory;
pub mod superstep;
mod replica_traffic;
pub mod rings;
pub mod model_time;

pub use context::PassContext;
pub use step_times::{Part, StepTimes};

#[cfg(test)]
mod build;
