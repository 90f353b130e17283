//! The items `exchange NAME { … }`: the transfers of a compute set or copy, the locations of its fields,
//! and the schedule.
//!
//! The module [`rows`] describes the rows and their text.
//!
//! Invariant: rows and items have a fixed order; every compute set and copy with rows has one item.

mod read;
mod rows;
mod write;

pub use read::read;
pub use write::print;

use rows::When;

/// The indices of a family of rows over a box, the slowest first.
const INDICES: [&str; rows::MAX_RANK] = ["i", "j", "k"];

/// The columns of a family of rows over a table.
const COLUMNS: [&str; crate::values::MAX_COLUMNS] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

/// The word that marks a transfer at the rate of a pair of tiles.
const WIDE: &str = "wide";

/// Returns the kind of a row that is a transfer.
fn phase_name(phase: When) -> &'static str {
    match phase {
        When::Before => "before",
        When::After => "after",
    }
}

/// Returns the kind of a row that is a copy inside a tile.
fn copy_name(phase: When, gather: bool) -> &'static str {
    match (phase, gather) {
        (When::Before, true) => "gather_before",
        (When::Before, false) => "spread_before",
        (When::After, true) => "gather_after",
        (When::After, false) => "spread_after",
    }
}
