//! The walk over a codelet's body.
//!
//! Invariant: every site that any run with these sizes may reach is visited with a [`State`] that holds there; a site
//! is in [`Outcome::may_fail`] if some visit could not prove its check. What is not visited is never reached.

mod expr;
mod loops;
mod relations;

use super::Weights;
use super::affine::Symbol;
use super::deciding::DecidingLoops;
use super::region::{self, Region};
use super::value::{Context, State, Value};
use crate::locals::count_sets;
use crate::sizes::Sizes;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{Amp, Codelet, Index, Label, Matrix, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use relations::Bounds;
use rustc_hash::FxHashMap;

/// The results of the walk.
pub(crate) struct Outcome {
    /// Sites whose check may fail.
    pub may_fail: EntitySet<SiteId>,
    /// The weights with which loops count iterations.
    pub weights: Weights,
    /// Regions written on every path that ends; `None` if no path does.
    pub written: Option<Vec<Region>>,
}

/// One worker of a tile, whose path is walked alone.
#[derive(Clone, Copy)]
pub(crate) struct Worker<'a> {
    /// Its number.
    pub number: u32,
    /// The number of workers.
    pub of: u32,
    /// The number of loop iterations that may be walked one by one. All further iterations of a loop are covered by one
    /// walk.
    pub single: u32,
    /// The loops of which that is done.
    pub deciding: &'a DecidingLoops,
}

/// Walks the body once, for all workers or for one.
pub(crate) fn walk(codelet: &Codelet, sizes: &Sizes, worker: Option<Worker<'_>>) -> Outcome {
    let values = codelet.locals.values().map(|l| Value::unknown(l.ty)).collect();
    let start = State { values, written: Vec::new() };
    let mut sets = SecondaryMap::new();
    count_sets(&codelet.body, &mut sets);
    let mut walk = FactsWalk {
        codelet,
        sizes,
        worker,
        may_fail: EntitySet::with_capacity(codelet.sites.len()),
        weights: Weights::new(),
        nest: 0,
        depth: 0,
        symbols: Vec::new(),
        around: Vec::new(),
        constants: SecondaryMap::new(),
        breaks: FxHashMap::default(),
        continues: FxHashMap::default(),
        returns: None,
        only: only_values(codelet, &sets),
        sets,
    };
    let end = walk.block(&codelet.body, start);
    let end = State::join_paths(end, walk.returns.take());
    Outcome { may_fail: walk.may_fail, weights: walk.weights, written: end.map(|s| s.written) }
}

struct FactsWalk<'a> {
    codelet: &'a Codelet,
    sizes: &'a Sizes,
    worker: Option<Worker<'a>>,
    may_fail: EntitySet<SiteId>,
    weights: Weights,
    /// Iterations that the code since the head of the current loop makes without counting them, inner loops included.
    nest: u64,
    /// Number of enclosing loops.
    depth: u32,
    /// What is known of each symbol.
    symbols: Vec<Bounds>,
    /// The indices of the loops around.
    around: Vec<Symbol>,
    /// The symbols of constants.
    constants: SecondaryMap<FieldId, Option<Symbol>>,
    /// The states of paths that leave a statement; only looked up, never iterated.
    breaks: FxHashMap<Label, State>,
    continues: FxHashMap<Label, State>,
    returns: Option<State>,
    /// The number of statements that set each local.
    sets: SecondaryMap<LocalId, u32>,
    /// The values of the locals that one statement sets.
    only: SecondaryMap<LocalId, Option<ExprId>>,
}

/// Returns the values of the locals that one statement sets.
fn only_values(codelet: &Codelet, sets: &SecondaryMap<LocalId, u32>) -> SecondaryMap<LocalId, Option<ExprId>> {
    fn collect(block: &[Stmt], values: &mut SecondaryMap<LocalId, Option<ExprId>>) {
        for stmt in block {
            if let Stmt::Set { local, value } = stmt {
                values[*local] = Some(*value);
            }
            stmt.blocks().for_each(|inner| collect(inner, values));
        }
    }
    let mut values = SecondaryMap::new();
    collect(&codelet.body, &mut values);
    codelet.locals.keys().filter(|&local| sets[local] != 1).for_each(|local| values[local] = None);
    values
}

impl<'a> FactsWalk<'a> {
    fn context(&self) -> Context<'a> {
        Context { codelet: self.codelet, sizes: self.sizes }
    }

    fn check(&mut self, site: SiteId, holds: bool) {
        if !holds {
            self.may_fail.insert(site);
        }
    }

    /// Returns the state after a block; `None` if no path gets there.
    fn block(&mut self, block: &StmtBlock, state: State) -> Option<State> {
        block.iter().try_fold(state, |state, stmt| self.stmt(stmt, state))
    }

    fn stmt(&mut self, stmt: &Stmt, mut state: State) -> Option<State> {
        match stmt {
            Stmt::Set { local, value } => {
                let value = self.eval(*value, &state);
                state.set(*local, value);
            }
            Stmt::Fill { value, .. } => {
                self.eval(*value, &state);
            }
            Stmt::StoreLocal { local, index, value, site } => {
                let index = self.index(index, &state);
                self.eval(*value, &state);
                self.bounds(Storage::Local(*local), &index, *site);
            }
            Stmt::Store { field, index, value, site } => {
                let index = self.index(index, &state);
                self.eval(*value, &state);
                self.bounds(Storage::Field(*field), &index, *site);
                if let Some(index) = index.into_iter().map(|v| v.affine).collect::<Option<Vec<_>>>() {
                    region::push(&mut state.written, Region::element(*field, index.into_iter()));
                }
            }
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let range = self.range(*var, *lo, *hi, *step, &state);
                return self.for_loop(range, (*label, *site), body, state);
            }
            Stmt::While { before, cond, label, body, site } => {
                return self.while_loop(before, *cond, *label, body, *site, state);
            }
            Stmt::If { cond, then, els } => {
                let truth = self.eval(*cond, &state).range;
                let other = state.clone();
                let before = self.nest;
                let then_end = truth.contains(1).then(|| state.assume(self.context(), *cond, true)).flatten();
                let then_end = then_end.and_then(|s| self.block(then, s));
                let with_then = std::mem::replace(&mut self.nest, before);
                let els_end = truth.contains(0).then(|| other.assume(self.context(), *cond, false)).flatten();
                let els_end = els_end.and_then(|s| self.block(els, s));
                self.nest = self.nest.max(with_then);
                return State::join_paths(then_end, els_end);
            }
            Stmt::Labelled { label, body } => {
                self.breaks.remove(label);
                let end = self.block(body, state);
                return State::join_paths(end, self.breaks.remove(label));
            }
            Stmt::Break(label) => return leave(&mut self.breaks, *label, state),
            Stmt::Continue(label) => return leave(&mut self.continues, *label, state),
            Stmt::Return => {
                self.returns = State::join_paths(self.returns.take(), Some(state));
                return None;
            }
            Stmt::Assert { cond, site } => {
                let truth = self.eval(*cond, &state).range;
                self.check(*site, !truth.contains(0));
                return state.assume(self.context(), *cond, true);
            }
            Stmt::Reduce(reduce) => return Some(self.reduce(reduce, state)),
            Stmt::Amp(amp) => self.amp(amp, &mut state),
        }
        Some(state)
    }

    fn index(&mut self, index: &Index, state: &State) -> Vec<Value> {
        index.iter().map(|&e| self.eval(e, state)).collect()
    }

    fn length(&self, storage: Storage, dim: usize) -> i128 {
        match storage {
            Storage::Field(field) => self.sizes.shapes[field][dim] as i128,
            Storage::Local(local) => self.codelet.locals[local].array.as_ref().map_or(0, |d| i128::from(d[dim])),
        }
    }

    fn bounds(&mut self, storage: Storage, index: &[Value], site: SiteId) {
        let inside = |(dim, v): (usize, &Value)| {
            let last = self.length(storage, dim) - 1;
            let negated = v.affine.as_ref().and_then(|form| form.scaled(-1));
            let above = v.range.lo >= 0 || negated.is_some_and(|form| self.is_at_most(&form, 0));
            let below = v.range.hi <= last || v.affine.as_ref().is_some_and(|form| self.is_at_most(form, last));
            above && below
        };
        let holds = index.iter().enumerate().all(inside);
        self.check(site, holds);
    }

    /// An `amp` that adds reads the elements before it writes them, so they do not count as covered.
    fn amp(&mut self, amp: &Amp, state: &mut State) {
        let views = [&amp.c, &amp.a, &amp.b].map(|m| self.matrix(m, state));
        let holds = match &views {
            [Some((of_c, n)), Some((of_a, k)), Some((terms, m))] => of_c == of_a && n == m && terms[..] == [*k],
            _ => false,
        };
        self.check(amp.site, holds);
        if let (true, Storage::Field(field)) = (amp.first, amp.c.base) {
            let region = self.written_by(field, &amp.c, state);
            region.into_iter().for_each(|r| region::push(&mut state.written, r));
        }
    }

    /// Returns the region of a matrix in a field; `None` if its lengths are not known or it is empty.
    fn written_by(&mut self, field: FieldId, m: &Matrix, state: &State) -> Option<Region> {
        let at = self.index(&m.at, state).into_iter().map(|v| v.affine).collect::<Option<Vec<_>>>()?;
        let region = Region::element(field, at.into_iter());
        axes(m).try_fold(region, |region, (dim, step, length)| {
            let count = i64::try_from(self.eval(length, state).range.is_point()?).ok().filter(|&n| n > 0)?;
            region.repeated(dim, step, count)
        })
    }

    /// Returns the lengths of rows and the number of columns of a matrix if it certainly lies inside its storage.
    fn matrix(&mut self, m: &Matrix, state: &State) -> Option<(Vec<i128>, i128)> {
        let at = self.index(&m.at, state);
        let lengths: Vec<Option<i128>> = axes(m).map(|(_, _, e)| self.eval(e, state).range.is_point()).collect();
        let lengths = lengths.into_iter().map(|n| n.filter(|&n| n >= 0)).collect::<Option<Vec<_>>>()?;
        let inside = at.iter().enumerate().all(|(dim, v)| {
            let along = axes(m).zip(&lengths).filter(|((d, _, _), _)| *d == dim);
            let reaches: Vec<i128> = along.map(|((_, step, _), n)| step as i128 * (n - 1)).collect();
            let (down, up) = reaches.iter().fold((0, 0), |(lo, hi), &r| (lo + r.min(0), hi + r.max(0)));
            v.range.lo + down >= 0 && v.range.hi + up < self.length(m.base, dim)
        });
        let (cols, rows) = lengths.split_last()?;
        (lengths.contains(&0) || inside).then(|| (rows.to_vec(), *cols))
    }
}

/// Returns dimension, step and length of the axes of a matrix, columns last.
fn axes(m: &Matrix) -> impl Iterator<Item = (usize, i64, ExprId)> {
    let outer = m.outer.iter().map(|axis| (axis.dim as usize, axis.step, axis.len));
    outer.chain([(m.row_dim as usize, m.row_step, m.rows), (m.col_dim as usize, m.col_step, m.cols)])
}

/// Records a path that jumps to a label.
fn leave(paths: &mut FxHashMap<Label, State>, label: Label, state: State) -> Option<State> {
    let joined = State::join_paths(paths.remove(&label), Some(state));
    paths.extend(joined.map(|s| (label, s)));
    None
}

/// Calls `f` with every scalar that a block may assign, inner loops' indices included.
fn assigned(block: &StmtBlock, f: &mut impl FnMut(LocalId)) {
    for stmt in block {
        stmt.for_each_assigned(&mut *f);
        stmt.blocks().for_each(|inner| assigned(inner, f));
    }
}
