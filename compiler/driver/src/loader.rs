//! Access of a compilation to the library and to files.

use crate::arrays::ArrayFile;
use girder_elaborate::{Array, Library, Loader};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The standard library, of which all compilations of the process share what is parsed.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::new(&girder_stdlib::MODULES));

/// The loader of the embedded library, and of files relative to the file that names them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Loader for Files {
    fn library(&self) -> &Library {
        &LIBRARY
    }

    fn file(&self, importer: &Path, name: &str) -> Result<(PathBuf, String), String> {
        let path = beside(importer, name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok((path, text)),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }

    fn array(&self, importer: &Path, name: &str, key: Option<&str>, most: u64) -> Result<Array, String> {
        let path = beside(importer, name);
        let file = ArrayFile::open(&path, key).and_then(|file| match file.header.bytes {
            bytes if bytes > most => {
                Err(format!("it holds {bytes} bytes, and `static_steps` allows {most}, 8 for each step"))
            }
            _ => file.read(),
        });
        file.map_err(|e| format!("{}: {e}", path.display()))
    }
}

fn beside(importer: &Path, name: &str) -> PathBuf {
    importer.parent().unwrap_or(Path::new("")).join(name)
}
