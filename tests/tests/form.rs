//! The form of the repository's text files.

use girder_tests::files;
use std::path::PathBuf;

/// Maximal width of a line.
const WIDEST: usize = 120;

#[test]
fn no_line_is_too_wide() {
    let endings = [".rs", ".gir", ".md", ".toml", ".lalrpop"];
    let mut open: Vec<PathBuf> = vec![PathBuf::new()];
    let mut wide = vec![];
    while let Some(directory) = open.pop() {
        for name in files::names(&directory).into_iter().filter(|n| !n.starts_with('.') && n != "target") {
            let path = directory.join(&name);
            if files::root().join(&path).is_dir() {
                open.push(path);
            } else if endings.iter().any(|e| name.ends_with(e)) {
                let text = files::text(&path);
                let lines = (1..).zip(text.lines()).map(|(k, line)| (k, line.chars().count()));
                wide.extend(lines.filter(|l| l.1 > WIDEST).map(|(k, n)| format!("{}:{k}: {n}", path.display())));
            }
        }
    }
    wide.sort();
    assert!(wide.is_empty(), "{} lines are wider than {WIDEST} columns:\n{}", wide.len(), wide.join("\n"));
}
