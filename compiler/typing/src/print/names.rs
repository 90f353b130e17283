//! The names of locals in a text.
//!
//! Invariant: all names of a codelet's text differ, so none hides another; none is a name that the text may need for
//! something else, such as a type or a function.

use super::block::PRELUDE;
use girder_ir::codelet::Codelet;
use girder_ir::types::ElemType;
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};

/// Names that mean something in every codelet, besides element types.
const RESERVED: [&str; 18] = [
    "abs", "amp", "assert", "ceil", "clz", "floor", "fma", "int", "max", "min", "popcount", PRELUDE, "round", "select",
    "sqrt", "trunc", "worker", "workers",
];

/// The names in use.
pub struct Names {
    taken: BTreeSet<SmolStr>,
    /// Names of fields and sizes, which hide others.
    bound: BTreeSet<SmolStr>,
    /// The next number to try after each wanted name; smaller ones are taken.
    next: BTreeMap<SmolStr, u32>,
}

impl Names {
    /// Takes the names of fields and sizes.
    pub fn of(codelet: &Codelet) -> Names {
        let bound: BTreeSet<SmolStr> =
            codelet.fields.values().map(|f| &f.name).chain(codelet.sizes.values()).cloned().collect();
        let reserved = RESERVED.into_iter().chain(ElemType::ALL.into_iter().map(ElemType::name));
        let reserved = reserved.map(SmolStr::from);
        Names { taken: bound.iter().cloned().chain(reserved).collect(), bound, next: BTreeMap::new() }
    }

    /// Returns whether a field or size hides the other meaning of a name.
    pub fn hides(&self, name: &str) -> bool {
        self.bound.contains(name)
    }

    /// Returns an unused name: the wanted one, or that name with a number.
    pub fn unused(&mut self, preferred: &str) -> SmolStr {
        let number = self.next.entry(preferred.into()).or_default();
        let name = loop {
            let name = if *number == 0 { preferred.into() } else { format_smolstr!("{preferred}{number}") };
            *number += 1;
            if !self.taken.contains(&name) {
                break name;
            }
        };
        self.taken.insert(name.clone());
        name
    }
}
