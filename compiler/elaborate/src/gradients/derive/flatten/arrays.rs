//! Tuples and small arrays: their elements, and numbers that the text states.
//!
//! Invariant: an array has a symbol for each element, so an index that is not static chooses among all of them.

use super::flow::Test;
use super::{Flatten, Found, LENGTH, Symbol, refuse, stated};
use crate::gradients::derive::{Id, OpKind};
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{self, BinaryOp, ExprId, ExprKind, Index, TypeKind};

impl<'n> Flatten<'n> {
    /// Evaluates `[a, b]`.
    pub(super) fn array(&mut self, items: &'n [ExprId]) -> Found<Symbol> {
        let elements: Found<Vec<Symbol>> = items.iter().map(|&e| self.expr(e)).collect();
        let elements = elements?;
        let ty = elements.iter().find_map(|e| self.type_of(e));
        let elements = elements.into_iter().map(|e| match ty {
            Some(_) => self.literal_as(e, ty),
            None => self.opened(e),
        });
        Ok(Symbol::Array(elements.collect()))
    }

    /// Evaluates `[value; count]`.
    pub(super) fn filled(&mut self, value: ExprId, count: ExprId, span: Span) -> Found<Symbol> {
        let (value, count) = (self.expr(value)?, self.known_int(count)?);
        let value = self.opened(value);
        match count.and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= LENGTH) {
            Some(n) => Ok(Symbol::Array(vec![value; n])),
            None => refuse(span, "an array of so many elements"),
        }
    }

    /// Evaluates `base[index, …]`.
    pub(super) fn indexed(&mut self, base: ExprId, index: &'n [Index], span: Span) -> Found<Symbol> {
        let base = self.expr(base)?;
        let tree = self.tree();
        let mut at = vec![];
        for i in index {
            match i {
                Index::Expr(e) if !matches!(tree.exprs[*e].kind, ExprKind::Range { .. }) => {
                    let value = self.expr(*e)?;
                    at.push(self.number(value, span)?);
                }
                _ => return refuse(span, "a part of an array"),
            }
        }
        self.element(base, &at, span)
    }

    fn element(&mut self, of: Symbol, at: &[Id], span: Span) -> Found<Symbol> {
        let Some((&i, rest)) = at.split_first() else { return Ok(of) };
        let known = self.int_of(i);
        let is_array = matches!(of, Symbol::Array(_));
        let elements = match of {
            Symbol::Array(elements) => elements,
            Symbol::Tuple(members) => members.into_iter().map(|(_, v)| v).collect(),
            _ => return refuse(span, "an element of an array"),
        };
        if let Some(k) = known {
            return match usize::try_from(k).ok().and_then(|k| elements.into_iter().nth(k)) {
                Some(element) => self.element(element, rest, span),
                None => refuse(span, "an index out of range"),
            };
        }
        let mut elements = elements.into_iter().enumerate().rev();
        let Some((_, last)) = elements.next().filter(|_| is_array) else {
            return refuse(span, "an element of an array");
        };
        let mut value = self.element(last, rest, span)?;
        for (k, element) in elements {
            let element = self.element(element, rest, span)?;
            let cond = self.compare(BinaryOp::Eq, i, k as i64);
            value = self.choose(Test { cond, negated: false }, element, value, span)?;
        }
        Ok(value)
    }

    /// Adds the comparison of a number with a static one.
    pub(super) fn compare(&mut self, op: BinaryOp, value: Id, with: i64) -> Id {
        let (with, arm) = (self.f.add(OpKind::Int(with), &[], None, 0), self.arm);
        self.f.add(OpKind::Binary(op), &[value, with], Some(ElemType::Bool), arm)
    }

    /// Returns the value of an expression that is a static integer.
    pub(super) fn known_int(&mut self, e: ExprId) -> Found<Option<i64>> {
        Ok(match self.expr(e)? {
            Symbol::Value(id) => self.int_of(id),
            _ => None,
        })
    }

    /// Returns the value of a static integer.
    pub(super) fn int_of(&self, id: Id) -> Option<i64> {
        let op = &self.f.code[id];
        match op.kind {
            OpKind::Int(i) => Some(i),
            // All types of integers hold these numbers.
            OpKind::Convert(ty) if ty.is_int() => self.int_of(op.args[0]).filter(|i| (0..128).contains(i)),
            _ => None,
        }
    }

    /// Returns the value of an operator on static integers.
    pub(super) fn folded(&mut self, op: BinaryOp, a: Id, b: Id) -> Option<Symbol> {
        let (OpKind::Int(x), OpKind::Int(y)) = (&self.f.code[a].kind, &self.f.code[b].kind) else { return None };
        let (x, y) = (*x, *y);
        let value = match op {
            BinaryOp::Add => x.checked_add(y),
            BinaryOp::Sub => x.checked_sub(y),
            BinaryOp::Mul => x.checked_mul(y),
            BinaryOp::Div => x.checked_div(y),
            BinaryOp::Rem => x.checked_rem(y),
            BinaryOp::Eq => return Some(Symbol::Known(x == y)),
            BinaryOp::Ne => return Some(Symbol::Known(x != y)),
            BinaryOp::Lt => return Some(Symbol::Known(x < y)),
            BinaryOp::Le => return Some(Symbol::Known(x <= y)),
            BinaryOp::Gt => return Some(Symbol::Known(x > y)),
            BinaryOp::Ge => return Some(Symbol::Known(x >= y)),
            _ => None,
        };
        value.map(|v| self.literal(OpKind::Int(v), None))
    }

    /// Returns a value as one of a stated type: its literals have that type, and members of tuples the stated names.
    pub(super) fn as_type(&mut self, value: Symbol, ty: &ast::Type) -> Symbol {
        match (&ty.kind, value) {
            (TypeKind::Tuple(types), Symbol::Tuple(members)) if types.len() == members.len() => {
                let members = types.iter().zip(members).map(|((name, ty), (old, v))| {
                    let name = name.as_ref().map_or(old, |n| n.name.clone());
                    (name, self.as_type(v, ty))
                });
                Symbol::Tuple(members.collect())
            }
            (TypeKind::Name { .. }, value) => {
                let name = stated(&Some(ty.clone())).unwrap_or_default();
                if matches!(value, Symbol::Known(_)) {
                    return self.opened(value);
                }
                if matches!(name.as_str(), "float" | "number") {
                    let int = if let Symbol::Value(id) = value { self.int_of(id) } else { None };
                    let value = match int.filter(|_| name == "float") {
                        Some(i) => self.literal(OpKind::Float((i as f64).to_bits()), None),
                        None => value,
                    };
                    return self.opened(value);
                }
                let ty = match self.local(&name) {
                    Some(Symbol::Type(ty)) => Some(ty),
                    _ => ElemType::from_name(&name),
                };
                self.literal_as(value, ty)
            }
            (_, value) => value,
        }
    }

    /// Returns a value with its literals converted to a type, if one is known.
    pub(super) fn literal_as(&mut self, value: Symbol, ty: Option<ElemType>) -> Symbol {
        match (value, ty) {
            (Symbol::Value(id), Some(ty)) if self.f.code[id].ty.is_none() => {
                Symbol::Value(self.f.add(OpKind::Convert(ty), &[id], Some(ty), 0))
            }
            (Symbol::Array(elements), ty) => {
                Symbol::Array(elements.into_iter().map(|e| self.literal_as(e, ty)).collect())
            }
            (value, _) => value,
        }
    }

    /// Returns the value of a variable: it is not static, even where it is known.
    pub(super) fn opened(&mut self, value: Symbol) -> Symbol {
        match value {
            Symbol::Value(id) => {
                let (ty, known) = (self.f.code[id].ty, self.int_of(id));
                let literal = match (ty, known) {
                    (None, _) => id,
                    (Some(_), Some(known)) => self.f.add(OpKind::Int(known), &[], None, 0),
                    (Some(_), None) => return value,
                };
                let kind = OpKind::Open(self.f.code.len());
                let open = self.f.add(kind, &[literal], None, 0);
                self.literal_as(Symbol::Value(open), ty)
            }
            Symbol::Known(known) => Symbol::Value(self.f.add(OpKind::Bool(known), &[], Some(ElemType::Bool), 0)),
            Symbol::Tuple(members) => {
                Symbol::Tuple(members.into_iter().map(|(name, v)| (name, self.opened(v))).collect())
            }
            value => value,
        }
    }

    /// Returns whether a number without a type is a float.
    pub(super) fn is_float(&self, id: Id) -> bool {
        let mut floats = vec![];
        for op in &self.f.code[..=id] {
            let is_float = matches!(op.kind, OpKind::Float(_)) || op.args.iter().any(|&a| floats[a]);
            floats.push(op.ty.is_none() && is_float);
        }
        floats[id]
    }

    fn type_of(&self, value: &Symbol) -> Option<ElemType> {
        match value {
            Symbol::Value(id) => self.f.code[*id].ty,
            Symbol::Array(elements) => elements.iter().find_map(|e| self.type_of(e)),
            _ => None,
        }
    }
}
