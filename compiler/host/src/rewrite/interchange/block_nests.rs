//! Blocks nests of two loops whose elements are contiguous along the outer index and strided along the inner one.
//!
//! ```text
//! for i in 0..n { for j in 0..m { y[j, i] = x[i, j]; } }
//! ```
//!
//! touches a cache line for each element of `y`, and comes back to the line after it has been evicted. The blocked nest
//! runs as many iterations of the outer loop inside the inner one as share a line, so that each line is fetched once:
//!
//! ```text
//! for i in 0..n by 16 { for j in 0..m { for k in i..i + 16 { y[j, k] = x[k, j]; } } }
//! ```
//!
//! Invariant: no iteration touches an element that another one stores, and none can fail, so they may run in any order.

use super::Rewrite;
use crate::rewrite::substitute::Substitution;
use girder_codelet::locals::reads;
use girder_ir::codelet::{Label, Stmt, StmtBlock, Storage};
use girder_ir::ids::LocalId;

/// Bytes of a cache line.
const LINE: i64 = 64;
/// Minimal number of iterations of the inner loop: fewer lines fit into the first-level cache.
const FEWEST_INNER: i64 = 512;
/// Maximal number of iterations of the outer loop in a block: their lines must stay in the first-level cache, too.
const WIDEST: i64 = 16;

/// `for outer in first..first + count { inner }`
pub(super) struct StridedNest<'a> {
    outer: LocalId,
    first: i64,
    count: i64,
    inner: &'a Stmt,
    /// Iterations of the outer loop in a block.
    width: i64,
}

/// A load or a store.
struct NestAccess {
    storage: Storage,
    /// Bytes by which it moves in an iteration of the outer loop.
    outer: i64,
    /// Bytes by which it moves in an iteration of the inner loop.
    inner: i64,
    /// Bytes of an element.
    bytes: i64,
    stores: bool,
}

/// Returns whether the whole body of a loop is another loop.
pub(super) fn is_nest(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { body, .. } if matches!(body[..], [Stmt::For { .. }]))
}

impl<'a> Rewrite<'a> {
    /// Returns a nest of loops that gains by blocking.
    pub(super) fn strided_nest(&self, stmt: &'a Stmt) -> Option<StridedNest<'a>> {
        let Stmt::For { var: outer, lo, hi, step: 1, body, site, .. } = stmt else { return None };
        let [inner @ Stmt::For { var, lo: inner_lo, hi: inner_hi, step: 1, body, site: inner_site, .. }] = &body[..]
        else {
            return None;
        };
        let (first, count) = self.range((*lo, *hi), *site)?;
        let (_, inner_count) = self.range((*inner_lo, *inner_hi), *inner_site)?;
        if inner_count < FEWEST_INNER || !self.is_local(body, [*outer, *var]) {
            return None;
        }
        let accesses = self.accesses(body, (*outer, *var))?;
        let far = |a: &&NestAccess| a.outer == a.bytes && a.inner.abs() >= LINE;
        let widest = accesses.iter().filter(far).map(|a| a.bytes).max()?;
        let is_independent = |(n, a): (usize, &NestAccess)| {
            let others = accesses[..n].iter().chain(&accesses[n + 1..]);
            let (near, far) = if a.outer.abs() <= a.inner.abs() {
                ((a.outer.abs(), count), a.inner.abs())
            } else {
                ((a.inner.abs(), inner_count), a.outer.abs())
            };
            let own_elements = near.0 >= a.bytes && far / near.0 >= near.1;
            !a.stores || own_elements && others.into_iter().all(|other| other.storage != a.storage)
        };
        let width = (LINE / widest).min(WIDEST);
        let gains = accesses.iter().enumerate().all(is_independent) && count >= 2 * width;
        gains.then_some(StridedNest { outer: *outer, first, count, inner, width })
    }

    /// Returns whether only later statements of the body read the locals that it sets.
    pub(super) fn is_local(&self, body: &StmtBlock, indices: [LocalId; 2]) -> bool {
        let inside = reads(self.spec.codelet, body);
        let sets = body.iter().filter_map(|s| if let Stmt::Set { local, .. } = s { Some(*local) } else { None });
        let mut own = sets.clone().chain(indices);
        let ordered = sets.clone().enumerate().all(|(n, local)| {
            let at = body.iter().position(|s| matches!(s, Stmt::Set { local: l, .. } if *l == local)).unwrap_or(0);
            let before = reads(self.spec.codelet, &body[..=at]);
            before[local] == 0 && sets.clone().skip(n + 1).all(|other| other != local)
        });
        ordered && own.all(|local| inside[local] == self.reads[local])
    }

    /// Returns the accesses of a body of stores and assignments, or `None` if it has other statements, can fail, or has
    /// an index that is not affine.
    fn accesses(&self, body: &'a StmtBlock, (outer, inner): (LocalId, LocalId)) -> Option<Vec<NestAccess>> {
        let mut own = Vec::new();
        let mut accesses = Vec::new();
        for stmt in body {
            let (value, index) = match stmt {
                Stmt::Set { value, .. } => (*value, None),
                Stmt::Store { field, index, value, site } if self.spec.proven.contains(*site) => {
                    (*value, Some((Storage::Field(*field), index)))
                }
                _ => return None,
            };
            let mut loads = Vec::new();
            self.loads(value, &mut loads);
            for &e in index.iter().flat_map(|(_, index)| index.iter()) {
                self.loads(e, &mut loads);
            }
            let evaluated = index.iter().flat_map(|(_, index)| index.iter().copied()).chain([value]);
            if !evaluated.into_iter().all(|e| self.cannot_fail(e)) {
                return None;
            }
            let loaded = loads.into_iter().map(|e| self.access(e).map(|(storage, index)| (storage, index, false)));
            let stored = index.map(|(storage, index)| Some((storage, &index[..], true)));
            for access in loaded.chain(stored) {
                let (storage, index, stores) = access?;
                let along = |var: LocalId| self.stride_of((storage, index), var, &own);
                let bytes = match storage {
                    Storage::Field(field) => self.spec.codelet.fields[field].ty.bytes(),
                    Storage::Local(local) => self.spec.codelet.locals[local].ty.bytes(),
                };
                accesses.push(NestAccess {
                    storage,
                    outer: along(outer)?,
                    inner: along(inner)?,
                    bytes: bytes.into(),
                    stores,
                });
            }
            if let Stmt::Set { local, .. } = stmt {
                own.push(*local);
            }
        }
        Some(accesses)
    }

    /// Returns the blocked nest, with the remaining iterations of the outer loop.
    pub(super) fn blocked(&mut self, a: &StridedNest<'a>) -> StmtBlock {
        let Stmt::For { var, lo, hi, body, site, .. } = a.inner else { unreachable!("it is a loop") };
        let span = self.codelet.exprs[*lo].span;
        let (first, ahead) = (self.local(), self.local());
        let (first_index, ahead_index) = (self.read(first, span), self.read(ahead, span));
        let at = self.sum(first_index, ahead_index, span);
        let mut copy = Substitution::new(&mut self.codelet, [(a.outer, at)]);
        let block: StmtBlock = body.iter().map(|stmt| copy.stmt(stmt)).collect();
        let label = Label(self.label);
        self.label += 1;
        let inside = vec![self.counted((ahead, 0, a.width, 1), block, span)];
        let inner = Stmt::For { var: *var, lo: *lo, hi: *hi, step: 1, label, body: inside, site: *site };
        let whole = a.first + a.count - a.count % a.width;
        let mut block = vec![self.counted((first, a.first, whole, a.width), vec![inner], span)];
        if a.count % a.width > 0 {
            block.push(self.counted((a.outer, whole, a.first + a.count, 1), vec![a.inner.clone()], span));
        }
        block
    }
}
