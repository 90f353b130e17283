//! The result of a run as the host sees it.

use girder::arrays::Elements;
use girder::packets::{self, Packets};
use girder::{Array, show};
use girder_engine::{RunHost, StreamError};
use girder_ir::graph::{Graph, Var};
use girder_ir::ids::StreamId;
use girder_ir::types::ElemType;
use girder_source::Diagnostic;

/// The effects of one run, and the variables after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Lines that were printed.
    pub prints: Vec<String>,
    /// Packets of `out` streams in order: the stream and the elements.
    pub packets: Vec<(String, Array)>,
    /// Persistent variables after the run, in order; none if it failed.
    pub variables: Vec<(String, Array)>,
    /// The reason why it ended early.
    pub failure: Option<Diagnostic>,
}

/// A Rust type that corresponds to an element type of the language.
pub trait Element: Sized {
    /// The element type.
    const TYPE: ElemType;
    /// Reads an element from its bytes.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($($rust:ty = $ty:ident),*) => {$(
        impl Element for $rust {
            const TYPE: ElemType = ElemType::$ty;
            fn read(bytes: &[u8]) -> $rust {
                <$rust>::from_le_bytes(bytes.try_into().expect("as many bytes as the type has"))
            }
        }
    )*};
}
element!(u8 = U8, u32 = U32, i32 = I32, u64 = U64, i64 = I64, f32 = F32, f64 = F64);

impl Outcome {
    pub(crate) fn failed(diagnostic: Diagnostic) -> Outcome {
        Outcome { failure: Some(diagnostic), ..Outcome::default() }
    }

    pub(crate) fn keep(&mut self, var: &Var, mut bytes: Vec<u8>) {
        one_nan(var.ty, &mut bytes);
        let replicas = if var.is_empty() { 1 } else { bytes.len() as u64 / var.bytes() };
        let shape = (replicas > 1).then_some(replicas).into_iter().chain(var.shape.iter().copied()).collect();
        let array = Array { ty: var.ty, shape, bytes: bytes.into() };
        self.variables.push((var.name.to_string(), array));
    }

    /// Returns a variable after the run.
    ///
    /// # Panics
    /// If the run failed or there is no such variable.
    pub fn array(&self, name: &str) -> &Array {
        assert!(self.failure.is_none(), "the run failed: {:?}", self.failure);
        let found = self.variables.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("there is no variable `{name}`")).1
    }

    /// Returns the elements of a variable after the run.
    ///
    /// # Panics
    /// If the run failed, or there is no such variable of that type.
    pub fn get<T: Element>(&self, name: &str) -> Vec<T> {
        elements(self.array(name))
    }
}

/// Returns the elements of an array.
///
/// # Panics
/// If they are of another type.
pub fn elements<T: Element>(array: &Array) -> Vec<T> {
    assert_eq!(array.ty, T::TYPE, "the elements have another type");
    array.bytes.chunks_exact(T::TYPE.bytes() as usize).map(T::read).collect()
}

/// Replaces each NaN by the same one.
fn one_nan(ty: ElemType, bytes: &mut [u8]) {
    match ty {
        ElemType::F32 => {
            for b in bytes.chunks_exact_mut(4).filter(|b| f32::read(b).is_nan()) {
                b.copy_from_slice(&f32::NAN.to_le_bytes());
            }
        }
        ElemType::F64 => {
            for b in bytes.chunks_exact_mut(8).filter(|b| f64::read(b).is_nan()) {
                b.copy_from_slice(&f64::NAN.to_le_bytes());
            }
        }
        _ => {}
    }
}

/// A host that feeds streams from arrays and records all output.
pub(crate) struct Recorder<'p> {
    graph: &'p Graph,
    sources: Vec<(&'p str, Packets)>,
    pub(crate) outcome: Outcome,
}

impl<'p> Recorder<'p> {
    pub(crate) fn new(graph: &'p Graph, sources: &'p [(String, Array)]) -> Recorder<'p> {
        let packets = |(name, array): &'p (String, Array)| {
            let stream = graph.streams.values().find(|s| s.name == name.as_str())?;
            assert!(packets::fits(array.ty, &array.shape, stream), "an array does not fit the stream `{name}`");
            let elements = Elements::Memory(array.bytes.clone(), 0);
            Some((name.as_str(), Packets::new(elements, &array.shape, stream)))
        };
        Recorder { graph, sources: sources.iter().filter_map(packets).collect(), outcome: Outcome::default() }
    }
}

impl RunHost for Recorder<'_> {
    fn read(&mut self, stream: StreamId, into: &mut [u8]) -> Result<(), StreamError> {
        let name = &self.graph.streams[stream].name;
        match self.sources.iter_mut().find(|(source, _)| source == name) {
            Some((_, packets)) => packets.read(into),
            None => Err(StreamError::Failed("nothing feeds it".into())),
        }
    }

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), StreamError> {
        let stream = &self.graph.streams[stream];
        let mut bytes = bytes.to_vec();
        one_nan(stream.ty, &mut bytes);
        let array = Array { ty: stream.ty, shape: stream.shape.to_vec(), bytes: bytes.into() };
        self.outcome.packets.push((stream.name.to_string(), array));
        Ok(())
    }

    fn print(&mut self, label: &str, ty: ElemType, shape: &[u64], bytes: &[u8]) {
        let value = show(ty, shape, bytes);
        self.outcome.prints.push(if label.is_empty() { value } else { format!("{label} {value}") });
    }

    fn print_text(&mut self, text: &str) {
        self.outcome.prints.push(text.to_string());
    }
}
