//! Codelets of scalars in which calls stay apart ([`Apart`]): of a codelet function, and of a codelet.
//!
//! Invariant: the first fields are operands, the others results; all are scalars.

use super::apart::{Apart, CallApart};
use super::builder::Builder;
use super::call::Argument;
use super::specialise::fields_of;
use super::types::Ty;
use super::value::Value;
use super::{ModuleRef, Scope};
use girder_ir::codelet::{Check, Codelet, Dir, ExprKind, FieldDecl, Stmt};
use girder_ir::ids::ExprId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostics, Failed, Result, Session, Span};
use girder_syntax::ast;
use smol_str::format_smolstr;

/// Returns a codelet that applies a function to scalars of some types: it has a field for each argument, and then one
/// for each result.
pub fn scalar_function<'a>(
    scope: &'a dyn Scope,
    (module, item): (ModuleRef, &'a ast::Fn),
    args: &[ElemType],
    at: Span,
    session: &'a Session,
    diagnostics: &mut Diagnostics,
) -> Result<Apart<'a>> {
    let mut b = Builder::new(scope, module, session, diagnostics);
    let field = |dir, name, ty| FieldDecl { name, dir, ty, dims: Default::default(), align: 1, span: at };
    let mut list = vec![];
    for (k, &ty) in args.iter().enumerate() {
        let known = Ty::Known(b.supported(ty, at).ok_or(Failed)?);
        let field = b.out.fields.push(field(Dir::In, format_smolstr!("x{k}"), ty));
        let site = b.site(Check::Index, at, None);
        let e = b.push(ExprKind::Load { field, index: Default::default(), site }, known, at);
        list.push(Argument { name: None, value: Value::Scalar(e), span: at });
    }
    let value = b.inline(module, item, list, at);
    let members = match value {
        Value::Tuple(list) => list.into_iter().map(|(_, v)| v).collect(),
        one => vec![one],
    };
    for (k, value) in members.into_iter().enumerate() {
        let value = b.scalar(value, at).ok_or(Failed)?;
        // The type is corrected below, once it is decided.
        let field = b.out.fields.push(field(Dir::Out, format_smolstr!("y{k}"), ElemType::F32));
        let site = b.site(Check::Index, at, None);
        b.emit(Stmt::Store { field, index: Default::default(), value, site });
    }
    let mut apart = b.finish_apart()?;
    let Codelet { body, exprs, fields, .. } = &mut apart.codelet;
    for stmt in body {
        if let Stmt::Store { field, value, .. } = stmt {
            fields[*field].ty = exprs[*value].ty;
        }
    }
    Ok(apart)
}

/// Returns a codelet without generics whose calls stay apart.
pub fn codelet_apart<'a>(
    scope: &'a dyn Scope,
    module: ModuleRef,
    item: &'a ast::Codelet,
    session: &'a Session,
    diagnostics: &mut Diagnostics,
) -> Result<Apart<'a>> {
    let mut b = Builder::new(scope, module, session, diagnostics);
    fields_of(&mut b, item)?;
    b.statements(&item.body, false);
    b.finish_apart()
}

impl<'a> Builder<'a, '_> {
    fn finish_apart(mut self) -> Result<Apart<'a>> {
        let calls = std::mem::take(&mut self.apart);
        Ok(Apart { codelet: self.finish()?, calls })
    }

    /// Translates the body of a function whose calls stay apart; returns its value.
    pub(super) fn body_apart(&mut self, module: ModuleRef, item: &'a ast::Fn, span: Span) -> Value {
        let args = item.params.iter().map(|p| match self.binding(&p.name.name)?.value.clone() {
            Value::View(_) | Value::Tuple(_) | Value::Fn(_) | Value::Type(_) => None,
            value => self.scalar(value, span).map(|e| self.again(e)),
        });
        let args = args.collect();
        let generic = |g: &ast::Generic| match self.binding(&g.name.name)?.value {
            Value::Int(v) => Some((g.name.name.clone(), v)),
            _ => None,
        };
        let generics = item.generics.iter().filter_map(generic).collect();
        let mut args: Option<Vec<ExprId>> = args;
        let (value, body) = self.block(|s| {
            let value = s.function_body(item);
            let members = match &value {
                Value::Tuple(list) => list.iter().map(|(_, v)| v).collect(),
                one => vec![one],
            };
            if !members.iter().all(|v| is_scalar(v)) {
                args = None;
                return value;
            }
            let holder = s.holder(&value, span);
            s.hold(&holder, value, span);
            holder
        });
        let members = match &value {
            Value::Tuple(list) => list.iter().map(|(_, v)| v).collect(),
            one => vec![one],
        };
        let local = |v: &&Value| match v {
            Value::Scalar(e) => match self.out.exprs[*e].kind {
                ExprKind::Local(local) => Some(local),
                _ => None,
            },
            _ => None,
        };
        let results = members.iter().filter_map(local).collect();
        let label = self.label();
        let is_scalar = args.is_some();
        self.apart.insert(label, CallApart { module, item, args, generics, results, span });
        self.emit(Stmt::Labelled { label, body });
        if is_scalar { self.held(value, span) } else { value }
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Scalar(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_))
}
