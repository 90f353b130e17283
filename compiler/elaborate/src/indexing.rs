//! Indexing and the views and facts of a value: `w[i, 2..4, ..]`, `.reshape([a, b])`, `.shape`.
//!
//! Invariant: every view made here lies inside the view it was made from, and has at most `Limits::view_parts` parts.

use crate::elaborator::Elaborator;
use crate::value::Given;
use crate::value::{Range, Tensor, Value};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast::{self, Index};
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
            other => Err(self.expected("a tensor or a list", &other, span)),
        }
    }

    fn index_tensor(&mut self, t: &Tensor, index: &[Index], span: Span) -> Result<Value> {
        let rank = t.view.rank();
        let named = index.iter().filter(|i| !matches!(i, Index::Rest(_))).count();
        if named > rank {
            let (axes, indices) =
                (girder_source::plural(rank, "axis", "axes"), girder_source::plural(named, "index", "indices"));
            let message =
                format!("{} has {axes}, but here {} {indices}", t.type_name(), if named == 1 { "is" } else { "are" });
            return Err(self.error("elaborate::index", span, message));
        }
        let mut view = Cow::Borrowed(&t.view);
        let mut axis = 0;
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
            }
        }
        self.checked_view(view.into_owned(), t.ty, span)
    }

    fn checked_view(&mut self, view: View, ty: ElemType, span: Span) -> Result<Value> {
        let limit = self.session.limits.view_parts;
        if view.parts.len() > limit as usize {
            let message = format!("this view falls into {} parts; at most {limit} are allowed", view.parts.len());
            let help = "make it whole with `copy(…)`, or allow more with `--limit view_parts=N`";
            return Err(self.error_help("elaborate::view_parts", span, message, help));
        }
        // A view takes the room of its parts.
        self.charge_many(4 * (view.parts.len() as u64).saturating_sub(1), span)?;
        self.bounded_shape(&view.shape(), ty, span)?;
        Ok(Tensor { view, ty }.into())
    }

    /// Returns what one index takes of `0..len`.
    fn one_index(&mut self, index: &Index, len: u64, span: Span) -> Result<AxisIndex> {
        let (r, at) = match index {
            Index::Rest(_) => return Ok(AxisIndex::Rest),
            Index::Expr(e) => {
                let at = self.tree().exprs[*e].span;
                match self.expr(*e)? {
                    Value::Int(i) if i < 0 || i as u64 >= len => {
                        return Err(self.out_of_range(&format!("index {i} is"), len, at));
                    }
                    Value::Int(i) => return Ok(AxisIndex::One(i)),
                    Value::Range(r) => (r, at),
                    Value::Tensor(_) => {
                        let message = "an index is static";
                        let help =
                            "a tensor of indices picks elements with `gather`; inside a codelet any index is allowed";
                        return Err(self.error_help("elaborate::index", at, message, help));
                    }
                    other => return Err(self.expected("an integer or a range", &other, at)),
                }
            }
            Index::Open { start, end, by, span: at } => {
                let at = if at.is_none() { span } else { *at };
                let step = by.map_or(Ok(1), |b| self.int(b))?;
                let (first, last) = if step < 0 { (len as i64 - 1, -1) } else { (0, len as i64) };
                let start = start.map_or(Ok(first), |s| self.int(s))?;
                let end = end.map_or(Ok(last), |e| self.int(e))?;
                (self.make_range(start, end, false, step, at)?, at)
            }
        };
        if r.count > 0 {
            let (first, last) = (r.start, r.at(r.count - 1));
            if first.min(last) < 0 || first.max(last) as u64 >= len {
                let (lo, hi) = (first.min(last), first.max(last));
                return Err(self.out_of_range(&format!("the range {lo}..{} is", hi as i128 + 1), len, at));
            }
        }
        Ok(AxisIndex::Many(r))
    }

    fn out_of_range(&mut self, what: &str, len: u64, at: Span) -> girder_source::Failed {
        let message = format!("{what} outside the axis, which has {len} elements");
        self.error("elaborate::index_out_of_range", at, message)
    }

    fn index_array(&mut self, a: &crate::modules::Array, index: &[Index], span: Span) -> Result<Value> {
        // A view over a pretended variable picks the elements.
        let view = View::whole(girder_ir::ids::VarId::from_u32(0), &a.shape);
        let picked = self.index_tensor(&Tensor { view, ty: a.ty }, index, span)?;
        let Value::Tensor(t) = picked else { return Err(girder_source::Failed) };
        let size = a.ty.bytes() as usize;
        self.charge_many(t.view.len(), span)?;
        let bytes: Vec<u8> =
            t.view.elements().flat_map(|(_, e)| a.bytes[e as usize * size..][..size].iter().copied()).collect();
        let shape = t.view.shape().to_vec();
        Ok(Value::Array(Arc::new(crate::modules::Array { ty: a.ty, shape, bytes: bytes.into() })))
    }

    /// Evaluates `base.name`.
    pub fn member(&mut self, base: Value, name: &ast::Ident, span: Span) -> Result<Value> {
        let shape_of = |shape: &[u64]| Value::List(Arc::new(shape.iter().map(|&n| Value::Int(n as i64)).collect()));
        Ok(match (&base, name.name.as_str()) {
            (Value::Tensor(t), "shape") => shape_of(&t.view.shape()),
            (Value::Tensor(t), "rank") => Value::Int(t.view.rank() as i64),
            (Value::Tensor(t), "type") => Value::Type(t.ty),
            (Value::Tensor(t), "len") => Value::Int(t.view.len() as i64),
            (Value::Array(a), "shape") => shape_of(&a.shape),
            (Value::Array(a), "rank") => Value::Int(a.shape.len() as i64),
            (Value::Array(a), "type") => Value::Type(a.ty),
            (Value::List(l), "len") => Value::Int(l.len() as i64),
            (Value::Range(r), "len") => Value::Int(r.count as i64),
            (Value::Tuple(t), field) if t.get(field).is_some() => t.get(field).cloned().unwrap_or(Value::Error),
            (Value::Type(t), field) => return self.type_constant(*t, field, span),
            (Value::Module(m), field) => {
                let data = self.modules.get(*m);
                if data.values.contains_key(field) {
                    return self.at_module(*m, |this| this.name(&name.name, name.span));
                }
                let d = crate::scope::not_in_module(data, name);
                return Err(self.report(d));
            }
            (Value::Error, _) => return Err(girder_source::Failed),
            (other, field) => {
                let message = format!("{} has no `{field}`", other.describe());
                let d = girder_source::Diagnostic::error("names::unknown", name.span, message);
                let d = match other {
                    Value::Tuple(t) if t.names.iter().any(|n| !n.is_empty()) => {
                        d.help(format!("it has {}", t.names.join(", ")))
                    }
                    Value::Tensor(_) if METHODS.contains(&field) => d.help(format!("call it: `.{field}(…)`")),
                    Value::Tensor(_) => {
                        d.help("a tensor has shape, rank, type, and views such as reshape and transpose")
                    }
                    _ => d,
                };
                return Err(self.report(d));
            }
        })
    }

    /// Evaluates `base.name(args)`.
    pub fn method(&mut self, base: Value, name: &ast::Ident, given: Vec<Given>, span: Span) -> Result<Value> {
        match base {
            Value::Tensor(t) => self.view_method(&t, name, given, span),
            Value::Type(ty) if name.name == "bits" => self.type_bits(ty, given, span),
            Value::Array(a) if name.name == "reshape" => {
                let [shape] = self.arguments("reshape", ["shape"], given, span)?;
                let Some(shape) = shape else { return Err(girder_source::Failed) };
                let view = View::whole(girder_ir::ids::VarId::from_u32(0), &a.shape);
                let dims = self.new_shape(&view, &shape)?;
                self.bounded_shape(&dims, a.ty, span)?;
                let bytes = a.bytes.clone();
                Ok(Value::Array(Arc::new(crate::modules::Array { ty: a.ty, shape: dims, bytes })))
            }
            other => {
                let member = self.member(other, name, span)?;
                match member {
                    Value::Fn(m, i) => self.call_fn(m, i, given, span),
                    other => Err(self.expected("a function", &other, span)),
                }
            }
        }
    }

    fn view_method(&mut self, t: &Tensor, name: &ast::Ident, given: Vec<Given>, span: Span) -> Result<Value> {
        let v = &t.view;
        let view = match name.name.as_str() {
            "reshape" => {
                let [shape] = self.arguments("reshape", ["shape"], given, span)?;
                let Some(shape) = shape else { return Err(girder_source::Failed) };
                let dims = self.new_shape(v, &shape)?;
                self.bounded_shape(&dims, t.ty, span)?;
                v.reshape(&dims)
            }
            "flatten" => {
                let [] = self.arguments("flatten", [], given, span)?;
                v.flatten()
            }
            "transpose" => {
                let [] = self.arguments("transpose", [], given, span)?;
                v.transpose()
            }
            "permute" => {
                let [axes] = self.arguments("permute", ["axes"], given, span)?;
                let axes = self.int_list(axes)?;
                let mut sorted = axes.clone();
                sorted.sort();
                if sorted != (0..v.rank() as i64).collect::<Vec<_>>() {
                    let message = format!("`permute` takes each axis of 0..{} once", v.rank());
                    return Err(self.error("elaborate::axis", span, message));
                }
                v.permute(&axes.iter().map(|&a| a as usize).collect::<Vec<_>>())
            }
            "reverse" => {
                let [axis] = self.arguments("reverse", ["axis?"], given, span)?;
                let axis = self.axis_of(axis, v.rank(), span)?;
                v.reverse(axis)
            }
            "broadcast" => {
                let [n, axis] = self.arguments("broadcast", ["n", "axis?"], given, span)?;
                let axis = self.axis_of(axis, v.rank(), span)?;
                let n = self.size_of(n)?;
                let total = v.len().checked_mul(n).filter(|&n| n <= self.session.limits.elements);
                if total.is_none() {
                    return Err(self.error("elaborate::too_many_elements", span, "the view has too many elements"));
                }
                let dims: Vec<u64> = v.shape().iter().copied().chain([n]).collect();
                self.bounded_shape(&dims, t.ty, span)?;
                v.broadcast(n, axis)
            }
            "broadcast_to" => {
                let [shape] = self.arguments("broadcast_to", ["shape"], given, span)?;
                let dims = self.int_list(shape)?;
                let dims: Vec<u64> = dims.iter().map(|&d| d.max(0) as u64).collect();
                self.broadcast(t, &dims, span)?
            }
            "expand" => {
                let [axis] = self.arguments("expand", ["axis"], given, span)?;
                let axis = self.axis_of(axis, v.rank() + 1, span)?;
                v.expand(axis)
            }
            "squeeze" => {
                let [axis] = self.arguments("squeeze", ["axis"], given, span)?;
                let axis = self.axis_of(axis, v.rank(), span)?;
                if v.shape()[axis] != 1 {
                    let message = format!("axis {axis} of {} has {} elements, not 1", t.type_name(), v.shape()[axis]);
                    return Err(self.error("elaborate::axis", span, message));
                }
                v.squeeze(axis)
            }
            "strided" => self.strided(t, given, span)?,
            other => {
                let near = girder_source::closest(other, METHODS.iter().copied());
                let message = format!("{} has no view `{other}`", t.type_name());
                let help = near
                    .map_or_else(|| format!("views are {}", METHODS.join(", ")), |n| format!("did you mean `{n}`?"));
                return Err(self.error_help("names::unknown", name.span, message, help));
            }
        };
        self.checked_view(view, t.ty, span)
    }

    /// Evaluates `.strided(offset, dims, strides)` of printed text: elements of the flattened tensor at equal
    /// distances.
    fn strided(&mut self, t: &Tensor, given: Vec<Given>, span: Span) -> Result<View> {
        let [offset, dims, strides] = self.arguments("strided", ["offset", "dims", "strides"], given, span)?;
        let offset = match offset.map(|g| g.value) {
            Some(Value::Int(o)) => o,
            _ => return Err(self.error("elaborate::arguments", span, "`offset` is an integer")),
        };
        let (dims, strides) = (self.int_list(dims)?, self.int_list(strides)?);
        if dims.len() != strides.len() || dims.iter().any(|&d| d < 0) {
            return Err(self.error("elaborate::arguments", span, "`dims` and `strides` are lists of one length"));
        }
        let len = t.view.len() as i128;
        let (least, most) = reach(&dims, &strides);
        let (lo, hi) = (offset as i128 + least, offset as i128 + most);
        let empty = dims.contains(&0);
        if !empty && (lo < 0 || hi >= len) {
            let message = format!("elements {lo}..{} are outside the tensor's {len}", hi + 1);
            return Err(self.error("elaborate::index_out_of_range", span, message));
        }
        let [part] = &t.view.parts[..] else {
            return Err(self.error("elaborate::view_parts", span, "`strided` views a whole variable"));
        };
        let var = part.var;
        let shape: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
        let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
        if elements.is_none_or(|n| n > self.session.limits.elements) && !empty {
            return Err(self.error("elaborate::too_many_elements", span, "the view has too many elements"));
        }
        self.bounded_shape(&shape, t.ty, span)?;
        Ok(View::strided(var, part.offset + offset, &shape, &strides))
    }

    /// Returns the dimensions of a reshape: as many elements as before; one may be left to be found as -1.
    fn new_shape(&mut self, view: &View, shape: &Given) -> Result<Vec<u64>> {
        let dims = self.int_list(Some(shape.clone()))?;
        let known = dims.iter().filter(|&&d| d >= 0).try_fold(1u64, |n, &d| n.checked_mul(d as u64));
        let len = view.len();
        let open = dims.iter().filter(|&&d| d < 0).count();
        let filled: Option<Vec<u64>> = match (known, open) {
            (Some(n), 0) if n == len => Some(dims.iter().map(|&d| d as u64).collect()),
            (Some(n), 1) if n > 0 && len.is_multiple_of(n) && dims.contains(&-1) => {
                Some(dims.iter().map(|&d| if d < 0 { len / n } else { d as u64 }).collect())
            }
            _ => None,
        };
        match filled {
            Some(dims) => Ok(dims),
            None => {
                let message = format!("{dims:?} does not have the {len} elements of the view");
                Err(self.error("elaborate::shape_mismatch", shape.span, message))
            }
        }
    }

    /// Returns a list of integers.
    pub fn int_list(&mut self, given: Option<Given>) -> Result<Vec<i64>> {
        let Some(g) = given else { return Err(girder_source::Failed) };
        match &g.value {
            Value::List(items) => {
                let ints: Option<Vec<i64>> =
                    items.iter().map(|v| if let Value::Int(i) = v { Some(*i) } else { None }).collect();
                ints.map_or_else(|| Err(self.expected("a list of integers", &g.value, g.span)), Ok)
            }
            Value::Int(i) => Ok(vec![*i]),
            other => Err(self.expected("a list of integers", other, g.span)),
        }
    }

    /// Returns an axis below `rank`; the first where none is given.
    pub fn axis_of(&mut self, given: Option<Given>, rank: usize, span: Span) -> Result<usize> {
        let (axis, at) = match given {
            None => (0, span),
            Some(Given { value: Value::Int(a), span, .. }) => (a, span),
            Some(g) => return Err(self.expected("an axis (an integer)", &g.value, g.span)),
        };
        if axis < 0 || axis as usize >= rank {
            return Err(self.error("elaborate::axis", at, format!("there is no axis {axis} of {rank}")));
        }
        Ok(axis as usize)
    }

    /// Returns a size: an integer that is not negative.
    pub fn size_of(&mut self, given: Option<Given>) -> Result<u64> {
        match given {
            Some(Given { value: Value::Int(n), .. }) if n >= 0 => Ok(n as u64),
            Some(g) => Err(self.expected_least(0, &g)),
            None => Err(girder_source::Failed),
        }
    }

    /// Reports that an integer of at least 0 or 1 was needed.
    pub fn expected_least(&mut self, least: i64, g: &Given) -> girder_source::Failed {
        let wanted = if least == 0 { "an integer of at least 0" } else { "a positive integer" };
        match g.value {
            Value::Int(n) if n < least => {
                self.error("elaborate::type_mismatch", g.span, format!("expected {wanted}, found {n}"))
            }
            Value::Int(n) => self.error("elaborate::does_not_fit", g.span, format!("{n} is too large here")),
            ref other => self.expected(wanted, other, g.span),
        }
    }
}

/// Returns the least and the greatest distance of an element of a strided box from its first one.
pub fn reach(dims: &[i64], strides: &[i64]) -> (i128, i128) {
    let last = dims.iter().zip(strides).map(|(&d, &s)| (d.max(1) - 1) as i128 * s as i128);
    last.fold((0, 0), |(least, most), far| (least + far.min(0), most + far.max(0)))
}

/// The view methods of a tensor.
pub const METHODS: [&str; 9] =
    ["reshape", "flatten", "transpose", "permute", "reverse", "broadcast", "broadcast_to", "expand", "squeeze"];

/// What one index takes of an axis.
enum AxisIndex {
    /// One element.
    One(i64),
    /// A range of elements.
    Many(Range),
    /// Whole axes.
    Rest,
}
