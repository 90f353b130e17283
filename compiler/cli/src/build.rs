//! `girder build`: a stage of the compilation as text.

use crate::files::cannot_write;
use crate::inputs;
use crate::options::Compile;
use crate::report::{Done, Report, Stop, print};
use girder::engine::{CodeForm, Executable};
use girder::{After, AnyStage, Stage};
use std::path::PathBuf;

/// Print a stage of the compilation as `.gir`, or the generated code.
#[derive(clap::Args)]
pub struct Build {
    /// A `.gir` file, or a directory that contains one of its own name.
    file: PathBuf,
    /// How far to compile: graph, placed, race-free, planned, scheduled, allocated, or the name of a pass that `girder
    /// passes` lists; clif and asm print the code of each kernel.
    #[arg(long, default_value = "allocated", value_parser = stage)]
    stage: Form,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    compile: Compile,
}

/// The form of the output.
#[derive(Clone, Copy)]
enum Form {
    Stage(After),
    Code(CodeForm),
}

fn stage(name: &str) -> Result<Form, String> {
    match name {
        "clif" => Ok(Form::Code(CodeForm::Clif)),
        "asm" => Ok(Form::Code(CodeForm::Asm)),
        _ => {
            let after = Stage::from_name(name).map(After::from).or_else(|| After::named(name));
            after.map(Form::Stage).ok_or_else(|| {
                let stages = Stage::ALL.map(Stage::name).join(", ");
                let passes: Vec<&str> = After::all().map(After::name).collect();
                format!("stages are {stages}, clif, asm; passes are {}", passes.join(", "))
            })
        }
    }
}

impl Build {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let mut input = inputs::open(&self.file, &self.compile, report)?;
        self.output.iter().for_each(|path| input.files.writes(path, "--output"));
        input.files.check(report)?;
        let text = match self.stage {
            Form::Stage(after) => {
                let stage = input.stage(after, report)?;
                girder::text::print_after(&stage, input.compilation.after, &input.compilation.options.machine)
            }
            Form::Code(form) => {
                let AnyStage::Allocated(allocated) = input.stage(Stage::Allocated, report)? else {
                    unreachable!("it was brought to this stage")
                };
                Executable::code_text(&allocated, input.compilation.options.machine.chip.workers, form).map_err(
                    |e| {
                        report.emit(&e.diagnostic(), &input.compilation.map);
                        Stop::User
                    },
                )?
            }
        };
        input.files.reads_modules(&input.compilation.map);
        input.files.check(report)?;
        match &self.output {
            None => print(&text),
            Some(path) => std::fs::write(path, text).map_err(|e| cannot_write(path, &e, report)),
        }
    }
}
