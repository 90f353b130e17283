//! Places in the user's text.

/// A half-open range of bytes in the global offset space of one [`SourceMap`](crate::SourceMap): every file occupies
/// its own interval there, so that a span alone names its file. `0..0` is "no place" (what the compiler made itself).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub lo: u32,
    /// One past the last byte.
    pub hi: u32,
}

impl Span {
    /// The span of what has no text.
    pub const NONE: Span = Span { lo: 0, hi: 0 };

    /// Returns `lo..hi`.
    pub fn new(lo: u32, hi: u32) -> Span {
        Span { lo, hi }
    }

    /// Returns whether there is text behind the span.
    pub fn is_none(self) -> bool {
        self == Span::NONE
    }

    /// Returns the smallest span that holds both; [`Span::NONE`] counts as nothing.
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
