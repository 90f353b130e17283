//! The formatter: the only writer of `.gir` text, both of source files and of printed stages.
//!
//! Every construct is written by one function. It is first tried on one line; if that does not fit, it writes itself
//! over several lines ([`line`]). A body that was written on one line stays on one line if it fits; single blank lines
//! stay. Comments are placed between elements of blocks and lists ([`comments`]).
//!
//! Invariant: formatting formatted text changes nothing. Time is linear in the text: an attempt at one line ends at the
//! width of a line, and no construct is tried twice at one depth.

mod block;
mod comments;
mod expr;
mod item;
mod line;
mod stmt;

use crate::ast::{Decl, ItemKind, Module, VarKind};
use line::Line;

/// Width of a line in columns.
const WIDTH: usize = 100;
/// Width of an indentation step in columns.
const INDENT: usize = 4;

/// Returns the text of a module. `text` is the file from which it was parsed, for comments and blank lines; it is empty
/// for a module built in memory. Errors in the tree are copied from `text` as far as the tree has them, so the result
/// should not replace a file with syntax errors.
pub fn format(module: &Module, text: &str) -> String {
    let mut p = Printer { module, text, base: module.span.lo, next_comment: 0, line: Line::default() };
    p.module();
    p.line.out
}

/// The state of formatting a module.
struct Printer<'a> {
    module: &'a Module,
    text: &'a str,
    /// The global offset of the first byte of `text`.
    base: u32,
    /// The first comment that has not been written yet.
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
            // Nodes built in memory have no blank lines of their own.
            let made = item.span.is_none() || before.is_some_and(|b| b.span.is_none());
            let blank = made
                && before.map_or(module.header.is_some(), |b| {
                    ItemGroup::of(&b.kind).is_apart_from(ItemGroup::of(&item.kind))
                });
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

/// The properties of an item that determine the blank lines around it, in a module built in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ItemGroup {
    has_body: bool,
    group: (u8, Option<VarKind>),
}

impl ItemGroup {
    /// Returns the group of an item.
    pub fn of(kind: &ItemKind) -> ItemGroup {
        let has_body =
            matches!(kind, ItemKind::Codelet(_) | ItemKind::Fn(_) | ItemKind::Grad(_) | ItemKind::Program(_));
        let group = match kind {
            ItemKind::Decl(Decl::Var(v)) => (0, Some(v.kind)),
            ItemKind::Decl(Decl::Let(_)) => (1, None),
            ItemKind::Decl(Decl::Map { .. }) => (2, None),
            ItemKind::Use(_) => (3, None),
            ItemKind::Stream(_) => (4, None),
            ItemKind::Compute { .. } => (5, None),
            ItemKind::Copy { .. } => (6, None),
            ItemKind::Exchange { .. } => (7, None),
            ItemKind::Layout { .. } => (8, None),
            _ => (9, None),
        };
        ItemGroup { has_body, group }
    }

    /// Returns whether an item and one after it have a blank line between them.
    pub fn is_apart_from(self, next: ItemGroup) -> bool {
        self.has_body || next.has_body || self.group != next.group
    }
}
