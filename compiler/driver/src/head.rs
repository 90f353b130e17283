//! Options in the first comments of a program: lines `//! girder: --arg steps=100 --target small --replicas 2
//! --in stream=file.npy`. The head of a file ends where something other than a comment or a blank line stands.
//!
//! Invariant: these options are defaults, which a caller may override.

use girder_source::{Diagnostic, Span};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The options of a file's first comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `--target name`, or a file beside the program.
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

/// What is wrong in a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadError {
    /// What is wrong, with the line.
    pub message: String,
    /// What to write instead.
    pub help: &'static str,
    /// The bytes of the line.
    pub at: Range<usize>,
}

impl std::fmt::Display for HeadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

const OPTIONS: &str = "a `girder:` line takes `--arg name=value`, `--target name`, `--replicas n`, `--limit name=n`, \
                       `--in stream=file` and `--allow-over-memory`; quotes surround what contains spaces";
const PLACE: &str = "move the line to the comments at the top of the file";
const ONCE: &str = "leave one of them out";

/// What the options of a head have set so far: the text of each, by option and name.
type Set = FxHashMap<(String, String), String>;

impl Head {
    /// Reads the options of a text; `file` is its path, to which file names are relative.
    ///
    /// # Errors
    /// If a line has something other than options, sets something twice, or stands below the head.
    pub fn read(text: &str, file: &Path) -> Result<Head, HeadError> {
        let (mut head, mut set) = (Head::default(), Set::default());
        let (mut at, mut is_in_head) = (0, true);
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let line = line.trim_end();
            let plain = line.trim_start_matches('\u{feff}').trim_start();
            let Some(comment) = plain.strip_prefix("//") else {
                is_in_head &= plain.is_empty();
                continue;
            };
            let words = comment.trim_start_matches(['!', '/']).trim_start();
            let Some(options) = words.strip_prefix("girder:") else { continue };
            let fail = |message: String, help| {
                let at = start + line.len() - plain.len()..start + line.len();
                HeadError { message, help, at }
            };
            // Other comments may speak of such lines.
            let is_meant = comment.starts_with('!') || options.trim_start().starts_with("--");
            match is_in_head {
                true => head.add_line(options, file, &mut set).map_err(|(message, help)| fail(message, help))?,
                false if is_meant => return Err(fail("a `girder:` line below the head of the file".into(), PLACE)),
                false => {}
            }
        }
        Ok(head)
    }

    /// Adds the options of a line. The error is what is wrong, and what to write instead.
    fn add_line(&mut self, line: &str, file: &Path, set: &mut Set) -> Result<(), (String, &'static str)> {
        let no_option = |words: &str| (format!("`{words}` in the head of the file"), OPTIONS);
        let all = shlex::split(line).ok_or_else(|| no_option(line.trim()))?;
        let mut words = all.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--allow-over-memory" {
                self.allow_over_memory = true;
                continue;
            }
            // As on the command line, the value follows a space or `=`.
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, words.next()),
            };
            let words = [word].into_iter().chain(value.filter(|_| name == word)).collect::<Vec<_>>().join(" ");
            let wrong = || no_option(&words);
            let value = value.ok_or_else(wrong)?;
            match (name, value.split_once('=')) {
                ("--replicas", _) => self.replicas = Some(value.parse().map_err(|_| wrong())?),
                ("--target", _) => self.target = Some(target(value, file)),
                ("--arg", Some(_)) => self.args.push(value.to_string()),
                ("--limit", Some(_)) => self.limits.push(value.to_string()),
                ("--in", Some((name, path))) => self.streams.push((name.to_string(), beside(file, path))),
                _ => return Err(wrong()),
            }
            let of = if matches!(name, "--replicas" | "--target") { None } else { value.split_once('=').map(|p| p.0) };
            if let Some(first) = set.insert((name.into(), of.unwrap_or_default().into()), value.into()) {
                let what = of.map_or("is given".to_string(), |of| format!("sets `{of}`"));
                return Err((format!("`{name}` {what} twice: `{first}` and `{value}`"), ONCE));
            }
        }
        Ok(())
    }
}

/// Returns a machine: a name, or a file beside the program.
fn target(name: &str, program: &Path) -> String {
    match name.ends_with(".toml") {
        true => beside(program, name).display().to_string(),
        false => name.to_string(),
    }
}

fn beside(program: &Path, name: &str) -> PathBuf {
    program.parent().unwrap_or(Path::new("")).join(name)
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

    fn head(text: &str) -> Result<Head, HeadError> {
        Head::read(text, Path::new("dir/p.gir"))
    }

    #[test]
    fn options_stand_in_the_first_comments() {
        let text = "//! A program.\n//! girder: --target small --arg n=3 --replicas 2\n\n\
                    // girder: --allow-over-memory --in x=x.npy\nvar x: f32;\n// girder: no";
        let head = head(text).unwrap();
        assert_eq!(head.target.as_deref(), Some("small"));
        assert_eq!(head.args, ["n=3"]);
        assert_eq!(head.replicas, Some(2));
        assert!(head.allow_over_memory);
        assert_eq!(head.streams, [("x".to_string(), PathBuf::from("dir/x.npy"))]);
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let text = "//! girder: --target=base.toml --arg 'label=two words' --in=x=\"my file.npy\" --limit=a=1\n";
        let head = head(text).unwrap();
        assert_eq!(head.target.as_deref(), Some("dir/base.toml"));
        assert_eq!(head.args, ["label=two words"]);
        assert_eq!(head.limits, ["a=1"]);
        assert_eq!(head.streams, [("x".to_string(), PathBuf::from("dir/my file.npy"))]);
    }

    #[test]
    fn an_error_has_the_bytes_of_its_line() {
        for (line, message) in [
            ("// girder: --arg n", "`--arg n` in the head of the file"),
            ("//! girder: --colour=red", "`--colour=red` in the head of the file"),
            ("//! girder: --replicas=two", "`--replicas=two` in the head of the file"),
            ("//! girder: --in 'x=y", "`--in 'x=y` in the head of the file"),
            ("//! girder: --target", "`--target` in the head of the file"),
            ("//! girder: --arg k=2 --arg k=3", "`--arg` sets `k` twice: `k=2` and `k=3`"),
            ("//! girder: --limit=a=1 --limit a=1", "`--limit` sets `a` twice: `a=1` and `a=1`"),
            ("//! girder: --in x=x.npy --in=x=y.npy", "`--in` sets `x` twice: `x=x.npy` and `x=y.npy`"),
            ("//! girder: --target a=1 --target a=2", "`--target` is given twice: `a=1` and `a=2`"),
            ("//! girder: --replicas 2 --replicas 4", "`--replicas` is given twice: `2` and `4`"),
        ] {
            let text = format!("\n// First.\n  {line}  \nvar x: f32;\n");
            let error = head(&text).unwrap_err();
            assert_eq!((error.message.as_str(), &text[error.at]), (message, line));
        }
        let text = "//! girder: --arg k=2 --arg n=1\n//! girder: --arg k=3\nvar x: f32;\n";
        let error = head(text).unwrap_err();
        let expected = ("`--arg` sets `k` twice: `k=2` and `k=3`", "//! girder: --arg k=3");
        assert_eq!((error.message.as_str(), &text[error.at]), expected);
        for line in ["//! girder: anything", "// girder: --arg n=1"] {
            let text = format!("// girder: --arg n=2\nvar x: f32;\n{line}\n");
            let error = head(&text).unwrap_err();
            assert_eq!(
                (error.message.as_str(), &text[error.at]),
                ("a `girder:` line below the head of the file", line)
            );
        }
    }
}
