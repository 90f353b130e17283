//! The end of a translation: open types get their defaults, constants get their bits, and expressions whose form
//! depends on an open type are corrected.
//!
//! Invariant: the finished codelet has no open type, no conversion of a type to itself, and sites on integer divisions
//! only.

use super::builder::Builder;
use girder_ir::codelet::{Codelet, ExprKind, Stmt, StmtBlock};
use girder_ir::ids::ExprId;
use girder_source::{Diagnostic, Failed, Result};

impl Builder<'_, '_> {
    /// Returns the codelet, if no error was reported.
    pub(super) fn finish(mut self) -> Result<Codelet> {
        for id in self.out.exprs.keys() {
            self.decide(id);
        }
        for id in self.out.locals.keys() {
            self.out.locals[id].ty = self.types.default_of(self.local_types[id]);
        }
        if self.has_failed() {
            return Err(Failed);
        }
        let mut body = self.blocks.pop().unwrap_or_default();
        self.drop_integer_factors(&mut body);
        self.out.body = body;
        Ok(self.out)
    }

    fn decide(&mut self, id: ExprId) {
        let ty = self.types.default_of(self.expr_types[id]);
        self.out.exprs[id].ty = ty;
        if let Some(&l) = self.literals.get(&id) {
            match l.to_scalar(ty) {
                Some(s) => self.out.exprs[id].kind = ExprKind::Const(s),
                None => {
                    let span = self.out.exprs[id].span;
                    let d = Diagnostic::error("codelet::literal_range", span, format!("{l} does not fit `{ty}`"));
                    let d = d.here(format!("this is `{ty}`"));
                    self.report(if ty.is_float() { d.help(format!("infinity is written `{ty}.inf`")) } else { d });
                }
            }
        }
        if let ExprKind::Binary { site, .. } = &mut self.out.exprs[id].kind
            && ty.is_float()
        {
            *site = None;
        }
        // Operands precede their operators in the arena, so their types are decided.
        if let ExprKind::Convert { x } = self.out.exprs[id].kind
            && self.out.exprs[x].ty == ty
        {
            self.out.exprs[id].kind = self.out.exprs[x].kind.clone();
        }
    }

    /// Restricts `fma` to sums of floats.
    fn drop_integer_factors(&self, block: &mut StmtBlock) {
        for stmt in block {
            if let Stmt::Reduce(r) = stmt
                && !self.out.exprs[r.value].ty.is_float()
            {
                r.factors = None;
            }
            stmt.blocks_mut().for_each(|inner| self.drop_integer_factors(inner));
        }
    }
}
