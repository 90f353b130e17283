//! Execution counts that do not depend on data: they follow from the sizes of a vertex, its constants and the worker.
//!
//! Bounds such as those of a window at the edge of an image have no closed form, but one vertex that runs over zeros
//! passes its points as often as every vertex with the same sizes and constants.
//!
//! Invariant: the answer is exact, or there is none.

use super::Points;
use crate::interpret::{Interpreter, VertexMemory};
use crate::sizes::Sizes;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{Codelet, ExprKind, Matrix, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_source::Session;

/// The greatest number of statements, and elements of reductions, that one vertex may execute while it is counted.
const MOST: u64 = 500_000;

/// The constants that decide how often the statements of a codelet run.
#[derive(Clone, Debug)]
pub struct Deciding(Vec<FieldId>);

impl Deciding {
    /// Returns the constants that decide how often the statements of a codelet run, or `None` if data decide too.
    pub fn of(codelet: &Codelet) -> Option<Deciding> {
        let mut sources = Sources { codelet, locals: SecondaryMap::new(), changed: true, control: Source::default() };
        while std::mem::take(&mut sources.changed) {
            sources.block(&codelet.body);
        }
        let Source { data, consts } = sources.control;
        (!data).then(|| Deciding(codelet.fields.keys().filter(|&f| consts.contains(f)).collect()))
    }

    /// Returns the constants.
    pub fn fields(&self) -> &[FieldId] {
        &self.0
    }
}

/// Returns how often a vertex passes the points of a codelet whose counts do not depend on data; for a `multi` codelet,
/// the counts of worker 0, 1, … one after another. Reduces `allowed` by the number of executed statements. Returns
/// `None` if it does not suffice, or if a check fails.
pub fn known_counts(
    codelet: &Codelet,
    points: &Points,
    sizes: &Sizes,
    consts: &[u64],
    workers: u32,
    allowed: &mut u64,
) -> Option<Vec<u64>> {
    let mut interpreter = Interpreter::new(codelet);
    interpreter.count(points);
    let most = MOST.min(*allowed);
    interpreter.allow(most);
    let ended = interpreter.run(sizes, &mut Zeros, consts, workers, &Session::default());
    *allowed -= most - interpreter.left().min(most);
    ended.ok().map(|()| interpreter.counters().to_vec())
}

/// Fields whose elements are zero.
struct Zeros;

impl VertexMemory for Zeros {
    fn load(&mut self, _: FieldId, _: u64) -> u64 {
        0
    }

    fn store(&mut self, _: FieldId, _: u64, _: u64) {}
}

/// The inputs on which a value may depend.
#[derive(Clone, Default)]
struct Source {
    /// Elements of fields.
    data: bool,
    consts: EntitySet<FieldId>,
}

impl Source {
    /// Adds the inputs of another value; returns whether some are new.
    fn add(&mut self, other: &Source) -> bool {
        let mut new = other.data && !self.data;
        self.data |= other.data;
        other.consts.keys().filter(|&f| other.consts.contains(f)).for_each(|f| new |= self.consts.insert(f));
        new
    }
}

/// The inputs of each local, and of all conditions and bounds together. A local also depends on the conditions around
/// its assignments, which are in `control`.
struct Sources<'c> {
    codelet: &'c Codelet,
    locals: SecondaryMap<LocalId, Source>,
    changed: bool,
    control: Source,
}

impl Sources<'_> {
    fn of(&self, e: ExprId) -> Source {
        let kind = &self.codelet.exprs[e].kind;
        let mut source = match *kind {
            ExprKind::Local(local) | ExprKind::LoadLocal { local, .. } => self.locals[local].clone(),
            ExprKind::ConstField(field) => {
                let mut source = Source::default();
                source.consts.insert(field);
                source
            }
            ExprKind::Load { .. } => Source { data: true, ..Source::default() },
            _ => Source::default(),
        };
        for &operand in kind.operands().iter() {
            source.add(&self.of(operand));
        }
        source
    }

    fn set(&mut self, local: LocalId, values: &[ExprId]) {
        for &value in values {
            let source = self.of(value);
            self.changed |= self.locals[local].add(&source);
        }
    }

    fn decide(&mut self, values: &[ExprId]) {
        for &value in values {
            let source = self.of(value);
            self.changed |= self.control.add(&source);
        }
    }

    fn block(&mut self, block: &StmtBlock) {
        for stmt in block {
            match stmt {
                Stmt::Set { local, value } | Stmt::Fill { local, value } => self.set(*local, &[*value]),
                Stmt::StoreLocal { local, index, value, .. } => {
                    self.set(*local, index);
                    self.set(*local, &[*value]);
                }
                Stmt::For { var, lo, hi, .. } => {
                    self.set(*var, &[*lo]);
                    self.decide(&[*lo, *hi]);
                }
                Stmt::While { cond, .. } | Stmt::If { cond, .. } => self.decide(&[*cond]),
                Stmt::Reduce(r) => {
                    for b in &r.binders {
                        self.set(b.var, &[b.lo]);
                        self.decide(&[b.lo, b.hi]);
                    }
                    r.filter.into_iter().for_each(|filter| self.decide(&[filter]));
                    self.set(r.dst, &[r.value]);
                }
                Stmt::Amp(amp) => {
                    if let Matrix { base: Storage::Local(local), .. } = amp.c {
                        self.changed |= !std::mem::replace(&mut self.locals[local].data, true);
                    }
                }
                Stmt::Store { .. }
                | Stmt::Labelled { .. }
                | Stmt::Break(_)
                | Stmt::Continue(_)
                | Stmt::Assert { .. }
                | Stmt::Return => {}
            }
            stmt.blocks().for_each(|inner| self.block(inner));
        }
    }
}
