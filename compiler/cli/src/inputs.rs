//! The program on the command line: a `.gir` file, or a directory that contains one of its own name.
//!
//! Invariant: options of the command line take precedence over those of the file's head ([`Head`]).

use crate::files::{NamedFiles, array_of};
use crate::options::{Compile, once};
use crate::report::{Report, Stop};
use girder::source::{Diagnostic, FileId, SourceMap, Span};
use girder::{After, AnyStage, Compilation, Head, Stage, Start, program_file, program_text};
use std::path::Path;

/// A program that is about to be compiled.
pub struct Input {
    /// The compilation, with the root file read.
    pub compilation: Compilation,
    /// The root file.
    pub root: FileId,
    /// `--in stream=file` of the file's head.
    pub streams: Vec<String>,
    /// The files that are read for all this.
    pub files: NamedFiles,
}

/// Reads a program. The options of its first lines precede those of the command line.
pub fn open(path: &Path, compile: &Compile, report: &Report) -> Result<Input, Stop> {
    let file = program_file(path);
    once(report, "--arg", &compile.args)?;
    once(report, "--limit", &compile.limits)?;
    // A pipe can be read only once.
    let text = program_text(&file).map_err(|d| {
        report.emit(&d, &SourceMap::default());
        Stop::User
    })?;
    let mut compile = compile.clone();
    let streams = header_options(&text, &file, &mut compile, report)?;
    let target = girder::text::target_of(&text);
    let mut files = NamedFiles::default();
    files.reads(&file, "is the program");
    for (_, input) in streams.iter().filter_map(|text| text.split_once('=')) {
        files.reads(array_of(input).0, "`--in` at the head of the program reads");
    }
    let machine = compile.target.as_deref().or(target.as_ref().map(|t| t.0.as_str()));
    if let Some(machine) = machine.filter(|name| name.ends_with(".toml")) {
        files.reads(machine, "describes the machine");
    }
    let options = compile.options(report, target.as_ref())?;
    let mut compilation = Compilation::new(options);
    match compilation.add(&file, text) {
        Ok(root) => Ok(Input { compilation, root, streams, files }),
        Err(_) => {
            report.all(&compilation.diagnostics, &compilation.map);
            Err(Stop::User)
        }
    }
}

/// Inserts the options of the file's head before those of the command line, which therefore take precedence. Returns
/// the streams that the head names.
fn header_options(text: &str, file: &Path, compile: &mut Compile, report: &Report) -> Result<Vec<String>, Stop> {
    let head = Head::read(text, file).map_err(|e| {
        let mut map = SourceMap::default();
        let base = map.add(file, text).map_or(0, |id| map.file(id).base);
        let span = Span::new(base + e.at.start as u32, base + e.at.end as u32);
        report.emit(&Diagnostic::error("driver::header", span, e.message).here("this line").help(e.help), &map);
        Stop::User
    })?;
    compile.target = compile.target.take().or(head.target);
    compile.replicas = compile.replicas.or(head.replicas);
    compile.args.splice(0..0, head.args);
    compile.limits.splice(0..0, head.limits);
    compile.allow_over_memory |= head.allow_over_memory;
    Ok(head.streams.iter().map(|(name, path)| format!("{name}={}", path.display())).collect())
}

impl Input {
    /// Brings the program to a stage, or to the point after a pass, and prints the diagnostics.
    pub fn stage(&mut self, target: impl Into<After>, report: &Report) -> Result<AnyStage, Stop> {
        let done = self.compilation.stage(self.root, target);
        self.reported(done, report)
    }

    /// Reads the program, and prints the diagnostics.
    pub fn start(&mut self, report: &Report) -> Result<Start, Stop> {
        let done = self.compilation.start(self.root);
        self.reported(done, report)
    }

    /// Brings a program that was read to the last stage, and prints the diagnostics.
    pub fn lower(&mut self, start: Start, report: &Report) -> Result<AnyStage, Stop> {
        let done = self.compilation.lower(start, Stage::Allocated);
        self.reported(done, report)
    }

    /// Prints the diagnostics of a part of the compilation.
    pub fn reported<T>(&mut self, done: girder::source::Result<T>, report: &Report) -> Result<T, Stop> {
        report.all(&self.compilation.diagnostics, &self.compilation.map);
        self.compilation.diagnostics = Default::default();
        done.map_err(|_| Stop::User)
    }
}
