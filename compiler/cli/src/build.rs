//! `girder build`: a stage of the compilation as text.

use crate::inputs;
use crate::options::Compile;
use crate::report::{Done, Report, print};
use girder::Stage;
use std::path::PathBuf;

/// Print a stage of the compilation as `.gir`.
#[derive(clap::Args)]
pub struct Build {
    /// A `.gir` file, or a directory that holds one of its name.
    file: PathBuf,
    /// How far to compile: graph, placed, race-free, planned, scheduled, allocated.
    #[arg(long, default_value = "allocated", value_parser = stage)]
    stage: Stage,
    /// Write here instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    compile: Compile,
}

fn stage(name: &str) -> Result<Stage, String> {
    Stage::from_name(name).ok_or("stages are graph, placed, race-free, planned, scheduled, allocated".to_string())
}

impl Build {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let mut input = inputs::open(&self.file, &self.compile, report)?;
        let stage = input.stage(self.stage, report)?;
        let text = girder::text::print(&stage, &input.compilation.options.machine);
        match &self.output {
            None => print(&text),
            Some(path) => std::fs::write(path, text).map_err(|e| {
                let message = format!("cannot write {}: {e}", path.display());
                report.error("driver::cannot_write", message, "name a file in a directory that exists")
            }),
        }
    }
}
