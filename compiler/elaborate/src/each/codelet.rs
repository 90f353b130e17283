//! The codelets of element-wise steps: their names and their syntax trees.
//!
//! Invariant: the name determines the tree, so that codelets of equal names are one codelet.

use super::operand::Form;
use crate::gradients::formulas::Derived;
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{self, AssignOp, Dim, ExprId, FieldDir, Index, ItemKind, Pattern, StmtKind, TypeKind};
use girder_syntax::make::{Make, arg, body, ident, path};
use smol_str::{SmolStr, format_smolstr};

/// What is computed for each element.
pub(super) enum EachBody<'o> {
    /// The operand itself.
    Copy,
    /// A codelet function or a conversion, by its qualified name.
    Call(&'o str),
    /// The members of the tuple that a codelet function gives, by its qualified name.
    Tuple(&'o str),
    /// A compact derivative, with a name that no other one has.
    Derived(&'o Derived, &'o str),
}

/// The parameters of an element-wise codelet.
pub(super) struct EachCodelet<'o> {
    /// What is computed.
    pub body: EachBody<'o>,
    /// Its operands.
    pub operands: &'o [(Form, ElemType)],
    /// The element types of the results.
    pub outs: &'o [ElemType],
    /// The rank of the results and of full operands.
    pub rank: usize,
}

impl EachCodelet<'_> {
    /// Returns the name of the codelet.
    pub fn name(&self) -> SmolStr {
        use std::fmt::Write;
        let mut name = match self.body {
            EachBody::Copy => "each.fill".to_string(),
            EachBody::Call(path) | EachBody::Tuple(path) => format!("each.{path}"),
            EachBody::Derived(_, name) => format!("each.{name}"),
        };
        for (form, ty) in self.operands {
            let kind = match form {
                Form::Full => "",
                Form::One => "s",
                Form::Static => "c",
            };
            let _ = write!(name, "_{ty}{kind}");
        }
        format_smolstr!("{name}_r{}", self.rank)
    }

    /// Builds a module whose only item is the codelet: `for i0 in 0..n0, … { y[i0, …] = f(x0[i0, …], …); }`.
    pub fn module(&self) -> ast::Module {
        let mut make = Make::default();
        let mut fields = vec![];
        let mut args = vec![];
        for (k, &(form, ty)) in self.operands.iter().enumerate() {
            let (dir, rank) = match form {
                Form::Full => (FieldDir::In, self.rank),
                Form::One => (FieldDir::In, 0),
                Form::Static => (FieldDir::Const, 0),
            };
            let name = format_smolstr!("x{k}");
            fields.push(field(&mut make, dir, &name, ty, rank));
            args.push(arg(element(&mut make, &name, rank)));
        }
        let (mut statements, values) = match self.body {
            EachBody::Copy => (vec![], args.into_iter().map(|a| a.value).take(1).collect()),
            EachBody::Call(path) => (vec![], vec![make.call_name(path, args)]),
            EachBody::Tuple(path) => {
                let names: Vec<SmolStr> = (0..self.outs.len()).map(|k| format_smolstr!("v{k}")).collect();
                let parts = names.iter().map(|n| Pattern::Name(ident(n))).collect();
                let (pattern, value) = (Pattern::Tuple(parts, Span::NONE), make.call_name(path, args));
                let decl = ast::Let { mutable: false, pattern, ty: None, value, span: Span::NONE };
                let statement = make.stmt(StmtKind::Decl(ast::Decl::Let(decl)));
                (vec![statement], names.iter().map(|n| make.name(n)).collect())
            }
            EachBody::Derived(derived, _) => derived.statements(&mut make, &mut |_, k| args[k].value),
        };
        for (k, (value, &ty)) in values.into_iter().zip(self.outs).enumerate() {
            let out = if self.outs.len() == 1 { "y".into() } else { format_smolstr!("y{k}") };
            fields.push(field(&mut make, FieldDir::Out, &out, ty, self.rank));
            let target = element(&mut make, &out, self.rank);
            statements.push(make.stmt(StmtKind::Assign { op: AssignOp::Set, target, value }));
        }
        if self.rank > 0 {
            let binders = (0..self.rank).map(|k| binder(&mut make, k)).collect();
            statements = vec![make.stmt(StmtKind::For { binders, body: body(statements) })];
        }
        let (name, body) = (path(&self.name()), body(statements));
        make.item(ItemKind::Codelet(ast::Codelet { multi: false, name, generics: vec![], fields, body }));
        make.module
    }
}

/// Builds `in x0: f32[n0, n1]`.
fn field(make: &mut Make, dir: FieldDir, name: &str, ty: ElemType, rank: usize) -> ast::CodeletField {
    let dims: Vec<Dim> = (0..rank).map(|k| Dim::Expr(make.name(&format!("n{k}")))).collect();
    let kind = TypeKind::Name { name: path(ty.name()), dims: (rank > 0).then_some(dims) };
    let ty = ast::Type { kind, span: Span::NONE };
    ast::CodeletField { attrs: vec![], dir, name: ident(name), ty, span: Span::NONE }
}

/// Builds `x0[i0, i1]`.
fn element(make: &mut Make, name: &str, rank: usize) -> ExprId {
    let base = make.name(name);
    if rank == 0 {
        return base;
    }
    let index = (0..rank).map(|k| Index::Expr(make.name(&format!("i{k}")))).collect();
    make.index(base, index)
}

/// Builds `i0 in 0..n0`.
fn binder(make: &mut Make, k: usize) -> ast::Binder {
    let (start, end) = (make.uint(0), make.name(&format!("n{k}")));
    let range = make.range(start, end);
    make.binder(&format!("i{k}"), range)
}
