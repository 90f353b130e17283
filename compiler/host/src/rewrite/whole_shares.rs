//! Runs the shares of all workers at once.
//!
//! ```text
//! for j in 0..w { for m in worker * c / workers..(worker + 1) * c / workers { y[j, m] = …; } }
//! ```
//!
//! Each worker of a tile runs this with its own share of 0..c. The shares follow one another, so one run with all of
//! 0..c does the same, with longer rows: the iterations of different shares touch different elements, and no value
//! goes from one to the other. Several loops may have the same shares, such as those in the branches of a condition. A
//! worker may keep values in an array of its own, if each iteration uses only the elements at its index.
//!
//! Invariant: every element is stored by the same statement with the same operands; no check can fail.

use super::Rewritten;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_codelet::fold::{Folded, fold};
use girder_codelet::kernel::{KernelSpec, KernelTarget};
use girder_codelet::locals::count_sets;
use girder_ir::codelet::{BinaryOp, Codelet, Dir, Expr, ExprKind, Index, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::{ElemType, Scalar};

/// Returns the codelet as one for a single worker, or `None` if its workers do not just share loops.
pub(super) fn whole_shares(spec: &KernelSpec<'_>, _: KernelTarget) -> Option<Rewritten> {
    let codelet = spec.codelet;
    let is_safe = codelet.sites.keys().all(|site| spec.proven.contains(site));
    if !codelet.multi || !is_safe || !codelet.body.iter().all(is_plain) {
        return None;
    }
    let tops = codelet.body.iter().filter(|stmt| matches!(stmt, Stmt::For { .. })).count();
    let simple = |stmt: &Stmt| matches!(stmt, Stmt::For { .. } | Stmt::Set { .. } | Stmt::Fill { .. });
    if tops != 1 || !codelet.body.iter().all(simple) {
        return None;
    }
    let mut sets = SecondaryMap::new();
    count_sets(&codelet.body, &mut sets);
    let mut find = Find { codelet, folded: fold(codelet, spec.sizes), sets, values: SecondaryMap::new() };
    for stmt in &codelet.body {
        if let Stmt::Set { local, value } = stmt
            && find.sets[*local] == 1
        {
            find.values[*local] = Some(*value);
        }
    }
    let mut loops = vec![];
    find.shared(&codelet.body, &mut loops);
    let length = loops.first()?.length;
    if loops.iter().any(|l| l.length != length) || !find.is_independent(&loops) {
        return None;
    }
    let vars: Vec<LocalId> = loops.iter().map(|l| l.var).collect();
    let mut whole = codelet.clone();
    whole.multi = false;
    let bounds = [0, length].map(|n| {
        let kind = ExprKind::Const(Scalar::new(ElemType::I64, n as u64));
        whole.exprs.push(Expr { kind, ty: ElemType::I64, span: codelet.span })
    });
    let by_worker = find.by_worker();
    whole.body.retain(|stmt| !matches!(stmt, Stmt::Set { local, .. } if by_worker.contains(*local)));
    widen(&mut whole.body, &vars, bounds);
    let mut rest = false;
    for_each_expr(&whole, &whole.body, &mut |e| {
        rest |= match whole.exprs[e].kind {
            ExprKind::Worker | ExprKind::Workers => true,
            ExprKind::Local(local) => by_worker.contains(local),
            _ => false,
        }
    });
    (!rest).then(|| Rewritten { codelet: whole, proven: spec.proven.clone() })
}

/// Returns whether a statement consists of assignments, stores, loops, conditions and reductions.
fn is_plain(stmt: &Stmt) -> bool {
    let sets = matches!(stmt, Stmt::Set { .. } | Stmt::Fill { .. } | Stmt::Store { .. } | Stmt::StoreLocal { .. });
    let own = sets || matches!(stmt, Stmt::For { .. } | Stmt::If { .. } | Stmt::Reduce(_));
    own && stmt.blocks().flatten().all(is_plain)
}

/// Returns whether a block sets all elements of an array at once.
fn fills(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| matches!(stmt, Stmt::Fill { .. }) || stmt.blocks().any(|inner| fills(inner)))
}

/// Sets the bounds of the loops with some indices.
fn widen(block: &mut StmtBlock, indices: &[LocalId], bounds: [ExprId; 2]) {
    for stmt in block {
        match stmt {
            Stmt::For { var, lo, hi, .. } if indices.contains(var) => [*lo, *hi] = bounds,
            stmt => stmt.blocks_mut().for_each(|inner| widen(inner, indices, bounds)),
        }
    }
}

/// Calls `f` with every expression of a block, operands included.
fn for_each_expr(codelet: &Codelet, block: &[Stmt], f: &mut dyn FnMut(ExprId)) {
    fn visit(codelet: &Codelet, e: ExprId, f: &mut dyn FnMut(ExprId)) {
        f(e);
        codelet.exprs[e].kind.operands().iter().for_each(|&x| visit(codelet, x, f));
    }
    for stmt in block {
        stmt.for_each_expr(|e| visit(codelet, e, f));
        stmt.blocks().for_each(|inner| for_each_expr(codelet, inner, f));
    }
}

/// A loop whose iterations workers share.
struct SharedLoop<'a> {
    var: LocalId,
    /// The iterations of all workers.
    length: i64,
    body: &'a StmtBlock,
}

struct Find<'a> {
    codelet: &'a Codelet,
    folded: Folded,
    /// The number of assignments of each local.
    sets: SecondaryMap<LocalId, u32>,
    /// The values of locals that are set once, before the loop.
    values: SecondaryMap<LocalId, Option<ExprId>>,
}

impl Find<'_> {
    /// Returns the form of an expression, with locals replaced by their values.
    fn form(&self, mut e: ExprId) -> &ExprKind {
        while let ExprKind::Local(local) = self.codelet.exprs[e].kind
            && let Some(value) = self.values[local]
        {
            e = value;
        }
        &self.codelet.exprs[e].kind
    }

    fn operands(&self, wanted: BinaryOp, e: ExprId) -> Option<[ExprId; 2]> {
        match *self.form(e) {
            ExprKind::Binary { op, a, b, .. } if op == wanted => Some([a, b]),
            _ => None,
        }
    }

    fn number(&self, e: ExprId) -> Option<i64> {
        match *self.form(e) {
            ExprKind::Const(value) => value.as_int().and_then(|n| i64::try_from(n).ok()),
            _ => self.folded[e].map(|bits| bits as i64),
        }
    }

    /// Collects the loops that workers share.
    fn shared<'s>(&self, block: &'s [Stmt], found: &mut Vec<SharedLoop<'s>>) {
        for stmt in block {
            if let Stmt::For { var, lo, hi, step: 1, body, .. } = stmt
                && let Some(length) = self.share(*lo, *hi)
            {
                found.push(SharedLoop { var: *var, length, body });
            } else {
                stmt.blocks().for_each(|inner| self.shared(inner, found));
            }
        }
    }

    /// Returns n if bounds are `worker * n / workers` and `(worker + 1) * n / workers`.
    fn share(&self, lo: ExprId, hi: ExprId) -> Option<i64> {
        let product = |e: ExprId| {
            let [product, workers] = self.operands(BinaryOp::Div, e)?;
            let is_share = matches!(self.form(workers), ExprKind::Workers);
            self.operands(BinaryOp::Mul, product).filter(|_| is_share)
        };
        let is_worker = |e: ExprId| matches!(self.form(e), ExprKind::Worker);
        let is_next = |e: ExprId| match self.operands(BinaryOp::Add, e) {
            Some([a, b]) => is_worker(a) && self.number(b) == Some(1) || is_worker(b) && self.number(a) == Some(1),
            None => false,
        };
        let other = |[a, b]: [ExprId; 2], is: &dyn Fn(ExprId) -> bool| {
            if is(a) { self.number(b) } else { self.number(a).filter(|_| is(b)) }
        };
        let (first, last) = (other(product(lo)?, &is_worker)?, other(product(hi)?, &is_next)?);
        (first == last && (0..1 << 32).contains(&first)).then_some(first)
    }

    /// Returns whether iterations of different shares touch different elements of what they write, and pass no value
    /// on.
    fn is_independent(&self, loops: &[SharedLoop<'_>]) -> bool {
        let stored = self.stored();
        let own: Vec<(LocalId, Vec<_>)> = loops.iter().map(|l| (l.var, self.accesses(l.body, &stored))).collect();
        let count: usize = own.iter().map(|(_, accesses)| accesses.len()).sum();
        if count != self.accesses(&self.codelet.body, &stored).len() {
            return false;
        }
        for l in loops {
            let mut inside = SecondaryMap::new();
            count_sets(l.body, &mut inside);
            let passes_on = self.codelet.locals.keys().any(|l| inside[l] > 0 && inside[l] != self.sets[l]);
            if passes_on || self.sets[l.var] != 1 || fills(l.body) {
                return false;
            }
        }
        let has_index = |index: &Index, dim: usize, var: LocalId| {
            index.get(dim).is_some_and(|&e| matches!(self.codelet.exprs[e].kind, ExprKind::Local(l) if l == var))
        };
        let is_used = |storage: &&Storage| own.iter().flat_map(|(_, accesses)| accesses).any(|a| a.0 == **storage);
        stored.iter().filter(is_used).all(|storage| {
            let along = |dim: usize| {
                let mut of = own.iter().flat_map(|(var, accesses)| accesses.iter().map(move |access| (*var, access)));
                of.all(|(var, (of, index))| of != storage || has_index(index, dim, var))
            };
            (0..self.dims(*storage)).any(along)
        })
    }

    fn dims(&self, storage: Storage) -> usize {
        match storage {
            Storage::Field(field) => self.codelet.fields[field].dims.len(),
            Storage::Local(local) => self.codelet.locals[local].array.as_ref().map_or(0, |dims| dims.len()),
        }
    }

    /// Returns the fields that the codelet may write, and the arrays to elements of which it stores.
    fn stored(&self) -> Vec<Storage> {
        fn arrays(block: &[Stmt], found: &mut Vec<Storage>) {
            for stmt in block {
                if let Stmt::StoreLocal { local, .. } = stmt
                    && !found.contains(&Storage::Local(*local))
                {
                    found.push(Storage::Local(*local));
                }
                stmt.blocks().for_each(|inner| arrays(inner, found));
            }
        }
        let fields = self.codelet.fields.iter().filter(|(_, field)| matches!(field.dir, Dir::Out | Dir::InOut));
        let mut stored = fields.map(|(id, _)| Storage::Field(id)).collect();
        arrays(&self.codelet.body, &mut stored);
        stored
    }

    /// Lists the accesses of a block to some storages.
    fn accesses<'s>(&'s self, block: &'s [Stmt], to: &[Storage]) -> Vec<(Storage, &'s Index)> {
        fn stores<'s>(block: &'s [Stmt], found: &mut Vec<(Storage, &'s Index)>) {
            for stmt in block {
                match stmt {
                    Stmt::Store { field, index, .. } => found.push((Storage::Field(*field), index)),
                    Stmt::StoreLocal { local, index, .. } => found.push((Storage::Local(*local), index)),
                    _ => {}
                }
                stmt.blocks().for_each(|inner| stores(inner, found));
            }
        }
        let mut found = Vec::new();
        let mut loads: Vec<ExprId> = Vec::new();
        for_each_expr(self.codelet, block, &mut |e| loads.push(e));
        for e in loads {
            let load = match &self.codelet.exprs[e].kind {
                ExprKind::Load { field, index, .. } => (Storage::Field(*field), index),
                ExprKind::LoadLocal { local, index, .. } => (Storage::Local(*local), index),
                _ => continue,
            };
            if to.contains(&load.0) {
                found.push(load);
            }
        }
        stores(block, &mut found);
        found
    }

    /// Returns the locals whose values before the loop depend on the worker.
    fn by_worker(&self) -> EntitySet<LocalId> {
        let mut all: EntitySet<LocalId> = EntitySet::new();
        for stmt in &self.codelet.body {
            let Stmt::Set { local, .. } = stmt else { continue };
            let mut depends = false;
            for_each_expr(self.codelet, std::slice::from_ref(stmt), &mut |e| {
                depends |= match self.codelet.exprs[e].kind {
                    ExprKind::Worker | ExprKind::Workers => true,
                    ExprKind::Local(l) => all.contains(l),
                    _ => false,
                }
            });
            if depends {
                all.insert(*local);
            }
        }
        all
    }
}
