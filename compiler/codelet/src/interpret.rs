//! The reference interpreter: what it computes is what a codelet means, and the compiled engines agree with it to the
//! bit (any NaN counts as any other).
//!
//! Invariants: no load or store reaches the memory unless all its indices are inside the field; the first failing
//! check in the order of evaluation ends the run; every loop polls the stop flag.
//!
//! # Note: Order
//! What `girder_ir::codelet` leaves open is decided here. All indices of an access are evaluated before they are
//! checked, and they are checked from the first dimension on; a store's value is evaluated before its check. Bounds
//! of loops and binders are evaluated `lo` then `hi`, all binders of a reduction before its first place. `argmin` and
//! `argmax` compare with `<` and `>`, so -0 and +0 are equal there. `amp` evaluates `at`, `rows`, `cols` of `c`, then
//! of `a`, then of `b`, checks shapes (rows of `a` and `c`, columns of `b` and `c`, columns of `a` and rows of `b`, no
//! negative number), then that `c`, `a`, `b` lie inside their storage, dimension by dimension; an empty matrix lies
//! anywhere. Worker w of a `multi` codelet starts with fresh locals, and `return` ends only its turn.
//!
//! # Note: Turns
//! What a loop counts is decided for given sizes by [`crate::facts`](mod@crate::facts). The *nest* of a loop is its own turns and those of
//! the loops inside, as far as these are known to be short. A loop that is known to have at most [`FREE_TURNS`] turns (a
//! reduction: places of all binders), and at most [`FREE_NEST`] in its nest, counts nothing; so short inner loops cost
//! nothing. Any other is held against the limit `turns` when its bounds are evaluated, and adds its turns times the nest
//! of one turn to those of the vertex (of each worker), which are held against `total_turns`; a plain one that stands in
//! no loop does so only if it has more than [`FREE_TURNS`] turns. A `while` is held against `turns` at each turn, at which
//! it adds the nest of one; it looks at the sum before its first turn, and from then on after [`FREE_TURNS`] turns of the
//! nest. So loops in loops end as well.

mod amp;
mod reduce;
mod workers;

pub use reduce::identity;
pub use workers::{Race, Touch};

use crate::cost::{Located, Points};
use crate::facts::{Weights, facts};
use crate::scalar;
use crate::sizes::Sizes;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{BinaryOp, Block, Check, Codelet, Expr, ExprKind, Index, Label, Stmt, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::ElemType;
use girder_source::Session;
use smallvec::SmallVec;
use workers::Touches;

/// The elements of one vertex's fields. `flat_index` is the row-major position in the field's shape and always inside
/// it; bits above the type's width are zero.
pub trait VertexMemory {
    /// An element of a field that is not `const`.
    fn load(&mut self, field: FieldId, flat_index: u64) -> u64;
    /// Sets an element of an `out` or `inout` field.
    fn store(&mut self, field: FieldId, flat_index: u64, bits: u64);
}

/// A check that did not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Which.
    pub site: SiteId,
    /// What explains it, by the site's check. `Index`: the index and the length of the first dimension that fails.
    /// `Shift`: the width and the bits of the type. `Turns`: a limit and one of [`turns`]. `Shape`: the two lengths that disagree,
    /// or a negative length and 0, or an index outside and the length of its dimension (saturated to `i64`).
    /// `Division`, `Assert`, `Empty`: zeros.
    pub values: [i64; 2],
    /// The worker of a `multi` codelet.
    pub worker: Option<u32>,
}

/// A loop of at most so many turns is not counted.
pub const FREE_TURNS: u64 = 1 << 12;

/// A loop is counted nevertheless if the loops inside turn more often than this, all its turns together.
pub const FREE_NEST: u64 = 1 << 24;

/// Turns of a `while` between two looks at what the vertex has spent, if each adds `weight`.
pub fn look_after(weight: u64) -> u64 {
    (FREE_TURNS / weight.max(1)).max(1)
}

/// The second value of a failed `Turns` check: which limit its first value is.
pub mod turns {
    /// `turns`, of a `while` that has turned so often.
    pub const TURNED: i64 = 0;
    /// `turns`, of a loop whose turns are counted before they begin.
    pub const COUNTED: i64 = 1;
    /// `total_turns`, of all loops of the vertex.
    pub const TOTAL: i64 = 2;
}

/// Why a vertex did not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A check did not hold.
    Failed(Failure),
    /// Two workers touch one element that one of them writes; only if they are watched.
    Raced(Race),
    /// The session was cancelled.
    Cancelled,
}

/// Runs one vertex. `consts` is indexed by [`FieldId`] and read at `const` fields only; `workers` is how many workers
/// a tile has, at least 1.
pub fn run(
    codelet: &Codelet,
    sizes: &Sizes,
    memory: &mut dyn VertexMemory,
    consts: &[u64],
    workers: u32,
    session: &Session,
) -> Result<(), Stop> {
    Interpreter::new(codelet).run(sizes, memory, consts, workers, session)
}

/// Locals of one codelet, to be used for many vertices in turn.
pub struct Interpreter<'c> {
    codelet: &'c Codelet,
    /// Scalars, then the elements of all arrays.
    locals: Vec<u64>,
    /// Where a local's elements start.
    offsets: SecondaryMap<LocalId, usize>,
    /// If the workers of a `multi` codelet are watched.
    touches: Option<Touches>,
    /// Places whose executions are counted, and how many there are.
    points: Option<(Located<'c>, usize)>,
    counters: Vec<u64>,
    /// What loops count, for the sizes that came last.
    weights: Option<(Sizes, Weights)>,
}

impl<'c> Interpreter<'c> {
    /// Makes room for the locals of a codelet.
    pub fn new(codelet: &'c Codelet) -> Interpreter<'c> {
        let mut offsets = SecondaryMap::new();
        let mut next = 0;
        for (id, local) in &codelet.locals {
            offsets[id] = next;
            next += local.array.as_ref().map_or(1, |dims| dims.iter().map(|&n| n as usize).product());
        }
        let (points, counters) = (None, Vec::new());
        Interpreter { codelet, locals: vec![0; next], offsets, touches: None, points, counters, weights: None }
    }

    /// Ends a vertex whose workers race; without this they are what they are in turn.
    pub fn watching(self) -> Interpreter<'c> {
        let touches = self.codelet.multi.then(Touches::default);
        Interpreter { touches, ..self }
    }

    /// Counts executions from now on; see [`Interpreter::counters`].
    pub fn count(&mut self, points: &Points) {
        self.points = (!points.is_empty()).then(|| (points.located(self.codelet), points.len()));
        self.counters.clear();
    }

    /// How often each point was passed in the last run, for worker 0, 1, … of a `multi` codelet in turn.
    pub fn counters(&self) -> &[u64] {
        &self.counters
    }

    /// As [`run`].
    pub fn run(
        &mut self,
        sizes: &Sizes,
        memory: &mut dyn VertexMemory,
        consts: &[u64],
        workers: u32,
        session: &Session,
    ) -> Result<(), Stop> {
        let turns = if self.codelet.multi { workers } else { 1 };
        self.touches.iter_mut().for_each(Touches::clear);
        let own = self.points.as_ref().map_or(0, |p| p.1);
        self.counters.clear();
        self.counters.resize(own * turns as usize, 0);
        if self.weights.as_ref().is_none_or(|w| w.0 != *sizes) {
            self.weights = Some((sizes.clone(), facts(self.codelet, sizes).weights));
        }
        let Some((_, weights)) = &self.weights else { return Ok(()) };
        for worker in 0..turns {
            let start = own * worker as usize;
            let mut frame = Frame {
                codelet: self.codelet,
                locals: &mut self.locals,
                offsets: &self.offsets,
                sizes,
                memory: &mut *memory,
                touches: self.touches.as_mut(),
                consts,
                worker,
                workers,
                session,
                ticks: 0,
                weights,
                spent: 0,
                stop: Stop::Cancelled,
                points: self.points.as_ref().map(|p| &p.0),
                counters: &mut self.counters[start..start + own],
            };
            if frame.block(&self.codelet.body).is_err() {
                return Err(frame.stop);
            }
        }
        Ok(())
    }
}

/// The run has ended; why is in [`Frame::stop`], so that the common result stays small.
struct Halt;

/// What follows a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break(Label),
    Continue(Label),
    Return,
}

/// One turn of one worker.
struct Frame<'a> {
    codelet: &'a Codelet,
    locals: &'a mut [u64],
    offsets: &'a SecondaryMap<LocalId, usize>,
    sizes: &'a Sizes,
    memory: &'a mut dyn VertexMemory,
    touches: Option<&'a mut Touches>,
    consts: &'a [u64],
    worker: u32,
    workers: u32,
    session: &'a Session,
    ticks: u32,
    weights: &'a Weights,
    /// Turns that count so far.
    spent: u64,
    stop: Stop,
    points: Option<&'a Located<'a>>,
    counters: &'a mut [u64],
}

/// Places of an access; no codelet of ordinary rank spills it.
type Place = SmallVec<[i64; 4]>;

impl<'a> Frame<'a> {
    fn expr(&self, e: ExprId) -> &'a Expr {
        &self.codelet.exprs[e]
    }

    #[cold]
    fn fail(&mut self, site: SiteId, values: [i64; 2]) -> Halt {
        let worker = self.codelet.multi.then_some(self.worker);
        self.stop = Stop::Failed(Failure { site, values, worker });
        Halt
    }

    /// Polls the stop flag now and then; called once per turn of every loop.
    #[inline]
    fn tick(&mut self) -> Result<(), Halt> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(1024) && self.session.cancel.is_cancelled() {
            self.stop = Stop::Cancelled;
            return Err(Halt);
        }
        Ok(())
    }

    /// Counts the turns of a loop before the first of them.
    fn charge(&mut self, trips: u64, site: SiteId) -> Result<(), Halt> {
        let limit = self.session.limits.turns;
        match (trips, self.weights[site]) {
            (0..=FREE_TURNS, 0) => Ok(()),
            _ if trips > limit.max(FREE_TURNS) => Err(self.fail(site, [shown(limit), turns::COUNTED])),
            (_, weight) => self.spend(trips.saturating_mul(weight.max(1)), site),
        }
    }

    fn spend(&mut self, turns: u64, site: SiteId) -> Result<(), Halt> {
        let limit = self.session.limits.total_turns;
        self.spent = self.spent.saturating_add(turns);
        if self.spent > limit { Err(self.fail(site, [shown(limit), turns::TOTAL])) } else { Ok(()) }
    }

    fn int(&mut self, e: ExprId) -> Result<i64, Halt> {
        self.eval(e).map(|v| v as i64)
    }

    fn eval(&mut self, e: ExprId) -> Result<u64, Halt> {
        let expr = self.expr(e);
        Ok(match expr.kind {
            ExprKind::Const(c) => c.bits,
            ExprKind::Local(local) => self.locals[self.offsets[local]],
            ExprKind::ConstField(field) => self.consts[field.as_u32() as usize],
            ExprKind::Size(size) => self.sizes.sizes[size] as u64,
            ExprKind::Worker => self.worker as u64,
            ExprKind::Workers => self.workers as u64,
            ExprKind::Load { field, ref index, site } => {
                let place = self.place(index)?;
                let flat = self.flat(Storage::Field(field), &place, site)?;
                self.load(field, flat, site)?
            }
            ExprKind::LoadLocal { local, ref index, site } => {
                let place = self.place(index)?;
                let flat = self.flat(Storage::Local(local), &place, site)?;
                self.locals[self.offsets[local] + flat as usize]
            }
            ExprKind::Unary { op, x } => scalar::unary(op, expr.ty, self.eval(x)?),
            ExprKind::Binary { op, a, b, site } => {
                let (x, y) = (self.eval(a)?, self.eval(b)?);
                self.binary(op, self.expr(a).ty, x, y, site)?
            }
            ExprKind::AndThen { a, b } => {
                if self.eval(a)? == 0 {
                    0
                } else {
                    self.eval(b)?
                }
            }
            ExprKind::OrElse { a, b } => {
                if self.eval(a)? != 0 {
                    1
                } else {
                    self.eval(b)?
                }
            }
            ExprKind::Select { cond, a, b } => {
                let (cond, a, b) = (self.eval(cond)?, self.eval(a)?, self.eval(b)?);
                if cond != 0 { a } else { b }
            }
            ExprKind::Fma { a, b, c } => scalar::fma(expr.ty, self.eval(a)?, self.eval(b)?, self.eval(c)?),
            ExprKind::Convert { x } => scalar::convert(self.expr(x).ty, expr.ty, self.eval(x)?),
            ExprKind::Bits { x } => scalar::bits(self.expr(x).ty, expr.ty, self.eval(x)?),
        })
    }

    fn binary(&mut self, op: BinaryOp, ty: ElemType, x: u64, y: u64, site: Option<SiteId>) -> Result<u64, Halt> {
        match (scalar::binary(op, ty, x, y), site) {
            (Ok(v), _) => Ok(v),
            (Err(Check::Shift), Some(site)) => Err(self.fail(site, [scalar::extend(ty, y), 8 * ty.bytes() as i64])),
            (Err(_), Some(site)) => Err(self.fail(site, [0, 0])),
            (Err(check), None) => unreachable!("an operator that can fail its {check:?} check has a site"),
        }
    }

    fn place(&mut self, index: &Index) -> Result<Place, Halt> {
        index.iter().map(|&e| self.int(e)).collect()
    }

    /// Length of a dimension.
    fn length(&self, storage: Storage, dim: usize) -> i64 {
        match storage {
            Storage::Field(field) => self.sizes.shapes[field][dim] as i64,
            Storage::Local(local) => self.codelet.locals[local].array.as_ref().map_or(0, |dims| i64::from(dims[dim])),
        }
    }

    /// Row-major position of a place, if it is inside.
    fn flat(&mut self, storage: Storage, place: &[i64], site: SiteId) -> Result<u64, Halt> {
        let mut flat = 0;
        for (dim, &index) in place.iter().enumerate() {
            let length = self.length(storage, dim);
            if index < 0 || index >= length {
                return Err(self.fail(site, [index, length]));
            }
            flat = flat * length as u64 + index as u64;
        }
        Ok(flat)
    }

    fn load(&mut self, field: FieldId, flat: u64, site: SiteId) -> Result<u64, Halt> {
        self.note(field, flat, site, false)?;
        Ok(self.memory.load(field, flat))
    }

    fn store(&mut self, field: FieldId, flat: u64, bits: u64, site: SiteId) -> Result<(), Halt> {
        self.note(field, flat, site, true)?;
        self.memory.store(field, flat, bits);
        Ok(())
    }

    fn note(&mut self, field: FieldId, flat: u64, site: SiteId, written: bool) -> Result<(), Halt> {
        let Some(touches) = &mut self.touches else { return Ok(()) };
        touches.note(self.codelet, field, flat, Touch { worker: self.worker, site, written }).map_err(|race| {
            self.stop = Stop::Raced(race);
            Halt
        })
    }

    fn block(&mut self, block: &'a Block) -> Result<Flow, Halt> {
        if let Some(points) = self.points {
            return self.counted_block(block, points.of(block));
        }
        for stmt in block {
            match self.stmt(stmt)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn counted_block(&mut self, block: &'a Block, points: &[(u32, u32)]) -> Result<Flow, Halt> {
        let count = |n: usize, counters: &mut [u64]| {
            points.iter().filter(|p| p.0 as usize == n).for_each(|p| counters[p.1 as usize] += 1);
        };
        if block.is_empty() {
            count(0, self.counters);
        }
        for (n, stmt) in block.iter().enumerate() {
            count(n, self.counters);
            match self.stmt(stmt)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<Flow, Halt> {
        match stmt {
            Stmt::Set { local, value } => {
                let v = self.eval(*value)?;
                self.locals[self.offsets[*local]] = v;
            }
            Stmt::Fill { local, value } => {
                let v = self.eval(*value)?;
                let start = self.offsets[*local];
                let count: usize = self.codelet.locals[*local].array.iter().flatten().map(|&n| n as usize).product();
                self.locals[start..start + count].fill(v);
            }
            Stmt::StoreLocal { local, index, value, site } => {
                let place = self.place(index)?;
                let v = self.eval(*value)?;
                let flat = self.flat(Storage::Local(*local), &place, *site)?;
                self.locals[self.offsets[*local] + flat as usize] = v;
            }
            Stmt::Store { field, index, value, site } => {
                let place = self.place(index)?;
                let v = self.eval(*value)?;
                let flat = self.flat(Storage::Field(*field), &place, *site)?;
                self.store(*field, flat, v, *site)?;
            }
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let (lo, hi) = (self.int(*lo)?, self.int(*hi)?);
                self.charge(trips(lo, hi, *step), *site)?;
                return self.for_loop(*var, (lo, hi, *step), *label, body);
            }
            Stmt::While { before, cond, label, body, site } => {
                return self.while_loop(before, *cond, *label, body, *site);
            }
            Stmt::If { cond, then, els } => {
                let branch = if self.eval(*cond)? != 0 { then } else { els };
                return self.block(branch);
            }
            Stmt::Labelled { label, body } => {
                let flow = self.block(body)?;
                return Ok(if flow == Flow::Break(*label) { Flow::Next } else { flow });
            }
            Stmt::Break(label) => return Ok(Flow::Break(*label)),
            Stmt::Continue(label) => return Ok(Flow::Continue(*label)),
            Stmt::Return => return Ok(Flow::Return),
            Stmt::Assert { cond, site } => {
                if self.eval(*cond)? == 0 {
                    return Err(self.fail(*site, [0, 0]));
                }
            }
            Stmt::Reduce(reduce) => self.reduce(reduce)?,
            Stmt::Amp(amp) => self.amp(amp)?,
        }
        Ok(Flow::Next)
    }

    fn for_loop(
        &mut self,
        var: LocalId,
        (lo, hi, step): (i64, i64, i64),
        label: Label,
        body: &'a Block,
    ) -> Result<Flow, Halt> {
        let slot = self.offsets[var];
        let mut i = lo;
        for _ in 0..trips(lo, hi, step) {
            self.tick()?;
            self.locals[slot] = i as u64;
            match self.block(body)? {
                Flow::Next => {}
                Flow::Continue(l) if l == label => {}
                Flow::Break(l) if l == label => return Ok(Flow::Next),
                flow => return Ok(flow),
            }
            i = i.wrapping_add(step);
        }
        Ok(Flow::Next)
    }

    fn while_loop(
        &mut self,
        before: &'a Block,
        cond: ExprId,
        label: Label,
        body: &'a Block,
        site: SiteId,
    ) -> Result<Flow, Halt> {
        let limit = self.session.limits.turns;
        let weight = self.weights[site].max(1);
        for turn in 0.. {
            match self.block(before)? {
                Flow::Next => {}
                Flow::Break(l) if l == label => break,
                flow => return Ok(flow),
            }
            if self.eval(cond)? == 0 {
                break;
            }
            if turn == limit {
                return Err(self.fail(site, [shown(limit), turns::TURNED]));
            }
            if turn.is_multiple_of(look_after(weight)) {
                self.spend(0, site)?;
            }
            self.spent = self.spent.saturating_add(weight);
            self.tick()?;
            match self.block(body)? {
                Flow::Next => {}
                Flow::Continue(l) if l == label => {}
                Flow::Break(l) if l == label => break,
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }
}

/// A limit as a value of a failure.
fn shown(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// How often `for _ in lo..hi by step` turns; `step` is not zero.
pub fn trips(lo: i64, hi: i64, step: i64) -> u64 {
    let span = if step > 0 { hi as i128 - lo as i128 } else { lo as i128 - hi as i128 };
    let step = step.unsigned_abs();
    if span <= 0 { 0 } else { (span as u64).div_ceil(step) }
}

#[cfg(test)]
mod tests;
