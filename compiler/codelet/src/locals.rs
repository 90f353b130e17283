//! How often the locals of a codelet are read and set.
//!
//! Invariant: a block and the whole codelet are walked in the same way, so a local with equal counts in both is used in
//! the block only. The recursion is as deep as statements and expressions nest (see
//! [`depth`](crate::kernel::depth)).

use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, ExprKind, Reduce, Stmt};
use girder_ir::ids::{ExprId, LocalId};

/// Counts the reads of each local in a block.
pub fn reads(codelet: &Codelet, block: &[Stmt]) -> SecondaryMap<LocalId, u32> {
    let mut count = Count { codelet, reads: SecondaryMap::new() };
    count.block(block);
    count.reads
}

/// Counts the reads of each local in a reduction.
pub fn reads_of_reduce(codelet: &Codelet, r: &Reduce) -> SecondaryMap<LocalId, u32> {
    let mut count = Count { codelet, reads: SecondaryMap::new() };
    r.for_each_expr(|e| count.expr(e));
    count.block(&r.filter_before);
    count.block(&r.before);
    count.reads
}

/// Adds to `sets` how often a block sets each local.
pub fn count_sets(block: &[Stmt], sets: &mut SecondaryMap<LocalId, u32>) {
    for stmt in block {
        stmt.for_each_assigned(|local| sets[local] += 1);
        stmt.blocks().for_each(|inner| count_sets(inner, sets));
    }
}

struct Count<'a> {
    codelet: &'a Codelet,
    reads: SecondaryMap<LocalId, u32>,
}

impl Count<'_> {
    fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            stmt.for_each_expr(|e| self.expr(e));
            stmt.blocks().for_each(|inner| self.block(inner));
        }
    }

    fn expr(&mut self, e: ExprId) {
        let kind = &self.codelet.exprs[e].kind;
        if let ExprKind::Local(local) = *kind {
            self.reads[local] += 1;
        }
        kind.operands().iter().for_each(|&x| self.expr(x));
    }
}
