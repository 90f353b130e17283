//! The files that a command line names.
//!
//! Invariant: nothing is written over a file that the command reads piece by piece, or that it writes for another
//! option. Files are told apart by what their paths lead to, through links.

use crate::report::{Done, Report};
use girder::source::SourceMap;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles {
    read: Vec<Named>,
    written: Vec<Named>,
}

/// A file with what it is for.
#[derive(Clone, Debug)]
struct Named {
    path: PathBuf,
    real: PathBuf,
    /// The option that writes it, or the words that follow "which".
    role: String,
    /// An option that may write it all the same, as the file is read before and its contents are not lost.
    except: Option<&'static str>,
}

impl NamedFiles {
    /// Adds a file that is read; `role` completes "which …".
    pub fn reads(&mut self, path: impl AsRef<Path>, role: impl Into<String>) {
        self.read.extend(Named::new(path.as_ref(), role.into()));
    }

    /// Adds a file that is read before anything is written, and that one option may write again.
    pub fn reads_but_for(&mut self, path: impl AsRef<Path>, role: impl Into<String>, except: &'static str) {
        let named = Named::new(path.as_ref(), role.into());
        self.read.extend(named.map(|named| Named { except: Some(except), ..named }));
    }

    /// Adds the modules of a program.
    pub fn reads_modules(&mut self, map: &SourceMap) {
        for (_, file) in map.files() {
            self.reads(&file.path, "is a module of the program");
        }
    }

    /// Adds a file that an option writes.
    pub fn writes(&mut self, path: impl AsRef<Path>, flag: &'static str) {
        self.written.extend(Named::new(path.as_ref(), flag.into()));
    }

    /// Checks that no file is written twice, or is written and read.
    pub fn check(&self, report: &Report) -> Done {
        for (k, file) in self.written.iter().enumerate() {
            let (path, flag) = (file.path.display(), &file.role);
            if let Some(other) = self.written[..k].iter().find(|other| other.real == file.real) {
                let also = if other.path == file.path { String::new() } else { format!(", also as {path}") };
                let message = format!("`{}` and `{flag}` both write {}{also}", other.role, other.path.display());
                return Err(report.usage(message, "name a file for each"));
            }
            let is_lost = |read: &&Named| read.real == file.real && read.except != Some(flag.as_str());
            if let Some(read) = self.read.iter().find(is_lost) {
                let message = format!("`{flag}` would overwrite {path}, which {}", read.role);
                return Err(report.usage(message, "name another file to write"));
            }
        }
        Ok(())
    }
}

impl Named {
    /// Returns a file of a role, or `None` if it is a device or a pipe, which may have several.
    fn new(path: &Path, role: String) -> Option<Named> {
        let real = girder::files::real_path(path);
        let is_special = real.exists() && !real.is_file();
        (!is_special).then(|| Named { path: path.into(), real, role, except: None })
    }
}

/// Splits the name of an array into its file and, if that is an archive, the name in the archive: `file.npz:name`.
pub fn array_of(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((path, key)) if path.ends_with(".npz") => (path, Some(key)),
        _ => (text, None),
    }
}
