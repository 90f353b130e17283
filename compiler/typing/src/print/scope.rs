//! Where each local of a codelet is used.
//!
//! Invariant: the home of a local is the innermost block that contains all its uses, and the first statement there that
//! has one; a declaration in that statement is in scope at every use.

use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, ExprKind, Label, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId};
use std::collections::{BTreeMap, BTreeSet};

/// Names a block of a codelet that is not moved while it is printed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BlockId(usize);

impl BlockId {
    /// Returns the name of a block.
    pub fn of(block: &StmtBlock) -> BlockId {
        BlockId(std::ptr::from_ref(block).addr())
    }
}

/// A statement: its block and its position there. The position after the last statement is that of the expressions that
/// are evaluated at the end of the block: a condition, or the value of a reduction.
pub type Position = (BlockId, usize);

/// The uses of locals and labels.
#[derive(Default)]
pub struct Scopes {
    /// The number of uses of each local: reads, assignments and bindings.
    pub uses: SecondaryMap<LocalId, u32>,
    /// The number of statements that assign a scalar, or fill an array.
    pub sets: SecondaryMap<LocalId, u32>,
    /// The value of the last `Set` of each local.
    pub values: SecondaryMap<LocalId, Option<ExprId>>,
    /// The locals whose home is a statement.
    pub homes: BTreeMap<Position, Vec<LocalId>>,
    /// The targets of `Break`.
    pub breaks: BTreeSet<Label>,
    /// The targets of `Continue`.
    pub continues: BTreeSet<Label>,
}

impl Scopes {
    /// Finds all uses in a codelet.
    pub fn of(codelet: &Codelet) -> Scopes {
        let (path, homes) = (Vec::new(), SecondaryMap::new());
        let mut walk = Walk { codelet, path, homes, found: Scopes::default() };
        walk.block(&codelet.body);
        let Walk { homes, mut found, .. } = walk;
        for local in codelet.locals.keys() {
            if let Some(&home) = homes[local].last() {
                found.homes.entry(home).or_default().push(local);
            }
        }
        found
    }

    /// Returns the locals whose home is a statement.
    pub fn at(&self, position: Position) -> &[LocalId] {
        self.homes.get(&position).map_or(&[], Vec::as_slice)
    }
}

struct Walk<'c> {
    codelet: &'c Codelet,
    /// The statement that is visited and those around it, outermost first.
    path: Vec<Position>,
    /// The path to the home of each local, as far as it is known.
    homes: SecondaryMap<LocalId, Vec<Position>>,
    found: Scopes,
}

impl Walk<'_> {
    fn uses(&mut self, local: LocalId) {
        self.found.uses[local] += 1;
        let home = &mut self.homes[local];
        if home.is_empty() {
            home.extend(&self.path);
            return;
        }
        let shared = home.iter().zip(&self.path).take_while(|(h, p)| h.0 == p.0).count();
        home.truncate(shared);
    }

    fn expr(&mut self, e: ExprId) {
        each_local(self.codelet, e, &mut |local| self.uses(local));
    }

    /// Visits a block and the expressions that are evaluated at its end.
    fn block_and(&mut self, block: &StmtBlock, end: impl IntoIterator<Item = ExprId>) {
        for (n, stmt) in block.iter().enumerate() {
            self.path.push((BlockId::of(block), n));
            self.stmt(stmt);
            self.path.pop();
        }
        self.path.push((BlockId::of(block), block.len()));
        end.into_iter().for_each(|e| self.expr(e));
        self.path.pop();
    }

    fn block(&mut self, block: &StmtBlock) {
        self.block_and(block, []);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Set { local, value } => {
                self.expr(*value);
                self.uses(*local);
                self.found.sets[*local] += 1;
                self.found.values[*local] = Some(*value);
            }
            Stmt::Fill { local, value } => {
                self.expr(*value);
                self.uses(*local);
                self.found.sets[*local] += 1;
            }
            Stmt::StoreLocal { local, index, value, .. } => {
                index.iter().for_each(|&e| self.expr(e));
                self.expr(*value);
                self.uses(*local);
            }
            Stmt::Store { .. } | Stmt::Assert { .. } | Stmt::Return => stmt.for_each_expr(|e| self.expr(e)),
            Stmt::For { var, lo, hi, body, .. } => {
                self.expr(*lo);
                self.expr(*hi);
                self.path.push((BlockId::of(body), 0));
                self.uses(*var);
                self.path.pop();
                self.block(body);
            }
            Stmt::While { before, cond, body, .. } => {
                self.block_and(before, [*cond]);
                self.block(body);
            }
            Stmt::If { cond, then, els } => {
                self.expr(*cond);
                self.block(then);
                self.block(els);
            }
            Stmt::Labelled { body, .. } => self.block(body),
            Stmt::Break(label) => {
                self.found.breaks.insert(*label);
            }
            Stmt::Continue(label) => {
                self.found.continues.insert(*label);
            }
            Stmt::Reduce(r) => {
                r.binders.iter().for_each(|b| {
                    self.expr(b.lo);
                    self.expr(b.hi);
                });
                r.binders.iter().for_each(|b| self.uses(b.var));
                self.block_and(&r.filter_before, r.filter);
                self.block_and(&r.before, [r.value]);
                self.uses(r.dst);
            }
            Stmt::Amp(amp) => {
                stmt.for_each_expr(|e| self.expr(e));
                for m in [&amp.c, &amp.a, &amp.b] {
                    if let Storage::Local(local) = m.base {
                        self.uses(local);
                    }
                }
            }
        }
    }
}

/// Calls `f` with the local of every read in an expression.
pub fn each_local(codelet: &Codelet, e: ExprId, f: &mut dyn FnMut(LocalId)) {
    let kind = &codelet.exprs[e].kind;
    if let ExprKind::Local(local) | ExprKind::LoadLocal { local, .. } = kind {
        f(*local);
    }
    kind.operands().iter().for_each(|&x| each_local(codelet, x, f));
}

/// Returns whether control never reaches the end of a block.
pub fn diverges(block: &StmtBlock) -> bool {
    block.last().is_some_and(ends)
}

/// Returns whether control never reaches the statement after this one.
pub fn ends(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return => true,
        Stmt::If { then, els, .. } => diverges(then) && diverges(els),
        _ => false,
    }
}
