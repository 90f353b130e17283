//! Facts of known codelets, and soundness against what the interpreter sees.

use super::*;
use crate::build::Builder;
use crate::interpret::{Interpreter, Stop, VertexMemory};
use crate::sizes::{Shape, bind_sizes};
use girder_ir::codelet::*;
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Limits, Session};
use proptest::prelude::*;

mod intervals;
mod known;
mod limits;
mod random;
mod relations;

/// Remembers which elements were written.
struct Recorder {
    written: Vec<Vec<bool>>,
}

impl VertexMemory for Recorder {
    fn load(&mut self, field: FieldId, flat: u64) -> u64 {
        assert!((flat as usize) < self.written[field.as_u32() as usize].len());
        // Small numbers of both signs, so that conditions on them go both ways.
        ((flat * 7 + 3) % 11).wrapping_sub(5)
    }
    fn store(&mut self, field: FieldId, flat: u64, _: u64) {
        self.written[field.as_u32() as usize][flat as usize] = true;
    }
}

/// Works like [`compare_on`], on two workers.
fn compare(c: &Codelet, shapes: &[Shape]) -> Facts {
    compare_on(c, shapes, 2)
}

/// Runs a codelet on some workers and compares what it does with its facts. Gives the facts.
fn compare_on(c: &Codelet, shapes: &[Shape], workers: u32) -> Facts {
    compare_with(c, shapes, workers, &[])
}

/// Works like [`compare_on`], with the bits of constants by field.
fn compare_with(c: &Codelet, shapes: &[Shape], workers: u32, constants: &[u64]) -> Facts {
    crate::verify(c).unwrap();
    let sizes = bind_sizes(c, shapes, &[]).unwrap();
    let facts = facts_on(c, &sizes, workers);
    let written = c.fields.keys().map(|f| vec![false; sizes.elements(f) as usize]).collect();
    let mut recorder = Recorder { written };
    let session = Session { limits: Limits { iterations: 5, ..Limits::default() }, ..Session::default() };
    match Interpreter::new(c).run(&sizes, &mut recorder, constants, workers, &session) {
        Err(Stop::Failed(failure)) => {
            assert!(!facts.proven.contains(failure.site), "{failure:?} was proven impossible")
        }
        Err(Stop::Cancelled | Stop::Raced(_) | Stop::Exhausted) => unreachable!("nobody cancels or watches"),
        Ok(()) => {
            for (field, _) in c.edges().filter(|(f, _)| facts.cover[*f] == Cover::Full) {
                let written = &recorder.written[field.as_u32() as usize];
                assert!(written.iter().all(|&w| w), "{field} is called fully written, but is {written:?}");
            }
        }
    }
    facts
}
