//! Formulas and derivatives of functions of numbers; each is made once.
//!
//! Invariant: formulas of one name have the same operations.

use super::derive::Formula;
use girder_ir::types::ElemType;
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use std::rc::Rc;

/// A derivative, and the operand of each of its results.
pub type Derivative = (Rc<Formula>, Vec<usize>);

/// Formulas and derivatives that were made.
#[derive(Debug, Default)]
pub struct Formulas {
    /// Codelet functions, by item and the types of their arguments.
    pub functions: FxHashMap<(ModuleRef, usize, Vec<ElemType>), Rc<Formula>>,
    /// Derivatives of formulas, by name, types, wanted operands, and whether the results are still there.
    pub derivatives: FxHashMap<(SmolStr, Vec<ElemType>, Vec<bool>, bool), Derivative>,
    names: FxHashMap<SmolStr, Rc<Formula>>,
}

impl Formulas {
    /// Returns a name that only formulas of the same operations have.
    pub fn name(&mut self, formula: &Rc<Formula>) -> SmolStr {
        let mut name = formula.name.clone();
        let mut number = 1;
        loop {
            match self.names.get(&name) {
                Some(known) if known.code == formula.code && known.outputs == formula.outputs => return name,
                None => {
                    self.names.insert(name.clone(), formula.clone());
                    return name;
                }
                _ => {
                    number += 1;
                    name = format_smolstr!("{}_{number}", formula.name);
                }
            }
        }
    }
}
