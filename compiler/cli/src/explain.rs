//! `girder explain`: the long form of a diagnostic's code.

use crate::codes::codes;
use crate::report::{Done, Report, print};

/// Explain the code of a diagnostic.
#[derive(clap::Args)]
pub struct Explain {
    /// A code such as `race::write_write`; by default all codes are listed.
    code: Option<String>,
}

impl Explain {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let Some(code) = &self.code else {
            let line = |(code, text): (&str, &str)| format!("{code:<36} {}\n", text.lines().next().unwrap_or(""));
            return print(&codes().map(line).collect::<String>());
        };
        match codes().find(|(c, _)| c == code) {
            Some((code, text)) => print(&format!("{code}\n\n{}\n", text)),
            None => {
                let message = format!("there is no code `{code}`");
                Err(report.error("usage::unknown_code", message, "`girder explain` without a code lists all"))
            }
        }
    }
}
