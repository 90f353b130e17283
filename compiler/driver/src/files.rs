//! Paths of files that are written.
//!
//! Invariant: nothing here changes a file.

use std::path::{Path, PathBuf};

/// The links that are followed from a path.
const LINKS: usize = 40;

/// Returns the path of the file to which a path leads through links, also if that file does not exist.
pub fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if let Ok(full) = path.canonicalize() {
            return full;
        }
        // A link to a file that does not exist, which is made by writing to the link.
        let Ok(target) = path.read_link() else { break };
        path = folder(&path).join(target);
    }
    match (folder(&path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Returns the directory of a file.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        std::fs::create_dir(root.join("a")).expect("a directory");
        std::fs::write(root.join("a/x"), "").expect("a file");
        assert_eq!(real_path(&root.join("a/../a/./x")), root.join("a/x"));
        assert_eq!(real_path(&root.join("a/../new")), root.join("new"));
        assert_eq!(real_path(Path::new("new")), std::env::current_dir().expect("a directory").join("new"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            for (target, link) in [("a/x", "old"), ("a/later", "dangling"), ("dangling", "two"), ("loop", "loop")] {
                symlink(target, root.join(link)).expect("a link");
            }
            assert_eq!(real_path(&root.join("old")), root.join("a/x"));
            assert_eq!(real_path(&root.join("two")), root.join("a/later"));
            assert_eq!(real_path(&root.join("loop")), root.join("loop"));
        }
    }
}
