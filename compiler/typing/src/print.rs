//! The text of a typed codelet, for codelets that have no source.
//!
//! Reading the text ([`specialise`](crate::specialise)) gives the same codelet again, up to ids, spans and the names of
//! locals. For each typed form, the printer writes the source form from which typing makes it; `scope` finds where
//! each local is declared, `calls` the statements that typing makes of a call of `exp` and its kin; `value` writes
//! expressions, and `block` statements.
//!
//! # Note: Constants
//! Typing folds operators on static values, and chooses the type of a literal by its uses. A constant is written as a
//! bare literal where the other operand or the target decides its type, as `f32(2.0)` where nothing does, and as
//! `i64.bits(0x2)` where a static `i64` would be folded (`value::Form`).
//!
//! # Note: Copies
//! Typing makes no local for `let t = x;` if `x` is a constant, a size, or a local that no statement assigns again.
//! Where the codelet has such a copy, `t` is declared `let mut`; or `x` is, if `t` must not be.
//!
//! Invariant: what the printer returns reads back to the same codelet. A codelet for which no text does is an
//! [`Unprintable`], never a text with another meaning.

mod printed;
mod scope;
mod calls;
mod names;
pub mod spelling;
mod value;
mod block;
mod reduction;
mod branch;
mod amp;
mod item;

pub use item::codelet_text;
pub use printed::{Printed, Unprintable};
pub use scope::{BlockId, Position, Scopes};
