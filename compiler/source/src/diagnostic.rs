//! Diagnostics: one form of errors and warnings for every stage, rendered by miette for people and as JSON for tools.
//!
//! Invariant: a code (`stage::slug`) is stable and has an entry in `girder explain`; messages and labels use the user's
//! names, in lower case, without a final stop.

use crate::{SourceMap, Span};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan};
use serde::Serialize;
use std::fmt;

/// The severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An error: nothing is built.
    Error,
    /// A warning: the program is valid, but perhaps not as its author intended.
    Warning,
}

/// A source span with its role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The span.
    pub span: Span,
    /// The role of the span ("first write here"); may be empty.
    pub text: String,
}

/// A diagnostic message with its source spans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// `stage::slug`.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The problem.
    pub message: String,
    /// The spans; the first is the primary one.
    pub labels: Vec<Label>,
    /// The next step for the user.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Returns an error at a span.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, span, message.into())
    }

    /// Returns a warning at a span.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, span, message.into())
    }

    fn new(severity: Severity, code: &'static str, span: Span, message: String) -> Diagnostic {
        let labels = if span.is_none() { vec![] } else { vec![Label { span, text: String::new() }] };
        Diagnostic { code, severity, message, labels, help: None }
    }

    /// Sets the role of the primary span.
    pub fn here(mut self, text: impl Into<String>) -> Diagnostic {
        if let Some(l) = self.labels.first_mut() {
            l.text = text.into();
        }
        self
    }

    /// Adds a span with its role.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        if !span.is_none() {
            self.labels.push(Label { span, text: text.into() });
        }
        self
    }

    /// Sets the help text.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Renders the diagnostic for a terminal, with the source lines of its labels.
    pub fn render(&self, map: &SourceMap, color: bool, width: usize) -> String {
        let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false);
        let mut out = String::new();
        let shown = Shown { diagnostic: self, map };
        if self.labels.iter().any(|l| is_far_right(map, l.span)) {
            return self.render_plain(map);
        }
        if handler.render_report(&mut out, &shown).is_err() {
            out = format!("{}: {}\n", self.code, self.message);
        }
        out
    }

    /// Renders the diagnostic without source lines, for lines that are too long to draw.
    fn render_plain(&self, map: &SourceMap) -> String {
        let mut out = format!("{}: {}\n", self.code, self.message);
        for l in &self.labels {
            if let Some(at) = map.location(l.span) {
                let text = if l.text.is_empty() { "here" } else { &l.text };
                out += &format!("  {}:{}:{}: {text}\n", at.path.display(), at.line, at.column);
            }
        }
        if let Some(help) = &self.help {
            out += &format!("  help: {help}\n");
        }
        out
    }

    /// Renders the diagnostic as one line of JSON: `severity`, `code`, `message`, `help`, and `labels` with path, line,
    /// column (from 1), byte offset in the file, length and text.
    pub fn to_json(&self, map: &SourceMap) -> String {
        #[derive(Serialize)]
        struct JsonLabel {
            path: String,
            line: u32,
            column: u32,
            offset: u32,
            length: u32,
            text: String,
        }
        #[derive(Serialize)]
        struct Json<'a> {
            severity: Severity,
            code: &'a str,
            message: &'a str,
            labels: Vec<JsonLabel>,
            help: &'a Option<String>,
        }
        let labels = self.labels.iter().filter_map(|l| {
            let at = map.location(l.span)?;
            let file = map.file(map.file_of(l.span)?);
            Some(JsonLabel {
                path: at.path.display().to_string(),
                line: at.line,
                column: at.column,
                offset: l.span.lo - file.base,
                length: l.span.hi - l.span.lo,
                text: l.text.clone(),
            })
        });
        let json = Json {
            severity: self.severity,
            code: self.code,
            message: &self.message,
            labels: labels.collect(),
            help: &self.help,
        };
        serde_json::to_string(&json).unwrap_or_default()
    }
}

/// Returns whether a span ends too far to the right for drawing its line (miette panics at 65536 columns).
fn is_far_right(map: &SourceMap, span: Span) -> bool {
    let Some(file) = map.file_of(span).map(|id| map.file(id)) else { return false };
    let (lo, hi) = ((span.lo - file.base) as usize, (span.hi - file.base) as usize);
    let line = |at: usize| file.text.get(..at).map_or(0, |t| at - t.rfind('\n').map_or(0, |i| i + 1));
    line(lo).max(line(hi)) > 4000
}

/// A diagnostic with its source text, as miette takes it.
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    map: &'a SourceMap,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.diagnostic)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diagnostic.code))
    }
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.diagnostic.help.as_ref().map(|h| Box::new(h) as _)
    }
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(self.map)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.diagnostic.labels.iter().enumerate().map(|(i, l)| {
            let text = (!l.text.is_empty()).then(|| l.text.clone());
            let span = (l.span.lo as usize, (l.span.hi - l.span.lo) as usize);
            match i {
                0 => LabeledSpan::new_primary_with_span(text, span),
                _ => LabeledSpan::new_with_span(text, span),
            }
        })))
    }
}

/// The diagnostics of a stage. Stages report every problem and continue; [`Diagnostics::check`] decides whether a
/// result can be used.
#[derive(Default, Debug, Clone)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a diagnostic. Exact duplicates are reported once.
    pub fn push(&mut self, d: Diagnostic) {
        if !self.list.contains(&d) {
            self.list.push(d);
        }
    }

    /// Adds several diagnostics.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Diagnostic>) {
        more.into_iter().for_each(|d| self.push(d));
    }

    /// Removes the diagnostics from a number on, and returns them.
    pub fn split_off(&mut self, at: usize) -> Vec<Diagnostic> {
        self.list.split_off(at.min(self.list.len()))
    }

    /// Returns all diagnostics, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Returns the number of diagnostics.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Returns `Err` if there is an error.
    pub fn check(&self) -> Result<()> {
        if self.has_errors() { Err(Failed) } else { Ok(()) }
    }
}

/// A failure whose errors are in [`Diagnostics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed;

/// A result whose errors are in [`Diagnostics`].
pub type Result<T> = std::result::Result<T, Failed>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_too_long_are_not_drawn() {
        let mut map = SourceMap::default();
        map.add("a.gir", format!("{}x", " ".repeat(70_000))).unwrap();
        let text = Diagnostic::error("test::far", Span::new(70_001, 70_002), "far").render(&map, false, 100);
        assert_eq!(text, "test::far: far\n  a.gir:1:70001: here\n");
    }

    #[test]
    fn labels_in_two_files_are_both_drawn() {
        let mut map = SourceMap::default();
        let a = map.add("a.gir", "var x: f32;\nvar y: f32;").unwrap();
        let b = map.add("b.gir", "use a;\nx <- 1;").unwrap();
        let at = |id, lo, hi| Span::new(map.file(id).base + lo, map.file(id).base + hi);
        let d = Diagnostic::error("test::two", at(a, 4, 5), "two places").here("first").label(at(b, 7, 8), "second");
        let text = d.render(&map, false, 100);
        for part in ["test::two", "a.gir:1:5", "b.gir:2:1", "first", "second"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(d.to_json(&map).contains(r#""path":"b.gir","line":2,"column":1"#));
    }
}
