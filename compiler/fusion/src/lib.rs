//! Elementwise steps as functions of elements, and the codelets that compute several of them at once.
//!
//! - [`space`] and [`map`] describe a step as a function of the elements at each iteration of a box, whatever its
//!   vertices are; `girder_codelet::elementwise` recognises the codelets.
//! - [`chain`] decides which maps may run as one, and which elements are then in memory (see the note on fused maps).
//! - [`access`] finds the accesses of other codelets around which maps may run.
//! - [`codelet`] builds the codelet; [`signature`] is its key. [`items`] keeps codelets and their texts in the order of
//!   reading.
//! - [`strides`] has closed forms of fields.
//!
//! The pass `fuse-elementwise` uses it on the graph, where each variable has bytes of its own; `girder_host` on the
//! host's memory, which variables share.
//!
//! Invariant: nothing here depends on syntax, on a machine or on the host.

pub mod access;
pub mod chain;
pub mod codelet;
pub mod items;
pub mod map;
pub mod signature;
pub mod space;
pub mod strides;
#[cfg(test)]
mod tests;
