//! Reductions.
//!
//! Invariant: a reduction is the whole value of a `let`, so its result is the local of the `let`.

use super::block::Printer;
use super::printed::{Result, unprintable};
use super::spelling;
use super::value::Form;
use girder_ir::codelet::{BinaryOp, ExprKind, Reduce, ReduceOp};
use girder_ir::ids::{ExprId, LocalId};
use girder_source::Span;
use girder_syntax::ast::{self, StmtId};
use girder_syntax::make::{ident, named};

impl Printer<'_> {
    /// Returns `let t = sum i in lo..hi where c { value };`.
    pub fn reduction(&mut self, r: &Reduce, homes: &[LocalId]) -> Result<StmtId> {
        if !homes.contains(&r.dst) || self.scopes.sets[r.dst] > 0 {
            return unprintable("the result of a reduction is also assigned");
        }
        if matches!(r.op, ReduceOp::ArgMin | ReduceOp::ArgMax) {
            self.search(r)?;
        }
        let mut ranges = Vec::with_capacity(r.binders.len());
        for b in &r.binders {
            ranges.push(self.range(b.lo, b.hi, b.step)?);
        }
        let mut binders = Vec::with_capacity(r.binders.len());
        for (b, range) in r.binders.iter().zip(ranges) {
            let name = self.declare(b.var, false, "i")?;
            binders.push(self.make.binder(&name, range));
        }
        let (filter, body) = self.inside_reduction(|p| {
            let filter = r.filter.map(|filter| p.filter(r, filter)).transpose()?;
            let stmts = p.block(&r.before)?;
            let value = p.reduced(r)?;
            Ok((filter, ast::Body { stmts, value: Some(value), span: Span::NONE }))
        })?;
        let reduce = ast::Reduce { op: ident(spelling::reduction(r.op)), binders, filter, body };
        let value = self.make.expr(ast::ExprKind::Reduce(Box::new(reduce)));
        let name = self.declare(r.dst, false, "t")?;
        Ok(self.let_stmt(&name, false, None, value))
    }

    /// Checks that the value of a search is its position, without further arithmetic.
    fn search(&self, r: &Reduce) -> Result<()> {
        let [b] = &r.binders[..] else { return unprintable("a search has several indices") };
        let from_zero = matches!(self.codelet.exprs[b.lo].kind, ExprKind::Const(v) if v.bits == 0);
        if !from_zero || b.step != 1 || !self.is_stable(&self.codelet.exprs[b.hi].kind) {
            return unprintable("a search does not start at 0, or its end is not kept in a local");
        }
        Ok(())
    }

    fn filter(&mut self, r: &Reduce, filter: ExprId) -> Result<ast::ExprId> {
        let stmts = self.block(&r.filter_before)?;
        // A condition that is statically true is dropped.
        let cond = self.value(filter, Form::Opaque)?;
        if stmts.is_empty() {
            return Ok(cond);
        }
        let block = self.block_value(stmts, cond);
        Ok(self.make.expr(ast::ExprKind::Paren(block)))
    }

    /// Returns the value of an element. Typing takes a product as factors exactly if it is written as one.
    fn reduced(&mut self, r: &Reduce) -> Result<ast::ExprId> {
        let value = self.expr(r.value)?;
        let product = match self.codelet.exprs[r.value].kind {
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } if r.op == ReduceOp::Sum => Some((a, b)),
            _ => None,
        };
        let product = product.filter(|_| self.codelet.exprs[r.value].ty.is_float());
        match (product, r.factors) {
            (product, factors) if product == factors => Ok(value),
            (Some(_), None) => {
                let tuple = self.make.tuple(vec![named("v", value)]);
                Ok(self.make.field(tuple, "v"))
            }
            _ => unprintable("the factors of a sum are not those of its value"),
        }
    }
}
