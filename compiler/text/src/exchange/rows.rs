//! A plan and its schedule as rows: the neutral form between the tables and the items `exchange NAME { … }` of a
//! printed stage.
//!
//! # Note: Text of a row
//! ```gir
//! exchange main.matvec {
//!     cycles(before, 0..2): 784;                                  // on processors 0 and 1, of the phase before
//!     links(after): 2008;                                         // between processors, of the phase after
//!     carries: main.copy;                                         // this copy moves in the phase before
//!     buffer(0..3): tile: 1, next: 1, bytes: 3136;                // buffers 0, 1, 2 on tiles 1, 2, 3
//!     field(0, w, 0..10): byte: 0, step: 3136, strides: [4];   // in place: vertex i at byte 0 + 3136 · i of its block
//!     field(0, x, 3..5): buffer: 0, next: 0, byte: 0, step: 0; // in a buffer: vertices 3 and 4 in buffer 0 at byte 0
//!     gather_before: x[0, 64], bytes: 4, count: 8, steps: [64, 4] -> buffer(4)[0];
//!     before(0): x[0, 0], words: 784 -> [buffer(0..3)[0]];        // from cycle 0; to buffers 0, 1, 2
//!     before: x[0, 784], words: 90 -> [buffer(0..3)[784]];        // in pieces:
//!     piece(before, 1, 784, wide): 0..30;                         // words 0 to 29 of transfer 1, from cycle 784
//!     piece(before, 1, 990): 30..90, to: [0..2];                  // words 30 to 89 to its first two receivers
//!     spread_before: buffer(5)[2], bytes: 3 -> y[3, 1];           // 3 bytes, on tile 3
//!     after(0): buffer(0)[0], words: 2 -> [y[0, 8], z[1..3, 16]]; // to y on tile 0, z on tiles 1 and 2
//! }
//! ```
//! `x[t, b]` is byte b of the block of `x` on tile t, and `x[t..u, b]` or `x[t..u by s, b]` is such a byte on each tile
//! of a range. `buffer(k)[b]` is byte b of buffer k, whose tile is known. A sender that is one of several receivers
//! sends to the others. `wide` marks a transfer at the rate of a pair of tiles. `next`, `step`, `count` and `steps` may
//! be left out where they are 0, 0, 1 and [0, 0], and `strides` where it is empty. Without a schedule there are no rows
//! `cycles`, `links` and `piece`, and `before:` and `after:` have no cycle. With a schedule, transfers to other
//! processors have no cycle, and neither have those whose slices are rows `piece`: transfers that move in pieces, and
//! in a phase of many transfers that do not all move whole and at one rate, all of them. The order of these rows does
//! not matter.
//!
//! # Note: Families of rows
//! `before(4 * i): x[i + 46 * j, 0], words: 16 -> [y[1 + i + 46 * j, 8]] for j in 0..32, i in 0..45;` stands for one
//! row for each combination of indices, the last index fastest. Every number of a row may be a sum of a constant and
//! multiples of indices, which start at 0. See [`RowFamily`].
//!
//! Rows whose numbers do not advance evenly are over a table, one entry for each row: `before: x[c0, 64], words: 16 ->
//! [buffer(c1)[c2]] for (c0, c1, c2) in [(752, 730, 8832), (850, 833, 8832), …];`.
//!
//! Invariants: `from_rows ∘ to_rows` is the identity on tables that the passes make. No rows make [`from_rows`] panic
//! or use memory out of proportion to the graph; the verifiers decide whether the tables are valid.

mod row;
mod families;
mod fold;
mod from_tables;
mod numbers;
mod runs;
#[cfg(test)]
mod tests;
mod to_tables;

pub use families::{Dim, Indices, MAX_RANK, RowFamily, Table};
pub use fold::fold;
pub use from_tables::to_rows;
pub use numbers::Numbers;
pub use row::{LocationRun, Receivers, Row, When};
pub use runs::RowRuns;
pub use to_tables::{Tables, WrongRow, from_rows};
