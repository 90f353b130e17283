//! Locals that name an index are written out.
//!
//! ```text
//! for i in 0..n { k = 2 * i + 1; v = exp(x[i]); y[k] = v; }
//! ```
//!
//! The indices of a store are evaluated before its value, so that they stand in a local where the value takes statements;
//! programs name them too. How far apart places lie is asked of the index itself: `y[2 * i + 1]`.
//!
//! Invariant: what is written out has the value that the local had, wherever that is read: it cannot fail, and is made of
//! numbers that stay the same until the local is set again.

use crate::spec::{KernelSpec, Rewritten};
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, Stmt, StmtBlock, UnaryOp};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;

/// Operands up to which an index is written out.
const SMALL: u64 = 8;

/// The codelet with the indices written out that loops name, if there are any. What counts executions stays as it is.
pub(crate) fn written_out(spec: &KernelSpec<'_>) -> Option<Rewritten> {
    if spec.points.is_some_and(|p| !p.is_empty()) {
        return None;
    }
    let mut sets = SecondaryMap::new();
    count_sets(&spec.codelet.body, &mut sets);
    let reads = crate::lower::reads(spec.codelet, &spec.codelet.body);
    let mut find = Find { codelet: spec.codelet, sets, reads, turns: EntitySet::new(), found: Vec::new() };
    find.block(&spec.codelet.body, None);
    if find.found.is_empty() {
        return None;
    }
    let (found, mut codelet) = (find.found, spec.codelet.clone());
    let mut of: SecondaryMap<LocalId, Option<ExprId>> = SecondaryMap::new();
    found.iter().for_each(|&(local, value)| of[local] = Some(value));
    // In the order of the text, so that what is written out has no such local in it any more.
    for &(local, value) in &found {
        let written = codelet.exprs[value].kind.clone();
        for expr in codelet.exprs.values_mut() {
            if matches!(expr.kind, ExprKind::Local(l) if l == local) {
                expr.kind = written.clone();
            }
        }
    }
    leave_out(&mut codelet.body, &of);
    Some(Rewritten { codelet, proven: spec.proven.clone() })
}

struct Find<'a> {
    codelet: &'a Codelet,
    /// How often each local is set, and how often it is read.
    sets: SecondaryMap<LocalId, u32>,
    reads: SecondaryMap<LocalId, u32>,
    /// The indices of the loops around, and what was found there.
    turns: EntitySet<LocalId>,
    found: Vec<(LocalId, ExprId)>,
}

impl Find<'_> {
    /// Looks in a block; `around` has the reads of each local in the loop around it.
    fn block(&mut self, block: &StmtBlock, around: Option<&SecondaryMap<LocalId, u32>>) {
        for stmt in block {
            match stmt {
                Stmt::Set { local, value } => {
                    let is_index = self.codelet.locals[*local].ty == ElemType::I64 && self.sets[*local] == 1;
                    let stays = around.is_some_and(|inside| inside[*local] == self.reads[*local]);
                    if is_index && stays && self.size(*value).is_some_and(|size| size <= SMALL) {
                        self.turns.insert(*local);
                        self.found.push((*local, *value));
                    }
                }
                Stmt::For { var, body, .. } if self.sets[*var] == 1 => {
                    self.turns.insert(*var);
                    let inside = crate::lower::reads(self.codelet, body);
                    self.block(body, Some(&inside));
                    self.turns.remove(*var);
                }
                Stmt::If { then, els, .. } => {
                    self.block(then, around);
                    self.block(els, around);
                }
                Stmt::Labelled { body, .. } => self.block(body, around),
                _ => {}
            }
        }
    }

    /// The operands of an index that is made of those of loops; `None` of anything else.
    fn size(&self, e: ExprId) -> Option<u64> {
        let expr = &self.codelet.exprs[e];
        let plain = match expr.kind {
            ExprKind::Const(_) | ExprKind::Size(_) | ExprKind::ConstField(_) => true,
            ExprKind::Local(local) => self.turns.contains(local),
            ExprKind::Unary { op, .. } => op == UnaryOp::Neg,
            ExprKind::Binary { op, .. } => matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul),
            _ => false,
        };
        let index = plain && expr.ty == ElemType::I64;
        let size = |n: u64, &x: &ExprId| Some(n.saturating_add(self.size(x)?));
        expr.kind.operands().iter().try_fold(1, size).filter(|_| index)
    }
}

/// How often a block sets each local.
pub(crate) fn count_sets(block: &[Stmt], sets: &mut SecondaryMap<LocalId, u32>) {
    for stmt in block {
        stmt.for_each_assigned(|local| sets[local] += 1);
        stmt.blocks().for_each(|inner| count_sets(inner, sets));
    }
}

/// Without the statements that set what is written out.
fn leave_out(block: &mut StmtBlock, of: &SecondaryMap<LocalId, Option<ExprId>>) {
    block.retain(|stmt| !matches!(stmt, Stmt::Set { local, .. } if of[*local].is_some()));
    block.iter_mut().flat_map(Stmt::blocks_mut).for_each(|inner| leave_out(inner, of));
}
