//! Copies of expressions and statements in which other expressions replace locals, or other checks those of accesses.
//!
//! Invariant: an expression in which nothing is replaced is shared, not copied. The recursion is as deep as expressions
//! and statements nest.

use girder_ir::codelet::{Codelet, Expr, ExprKind, Index, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_source::Span;
use rustc_hash::FxHashMap;

/// A substitution of locals.
pub(super) struct Substitution<'c> {
    codelet: &'c mut Codelet,
    replacements: FxHashMap<LocalId, ExprId>,
    /// New locals that copies assign instead of others.
    names: FxHashMap<LocalId, LocalId>,
    /// New checks of accesses.
    sites: FxHashMap<SiteId, SiteId>,
    /// The copies so far.
    done: FxHashMap<ExprId, ExprId>,
}

impl<'c> Substitution<'c> {
    /// Replaces these locals.
    pub fn new<const N: usize>(codelet: &'c mut Codelet, replacements: [(LocalId, ExprId); N]) -> Substitution<'c> {
        let replacements = replacements.into_iter().collect();
        let (names, sites, done) = Default::default();
        Substitution { codelet, replacements, names, sites, done }
    }

    /// Replaces the checks of these accesses.
    pub fn of_sites(codelet: &'c mut Codelet, sites: FxHashMap<SiteId, SiteId>) -> Substitution<'c> {
        Substitution { sites, ..Substitution::new(codelet, []) }
    }

    /// Replaces one more local.
    pub fn replace(&mut self, local: LocalId, by: ExprId) {
        self.replacements.insert(local, by);
        self.done.clear();
    }

    /// Replaces a local by a new one, in assignments too.
    pub fn rename(&mut self, local: LocalId, span: Span) {
        let decl = self.codelet.locals[local].clone();
        let ty = decl.ty;
        let own = self.codelet.locals.push(decl);
        let read = self.codelet.exprs.push(Expr { kind: ExprKind::Local(own), ty, span });
        self.names.insert(local, own);
        self.replace(local, read);
    }

    /// Returns the local that copies assign instead of one.
    fn name(&self, local: LocalId) -> LocalId {
        self.names.get(&local).copied().unwrap_or(local)
    }

    fn site(&self, site: SiteId) -> SiteId {
        self.sites.get(&site).copied().unwrap_or(site)
    }

    /// Copies an expression.
    pub fn expr(&mut self, e: ExprId) -> ExprId {
        if let ExprKind::Local(local) = self.codelet.exprs[e].kind {
            return self.replacements.get(&local).copied().unwrap_or(e);
        }
        if let Some(&done) = self.done.get(&e) {
            return done;
        }
        let mut expr = self.codelet.exprs[e].clone();
        let mut changed = false;
        expr.kind.map_operands(|x| {
            let new = self.expr(x);
            changed |= new != x;
            new
        });
        if let ExprKind::Load { site, .. } = &mut expr.kind {
            let new = self.site(*site);
            changed |= new != *site;
            *site = new;
        }
        let new = if changed { self.codelet.exprs.push(expr) } else { e };
        self.done.insert(e, new);
        new
    }

    /// Appends copies of statements that set locals; the copies set new locals.
    pub fn renamed_sets(&mut self, sets: &StmtBlock, out: &mut StmtBlock) {
        for stmt in sets {
            let Stmt::Set { local, value } = stmt else { unreachable!("callers pass statements that set locals only") };
            let value = self.expr(*value);
            self.rename(*local, self.codelet.exprs[value].span);
            out.push(Stmt::Set { local: self.name(*local), value });
        }
    }

    /// Copies the statements of a block; loops keep their labels.
    pub fn block(&mut self, block: &[Stmt]) -> StmtBlock {
        block.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    /// Copies a statement: an assignment, a store, a condition, an assertion, a counted loop or a reduction.
    pub fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let (lo, hi) = (self.expr(*lo), self.expr(*hi));
                let body = self.block(body);
                Stmt::For { var: self.name(*var), lo, hi, step: *step, label: *label, body, site: *site }
            }
            Stmt::Reduce(r) => {
                let mut r = r.clone();
                r.dst = self.name(r.dst);
                for binder in &mut r.binders {
                    binder.var = self.name(binder.var);
                    (binder.lo, binder.hi) = (self.expr(binder.lo), self.expr(binder.hi));
                }
                (r.filter_before, r.before) = (self.block(&r.filter_before), self.block(&r.before));
                r.filter = r.filter.map(|e| self.expr(e));
                r.value = self.expr(r.value);
                r.factors = r.factors.map(|(x, y)| (self.expr(x), self.expr(y)));
                Stmt::Reduce(r)
            }
            Stmt::Set { local, value } => Stmt::Set { local: self.name(*local), value: self.expr(*value) },
            Stmt::Store { field, index, value, site } => {
                let (index, value) = (self.index(index), self.expr(*value));
                Stmt::Store { field: *field, index, value, site: self.site(*site) }
            }
            Stmt::StoreLocal { local, index, value, site } => {
                let (index, value) = (self.index(index), self.expr(*value));
                Stmt::StoreLocal { local: *local, index, value, site: *site }
            }
            Stmt::If { cond, then, els } => {
                let cond = self.expr(*cond);
                Stmt::If { cond, then: self.block(then), els: self.block(els) }
            }
            Stmt::Assert { cond, site } => Stmt::Assert { cond: self.expr(*cond), site: *site },
            _ => unreachable!("callers pass no jumps, and no statements on arrays"),
        }
    }

    fn index(&mut self, index: &Index) -> Index {
        index.iter().map(|&e| self.expr(e)).collect()
    }
}

/// Returns a block in which other statements replace those for which `by` returns some, or `None` if there are none.
/// What is replaced is not searched.
pub(super) fn replaced(block: &StmtBlock, by: &mut dyn FnMut(&Stmt) -> Option<StmtBlock>) -> Option<StmtBlock> {
    let mut changed = false;
    let mut out = StmtBlock::new();
    for stmt in block {
        if let Some(new) = by(stmt) {
            changed = true;
            out.extend(new);
            continue;
        }
        let mut stmt = stmt.clone();
        for inner in stmt.blocks_mut() {
            if let Some(new) = replaced(inner, by) {
                changed = true;
                *inner = new;
            }
        }
        out.push(stmt);
    }
    changed.then_some(out)
}

/// Returns a label greater than all others.
pub(super) fn next_label(block: &StmtBlock) -> u32 {
    let above = |stmt: &Stmt| match stmt {
        Stmt::For { label, .. } | Stmt::While { label, .. } | Stmt::Labelled { label, .. } => label.0.saturating_add(1),
        _ => 0,
    };
    let of = |stmt: &Stmt| stmt.blocks().map(next_label).fold(above(stmt), u32::max);
    block.iter().map(of).max().unwrap_or(0)
}
