//! Expressions, as operations of a formula.
//!
//! Invariant: the operands of an operation precede it.

use super::flow::Test;
use super::{Flatten, Found, LENGTH, Symbol, function, refuse, wrong};
use crate::gradients::derive::{Arm, Formula, Id, OpKind};
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast::{self, BinaryOp, ExprId, ExprKind, UnaryOp};
use girder_typing::{Meaning, Scope};
use smol_str::format_smolstr;

impl<'n> Flatten<'n> {
    pub(super) fn expr(&mut self, id: ExprId) -> Found<Symbol> {
        let tree = self.tree();
        let e = &tree.exprs[id];
        if self.f.code.len() > LENGTH {
            return refuse(e.span, "a function of so many operations");
        }
        match &e.kind {
            ExprKind::Paren(e) => self.expr(*e),
            ExprKind::Int { value, .. } => Ok(self.literal(OpKind::Int(*value as i64), None)),
            ExprKind::Float { value, .. } => Ok(self.literal(OpKind::Float(value.to_bits()), None)),
            ExprKind::Bool(b) => Ok(Symbol::Known(*b)),
            ExprKind::Name(name) => match self.local(name) {
                Some(value) => Ok(value),
                None => self.item(name, e.span),
            },
            ExprKind::Field { base, name } => {
                if let Some(path) = crate::trees::dotted(tree, id)
                    && path.split('.').next().is_none_or(|first| self.local(first).is_none())
                    && ElemType::from_name(path.split('.').next().unwrap_or_default()).is_none()
                {
                    return self.item(&path, e.span);
                }
                match self.expr(*base)? {
                    Symbol::Type(ty) => Ok(self.literal(OpKind::Member(ty, name.name.clone()), Some(ty))),
                    Symbol::Tuple(members) => match members.into_iter().find(|(n, _)| *n == name.name) {
                        Some((_, value)) => Ok(value),
                        None => refuse(e.span, "a member that the tuple has not"),
                    },
                    _ => refuse(e.span, "a member"),
                }
            }
            ExprKind::Tuple(args) => {
                let mut members = vec![];
                for a in args {
                    let name = a.name.as_ref().map(|n| n.name.clone()).unwrap_or_default();
                    members.push((name, self.expr(a.value)?));
                }
                Ok(Symbol::Tuple(members))
            }
            ExprKind::Unary { op, value } => match (op, self.expr(*value)?) {
                (UnaryOp::Not, Symbol::Known(b)) => Ok(Symbol::Known(!b)),
                (UnaryOp::Neg, Symbol::Value(v)) if self.f.literal(v).is_some() && self.f.code[v].ty.is_none() => {
                    Ok(match self.f.code[v].kind {
                        OpKind::Int(i) => self.literal(OpKind::Int(i.wrapping_neg()), None),
                        OpKind::Float(x) => self.literal(OpKind::Float((-f64::from_bits(x)).to_bits()), None),
                        _ => Symbol::Value(v),
                    })
                }
                (op, Symbol::Value(v)) => {
                    let (ty, arm) = (self.f.code[v].ty, self.arm);
                    Ok(Symbol::Value(self.f.add(OpKind::Unary(*op), &[v], ty, arm)))
                }
                _ => refuse(e.span, "an operand of this kind"),
            },
            ExprKind::Binary { op, left, right } => {
                let left = self.expr(*left)?;
                match (op, &left) {
                    (BinaryOp::And, Symbol::Known(false)) | (BinaryOp::Or, Symbol::Known(true)) => return Ok(left),
                    (BinaryOp::And | BinaryOp::Or, Symbol::Known(_)) => return self.expr(*right),
                    (BinaryOp::And | BinaryOp::Or, Symbol::Value(cond)) => {
                        // The right operand counts only if the left one does not decide.
                        let test = Test { cond: *cond, negated: *op == BinaryOp::Or };
                        let mut value = None;
                        let right = self.in_arm(test, e.span, |this| {
                            value = Some(this.expr(*right)?);
                            Ok(None)
                        })?;
                        let without = self.ending(e.span, |_| Ok(None))?;
                        let end = self.join(test, right, without, e.span)?;
                        self.go_on(end);
                        let Some(value) = value else { return refuse(e.span, "an operand of this kind") };
                        return self.binary(*op, left, value, e.span);
                    }
                    _ => {}
                }
                let right = self.expr(*right)?;
                self.binary(*op, left, right, e.span)
            }
            ExprKind::Block(body) => match self.body(body, true)? {
                Some(value) => Ok(value),
                None => refuse(e.span, "a block without a value"),
            },
            ExprKind::If { cond, then, els } => match self.branch(*cond, then, *els, true, e.span)? {
                Some(value) => Ok(value),
                None => refuse(e.span, "an `if` without a value"),
            },
            ExprKind::Switch { on, arms } => match self.switch(*on, arms, true, e.span)? {
                Some(value) => Ok(value),
                None => refuse(e.span, "a `switch` without a value"),
            },
            ExprKind::Call { callee, args } => self.call_expr(*callee, args, e.span),
            ExprKind::List(items) => self.array(items),
            ExprKind::Fill { value, count } => self.filled(*value, *count, e.span),
            ExprKind::Index { base, index } => self.indexed(*base, index, e.span),
            ExprKind::Reduce(_) => refuse(e.span, "a loop"),
            _ => refuse(e.span, "an expression of this kind"),
        }
    }

    pub(super) fn literal(&mut self, kind: OpKind, ty: Option<ElemType>) -> Symbol {
        Symbol::Value(self.f.add(kind, &[], ty, 0))
    }

    /// Returns the value of a name that is not local.
    pub(super) fn item(&mut self, path: &str, span: Span) -> Found<Symbol> {
        if let Some(ty) = ElemType::from_name(path) {
            return Ok(Symbol::Type(ty));
        }
        if path == "int" {
            return Ok(Symbol::Type(ElemType::I64));
        }
        match self.names.lookup(self.module(), path) {
            Some(Meaning::Int(i)) => Ok(self.literal(OpKind::Int(i), None)),
            Some(Meaning::Float(x)) => Ok(self.literal(OpKind::Float(x.to_bits()), None)),
            Some(Meaning::Bool(b)) => Ok(Symbol::Known(b)),
            Some(Meaning::Type(ty)) => Ok(Symbol::Type(ty)),
            Some(_) => refuse(span, "a name of this kind"),
            None => {
                let known = self.frames.last().map(|f| f.names.as_slice()).unwrap_or_default();
                let near = girder_source::closest(path, known.iter().map(|(name, _)| name.as_str()));
                let d = Diagnostic::error("codelet::unknown_name", span, format!("there is no `{path}` here"));
                wrong(match near {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d,
                })
            }
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: Symbol, right: Symbol, span: Span) -> Found<Symbol> {
        match (&left, &right) {
            (Symbol::Type(a), Symbol::Type(b)) if op == BinaryOp::Eq => Ok(Symbol::Known(a == b)),
            (Symbol::Type(a), Symbol::Type(b)) if op == BinaryOp::Ne => Ok(Symbol::Known(a != b)),
            (Symbol::Known(a), Symbol::Known(b)) => Ok(Symbol::Known(match op {
                BinaryOp::And | BinaryOp::BitAnd => a & b,
                BinaryOp::Or | BinaryOp::BitOr => a | b,
                BinaryOp::BitXor | BinaryOp::Ne => a ^ b,
                BinaryOp::Eq => a == b,
                _ => return refuse(span, "an operator of this kind"),
            })),
            _ => {
                let (a, mut b) = (self.number(left, span)?, self.number(right, span)?);
                if let Some(value) = self.folded(op, a, b) {
                    return Ok(value);
                }
                let may_fail = matches!(op, BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr);
                if may_fail && self.f.code[a].ty.or(self.f.code[b].ty).is_some_and(|t| !t.is_float()) {
                    b = self.one_where_idle(b);
                }
                let ty = match op {
                    _ if op.compares() => Some(ElemType::Bool),
                    BinaryOp::And | BinaryOp::Or => Some(ElemType::Bool),
                    _ => self.f.code[a].ty.or(self.f.code[b].ty),
                };
                let arm = self.arm;
                Ok(Symbol::Value(self.f.add(OpKind::Binary(op), &[a, b], ty, arm)))
            }
        }
    }

    /// Returns an integer divisor, or the width of a shift, that is 1 where its arm does not run: both arms of an `if`
    /// are evaluated, and a division by zero or a shift out of range ends the program.
    pub(super) fn one_where_idle(&mut self, divisor: Id) -> Id {
        let ty = self.f.code[divisor].ty;
        let is_literal = self.f.literal(divisor).is_some_and(|x| x != 0.0);
        let (mut divisor, mut arm) = (divisor, if is_literal { 0 } else { self.arm });
        while arm != 0 {
            let Arm { outer, cond, negated } = self.f.arms[arm];
            let one = self.f.add(OpKind::Int(1), &[], None, 0);
            let args = if negated { [cond, one, divisor] } else { [cond, divisor, one] };
            divisor = self.f.add(OpKind::Builtin("select".into()), &args, ty, self.arm);
            arm = outer;
        }
        divisor
    }

    pub(super) fn number(&mut self, value: Symbol, span: Span) -> Found<Id> {
        match value {
            Symbol::Value(id) => Ok(id),
            Symbol::Known(b) => Ok(self.f.add(OpKind::Bool(b), &[], Some(ElemType::Bool), 0)),
            _ => refuse(span, "a value that is no number"),
        }
    }

    pub(super) fn call_expr(&mut self, callee: ExprId, args: &'n [ast::Arg], span: Span) -> Found<Symbol> {
        let tree = self.tree();
        let Some(path) = crate::trees::dotted(tree, callee) else { return refuse(span, "a call of this kind") };
        let mut values = vec![];
        for a in args {
            values.push(self.expr(a.value)?);
        }
        let has_names = args.iter().any(|a| a.name.is_some());
        let arm = self.arm;
        let (first, field) = path.split_once('.').map_or((&path[..], None), |(a, b)| (a, Some(b)));
        let ty = match self.local(first) {
            Some(Symbol::Type(ty)) => Some(ty),
            Some(_) => return refuse(span, "a call of a value"),
            None => ElemType::from_name(first).or((first == "int").then_some(ElemType::I64)),
        };
        if has_names && (ty.is_some() || girder_typing::is_builtin(&path)) {
            return refuse(span, "an argument with a name");
        }
        if let Some(ty) = ty {
            let [value] = &values[..] else { return refuse(span, "a conversion of several values") };
            let value = self.number(value.clone(), span)?;
            let kind = match field {
                None => OpKind::Convert(ty),
                Some("bits") => OpKind::Bits(ty),
                Some(_) => return refuse(span, "a function of a type"),
            };
            if self.f.code[value].ty == Some(ty) && field.is_none() {
                return Ok(Symbol::Value(value));
            }
            return Ok(Symbol::Value(self.f.add(kind, &[value], Some(ty), arm)));
        }
        if girder_typing::is_builtin(&path) {
            let mut ids = vec![];
            for v in values {
                ids.push(self.number(v, span)?);
            }
            return self.builtin(&path, ids, span);
        }
        match self.names.lookup(self.module(), &path) {
            Some(Meaning::CodeletFn { module, item }) => {
                let Some((index, _)) = self.names.printed(module, item) else {
                    return refuse(span, "a function of this kind");
                };
                let Some(f) = function(self.names, module, index) else {
                    return refuse(span, "a function that a codelet was given");
                };
                let values = if has_names { in_order(f, args, values, span)? } else { values };
                self.call(module, index, f, values, span)
            }
            _ => refuse(span, "a call of this kind"),
        }
    }

    pub(super) fn builtin(&mut self, name: &str, ids: Vec<Id>, span: Span) -> Found<Symbol> {
        let arm = self.arm;
        let ty = |f: &Formula, ids: &[Id]| ids.iter().find_map(|&id| f.code[id].ty);
        let count = match name {
            "fma" | "select" => 3,
            "min" | "max" if ids.len() >= 2 => ids.len(),
            "amp" | "assert" => return refuse(span, "a call of this kind"),
            _ => 1,
        };
        if ids.len() != count {
            return refuse(span, "a call with other arguments than the function has");
        }
        if matches!(name, "min" | "max") {
            let mut rest = ids.into_iter();
            let mut value = rest.next().unwrap_or_default();
            for b in rest {
                let ty = ty(&self.f, &[value, b]);
                value = self.f.add(OpKind::Builtin(name.into()), &[value, b], ty, arm);
            }
            return Ok(Symbol::Value(value));
        }
        let ty = if name == "select" { ty(&self.f, &ids[1..]) } else { ty(&self.f, &ids) };
        Ok(Symbol::Value(self.f.add(OpKind::Builtin(format_smolstr!("{name}")), &ids, ty, arm)))
    }
}

/// Returns arguments, of which some have names, in the order of the parameters.
fn in_order(f: &ast::Fn, args: &[ast::Arg], values: Vec<Symbol>, span: Span) -> Found<Vec<Symbol>> {
    let mut slots: Vec<Option<Symbol>> = vec![None; f.params.len()];
    let mut next = 0;
    for (a, value) in args.iter().zip(values) {
        let slot = match &a.name {
            Some(name) => f.params.iter().position(|p| p.name.name == name.name),
            None => Some(next),
        };
        next += usize::from(a.name.is_none());
        match slot.and_then(|k| slots.get_mut(k)) {
            Some(slot @ None) => *slot = Some(value),
            _ => return refuse(span, "an argument that is no parameter"),
        }
    }
    match slots.into_iter().collect() {
        Some(values) => Ok(values),
        None => refuse(span, "an argument that is left out"),
    }
}
