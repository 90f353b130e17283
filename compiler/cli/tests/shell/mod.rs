//! A temporary directory in which tests run the command, and the commands that documents show.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A temporary directory with a copy of `examples`, removed on drop.
pub struct TestDirectory {
    directory: PathBuf,
}

/// The outcome of a command line.
pub struct Done {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
}

impl Done {
    fn of(done: std::process::Output) -> Done {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Done { code: done.status.code().unwrap_or(-1), output: text(done.stdout), errors: text(done.stderr) }
    }
}

static DIRECTORIES: AtomicUsize = AtomicUsize::new(0);

impl TestDirectory {
    /// Creates the directory.
    pub fn new() -> TestDirectory {
        let name = format!("girder-{}-{}", std::process::id(), DIRECTORIES.fetch_add(1, Ordering::Relaxed));
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        copy(&repository().join("examples"), &directory.join("examples"));
        TestDirectory { directory }
    }

    /// Returns a path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file in a directory of ours");
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Runs the command with a text on standard input.
    pub fn piped(&self, arguments: &str, input: &str) -> Done {
        use std::io::Write;
        let mut command = Command::new(env!("CARGO_BIN_EXE_girder"));
        command.args(arguments.split_whitespace()).current_dir(&self.directory);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("the command starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("the command reads it");
        drop(stdin);
        Done::of(child.wait_with_output().expect("the command ends"))
    }

    /// Runs a line as a shell would: commands after `&&`, `NAME=value` before a command, `> file` for standard output,
    /// `#` before a comment. Returns the outcome of the last command that ran.
    pub fn line(&self, line: &str) -> Done {
        let line = line.split(" #").next().unwrap_or_default();
        let mut last = Done { code: 0, output: String::new(), errors: String::new() };
        for command in line.split("&&") {
            last = self.command(command);
            if last.code != 0 {
                break;
            }
        }
        last
    }

    fn command(&self, text: &str) -> Done {
        let (words, file) = match text.split_once('>') {
            Some((words, file)) => (words, Some(file.trim())),
            None => (text, None),
        };
        let mut words = words.split_whitespace().peekable();
        let mut command = Command::new(env!("CARGO_BIN_EXE_girder"));
        while let Some((name, value)) = words.peek().and_then(|w| w.split_once('=')) {
            command.env(name, value);
            words.next();
        }
        assert_eq!(words.next(), Some("girder"), "`{text}` is another command");
        let done =
            command.args(words).current_dir(&self.directory).stdin(Stdio::null()).output().expect("the command starts");
        let done = Done::of(done);
        if let Some(file) = file {
            self.write(file, &done.output);
        }
        done
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // A directory that cannot be removed stays in the target directory.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory in the target directory");
    for entry in std::fs::read_dir(from).expect("a directory of the repository") {
        let entry = entry.expect("an entry");
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).expect("a file of the repository");
        }
    }
}

/// Returns the fenced blocks of a text: language and contents.
pub fn blocks(text: &str) -> Vec<(&str, &str)> {
    text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
}

/// Returns the text of `girder explain` for every code.
pub fn explained() -> Vec<(String, String)> {
    let place = TestDirectory::new();
    let list = place.line("girder explain").output;
    let codes = list.lines().filter_map(|line| line.split_whitespace().next());
    let text = |code: &str| place.line(&format!("girder explain {code}")).output;
    codes.map(|code| (code.to_string(), text(code))).collect()
}
