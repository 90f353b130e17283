//! The hash of a codelet's meaning.
//!
//! # Note: Names
//! Locals and labels are numbered as the body first mentions them, expressions by their place in it, so neither names
//! nor the order of arenas counts. Fields, sizes and sites keep their numbers: they are the codelet's interface, and
//! compiled code speaks of them. Spans, messages and the codelet's own name do not count.

use super::{Hash128, StableHasher};
use crate::codelet::{
    Amp, Binder, Block, Codelet, DimDecl, ExprKind, GenericArg, Label, Matrix, Reduce, Stmt, Storage,
};
use crate::ids::{ExprId, LocalId, SiteId};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The hash of what a codelet does: equal for codelets that differ in names and spans only.
pub fn codelet_hash(codelet: &Codelet) -> Hash128 {
    let mut walk =
        Walk { codelet, out: StableHasher::default(), locals: numbers(), labels: numbers(), exprs: numbers() };
    walk.interface();
    walk.block(&codelet.body);
    walk.out.finish()
}

struct Walk<'c> {
    codelet: &'c Codelet,
    out: StableHasher,
    locals: FxHashMap<LocalId, u64>,
    labels: FxHashMap<Label, u64>,
    exprs: FxHashMap<ExprId, u64>,
}

fn numbers<K>() -> FxHashMap<K, u64> {
    FxHashMap::default()
}

impl Walk<'_> {
    fn interface(&mut self) {
        let codelet = self.codelet;
        self.out.u64(codelet.args.len() as u64);
        for arg in &codelet.args {
            match arg {
                GenericArg::Type(ty) => self.out.str(ty.name()),
                GenericArg::Int(n) => self.tagged("int", *n),
            }
        }
        self.out.u64(codelet.multi as u64 | (codelet.pipelined as u64) << 1 | (codelet.apart as u64) << 2);
        self.out.u64(codelet.sizes.len() as u64);
        self.out.u64(codelet.fields.len() as u64);
        for field in codelet.fields.values() {
            self.debug(field.dir);
            self.out.str(field.ty.name());
            self.out.u64(u64::from(field.align));
            self.out.u64(field.dims.len() as u64);
            for dim in &field.dims {
                match dim {
                    DimDecl::Size(size) => self.tagged("size", size.index() as i64),
                    DimDecl::Fixed(n) => self.tagged("fixed", *n as i64),
                    DimDecl::Expr(e) => {
                        self.out.str("expr");
                        self.expr(*e);
                    }
                }
            }
        }
        self.out.u64(codelet.cycles.is_some() as u64);
        codelet.cycles.into_iter().for_each(|e| self.expr(e));
    }

    fn tagged(&mut self, tag: &str, value: i64) {
        self.out.str(tag);
        self.out.i64(value);
    }

    /// Names of operators and directions are stable: they are the language's.
    fn debug(&mut self, value: impl std::fmt::Debug) {
        self.out.str(&format!("{value:?}"));
    }

    fn local(&mut self, local: LocalId) {
        let next = self.locals.len() as u64;
        let number = *self.locals.entry(local).or_insert(next);
        self.out.u64(number);
        if number == next {
            let decl = &self.codelet.locals[local];
            self.out.str(decl.ty.name());
            self.out.i64(decl.array.as_ref().map_or(-1, |dims| dims.len() as i64));
            decl.array.iter().flatten().for_each(|&n| self.out.u64(n as u64));
        }
    }

    fn labelled(&mut self, tag: &str, label: Label, body: &Block) {
        let next = self.labels.len() as u64;
        let number = *self.labels.entry(label).or_insert(next);
        self.tagged(tag, number as i64);
        self.block(body);
    }

    fn site(&mut self, site: SiteId) {
        self.out.u64(site.index() as u64);
        self.debug(self.codelet.sites[site].check);
    }

    fn index(&mut self, index: &[ExprId]) {
        self.out.u64(index.len() as u64);
        index.iter().for_each(|&e| self.expr(e));
    }

    /// A tree of expressions, outer ones first. One met again is told by its number.
    fn expr(&mut self, root: ExprId) {
        let mut stack: SmallVec<[ExprId; 16]> = SmallVec::from_slice(&[root]);
        while let Some(id) = stack.pop() {
            let next = self.exprs.len() as u64;
            let number = *self.exprs.entry(id).or_insert(next);
            if number != next {
                self.tagged("again", number as i64);
                continue;
            }
            let codelet = self.codelet;
            let expr = &codelet.exprs[id];
            self.out.str(expr.ty.name());
            self.node(&expr.kind);
            stack.extend(expr.kind.operands().iter().rev().copied());
        }
    }

    /// One expression without its operands.
    fn node(&mut self, kind: &ExprKind) {
        let name = match kind {
            ExprKind::Const(value) => return self.tagged("const", value.bits as i64),
            ExprKind::ConstField(field) => return self.tagged("field", field.index() as i64),
            ExprKind::Size(size) => return self.tagged("size", size.index() as i64),
            ExprKind::Worker => "worker",
            ExprKind::Workers => "workers",
            ExprKind::Local(local) => {
                self.local(*local);
                "local"
            }
            ExprKind::Load { field, index, site } => {
                self.tagged("of", field.index() as i64);
                self.place(*site, index);
                "load"
            }
            ExprKind::LoadLocal { local, index, site } => {
                self.local(*local);
                self.place(*site, index);
                "load local"
            }
            ExprKind::Unary { op, .. } => {
                self.debug(op);
                "unary"
            }
            ExprKind::Binary { op, site, .. } => {
                self.debug(op);
                self.out.u64(site.is_some() as u64);
                site.iter().for_each(|&s| self.site(s));
                "binary"
            }
            ExprKind::AndThen { .. } => "and then",
            ExprKind::OrElse { .. } => "or else",
            ExprKind::Select { .. } => "select",
            ExprKind::Fma { .. } => "fma",
            ExprKind::Convert { .. } => "convert",
            ExprKind::Bits { .. } => "bits",
        };
        self.out.str(name);
    }

    fn place(&mut self, site: SiteId, index: &[ExprId]) {
        self.site(site);
        self.out.u64(index.len() as u64);
    }

    fn block(&mut self, block: &Block) {
        self.out.u64(block.len() as u64);
        block.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Set { local, value } => self.assign("set", *local, &[], *value, None),
            Stmt::Fill { local, value } => self.assign("fill", *local, &[], *value, None),
            Stmt::StoreLocal { local, index, value, site } => {
                self.assign("store local", *local, index, *value, Some(*site));
            }
            Stmt::Store { field, index, value, site } => {
                self.tagged("store", field.index() as i64);
                self.site(*site);
                self.index(index);
                self.expr(*value);
            }
            Stmt::For { var, lo, hi, step, label, body, site } => {
                self.tagged("for", *step);
                self.site(*site);
                self.local(*var);
                self.expr(*lo);
                self.expr(*hi);
                self.labelled("", *label, body);
            }
            Stmt::While { before, cond, label, body, site } => {
                self.out.str("while");
                self.site(*site);
                self.block(before);
                self.expr(*cond);
                self.labelled("", *label, body);
            }
            Stmt::If { cond, then, els } => {
                self.out.str("if");
                self.expr(*cond);
                self.block(then);
                self.block(els);
            }
            Stmt::Labelled { label, body } => self.labelled("labelled", *label, body),
            Stmt::Break(label) => self.labelled("break", *label, &Block::new()),
            Stmt::Continue(label) => self.labelled("continue", *label, &Block::new()),
            Stmt::Assert { cond, site } => {
                self.out.str("assert");
                self.site(*site);
                self.expr(*cond);
            }
            Stmt::Return => self.out.str("return"),
            Stmt::Reduce(reduce) => self.reduce(reduce),
            Stmt::Amp(amp) => self.amp(amp),
        }
    }

    fn assign(&mut self, tag: &str, local: LocalId, index: &[ExprId], value: ExprId, site: Option<SiteId>) {
        self.out.str(tag);
        self.local(local);
        site.into_iter().for_each(|s| self.site(s));
        self.index(index);
        self.expr(value);
    }

    fn reduce(&mut self, reduce: &Reduce) {
        self.out.str("reduce");
        self.debug(reduce.op);
        self.local(reduce.dst);
        self.site(reduce.site);
        self.site(reduce.turns);
        self.out.u64(reduce.binders.len() as u64);
        for Binder { var, lo, hi, step } in &reduce.binders {
            self.local(*var);
            self.expr(*lo);
            self.expr(*hi);
            self.out.i64(*step);
        }
        self.block(&reduce.filter_before);
        self.out.u64(reduce.filter.is_some() as u64);
        reduce.filter.into_iter().for_each(|e| self.expr(e));
        self.block(&reduce.before);
        self.expr(reduce.value);
        self.out.u64(reduce.factors.is_some() as u64);
        if let Some((x, y)) = reduce.factors {
            self.expr(x);
            self.expr(y);
        }
    }

    fn amp(&mut self, amp: &Amp) {
        self.out.str("amp");
        self.site(amp.site);
        for Matrix { base, at, row_dim, col_dim, row_step, col_step, rows, cols } in [&amp.c, &amp.a, &amp.b] {
            match base {
                Storage::Field(field) => self.tagged("field", field.index() as i64),
                Storage::Local(local) => {
                    self.out.str("local");
                    self.local(*local);
                }
            }
            self.index(at);
            self.out.u64(*row_dim as u64 | (*col_dim as u64) << 8);
            self.out.i64(*row_step);
            self.out.i64(*col_step);
            self.expr(*rows);
            self.expr(*cols);
        }
    }
}
