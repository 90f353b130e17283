//! Tests of compiled code, a module for each subject. They are one program, which is linked once.
//!
//! `cargo test -p girder-codegen --test all vectors` runs the tests of a module.

mod agreement;
mod harness;
mod limits;
mod narrow;
mod neighbours;
mod operations;
mod source;
mod tiles;
mod vectors;
