//! Loops of which a way that is hardly ever taken keeps the vectors away, in two versions.
//!
//! ```text
//! for i in 0..n { block { r = f(x[i]); if usual(r) { s = g(r); break; } table[..] = ..; s = h(table, r); } y[i] = s; }
//! ```
//!
//! Functions of one number end so: a range of arguments needs a table, as the sine of a large number does. All turns are
//! asked first, and only if one is not as usual does the loop run as it stands:
//!
//! ```text
//! let seldom = any i in 0..n { r = f(x[i]); !usual(r) };
//! if seldom { .. } else { for i in 0..n { r = f(x[i]); s = g(r); y[i] = s; } }
//! ```
//!
//! Invariant: the second version is entered only if no turn would leave it; what is asked cannot fail, reads nothing that
//! the loop stores or carries from turn to turn, and sets nothing that is read elsewhere.

use crate::fold::fold;
use crate::interchange::Copy;
use crate::spec::{KernelSpec, Rewritten};
use crate::work::Folded;
use cranelift_entity::EntitySet;
use girder_codelet::interpret::trips;
use girder_ir::codelet::{
    BinaryOp, Binder, Check, Codelet, Expr, ExprKind, Local, Reduce, ReduceOp, Site, Stmt, StmtBlock, Storage, UnaryOp,
};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::ElemType;
use girder_source::Span;
use smallvec::smallvec;

/// Fewer turns do not pay for two versions.
const FEWEST: u64 = 64;

/// The codelet with two versions of the loops that gain by it, if there are any. What counts executions stays as it is.
pub(crate) fn versions(spec: &KernelSpec<'_>) -> Option<Rewritten> {
    if spec.points.is_some_and(|p| !p.is_empty()) || !has_candidate(&spec.codelet.body) {
        return None;
    }
    let mut rewrite = Rewrite {
        spec,
        folded: fold(spec.codelet, spec.sizes),
        codelet: spec.codelet.clone(),
        proven: spec.proven.clone(),
        changed: false,
    };
    rewrite.codelet.body = rewrite.block(&spec.codelet.body);
    rewrite.changed.then_some(Rewritten { codelet: rewrite.codelet, proven: rewrite.proven })
}

/// Whether some loop has a way that is seldom taken in its body.
fn has_candidate(block: &StmtBlock) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::For { body, .. } => body.iter().any(|s| Ways::of(s).is_some()) || has_candidate(body),
        Stmt::Labelled { body, .. } => has_candidate(body),
        Stmt::If { then, els, .. } => has_candidate(then) || has_candidate(els),
        _ => false,
    })
}

/// A block that a condition leaves, before it comes to arrays.
struct Ways<'a> {
    before: &'a [Stmt],
    usual: ExprId,
    /// What is done then, but for leaving.
    then: &'a [Stmt],
}

impl<'a> Ways<'a> {
    fn of(stmt: &'a Stmt) -> Option<Ways<'a>> {
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
        qualifies.then_some(Ways { before: &body[..at], usual: *cond, then })
    }
}

/// What all turns are asked, in order.
enum Asked {
    Set(LocalId, ExprId),
    Usual(ExprId),
}

struct Rewrite<'a> {
    spec: &'a KernelSpec<'a>,
    /// Of the codelet as it was.
    folded: Folded,
    codelet: Codelet,
    proven: EntitySet<SiteId>,
    changed: bool,
}

impl Rewrite<'_> {
    fn block(&mut self, block: &StmtBlock) -> StmtBlock {
        block.iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt) -> StmtBlock {
        if let Some(both) = self.both(stmt) {
            self.changed = true;
            return both;
        }
        vec![match stmt {
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let body = self.block(body);
                Stmt::For { var: *var, lo: *lo, hi: *hi, step: *step, label: *label, body, site: *site }
            }
            Stmt::If { cond, then, els } => Stmt::If { cond: *cond, then: self.block(then), els: self.block(els) },
            Stmt::Labelled { label, body } => Stmt::Labelled { label: *label, body: self.block(body) },
            other => other.clone(),
        }]
    }

    /// Both versions of a loop, if it has a way that is seldom taken.
    fn both(&mut self, stmt: &Stmt) -> Option<StmtBlock> {
        let Stmt::For { var, lo, hi, step: 1, body, .. } = stmt else { return None };
        let last = body.iter().rposition(|s| Ways::of(s).is_some())?;
        let turns = trips(self.folded[*lo]? as i64, self.folded[*hi]? as i64, 1);
        if turns < FEWEST {
            return None;
        }
        let mut asked = Vec::new();
        let mut usual = StmtBlock::new();
        for (n, stmt) in body.iter().enumerate() {
            match (Ways::of(stmt), stmt) {
                (Some(ways), _) => {
                    asked.extend(sets(ways.before));
                    asked.push(Asked::Usual(ways.usual));
                    asked.extend(sets(ways.then));
                    usual.extend(ways.before.iter().chain(ways.then).cloned());
                }
                (None, Stmt::Set { .. }) => {
                    asked.extend(sets(std::slice::from_ref(stmt)));
                    usual.push(stmt.clone());
                }
                // A place stores only what the questions do not read.
                (None, Stmt::Store { .. } | Stmt::StoreLocal { .. }) => usual.push(stmt.clone()),
                // What follows the last question may be anything.
                (None, _) if n > last => usual.push(stmt.clone()),
                _ => return None,
            }
        }
        let asked = self.needed(asked, *var, body)?;
        let (seldom, question) = self.question(&asked, (*var, *lo, *hi));
        let span = self.codelet.exprs[*lo].span;
        let cond = self.read(seldom, span);
        let mut version = stmt.clone();
        if let Stmt::For { body, .. } = &mut version {
            *body = usual;
        }
        Some(vec![question, Stmt::If { cond, then: vec![stmt.clone()], els: vec![version] }])
    }

    /// What the questions depend on, if that may be evaluated before the loop.
    fn needed(&self, asked: Vec<Asked>, var: LocalId, body: &StmtBlock) -> Option<Vec<Asked>> {
        let mut changes = Changes::default();
        changes.block(body);
        let mut wanted: EntitySet<LocalId> = EntitySet::new();
        let mut kept = Vec::new();
        for step in asked.into_iter().rev() {
            let value = match step {
                Asked::Set(local, _) if !wanted.contains(local) => continue,
                Asked::Set(local, value) => {
                    wanted.remove(local);
                    value
                }
                Asked::Usual(cond) => cond,
            };
            self.may_be_asked(value, &changes.fields, &mut wanted)?;
            kept.push(step);
        }
        wanted.remove(var);
        // What is left is read before the turn sets it.
        let carried = changes.sets.iter().any(|&local| wanted.contains(local));
        kept.reverse();
        (!carried).then_some(kept)
    }

    /// Notes the locals that an expression reads, if it can neither fail nor read what is stored. Recursion is bounded by
    /// `validate`.
    fn may_be_asked(&self, e: ExprId, stored: &[FieldId], wanted: &mut EntitySet<LocalId>) -> Option<()> {
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
        expr.kind.operands().iter().try_for_each(|&x| self.may_be_asked(x, stored, wanted))
    }

    /// `any`, with locals of its own.
    fn question(&mut self, asked: &[Asked], (var, lo, hi): (LocalId, ExprId, ExprId)) -> (LocalId, Stmt) {
        let span = self.codelet.exprs[lo].span;
        let own = self.local(ElemType::I64);
        let index = self.read(own, span);
        let mut before = StmtBlock::new();
        let mut conds = Vec::new();
        let mut copy = Copy::new(&mut self.codelet, [(var, index)]);
        for step in asked {
            match *step {
                Asked::Set(local, value) => copy.renamed_sets(&vec![Stmt::Set { local, value }], &mut before),
                Asked::Usual(cond) => conds.push(copy.expr(cond)),
            }
        }
        let unusual: Vec<ExprId> = conds
            .into_iter()
            .map(|x| self.expr(ElemType::Bool, ExprKind::Unary { op: UnaryOp::Not, x }, span))
            .collect();
        let or = |a, b| ExprKind::Binary { op: BinaryOp::Or, a, b, site: None };
        let value = unusual.into_iter().reduce(|a, b| self.expr(ElemType::Bool, or(a, b), span));
        let value = value.expect("a loop has a question");
        let dst = self.local(ElemType::Bool);
        let (site, iterations) = (self.site(Check::Empty, span), self.site(Check::Iterations, span));
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
            iterations,
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

    /// A check that cannot fail.
    fn site(&mut self, check: Check, span: Span) -> SiteId {
        let site = self.codelet.sites.push(Site { check, span, calls: smallvec![], message: None });
        self.proven.insert(site);
        site
    }
}

fn sets(block: &[Stmt]) -> impl Iterator<Item = Asked> {
    block.iter().filter_map(|stmt| match stmt {
        Stmt::Set { local, value } => Some(Asked::Set(*local, *value)),
        _ => None,
    })
}

/// What a loop changes.
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
