//! The host side of a run: streams from and to files, plots of them, `print` to standard output, a progress bar.
//!
//! Invariant: the packets of a stream are written to its file even if the run fails later; until then they are in a
//! file without a name, and memory holds only the numbers of plots.

use crate::files::{cannot_write, output};
use crate::options::pair;
use crate::plot::{Plot, plot};
use crate::progress::Progress;
use crate::report::{Done, Report, Stop, print};
use crate::variables::{open_array, unreadable};
use girder::arrays::ArrayFile;
use girder::engine::{RunHost, StreamError};
use girder::ir::graph::{Graph, Stream};
use girder::ir::ids::StreamId;
use girder::ir::types::ElemType;
use girder::outputs::{Collected, Output};
use girder::packets::{self, Packets};
use girder::show;
use girder::source::Limits;

/// A file that feeds an `in` stream.
struct Source {
    stream: StreamId,
    /// The name of the file, and the file until the run begins.
    name: String,
    file: Option<ArrayFile>,
    /// The packets of the file, from the beginning of the run on.
    packets: Option<Packets>,
}

/// A file that an `out` stream fills.
struct Sink {
    stream: StreamId,
    output: Output,
    /// The packets, from the first one on.
    packets: Option<Collected>,
    /// Why packets are lost, as it was reported.
    failed: bool,
}

impl Sink {
    /// Adds a packet.
    fn push(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let packets = match self.packets.take() {
            Some(packets) => Ok(packets),
            None => Collected::beside(self.output.path()),
        };
        let pushed = packets.and_then(|packets| self.packets.insert(packets).push(bytes));
        self.failed |= pushed.is_err();
        pushed
    }

    /// Writes the file.
    fn finish(self, s: &Stream) -> std::io::Result<()> {
        let packet = (s.len() * s.ty.bytes() as u64).max(1);
        let count = self.packets.as_ref().map_or(0, Collected::len) / packet;
        let shape: Vec<u64> = std::iter::once(count).chain(s.shape.iter().copied()).collect();
        match self.packets {
            Some(packets) => self.output.write(s.ty, &shape, &mut packets.read()?),
            None => self.output.write(s.ty, &shape, &mut std::io::empty()),
        }
    }
}

/// The host of a run on the command line.
pub struct Console {
    names: Vec<String>,
    /// The type of each stream whose packets are single numbers.
    numbers: Vec<Option<ElemType>>,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    plots: Vec<Plot>,
    /// The bytes of the numbers of plots, and the most that they may be.
    plotted: u64,
    most: u64,
    progress: Progress,
    /// Why something that the program printed is lost.
    unprinted: Option<Stop>,
}

impl Console {
    /// Opens the files of the command line.
    pub fn new(
        graph: &Graph,
        inputs: &[String],
        outputs: &[String],
        plots: &[String],
        limits: &Limits,
        report: &Report,
    ) -> Result<Console, Stop> {
        let mut console = Console {
            names: graph.streams.values().map(|s| s.name.to_string()).collect(),
            numbers: graph.streams.values().map(|s| (s.len() == 1).then_some(s.ty)).collect(),
            sources: vec![],
            sinks: vec![],
            plots: plots.iter().map(|text| plot(text, graph, report)).collect::<Result<_, _>>()?,
            plotted: 0,
            most: limits.host_bytes,
            progress: Progress::new(),
            unprinted: None,
        };
        for text in inputs {
            let (name, file) = pair(report, "--in", text)?;
            let stream = find(graph, name, "--in", true, report)?;
            let s = &graph.streams[stream];
            let array = open_array(file, "--in", report)?;
            let header = &array.header;
            if !packets::fits(header.ty, &header.shape, s) {
                let found = girder::shaped(header.ty, &header.shape);
                let wanted = girder::shaped(s.ty, &s.shape);
                let help = match header.ty == s.ty {
                    true => format!("an array of one of these shapes feeds it: {}", packets::accepted_shapes(s)),
                    false => format!("its elements must be {}, those of the stream", s.ty),
                };
                let message = format!("{file} holds {found}, but packets of `{name}` are {wanted}");
                return Err(report.error("run::wrong_array", message, help));
            }
            let order = packets::order_bytes(header.ty, &header.shape, s);
            let elements = if array.is_plain() { 0 } else { header.bytes };
            let bytes = elements.saturating_add(order);
            if bytes > limits.host_bytes {
                let message = match order {
                    0 => format!("{file} holds {bytes} bytes, more than the limit `host_bytes`"),
                    _ => format!(
                        "{file} needs {bytes} bytes, {order} of them for the order of the rows of `{name}`; that is \
                         more than the limit `host_bytes`"
                    ),
                };
                let less = match elements {
                    0 => "a stream without `shuffle` needs none",
                    _ => "the elements of a `.npy` file in row-major order need none",
                };
                let help = format!("`--limit host_bytes={bytes}` allows it; {less}");
                return Err(report.error("run::host_memory", message, help));
            }
            console.sources.push(Source { stream, name: file.into(), file: Some(array), packets: None });
        }
        for text in outputs {
            let (name, file) = pair(report, "--out", text)?;
            let stream = find(graph, name, "--out", false, report)?;
            let output = output(file, name, "--out", report)?;
            console.sinks.push(Sink { stream, output, packets: None, failed: false });
        }
        Ok(console)
    }

    /// Makes the packets of `in` streams ready.
    pub fn fill(&mut self, graph: &Graph, report: &Report) -> Done {
        for source in &mut self.sources {
            if let Some(file) = source.file.take() {
                let shape = file.header.shape.clone();
                let elements = file.in_order().map_err(|e| unreadable(&source.name, "--in", &e, report))?;
                source.packets = Some(Packets::new(elements, &shape, &graph.streams[source.stream]));
            }
        }
        Ok(())
    }

    /// Clears the bar.
    pub fn clear(&mut self) {
        self.progress.clear();
    }

    /// Writes the files of `out` streams and clears the bar.
    pub fn finish(&mut self, graph: &Graph, report: &Report) -> Done {
        self.clear();
        for sink in self.sinks.drain(..).filter(|sink| !sink.failed) {
            let path = sink.output.path().to_path_buf();
            let stream = &graph.streams[sink.stream];
            sink.finish(stream).map_err(|e| cannot_write(&path, &e, report))?;
        }
        self.plots.drain(..).try_for_each(|plot| plot.finish(report))?;
        self.unprinted.map_or(Ok(()), Err)
    }
}

/// Finds a stream that an option names.
pub fn find(graph: &Graph, name: &str, flag: &str, input: bool, report: &Report) -> Result<StreamId, Stop> {
    let word = if input { "in" } else { "out" };
    let fits = |s: &Stream| s.input == input && s.rows.is_none();
    let fitting: Vec<_> = graph.streams.iter().filter(|(_, s)| fits(s)).collect();
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

impl RunHost for Console {
    fn read(&mut self, stream: StreamId, into: &mut [u8]) -> Result<(), StreamError> {
        let source = self.sources.iter_mut().find(|s| s.stream == stream);
        let Some(packets) = source.and_then(|s| s.packets.as_mut()) else {
            let name = &self.names[stream.as_u32() as usize];
            return Err(StreamError::Failed(format!("nothing feeds it: pass `--in {name}=file.npy`")));
        };
        packets.read(into)
    }

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), StreamError> {
        // Without `--out` a stream's packets are not wanted.
        if let Some(sink) = self.sinks.iter_mut().find(|s| s.stream == stream) {
            sink.push(bytes).map_err(|e| {
                let name = &self.names[stream.as_u32() as usize];
                let file = sink.output.path().display();
                StreamError::Failed(format!("`--out {name}={file}`: its packets cannot be kept beside the file: {e}"))
            })?;
        }
        self.plotted += self.plots.iter_mut().map(|plot| plot.write(stream, bytes)).sum::<u64>();
        if self.plotted > self.most {
            let name = &self.names[stream.as_u32() as usize];
            let message = "the numbers of `--plot` need more memory than the limit `host_bytes` allows";
            return Err(StreamError::Failed(format!("{message}; `--out {name}=file.npy` keeps them on disk")));
        }
        if let Some(ty) = self.numbers[stream.as_u32() as usize] {
            self.progress.number(&self.names[stream.as_u32() as usize], ty, bytes);
        }
        Ok(())
    }

    fn print(&mut self, label: &str, ty: ElemType, shape: &[u64], bytes: &[u8]) {
        let value = show(ty, shape, bytes);
        let line = if label.is_empty() { value } else { format!("{label} {value}") };
        self.print_text(&line);
    }

    fn print_text(&mut self, text: &str) {
        // The run goes on, so that its files are written.
        let unprinted = &mut self.unprinted;
        self.progress.aside(|| {
            if let Err(stop) = print(&format!("{text}\n")) {
                unprinted.get_or_insert(stop);
            }
        });
    }

    fn progress(&mut self, done: u64, total: u64) {
        let name = |s: &Source| self.names[s.stream.as_u32() as usize].as_str();
        let rows = self.sources.iter().map(|s| (name(s), s.packets.as_ref().map_or(0, Packets::rows_read)));
        self.progress.advance(done, total, rows);
    }
}
