//! Indexing by numbers that are known only at run time: `x[k]`, `x[k, ..]`, `x[t..t + 4]`, read and written.
//!
//! Such an index is a step of the program: the library's `row` and `rows` read, `put_row` and `put_rows` write.
//!
//! # Note: One superstep
//! Rows by the same number are often read close to one another, as those of the weights and the biases of a layer. A
//! later one joins the superstep of an earlier one of the same body if neither that nor a step between them writes what
//! it reads, and if it cannot fail where the earlier one does not.
//!
//! Invariant: the elements that such an index selects are a copy, which nothing but its step writes.

use crate::elaborator::{Body, Elaborator, NodeKind, RowsSet};
use crate::value::{Given, RunTimeRange, Tensor, Value};
use girder_ir::codelet::Dir;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_ir::types::ElemType;
use girder_ir::view::{View, overlap};
use girder_source::{Result, Span};
use girder_syntax::ast::ExprId;
use smol_str::SmolStr;

/// A later read joins an earlier one only within this many steps of a body.
const WINDOW: usize = 64;
/// The rows read in one superstep take at most one part in this number of the memory.
const SHARE: u64 = 16;

/// An index of one axis that is known only at run time.
#[derive(Clone, Debug)]
pub struct RunTimeIndex {
    /// The axis, among those that static indices left.
    pub axis: usize,
    /// The index, or the first one: an `i32` of rank 0.
    pub start: Tensor,
    /// The number of indices; `None` for one index, which drops the axis.
    pub count: Option<u64>,
    /// The variable and the static number whose sum the text gives as the index, as `t + 1` does.
    pub sum: Option<(VarId, i64)>,
    /// The span of the index.
    pub span: Span,
}

/// Elements that run-time indices select.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The tensor that the static indices left.
    pub base: Tensor,
    /// At least one index, in the order of their axes.
    pub at: Vec<RunTimeIndex>,
}

impl Elaborator<'_> {
    /// Evaluates the range `start..end` whose start is a tensor.
    pub fn run_time_range(
        &mut self,
        start: Tensor,
        bounds: (ExprId, ExprId),
        closed: bool,
        span: Span,
    ) -> Result<Value> {
        let start = self.run_time_number(start, self.tree().exprs[bounds.0].span)?;
        let Some(terms) = crate::lengths::difference(self.tree(), bounds.0, bounds.1) else {
            return Err(self.no_length(span));
        };
        let mut length = i128::from(closed);
        for (factors, coefficient) in terms {
            let mut product = coefficient;
            for factor in factors {
                let Value::Int(n) = self.expr(factor)? else { return Err(self.no_length(span)) };
                product = product.saturating_mul(n.into());
            }
            length = length.saturating_add(product);
        }
        let Ok(count) = u64::try_from(length.max(0)) else { return Err(self.no_length(span)) };
        Ok(Value::RunTimeRange(std::sync::Arc::new(RunTimeRange { start, count })))
    }

    /// Reports a range whose length is not static.
    pub fn no_length(&mut self, span: Span) -> girder_source::Failed {
        let message = "the length of this range is known only at run time";
        let help = "the length of a range is static: write `t..t + n` with the same name `t` twice and a static `n`; \
                    what a function gives gets a name first, by `let t = …;`";
        self.error_help("elaborate::run_time_length", span, message, help)
    }

    /// Returns a tensor that can be an index at run time.
    pub fn run_time_number(&mut self, t: Tensor, span: Span) -> Result<Tensor> {
        if t.view.rank() > 0 {
            let message = format!("an index is one number, but this is {}", t.type_name());
            let help = match t.ty {
                ElemType::Bool => {
                    "elements are chosen by `select(c, a, b)`, and those that hold counted by `sum(i32(c))`"
                }
                _ => "a vector of indices picks rows with `gather(x, index)` and writes them with `update`",
            };
            return Err(self.error_help("elaborate::index", span, message, help));
        }
        if t.ty != ElemType::I32 {
            let message = format!("an index at run time is an `i32`, but this is {}", t.type_name());
            let help = if t.ty.is_number() { "convert it: `i32(…)`" } else { "choose with `if` or `select`" };
            return Err(self.error_help("elaborate::index", span, message, help));
        }
        self.one_region(t, span)
    }

    /// Reads the elements of a selection into a new tensor.
    pub fn read_selection(&mut self, selection: &Selection, span: Span) -> Result<Tensor> {
        let Some((first, rest)) = selection.at.split_first() else { return Ok(selection.base.clone()) };
        let mut t = self.read_rows(&selection.base, first, span)?;
        let mut dropped = usize::from(first.count.is_none());
        for index in rest {
            t = self.read_rows(&t, &RunTimeIndex { axis: index.axis - dropped, ..index.clone() }, span)?;
            dropped += usize::from(index.count.is_none());
        }
        let vars = t.view.vars();
        self.entities.copies_of_rows.extend(vars);
        Ok(t)
    }

    fn read_rows(&mut self, x: &Tensor, index: &RunTimeIndex, span: Span) -> Result<Tensor> {
        let len = self.long_enough(x, index)?;
        let view = to_front(&x.view, index.axis);
        let per_row = view.len() / len.max(1);
        let count = index.count.unwrap_or(1);
        let bytes = (per_row * count).saturating_mul(x.ty.bytes() as u64);
        let joined = self.joinable(&x.view, index, len - count, bytes);
        self.emission.join_next(joined);
        let before = self.emission.count();
        let value = self.call_rows(if index.count.is_some() { "rows" } else { "row" }, &view, x.ty, index, None, span);
        self.emission.join_next(None);
        let Value::Tensor(t) = value? else { return Err(girder_source::Failed) };
        if let (None, Some(position)) = (joined, before) {
            self.note_rows(position, index, len - count, bytes, &t.view);
        }
        Ok(match index.count {
            Some(_) => Tensor { view: from_front(&t.view, index.axis), ty: t.ty },
            None => Tensor::clone(&t),
        })
    }

    /// Writes a value to the elements of a selection.
    pub fn write_selection(&mut self, selection: &Selection, value: Value, span: Span) -> Result<()> {
        let Selection { base, at } = selection;
        self.writable(&base.view, span)?;
        let mut shape = base.view.shape();
        for index in at.iter().rev() {
            match index.count {
                Some(count) => shape[index.axis] = count,
                None => _ = shape.remove(index.axis),
            }
        }
        let value = match value {
            Value::Tensor(t) if t.ty != base.ty => {
                let message = format!("{} cannot be written to elements of type {}", t.type_name(), base.ty);
                let help = format!("convert it: `{}(…)`", base.ty);
                return Err(self.error_help("elaborate::type_mismatch", span, message, help));
            }
            Value::Tensor(t) if t.view.rank() == 0 => Tensor::clone(&t),
            Value::Tensor(t) => Tensor { view: self.broadcast(&t, &shape, span)?, ty: t.ty },
            Value::Unit => return Err(self.error("elaborate::type_mismatch", span, "the right side has no value")),
            ref list @ (Value::List(_) | Value::Array(_)) => {
                let like = Tensor { view: View::whole(VarId::from_u32(0), &shape), ty: base.ty };
                let list = self.constant_array(list, &like, span)?;
                Tensor { view: self.broadcast(&list, &shape, span)?, ty: base.ty }
            }
            number => {
                let s = self.scalar(&number, base.ty, span)?;
                self.constant(s, span)?
            }
        };
        self.put(base, at, value, span)
    }

    fn put(&mut self, x: &Tensor, at: &[RunTimeIndex], value: Tensor, span: Span) -> Result<()> {
        let Some((first, rest)) = at.split_first() else { return Ok(()) };
        let (mut value, mut read) = (value, None);
        if !rest.is_empty() {
            // Changes the rows that the first index selects, and writes them back.
            let part = self.read_rows(x, first, span)?;
            let dropped = usize::from(first.count.is_none());
            let rest: Vec<_> = rest.iter().map(|i| RunTimeIndex { axis: i.axis - dropped, ..i.clone() }).collect();
            self.put(&part, &rest, value, span)?;
            read = Some(part.view.clone());
            value = part;
        }
        let before = self.emission.count();
        self.put_rows(x, first, value, span)?;
        if self.emission.count() > before {
            self.note_row_write(x, at, read.as_ref());
        }
        Ok(())
    }

    fn put_rows(&mut self, x: &Tensor, index: &RunTimeIndex, value: Tensor, span: Span) -> Result<()> {
        self.long_enough(x, index)?;
        // The step writes parts of `x`, so what it reads must not be in `x`.
        let meets = |v: &View| overlap(&x.view, v).is_some();
        let value = if meets(&value.view) { self.copy_of(&value, span)? } else { value };
        let start = if meets(&index.start.view) { self.copy_of(&index.start, span)? } else { index.start.clone() };
        let index = RunTimeIndex { start, ..index.clone() };
        let moved = index.count.is_some() && value.view.rank() > 0;
        let value = Tensor { view: if moved { to_front(&value.view, index.axis) } else { value.view }, ty: value.ty };
        let name = if index.count.is_some() { "put_rows" } else { "put_row" };
        self.call_rows(name, &to_front(&x.view, index.axis), x.ty, &index, Some(value), span).map(drop)
    }

    /// Calls a function of the library on the first axis of a view.
    fn call_rows(
        &mut self,
        name: &str,
        x: &View,
        ty: ElemType,
        index: &RunTimeIndex,
        value: Option<Tensor>,
        span: Span,
    ) -> Result<Value> {
        let given = |value: Value, span| Given { name: SmolStr::default(), value, span };
        let x = Tensor { view: x.clone(), ty };
        let mut all = vec![given(x.into(), span), given(index.start.clone().into(), index.span)];
        if let Some(count) = index.count {
            all.push(Given { name: "count".into(), value: Value::Int(count as i64), span: index.span });
        }
        all.extend(value.map(|v| Given { name: "value".into(), value: v.into(), span }));
        self.prelude_given(name, all, span)
    }

    /// Returns the length of an index's axis; reports an axis that is shorter than the index.
    fn long_enough(&mut self, x: &Tensor, index: &RunTimeIndex) -> Result<u64> {
        let len = x.view.shape()[index.axis];
        let count = index.count.unwrap_or(1);
        if count > len {
            let elements = girder_source::plural(len as usize, "element", "elements");
            let message = format!("{count} elements of an axis that has {elements}");
            return Err(self.error("elaborate::index_out_of_range", index.span, message));
        }
        Ok(len)
    }

    /// Returns the earlier read that a read of `x` can join. See the note on one superstep.
    fn joinable(&mut self, x: &View, index: &RunTimeIndex, greatest: u64, bytes: u64) -> Option<ComputeSetId> {
        let limit = u64::from(self.machine.tiles()) * u64::from(self.machine.memory.bytes_per_tile) / SHARE;
        let (graph, stage) = (&self.graph, self.emission.stage());
        let body = self.emission.body_mut()?;
        let first = body.nodes.len().saturating_sub(WINDOW);
        let rows = body.rows.iter_mut().rev().find(|r| r.start == index.start.view)?;
        if body.nodes.get(rows.position).is_none_or(|node| node.stage != stage) {
            return None;
        }
        if rows.position < first || rows.greatest > greatest || rows.bytes + bytes > limit {
            return None;
        }
        let mut vars = x.vars();
        vars.extend(index.start.view.vars());
        // `since` begins with the earlier read itself, which in `a[k][k]` writes what the later one reads.
        let since = &body.nodes[rows.position..];
        if since.iter().any(|node| writes(graph, &node.kind, &vars)) {
            return None;
        }
        rows.bytes += bytes;
        Some(rows.set)
    }

    /// Notes a read whose first step is at a position of the innermost body.
    fn note_rows(&mut self, position: usize, index: &RunTimeIndex, greatest: u64, bytes: u64, result: &View) {
        let Some(body) = self.emission.body_mut() else { return };
        let Some(NodeKind::Execute(set)) = body.nodes.get(position).map(|n| &n.kind) else { return };
        let (set, start) = (*set, index.start.view.clone());
        body.rows.push(RowsSet { position, set, start, greatest, bytes });
        if let (true, [part]) = (position + 1 == body.nodes.len(), &result.parts[..]) {
            self.emission.note_computed(Some((part.var, set)));
        }
    }
}

/// Returns the view with an axis moved to the front.
fn to_front(view: &View, axis: usize) -> View {
    let mut order: Vec<usize> = (0..view.rank()).collect();
    order[..=axis].rotate_right(1);
    if axis == 0 { view.clone() } else { view.permute(&order) }
}

/// Returns the view with its first axis moved to the position `axis`.
fn from_front(view: &View, axis: usize) -> View {
    let mut order: Vec<usize> = (0..view.rank()).collect();
    order[..=axis].rotate_left(1);
    if axis == 0 { view.clone() } else { view.permute(&order) }
}

/// Returns whether a step may write one of some variables.
fn writes(graph: &Graph, kind: &NodeKind, vars: &[VarId]) -> bool {
    use girder_ir::program::Effect;
    let inside = |body: &Body| body.nodes.iter().any(|n| writes(graph, &n.kind, vars));
    let viewed = |view: &View| view.parts.iter().any(|p| vars.contains(&p.var));
    match kind {
        NodeKind::Execute(set) => graph.sets[*set].families.iter().any(|&f| {
            let family = &graph.families[f];
            let fields = &graph.codelets[family.codelet].fields;
            family.fields.iter().any(|f| {
                matches!(fields[f.field].dir, Dir::Out | Dir::InOut) && f.parts.iter().any(|p| vars.contains(&p.var))
            })
        }),
        NodeKind::Copy(copy) => {
            graph.copies[*copy].families.iter().any(|f| f.dst.parts.iter().any(|p| vars.contains(&p.var)))
        }
        NodeKind::Repeat { index, body, .. } => index.is_some_and(|(v, ..)| vars.contains(&v)) || inside(body),
        NodeKind::While { before, body, .. } => inside(before) || inside(body),
        NodeKind::If { then, els, .. } => inside(then) || inside(els),
        NodeKind::Switch { cases, default, .. } => cases.iter().any(|(_, body)| inside(body)) || inside(default),
        NodeKind::Par(branches) => branches.iter().any(inside),
        NodeKind::Call(_) => true,
        NodeKind::Effect(Effect::Read { into, .. } | Effect::Undef { what: into, .. }) => viewed(into),
        NodeKind::Effect(_) => false,
    }
}
