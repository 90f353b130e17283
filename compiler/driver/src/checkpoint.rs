//! Checkpoints: the values of variables by name, in a `.npz` or `.safetensors` file.
//!
//! Invariant: a file appears under its name only when it is complete, in place of the one before; what a file holds is
//! compared with the variables before any element is read.

use crate::arrays::{self, Archive};
use crate::files::{plain, real_path, temporary};
use crate::outputs::entry_options;
use girder_elaborate::value::shaped;
use girder_engine::{Engine, EngineError};
use girder_ir::graph::{Graph, Var, VarClass};
use girder_ir::ids::{StreamId, VarId};
use girder_ir::types::ElemType;
use girder_passes::liveness::carried;
use girder_source::closest;
use rustc_hash::{FxHashMap, FxHashSet};
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use zip::ZipWriter;

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

/// A variable that keeps its value, or a remote buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SavedVariable {
    /// A variable.
    Var(VarId),
    /// A remote buffer.
    Remote(StreamId),
}

impl SavedVariable {
    /// Returns the name.
    pub fn name(self, graph: &Graph) -> &SmolStr {
        match self {
            SavedVariable::Var(var) => &graph.vars[var].name,
            SavedVariable::Remote(remote) => &graph.streams[remote].name,
        }
    }

    /// Returns the type of the elements.
    pub fn ty(self, graph: &Graph) -> ElemType {
        match self {
            SavedVariable::Var(var) => graph.vars[var].ty,
            SavedVariable::Remote(remote) => graph.streams[remote].ty,
        }
    }

    /// Returns the shape; the first axis of a remote buffer counts its rows.
    pub fn shape(self, graph: &Graph) -> Vec<u64> {
        match self {
            SavedVariable::Var(var) => graph.vars[var].shape.to_vec(),
            SavedVariable::Remote(remote) => {
                let stream = &graph.streams[remote];
                stream.rows.map(u64::from).into_iter().chain(stream.shape.iter().copied()).collect()
            }
        }
    }

    /// Returns the number of replicas that may have values of their own. Those of a `param` are equal.
    pub fn replicas(self, graph: &Graph) -> u32 {
        match self {
            SavedVariable::Var(var) if graph.vars[var].class == VarClass::Param => 1,
            _ => graph.replicas,
        }
    }

    /// Returns the bytes of all elements.
    pub fn bytes(self, graph: &Graph) -> u64 {
        self.shape(graph).iter().product::<u64>() * u64::from(self.ty(graph).bytes())
    }

    /// Returns the shape of `bytes` bytes of elements that an engine returns. If replicas differ, an axis of replicas
    /// comes first.
    pub fn shape_of(self, graph: &Graph, bytes: usize) -> Vec<u64> {
        let each = self.bytes(graph);
        let replicas = (bytes as u64).checked_div(each).unwrap_or(1);
        (replicas > 1).then_some(replicas).into_iter().chain(self.shape(graph)).collect()
    }

    /// Returns the elements in an engine.
    pub fn get(self, engine: &Engine) -> Result<Vec<u8>, EngineError> {
        match self {
            SavedVariable::Var(var) => engine.get(var),
            SavedVariable::Remote(remote) => engine.get_remote(remote),
        }
    }

    /// Sets the elements in an engine.
    pub fn set(self, engine: &mut Engine, bytes: &[u8]) -> Result<(), EngineError> {
        match self {
            SavedVariable::Var(var) => engine.set(var, bytes),
            SavedVariable::Remote(remote) => engine.set_remote(remote, bytes),
        }
    }
}

/// Returns the remote buffers of a graph.
pub fn remotes(graph: &Graph) -> impl Iterator<Item = SavedVariable> {
    graph.streams.iter().filter(|(_, s)| s.rows.is_some()).map(|(id, _)| SavedVariable::Remote(id))
}

/// Returns what a checkpoint holds, in the order of the graph: params, states, remote buffers but those of
/// `#[offload]`, and every other variable through which one run depends on the run before it. Such a temporary becomes
/// persistent, under its name, in the first passes.
pub fn kept(graph: &Graph) -> Vec<SavedVariable> {
    let carried = carried(graph);
    let is_kept = |&(id, v): &(VarId, &Var)| match v.class {
        VarClass::Param | VarClass::State => true,
        VarClass::Var | VarClass::Temp => carried.binary_search(&id).is_ok(),
        VarClass::Const => false,
    };
    let remotes =
        remotes(graph).filter(|kept| !matches!(kept, SavedVariable::Remote(r) if graph.streams[*r].offloaded));
    graph.vars.iter().filter(is_kept).map(|(id, _)| SavedVariable::Var(id)).chain(remotes).collect()
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
        if file.fill_buf().map_err(|e| e.to_string())?.is_empty() {
            return Err("it is empty".into());
        }
        file.read_exact(&mut len).map_err(|_| wrong(&"it ends in its header"))?;
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
    pub fn compare(&self, graph: &Graph) -> (Vec<SavedVariable>, Vec<String>) {
        let carried = carried(graph);
        let settable = |&(id, v): &(VarId, &Var)| match v.class {
            VarClass::Param | VarClass::State | VarClass::Var => true,
            VarClass::Temp => carried.binary_search(&id).is_ok(),
            VarClass::Const => false,
        };
        let held: FxHashMap<&str, &Entry> = self.entries.iter().map(|e| (e.name.as_str(), e)).collect();
        let (mut fitting, mut wrong) = (vec![], vec![]);
        let vars = graph.vars.iter().filter(settable).map(|(id, _)| SavedVariable::Var(id));
        for kept in vars.chain(remotes(graph)) {
            let is_needed = |v| matches!(graph.vars[v].class, VarClass::Param | VarClass::State);
            let needed = matches!(kept, SavedVariable::Var(v) if is_needed(v));
            let (name, ty, shape) = (kept.name(graph), kept.ty(graph), kept.shape(graph));
            match held.get(name.as_str()) {
                None if needed => wrong.push(format!("it has no `{name}`, which is {}", shaped(ty, &shape))),
                None => {}
                Some(e) if e.ty == Ok(ty) && fits(&e.shape, &shape, kept.replicas(graph)) => fitting.push(kept),
                Some(e) => {
                    let (wanted, found) = (shaped(ty, &shape), e.type_text());
                    let saved = e.replicas_of(ty, &shape);
                    let of = saved.map_or(String::new(), |n| format!(", one for each of {n} replicas"));
                    wrong.push(format!("`{name}` is {found} in it{of}, but {wanted} in the program"));
                }
            }
        }
        let names = || {
            let vars = graph.vars.iter().filter(settable).map(|(_, v)| v.name.as_str());
            vars.chain(remotes(graph).map(|kept| kept.name(graph).as_str()))
        };
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

    /// Returns the number of replicas with which the file seems to have been saved, if it has values for each replica
    /// that do not fit because the number is another one.
    pub fn other_replicas(&self, graph: &Graph) -> Option<u64> {
        let vars = graph.vars.keys().map(SavedVariable::Var).chain(remotes(graph));
        let saved = |kept: SavedVariable| {
            let e = self.entries.iter().find(|e| e.name == kept.name(graph).as_str())?;
            e.replicas_of(kept.ty(graph), &kept.shape(graph)).filter(|&n| n != u64::from(graph.replicas))
        };
        vars.into_iter().find_map(saved)
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

/// Returns whether an array of a shape holds a variable of the shape `each`, or one value of it for each replica.
pub fn fits(shape: &[u64], each: &[u64], replicas: u32) -> bool {
    let of_each = shape.split_first().is_some_and(|(&n, rest)| n == u64::from(replicas) && rest == each);
    shape == each || (replicas > 1 && of_each)
}

impl Entry {
    /// Returns the number of replicas for each of which it has a value of a variable; `None` if it has no such values.
    fn replicas_of(&self, ty: ElemType, each: &[u64]) -> Option<u64> {
        let (&n, rest) = self.shape.split_first()?;
        (self.ty == Ok(ty) && n > 1 && rest == each).then_some(n)
    }

    fn type_text(&self) -> String {
        match &self.ty {
            Ok(ty) => shaped(*ty, &self.shape),
            Err(name) => format!("{name}{:?}", self.shape),
        }
    }
}

/// Reports a file that cannot be written, before a run whose results it is to hold; changes nothing.
///
/// # Errors
/// As [`save`].
pub fn writable(path: &Path) -> io::Result<()> {
    match (Format::of(path), path.is_dir()) {
        (None, _) => Err(no_format()),
        (_, true) => Err(Error::new(ErrorKind::IsADirectory, "it is a directory")),
        _ => temporary(&real_path(path)).map(|_| ()),
    }
}

fn no_format() -> Error {
    Error::new(ErrorKind::InvalidFilename, "its name ends neither in `.npz` nor in `.safetensors`")
}

/// Writes variables and remote buffers to a file; `read` returns the elements of one. The file is complete or
/// unchanged. If the path is a link, the file to which it leads is written.
///
/// # Errors
/// If the file cannot be written; the error has the kind [`ErrorKind::InvalidFilename`] if its name has a wrong ending.
pub fn save(
    path: &Path,
    graph: &Graph,
    kept: &[SavedVariable],
    read: impl Fn(SavedVariable) -> Result<Vec<u8>, String>,
) -> io::Result<()> {
    let path = &real_path(path);
    let format = Format::of(path).ok_or_else(no_format)?;
    let part = temporary(path)?;
    match format {
        Format::Npz => save_npz(part.as_file(), graph, kept, &read)?,
        Format::Safetensors => {
            // The library puts another file in the place of this one, which only its owner may read.
            let permissions = part.as_file().metadata()?.permissions();
            save_safetensors(part.path(), graph, kept, &read)?;
            std::fs::set_permissions(part.path(), permissions)?;
        }
    }
    File::open(part.path())?.sync_all()?;
    part.persist(path).map(|_| ()).map_err(|e| plain(e.error))
}

/// Reads the elements of a variable.
type ReadKept<'r> = &'r dyn Fn(SavedVariable) -> Result<Vec<u8>, String>;

fn save_npz(file: &File, graph: &Graph, all: &[SavedVariable], read: ReadKept) -> io::Result<()> {
    let mut archive = ZipWriter::new(BufWriter::new(file));
    for kept in all {
        let bytes = read(*kept).map_err(Error::other)?;
        let options = entry_options(bytes.len() as u64);
        archive.start_file(format!("{}.npy", kept.name(graph)), options).map_err(Error::from)?;
        archive.write_all(&arrays::npy_header(kept.ty(graph), &kept.shape_of(graph, bytes.len())))?;
        archive.write_all(&bytes)?;
    }
    archive.finish().map_err(Error::from)?.flush()
}

fn save_safetensors(path: &Path, graph: &Graph, all: &[SavedVariable], read: ReadKept) -> io::Result<()> {
    let failed = RefCell::new(None);
    let tensor = |&kept: &SavedVariable| match dtype(kept.ty(graph)) {
        Some(dtype) => {
            // Only replicas can differ, which their elements show.
            let bytes = if graph.replicas > 1 { read(kept)?.len() } else { kept.bytes(graph) as usize };
            let shape = kept.shape_of(graph, bytes).iter().map(|&n| n as usize).collect();
            Ok((kept.name(graph).to_string(), Lazy { kept, dtype, shape, bytes, read, failed: &failed }))
        }
        None => Err(format!("`{}` holds {}, which safetensors does not have", kept.name(graph), kept.ty(graph))),
    };
    let tensors: Vec<_> = all.iter().map(tensor).collect::<Result<_, String>>().map_err(Error::other)?;
    safetensors::serialize_to_file(tensors, None, path).map_err(|e| match e {
        SafeTensorError::IoError(e) => plain(e),
        e => Error::other(e.to_string()),
    })?;
    failed.into_inner().map_or(Ok(()), |e: String| Err(Error::other(e)))
}

/// A variable whose elements are read when they are written.
struct Lazy<'r> {
    kept: SavedVariable,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: usize,
    read: ReadKept<'r>,
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
        let elements = (self.read)(self.kept).unwrap_or_else(|e| {
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
