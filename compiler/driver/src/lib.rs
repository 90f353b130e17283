//! The compiler as a library: sources and options in, executable out.
//!
//! A [`Compilation`] holds the text, its diagnostics and the machine. [`Compilation::stage`] brings the root file to a
//! stage, whether the file is a program or the printed text of a stage. [`Compilation::executable`] compiles the last
//! stage to an executable, which an [`Engine`](girder_engine::Engine) loads; [`Compilation::run_beside`] runs in mode
//! fast while the passes make the tables of the machine. [`arrays`] and [`outputs`] read and write NumPy's files,
//! [`packets`] feeds streams from them, [`checkpoint`] keeps the values of variables by name; [`text`] prints stages.
//!
//! Invariant: only `head` (which finds and reads the root file), `loader`, `arrays`, `outputs`, `checkpoint` and
//! `files` touch the file system; nothing here prints.

pub mod arrays;
pub mod by_step;
pub mod checkpoint;
mod compilation;
mod early;
pub mod files;
mod head;
mod loader;
pub mod outputs;
pub mod packets;

pub use compilation::{Compilation, Options, Start};
pub use early::Early;
pub use girder_elaborate::value::shaped;
pub use girder_elaborate::{Arguments, Array};
pub use girder_passes::pipeline::{After, AnyStage, PASSES, Stage};

// The crates whose types appear in this interface, so that a caller needs no other dependency.
pub use girder_engine as engine;
pub use girder_ir as ir;
pub use girder_ir::show::show;
pub use girder_machine as machine;
pub use girder_profile as profile;
pub use girder_source as source;
pub use girder_syntax as syntax;
pub use girder_text as text;
pub use head::{Head, HeadError, program_file, program_text};
pub use loader::Files;
