//! Files that are written: where their paths lead, and files that take their place when they are complete.
//!
//! Invariant: errors do not tell of temporary files, whose names mean nothing to a user.

use std::fs::File;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The greatest number of links that are followed from a path.
const LINKS: usize = 40;

/// Returns the path of the file to which a path leads through links, also if that file does not exist.
pub fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if let Ok(full) = path.canonicalize() {
            return full;
        }
        if path.exists() {
            // An open pipe has a path that leads to no name.
            return path;
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

/// Returns whether a path leads to a device or a pipe. No file may be made beside it, or take its place.
pub(crate) fn is_special(path: &Path) -> bool {
    let real = real_path(path);
    path.starts_with("/dev") || (real.exists() && !real.is_file())
}

/// Makes a temporary file in the directory of another file, which it will replace.
pub(crate) fn temporary(path: &Path) -> Result<NamedTempFile> {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any new file: the process's mask applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder(path)).map_err(plain)
}

/// Makes a file without a name in a directory, or elsewhere if nothing can be made there. It ceases to exist with the
/// process, however that ends.
pub(crate) fn unnamed(folder: &Path) -> Result<File> {
    tempfile::tempfile_in(folder).or_else(|_| tempfile::tempfile()).map_err(plain)
}

/// Returns an error without the name of a temporary file.
pub(crate) fn plain(error: Error) -> Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((what, _)) => Error::new(error.kind(), what),
        None => error,
    }
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
            use std::os::{fd::AsRawFd, unix::fs::symlink};
            let (_reader, writer) = std::io::pipe().expect("a pipe");
            let pipe = PathBuf::from(format!("/dev/fd/{}", writer.as_raw_fd()));
            assert!(!pipe.exists() || real_path(&pipe).exists());
            for (target, link) in [("a/x", "old"), ("a/later", "dangling"), ("dangling", "two"), ("loop", "loop")] {
                symlink(target, root.join(link)).expect("a link");
            }
            assert_eq!(real_path(&root.join("old")), root.join("a/x"));
            assert_eq!(real_path(&root.join("two")), root.join("a/later"));
            assert_eq!(real_path(&root.join("loop")), root.join("loop"));
        }
    }
}
