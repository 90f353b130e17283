//! The items `exchange NAME { … }`: what moves for a compute set or copy, where its fields land, and when.
//!
//! The rows are those of [`rows`](rows), whose text is described there.
//!
//! Invariant: rows and items stand in one order; every compute set and copy with rows has one item.

mod read;
mod rows;
mod write;

pub use read::read;
pub use write::print;

use rows::When;

/// The indices of a family of rows, the slowest first.
const INDICES: [&str; rows::MAX_RANK] = ["i", "j", "k"];

/// What moves at the rate of a pair of tiles.
const WIDE: &str = "wide";

/// The kind of a row that is a transfer.
fn phase_name(phase: When) -> &'static str {
    match phase {
        When::Before => "before",
        When::After => "after",
    }
}

/// The kind of a row that is a copy inside a tile.
fn copy_name(phase: When, gather: bool) -> &'static str {
    match (phase, gather) {
        (When::Before, true) => "gather_before",
        (When::Before, false) => "spread_before",
        (When::After, true) => "gather_after",
        (When::After, false) => "spread_after",
    }
}
