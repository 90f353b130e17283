//! Files of the repository that tests read.

use girder::Head;
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

/// Finds the programs of the examples, except those whose input files are not on this machine. Returns sorted paths.
pub fn examples() -> Vec<PathBuf> {
    let mut found = under("examples", ".gir");
    found.retain(|path| missing_input(path).is_none());
    found
}

/// Returns an input file that the head of a program names and that is not on this machine, if there is one, after
/// saying so: the images of some examples are in packages of the system.
///
/// # Panics
/// If the head has an error.
pub fn missing_input(program: impl AsRef<Path>) -> Option<PathBuf> {
    let path = program.as_ref();
    let head =
        Head::read(&text(path), &root().join(path)).unwrap_or_else(|words| panic!("{}: {words}", path.display()));
    let mut files = head.streams.into_iter().map(|(_, name)| PathBuf::from(array_of(&name.to_string_lossy()).0));
    let missing = files.find(|file| !file.exists())?;
    eprintln!("{} is skipped: there is no {}", path.display(), missing.display());
    Some(missing)
}

/// Splits the name of an array into its file and, if that is an archive, the name in the archive.
pub(crate) fn array_of(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once(':') {
        Some((archive, key)) if archive.ends_with(".npz") => (archive, Some(key)),
        _ => (name, None),
    }
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
