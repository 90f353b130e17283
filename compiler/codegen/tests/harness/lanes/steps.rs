//! Random statements of one iteration: locals that are set, conditions with stores in their branches, inner loops,
//! totals.
//!
//! Invariant: a local is in `set` only while it has a value on every path.

use super::Lanes;
use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

impl Lanes<'_, '_> {
    /// Returns the statements of a local to which a loop adds: before the loop, in it, and after it.
    pub(super) fn total(&mut self) -> (Stmt, StmtBlock, StmtBlock) {
        let ty = self.ty();
        let local = self.b.local(ty);
        let known = std::mem::take(&mut self.set);
        let indices = std::mem::take(&mut self.indices);
        let before = Stmt::Set { local, value: self.leaf(ty) };
        (self.set, self.indices) = (known, indices);
        let op = match ty.is_float() {
            true => self.choices.pick(&[BinaryOp::Min, BinaryOp::Max, BinaryOp::Add]),
            false => self.choices.pick(&[BinaryOp::Add, BinaryOp::Add, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max]),
        };
        let take = |l: &mut Self| {
            let (old, value) = (l.b.read(local), l.value(ty, 2));
            let value = match l.choices.below(4) {
                0 if op == BinaryOp::Add => l.b.binary(BinaryOp::Sub, old, value),
                1 => l.b.binary(op, value, old),
                _ => l.b.binary(op, old, value),
            };
            Stmt::Set { local, value }
        };
        let inside = match self.choices.below(5) {
            0 => vec![take(self)],
            1 => {
                let (cond, then, els) = (self.value(Bool, 2), take(self), take(self));
                vec![Stmt::If { cond, then: vec![then], els: vec![els] }]
            }
            2 => {
                let (lo, hi) = (self.b.int(0), self.choices.pick(&[1, 3, 9]));
                let (hi, n) = (self.b.int(hi), self.b.sized(self.n));
                let hi = self.b.binary(BinaryOp::Min, hi, n);
                let (var, label) = (self.b.local(I64), self.b.label());
                self.inner.push(var);
                let body = vec![take(self)];
                self.inner.pop();
                vec![Stmt::For { var, lo, hi, step: 1, label, body, site: self.b.site(Check::Iterations) }]
            }
            _ => {
                let (cond, then) = (self.value(Bool, 2), take(self));
                vec![Stmt::If { cond, then: vec![then], els: vec![] }]
            }
        };
        let outer = self.indices.pop();
        let (shown, index) = (self.b.read(local), self.line_index());
        let after = vec![self.b.store(self.of(&self.outs, ty), &[index], shown)];
        self.indices.extend(outer);
        (before, inside, after)
    }

    pub(super) fn steps(&mut self, depth: u32) -> StmtBlock {
        let mut block = StmtBlock::new();
        for _ in 0..self.choices.below(3) {
            let ty = self.ty();
            let value = self.value(ty, 3);
            let local = self.b.local(ty);
            block.push(Stmt::Set { local, value });
            self.set.push(local);
            if depth > 0 && self.choices.below(3) == 0 {
                block.push(self.nested(local, ty));
            }
            if depth > 0 && self.choices.below(3) == 0 {
                let cond = self.value(Bool, 2);
                let (yes, no) = (self.calm(ty), self.calm(ty));
                let els = if self.choices.below(2) == 0 { vec![] } else { vec![Stmt::Set { local, value: no }] };
                block.push(Stmt::If { cond, then: vec![Stmt::Set { local, value: yes }], els });
            }
        }
        block
    }

    /// A condition with stores in its branches: one, both, of the same element or not, and conditions in them.
    pub(super) fn branches(&mut self, depth: u32) -> Stmt {
        if self.choices.below(6) == 0 {
            return self.guarded();
        }
        let cond = if self.choices.below(4) == 0 {
            let (field, zero) = (self.of(&self.scalars, self.types[0]), self.b.bits(self.types[0], 0));
            let x = self.b.load(field, &[]);
            self.b.binary(BinaryOp::Lt, x, zero)
        } else {
            self.value(Bool, 2)
        };
        let known = self.set.len();
        let branch = |l: &mut Self, same: Option<(FieldId, Vec<ExprId>, ElemType)>| {
            let mut block = if l.choices.below(3) == 0 { l.steps(0) } else { vec![] };
            match same {
                Some((field, index, ty)) if depth == 0 || l.choices.below(3) > 0 => {
                    let value = l.value(ty, 2);
                    block.push(l.b.store(field, &index, value));
                }
                _ if depth > 0 && l.choices.below(3) == 0 => block.push(l.branches(depth - 1)),
                _ => block.push(l.store()),
            }
            l.set.truncate(known);
            block
        };
        match self.choices.below(4) {
            0 => Stmt::If { cond, then: branch(self, None), els: vec![] },
            1 => Stmt::If { cond, then: branch(self, None), els: branch(self, None) },
            _ => {
                let ty = self.ty();
                let (field, index) = (self.of(&self.outs, ty), vec![self.line_index()]);
                let same = Some((field, index, ty));
                Stmt::If { cond, then: branch(self, same.clone()), els: branch(self, same) }
            }
        }
    }

    /// Makes an access that is in bounds only because of the condition.
    fn guarded(&mut self) -> Stmt {
        let ty = self.ty();
        let i = match self.indices.last() {
            Some(&i) => self.b.read(i),
            None => self.b.int(0),
        };
        let by = self.choices.below(9) as i64;
        let by = self.b.int(by);
        let cond = self.b.binary(BinaryOp::Ge, i, by);
        let before = self.b.binary(BinaryOp::Sub, i, by);
        let (vectors, outs) = (self.of(&self.vectors, ty), self.of(&self.outs, ty));
        let (x, other) = (self.b.load(vectors, &[before]), self.value(ty, 1));
        let value = self.b.binary(BinaryOp::Add, x, other);
        let at = if self.choices.below(3) == 0 { before } else { i };
        let els = match self.choices.below(2) {
            0 => vec![],
            _ => {
                let value = self.value(ty, 1);
                vec![self.b.store(outs, &[i], value)]
            }
        };
        Stmt::If { cond, then: vec![self.b.store(outs, &[at], value)], els }
    }

    /// Sets a local by a statement with a loop, or with a condition that all iterations share.
    fn nested(&mut self, local: LocalId, ty: ElemType) -> Stmt {
        let hi = self.choices.pick(&[1, 2, 3, 5, 8, 16, 17, 35]);
        let n = self.b.sized(self.n);
        let (lo, hi) = (self.b.int(0), self.b.int(hi));
        let hi = self.b.binary(BinaryOp::Min, hi, n);
        let var = self.b.local(I64);
        self.inner.push(var);
        let stmt = match self.choices.below(4) {
            0 => {
                let value = self.value(ty, 2);
                let label = self.b.label();
                let (body, site) = (vec![Stmt::Set { local, value }], self.b.site(Check::Iterations));
                Stmt::For { var, lo, hi, step: 1, label, body, site }
            }
            1 => {
                self.inner.pop();
                let field = self.of(&self.scalars, ty);
                let (x, zero) = (self.b.load(field, &[]), self.b.bits(ty, 0));
                let cond = self.b.binary(BinaryOp::Lt, x, zero);
                let value = self.value(ty, 2);
                return Stmt::If { cond, then: vec![Stmt::Set { local, value }], els: vec![] };
            }
            _ => {
                use ReduceOp::*;
                let op = self.choices.pick(&[Sum, Sum, Sum, Product, Min, Max]);
                let (value, factors) = if op == Sum && ty.is_float() && self.choices.below(2) == 0 {
                    let (x, y) = (self.value(ty, 1), self.value(ty, 1));
                    (self.b.binary(BinaryOp::Mul, x, y), Some((x, y)))
                } else {
                    (self.value(ty, 2), None)
                };
                let mut binders = vec![Binder { var, lo, hi, step: 1 }];
                if self.choices.below(4) == 0 {
                    let three = self.b.int(3);
                    binders.insert(0, Binder { var: self.b.local(I64), lo, hi: three, step: 2 });
                }
                let (site, iterations) = (self.b.site(Check::Empty), self.b.site(Check::Iterations));
                let (filter_before, filter, before) = (vec![], None, vec![]);
                let dst = local;
                let reduce =
                    Reduce { dst, op, binders, filter_before, filter, before, value, factors, site, iterations };
                Stmt::Reduce(Box::new(reduce))
            }
        };
        self.inner.pop();
        stmt
    }

    pub(super) fn store(&mut self) -> Stmt {
        let ty = self.ty();
        let value = self.value(ty, 3);
        if self.choices.below(4) == 0 {
            let index = self.strided_index();
            let field = self.of(&self.long_outs, ty);
            return self.b.store(field, &[index], value);
        }
        if self.choices.below(3) == 0 && self.indices.len() > 1 {
            let index: Vec<ExprId> = self.indices.clone().iter().map(|&i| self.b.read(i)).collect();
            let field = self.of(&self.grids, ty);
            return self.b.store(field, &index, value);
        }
        let index = self.line_index();
        let field = self.of(&self.outs, ty);
        self.b.store(field, &[index], value)
    }

    /// Stores some or all of several adjacent elements.
    pub(super) fn neighbours(&mut self) -> StmtBlock {
        let ty = self.ty();
        let count = self.stride.unsigned_abs() as usize;
        let stored: Vec<i64> = (0..count as i64).filter(|_| self.choices.below(4) > 0).collect();
        let mut block = StmtBlock::new();
        for first in stored {
            let value = self.value(ty, 2);
            let i = match self.indices.last() {
                Some(&i) => self.b.read(i),
                None => self.b.int(0),
            };
            let (stride, first) = (self.b.int(self.stride.abs()), self.b.int(first));
            let at = self.b.binary(BinaryOp::Mul, i, stride);
            let at = self.b.binary(BinaryOp::Add, first, at);
            let field = self.of(&self.long_outs, ty);
            block.push(self.b.store(field, &[at], value));
        }
        block
    }
}
