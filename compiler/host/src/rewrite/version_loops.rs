//! Makes two versions of a loop whose body rarely takes a path that prevents vectorisation.
//!
//! ```text
//! for i in 0..n { block { r = f(x[i]); if usual(r) { s = g(r); break; } table[..] = ..; s = h(table, r); } y[i] = s; }
//! ```
//!
//! Elementary functions have this shape: some arguments need a table, as the sine of a large number does. The condition
//! is evaluated for all iterations first. The original loop runs only if one of them is unusual:
//!
//! ```text
//! let seldom = any i in 0..n { r = f(x[i]); !usual(r) };
//! if seldom { .. } else { for i in 0..n { r = f(x[i]); s = g(r); y[i] = s; } }
//! ```
//!
//! Invariant: the second version is entered only if every iteration takes the usual path. The condition cannot fail,
//! reads nothing that the loop stores or carries from iteration to iteration, and sets no local that is read elsewhere.

use super::Rewritten;
use super::substitute::{Substitution, replaced};
use cranelift_entity::EntitySet;
use girder_codelet::fold::{Folded, fold};
use girder_codelet::interpret::trips;
use girder_codelet::kernel::{KernelSpec, KernelTarget};
use girder_ir::codelet::{
    BinaryOp, Binder, Check, Codelet, Expr, ExprKind, Local, Reduce, ReduceOp, Site, Stmt, StmtBlock, Storage, UnaryOp,
};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::ElemType;
use girder_source::Span;
use smallvec::smallvec;

/// Trip count below which two versions do not pay.
const FEWEST: u64 = 64;

/// Returns the codelet with two versions of each loop that gains by it, or `None` if there is none.
pub(super) fn version_loops(spec: &KernelSpec<'_>, target: KernelTarget) -> Option<Rewritten> {
    if !target.vector_kernels || !has_candidate(&spec.codelet.body) {
        return None;
    }
    let mut rewrite = Rewrite {
        spec,
        folded: fold(spec.codelet, spec.sizes),
        codelet: spec.codelet.clone(),
        proven: spec.proven.clone(),
    };
    let body = replaced(&spec.codelet.body, &mut |stmt| rewrite.both(stmt))?;
    rewrite.codelet.body = body;
    Some(Rewritten { codelet: rewrite.codelet, proven: rewrite.proven })
}

/// Returns whether some loop has an early exit in its body.
fn has_candidate(block: &StmtBlock) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::For { body, .. } => body.iter().any(|s| EarlyExit::of(s).is_some()) || has_candidate(body),
        Stmt::Labelled { body, .. } => has_candidate(body),
        Stmt::If { then, els, .. } => has_candidate(then) || has_candidate(els),
        _ => false,
    })
}

/// A block that a condition leaves before the block accesses arrays.
struct EarlyExit<'a> {
    before: &'a [Stmt],
    usual: ExprId,
    /// The statements of the usual path, without the exit.
    then: &'a [Stmt],
}

impl<'a> EarlyExit<'a> {
    fn of(stmt: &'a Stmt) -> Option<EarlyExit<'a>> {
        let Stmt::Labelled { label, body } = stmt else { return None };
        let is_set = |s: &Stmt| matches!(s, Stmt::Set { .. });
        let at = body.iter().position(|s| !is_set(s))?;
        let Stmt::If { cond, then, els } = &body[at] else { return None };
        let (last, then) = then.split_last()?;
        let leaves = matches!(last, Stmt::Break(l) if l == label) && then.iter().all(is_set);
        fn with_array(s: &Stmt) -> bool {
            matches!(s, Stmt::Fill { .. } | Stmt::StoreLocal { .. }) || s.blocks().any(|b| b.iter().any(with_array))
        }
        let qualifies = leaves && els.is_empty() && body[at + 1..].iter().any(with_array);
        qualifies.then_some(EarlyExit { before: &body[..at], usual: *cond, then })
    }
}

/// A statement or test of the condition that is evaluated for all iterations.
enum Condition {
    Set(LocalId, ExprId),
    Usual(ExprId),
}

struct Rewrite<'a> {
    spec: &'a KernelSpec<'a>,
    /// Known values of the original codelet.
    folded: Folded,
    codelet: Codelet,
    proven: EntitySet<SiteId>,
}

impl Rewrite<'_> {
    /// Returns both versions of a loop, or `None` if it has no early exit.
    fn both(&mut self, stmt: &Stmt) -> Option<StmtBlock> {
        let Stmt::For { var, lo, hi, step: 1, body, .. } = stmt else { return None };
        let last = body.iter().rposition(|s| EarlyExit::of(s).is_some())?;
        let count = trips(self.folded[*lo]? as i64, self.folded[*hi]? as i64, 1);
        if count < FEWEST {
            return None;
        }
        let mut condition = Vec::new();
        let mut usual = StmtBlock::new();
        for (n, stmt) in body.iter().enumerate() {
            match (EarlyExit::of(stmt), stmt) {
                (Some(exit), _) => {
                    condition.extend(sets(exit.before));
                    condition.push(Condition::Usual(exit.usual));
                    condition.extend(sets(exit.then));
                    usual.extend(exit.before.iter().chain(exit.then).cloned());
                }
                (None, Stmt::Set { .. }) => {
                    condition.extend(sets(std::slice::from_ref(stmt)));
                    usual.push(stmt.clone());
                }
                // The condition reads nothing that an iteration stores.
                (None, Stmt::Store { .. } | Stmt::StoreLocal { .. }) => usual.push(stmt.clone()),
                // Any statement may follow the last exit.
                (None, _) if n > last => usual.push(stmt.clone()),
                _ => return None,
            }
        }
        let condition = self.needed(condition, *var, body)?;
        let (seldom, any) = self.any_unusual(&condition, (*var, *lo, *hi));
        let span = self.codelet.exprs[*lo].span;
        let cond = self.read(seldom, span);
        let mut version = stmt.clone();
        if let Stmt::For { body, .. } = &mut version {
            *body = usual;
        }
        Some(vec![any, Stmt::If { cond, then: vec![stmt.clone()], els: vec![version] }])
    }

    /// Returns the statements that the condition depends on, or `None` if they cannot be evaluated before the loop.
    fn needed(&self, condition: Vec<Condition>, var: LocalId, body: &StmtBlock) -> Option<Vec<Condition>> {
        let mut changes = Changes::default();
        changes.block(body);
        let mut wanted: EntitySet<LocalId> = EntitySet::new();
        let mut kept = Vec::new();
        for step in condition.into_iter().rev() {
            let value = match step {
                Condition::Set(local, _) if !wanted.contains(local) => continue,
                Condition::Set(local, value) => {
                    wanted.remove(local);
                    value
                }
                Condition::Usual(cond) => cond,
            };
            self.can_be_evaluated(value, &changes.fields, &mut wanted)?;
            kept.push(step);
        }
        wanted.remove(var);
        // A remaining local is read before the iteration sets it.
        let carried = changes.sets.iter().any(|&local| wanted.contains(local));
        kept.reverse();
        (!carried).then_some(kept)
    }

    /// Adds the locals that an expression reads to `wanted`; returns `None` if it may fail or reads what is stored.
    fn can_be_evaluated(&self, e: ExprId, stored: &[FieldId], wanted: &mut EntitySet<LocalId>) -> Option<()> {
        let expr = &self.spec.codelet.exprs[e];
        if self.folded[e].is_some() {
            return Some(());
        }
        let site = match expr.kind {
            ExprKind::Local(local) => {
                wanted.insert(local);
                None
            }
            ExprKind::Load { field, .. } if stored.contains(&field) => return None,
            ExprKind::Load { site, .. } => Some(site),
            ExprKind::LoadLocal { .. } => return None,
            ExprKind::Binary { site, .. } => site,
            _ => None,
        };
        if site.is_some_and(|site| !self.spec.proven.contains(site)) {
            return None;
        }
        expr.kind.operands().iter().try_for_each(|&x| self.can_be_evaluated(x, stored, wanted))
    }

    /// Builds an `any` over the iterations, with new locals, that is true if one of them is unusual.
    fn any_unusual(&mut self, condition: &[Condition], (var, lo, hi): (LocalId, ExprId, ExprId)) -> (LocalId, Stmt) {
        let span = self.codelet.exprs[lo].span;
        let own = self.local(ElemType::I64);
        let index = self.read(own, span);
        let mut before = StmtBlock::new();
        let mut conds = Vec::new();
        let mut copy = Substitution::new(&mut self.codelet, [(var, index)]);
        for step in condition {
            match *step {
                Condition::Set(local, value) => copy.renamed_sets(&vec![Stmt::Set { local, value }], &mut before),
                Condition::Usual(cond) => conds.push(copy.expr(cond)),
            }
        }
        let unusual: Vec<ExprId> = conds
            .into_iter()
            .map(|x| self.expr(ElemType::Bool, ExprKind::Unary { op: UnaryOp::Not, x }, span))
            .collect();
        let or = |a, b| ExprKind::Binary { op: BinaryOp::Or, a, b, site: None };
        let value = unusual.into_iter().reduce(|a, b| self.expr(ElemType::Bool, or(a, b), span));
        let value = value.expect("a loop with an early exit has a condition");
        let dst = self.local(ElemType::Bool);
        let (site, trips) = (self.site(Check::Empty, span), self.site(Check::Iterations, span));
        let reduce = Reduce {
            dst,
            op: ReduceOp::Any,
            binders: vec![Binder { var: own, lo, hi, step: 1 }],
            filter_before: StmtBlock::new(),
            filter: None,
            before,
            value,
            factors: None,
            site,
            iterations: trips,
        };
        (dst, Stmt::Reduce(Box::new(reduce)))
    }

    fn local(&mut self, ty: ElemType) -> LocalId {
        self.codelet.locals.push(Local { name: "".into(), ty, array: None })
    }

    fn read(&mut self, local: LocalId, span: Span) -> ExprId {
        let ty = self.codelet.locals[local].ty;
        self.expr(ty, ExprKind::Local(local), span)
    }

    fn expr(&mut self, ty: ElemType, kind: ExprKind, span: Span) -> ExprId {
        self.codelet.exprs.push(Expr { kind, ty, span })
    }

    /// Adds a check that cannot fail.
    fn site(&mut self, check: Check, span: Span) -> SiteId {
        let site = self.codelet.sites.push(Site { check, span, calls: smallvec![], message: None });
        self.proven.insert(site);
        site
    }
}

fn sets(block: &[Stmt]) -> impl Iterator<Item = Condition> {
    block.iter().filter_map(|stmt| match stmt {
        Stmt::Set { local, value } => Some(Condition::Set(*local, *value)),
        _ => None,
    })
}

/// The locals and fields that a loop changes.
#[derive(Default)]
struct Changes {
    sets: Vec<LocalId>,
    fields: Vec<FieldId>,
}

impl Changes {
    fn block(&mut self, block: &StmtBlock) {
        for stmt in block {
            match stmt {
                Stmt::Set { local, .. } => self.sets.push(*local),
                Stmt::Store { field, .. } => self.fields.push(*field),
                Stmt::For { var, body, .. } => {
                    self.sets.push(*var);
                    self.block(body);
                }
                Stmt::While { before, body, .. } => {
                    self.block(before);
                    self.block(body);
                }
                Stmt::If { then, els, .. } => {
                    self.block(then);
                    self.block(els);
                }
                Stmt::Labelled { body, .. } => self.block(body),
                Stmt::Reduce(r) => {
                    self.sets.push(r.dst);
                    self.sets.extend(r.binders.iter().map(|b| b.var));
                    self.block(&r.filter_before);
                    self.block(&r.before);
                }
                Stmt::Amp(amp) => {
                    if let Storage::Field(field) = amp.c.base {
                        self.fields.push(field);
                    }
                }
                Stmt::Fill { .. } | Stmt::StoreLocal { .. } | Stmt::Assert { .. } => {}
                Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return => {}
            }
        }
    }
}
