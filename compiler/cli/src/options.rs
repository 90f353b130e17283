//! The options that several subcommands share.

use crate::memory;
use crate::report::{Report, Stop};
use girder::machine::Machine;
use girder::source::{Diagnostic, Limits, Session, SourceMap, Span};
use girder::{Arguments, Options};

/// The options of a compilation.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Compile {
    /// The machine: a name that `girder targets` lists, or a TOML file. By default `gc200`, or the machine that printed
    /// text names.
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub target: Option<String>,
    /// The number of replicas that run the program, each on an equal part of the machine. 1 by default, or the number
    /// of the machine's partition.
    #[arg(long, value_name = "R")]
    pub replicas: Option<u32>,
    /// Set a parameter of a program or a `let` of the module.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// Set a limit, such as static_steps=1000.
    #[arg(long = "limit", value_name = "NAME=N")]
    pub limits: Vec<String>,
    /// Warn instead of failing if the memory of a tile is too small.
    #[arg(long)]
    pub allow_over_memory: bool,
    /// Leave out an optional pass, such as fuse-elementwise, to see what it brings. The results are the same.
    #[arg(long, value_name = "PASS")]
    pub without: Vec<String>,
}

/// Splits `name=value`.
pub fn pair<'t>(report: &Report, flag: &str, text: &'t str) -> Result<(&'t str, &'t str), Stop> {
    match text.split_once('=') {
        Some(("", _)) => {
            let message = format!("`{flag} {text}` has no name before the `=`");
            Err(report.usage(message, format!("write `{flag} name=value`")))
        }
        Some(pair) => Ok(pair),
        None => Err(report.usage(format!("`{flag} {text}` has no `=`"), format!("write `{flag} name=value`"))),
    }
}

/// Refuses a name that one option sets twice.
pub fn once(report: &Report, flag: &str, texts: &[String]) -> Result<(), Stop> {
    let name = |text: &str| text.split_once('=').map_or(text, |(name, _)| name).to_string();
    for (k, text) in texts.iter().enumerate() {
        if let Some(first) = texts[..k].iter().find(|t| name(t) == name(text)) {
            let message = format!("`{flag}` sets `{}` twice: `{first}` and `{text}`", name(text));
            return Err(report.usage(message, "leave one of them out"));
        }
    }
    Ok(())
}

impl Compile {
    /// Returns the options of the compiler; `printed` is the machine that the text names, with its replicas.
    pub fn options(&self, report: &Report, printed: Option<&(String, u32)>) -> Result<Options, Stop> {
        let target = self.target.as_deref().or(printed.map(|p| p.0.as_str())).unwrap_or("gc200");
        let machine = machine(report, target)?;
        let replicas = self.replicas.or(printed.filter(|_| self.target.is_none()).map(|p| p.1));
        let machine = match replicas {
            None => machine,
            Some(replicas) => machine.replicated(replicas).map_err(|e| {
                let message = format!("`--replicas {replicas}`: {}", e.message);
                report.error("machine::replicas", message, possible_replicas(&machine))
            })?,
        };
        let mut limits = Limits::default();
        for l in &self.limits {
            let (name, value) = pair(report, "--limit", l)?;
            let number = value.replace('_', "").parse::<u64>().ok();
            if !number.is_some_and(|v| limits.set(name, v)) {
                let (message, help) = match (number, Limits::most(name)) {
                    (Some(_), Some(most)) => {
                        (format!("`--limit {l}` is too much"), format!("`{name}` is at most {most}"))
                    }
                    (None, _) if Limits::NAMES.contains(&name) => {
                        let number = value.parse::<f64>().ok().filter(|v| v.fract() == 0.0 && (0.0..1e19).contains(v));
                        let number = number.map_or(1_000_000_000, |v| v as u64);
                        let message = format!("`--limit {l}`: `{value}` is not a whole number");
                        (message, format!("write digits only, such as `--limit {name}={number}`"))
                    }
                    _ => {
                        let help = format!("limits are {}, each a number", Limits::NAMES.join(", "));
                        (format!("`--limit {l}`: there is no limit `{name}`"), help)
                    }
                };
                return Err(report.usage(message, help));
            }
        }
        let without = self.without.iter().map(|name| optional_pass(report, name)).collect::<Result<_, _>>()?;
        memory::bound(&limits, false, report);
        let mut arguments = Arguments::default();
        for a in &self.args {
            let (name, value) = pair(report, "--arg", a)?;
            arguments.list.push((name.into(), value.into()));
        }
        Ok(Options {
            machine,
            arguments,
            session: Session { limits, allow_over_memory: self.allow_over_memory, without, ..Session::default() },
        })
    }
}

/// Returns which numbers of replicas a machine can have, and why, for a user who asked for another one.
fn possible_replicas(machine: &Machine) -> String {
    match (machine.partition.replicas, machine.ipus) {
        (1, 1) => {
            let name = &machine.name;
            format!("replicas divide the processors of a machine, and {name} has one: take a larger `--target`")
        }
        (1, ipus) => {
            let counts = machine.possible_replicas();
            let which = if counts.len() > 5 && ipus.is_power_of_two() {
                format!("1, 2, 4 and so on up to {ipus}")
            } else {
                counts.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
            };
            format!(
                "each replica has the same number of the {ipus} processors, one or an even number; there may be \
                 {which} replicas"
            )
        }
        (given, _) => format!("leave out `--replicas`, or write `--replicas {given}`"),
    }
}

/// Returns the name of a pass that may be left out.
fn optional_pass(report: &Report, name: &str) -> Result<&'static str, Stop> {
    let optional = || girder::PASSES.iter().filter(|p| p.optional).map(|p| p.name);
    optional().find(|&p| p == name).ok_or_else(|| {
        let message = match girder::PASSES.iter().any(|p| p.name == name) {
            true => format!("`--without {name}`: no program runs without this pass"),
            false => format!("`--without {name}` names no pass"),
        };
        report.usage(message, format!("passes that may be left out are {}", optional().collect::<Vec<_>>().join(", ")))
    })
}

/// Reads a built-in machine or a machine file.
pub fn machine(report: &Report, name: &str) -> Result<Machine, Stop> {
    match girder::machine::builtin(name) {
        Some(machine) => Ok(machine),
        None => machine_file(report, name).map(|(machine, _)| machine),
    }
}

/// Reads a machine file. Also returns its text.
pub fn machine_file(report: &Report, name: &str) -> Result<(Machine, String), Stop> {
    if !name.ends_with(".toml") {
        let names: Vec<&str> = girder::machine::builtin_names().collect();
        let help = format!("built in are {}; a file's name ends in `.toml`", names.join(", "));
        return Err(report.error("machine::unknown", format!("there is no machine `{name}`"), help));
    }
    let text = match std::fs::read_to_string(name) {
        Ok(text) => text,
        Err(e) => {
            let help = "`girder targets gc200` prints a file to start from";
            return Err(report.error("machine::cannot_read", format!("cannot read {name}: {e}"), help));
        }
    };
    match Machine::from_toml(&text) {
        Ok(machine) => Ok((machine, text)),
        Err(e) => {
            let mut map = SourceMap::default();
            let base = map.add(name, text).map_or(0, |id| map.file(id).base);
            let span = e.span.map_or(Span::NONE, |s| Span::new(base + s.start as u32, base + s.end as u32));
            let d = Diagnostic::error("machine::invalid", span, e.message);
            report.emit(&d.help("`girder targets gc200` prints a whole file with units and sources"), &map);
            Err(Stop::User)
        }
    }
}
