//! Diagnostics with the calls that led to them.
//!
//! Invariant: an error in the library has its first label at the call that the user wrote, and none at calls inside the
//! library.

use girder_source::{Diagnostic, Diagnostics, Failed, Label, SourceMap, Span};

/// The diagnostics so far.
pub struct Reporter<'a> {
    diagnostics: &'a mut Diagnostics,
    map: &'a mut SourceMap,
    /// Spans of the enclosing calls, outermost first.
    calls: Vec<Span>,
}

impl<'a> Reporter<'a> {
    /// Creates a reporter outside all calls.
    pub fn new(diagnostics: &'a mut Diagnostics, map: &'a mut SourceMap) -> Reporter<'a> {
        Reporter { diagnostics, map, calls: vec![] }
    }

    /// Reports a diagnostic, with the innermost calls that led to it.
    pub fn report(&mut self, mut d: Diagnostic) -> Failed {
        let in_library = d.labels.first().is_some_and(|l| l.span.in_library());
        let own = self.calls.iter().rev().copied().find(|&s| !s.in_library()).filter(|_| in_library);
        if let Some(call) = own {
            // An assertion of the library is about the arguments of the call.
            if d.code == "elaborate::assertion" {
                d.labels.clear();
            }
            let text = if d.labels.is_empty() { "" } else { "in this call" };
            d.labels.insert(0, Label { span: call, text: text.into() });
        }
        let calls = self.calls.iter().rev().filter(|&&s| Some(s) != own && (own.is_none() || !s.in_library()));
        let mut more: Vec<Span> = vec![];
        for &span in calls.take(3) {
            if !more.contains(&span) && d.labels.iter().all(|l| l.span != span) {
                more.push(span);
            }
        }
        for span in more {
            d = d.label(span, "in this call");
        }
        self.diagnostics.push(d);
        Failed
    }

    /// Reports a diagnostic without the enclosing calls.
    pub fn report_alone(&mut self, d: Diagnostic) {
        self.diagnostics.push(d);
    }

    /// Returns whether an error was reported.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.has_errors()
    }

    /// Enters a call.
    pub fn enter_call(&mut self, span: Span) {
        self.calls.push(span);
    }

    /// Leaves the innermost call.
    pub fn leave_call(&mut self) -> Option<Span> {
        self.calls.pop()
    }

    /// Replaces the enclosing calls; returns the previous ones.
    pub fn replace_calls(&mut self, calls: Vec<Span>) -> Vec<Span> {
        std::mem::replace(&mut self.calls, calls)
    }

    /// Replaces all diagnostics and returns the previous ones, so that those of one evaluation can be inspected.
    pub fn replace(&mut self, diagnostics: Diagnostics) -> Diagnostics {
        std::mem::replace(self.diagnostics, diagnostics)
    }

    /// Returns the text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.map.text(span)
    }
}
