//! Spans of source text.

/// The first offset of the files of the library. They have the same offsets in every compilation.
pub const LIBRARY_START: u32 = u32::MAX - (16 << 20);

/// A half-open range of bytes in the global offset space of one [`SourceMap`](crate::SourceMap). Every file occupies
/// its own interval there, so a span alone identifies its file. `0..0` is the span of code that the compiler made
/// itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub lo: u32,
    /// One past the last byte.
    pub hi: u32,
}

impl Span {
    /// The span of code without text.
    pub const NONE: Span = Span { lo: 0, hi: 0 };

    /// Returns the span `lo..hi`.
    pub fn new(lo: u32, hi: u32) -> Span {
        Span { lo, hi }
    }

    /// Returns whether the span has no text.
    pub fn is_none(self) -> bool {
        self == Span::NONE
    }

    /// Returns whether the span lies in the library.
    pub fn in_library(self) -> bool {
        self.lo >= LIBRARY_START
    }

    /// Returns the smallest span that contains both; [`Span::NONE`] is ignored.
    pub fn to(self, end: Span) -> Span {
        if self.is_none() {
            return end;
        }
        if end.is_none() {
            return self;
        }
        Span { lo: self.lo.min(end.lo), hi: self.hi.max(end.hi) }
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.lo, self.hi)
    }
}
