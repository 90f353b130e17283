//! Options in the first comments of a program: lines `//! girder: --arg steps=100 --target small --replicas 2
//! --in stream=file.npy`.
//!
//! Invariant: these options are defaults, which a caller may override.

use girder_source::{Diagnostic, Span};
use std::path::{Path, PathBuf};

/// The options of a file's first comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `--target name`
    pub target: Option<String>,
    /// `--replicas n`
    pub replicas: Option<u32>,
    /// `--arg name=value`, in order.
    pub args: Vec<String>,
    /// `--limit name=n`, in order.
    pub limits: Vec<String>,
    /// `--allow-over-memory`
    pub allow_over_memory: bool,
    /// `--in stream=file`, the file beside the program.
    pub streams: Vec<(String, PathBuf)>,
}

impl Head {
    /// Reads the options of a text. The error is the words that are not an option.
    pub fn read(text: &str, file: &Path) -> Result<Head, String> {
        let lines = text.lines().map_while(|l| l.trim_start().strip_prefix("//"));
        let words: Vec<&str> = lines
            .filter_map(|l| l.trim_start_matches(['!', '/']).trim_start().strip_prefix("girder:"))
            .flat_map(str::split_whitespace)
            .collect();
        let mut head = Head::default();
        let mut words = words.as_slice();
        while let Some(first) = words.first() {
            let w;
            (w, words) = words.split_at(if *first == "--allow-over-memory" { 1 } else { words.len().min(2) });
            match (w, w.last().and_then(|value| value.split_once('='))) {
                (["--replicas", value], _) if value.parse::<u32>().is_ok() => head.replicas = value.parse().ok(),
                (["--target", value], _) => head.target = Some(value.to_string()),
                (["--arg", value], Some(_)) => head.args.push(value.to_string()),
                (["--limit", value], Some(_)) => head.limits.push(value.to_string()),
                (["--allow-over-memory"], _) => head.allow_over_memory = true,
                (["--in", _], Some((name, path))) => {
                    let beside = file.parent().unwrap_or(Path::new("")).join(path);
                    head.streams.push((name.to_string(), beside));
                }
                _ => return Err(w.join(" ")),
            }
        }
        Ok(head)
    }
}

/// Returns the `.gir` file of a path: the path itself, or the file in a directory that has the name of the directory.
pub fn program_file(path: &Path) -> PathBuf {
    if path.is_dir() {
        let full = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if let Some(name) = full.file_name() {
            return path.join(name).with_extension("gir");
        }
    }
    path.to_path_buf()
}

/// Reads the text of a `.gir` file, which may be a pipe.
///
/// # Errors
/// If the file cannot be read, or is not text.
pub fn program_text(path: &Path) -> Result<String, Diagnostic> {
    let fail = |code, message, help: &str| Diagnostic::error(code, Span::NONE, message).help(help);
    let bytes = std::fs::read(path).map_err(|e| {
        let message = format!("cannot read {}: {e}", path.display());
        fail("driver::cannot_read", message, "name a `.gir` file, or a directory that holds one of its name")
    })?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let message = format!("{} is not UTF-8: byte {at} is wrong", path.display());
        fail("driver::not_text", message, "`.gir` files are UTF-8 text")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_in_the_first_comments() {
        let text = "//! A program.\n//! girder: --target small --arg n=3 --replicas 2\n\
                    // girder: --allow-over-memory --in x=x.npy\nvar x: f32;\n// girder: no";
        let head = Head::read(text, Path::new("dir/p.gir")).unwrap();
        assert_eq!(head.target.as_deref(), Some("small"));
        assert_eq!(head.args, ["n=3"]);
        assert_eq!(head.replicas, Some(2));
        assert!(head.allow_over_memory);
        assert_eq!(head.streams, [("x".to_string(), PathBuf::from("dir/x.npy"))]);
        assert_eq!(Head::read("// girder: --arg n", Path::new("p.gir")), Err("--arg n".to_string()));
    }
}
