//! `girder targets`: the machines.

use crate::options::machine;
use crate::report::{Done, Report, print};
use girder::machine::Machine;

/// List the machines, or show one.
#[derive(clap::Args)]
pub struct Targets {
    /// A machine: prints its TOML file, and as comments those of the machines that it extends.
    name: Option<String>,
}

impl Targets {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let Some(name) = &self.name else { return print(&table(report)?) };
        if let Some(text) = whole(name) {
            return print(&text);
        }
        let m = machine(report, name)?;
        print(&(head() + &row(&m)))
    }
}

/// Returns the titles of the table's columns.
fn head() -> String {
    line(["name", "ipus", "tiles", "of each", "memory", "clock", "description"])
}

fn line([name, ipus, tiles, each, all, clock, description]: [&str; 7]) -> String {
    format!("{name:<12} {ipus:>5} {tiles:>8} {each:>9} {all:>9} {clock:>9}  {description}\n")
}

fn table(report: &Report) -> Result<String, crate::report::Stop> {
    let mut text = head();
    for name in girder::machine::builtin_names() {
        text += &row(&machine(report, name)?);
    }
    Ok(text)
}

/// Returns a line of the table.
fn row(m: &Machine) -> String {
    let per_tile = m.memory.bytes_per_tile as u64;
    let (each, all) = (bytes(per_tile), bytes(per_tile * m.tiles() as u64));
    let (ipus, tiles) = (m.ipus.to_string(), m.tiles().to_string());
    let clock = format!("{:.2} GHz", m.chip.clock_hz / 1e9);
    line([&m.name, &ipus, &tiles, &each, &all, &clock, &m.description])
}

/// Formats a number of bytes for people.
fn bytes(n: u64) -> String {
    match n {
        0..1_048_576 => format!("{} KiB", n / 1024),
        1_048_576..10_737_418_240 => format!("{} MiB", n >> 20),
        _ => format!("{} GiB", n >> 30),
    }
}

/// Returns the text of a built-in machine and, below it as comments, the text of each machine that it extends.
fn whole(name: &str) -> Option<String> {
    let mut text = girder::machine::builtin_text(name)?.to_string();
    let mut base = girder::machine::builtin_base(name);
    while let Some(name) = base {
        text += &format!("\n# Inherited from `{name}`, where this file sets no value:\n#\n");
        for line in girder::machine::builtin_text(name)?.lines() {
            text += format!("# {line}").trim_end();
            text.push('\n');
        }
        base = girder::machine::builtin_base(name);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_machine_reads_back() {
        for name in girder::machine::builtin_names() {
            let text = whole(name).unwrap();
            assert_eq!(Machine::from_toml(&text).ok(), girder::machine::builtin(name), "{name}");
            assert!(text.contains("worker_period = 6"), "{name}: the bases are shown");
        }
    }
}
