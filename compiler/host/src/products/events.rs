//! The fills and products that a vertex runs, found by evaluating its codelet for given sizes, constants and workers,
//! whatever loops and conditions lead to them.
//!
//! Invariant: a codelet that has [`Events`] for a vertex cannot fail there and does nothing else.

use girder_codelet::facts::Facts;
use girder_codelet::interpret::{FREE_ITERATIONS, trips};
use girder_codelet::sizes::Sizes;
use girder_ir::codelet::{
    Amp, BinaryOp, Check, Codelet, Dir, ExprKind, Label, Matrix, Stmt, StmtBlock, Storage, UnaryOp,
};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::ElemType;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Statements and operands of a vertex that are evaluated to recognise it.
const MOST_EVALUATED: u32 = 1 << 20;

/// The fills and products of a vertex, in the order in which they run.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub fills: Vec<Fill>,
    pub products: Vec<ProductEvent>,
    /// The greatest number of iterations that a worker counts. With a lower limit, the vertex fails.
    pub iterations: u64,
}

/// Every element of a box of a field is set to a number, before any product writes one of them.
#[derive(Debug)]
pub(super) struct Fill {
    pub field: FieldId,
    /// The indices along each dimension.
    pub extents: Vec<Range<i64>>,
    /// The number.
    pub bits: u64,
}

/// `c = c + a b`, or `c = a b`.
#[derive(Debug)]
pub(super) struct ProductEvent {
    pub c: FieldMatrix,
    pub a: FieldMatrix,
    pub b: FieldMatrix,
    /// Lengths of the axes around the rows, outermost first, then of rows.
    pub rows: SmallVec<[u64; 4]>,
    pub cols: u64,
    pub terms: u64,
    pub first: bool,
}

/// A matrix in a field.
#[derive(Debug)]
pub(super) struct FieldMatrix {
    pub field: FieldId,
    /// Index of the first element.
    pub at: SmallVec<[i64; 6]>,
    /// Dimension and step of the axes around the rows, then of rows. That of `b` has one.
    pub rows: SmallVec<[(usize, i64); 4]>,
    pub col: (usize, i64),
}

impl FieldMatrix {
    /// Returns the least and the greatest index along each dimension, or `None` if they are not numbers. The matrix has
    /// elements.
    fn extents(&self, rows: &[u64], cols: u64) -> Option<Vec<Range<i64>>> {
        let mut extents: Vec<Range<i64>> = self.at.iter().map(|&at| at..at).collect();
        let lengths = rows.iter().copied().chain([cols]);
        for (&(dim, step), length) in self.rows.iter().chain([&self.col]).zip(lengths) {
            let reach = step.checked_mul(i64::try_from(length).ok()?.checked_sub(1)?)?;
            let extent = &mut extents[dim];
            *extent = extent.start.checked_add(reach.min(0))?..extent.end.checked_add(reach.max(0))?;
        }
        for extent in &mut extents {
            extent.end = extent.end.checked_add(1)?;
        }
        Some(extents)
    }
}

impl Fill {
    /// Returns `Some(true)` if the box contains all indices of another box, `Some(false)` if it contains none, or
    /// `None` if it contains some of them.
    fn has(&self, extents: &[Range<i64>]) -> Option<bool> {
        let both = || self.extents.iter().zip(extents);
        if both().all(|(own, other)| own.start <= other.start && other.end <= own.end) {
            return Some(true);
        }
        both().any(|(own, other)| own.end <= other.start || other.end <= own.start).then_some(false)
    }
}

impl Events {
    /// Returns the last fill that sets all elements of a product's result, if there is one. Returns `Err` if a fill
    /// sets some of them only.
    pub fn fill_of(&self, product: &ProductEvent) -> Result<Option<&Fill>, ()> {
        let extents = product.c.extents(&product.rows, product.cols).ok_or(())?;
        let mut found = None;
        for fill in self.fills.iter().filter(|fill| fill.field == product.c.field) {
            if fill.has(&extents).ok_or(())? {
                found = Some(fill);
            }
        }
        Ok(found)
    }

    /// Evaluates a codelet that runs products; `consts` are the bits of its constants, by field. Returns `None` if it
    /// does something else, or may fail.
    pub fn of(codelet: &Codelet, (sizes, facts): (&Sizes, &Facts), consts: &[u64], workers: u32) -> Option<Events> {
        let crew = if codelet.multi { workers } else { 1 };
        let mut evaluation = Evaluation {
            codelet,
            sizes,
            facts,
            consts,
            worker: (0, crew),
            locals: FxHashMap::default(),
            events: Events::default(),
            counted: 0,
            left: MOST_EVALUATED,
        };
        for worker in 0..crew {
            evaluation.worker.0 = worker;
            evaluation.locals.clear();
            evaluation.counted = 0;
            evaluation.block(&codelet.body)?;
            evaluation.events.iterations = evaluation.events.iterations.max(evaluation.counted);
        }
        Some(evaluation.events)
    }
}

/// Returns whether a codelet may be one that only runs products, for any sizes.
pub(super) fn may_run_products(codelet: &Codelet, facts: &Facts) -> bool {
    fn has_products(block: &StmtBlock) -> bool {
        block.iter().any(|stmt| matches!(stmt, Stmt::Amp(_)) || stmt.blocks().any(has_products))
    }
    let is_evaluated =
        |check: Check| matches!(check, Check::Shape | Check::Division | Check::Index | Check::Iterations);
    let mut sites = codelet.sites.iter();
    sites.all(|(id, site)| is_evaluated(site.check) || facts.proven.contains(id)) && has_products(&codelet.body)
}

/// How a statement ends.
enum Flow {
    Next,
    Break(Label),
    Continue(Label),
    Return,
}

/// The evaluation of a codelet for one vertex.
struct Evaluation<'a> {
    codelet: &'a Codelet,
    sizes: &'a Sizes,
    facts: &'a Facts,
    consts: &'a [u64],
    /// A worker, and the number of workers.
    worker: (u32, u32),
    locals: FxHashMap<LocalId, i64>,
    events: Events,
    /// Iterations that the worker has counted.
    counted: u64,
    left: u32,
}

impl Evaluation<'_> {
    fn block(&mut self, block: &StmtBlock) -> Option<Flow> {
        for stmt in block {
            match self.stmt(stmt)? {
                Flow::Next => {}
                flow => return Some(flow),
            }
        }
        Some(Flow::Next)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<Flow> {
        self.left = self.left.checked_sub(1)?;
        match stmt {
            Stmt::Set { local, value } => {
                let value = self.value(*value)?;
                self.locals.insert(*local, value);
            }
            Stmt::For { .. } | Stmt::Store { .. } if self.fill(stmt).is_some() => {}
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let (mut i, hi) = (self.value(*lo)?, self.value(*hi)?);
                self.count(trips(i, hi, *step), *site)?;
                while if *step > 0 { i < hi } else { i > hi } {
                    self.locals.insert(*var, i);
                    match self.block(body)? {
                        Flow::Break(to) if to == *label => break,
                        Flow::Continue(to) if to == *label => {}
                        Flow::Next => {}
                        flow => return Some(flow),
                    }
                    i = i.checked_add(*step)?;
                }
            }
            Stmt::If { cond, then, els } => {
                let taken = self.value(*cond)? != 0;
                return self.block(if taken { then } else { els });
            }
            Stmt::Labelled { label, body } => match self.block(body)? {
                Flow::Break(to) if to == *label => {}
                flow => return Some(flow),
            },
            Stmt::Break(label) => return Some(Flow::Break(*label)),
            Stmt::Continue(label) => return Some(Flow::Continue(*label)),
            Stmt::Return => return Some(Flow::Return),
            Stmt::Amp(amp) => self.product(amp)?,
            _ => return None,
        }
        Some(Flow::Next)
    }

    /// Counts the iterations of a loop before the first of them, as the note on iterations in
    /// `girder_codelet::interpret` says. Returns `None` if there may be too many.
    fn count(&mut self, trips: u64, site: SiteId) -> Option<()> {
        let weight = self.facts.weights[site];
        if !self.facts.proven.contains(site) && (trips > FREE_ITERATIONS || weight > 0) {
            self.counted = self.counted.saturating_add(trips.saturating_mul(weight.max(1)));
            return (trips <= FREE_ITERATIONS).then_some(());
        }
        Some(())
    }

    fn value(&mut self, e: ExprId) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let expr = &self.codelet.exprs[e];
        match &expr.kind {
            ExprKind::Const(value) => match expr.ty {
                ElemType::Bool => Some(i64::from(value.bits != 0)),
                _ => value.as_int().and_then(|n| i64::try_from(n).ok()),
            },
            ExprKind::Size(size) => Some(self.sizes.sizes[*size]),
            ExprKind::Worker => Some(i64::from(self.worker.0)),
            ExprKind::Workers => Some(i64::from(self.worker.1)),
            ExprKind::Local(local) => self.locals.get(local).copied(),
            ExprKind::ConstField(field) => {
                let bits = *self.consts.get(field.as_u32() as usize)?;
                match expr.ty {
                    ElemType::I32 => Some(i64::from(bits as u32 as i32)),
                    ElemType::I64 => Some(bits as i64),
                    _ => None,
                }
            }
            ExprKind::Convert { x } => {
                let value = self.value(*x)?;
                (expr.ty == ElemType::I64 && self.codelet.exprs[*x].ty == ElemType::I32).then_some(value)
            }
            ExprKind::Select { cond, a, b } => {
                let (cond, a, b) = (self.value(*cond)?, self.value(*a)?, self.value(*b)?);
                Some(if cond != 0 { a } else { b })
            }
            ExprKind::AndThen { a, b } => {
                if self.value(*a)? != 0 {
                    self.value(*b)
                } else {
                    Some(0)
                }
            }
            ExprKind::OrElse { a, b } => {
                if self.value(*a)? != 0 {
                    Some(1)
                } else {
                    self.value(*b)
                }
            }
            ExprKind::Unary { op, x } => match (op, self.value(*x)?, expr.ty) {
                (UnaryOp::Neg, x, ElemType::I64) => x.checked_neg(),
                (UnaryOp::Not, x, ElemType::Bool) => Some(i64::from(x == 0)),
                _ => None,
            },
            ExprKind::Binary { op, a, b, .. } => {
                let is_int = matches!(self.codelet.exprs[*a].ty, ElemType::I64 | ElemType::Bool);
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                if is_int { binary(*op, a, b) } else { None }
            }
            _ => None,
        }
    }

    /// Records loops that set a box of a field to a number. Each index is the variable of its own loop, or a number.
    fn fill(&mut self, mut stmt: &Stmt) -> Option<()> {
        let mut loops: SmallVec<[(LocalId, Range<i64>); 6]> = SmallVec::new();
        let mut around = 1u64;
        while let Stmt::For { var, lo, hi, step: 1, body, site, .. } = stmt {
            let [only] = &body[..] else { return None };
            let (lo, hi) = (self.value(*lo)?, self.value(*hi)?);
            let before = self.counted;
            self.count(trips(lo, hi, 1), *site)?;
            self.counted = before.saturating_add((self.counted - before).saturating_mul(around));
            around = around.saturating_mul(trips(lo, hi, 1));
            loops.push((*var, lo..hi));
            // Bounds of inner loops that depend on it are not numbers.
            self.locals.remove(var);
            stmt = only;
        }
        let Stmt::Store { field, index, value, .. } = stmt else { return None };
        let ExprKind::Const(value) = self.codelet.exprs[*value].kind else { return None };
        let bits = value.bits;
        let mut extents = Vec::with_capacity(index.len());
        let mut used: SmallVec<[LocalId; 6]> = SmallVec::new();
        for (&e, &length) in index.iter().zip(&self.sizes.shapes[*field]) {
            let own = match self.codelet.exprs[e].kind {
                ExprKind::Local(var) => loops.iter().find(|l| l.0 == var).cloned(),
                _ => None,
            };
            let extent = match own {
                Some((var, extent)) if !used.contains(&var) => {
                    used.push(var);
                    extent
                }
                Some(_) => return None,
                None => {
                    let at = self.value(e)?;
                    at..at.checked_add(1)?
                }
            };
            if !extent.is_empty() && (extent.start < 0 || extent.end > i64::try_from(length).ok()?) {
                return None;
            }
            extents.push(extent);
        }
        if loops.iter().any(|l| l.1.is_empty()) {
            return Some(());
        }
        let fill = Fill { field: *field, extents, bits };
        let same = self.events.fills.iter().all(|other| other.bits == bits);
        let free = |product: &ProductEvent| {
            let of_result = product.c.extents(&product.rows, product.cols);
            product.c.field != *field || of_result.and_then(|extents| fill.has(&extents)) == Some(false)
        };
        if !same || used.len() != loops.len() || !self.events.products.iter().all(free) {
            return None;
        }
        self.events.fills.push(fill);
        Some(())
    }

    fn product(&mut self, amp: &Amp) -> Option<()> {
        let (c, c_rows, c_cols) = self.field_matrix(&amp.c)?;
        let (a, a_rows, terms) = self.field_matrix(&amp.a)?;
        let (b, b_rows, b_cols) = self.field_matrix(&amp.b)?;
        if c_rows != a_rows || c_cols != b_cols || b_rows[..] != [terms] || b.rows.len() != 1 {
            return None;
        }
        let ty = self.codelet.fields[c.field].ty;
        let is_input = |p: &FieldMatrix| {
            let field = &self.codelet.fields[p.field];
            field.ty == ty && field.dir == Dir::In
        };
        if !matches!(ty, ElemType::F32 | ElemType::F64) || !is_input(&a) || !is_input(&b) {
            return None;
        }
        if c_rows.contains(&0) || c_cols == 0 {
            return Some(());
        }
        let inside = |p: &FieldMatrix, rows: &[u64], cols: u64| {
            let shape = &self.sizes.shapes[p.field];
            let extents = p.extents(rows, cols)?;
            let fits = |(e, &n): (&Range<i64>, &u64)| 0 <= e.start && i64::try_from(n).is_ok_and(|n| e.end <= n);
            extents.iter().zip(shape).all(fits).then_some(())
        };
        inside(&c, &c_rows, c_cols)?;
        if terms > 0 {
            inside(&a, &a_rows, terms)?;
            inside(&b, &b_rows, b_cols)?;
        }
        // With a step of 0, elements are written several times.
        let axes = c.rows.iter().zip(&c_rows).map(|(axis, &n)| (axis.1, n)).chain([(c.col.1, c_cols)]);
        if axes.into_iter().any(|(step, n)| step == 0 && n > 1) {
            return None;
        }
        self.events.products.push(ProductEvent { c, a, b, rows: c_rows, cols: c_cols, terms, first: amp.first });
        Some(())
    }

    /// Returns a matrix, the lengths of its axes of rows, and its columns.
    fn field_matrix(&mut self, m: &Matrix) -> Option<(FieldMatrix, SmallVec<[u64; 4]>, u64)> {
        let Storage::Field(field) = m.base else { return None };
        let at = m.at.iter().map(|&e| self.value(e)).collect::<Option<_>>()?;
        let mut lengths: SmallVec<[u64; 4]> = SmallVec::new();
        for e in m.outer.iter().map(|axis| axis.len).chain([m.rows]) {
            lengths.push(u64::try_from(self.value(e)?).ok()?);
        }
        let cols = u64::try_from(self.value(m.cols)?).ok()?;
        let outer = m.outer.iter().map(|axis| (axis.dim as usize, axis.step));
        let rows = outer.chain([(m.row_dim as usize, m.row_step)]).collect();
        let col = (m.col_dim as usize, m.col_step);
        Some((FieldMatrix { field, at, rows, col }, lengths, cols))
    }
}

/// Returns the result of an operation on indices or, as 0 or 1, of a comparison of them; `None` if it is not a number.
pub(super) fn binary(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    let truth = |holds: bool| Some(i64::from(holds));
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::Eq => truth(a == b),
        BinaryOp::Ne => truth(a != b),
        BinaryOp::Lt => truth(a < b),
        BinaryOp::Le => truth(a <= b),
        BinaryOp::Gt => truth(a > b),
        BinaryOp::Ge => truth(a >= b),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => None,
    }
}
