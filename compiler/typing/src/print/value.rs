//! Expressions.
//!
//! Invariant: an expression is printed such that typing emits no statement for it and folds nothing in it.

use super::block::Printer;
use super::printed::{Result, unprintable};
use super::spelling::{self, Spelling};
use girder_ir::codelet::{BinaryOp, DimDecl, Dir, Expr, ExprKind, Index, UnaryOp};
use girder_ir::ids::{ExprId, FieldId, LocalId};
use girder_ir::types::{ElemType, Scalar};
use girder_syntax::ast;
use girder_syntax::make::arg;

/// How a constant is written, see the note on constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// As a literal whose type its context decides.
    Bare,
    /// With its type.
    Typed,
    /// With its type, and such that typing does not know its value.
    Opaque,
}

/// An operation nested this deep is kept in a local by typing.
const DEEPEST: u32 = 100;

/// Maximal nesting of other expressions: the parser's bound is 200, statements included.
const MOST_NESTED: u32 = 150;

impl Printer<'_> {
    /// Returns an expression; a constant with its type.
    pub fn expr(&mut self, e: ExprId) -> Result<ast::ExprId> {
        self.value(e, Form::Typed)
    }

    /// Returns an expression in a context that decides its type.
    pub fn bare(&mut self, e: ExprId) -> Result<ast::ExprId> {
        self.value(e, Form::Bare)
    }

    /// Returns an expression; a constant in a form.
    pub fn value(&mut self, e: ExprId, form: Form) -> Result<ast::ExprId> {
        let Expr { kind, ty, .. } = &self.codelet.exprs[e];
        let ty = *ty;
        self.shallow(e)?;
        Ok(match kind {
            ExprKind::Const(value) => self.constant(*value, form),
            ExprKind::Local(local) => self.local(*local)?,
            ExprKind::ConstField(field) => self.make.name(&self.codelet.fields[*field].name),
            ExprKind::Size(size) => self.make.name(&self.codelet.sizes[*size]),
            ExprKind::Worker => self.builtin_value("worker")?,
            ExprKind::Workers => self.builtin_value("workers")?,
            ExprKind::Load { field, index, .. } => {
                if self.codelet.fields[*field].dir == Dir::Out {
                    return unprintable(format!("the `out` field `{}` is read", self.codelet.fields[*field].name));
                }
                self.field_element(*field, index)?
            }
            ExprKind::LoadLocal { local, index, .. } => self.array_element(*local, index)?,
            ExprKind::Unary { op, x } => self.unary(*op, *x)?,
            ExprKind::Binary { op, a, b, .. } => self.binary(*op, *a, *b)?,
            ExprKind::AndThen { a, b } => self.lazy(ast::BinaryOp::And, *a, *b)?,
            ExprKind::OrElse { a, b } => self.lazy(ast::BinaryOp::Or, *a, *b)?,
            ExprKind::Select { cond, a, b } => {
                let cond = self.bare(*cond)?;
                let [a, b] = self.alike([*a, *b], Form::Typed)?;
                self.builtin("select", vec![cond, a, b])?
            }
            ExprKind::Fma { a, b, c } => {
                let args = self.alike([*a, *b, *c], Form::Typed)?;
                self.builtin("fma", args.to_vec())?
            }
            ExprKind::Convert { x } => {
                if self.codelet.exprs[*x].ty == ty {
                    return unprintable("a value is converted to its own type");
                }
                let x = self.expr(*x)?;
                self.builtin(ty.name(), vec![x])?
            }
            ExprKind::Bits { x } => {
                let from = self.codelet.exprs[*x].ty;
                if from == ty || from == ElemType::Bool || ty == ElemType::Bool {
                    return unprintable(format!("the bits of a `{from}` are taken as a `{ty}`"));
                }
                let x = self.expr(*x)?;
                let callee = self.builtin_value(ty.name())?;
                let callee = self.make.field(callee, "bits");
                self.make.call(callee, vec![arg(x)])
            }
        })
    }

    /// Checks that typing does not keep parts of an expression in locals, and that it is not nested too deeply.
    fn shallow(&self, e: ExprId) -> Result<()> {
        use ExprKind::{AndThen, Binary, OrElse};
        let operator = matches!(self.codelet.exprs[e].kind, Binary { .. } | AndThen { .. } | OrElse { .. });
        match self.depths[e] {
            depth if operator && depth >= DEEPEST => unprintable(format!("{depth} operations are nested")),
            depth if depth >= MOST_NESTED => unprintable(format!("{depth} operations are nested")),
            _ => Ok(()),
        }
    }

    /// Returns a constant.
    pub fn constant(&mut self, value: Scalar, form: Form) -> ast::ExprId {
        let ty = value.ty;
        let literal = match (value.as_int(), value.as_float()) {
            _ if form == Form::Opaque && ty == ElemType::I64 => return self.make.bits("i64", value.bits),
            (_, Some(v)) if !v.is_finite() => return self.make.bits(ty.name(), value.bits),
            (_, Some(v)) if ty == ElemType::F32 => self.make.float32(v as f32),
            (_, Some(v)) => self.make.float(v),
            (Some(v), _) if ty == ElemType::Bool && form == Form::Bare => self.make.bool(v != 0),
            (Some(v), _) => {
                let digits = self.make.uint(v.unsigned_abs() as u64);
                if v < 0 { self.make.unary(ast::UnaryOp::Neg, digits) } else { digits }
            }
            (None, None) => return self.make.bits(ty.name(), value.bits),
        };
        if form == Form::Bare { literal } else { self.make.call_name(ty.name(), vec![arg(literal)]) }
    }

    /// Returns operands of one type, which the first that is not a constant decides; if all are constants, the first is
    /// written in a form of its own.
    fn alike<const N: usize>(&mut self, operands: [ExprId; N], form: Form) -> Result<[ast::ExprId; N]> {
        let constants = operands.iter().all(|&e| self.is_constant(e));
        let mut done = [None; N];
        for (n, (&e, done)) in operands.iter().zip(&mut done).enumerate() {
            *done = Some(self.value(e, if constants && n == 0 { form } else { Form::Bare })?);
        }
        match done.into_iter().collect::<Option<Vec<_>>>().map(<[ast::ExprId; N]>::try_from) {
            Some(Ok(done)) => Ok(done),
            _ => unprintable("an operand is missing"),
        }
    }

    /// Returns whether an expression is a constant.
    pub fn is_constant(&self, e: ExprId) -> bool {
        matches!(self.codelet.exprs[e].kind, ExprKind::Const(_))
    }

    fn unary(&mut self, op: UnaryOp, x: ExprId) -> Result<ast::ExprId> {
        let x = self.expr(x)?;
        match spelling::unary(op) {
            Spelling::Operator(op) => Ok(self.make.unary(op, x)),
            Spelling::Function(name) => self.builtin(name, vec![x]),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Result<ast::ExprId> {
        let [a, b] = self.alike([a, b], Form::Opaque)?;
        match spelling::binary(op) {
            Spelling::Operator(op) => Ok(self.make.binary(op, a, b)),
            Spelling::Function(name) => self.builtin(name, vec![a, b]),
        }
    }

    fn lazy(&mut self, op: ast::BinaryOp, a: ExprId, b: ExprId) -> Result<ast::ExprId> {
        let (a, b) = (self.value(a, Form::Opaque)?, self.bare(b)?);
        Ok(self.make.binary(op, a, b))
    }

    /// Returns a call of a function that is built in, or of a type.
    pub fn builtin(&mut self, name: &str, args: Vec<ast::ExprId>) -> Result<ast::ExprId> {
        let callee = self.builtin_value(name)?;
        Ok(self.make.call(callee, args.into_iter().map(arg).collect()))
    }

    /// Returns a name that is built in.
    fn builtin_value(&mut self, name: &str) -> Result<ast::ExprId> {
        if self.names.hides(name) {
            return unprintable(format!("a field or size hides `{name}`"));
        }
        Ok(self.make.name(name))
    }

    /// Returns an element of a field.
    pub fn field_element(&mut self, field: FieldId, index: &Index) -> Result<ast::ExprId> {
        let decl = &self.codelet.fields[field];
        let base = self.make.name(&decl.name);
        let lengths = decl.dims.iter().map(|d| if let DimDecl::Fixed(n) = d { Some(*n) } else { None });
        self.element(base, index, lengths)
    }

    /// Returns an element of a local array.
    pub fn array_element(&mut self, local: LocalId, index: &Index) -> Result<ast::ExprId> {
        let base = self.local(local)?;
        let lengths = self.codelet.locals[local].array.iter().flatten();
        self.element(base, index, lengths.map(|&n| Some(u64::from(n))))
    }

    fn element(
        &mut self,
        base: ast::ExprId,
        index: &Index,
        lengths: impl Iterator<Item = Option<u64>>,
    ) -> Result<ast::ExprId> {
        if index.is_empty() {
            return Ok(base);
        }
        let mut list = Vec::with_capacity(index.len());
        for (&i, length) in index.iter().zip(lengths) {
            // A static index that is out of range would be reported.
            let form = match self.codelet.exprs[i].kind {
                ExprKind::Const(v) => {
                    let fits = u64::try_from(v.as_int().unwrap_or(-1)).is_ok_and(|i| length.is_none_or(|n| i < n));
                    if fits { Form::Bare } else { Form::Opaque }
                }
                _ => Form::Bare,
            };
            list.push(ast::Index::Expr(self.value(i, form)?));
        }
        Ok(self.make.index(base, list))
    }
}
