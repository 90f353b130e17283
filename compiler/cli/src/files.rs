//! The files that a command line names.
//!
//! Invariant: nothing is written over a file that the command reads piece by piece, or that it writes for another
//! option. Files are told apart by what their paths lead to, through links.

use crate::report::{Done, Report, Stop};
use girder::files::real_path;
use girder::outputs::Output;
use girder::source::SourceMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// The files that one command line reads and writes.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles {
    read: Vec<Named>,
    written: Vec<Named>,
}

/// A file and its purpose.
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
        let real = real_path(path);
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

/// Returns the file of an option that writes an array, after a check that it can be written.
pub fn output(file: &str, name: &str, flag: &str, report: &Report) -> Result<Output, Stop> {
    let output = Output::new(file, name).map_err(|(message, help)| {
        report.usage(
            format!("`{flag} {name}={file}`: {message}"),
            help.replacen("write `", &format!("write `{flag} "), 1),
        )
    })?;
    writable(output.path(), report)?;
    Ok(output)
}

/// Checks that a file can be written before the run; changes nothing.
pub fn writable(path: &Path, report: &Report) -> Done {
    let real = real_path(path);
    let is_new = !real.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(&real);
    opened.map_err(|e| cannot_write(path, &e, report))?;
    if is_new {
        // The run creates the file again; a file that cannot be removed does no harm.
        let _ = std::fs::remove_file(real);
    }
    Ok(())
}

/// Reports a file that cannot be written.
pub fn cannot_write(path: &Path, error: &Error, report: &Report) -> Stop {
    let help = match error.kind() {
        ErrorKind::NotFound => "name a file in a directory that exists",
        ErrorKind::NotADirectory => "a file has the name of a directory; name a file in a directory",
        ErrorKind::IsADirectory => "name a file, which may be in that directory",
        ErrorKind::InvalidFilename if error.raw_os_error().is_none() => {
            "end the name in `.npz` for NumPy, or in `.safetensors`"
        }
        ErrorKind::InvalidFilename => "choose a shorter name",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "name a file that you may write",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room on the disk, or name a file on another one"
        }
        _ => "name another file",
    };
    report.error("driver::cannot_write", format!("cannot write {}: {error}", path.display()), help)
}
