//! What a run sees of the outside, and what it leaves there.
//!
//! Invariant: calls come in program order, from the thread that runs the program, in every mode and on any number of
//! threads; what has been handed over is never taken back by a later failure.

use girder_ir::ids::StreamId;
use girder_ir::types::ElemType;

/// The outside world of one run. Bytes are row-major, little end first.
pub trait Host {
    /// Fills one packet of an `in` stream. A stream that wraps begins again here, not in the engine.
    fn read(&mut self, stream: StreamId, into: &mut [u8]) -> Result<(), StreamError>;

    /// Takes one packet of an `out` stream.
    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), StreamError>;

    /// `print(label, x);`
    fn print(&mut self, label: &str, ty: ElemType, shape: &[u64], bytes: &[u8]);

    /// `print("text");`
    fn say(&mut self, text: &str);

    /// How many supersteps have ended, of how many the text tells. Where the text does not tell (`while`, `if`) one
    /// turn or the longer branch is counted, and `done` never exceeds `total`.
    fn progress(&mut self, done: u64, total: u64) {
        let _ = (done, total);
    }
}

/// Why the host could not serve a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// There is no further packet.
    Ended,
    /// Anything else, in words.
    Failed(String),
}

/// A host without streams that says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Host for Silent {
    fn read(&mut self, _: StreamId, _: &mut [u8]) -> Result<(), StreamError> {
        Err(StreamError::Ended)
    }

    fn write(&mut self, _: StreamId, _: &[u8]) -> Result<(), StreamError> {
        Ok(())
    }

    fn print(&mut self, _: &str, _: ElemType, _: &[u64], _: &[u8]) {}

    fn say(&mut self, _: &str) {}
}
