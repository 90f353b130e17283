//! Output of the command: diagnostics to standard error, results to standard output.
//!
//! Invariant: a diagnostic is written once.

use girder::source::{Diagnostic, Diagnostics, Severity, SourceMap, Span};
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// `--message-format`
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Rendered for people.
    Human,
    /// One line of JSON for each diagnostic.
    Json,
}

/// The reason for which the command ends early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// An error in the input, which has been reported.
    User,
    /// A wrong command line, which has been reported.
    Usage,
    /// Standard output cannot be written, which has not been reported.
    Output(std::io::ErrorKind),
}

/// The result of a subcommand.
pub type Done = Result<(), Stop>;

/// A writer of diagnostics and results, in one format.
pub struct Report {
    format: Format,
    color: bool,
    width: usize,
    /// The texts of a report that holds them back.
    held: Option<Mutex<String>>,
}

impl Report {
    /// Reports to standard error, in colour if it is a terminal.
    pub fn new(format: Format) -> Report {
        let terminal = std::io::stderr().is_terminal();
        let color = terminal && std::env::var_os("NO_COLOR").is_none();
        Report { format, color, width: 100, held: None }
    }

    /// Returns a report of the same form that holds its texts back until they are released.
    pub fn held(&self) -> Report {
        Report { held: Some(Mutex::default()), ..*self }
    }

    /// Emits the texts that were held back.
    pub fn release(self) {
        if let Some(texts) = self.held {
            write(&texts.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn write(&self, text: &str) {
        match &self.held {
            Some(texts) => texts.lock().unwrap_or_else(PoisonError::into_inner).push_str(text),
            None => write(text),
        }
    }

    /// Returns whether output is for programs.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Emits one diagnostic.
    pub fn emit(&self, d: &Diagnostic, map: &SourceMap) {
        self.write(&self.text(d, map));
    }

    /// Returns the text of a diagnostic.
    pub fn text(&self, d: &Diagnostic, map: &SourceMap) -> String {
        match self.format {
            Format::Human => d.render(map, self.color, self.width),
            Format::Json => d.to_json(map) + "\n",
        }
    }

    /// Emits all diagnostics and the number of errors.
    pub fn all(&self, diagnostics: &Diagnostics, map: &SourceMap) {
        for d in diagnostics.iter() {
            self.emit(d, map);
        }
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
        if errors > 1 && self.format == Format::Human {
            self.write(&format!("{errors} errors\n"));
        }
    }

    /// Reports an error that concerns no text, and stops.
    pub fn error(&self, code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Stop {
        self.emit(&Diagnostic::error(code, Span::NONE, message).help(help), &SourceMap::default());
        Stop::User
    }

    /// Reports a wrong command line, and stops.
    pub fn usage(&self, message: impl Into<String>, help: impl Into<String>) -> Stop {
        self.emit(&Diagnostic::error("usage::argument", Span::NONE, message).help(help), &SourceMap::default());
        Stop::Usage
    }
}

fn write(text: &str) {
    // If standard error is closed, nobody reads the diagnostic.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes to standard output; a closed pipe ends the command quietly.
pub fn print(text: &str) -> Done {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => Err(Stop::Output(e.kind())),
    }
}
