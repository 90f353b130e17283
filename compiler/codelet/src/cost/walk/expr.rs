//! Expressions and memory accesses.
//!
//! Invariant: two accesses of one storage whose addresses differ by a non-zero constant never name the same element.

use super::{BodyWalk, Effect, InMemory, WalkResult, Written};
use crate::cost::graph::{AccessAddress, Op, Val};
use crate::cost::poly::Moving;
use crate::cost::quantity::Quantity;
use crate::cost::walk::Product;
use girder_ir::codelet::{Amp, BinaryOp, DimDecl, ExprKind, Index, Storage};
use girder_ir::ids::ExprId;
use girder_ir::types::{ElemType, Scalar};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

impl BodyWalk<'_> {
    /// Returns the value of an expression at the current point.
    pub(super) fn expr(&mut self, e: ExprId) -> WalkResult<Val> {
        let codelet = self.codelet;
        let (ty, here) = (codelet.exprs[e].ty, self.here);
        Ok(match codelet.exprs[e].kind {
            ExprKind::Const(c) => self.graph.constant(c),
            ExprKind::Local(local) => match self.now[local.as_u32() as usize] {
                Some(v) => v,
                None => self.zero(ty),
            },
            ExprKind::ConstField(f) => self.graph.pure(Op::Field(f), &[], ty, here),
            ExprKind::Size(s) => self.graph.pure(Op::Size(s), &[], ty, here),
            ExprKind::Worker => self.graph.pure(Op::Worker, &[], ty, here),
            ExprKind::Workers => self.graph.pure(Op::Workers, &[], ty, here),
            ExprKind::Load { field, ref index, .. } => self.load(Storage::Field(field), index, ty)?,
            ExprKind::LoadLocal { local, ref index, .. } => self.load(Storage::Local(local), index, ty)?,
            ExprKind::Unary { op, x } => self.operation(Op::Unary(op), &[x], ty)?,
            ExprKind::Binary { op, a, b, .. } => self.operation(Op::Binary(op), &[a, b], ty)?,
            ExprKind::AndThen { a, b } => self.operation(Op::Binary(BinaryOp::And), &[a, b], ty)?,
            ExprKind::OrElse { a, b } => self.operation(Op::Binary(BinaryOp::Or), &[a, b], ty)?,
            ExprKind::Select { cond, a, b } => self.operation(Op::Select, &[cond, a, b], ty)?,
            ExprKind::Fma { a, b, c } => self.operation(Op::Fma, &[a, b, c], ty)?,
            ExprKind::Convert { x } => self.operation(Op::Convert, &[x], ty)?,
            ExprKind::Bits { x } => self.operation(Op::Bits, &[x], ty)?,
        })
    }

    fn operation(&mut self, op: Op, operands: &[ExprId], ty: ElemType) -> WalkResult<Val> {
        let mut args: SmallVec<[Val; 3]> = SmallVec::new();
        for &e in operands {
            args.push(self.expr(e)?);
        }
        Ok(self.graph.pure(op, &args, ty, self.here))
    }

    /// Adds an operation on two `i64`.
    pub(super) fn int_op(&mut self, op: BinaryOp, a: Val, b: Val) -> Val {
        self.graph.pure(Op::Binary(op), &[a, b], ElemType::I64, self.here)
    }

    /// Returns the length of a dimension.
    fn length(&mut self, storage: Storage, dim: usize) -> WalkResult<Val> {
        Ok(match storage {
            Storage::Local(local) => {
                let n = self.codelet.locals[local].array.as_ref().map_or(0, |d| d[dim]);
                self.graph.int(n.into())
            }
            Storage::Field(field) => match self.codelet.fields[field].dims[dim] {
                DimDecl::Size(s) => self.graph.pure(Op::Size(s), &[], ElemType::I64, self.here),
                DimDecl::Fixed(n) => self.graph.int(n as i64),
                DimDecl::Expr(e) => self.expr(e)?,
            },
        })
    }

    /// Returns the row-major address of an access: its moving and its constant part.
    fn address(&mut self, storage: Storage, index: &Index) -> WalkResult<(Moving, i64)> {
        let mut flat: Option<Val> = None;
        for (dim, &e) in index.iter().enumerate() {
            let i = self.expr(e)?;
            flat = Some(match flat {
                None => i,
                Some(rows) => {
                    let n = self.length(storage, dim)?;
                    let start = self.int_op(BinaryOp::Mul, rows, n);
                    self.int_op(BinaryOp::Add, start, i)
                }
            });
        }
        let poly = flat.and_then(|v| self.graph.nodes[v].poly.clone());
        Ok(poly.map_or_else(|| (Moving::new(), 0), |p| (p.moving, p.base)))
    }

    /// Returns the slot of an element of an array in registers.
    fn element(&mut self, storage: Storage, (moving, base): &(Moving, i64)) -> WalkResult<Option<usize>> {
        let Storage::Local(local) = storage else { return Ok(None) };
        let Some(&first) = self.elements.get(&local) else { return Ok(None) };
        let count: i64 = self.codelet.locals[local].array.iter().flatten().map(|&d| i64::from(d)).product();
        if !moving.is_empty() || !(0..count).contains(base) {
            return Err(InMemory(local));
        }
        Ok(Some(first + *base as usize))
    }

    fn load(&mut self, storage: Storage, index: &Index, ty: ElemType) -> WalkResult<Val> {
        let address = self.address(storage, index)?;
        if let Some(slot) = self.element(storage, &address)? {
            return Ok(match self.now[slot] {
                Some(v) => v,
                None => self.zero(ty),
            });
        }
        let (moving, base) = (self.graph.number(&address.0), address.1);
        let mut version = 0;
        for &n in self.last.get(&storage).into_iter().flatten().rev() {
            let Written { to, value, region } = self.written[n as usize];
            match (to, value) {
                (Some((m, b)), _) if m == moving && b != base => continue,
                (Some((m, _)), Some(v)) if m == moving && self.graph.is_inside(region, self.here) => return Ok(v),
                _ => {}
            }
            version = n;
            break;
        }
        let access = AccessAddress { storage, moving, base, version };
        let region = self.written[version as usize].region;
        Ok(self.graph.load(access, ty, self.here, region))
    }

    pub(super) fn store(&mut self, storage: Storage, index: &Index, value: ExprId) -> WalkResult {
        let address = self.address(storage, index)?;
        let v = self.expr(value)?;
        if let Some(slot) = self.element(storage, &address)? {
            self.now[slot] = Some(v);
            return Ok(());
        }
        let (moving, base) = (self.graph.number(&address.0), address.1);
        let version = self.written.len() as u32;
        self.written.push(Written { to: Some((moving, base)), value: Some(v), region: self.here });
        self.last.entry(storage).or_default().push(version);
        let ty = self.codelet.exprs[value].ty;
        self.effect(Effect::Store { access: AccessAddress { storage, moving, base, version }, value: v, ty });
        Ok(())
    }

    pub(super) fn amp(&mut self, amp: &Amp) -> WalkResult {
        let mut shape = [const { Quantity::Number(1) }; 3];
        let rows = [(&amp.c, amp.c.row_dim, amp.c.row_step), (&amp.a, amp.a.row_dim, amp.a.row_step)];
        let cols = [(&amp.c, amp.c.col_dim, amp.c.col_step), (&amp.b, amp.b.col_dim, amp.b.col_step)];
        let terms = [(&amp.a, amp.a.col_dim, amp.a.col_step), (&amp.b, amp.b.row_dim, amp.b.row_step)];
        let lengths = [(amp.c.rows, rows), (amp.c.cols, cols), (amp.a.cols, terms)];
        for (length, (e, axes)) in shape.iter_mut().zip(lengths) {
            let v = self.expr(e)?;
            self.effect(Effect::Use(v));
            *length = self.most(v, axes.map(|(m, dim, step)| (m.base, dim, step)))?;
        }
        for (c, a) in amp.c.outer.iter().zip(&amp.a.outer) {
            let v = self.expr(c.len)?;
            self.effect(Effect::Use(v));
            let most = self.most(v, [(amp.c.base, c.dim, c.step), (amp.a.base, a.dim, a.step)])?;
            shape[0] = most.mul(shape[0].clone());
        }
        if amp.first {
            // Without terms it still writes zeros.
            let [_, _, terms] = &mut shape;
            *terms = std::mem::replace(terms, Quantity::Number(0)).max(Quantity::Number(1));
        }
        for matrix in [&amp.c, &amp.a, &amp.b] {
            if let Storage::Local(local) = matrix.base
                && self.elements.contains_key(&local)
            {
                return Err(InMemory(local));
            }
        }
        let ty = match amp.c.base {
            Storage::Field(f) => self.codelet.fields[f].ty,
            Storage::Local(l) => self.codelet.locals[l].ty,
        };
        // Each worker has a local array of its own.
        let mut is_shared = matches!(amp.b.base, Storage::Field(_));
        for &e in amp.b.at.iter().chain([&amp.b.rows, &amp.b.cols]) {
            let v = self.expr(e)?;
            is_shared &= !self.is_of_worker(v);
        }
        self.inner_loop_of(self.here);
        let operands = [amp.c.base, amp.a.base, amp.b.base];
        self.products.push(Product { region: self.here, ty, shape, operands, is_shared });
        self.barrier(&FxHashSet::from_iter([amp.c.base]));
        Ok(())
    }

    /// Returns a length along axes of matrices, or an upper bound if it is not known before the vertex runs or depends
    /// on the index of a loop: no matrix is longer than the array that contains it.
    fn most<const N: usize>(&mut self, length: Val, axes: [(Storage, u8, i64); N]) -> WalkResult<Quantity> {
        let known = self.graph.nodes[length].quantity.clone();
        if let Some(q) = known.as_ref().filter(|q| !q.has_index()) {
            return Ok(q.clone());
        }
        let mut most = known.and_then(|q| self.upper(&q));
        // An axis with step 0 repeats its element, which bounds nothing.
        for (base, dim, step) in axes.into_iter().filter(|axis| axis.2 != 0) {
            let v = self.length(base, dim.into())?;
            let Some(whole) = self.graph.nodes[v].quantity.clone().filter(|q| !q.has_index()) else { continue };
            let whole = whole.ceil(i64::try_from(step.unsigned_abs()).unwrap_or(i64::MAX));
            most = Some(most.map_or(whole.clone(), |m| m.min(whole)));
        }
        Ok(most.and_then(Quantity::fits).unwrap_or(Quantity::Number(1)))
    }

    /// Returns whether a value may differ between the workers of a `multi` codelet.
    fn is_of_worker(&self, v: Val) -> bool {
        let paths = self.effects.iter().any(|&(_, e)| matches!(e, Effect::Branch(c) if self.reads_worker(c, false)))
            || self.loops.iter().any(|l| self.reads_worker(l.start, false) || self.reads_worker(l.end, false));
        self.reads_worker(v, paths)
    }

    /// Returns whether a value is computed from the worker's number; `paths` is whether workers may take different
    /// paths, so that a value where paths join may differ.
    fn reads_worker(&self, v: Val, paths: bool) -> bool {
        let (mut open, mut seen) = (vec![v], FxHashSet::default());
        while let Some(v) = open.pop() {
            if !seen.insert(v) {
                continue;
            }
            let node = &self.graph.nodes[v];
            match node.op {
                Op::Worker => return true,
                Op::Load(access) if matches!(access.storage, Storage::Local(_)) => return true,
                Op::Join | Op::Phi if paths => return true,
                Op::Index(n) => open.extend(self.loops.get(n as usize).map(|l| l.start)),
                _ => open.extend(node.args.iter().copied()),
            }
        }
        false
    }

    /// Returns the initial value of a reduction.
    pub(super) fn identity(&mut self, op: girder_ir::codelet::ReduceOp, ty: ElemType) -> Val {
        self.graph.constant(Scalar::new(ty, crate::interpret::identity(op, ty)))
    }
}
