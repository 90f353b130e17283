//! The nouns of the compiler: element types, views, codelets, families, the graph, the program, and one table per
//! stage.
//!
//! Reading order: [`types`], [`show`] (the text of a tensor) and [`ids`]; [`affine`] and [`view`] (how elements are
//! named); [`codelet`] (the code of a vertex); [`family`] (many vertices or copies as one entity); [`graph`] with its
//! [`drawn`] initial values, and [`program`]; then the stages in [`stage`] with their tables [`placement`], [`plan`],
//! [`schedule`], [`layout`]. [`timing`] holds modelled times, and [`trace`] reports the steps of a run. [`region`] is
//! the arithmetic of strided sets under views and families; [`verify`] checks a graph.
//!
//! Invariants: the [`Graph`](graph::Graph) owns everything through typed ids; nothing here has behaviour beyond
//! queries; a stage owns the one before it and adds one table.

pub mod types;
pub mod show;
pub mod ids;
pub mod affine;
pub mod region;
pub mod view;
pub mod codelet;
pub mod family;
pub mod drawn;
pub mod graph;
pub mod program;
pub mod placement;
pub mod plan;
pub mod schedule;
pub mod layout;
pub mod stage;
pub mod timing;
pub mod trace;
pub mod verify;
