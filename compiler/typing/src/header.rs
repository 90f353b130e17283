//! The interface of a codelet before types are known (its fields and generics), and the inference of generic arguments
//! from the views bound to its fields.
//!
//! Invariant: a [`Header`] has every field and generic of its item, in order, or an error was reported.

use super::names::not_supported;
use super::{Meaning, ModuleRef, Scope};
use girder_ir::codelet::{Dir, GenericArg};
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// Maximal number of dimensions of a field or local array.
pub(super) const MAX_RANK: usize = 16;

/// The interface of a codelet.
#[derive(Clone, Debug)]
pub struct Header {
    /// Fields in the order of declaration, `const` ones included; a [`FieldId`] is an index into this list.
    pub fields: Vec<HeaderField>,
    /// Generics in order.
    pub generics: Vec<HeaderGeneric>,
    /// The span of the codelet's name.
    pub span: Span,
}

/// A field before its type is known.
#[derive(Clone, Debug)]
pub struct HeaderField {
    /// Its name.
    pub name: SmolStr,
    /// Direction.
    pub dir: Dir,
    /// Element type.
    pub ty: HeaderType,
    /// Number of dimensions; 0 for `const` fields.
    pub rank: usize,
    /// The span of its declaration.
    pub span: Span,
}

/// The element type of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderType {
    /// The generic at this index of [`Header::generics`].
    Generic(usize),
    /// A concrete type.
    Elem(ElemType),
}

/// A generic parameter.
#[derive(Clone, Debug)]
pub struct HeaderGeneric {
    /// Its name.
    pub name: SmolStr,
    /// The class of its arguments.
    pub class: Class,
    /// The span of its declaration.
    pub span: Span,
}

/// The class of a generic parameter's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// A float type.
    Float,
    /// Any type but `bool`.
    Number,
    /// Any element type.
    Element,
    /// An integer.
    Int,
    /// A codelet function.
    Fn,
}

impl Class {
    /// Returns whether a type belongs to it.
    pub fn holds(self, ty: ElemType) -> bool {
        match self {
            Class::Float => ty.is_float(),
            Class::Number => ty.is_number(),
            Class::Element => true,
            Class::Int | Class::Fn => false,
        }
    }

    /// Returns the class as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Class::Float => "float",
            Class::Number => "number",
            Class::Element => "element",
            Class::Int => "int",
            Class::Fn => "fn",
        }
    }
}

/// Returns the class that a generic declares.
pub(super) fn generic_class(g: &ast::Generic) -> std::result::Result<Class, Diagnostic> {
    let Some(bound) = &g.bound else { return Ok(Class::Element) };
    if let ast::TypeKind::Name { name, dims: None } = &bound.kind {
        match name.dotted().as_str() {
            "float" => return Ok(Class::Float),
            "number" => return Ok(Class::Number),
            "element" => return Ok(Class::Element),
            "int" => return Ok(Class::Int),
            "fn" => return Ok(Class::Fn),
            _ => {}
        }
    }
    let message = format!("this is not a class that `{}` can be of", g.name.name);
    Err(Diagnostic::error("codelet::generic", bound.span, message)
        .help("write `float`, `number`, `element`, `int` or `fn`"))
}

/// Reads the interface of a codelet.
pub fn header(
    scope: &dyn Scope,
    module: ModuleRef,
    item: &ast::Codelet,
    diagnostics: &mut Diagnostics,
) -> Result<Header> {
    let mut ok = true;
    let mut report = |d: Diagnostic| {
        diagnostics.push(d);
        ok = false;
    };
    let mut generics: Vec<HeaderGeneric> = vec![];
    for g in &item.generics {
        let class = generic_class(g).unwrap_or_else(|d| {
            report(d);
            Class::Element
        });
        if let Some(first) = generics.iter().find(|o| o.name == g.name.name) {
            report(duplicate("generic", &g.name, first.span));
        }
        generics.push(HeaderGeneric { name: g.name.name.clone(), class, span: g.name.span });
    }
    let mut fields: Vec<HeaderField> = vec![];
    for f in &item.fields {
        if let Some(first) = fields.iter().find(|o| o.name == f.name.name) {
            report(duplicate("field", &f.name, first.span));
        }
        if let Some(first) = generics.iter().find(|g| g.name == f.name.name) {
            report(duplicate("field", &f.name, first.span));
        }
        match field(scope, module, &generics, f) {
            Ok(f) => fields.push(f),
            Err(d) => report(d),
        }
    }
    if ok { Ok(Header { fields, generics, span: item.name.span }) } else { Err(Failed) }
}

fn duplicate(what: &str, name: &ast::Ident, first: Span) -> Diagnostic {
    let message = format!("there are two things called `{}`", name.name);
    Diagnostic::error("codelet::duplicate_name", name.span, message)
        .here(format!("this {what}"))
        .label(first, "declared before")
        .help("rename one")
}

fn field(
    scope: &dyn Scope,
    module: ModuleRef,
    generics: &[HeaderGeneric],
    f: &ast::CodeletField,
) -> std::result::Result<HeaderField, Diagnostic> {
    let ast::TypeKind::Name { name, dims } = &f.ty.kind else {
        let d = Diagnostic::error("codelet::type_mismatch", f.ty.span, "a field has elements of one type");
        return Err(d.help("write an element type with its dimensions: `f32[n]`"));
    };
    let ty = element_type(scope, module, generics, &name.dotted(), name.span)?;
    let dims = dims.as_deref().unwrap_or(&[]);
    if dims.iter().any(|d| !matches!(d, ast::Dim::Expr(_))) {
        let d = Diagnostic::error("codelet::dimension", f.ty.span, "a field has a fixed number of dimensions");
        return Err(d.help("write one name per dimension"));
    }
    let dir = match f.dir {
        ast::FieldDir::In => Dir::In,
        ast::FieldDir::Out => Dir::Out,
        ast::FieldDir::InOut => Dir::InOut,
        ast::FieldDir::Const => Dir::Const,
    };
    if dims.len() > MAX_RANK {
        let message = format!("a field of more than {MAX_RANK} dimensions");
        return Err(Diagnostic::error("codelet::dimension", f.ty.span, message));
    }
    if dir == Dir::Const && !dims.is_empty() {
        let d = Diagnostic::error("codelet::const_rank", f.ty.span, format!("`const {}` is not a scalar", f.name.name));
        return Err(d.help("declare it `in`, and bind a `const` variable to it"));
    }
    Ok(HeaderField { name: f.name.name.clone(), dir, ty, rank: dims.len(), span: f.span })
}

fn element_type(
    scope: &dyn Scope,
    module: ModuleRef,
    generics: &[HeaderGeneric],
    name: &str,
    span: Span,
) -> std::result::Result<HeaderType, Diagnostic> {
    if let Some(i) = generics.iter().position(|g| g.name == name) {
        if let Class::Int | Class::Fn = generics[i].class {
            let is = if generics[i].class == Class::Int { "an integer" } else { "a function" };
            let message = format!("`{name}` is {is}, not a type");
            return Err(Diagnostic::error("codelet::type_mismatch", span, message));
        }
        return Ok(HeaderType::Generic(i));
    }
    let ty = match (name, ElemType::from_name(name)) {
        ("int", _) => Some(ElemType::I64),
        (_, Some(ty)) => Some(ty),
        _ => match scope.lookup(module, name) {
            Some(Meaning::Type(ty)) => Some(ty),
            _ => None,
        },
    };
    match ty {
        Some(ty) if ty.is_supported() => Ok(HeaderType::Elem(ty)),
        Some(ty) => Err(not_supported(ty, span)),
        None => {
            let names = generics.iter().map(|g| g.name.as_str()).chain(ElemType::ALL.into_iter().map(|t| t.name()));
            let mut d = Diagnostic::error("codelet::unknown_name", span, format!("there is no type `{name}` here"));
            if let Some(near) = girder_source::closest(name, names) {
                d = d.help(format!("did you mean `{near}`?"));
            } else if matches!(name, "float" | "number" | "element") {
                d = d.help(format!("make it generic: `<T: {name}>`, and write `T`"));
            }
            Err(d)
        }
    }
}

/// Returns the generic arguments of a vertex: those written between `<` and `>`, and for the others the element types
/// of the views that are bound to its fields. Reports, at `at`, an argument that is missing, contradictory, or not of
/// its class.
pub fn infer_args(
    header: &Header,
    explicit: &[GenericArg],
    field_types: &[(FieldId, ElemType)],
    at: Span,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<GenericArg>> {
    if explicit.len() > header.generics.len() {
        let message = format!("{} arguments for {} generics", explicit.len(), header.generics.len());
        let d = Diagnostic::error("codelet::generic", at, message).label(header.span, "this codelet");
        diagnostics.push(d);
        return Err(Failed);
    }
    let mut args: Vec<Option<GenericArg>> = explicit.iter().cloned().map(Some).collect();
    args.resize(header.generics.len(), None);
    let mut errors = vec![];
    for &(id, ty) in field_types {
        let Some(f) = header.fields.get(id.as_u32() as usize) else { continue };
        if let HeaderType::Generic(g) = f.ty
            && args[g].is_none()
        {
            args[g] = Some(GenericArg::Type(ty));
        }
        let wanted = match f.ty {
            HeaderType::Elem(t) => Some(t),
            HeaderType::Generic(g) => match args[g] {
                Some(GenericArg::Type(ref t)) => Some(*t),
                _ => None,
            },
        };
        if let Some(t) = wanted.filter(|&t| t != ty) {
            let message = format!("field `{}` has elements `{t}`, and what is bound to it has `{ty}`", f.name);
            let d = Diagnostic::error("codelet::field_type", at, message).label(f.span, "this field");
            errors.push(d.help(format!("convert it: `{t}(…)`")));
        }
    }
    errors.extend(wrong_generics(header, &args, at));
    if errors.is_empty() {
        return Ok(args.into_iter().flatten().collect());
    }
    diagnostics.extend(errors);
    Err(Failed)
}

/// Returns the diagnostics for generic arguments that are missing or do not fit.
pub(super) fn wrong_generics(header: &Header, args: &[Option<GenericArg>], at: Span) -> Vec<Diagnostic> {
    let all = header.generics.iter().zip(args);
    let wrong = |(g, arg): (&HeaderGeneric, &Option<GenericArg>)| match arg {
        Some(arg) => wrong_generic(g, arg, at),
        None => Some(
            missing_generic(g, at).help(format!("write all generic arguments, such as `<{}>`", example(header, args))),
        ),
    };
    all.filter_map(wrong).collect()
}

/// Returns a list of generic arguments: those that are known, and examples of the others.
fn example(header: &Header, args: &[Option<GenericArg>]) -> String {
    let one = |(g, arg): (&HeaderGeneric, &Option<GenericArg>)| match (arg, g.class) {
        (Some(GenericArg::Type(ty)), _) => ty.name().to_string(),
        (Some(GenericArg::Int(n)), _) => n.to_string(),
        (Some(GenericArg::Fn(name)), _) => name.to_string(),
        (None, Class::Int) => "4".into(),
        (None, Class::Fn) => "add".into(),
        (None, Class::Float | Class::Number | Class::Element) => "f32".into(),
    };
    header.generics.iter().zip(args).map(one).collect::<Vec<_>>().join(", ")
}

fn missing_generic(g: &HeaderGeneric, at: Span) -> Diagnostic {
    let message = match g.class {
        Class::Int => format!("the argument `{}` is missing", g.name),
        Class::Fn => format!("the function `{}` is missing", g.name),
        Class::Float | Class::Number | Class::Element => format!("the type `{}` cannot be inferred", g.name),
    };
    Diagnostic::error("codelet::generic", at, message).label(g.span, "declared here")
}

/// Returns the diagnostic for a generic argument that does not fit.
fn wrong_generic(g: &HeaderGeneric, arg: &GenericArg, at: Span) -> Option<Diagnostic> {
    let error = |message: String| Diagnostic::error("codelet::generic", at, message).label(g.span, "declared here");
    match (arg, g.class) {
        (GenericArg::Int(_), Class::Int) => None,
        (GenericArg::Fn(_), Class::Fn) => None,
        (GenericArg::Fn(f), class) => {
            Some(error(format!("`{}` is a `{}`, and `{f}` is a function", g.name, class.name())))
        }
        (_, Class::Fn) => Some(error(format!("`{}` is a function", g.name)).help("pass the name of a `codelet fn`")),
        (GenericArg::Int(v), _) => Some(error(format!("`{}` is a type, and {v} is a number", g.name))),
        (GenericArg::Type(t), _) if !t.is_supported() => Some(not_supported(*t, at)),
        (GenericArg::Type(t), class) => {
            (!class.holds(*t)).then(|| error(format!("`{}` is a `{}`, which `{t}` is not", g.name, class.name())))
        }
    }
}
