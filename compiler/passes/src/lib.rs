//! The verbs: what turns a graph into one that a machine can run, one stage after the other.
//!
//! Reading order: [`pipeline`] is the whole on one screen, with the registry of passes; [`stage`] is what they take and
//! make, [`pass`] what each of them is, [`context`] what each is given. Two analyses serve
//! several passes: [`footprint`] (which elements a family touches) and [`liveness`] (when a temporary holds a value
//! that is still needed). Then the passes in the order in which they run: [`promote_temporaries`], [`merge_copies`],
//! [`place_tiles`], [`check_races`], [`plan_transfers`], [`schedule_exchange`], [`allocate_memory`].
//!
//! Invariant: a pass is a function from one stage to the next; it reads the machine as data, reports to the user through
//! diagnostics, and leaves a table that its verifier accepts. A verifier shares no code with its pass.

pub mod pipeline;
pub mod stage;
pub mod pass;
pub mod context;
pub mod footprint;
mod calls;
pub mod liveness;
pub mod promote_temporaries;
pub mod merge_copies;
pub mod place_tiles;
pub mod check_races;
pub mod plan_transfers;
pub mod schedule_exchange;
pub mod allocate_memory;
mod superstep;
pub mod model_time;

pub use context::PassContext;

#[cfg(test)]
mod build;
