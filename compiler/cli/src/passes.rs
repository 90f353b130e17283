//! `girder passes`: the passes, in order.

use crate::report::{Done, print};

/// List the passes.
#[derive(clap::Args)]
pub struct Passes {}

impl Passes {
    /// Runs the subcommand.
    pub fn run(&self) -> Done {
        let mut text = String::new();
        for p in girder::PASSES {
            let stages = format!("{} → {}", p.from.name(), p.to.name());
            let optional = if p.optional { " (optional: `--without`)" } else { "" };
            text += &format!("{:<20} {:<24} {}{optional}\n", p.name, stages, p.sentence);
        }
        print(&text)
    }
}
