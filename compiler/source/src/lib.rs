//! The foundation of the compiler's crates: source text, diagnostics, limits of work, and parallel maps.
//!
//! Invariant: nothing here knows the language, the graph or the machine.

mod span;
mod source_map;
mod diagnostic;
mod origin;
mod memory;
mod session;
mod parallel;
mod spelling;

pub use diagnostic::{Diagnostic, Diagnostics, Failed, Label, Result, Severity};
pub use memory::{ChargedBytes, host_memory};
pub use origin::{Origin, OriginId, Origins};
pub use parallel::{beside, on_stack, par_for_each, par_map, par_map_slice, par_map_uneven};
pub use session::{Cancel, LimitExceeded, Limits, Session};
pub use source_map::{FileId, Location, SourceFile, SourceMap};
pub use span::{LIBRARY_START, Span};
pub use spelling::{closest, foreign, plural};
