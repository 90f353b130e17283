//! The files of one compilation in one global offset space, and access to them for miette.
//!
//! Invariant: files occupy disjoint intervals with at least one byte between them, starting at 1, so that
//! [`Span::NONE`] lies in no file. The files of the library lie after all others, each at an offset that is the same in
//! every compilation, so that compilations can share them.

use crate::span::{LIBRARY_START, Span};
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// The text of a file.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path as the user wrote it, or a name in angle brackets for text that is in no file.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
    /// Global offset of its first byte.
    pub base: u32,
}

/// A source location: line and column (in characters), from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file as the user named it.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// All files of a compilation.
#[derive(Debug, Clone)]
pub struct SourceMap {
    files: Vec<Arc<SourceFile>>,
    /// The files in ascending order of their offsets.
    order: Vec<FileId>,
    /// The offset of the next file that is not of the library.
    end: u32,
}

impl Default for SourceMap {
    fn default() -> SourceMap {
        SourceMap { files: vec![], order: vec![], end: 1 }
    }
}

impl SourceMap {
    /// Adds a file. Returns `None` if the texts together exceed 32-bit offsets.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> Option<FileId> {
        let text = text.into();
        let end = self.end as u64 + text.len() as u64 + 1;
        if end > LIBRARY_START as u64 {
            return None;
        }
        let file = SourceFile { path: path.into(), text, base: self.end };
        self.end = end as u32;
        Some(self.push(Arc::new(file)))
    }

    /// Adds a file of the library, which has an offset already.
    pub fn add_library(&mut self, file: Arc<SourceFile>) -> FileId {
        debug_assert!(file.base >= LIBRARY_START);
        self.push(file)
    }

    fn push(&mut self, file: Arc<SourceFile>) -> FileId {
        let id = FileId(self.files.len() as u32);
        let at = self.order.partition_point(|&f| self.file(f).base < file.base);
        self.order.insert(at, id);
        self.files.push(file);
        id
    }

    /// Returns the file of an id.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Returns all files, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(i as u32), &**f))
    }

    /// Returns the file that contains a span; `None` for [`Span::NONE`].
    pub fn file_of(&self, span: Span) -> Option<FileId> {
        if span.is_none() {
            return None;
        }
        let i = self.order.partition_point(|&f| self.file(f).base <= span.lo).checked_sub(1)?;
        let file = self.file(self.order[i]);
        (span.lo <= file.base + file.text.len() as u32).then_some(self.order[i])
    }

    /// Returns the text of a span; empty for a span without text.
    pub fn text(&self, span: Span) -> &str {
        let Some(id) = self.file_of(span) else { return "" };
        let f = self.file(id);
        f.text.get((span.lo - f.base) as usize..(span.hi - f.base) as usize).unwrap_or("")
    }

    /// Returns the location of a span's start.
    pub fn location(&self, span: Span) -> Option<Location> {
        let f = self.file(self.file_of(span)?);
        let before = f.text.get(..(span.lo - f.base) as usize)?;
        let line = before.bytes().filter(|&b| b == b'\n').count() as u32 + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1;
        Some(Location { path: f.path.clone(), line, column })
    }

    /// Returns a file by its path.
    pub fn find(&self, path: &Path) -> Option<FileId> {
        self.files().find(|(_, f)| f.path == path).map(|(id, _)| id)
    }
}

impl SourceCode for SourceMap {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let lo = span.offset() as u32;
        let file = self.file_of(Span::new(lo, lo)).ok_or(MietteError::OutOfBounds)?;
        let f = self.file(file);
        let local = SourceSpan::new(((lo - f.base) as usize).into(), span.len());
        let c = f.text.read_span(&local, before, after)?;
        let shifted = SourceSpan::new((c.span().offset() + f.base as usize).into(), c.span().len());
        let name = f.path.display().to_string();
        Ok(Box::new(MietteSpanContents::new_named(name, c.data(), shifted, c.line(), c.column(), c.line_count())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_name_their_file_and_location() {
        let mut map = SourceMap::default();
        map.add("a.gir", "one\ntwo").unwrap();
        let b = map.add("b.gir", "äx\ny").unwrap();
        let base = map.file(b).base;
        let y = Span::new(base + 4, base + 5);
        assert_eq!(map.text(y), "y");
        assert_eq!(map.location(y).unwrap(), Location { path: "b.gir".into(), line: 2, column: 1 });
        let x = Span::new(base + 2, base + 3);
        assert_eq!(map.location(x).unwrap().column, 2);
        assert_eq!(map.file_of(Span::NONE), None);
    }

    #[test]
    fn files_of_the_library_keep_their_offsets() {
        let mut map = SourceMap::default();
        map.add("a.gir", "one").unwrap();
        let file = |path: &str, base, text: &str| Arc::new(SourceFile { path: path.into(), text: text.into(), base });
        let [second, first] =
            [file("<q>", LIBRARY_START + 9, "q"), file("<p>", LIBRARY_START, "pp")].map(|f| map.add_library(f));
        let b = map.add("b.gir", "two").unwrap();
        let at = |lo| map.file_of(Span::new(lo, lo + 1));
        assert_eq!([at(LIBRARY_START), at(LIBRARY_START + 9), at(5)], [Some(first), Some(second), Some(b)]);
        assert_eq!(at(LIBRARY_START + 5), None);
        assert_eq!(map.location(Span::new(LIBRARY_START + 1, LIBRARY_START + 2)).unwrap().column, 2);
    }
}
