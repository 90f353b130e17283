//! Which locals and expressions depend on which wanted operand.
//!
//! Invariant: what is not active along an operand has the tangent 0 along it, on every path.

use cranelift_entity::EntityRef;
use girder_ir::codelet::{BinaryOp, Codelet, Expr, ExprKind, Label, ReduceOp, Stmt, StmtBlock, UnaryOp};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_typing::CallApart;
use rustc_hash::{FxHashMap, FxHashSet};

/// The active locals, expressions and results, for each direction.
#[derive(Debug, Default)]
pub struct Activity {
    /// The wanted operands.
    pub directions: Vec<usize>,
    locals: FxHashSet<(LocalId, usize)>,
    exprs: FxHashSet<(ExprId, usize)>,
    results: FxHashSet<(FieldId, usize)>,
}

impl Activity {
    /// Finds what is active in a codelet of scalars.
    pub fn of(codelet: &Codelet, calls: &FxHashMap<Label, CallApart<'_>>, directions: Vec<usize>) -> Activity {
        let mut found = Activity { directions, ..Activity::default() };
        for k in 0..found.directions.len() {
            let d = found.directions[k];
            let mut before = None;
            // A loop may carry what its end makes active to its beginning.
            while before != Some(found.locals.len()) {
                before = Some(found.locals.len());
                for (id, e) in &codelet.exprs {
                    if found.depends(e, d) {
                        found.exprs.insert((id, d));
                    }
                }
                found.block(codelet, calls, &codelet.body, d);
            }
        }
        found
    }

    /// Returns whether an expression is active along an operand.
    pub fn of_expr(&self, e: ExprId, d: usize) -> bool {
        self.exprs.contains(&(e, d))
    }

    /// Returns whether a local is active along an operand.
    pub fn of_local(&self, local: LocalId, d: usize) -> bool {
        self.locals.contains(&(local, d))
    }

    /// Returns whether an expression is active along any operand.
    pub fn is_active(&self, e: ExprId) -> bool {
        self.directions.iter().any(|&d| self.of_expr(e, d))
    }

    /// Returns the operands along which a field is active.
    pub fn of_result(&self, field: usize) -> impl Iterator<Item = usize> {
        let field = FieldId::from_u32(field as u32);
        self.directions.iter().copied().filter(move |&d| self.results.contains(&(field, d)))
    }

    /// Returns the operands on which some result depends.
    pub fn reaching(&self) -> impl Iterator<Item = usize> {
        self.directions.iter().copied().filter(|&d| self.results.iter().any(|(_, by)| *by == d))
    }

    fn depends(&self, e: &Expr, d: usize) -> bool {
        if !e.ty.is_float() {
            return false;
        }
        let active = |x: &ExprId| self.exprs.contains(&(*x, d));
        match &e.kind {
            ExprKind::Load { field, .. } => field.index() == d,
            ExprKind::Local(local) | ExprKind::LoadLocal { local, .. } => self.locals.contains(&(*local, d)),
            ExprKind::Unary { op: UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc, .. } => false,
            ExprKind::Bits { .. } => false,
            ExprKind::Binary { op, a, b, .. } => !op.is_comparison() && (active(a) || active(b)),
            kind => kind.operands().iter().any(active),
        }
    }

    fn block(&mut self, codelet: &Codelet, calls: &FxHashMap<Label, CallApart<'_>>, block: &StmtBlock, d: usize) {
        for stmt in block {
            let active = |e: &ExprId| self.exprs.contains(&(*e, d));
            match stmt {
                Stmt::Set { local, value } | Stmt::Fill { local, value } | Stmt::StoreLocal { local, value, .. }
                    if active(value) =>
                {
                    self.locals.insert((*local, d));
                }
                Stmt::Store { field, value, .. } if active(value) => _ = self.results.insert((*field, d)),
                Stmt::Reduce(r) if is_differentiable(r.op) && active(&r.value) => _ = self.locals.insert((r.dst, d)),
                _ => {}
            }
            match stmt {
                Stmt::Labelled { label, .. } if calls.contains_key(label) => {
                    let call = &calls[label];
                    if call.args.iter().flatten().any(|x| self.exprs.contains(&(*x, d))) {
                        let floats = call.results.iter().filter(|&&local| codelet.locals[local].ty.is_float());
                        self.locals.extend(floats.map(|&local| (local, d)));
                    }
                    // A call whose arguments are not all scalars is refused if it is active.
                    if call.args.is_none() {
                        stmt.blocks().for_each(|inner| self.block(codelet, calls, inner, d));
                    }
                }
                _ => stmt.blocks().for_each(|inner| self.block(codelet, calls, inner, d)),
            }
        }
    }
}

/// Returns whether the result of a reduction has a derivative.
pub fn is_differentiable(op: ReduceOp) -> bool {
    matches!(op.operator(), BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max)
        && !matches!(op, ReduceOp::ArgMin | ReduceOp::ArgMax)
}
