//! The host side of a run: streams from and to files, `print` to standard output, a progress bar on a terminal.
//!
//! Invariant: the packets of a stream are written to its file even if the run fails later.

use crate::options::pair;
use crate::report::{Done, Report, Stop, print};
use crate::variables::{open_array, unreadable, writable, write_array};
use girder::arrays::{ArrayFile, Elements};
use girder::engine::{Host, StreamError};
use girder::ir::graph::Graph;
use girder::ir::ids::StreamId;
use girder::ir::types::ElemType;
use girder::source::Limits;
use girder::{Array, show};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file that feeds an `in` stream.
struct Source {
    stream: StreamId,
    /// The file, until the run begins.
    file: Option<(String, ArrayFile)>,
    packets: Elements,
    /// The bytes of all packets, and those that are left.
    bytes: u64,
    left: u64,
    wrap: bool,
}

impl Source {
    /// Reads one packet, which continues at the start of the file where the file ends, if the stream wraps.
    fn read(&mut self, mut into: &mut [u8]) -> Result<(), StreamError> {
        while !into.is_empty() {
            if self.left == 0 {
                if !self.wrap || self.bytes == 0 {
                    return Err(StreamError::Ended);
                }
                self.packets.rewind().map_err(StreamError::Failed)?;
                self.left = self.bytes;
            }
            let count = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let (now, later) = into.split_at_mut(count);
            self.packets.read(now).map_err(StreamError::Failed)?;
            self.left -= count as u64;
            into = later;
        }
        Ok(())
    }
}

/// A file that an `out` stream fills.
struct Sink {
    stream: StreamId,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// See the module.
pub struct Console {
    names: Vec<String>,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    bar: Option<ProgressBar>,
    started: Instant,
    watched: bool,
}

/// A run shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(700);

impl Console {
    /// Opens the files of the command line.
    pub fn new(
        graph: &Graph,
        inputs: &[String],
        outputs: &[String],
        limits: &Limits,
        report: &Report,
    ) -> Result<Console, Stop> {
        let mut console = Console {
            names: graph.streams.values().map(|s| s.name.to_string()).collect(),
            sources: vec![],
            sinks: vec![],
            bar: None,
            started: Instant::now(),
            watched: std::io::stderr().is_terminal(),
        };
        for text in inputs {
            let (name, file) = pair(report, "--in", text)?;
            let stream = find(graph, name, true, report)?;
            let s = &graph.streams[stream];
            let array = open_array(file, "--in", report)?;
            let header = &array.header;
            let len = header.bytes / header.ty.bytes() as u64;
            // A packet of a stream that wraps may end one pass over the file and begin the next, between rows.
            let row = header.shape.iter().skip(1).product::<u64>().max(1);
            let fits = len.is_multiple_of(s.len()) || s.wrap && s.len().is_multiple_of(row);
            if header.ty != s.ty || s.is_empty() || !fits {
                let found = girder::shaped(header.ty, &header.shape);
                let wanted = girder::shaped(s.ty, &s.shape);
                let help = "its type must be that of the stream, and its elements whole packets";
                let message = format!("{file} holds {found}, but packets of `{name}` are {wanted}");
                return Err(report.error("run::wrong_array", message, help));
            }
            let bytes = header.bytes;
            if bytes > limits.host_bytes && !array.is_plain() {
                let message = format!("{file} holds {bytes} bytes, more than the limit `host_bytes`");
                let help =
                    format!("`--limit host_bytes={bytes}` allows it; a `.npy` file in row-major order needs none");
                return Err(report.error("run::host_memory", message, help));
            }
            let (file, packets) = (Some((file.to_string(), array)), Elements::Memory(vec![], 0));
            console.sources.push(Source { stream, file, packets, bytes, left: bytes, wrap: s.wrap });
        }
        for text in outputs {
            let (name, file) = pair(report, "--out", text)?;
            let stream = find(graph, name, false, report)?;
            writable(Path::new(file), report)?;
            console.sinks.push(Sink { stream, path: file.into(), bytes: vec![] });
        }
        Ok(console)
    }

    /// Makes the packets of `in` streams ready.
    pub fn fill(&mut self, report: &Report) -> Done {
        for source in &mut self.sources {
            if let Some((name, file)) = source.file.take() {
                source.packets = file.in_order().map_err(|e| unreadable(&name, "--in", &e, report))?;
            }
        }
        Ok(())
    }

    /// Writes the files of `out` streams and clears the bar.
    pub fn finish(&mut self, graph: &Graph, report: &Report) -> Done {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        for sink in self.sinks.drain(..) {
            let s = &graph.streams[sink.stream];
            let packet = (s.len() * s.ty.bytes() as u64).max(1);
            let mut shape = vec![sink.bytes.len() as u64 / packet];
            shape.extend(&s.shape);
            write_array(&sink.path, &Array { ty: s.ty, shape, bytes: sink.bytes.into() }, report)?;
        }
        Ok(())
    }
}

fn find(graph: &Graph, name: &str, input: bool, report: &Report) -> Result<StreamId, Stop> {
    let (flag, word) = if input { ("--in", "in") } else { ("--out", "out") };
    let fitting: Vec<_> = graph.streams.iter().filter(|(_, s)| s.input == input).collect();
    match fitting.iter().copied().find(|(_, s)| s.name == name) {
        Some((id, _)) => Ok(id),
        None => {
            let names: Vec<&str> = fitting.iter().map(|(_, s)| s.name.as_str()).collect();
            let help = match names.is_empty() {
                true => format!("the module has no `{word}` stream"),
                false => format!("`{word}` streams are {}", names.join(", ")),
            };
            Err(report.error("run::no_stream", format!("`{flag} {name}`: there is no such `{word}` stream"), help))
        }
    }
}

impl Host for Console {
    fn read(&mut self, stream: StreamId, into: &mut [u8]) -> Result<(), StreamError> {
        let Some(source) = self.sources.iter_mut().find(|s| s.stream == stream) else {
            let name = &self.names[stream.as_u32() as usize];
            return Err(StreamError::Failed(format!("nothing feeds it: pass `--in {name}=file.npy`")));
        };
        source.read(into)
    }

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), StreamError> {
        // Without `--out` a stream's packets are not wanted.
        if let Some(sink) = self.sinks.iter_mut().find(|s| s.stream == stream) {
            sink.bytes.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn print(&mut self, label: &str, ty: ElemType, shape: &[u64], bytes: &[u8]) {
        let value = show(ty, shape, bytes);
        let line = if label.is_empty() { value } else { format!("{label} {value}") };
        self.print_text(&line);
    }

    fn print_text(&mut self, text: &str) {
        let write = || {
            // The run goes on if nobody reads what it prints.
            let _ = print(&format!("{text}\n"));
        };
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn progress(&mut self, done: u64, total: u64) {
        if !self.watched || (self.bar.is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        let style = || {
            let template = "{elapsed_precise} [{bar:40}] {pos}/{len} supersteps, {eta} left";
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let bar = self.bar.get_or_insert_with(|| ProgressBar::new(total).with_style(style()));
        bar.set_position(done);
    }
}
