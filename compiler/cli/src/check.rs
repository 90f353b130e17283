//! `girder check`: all passes, no code.

use crate::inputs;
use crate::options::Compile;
use crate::report::{Done, Report};
use girder::Stage;
use std::path::PathBuf;

/// Check a program: all passes, no code.
#[derive(clap::Args)]
pub struct Check {
    /// A `.gir` file, or a directory that holds one of its name.
    file: PathBuf,
    /// Print how long each part took.
    #[arg(long)]
    time: bool,
    #[command(flatten)]
    compile: Compile,
}

impl Check {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let mut input = inputs::open(&self.file, &self.compile, report)?;
        let done = input.stage(Stage::Allocated, report);
        if self.time {
            for (name, time) in &input.compilation.timings {
                eprintln!("{name:<20} {:>9.3} ms", time.as_secs_f64() * 1e3);
            }
        }
        done.map(|_| ())
    }
}
