//! Distributes a loop over columns: each reduction and each inner loop gets a loop over all columns of its own.
//!
//! ```text
//! for j in 0..n {
//!     let m = max i in 0..r { x[i, j] };
//!     for i in 0..r { y[i, j] = exp(x[i, j] - m); }
//! }
//! ```
//!
//! goes down one column after the other. The loops that it is distributed to read whole rows; what one of them sets for
//! another stands in an array:
//!
//! ```text
//! for j in 0..n { ms[j] = max i in 0..r { x[i, j] }; }
//! for i in 0..r { for j in 0..n { y[i, j] = exp(x[i, j] - ms[j]); } }
//! ```
//!
//! Inner loops are interchanged at once; `interchange` then takes the reductions.
//!
//! Invariant: no iteration of the loop touches an element that another one stores, none reads what another one sets,
//! and none can fail. So only the order within a column matters, which stays.

use super::Rewrite;
use super::find::{FEWEST_COLUMNS, FEWEST_ROWS, set_by};
use crate::rewrite::substitute::Substitution;
use girder_codelet::kernel::{ARRAY_BYTES, array_bytes};
use girder_codelet::locals::{count_sets, reads, reads_of_reduce};
use girder_ir::codelet::{Check, ExprKind, Label, Local, Reduce, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use smallvec::smallvec;

/// The part of the bytes for arrays that the values of columns may take.
const ROOM: u64 = ARRAY_BYTES / 4;

impl<'a> Rewrite<'a> {
    /// Returns the loops that a loop over columns is distributed to, if it gains by that.
    pub(super) fn distributed(&mut self, stmt: &'a Stmt) -> Option<StmtBlock> {
        let Stmt::For { var, lo, hi, step: 1, body, site, .. } = stmt else { return None };
        let (first, columns) = self.known_range((*lo, *hi), *site)?;
        let groups = groups(body);
        let gains = body.iter().any(|s| matches!(s, Stmt::Reduce(r) if self.reduces_rows(*var, r)));
        if groups.len() < 2 || columns < FEWEST_COLUMNS || !gains || !self.is_independent(*var, body) {
            return None;
        }
        let carried = self.carried(&groups);
        let bytes: u64 = carried.iter().map(|&(_, l)| u64::from(self.codelet.locals[l].ty.bytes())).sum();
        if array_bytes(&self.codelet) + bytes * columns as u64 > ROOM {
            return None;
        }
        let span = self.codelet.exprs[*lo].span;
        let (column, offset) = (self.read(*var, span), self.int(first.checked_neg()?, span));
        let at = self.sum(column, offset, span);
        let arrays: Vec<LocalId> = carried
            .iter()
            .map(|&(_, local)| {
                let ty = self.codelet.locals[local].ty;
                self.codelet.locals.push(Local { name: "".into(), ty, array: Some(smallvec![columns as u32]) })
            })
            .collect();
        let mut loops = StmtBlock::new();
        let mut own_site = *site;
        if self.spec.weights[*site] > 0 {
            // What the loop counts before its first iteration is counted by an empty one.
            let label = self.next_label();
            loops.push(Stmt::For { var: *var, lo: *lo, hi: *hi, step: 1, label, body: vec![], site: *site });
            own_site = self.site(Check::Iterations, span);
        }
        for (n, group) in groups.iter().enumerate() {
            let mut known: Vec<(LocalId, ExprId)> = Vec::new();
            let mut kept = StmtBlock::new();
            for (&(set_in, local), &array) in carried.iter().zip(&arrays) {
                let site = self.site(Check::Index, span);
                if set_in < n {
                    let ty = self.codelet.locals[local].ty;
                    known.push((
                        local,
                        self.expr(ty, ExprKind::LoadLocal { local: array, index: smallvec![at], site }, span),
                    ));
                } else if set_in == n {
                    let value = self.read(local, span);
                    kept.push(Stmt::StoreLocal { local: array, index: smallvec![at], value, site });
                }
            }
            let mut copy = Substitution::new(&mut self.codelet, []);
            known.into_iter().for_each(|(local, value)| copy.replace(local, value));
            let mut group = copy.block(group);
            let over_columns = |rewrite: &mut Self, body| {
                let label = rewrite.next_label();
                Stmt::For { var: *var, lo: *lo, hi: *hi, step: 1, label, body, site: own_site }
            };
            loops.push(match &mut group[..] {
                [Stmt::For { label, body, .. }] => {
                    *label = self.next_label();
                    *body = vec![over_columns(self, std::mem::take(body))];
                    group.remove(0)
                }
                _ => {
                    group.extend(kept);
                    over_columns(self, group)
                }
            });
        }
        Some(loops)
    }

    fn next_label(&mut self) -> Label {
        self.label += 1;
        Label(self.label - 1)
    }

    /// Returns whether a reduction goes down the rows of contiguous columns.
    fn reduces_rows(&self, column: LocalId, r: &Reduce) -> bool {
        let rows = r.binders.first().and_then(|b| self.range((b.lo, b.hi), r.iterations));
        r.binders.len() == 1 && rows.is_some_and(|rows| rows.1 >= FEWEST_ROWS) && self.reads_rows(column, r)
    }

    /// Returns the locals that a group sets at its end for later ones, with the group.
    fn carried(&self, groups: &[&'a [Stmt]]) -> Vec<(usize, LocalId)> {
        let mut carried = Vec::new();
        for (n, group) in groups.iter().enumerate() {
            for stmt in *group {
                let local = match stmt {
                    Stmt::Set { local, .. } => *local,
                    Stmt::Reduce(r) => r.dst,
                    _ => continue,
                };
                if groups[n + 1..].iter().any(|later| reads(self.spec.codelet, later)[local] > 0) {
                    carried.push((n, local));
                }
            }
        }
        carried
    }

    /// Returns whether iterations of the loop may run in any order: its statements are assignments, stores, reductions,
    /// and loops of assignments and stores; they cannot fail; each local is set once, before it is read, and nothing
    /// else reads it; and every access to a field that is stored is in the iteration's own column.
    fn is_independent(&self, var: LocalId, body: &'a StmtBlock) -> bool {
        let mut sets = Default::default();
        count_sets(&self.spec.codelet.body, &mut sets);
        let inside = reads(self.spec.codelet, body);
        let mut accesses = LoopAccesses::default();
        inside[var] == self.reads[var]
            && body.iter().enumerate().all(|(n, stmt)| {
                let set_here = |local: LocalId| {
                    let before = reads(self.spec.codelet, &body[..=n]);
                    sets[local] == 1 && before[local] == 0 && inside[local] == self.reads[local]
                };
                match stmt {
                    Stmt::Set { local, .. } => set_here(*local) && self.note(stmt, &mut accesses),
                    Stmt::Store { .. } => self.note(stmt, &mut accesses),
                    Stmt::Reduce(r) => {
                        let (own, all) = (reads_of_reduce(self.spec.codelet, r), &self.reads);
                        let private = |l: LocalId| sets[l] <= 1 && own[l] == all[l];
                        let locals = set_by(&r.before).chain(r.binders.iter().map(|b| b.var));
                        let bounds = r.binders.iter().all(|b| self.range((b.lo, b.hi), r.iterations).is_some());
                        self.evaluated(r).into_iter().for_each(|e| self.note_loads(e, &mut accesses));
                        bounds && self.is_plain(r) && locals.into_iter().all(private) && set_here(r.dst)
                    }
                    Stmt::For { var: inner, lo, hi, step: 1, body, site, .. } => {
                        let plain = |s: &Stmt| matches!(s, Stmt::Set { .. } | Stmt::Store { .. });
                        let once = set_by(body).all(|local| sets[local] == 1);
                        self.range((*lo, *hi), *site).is_some()
                            && once
                            && body.iter().all(plain)
                            && self.is_local(body, [*inner, *inner])
                            && body.iter().all(|stmt| self.note(stmt, &mut accesses))
                    }
                    _ => false,
                }
            })
            && accesses.stored.iter().all(|(field, _)| accesses.in_column(*field, |e| self.is_local_var(e, var)))
    }

    fn is_local_var(&self, e: ExprId, var: LocalId) -> bool {
        matches!(self.spec.codelet.exprs[e].kind, ExprKind::Local(local) if local == var)
    }

    /// Notes what an assignment or a store accesses; returns whether it cannot fail and touches no local array.
    fn note(&self, stmt: &'a Stmt, accesses: &mut LoopAccesses<'a>) -> bool {
        let (value, stored) = match stmt {
            Stmt::Set { value, .. } => (*value, None),
            Stmt::Store { field, index, value, site } if self.spec.proven.contains(*site) => {
                (*value, Some((*field, &index[..])))
            }
            _ => return false,
        };
        let all: Vec<ExprId> = stored.iter().flat_map(|s| s.1.iter().copied()).chain([value]).collect();
        accesses.stored.extend(stored);
        all.iter().for_each(|&e| self.note_loads(e, accesses));
        !accesses.arrays && all.into_iter().all(|e| self.cannot_fail(e))
    }

    fn note_loads(&self, e: ExprId, accesses: &mut LoopAccesses<'a>) {
        let mut loads = Vec::new();
        self.loads(e, &mut loads);
        for load in loads {
            match self.spec.codelet.exprs[load].kind {
                ExprKind::Load { field, ref index, .. } => accesses.loaded.push((field, index)),
                _ => accesses.arrays = true,
            }
        }
    }
}

/// What the iterations of a loop touch.
#[derive(Default)]
struct LoopAccesses<'a> {
    stored: Vec<(FieldId, &'a [ExprId])>,
    loaded: Vec<(FieldId, &'a [ExprId])>,
    /// Whether an array of the codelet is read.
    arrays: bool,
}

impl LoopAccesses<'_> {
    /// Returns whether all accesses to a field have the loop's index in one dimension.
    fn in_column(&self, field: FieldId, is_index: impl Fn(ExprId) -> bool) -> bool {
        let all = || self.stored.iter().chain(&self.loaded).filter(|a| a.0 == field);
        let dims = all().map(|a| a.1.len()).max().unwrap_or(0);
        (0..dims).any(|d| all().all(|a| a.1.get(d).is_some_and(|&e| is_index(e))))
    }
}

/// Divides the statements of a body into groups: a reduction with the plain statements before it, or an inner loop.
fn groups(body: &[Stmt]) -> Vec<&[Stmt]> {
    let mut groups = Vec::new();
    let mut begin = 0;
    for (n, stmt) in body.iter().enumerate() {
        match stmt {
            Stmt::Reduce(_) => {
                groups.push(&body[begin..=n]);
                begin = n + 1;
            }
            Stmt::For { .. } => {
                groups.push(&body[begin..n]);
                groups.push(&body[n..=n]);
                begin = n + 1;
            }
            _ => {}
        }
    }
    groups.push(&body[begin..]);
    groups.retain(|group| !group.is_empty());
    groups
}
