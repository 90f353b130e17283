//! What is said about a program from its text to the end of its run.

use crate::program::{MODES, Program};
use girder_engine::Mode;
use girder_source::{Diagnostic, SourceMap};

/// One diagnostic, as tests name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// The line of its main place in the program's own file; none if it has no place there.
    pub line: Option<u32>,
    /// Its code.
    pub code: String,
}

/// Compiles a program and, if it has a program to run, runs it in every mode. Gives all that was said, sorted, each line
/// and code once; and the same as the user sees it.
pub fn said(program: &Program) -> (Vec<Said>, String) {
    let (diagnostics, map) = match program.try_compile(&MODES) {
        Err(failure) => (failure.diagnostics.iter().cloned().collect(), failure.map),
        Ok(compiled) => {
            let mut diagnostics: Vec<Diagnostic> = compiled.diagnostics.iter().cloned().collect();
            if compiled.graph().programs.values().any(|p| p.entry) {
                let outcome = compiled.run_on(&[Mode::Interpret, Mode::Fast, Mode::Exact], &[1, 3]);
                diagnostics.extend(outcome.failure);
            }
            (diagnostics, compiled.map)
        }
    };
    let shown = diagnostics.iter().map(|d| d.render(&map, false, 120)).collect();
    let mut list: Vec<Said> = diagnostics.iter().map(|d| Said { line: line(d, &map), code: d.code.into() }).collect();
    list.sort();
    list.dedup();
    (list, shown)
}

fn line(d: &Diagnostic, map: &SourceMap) -> Option<u32> {
    let span = d.labels.first()?.span;
    let (root, _) = map.files().next()?;
    (map.file_of(span)? == root).then(|| map.location(span).map(|at| at.line))?
}
