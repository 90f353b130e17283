//! Statements: types, labels, and assignment before use.

use super::{Result, Verifier, ensure};
use cranelift_entity::EntitySet;
use girder_ir::codelet::{
    Amp, Binder, Check, Dir, ExprKind, Index, Label, Matrix, Reduce, ReduceOp, Stmt, StmtBlock, Storage,
};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_ir::types::ElemType;
use rustc_hash::{FxHashMap, FxHashSet};

/// The locals that are assigned on all paths to a point; `None` if there is no path.
type Assigned = Option<EntitySet<LocalId>>;

/// A label that is in scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LabelTarget {
    Block,
    Loop,
}

/// Checks the body of a codelet.
pub(super) fn body(verifier: Verifier<'_>) -> Result {
    let mut walk = StmtChecker {
        v: verifier,
        scope: Vec::new(),
        seen: FxHashSet::default(),
        leaving: FxHashMap::default(),
        indices: Vec::new(),
        may_return: true,
    };
    walk.block(&verifier.codelet.body, Some(EntitySet::new())).map(|_| ())
}

struct StmtChecker<'a> {
    v: Verifier<'a>,
    scope: Vec<(Label, LabelTarget)>,
    seen: FxHashSet<Label>,
    /// The locals assigned on the paths that break to a label.
    leaving: FxHashMap<Label, EntitySet<LocalId>>,
    /// Indices of the enclosing loops.
    indices: Vec<LocalId>,
    /// Whether `return` is allowed: not inside a reduction.
    may_return: bool,
}

/// Returns the locals that are assigned on both paths.
fn join(a: Assigned, b: Assigned) -> Assigned {
    match (a, b) {
        (Some(a), Some(b)) => {
            let mut both = EntitySet::new();
            a.keys().filter(|&l| b.contains(l)).for_each(|l| {
                both.insert(l);
            });
            Some(both)
        }
        (a, b) => a.or(b),
    }
}

impl StmtChecker<'_> {
    /// Checks that an expression reads only assigned locals; without a path nothing is read.
    fn reads(&self, e: ExprId, assigned: &Assigned) -> Result {
        let kind = &self.v.codelet.exprs.get(e).ok_or_else(|| format!("{e} does not exist"))?.kind;
        if let (ExprKind::Local(local) | ExprKind::LoadLocal { local, .. }, Some(set)) = (kind, assigned) {
            ensure(set.contains(*local), || format!("{local} is read by {e} before it is assigned"))?;
        }
        kind.operands().iter().try_for_each(|&x| self.reads(x, assigned))
    }

    fn value(&self, e: ExprId, ty: ElemType, assigned: &Assigned) -> Result {
        self.v.has_type(e, ty)?;
        self.reads(e, assigned)
    }

    fn index(&self, index: &Index, rank: usize, assigned: &Assigned) -> Result {
        self.v.index(index, rank)?;
        index.iter().try_for_each(|&e| self.reads(e, assigned))
    }

    fn scalar(&self, local: LocalId) -> Result<ElemType> {
        let decl = self.v.codelet.locals.get(local).filter(|l| l.array.is_none());
        ensure(!self.indices.contains(&local), || format!("{local} is assigned inside its loop"))?;
        decl.map(|l| l.ty).ok_or_else(|| format!("{local} is no scalar"))
    }

    fn array(&self, local: LocalId) -> Result<(ElemType, usize)> {
        let decl = self.v.codelet.locals.get(local);
        let rank = decl.and_then(|l| l.array.as_ref()).map(|dims| dims.len());
        decl.map(|l| l.ty).zip(rank).ok_or_else(|| format!("{local} is no array"))
    }

    fn block(&mut self, block: &StmtBlock, assigned: Assigned) -> Result<Assigned> {
        block.iter().try_fold(assigned, |assigned, stmt| self.stmt(stmt, assigned))
    }

    /// Checks a block with a label in scope; returns the locals assigned at its end.
    fn labelled(
        &mut self,
        label: Label,
        target: LabelTarget,
        body: &StmtBlock,
        assigned: Assigned,
    ) -> Result<Assigned> {
        ensure(self.seen.insert(label), || format!("{label:?} names two statements"))?;
        self.scope.push((label, target));
        let end = self.block(body, assigned);
        self.scope.pop();
        end
    }

    fn stmt(&mut self, stmt: &Stmt, mut assigned: Assigned) -> Result<Assigned> {
        match stmt {
            Stmt::Set { local, value } => {
                let ty = self.scalar(*local)?;
                self.value(*value, ty, &assigned)?;
                assign(&mut assigned, *local);
            }
            Stmt::Fill { local, value } => {
                let (ty, _) = self.array(*local)?;
                self.value(*value, ty, &assigned)?;
                assign(&mut assigned, *local);
            }
            Stmt::StoreLocal { local, index, value, site } => {
                let (ty, rank) = self.array(*local)?;
                self.index(index, rank, &assigned)?;
                self.value(*value, ty, &assigned)?;
                self.v.site(*site, Check::Index)?;
                let filled = assigned.as_ref().is_none_or(|set| set.contains(*local));
                ensure(filled, || format!("an element of {local} is assigned before all of it"))?;
            }
            Stmt::Store { field, index, value, site } => {
                let decl = self.v.codelet.fields.get(*field).filter(|f| matches!(f.dir, Dir::Out | Dir::InOut));
                let decl = decl.ok_or_else(|| format!("{field} cannot be written"))?;
                self.index(index, decl.dims.len(), &assigned)?;
                self.value(*value, decl.ty, &assigned)?;
                self.v.site(*site, Check::Index)?;
            }
            Stmt::For { var, lo, hi, step, label, body, site } => {
                self.v.site(*site, Check::Iterations)?;
                let binder = Binder { var: *var, lo: *lo, hi: *hi, step: *step };
                return self.for_loop(&binder, *label, body, assigned);
            }
            Stmt::While { before, cond, label, body, site } => {
                return self.while_loop(before, *cond, *label, body, *site, assigned);
            }
            Stmt::If { cond, then, els } => {
                self.value(*cond, ElemType::Bool, &assigned)?;
                let then = self.block(then, assigned.clone())?;
                return Ok(join(then, self.block(els, assigned)?));
            }
            Stmt::Labelled { label, body } => {
                let end = self.labelled(*label, LabelTarget::Block, body, assigned)?;
                return Ok(join(end, self.leaving.remove(label)));
            }
            Stmt::Break(label) => return self.leave(*label, false, assigned),
            Stmt::Continue(label) => return self.leave(*label, true, assigned),
            Stmt::Assert { cond, site } => {
                self.value(*cond, ElemType::Bool, &assigned)?;
                self.v.site(*site, Check::Assert)?;
            }
            Stmt::Return => {
                ensure(self.may_return, || "a reduction returns".into())?;
                return Ok(None);
            }
            Stmt::Reduce(reduce) => {
                self.reduce(reduce, &assigned)?;
                assign(&mut assigned, reduce.dst);
            }
            Stmt::Amp(amp) => self.amp(amp, &assigned)?,
        }
        Ok(assigned)
    }

    fn leave(&mut self, label: Label, goes_on: bool, assigned: Assigned) -> Result<Assigned> {
        let target = self.scope.iter().rev().find(|(l, _)| *l == label).map(|(_, t)| *t);
        let target = target.ok_or_else(|| format!("{label:?} is not in scope"))?;
        ensure(!goes_on || target == LabelTarget::Loop, || format!("{label:?} is no loop to continue"))?;
        if !goes_on {
            let joined = join(self.leaving.remove(&label), assigned);
            self.leaving.extend(joined.map(|set| (label, set)));
        }
        Ok(None)
    }

    fn binder(&self, binder: &Binder, assigned: &Assigned) -> Result {
        ensure(self.scalar(binder.var)? == ElemType::I64, || format!("the index {} is not i64", binder.var))?;
        self.value(binder.lo, ElemType::I64, assigned)?;
        self.value(binder.hi, ElemType::I64, assigned)?;
        ensure(binder.step != 0, || format!("the step of {} is zero", binder.var))
    }

    fn for_loop(&mut self, binder: &Binder, label: Label, body: &StmtBlock, assigned: Assigned) -> Result<Assigned> {
        self.binder(binder, &assigned)?;
        let mut inside = assigned.clone();
        assign(&mut inside, binder.var);
        self.indices.push(binder.var);
        self.labelled(label, LabelTarget::Loop, body, inside)?;
        self.indices.pop();
        Ok(join(assigned, self.leaving.remove(&label)))
    }

    fn while_loop(
        &mut self,
        before: &StmtBlock,
        cond: ExprId,
        label: Label,
        body: &StmtBlock,
        site: SiteId,
        assigned: Assigned,
    ) -> Result<Assigned> {
        self.v.site(site, Check::Iterations)?;
        self.scope.push((label, LabelTarget::Block));
        let tested = self.block(before, assigned)?;
        self.scope.pop();
        self.value(cond, ElemType::Bool, &tested)?;
        self.labelled(label, LabelTarget::Loop, body, tested.clone())?;
        Ok(join(tested, self.leaving.remove(&label)))
    }

    fn reduce(&mut self, reduce: &Reduce, assigned: &Assigned) -> Result {
        use ReduceOp::*;
        let ty = self.v.ty(reduce.value)?;
        let (takes, gives) = match reduce.op {
            Sum | Product | Min | Max => (ty.is_number(), ty),
            Any | All => (ty == ElemType::Bool, ty),
            ArgMin | ArgMax => (ty.is_number(), ElemType::I64),
        };
        ensure(takes, || format!("{:?} does not take {ty}", reduce.op))?;
        let dst = self.scalar(reduce.dst)?;
        ensure(dst == gives, || format!("{:?} gives {gives}, not {dst}", reduce.op))?;
        self.v.site(reduce.site, Check::Empty)?;
        self.v.site(reduce.iterations, Check::Iterations)?;
        reduce.binders.iter().try_for_each(|b| self.binder(b, assigned))?;

        // No path leads out of the middle of a reduction.
        let scope = std::mem::take(&mut self.scope);
        let may_return = std::mem::replace(&mut self.may_return, false);
        let depth = self.indices.len();
        let mut inside = assigned.clone();
        for binder in &reduce.binders {
            assign(&mut inside, binder.var);
            self.indices.push(binder.var);
        }
        if let Some(filter) = reduce.filter {
            inside = self.block(&reduce.filter_before, inside)?;
            self.value(filter, ElemType::Bool, &inside)?;
        }
        let inside = self.block(&reduce.before, inside)?;
        self.reads(reduce.value, &inside)?;
        if let Some((x, y)) = reduce.factors {
            ensure(reduce.op == Sum && ty.is_float(), || "only a float sum has factors".into())?;
            self.value(x, ty, &inside)?;
            self.value(y, ty, &inside)?;
        }
        self.indices.truncate(depth);
        self.may_return = may_return;
        self.scope = scope;
        Ok(())
    }

    fn amp(&mut self, amp: &Amp, assigned: &Assigned) -> Result {
        self.v.site(amp.site, Check::Shape)?;
        let c = self.matrix(&amp.c, Dir::Out, assigned)?;
        ensure(c.is_float(), || format!("amp does not compute in {c}"))?;
        for factor in [&amp.a, &amp.b] {
            let ty = self.matrix(factor, Dir::In, assigned)?;
            ensure(ty.is_number(), || format!("amp does not take {ty}"))?;
            ensure(factor.base != amp.c.base, || "amp reads what it writes".into())?;
        }
        let same_axes = amp.b.outer.is_empty() && amp.c.outer.len() == amp.a.outer.len();
        ensure(same_axes, || "the matrices of amp have different axes".into())?;
        Ok(())
    }

    fn matrix(&self, m: &Matrix, dir: Dir, assigned: &Assigned) -> Result<ElemType> {
        let (ty, rank) = match m.base {
            Storage::Field(field) => {
                let decl = self.v.codelet.fields.get(field).filter(|f| f.dir == Dir::InOut || f.dir == dir);
                decl.map(|f| (f.ty, f.dims.len())).ok_or_else(|| format!("amp cannot use {field}"))?
            }
            Storage::Local(local) => {
                let filled = assigned.as_ref().is_none_or(|set| set.contains(local));
                ensure(filled, || format!("amp reads {local} before it is assigned"))?;
                self.array(local)?
            }
        };
        self.index(&m.at, rank, assigned)?;
        let mut dims = m.outer.iter().map(|axis| axis.dim).chain([m.row_dim, m.col_dim]);
        let inside = dims.all(|dim| (dim as usize) < rank);
        for axis in &m.outer {
            self.value(axis.len, ElemType::I64, assigned)?;
        }
        ensure(inside, || "a matrix runs along a dimension that does not exist".into())?;
        self.value(m.rows, ElemType::I64, assigned)?;
        self.value(m.cols, ElemType::I64, assigned)?;
        Ok(ty)
    }
}

fn assign(assigned: &mut Assigned, local: LocalId) {
    if let Some(set) = assigned {
        set.insert(local);
    }
}
