//! The statements that a body in vectors may have.
//!
//! Invariant: steps run in the order of the statements that they come from; early returns have become branches.

use cranelift_entity::EntitySet;
use girder_ir::codelet::{Binder, Index, Label, Reduce, ReduceOp, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId, SiteId};

/// A statement.
pub(in crate::lower) enum Step {
    Set {
        local: LocalId,
        value: ExprId,
    },
    Store {
        storage: Storage,
        index: Index,
        value: ExprId,
        site: SiteId,
        /// Bytes from iteration to iteration; `search` fills it in.
        stride: i64,
    },
    If {
        cond: ExprId,
        then: Vec<Step>,
        els: Vec<Step>,
        /// Whether iterations may take different branches; `search` fills it in.
        differs: bool,
        /// Whether both branches end with a store of one element, so that one store does; `search` fills it in.
        joins: bool,
    },
    For {
        var: LocalId,
        lo: ExprId,
        hi: ExprId,
        step: i64,
        body: Vec<Step>,
        /// How many iterations it may have.
        site: SiteId,
    },
    Reduce(Reduction),
    Total(Total),
}

/// `local = local op value`, of a local that the body does nothing else with.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Total {
    pub local: LocalId,
    pub op: ReduceOp,
    pub value: ExprId,
    /// `value` is their product, and the sum takes it in by one `fma`.
    pub factors: Option<(ExprId, ExprId)>,
    /// It is subtracted.
    pub negated: bool,
}

impl Total {
    /// Whin each iteration evaluates.
    pub fn values(&self) -> Vec<ExprId> {
        self.factors.map_or(vec![self.value], |(x, y)| vec![x, y])
    }
}

/// A reduction inside a body.
pub(in crate::lower) struct Reduction {
    pub source: Box<Reduce>,
    pub before: Vec<Step>,
}

impl Reduction {
    /// What each element evaluates.
    pub fn values(&self) -> Vec<ExprId> {
        values(&self.source)
    }

    pub fn binders(&self) -> &[Binder] {
        &self.source.binders
    }
}

/// What each element of a reduction evaluates.
pub(super) fn values(r: &Reduce) -> Vec<ExprId> {
    r.factors.map_or(vec![r.value], |(x, y)| vec![x, y])
}

/// Nesting beyond which a body stays scalar; early returns nest too.
const NESTING: u32 = 32;

/// What ends a body early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Exit {
    Break(Label),
    Continue(Label),
    Return,
}

impl Exit {
    fn is(self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Break(label) => self == Exit::Break(*label),
            Stmt::Continue(label) => self == Exit::Continue(*label),
            Stmt::Return => self == Exit::Return,
            _ => false,
        }
    }
}

/// The steps of a block that `exit` ends, if it has no other statements.
pub(super) fn steps(block: &StmtBlock, exit: Option<Exit>) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    flatten(block, exit, NESTING, &mut steps)?;
    Some(steps)
}

/// An `exit` at the end of the block changes nothing.
fn flatten(block: &[Stmt], exit: Option<Exit>, nesting: u32, out: &mut Vec<Step>) -> Option<()> {
    let nesting = nesting.checked_sub(1)?;
    for (n, stmt) in block.iter().enumerate() {
        let tail = exit.filter(|_| n + 1 == block.len());
        match stmt {
            Stmt::Set { local, value } => out.push(Step::Set { local: *local, value: *value }),
            Stmt::Store { field, index, value, site } => {
                let storage = Storage::Field(*field);
                out.push(Step::Store { storage, index: index.clone(), value: *value, site: *site, stride: 0 });
            }
            Stmt::StoreLocal { local, index, value, site } => {
                let storage = Storage::Local(*local);
                out.push(Step::Store { storage, index: index.clone(), value: *value, site: *site, stride: 0 });
            }
            Stmt::If { cond, then, els } => {
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                let [then_leaves, els_leaves] =
                    [then, els].map(|branch| branch.last().zip(exit).is_some_and(|(last, exit)| exit.is(last)));
                flatten(then, tail.or(exit.filter(|_| then_leaves)), nesting, &mut yes)?;
                flatten(els, tail.or(exit.filter(|_| els_leaves)), nesting, &mut no)?;
                // What follows belongs to the branch that does not leave.
                match (then_leaves, els_leaves) {
                    (true, false) => flatten(&block[n + 1..], exit, nesting, &mut no)?,
                    (false, true) => flatten(&block[n + 1..], exit, nesting, &mut yes)?,
                    _ => {}
                }
                out.push(Step::If { cond: *cond, then: yes, els: no, differs: true, joins: false });
                if then_leaves || els_leaves {
                    return Some(());
                }
            }
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let mut inner = Vec::new();
                flatten(body, Some(Exit::Continue(*label)), nesting, &mut inner)?;
                out.push(Step::For { var: *var, lo: *lo, hi: *hi, step: *step, body: inner, site: *site });
            }
            Stmt::Reduce(r) if r.filter.is_none() && !matches!(r.op, ReduceOp::ArgMin | ReduceOp::ArgMax) => {
                let mut before = Vec::new();
                flatten(&r.before, None, nesting, &mut before)?;
                out.push(Step::Reduce(Reduction { source: r.clone(), before }));
            }
            Stmt::Labelled { label, body } => flatten(body, Some(Exit::Break(*label)), nesting, out)?,
            _ if tail.is_some_and(|exit| exit.is(stmt)) => {}
            _ => return None,
        }
    }
    Some(())
}

/// Whether some step stores.
pub(super) fn any_store(steps: &[Step]) -> bool {
    any(steps, &mut |s| matches!(s, Step::Store { .. }))
}

/// The store that steps end with, with its bytes from iteration to iteration, if they end with one on every path.
pub(super) fn last_store(steps: &[Step]) -> Option<(Storage, &Index, i64)> {
    match steps.last()? {
        Step::Store { storage, index, stride, .. } => Some((*storage, index, *stride)),
        Step::If { then, joins: true, .. } => last_store(then),
        _ => None,
    }
}

/// The locals that steps set.
pub(super) fn set_in<'s>(branches: impl IntoIterator<Item = &'s [Step]>) -> EntitySet<LocalId> {
    let mut set: EntitySet<LocalId> = EntitySet::new();
    for branch in branches {
        any(branch, &mut |s| {
            if let Step::Set { local, .. } = s {
                set.insert(*local);
            }
            false
        });
    }
    set
}

/// Whether a step, or one inside it, is of some kind.
pub(super) fn any(steps: &[Step], is: &mut dyn FnMut(&Step) -> bool) -> bool {
    steps.iter().any(|step| {
        is(step)
            || match step {
                Step::Set { .. } | Step::Store { .. } | Step::Total(_) => false,
                Step::If { then, els, .. } => any(then, is) || any(els, is),
                Step::For { body, .. } => any(body, is),
                Step::Reduce(r) => any(&r.before, is),
            }
    })
}
