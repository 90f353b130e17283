//! Stated types: the check of a value against `: f32[n]`, the sizes that the type binds, and constants of types.
//!
//! Invariant: an accepted value has the stated element type and rank; a length that is not statically right has a
//! check.

use super::builder::Builder;
use super::types::{BOOL, Class, Ty};
use super::value::{Bound, Literal, Value, View};
use girder_ir::codelet::{BinaryOp, Check, ExprKind, Stmt};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// The element types that a stated type accepts.
#[derive(Clone, Copy)]
pub(super) enum Constraint {
    /// Exactly this type.
    Type(ElemType),
    /// Any type of a class.
    Class(Class),
    /// Any element type.
    Any,
}

/// Returns the error of a tuple with a member of another name than the one wanted at its place.
pub fn misplaced<'n>(
    code: &'static str,
    wanted: impl Iterator<Item = Option<&'n SmolStr>>,
    given: impl Iterator<Item = Option<&'n SmolStr>>,
    span: Span,
) -> Option<Diagnostic> {
    let pairs = wanted.zip(given).enumerate();
    let (k, (wanted, given)) = pairs.filter_map(|(k, (a, b))| Some((k, a.zip(b)?))).find(|(_, (a, b))| a != b)?;
    let message = format!("member {k} of this tuple is `{given}`, but `{wanted}` is wanted there");
    Some(Diagnostic::error(code, span, message).help("give the members in one order everywhere, or without names"))
}

impl<'a> Builder<'a, '_> {
    /// Checks a value against `: type`; returns the converted value.
    pub(super) fn typed(&mut self, value: Value, ty: &'a ast::Type, span: Span) -> Value {
        match (&ty.kind, value) {
            (_, Value::Error) => Value::Error,
            (ast::TypeKind::Tuple(types), Value::Tuple(list)) if types.len() == list.len() => {
                let stated = types.iter().map(|(name, _)| name.as_ref().map(|n| &n.name));
                if !self.are_named(stated, list.iter().map(|(name, _)| name.as_ref()), span) {
                    return Value::Error;
                }
                let members = types.iter().zip(list).map(|((name, ty), (old, v))| {
                    let name = name.as_ref().map(|n| n.name.clone()).or(old);
                    let v = self.deeper(span, |s| s.typed(v, ty, span)).unwrap_or(Value::Error);
                    (name, v)
                });
                Value::Tuple(members.collect())
            }
            (ast::TypeKind::Name { name, dims }, value) => {
                self.typed_by_name(value, &name.dotted(), dims.as_deref(), ty.span, span)
            }
            (_, value) => {
                let message = format!("{} does not have this type", value.noun());
                self.report(Diagnostic::error("codelet::type_mismatch", span, message).label(ty.span, "stated here"));
                Value::Error
            }
        }
    }

    /// Reports members of a tuple that have other names than those wanted at their places; a member without a name has
    /// that of its place.
    pub(super) fn are_named<'n>(
        &mut self,
        wanted: impl Iterator<Item = Option<&'n SmolStr>>,
        given: impl Iterator<Item = Option<&'n SmolStr>>,
        span: Span,
    ) -> bool {
        let Some(d) = misplaced("codelet::type_mismatch", wanted, given, span) else { return true };
        self.report(d);
        false
    }

    fn typed_by_name(
        &mut self,
        value: Value,
        name: &SmolStr,
        dims: Option<&'a [ast::Dim]>,
        at: Span,
        span: Span,
    ) -> Value {
        let Some(constraint) = self.type_name(name, at) else { return Value::Error };
        match (value, dims.filter(|d| !d.is_empty())) {
            (Value::View(v), Some(dims)) => {
                let element = self.element_type(v.base);
                if !self.meets(element, constraint) {
                    let is = self.types.describe(element);
                    return self.error("codelet::type_mismatch", span, format!("the elements are {is}, not `{name}`"));
                }
                if self.dimensions(&v, dims, at, span) { Value::View(v) } else { Value::Error }
            }
            (value @ Value::View(_), None) | (value, Some(_)) => {
                let rank = |n: usize| if n == 0 { "a scalar".to_string() } else { format!("an array of rank {n}") };
                let is = if let Value::View(v) = &value { v.rank() } else { 0 };
                let message = format!("this is {}, where {} is needed", rank(is), rank(dims.map_or(0, <[_]>::len)));
                self.report(Diagnostic::error("codelet::rank_mismatch", span, message).label(at, "stated here"));
                Value::Error
            }
            (value, None) => match constraint {
                Constraint::Type(ty) => self.coerce(value, Ty::Known(ty), span).map_or(Value::Error, Value::Scalar),
                Constraint::Class(class) => self.narrowed(value, class, span).map_or(Value::Error, Value::Scalar),
                Constraint::Any => value,
            },
        }
    }

    fn meets(&mut self, ty: Ty, constraint: Constraint) -> bool {
        match constraint {
            Constraint::Type(t) => self.types.unify(ty, Ty::Known(t)),
            Constraint::Class(c) => self.types.narrow(ty, c),
            Constraint::Any => true,
        }
    }

    /// Returns the constraint that the name of a type stands for.
    pub(super) fn type_name(&mut self, name: &str, span: Span) -> Option<Constraint> {
        match name {
            "float" => return Some(Constraint::Class(Class::Float)),
            "number" => return Some(Constraint::Class(Class::Number)),
            "element" => return Some(Constraint::Any),
            _ => {}
        }
        match self.name(name, span) {
            Some(Value::Type(ty)) => Some(Constraint::Type(ty)),
            Some(Value::Error) => None,
            _ => {
                self.error("codelet::type_mismatch", span, format!("`{name}` is not a type"));
                None
            }
        }
    }

    /// Binds the size names of stated dimensions, and checks the others.
    pub(super) fn dimensions(&mut self, view: &View, dims: &'a [ast::Dim], at: Span, span: Span) -> bool {
        if dims.len() != view.rank() {
            let message = format!("this has rank {}, where rank {} is needed", view.rank(), dims.len());
            self.report(Diagnostic::error("codelet::rank_mismatch", span, message).label(at, "stated here"));
            return false;
        }
        let mut right = true;
        for (i, dim) in dims.iter().enumerate() {
            let e = match dim {
                ast::Dim::Expr(e) => *e,
                ast::Dim::Spread(_) | ast::Dim::Shape(_) => {
                    self.not_here(at, "a codelet has no `..` dimensions", "write one name per dimension");
                    return false;
                }
            };
            let node = &self.tree().exprs[e];
            let len = self.length(view, i, span);
            if let ast::ExprKind::Name(name) = &node.kind
                && self.binding(name).is_none()
            {
                let name = ast::Ident { name: name.clone(), span: node.span };
                self.bind_kept(&name, Value::Scalar(len), Bound::Size);
                continue;
            }
            let value = self.expr(e);
            let Some(needed) = self.index_value(value, node.span) else { return false };
            right &= self.equal_lengths(len, needed, [span, node.span]);
        }
        right
    }

    fn equal_lengths(&mut self, len: ExprId, needed: ExprId, spans: [Span; 2]) -> bool {
        if self.same_leaf(len, needed) {
            return true;
        }
        if let (Some(is), Some(needed)) = (self.const_int(len), self.const_int(needed)) {
            let message = format!("this has {is} elements, where {needed} are needed");
            let d = Diagnostic::error("codelet::rank_mismatch", spans[0], message);
            self.report(d.label(spans[1], "stated here"));
            return false;
        }
        let cond = self.push(ExprKind::Binary { op: BinaryOp::Eq, a: len, b: needed, site: None }, BOOL, spans[0]);
        let site = self.site(Check::Assert, spans[0], Some("the array does not have the length stated".into()));
        self.emit(Stmt::Assert { cond, site });
        true
    }

    /// Returns the length of a dimension, for one more use.
    pub(super) fn length(&mut self, view: &View, dim: usize, span: Span) -> ExprId {
        match view.range(dim).map(|r| r.len) {
            Some(e) => self.again(e),
            None => self.int(0, span),
        }
    }

    /// Returns a constant of an element type: `f32.inf`, `i32.max`.
    pub(super) fn type_constant(&mut self, ty: ElemType, name: &ast::Ident, span: Span) -> Value {
        let width = ty.bytes() * 8;
        let int = match name.name.as_str() {
            "max" if ty.is_signed_int() => Some((1i128 << (width - 1)) - 1),
            "max" if ty.is_int() => Some((1i128 << width) - 1),
            "min" if ty.is_signed_int() => Some(-(1i128 << (width - 1))),
            "min" if ty.is_int() => Some(0),
            _ => None,
        };
        let float = match (name.name.as_str(), ty) {
            ("max", ElemType::F32) => Some(f32::MAX.into()),
            ("max", ElemType::F64) => Some(f64::MAX),
            ("min", ElemType::F32) => Some(f32::MIN.into()),
            ("min", ElemType::F64) => Some(f64::MIN),
            ("epsilon", ElemType::F32) => Some(f32::EPSILON.into()),
            ("epsilon", ElemType::F64) => Some(f64::EPSILON),
            ("inf", _) if ty.is_float() => Some(f64::INFINITY),
            ("nan", _) if ty.is_float() => Some(f64::NAN),
            _ => None,
        };
        match (int, float) {
            (Some(v), _) => Value::Scalar(self.literal(Literal::Int(v), Ty::Known(ty), span)),
            (_, Some(v)) => self.convert(ty, Value::Float(v), span),
            _ => self.no_member(&format!("`{ty}`"), name),
        }
    }
}
