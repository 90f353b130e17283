//! Replaces locals that hold an index by the index.
//!
//! ```text
//! for i in 0..n { k = 2 * i + 1; v = exp(x[i]); y[k] = v; }
//! ```
//!
//! The indices of a store are evaluated before its value, so they are held in locals if the value needs statements.
//! Programs also name indices. The analyses of strides need the index itself: `y[2 * i + 1]`.
//!
//! Invariant: an expression that replaces a local has the value of the local at each of its reads: it cannot fail, and
//! its operands do not change until the local is set again.

use super::Rewritten;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_codelet::kernel::{KernelSpec, KernelTarget};
use girder_codelet::locals::{count_sets, reads};
use girder_ir::codelet::{BinaryOp, Codelet, ExprKind, Stmt, StmtBlock, UnaryOp};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;

/// Operands of the largest index that is inlined.
const SMALL: u64 = 8;
/// Operands of the largest one with those of the indices that it reads: sums of sums would double without end.
const LARGEST: u64 = 64;

/// Returns the codelet without the locals that hold an index of a loop, or `None` if there are none.
pub(super) fn inline_indices(spec: &KernelSpec<'_>, _: KernelTarget) -> Option<Rewritten> {
    let mut sets = SecondaryMap::new();
    count_sets(&spec.codelet.body, &mut sets);
    let reads = reads(spec.codelet, &spec.codelet.body);
    let wholes = SecondaryMap::with_default(1);
    let mut find = Find { codelet: spec.codelet, sets, reads, indices: EntitySet::new(), found: vec![], wholes };
    find.block(&spec.codelet.body, None);
    if find.found.is_empty() {
        return None;
    }
    let (found, mut codelet) = (find.found, spec.codelet.clone());
    let mut of: SecondaryMap<LocalId, Option<ExprId>> = SecondaryMap::new();
    found.iter().for_each(|&(local, value)| of[local] = Some(value));
    // In the order of the text, so that a replacement no longer contains such a local.
    for &(local, value) in &found {
        let index = codelet.exprs[value].kind.clone();
        for expr in codelet.exprs.values_mut() {
            if matches!(expr.kind, ExprKind::Local(l) if l == local) {
                expr.kind = index.clone();
            }
        }
    }
    remove_sets(&mut codelet.body, &of);
    Some(Rewritten { codelet, proven: spec.proven.clone() })
}

struct Find<'a> {
    codelet: &'a Codelet,
    /// The number of assignments and of reads of each local.
    sets: SecondaryMap<LocalId, u32>,
    reads: SecondaryMap<LocalId, u32>,
    /// The indices of the enclosing loops, and the locals found there.
    indices: EntitySet<LocalId>,
    /// Each local with its index, in the order of the text.
    found: Vec<(LocalId, ExprId)>,
    /// The operands of these indices, with those of the indices that they read.
    wholes: SecondaryMap<LocalId, u64>,
}

impl Find<'_> {
    /// Searches a block; `around` counts the reads of each local in the enclosing loop.
    fn block(&mut self, block: &StmtBlock, around: Option<&SecondaryMap<LocalId, u32>>) {
        for stmt in block {
            match stmt {
                Stmt::Set { local, value } => {
                    let is_index = self.codelet.locals[*local].ty == ElemType::I64 && self.sets[*local] == 1;
                    let stays = around.is_some_and(|inside| inside[*local] == self.reads[*local]);
                    let size = self.size(*value).filter(|&size| is_index && stays && size <= SMALL);
                    let whole = size.map(|_| self.whole(*value)).filter(|&whole| whole <= LARGEST);
                    if let Some(whole) = whole {
                        self.wholes[*local] = whole;
                        self.indices.insert(*local);
                        self.found.push((*local, *value));
                    }
                }
                Stmt::For { var, body, .. } if self.sets[*var] == 1 => {
                    self.indices.insert(*var);
                    let inside = reads(self.codelet, body);
                    self.block(body, Some(&inside));
                    self.indices.remove(*var);
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

    /// Counts the operands of an index that is computed from loop indices; `None` for any other expression.
    fn size(&self, e: ExprId) -> Option<u64> {
        let expr = &self.codelet.exprs[e];
        let plain = match expr.kind {
            ExprKind::Const(_) | ExprKind::Size(_) | ExprKind::ConstField(_) => true,
            ExprKind::Local(local) => self.indices.contains(local),
            ExprKind::Unary { op, .. } => op == UnaryOp::Neg,
            ExprKind::Binary { op, .. } => matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul),
            _ => false,
        };
        let index = plain && expr.ty == ElemType::I64;
        let size = |n: u64, &x: &ExprId| Some(n.saturating_add(self.size(x)?));
        expr.kind.operands().iter().try_fold(1, size).filter(|_| index)
    }

    /// Returns the operands of an index in which indices replace locals.
    fn whole(&self, e: ExprId) -> u64 {
        match self.codelet.exprs[e].kind {
            ExprKind::Local(local) => self.wholes[local],
            ref kind => kind.operands().iter().fold(1, |n, &x| n.saturating_add(self.whole(x))),
        }
    }
}

/// Removes the statements that set inlined locals.
fn remove_sets(block: &mut StmtBlock, of: &SecondaryMap<LocalId, Option<ExprId>>) {
    block.retain(|stmt| !matches!(stmt, Stmt::Set { local, .. } if of[*local].is_some()));
    block.iter_mut().flat_map(Stmt::blocks_mut).for_each(|inner| remove_sets(inner, of));
}
