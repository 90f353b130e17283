//! The functions that the language builds in outside codelets.

use crate::calls::Given;
use crate::elaborator::Elaborator;
use crate::modules::Array;
use crate::value::{Place, Tensor, Tuple, Value};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Result, Span};
use std::sync::Arc;

/// Their names.
pub const NAMES: [&str; 36] = [
    "tile",
    "ipu",
    "linear",
    "load",
    "bytes",
    "read",
    "print",
    "abort",
    "sync",
    "undef",
    "copy",
    "concat",
    "len",
    "zip",
    "enumerate",
    "leaves",
    "int",
    "float",
    "string",
    "div_ceil",
    "min",
    "max",
    "abs",
    "floor",
    "ceil",
    "round",
    "sqrt",
    "exp",
    "log",
    "log2",
    "pow",
    "params",
    "assert",
    "list",
    "reversed",
    "zeros",
];

/// Functions of the prelude that static numbers have too.
pub const STATIC: [&str; 14] =
    ["sqrt", "exp", "log", "tanh", "sin", "cos", "relu", "square", "pow", "abs", "floor", "ceil", "round", "trunc"];

impl Elaborator<'_> {
    /// Calls a built-in.
    pub fn call_builtin(&mut self, name: &'static str, given: Vec<Given>, span: Span) -> Result<Value> {
        match name {
            "tile" => {
                let [k] = self.required(name, ["k"], given, span)?;
                self.tile_place(&k.value, k.span).map(Value::Place)
            }
            "ipu" => {
                let [k] = self.required(name, ["k"], given, span)?;
                self.ipu_place(&k.value, k.span).map(Value::Place)
            }
            "linear" => {
                let [grain, first, tiles] = self.arguments(name, ["grain?", "first?", "tiles?"], given, span)?;
                self.linear_place(grain, first, tiles, span).map(Value::Place)
            }
            "load" => self.load(given, span),
            "bytes" => self.bytes(given, span),
            "read" => self.read_stream(given, span),
            "print" => self.print(given, span),
            "abort" => self.abort(given, span),
            "sync" => {
                let [] = self.arguments(name, [], given, span)?;
                self.push(crate::nodes::NodeKind::Effect(girder_ir::program::Effect::Sync), span)?;
                Ok(Value::Unit)
            }
            "undef" => {
                let [_] = self.required(name, ["x"], given, span)?;
                Ok(Value::Unit)
            }
            "copy" => {
                let [x] = self.required(name, ["x"], given, span)?;
                match x.value {
                    Value::Tensor(t) => self.copy_of(&t, span).map(Value::from),
                    other => Err(self.expected("a tensor", &other, x.span)),
                }
            }
            "concat" => self.concat(given, span),
            "zeros" => self.zeros(given, span),
            "params" => {
                let vars = self.graph.vars.iter().filter(|(_, v)| v.class == girder_ir::graph::VarClass::Param);
                let all = vars.map(|(id, v)| Value::from(Tensor { view: View::whole(id, &v.shape), ty: v.ty }));
                Ok(Value::List(Arc::new(all.collect())))
            }
            "assert" => self.static_assert(given, span),
            "len" | "zip" | "enumerate" | "leaves" | "list" | "reversed" => self.call_list(name, given, span),
            _ => self.call_number(name, given, span),
        }
    }

    /// Arguments of which none is optional.
    fn required<const N: usize>(
        &mut self,
        of: &str,
        names: [&str; N],
        given: Vec<Given>,
        span: Span,
    ) -> Result<[Given; N]> {
        let slots = self.arguments(of, names, given, span)?;
        let nothing = Given { name: "".into(), value: Value::Error, span };
        Ok(slots.map(|s| s.unwrap_or_else(|| nothing.clone())))
    }

    fn call_list(&mut self, name: &'static str, given: Vec<Given>, span: Span) -> Result<Value> {
        let items = |values: Vec<Value>| Ok(Value::List(Arc::new(values)));
        match name {
            "zip" => {
                let mut columns = Vec::new();
                for g in given {
                    columns.push(self.items(g)?);
                }
                let len = columns.first().map_or(0, Vec::len);
                if columns.iter().any(|c| c.len() != len) {
                    let lens: Vec<usize> = columns.iter().map(Vec::len).collect();
                    return Err(self.error("elaborate::arguments", span, format!("`zip` of lists of {lens:?} values")));
                }
                let row = |k: usize| columns.iter().map(|c| c[k].clone()).collect();
                items((0..len).map(|k| Value::Tuple(Arc::new(Tuple::plain(row(k))))).collect())
            }
            "leaves" => {
                let [x] = self.required(name, ["x"], given, span)?;
                let mut out = Vec::new();
                self.leaves(&x.value, x.span, &mut out)?;
                items(out)
            }
            _ => {
                let [x] = self.required(name, ["x"], given, span)?;
                if let ("len", Value::Tensor(t)) = (name, &x.value) {
                    return Ok(Value::Int(t.view.shape().first().map_or(1, |&n| n as i64)));
                }
                if name == "len" {
                    return self.count(&x.value, x.span).map(|n| Value::Int(n as i64));
                }
                let mut values = self.items(x)?;
                match name {
                    "enumerate" => {
                        let pair = |(k, v)| Value::Tuple(Arc::new(Tuple::plain(vec![Value::Int(k as i64), v])));
                        items(values.into_iter().enumerate().map(pair).collect())
                    }
                    "reversed" => {
                        values.reverse();
                        items(values)
                    }
                    _ => items(values),
                }
            }
        }
    }

    /// The values of a list, tuple or range.
    fn items(&mut self, g: Given) -> Result<Vec<Value>> {
        let count = self.count(&g.value, g.span)?;
        self.charge_values(count, g.span)?;
        Ok((0..count).map(|k| self.nth(&g.value, k)).collect())
    }

    /// The tensors in a nested value, in order.
    fn leaves(&mut self, value: &Value, span: Span, out: &mut Vec<Value>) -> Result<()> {
        match value {
            Value::List(l) => l.iter().try_for_each(|v| self.leaves(v, span, out)),
            Value::Tuple(t) => t.values.iter().try_for_each(|v| self.leaves(v, span, out)),
            Value::Unit => Ok(()),
            other => {
                self.charge_values(1, span)?;
                out.push(other.clone());
                Ok(())
            }
        }
    }

    fn static_assert(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [cond, message] = self.arguments("assert", ["cond", "message?"], given, span)?;
        match cond.map(|g| (g.value, g.span)) {
            Some((Value::Bool(true), _)) => Ok(Value::Unit),
            Some((Value::Bool(false), _)) => {
                let message = match message.map(|g| g.value) {
                    Some(Value::Str(s)) => s.to_string(),
                    _ => "the assertion does not hold".into(),
                };
                self.ended = true;
                Err(self.error("elaborate::assertion", span, message))
            }
            Some((other, at)) => {
                let help = "outside codelets `assert` is static; at run time use `abort(\"…\", when: c)`";
                let message = format!("expected a static bool, found {}", other.describe());
                Err(self.error_help("elaborate::type_mismatch", at, message, help))
            }
            None => Err(girder_source::Failed),
        }
    }

    /// Functions of static numbers; of tensors through the prelude.
    fn call_number(&mut self, name: &'static str, given: Vec<Given>, span: Span) -> Result<Value> {
        if given.iter().any(|g| matches!(g.value, Value::Tensor(_))) {
            if name == "int" || name == "float" {
                let help = "its elements are known only at run time; convert them with `i32(x)`, `f32(x)`, …";
                return Err(self.error_help(
                    "elaborate::type_mismatch",
                    span,
                    format!("`{name}` makes a static value, not of a tensor"),
                    help,
                ));
            }
            // Of one tensor it is the least (greatest) element, perhaps along an axis; of two it goes element by element.
            let one = given.iter().filter(|g| g.name.is_empty()).count() == 1;
            let function = match (name, one) {
                ("min", true) => "min_of",
                ("max", true) => "max_of",
                ("min", false) => "minimum",
                ("max", false) => "maximum",
                (other, _) => other,
            };
            return self.prelude_given(function, given, span);
        }
        self.each_static(name, given.into_iter().map(|g| g.value).collect(), span)
    }

    /// A function of static numbers.
    pub fn each_static(&mut self, name: &str, values: Vec<Value>, span: Span) -> Result<Value> {
        let wrong = |this: &mut Self| {
            let found: Vec<String> = values.iter().map(Value::describe).collect();
            let message = format!(
                "`{name}` does not take {}",
                if found.is_empty() { "nothing".into() } else { found.join(" and ") }
            );
            Err(this.error("elaborate::arguments", span, message))
        };
        if values.iter().any(Value::is_error) {
            return Err(girder_source::Failed);
        }
        let value = match (name, &values[..]) {
            ("div_ceil", [Value::Int(a), Value::Int(b)]) => {
                let q = a.checked_div_euclid(*b);
                match q {
                    None => return Err(self.error("elaborate::division_by_zero", span, format!("div_ceil({a}, {b})"))),
                    Some(_) => Value::Int(
                        (*a as i128).div_euclid(*b as i128) as i64
                            + i64::from((*a as i128).rem_euclid(*b as i128) != 0),
                    ),
                }
            }
            ("int", [Value::Int(i)]) => Value::Int(*i),
            ("int", [Value::Bool(b)]) => Value::Int(*b as i64),
            ("int", [Value::Float(x)]) => Value::Int(*x as i64),
            ("float", [Value::Int(i)]) => Value::Float(*i as f64),
            ("float", [Value::Float(x)]) => Value::Float(*x),
            ("string", [Value::Int(i)]) => Value::Str(i.to_string().into()),
            ("string", [Value::Float(x)]) => Value::Str(format!("{x:?}").into()),
            ("string", [Value::Str(s)]) => Value::Str(s.clone()),
            ("string", [Value::Bool(b)]) => Value::Str(b.to_string().into()),
            ("min", [first, rest @ ..]) => return self.fold_extreme(first, rest, true, span),
            ("max", [first, rest @ ..]) => return self.fold_extreme(first, rest, false, span),
            ("abs", [Value::Int(i)]) => match i.checked_abs() {
                Some(v) => Value::Int(v),
                None => return Err(self.error("elaborate::overflow", span, format!("abs({i})"))),
            },
            ("log2", [Value::Int(i)]) if *i > 0 => Value::Int(i.ilog2() as i64),
            ("pow", [Value::Int(a), Value::Int(b)]) if *b >= 0 => {
                match u32::try_from(*b).ok().and_then(|b| a.checked_pow(b)) {
                    Some(v) => Value::Int(v),
                    None => return Err(self.error("elaborate::overflow", span, format!("pow({a}, {b})"))),
                }
            }
            ("floor" | "ceil" | "round" | "trunc", [Value::Int(i)]) => Value::Int(*i),
            (_, [x]) => {
                let x = match x {
                    Value::Float(x) => *x,
                    Value::Int(i) => *i as f64,
                    _ => return wrong(self),
                };
                Value::Float(match name {
                    "abs" => x.abs(),
                    "floor" => x.floor(),
                    "ceil" => x.ceil(),
                    "trunc" => x.trunc(),
                    "round" => x.round_ties_even(),
                    "sqrt" => x.sqrt(),
                    "exp" => x.exp(),
                    "log" => x.ln(),
                    "log2" => x.log2(),
                    "tanh" => x.tanh(),
                    "sin" => x.sin(),
                    "cos" => x.cos(),
                    "relu" => x.max(0.0),
                    "square" => x * x,
                    _ => return wrong(self),
                })
            }
            ("pow", [Value::Float(a), Value::Float(b)]) => Value::Float(a.powf(*b)),
            ("pow", [Value::Float(a), Value::Int(b)]) => Value::Float(a.powf(*b as f64)),
            ("pow", [Value::Int(a), Value::Float(b)]) => Value::Float((*a as f64).powf(*b)),
            _ => return wrong(self),
        };
        Ok(value)
    }

    fn fold_extreme(&mut self, first: &Value, rest: &[Value], least: bool, span: Span) -> Result<Value> {
        let mut best = match (first, rest) {
            (Value::List(l), []) if !l.is_empty() => return self.fold_extreme(&l[0], &l[1..], least, span),
            (first, _) => first.clone(),
        };
        for v in rest {
            let op = girder_syntax::ast::BinaryOp::Lt;
            let less = self.binary(op, v.clone(), best.clone(), span)?;
            let more = self.binary(op, best.clone(), v.clone(), span)?;
            if matches!((least, less, more), (true, Value::Bool(true), _) | (false, _, Value::Bool(true))) {
                best = v.clone();
            }
        }
        // As for `+`, an integer beside a float is a float.
        let any_float = [first].into_iter().chain(rest).any(|v| matches!(v, Value::Float(_)));
        Ok(match best {
            Value::Int(i) if any_float => Value::Float(i as f64),
            best => best,
        })
    }

    /// `f32(x)`: a static number becomes a constant; a tensor is converted element by element.
    pub fn convert(&mut self, ty: ElemType, given: Vec<Given>, span: Span) -> Result<Value> {
        let [x] = self.required(ty.name(), ["x"], given, span)?;
        if !ty.is_supported() {
            return Err(self.unsupported(span, &format!("the element type `{ty}`")));
        }
        match x.value {
            Value::Tensor(t) if t.ty == ty => Ok(Value::Tensor(t)),
            Value::Tensor(t) => self.convert_each(Arc::unwrap_or_clone(t), ty, span).map(Value::from),
            Value::Array(a) => {
                let size = a.ty.bytes() as usize;
                self.charge_many((a.bytes.len() / size) as u64, span)?;
                let convert = |b: &[u8]| girder_codelet::scalar::convert(a.ty, ty, Scalar::from_le_bytes(a.ty, b).bits);
                let bytes: Vec<u8> =
                    a.bytes.chunks_exact(size).flat_map(|b| Scalar::new(ty, convert(b)).to_le_bytes()).collect();
                Ok(Value::Array(Arc::new(Array { ty, shape: a.shape.clone(), bytes: bytes.into() })))
            }
            Value::Float(v) if !ty.is_float() => {
                let bits = girder_codelet::scalar::convert(ElemType::F64, ty, v.to_bits());
                self.constant(Scalar::new(ty, bits), span).map(Value::from)
            }
            Value::Bool(b) if ty != ElemType::Bool => {
                self.scalar(&Value::Int(b as i64), ty, span).and_then(|s| self.constant(s, span)).map(Value::from)
            }
            ref list @ Value::List(_) => {
                let (mut dims, mut flat) = (vec![], vec![]);
                self.flatten_list(list, 0, &mut dims, &mut flat, span)?;
                self.constant_of(list, ty, &dims, span).map(Value::from)
            }
            number => {
                let s = self.scalar(&number, ty, x.span)?;
                self.constant(s, span).map(Value::from)
            }
        }
    }

    /// A list or array as a constant tensor.
    pub fn constant_of(&mut self, value: &Value, ty: ElemType, shape: &[u64], span: Span) -> Result<Tensor> {
        let name = self.unique_name("constant");
        let init = self.init(value, ty, shape, span)?;
        let mapping = self.default_mapping(shape, ty);
        let var = self.add_var(name, girder_ir::graph::VarClass::Const, ty, shape, mapping, span)?;
        self.graph.vars[var].init = init;
        Ok(Tensor { view: View::whole(var, shape), ty })
    }

    /// `f32.max` and its kin.
    pub fn type_constant(&mut self, ty: ElemType, name: &str, span: Span) -> Result<Value> {
        let float = |single: f32, double: f64| match ty {
            ElemType::F32 => Some(Value::Float(single as f64)),
            ElemType::F64 => Some(Value::Float(double)),
            _ => None,
        };
        let bits = ty.bytes() * 8;
        let value = match (name, ty.is_int(), ty.is_signed_int()) {
            ("bytes", ..) => Some(Value::Int(ty.bytes() as i64)),
            ("max", true, true) => Some(Value::Int(i64::MAX >> (64 - bits))),
            ("min", true, true) => Some(Value::Int(i64::MIN >> (64 - bits))),
            ("max", true, false) if bits < 64 => Some(Value::Int((1i64 << bits) - 1)),
            ("min", true, false) => Some(Value::Int(0)),
            ("max", ..) => float(f32::MAX, f64::MAX),
            ("min", ..) => float(f32::MIN, f64::MIN),
            ("epsilon", ..) => float(f32::EPSILON, f64::EPSILON),
            ("inf", ..) => float(f32::INFINITY, f64::INFINITY),
            ("nan", ..) => float(f32::NAN, f64::NAN),
            _ => None,
        };
        value.map_or_else(
            || Err(self.error("names::unknown", span, format!("the type `{ty}` has no `{name}` here"))),
            Ok,
        )
    }

    /// `f32.bits(0x7fc00000)`: the element with these bits.
    pub fn type_bits(&mut self, ty: ElemType, given: Vec<Given>, span: Span) -> Result<Value> {
        let [bits] = self.required("bits", ["bits"], given, span)?;
        match (bits.value, ty) {
            (Value::Int(b), ElemType::F32) if u32::try_from(b).is_ok() => {
                Ok(Value::Float(f32::from_bits(b as u32) as f64))
            }
            (Value::Int(b), ElemType::F64) => Ok(Value::Float(f64::from_bits(b as u64))),
            (other, _) => Err(self.expected("the bits of a float (an integer)", &other, bits.span)),
        }
    }

    fn concat(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [list, axis] = self.arguments("concat", ["parts", "axis?"], given, span)?;
        let Some(Given { value: Value::List(items), span: at, .. }) = list else {
            return Err(self.error("elaborate::arguments", span, "`concat` takes a list of tensors"));
        };
        let mut tensors: Vec<Tensor> = Vec::new();
        for i in items.iter() {
            match i {
                Value::Tensor(t) => tensors.push(Tensor::clone(t)),
                other => return Err(self.expected("a tensor", other, at)),
            }
        }
        let Some(first) = tensors.first() else {
            return Err(self.error("elaborate::arguments", at, "`concat` of no tensors has no type"));
        };
        let (ty, rank, shape) = (first.ty, first.view.rank(), first.view.shape());
        let axis = self.axis_of(axis, rank, span)?;
        for t in &tensors {
            let s = t.view.shape();
            let fits = s.len() == rank && (0..rank).all(|k| k == axis || s[k] == shape[k]);
            if t.ty != ty || !fits {
                let message = format!(
                    "{} and {} cannot stand side by side along axis {axis}",
                    tensors[0].type_name(),
                    t.type_name()
                );
                return Err(self.error("elaborate::shape_mismatch", at, message));
            }
        }
        // Of one tensor more than the list holds nothing can be said, and each has no more elements than one may have.
        let total = tensors.iter().fold(0u64, |n, t| n.saturating_add(t.view.len()));
        if total > self.session.limits.elements {
            return Err(self.error("elaborate::too_many_elements", span, "the view has too many elements"));
        }
        let views: Vec<View> = tensors.into_iter().map(|t| t.view).collect();
        Ok(Tensor { view: View::concat(&views, axis), ty }.into())
    }

    /// `zeros(T: f32, shape: [n])`: a fresh temporary of zeros.
    fn zeros(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [shape, ty] = self.arguments("zeros", ["shape", "T?"], given, span)?;
        let ty = match ty.map(|g| (g.value, g.span)) {
            None => ElemType::F32,
            Some((Value::Type(t), _)) => t,
            Some((other, at)) => return Err(self.expected("an element type", &other, at)),
        };
        let at = shape.as_ref().map_or(span, |s| s.span);
        let dims = self.int_list(shape)?;
        if dims.iter().any(|&d| d < 0) {
            return Err(self.error("elaborate::bad_dimension", at, format!("a shape of {dims:?}")));
        }
        let dims: Vec<u64> = dims.into_iter().map(|d| d as u64).collect();
        let t = self.temporary("zeros", ty, &dims, span)?;
        self.fill(&t, Scalar::zero(ty), span)?;
        Ok(t.into())
    }

    /// A string, if one is given.
    fn text_of(&mut self, given: Option<Given>) -> Result<Option<smol_str::SmolStr>> {
        match given {
            None => Ok(None),
            Some(Given { value: Value::Str(s), .. }) => Ok(Some(s)),
            Some(g) => Err(self.expected("a string", &g.value, g.span)),
        }
    }

    /// `load("file.npz", "name")`
    fn load(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [file, key] = self.arguments("load", ["file", "name?"], given, span)?;
        let (Some(file), key) = (self.text_of(file)?, self.text_of(key)?) else { return Err(girder_source::Failed) };
        let path = self.modules.get(self.module()).path.clone();
        match self.loader.array(&path, &file, key.as_deref()) {
            Ok(a) => {
                self.charge_many(a.bytes.len() as u64 / 8, span)?;
                if a.shape.iter().product::<u64>() > self.session.limits.elements {
                    return Err(self.error("elaborate::too_many_elements", span, "the array has too many elements"));
                }
                Ok(Value::Array(Arc::new(a)))
            }
            Err(why) => {
                let help = "the path is taken relative to this file; `.npy` and `.npz` files can be loaded";
                Err(self.error_help("elaborate::load", span, format!("cannot load \"{file}\": {why}"), help))
            }
        }
    }

    /// `linear(grain: 2)`; printed text says the tiles too.
    fn linear_place(
        &mut self,
        grain: Option<Given>,
        first: Option<Given>,
        tiles: Option<Given>,
        span: Span,
    ) -> Result<Place> {
        let mut number = |given: Option<Given>, least: i64| match given {
            None => Ok(None),
            Some(Given { value: Value::Int(n), .. }) if (least..=u32::MAX as i64).contains(&n) => Ok(Some(n)),
            Some(g) => Err(self.expected_least(least, &g)),
        };
        let (grain, first, tiles) = (number(grain, 1)?, number(first, 0)?, number(tiles, 1)?);
        let mut place = self.current_place();
        if first.is_some() || tiles.is_some() {
            let start = first.unwrap_or(0);
            let count = tiles.unwrap_or(place.count as i64 - start).max(0) as u64;
            let range = crate::value::Range { start, count, step: 1 };
            place = self.tile_place(&Value::Range(range), span)?;
        }
        Ok(Place { grain: grain.map(|g| g as u32), ..place })
    }

    /// `bytes(f32, [3], "…")` of printed text: an array from base64.
    fn bytes(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        use base64::Engine as _;
        let [ty, shape, data] = self.required("bytes", ["type", "shape", "data"], given, span)?;
        let (Value::Type(ty), Value::Str(data)) = (ty.value, data.value) else {
            return Err(self.error(
                "elaborate::arguments",
                span,
                "`bytes` takes a type, a shape and a string of base64",
            ));
        };
        let shape: Vec<u64> = self.int_list(Some(shape))?.into_iter().map(|d| d.max(0) as u64).collect();
        let len = shape.iter().try_fold(ty.bytes() as u64, |n, &d| n.checked_mul(d));
        match base64::engine::general_purpose::STANDARD.decode(data.as_bytes()) {
            Ok(bytes) if Some(bytes.len() as u64) == len => {
                let canonical = ty != ElemType::Bool || bytes.iter().all(|b| *b < 2);
                if !canonical {
                    return Err(self.error("elaborate::load", span, "a byte of these bools is neither 0 nor 1"));
                }
                Ok(Value::Array(Arc::new(Array { ty, shape, bytes: bytes.into() })))
            }
            Ok(bytes) => {
                let message =
                    format!("{} bytes are not the {} of the array", bytes.len(), crate::value::shaped(ty, &shape));
                Err(self.error("elaborate::load", span, message))
            }
            Err(e) => Err(self.error("elaborate::load", span, format!("this is not base64: {e}"))),
        }
    }
}
