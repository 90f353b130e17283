//! Fields of which a reduction accesses each element at most once, in one place.
//!
//! The index of such an access names every loop around it, each for one dimension. What a reduction loads in this way
//! may be computed where it is loaded; what a codelet with a reduction stores may be used there. A codelet with matrix
//! products has no such access, because the host recognises products among few other statements.
//!
//! Invariant: an [`ElementAccess`] cannot fail, and is the only use of its field.

use girder_codelet::facts::{Cover, Facts};
use girder_ir::codelet::{Codelet, Dir, ExprKind, Index, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use smallvec::SmallVec;

/// The only access of a reduction to a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementAccess {
    /// The field.
    pub field: FieldId,
    /// The loop, by its index, for each dimension.
    pub index: SmallVec<[LocalId; 3]>,
    /// The load; `None` for a store.
    pub load: Option<ExprId>,
}

impl ElementAccess {
    /// Returns the load of an `in` field, if it is the only one and inside a reduction.
    pub fn load(codelet: &Codelet, field: FieldId, facts: &Facts) -> Option<ElementAccess> {
        if codelet.fields[field].dir != Dir::In {
            return None;
        }
        let found = Finder::find(codelet, field)?;
        let load = found.load.filter(|_| found.in_reduction)?;
        let ExprKind::Load { index, site, .. } = &codelet.exprs[load].kind else { return None };
        let index = named(codelet, index, &found.loops)?;
        facts.proven.contains(*site).then_some(ElementAccess { field, index, load: Some(load) })
    }

    /// Returns the store of an `out` field in a codelet with a reduction, if it is the only one and stores every
    /// element once. The workers of a `multi` codelet have to share a loop around it.
    pub fn store(codelet: &Codelet, field: FieldId, facts: &Facts) -> Option<ElementAccess> {
        if codelet.fields[field].dir != Dir::Out || facts.cover[field] != Cover::Full || !has_reduction(&codelet.body) {
            return None;
        }
        // Without branches all stores are certain ones.
        if codelet.multi && !(is_straight(&codelet.body) && facts.parted.contains(field)) {
            return None;
        }
        let found = Finder::find(codelet, field)?;
        let Stmt::Store { index, site, .. } = found.store? else { return None };
        let index = named(codelet, index, &found.loops)?;
        facts.proven.contains(*site).then_some(ElementAccess { field, index, load: None })
    }
}

/// Returns the index of the loop for each dimension, if the dimensions name all loops, each once.
fn named(codelet: &Codelet, index: &Index, loops: &[Option<LocalId>]) -> Option<SmallVec<[LocalId; 3]>> {
    let of = |&e: &ExprId| match codelet.exprs[e].kind {
        ExprKind::Local(local) => Some(local).filter(|&local| loops.contains(&Some(local))),
        _ => None,
    };
    let named = index.iter().map(of).collect::<Option<SmallVec<[LocalId; 3]>>>()?;
    let differ = named.iter().enumerate().all(|(k, a)| !named[..k].contains(a));
    (differ && named.len() == loops.len()).then_some(named)
}

/// Returns whether a block has no branches but its loops, outside of reductions.
fn is_straight(block: &StmtBlock) -> bool {
    block.iter().all(|stmt| match stmt {
        Stmt::For { body, .. } => is_straight(body),
        Stmt::Set { .. } | Stmt::Store { .. } | Stmt::Reduce(_) => true,
        _ => false,
    })
}

fn has_reduction(block: &StmtBlock) -> bool {
    block.iter().any(|stmt| matches!(stmt, Stmt::Reduce(_)) || stmt.blocks().any(has_reduction))
}

/// The accesses of a field.
struct Finder<'c> {
    codelet: &'c Codelet,
    field: FieldId,
    /// The indices of the loops around the statement; `None` for a loop without index.
    loops: Vec<Option<LocalId>>,
    /// The number of reductions around the statement.
    reductions: u32,
    found: Vec<FoundAccess<'c>>,
    /// Whether there is another use of the field, or a matrix product.
    otherwise: bool,
}

/// An access with the loops around it.
struct FoundAccess<'c> {
    loops: Vec<Option<LocalId>>,
    in_reduction: bool,
    load: Option<ExprId>,
    store: Option<&'c Stmt>,
}

impl<'c> Finder<'c> {
    /// Returns the only access.
    fn find(codelet: &'c Codelet, field: FieldId) -> Option<FoundAccess<'c>> {
        let mut finder = Finder { codelet, field, loops: vec![], reductions: 0, found: vec![], otherwise: false };
        finder.block(&codelet.body);
        let only = finder.found.len() == 1 && !finder.otherwise;
        finder.found.pop().filter(|_| only)
    }

    fn block(&mut self, block: &'c StmtBlock) {
        block.iter().for_each(|stmt| self.statement(stmt));
    }

    fn statement(&mut self, stmt: &'c Stmt) {
        match stmt {
            Stmt::For { var, lo, hi, body, .. } => {
                self.other_exprs(&[*lo, *hi]);
                self.inside(Some(*var), body);
            }
            Stmt::While { before, cond, body, .. } => {
                self.other_exprs(&[*cond]);
                self.inside(None, before);
                self.inside(None, body);
            }
            Stmt::If { cond, then, els } => {
                self.exprs(&[*cond]);
                self.block(then);
                self.block(els);
            }
            Stmt::Labelled { body, .. } => self.block(body),
            Stmt::Reduce(r) => {
                let bounds: Vec<ExprId> = r.binders.iter().flat_map(|b| [b.lo, b.hi]).collect();
                self.other_exprs(&bounds);
                let before = self.loops.len();
                self.loops.extend(r.binders.iter().map(|b| Some(b.var)));
                self.reductions += 1;
                self.block(&r.filter_before);
                self.exprs(r.filter.as_slice());
                self.block(&r.before);
                let (x, y) = r.factors.unzip();
                let values: Vec<ExprId> = [r.value].into_iter().chain(x).chain(y).collect();
                self.exprs(&values);
                self.loops.truncate(before);
                self.reductions -= 1;
            }
            Stmt::Amp(_) => self.otherwise = true,
            _ => {
                let mut all = vec![];
                stmt.for_each_expr(|e| all.push(e));
                self.exprs(&all);
                if matches!(stmt, Stmt::Store { field, .. } if *field == self.field) {
                    self.found(None, Some(stmt));
                }
            }
        }
    }

    fn found(&mut self, load: Option<ExprId>, store: Option<&'c Stmt>) {
        self.found.push(FoundAccess { loops: self.loops.clone(), in_reduction: self.reductions > 0, load, store });
    }

    fn inside(&mut self, index: Option<LocalId>, block: &'c StmtBlock) {
        self.loops.push(index);
        self.block(block);
        self.loops.pop();
    }

    /// Notes the loads in the expressions of one statement.
    fn exprs(&mut self, all: &[ExprId]) {
        let mut loads = vec![];
        all.iter().for_each(|&e| loads_of(self.codelet, self.field, e, &mut loads));
        loads.sort_unstable();
        loads.dedup();
        for load in loads {
            self.found(Some(load), None);
        }
    }

    /// Records whether expressions before which no statement can be inserted load the field.
    fn other_exprs(&mut self, all: &[ExprId]) {
        let mut loads = vec![];
        all.iter().for_each(|&e| loads_of(self.codelet, self.field, e, &mut loads));
        self.otherwise |= !loads.is_empty();
    }
}

/// Collects the loads of a field in an expression.
pub(crate) fn loads_of(codelet: &Codelet, field: FieldId, e: ExprId, loads: &mut Vec<ExprId>) {
    let kind = &codelet.exprs[e].kind;
    if matches!(kind, ExprKind::Load { field: of, .. } if *of == field) {
        loads.push(e);
    }
    kind.operands().iter().for_each(|&x| loads_of(codelet, field, x, loads));
}
