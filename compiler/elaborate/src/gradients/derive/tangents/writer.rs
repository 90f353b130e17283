//! The text of a derivative: its parts, and the names in it.
//!
//! A local keeps its name, followed by its number; the tangent of `s_3` along operand 0 is `s_3_d0`.
//!
//! Invariant: names end in numbers that are used once, so that none hides another one.

use super::Tangents;
use super::jumps::Around;
use cranelift_entity::EntityRef;
use girder_ir::codelet::{Codelet, ExprKind};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{self, AssignOp, BinaryOp, Pattern, StmtId, StmtKind};
use girder_syntax::make::{Make, arg, ident};
use girder_typing::print::Scopes;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};

/// A tangent, or a product with one.
#[derive(Clone, Copy, Debug)]
pub enum Tangent {
    /// 0
    Zero,
    /// 1
    One,
    /// Another value.
    Of(ast::ExprId),
}

/// The text under construction.
pub struct Writer<'w> {
    pub of: &'w Tangents,
    pub codelet: &'w Codelet,
    pub make: &'w mut Make,
    pub scopes: Scopes,
    /// The operands along which tangents are written here.
    pub directions: Vec<usize>,
    /// The statements of the open block.
    pub list: Vec<StmtId>,
    /// The names of values of this statement.
    pub kept: FxHashMap<ExprId, SmolStr>,
    /// The loops around this statement.
    pub around: Vec<Around>,
    /// The names of operands.
    pub inputs: Vec<SmolStr>,
    /// The name or value of the tangent of each result along each operand.
    pub results: FxHashMap<(usize, usize), Tangent>,
    next: usize,
}

impl<'w> Writer<'w> {
    pub fn new(of: &'w Tangents, make: &'w mut Make) -> Writer<'w> {
        let codelet = &of.codelet;
        Writer {
            of,
            codelet,
            make,
            scopes: Scopes::of(codelet),
            directions: of.by.clone(),
            list: vec![],
            kept: FxHashMap::default(),
            around: vec![],
            inputs: vec![SmolStr::default(); of.inputs.len()],
            results: FxHashMap::default(),
            next: codelet.locals.len(),
        }
    }

    /// Writes the derivative; see [`Tangents::statements`].
    pub fn derivative(
        mut self,
        input: &mut dyn FnMut(&mut Make, usize) -> ast::ExprId,
    ) -> (Vec<StmtId>, Vec<ast::ExprId>) {
        for (position, &k) in self.of.kept.iter().enumerate() {
            let value = input(self.make, position);
            let name = self.fresh(if k < self.of.operands { "x" } else { "dy" });
            self.let_stmt(&name, false, None, value);
            self.inputs[k] = name;
        }
        let mut list = std::mem::take(&mut self.list);
        list.extend(self.block(&self.codelet.body));
        let count = self.codelet.fields.len() - self.of.operands;
        let mut values = vec![];
        self.list = list;
        for &d in &self.of.by {
            let ty = self.of.inputs[d];
            let mut sum = Tangent::Zero;
            for j in 0..count {
                let Some(&tangent) = self.results.get(&(j, d)) else { continue };
                let dy = self.inputs[self.of.operands + count + j].clone();
                let of = self.of.inputs[self.of.operands + j];
                let mut product = match tangent {
                    Tangent::Zero => continue,
                    Tangent::One => self.make.name(&dy),
                    Tangent::Of(t) => {
                        let dy = self.make.name(&dy);
                        self.make.binary(BinaryOp::Mul, dy, t)
                    }
                };
                if of != ty {
                    product = self.make.call_name(ty.name(), vec![arg(product)]);
                }
                sum = self.add(BinaryOp::Add, sum, Tangent::Of(product));
            }
            values.push(self.value_of(sum, ty));
        }
        (self.list, values)
    }

    /// Returns a name that is used once.
    pub fn fresh(&mut self, name: &str) -> SmolStr {
        self.next += 1;
        format_smolstr!("{name}_{}", self.next - 1)
    }

    /// Returns the name of a local.
    pub fn name_of(&self, local: LocalId) -> SmolStr {
        let name = &self.codelet.locals[local].name;
        let name = if name.is_empty() { "t" } else { name };
        format_smolstr!("{name}_{}", local.as_u32())
    }

    /// Returns the name of the tangent of a local along an operand.
    pub fn tangent_name(&self, local: LocalId, d: usize) -> SmolStr {
        format_smolstr!("{}_d{d}", self.name_of(local))
    }

    /// Returns the operands along which a local has a tangent here that is no constant.
    pub fn directions_of(&self, local: LocalId) -> Vec<usize> {
        let has = |&d: &usize| self.of.activity.of_local(local, d) && !self.is_operand(local, d);
        self.directions.iter().copied().filter(has).collect()
    }

    /// Returns whether a local is a copy of an operand, so that its tangent along it is 1.
    pub fn is_operand(&self, local: LocalId, d: usize) -> bool {
        let Some(value) = self.scopes.values[local].filter(|_| self.scopes.sets[local] == 1) else { return false };
        match self.codelet.exprs[value].kind {
            ExprKind::Load { field, .. } => field.index() == d,
            ExprKind::Local(from) => self.is_operand(from, d),
            _ => false,
        }
    }

    /// Writes `let name: ty = value;`.
    pub fn let_stmt(&mut self, name: &str, mutable: bool, ty: Option<ElemType>, value: ast::ExprId) {
        let ty = ty.map(|ty| self.make.tensor(ty.name(), &[]));
        let pattern = Pattern::Name(ident(name));
        let decl = ast::Let { mutable, pattern, ty, value, span: Span::NONE };
        let stmt = self.make.stmt(StmtKind::Decl(ast::Decl::Let(decl)));
        self.list.push(stmt);
    }

    /// Writes `target = value;`.
    pub fn assign(&mut self, target: ast::ExprId, value: ast::ExprId) {
        let stmt = self.make.stmt(StmtKind::Assign { op: AssignOp::Set, target, value });
        self.list.push(stmt);
    }

    /// Returns a name of a value that is used several times; writes a `let` if it has none.
    pub fn keep(&mut self, value: ast::ExprId, ty: ElemType) -> SmolStr {
        if let ast::ExprKind::Name(name) = &self.make.module.exprs[value].kind {
            return name.clone();
        }
        let name = self.fresh("t");
        self.let_stmt(&name, false, Some(ty), value);
        name
    }

    /// Returns a float of a type.
    pub fn number(&mut self, value: f64, ty: ElemType) -> ast::ExprId {
        let literal = self.make.float(value);
        self.make.call_name(ty.name(), vec![arg(literal)])
    }

    /// Returns the value of a tangent.
    pub fn value_of(&mut self, tangent: Tangent, ty: ElemType) -> ast::ExprId {
        match tangent {
            Tangent::Zero => self.number(0.0, ty),
            Tangent::One => self.number(1.0, ty),
            Tangent::Of(value) => value,
        }
    }

    /// Returns a call of a function.
    pub fn builtin<const N: usize>(&mut self, name: &str, args: [ast::ExprId; N]) -> ast::ExprId {
        self.make.call_name(name, args.into_iter().map(arg).collect())
    }
}
