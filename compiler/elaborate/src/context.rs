//! What elaboration works on, beside the text of the root module.

use crate::modules::Loader;
use girder_machine::Machine;
use girder_source::{Diagnostics, Session, SourceMap};
use smol_str::SmolStr;

/// What `--arg name=value` sets: parameters of programs and `let`s of the root module.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Name and text in the order given; a later one of the same name wins.
    pub list: Vec<(SmolStr, SmolStr)>,
}

impl Arguments {
    /// Returns the argument of a name.
    pub fn get(&self, name: &str) -> Option<&(SmolStr, SmolStr)> {
        self.list.iter().rev().find(|(n, _)| n == name)
    }
}

/// What elaboration works on, beside the text.
pub struct Context<'a> {
    /// All text.
    pub map: &'a mut SourceMap,
    /// The machine whose facts the text may ask for.
    pub machine: &'a Machine,
    /// Limits.
    pub session: &'a Session,
    /// The library, files and arrays.
    pub loader: &'a dyn Loader,
    /// `--arg`
    pub arguments: &'a Arguments,
    /// Where diagnostics go.
    pub diagnostics: &'a mut Diagnostics,
}
