//! Constructs in brackets: blocks of statements and rows, and lists with commas.
//!
//! Invariant: a block is on one line only if it was written so, or if it was built in memory and is short.

use super::Printer;
use crate::ast::{Arg, ExprId, ExprKind};

/// The source layout of a block.
#[derive(Clone, Copy)]
pub struct Braces {
    /// One past its closing brace; 0 in memory.
    pub hi: u32,
    /// Maximal number of elements on one line for a block built in memory.
    pub most: usize,
}

/// The brackets of a list.
#[derive(Clone, Copy)]
pub struct Brackets {
    /// `(`, `[`, `<`
    pub open: &'static str,
    /// `)`, `]`, `>`
    pub close: &'static str,
    /// One past the closing bracket; 0 in memory.
    pub hi: u32,
}

impl Printer<'_> {
    /// Writes `{ … }`; `lo` returns the start of an element.
    pub fn block<T>(
        &mut self,
        braces: Braces,
        elements: &[T],
        lo: impl Fn(&Self, &T) -> u32,
        write: impl Fn(&mut Self, &T),
    ) {
        if elements.is_empty() {
            return self.empty_block(braces.hi);
        }
        self.word("{");
        if self.line.is_flat() {
            let first = lo(self, &elements[0]);
            let stays = if first == 0 { elements.len() <= braces.most } else { !self.starts_line(first) };
            if !stays {
                return self.line.fail();
            }
            for e in elements {
                self.gap(lo(self, e));
                self.word(" ");
                write(self, e);
                if self.line.has_failed() {
                    return;
                }
            }
            self.gap(braces.hi);
            return self.word(" }");
        }
        self.reserving(0, |p| {
            p.indented(|p| {
                for (i, e) in elements.iter().enumerate() {
                    let lo = lo(p, e);
                    p.separate(lo, i == 0, false);
                    write(p, e);
                }
                // Comments before the closing brace are indented like the elements.
                p.comments_before_close(braces.hi, false);
            });
            p.separate_close();
        });
        self.word("}");
    }

    fn empty_block(&mut self, hi: u32) {
        self.word("{");
        if self.has_comment(hi) {
            if self.line.is_flat() {
                return self.line.fail();
            }
            self.indented(|p| p.comments_before_close(hi, true));
            self.separate_close();
        }
        self.word("}");
    }

    /// Writes `( … )` with commas between elements; over several lines each element has its own line and a comma.
    pub fn list<T>(
        &mut self,
        brackets: Brackets,
        elements: &[T],
        lo: impl Fn(&Self, &T) -> u32,
        write: impl Fn(&mut Self, &T),
    ) {
        let Brackets { open, close, hi } = brackets;
        self.word(open);
        if self.line.is_flat() || (elements.is_empty() && !self.has_comment(hi)) {
            for (i, e) in elements.iter().enumerate() {
                if i > 0 {
                    self.word(", ");
                }
                self.gap(lo(self, e));
                write(self, e);
                if self.line.has_failed() {
                    return;
                }
            }
            self.gap(hi);
            return self.word(close);
        }
        self.reserving(1, |p| {
            p.indented(|p| {
                for (i, e) in elements.iter().enumerate() {
                    let lo = lo(p, e);
                    p.separate(lo, i == 0, false);
                    write(p, e);
                    p.word(",");
                }
                p.comments_before_close(hi, elements.is_empty());
            });
            p.separate_close();
        });
        self.word(close);
    }

    /// Writes `[1, 2, …]` with as many elements per line as fit; `width` returns that of an element.
    pub fn filled<T>(
        &mut self,
        elements: impl Iterator<Item = T>,
        width: impl Fn(&Self, &T) -> usize,
        write: impl Fn(&mut Self, &T),
    ) {
        self.word("[");
        self.reserving(1, |p| {
            p.indented(|p| {
                p.line.newline();
                for e in elements {
                    let needed = width(p, &e) + usize::from(!p.line.fresh);
                    if !p.line.fresh && !p.line.has_room(needed) {
                        p.line.newline();
                    }
                    if !p.line.fresh {
                        p.word(" ");
                    }
                    write(p, &e);
                    p.word(",");
                }
            });
            p.line.newline();
        });
        self.word("]");
    }

    /// Returns whether a list consists of numbers, truth values and tuples of them, without comments before `hi`.
    pub fn is_literals(&self, list: &[ExprId], hi: u32) -> bool {
        !self.has_comment(hi) && list.iter().all(|e| self.literal_width(*e) > 0)
    }

    /// Returns the width of a number, a truth value or a tuple of them, and 0 for every other expression.
    pub fn literal_width(&self, e: ExprId) -> usize {
        match &self.module.exprs[e].kind {
            ExprKind::Int { text, .. } | ExprKind::Float { text, .. } => text.len(),
            ExprKind::Bool(v) => 5 - usize::from(*v),
            ExprKind::Tuple(args) if args.len() > 1 => {
                let part = |a: &Arg| Some(self.literal_width(a.value)).filter(|&w| w > 0 && a.name.is_none());
                args.iter().try_fold(0, |sum, a| Some(sum + part(a)? + 2)).unwrap_or(0)
            }
            ExprKind::Unary { value, .. } => match &self.module.exprs[*value].kind {
                ExprKind::Int { text, .. } | ExprKind::Float { text, .. } => 1 + text.len(),
                _ => 0,
            },
            _ => 0,
        }
    }
}
