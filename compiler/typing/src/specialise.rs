//! Translation of a codelet's syntax and generic arguments to the typed codelet.
//!
//! Invariant: a size is bound by the first dimension that is its bare name; every other dimension is a number or an
//! expression, against which vertices are checked.

use super::builder::Builder;
use super::call::Argument;
use super::header::{Header, HeaderType, header, wrong_generics};
use super::types::{INT, Ty};
use super::value::{Bound, Value};
use super::{ModuleRef, Scope};
use girder_ir::codelet::{Codelet, DimDecl, Dir, ExprKind, FieldDecl, GenericArg, Storage};
use girder_ir::ids::{ExprId, FieldId};
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Session, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// Maximal alignment of a field, in bytes.
const MAX_ALIGN: u32 = 4096;

/// Returns the typed codelet for generic arguments that [`infer_args`](super::infer_args) returned.
pub fn specialise(
    scope: &dyn Scope,
    module: ModuleRef,
    item: &ast::Codelet,
    attrs: &[ast::Attr],
    args: &[GenericArg],
    session: &Session,
    diagnostics: &mut Diagnostics,
) -> Result<Codelet> {
    let header = header(scope, module, item, diagnostics)?;
    if !check_args(&header, args, diagnostics) {
        return Err(Failed);
    }
    let mut b = Builder::new(scope, module, session, diagnostics);
    b.out.name = item.name.dotted();
    b.out.args = args.to_vec();
    b.out.multi = item.multi;
    b.out.span = item.name.span;
    b.bind_generics(item, args);
    b.bind_fields(item, &header, args);
    b.codelet_attributes(attrs);
    b.statements(&item.body, false);
    let codelet = b.finish()?;
    if let Err(refusal) = girder_codelet::cost::check(&codelet) {
        diagnostics.push(not_pipelined(attrs, &codelet, refusal));
        return Err(Failed);
    }
    Ok(codelet)
}

/// Binds the fields of a codelet without generics.
pub(super) fn fields_of<'a>(b: &mut Builder<'a, '_>, item: &'a ast::Codelet) -> Result<()> {
    let module = b.frame().module;
    let header = header(b.scope, module, item, b.diagnostics)?;
    b.bind_fields(item, &header, &[]);
    Ok(())
}

fn not_pipelined(attrs: &[ast::Attr], codelet: &Codelet, refusal: girder_codelet::cost::Refusal) -> Diagnostic {
    let message = format!("`{}` cannot be pipelined: {}", codelet.name, refusal.reason);
    let mut d = Diagnostic::error("codelet::pipelined", refusal.span, message);
    if let Some(a) = attrs.iter().find(|a| a.name.name == "pipelined") {
        d = d.label(a.name.span, "asked for here");
    }
    d.help(
        "leave `#[pipelined]` out, or write the innermost loops so that their iterations do not depend on each other",
    )
}

/// What a codelet function returns for scalars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Results {
    /// A scalar.
    One(ElemType),
    /// A tuple of scalars, perhaps with names.
    Tuple(Vec<(Option<SmolStr>, ElemType)>),
}

/// Returns the element types that a codelet function returns for scalars of these types; `at` is the span of the call.
pub fn result_types(
    scope: &dyn Scope,
    module: ModuleRef,
    item: &ast::Fn,
    args: &[ElemType],
    at: Span,
    session: &Session,
    diagnostics: &mut Diagnostics,
) -> Result<Results> {
    let mut b = Builder::new(scope, module, session, diagnostics);
    let mut list = vec![];
    for &ty in args {
        let ty = b.supported(ty, at).ok_or(Failed)?;
        let local = b.local("", Ty::Known(ty), false, at);
        let value = Value::Scalar(b.read_local(local, at));
        list.push(Argument { name: None, value, span: at });
    }
    let value = b.inline(module, item, list, at);
    let f = item.name.dotted();
    match value {
        Value::Tuple(list) if list.iter().any(|(_, v)| matches!(v, Value::Tuple(_))) => {
            let d = Diagnostic::error("codelet::elementwise", at, format!("`{f}` gives a tuple inside a tuple"));
            b.report(d.help("let it give one tuple of numbers, or call it inside a codelet"));
        }
        Value::Tuple(list) => {
            let members: Option<Vec<_>> = list.into_iter().map(|(n, v)| b.scalar(v, at).map(|e| (n, e))).collect();
            if let Some(members) = members {
                let ty = |codelet: &Codelet, (n, e)| (n, codelet.exprs[e].ty);
                return b
                    .finish()
                    .map(|codelet| Results::Tuple(members.into_iter().map(|m| ty(&codelet, m)).collect()));
            }
        }
        Value::Unit | Value::Never => {
            b.report(Diagnostic::error("codelet::missing_value", at, format!("`{f}` gives no value")));
        }
        value => {
            if let Some(e) = b.scalar(value, at) {
                return b.finish().map(|codelet| Results::One(codelet.exprs[e].ty));
            }
        }
    }
    Err(Failed)
}

fn check_args(header: &Header, args: &[GenericArg], diagnostics: &mut Diagnostics) -> bool {
    let mut given: Vec<_> = args.iter().cloned().map(Some).collect();
    given.resize(header.generics.len(), None);
    let wrong = wrong_generics(header, &given, header.span);
    let ok = wrong.is_empty();
    diagnostics.extend(wrong);
    ok
}

impl<'a> Builder<'a, '_> {
    fn bind_generics(&mut self, item: &'a ast::Codelet, args: &[GenericArg]) {
        for (g, arg) in item.generics.iter().zip(args) {
            let value = match arg {
                GenericArg::Type(ty) => Value::Type(*ty),
                GenericArg::Int(v) => Value::Int((*v).into()),
                GenericArg::Fn(name) => Value::Fn(name.clone()),
            };
            self.bind(&g.name, value, Bound::Generic);
        }
    }

    /// Declares sizes and fields. All sizes are in scope in every dimension.
    fn bind_fields(&mut self, item: &'a ast::Codelet, header: &Header, args: &[GenericArg]) {
        let names: Vec<_> = item.fields.iter().flat_map(dims).filter_map(|d| self.bare_name(d)).collect();
        for name in names {
            if self.binding(&name.name).is_some() {
                continue;
            }
            if let Some(f) = header.fields.iter().find(|f| f.name == name.name) {
                let message = format!("`{}` is a field, and a dimension is a size", name.name);
                let d = Diagnostic::error("codelet::dimension", name.span, message).label(f.span, "this field");
                self.report(d.help("name the size differently, and `assert` what it must be"));
            }
            let size = self.out.sizes.push(name.name.clone());
            let e = self.push(ExprKind::Size(size), INT, name.span);
            self.bind(&name, Value::Scalar(e), Bound::Size);
        }
        let mut lengths: Vec<Vec<ExprId>> = vec![];
        for (f, h) in item.fields.iter().zip(&header.fields) {
            let align = self.alignment(&f.attrs);
            let found: Vec<_> = dims(f).map(|d| self.dimension(d)).collect();
            lengths.push(found.iter().map(|(_, len)| *len).collect());
            let ty = match h.ty {
                HeaderType::Elem(ty) => ty,
                HeaderType::Generic(g) => match args.get(g) {
                    Some(GenericArg::Type(ty)) => *ty,
                    _ => ElemType::F32,
                },
            };
            let dims = found.into_iter().map(|(d, _)| d).collect();
            self.out.fields.push(FieldDecl { name: h.name.clone(), dir: h.dir, ty, dims, align, span: h.span });
        }
        for (i, (f, lengths)) in item.fields.iter().zip(lengths).enumerate() {
            let id = FieldId::from_u32(i as u32);
            let decl = &self.out.fields[id];
            let value = if decl.dir == Dir::Const {
                let ty = Ty::Known(decl.ty);
                Value::Scalar(self.push(ExprKind::ConstField(id), ty, f.name.span))
            } else {
                Value::View(self.whole_view(Storage::Field(id), &lengths, f.name.span))
            };
            self.bind(&f.name, value, Bound::Field);
        }
    }

    /// Returns the name of a dimension that is a bare name.
    fn bare_name(&self, dim: &ast::Dim) -> Option<ast::Ident> {
        let ast::Dim::Expr(e) = dim else { return None };
        let node = &self.tree().exprs[*e];
        match &node.kind {
            ast::ExprKind::Name(name) => Some(ast::Ident { name: name.clone(), span: node.span }),
            _ => None,
        }
    }

    /// Translates a dimension; also returns its length as an expression of the body.
    fn dimension(&mut self, dim: &'a ast::Dim) -> (DimDecl, ExprId) {
        let ast::Dim::Expr(e) = dim else {
            // The header reports this error.
            self.fail_silently();
            return (DimDecl::Fixed(0), self.int(0, Span::NONE));
        };
        let span = self.tree().exprs[*e].span;
        let Some(len) = self.static_expr(*e, "a dimension", false) else {
            return (DimDecl::Fixed(0), self.int(0, span));
        };
        if let Some(n) = self.const_int(len) {
            let fixed = u64::try_from(n).unwrap_or_else(|_| {
                self.error("codelet::dimension", span, format!("a dimension cannot be {n}"));
                0
            });
            return (DimDecl::Fixed(fixed), len);
        }
        match self.out.exprs[len].kind {
            ExprKind::Size(s) => (DimDecl::Size(s), len),
            _ => {
                self.lengths.insert(len);
                (DimDecl::Expr(len), self.again(len))
            }
        }
    }

    /// Translates an expression over sizes, and over `const` fields if `consts`, to an `int` without statements.
    fn static_expr(&mut self, e: ast::ExprId, what: &str, consts: bool) -> Option<ExprId> {
        let span = self.tree().exprs[e].span;
        self.pure = true;
        let (value, block) = self.block(|s| {
            let v = s.expr(e);
            s.index_value(v, span)
        });
        self.pure = false;
        let value = value?;
        if block.is_empty() && self.over_sizes(value, consts) {
            return Some(value);
        }
        let message = format!("{what} is an integer expression over sizes and constants");
        self.error("codelet::dimension", span, message);
        None
    }

    fn over_sizes(&self, e: ExprId, consts: bool) -> bool {
        match &self.out.exprs[e].kind {
            ExprKind::ConstField(_) => consts,
            ExprKind::Local(_) | ExprKind::Worker | ExprKind::Workers => false,
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => false,
            // Operations on floats.
            ExprKind::Fma { .. } | ExprKind::Bits { .. } => false,
            kind => kind.operands().iter().all(|&x| self.over_sizes(x, consts)),
        }
    }

    fn is_apart(&self, e: ast::ExprId) -> bool {
        matches!(&self.tree().exprs[e].kind, ast::ExprKind::Name(name) if name == "apart")
    }

    /// Returns the alignment that the attributes of a field request.
    fn alignment(&mut self, attrs: &'a [ast::Attr]) -> u32 {
        let mut align = 1;
        for a in attrs {
            if a.name.name != "align" {
                self.unknown_attribute(a, "a field");
                continue;
            }
            let value = match a.args.as_deref() {
                Some([ast::Arg { name: None, value }]) => self.static_expr(*value, "`align`", false),
                _ => None,
            };
            match value.and_then(|e| u32::try_from(self.const_int(e)?).ok()) {
                Some(n) if n.is_power_of_two() && n <= MAX_ALIGN => align = n,
                _ => {
                    let message = format!("`align` has one argument, a power of two up to {MAX_ALIGN}");
                    self.error("codelet::argument", a.name.span, message);
                }
            }
        }
        align
    }

    fn codelet_attributes(&mut self, attrs: &'a [ast::Attr]) {
        for a in attrs {
            match (a.name.name.as_str(), a.args.as_deref()) {
                ("pipelined", None) => self.out.pipelined = true,
                ("pipelined", Some([ast::Arg { name: None, value }])) if self.is_apart(*value) => {
                    (self.out.pipelined, self.out.separate_elements) = (true, true);
                }
                ("cycles", Some([ast::Arg { name: None, value }])) => {
                    self.out.cycles = self.static_expr(*value, "`cycles`", true);
                }
                ("pipelined", _) => {
                    self.error("codelet::argument", a.name.span, "`pipelined` has no argument but `apart`");
                }
                ("cycles", _) => {
                    self.error("codelet::argument", a.name.span, "`cycles` has one argument, the cycles of one vertex");
                }
                // Other attributes were reported when the module was read.
                _ => {}
            }
        }
    }
}

fn dims(f: &ast::CodeletField) -> impl Iterator<Item = &ast::Dim> {
    match &f.ty.kind {
        ast::TypeKind::Name { dims: Some(dims), .. } => dims.as_slice(),
        _ => &[],
    }
    .iter()
}
