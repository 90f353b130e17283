//! Reductions: the value in the fixed order of the language, then a loop over the same elements for its tangents.
//!
//! The tangent of a least or greatest element is that of the first element with the value of the result.
//!
//! Invariant: the value is written as the function computes it, without tangents.

use super::activity::is_differentiable;
use super::writer::{Tangent, Writer};
use girder_ir::codelet::{BinaryOp, Binder, ExprKind, Reduce, ReduceOp};
use girder_source::Span;
use girder_syntax::ast::{self, StmtKind};
use girder_syntax::make::{body, ident, named};
use girder_typing::print::spelling;
use smol_str::SmolStr;

impl Writer<'_> {
    pub fn reduce(&mut self, r: &Reduce, declares: bool) {
        let directions = std::mem::take(&mut self.directions);
        let value = self.reduction(r);
        self.directions = directions;
        let ty = self.codelet.locals[r.dst].ty;
        let name = self.name_of(r.dst);
        match declares {
            true => self.let_stmt(&name, self.scopes.sets[r.dst] > 0, Some(ty), value),
            false => {
                let target = self.make.name(&name);
                self.assign(target, value);
            }
        }
        let directions = self.directions_of(r.dst);
        if directions.is_empty() || !is_differentiable(r.op) {
            return;
        }
        for &d in &directions {
            let (name, zero) = (self.tangent_name(r.dst, d), self.number(0.0, ty));
            match declares {
                true => self.let_stmt(&name, true, Some(ty), zero),
                false => {
                    let target = self.make.name(&name);
                    self.assign(target, zero);
                }
            }
        }
        let product = (r.op == ReduceOp::Product).then(|| {
            let (name, one) = (self.fresh("product"), self.number(1.0, ty));
            self.let_stmt(&name, true, Some(ty), one);
            name
        });
        let binders = self.binders(r);
        let stmts = self.inside(|this| {
            let before = this.block(&r.filter_before);
            this.list.extend(before);
            let cond = r.filter.map(|filter| this.value(filter));
            let stmts = this.inside(|this| this.of_element(r, &directions, product.as_ref()));
            match cond {
                Some(cond) => this.if_stmt(cond, stmts, vec![]),
                None => this.list.extend(stmts),
            }
        });
        let stmt = self.make.stmt(StmtKind::For { binders, body: body(stmts) });
        self.list.push(stmt);
    }

    /// Writes what an element adds to the tangents of the result.
    fn of_element(&mut self, r: &Reduce, directions: &[usize], product: Option<&SmolStr>) {
        let before = self.block(&r.before);
        self.list.extend(before);
        let ty = self.codelet.locals[r.dst].ty;
        let tangents: Vec<Tangent> = directions.iter().map(|&d| self.tangent(r.value, d)).collect();
        let value = self.shared(r.value);
        let mut stmts = vec![];
        for (&d, tangent) in directions.iter().zip(tangents) {
            let name = self.tangent_name(r.dst, d);
            let old = Tangent::Of(self.make.name(&name));
            let new = match (r.op, product) {
                (ReduceOp::Sum, _) => self.add(ast::BinaryOp::Add, old, tangent),
                (ReduceOp::Product, Some(product)) => {
                    let value = self.shared(r.value);
                    let (scaled, others) = (self.times(old, value), self.make.name(product));
                    let own = self.times(tangent, others);
                    self.add(ast::BinaryOp::Add, scaled, own)
                }
                _ => tangent,
            };
            let value = self.value_of(new, ty);
            let target = self.make.name(&name);
            stmts.extend(self.inside(|this| this.assign(target, value)));
        }
        match (r.op, product) {
            (ReduceOp::Min | ReduceOp::Max, _) => {
                let result = self.make.name(&self.name_of(r.dst));
                let is_it = self.make.binary(ast::BinaryOp::Eq, value, result);
                stmts.push(self.make.stmt(StmtKind::Break));
                self.if_stmt(is_it, stmts, vec![]);
            }
            (_, Some(product)) => {
                self.list.extend(stmts);
                let (target, old) = (self.make.name(product), self.make.name(product));
                let new = self.make.binary(ast::BinaryOp::Mul, old, value);
                self.assign(target, new);
            }
            _ => self.list.extend(stmts),
        }
    }

    fn binders(&mut self, r: &Reduce) -> Vec<ast::Binder> {
        let mut binders = vec![];
        for b in &r.binders {
            let (name, range) = (self.name_of(b.var), self.range(b.lo, b.hi, b.step));
            binders.push(self.make.binder(&name, range));
        }
        binders
    }

    /// Returns the value of a reduction.
    fn reduction(&mut self, r: &Reduce) -> ast::ExprId {
        let binders = self.binders(r);
        let filter = r.filter.map(|filter| {
            let stmts = self.block(&r.filter_before);
            let cond = self.value(filter);
            if stmts.is_empty() {
                return cond;
            }
            let block = self.block_value(stmts, cond);
            self.make.expr(ast::ExprKind::Paren(block))
        });
        let stmts = self.block(&r.before);
        let mut value = self.value(r.value);
        // The product of two factors would be added by `fma`.
        let is_product = matches!(self.codelet.exprs[r.value].kind, ExprKind::Binary { op: BinaryOp::Mul, .. });
        if r.op == ReduceOp::Sum && is_product && r.factors.is_none() {
            let name = self.make.tuple(vec![named("v", value)]);
            value = self.make.field(name, "v");
        }
        let body = ast::Body { stmts, value: Some(value), span: Span::NONE };
        let reduce = ast::Reduce { op: ident(spelling::reduction(r.op)), binders, filter, body };
        let found = self.make.expr(ast::ExprKind::Reduce(Box::new(reduce)));
        match r.op {
            ReduceOp::ArgMin | ReduceOp::ArgMax => self.position(r, found),
            _ => found,
        }
    }

    /// Returns the number of the element whose indices a search gives.
    fn position(&mut self, r: &Reduce, found: ast::ExprId) -> ast::ExprId {
        use ast::BinaryOp as A;
        let names: Vec<SmolStr> = r.binders.iter().map(|_| self.fresh("at")).collect();
        let mut parts: Vec<_> = names.iter().map(|name| ast::Pattern::Name(ident(name))).collect();
        let pattern = match parts.len() {
            1 => parts.remove(0),
            _ => ast::Pattern::Tuple(parts, Span::NONE),
        };
        let of = ast::Let { mutable: false, pattern, ty: None, value: found, span: Span::NONE };
        let stmt = self.make.stmt(StmtKind::Decl(ast::Decl::Let(of)));
        self.list.push(stmt);
        let mut number = None;
        for (b, name) in r.binders.iter().zip(&names) {
            let (at, lo, step) = (self.make.name(name), self.value(b.lo), self.make.int(b.step));
            let at = self.make.binary(A::Sub, at, lo);
            let at = self.make.binary(A::Div, at, step);
            number = Some(match number {
                None => at,
                Some(outer) => {
                    let count = self.count(b);
                    let outer = self.make.binary(A::Mul, outer, count);
                    self.make.binary(A::Add, outer, at)
                }
            });
        }
        number.unwrap_or_else(|| self.make.uint(0))
    }

    /// Returns the number of indices of a binder.
    fn count(&mut self, b: &Binder) -> ast::ExprId {
        use ast::BinaryOp as A;
        let (lo, hi, step) = (self.value(b.lo), self.value(b.hi), self.make.int(b.step));
        let length = self.make.binary(A::Sub, hi, lo);
        let round = self.make.int(b.step - b.step.signum());
        let length = self.make.binary(A::Add, length, round);
        self.make.binary(A::Div, length, step)
    }
}
