//! The `girder` command: one file per subcommand, nothing else.
//!
//! Invariant: the exit code is 0 for success, 1 for an error of the user (a diagnostic on standard error), 2 for wrong
//! usage.

mod options;
mod files;
mod inputs;
mod report;
mod memory;
mod check;
mod build;
mod run;
mod entries;
mod stats;
mod timeline;
mod host;
mod plot;
mod progress;
mod variables;
mod fmt;
mod passes;
mod targets;
mod explain;
mod codes;
mod new;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: memory::Bounded = memory::Bounded;

/// An open graph compiler for tile machines.
#[derive(Parser)]
#[command(name = "girder", version, about, long_about = None, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The format of diagnostics.
    #[arg(long, value_enum, default_value_t = report::Format::Human, global = true)]
    message_format: report::Format,
}

#[derive(Subcommand)]
enum Command {
    /// Check a program: all passes, no code.
    Check(check::Check),
    /// Print a stage of the compilation as `.gir`.
    Build(build::Build),
    /// Compile a program and run it.
    Run(run::Run),
    /// Format `.gir` files in place.
    Fmt(fmt::Fmt),
    /// List the passes.
    Passes(passes::Passes),
    /// List the machines, or show one.
    Targets(targets::Targets),
    /// Explain the code of a diagnostic.
    Explain(explain::Explain),
    /// Start a new program.
    New(new::New),
}

fn main() -> ExitCode {
    let cli = Cli::parse_from(stats::joined(std::env::args_os()));
    let mut report = report::Report::new(cli.message_format);
    let done = match cli.command {
        Command::Check(c) => c.run(&mut report),
        Command::Build(c) => c.run(&mut report),
        Command::Run(c) => c.run(&mut report),
        Command::Fmt(c) => c.run(&mut report),
        Command::Passes(c) => c.run(),
        Command::Targets(c) => c.run(&mut report),
        Command::Explain(c) => c.run(&mut report),
        Command::New(c) => c.run(&mut report),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(report::Stop::Output(kind)) => {
            let message = format!("cannot write to standard output: {kind}");
            report.error("driver::cannot_write", message, "send it to a file on a disk that has room");
            ExitCode::from(1)
        }
        Err(report::Stop::User) => ExitCode::from(1),
        Err(report::Stop::Usage) => ExitCode::from(2),
    }
}
