//! Stated types: the type and shape that a declaration makes, and the values that a parameter accepts. A bare size name
//! binds the first length that it meets, and later lengths must equal it.

use crate::elaborator::Elaborator;
use crate::value::{Tensor, Tuple, Value};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Failed, Result, Span};
use girder_syntax::ast::{self, Dim, ExprKind, TypeKind};
use smol_str::SmolStr;
use std::sync::Arc;

/// The generics of one call, with the bindings so far.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Names that a type may bind: generics, and bare names of dimensions.
    pub bound: Vec<(SmolStr, Value)>,
    /// Generics with their classes.
    pub generics: Vec<(SmolStr, SmolStr)>,
    /// The parameter that is being bound.
    pub parameter: Option<Span>,
}

impl Sizes {
    /// Returns what a name is bound to.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.bound.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }
}

impl Elaborator<'_> {
    /// Returns the element type and shape of a variable or stream.
    pub fn declared(&mut self, ty: &ast::Type) -> Result<(ElemType, Vec<u64>)> {
        let TypeKind::Name { name, dims } = &ty.kind else {
            return Err(self.error(
                "elaborate::bad_type",
                ty.span,
                "a variable's type is an element type with dimensions, such as `f32[3, 4]`",
            ));
        };
        let elem = self.elem_type(name)?;
        let mut shape = Vec::new();
        for d in dims.iter().flatten() {
            match d {
                Dim::Expr(e) => {
                    let span = self.tree().exprs[*e].span;
                    let v = match self.expr(*e)? {
                        Value::Int(v) => v,
                        Value::List(_) => {
                            let shown = crate::trees::dotted(self.tree(), *e).unwrap_or("x.shape".into());
                            let help = format!("`..{shown}` is one dimension for each of its numbers");
                            let message = "expected an integer, found a list";
                            return Err(self.error_help("elaborate::type_mismatch", span, message, help));
                        }
                        other => return Err(self.expected("an integer", &other, span)),
                    };
                    let v = u64::try_from(v).map_err(|_| {
                        self.error("elaborate::bad_dimension", span, format!("a dimension of {v} elements"))
                    })?;
                    shape.push(v);
                }
                Dim::Spread(name) => {
                    let sizes = self.name(&name.name, name.span)?;
                    shape.extend(self.sizes(&sizes, name.span)?);
                }
                Dim::Shape(e) => {
                    let sizes = self.expr(*e)?;
                    shape.extend(self.sizes(&sizes, self.tree().exprs[*e].span)?);
                }
            }
        }
        Ok((elem, shape))
    }

    /// Returns the numbers of a list as lengths of axes.
    fn sizes(&mut self, value: &Value, span: Span) -> Result<Vec<u64>> {
        let sizes = match value {
            Value::List(l) => {
                l.iter().map(|v| if let Value::Int(i) = v { u64::try_from(*i).ok() } else { None }).collect()
            }
            _ => None,
        };
        sizes.map_or_else(|| Err(self.expected("a list of sizes", value, span)), Ok)
    }

    /// Returns an element type by name, or the one that a type parameter is bound to.
    fn elem_type(&mut self, name: &ast::Path) -> Result<ElemType> {
        let written = name.dotted();
        let found = self.name(&written, name.span)?;
        if let Value::Type(t) = found {
            return Ok(t);
        }
        let of_elements = match &*written {
            "int" => "; elements that are integers are `i32`",
            "float" => "; elements that are floats are `f32`",
            "string" => "",
            _ => return Err(self.expected("an element type", &found, name.span)),
        };
        let message = format!("`{written}` is a type of static values, not of elements");
        let help = format!("a static value has its name from `let`: `let n: {written} = …;`{of_elements}");
        Err(self.error_help("elaborate::type_mismatch", name.span, message, help))
    }

    /// Checks a value against a type, binds sizes, and converts static numbers; returns the converted value.
    pub fn fit(&mut self, value: Value, ty: &ast::Type, sizes: &mut Sizes, span: Span) -> Result<Value> {
        if value.is_error() {
            return Err(Failed);
        }
        match &ty.kind {
            TypeKind::List(inner) => match value {
                Value::List(items) => {
                    let fitted: Result<Vec<_>> =
                        items.iter().map(|i| self.fit(i.clone(), inner, sizes, span)).collect();
                    Ok(Value::List(Arc::new(fitted?)))
                }
                other => Err(self.expected_by(sizes.parameter, "a list", &other, span)),
            },
            TypeKind::Tuple(parts) => match value {
                Value::Unit if parts.is_empty() => Ok(Value::Unit),
                Value::Tuple(t) if t.values.len() == parts.len() => {
                    let stated = parts.iter().map(|(name, _)| name.as_ref().map(|n| &n.name));
                    self.are_named(stated, &t, span)?;
                    let mut out = Tuple { names: vec![], values: vec![] };
                    for ((name, part), (own, v)) in parts.iter().zip(t.names.iter().zip(&t.values)) {
                        out.values.push(self.fit(v.clone(), part, sizes, span)?);
                        out.names.push(name.as_ref().map_or(own.clone(), |n| n.name.clone()));
                    }
                    Ok(Value::Tuple(Arc::new(out)))
                }
                other => {
                    let what = format!("a tuple of {}", parts.len());
                    Err(self.expected_by(sizes.parameter, &what, &other, span))
                }
            },
            TypeKind::Name { name, dims } => self.fit_name(value, name, dims.as_deref(), sizes, span),
        }
    }

    /// Checks that no member of a tuple has another name than the one wanted at its place.
    pub fn are_named<'n>(
        &mut self,
        wanted: impl Iterator<Item = Option<&'n SmolStr>>,
        tuple: &'n Tuple,
        span: Span,
    ) -> Result<()> {
        let given = tuple.names.iter().map(named);
        match girder_typing::misplaced("elaborate::type_mismatch", wanted, given, span) {
            Some(d) => Err(self.report(d)),
            None => Ok(()),
        }
    }

    fn fit_name(
        &mut self,
        value: Value,
        name: &ast::Path,
        dims: Option<&[Dim]>,
        sizes: &mut Sizes,
        span: Span,
    ) -> Result<Value> {
        let dotted = name.dotted();
        if dims.is_none() {
            let kind = match (dotted.as_str(), &value) {
                ("int", Value::Int(_)) | ("float", Value::Float(_)) | ("bool", Value::Bool(_)) => return Ok(value),
                ("string", Value::Str(_)) | ("place", Value::Place(_)) | ("range", Value::Range(_)) => {
                    return Ok(value);
                }
                ("type", Value::Type(_)) | ("fn", Value::Fn(..) | Value::Closure(_) | Value::Builtin(_)) => {
                    return Ok(value);
                }
                ("float", Value::Int(i)) => return Ok(Value::Float(*i as f64)),
                ("bool", Value::Tensor(_)) => None,
                ("int", _) => Some("an integer"),
                ("float", _) => Some("a static float"),
                ("bool", _) => Some("a static bool"),
                ("string", _) => Some("a string"),
                ("place", _) => Some("a place"),
                ("range", _) => Some("a range"),
                ("type", _) => Some("a type"),
                ("fn", _) => Some("a function"),
                _ => None,
            };
            if let Some(what) = kind {
                return Err(self.expected_by(sizes.parameter, what, &value, span));
            }
        }
        let tensor = match value {
            Value::Tensor(t) => t,
            ref number @ (Value::Int(_) | Value::Float(_) | Value::Bool(_)) if dims.is_none_or(<[_]>::is_empty) => {
                let ty = self.wanted_elem(name, &dotted, sizes, number)?;
                let s = self.scalar(number, ty, span)?;
                Arc::new(self.constant(s, span)?)
            }
            other => {
                let what = format!("a tensor of type {}", self.type_text(&dotted, dims));
                return Err(self.expected_by(sizes.parameter, &what, &other, span));
            }
        };
        self.fit_elem(&dotted, name.span, tensor.ty, sizes, span)?;
        self.fit_dims(&dotted, dims.unwrap_or_default(), &tensor, sizes, span)?;
        Ok(Value::Tensor(tensor))
    }

    /// Returns the element type that a static number takes for a parameter of tensor type `name`.
    fn wanted_elem(&mut self, path: &ast::Path, name: &str, sizes: &Sizes, number: &Value) -> Result<ElemType> {
        if let Some(Value::Type(t)) = sizes.get(name) {
            return Ok(*t);
        }
        if sizes.generics.iter().any(|(n, _)| n == name) {
            return Ok(match number {
                Value::Float(_) => ElemType::F32,
                Value::Bool(_) => ElemType::Bool,
                _ => ElemType::I32,
            });
        }
        self.elem_type(path)
    }

    fn fit_elem(&mut self, name: &str, at: Span, found: ElemType, sizes: &mut Sizes, span: Span) -> Result<()> {
        if let Some((_, class)) = sizes.generics.iter().find(|(n, _)| n == name).cloned() {
            let ok = match class.as_str() {
                "float" => found.is_float(),
                "number" => found.is_number(),
                _ => true,
            };
            if !ok {
                let message = format!("`{name}` is a {class} type, but this tensor holds {found}");
                let help = match (class.as_str(), found) {
                    ("number", ElemType::Bool) => "`i32(…)` or `f32(…)` makes numbers of it, 1 for true",
                    ("number", _) => "convert it: `i32(…)` or `f32(…)`",
                    _ => "convert it: `f32(…)`",
                };
                return Err(self.error_help("elaborate::type_mismatch", span, message, help));
            }
            return match sizes.get(name) {
                Some(Value::Type(t)) if *t != found => {
                    let message = format!("`{name}` is {t} from an earlier argument, but this tensor holds {found}");
                    Err(self.error_help("elaborate::type_mismatch", span, message, format!("convert it: `{t}(…)`")))
                }
                Some(_) => Ok(()),
                None => {
                    sizes.bound.push((name.into(), Value::Type(found)));
                    Ok(())
                }
            };
        }
        match self.name(&name.into(), at)? {
            Value::Type(t) if t == found => Ok(()),
            Value::Type(t) => {
                let message = format!("expected elements of type {t}, found {found}");
                Err(self.error_help("elaborate::type_mismatch", span, message, format!("convert it: `{t}(…)`")))
            }
            other => Err(self.expected("an element type", &other, at)),
        }
    }

    fn fit_dims(&mut self, name: &str, dims: &[Dim], tensor: &Tensor, sizes: &mut Sizes, span: Span) -> Result<()> {
        let shape = tensor.view.shape();
        let spread = dims.iter().filter(|d| !matches!(d, Dim::Expr(_))).count();
        let fixed = dims.len() - spread;
        if (spread == 0 && shape.len() != fixed) || shape.len() < fixed || spread > 1 {
            let wanted = self.type_text(name, Some(dims));
            let message = format!("expected a tensor {wanted}, found {}", tensor.type_name());
            return Err(self.error("elaborate::shape_mismatch", span, message));
        }
        let mut at = 0;
        for (axis, d) in dims.iter().enumerate() {
            match d {
                Dim::Spread(s) => {
                    let count = shape.len() - fixed;
                    let list: Vec<Value> = shape[at..at + count].iter().map(|&n| Value::Int(n as i64)).collect();
                    at += count;
                    self.bind_size(&s.name, Value::List(Arc::new(list)), sizes, span, axis, tensor)?;
                }
                Dim::Shape(e) => {
                    let count = shape.len() - fixed;
                    let found = &shape[at..at + count];
                    at += count;
                    let at = self.tree().exprs[*e].span;
                    let wanted = self.with_sizes(sizes, |this| this.expr(*e))?;
                    let wanted = self.sizes(&wanted, at)?;
                    if wanted != found {
                        let message =
                            format!("expected the lengths {wanted:?}, found {found:?} in this {}", tensor.type_name());
                        let d = girder_source::Diagnostic::error("elaborate::shape_mismatch", span, message);
                        return Err(self.report(d.label(at, "stated here")));
                    }
                }
                Dim::Expr(e) => {
                    let found = shape[at] as i64;
                    at += 1;
                    match &self.tree().exprs[*e].kind {
                        ExprKind::Name(n) if !self.is_known(n) => {
                            self.bind_size(n, Value::Int(found), sizes, span, axis, tensor)?;
                        }
                        _ => {
                            let wanted = self.with_sizes(sizes, |this| this.int(*e))?;
                            if wanted != found {
                                return Err(self.wrong_size(*e, axis, wanted, found, tensor, span));
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether a bare name in a dimension already has a value, as a constant of the module. The names of
    /// functions and variables, which can be no length, are free as names of sizes.
    fn is_known(&self, name: &str) -> bool {
        let found = self.modules.find(self.module(), name, |m| &m.values);
        let item = found.and_then(|(m, entry)| self.modules.item(m, entry));
        let kind = item.map(|(_, _, item)| &item.kind);
        let is_free = matches!(kind, Some(ast::ItemKind::Fn(_) | ast::ItemKind::Decl(ast::Decl::Var(_))));
        found.is_some() && !is_free || matches!(name, "tiles" | "workers" | "ipus")
    }

    fn bind_size(
        &mut self,
        name: &SmolStr,
        found: Value,
        sizes: &mut Sizes,
        span: Span,
        axis: usize,
        tensor: &Tensor,
    ) -> Result<()> {
        match (sizes.get(name), &found) {
            (None, _) => {
                sizes.bound.push((name.clone(), found));
                Ok(())
            }
            (Some(Value::Int(a)), Value::Int(b)) if a == b => Ok(()),
            (Some(Value::Int(a)), Value::Int(b)) => {
                let (a, b) = (*a, *b);
                let message = format!(
                    "`{name}` is {a} from an earlier argument, but axis {axis} of this {} has {b}",
                    tensor.type_name()
                );
                Err(self.error("elaborate::shape_mismatch", span, message))
            }
            (Some(Value::List(a)), Value::List(b)) => {
                let ints =
                    |l: &[Value]| l.iter().map(|v| if let Value::Int(i) = v { *i } else { -1 }).collect::<Vec<_>>();
                if ints(a) == ints(b) {
                    return Ok(());
                }
                let message = format!("`..{name}` is {:?} from an earlier argument, but {:?} here", ints(a), ints(b));
                Err(self.error("elaborate::shape_mismatch", span, message))
            }
            (Some(_), _) => Err(self.error("elaborate::shape_mismatch", span, format!("`{name}` is not a size"))),
        }
    }

    fn wrong_size(
        &mut self,
        size: ast::ExprId,
        axis: usize,
        wanted: i64,
        found: i64,
        tensor: &Tensor,
        span: Span,
    ) -> Failed {
        let message =
            format!("axis {axis} of this {} has {found} elements, but {wanted} are needed", tensor.type_name());
        match &self.tree().exprs[size].kind {
            // The name of a constant does not bind a size.
            ExprKind::Name(name) if self.is_known(name) => {
                let help = format!("`{name}` is a constant, {wanted}; give the size of the parameter another name");
                self.error_help("elaborate::shape_mismatch", span, message, help)
            }
            _ => self.error("elaborate::shape_mismatch", span, message),
        }
    }

    /// Evaluates with the bound sizes in scope.
    pub fn with_sizes<T>(&mut self, sizes: &Sizes, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mark = self.scopes.mark();
        for (n, v) in &sizes.bound {
            self.define(n.clone(), v.clone(), false);
        }
        let value = f(self);
        self.scopes.release(mark);
        value
    }

    fn type_text(&self, name: &str, dims: Option<&[Dim]>) -> String {
        let Some(dims) = dims.filter(|d| !d.is_empty()) else { return name.to_string() };
        let tree = self.tree();
        let text = |d: &Dim| match d {
            Dim::Spread(s) => format!("..{}", s.name),
            Dim::Shape(e) => format!("..{}", crate::trees::dotted(tree, *e).unwrap_or("…".into())),
            Dim::Expr(e) => match &tree.exprs[*e].kind {
                ExprKind::Name(n) => n.to_string(),
                ExprKind::Int { text, .. } => text.to_string(),
                _ => "…".to_string(),
            },
        };
        format!("{name}[{}]", dims.iter().map(text).collect::<Vec<_>>().join(", "))
    }

    /// Returns a view of `tensor` broadcast to a shape.
    pub fn broadcast(&mut self, tensor: &Tensor, shape: &[u64], span: Span) -> Result<View> {
        self.bounded_shape(shape, tensor.ty, span)?;
        match tensor.view.broadcast_to(shape) {
            Some(v) => Ok(v),
            None => {
                let to = crate::value::shaped(tensor.ty, shape);
                let message = format!("{} does not broadcast to {to}", tensor.type_name());
                Err(self.error("elaborate::shape_mismatch", span, message))
            }
        }
    }
}

/// Returns the name of a member of a tuple, if it has one.
pub fn named(name: &SmolStr) -> Option<&SmolStr> {
    Some(name).filter(|name| !name.is_empty())
}
