//! The formatter: the only writer of `.gir` text, for what people wrote and for what the compiler prints.
//!
//! Every construct is written by one function, which is tried on one line first and writes itself over several lines
//! if that does not fit ([`line`]). A body that was written on one line stays on one if it fits; single blank lines stay.
//! Comments stand at the places between elements of blocks and lists ([`comments`]).
//!
//! Invariant: formatting what this has written changes nothing. Time is linear in the text: an attempt at one line ends
//! with the width of a line, and no construct is tried twice at one depth.

mod block;
mod comments;
mod expr;
mod item;
mod line;
mod stmt;

use crate::ast::{ItemKind, Module};
use line::Line;

/// Columns of a line.
const WIDTH: usize = 100;
/// Columns of one step of indentation.
const INDENT: usize = 4;

/// Returns the text of a module. `text` is the file that it was parsed from, for comments and blank lines; for a module that was
/// built in memory it is empty. What stands in the tree as an error is copied from `text`, as far as the tree has it, so
/// a file with syntax errors should not be replaced by the result.
pub fn format(module: &Module, text: &str) -> String {
    let mut p = Printer { module, text, base: module.span.lo, next_comment: 0, line: Line::default() };
    p.module();
    p.line.out
}

/// A module on its way to text.
struct Printer<'a> {
    module: &'a Module,
    text: &'a str,
    /// The global offset of the first byte of `text`.
    base: u32,
    /// The first comment that is not yet written.
    next_comment: usize,
    line: Line,
}

impl Printer<'_> {
    fn module(&mut self) {
        let module = self.module;
        let mut first = true;
        if let Some(header) = &module.header {
            self.separate(header.span.lo, first, false);
            self.header(header);
            first = false;
        }
        for (i, item) in module.items.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| &module.items[i]);
            // What was built in memory has no blank lines of its own.
            let made = item.span.is_none() || before.is_some_and(|b| b.span.is_none());
            let blank = made && before.map_or(module.header.is_some(), |b| stands_apart(&b.kind, &item.kind));
            self.separate(item.span.lo, first, blank);
            self.item(item);
            first = false;
        }
        self.last_comments(first);
        if !self.line.out.is_empty() {
            self.line.newline();
        }
    }
}

/// Returns whether two neighbouring items of a module built in memory have a blank line between them.
fn stands_apart(a: &ItemKind, b: &ItemKind) -> bool {
    let has_body =
        |k: &ItemKind| matches!(k, ItemKind::Codelet(_) | ItemKind::Fn(_) | ItemKind::Grad(_) | ItemKind::Program(_));
    let group = |k: &ItemKind| match k {
        ItemKind::Decl(crate::ast::Decl::Var(v)) => (0, Some(v.kind)),
        ItemKind::Decl(crate::ast::Decl::Let(_)) => (1, None),
        ItemKind::Decl(crate::ast::Decl::Map { .. }) => (2, None),
        ItemKind::Use(_) => (3, None),
        ItemKind::Stream(_) => (4, None),
        ItemKind::Remote(_) => (5, None),
        ItemKind::Compute { .. } => (6, None),
        ItemKind::Copy { .. } => (7, None),
        ItemKind::Exchange { .. } => (8, None),
        ItemKind::Layout { .. } => (9, None),
        _ => (10, None),
    };
    has_body(a) || has_body(b) || group(a) != group(b)
}
