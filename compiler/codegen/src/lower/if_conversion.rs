//! If-conversion: conditions whose branches only set a few integers. Both sides are evaluated, and the condition
//! selects the results. A branch that depends on data is often mispredicted, which costs more than a few operations.
//!
//! Invariant: code of a side that the program does not take fails no check and accesses no element.

use super::{LocalStorage, Lower};
use cranelift_codegen::ir::{InstBuilder, Value};
use girder_ir::codelet::{BinaryOp, ExprKind, Stmt, StmtBlock, UnaryOp};
use girder_ir::ids::{ExprId, LocalId};

/// The greatest number of nodes of both branches for which both are evaluated.
const CHEAP: u64 = 16;

impl Lower<'_, '_> {
    /// Emits a condition without a branch, if both sides are cheap enough. Returns whether it did.
    pub(super) fn convert_if(&mut self, cond: ExprId, (then, els): (&StmtBlock, &StmtBlock)) -> bool {
        let nodes = [then, els].into_iter().try_fold(0u64, |sum, block| Some(sum + self.cheap_block(block)?));
        if self.counts_in(then) || self.counts_in(els) || nodes.is_none_or(|n| n == 0 || n > CHEAP) {
            return false;
        }
        let cond = self.expr(cond);
        let mut locals: Vec<LocalId> = Vec::new();
        for stmt in then.iter().chain(els) {
            if let Stmt::Set { local, .. } = stmt
                && !locals.contains(local)
            {
                locals.push(*local);
            }
        }
        let before: Vec<Value> = locals.iter().map(|&l| self.read(l)).collect();
        self.block(then);
        let yes: Vec<Value> = locals.iter().map(|&l| self.read(l)).collect();
        locals.iter().zip(before).for_each(|(&l, v)| self.write(l, v));
        self.block(els);
        for (&local, yes) in locals.iter().zip(yes) {
            let no = self.read(local);
            let value = self.b.ins().select(cond, yes, no);
            self.write(local, value);
        }
        true
    }

    /// Returns the number of nodes of a block that only sets integers to cheap values that cannot fail; otherwise
    /// `None`.
    fn cheap_block(&self, block: &StmtBlock) -> Option<u64> {
        block.iter().try_fold(0, |sum, stmt| match *stmt {
            Stmt::Set { local, value } if self.is_in_register(local) => Some(sum + self.cheap(value)?),
            _ => None,
        })
    }

    /// Returns whether a local is an integer in a register.
    fn is_in_register(&self, local: LocalId) -> bool {
        let is_int = !self.codelet.locals[local].ty.is_float();
        is_int && matches!(self.locals[local], Some(LocalStorage::Variable(_)))
    }

    fn cheap(&self, e: ExprId) -> Option<u64> {
        use BinaryOp::*;
        let expr = &self.codelet.exprs[e];
        if self.folded[e].is_some() {
            return Some(1);
        }
        if expr.ty.is_float() {
            return None;
        }
        let nodes = match expr.kind {
            ExprKind::Local(_) | ExprKind::Size(_) | ExprKind::ConstField(_) => 0,
            ExprKind::Unary { op: UnaryOp::Neg | UnaryOp::Not, x } => self.cheap(x)?,
            ExprKind::Binary { op: Div | Rem, a, b, .. } if self.folded[b].is_some_and(u64::is_power_of_two) => {
                2 + self.cheap(a)?
            }
            ExprKind::Binary { op: Shl | Shr, a, b, .. }
                if self.folded[b].is_some_and(|n| n < 8 * u64::from(expr.ty.bytes())) =>
            {
                self.cheap(a)?
            }
            ExprKind::Binary { a, b, site: None, .. } if !self.ty(a).is_float() => self.cheap(a)? + self.cheap(b)?,
            ExprKind::Convert { x } if !self.ty(x).is_float() => self.cheap(x)?,
            _ => return None,
        };
        Some(nodes + 1)
    }
}
