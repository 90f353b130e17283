//! NumPy's array files: `.npy` files and the arrays of `.npz` archives.
//!
//! Invariant: arrays are row-major and little-endian in memory, whatever the file's layout. A malformed file is an
//! error, and no more memory is allocated than the file has bytes.

use girder_elaborate::Array;
use girder_ir::types::ElemType;
use npyz::{DType, Endianness, NpyFile, Order, TypeChar};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// Reads an array. `key` names an array of an archive; it is optional if the archive holds only one.
pub fn read(path: &Path, key: Option<&str>) -> Result<Array, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let is_archive = path.extension().is_some_and(|e| e == "npz");
    match (is_archive, key) {
        (false, Some(k)) => Err(format!("a `.npy` file holds one array, so `{k}` cannot be picked from it")),
        (false, None) => read_npy(BufReader::new(file)),
        (true, key) => read_npz(file, key),
    }
}

fn read_npz(file: File, key: Option<&str>) -> Result<Array, String> {
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| e.to_string())?;
    let names: Vec<String> = archive.file_names().flatten().map(|n| n.trim_end_matches(".npy").to_string()).collect();
    let key = match (key, &names[..]) {
        (Some(k), _) => k,
        (None, [one]) => one,
        (None, _) => return Err(format!("it holds {}; name one", names.join(", "))),
    };
    let entry = archive.by_name(&format!("{key}.npy"));
    let entry = entry.map_err(|_| format!("it has no array `{key}`; it holds {}", names.join(", ")))?;
    read_npy(entry)
}

/// Reads an array from an open `.npy` file.
pub fn read_npy(from: impl Read) -> Result<Array, String> {
    let npy = NpyFile::new(from).map_err(|e| format!("not a NumPy array: {e}"))?;
    let (dtype, shape, order) = (npy.dtype(), npy.shape().to_vec(), npy.order());
    let (ty, big) = element_type(&dtype)?;
    let count = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
    let size = count.and_then(|n| n.checked_mul(ty.bytes() as u64)).ok_or("its shape is too large")?;
    let mut bytes = Vec::new();
    npy.into_inner().take(size).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 != size {
        return Err(format!("it ends after {} of {size} bytes", bytes.len()));
    }
    if big {
        bytes.chunks_exact_mut(ty.bytes() as usize).for_each(<[u8]>::reverse);
    }
    if order == Order::Fortran && shape.len() > 1 {
        bytes = row_major(&bytes, &shape, ty.bytes() as usize);
    }
    if ty == ElemType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Ok(Array { ty, shape, bytes: bytes.into() })
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
pub fn write(path: &Path, array: &Array) -> Result<(), String> {
    let mut file = File::create(path).map_err(|e| e.to_string())?;
    let header = npy_header(array.ty, &array.shape);
    file.write_all(&header).and_then(|()| file.write_all(&array.bytes)).map_err(|e| e.to_string())
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

    #[test]
    fn written_arrays_read_back() {
        for shape in [vec![], vec![3], vec![2, 3], vec![0, 4]] {
            let count: u64 = shape.iter().product();
            let bytes: Vec<u8> = (0..count * 4).map(|b| b as u8).collect();
            let array = Array { ty: ElemType::F32, shape: shape.clone(), bytes: bytes.into() };
            let mut file = npy_header(array.ty, &array.shape);
            assert_eq!(file.len() % 64, 0);
            file.extend(array.bytes.iter());
            assert_eq!(read_npy(&file[..]).unwrap(), array);
            if count > 0 {
                file.pop();
                assert!(read_npy(&file[..]).unwrap_err().contains("it ends after"));
            }
        }
    }

    #[test]
    fn column_major_files_are_converted() {
        // Columns (1, 4), (2, 5), (3, 6) of [[1, 2, 3], [4, 5, 6]].
        assert_eq!(row_major(&[1, 4, 2, 5, 3, 6], &[2, 3], 1), [1, 2, 3, 4, 5, 6]);
    }
}
