//! Panics with context.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f`. If it panics, panics with the same message followed by `context`: a property test reports the message of
/// the smallest failing case, and the reader also needs the text of that case.
///
/// # Panics
/// If `f` does.
pub fn with_context<T>(context: &str, f: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let message = (payload.downcast_ref::<String>().map(String::as_str))
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a text");
        panic!("{message}\n{context}")
    })
}

#[cfg(test)]
mod tests {
    use super::with_context;

    #[test]
    #[should_panic(expected = "two of three\nthe program")]
    fn the_message_and_the_context_are_told() {
        with_context("the program", || panic!("{} of three", "two"));
    }
}
