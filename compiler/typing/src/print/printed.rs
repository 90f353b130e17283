//! What the printer returns.
//!
//! Invariant: a text without a codelet, or a reason without a text, does not leave the printer.

use girder_ir::codelet::Elementary;

/// The text of a codelet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Printed {
    /// The item, formatted, without a newline at its end.
    pub text: String,
    /// The functions of the prelude that it calls, each once, in the order of the first calls.
    pub calls: Vec<Elementary>,
}

/// The reason why a codelet has no text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unprintable(pub String);

impl std::fmt::Display for Unprintable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unprintable {}

/// A part of a text, or the reason why there is none.
pub(super) type Result<T> = std::result::Result<T, Unprintable>;

/// Returns an error.
pub(super) fn unprintable<T>(why: impl Into<String>) -> Result<T> {
    Err(Unprintable(why.into()))
}
