//! Formulas and derivatives of functions of numbers; each is made once.
//!
//! Invariant: derivatives of one name have the same text.

use super::derive::tangents::Tangents;
use super::derive::{Formula, text};
use girder_ir::types::ElemType;
use girder_syntax::ast::{ExprId, StmtId};
use girder_syntax::make::Make;
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use std::rc::Rc;

/// A derivative of a function of numbers.
#[derive(Clone, Debug)]
pub enum Derived {
    /// A formula.
    Formula(Rc<Formula>),
    /// The function itself, with tangents.
    Tangents(Rc<Tangents>),
}

/// A derivative, and the operand of each of its results.
pub type Derivative = (Derived, Vec<usize>);

/// Formulas and derivatives that were made.
#[derive(Debug, Default)]
pub struct Formulas {
    /// Codelet functions, by item and the types of their arguments; `None` for one that does not become a formula.
    pub functions: FxHashMap<(ModuleRef, usize, Vec<ElemType>), Option<Rc<Formula>>>,
    /// Derivatives, by name, types, wanted operands, and whether the results are still there.
    pub derivatives: FxHashMap<(SmolStr, Vec<ElemType>, Vec<bool>, bool), Derivative>,
    names: FxHashMap<SmolStr, Derived>,
}

impl Derived {
    /// Returns its name.
    pub fn name(&self) -> &SmolStr {
        match self {
            Derived::Formula(f) => &f.name,
            Derived::Tangents(t) => &t.name,
        }
    }

    /// Returns the derivative without the operands that it does not read, and the numbers of those that it reads.
    pub fn compact(&self) -> (Derived, Vec<usize>) {
        match self {
            Derived::Formula(f) => {
                let f = f.compact();
                let kept = f.kept.clone();
                (Derived::Formula(Rc::new(f)), kept)
            }
            Derived::Tangents(t) => (self.clone(), t.kept.clone()),
        }
    }

    /// Returns the types of the operands of a compact derivative.
    pub fn inputs(&self) -> Vec<ElemType> {
        match self {
            Derived::Formula(f) => f.inputs.clone(),
            Derived::Tangents(t) => t.kept.iter().map(|&k| t.inputs[k]).collect(),
        }
    }

    /// Returns the types of its results.
    pub fn outputs(&self) -> Vec<ElemType> {
        match self {
            Derived::Formula(f) => f.outputs.iter().map(|&o| f.code[o].ty.unwrap_or(ElemType::F32)).collect(),
            Derived::Tangents(t) => t.outputs(),
        }
    }

    /// Returns the codelet functions that it calls.
    pub fn callees(&self) -> Vec<(ModuleRef, usize)> {
        match self {
            Derived::Formula(f) => text::callees(f),
            Derived::Tangents(t) => t.callees.clone(),
        }
    }

    /// Builds the statements that compute a compact derivative; `input` builds the value of an operand. Returns the
    /// values of the results.
    pub fn statements(
        &self,
        make: &mut Make,
        input: &mut dyn FnMut(&mut Make, usize) -> ExprId,
    ) -> (Vec<StmtId>, Vec<ExprId>) {
        match self {
            Derived::Formula(f) => text::statements(f, make, input),
            Derived::Tangents(t) => t.statements(make, input),
        }
    }

    fn is_same(&self, other: &Derived) -> bool {
        match (self, other) {
            (Derived::Formula(a), Derived::Formula(b)) => a.code == b.code && a.outputs == b.outputs,
            (Derived::Tangents(a), Derived::Tangents(b)) => Rc::ptr_eq(a, b) || a.is_same(b),
            _ => false,
        }
    }
}

impl Formulas {
    /// Returns a name that only derivatives of the same text have.
    pub fn name(&mut self, of: &Derived) -> SmolStr {
        let mut name = of.name().clone();
        let mut number = 1;
        loop {
            match self.names.get(&name) {
                Some(known) if known.is_same(of) => return name,
                None => {
                    self.names.insert(name.clone(), of.clone());
                    return name;
                }
                _ => {
                    number += 1;
                    name = format_smolstr!("{}_{number}", of.name());
                }
            }
        }
    }
}
