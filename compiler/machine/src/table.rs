//! Typed values from the tree of a machine file. Each getter checks type and range; an error is reported at the key.

use crate::MachineError;
use crate::document::{Entry, Item, Origin, Tree, tree};
use std::ops::RangeInclusive;
use toml::de::DeValue;

/// The result of reading.
pub(crate) type Result<T> = std::result::Result<T, MachineError>;

/// A table with its path.
pub(crate) struct Table<'a, 't> {
    tree: &'a Tree<'t>,
    /// The path, dotted; empty at the top.
    path: String,
    origin: Origin,
}

/// The origin of an entry that is in no file: the beginning.
const TOP: Origin = Origin::File(0..0);

/// Returns an error at an origin; for an inherited value, the message names its machine.
pub(crate) fn fail<T>(origin: &Origin, message: String) -> Result<T> {
    match origin {
        Origin::File(span) => Err(MachineError { message, span: Some(span.clone()) }),
        Origin::Base(base) => Err(MachineError { message: format!("{message} (inherited from `{base}`)"), span: None }),
    }
}

impl<'a, 't> Table<'a, 't> {
    /// Returns the table of the whole file.
    pub fn top(tree: &'a Tree<'t>) -> Self {
        Table { tree, path: String::new(), origin: TOP }
    }

    /// Refuses every key except these.
    pub fn only(&self, keys: &[&str]) -> Result<()> {
        match self.tree.iter().find(|(k, _)| !keys.contains(&k.as_str())) {
            None => Ok(()),
            Some((key, entry)) => {
                let here = if self.path.is_empty() { "a machine".to_string() } else { format!("`[{}]`", self.path) };
                fail(&entry.origin, format!("unknown key `{key}`: {here} has {}", keys.join(", ")))
            }
        }
    }

    /// Returns a table in this one.
    pub fn table(&self, key: &str) -> Result<Table<'a, 't>> {
        let entry = self.entry(key)?;
        match &entry.item {
            Item::Table(tree) => Ok(Table { tree, path: self.dotted(key), origin: entry.origin.clone() }),
            Item::Leaf(_) => fail(&entry.origin, format!("`{}` must be a table", self.dotted(key))),
        }
    }

    /// Returns whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.tree.contains_key(key)
    }

    /// Returns a whole number.
    pub fn int(&self, key: &str, range: RangeInclusive<u32>) -> Result<u32> {
        let (entry, value) = self.leaf(key)?;
        let number = match value {
            DeValue::Integer(i) => i128::from_str_radix(i.as_str(), i.radix()).ok(),
            other => return self.wrong(key, entry, "a whole number", other),
        };
        match number.and_then(|n| u32::try_from(n).ok()).filter(|n| range.contains(n)) {
            Some(n) => Ok(n),
            None => {
                let (lo, hi) = (range.start(), range.end());
                fail(&entry.origin, format!("`{}` must be from {lo} to {hi}", self.dotted(key)))
            }
        }
    }

    /// Returns a number.
    pub fn real(&self, key: &str, range: RangeInclusive<f64>) -> Result<f64> {
        let (entry, number) = self.number(key)?;
        match number.filter(|n| range.contains(n)) {
            Some(n) => Ok(n),
            None => {
                let (lo, hi) = (range.start(), range.end());
                fail(&entry.origin, format!("`{}` must be from {lo:?} to {hi:?}", self.dotted(key)))
            }
        }
    }

    fn number(&self, key: &str) -> Result<(&'a Entry<'t>, Option<f64>)> {
        match self.leaf(key)? {
            (entry, DeValue::Float(f)) => Ok((entry, f.as_str().parse::<f64>().ok())),
            (entry, DeValue::Integer(i)) => {
                Ok((entry, i128::from_str_radix(i.as_str(), i.radix()).ok().map(|n| n as f64)))
            }
            (entry, other) => self.wrong(key, entry, "a number", other),
        }
    }

    /// Returns `true` or `false`.
    pub fn bool(&self, key: &str) -> Result<bool> {
        match self.leaf(key)? {
            (_, DeValue::Boolean(b)) => Ok(*b),
            (entry, other) => self.wrong(key, entry, "true or false", other),
        }
    }

    /// Returns a string.
    pub fn text(&self, key: &str) -> Result<&'a str> {
        match self.leaf(key)? {
            (_, DeValue::String(s)) => Ok(s),
            (entry, other) => self.wrong(key, entry, "a string", other),
        }
    }

    /// Returns an array of tables, each read by a function.
    pub fn list<T>(&self, key: &str, read: impl Fn(&Table<'_, '_>) -> Result<T>) -> Result<Vec<T>> {
        let (entry, value) = self.leaf(key)?;
        let DeValue::Array(items) = value else { return self.wrong(key, entry, "an array of tables", value) };
        let one = |item: &toml::Spanned<DeValue<'t>>| {
            let (origin, base) = match &entry.origin {
                Origin::File(_) => (Origin::File(item.span()), None),
                Origin::Base(base) => (Origin::Base(base), Some(*base)),
            };
            let DeValue::Table(inner) = item.get_ref() else {
                return fail(&origin, format!("`{}` must hold tables", self.dotted(key)));
            };
            let tree = tree(inner.clone(), base);
            read(&Table { tree: &tree, path: self.dotted(key), origin })
        };
        items.iter().map(one).collect()
    }

    /// Returns an error about several values, given by dotted keys, at the first one that is in the file: inherited
    /// values fit together.
    pub fn fail<T>(&self, keys: &[&str], message: String) -> Result<T> {
        let origins = || keys.iter().filter_map(|k| self.find(k)).map(|e| &e.origin);
        let own = origins().find(|p| matches!(p, Origin::File(_)));
        fail(own.or_else(|| origins().next()).unwrap_or(&self.origin), message)
    }

    fn find(&self, dotted: &str) -> Option<&'a Entry<'t>> {
        let mut tree = self.tree;
        let (tables, key) = dotted.rsplit_once('.').unwrap_or(("", dotted));
        for table in tables.split('.').filter(|t| !t.is_empty()) {
            match &tree.get(table)?.item {
                Item::Table(inner) => tree = inner,
                Item::Leaf(_) => return None,
            }
        }
        tree.get(key)
    }

    fn leaf(&self, key: &str) -> Result<(&'a Entry<'t>, &'a DeValue<'t>)> {
        let entry = self.entry(key)?;
        match &entry.item {
            Item::Leaf(value) => Ok((entry, value)),
            Item::Table(_) => fail(&entry.origin, format!("`{}` must be a value, not a table", self.dotted(key))),
        }
    }

    fn entry(&self, key: &str) -> Result<&'a Entry<'t>> {
        match self.tree.get(key) {
            Some(entry) => Ok(entry),
            None => fail(&self.origin, format!("there is no `{}`", self.dotted(key))),
        }
    }

    fn wrong<T>(&self, key: &str, entry: &Entry<'_>, wanted: &str, found: &DeValue<'_>) -> Result<T> {
        let message = format!("`{}` must be {wanted}, not of type {}", self.dotted(key), found.type_str());
        fail(&entry.origin, message)
    }

    fn dotted(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }
}
