//! The text form of the language: `.gir` files to trees and back.
//!
//! A file's text becomes tokens and comments ([`token`]). [`parse`] balances brackets, cuts the tokens into items, and
//! parses each item by the grammar (`grammar.lalrpop`, Appendix A of the language reference, LR(1)), whose actions
//! build the tree ([`ast`]) in arenas (`builder`). [`format()`] writes a tree as text, whether it comes from a file or
//! was built in memory with [`make`].
//!
//! Invariant: no name has a meaning here; the formatter is the only writer of `.gir` text, and `format ∘ parse` is a
//! fixed point of it; for no input does anything here recurse deeper than the nesting limit.

pub mod ast;
mod builder;
mod format;
pub mod make;
mod parser;
pub mod token;

pub use format::{ItemGroup, format};
pub use parser::{parse, parse_charged};
pub use token::narrow_float;
