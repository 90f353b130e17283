//! `girder targets`: the machines.

use crate::options::{machine, machine_file};
use crate::report::{Done, Report, Stop, print};
use girder::machine::Machine;

/// List the machines, or show one.
#[derive(clap::Args)]
pub struct Targets {
    /// A machine: prints its TOML file, and as comments those of the machines that it extends.
    name: Option<String>,
    /// A machine of which a program has a partition: prints the TOML file of the part for one replica.
    #[arg(long, value_name = "MACHINE", conflicts_with = "name", requires = "ipus")]
    partition: Option<String>,
    /// The number of processors in the partition, a power of two.
    #[arg(long, requires = "partition")]
    ipus: Option<u32>,
    /// The number of replicas that share the partition.
    #[arg(long, default_value_t = 1, requires = "partition")]
    replicas: u32,
}

impl Targets {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        if let (Some(name), Some(ipus)) = (&self.partition, self.ipus) {
            return print(&part(report, name, ipus, self.replicas)?);
        }
        let Some(name) = &self.name else { return print(&table(report)?) };
        if let Some(text) = whole(name) {
            return print(&text);
        }
        let (_, text) = machine_file(report, name)?;
        let base = girder::machine::base_of(&text);
        print(&inherited(text, base))
    }
}

/// Returns the file of the part of one replica in a partition of a built-in machine.
fn part(report: &Report, name: &str, ipus: u32, replicas: u32) -> Result<String, Stop> {
    if girder::machine::builtin_text(name).is_none() {
        let names: Vec<&str> = girder::machine::builtin_names().collect();
        let help = format!("built in are {}", names.join(", "));
        return Err(report.error("machine::unknown", format!("there is no built-in machine `{name}`"), help));
    }
    let part = machine(report, name)?.part(ipus, replicas).map_err(|e| {
        report.error("machine::invalid", e.message, "processors and replicas are powers of two, such as 16 and 4")
    })?;
    let description = format!("{} of {ipus} processors of {name}, for one of {replicas} replicas", part.ipus);
    let text = format!(
        "name = \"{name}-{ipus}-{replicas}\"\ndescription = \"{description}\"\nextends = \"{name}\"\n\n\
         [partition]\nipus = {ipus} # processors\nreplicas = {replicas} # that share them equally\n"
    );
    Ok(inherited(text, Some(name)))
}

/// Returns the titles of the table's columns.
fn head() -> String {
    line(["name", "ipus", "tiles", "of each", "memory", "clock", "description"])
}

fn line([name, ipus, tiles, each, all, clock, description]: [&str; 7]) -> String {
    format!("{name:<12} {ipus:>5} {tiles:>8} {each:>9} {all:>9} {clock:>9}  {description}\n")
}

fn table(report: &Report) -> Result<String, Stop> {
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
    let text = girder::machine::builtin_text(name)?.to_string();
    Some(inherited(text, girder::machine::builtin_base(name)))
}

/// Appends, as comments, the texts of the machines that a file extends.
fn inherited(mut text: String, mut base: Option<&str>) -> String {
    while let Some(name) = base {
        text += &format!("\n# Inherited from `{name}`, where this file sets no value:\n#\n");
        for line in girder::machine::builtin_text(name).into_iter().flat_map(str::lines) {
            text += format!("# {line}").trim_end();
            text.push('\n');
        }
        base = girder::machine::builtin_base(name);
    }
    text
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

    #[test]
    fn a_printed_part_reads_back() {
        let report = Report::new(crate::report::Format::Human);
        let text = part(&report, "pod64", 16, 4).ok().unwrap();
        let read = Machine::from_toml(&text).unwrap();
        assert_eq!((read.name.as_str(), read.ipus), ("pod64-16-4", 4));
        assert!(text.contains("# topology = \"torus\""), "the bases are shown");
    }
}
