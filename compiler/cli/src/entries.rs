//! Selects the programs of a module that a command runs.

use crate::report::{Report, Stop};
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
            let help = format!("it has {}", names.join(", "));
            report.error("run::no_program", format!("the module has no program `{name}`"), help)
        })
    };
    wanted.iter().map(one).collect()
}
