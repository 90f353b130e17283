//! The text form of the language: `.gir` files to trees and back.
//!
//! A file's text becomes tokens and comments ([`token`]); [`parse`] makes them balance, cuts them into items, and takes
//! each item through the grammar (`grammar.lalrpop`, Appendix A of the language's description, LR(1)), whose actions build
//! the tree ([`ast`]) in arenas (`builder`). [`format()`] writes a tree as text again, be it from a file or built in memory
//! with [`make`].
//!
//! Invariant: knows no meaning; the formatter is the only writer of `.gir` text, and `format ∘ parse` is a fixed point of
//! it; no input makes anything here recurse deeper than the nesting limit.

pub mod ast;
mod builder;
mod format;
pub mod make;
mod parser;
pub mod token;

pub use format::format;
pub use parser::parse;
