//! Joining neighbouring vertices: whether one vertex with longer fields does the work of several.
//!
//! # Note: Neighbours
//! Vertices of one codelet are neighbours if, from one to the next, every field moves by a fixed number of elements
//! along one of its axes, or stays. Take one vertex whose fields reach from those of the first neighbour to those of
//! the last. It does their work under two conditions. Each of its stores is in a *long* loop, which has the iterations
//! of all neighbours. And each iteration equals the iteration of the neighbour to which it belongs: it reads and writes
//! the same elements, and otherwise depends neither on the iteration number nor on sizes that differ. Then the
//! iterations of each neighbour run in their own order, and no order between neighbours matters: by the race rule no
//! vertex accesses an element that another one writes.
//!
//! Invariant: where neighbours join, a failure is that of the first one, and all others would fail in the same way.

mod failures;

use crate::facts::facts;
use crate::interpret::trips;
use crate::sizes::{Sizes, static_int};
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{BinaryOp, Codelet, Dir, ExprKind, Index, Label, Reduce, Stmt, StmtBlock, UnaryOp};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::ElemType;

/// The motion of a field from neighbour to neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Motion {
    /// The axis along which it moves.
    pub axis: usize,
    /// The number of elements of this axis by which it moves; not 0.
    pub elements: i64,
}

/// A vertex that does the work of neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Whether it may fail; then each neighbour fails if and only if it does.
    pub may_fail: bool,
}

/// Returns the vertex of sizes `all` that does the work of `count` neighbours of sizes `one`, at least two, or `None`
/// if it might do something else. Fields without a motion stay.
pub fn join(
    codelet: &Codelet,
    (one, all): (&Sizes, &Sizes),
    count: u64,
    motion: &SecondaryMap<FieldId, Option<Motion>>,
) -> Option<Joined> {
    let mut walk = LongLoops {
        codelet,
        one,
        all,
        count,
        motion,
        long: None,
        loops: 0,
        set_in: SecondaryMap::new(),
        slopes: SecondaryMap::new(),
    };
    let plain = codelet.locals.values().all(|l| l.array.is_none());
    (count > 1 && plain).then(|| walk.block(&codelet.body))??;
    let proven = [one, all].map(|sizes| facts(codelet, sizes).proven);
    let unproven = codelet.sites.keys().filter(|&site| proven.iter().any(|proven| !proven.contains(site)));
    let mut may_fail: EntitySet<SiteId> = EntitySet::new();
    may_fail.extend(unproven);
    let joined = Joined { may_fail: !may_fail.is_empty() };
    (!joined.may_fail || failures::are_common(codelet, (one, all), motion, &may_fail)).then_some(joined)
}

/// The long loop around a statement.
struct Long {
    /// Its number, from 1.
    number: u32,
    label: Label,
    /// The distance between the first iterations of consecutive neighbours, in values of the index.
    travel: i64,
    /// Labels of statements inside an iteration.
    inside: Vec<Label>,
}

/// The analysis. Its functions return `None` if equivalence cannot be shown.
struct LongLoops<'a> {
    codelet: &'a Codelet,
    one: &'a Sizes,
    all: &'a Sizes,
    count: u64,
    motion: &'a SecondaryMap<FieldId, Option<Motion>>,
    long: Option<Long>,
    /// Number of long loops so far.
    loops: u32,
    /// The long loop in which a local is set; 0 is outside of all.
    set_in: SecondaryMap<LocalId, Option<u32>>,
    /// The growth of a local when the index of its long loop grows by 1.
    slopes: SecondaryMap<LocalId, i64>,
}

impl LongLoops<'_> {
    fn block(&mut self, block: &StmtBlock) -> Option<()> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Set { local, value } => {
                let slope = self.slope(*value)?;
                self.set(*local, slope)
            }
            Stmt::Store { field, index, value, .. } => {
                let moves = self.long.is_some() && self.motion[*field].is_some();
                moves.then_some(())?;
                self.access(*field, index)?;
                self.same(*value)
            }
            Stmt::If { cond, then, els } => {
                self.same(*cond)?;
                self.block(then)?;
                self.block(els)
            }
            Stmt::For { var, lo, hi, step, label, body, .. } => self.for_loop(*var, (*lo, *hi, *step), *label, body),
            Stmt::Labelled { label, body } => self.labelled(*label, body),
            Stmt::Break(label) => self.leaves(*label, false),
            Stmt::Continue(label) => self.leaves(*label, true),
            Stmt::Return => self.long.is_none().then_some(()),
            // See the invariant.
            Stmt::Assert { .. } => Some(()),
            Stmt::Reduce(r) => self.reduce(r),
            Stmt::Fill { .. } | Stmt::StoreLocal { .. } | Stmt::While { .. } | Stmt::Amp(_) => None,
        }
    }

    fn labelled(&mut self, label: Label, body: &StmtBlock) -> Option<()> {
        self.long.iter_mut().for_each(|long| long.inside.push(label));
        self.block(body)?;
        self.long.iter_mut().for_each(|long| long.inside.truncate(long.inside.len().saturating_sub(1)));
        Some(())
    }

    /// Checks that a jump does not end a long loop before its last iteration.
    fn leaves(&self, label: Label, goes_on: bool) -> Option<()> {
        let stays = |long: &Long| long.inside.contains(&label) || goes_on && long.label == label;
        self.long.as_ref().is_none_or(stays).then_some(())
    }

    fn for_loop(
        &mut self,
        var: LocalId,
        (lo, hi, step): (ExprId, ExprId, i64),
        label: Label,
        body: &StmtBlock,
    ) -> Option<()> {
        let trip_count = |sizes| {
            let (lo, hi) = (static_int(self.codelet, sizes, &[], lo)?, static_int(self.codelet, sizes, &[], hi)?);
            Some((lo, trips(lo, hi, step)))
        };
        let is_long = match (trip_count(self.one), trip_count(self.all)) {
            (Some((from, one)), Some((start, all))) if from == start && one != all => {
                (one.checked_mul(self.count) == Some(all)).then_some(one)
            }
            (Some(one), Some(all)) if one == all => Some(0),
            _ => {
                self.same(lo)?;
                self.same(hi)?;
                Some(0)
            }
        };
        let trip_count = i64::try_from(is_long?).ok()?;
        if trip_count == 0 {
            self.set(var, 0)?;
            return self.labelled(label, body);
        }
        self.loops += 1;
        let travel = trip_count.checked_mul(step)?;
        let around = self.long.replace(Long { number: self.loops, label, travel, inside: Vec::new() });
        around.is_none().then_some(())?;
        self.set(var, 1)?;
        self.block(body)?;
        self.long = None;
        Some(())
    }

    fn reduce(&mut self, r: &Reduce) -> Option<()> {
        for binder in &r.binders {
            self.same(binder.lo)?;
            self.same(binder.hi)?;
        }
        r.binders.iter().try_for_each(|binder| self.set(binder.var, 0))?;
        self.block(&r.filter_before)?;
        r.filter.into_iter().try_for_each(|e| self.same(e))?;
        self.block(&r.before)?;
        self.same(r.value)?;
        r.factors.into_iter().try_for_each(|(x, y)| self.same(x).and(self.same(y)))?;
        self.set(r.dst, 0)
    }

    fn here(&self) -> u32 {
        self.long.as_ref().map_or(0, |long| long.number)
    }

    /// Records an assignment. A local that is set in one long loop only has no value from an earlier iteration where it
    /// is read: in the very first iteration it would have none.
    fn set(&mut self, local: LocalId, slope: i64) -> Option<()> {
        let here = self.here();
        let first = self.set_in[local].is_none();
        let same_slope = self.set_in[local] == Some(here) && self.slopes[local] == slope;
        (self.set_in[local], self.slopes[local]) = (Some(here), slope);
        (first || same_slope).then_some(())
    }

    fn same(&self, e: ExprId) -> Option<()> {
        (self.slope(e)? == 0).then_some(())
    }

    /// Returns the growth of a value when only the index of the long loop grows by 1.
    fn slope(&self, e: ExprId) -> Option<i64> {
        let slope = |x: ExprId| self.slope(x);
        match &self.codelet.exprs[e].kind {
            ExprKind::Const(_) | ExprKind::ConstField(_) | ExprKind::Worker | ExprKind::Workers => Some(0),
            &ExprKind::Local(local) => {
                let known = self.set_in[local].is_some_and(|n| n == 0 || n == self.here());
                known.then_some(self.slopes[local])
            }
            ExprKind::Size(size) => (self.one.sizes[*size] == self.all.sizes[*size]).then_some(0),
            ExprKind::LoadLocal { .. } => None,
            ExprKind::Load { field, index, .. } => self.access(*field, index).map(|()| 0),
            &ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => slope(a)?.checked_add(slope(b)?),
            &ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => slope(a)?.checked_sub(slope(b)?),
            &ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } => match (slope(a)?, slope(b)?) {
                (0, 0) => Some(0),
                (s, 0) => s.checked_mul(self.number(b)?),
                (0, s) => s.checked_mul(self.number(a)?),
                _ => None,
            },
            &ExprKind::Unary { op: UnaryOp::Neg, x } => slope(x)?.checked_neg(),
            kind => kind.operands().iter().try_for_each(|&x| self.same(x)).map(|()| 0),
        }
    }

    fn number(&self, e: ExprId) -> Option<i64> {
        (self.codelet.exprs[e].ty == ElemType::I64).then(|| static_int(self.codelet, self.all, &[], e))?
    }

    /// Checks that an access names the element that the neighbour accesses.
    fn access(&self, field: FieldId, index: &Index) -> Option<()> {
        let motion = self.motion[field];
        // A field that stays is not written: neighbours that write it would race.
        (motion.is_some() || self.codelet.fields[field].dir == Dir::In).then_some(())?;
        let travel = self.long.as_ref().map_or(0, |long| long.travel);
        let follows = |(axis, &e): (usize, &ExprId)| {
            let moved = motion.filter(|m| m.axis == axis).map_or(0, |m| m.elements);
            (self.slope(e)?.checked_mul(travel)? == moved).then_some(())
        };
        index.iter().enumerate().try_for_each(follows)
    }
}
