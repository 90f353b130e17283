//! `girder fmt`: formats files.

use crate::files::cannot_write;
use crate::report::{Done, Report, Stop, print};
use girder::source::{Diagnostics, Session, SourceMap};
use std::path::PathBuf;

/// Format `.gir` files in place.
#[derive(clap::Args)]
pub struct Fmt {
    /// The files, or directories that contain a file of their own name.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; exit with 1 if some file is not formatted.
    #[arg(long)]
    check: bool,
}

impl Fmt {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let mut done = Ok(());
        for path in &self.files {
            if let Err(stop) = self.one(&girder::program_file(path), report) {
                done = Err(stop);
            }
        }
        done
    }

    fn one(&self, path: &std::path::Path, report: &Report) -> Done {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| {
            report.error("driver::cannot_read", format!("cannot read {name}: {e}"), "name a `.gir` file")
        })?;
        let (mut map, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let Some(file) = map.add(path, text.clone()) else {
            return Err(report.error("driver::too_much_text", format!("{name} exceeds 4,080 MiB"), "split the file"));
        };
        let tree = girder::syntax::parse(&map, file, &Session::default(), &mut diagnostics);
        report.all(&diagnostics, &map);
        // A file with errors is left unchanged, as its tree is not complete.
        diagnostics.check().map_err(|_| Stop::User)?;
        let formatted = girder::syntax::format(&tree, &text);
        match (formatted == text, self.check) {
            (true, _) => Ok(()),
            (false, true) => {
                print(&format!("{name}\n"))?;
                Err(Stop::User)
            }
            (false, false) => std::fs::write(path, formatted).map_err(|e| cannot_write(path, &e, report)),
        }
    }
}
