//! `--stats`: the modelled time and memory of a run.

use crate::report::{Done, print};
use girder::profile::{Assumed, Profile};

/// How figures are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum StatsFormat {
    /// A table for people.
    Table,
    /// One object on one line.
    Json,
}

impl StatsFormat {
    /// Prints a profile, after the output of the program.
    pub fn print(self, profile: &Profile) -> Done {
        match self {
            StatsFormat::Table => print(&format!("\n{}", profile.table())),
            StatsFormat::Json => print(&format!("{}\n", profile.to_json())),
        }
    }

    /// Prints the assumptions of an estimate.
    pub fn note(self, assumed: Assumed) -> Done {
        if self == StatsFormat::Json {
            return Ok(());
        }
        let mut text = String::new();
        if assumed.control {
            text += "assumed: each `while` runs one iteration, `if` and `switch` take the longest branch; \
                     `girder run --stats` tells\n";
        }
        if assumed.vertices {
            text += "assumed: loops and branches of codelets that depend on data take no time; \
                     `girder run --stats` counts them\n";
        }
        print(&text)
    }
}

/// Joins `--stats json` to `--stats=json`, so that clap does not take the argument after a bare `--stats` as its value.
pub fn joined(arguments: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut out: Vec<std::ffi::OsString> = Vec::new();
    for argument in arguments {
        let formats = ["json", "table"];
        match (out.last_mut().filter(|last| *last == "--stats"), argument.to_str().filter(|a| formats.contains(a))) {
            (Some(last), Some(format)) => *last = format!("--stats={format}").into(),
            _ => out.push(argument),
        }
    }
    out
}
