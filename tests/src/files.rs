//! Files of the repository that tests read.

use girder_source::{Diagnostics, Session, SourceMap};
use std::path::{Path, PathBuf};

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads a text file of the repository.
pub fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
}

/// Lists a directory of the repository by name, sorted.
pub fn names(directory: impl AsRef<Path>) -> Vec<String> {
    let path = root().join(directory);
    let entries = std::fs::read_dir(&path).unwrap_or_else(|e| panic!("cannot list {}: {e}", path.display()));
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry of a directory").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Finds all files under a directory of the repository whose names have this ending. Returns sorted paths from the
/// root.
pub fn under(directory: impl AsRef<Path>, ending: &str) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![directory.as_ref().to_path_buf()], vec![]);
    while let Some(directory) = open.pop() {
        for name in names(&directory) {
            let path = directory.join(&name);
            if root().join(&path).is_dir() {
                open.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Splits the text of a module into its items, in order. The header is not an item.
///
/// # Panics
/// If the text has an error.
pub fn items(text: &str) -> Vec<&str> {
    let mut map = SourceMap::default();
    let file = map.add("items.gir", text).expect("a text that fits");
    let mut diagnostics = Diagnostics::default();
    let module = girder_syntax::parse(&map, file, &Session::default(), &mut diagnostics);
    let start = map.file(file).base as usize;
    assert!(!diagnostics.has_errors(), "this is no module:\n{text}");
    module.items.iter().map(|i| &text[i.span.lo as usize - start..i.span.hi as usize - start]).collect()
}

/// Finds all codes of diagnostics (`"stage::slug"`) in the sources, except in tests. Returns them sorted.
pub fn codes() -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    let sources = ["compiler", "runtime"].into_iter().flat_map(|d| under(d, ".rs"));
    for path in sources.filter(|p| p.components().all(|c| c.as_os_str() != "tests") && !p.ends_with("tests.rs")) {
        let text = text(&path);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        found.extend(code.split('"').filter(|word| is_code(word)).map(str::to_string));
    }
    found.into_iter().collect()
}

fn is_code(word: &str) -> bool {
    let part = |p: &str| !p.is_empty() && p.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
    word.split_once("::").is_some_and(|(stage, slug)| part(stage) && part(slug))
}
