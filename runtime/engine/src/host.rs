//! The environment of a run: streams, printed values, progress.
//!
//! Invariant: calls come in program order, from the thread that runs the program, in every mode and on any number of
//! threads. A later failure does not undo them.

use girder_ir::ids::StreamId;
use girder_ir::types::ElemType;

/// The environment of one run. Bytes are row-major, little-endian.
pub trait RunHost {
    /// Fills one packet of an `in` stream. The host, not the engine, restarts a stream that wraps.
    fn read(&mut self, stream: StreamId, into: &mut [u8]) -> Result<(), StreamError>;

    /// Takes one packet of an `out` stream.
    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), StreamError>;

    /// `print(label, x);`
    fn print(&mut self, label: &str, ty: ElemType, shape: &[u64], bytes: &[u8]);

    /// `print("text");`
    fn print_text(&mut self, text: &str);

    /// Reports the number of supersteps that have ended, and the number that the text implies. One iteration of a
    /// `while` is counted, and the longer branch of an `if`; `done` never exceeds `total`.
    fn progress(&mut self, done: u64, total: u64) {
        let _ = (done, total);
    }
}

/// The reason why the host could not serve a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// There is no further packet.
    Ended,
    /// Any other reason.
    Failed(String),
}

/// A host without streams that prints nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl RunHost for Silent {
    fn read(&mut self, _: StreamId, _: &mut [u8]) -> Result<(), StreamError> {
        Err(StreamError::Ended)
    }

    fn write(&mut self, _: StreamId, _: &[u8]) -> Result<(), StreamError> {
        Ok(())
    }

    fn print(&mut self, _: &str, _: ElemType, _: &[u64], _: &[u8]) {}

    fn print_text(&mut self, _: &str) {}
}
