//! `girder targets`: the machines.

use crate::options::machine;
use crate::report::{Done, Report, print};

/// List the machines, or show one.
#[derive(clap::Args)]
pub struct Targets {
    /// A machine: prints its TOML file.
    name: Option<String>,
}

impl Targets {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let Some(name) = &self.name else {
            let mut text = String::new();
            for name in girder_machine::builtin_names() {
                if let Some(m) = girder_machine::builtin(name) {
                    text += &format!("{name:<12} {}\n", m.description);
                }
            }
            return print(&text);
        };
        if let Some(text) = girder_machine::builtin_text(name) {
            return print(text);
        }
        let m = machine(report, name)?;
        let bytes = m.memory.bytes_per_tile;
        print(&format!(
            "{}: {}; {} tiles of {bytes} bytes on {} processors\n",
            m.name,
            m.description,
            m.tiles(),
            m.ipus
        ))
    }
}
