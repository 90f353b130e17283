//! Prints the codelets of every example and program of the repository from their typed form, in place of their source,
//! and reads the graph back.

mod common;

use common::{arguments, graph, machine, programs, root, same_codelet, text};
use girder_fusion::items;
use girder_ir::graph::{CodeletItem, Graph};
use girder_ir::ids::SpecId;
use girder_machine::Machine;
use girder_typing::print;
use std::collections::BTreeMap;
use std::path::Path;

/// What was printed.
#[derive(Default)]
struct Count {
    codelets: usize,
    calls: usize,
    /// Reasons, with the codelets that have no text.
    refused: BTreeMap<String, Vec<String>>,
}

/// Returns a graph whose codelets have texts made from their typed forms, where there is one.
fn printed(graph: &Graph, path: &Path, count: &mut Count) -> Graph {
    let mut made = graph.clone();
    for (id, codelet) in &graph.codelets {
        count.codelets += 1;
        let name = format!("made_{}", id.as_u32());
        match print::codelet_text(codelet, &name) {
            Ok(printed) => {
                count.calls += printed.calls.len();
                made.items.push(CodeletItem { name: name.clone().into(), text: printed.text.into(), calls: vec![] });
                made.codelets[id].name = name.into();
                made.codelets[id].args.clear();
            }
            Err(why) => {
                let file = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
                count.refused.entry(why.to_string()).or_default().push(format!("{file}: {}", codelet.name));
            }
        }
    }
    items::settle(&mut made);
    made
}

/// Returns a graph with its codelets and items in the opposite order, and with some that nothing uses.
fn backwards(graph: &Graph) -> Graph {
    let mut made = graph.clone();
    let count = graph.codelets.len() as u32;
    made.codelets = graph.codelets.values().rev().chain(graph.codelets.values().next()).cloned().collect();
    made.families.values_mut().for_each(|f| f.codelet = SpecId::from_u32(count - 1 - f.codelet.as_u32()));
    made.items = graph.items.values().rev().cloned().collect();
    made.items.push(CodeletItem {
        name: "unused".into(),
        text: "codelet fn unused() -> i32 { 1 }".into(),
        calls: vec![],
    });
    made
}

/// Prints the codelets of a program, reads them, and compares.
fn check(path: &Path, source: &str, machine: &Machine, count: &mut Count) {
    let arguments = arguments(source);
    let original = match graph(path, source, machine, &arguments) {
        Ok(graph) => graph,
        Err(reports) => panic!("{}: {reports}", path.display()),
    };
    let mut settled = backwards(&original);
    items::settle(&mut settled);
    assert!(text(&settled, machine) == text(&original, machine), "{}: an elaborated graph is settled", path.display());
    let made = printed(&original, path, count);
    let first = text(&made, machine);
    let again = match graph(path, &first, machine, &Default::default()) {
        Ok(graph) => graph,
        Err(reports) => panic!("{}: {reports}", path.display()),
    };
    assert_eq!(made.codelets.len(), again.codelets.len());
    for (id, codelet) in &made.codelets {
        let id = SpecId::from_u32(id.as_u32());
        if let Err(why) = same_codelet(codelet, &again.codelets[id]) {
            let item = made.items.values().find(|i| i.name == codelet.name).map(|i| i.text.clone());
            panic!("{}: {}: {why}\n{}", path.display(), original.codelets[id].name, item.unwrap_or_default());
        }
    }
    let second = text(&again, machine);
    let different = first.lines().zip(second.lines()).find(|(x, y)| x != y);
    assert!(first == second, "{}: the text is no fixed point: {different:?}", path.display());
}

fn check_all(folder: &str, default: &str, expected: &[&str]) {
    let mut count = Count::default();
    for path in programs(folder) {
        let source = std::fs::read_to_string(&path).expect("text");
        check(&path, &source, &machine(&source, default), &mut count);
    }
    println!("{folder}: {} codelets, {} with calls, refused: {:#?}", count.codelets, count.calls, count.refused);
    let refused: Vec<&str> = count.refused.keys().map(String::as_str).collect();
    assert_eq!(refused, expected, "in {}", root().join(folder).display());
}

/// Parts of matrices that have a name: typing keeps their lengths in locals.
const NAMED_PART: &str = "the length of a part of a matrix is not the distance of two bounds";

#[test]
fn codelets_of_all_examples_are_the_same_after_printing_and_reading() {
    check_all("examples", "gc200", &["a matrix has a step", NAMED_PART]);
}

#[test]
fn codelets_of_all_programs_are_the_same_after_printing_and_reading() {
    let jump = "`break` leaves another loop than the innermost one";
    let end = "a `return` leaves the middle of a function";
    let search = "a search does not start at 0, or its end is not kept in a local";
    check_all("tests/programs", "small", &[jump, end, search, NAMED_PART]);
}

#[test]
fn codelets_of_all_cases_of_passes_are_the_same_after_printing_and_reading() {
    check_all("tests/passes", "small", &[NAMED_PART]);
}
