//! Elements and sub-views of fields and local arrays: indexing, reading, writing.
//!
//! Invariant: a view has one axis for each dimension of its base.

use super::builder::Builder;
use super::loops::Bounds;
use super::types::{INT, Ty};
use super::value::{Axis, AxisRange, Value, View};
use girder_ir::codelet::{BinaryOp, Check, Dir, ExprKind, Index, Stmt, Storage};
use girder_ir::ids::ExprId;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smallvec::SmallVec;

/// The elements that one index selects along an axis.
enum AxisIndex {
    /// One element.
    At(ExprId),
    /// All elements.
    Whole,
    /// Elements at equal distances.
    Range(Bounds),
}

impl<'a> Builder<'a, '_> {
    /// Creates the view of a whole field or local array whose dimensions have these lengths.
    pub(super) fn whole_view(&mut self, base: Storage, lengths: &[ExprId], span: Span) -> View {
        let mut axes = SmallVec::new();
        for &len in lengths {
            let start = self.int(0, span);
            axes.push(Axis::Range(AxisRange { start, step: 1, len, whole: true }));
        }
        View { base, axes, order: (0..lengths.len() as u8).collect() }
    }

    /// Translates `base[…]` without loading the element.
    pub(super) fn indexed(&mut self, base: ast::ExprId, index: &'a [ast::Index], span: Span) -> Value {
        let mark = self.mark();
        let base = self.expr_unloaded(base);
        match base {
            Value::View(v) => {
                let at = self.mark();
                let taken = self.indices(&v, index, span);
                // The base is evaluated first, even if its own indices have checks.
                let mut base = [Value::View(v)];
                self.keep_before(at.max(mark), &mut base);
                match (base, taken) {
                    ([Value::View(v)], Some(taken)) => Value::View(self.sub_view(v, taken, span)),
                    _ => Value::Error,
                }
            }
            Value::Tuple(list) => self.member(&list, index, span),
            Value::Error => {
                self.index_values(index);
                Value::Error
            }
            other => self.error("codelet::rank_mismatch", span, format!("{} cannot be indexed", other.noun())),
        }
    }

    /// Evaluates the indices of a wrong expression, to report their errors.
    fn index_values(&mut self, index: &'a [ast::Index]) {
        for i in index {
            if let ast::Index::Expr(e) = i
                && !matches!(self.tree().exprs[*e].kind, ast::ExprKind::Range { .. })
            {
                self.expr(*e);
            }
        }
    }

    fn member(&mut self, list: &[(Option<smol_str::SmolStr>, Value)], index: &'a [ast::Index], span: Span) -> Value {
        let [ast::Index::Expr(e)] = index else {
            return self.error("codelet::rank_mismatch", span, "a tuple has one index");
        };
        let at = self.tree().exprs[*e].span;
        let v = self.expr(*e);
        let Some(i) = self.static_value(&v, "the index of a tuple", at) else { return Value::Error };
        match usize::try_from(i).ok().and_then(|i| list.get(i)) {
            Some((_, v)) => v.clone(),
            None => {
                let message = format!("{i} is not an index of a tuple of {}", list.len());
                self.error("codelet::index_range", at, message)
            }
        }
    }

    /// Translates the indices of a view to selections, one for each axis.
    fn indices(&mut self, view: &View, index: &'a [ast::Index], span: Span) -> Option<Vec<AxisIndex>> {
        let rests = index.iter().filter(|i| matches!(i, ast::Index::Rest(_))).count();
        let given = index.len() - rests;
        if given > view.rank() || rests > 1 {
            let name = self.storage_name(view.base);
            let message = match rests {
                2.. => "an index has at most one `...`".to_string(),
                _ => {
                    let indices = girder_source::plural(given, "index", "indices");
                    format!("{indices} for {} of {name}", girder_source::plural(view.rank(), "dimension", "dimensions"))
                }
            };
            self.error("codelet::rank_mismatch", span, message);
            self.index_values(index);
            return None;
        }
        let missing = view.rank() - given;
        let mut taken: Vec<AxisIndex> = vec![];
        let mut wrong = false;
        for i in index {
            if let ast::Index::Rest(_) = i {
                taken.extend((0..missing).map(|_| AxisIndex::Whole));
                continue;
            }
            let mark = self.mark();
            let one = self.axis_index(view, taken.len(), i);
            self.keep_indices(mark, &mut taken);
            match one {
                Some(p) => taken.push(p),
                None => {
                    wrong = true;
                    taken.push(AxisIndex::Whole);
                }
            }
        }
        taken.extend((taken.len()..view.rank()).map(|_| AxisIndex::Whole));
        (!wrong).then_some(taken)
    }

    fn keep_indices(&mut self, mark: usize, taken: &mut [AxisIndex]) {
        if self.mark() == mark {
            return;
        }
        let statements = self.mark();
        for p in taken {
            let mut values: Vec<Value> = match p {
                AxisIndex::At(e) => vec![Value::Scalar(*e)],
                AxisIndex::Range(b) => vec![Value::Scalar(b.lo), Value::Scalar(b.hi)],
                AxisIndex::Whole => continue,
            };
            self.keep_before(mark + (self.mark() - statements), &mut values);
            match (p, &values[..]) {
                (AxisIndex::At(e), [Value::Scalar(x)]) => *e = *x,
                (AxisIndex::Range(b), [Value::Scalar(lo), Value::Scalar(hi)]) => (b.lo, b.hi) = (*lo, *hi),
                _ => {}
            }
        }
    }

    fn axis_index(&mut self, view: &View, dim: usize, index: &'a ast::Index) -> Option<AxisIndex> {
        let len = view.range(dim)?.len;
        match index {
            ast::Index::Rest(_) => Some(AxisIndex::Whole),
            ast::Index::Expr(e) => {
                let node = &self.tree().exprs[*e];
                if matches!(node.kind, ast::ExprKind::Range { .. }) {
                    return self.bounds(*e).map(AxisIndex::Range);
                }
                let v = self.expr(*e);
                if let Value::Range(b) = v {
                    return Some(AxisIndex::Range(b));
                }
                let e = self.index_value(v, node.span)?;
                self.static_index(e, len, node.span).then_some(AxisIndex::At(e))
            }
            ast::Index::Open { start: None, end: None, by: None, .. } => Some(AxisIndex::Whole),
            ast::Index::Open { start, end, by, span } => {
                let step = by.map_or(Some(1), |by| self.step(by))?;
                // With a negative step, an open range starts at the last element and ends before the first.
                let lo = match start {
                    Some(e) => self.bound(*e)?,
                    None if step > 0 => self.int(0, *span),
                    None => self.shifted(len, -1, *span),
                };
                let hi = match end {
                    Some(e) => self.bound(*e)?,
                    None if step > 0 => self.again(len),
                    None => self.int(-1, *span),
                };
                Some(AxisIndex::Range(Bounds { lo, hi, step }))
            }
        }
    }

    fn bound(&mut self, e: ast::ExprId) -> Option<ExprId> {
        let span = self.tree().exprs[e].span;
        let v = self.expr(e);
        self.index_value(v, span)
    }

    fn shifted(&mut self, e: ExprId, by: i64, span: Span) -> ExprId {
        let (e, by) = (self.again(e), self.int(by, span));
        self.add_ints(e, by, span)
    }

    /// Reports a static index that is out of range.
    fn static_index(&mut self, index: ExprId, len: ExprId, span: Span) -> bool {
        let Some(i) = self.const_int(index) else { return true };
        let message = match self.const_int(len) {
            _ if i < 0 => format!("the index {i} is negative"),
            Some(n) if i >= n => format!("the index {i} is not below {n}"),
            _ => return true,
        };
        self.error("codelet::index_range", span, message);
        false
    }

    fn sub_view(&mut self, mut view: View, taken: Vec<AxisIndex>, span: Span) -> View {
        let order = std::mem::take(&mut view.order);
        for (dim, one) in order.into_iter().zip(taken) {
            let Axis::Range(range) = view.axes[dim as usize].clone() else { continue };
            match one {
                AxisIndex::Whole => view.order.push(dim),
                AxisIndex::At(e) => {
                    let e = if range.whole { e } else { self.inside(e, range.len, span) };
                    let at = self.advance(&range, e, span);
                    view.axes[dim as usize] = Axis::At(at);
                }
                AxisIndex::Range(b) => {
                    let b = if range.whole { b } else { self.part(b, range.len, span) };
                    let (lo, again) = self.twice(b.lo);
                    let len = self.range_len(Bounds { lo: again, ..b }, span);
                    let start = self.advance(&range, lo, span);
                    let step = range.step.saturating_mul(b.step);
                    view.axes[dim as usize] = Axis::Range(AxisRange { start, step, len, whole: false });
                    view.order.push(dim);
                }
            }
        }
        view
    }

    /// Returns a value as two leaves.
    pub(super) fn twice(&mut self, e: ExprId) -> (ExprId, ExprId) {
        let e = self.kept(e, "");
        (e, self.again(e))
    }

    /// Returns the index in the base of element `at` of a range.
    fn advance(&mut self, range: &AxisRange, at: ExprId, span: Span) -> ExprId {
        let step = self.int(range.step, span);
        let scaled = self.int_op(BinaryOp::Mul, at, step, span);
        let start = self.again(range.start);
        self.add_ints(start, scaled, span)
    }

    /// Counts the elements of `lo..hi by step`.
    pub(super) fn range_len(&mut self, b: Bounds, span: Span) -> ExprId {
        let (from, to) = if b.step > 0 { (b.lo, b.hi) } else { (b.hi, b.lo) };
        let distance = self.int_op(BinaryOp::Sub, to, from, span);
        let step = b.step.unsigned_abs().min(i64::MAX as u64) as i64;
        if let Some(d) = self.const_int(distance) {
            return self.int(if d <= 0 { 0 } else { (d - 1) / step + 1 }, span);
        }
        if step == 1 {
            return distance;
        }
        let (round, by) = (self.int(step - 1, span), self.int(step, span));
        let up = self.add_ints(distance, round, span);
        let site = Some(self.site(Check::Division, span, None));
        self.push(ExprKind::Binary { op: BinaryOp::Div, a: up, b: by, site }, INT, span)
    }

    /// Returns the index in the base of a view of rank 0.
    fn element_index(&mut self, view: &View) -> Index {
        view.axes
            .iter()
            .map(|axis| match axis {
                Axis::At(e) => self.again(*e),
                Axis::Range(r) => self.again(r.start),
            })
            .collect()
    }

    /// Loads a view of rank 0; returns any other value unchanged.
    pub(super) fn loaded(&mut self, value: Value, span: Span) -> Value {
        let Value::View(v) = &value else { return value };
        if v.rank() > 0 {
            return value;
        }
        if !self.readable(v.base, span) {
            return Value::Error;
        }
        let index = self.element_index(v);
        let site = self.site(Check::Index, span, None);
        let (kind, ty) = match v.base {
            Storage::Field(field) => {
                let ty = Ty::Known(self.out.fields[field].ty);
                (ExprKind::Load { field, index, site }, ty)
            }
            Storage::Local(local) => (ExprKind::LoadLocal { local, index, site }, self.local_types[local]),
        };
        Value::Scalar(self.push(kind, ty, span))
    }

    /// Returns whether elements may be read; reports an error if not.
    pub(super) fn readable(&mut self, base: Storage, span: Span) -> bool {
        let Storage::Field(f) = base else { return true };
        let field = &self.out.fields[f];
        if field.dir != Dir::Out {
            return true;
        }
        let (name, declared) = (field.name.clone(), field.span);
        let d = Diagnostic::error("codelet::read_of_out", span, format!("`{name}` is an `out` field: it is not read"))
            .here("read here")
            .label(declared, "declared here");
        self.report(d.help(format!("declare it `inout {name}`")));
        false
    }

    /// Returns whether elements may be written; reports an error if not.
    pub(super) fn writable(&mut self, base: Storage, span: Span) -> bool {
        let (code, message, declared, help, region) = match base {
            Storage::Field(f) => {
                let field = &self.out.fields[f];
                if matches!(field.dir, Dir::Out | Dir::InOut) {
                    return self.outside_reductions(base, 0, span);
                }
                let message = format!("`{}` is an `in` field: it is not written", field.name);
                let help = format!("declare it `inout {}`", field.name);
                ("codelet::write_to_in", message, field.span, help, 0)
            }
            Storage::Local(l) => {
                let info = &self.local_info[l];
                if info.mutable {
                    return self.outside_reductions(base, info.region, span);
                }
                let name = self.storage_name(base);
                let help = format!("write `let mut {}`", self.out.locals[l].name);
                ("codelet::immutable", format!("{name} cannot be written"), info.span, help, info.region)
            }
        };
        debug_assert!(region <= self.region);
        let d = Diagnostic::error(code, span, message).here("written here").label(declared, "declared here");
        self.report(d.help(help));
        false
    }

    fn outside_reductions(&mut self, base: Storage, region: u32, span: Span) -> bool {
        if region < self.region {
            let name = self.storage_name(base);
            self.write_in_reduction(name.trim_matches('`'), span);
        }
        region == self.region
    }

    /// Translates `view = value` for one element.
    pub(super) fn store_element(&mut self, view: View, value: Value, span: Span) {
        let name = self.storage_name(view.base);
        let name = name.trim_matches('`');
        let (ty, declared) = match view.base {
            Storage::Field(f) => (Ty::Known(self.out.fields[f].ty), self.out.fields[f].span),
            Storage::Local(l) => (self.local_types[l], self.local_info[l].span),
        };
        let Some(value) = self.assigned(value, ty, name, declared, span) else { return };
        let index = self.element_index(&view);
        let site = self.site(Check::Index, span, None);
        match view.base {
            Storage::Field(field) => self.emit(Stmt::Store { field, index, value, site }),
            Storage::Local(local) => self.emit(Stmt::StoreLocal { local, index, value, site }),
        }
    }
}
