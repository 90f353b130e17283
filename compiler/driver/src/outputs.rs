//! Arrays that are written: a `.npy` file, or a `.npz` archive of one array.
//!
//! Invariant: the elements of a long array are in a file without a name until all are there; memory holds a part of
//! them.

use crate::arrays::npy_header;
use crate::files::{folder, is_special, plain, real_path, temporary, unnamed};
use girder_ir::types::ElemType;
use std::fs::File;
use std::io::{BufWriter, Read, Result, Seek, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Endings of file names that promise a form in which outputs are not written.
const OTHER_FORMS: [&str; 5] = ["gz", "safetensors", "csv", "txt", "json"];

/// A file that is to hold an array.
#[derive(Clone, Debug)]
pub struct Output {
    path: PathBuf,
    /// The name of the array in an archive.
    name: String,
}

impl Output {
    /// Takes the name of a file for an array.
    ///
    /// # Errors
    /// The problem with the name of the file, and what to write instead.
    pub fn new(file: &str, name: &str) -> std::result::Result<Output, (String, String)> {
        let path = PathBuf::from(file);
        if let Some((archive, key)) = file.rsplit_once(':').filter(|(archive, _)| archive.ends_with(".npz")) {
            let message = format!("{file} names an array of an archive, but a whole file is written");
            let one = if key == name { "it names the array so".into() } else { format!("its array is `{name}`") };
            return Err((message, format!("write `{name}={archive}`: {one}; `--save` writes several arrays")));
        }
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        if OTHER_FORMS.contains(&ending.as_str()) {
            let message = format!("{file} ends in `.{ending}`, but an array is written as `.npy` or `.npz`");
            let base = path.with_extension("");
            let base = Path::new(base.file_stem().unwrap_or_default()).display();
            return Err((message, format!("write `{name}={base}.npy`, which `np.load` reads")));
        }
        Ok(Output { path, name: name.into() })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an array, whose elements are read in order. The file is complete or unchanged, but where no other file
    /// can take its place: a device, or a file in a directory where none can be made.
    pub fn write(&self, ty: ElemType, shape: &[u64], elements: &mut impl Read) -> Result<()> {
        let real = real_path(&self.path);
        let part = if is_special(&self.path) { None } else { temporary(&real).ok() };
        let Some(part) = part else { return self.fill(File::create(&self.path)?, ty, shape, elements) };
        self.fill(part.as_file(), ty, shape, elements)?;
        if let Ok(old) = real.metadata() {
            std::fs::set_permissions(part.path(), old.permissions())?;
        }
        part.persist(real).map(|_| ()).map_err(|e| plain(e.error))
    }

    fn fill(&self, mut file: impl Write + Seek, ty: ElemType, shape: &[u64], elements: &mut impl Read) -> Result<()> {
        let header = npy_header(ty, shape);
        if self.path.extension().is_none_or(|e| e != "npz") {
            file.write_all(&header)?;
            std::io::copy(elements, &mut file)?;
            return Ok(());
        }
        let mut archive = ZipWriter::new(BufWriter::new(file));
        let bytes = header.len() as u64 + shape.iter().product::<u64>() * u64::from(ty.bytes());
        archive.start_file(format!("{}.npy", self.name), entry_options(bytes)).map_err(std::io::Error::from)?;
        archive.write_all(&header)?;
        std::io::copy(elements, &mut archive)?;
        archive.finish().map_err(std::io::Error::from)?.flush()
    }
}

/// Returns the options of an array of an archive, so that the same arrays make the same bytes.
pub(crate) fn entry_options(bytes: u64) -> SimpleFileOptions {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    options.last_modified_time(DateTime::default()).large_file(bytes >= u64::from(u32::MAX))
}

/// Bytes that grow at the end, in a file without a name. It is on the disk of the file that is to hold them.
#[derive(Debug)]
pub struct Collected {
    file: BufWriter<File>,
    bytes: u64,
}

impl Collected {
    /// Starts without bytes.
    pub fn beside(path: &Path) -> Result<Collected> {
        // What is beside a device may be in memory.
        let folder = if is_special(path) { std::env::temp_dir() } else { folder(path).to_path_buf() };
        Ok(Collected { file: BufWriter::with_capacity(1 << 16, unnamed(&folder)?), bytes: 0 })
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Returns the bytes for reading.
    pub fn read(self) -> Result<File> {
        let mut file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays;

    #[test]
    fn an_archive_holds_one_array() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["x.npy", "x.npz", "x"] {
            let path = directory.path().join(name);
            let mut all = Collected::beside(&path).expect("a file");
            all.push(&[1, 2, 3]).and_then(|()| all.push(&[4, 5, 6])).expect("room");
            assert_eq!(all.len(), 6);
            let output = Output::new(&path.to_string_lossy(), "seen").expect("a name");
            output.write(ElemType::U8, &[3, 2], &mut all.read().expect("a file")).expect("room");
            let key = (name == "x.npz").then_some("seen");
            let array = arrays::read(&path, key).expect("an array");
            assert_eq!((&array.shape[..], &array.bytes[..]), (&[3, 2][..], &[1, 2, 3, 4, 5, 6][..]));
        }
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 3, "nothing else is there");
    }

    #[test]
    fn names_of_other_forms_are_refused() {
        let help = |file: &str| Output::new(file, "w").expect_err("another form").1;
        assert_eq!(help("a/w.npy.gz"), "write `w=w.npy`, which `np.load` reads");
        assert_eq!(help("w.CSV"), "write `w=w.npy`, which `np.load` reads");
        assert!(help("all.npz:w").starts_with("write `w=all.npz`"));
        assert!(["w", "w.dat", "/dev/stdout", "a:b.npy"].iter().all(|file| Output::new(file, "w").is_ok()));
    }
}
