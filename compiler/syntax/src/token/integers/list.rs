//! Lists of many integers, or of many tuples of integers, kept as tables.
//!
//! Invariant: all entries of a list have one width, at least 1.

use girder_source::Span;
use smallvec::SmallVec;
use std::sync::Arc;

/// `[1, 2, …]`, or `[(1, 2), (3, 4), …]`. The note in [`super`] defines which lists are taken.
#[derive(Clone, PartialEq, Eq)]
pub struct IntegerList {
    width: usize,
    values: Values,
    starts: Arc<[u32]>,
}

/// The integers of all entries, one entry after the other: in 32 bits if they fit, because there may be millions.
#[derive(Clone, PartialEq, Eq)]
enum Values {
    Short(Arc<[i32]>),
    Long(Arc<[i64]>),
}

impl IntegerList {
    /// Makes a list of integers, or of tuples of `width` of them, given one after the other. `starts` are the starts of
    /// the entries in the text; a list in memory has none.
    pub fn new(width: usize, values: &[i64], starts: Vec<u32>) -> IntegerList {
        let short = values.iter().all(|&v| i32::try_from(v).is_ok());
        let values = match short {
            true => Values::Short(values.iter().map(|&v| v as i32).collect()),
            false => Values::Long(values.into()),
        };
        IntegerList { width: width.max(1), values, starts: starts.into() }
    }

    /// Returns the number of integers of an entry; 1 if the entries are no tuples.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        let integers = match &self.values {
            Values::Short(values) => values.len(),
            Values::Long(values) => values.len(),
        };
        integers / self.width
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the integers of an entry.
    pub fn entry(&self, k: usize) -> SmallVec<[i64; 8]> {
        let of_entry = k * self.width..(k + 1) * self.width;
        match &self.values {
            Values::Short(values) => values[of_entry].iter().map(|&v| v.into()).collect(),
            Values::Long(values) => SmallVec::from_slice(&values[of_entry]),
        }
    }

    /// Returns the entries in order.
    pub fn entries(&self) -> impl Iterator<Item = SmallVec<[i64; 8]>> {
        (0..self.len()).map(|k| self.entry(k))
    }

    /// Returns the span of an entry, as long as the shortest text of it.
    pub fn span(&self, k: usize) -> Span {
        let Some(&lo) = self.starts.get(k) else { return Span::NONE };
        let digits = |v: &i64| v.unsigned_abs().checked_ilog10().unwrap_or(0) + 1 + u32::from(*v < 0);
        let brackets = if self.width == 1 { 0 } else { 2 * self.width as u32 };
        Span::new(lo, lo + self.entry(k).iter().map(digits).sum::<u32>() + brackets)
    }
}

/// The list as its text, because it may have millions of entries.
impl std::fmt::Debug for IntegerList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}
