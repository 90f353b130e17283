//! The compiler as a library: sources and options in, executable out.
//!
//! A [`Compilation`] holds the text, what was said about it, and the machine. [`Compilation::stage`] brings the root
//! file to a stage, whether it is written by hand or printed by an earlier build; [`Compilation::executable`] goes on
//! to what an [`Engine`](girder_engine::Engine) loads. [`arrays`] reads and writes NumPy's files; [`text`] prints a
//! stage.
//!
//! Invariant: everything that touches the file system is in `loader` and `arrays`; nothing here prints.

pub mod arrays;
mod compilation;
mod head;
mod loader;
mod show;

pub use compilation::{Compilation, Options};
pub use girder_elaborate::value::shaped;
pub use girder_elaborate::{Arguments, Array};
pub use girder_passes::pipeline::{After, AnyStage, PASSES, Stage};

// The crates whose types stand in this interface, so that a caller needs no other dependency.
pub use girder_engine as engine;
pub use girder_ir as ir;
pub use girder_machine as machine;
pub use girder_profile as profile;
pub use girder_source as source;
pub use girder_syntax as syntax;
pub use girder_text as text;
pub use head::{Head, program_file};
pub use loader::Files;
pub use show::show;
