//! Element-wise steps whose operands are all constants: their results are constants, and no step is emitted.
//!
//! Invariant: a folded result has the bits that the step would compute.

use crate::elaborator::Elaborator;
use crate::gradients::derive::{Formula, Id, OpKind};
use crate::value::Tensor;
use girder_codelet::scalar;
use girder_ir::codelet::{BinaryOp, UnaryOp};
use girder_ir::graph::{Init, VarClass};
use girder_ir::types::{ElemType, Scalar};
use girder_syntax::ast;

impl Elaborator<'_> {
    /// Returns the number that every element of a tensor is, if it is a constant that has one value.
    pub fn known_number(&self, t: &Tensor) -> Option<Scalar> {
        let (first, others) = t.view.parts.split_first()?;
        let of = |var| match self.graph.vars[var].init {
            Some(Init::Fill(s)) if self.graph.vars[var].class == VarClass::Const => Some(s),
            _ => None,
        };
        let s = of(first.var)?;
        others.iter().all(|p| of(p.var) == Some(s)).then_some(s)
    }
}

impl Formula {
    /// Returns its results for known operands; `None` if it contains an operation that is not folded.
    pub(super) fn folded(&self, inputs: &[Scalar]) -> Option<Vec<Scalar>> {
        let live = self.live();
        let mut known: Vec<Option<Scalar>> = vec![None; self.code.len()];
        for id in (0..self.code.len()).filter(|&id| live[id] && self.code[id].ty.is_some()) {
            known[id] = Some(self.value(id, inputs, &known)?);
        }
        self.outputs.iter().map(|&o| known[o]).collect()
    }

    fn value(&self, id: Id, inputs: &[Scalar], known: &[Option<Scalar>]) -> Option<Scalar> {
        let op = &self.code[id];
        let ty = op.ty?;
        // A literal takes the type of its context.
        let arg = |k: usize| known[op.args[k]].or_else(|| self.literal_of(op.args[k], ty)).filter(|s| s.ty == ty);
        let bits = match &op.kind {
            OpKind::Input(k) => return inputs.get(*k).copied(),
            OpKind::Unary(ast::UnaryOp::Neg) => scalar::unary(UnaryOp::Neg, ty, arg(0)?.bits),
            OpKind::Binary(op) => {
                let op = match op {
                    ast::BinaryOp::Add => BinaryOp::Add,
                    ast::BinaryOp::Sub => BinaryOp::Sub,
                    ast::BinaryOp::Mul => BinaryOp::Mul,
                    ast::BinaryOp::Div => BinaryOp::Div,
                    _ => return None,
                };
                scalar::binary(op, ty, arg(0)?.bits, arg(1)?.bits).ok()?
            }
            OpKind::Convert(to) => {
                let x = known[op.args[0]]?;
                scalar::convert(x.ty, *to, x.bits)
            }
            _ => return None,
        };
        Some(Scalar { ty, bits })
    }

    fn literal_of(&self, id: Id, ty: ElemType) -> Option<Scalar> {
        let x = self.literal(id)?;
        match ty {
            ElemType::F32 => Some(Scalar::f32(x as f32)),
            ElemType::F64 => Some(Scalar::f64(x)),
            _ => None,
        }
    }
}
