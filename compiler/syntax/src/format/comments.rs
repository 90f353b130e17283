//! Comments and blank lines between elements.
//!
//! A comment belongs to the gap between two elements of a block or list that contains it or, if it is inside an element
//! without such gaps, to the gap after that element. A comment that follows code on its line stays on that line.
//!
//! Invariant: comments are written in order, each once, and nothing follows one on its line.

use super::Printer;
use crate::token::Comment;
use girder_source::Span;

impl Printer<'_> {
    /// Starts the line of the next element, at `lo`: writes the comments before it, ends the line, and keeps one blank
    /// line or makes one if `blank`. `first` marks the first element, which has no blank line before it.
    pub fn separate(&mut self, lo: u32, first: bool, blank: bool) {
        let any = self.comments_until(lo, first);
        self.end_line((!first || any) && (blank || self.blank_before(lo)));
    }

    /// Writes the comments before a closing bracket, which ends at `hi`; `first` if there are no elements before them.
    pub fn comments_before_close(&mut self, hi: u32, first: bool) {
        self.comments_until(hi, first);
    }

    /// Starts the line of a closing bracket.
    pub fn separate_close(&mut self) {
        self.end_line(false);
    }

    /// Writes the comments after the last item.
    pub fn last_comments(&mut self, first: bool) {
        self.comments_until(u32::MAX, first);
    }

    /// Writes comments inside a construct that is on one line.
    pub fn gap(&mut self, lo: u32) {
        if self.has_comment(lo) {
            self.line.fail();
        }
    }

    /// Returns whether a comment must be written before `lo`.
    pub fn has_comment(&self, lo: u32) -> bool {
        self.module.comments.get(self.next_comment).is_some_and(|c| c.span.lo < lo)
    }

    /// Ends the line, unless it is empty already, and leaves one line blank if asked to.
    fn end_line(&mut self, blank: bool) {
        if !self.line.out.is_empty() && !self.line.fresh {
            self.line.newline();
        }
        if blank && !self.line.out.is_empty() {
            self.line.newline();
        }
    }

    /// Writes the comments before `lo`; returns whether one was on a line of its own.
    fn comments_until(&mut self, lo: u32, first: bool) -> bool {
        let mut own = false;
        while self.has_comment(lo) {
            let comment = &self.module.comments[self.next_comment];
            self.next_comment += 1;
            let starts = self.line.out.is_empty() || self.line.fresh || self.line.commented;
            if !starts && self.follows_something(comment) {
                self.word(" ");
            } else {
                self.end_line((!first || own) && self.blank_before(comment.span.lo));
                own = true;
            }
            self.word(&comment.text);
            self.line.commented = true;
        }
        own
    }

    /// Returns whether code precedes a comment on its line.
    fn follows_something(&self, comment: &Comment) -> bool {
        let before = self.until(comment.span.lo).trim_end_matches([' ', '\t', '\r']);
        !matches!(before.as_bytes().last(), None | Some(b'\n')) && before != "\u{feff}"
    }

    /// Returns whether the line before the one at `lo` is blank.
    fn blank_before(&self, lo: u32) -> bool {
        let before = self.until(lo);
        let gap = &before.as_bytes()[before.trim_end_matches([' ', '\t', '\r', '\n']).len()..];
        gap.iter().filter(|b| **b == b'\n').count() > 1
    }

    /// Returns whether what starts at `lo` is the first on its line.
    pub fn starts_line(&self, lo: u32) -> bool {
        let before = self.until(lo);
        before[before.trim_end_matches([' ', '\t', '\r', '\n']).len()..].contains('\n')
    }

    /// Returns the first offset from `at` on that is neither space nor comment.
    pub fn next_token(&self, at: u32) -> u32 {
        let mut rest = self.text.get(at.saturating_sub(self.base) as usize..).unwrap_or("").trim_start();
        while rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
        }
        self.base + (self.text.len() - rest.len()) as u32
    }

    /// Returns the offset of the `on` before a place.
    pub fn before_on(&self, lo: u32) -> u32 {
        let before = self.until(lo).trim_end();
        if before.ends_with("on") { self.base + before.len() as u32 - 2 } else { lo }
    }

    /// Returns the text before an offset.
    fn until(&self, lo: u32) -> &str {
        self.text.get(..lo.saturating_sub(self.base) as usize).unwrap_or("")
    }

    /// Returns the offset after the first `sign` after `from`, comments left out; `from` if there is none.
    pub fn find_after(&self, from: u32, sign: char) -> u32 {
        if from == 0 {
            return 0;
        }
        let mut at = from.saturating_sub(self.base) as usize;
        while let Some(c) = self.text.get(at..).and_then(|t| t.chars().next()) {
            if c == sign {
                return self.base + at as u32 + 1;
            }
            let rest = &self.text[at..];
            at += if rest.starts_with("//") { rest.find('\n').unwrap_or(rest.len()) } else { c.len_utf8() };
        }
        from
    }

    /// Writes text that the parser could not read, unchanged.
    pub fn verbatim(&mut self, span: Span) {
        let (lo, hi) = (span.lo.saturating_sub(self.base) as usize, span.hi.saturating_sub(self.base) as usize);
        let text = self.text.get(lo..hi).unwrap_or("").trim_end().to_string();
        if self.line.is_flat() && text.contains('\n') {
            return self.line.fail();
        }
        let inside = self.module.comments[self.next_comment..].iter().take_while(|c| c.span.lo < span.hi).count();
        self.next_comment += inside;
        self.word(&text);
        self.line.commented = inside > 0 && text.rfind("//") > text.rfind('\n');
    }
}
