//! Vectorisation: loops, reductions and whole vertices, several iterations at a time.
//!
//! An *iteration* is an iteration of the loop (or a vertex of the batch) that becomes a lane. All lanes of a group run
//! the body together: control is the same for all of them, and values that differ are vectors. A body qualifies if all
//! values that differ have four bytes, or all have eight (in vector kernels the widths may be mixed), no check in it
//! can fail, and no two iterations access an element that either of them stores. Each iteration computes what scalar
//! code would compute, in the same order, so the result has the same bits.
//!
//! - `steps`: the statements that a body may contain
//! - `nest`: short inner loops whose iterations are lanes too
//! - `totals`: locals that a loop only accumulates into
//! - `differ`: which locals differ from iteration to iteration
//! - `search`: decides whether a body qualifies
//! - `emit`, `run`: the expressions and statements of one group
//! - `kernel`: the same for vector kernels of `girder-simd`
//! - `loops`, `reduce`, `batch`: the three users: iterations of a loop, elements of a reduction, vertices of a batch
//!
//! # Note: Early evaluation
//! An expression that is the same in all iterations and depends on nothing in the body is evaluated before the loop,
//! which is entered only if it has an iteration. That is sound for an expression that every iteration evaluates
//! unconditionally. An expression that some iterations may skip must not load and must have no check, proven or not,
//! because the proof may depend on the condition. There are two exceptions: a vector kernel loads and stores under a
//! mask, and a load is allowed if every iteration performs the same load unconditionally.
//!
//! Invariant: a [`Plan`] is only made for a body that `emit` and `run` can translate.

mod steps;
mod nest;
mod totals;
mod differ;
mod plan;
mod search;
mod emit;
mod run;
mod loops;
mod reduce;
mod batch;
mod kernel;

pub(super) use loops::Rest;
use plan::Plan;
