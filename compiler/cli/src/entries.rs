//! Selects the programs of a module that a command runs.

use crate::report::{Done, Report, Stop};
use girder::Start;
use girder::ir::graph::Graph;
use girder::ir::ids::ProgramId;

/// Returns the programs with these names; without names, `main` or the only program.
pub fn chosen(graph: &Graph, wanted: &[String], report: &Report) -> Result<Vec<ProgramId>, Stop> {
    let entries: Vec<(ProgramId, &str)> =
        graph.programs.iter().filter(|(_, p)| p.entry).map(|(id, p)| (id, p.name.as_str())).collect();
    let names: Vec<&str> = entries.iter().map(|(_, n)| *n).collect();
    let find = |name: &str| entries.iter().find(|(_, n)| *n == name).map(|(id, _)| *id);
    if wanted.is_empty() {
        return match (&entries[..], find("main")) {
            (_, Some(id)) | (&[(id, _)], None) => Ok(vec![id]),
            ([], _) => {
                let help = "add one: `program main() { … }`";
                Err(report.error("run::no_program", "the module has no program", help))
            }
            _ => {
                let help = format!("name one: {}", names.join(", "));
                Err(report.usage("the module has several programs and none is `main`", help))
            }
        };
    }
    let one = |name: &String| {
        find(name).ok_or_else(|| {
            let has = names.join(", ");
            let help = format!("it has {has}; a parameter without a default takes its value from `--arg name=…`");
            report.error("run::no_program", format!("the module has no program `{name}` that can be started"), help)
        })
    };
    wanted.iter().map(one).collect()
}

/// Checks that every argument of the command line belongs to a program that runs, or to a `let`.
pub fn take_arguments(start: &Start, programs: &[ProgramId], args: &[String], report: &Report) -> Done {
    let graph = start.graph();
    for (name, owners) in start.arguments_of_programs() {
        let text = args.iter().find(|text| text.split_once('=').is_some_and(|pair| pair.0 == name));
        let Some(text) = text else { continue };
        // A program that is called has the arguments of the call.
        if !programs.iter().any(|&p| owners.contains(&graph.programs[p].name.to_string())) {
            let message = format!("`--arg {text}` sets a parameter of `{}`, which does not run", owners.join("`, `"));
            let help = format!("leave it out, or run the program too: `girder run file.gir {}`", owners[0]);
            return Err(report.usage(message, help));
        }
    }
    Ok(())
}
