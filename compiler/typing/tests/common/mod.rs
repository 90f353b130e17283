//! Programs of the repository as graphs, and the comparison of codelets.

#![allow(dead_code)] // Each test takes what it needs.

pub mod runs;
mod same;

pub use same::same_codelet;

use girder_elaborate::{Arguments, Array, Context, Library, Loader, Modules};
use girder_ir::graph::Graph;
use girder_ir::types::ElemType;
use girder_machine::Machine;
use girder_passes::pipeline::AnyStage;
use girder_source::{Diagnostics, Session, SourceMap, on_stack};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all `.gir` files below a folder of the repository, sorted.
pub fn programs(folder: &str) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![root().join(folder)], vec![]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "gir") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the machine that the head of a program names, or the default.
pub fn machine(text: &str, default: &str) -> Machine {
    let words: Vec<&str> = text.split_whitespace().collect();
    let named = words.windows(2).find(|w| w[0] == "--target").map(|w| w[1]);
    let replicas = words.windows(2).find(|w| w[0] == "--replicas").and_then(|w| w[1].parse().ok());
    let machine = girder_machine::builtin(named.unwrap_or(default)).expect("a built-in machine");
    machine.replicated(replicas.unwrap_or(1)).expect("processors for all replicas")
}

/// Returns the arguments that the head of a program states.
pub fn arguments(text: &str) -> Arguments {
    let words: Vec<&str> = text.lines().take_while(|l| l.starts_with("//")).flat_map(str::split_whitespace).collect();
    let stated = words.windows(2).filter(|w| w[0] == "--arg").filter_map(|w| w[1].split_once('='));
    Arguments { list: stated.map(|(name, value)| (name.into(), value.into())).collect() }
}

/// Elaborates a text; the error is the reports.
pub fn graph(path: &Path, text: &str, machine: &Machine, arguments: &Arguments) -> Result<Graph, String> {
    let run = || {
        let (mut map, mut diagnostics, session) = (SourceMap::default(), Diagnostics::default(), Session::default());
        let file = map.add(path, text).expect("small");
        let modules = Modules::load(&mut map, file, &Files, &session, &mut diagnostics);
        let mut cx = Context {
            map: &mut map,
            machine,
            session: &session,
            loader: &Files,
            arguments,
            diagnostics: &mut diagnostics,
            statement_times: None,
        };
        let made = match cx.diagnostics.check() {
            Ok(()) => girder_elaborate::elaborate_modules(&modules, &mut cx),
            Err(failed) => Err(failed),
        };
        let reports = || diagnostics.iter().map(|d| d.render(&map, false, 120)).collect::<String>();
        made.map_err(|_| reports())
    };
    on_stack(256 << 20, run).expect("a thread")
}

/// Prints a graph.
pub fn text(graph: &Graph, machine: &Machine) -> String {
    girder_text::print(&AnyStage::Graph(graph.clone()), machine)
}

struct Files;

impl Loader for Files {
    fn library(&self) -> &Library {
        static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::new(&girder_stdlib::MODULES));
        &LIBRARY
    }

    fn file(&self, importer: &Path, name: &str) -> Result<(PathBuf, String), String> {
        let path = importer.parent().unwrap_or(Path::new("")).join(name);
        std::fs::read_to_string(&path).map(|text| (path, text)).map_err(|e| e.to_string())
    }

    fn array(&self, importer: &Path, name: &str, key: Option<&str>, _most: u64) -> Result<Array, String> {
        let path = importer.parent().unwrap_or(Path::new("")).join(name);
        let mut bytes = std::fs::read(&path).map_err(|e| e.to_string())?;
        if let Some(key) = key {
            let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).map_err(|e| e.to_string())?;
            let mut entry = archive.by_name(&format!("{key}.npy")).map_err(|e| e.to_string())?;
            bytes = vec![];
            std::io::copy(&mut entry.by_ref(), &mut bytes).map_err(|e| e.to_string())?;
        }
        npy(&bytes).ok_or_else(|| format!("{name}: not an array"))
    }
}

/// Reads an array of NumPy's format, version 1.
fn npy(bytes: &[u8]) -> Option<Array> {
    let length = usize::from(u16::from_le_bytes([*bytes.get(8)?, *bytes.get(9)?]));
    let header = std::str::from_utf8(bytes.get(10..10 + length)?).ok()?;
    let between = |from: &str, to: &str| Some(header.split_once(from)?.1.split_once(to)?.0);
    let ty = match between("'descr': '", "'")? {
        "|u1" => ElemType::U8,
        "|b1" => ElemType::Bool,
        "<i4" => ElemType::I32,
        "<i8" => ElemType::I64,
        "<u4" => ElemType::U32,
        "<u8" => ElemType::U64,
        "<f4" => ElemType::F32,
        "<f8" => ElemType::F64,
        _ => return None,
    };
    let shape = between("'shape': (", ")")?.split(',').map(str::trim).filter(|n| !n.is_empty());
    let shape = shape.map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>()?;
    Some(Array { ty, shape, bytes: bytes.get(10 + length..)?.into() })
}
