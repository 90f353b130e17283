//! Loops whose elements lie side by side along the outer index and far apart along the inner one, in tiles.
//!
//! ```text
//! for i in 0..n { for j in 0..m { y[j, i] = x[i, j]; } }
//! ```
//!
//! touches a line of the cache for each element of `y`, and comes back to it when it has long been lost. With as many
//! turns of the outer loop inside the inner one as have their elements in a line, each line is touched once:
//!
//! ```text
//! for i in 0..n by 16 { for j in 0..m { for k in i..i + 16 { y[j, k] = x[k, j]; } } }
//! ```
//!
//! Invariant: no turn of the loops touches an element that another one stores, and none can fail, so that they may run in
//! any order.

use super::Rewrite;
use super::copy::Copy;
use girder_ir::codelet::{Label, Stmt, StmtBlock, Storage};
use girder_ir::ids::LocalId;

/// Bytes of a line of the cache.
const LINE: i64 = 64;
/// Turns of the inner loop that touch more lines than the first cache keeps.
const FEWEST_INNER: i64 = 512;
/// Turns of the outer loop that stand inside, at most: their lines have to stay in the first cache, too.
const MOST: i64 = 16;

/// `for outer in first..first + turns { inner }`
pub(super) struct Apart<'a> {
    outer: LocalId,
    first: i64,
    turns: i64,
    inner: &'a Stmt,
    /// How many turns of the outer loop stand inside.
    width: i64,
}

/// A storage, the bytes from turn to turn of the outer and the inner loop, and whether it is stored.
struct Access {
    storage: Storage,
    outer: i64,
    inner: i64,
    bytes: i64,
    stores: bool,
}

/// Whether a loop is all that another one does.
pub(super) fn is_nest(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { body, .. } if matches!(body[..], [Stmt::For { .. }]))
}

impl<'a> Rewrite<'a> {
    /// The loops of a nest, if they gain by tiles.
    pub(super) fn apart(&self, stmt: &'a Stmt) -> Option<Apart<'a>> {
        let Stmt::For { var: outer, lo, hi, step: 1, body, site, .. } = stmt else { return None };
        let [inner @ Stmt::For { var, lo: inner_lo, hi: inner_hi, step: 1, body, site: inner_site, .. }] = &body[..]
        else {
            return None;
        };
        let (first, turns) = self.range((*lo, *hi), *site)?;
        let (_, inner_turns) = self.range((*inner_lo, *inner_hi), *inner_site)?;
        if inner_turns < FEWEST_INNER || !self.is_local(body, [*outer, *var]) {
            return None;
        }
        let accesses = self.accesses(body, (*outer, *var))?;
        let far = |a: &&Access| a.outer == a.bytes && a.inner.abs() >= LINE;
        let widest = accesses.iter().filter(far).map(|a| a.bytes).max()?;
        let apart = |(n, a): (usize, &Access)| {
            let others = accesses[..n].iter().chain(&accesses[n + 1..]);
            let (near, far) = if a.outer.abs() <= a.inner.abs() {
                ((a.outer.abs(), turns), a.inner.abs())
            } else {
                ((a.inner.abs(), inner_turns), a.outer.abs())
            };
            let own_elements = near.0 >= a.bytes && far / near.0 >= near.1;
            !a.stores || own_elements && others.into_iter().all(|other| other.storage != a.storage)
        };
        let width = (LINE / widest).min(MOST);
        let gains = accesses.iter().enumerate().all(apart) && turns >= 2 * width;
        gains.then_some(Apart { outer: *outer, first, turns, inner, width })
    }

    /// Whether a body sets what only its own later statements read.
    fn is_local(&self, body: &StmtBlock, indices: [LocalId; 2]) -> bool {
        let inside = crate::lower::reads(self.spec.codelet, body);
        let sets = body.iter().filter_map(|s| if let Stmt::Set { local, .. } = s { Some(*local) } else { None });
        let mut own = sets.clone().chain(indices);
        let ordered = sets.clone().enumerate().all(|(n, local)| {
            let at = body.iter().position(|s| matches!(s, Stmt::Set { local: l, .. } if *l == local)).unwrap_or(0);
            let before = crate::lower::reads(self.spec.codelet, &body[..=at]);
            before[local] == 0 && sets.clone().skip(n + 1).all(|other| other != local)
        });
        ordered && own.all(|local| inside[local] == self.reads[local])
    }

    /// What a body of stores and settings touches; `None` if it has other statements, can fail, or has an index that does
    /// not grow evenly.
    fn accesses(&self, body: &'a StmtBlock, (outer, inner): (LocalId, LocalId)) -> Option<Vec<Access>> {
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
                accesses.push(Access {
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

    /// The loops in tiles, and the turns of the outer one that are left.
    pub(super) fn in_tiles(&mut self, a: &Apart<'a>) -> StmtBlock {
        let Stmt::For { var, lo, hi, body, site, .. } = a.inner else { unreachable!("it is a loop") };
        let span = self.codelet.exprs[*lo].span;
        let (first, ahead) = (self.local(), self.local());
        let (first_index, ahead_index) = (self.read(first, span), self.read(ahead, span));
        let at = self.sum(first_index, ahead_index, span);
        let mut copy = Copy::new(&mut self.codelet, [(a.outer, at)]);
        let tile: StmtBlock = body.iter().map(|stmt| copy.stmt(stmt)).collect();
        let label = Label(self.label);
        self.label += 1;
        let inside = vec![self.counted((ahead, 0, a.width, 1), tile, span)];
        let inner = Stmt::For { var: *var, lo: *lo, hi: *hi, step: 1, label, body: inside, site: *site };
        let whole = a.first + a.turns - a.turns % a.width;
        let mut block = vec![self.counted((first, a.first, whole, a.width), vec![inner], span)];
        if a.turns % a.width > 0 {
            block.push(self.counted((a.outer, whole, a.first + a.turns, 1), vec![a.inner.clone()], span));
        }
        block
    }
}
