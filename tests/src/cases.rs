//! Programs on disk as tests: one test for each `.gir` file under a folder, with a snapshot beside it.
//!
//! A test file with `harness = false` calls [`main`]. Names of tests are paths below the folder, so that
//! `cargo test --test passes -- place-tiles` runs the cases of one pass.
//!
//! Invariant: a new case is a new file and nothing else; a snapshot without its case fails. Texts name files by their
//! paths from the root of the repository, whatever the machine.

use crate::{Program, files};
use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A `.gir` file of the repository.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its path from the root of the repository.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

impl Case {
    /// Reads a file, named by its path from the root of the repository.
    pub fn read(path: &Path) -> Case {
        Case { path: path.to_path_buf(), text: files::text(path) }
    }

    /// The program, for the machine `small` if it names no other. Reports about it name the file by [`Case::path`].
    pub fn program(&self) -> Program {
        Program::new(&self.path, self.text.as_str(), "small")
    }

    /// The name of the folder that the file is in.
    pub fn folder(&self) -> &str {
        self.path.parent().and_then(|p| p.file_name()).and_then(|n| n.to_str()).unwrap_or("")
    }

    /// The first comment line, which states the claim of the case in a sentence.
    pub fn claim(&self) -> Option<&str> {
        let line = self.text.lines().next()?;
        Some(line.strip_prefix("//")?.trim_start_matches(['/', '!']).trim())
    }

    /// The expected lines of output, from the comments `// prints: …`.
    pub fn promised_prints(&self) -> Vec<&str> {
        self.text.lines().filter_map(|l| l.strip_prefix("// prints: ")).collect()
    }
}

/// Runs `snapshot` on every `.gir` file under a folder and compares its result with the snapshot beside the file; also
/// runs `others`.
///
/// # Panics
/// If the root of the repository cannot be made the current directory.
pub fn main(folder: &str, snapshot: fn(&Case) -> String, others: Vec<Trial>) -> ExitCode {
    std::env::set_current_dir(files::root()).expect("the repository is there");
    let mut trials = others;
    for path in files::under(folder, ".gir") {
        let name = path.strip_prefix(folder).unwrap_or(&path).with_extension("").display().to_string();
        trials.push(Trial::test(name, move || {
            let case = Case::read(&path);
            let text = snapshot(&case);
            // A snapshot must not make a bug of the compiler the expected result.
            assert!(!text.contains("internal::"), "{text}");
            compare(&case.path, &text);
            Ok(())
        }));
    }
    let folder = folder.to_string();
    trials.push(Trial::test("every_snapshot_has_its_case", move || {
        for path in files::under(&folder, ".snap") {
            let case = path.with_extension("gir");
            assert!(files::root().join(&case).is_file(), "{} has no case: remove it", path.display());
        }
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Compares a text with the snapshot beside a file.
fn compare(path: &Path, text: &str) {
    let name = path.file_stem().and_then(|n| n.to_str()).expect("files of cases have names");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(files::root().join(path.parent().unwrap_or(Path::new(""))));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
