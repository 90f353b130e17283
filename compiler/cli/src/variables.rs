//! The variables of a run on the command line: `--set`, `--get`, `--load`, `--save`.
//!
//! Invariant: names, types, shapes and file names are checked before the program is compiled, and no element of a file
//! is read before that. Variables are kept by name, because passes may renumber them.

use crate::files::{array_of, cannot_write, output};
use crate::options::pair;
use crate::report::{Done, Report, Stop, print};
use girder::arrays::ArrayFile;
use girder::checkpoint::{self, Checkpoint, SavedVariable};
use girder::engine::Engine;
use girder::ir::graph::{Graph, Var, VarClass};
use girder::ir::types::ElemType;
use girder::outputs::Output;
use girder::shaped;
use std::path::{Path, PathBuf};

/// The variables that a command line sets, gets, loads and saves.
#[derive(Default)]
pub struct Variables {
    /// `--load`, with the names of the variables that the file holds.
    load: Option<(PathBuf, Checkpoint, Vec<String>)>,
    /// `--set`: names, and the files as the user named them.
    sets: Vec<(String, String, ArrayFile)>,
    gets: Vec<(String, Option<Output>)>,
    /// `--save`, with the names of the variables that the file is to hold.
    save: Option<(PathBuf, Vec<String>)>,
}

impl Variables {
    /// Adds `--load file`.
    pub fn load(&mut self, path: &Path, graph: &Graph, report: &Report) -> Done {
        let name = path.display();
        let checkpoint = Checkpoint::open(path).map_err(|e| unreadable_checkpoint(path, &e, report))?;
        let (fitting, wrong) = checkpoint.compare(graph);
        if !wrong.is_empty() {
            // One line each, up to a screenful.
            let shown = wrong.iter().take(40).map(|line| format!("\n- {line}")).collect::<String>();
            let more = wrong.len().saturating_sub(40);
            let more = if more > 0 { format!("\n- and {more} more differences") } else { String::new() };
            let message = format!("{name} does not fit the program:{shown}{more}");
            let help = match checkpoint.other_replicas(graph) {
                None => "load a file that this program saved".to_string(),
                Some(n) => format!(
                    "the program runs with {}, and the file has values of {n}: run it with `--replicas {n}`",
                    if graph.replicas == 1 {
                        "one replica".to_string()
                    } else {
                        format!("{} replicas", graph.replicas)
                    }
                ),
            };
            let help = format!("{help}; `--set name=file.npz:name` sets single variables");
            return Err(report.error("run::wrong_checkpoint", message, help));
        }
        self.load = Some((path.into(), checkpoint, names(graph, &fitting)));
        Ok(())
    }

    /// Adds `--set name=file`.
    pub fn set(&mut self, text: &str, graph: &Graph, report: &Report) -> Done {
        let (name, file) = pair(report, "--set", text)?;
        let kept = variable(graph, name, "--set", report)?;
        if matches!(kept, SavedVariable::Var(v) if graph.vars[v].class == VarClass::Const) {
            let message = format!("`--set {name}`: `{name}` is a constant");
            return Err(report.error("run::constant", message, "declare it with `var`"));
        }
        let array = open_array(file, "--set", report)?;
        check_array(&array, kept, graph, file, report)?;
        self.sets.push((name.into(), file.into(), array));
        Ok(())
    }

    /// Adds `--get name=file` or `--get name`.
    pub fn get(&mut self, text: &str, graph: &Graph, report: &Report) -> Done {
        let (name, file) = text.split_once('=').map_or((text, None), |(name, file)| (name, Some(file)));
        variable(graph, name, "--get", report)?;
        let output = file.map(|file| output(file, name, "--get", report)).transpose()?;
        self.gets.push((name.into(), output));
        Ok(())
    }

    /// Adds `--save file`.
    pub fn save(&mut self, path: &Path, graph: &Graph, report: &Report) -> Done {
        checkpoint::writable(path).map_err(|e| cannot_write(path, &e, report))?;
        let kept = checkpoint::kept(graph);
        if kept.is_empty() {
            let message = "`--save`: the program keeps nothing from run to run";
            let help = "declare what a checkpoint is to hold with `param` or `state`";
            return Err(report.error("run::nothing_to_save", message, help));
        }
        self.save = Some((path.into(), names(graph, &kept)));
        Ok(())
    }

    /// Sets the variables of an engine.
    pub fn fill(&mut self, engine: &mut Engine, graph: &Graph, report: &Report) -> Done {
        let mut set = |name: &str, bytes: &[u8]| {
            variable(graph, name, "--set", report)?.set(engine, bytes).map_err(|e| failed(e, report))
        };
        if let Some((path, mut checkpoint, names)) = self.load.take() {
            for name in names {
                let bytes = checkpoint.elements(&name).map_err(|e| unreadable_checkpoint(&path, &e, report))?;
                set(&name, &bytes)?;
            }
        }
        for (name, file, array) in self.sets.drain(..) {
            set(&name, &array.elements().map_err(|e| unreadable(&file, "--set", &e, report))?)?;
        }
        Ok(())
    }

    /// Writes or prints the variables of an engine after the run.
    pub fn finish(&self, engine: &Engine, graph: &Graph, report: &Report) -> Done {
        for (name, file) in &self.gets {
            let kept = variable(graph, name, "--get", report)?;
            let bytes = kept.get(engine).map_err(|e| failed(e, report))?;
            let (ty, shape) = (kept.ty(graph), kept.shape_of(graph, bytes.len()));
            match file {
                None => print(&format!("{name} {}\n", girder::show(ty, &shape, &bytes)))?,
                Some(output) => {
                    let written = output.write(ty, &shape, &mut &bytes[..]);
                    written.map_err(|e| cannot_write(output.path(), &e, report))?;
                }
            }
        }
        let Some((path, names)) = &self.save else { return Ok(()) };
        let vars = names.iter().map(|name| variable(graph, name, "--save", report));
        let vars = vars.collect::<Result<Vec<SavedVariable>, Stop>>()?;
        let read = |kept: SavedVariable| kept.get(engine).map_err(|e| e.to_string());
        checkpoint::save(path, graph, &vars, read).map_err(|e| cannot_write(path, &e, report))
    }
}

fn names(graph: &Graph, all: &[SavedVariable]) -> Vec<String> {
    all.iter().map(|kept| kept.name(graph).to_string()).collect()
}

fn failed(error: girder::engine::EngineError, report: &Report) -> Stop {
    report.emit(&error.diagnostic(), &girder::source::SourceMap::default());
    Stop::User
}

/// Finds a remote buffer by name, or a variable that is persistent or keeps its value from run to run.
fn variable(graph: &Graph, name: &str, flag: &str, report: &Report) -> Result<SavedVariable, Stop> {
    if let Some(remote) = checkpoint::remotes(graph).find(|kept| kept.name(graph) == name) {
        return Ok(remote);
    }
    match graph.vars.iter().find(|(_, v)| v.name == name) {
        Some((id, v)) if v.is_persistent() => Ok(SavedVariable::Var(id)),
        Some(_) => {
            // The first passes make a temporary persistent that keeps its value.
            let kept = checkpoint::kept(graph).into_iter().find(|kept| kept.name(graph) == name);
            kept.ok_or_else(|| no_variable(graph, name, flag, Some(name), report))
        }
        None => {
            let end = format!(".{name}");
            let temporary = graph.vars.values().find(|v| !v.is_persistent() && v.name.ends_with(&end));
            Err(no_variable(graph, name, flag, temporary.map(|v| v.name.as_str()), report))
        }
    }
}

/// Reports a name that no variable with a value has. `temporary` is the temporary that is meant.
fn no_variable(graph: &Graph, name: &str, flag: &str, temporary: Option<&str>, report: &Report) -> Stop {
    // Constants of bodies are persistent as well, but have no name that a user wrote.
    let is_on_top = |v: &Var| graph.origins.get(v.origin).parent.is_none() && !v.name.starts_with("constant");
    let is_named = |v: &Var| matches!(v.class, VarClass::Param | VarClass::State) || is_on_top(v);
    let known = graph.vars.values().filter(|v| v.is_persistent());
    let mut names: Vec<&str> = known.filter(|v| is_named(v)).map(|v| v.name.as_str()).collect();
    for kept in checkpoint::kept(graph) {
        let name = kept.name(graph).as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let remotes = graph.streams.values().filter(|s| s.rows.is_some() && !s.offloaded);
    for remote in remotes {
        if !names.contains(&remote.name.as_str()) {
            names.push(&remote.name);
        }
    }
    let end = format!(".{name}");
    let longer: Vec<&str> = names.iter().copied().filter(|n| n.ends_with(&end)).take(4).collect();
    let why = match temporary {
        Some(t) if t == name => "the variable is a temporary and keeps no value".to_string(),
        Some(t) if longer.is_empty() => {
            format!("the variable does not exist; `{t}` is a temporary and keeps no value")
        }
        _ => "the variable does not exist".to_string(),
    };
    let near = girder::source::closest(name, names.iter().copied());
    let all = match names.len() {
        0 => String::new(),
        1..=40 => format!("variables that keep their values are {}", names.join(", ")),
        n => format!("variables that keep their values are {} and {} more", names[..40].join(", "), n - 40),
    };
    let help = match (near, names.len()) {
        _ if !longer.is_empty() => format!("did you mean `{}`?", longer.join("` or `")),
        _ if temporary.is_some() => {
            let write = "write it to a variable at the top of the module, `kept <- …;`, or print it";
            if all.is_empty() { write.to_string() } else { format!("{write}; {all}") }
        }
        (_, 0) => "declare it at the top of the module: `var x: f32[4];`".to_string(),
        (Some(near), 12..) => format!("did you mean `{near}`?"),
        _ => all,
    };
    report.error("run::no_variable", format!("`{flag} {name}`: {why}"), help)
}

/// Opens an array: `file.npy`, `file.npz` or `file.npz:key`.
pub fn open_array(text: &str, flag: &str, report: &Report) -> Result<ArrayFile, Stop> {
    let (path, key) = array_of(text);
    ArrayFile::open(Path::new(path), key).map_err(|e| unreadable(path, flag, &e, report))
}

/// Reports an array that cannot be read.
pub fn unreadable(path: &str, flag: &str, error: &str, report: &Report) -> Stop {
    let help = "`.npy` and IDX files, also packed as `.gz`, and arrays of `.npz` files as `file.npz:name` can be read";
    report.error("run::cannot_read", format!("`{flag}`: cannot read {path}: {error}"), help)
}

fn unreadable_checkpoint(path: &Path, error: &str, report: &Report) -> Stop {
    let help = "`.npz` and `.safetensors` files can be loaded";
    report.error("run::cannot_read", format!("`--load`: cannot read {}: {error}", path.display()), help)
}

/// Checks that an array has the elements of a variable, or those of each replica.
fn check_array(array: &ArrayFile, kept: SavedVariable, graph: &Graph, file: &str, report: &Report) -> Done {
    let (ty, shape, replicas) = (kept.ty(graph), &kept.shape(graph)[..], kept.replicas(graph));
    let header = &array.header;
    let len = header.bytes / header.ty.bytes() as u64;
    let flat = len == shape.iter().product::<u64>() && (len == 1 || header.shape.len() == 1);
    let fits = checkpoint::fits(&header.shape, shape, replicas) || flat;
    if header.ty == ty && fits {
        return Ok(());
    }
    let (found, wanted) = (shaped(header.ty, &header.shape), shaped(ty, shape));
    let mut saved = "x".to_string();
    if header.ty != ty {
        saved += &format!(".astype(np.{})", numpy_name(ty));
    }
    let help = if header.ty == ty && checkpoint::fits(&header.shape, shape, graph.replicas) {
        "replicas keep equal values of a `param`: save one of them, as by `np.save(file, x[0])`, or declare a `state`, \
         of which each replica may have its own"
            .to_string()
    } else if len != shape.iter().product::<u64>() {
        format!("save an array of the shape {shape:?} with NumPy: `np.save(file, {saved})`")
    } else {
        let reshaped = if fits { String::new() } else { format!(".reshape({shape:?})") };
        format!("save it with NumPy in the variable's type and shape: `np.save(file, {saved}{reshaped})`")
    };
    let help = match replicas {
        1 => help,
        _ => {
            let each: Vec<u64> = std::iter::once(replicas.into()).chain(shape.iter().copied()).collect();
            format!("{help}; an array of the shape {each:?} has a value for each replica")
        }
    };
    let name = kept.name(graph);
    Err(report.error("run::wrong_array", format!("{file} holds {found}, but `{name}` is {wanted}"), help))
}

/// Returns NumPy's name of an element type.
fn numpy_name(ty: ElemType) -> String {
    let name = ty.to_string();
    match name.split_at(1) {
        ("f", bits) => format!("float{bits}"),
        ("i", bits) => format!("int{bits}"),
        ("u", bits) => format!("uint{bits}"),
        _ => format!("{name}_"),
    }
}
