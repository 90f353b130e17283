//! Tests of the whole compiler, a module for each subject. They are one program, which is linked once.
//!
//! `cargo test -p girder-tests --test all gradients` runs the tests of a module.

#[path = "../src/random.rs"]
mod numbers;

mod batched;
mod cache_blocks;
mod codes;
mod convolutions;
mod cycles;
mod differential;
mod examples;
mod form;
mod gradients;
mod imports;
mod language;
mod library;
mod machines;
mod memory;
mod mutations;
mod pipelines;
mod placement;
mod processors;
mod products;
mod profile;
mod recurrent;
mod remotes;
mod replicas;
mod rows;
mod sorting;
mod stages;
mod timelines;
mod validation;
