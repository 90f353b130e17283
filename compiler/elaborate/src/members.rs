//! The properties and views of a value: `.shape`, `.reshape([a, b])`.
//!
//! Invariant: every view made here lies inside the view from which it was made, and has at most `Limits::view_parts`
//! parts.

use crate::elaborator::Elaborator;
use crate::value::{Given, Tensor, Value};
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast;
use std::sync::Arc;

/// Returns the least and the greatest distance of an element of a strided box from its first one.
pub fn reach(dims: &[i64], strides: &[i64]) -> (i128, i128) {
    let last = dims.iter().zip(strides).map(|(&d, &s)| (d.max(1) - 1) as i128 * s as i128);
    last.fold((0, 0), |(least, most), far| (least + far.min(0), most + far.max(0)))
}

/// What is known of a tensor while the graph is built.
pub const MEMBERS: [&str; 6] = ["shape", "rank", "len", "type", "is_strided", "contiguous_regions"];

/// The views of a tensor, which are written as calls.
pub const METHODS: [&str; 9] =
    ["reshape", "flatten", "transpose", "permute", "reverse", "broadcast", "broadcast_to", "expand", "squeeze"];

impl Elaborator<'_> {
    /// Evaluates `base.name`.
    pub fn member(&mut self, base: Value, name: &ast::Ident, span: Span) -> Result<Value> {
        let shape_of = |shape: &[u64]| Value::List(Arc::new(shape.iter().map(|&n| Value::Int(n as i64)).collect()));
        Ok(match (&base, name.name.as_str()) {
            (Value::Tensor(t), "shape") => shape_of(&t.view.shape()),
            (Value::Tensor(t), "rank") => Value::Int(t.view.rank() as i64),
            (Value::Tensor(t), "type") => Value::Type(t.ty),
            (Value::Tensor(t), "len") => Value::Int(t.view.len() as i64),
            (Value::Tensor(t), "is_strided") => Value::Bool(t.view.is_empty() || t.view.single().is_some()),
            (Value::Tensor(t), "contiguous_regions") => Value::Int(t.view.contiguous_regions() as i64),
            (Value::Array(a), "shape") => shape_of(&a.shape),
            (Value::Array(a), "len") => Value::Int(a.shape.iter().product::<u64>() as i64),
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
                    Value::Tuple(t) if t.get("apply").is_some() && crate::foreign::of_layer(field).is_some() => {
                        d.help(crate::foreign::of_layer(field).unwrap_or_default())
                    }
                    Value::Tuple(t) if t.names.iter().any(|n| !n.is_empty()) => {
                        d.help(format!("it has {}", t.names.join(", ")))
                    }
                    Value::List(_) | Value::Tuple(_) if field.starts_with(|c: char| c.is_ascii_digit()) => {
                        d.help(format!("its values are read with brackets: `[{field}]`"))
                    }
                    Value::List(_) if matches!(field, "append" | "push" | "extend") => {
                        d.help("a longer list is a new value: `let mut l = [1];`, then `l = l + [2];`")
                    }
                    Value::Tensor(_) if METHODS.contains(&field) => d.help(format!("call it: `.{field}(…)`")),
                    Value::Tensor(_) => d.help(match crate::foreign::of_tensor(field) {
                        Some(help) => help.to_string(),
                        None => format!("a tensor has {}, and views such as reshape and transpose", MEMBERS.join(", ")),
                    }),
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
                    callee @ (Value::Fn(..) | Value::Closure(_)) => self.call_given(callee, given, span),
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
                let axes = axes.into_iter().map(|a| self.axis_below(a, v.rank(), span)).collect::<Result<Vec<_>>>()?;
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                if !sorted.into_iter().eq(0..v.rank()) {
                    let message = format!("`permute` takes each axis of 0..{} once", v.rank());
                    return Err(self.error("elaborate::axis", span, message));
                }
                v.permute(&axes)
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
                let message = format!("{} has no view `{other}`", t.type_name());
                let help = self.help_for_view(other);
                return Err(self.error_help("names::unknown", name.span, message, help));
            }
        };
        self.checked_view(view, t.ty, span).map(Value::from)
    }

    /// Returns the help for an unknown view.
    fn help_for_view(&self, name: &str) -> String {
        let of_library = self.loader.library().module_of(name);
        let prelude = self.modules.get(self.modules.prelude);
        if let Some(help) = crate::foreign::of_tensor(name) {
            return help.into();
        }
        if prelude.values.contains_key(name) || matches!(name, "min" | "max") {
            return format!("it is a function: `{name}(x)`");
        }
        if let Some(module) = of_library {
            return format!("it is a function: `{module}.{name}(x)`, after `use {module};`");
        }
        match girder_source::closest(name, METHODS.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("views are {}", METHODS.join(", ")),
        }
    }

    /// Evaluates `.strided(offset, dims, strides)` of printed text: equally spaced elements of the flattened tensor.
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
        let flat = t.view.flatten();
        let Some(line) = flat.single() else {
            let message = "`strided` takes elements of one variable that lie at one distance";
            return Err(self.error_help("elaborate::view_parts", span, message, "use `copy(…)` of the view"));
        };
        let step = line.strides.first().copied().unwrap_or(0);
        let shape: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
        let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
        if elements.is_none_or(|n| n > self.session.limits.elements) && !empty {
            return Err(self.error("elaborate::too_many_elements", span, "the view has too many elements"));
        }
        self.bounded_shape(&shape, t.ty, span)?;
        let strides: Vec<i64> = strides.iter().map(|s| s * step).collect();
        Ok(View::strided(line.var, line.offset + offset * step, &shape, &strides))
    }

    /// Returns the dimensions of a reshape, which keep the number of elements; one of them may be given as -1 and is
    /// then computed.
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

    /// Returns an axis below `rank`; 0 if none is given. A negative axis counts from the end.
    pub fn axis_of(&mut self, given: Option<Given>, rank: usize, span: Span) -> Result<usize> {
        let (axis, at) = match given {
            None => (0, span),
            Some(Given { value: Value::Int(a), span, .. }) => (a, span),
            Some(g) => return Err(self.expected("an axis (an integer)", &g.value, g.span)),
        };
        self.axis_below(axis, rank, at)
    }

    /// Returns an axis as its number from the start; a negative one counts from the end.
    fn axis_below(&mut self, axis: i64, rank: usize, at: Span) -> Result<usize> {
        let n = rank as i64;
        if (-n..n).contains(&axis) {
            return Ok(axis.rem_euclid(n) as usize);
        }
        let message = format!("there is no axis {axis}: the rank is {rank}");
        let help = if rank == 0 { "a single value has no axes".into() } else { format!("write one of {}..{rank}", -n) };
        Err(self.error_help("elaborate::axis", at, message, help))
    }

    /// Evaluates a size: an integer that is not negative.
    pub fn size_of(&mut self, given: Option<Given>) -> Result<u64> {
        match given {
            Some(Given { value: Value::Int(n), .. }) if n >= 0 => Ok(n as u64),
            Some(g) => Err(self.expected_least(0, &g)),
            None => Err(girder_source::Failed),
        }
    }

    /// Reports that an integer of at least `least` was expected.
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
