//! The inputs of elaboration besides the text of the root module.

use crate::modules::Loader;
use crate::statement_times::StatementTimes;
use girder_machine::Machine;
use girder_source::{Diagnostics, Session, SourceMap};
use smol_str::SmolStr;

/// The arguments of `--arg name=value`: they set parameters of programs and `let`s of the root module.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Names and texts in the given order; the last one of a name takes precedence.
    pub list: Vec<(SmolStr, SmolStr)>,
}

impl Arguments {
    /// Returns the argument of a name.
    pub fn get(&self, name: &str) -> Option<&(SmolStr, SmolStr)> {
        self.list.iter().rev().find(|(n, _)| n == name)
    }
}

/// The inputs of elaboration besides the root module.
pub struct Context<'a> {
    /// All text.
    pub map: &'a mut SourceMap,
    /// The machine whose properties the text may query.
    pub machine: &'a Machine,
    /// Limits.
    pub session: &'a Session,
    /// The loader of library modules, files and arrays.
    pub loader: &'a dyn Loader,
    /// `--arg`
    pub arguments: &'a Arguments,
    /// The diagnostics so far.
    pub diagnostics: &'a mut Diagnostics,
    /// The time of each statement, if it is measured.
    pub statement_times: Option<StatementTimes>,
}
