//! A machine file as a tree, laid over the machine that it extends.
//!
//! Invariant: every entry knows whether it stands in the file at hand, and where, or from which built-in machine it came.

use crate::MachineError;
use crate::targets::builtin_text;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Where an entry comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// The file at hand; for a value, bytes from its key to its end; for a table, its name.
    File(Range<usize>),
    /// A built-in machine that it extends.
    Base(&'static str),
}

/// One key with what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'t> {
    /// Where it comes from.
    pub origin: Origin,
    /// What it holds.
    pub item: Item<'t>,
}

/// What a key holds.
#[derive(Clone, Debug)]
pub(crate) enum Item<'t> {
    /// More keys.
    Table(Tree<'t>),
    /// A value.
    Leaf(DeValue<'t>),
}

/// Keys with what they hold.
pub(crate) type Tree<'t> = BTreeMap<String, Entry<'t>>;

/// How many machines may extend one another; built-in ones need two.
const DEPTH: u32 = 4;

/// Reads a file, and lays it over what it extends.
///
/// # Errors
/// Where it is no TOML, or extends what there is not.
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

/// Adds what a tree lacks.
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

/// Returns the tree of a table, of the file at hand or of a built-in machine.
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
