//! Indexing: `w[i, 2..4, ..]`.
//!
//! Invariant: every view made here lies inside the view from which it was made, and has at most `Limits::view_parts`
//! parts.

use crate::elaborator::Elaborator;
use crate::expr::Bounds;
use crate::rows::{RunTimeIndex, Selection};
use crate::value::{Range, Tensor, Value};
use girder_ir::ids::{StreamId, VarId};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast::{BinaryOp, ExprId, ExprKind, Index, Module};
use std::borrow::Cow;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Evaluates `base[index, …]`.
    pub fn index(&mut self, base: Value, index: &[Index], span: Span) -> Result<Value> {
        match base {
            Value::Tensor(t) => self.index_tensor(&t, index, span),
            Value::List(items) => {
                let [one] = index else {
                    return Err(self.error("elaborate::index", span, "a list has one index"));
                };
                match self.one_index(one, items.len() as u64, span)? {
                    AxisIndex::One(i) => Ok(items[i as usize].clone()),
                    AxisIndex::Many(r) => {
                        self.charge_values(r.count, span)?;
                        Ok(Value::List(Arc::new(r.iter().map(|i| items[i as usize].clone()).collect())))
                    }
                    AxisIndex::Rest => Ok(Value::List(items)),
                    AxisIndex::RunTime(..) => {
                        let message = "the elements of a list are picked while the graph is built";
                        let help = "put them into one variable, as rows, to pick one at run time";
                        Err(self.error_help("elaborate::index", span, message, help))
                    }
                }
            }
            Value::Tuple(t) => {
                let [one] = index else {
                    return Err(self.error("elaborate::index", span, "a tuple has one index"));
                };
                match self.one_index(one, t.values.len() as u64, span)? {
                    AxisIndex::One(i) => Ok(t.values[i as usize].clone()),
                    _ => Err(self.error("elaborate::index", span, "a tuple is indexed by one integer")),
                }
            }
            Value::Range(r) => {
                let [one] = index else {
                    return Err(self.error("elaborate::index", span, "a range has one index"));
                };
                match self.one_index(one, r.count, span)? {
                    AxisIndex::One(i) => Ok(Value::Int(r.at(i as u64))),
                    _ => Err(self.error("elaborate::index", span, "a range is indexed by one integer")),
                }
            }
            Value::Array(a) => self.index_array(&a, index, span),
            Value::Stream(remote) if self.graph.streams[remote].rows.is_some() => self.remote_row(remote, index, span),
            other => Err(self.expected("a tensor or a list", &other, span)),
        }
    }

    /// Evaluates `remote[row]`.
    fn remote_row(&mut self, remote: StreamId, index: &[Index], span: Span) -> Result<Value> {
        let (name, rows) = (self.graph.streams[remote].name.clone(), self.graph.streams[remote].rows.unwrap_or(0));
        let help = format!("write `read({name}[k])` or `{name}[k] <- x`, and index the tensor that is read or written");
        let [one] = index else {
            let message = "a remote buffer has one index, the number of a row";
            return Err(self.error_help("elaborate::index", span, message, help));
        };
        match self.one_index(one, u64::from(rows), span)? {
            AxisIndex::One(row) => {
                let row = Scalar::int(ElemType::I32, i128::from(row)).unwrap_or(Scalar::zero(ElemType::I32));
                Ok(Value::Row(remote, Arc::new(self.constant(row, span)?)))
            }
            AxisIndex::RunTime(row, None) => Ok(Value::Row(remote, Arc::new(row))),
            _ => {
                let message = "a remote buffer is read and written row by row";
                Err(self.error_help("elaborate::index", span, message, help))
            }
        }
    }

    fn index_tensor(&mut self, t: &Tensor, index: &[Index], span: Span) -> Result<Value> {
        let selection = self.select(t, index, span)?;
        if selection.at.is_empty() {
            return Ok(selection.base.into());
        }
        self.read_selection(&selection, span).map(Value::from)
    }

    /// Applies the static indices and collects those that are known only at run time.
    pub fn select(&mut self, t: &Tensor, index: &[Index], span: Span) -> Result<Selection> {
        let rank = t.view.rank();
        let named = index.iter().filter(|i| !matches!(i, Index::Rest(_))).count();
        if named > rank {
            let (axes, indices) =
                (girder_source::plural(rank, "axis", "axes"), girder_source::plural(named, "index", "indices"));
            let message =
                format!("{} has {axes}, but here {} {indices}", t.type_name(), if named == 1 { "is" } else { "are" });
            return Err(self.error("elaborate::index", span, message));
        }
        if index.len() - named > 1 {
            let help = "write `..` for each axis that one of them stands for";
            return Err(self.error_help("elaborate::index", span, "an index has at most one `...`", help));
        }
        let mut view = Cow::Borrowed(&t.view);
        let mut axis = 0;
        let mut at = vec![];
        for one in index {
            let len = view.shape().get(axis).copied().unwrap_or(0);
            match self.one_index(one, len, span)? {
                AxisIndex::One(i) => {
                    view = Cow::Owned(match view {
                        Cow::Borrowed(view) => view.index(axis, i as u64),
                        Cow::Owned(view) => view.into_index(axis, i as u64),
                    });
                }
                AxisIndex::Many(r) => {
                    if !(r.step == 1 && r.start == 0 && r.count == len) {
                        view = Cow::Owned(view.slice(axis, r.start.max(0) as u64, r.count, r.step));
                    }
                    axis += 1;
                }
                AxisIndex::Rest => axis += rank - named,
                AxisIndex::RunTime(start, count) => {
                    let span = index_span(self.tree(), one).unwrap_or(span);
                    at.push(RunTimeIndex { axis, start, count, sum: self.sum_of_index(one), span });
                    axis += 1;
                }
            }
        }
        let base = self.checked_view(view.into_owned(), t.ty, span)?;
        Ok(Selection { base, at })
    }

    /// Returns a view as a tensor; reports one of too many parts.
    pub fn checked_view(&mut self, view: View, ty: ElemType, span: Span) -> Result<Tensor> {
        let limit = self.session.limits.view_parts;
        if view.parts.len() > limit as usize {
            let message = format!("this view falls into {} parts; at most {limit} are allowed", view.parts.len());
            let help = "make it whole with `copy(…)`, or allow more with `--limit view_parts=N`";
            return Err(self.error_help("elaborate::view_parts", span, message, help));
        }
        // A view needs memory for its parts.
        self.charge_many(4 * (view.parts.len() as u64).saturating_sub(1), span)?;
        self.bounded_shape(&view.shape(), ty, span)?;
        Ok(Tensor { view, ty })
    }

    /// Evaluates one index of an axis of length `len`.
    fn one_index(&mut self, index: &Index, len: u64, span: Span) -> Result<AxisIndex> {
        let (start, end, step, at) = match index {
            Index::Rest(_) => return Ok(AxisIndex::Rest),
            Index::Expr(e) => {
                let expr = &self.tree().exprs[*e];
                let at = expr.span;
                // A range as it is written: an empty one no longer knows where it ends.
                let bounds = match &expr.kind {
                    ExprKind::Range { start, end, closed, by } => {
                        self.charge(at)?;
                        match self.bounds(*start, *end, *closed, *by, at, None)? {
                            Bounds::RunTime(range) => Err(range),
                            Bounds::Static { start, end, step } if *closed => {
                                Ok((start, end.saturating_add(step.signum()), step))
                            }
                            Bounds::Static { start, end, step } => Ok((start, end, step)),
                        }
                    }
                    _ => Err(self.expr(*e)?),
                };
                match bounds {
                    Ok((start, end, step)) => (start, end, step, at),
                    Err(Value::Int(i)) if i < 0 || i as u64 >= len => {
                        return Err(self.index_out_of_range(i, len, at));
                    }
                    Err(Value::Int(i)) => return Ok(AxisIndex::One(i)),
                    Err(Value::Range(r)) => return self.many(r, len, at),
                    Err(Value::Tensor(t)) => {
                        let start = self.run_time_number(Arc::unwrap_or_clone(t), at)?;
                        return Ok(AxisIndex::RunTime(start, None));
                    }
                    Err(Value::RunTimeRange(r)) => return Ok(AxisIndex::RunTime(r.start.clone(), Some(r.count))),
                    Err(other) => return Err(self.expected("an integer or a range", &other, at)),
                }
            }
            Index::Open { start, end, by, span: at } => {
                let at = if at.is_none() { span } else { *at };
                let step = by.map_or(Ok(1), |b| self.int(b))?;
                let (first, last) = if step < 0 { (len as i64 - 1, -1) } else { (0, len as i64) };
                let mut bound = |e: Option<ExprId>, open: i64| match e.map(|e| Ok((self.expr(e)?, e))).transpose()? {
                    None => Ok(open),
                    Some((Value::Int(i), _)) => Ok(i),
                    Some((Value::Tensor(_), _)) => Err(self.no_length(at)),
                    Some((other, e)) => Err(self.expected("an integer", &other, self.tree().exprs[e].span)),
                };
                (bound(*start, first)?, bound(*end, last)?, step, at)
            }
        };
        let r = self.make_range(start, end, false, step, at)?;
        if r.count == 0 && step > 0 && (start < 0 || end < 0) {
            return Err(self.range_out_of_range(start, end, len, at));
        }
        self.many(r, len, at)
    }

    /// Returns the elements of a range, which lie inside an axis of length `len`.
    fn many(&mut self, r: Range, len: u64, at: Span) -> Result<AxisIndex> {
        if r.count > 0 {
            let (first, last) = (r.start, r.at(r.count - 1));
            let (lo, hi) = (first.min(last), first.max(last));
            if lo < 0 || hi as u64 >= len {
                return Err(self.range_out_of_range(lo, hi.saturating_add(1), len, at));
            }
        }
        Ok(AxisIndex::Many(r))
    }

    fn range_out_of_range(&mut self, start: i64, end: i64, len: u64, at: Span) -> girder_source::Failed {
        let message = format!("the range {start}..{end} is outside the axis, which has {len} elements");
        let d = girder_source::Diagnostic::error("elaborate::index_out_of_range", at, message);
        // In other languages such a bound counts from the end.
        let from_start = |bound: i64| i128::from(bound) + if bound < 0 { i128::from(len) } else { 0 };
        let (lo, hi) = (from_start(start), from_start(end));
        self.report(if (start < 0 || end < 0) && 0 <= lo && lo <= hi && hi <= i128::from(len) {
            d.help(format!("bounds count from 0, and not from the end: write `{lo}..{hi}`"))
        } else {
            d
        })
    }

    /// Returns the variable and the static number of an index such as `t + 1` or `t - n`.
    fn sum_of_index(&self, index: &Index) -> Option<(VarId, i64)> {
        let tree = self.tree();
        let Index::Expr(e) = index else { return None };
        let ExprKind::Binary { op, left, right } = &tree.exprs[*e].kind else { return None };
        let named = |e: ExprId| match &tree.exprs[e].kind {
            ExprKind::Name(name) => self.scopes.local(name).map(|b| &b.value),
            _ => None,
        };
        let var = |e: ExprId| match named(e) {
            Some(Value::Tensor(t)) if t.view.rank() == 0 => t.view.parts.first().map(|part| part.var),
            _ => None,
        };
        let number = |e: ExprId| match (&tree.exprs[e].kind, named(e)) {
            (ExprKind::Int { value, .. }, _) => i64::try_from(*value).ok(),
            (_, Some(Value::Int(value))) => Some(*value),
            _ => None,
        };
        match op {
            BinaryOp::Add => var(*left).zip(number(*right)).or_else(|| var(*right).zip(number(*left))),
            BinaryOp::Sub => var(*left).zip(number(*right)?.checked_neg()),
            _ => None,
        }
    }

    fn index_out_of_range(&mut self, i: i64, len: u64, at: Span) -> girder_source::Failed {
        let message = format!("index {i} is outside the axis, which has {len} elements");
        let d = girder_source::Diagnostic::error("elaborate::index_out_of_range", at, message);
        // In other languages such an index counts from the end.
        let from_end = (i < 0).then(|| i128::from(len) + i128::from(i)).filter(|&place| place >= 0);
        self.report(match from_end {
            Some(place) => {
                let place = if i == -1 { format!("the last element is {place}") } else { format!("write {place}") };
                d.help(format!("an index counts from 0, and not from the end: {place}"))
            }
            None => d,
        })
    }

    fn index_array(&mut self, a: &crate::modules::Array, index: &[Index], span: Span) -> Result<Value> {
        // A view of a placeholder variable selects the elements.
        let view = View::whole(VarId::from_u32(0), &a.shape);
        let Selection { base: t, at } = self.select(&Tensor { view, ty: a.ty }, index, span)?;
        if let Some(first) = at.first() {
            let message = "the elements of an array from a file are picked while the graph is built";
            let help = "initialise a variable with it to pick its rows at run time";
            return Err(self.error_help("elaborate::index", first.span, message, help));
        }
        let size = a.ty.bytes() as usize;
        self.charge_many(t.view.len(), span)?;
        let bytes: Vec<u8> =
            t.view.elements().flat_map(|(_, e)| a.bytes[e as usize * size..][..size].iter().copied()).collect();
        Ok(a.of_bytes(t.view.shape().to_vec(), bytes))
    }
}

/// The elements that one index selects along an axis.
enum AxisIndex {
    /// One element.
    One(i64),
    /// A range of elements.
    Many(Range),
    /// One element, or some from there on, known only at run time.
    RunTime(Tensor, Option<u64>),
    /// Whole axes.
    Rest,
}

/// Returns the span of an index.
fn index_span(tree: &Module, index: &Index) -> Option<Span> {
    match index {
        Index::Expr(e) => Some(tree.exprs[*e].span),
        _ => None,
    }
}
