//! Runs every `gir` block of `docs/language.md`, `docs/gradients.md`, `docs/networks.md`, `docs/training.md`,
//! `docs/many-ipus.md` and `docs/poplar.md`, and compares its outcome with the comments at its end.
//!
//! Invariant: a block is a whole module. It is compiled once for each mode of [`MODES`], and all modes have the same
//! outcome.

use girder::arrays::Elements;
use girder::packets::{self, Packets};
use girder::{Arguments, Array, Compilation, Options, Stage, arrays};
use girder_engine::{Engine, Mode, RunHost, StreamError};
use girder_ir::graph::Graph;
use girder_ir::ids::{ProgramId, StreamId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Limits, Session, Severity, par_map_slice};
use std::path::{Path, PathBuf};

/// The modes in which each block runs.
const MODES: [Mode; 3] = [Mode::Interpret, Mode::Fast, Mode::Exact];

/// One block of the document.
struct Snippet {
    /// The line of the document where its text begins.
    line: usize,
    text: String,
}

/// The expected or actual outcome of a block.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Printed lines.
    prints: Vec<String>,
    /// Packets of `out` streams, each after the name of the stream.
    writes: Vec<String>,
    /// Codes of warnings.
    warnings: Vec<String>,
    /// The code of the first error.
    error: Option<String>,
}

impl Outcome {
    /// Adds diagnostics.
    fn take<'d>(&mut self, diagnostics: impl IntoIterator<Item = &'d Diagnostic>) {
        for d in diagnostics {
            match d.severity {
                Severity::Warning => self.warnings.push(d.code.into()),
                Severity::Error if self.error.is_none() => self.error = Some(d.code.into()),
                Severity::Error => {}
            }
        }
    }
}

#[test]
fn every_snippet_of_the_reference_has_the_stated_outcome() {
    snippets_have_the_stated_outcome("language.md", 40);
}

#[test]
fn every_snippet_about_gradients_has_the_stated_outcome() {
    snippets_have_the_stated_outcome("gradients.md", 3);
}

#[test]
fn every_snippet_about_networks_has_the_stated_outcome() {
    snippets_have_the_stated_outcome("networks.md", 2);
}

#[test]
fn every_snippet_about_training_has_the_stated_outcome() {
    snippets_have_the_stated_outcome("training.md", 5);
}

#[test]
fn every_snippet_about_many_ipus_has_the_stated_outcome() {
    snippets_have_the_stated_outcome("many-ipus.md", 1);
}

#[test]
fn every_snippet_for_users_of_poplar_has_the_stated_outcome() {
    snippets_have_the_stated_outcome("poplar.md", 4);
}

fn snippets_have_the_stated_outcome(file: &str, least: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(file);
    let document = std::fs::read_to_string(&path).expect("the reference is part of the repository");
    let snippets = snippets(&document);
    assert!(snippets.len() > least, "only {} blocks were found", snippets.len());
    let wrong: Vec<String> =
        par_map_slice(&snippets, |s| check(s, path.parent().unwrap_or(Path::new("")))).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Finds the blocks that are marked `gir`.
fn snippets(document: &str) -> Vec<Snippet> {
    let mut found: Vec<Snippet> = vec![];
    let mut inside = false;
    for (k, line) in document.lines().enumerate() {
        match line {
            "```gir" => {
                inside = true;
                found.push(Snippet { line: k + 2, text: String::new() });
            }
            "```" => inside = false,
            line if inside => {
                if let Some(s) = found.last_mut() {
                    s.text += line;
                    s.text.push('\n');
                }
            }
            _ => {}
        }
    }
    found
}

/// Checks a block in each mode. Returns the differences.
fn check(snippet: &Snippet, beside: &Path) -> Vec<String> {
    let promised = promises(&snippet.text);
    let mut wrong = vec![];
    if promised.prints.is_empty() && promised.error.is_none() {
        wrong.push(format!("line {}: the block promises nothing", snippet.line));
    }
    for mode in MODES {
        let (done, reports) = run(snippet, mode, beside);
        if done != promised {
            wrong
                .push(format!("line {}, {mode:?}:\n{reports}  promised {promised:#?}\n  done {done:#?}", snippet.line));
        }
    }
    wrong
}

/// Reads the expected outcome from the comments at a block's end.
fn promises(text: &str) -> Outcome {
    let all = |key: &str| text.lines().filter_map(|l| l.strip_prefix(key)).map(str::to_string).collect::<Vec<_>>();
    Outcome {
        prints: all("// prints: "),
        writes: all("// writes: "),
        warnings: all("// warning: "),
        error: all("// error: ").into_iter().next(),
    }
}

/// Compiles and runs a block. Returns the outcome and the text of all reports.
fn run(snippet: &Snippet, mode: Mode, beside: &Path) -> (Outcome, String) {
    let (options, inputs) = header(&snippet.text, beside);
    let mut compilation = Compilation::new(options);
    let mut outcome = Outcome::default();
    let executable = compilation
        .add(beside.join(format!("language-{}.gir", snippet.line)), snippet.text.as_str())
        .and_then(|root| compilation.stage(root, Stage::Allocated))
        .and_then(|stage| compilation.executable(stage, &[mode]));
    outcome.take(compilation.diagnostics.iter());
    let mut reports: String = compilation.diagnostics.iter().map(|d| d.render(&compilation.map, false, 120)).collect();
    if let Ok(executable) = executable {
        let graph: &Graph = &executable.allocated;
        let packets = |(name, array): Input| {
            let stream = graph.streams.values().find(|s| s.name == name.as_str()).expect("a stream of this name");
            assert!(packets::fits(array.ty, &array.shape, stream), "an array does not fit the stream `{name}`");
            (name, Packets::new(Elements::Memory(array.bytes, 0), &array.shape, stream))
        };
        let mut console = Console { graph, inputs: inputs.into_iter().map(packets).collect(), outcome };
        let mut engine = Engine::load(&executable, mode, 1, &compilation.options.session).expect("the engine loads");
        if let Err(e) = engine.run(entry(graph), &mut console) {
            let d = e.diagnostic();
            reports += &d.render(&compilation.map, false, 120);
            console.outcome.take([&d]);
        }
        outcome = console.outcome;
    }
    (outcome, reports)
}

/// Returns the program that runs by default.
fn entry(graph: &Graph) -> ProgramId {
    let entries: Vec<_> = graph.programs.iter().filter(|(_, p)| p.entry).collect();
    let main = entries.iter().find(|(_, p)| p.name == "main");
    main.or(entries.first()).map(|(id, _)| *id).expect("a block has a program")
}

/// An input of the head: the name of a stream, and the array that feeds it.
type Input = (String, Array);

/// Reads the options and streams from a block's `//! girder:` lines.
fn header(text: &str, beside: &Path) -> (Options, Vec<Input>) {
    let (mut target, mut replicas, mut limits) = ("small".to_string(), 1, Limits::default());
    let (mut arguments, mut inputs) = (Arguments::default(), vec![]);
    let words: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("//! girder: ")).flat_map(str::split_whitespace).collect();
    for pair in words.chunks(2) {
        let (name, value) = pair[1].split_once('=').unwrap_or((pair[1], ""));
        match pair[0] {
            "--target" => target = name.to_string(),
            "--replicas" => replicas = name.parse().expect("a number of replicas"),
            "--limit" => assert!(limits.set(name, value.parse().expect("a limit is a number"))),
            "--arg" => arguments.list.push((name.into(), value.into())),
            "--in" => {
                let file: PathBuf = beside.join(value);
                let array = arrays::read(&file, None).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                inputs.push((name.to_string(), array));
            }
            other => panic!("no block uses `{other}`"),
        }
    }
    let machine = girder_machine::builtin(&target).expect("the target is built in");
    let machine = machine.replicated(replicas).expect("processors for all replicas");
    let session = Session { limits, ..Session::default() };
    (Options { machine, arguments, session }, inputs)
}

/// A host that records all output.
struct Console<'g> {
    graph: &'g Graph,
    inputs: Vec<(String, Packets)>,
    outcome: Outcome,
}

impl RunHost for Console<'_> {
    fn read(&mut self, stream: StreamId, into: &mut [u8]) -> Result<(), StreamError> {
        let name = &self.graph.streams[stream].name;
        match self.inputs.iter_mut().find(|(input, _)| input == name) {
            Some((_, packets)) => packets.read(into),
            None => Err(StreamError::Failed("nothing feeds it".into())),
        }
    }

    fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), StreamError> {
        let s = &self.graph.streams[stream];
        self.outcome.writes.push(format!("{} {}", s.name, show(s.ty, &s.shape, bytes)));
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

/// Writes a tensor as the command prints it.
fn show(ty: ElemType, shape: &[u64], bytes: &[u8]) -> String {
    let Some((&n, rest)) = shape.split_first() else {
        let s = Scalar::from_le_bytes(ty, bytes);
        return match ty {
            ElemType::F32 => format!("{:?}", f32::from_bits(s.bits as u32)),
            ElemType::F64 => format!("{:?}", f64::from_bits(s.bits)),
            _ => s.to_string(),
        };
    };
    let size = rest.iter().product::<u64>() as usize * ty.bytes() as usize;
    let parts: Vec<String> = (0..n as usize).map(|k| show(ty, rest, &bytes[k * size..][..size])).collect();
    format!("[{}]", parts.join(", "))
}
