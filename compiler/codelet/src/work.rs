//! Rough estimates of how many operations a statement executes, and of how much code it becomes.
//!
//! Compiled code polls the stop flag in loops that execute much; rewrites and vector code are chosen by the code size.
//!
//! Invariant: a loop whose trip count is not known executes [`UNKNOWN`] operations, so that it always polls.

use crate::fold::Folded;
use crate::interpret::trips;
use girder_ir::codelet::{Codelet, ExprKind, Reduce, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use rustc_hash::FxHashSet;

/// Operations of a loop whose trip count is not known.
pub const UNKNOWN: u64 = 1 << 40;
/// A loop of fewer operations than this takes less than about 10 ms, so it need not poll.
pub const SHORT: u64 = 1 << 23;

/// Estimates the operations of a block; saturates.
pub fn of_block(folded: &Folded, block: &StmtBlock) -> u64 {
    block.iter().map(|s| of_stmt(folded, s)).fold(0, u64::saturating_add)
}

fn of_stmt(folded: &Folded, stmt: &Stmt) -> u64 {
    match stmt {
        Stmt::For { lo, hi, step, body, .. } => of_loop(folded, *lo, *hi, *step, of_block(folded, body)),
        Stmt::While { .. } => UNKNOWN,
        Stmt::If { then, els, .. } => of_block(folded, then).saturating_add(of_block(folded, els)).saturating_add(2),
        Stmt::Labelled { body, .. } => of_block(folded, body),
        Stmt::Reduce(r) => of_reduce(folded, r),
        Stmt::Amp(amp) => {
            let lengths = amp.c.outer.iter().map(|axis| axis.len).chain([amp.c.rows, amp.c.cols, amp.a.cols]);
            lengths.map(|e| folded[e].unwrap_or(1 << 12)).fold(1, u64::saturating_mul)
        }
        Stmt::Fill { .. } => 64,
        _ => 8,
    }
}

/// Estimates the operations of a loop whose body executes `body` of them.
pub fn of_loop(folded: &Folded, lo: ExprId, hi: ExprId, step: i64, body: u64) -> u64 {
    match (folded[lo], folded[hi]) {
        (Some(lo), Some(hi)) => trips(lo as i64, hi as i64, step).saturating_mul(body.saturating_add(2)),
        _ => UNKNOWN,
    }
}

/// Estimates the operations of a reduction.
pub fn of_reduce(folded: &Folded, r: &Reduce) -> u64 {
    let body = of_block(folded, &r.before).saturating_add(of_block(folded, &r.filter_before)).saturating_add(8);
    r.binders.iter().rev().fold(body, |work, b| of_loop(folded, b.lo, b.hi, b.step, work))
}

/// Counts the nodes of a block: how much code it becomes once.
pub fn code_of_block(codelet: &Codelet, block: &StmtBlock) -> u64 {
    block.iter().map(|stmt| code_of_stmt(codelet, stmt)).fold(0, u64::saturating_add)
}

fn code_of_stmt(codelet: &Codelet, stmt: &Stmt) -> u64 {
    let own = match stmt {
        // These are large, or loops of their own.
        Stmt::Reduce(_) | Stmt::Amp(_) => return 1000,
        Stmt::Fill { .. } => 16,
        Stmt::For { .. } | Stmt::While { .. } => 8,
        Stmt::If { .. } => 2,
        Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return => 1,
        Stmt::Set { .. }
        | Stmt::Store { .. }
        | Stmt::StoreLocal { .. }
        | Stmt::Labelled { .. }
        | Stmt::Assert { .. } => 0,
    };
    let mut nodes = stmt.blocks().map(|b| code_of_block(codelet, b)).fold(own, u64::saturating_add);
    stmt.for_each_expr(|e| nodes = nodes.saturating_add(code_of(codelet, e)));
    nodes
}

/// Counts the nodes of an expression.
pub fn code_of(codelet: &Codelet, e: ExprId) -> u64 {
    codelet.exprs[e].kind.operands().iter().fold(1, |nodes, &x| nodes.saturating_add(code_of(codelet, x)))
}

/// Locals of a reduction that are numbers once its elements are written out: its indices, and what is computed from
/// them alone.
pub struct Numbers<'a> {
    codelet: &'a Codelet,
    locals: FxHashSet<LocalId>,
}

impl Numbers<'_> {
    /// Returns those of a reduction.
    pub fn of<'a>(codelet: &'a Codelet, r: &Reduce) -> Numbers<'a> {
        let mut numbers = Numbers { codelet, locals: r.binders.iter().map(|b| b.var).collect() };
        for stmt in &r.before {
            match stmt {
                Stmt::Set { local, value } if numbers.has(*value) => _ = numbers.locals.insert(*local),
                _ => stmt.for_each_assigned(|local| _ = numbers.locals.remove(&local)),
            }
        }
        numbers
    }

    /// Returns whether an expression is a number.
    pub fn has(&self, e: ExprId) -> bool {
        match &self.codelet.exprs[e].kind {
            ExprKind::Const(_) => true,
            ExprKind::Local(local) => self.locals.contains(local),
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => false,
            kind => {
                let operands = kind.operands();
                !operands.is_empty() && operands.iter().all(|&x| self.has(x))
            }
        }
    }

    /// Counts the nodes of an element of the reduction.
    pub fn code_of(&self, r: &Reduce) -> u64 {
        let sets = r.before.iter().map(|stmt| match stmt {
            Stmt::Set { value, .. } => self.code_of_expr(*value),
            other => code_of_stmt(self.codelet, other),
        });
        let values = r.factors.map_or(vec![r.value], |(x, y)| vec![x, y]);
        sets.chain(values.into_iter().map(|e| self.code_of_expr(e))).fold(0, u64::saturating_add)
    }

    fn code_of_expr(&self, e: ExprId) -> u64 {
        if self.has(e) {
            return 1;
        }
        let operands = self.codelet.exprs[e].kind.operands();
        operands.iter().fold(1, |nodes, &x| nodes.saturating_add(self.code_of_expr(x)))
    }
}
