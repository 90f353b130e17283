//! The statements that a vectorised body may contain.
//!
//! Invariant: steps run in the order of the statements from which they are made. Early exits have become branches.

use cranelift_entity::EntitySet;
use girder_ir::codelet::{Binder, Index, Label, Reduce, ReduceOp, Stmt, Storage};
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
        /// The byte stride from iteration to iteration; set by `search`.
        stride: i64,
    },
    If {
        cond: ExprId,
        then: Vec<Step>,
        els: Vec<Step>,
        /// Whether iterations may take different branches; set by `search`.
        differs: bool,
        /// Whether both branches end with a store to the same element, so that one store is sufficient; set by
        /// `search`.
        joins: bool,
    },
    For {
        var: LocalId,
        lo: ExprId,
        hi: ExprId,
        step: i64,
        body: Vec<Step>,
        /// The site of the limit on its iterations.
        site: SiteId,
    },
    Reduce(Reduction),
    Total(Total),
}

/// `local = local op value`, for a local that the body uses in no other way.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Total {
    pub local: LocalId,
    pub op: ReduceOp,
    pub value: ExprId,
    /// If set, `value` is their product, and each step of the sum is one `fma`.
    pub factors: Option<(ExprId, ExprId)>,
    /// Whether `value` is subtracted.
    pub negated: bool,
}

impl Total {
    /// Returns the expressions that each iteration evaluates.
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
    /// Returns the expressions that each element evaluates.
    pub fn values(&self) -> Vec<ExprId> {
        values(&self.source)
    }

    pub fn binders(&self) -> &[Binder] {
        &self.source.binders
    }
}

/// Returns the expressions that each element of a reduction evaluates.
pub(super) fn values(r: &Reduce) -> Vec<ExprId> {
    r.factors.map_or(vec![r.value], |(x, y)| vec![x, y])
}

/// The greatest nesting depth of a vectorised body. Early exits count as nesting.
const NESTING: u32 = 32;

/// A statement that ends a body early.
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

/// Returns the steps of a block that `exit` may end early; `None` if the block contains unsupported statements.
pub(super) fn steps(block: &[Stmt], exit: Option<Exit>) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    flatten(block, exit, NESTING, &mut steps)?;
    Some(steps)
}

/// Appends the steps of a block. An `exit` at the end of the block has no effect.
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
                // The statements that follow belong to the branch that does not exit.
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

/// Returns whether some step stores.
pub(super) fn any_store(steps: &[Step]) -> bool {
    any(steps, &mut |s| matches!(s, Step::Store { .. }))
}

/// Returns the store with which steps end on every path, if there is one, with its byte stride from iteration to
/// iteration.
pub(super) fn last_store(steps: &[Step]) -> Option<(Storage, &Index, i64)> {
    match steps.last()? {
        Step::Store { storage, index, stride, .. } => Some((*storage, index, *stride)),
        Step::If { then, joins: true, .. } => last_store(then),
        _ => None,
    }
}

/// Returns the locals that steps set.
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

/// Returns whether a step, or one inside it, satisfies a predicate.
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
