//! Properties of a body that its syntax alone decides: assigned variables, exits, and size.

use crate::work::Numbers;
use girder_ir::codelet::{Codelet, ExprKind, Label, Reduce, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId};
use rustc_hash::FxHashSet;

/// The storage that a body may change.
#[derive(Default)]
pub(super) struct Changes {
    pub locals: FxHashSet<LocalId>,
    pub storages: FxHashSet<Storage>,
}

impl Changes {
    /// Returns what a block may change.
    pub fn of(block: &StmtBlock) -> Changes {
        let mut changes = Changes::default();
        changes.block(block);
        changes
    }

    /// Adds what a block may change.
    pub fn block(&mut self, block: &StmtBlock) {
        for stmt in block {
            match stmt {
                Stmt::Fill { local, .. } | Stmt::StoreLocal { local, .. } => {
                    self.storages.insert(Storage::Local(*local));
                }
                Stmt::Store { field, .. } => drop(self.storages.insert(Storage::Field(*field))),
                Stmt::Amp(a) => drop(self.storages.insert(a.c.base)),
                _ => {}
            }
            stmt.for_each_assigned(|local| {
                self.locals.insert(local);
            });
            stmt.blocks().for_each(|inner| self.block(inner));
        }
    }
}

/// The ways in which control may leave statements other than at their end.
#[derive(Default)]
pub(super) struct Exits {
    breaks: FxHashSet<Label>,
    continues: FxHashSet<Label>,
    returns: bool,
}

impl Exits {
    /// Returns the jumps out of a block.
    pub fn of_block(block: &StmtBlock) -> Exits {
        let mut exits = Exits::default();
        block.iter().for_each(|s| exits.stmt(s));
        exits
    }

    /// Returns the jumps out of a statement.
    pub fn of_stmt(stmt: &Stmt) -> Exits {
        let mut exits = Exits::default();
        exits.stmt(stmt);
        exits
    }

    fn stmt(&mut self, stmt: &Stmt) {
        stmt.blocks().flatten().for_each(|s| self.stmt(s));
        match stmt {
            Stmt::Break(l) => drop(self.breaks.insert(*l)),
            Stmt::Continue(l) => drop(self.continues.insert(*l)),
            Stmt::Return => self.returns = true,
            Stmt::For { label, .. } | Stmt::While { label, .. } | Stmt::Labelled { label, .. } => self.forget(*label),
            _ => {}
        }
    }

    fn forget(&mut self, label: Label) {
        self.breaks.remove(&label);
        self.continues.remove(&label);
    }

    /// Returns whether control may leave early.
    pub fn any(&self) -> bool {
        self.returns || !self.breaks.is_empty() || !self.continues.is_empty()
    }

    /// Returns whether a loop with this label may end before its last iteration.
    pub fn cut_short(&self, label: Label) -> bool {
        self.returns || !self.breaks.is_empty() || self.continues.iter().any(|&l| l != label)
    }
}

/// Loops of known trip count are unrolled up to this many iterations and [`OPERATIONS`] operations in all.
const UNROLLED: u64 = 16;
const OPERATIONS: u64 = 64;

/// Maximal operations of an `if` of which both arms are computed and one result is selected.
const ARM: u64 = 4;

/// Returns whether a loop is unrolled.
pub(super) fn unrolled(codelet: &Codelet, trips: u64, body: &StmtBlock) -> bool {
    trips <= UNROLLED && size(codelet, body).is_some_and(|n| n.saturating_mul(trips) <= OPERATIONS)
}

/// Works like [`unrolled`], for a reduction of `elements` elements without a filter.
pub(super) fn elements_unrolled(codelet: &Codelet, elements: u64, r: &Reduce) -> bool {
    let numbers = Numbers::of(codelet, r);
    let each = size_beside(codelet, &r.before, &numbers).map(|n| n + operations_beside(codelet, r.value, &numbers) + 1);
    elements <= UNROLLED && each.is_some_and(|n| n.saturating_mul(elements) <= OPERATIONS)
}

/// Works like [`size`], without the statements of a reduction that set numbers.
fn size_beside(codelet: &Codelet, before: &StmtBlock, numbers: &Numbers<'_>) -> Option<u64> {
    let of_stmt = |stmt: &Stmt| match stmt {
        Stmt::Set { value, .. } if numbers.has(*value) => Some(0),
        Stmt::Set { value, .. } => Some(operations_beside(codelet, *value, numbers).max(1)),
        other => size(codelet, std::slice::from_ref(other)),
    };
    before.iter().map(of_stmt).sum()
}

/// Works like [`operations`], without those of numbers.
fn operations_beside(codelet: &Codelet, e: ExprId, numbers: &Numbers<'_>) -> u64 {
    operations_but(codelet, e, &|e| numbers.has(e))
}

/// Returns whether both arms of an `if` only set scalars to cheap values without effects.
pub(super) fn is_choice(codelet: &Codelet, then: &StmtBlock, els: &StmtBlock) -> bool {
    let mut total = 0;
    then.iter().chain(els).all(|stmt| match stmt {
        Stmt::Set { value, .. } => {
            total += operations(codelet, *value);
            total <= ARM && is_cheap(codelet, *value)
        }
        _ => false,
    })
}

fn is_cheap(codelet: &Codelet, e: ExprId) -> bool {
    use girder_ir::codelet::{BinaryOp, UnaryOp};
    match &codelet.exprs[e].kind {
        ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => false,
        ExprKind::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. } | ExprKind::Unary { op: UnaryOp::Sqrt, .. } => false,
        kind => kind.operands().iter().all(|&x| is_cheap(codelet, x)),
    }
}

/// Returns the operations of a body that is unrolled with the loop around it; `None` if they depend on data.
fn size(codelet: &Codelet, block: &[Stmt]) -> Option<u64> {
    let mut total: u64 = 0;
    for stmt in block {
        let one = match stmt {
            Stmt::Set { value, .. } => operations(codelet, *value).max(1),
            Stmt::Store { value, .. } | Stmt::StoreLocal { value, .. } => operations(codelet, *value) + 1,
            Stmt::For { lo, hi, step, body, .. } => {
                let trips = literal_trips(codelet, *lo, *hi, *step)?;
                size(codelet, body)?.max(1).checked_mul(trips)?
            }
            Stmt::If { cond, then, els } if is_choice(codelet, then, els) => {
                operations(codelet, *cond) + size(codelet, then)? + size(codelet, els)? + 1
            }
            Stmt::Reduce(r) if r.filter.is_none() => {
                let elements = r
                    .binders
                    .iter()
                    .try_fold(1u64, |n, b| n.checked_mul(literal_trips(codelet, b.lo, b.hi, b.step)?))?;
                (size(codelet, &r.before)? + operations(codelet, r.value) + 1).checked_mul(elements)?
            }
            Stmt::Assert { .. } => 0,
            _ => return None,
        };
        total = total.checked_add(one)?;
    }
    Some(total)
}

fn literal_trips(codelet: &Codelet, lo: ExprId, hi: ExprId, step: i64) -> Option<u64> {
    let number = |e: ExprId| match codelet.exprs[e].kind {
        ExprKind::Const(c) => Some(c.bits as i64),
        _ => None,
    };
    Some(crate::interpret::trips(number(lo)?, number(hi)?, step))
}

/// Returns the operations of an expression, without those of indices.
pub(super) fn operations(codelet: &Codelet, e: ExprId) -> u64 {
    operations_but(codelet, e, &|_| false)
}

/// Works like [`operations`], without those of expressions that cost nothing.
fn operations_but(codelet: &Codelet, e: ExprId, is_free: &dyn Fn(ExprId) -> bool) -> u64 {
    match &codelet.exprs[e].kind {
        _ if is_free(e) => 0,
        ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => 1,
        kind => {
            let operands = kind.operands();
            let own = u64::from(!operands.is_empty());
            operands.iter().fold(own, |n, &x| n.saturating_add(operations_but(codelet, x, is_free)))
        }
    }
}
