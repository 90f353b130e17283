//! NumPy's array files: `.npy` files and the arrays of `.npz` archives; and IDX files, the format of MNIST. A `.npy` or
//! IDX file may be compressed with gzip. Files are told apart by their first bytes, archives by their names.
//!
//! An array is opened first. Its type and shape are then known, so that a caller can refuse it before its elements are
//! unpacked and before memory is taken for them.
//!
//! Invariant: arrays are row-major and little-endian in memory, whatever the file's layout. A malformed file is an
//! error; opening one takes little time and memory, whatever it claims to hold.

use flate2::bufread::MultiGzDecoder;
use girder_elaborate::Array;
use girder_ir::types::ElemType;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use zip::ZipArchive;

/// The bytes of the longest header that is read. NumPy itself refuses more than 10,000.
const LONGEST_HEADER: u64 = 1 << 16;

/// The first bytes of a file that is compressed with gzip (RFC 1952, section 2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The header of an array.
#[derive(Clone, Debug)]
pub struct Header {
    /// Element type.
    pub ty: ElemType,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// The bytes of all elements.
    pub bytes: u64,
    big_endian: bool,
    column_major: bool,
}

/// An array in a file, whose elements have not been read yet.
#[derive(Debug)]
pub struct ArrayFile {
    /// Its type and shape.
    pub header: Header,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A file, read up to the end of its header.
    Plain(BufReader<File>),
    /// A file that is compressed with gzip, read up to the end of its header.
    Packed(Box<MultiGzDecoder<BufReader<File>>>),
    /// An archive, and the number of the array in it.
    Entry(Box<Archive>, usize),
}

/// An open `.npz` archive.
pub type Archive = ZipArchive<BufReader<File>>;

/// Reads an array. `key` names an array of an archive; it is optional if the archive holds only one.
pub fn read(path: &Path, key: Option<&str>) -> Result<Array, String> {
    ArrayFile::open(path, key)?.read()
}

impl ArrayFile {
    /// Opens an array, as [`read`] names it.
    pub fn open(path: &Path, key: Option<&str>) -> Result<ArrayFile, String> {
        let is_archive = path.extension().is_some_and(|e| e == "npz");
        match (is_archive, key) {
            (false, Some(k)) => Err(format!("a `.npy` file holds one array, so `{k}` cannot be picked from it")),
            (false, None) => {
                let mut file = BufReader::new(File::open(path).map_err(|e| e.to_string())?);
                let first = file.fill_buf().map_err(|e| e.to_string())?;
                if first.is_empty() {
                    return Err("it is empty".into());
                }
                if first.starts_with(GZIP) {
                    let mut file = Box::new(MultiGzDecoder::new(file));
                    return Ok(ArrayFile { header: Header::read(&mut file)?, source: Source::Packed(file) });
                }
                Ok(ArrayFile { header: Header::read(&mut file)?, source: Source::Plain(file) })
            }
            (true, key) => ArrayFile::in_archive(open_archive(path)?, key),
        }
    }

    fn in_archive(mut archive: Archive, key: Option<&str>) -> Result<ArrayFile, String> {
        let names = names(&archive);
        let held = || names.iter().map(|n| n.0.as_str()).collect::<Vec<_>>().join(", ");
        let index = match (key, &names[..]) {
            (Some(key), _) => match names.iter().find(|n| n.0 == key) {
                Some(found) => found.1,
                None => return Err(format!("it has no array `{key}`; it holds {}", held())),
            },
            (None, [one]) => one.1,
            (None, _) => return Err(format!("it holds {}; name one", held())),
        };
        let header = header_in(&mut archive, index)?;
        Ok(ArrayFile { header, source: Source::Entry(Box::new(archive), index) })
    }

    /// Reads the array.
    pub fn read(self) -> Result<Array, String> {
        let Header { ty, shape, .. } = self.header.clone();
        Ok(Array { ty, shape, bytes: self.elements()?.into() })
    }

    /// Reads the elements.
    pub fn elements(self) -> Result<Vec<u8>, String> {
        match self.source {
            Source::Plain(file) => self.header.elements(file),
            Source::Packed(mut file) => {
                let bytes = self.header.elements(&mut file)?;
                // The decoder compares the checksum at the end.
                file.read(&mut [0]).map_err(|e| e.to_string())?;
                Ok(bytes)
            }
            Source::Entry(mut archive, index) => elements_in(&mut archive, index),
        }
    }
}

/// The elements of an array, read in order or from any byte on.
#[derive(Debug)]
pub enum Elements {
    /// In memory, with the number of bytes that were read.
    Memory(Arc<[u8]>, usize),
    /// In a file that holds them as memory does, from this byte on.
    File(BufReader<File>, u64),
}

impl ArrayFile {
    /// Returns whether the elements can be read from the file as they are, so that they need no memory.
    pub fn is_plain(&self) -> bool {
        let Header { ty, big_endian, column_major, .. } = self.header;
        matches!(self.source, Source::Plain(_)) && !big_endian && !column_major && ty != ElemType::Bool
    }

    /// Returns the elements for reading in order.
    pub fn in_order(self) -> Result<Elements, String> {
        if !self.is_plain() {
            return self.elements().map(|bytes| Elements::Memory(bytes.into(), 0));
        }
        let Source::Plain(mut file) = self.source else { unreachable!("it is plain") };
        let Ok(start) = file.stream_position() else {
            // A pipe is read once.
            return self.header.elements(file).map(|bytes| Elements::Memory(bytes.into(), 0));
        };
        let held = file.get_ref().metadata().map_err(|e| e.to_string())?.len().saturating_sub(start);
        if held < self.header.bytes {
            return Err(format!("it ends after {held} of {} bytes", self.header.bytes));
        }
        Ok(Elements::File(file, start))
    }
}

impl Elements {
    /// Reads the next bytes, which the array has.
    pub fn read(&mut self, into: &mut [u8]) -> Result<(), String> {
        match self {
            Elements::Memory(bytes, at) => {
                into.copy_from_slice(&bytes[*at..*at + into.len()]);
                *at += into.len();
                Ok(())
            }
            Elements::File(file, _) => file.read_exact(into).map_err(|e| e.to_string()),
        }
    }

    /// Goes to a byte, from which the next ones are read.
    pub fn seek(&mut self, byte: u64) -> Result<(), String> {
        match self {
            Elements::Memory(_, at) => *at = usize::try_from(byte).map_err(|e| e.to_string())?,
            Elements::File(file, start) => _ = file.seek(SeekFrom::Start(*start + byte)).map_err(|e| e.to_string())?,
        }
        Ok(())
    }
}

/// Opens an archive.
pub fn open_archive(path: &Path) -> Result<Archive, String> {
    let mut file = BufReader::new(File::open(path).map_err(|e| e.to_string())?);
    if file.fill_buf().map_err(|e| e.to_string())?.is_empty() {
        return Err("it is empty".into());
    }
    ZipArchive::new(file).map_err(|e| e.to_string())
}

/// Returns the names of an archive's arrays, each with its number.
pub fn names(archive: &Archive) -> Vec<(String, usize)> {
    let name = |index: usize| {
        let name = archive.name_for_index(index).and_then(|n| n.ok()).unwrap_or_default();
        name.strip_suffix(".npy").unwrap_or(&name).to_string()
    };
    (0..archive.len()).map(|index| (name(index), index)).collect()
}

/// Returns the header of an array of an archive.
pub fn header_in(archive: &mut Archive, index: usize) -> Result<Header, String> {
    Header::read(&mut archive.by_index(index).map_err(|e| e.to_string())?)
}

/// Returns the elements of an array of an archive.
pub fn elements_in(archive: &mut Archive, index: usize) -> Result<Vec<u8>, String> {
    let mut entry = archive.by_index(index).map_err(|e| e.to_string())?;
    let bytes = Header::read(&mut entry)?.elements(&mut entry)?;
    // The reader compares the checksum at the end, which is where the elements end.
    std::io::copy(&mut entry.take(LONGEST_HEADER), &mut std::io::sink()).map_err(|e| e.to_string())?;
    Ok(bytes)
}

impl Header {
    /// Reads a header, and nothing after it.
    fn read(from: &mut impl Read) -> Result<Header, String> {
        let wrong = |e: std::io::Error| match e.kind() {
            ErrorKind::UnexpectedEof => "not a NumPy array: it ends in its header".to_string(),
            _ => format!("not a NumPy array: {e}"),
        };
        let mut bytes = vec![0; 4];
        from.read_exact(&mut bytes).map_err(wrong)?;
        if let [0, 0, ty, rank] = bytes[..] {
            return Header::of_idx(ty, rank, from);
        }
        bytes.resize(10, 0);
        from.read_exact(&mut bytes[4..]).map_err(wrong)?;
        if !bytes.starts_with(b"\x93NUMPY") {
            return Err("not a NumPy array: it does not begin as one".into());
        }
        let mut len = u16::from_le_bytes([bytes[8], bytes[9]]) as u64;
        if bytes[6] > 1 {
            bytes.resize(12, 0);
            from.read_exact(&mut bytes[10..]).map_err(wrong)?;
            len |= (u16::from_le_bytes([bytes[10], bytes[11]]) as u64) << 16;
        }
        if len > LONGEST_HEADER {
            return Err(format!("not a NumPy array: a header of {len} bytes"));
        }
        let prefix = bytes.len();
        from.take(len).read_to_end(&mut bytes).map_err(wrong)?;
        // A number has a plain name and one tuple, its shape. The parser takes exponential time for nested ones.
        let count = |c: u8| bytes[prefix..].iter().filter(|b| **b == c).count();
        if count(b'[') > 0 || count(b'(') > 1 || count(b'{') > 1 {
            return Err("its elements are structures, not numbers".into());
        }
        // The parser multiplies the numbers of the shape without a check.
        let numbers = bytes[prefix..].split(|b| !b.is_ascii_digit()).filter(|n| !n.is_empty());
        let number = |n: &[u8]| str::from_utf8(n).ok().and_then(|n| n.parse::<u64>().ok());
        if numbers.map(number).try_fold(1u64, |all, n| all.checked_mul(n?.max(1))).is_none() {
            return Err("its shape is too large".into());
        }
        let header = NpyHeader::from_reader(&bytes[..]).map_err(wrong)?;
        let (ty, big_endian) = element_type(&header.dtype())?;
        let shape = header.shape().to_vec();
        let bytes = bytes_of(ty, &shape)?;
        let column_major = header.order() == Order::Fortran && shape.len() > 1;
        Ok(Header { ty, shape, bytes, big_endian, column_major })
    }

    /// Reads the header of an IDX file after its first four bytes: the lengths of its axes. The format is described
    /// with the files of MNIST (LeCun, Cortes, Burges, "The MNIST database of handwritten digits").
    fn of_idx(ty: u8, rank: u8, from: &mut impl Read) -> Result<Header, String> {
        let ty = match ty {
            0x08 => ElemType::U8,
            0x09 => ElemType::I8,
            0x0b => ElemType::I16,
            0x0c => ElemType::I32,
            0x0d => ElemType::F32,
            0x0e => ElemType::F64,
            _ => return Err(format!("not an IDX file: there is no type {ty:#04x}")),
        };
        let mut lengths = vec![0; 4 * usize::from(rank)];
        from.read_exact(&mut lengths).map_err(|_| "not an IDX file: it ends in its header".to_string())?;
        let length = |b: &[u8]| b.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        let shape: Vec<u64> = lengths.chunks_exact(4).map(length).collect();
        let bytes = bytes_of(ty, &shape)?;
        Ok(Header { ty, shape, bytes, big_endian: ty.bytes() > 1, column_major: false })
    }

    /// Reads the elements after the header.
    fn elements(self, from: impl Read) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let room = usize::try_from(self.bytes).ok().filter(|&n| bytes.try_reserve_exact(n).is_ok());
        room.ok_or_else(|| format!("no memory for its {} bytes", self.bytes))?;
        from.take(self.bytes).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        if bytes.len() as u64 != self.bytes {
            return Err(format!("it ends after {} of {} bytes", bytes.len(), self.bytes));
        }
        if self.big_endian {
            bytes.chunks_exact_mut(self.ty.bytes() as usize).for_each(<[u8]>::reverse);
        }
        if self.column_major {
            bytes = row_major(&bytes, &self.shape, self.ty.bytes() as usize);
        }
        if self.ty == ElemType::Bool {
            bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(bytes)
    }
}

/// Returns the bytes of the elements of an array. As in NumPy, axes without elements do not make up for long ones.
fn bytes_of(ty: ElemType, shape: &[u64]) -> Result<u64, String> {
    let bytes = shape.iter().try_fold(ty.bytes() as u64, |n, &d| n.checked_mul(d.max(1)));
    let bytes = bytes.ok_or("its shape is too large")?;
    Ok(if shape.contains(&0) { 0 } else { bytes })
}

/// Returns the element type of a NumPy type, and whether it is big-endian.
fn element_type(dtype: &DType) -> Result<(ElemType, bool), String> {
    let DType::Plain(t) = dtype else { return Err(format!("its type {} is not a number", dtype.descr())) };
    let ty = match (t.type_char(), t.size_field()) {
        (TypeChar::Bool, _) => ElemType::Bool,
        (TypeChar::Uint, 1) => ElemType::U8,
        (TypeChar::Uint, 2) => ElemType::U16,
        (TypeChar::Uint, 4) => ElemType::U32,
        (TypeChar::Uint, 8) => ElemType::U64,
        (TypeChar::Int, 1) => ElemType::I8,
        (TypeChar::Int, 2) => ElemType::I16,
        (TypeChar::Int, 4) => ElemType::I32,
        (TypeChar::Int, 8) => ElemType::I64,
        (TypeChar::Float, 2) => ElemType::F16,
        (TypeChar::Float, 4) => ElemType::F32,
        (TypeChar::Float, 8) => ElemType::F64,
        _ => return Err(format!("its type {} is not one of bool, u8 … u64, i8 … i64, f16, f32, f64", dtype.descr())),
    };
    Ok((ty, t.endianness() == Endianness::Big))
}

/// Converts elements from column-major to row-major order.
fn row_major(bytes: &[u8], shape: &[u64], size: usize) -> Vec<u8> {
    let mut out = vec![0; bytes.len()];
    let mut index = vec![0u64; shape.len()];
    for chunk in bytes.chunks_exact(size) {
        let flat = index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i) as usize;
        out[flat * size..][..size].copy_from_slice(chunk);
        for (i, &n) in index.iter_mut().zip(shape) {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
    out
}

/// Writes an array as a `.npy` file.
pub fn write(path: &Path, array: &Array) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&npy_header(array.ty, &array.shape))?;
    file.write_all(&array.bytes)
}

/// Returns the header of a `.npy` file, version 1.0: magic, length, a dictionary padded to a multiple of 64 bytes.
pub fn npy_header(ty: ElemType, shape: &[u64]) -> Vec<u8> {
    let kind = match ty {
        ElemType::Bool => "|b1".to_string(),
        t if t.is_float() => format!("<f{}", t.bytes()),
        t if t.is_signed_int() => format!("{}i{}", if t.bytes() == 1 { "|" } else { "<" }, t.bytes()),
        t => format!("{}u{}", if t.bytes() == 1 { "|" } else { "<" }, t.bytes()),
    };
    let dims: String = shape.iter().map(|d| format!("{d}, ")).collect();
    let dims = if shape.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dims}), }}");
    let pad = (64 - (10 + text.len() + 1) % 64) % 64;
    text.extend(std::iter::repeat_n(' ', pad));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(mut file: &[u8]) -> Result<Array, String> {
        let header = Header::read(&mut file)?;
        let (ty, shape) = (header.ty, header.shape.clone());
        Ok(Array { ty, shape, bytes: header.elements(file)?.into() })
    }

    #[test]
    fn written_arrays_read_back() {
        for shape in [vec![], vec![3], vec![2, 3], vec![0, 4]] {
            let count: u64 = shape.iter().product();
            let bytes: Vec<u8> = (0..count * 4).map(|b| b as u8).collect();
            let array = Array { ty: ElemType::F32, shape: shape.clone(), bytes: bytes.into() };
            let mut file = npy_header(array.ty, &array.shape);
            assert_eq!(file.len() % 64, 0);
            file.extend(array.bytes.iter());
            assert_eq!(read_bytes(&file).unwrap(), array);
            if count > 0 {
                file.pop();
                assert!(read_bytes(&file).unwrap_err().contains("it ends after"));
            }
        }
    }

    fn with_header(text: &str) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.bytes());
        file
    }

    /// Each of these took seconds, or more memory than the host has.
    #[test]
    fn headers_are_refused_quickly() {
        let start = std::time::Instant::now();
        let nested = |open: &str, close: &str| {
            let descr = format!("{}'<f4'{}", open.repeat(500), close.repeat(500));
            with_header(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}"))
        };
        for (file, why) in [
            (nested("[('a', ", ")]"), "structures"),
            (nested("(", ")"), "structures"),
            (nested("{'a': ", "}"), "structures"),
            (with_header("{'descr': '<f4', 'fortran_order': False, 'shape': ((((3,),),),), }"), "structures"),
            (with_header("{'descr': '<U8', 'fortran_order': False, 'shape': (3,), }"), "is not one of"),
            (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"), "too large"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "a header of 4294967295 bytes"),
            (b"\x93NUMPY".to_vec(), "not a NumPy array"),
            (b"PK\x03\x04 an archive".to_vec(), "does not begin as one"),
        ] {
            let error = read_bytes(&file).unwrap_err();
            assert!(error.contains(why), "`{error}` does not contain `{why}`");
        }
        assert!(start.elapsed().as_secs() < 5);
    }

    #[test]
    fn idx_files_are_big_endian() {
        let file = [0, 0, 0x0c, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe];
        let array = read_bytes(&file).unwrap();
        assert_eq!((array.ty, &array.shape[..]), (ElemType::I32, &[1, 2][..]));
        assert_eq!(&array.bytes[..], [2, 1, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(&read_bytes(&[0, 0, 8, 0, 7]).unwrap().bytes[..], [7]);
        let mut large = vec![0, 0, 8, 255];
        large.extend([255; 4 * 255]);
        for (file, why) in [
            (&file[..19], "it ends after 7 of 8 bytes"),
            (&file[..11], "not an IDX file"),
            (&[0, 0, 7, 0], "no type 0x07"),
            (&large, "too large"),
        ] {
            let error = read_bytes(file).unwrap_err();
            assert!(error.contains(why), "`{error}` does not contain `{why}`");
        }
    }

    #[test]
    fn files_may_be_packed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a-idx1-ubyte.gz");
        let mut file = flate2::write::GzEncoder::new(File::create(&path).unwrap(), flate2::Compression::fast());
        file.write_all(&[0, 0, 8, 1, 0, 0, 0, 3, 5, 6, 7]).unwrap();
        file.finish().unwrap();
        assert_eq!(&read(&path, None).unwrap().bytes[..], [5, 6, 7]);
        let opened = ArrayFile::open(&path, None).unwrap();
        assert!(!opened.is_plain());
        let whole = std::fs::read(&path).unwrap();
        for end in [whole.len() - 9, whole.len() - 1, 12] {
            std::fs::write(&path, &whole[..end]).unwrap();
            assert!(read(&path, None).is_err(), "{end} bytes are enough");
        }
    }

    #[test]
    fn the_checksum_of_an_archive_is_compared() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npz");
        let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        archive.start_file("x.npy", stored).unwrap();
        archive.write_all(&npy_header(ElemType::U8, &[4])).unwrap();
        archive.write_all(&[1, 2, 3, 250]).unwrap();
        archive.finish().unwrap();
        assert_eq!(&read(&path, None).unwrap().bytes[..], [1, 2, 3, 250]);
        let mut whole = std::fs::read(&path).unwrap();
        let at = whole.windows(4).position(|w| w == [1, 2, 3, 250]).unwrap();
        whole[at + 1] ^= 1;
        std::fs::write(&path, &whole).unwrap();
        assert!(read(&path, None).unwrap_err().contains("checksum"));
    }

    #[test]
    fn column_major_files_are_converted() {
        // Columns (1, 4), (2, 5), (3, 6) of [[1, 2, 3], [4, 5, 6]].
        assert_eq!(row_major(&[1, 4, 2, 5, 3, 6], &[2, 3], 1), [1, 2, 3, 4, 5, 6]);
    }
}
