//! Neighbouring reductions over equal ranges, translated together.
//!
//! ```text
//! a = sum i in 0..n { x[i] * y[i] }; b = sum i in 0..n { x[i] * x[i] }; c = sum i in 0..n { y[i] * y[i] };
//! ```
//!
//! reads its arrays three times, and the latency of each sum is exposed. In one vector kernel the sums share their
//! loads, and their latencies overlap. Statements between the reductions run after all of them.
//!
//! Invariant: a reduction that is moved up cannot fail, and neither reads nor sets what any statement before it sets or
//! stores. No statement before it reads or sets what it sets. Its result is written, and its iterations are charged, at
//! its original position.

use super::Lower;
use cranelift_entity::SecondaryMap;
use girder_codelet::locals::{count_sets, reads, reads_of_reduce};
use girder_ir::codelet::{ExprKind, Reduce, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId};

/// The greatest number of reductions that are combined, and of statements that are searched.
const MOST: usize = 8;
const REACH: usize = 16;

/// The locals and storages that statements read and set.
struct Touched {
    reads: SecondaryMap<LocalId, u32>,
    sets: SecondaryMap<LocalId, u32>,
    stores: Vec<Storage>,
}

impl Lower<'_, '_> {
    /// Translates the reduction at the start of a block together with later ones, if they can run as one vector kernel
    /// and this is profitable. Returns the number of statements that were translated.
    pub(super) fn neighbours(&mut self, block: &[Stmt]) -> Option<usize> {
        let Some(Stmt::Reduce(first)) = block.first() else { return None };
        self.features.simd?;
        self.elements_of(first)?;
        let mut before = self.touched(&block[..1])?;
        let mut found: Vec<(usize, &Reduce)> = vec![(0, first)];
        for (n, stmt) in block.iter().enumerate().take(REACH).skip(1) {
            let now = self.touched(std::slice::from_ref(stmt));
            match (stmt, now) {
                (Stmt::Reduce(r), Some(now)) => {
                    let joins = self.have_same_ranges(first, r) && self.is_independent(&before, (r, &now));
                    if !joins || found.len() == MOST {
                        break;
                    }
                    found.push((n, r));
                    before.add(now);
                }
                (_, Some(now)) => before.add(now),
                (_, None) => break,
            }
        }
        (found.len() > 1).then_some(())?;
        let all: Vec<&Reduce> = found.iter().map(|&(_, r)| r).collect();
        let bounds = self.bounds(first)?;
        let plans = self.kernel_plans(&all, &bounds);
        (plans.len() > 1).then_some(())?;
        let ranges = bounds.iter().map(|b| &b.range);
        self.charge_elements(ranges.clone(), first.iterations);
        let mut results = self.kernel_reductions(&all[..plans.len()], &plans, &bounds).into_iter();
        let end = found[plans.len() - 1].0 + 1;
        for (n, stmt) in block[..end].iter().enumerate() {
            let Stmt::Reduce(r) = stmt else {
                self.stmt(stmt);
                continue;
            };
            if n > 0 {
                self.charge_elements(ranges.clone(), r.iterations);
            }
            results.next().into_iter().for_each(|result| self.write(r.dst, result));
        }
        Some(end)
    }

    /// Returns the number of elements of a reduction, if it is known and not 0 and the reduction has no filter.
    fn elements_of(&self, r: &Reduce) -> Option<u64> {
        let trips = |n: u64, b: &girder_ir::codelet::Binder| {
            Some(n.saturating_mul(self.known_trips(b.lo, b.hi, b.step).filter(|&n| n > 0)?))
        };
        r.binders.iter().try_fold(1, trips).filter(|_| r.filter.is_none())
    }

    /// Returns whether two reductions have equal, known ranges.
    fn have_same_ranges(&self, first: &Reduce, r: &Reduce) -> bool {
        let mut pairs = first.binders.iter().zip(&r.binders);
        let equal = |x: ExprId, y: ExprId| self.folded[x].is_some() && self.folded[x] == self.folded[y];
        first.binders.len() == r.binders.len()
            && pairs.all(|(a, b)| a.step == b.step && equal(a.lo, b.lo) && equal(a.hi, b.hi))
            && self.elements_of(r).is_some()
    }

    /// Returns whether a reduction is independent of the statements before it.
    fn is_independent(&self, before: &Touched, (r, now): (&Reduce, &Touched)) -> bool {
        let mut locals = self.codelet.locals.keys();
        let clear = |local: LocalId| {
            let (read, set) = (now.reads[local] > 0, now.sets[local] > 0);
            (before.sets[local] == 0 || !read && !set) && (before.reads[local] == 0 || !set)
        };
        let loaded = |storage: &Storage| self.loads_in_reduce(r, *storage);
        locals.all(clear) && !before.stores.iter().any(loaded)
    }

    /// Returns what a plain statement or a reduction reads and sets; `None` for any other statement.
    fn touched(&self, stmt: &[Stmt]) -> Option<Touched> {
        let mut touched = Touched { reads: reads(self.codelet, stmt), sets: SecondaryMap::new(), stores: Vec::new() };
        match stmt {
            [Stmt::Set { .. }] => {}
            [Stmt::Store { field, .. }] => touched.stores.push(Storage::Field(*field)),
            [Stmt::StoreLocal { local, .. }] => touched.stores.push(Storage::Local(*local)),
            [Stmt::Reduce(r)] => touched.reads = reads_of_reduce(self.codelet, r),
            _ => return None,
        }
        count_sets(stmt, &mut touched.sets);
        Some(touched)
    }

    fn loads_in_reduce(&self, r: &Reduce, storage: Storage) -> bool {
        let mut loads = false;
        r.for_each_expr(|e| loads |= self.loads_from(e, storage));
        loads || self.loads_in(&r.before, storage)
    }

    fn loads_in(&self, block: &StmtBlock, storage: Storage) -> bool {
        block.iter().any(|stmt| {
            let mut loads = false;
            stmt.for_each_expr(|e| loads |= self.loads_from(e, storage));
            loads || stmt.blocks().any(|inner| self.loads_in(inner, storage))
        })
    }

    fn loads_from(&self, e: ExprId, storage: Storage) -> bool {
        let kind = &self.codelet.exprs[e].kind;
        let own = match *kind {
            ExprKind::Load { field, .. } => storage == Storage::Field(field),
            ExprKind::LoadLocal { local, .. } => storage == Storage::Local(local),
            _ => false,
        };
        own || kind.operands().iter().any(|&x| self.loads_from(x, storage))
    }
}

impl Touched {
    fn add(&mut self, other: Touched) {
        for (local, &n) in other.reads.iter() {
            self.reads[local] += n;
        }
        for (local, &n) in other.sets.iter() {
            self.sets[local] += n;
        }
        self.stores.extend(other.stores);
    }
}
