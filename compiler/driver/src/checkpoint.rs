//! Checkpoints: the values of variables by name, in a `.npz` or `.safetensors` file.
//!
//! Invariant: a file appears under its name only when it is complete, in place of the one before; what a file holds is
//! compared with the variables before any element is read.

use crate::arrays::{self, Archive};
use girder_elaborate::value::shaped;
use girder_ir::graph::{Graph, Var, VarClass};
use girder_ir::ids::VarId;
use girder_ir::types::ElemType;
use girder_passes::liveness::carried;
use girder_source::closest;
use rustc_hash::{FxHashMap, FxHashSet};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::NamedTempFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// The form of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// NumPy's archive of arrays.
    Npz,
    /// One file with a JSON header.
    Safetensors,
}

impl Format {
    /// Returns the form that a file name states.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "npz" => Some(Format::Npz),
            "safetensors" => Some(Format::Safetensors),
            _ => None,
        }
    }
}

/// The bytes of the longest header of a `.safetensors` file that is read.
const LONGEST_HEADER: u64 = 1 << 26;

/// Returns the variables that a checkpoint holds: params, states, and every other variable through which one run
/// depends on the one before. In the order of the graph.
pub fn kept(graph: &Graph) -> Vec<VarId> {
    let carried = carried(graph);
    let is_kept = |&(id, v): &(VarId, &Var)| match v.class {
        VarClass::Param | VarClass::State => true,
        VarClass::Var => carried.binary_search(&id).is_ok(),
        VarClass::Const | VarClass::Temp => false,
    };
    graph.vars.iter().filter(is_kept).map(|(id, _)| id).collect()
}

/// A checkpoint whose elements have not been read yet.
pub struct Checkpoint {
    /// Names, types and shapes; the type is text if variables cannot have it.
    entries: Vec<Entry>,
    source: Source,
}

struct Entry {
    name: String,
    ty: Result<ElemType, String>,
    shape: Vec<u64>,
    /// The number of the array in its archive, or its first byte in the file.
    at: u64,
}

enum Source {
    Npz(Box<Archive>),
    Safetensors(BufReader<File>),
}

impl Checkpoint {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Checkpoint, String> {
        match Format::of(path) {
            Some(Format::Npz) => Checkpoint::open_npz(path),
            Some(Format::Safetensors) => Checkpoint::open_safetensors(path),
            None => Err("its name ends neither in `.npz` nor in `.safetensors`".into()),
        }
    }

    fn open_npz(path: &Path) -> Result<Checkpoint, String> {
        let mut archive = arrays::open_archive(path)?;
        let mut entries = vec![];
        for (name, index) in arrays::names(&archive) {
            let header = arrays::header_in(&mut archive, index).map_err(|e| format!("`{name}`: {e}"))?;
            entries.push(Entry { name, ty: Ok(header.ty), shape: header.shape, at: index as u64 });
        }
        Ok(Checkpoint { entries, source: Source::Npz(Box::new(archive)) })
    }

    fn open_safetensors(path: &Path) -> Result<Checkpoint, String> {
        let wrong = |e: &dyn std::fmt::Display| format!("not a safetensors file: {e}");
        let mut file = BufReader::new(File::open(path).map_err(|e| e.to_string())?);
        let mut len = [0; 8];
        file.read_exact(&mut len).map_err(|e| wrong(&e))?;
        let len = u64::from_le_bytes(len);
        if len > LONGEST_HEADER {
            return Err(wrong(&format_args!("a header of {len} bytes")));
        }
        let mut header = vec![];
        file.by_ref().take(len).read_to_end(&mut header).map_err(|e| wrong(&e))?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| wrong(&e))?;
        let entry = |(name, info): (String, &TensorInfo)| Entry {
            name,
            ty: type_of(info.dtype),
            shape: info.shape.iter().map(|&n| n as u64).collect(),
            at: 8 + len + info.data_offsets.0 as u64,
        };
        let mut entries: Vec<Entry> = metadata.tensors().into_iter().map(entry).collect();
        entries.sort_by_key(|e| e.at);
        Ok(Checkpoint { entries, source: Source::Safetensors(file) })
    }

    /// Returns the variables whose values the file holds, and in what the two differ otherwise, one line each. A
    /// variable that is neither a param nor a state may be missing.
    pub fn compare(&self, graph: &Graph) -> (Vec<VarId>, Vec<String>) {
        let settable = |v: &&Var| v.is_persistent() && v.class != VarClass::Const;
        let held: FxHashMap<&str, &Entry> = self.entries.iter().map(|e| (e.name.as_str(), e)).collect();
        let (mut fitting, mut wrong) = (vec![], vec![]);
        for (id, v) in graph.vars.iter().filter(|(_, v)| settable(v)) {
            let needed = matches!(v.class, VarClass::Param | VarClass::State);
            match held.get(v.name.as_str()) {
                None if needed => wrong.push(format!("it has no `{}`, which is {}", v.name, shaped(v.ty, &v.shape))),
                None => {}
                Some(e) if e.ty == Ok(v.ty) && e.shape == v.shape[..] => fitting.push(id),
                Some(e) => {
                    let (wanted, found) = (shaped(v.ty, &v.shape), e.type_text());
                    wrong.push(format!("`{}` is {found} in it, but {wanted} in the program", v.name));
                }
            }
        }
        let names = || graph.vars.values().filter(settable).map(|v| v.name.as_str());
        let known: FxHashSet<&str> = names().collect();
        for e in self.entries.iter().filter(|e| !known.contains(e.name.as_str())) {
            // Similar names of the first few are enough, as each is a search.
            let near =
                if wrong.len() < 40 { closest(&e.name, names().filter(|n| !held.contains_key(n))) } else { None };
            let near = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            wrong.push(format!("it has `{}`, {}, which the program does not have{near}", e.name, e.type_text()));
        }
        (fitting, wrong)
    }

    /// Reads the elements of a variable that fits.
    pub fn elements(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let entry = self.entries.iter().find(|e| e.name == name).ok_or_else(|| format!("it has no `{name}`"))?;
        match &mut self.source {
            Source::Npz(archive) => arrays::elements_in(archive, entry.at as usize),
            Source::Safetensors(file) => {
                let size = entry.ty.clone()?.bytes() as u64 * entry.shape.iter().product::<u64>();
                let mut bytes = Vec::new();
                let room = usize::try_from(size).ok().filter(|&n| bytes.try_reserve_exact(n).is_ok());
                room.ok_or_else(|| format!("no memory for the {size} bytes of `{name}`"))?;
                file.seek(SeekFrom::Start(entry.at)).map_err(|e| e.to_string())?;
                file.take(size).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
                match bytes.len() as u64 == size {
                    true => Ok(bytes),
                    false => Err(format!("`{name}` ends after {} of {size} bytes", bytes.len())),
                }
            }
        }
    }
}

impl Entry {
    fn type_text(&self) -> String {
        match &self.ty {
            Ok(ty) => shaped(*ty, &self.shape),
            Err(name) => format!("{name}{:?}", self.shape),
        }
    }
}

/// Reports a file that cannot be written, before a run whose results it is to hold; changes nothing.
pub fn writable(path: &Path) -> Result<(), String> {
    match (Format::of(path), path.is_dir()) {
        (None, _) => Err("its name ends neither in `.npz` nor in `.safetensors`".into()),
        (_, true) => Err("it is a directory".into()),
        _ => temporary(path).map(|_| ()).map_err(|e| e.to_string()),
    }
}

/// Writes variables to a file; `read` returns the elements of one. The file is complete or unchanged.
pub fn save(
    path: &Path,
    graph: &Graph,
    vars: &[VarId],
    read: impl Fn(VarId) -> Result<Vec<u8>, String>,
) -> Result<(), String> {
    let file = temporary(path).map_err(|e| e.to_string())?;
    let vars = vars.iter().map(|&id| (id, &graph.vars[id]));
    match Format::of(path) {
        Some(Format::Npz) => save_npz(file.as_file(), vars, &read)?,
        Some(Format::Safetensors) => save_safetensors(file.path(), vars, &read)?,
        None => return Err("its name ends neither in `.npz` nor in `.safetensors`".into()),
    }
    file.as_file().sync_all().map_err(|e| e.to_string())?;
    file.persist(path).map(|_| ()).map_err(|e| e.to_string())
}

/// Makes a file beside another one, which it is to replace.
fn temporary(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
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
    builder.tempfile_in(folder)
}

fn save_npz<'g>(
    file: &File,
    vars: impl Iterator<Item = (VarId, &'g Var)>,
    read: &dyn Fn(VarId) -> Result<Vec<u8>, String>,
) -> Result<(), String> {
    let mut archive = ZipWriter::new(BufWriter::new(file));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default());
    for (id, v) in vars {
        let options = options.large_file(v.bytes() >= u32::MAX as u64);
        archive.start_file(format!("{}.npy", v.name), options).map_err(|e| e.to_string())?;
        archive.write_all(&arrays::npy_header(v.ty, &v.shape)).map_err(|e| e.to_string())?;
        archive.write_all(&read(id)?).map_err(|e| e.to_string())?;
    }
    let mut out = archive.finish().map_err(|e| e.to_string())?;
    out.flush().map_err(|e| e.to_string())
}

fn save_safetensors<'g>(
    path: &Path,
    vars: impl Iterator<Item = (VarId, &'g Var)>,
    read: &dyn Fn(VarId) -> Result<Vec<u8>, String>,
) -> Result<(), String> {
    let failed = RefCell::new(None);
    let tensor = |(id, v): (VarId, &'g Var)| match dtype(v.ty) {
        Some(dtype) => {
            let shape = v.shape.iter().map(|&n| n as usize).collect();
            Ok((v.name.to_string(), Lazy { id, dtype, shape, bytes: v.bytes() as usize, read, failed: &failed }))
        }
        None => Err(format!("`{}` holds {}, which safetensors does not have", v.name, v.ty)),
    };
    let tensors: Vec<_> = vars.map(tensor).collect::<Result<_, String>>()?;
    safetensors::serialize_to_file(tensors, None, path).map_err(|e| e.to_string())?;
    failed.into_inner().map_or(Ok(()), Err)
}

/// A variable whose elements are read when they are written.
struct Lazy<'r> {
    id: VarId,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: usize,
    read: &'r dyn Fn(VarId) -> Result<Vec<u8>, String>,
    failed: &'r RefCell<Option<String>>,
}

impl safetensors::View for Lazy<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let elements = (self.read)(self.id).unwrap_or_else(|e| {
            *self.failed.borrow_mut() = Some(e);
            vec![0; self.bytes]
        });
        elements.into()
    }

    fn data_len(&self) -> usize {
        self.bytes
    }
}

fn dtype(ty: ElemType) -> Option<Dtype> {
    TYPES.iter().find(|t| t.0 == ty).map(|t| t.1)
}

fn type_of(dtype: Dtype) -> Result<ElemType, String> {
    let found = TYPES.iter().find(|t| t.1 == dtype).map(|t| t.0);
    found.ok_or_else(|| format!("{dtype:?}").to_lowercase())
}

/// The types that both sides have.
const TYPES: [(ElemType, Dtype); 12] = [
    (ElemType::Bool, Dtype::BOOL),
    (ElemType::U8, Dtype::U8),
    (ElemType::U16, Dtype::U16),
    (ElemType::U32, Dtype::U32),
    (ElemType::U64, Dtype::U64),
    (ElemType::I8, Dtype::I8),
    (ElemType::I16, Dtype::I16),
    (ElemType::I32, Dtype::I32),
    (ElemType::I64, Dtype::I64),
    (ElemType::F16, Dtype::F16),
    (ElemType::F32, Dtype::F32),
    (ElemType::F64, Dtype::F64),
];
