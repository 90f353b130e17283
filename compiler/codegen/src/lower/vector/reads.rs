//! How often locals are read.
//!
//! Invariant: two counts, of a body and of the whole codelet, walk equal trees equally, so that a local whose counts
//! agree is read nowhere else.

use crate::validate::operands;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Block, Codelet, ExprKind, Matrix, Reduce, Stmt};
use girder_ir::ids::{ExprId, LocalId};

/// Reads of each local in a block; recursion is bounded by `validate`.
pub(crate) fn reads(codelet: &Codelet, block: &Block) -> SecondaryMap<LocalId, u32> {
    let mut count = Count { codelet, reads: SecondaryMap::new() };
    count.block(block);
    count.reads
}

/// Reads of each local in a reduction.
pub(crate) fn reads_of_reduce(codelet: &Codelet, r: &Reduce) -> SecondaryMap<LocalId, u32> {
    let mut count = Count { codelet, reads: SecondaryMap::new() };
    count.reduce(r);
    count.reads
}

struct Count<'a> {
    codelet: &'a Codelet,
    reads: SecondaryMap<LocalId, u32>,
}

impl Count<'_> {
    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Set { value, .. } | Stmt::Fill { value, .. } => self.expr(*value),
            Stmt::StoreLocal { index, value, .. } | Stmt::Store { index, value, .. } => {
                index.iter().for_each(|&e| self.expr(e));
                self.expr(*value);
            }
            Stmt::For { lo, hi, body, .. } => {
                self.expr(*lo);
                self.expr(*hi);
                self.block(body);
            }
            Stmt::While { before, cond, body, .. } => {
                self.block(before);
                self.expr(*cond);
                self.block(body);
            }
            Stmt::If { cond, then, els } => {
                self.expr(*cond);
                self.block(then);
                self.block(els);
            }
            Stmt::Labelled { body, .. } => self.block(body),
            Stmt::Assert { cond, .. } => self.expr(*cond),
            Stmt::Reduce(r) => self.reduce(r),
            Stmt::Amp(amp) => [&amp.c, &amp.a, &amp.b].into_iter().for_each(|m| self.matrix(m)),
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return => {}
        }
    }

    fn reduce(&mut self, r: &Reduce) {
        for b in &r.binders {
            self.expr(b.lo);
            self.expr(b.hi);
        }
        self.block(&r.filter_before);
        r.filter.into_iter().for_each(|e| self.expr(e));
        self.block(&r.before);
        self.expr(r.value);
        if let Some((x, y)) = r.factors {
            self.expr(x);
            self.expr(y);
        }
    }

    fn matrix(&mut self, m: &Matrix) {
        m.at.iter().for_each(|&e| self.expr(e));
        self.expr(m.rows);
        self.expr(m.cols);
    }

    fn expr(&mut self, e: ExprId) {
        let expr = &self.codelet.exprs[e];
        if let ExprKind::Local(local) = expr.kind {
            self.reads[local] += 1;
        }
        operands(expr, |x| self.expr(x));
    }
}
