//! The generic arguments of a codelet function: named ones, types inferred from the arguments, sizes inferred from
//! their dimensions.
//!
//! Invariant: when the body is read, every generic is bound to a type or an integer of its class.

use super::builder::Builder;
use super::call::Argument;
use super::header::{Class, generic_class};
use super::value::{Bound, Value};
use girder_ir::types::ElemType;
use girder_source::Diagnostic;
use girder_syntax::ast;

impl<'a> Builder<'a, '_> {
    /// Binds the generics of a function: those given by name, and types inferred from the elements of the arguments.
    pub(super) fn generics(
        &mut self,
        item: &'a ast::Fn,
        slots: &[Option<Argument<'a>>],
        named: Vec<Argument<'a>>,
    ) -> bool {
        for g in &item.generics {
            let Some(class) = self.generic_class(g) else { return false };
            let given = named.iter().find(|a| a.name.is_some_and(|n| n.name == g.name.name));
            let value = match (class, given) {
                (Class::Int, None) => continue,
                (Class::Int, Some(a)) => match self.static_value(&a.value, "this argument", a.span) {
                    Some(v) => Value::Int(v.into()),
                    None => return false,
                },
                (Class::Fn, Some(Argument { value: Value::Fn(f), .. })) => Value::Fn(f.clone()),
                (Class::Fn, _) => {
                    let at = given.map_or(self.frame().call, |a| a.span);
                    let message = format!("the function `{}` is passed by name", g.name.name);
                    let d = Diagnostic::error("codelet::generic", at, message).label(g.name.span, "declared here");
                    self.report(d.help("only a generic of the codelet can be passed on"));
                    return false;
                }
                (_, Some(Argument { value: Value::Type(ty), .. })) => Value::Type(*ty),
                (_, Some(a)) => {
                    self.error("codelet::generic", a.span, format!("`{}` is a type", g.name.name));
                    return false;
                }
                (class, None) => match self.inferred(item, g, class, slots) {
                    Some(ty) => Value::Type(ty),
                    None => return false,
                },
            };
            if let Value::Type(ty) = value
                && !class.holds(ty)
            {
                let call = self.frame().call;
                let message = format!("`{}` is a `{}`, which `{ty}` is not", g.name.name, class.name());
                let d = Diagnostic::error("codelet::generic", call, message).label(g.name.span, "declared here");
                self.report(match (class, ty) {
                    (Class::Float, ty) if ty.is_int() => d.help("convert the argument: `f32(…)`"),
                    (Class::Float | Class::Number, ElemType::Bool) => {
                        d.help("`i32(…)` or `f32(…)` makes numbers of it, 1 for true")
                    }
                    _ => d,
                });
                return false;
            }
            self.bind(&g.name, value, Bound::Generic);
        }
        true
    }

    fn generic_class(&mut self, g: &'a ast::Generic) -> Option<Class> {
        match generic_class(g) {
            Ok(c) => Some(c),
            Err(d) => {
                self.report(d);
                None
            }
        }
    }

    /// Infers the type of a generic from the arguments: the type of the typed ones, else the default of literals.
    fn inferred(
        &mut self,
        item: &'a ast::Fn,
        g: &ast::Generic,
        class: Class,
        slots: &[Option<Argument<'a>>],
    ) -> Option<ElemType> {
        let mut fallback = None;
        for (p, slot) in item.params.iter().zip(slots) {
            let (Some(ast::Type { kind: ast::TypeKind::Name { name, .. }, .. }), Some(a)) = (&p.ty, slot) else {
                continue;
            };
            if name.dotted() != g.name.name {
                continue;
            }
            let ty = match &a.value {
                Value::Bool(_) => Some(ElemType::Bool),
                Value::Scalar(e) => self.types.known(self.expr_types[*e]),
                Value::View(v) => self.types.known(self.element_type(v.base)),
                _ => None,
            };
            if ty.is_some() {
                return ty;
            }
            let literal = match &a.value {
                Value::Scalar(e) => self.types.default_of(self.expr_types[*e]),
                Value::View(v) => self.types.default_of(self.element_type(v.base)),
                Value::Float(_) => ElemType::F32,
                _ => ElemType::I64,
            };
            let float = literal.is_float() || class == Class::Float;
            fallback = Some(if float || fallback == Some(ElemType::F32) { ElemType::F32 } else { literal });
        }
        if fallback.is_none() {
            let call = self.frame().call;
            let d =
                Diagnostic::error("codelet::generic", call, format!("the type `{}` cannot be inferred", g.name.name));
            self.report(d.label(g.name.span, "declared here").help(format!("pass it by name: `{}: f32`", g.name.name)));
        }
        fallback
    }
}
