//! `girder build`: a stage of the compilation as text.

use crate::inputs;
use crate::options::Compile;
use crate::report::{Done, Report, Stop, print};
use girder::{AnyStage, Stage};
use girder_engine::{CodeForm, Executable};
use std::path::PathBuf;

/// Print a stage of the compilation as `.gir`, or the generated code.
#[derive(clap::Args)]
pub struct Build {
    /// A `.gir` file, or a directory that holds one of its name.
    file: PathBuf,
    /// How far to compile: graph, placed, race-free, planned, scheduled, allocated; clif and asm print the code of each
    /// kernel.
    #[arg(long, default_value = "allocated", value_parser = stage)]
    stage: Form,
    /// Write here instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    compile: Compile,
}

/// What is printed.
#[derive(Clone, Copy)]
enum Form {
    Stage(Stage),
    Code(CodeForm),
}

fn stage(name: &str) -> Result<Form, String> {
    match name {
        "clif" => Ok(Form::Code(CodeForm::Clif)),
        "asm" => Ok(Form::Code(CodeForm::Asm)),
        _ => Stage::from_name(name)
            .map(Form::Stage)
            .ok_or("stages are graph, placed, race-free, planned, scheduled, allocated, clif, asm".to_string()),
    }
}

impl Build {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let mut input = inputs::open(&self.file, &self.compile, report)?;
        let text = match self.stage {
            Form::Stage(stage) => {
                let stage = input.stage(stage, report)?;
                girder::text::print(&stage, &input.compilation.options.machine)
            }
            Form::Code(form) => {
                let AnyStage::Allocated(allocated) = input.stage(Stage::Allocated, report)? else {
                    unreachable!("it was brought to this stage")
                };
                Executable::code_text(&allocated, form).map_err(|e| {
                    report.say(&e.diagnostic(), &input.compilation.map);
                    Stop::User
                })?
            }
        };
        match &self.output {
            None => print(&text),
            Some(path) => std::fs::write(path, text).map_err(|e| {
                let message = format!("cannot write {}: {e}", path.display());
                report.error("driver::cannot_write", message, "name a file in a directory that exists")
            }),
        }
    }
}
