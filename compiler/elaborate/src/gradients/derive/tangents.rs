//! Derivatives of codelet functions that do not become a formula: those with loops, jumps out of loops, local arrays
//! that are written, reductions, or functions of arrays.
//!
//! The derivative runs the function again and carries, beside each float local and each array of floats, its *tangent*
//! along each wanted operand: the derivative by that operand. Control flow stays as it is, so nothing of an iteration
//! is kept, and what does not run adds nothing. The adjoint of an operand is the sum over the results of their adjoints
//! times their tangents along it.
//!
//! The source is a typed codelet ([`Apart`](girder_typing::Apart)), in which inner functions are inlined, except for
//! those with a rule. The derivative is text again, so it has derivatives of its own.
//!
//! # Note: Infinite partial derivatives
//! A local whose first value is a literal has the tangent 0 until a loop changes it. Where its partial derivative is
//! infinite, as that of `sqrt` at 0, the product would be NaN. There the partial derivative counts as 0. The tangent
//! stays a factor of the product, so that second derivatives see it.
//!
//! Invariant: a tangent is written before the value that it belongs to, so that it is computed from the old values.

pub mod derivative;
pub mod source;
mod activity;
mod check;
mod partials;
mod writer;
mod expressions;
mod statements;
mod jumps;
mod reductions;

use super::Formula;
use activity::Activity;
use girder_ir::codelet::{Codelet, Label};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;
use girder_syntax::ast;
use girder_syntax::make::Make;
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// The derivative of a function of scalars by some of its operands.
#[derive(Debug)]
pub struct Tangents {
    /// Its name, for the codelet and for messages.
    pub name: SmolStr,
    /// The types of its operands: those of the function, then its results, then their adjoints.
    pub inputs: Vec<ElemType>,
    /// The operands that it reads.
    pub kept: Vec<usize>,
    /// The operand of the function to which each result belongs.
    pub by: Vec<usize>,
    /// The codelet functions that it calls.
    pub callees: Vec<(ModuleRef, usize)>,
    codelet: Codelet,
    calls: FxHashMap<Label, RuleCall>,
    activity: Activity,
    /// The number of operands of the function.
    operands: usize,
}

/// A call of a function with a rule.
#[derive(Debug)]
struct RuleCall {
    /// The function's name in printed text.
    name: SmolStr,
    /// Its arguments.
    args: Vec<ExprId>,
    /// Its generics that are integers, which the call names.
    generics: Vec<(SmolStr, i128)>,
    /// The locals that hold its results.
    results: Vec<LocalId>,
    /// The partial derivatives; operands are the arguments, then the results.
    partials: Formula,
    /// The argument and the result of each partial derivative.
    by: Vec<(usize, usize)>,
}

impl Tangents {
    /// Returns the types of its results.
    pub fn outputs(&self) -> Vec<ElemType> {
        self.by.iter().map(|&k| self.inputs[k]).collect()
    }

    /// Builds the statements that compute it; `input` builds the value of an operand of [`Tangents::kept`], by its
    /// position there. Returns the values of the results.
    pub fn statements(
        &self,
        make: &mut Make,
        input: &mut dyn FnMut(&mut Make, usize) -> ast::ExprId,
    ) -> (Vec<ast::StmtId>, Vec<ast::ExprId>) {
        writer::Writer::new(self, make).derivative(input)
    }

    /// Returns whether two derivatives have the same text.
    pub fn is_same(&self, other: &Tangents) -> bool {
        self.inputs == other.inputs && self.kept == other.kept && self.text() == other.text()
    }

    fn text(&self) -> String {
        let mut make = Make::default();
        let (mut list, values) = self.statements(&mut make, &mut |make, k| make.name(&format!("x{k}")));
        for expr in values {
            list.push(make.stmt(ast::StmtKind::Expr { expr, semi: true }));
        }
        let node = ast::Codelet {
            multi: false,
            name: girder_syntax::make::path("text"),
            generics: vec![],
            fields: vec![],
            body: girder_syntax::make::body(list),
        };
        make.item(ast::ItemKind::Codelet(node));
        girder_syntax::format(&make.module, "")
    }
}
