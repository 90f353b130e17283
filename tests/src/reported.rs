//! The diagnostics of a program, from its text to the end of its run.

use crate::program::{MODES, Program};
use girder_source::{Diagnostic, SourceMap};

/// One diagnostic, as tests identify it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reported {
    /// The line of its first label in the program's own file, if it has one there.
    pub line: Option<u32>,
    /// Its code.
    pub code: String,
}

/// All diagnostics of a program.
#[derive(Clone, Debug)]
pub struct Report {
    /// Sorted, each line and code once.
    pub list: Vec<Reported>,
    /// In the order of the compiler, as the user sees them.
    pub texts: Vec<String>,
    /// The lines that the program printed before it ended.
    pub prints: Vec<String>,
}

impl Report {
    /// Compiles a program and, if it has a program to run, runs it in every mode.
    ///
    /// # Panics
    /// If the modes do not agree.
    pub fn of(program: &Program) -> Report {
        let mut prints = vec![];
        let (diagnostics, map) = match program.try_compile(&MODES) {
            Err(failure) => (failure.diagnostics.iter().cloned().collect(), failure.map),
            Ok(compiled) => {
                let mut diagnostics: Vec<Diagnostic> = compiled.diagnostics.iter().cloned().collect();
                if compiled.graph().programs.values().any(|p| p.entry) {
                    let outcome = compiled.run_on(&MODES, &[1, 3]);
                    prints = outcome.prints;
                    diagnostics.extend(outcome.failure);
                }
                (diagnostics, compiled.map)
            }
        };
        let texts = diagnostics.iter().map(|d| d.render(&map, false, 120)).collect();
        let one = |d: &Diagnostic| Reported { line: line(d, &map), code: d.code.into() };
        let mut list: Vec<Reported> = diagnostics.iter().map(one).collect();
        list.sort();
        list.dedup();
        Report { list, texts, prints }
    }
}

fn line(d: &Diagnostic, map: &SourceMap) -> Option<u32> {
    let span = d.labels.first()?.span;
    let (root, _) = map.files().next()?;
    (map.file_of(span)? == root).then(|| map.location(span).map(|at| at.line))?
}
