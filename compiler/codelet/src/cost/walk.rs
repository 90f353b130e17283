//! The walk over a body that turns it into values, regions and effects.
//!
//! Scalars are followed through assignments. A local array whose elements are all accessed by known indices is treated
//! as one scalar per element. A value that a loop or a branch may change is an [`Op::Phi`] or [`Op::Join`]. Memory is
//! followed by the order of stores: a load is the stored value if that store is known to be the last one to the
//! address.
//!
//! Invariant: nothing here costs anything; `demand` decides what is computed.

mod expr;
mod branches;
mod loops;
mod reduce;

use super::graph::{AccessAddress, Count, Graph, Op, RegionId, Val};
use super::points::{Point, blocks};
use super::quantity::Quantity;
use super::shape::{Changes, Exits};
use branches::JumpTarget;
use girder_ir::codelet::{Codelet, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// An effect of a region beyond computing values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// Writes an element.
    Store { access: AccessAddress, value: Val, ty: ElemType },
    /// Branches on a condition.
    Branch(Val),
    /// Uses a value without an instruction of its own.
    Use(Val),
}

/// A counted loop.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub region: RegionId,
    pub around: RegionId,
    /// The first index, if it is the same in all runs.
    pub first: Option<Quantity>,
    /// The bounds of the index as they are written, which may depend on outer indices.
    pub bounds: Option<(Quantity, Quantity)>,
    /// The first index.
    pub start: Val,
    /// Instructions before the loop.
    pub setup: u64,
    /// The step of the index.
    pub step: i64,
    /// The trip count of one run, or of all runs together (a [`Quantity::Ramp`]); `None` if iterations are counted.
    pub trip_count: Option<Quantity>,
    pub span: Span,
    /// Whether it contains another loop.
    pub has_inner: bool,
    /// Whether it may end before its last iteration.
    pub is_cut_short: bool,
    /// The index after the last iteration.
    pub end: Val,
    /// The index `i` of a loop written `for i in lo..hi by step` with a step that is not known before the codelet runs.
    /// The loop itself counts iterations and advances `i` separately.
    pub strided: Option<Val>,
}

/// A loop that is not counted, and so cannot be pipelined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub span: Span,
    pub has_inner: bool,
}

/// A matrix product.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub region: RegionId,
    pub ty: ElemType,
    /// Rows and columns of the result, and the length of its sums; upper bounds where they depend on data or on the
    /// index of a loop.
    pub shape: [Quantity; 3],
    /// The fields or arrays of the result and of both factors. The unit holds the second factor as coefficients.
    pub operands: [Storage; 3],
    /// Whether all workers of a `multi` codelet use the same coefficients.
    pub is_shared: bool,
}

/// A local array that must be in memory; the walk restarts with this knowledge.
pub(super) struct InMemory(LocalId);

type WalkResult<T = ()> = Result<T, InMemory>;

/// Maximal elements of a local array that is kept in registers.
const REGISTERS: u32 = 16;

/// The number of a scalar: locals first, then elements of arrays in registers.
type Slot = usize;

/// A store, or a barrier before which any number of stores may have happened.
#[derive(Clone, Copy)]
struct Written {
    to: Option<(u32, i64)>,
    value: Option<Val>,
    region: RegionId,
}

/// The state of the walk and its results.
pub(super) struct BodyWalk<'c> {
    pub codelet: &'c Codelet,
    pub graph: Graph,
    pub effects: Vec<(RegionId, Effect)>,
    /// Instructions of a region beyond values and effects.
    pub extra: Vec<(RegionId, u64)>,
    /// Those of `extra` that are issued again by a hardware loop.
    pub repeated: u64,
    pub loops: Vec<Loop>,
    pub open: Vec<Open>,
    pub products: Vec<Product>,
    /// Upper bounds of what points count, where the text determines them.
    pub bounds: FxHashMap<Point, Quantity>,
    numbers: FxHashMap<*const StmtBlock, u32>,
    /// Whether counts may be closed forms.
    closed: bool,
    in_memory: FxHashSet<LocalId>,
    /// The first slot of each array in registers.
    elements: FxHashMap<LocalId, Slot>,
    now: Vec<Option<Val>>,
    here: RegionId,
    targets: Vec<JumpTarget>,
    written: Vec<Written>,
    last: FxHashMap<Storage, Vec<u32>>,
}

/// Walks a codelet; counts every loop and branch unless `closed` allows closed forms.
pub(super) fn walk(codelet: &Codelet, closed: bool) -> BodyWalk<'_> {
    let mut in_memory = FxHashSet::default();
    loop {
        let mut walk = BodyWalk::new(codelet, in_memory, closed);
        match walk.block(&codelet.body) {
            Ok(_) => return walk,
            Err(InMemory(local)) => {
                in_memory = walk.in_memory;
                in_memory.insert(local);
            }
        }
    }
}

/// Returns the value of an expression over sizes and constants; `None` if it is too long.
pub(super) fn stated(codelet: &Codelet, e: ExprId) -> Option<Quantity> {
    let mut walk = BodyWalk::new(codelet, FxHashSet::default(), true);
    let v = walk.expr(e).ok()?;
    walk.graph.nodes[v].quantity.clone()
}

impl<'c> BodyWalk<'c> {
    fn new(codelet: &'c Codelet, in_memory: FxHashSet<LocalId>, closed: bool) -> BodyWalk<'c> {
        let numbers = blocks(codelet).into_iter().zip(0..).map(|(b, n)| (std::ptr::from_ref(b), n)).collect();
        let mut elements = FxHashMap::default();
        let mut slots = codelet.locals.len();
        for (id, local) in &codelet.locals {
            let Some(dims) = &local.array else { continue };
            let n = dims.iter().fold(1u32, |n, &d| n.saturating_mul(d));
            if n <= REGISTERS && !in_memory.contains(&id) {
                elements.insert(id, slots);
                slots += n as usize;
            }
        }
        let graph = Graph::new();
        let here = graph.root();
        BodyWalk {
            codelet,
            graph,
            effects: vec![],
            extra: vec![],
            repeated: 0,
            loops: vec![],
            open: vec![],
            products: vec![],
            bounds: FxHashMap::default(),
            numbers,
            closed,
            in_memory,
            elements,
            now: vec![None; slots],
            here,
            targets: vec![],
            written: vec![Written { to: None, value: None, region: here }],
            last: FxHashMap::default(),
        }
    }

    /// Returns the slots of changed variables.
    fn slots(&self, changes: &Changes) -> Vec<Slot> {
        let mut slots: Vec<Slot> = changes.locals.iter().map(|l| l.as_u32() as usize).collect();
        for storage in &changes.storages {
            if let Storage::Local(local) = storage
                && let Some(&first) = self.elements.get(local)
            {
                let dims = self.codelet.locals[*local].array.iter().flatten();
                slots.extend(first..first + dims.map(|&d| d as usize).product::<usize>());
            }
        }
        slots.sort_unstable();
        slots
    }

    fn slot_type(&self, slot: Slot) -> ElemType {
        let local = match self.codelet.locals.len() > slot {
            true => LocalId::from_u32(slot as u32),
            false => {
                let holder = self.elements.iter().filter(|(_, first)| **first <= slot).max_by_key(|(_, first)| **first);
                holder.map_or(LocalId::from_u32(0), |(&l, _)| l)
            }
        };
        self.codelet.locals[local].ty
    }

    fn snapshot(&self, slots: &[Slot]) -> Vec<Option<Val>> {
        slots.iter().map(|&s| self.now[s]).collect()
    }

    /// Records that any number of stores may happen before the code that follows.
    fn barrier(&mut self, storages: &FxHashSet<Storage>) {
        let n = self.written.len() as u32;
        if storages.is_empty() {
            return;
        }
        self.written.push(Written { to: None, value: None, region: self.here });
        storages.iter().for_each(|&s| self.last.entry(s).or_default().push(n));
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push((self.here, effect));
    }

    fn extra(&mut self, instructions: u64) {
        self.extra.push((self.here, instructions));
    }

    /// Returns the point before a statement of a block of the codelet.
    fn point(&self, block: &StmtBlock, stmt: usize) -> Point {
        let block = self.numbers.get(&std::ptr::from_ref(block)).copied().unwrap_or(0);
        Point { block, stmt: stmt as u32 }
    }

    /// Returns the count of a region that is entered depending on data.
    fn counted(&self, point: Point) -> Count {
        Count { counted: Some(point), factor: Quantity::Number(1) }
    }

    /// Runs `f` in a new region inside the current one.
    fn inside<T>(
        &mut self,
        count: Count,
        own: Option<Quantity>,
        f: impl FnOnce(&mut Self) -> WalkResult<T>,
    ) -> WalkResult<T> {
        let around = self.here;
        self.here = self.graph.region(around, None, count, own);
        let result = f(self);
        self.here = around;
        result
    }

    /// Walks the statements of a block in order; returns whether control reaches its end.
    fn block(&mut self, block: &StmtBlock) -> WalkResult<bool> {
        let around = self.here;
        let mut falls = true;
        for (n, stmt) in block.iter().enumerate() {
            falls = self.stmt(stmt)?;
            if !falls {
                break;
            }
            if n + 1 < block.len() && Exits::of_stmt(stmt).any() {
                let count = self.counted(self.point(block, n + 1));
                self.here = self.graph.region(self.here, None, count, None);
            }
        }
        self.here = around;
        Ok(falls)
    }

    fn stmt(&mut self, stmt: &Stmt) -> WalkResult<bool> {
        match stmt {
            Stmt::Set { local, value } => {
                let v = match self.codelet.elementary[*local] {
                    Some((f, x)) if self.codelet.exprs[x].ty == ElemType::F32 => {
                        let x = self.expr(x)?;
                        self.graph.pure(Op::Elementary(f), &[x], ElemType::F32, self.here)
                    }
                    _ => self.expr(*value)?,
                };
                self.now[local.as_u32() as usize] = Some(v);
            }
            Stmt::Fill { local, value } => self.fill(*local, *value)?,
            Stmt::StoreLocal { local, index, value, .. } => self.store(Storage::Local(*local), index, *value)?,
            Stmt::Store { field, index, value, .. } => self.store(Storage::Field(*field), index, *value)?,
            Stmt::For { var, lo, hi, step, label, body, .. } => {
                return self.for_loop(*var, (*lo, *hi, *step), *label, body);
            }
            Stmt::While { before, cond, label, body, .. } => return self.while_loop(before, *cond, *label, body),
            Stmt::If { cond, then, els } => return self.branch(*cond, then, els),
            Stmt::Labelled { label, body } => return self.labelled(*label, body),
            Stmt::Break(label) => self.leave(*label, false),
            Stmt::Continue(label) => self.leave(*label, true),
            Stmt::Return | Stmt::Assert { .. } => {}
            Stmt::Reduce(r) => self.reduce(r)?,
            Stmt::Amp(a) => self.amp(a)?,
        }
        Ok(!matches!(stmt, Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return))
    }

    fn fill(&mut self, local: LocalId, value: ExprId) -> WalkResult {
        let v = self.expr(value)?;
        let dims = self.codelet.locals[local].array.iter().flatten();
        let count: usize = dims.map(|&d| d as usize).product();
        if let Some(&first) = self.elements.get(&local) {
            self.now[first..first + count].fill(Some(v));
            return Ok(());
        }
        self.effect(Effect::Use(v));
        // Whole vectors, one store each, in a hardware loop without overhead.
        let bytes = count as u64 * u64::from(self.codelet.locals[local].ty.bytes());
        let stores = bytes.div_ceil(8);
        self.extra(2 + stores);
        self.repeated += stores.saturating_sub(1);
        self.barrier(&FxHashSet::from_iter([Storage::Local(local)]));
        Ok(())
    }

    fn zero(&mut self, ty: ElemType) -> Val {
        self.graph.constant(Scalar::zero(ty))
    }
}
