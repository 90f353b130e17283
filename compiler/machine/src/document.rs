//! A machine file as a tree, laid over the tree of the machine that it extends.
//!
//! Invariant: every entry records its origin: a range of the current file, or the built-in machine that it came from.

use crate::MachineError;
use crate::targets::builtin_text;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The origin of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// The current file; for a value, the bytes from its key to its end; for a table, its name.
    File(Range<usize>),
    /// A built-in machine that the file extends.
    Base(&'static str),
}

/// A key's entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'t> {
    /// The origin.
    pub origin: Origin,
    /// The value or table.
    pub item: Item<'t>,
}

/// The content of an entry.
#[derive(Clone, Debug)]
pub(crate) enum Item<'t> {
    /// A table.
    Table(Tree<'t>),
    /// A value.
    Leaf(DeValue<'t>),
}

/// Entries by key.
pub(crate) type Tree<'t> = BTreeMap<String, Entry<'t>>;

/// Maximal number of machines that extend one another; built-in ones need two.
const DEPTH: u32 = 4;

/// Reads a file and lays it over the machine that it extends.
///
/// # Errors
/// If the text is not TOML, or extends a machine that does not exist.
pub(crate) fn read(text: &str) -> Result<Tree<'_>, MachineError> {
    layered(text, None, DEPTH)
}

fn layered<'t>(text: &'t str, name: Option<&'static str>, depth: u32) -> Result<Tree<'t>, MachineError> {
    let document = DeTable::parse(text)
        .map_err(|e| MachineError { message: e.message().trim().to_string(), span: e.span() })?
        .into_inner();
    let mut tree = tree(document, name);
    let Some(extends) = tree.get("extends") else { return Ok(tree) };
    let fail = |message: String| {
        let span = if let Origin::File(span) = &extends.origin { Some(span.clone()) } else { None };
        Err(MachineError { message, span })
    };
    let Item::Leaf(DeValue::String(base)) = &extends.item else {
        return fail("`extends` must be the name of a built-in machine".to_string());
    };
    let found = crate::builtin_names().find(|n| n == base).zip(builtin_text(base));
    let Some((base, text)) = found.filter(|_| depth > 0) else {
        return fail(format!("`extends` names `{base}`, which is no built-in machine"));
    };
    let mut under = layered(text, Some(base), depth - 1)?;
    for own in ["name", "description", "extends"] {
        under.remove(own);
    }
    lay(&mut tree, under);
    Ok(tree)
}

/// Adds the entries that a tree lacks.
fn lay<'t>(over: &mut Tree<'t>, under: Tree<'t>) {
    for (key, entry) in under {
        match (over.get_mut(&key).map(|e| &mut e.item), entry.item) {
            (None, item) => {
                over.insert(key, Entry { origin: entry.origin, item });
            }
            (Some(Item::Table(over)), Item::Table(under)) => lay(over, under),
            _ => {}
        }
    }
}

/// Returns the tree of a table, of the current file or of a built-in machine.
pub(crate) fn tree<'t>(table: DeTable<'t>, name: Option<&'static str>) -> Tree<'t> {
    let entry = |(key, value): (toml::Spanned<std::borrow::Cow<'t, str>>, toml::Spanned<DeValue<'t>>)| {
        let (at, end) = (key.span(), value.span().end);
        let (end, item) = match value.into_inner() {
            DeValue::Table(inner) => (at.end, Item::Table(tree(inner, name))),
            leaf => (end, Item::Leaf(leaf)),
        };
        let origin = match name {
            Some(name) => Origin::Base(name),
            None => Origin::File(at.start..end.max(at.end)),
        };
        (key.into_inner().into_owned(), Entry { origin, item })
    };
    table.into_iter().map(entry).collect()
}
