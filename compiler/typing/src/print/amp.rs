//! Matrix products: `amp(c[i, lo..hi], a, b.transpose())`.
//!
//! Invariant: a matrix is printed as the part of its base from which typing makes the same start, steps and lengths.

use super::block::Printer;
use super::printed::{Result, unprintable};
use girder_ir::codelet::{Amp, BinaryOp, DimDecl, ExprKind, Matrix, Storage};
use girder_ir::ids::ExprId;
use girder_source::Span;
use girder_syntax::ast::{self, Index, StmtId, StmtKind};
use girder_syntax::make::{arg, named};

/// An axis of a matrix along a dimension of its base.
struct Axis {
    dim: u8,
    step: i64,
    len: ExprId,
}

/// The length of a dimension of a field or local array.
enum Length {
    Known(u64),
    Same(ExprKind),
    Other,
}

impl Printer<'_> {
    /// Returns `amp(c, a, b);`.
    pub fn product(&mut self, amp: &Amp) -> Result<StmtId> {
        let matrices = [self.matrix(&amp.c)?, self.matrix(&amp.a)?, self.matrix(&amp.b)?];
        let callee = self.builtin("amp", vec![])?;
        let ast::ExprKind::Call { callee, .. } = self.make.module.exprs[callee].kind else {
            return unprintable("`amp` is not a function");
        };
        let mut args: Vec<ast::Arg> = matrices.into_iter().map(arg).collect();
        if amp.first {
            args.push(named("first", self.make.bool(true)));
        }
        let expr = self.make.call(callee, args);
        Ok(self.stmt(StmtKind::Expr { expr, semi: true }))
    }

    fn matrix(&mut self, m: &Matrix) -> Result<ast::ExprId> {
        let outer = m.outer.iter().map(|axis| Axis { dim: axis.dim, step: axis.step, len: axis.len });
        let inner = [
            Axis { dim: m.row_dim, step: m.row_step, len: m.rows },
            Axis { dim: m.col_dim, step: m.col_step, len: m.cols },
        ];
        let axes: Vec<Axis> = outer.chain(inner).collect();
        let ascending = axes.windows(2).all(|w| w[0].dim < w[1].dim);
        let descending = axes.windows(2).all(|w| w[0].dim > w[1].dim);
        if !ascending && !descending {
            return unprintable("the axes of a matrix are in another order than those of its base");
        }
        let (base, lengths) = self.base(m.base)?;
        let mut index = Vec::with_capacity(m.at.len());
        for (dim, (&at, length)) in m.at.iter().zip(&lengths).enumerate() {
            index.push(match axes.iter().find(|axis| usize::from(axis.dim) == dim) {
                Some(axis) => self.axis(at, axis, length)?,
                None => Index::Expr(self.bare(at)?),
            });
        }
        let whole = |i: &Index| matches!(i, Index::Open { start: None, end: None, by: None, .. });
        let part = if index.iter().all(whole) { base } else { self.make.index(base, index) };
        if ascending {
            return Ok(part);
        }
        let transpose = self.make.field(part, "transpose");
        Ok(self.make.call(transpose, vec![]))
    }

    fn base(&mut self, base: Storage) -> Result<(ast::ExprId, Vec<Length>)> {
        Ok(match base {
            Storage::Field(field) => {
                let decl = &self.codelet.fields[field];
                let length = |dim: &DimDecl| match *dim {
                    DimDecl::Size(size) => Length::Same(ExprKind::Size(size)),
                    DimDecl::Fixed(n) => Length::Known(n),
                    DimDecl::Expr(_) => Length::Other,
                };
                (self.make.name(&decl.name), decl.dims.iter().map(length).collect())
            }
            Storage::Local(local) => {
                let lengths = self.codelet.locals[local].array.iter().flatten();
                let lengths = lengths.map(|&n| Length::Known(n.into())).collect();
                (self.local(local)?, lengths)
            }
        })
    }

    fn number(&self, e: ExprId) -> Option<i64> {
        match self.codelet.exprs[e].kind {
            ExprKind::Const(v) => v.as_int().and_then(|v| i64::try_from(v).ok()),
            _ => None,
        }
    }

    /// Returns `..` or `lo..hi` for the indices `start`, `start + 1`, … along a dimension.
    fn axis(&mut self, start: ExprId, axis: &Axis, length: &Length) -> Result<Index> {
        let len = &self.codelet.exprs[axis.len].kind;
        let is_all = match (length, len) {
            (Length::Known(n), ExprKind::Const(v)) => v.bits == *n,
            (Length::Same(ExprKind::Size(a)), ExprKind::Size(b)) => a == b,
            _ => false,
        };
        let first = self.number(start);
        if axis.step != 1 {
            return unprintable("a matrix has a step");
        }
        if first == Some(0) && is_all {
            return Ok(Index::Open { start: None, end: None, by: None, span: Span::NONE });
        }
        if !self.is_stable(&self.codelet.exprs[start].kind) {
            return unprintable("the start of a part of a matrix is not kept in a local");
        }
        let end = match (first, self.number(axis.len), len) {
            (Some(0), ..) => self.bare(axis.len)?,
            (Some(first), Some(count), _) => self.make.int(first.saturating_add(count)),
            (_, _, &ExprKind::Binary { op: BinaryOp::Sub, a, b, .. }) if self.is_same_leaf(b, start) => self.bare(a)?,
            _ => return unprintable("the length of a part of a matrix is not the distance of two bounds"),
        };
        let start = self.bare(start)?;
        Ok(Index::Expr(self.make.range(start, end)))
    }

    fn is_same_leaf(&self, a: ExprId, b: ExprId) -> bool {
        match (&self.codelet.exprs[a].kind, &self.codelet.exprs[b].kind) {
            (ExprKind::Local(a), ExprKind::Local(b)) => a == b,
            (ExprKind::Size(a), ExprKind::Size(b)) => a == b,
            (ExprKind::ConstField(a), ExprKind::ConstField(b)) => a == b,
            (ExprKind::Const(a), ExprKind::Const(b)) => a == b,
            (ExprKind::Worker, ExprKind::Worker) | (ExprKind::Workers, ExprKind::Workers) => true,
            _ => false,
        }
    }
}
