//! The stages of a pipeline while its body is elaborated.
//!
//! Invariant: stages are numbered in the order of the text.

use crate::value::Place;
use girder_source::Span;
use smol_str::SmolStr;

/// The number of a stage in its pipeline.
pub type StageNumber = u32;

/// A pipeline whose body is being elaborated.
#[derive(Clone, Debug)]
pub struct OpenPipeline {
    /// The expression.
    pub span: Span,
    /// The number of bodies under run-time control around its stages.
    pub depth: u32,
    /// Its stages so far.
    pub stages: Vec<Stage>,
}

/// A stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The name of the `let` that holds its value, or `stage`.
    pub name: SmolStr,
    /// Its tiles.
    pub place: Place,
    /// The expression.
    pub span: Span,
}
