//! Lines of text, and attempts to write a construct on one of them.
//!
//! Invariant: nothing fails outside an attempt; inside one, nothing is written after it has failed.

use super::{INDENT, Printer, WIDTH};

/// The text so far and the state of its last line.
#[derive(Default)]
pub struct Line {
    /// The text.
    pub out: String,
    /// Columns used on the last line, indentation included.
    column: usize,
    /// Steps of indentation for new lines.
    pub indent: usize,
    /// Whether the last line is empty, without indentation.
    pub fresh: bool,
    /// Whether the last line ends with a comment, after which nothing may follow.
    pub commented: bool,
    /// Columns needed on the last line after the current construct.
    reserve: usize,
    /// During an attempt, the columns that may be used.
    attempt: Option<usize>,
    failed: bool,
}

impl Line {
    /// Writes text without line breaks.
    pub fn word(&mut self, word: &str) {
        if self.failed {
            return;
        }
        if self.fresh {
            self.column = self.indent * INDENT;
            self.out.extend(std::iter::repeat_n(' ', self.column));
            self.fresh = false;
        }
        self.column += word.chars().count();
        match self.attempt {
            Some(limit) if self.column > limit => self.failed = true,
            _ => self.out.push_str(word),
        }
    }

    /// Ends the line; an attempt fails.
    pub fn newline(&mut self) {
        if self.attempt.is_some() {
            self.failed = true;
            return;
        }
        self.out.push('\n');
        self.column = 0;
        self.fresh = true;
        self.commented = false;
    }

    /// Fails the attempt.
    pub fn fail(&mut self) {
        self.failed = self.attempt.is_some();
    }

    /// Returns whether everything must be on this line.
    pub fn is_flat(&self) -> bool {
        self.attempt.is_some()
    }

    /// Returns whether the attempt has failed, so that the rest can be skipped.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether this many columns are left on the line.
    pub fn has_room(&self, columns: usize) -> bool {
        self.column + columns + self.reserve <= WIDTH
    }
}

impl Printer<'_> {
    /// Writes text without line breaks.
    pub fn word(&mut self, word: &str) {
        self.line.word(word);
    }

    /// Writes a construct on this line if it fits, otherwise over several lines: `f` distinguishes the two by
    /// [`Line::is_flat`].
    pub fn group(&mut self, f: impl Fn(&mut Self)) {
        if self.line.is_flat() || !self.attempt(&f) {
            f(self);
        }
    }

    /// Writes a construct on this line; if it does not fit, writes nothing and returns `false`.
    fn attempt(&mut self, f: &impl Fn(&mut Self)) -> bool {
        let (len, column, fresh, comment) = (self.line.out.len(), self.line.column, self.line.fresh, self.next_comment);
        self.line.attempt = Some(WIDTH.saturating_sub(self.line.reserve));
        f(self);
        self.line.attempt = None;
        if !std::mem::take(&mut self.line.failed) {
            return true;
        }
        self.line.out.truncate(len);
        (self.line.column, self.line.fresh, self.next_comment) = (column, fresh, comment);
        false
    }

    /// Returns the width of a construct on one line; 0 if it cannot be on one line, or if everything must be on this
    /// line anyway.
    pub fn width_of(&mut self, f: impl FnOnce(&mut Self)) -> usize {
        if self.line.is_flat() {
            return 0;
        }
        let (len, column, fresh, comment) = (self.line.out.len(), self.line.column, self.line.fresh, self.next_comment);
        self.line.attempt = Some(usize::MAX);
        f(self);
        self.line.attempt = None;
        let failed = std::mem::take(&mut self.line.failed);
        let width = self.line.column - column;
        self.line.out.truncate(len);
        (self.line.column, self.line.fresh, self.next_comment) = (column, fresh, comment);
        if failed { 0 } else { width }
    }

    /// Writes a construct after which `columns` more are needed on its last line.
    pub fn reserving(&mut self, columns: usize, f: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.line.reserve, columns);
        f(self);
        self.line.reserve = before;
    }

    /// Works like [`Printer::reserving`], in addition to the columns already reserved.
    pub fn reserving_more(&mut self, columns: usize, f: impl FnOnce(&mut Self)) {
        self.reserving(self.line.reserve + columns, f);
    }

    /// Writes a construct with one more step of indentation.
    pub fn indented(&mut self, f: impl FnOnce(&mut Self)) {
        self.line.indent += 1;
        f(self);
        self.line.indent -= 1;
    }
}
