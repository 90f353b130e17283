//! Codelet functions as formulas: calls are inlined, names become operations, static conditions are decided, and both
//! arms of a run-time `if` are evaluated.
//!
//! Invariant: a function with a rule is not entered; its call is one operation.

use super::{Arm, Formula, Id, OpKind};
use crate::codelets::Names;
use crate::gradients::rule_table::Rules;
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{self, AssignOp, BinaryOp, ExprId, ExprKind, ItemKind, Pattern, StmtKind, TypeKind, UnaryOp};
use girder_typing::{Meaning, ModuleRef, Scope};
use smol_str::{SmolStr, format_smolstr};

/// The deepest nesting of inlined calls.
const DEPTH: usize = 64;
/// The greatest number of operations of a formula.
const LENGTH: usize = 4096;

/// Why a function cannot be differentiated.
#[derive(Debug)]
pub struct Refusal {
    /// The part that cannot be.
    pub span: Span,
    /// What it is: "a loop".
    pub what: &'static str,
    /// The function whose rule it is in, if it is in one.
    pub inside: Option<SmolStr>,
}

/// The value of an expression.
#[derive(Clone, Debug)]
pub enum Symbol {
    /// An operation.
    Value(Id),
    /// `(a, b)`, `(x: a)`
    Tuple(Vec<(SmolStr, Symbol)>),
    /// A condition that is known.
    Known(bool),
    /// An element type.
    Type(ElemType),
}

struct Frame {
    module: ModuleRef,
    names: Vec<(SmolStr, Symbol)>,
}

/// A formula under construction.
pub struct Flatten<'n> {
    names: &'n Names<'n>,
    rules: &'n Rules,
    f: Formula,
    frames: Vec<Frame>,
    arm: usize,
}

type Found<T> = Result<T, Refusal>;

fn refuse<T>(span: Span, what: &'static str) -> Found<T> {
    Err(Refusal { span, what, inside: None })
}

impl<'n> Flatten<'n> {
    /// Creates an empty formula.
    pub fn new(names: &'n Names<'n>, rules: &'n Rules) -> Flatten<'n> {
        let f = Formula { arms: vec![Arm::default()], ..Formula::default() };
        Flatten { names, rules, f, frames: vec![], arm: 0 }
    }

    /// Returns the formula of a function for operands of some types.
    pub fn function(&mut self, module: ModuleRef, item: usize, types: &[ElemType]) -> Found<Formula> {
        let Some(f) = function(self.names, module, item) else { return refuse(Span::NONE, "no function") };
        self.f = Formula { arms: vec![Arm::default()], inputs: types.to_vec(), ..Formula::default() };
        self.arm = 0;
        let args = types.iter().enumerate();
        let args: Vec<Symbol> =
            args.map(|(k, &ty)| Symbol::Value(self.f.add(OpKind::Input(k), &[], Some(ty), 0))).collect();
        let value = self.call(module, item, f, args, f.body.span)?;
        let outs = match value {
            Symbol::Tuple(members) => members.into_iter().map(|(_, v)| v).collect(),
            one => vec![one],
        };
        for out in outs {
            let out = self.number(out, f.body.span)?;
            self.f.outputs.push(out);
        }
        self.f.name = self.names.qualified_fn(module, f);
        Ok(std::mem::take(&mut self.f))
    }

    /// Adds the adjoints of a call's operands to a formula, by the rule of the function: for each operand that is
    /// wanted and that the rule gives, its adjoint.
    pub fn rule(
        &mut self,
        formula: Formula,
        of: (ModuleRef, usize),
        args: &[Symbol],
        (ys, gs): (&[Id], &[Id]),
        wanted: &[bool],
    ) -> Found<(Formula, Vec<Option<Id>>)> {
        let names = self.names;
        let (Some(f), Some(rule)) = (function(names, of.0, of.1), self.rules.of(of)) else {
            return refuse(Span::NONE, "no rule");
        };
        let ItemKind::Grad(grad) = &names.tree(of.0).items[rule.item].kind else {
            return refuse(Span::NONE, "no rule");
        };
        self.f = formula;
        self.arm = 0;
        let mut frame = self.frame(of.0, f, args, f.body.span)?;
        let listed = |name: &SmolStr| grad.params.iter().any(|p| p.name == *name);
        let is_param = |name: &SmolStr| f.params.iter().any(|p| p.name.name == *name);
        frame.names.retain(|(name, _)| !is_param(name) || listed(name));
        for (names, ids) in [(&grad.results, ys), (&grad.adjoints, gs)] {
            match (&names[..], ids) {
                ([one], [id]) => frame.names.push((one.name.clone(), Symbol::Value(*id))),
                ([one], several) => {
                    let members = several.iter().zip(member_names(f));
                    let members = members.map(|(&id, name)| (name, Symbol::Value(id))).collect();
                    frame.names.push((one.name.clone(), Symbol::Tuple(members)));
                }
                (several, ids) if several.len() == ids.len() => {
                    let named = several.iter().zip(ids);
                    frame.names.extend(named.map(|(name, &id)| (name.name.clone(), Symbol::Value(id))));
                }
                _ => return refuse(grad.name.span, "a rule of another number of results"),
            }
        }
        self.frames.push(frame);
        let value = self.rule_body(&grad.body, &|name| {
            let k = f.params.iter().position(|p| p.name.name == *name);
            k.is_some_and(|k| wanted[k])
        });
        self.frames.pop();
        let Symbol::Tuple(members) = value? else {
            return refuse(grad.body.span, "a rule that gives no tuple with names");
        };
        let mut adjoints = vec![None; args.len()];
        for (name, value) in members {
            let k = f.params.iter().position(|p| p.name.name == name);
            if let (Some(k), Symbol::Value(d)) = (k, value) {
                adjoints[k] = wanted[k].then_some(d);
            }
        }
        Ok((std::mem::take(&mut self.f), adjoints))
    }

    /// Evaluates the body of a rule; of a tuple that it returns, only the wanted members.
    fn rule_body(&mut self, body: &'n ast::Body, wanted: &dyn Fn(&SmolStr) -> bool) -> Found<Symbol> {
        let tree = self.tree();
        let (last, before) = match (body.value, body.stmts.split_last()) {
            (Some(e), _) => (Some(e), &body.stmts[..]),
            (None, Some((&s, before))) => match tree.stmts[s].kind {
                StmtKind::Return(Some(e)) => (Some(e), before),
                _ => (None, &body.stmts[..]),
            },
            _ => (None, &body.stmts[..]),
        };
        if let Some(e) = last
            && let ExprKind::Tuple(args) = &tree.exprs[e].kind
        {
            if self.statements(before, None)?.is_some() {
                return refuse(body.span, "a `return` before the last statement of a rule");
            }
            let mut members = vec![];
            for a in args {
                if let Some(name) = a.name.as_ref().filter(|n| wanted(&n.name)) {
                    let value = self.expr(a.value)?;
                    members.push((name.name.clone(), value));
                }
            }
            return Ok(Symbol::Tuple(members));
        }
        match self.body(body)? {
            Some(value) => Ok(value),
            None => refuse(body.span, "a rule that returns nothing"),
        }
    }

    fn tree(&self) -> &'n ast::Module {
        self.names.tree(self.module())
    }

    fn module(&self) -> ModuleRef {
        self.frames.last().map_or(ModuleRef(0), |f| f.module)
    }

    /// Returns the frame of a call: its parameters and generics.
    fn frame(&mut self, module: ModuleRef, f: &'n ast::Fn, args: &[Symbol], span: Span) -> Found<Frame> {
        let mut names: Vec<(SmolStr, Symbol)> = vec![];
        let is_generic = |name: &str| f.generics.iter().any(|g| g.name.name == name);
        let mut values = args.to_vec();
        for (p, value) in f.params.iter().zip(&values) {
            if let (Some(name), Symbol::Value(id)) = (stated(&p.ty), value)
                && is_generic(&name)
                && let Some(ty) = self.f.code[*id].ty
                && !names.iter().any(|(n, _)| *n == name)
            {
                names.push((name, Symbol::Type(ty)));
            }
        }
        for (p, value) in f.params.iter().zip(&mut values) {
            if matches!(&p.ty, Some(ast::Type { kind: TypeKind::Name { dims: Some(_), .. }, .. })) {
                return refuse(span, "an array");
            }
            let ty = stated(&p.ty).and_then(|n| match names.iter().find(|(m, _)| *m == n) {
                Some((_, Symbol::Type(t))) => Some(*t),
                _ => ElemType::from_name(&n),
            });
            if let (Some(ty), Symbol::Value(id)) = (ty, &mut *value)
                && self.f.code[*id].ty.is_none()
            {
                *id = self.f.add(OpKind::Convert(ty), &[*id], Some(ty), 0);
            }
        }
        names.extend(f.params.iter().map(|p| p.name.name.clone()).zip(values));
        Ok(Frame { module, names })
    }

    /// Evaluates a call of a codelet function.
    fn call(&mut self, module: ModuleRef, item: usize, f: &'n ast::Fn, args: Vec<Symbol>, span: Span) -> Found<Symbol> {
        if self.frames.len() >= DEPTH {
            return refuse(span, "a call that nests too deep");
        }
        if args.len() != f.params.len() {
            return refuse(span, "a call with other arguments than the function has");
        }
        let frame = self.frame(module, f, &args, span)?;
        if self.rules.of((module, item)).is_some() {
            let ids: Option<Vec<Id>> = frame
                .names
                .iter()
                .rev()
                .take(f.params.len())
                .rev()
                .map(|(_, v)| if let Symbol::Value(id) = v { Some(*id) } else { None })
                .collect();
            let Some(ids) = ids else { return refuse(span, "an argument that is no number") };
            let of_type = |name: SmolStr| match frame.names.iter().find(|(n, _)| *n == name) {
                Some((_, Symbol::Type(t))) => Some(*t),
                _ => ElemType::from_name(&name),
            };
            let name = self.names.qualified_fn(module, f);
            let arm = self.arm;
            if let Some(ast::Type { kind: TypeKind::Tuple(types), .. }) = &f.result {
                let mut members = vec![];
                for (k, ((_, ty), member)) in types.iter().zip(member_names(f)).enumerate() {
                    let Some(ty) = stated(&Some(ty.clone())).and_then(of_type) else {
                        return refuse(span, "a rule and a tuple inside a tuple");
                    };
                    let kind = OpKind::Part(module, item, name.clone(), k, types.len());
                    members.push((member, Symbol::Value(self.f.add(kind, &ids, Some(ty), arm))));
                }
                return Ok(Symbol::Tuple(members));
            }
            let result = match stated(&f.result) {
                Some(name) => of_type(name),
                None => ids.first().and_then(|&id| self.f.code[id].ty),
            };
            return Ok(Symbol::Value(self.f.add(OpKind::Call(module, item, name), &ids, result, arm)));
        }
        self.frames.push(frame);
        let value = self.body(&f.body);
        self.frames.pop();
        match value? {
            Some(value) => Ok(value),
            None => refuse(f.body.span, "a function without a result"),
        }
    }

    /// Evaluates a body; `None` if it returns nothing.
    fn body(&mut self, body: &'n ast::Body) -> Found<Option<Symbol>> {
        let mark = self.frames.last().map_or(0, |f| f.names.len());
        let value = self.statements(&body.stmts, body.value);
        if let Some(f) = self.frames.last_mut() {
            f.names.truncate(mark);
        }
        value
    }

    fn statements(&mut self, stmts: &'n [ast::StmtId], value: Option<ExprId>) -> Found<Option<Symbol>> {
        let tree = self.tree();
        for (k, &id) in stmts.iter().enumerate() {
            let s = &tree.stmts[id];
            match &s.kind {
                StmtKind::Decl(ast::Decl::Let(l)) => {
                    let value = self.expr(l.value)?;
                    let value = match (&l.ty, value) {
                        (Some(ty), value @ Symbol::Value(_)) => self.as_type(value, ty, l.span)?,
                        (_, value) => value,
                    };
                    self.bind(&l.pattern, value, l.span)?;
                }
                StmtKind::Return(Some(e)) => return self.expr(*e).map(Some),
                StmtKind::Assign { op, target, value } => self.assign(*op, *target, *value, s.span)?,
                StmtKind::Expr { expr, semi } => match &tree.exprs[*expr].kind {
                    ExprKind::If { cond, then, els } => {
                        let rest = (&stmts[k + 1..], value);
                        if let Some(found) = self.branch(*cond, then, *els, Some(rest), s.span)? {
                            return Ok(Some(found));
                        }
                    }
                    ExprKind::Block(body) => {
                        if let Some(found) = self.body(body)? {
                            return Ok(Some(found));
                        }
                    }
                    _ if k + 1 == stmts.len() && value.is_none() && !semi => return self.expr(*expr).map(Some),
                    _ => return refuse(s.span, "a statement without a value"),
                },
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Repeat { .. } => {
                    return refuse(s.span, "a loop");
                }
                _ => return refuse(s.span, "a statement of this kind"),
            }
        }
        value.map(|e| self.expr(e)).transpose()
    }

    fn bind(&mut self, pattern: &Pattern, value: Symbol, span: Span) -> Found<()> {
        match (pattern, value) {
            (Pattern::Wildcard(_), _) => Ok(()),
            (Pattern::Name(n), value) => {
                if let Some(f) = self.frames.last_mut() {
                    f.names.push((n.name.clone(), value));
                }
                Ok(())
            }
            (Pattern::Tuple(parts, _), Symbol::Tuple(values)) if parts.len() == values.len() => {
                parts.iter().zip(values).try_for_each(|(p, (_, v))| self.bind(p, v, span))
            }
            _ => refuse(span, "a pattern that does not fit"),
        }
    }

    fn assign(&mut self, op: AssignOp, target: ExprId, value: ExprId, span: Span) -> Found<()> {
        let tree = self.tree();
        let ExprKind::Name(name) = &tree.exprs[target].kind else { return refuse(span, "a write to an element") };
        let value = self.expr(value)?;
        let old = self.local(name);
        let new = match (op, old) {
            (AssignOp::Set, Some(_)) => value,
            (AssignOp::With(operator), Some(old)) => self.binary(operator, old, value, span)?,
            _ => return refuse(span, "a write to a field"),
        };
        let names = self.frames.last_mut().map(|f| &mut f.names);
        if let Some((_, v)) = names.and_then(|n| n.iter_mut().rev().find(|(n, _)| n == name)) {
            *v = new;
        }
        Ok(())
    }

    fn local(&self, name: &str) -> Option<Symbol> {
        let names = &self.frames.last()?.names;
        names.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone())
    }

    /// Evaluates an `if`. If an arm returns, the statements after it belong to the other arm; the value is then that
    /// of the whole. `None` if neither returns.
    fn branch(
        &mut self,
        cond: ExprId,
        then: &'n ast::Body,
        els: Option<ExprId>,
        rest: Option<(&'n [ast::StmtId], Option<ExprId>)>,
        span: Span,
    ) -> Found<Option<Symbol>> {
        let cond = match self.expr(cond)? {
            Symbol::Known(true) => return self.body(then),
            Symbol::Known(false) => return self.otherwise(els),
            Symbol::Value(id) => id,
            _ => return refuse(span, "a condition of this kind"),
        };
        let outer = self.arm;
        let names = self.frames.last().map(|f| f.names.clone()).unwrap_or_default();
        self.enter(cond, false, outer);
        let mut first = self.body(then)?;
        let then_names = self.swap(names.clone());
        self.enter(cond, true, outer);
        let mut second = self.otherwise(els)?;
        let returns = first.is_some() || second.is_some();
        if let (true, Some((stmts, value))) = (returns, rest) {
            if second.is_none() {
                second = self.statements(stmts, value)?;
            } else if first.is_none() {
                let els_names = self.swap(then_names.clone());
                self.enter(cond, false, outer);
                first = self.statements(stmts, value)?;
                self.swap(els_names);
            }
        }
        self.arm = outer;
        match (first, second) {
            (Some(a), Some(b)) => self.choose(cond, a, b, span).map(Some),
            (None, None) => {
                let els_names = self.swap(names);
                for (k, ((_, a), (_, b))) in then_names.into_iter().zip(els_names).enumerate() {
                    let chosen = match (&a, &b) {
                        (Symbol::Value(x), Symbol::Value(y)) if x != y => self.choose(cond, a, b, span)?,
                        _ => a,
                    };
                    if let Some(f) = self.frames.last_mut() {
                        f.names[k].1 = chosen;
                    }
                }
                Ok(None)
            }
            _ => refuse(span, "an `if` of which one arm has no value"),
        }
    }

    fn swap(&mut self, names: Vec<(SmolStr, Symbol)>) -> Vec<(SmolStr, Symbol)> {
        self.frames.last_mut().map(|f| std::mem::replace(&mut f.names, names)).unwrap_or_default()
    }

    fn enter(&mut self, cond: Id, negated: bool, outer: usize) {
        self.f.arms.push(Arm { outer, cond, negated });
        self.arm = self.f.arms.len() - 1;
    }

    fn otherwise(&mut self, els: Option<ExprId>) -> Found<Option<Symbol>> {
        let Some(els) = els else { return Ok(None) };
        let tree = self.tree();
        match &tree.exprs[els].kind {
            ExprKind::Block(body) => self.body(body),
            ExprKind::If { cond, then, els: more } => self.branch(*cond, then, *more, None, tree.exprs[els].span),
            _ => self.expr(els).map(Some),
        }
    }

    /// Returns one of two values by a condition.
    fn choose(&mut self, cond: Id, a: Symbol, b: Symbol, span: Span) -> Found<Symbol> {
        match (a, b) {
            (Symbol::Value(a), Symbol::Value(b)) if a == b => Ok(Symbol::Value(a)),
            (Symbol::Value(a), Symbol::Value(b)) => {
                let ty = self.f.code[a].ty.or(self.f.code[b].ty);
                let arm = self.arm;
                Ok(Symbol::Value(self.f.add(OpKind::Builtin("select".into()), &[cond, a, b], ty, arm)))
            }
            (Symbol::Tuple(a), Symbol::Tuple(b)) if a.len() == b.len() => {
                let mut all = vec![];
                for ((name, a), (_, b)) in a.into_iter().zip(b) {
                    all.push((name, self.choose(cond, a, b, span)?));
                }
                Ok(Symbol::Tuple(all))
            }
            _ => refuse(span, "arms of different kinds"),
        }
    }

    fn expr(&mut self, id: ExprId) -> Found<Symbol> {
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
                        let (cond, outer) = (*cond, self.arm);
                        self.enter(cond, *op == BinaryOp::Or, outer);
                        let right = self.expr(*right);
                        self.arm = outer;
                        return self.binary(*op, left, right?, e.span);
                    }
                    _ => {}
                }
                let right = self.expr(*right)?;
                self.binary(*op, left, right, e.span)
            }
            ExprKind::Block(body) => match self.body(body)? {
                Some(value) => Ok(value),
                None => refuse(e.span, "a block without a value"),
            },
            ExprKind::If { cond, then, els } => match self.branch(*cond, then, *els, None, e.span)? {
                Some(value) => Ok(value),
                None => refuse(e.span, "an `if` without a value"),
            },
            ExprKind::Call { callee, args } => self.call_expr(*callee, args, e.span),
            ExprKind::Index { .. } => refuse(e.span, "an element of an array"),
            ExprKind::Reduce(_) => refuse(e.span, "a loop"),
            _ => refuse(e.span, "an expression of this kind"),
        }
    }

    fn literal(&mut self, kind: OpKind, ty: Option<ElemType>) -> Symbol {
        Symbol::Value(self.f.add(kind, &[], ty, 0))
    }

    /// Returns the value of a name that is not local.
    fn item(&mut self, path: &str, span: Span) -> Found<Symbol> {
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
            _ => refuse(span, "a name of this kind"),
        }
    }

    fn binary(&mut self, op: BinaryOp, left: Symbol, right: Symbol, span: Span) -> Found<Symbol> {
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
                let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
                if divides && self.f.code[a].ty.or(self.f.code[b].ty).is_some_and(|t| !t.is_float()) {
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

    /// Returns an integer divisor that is 1 where its arm does not run: both arms of an `if` are evaluated, and a
    /// division by zero ends the program.
    fn one_where_idle(&mut self, divisor: Id) -> Id {
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

    fn number(&mut self, value: Symbol, span: Span) -> Found<Id> {
        match value {
            Symbol::Value(id) => Ok(id),
            Symbol::Known(b) => Ok(self.f.add(OpKind::Bool(b), &[], Some(ElemType::Bool), 0)),
            _ => refuse(span, "a value that is no number"),
        }
    }

    fn as_type(&mut self, value: Symbol, ty: &ast::Type, span: Span) -> Found<Symbol> {
        let name = stated(&Some(ty.clone()));
        let wanted = match name.as_deref().and_then(|n| self.local(n)) {
            Some(Symbol::Type(t)) => Some(t),
            _ => name.as_deref().and_then(ElemType::from_name),
        };
        match (wanted, value) {
            (Some(ty), Symbol::Value(id)) if self.f.code[id].ty.is_none() => {
                Ok(Symbol::Value(self.f.add(OpKind::Convert(ty), &[id], Some(ty), 0)))
            }
            (Some(_), value) => Ok(value),
            (None, _) => refuse(span, "an array"),
        }
    }

    fn call_expr(&mut self, callee: ExprId, args: &'n [ast::Arg], span: Span) -> Found<Symbol> {
        let tree = self.tree();
        let Some(path) = crate::trees::dotted(tree, callee) else { return refuse(span, "a call of this kind") };
        let mut values = vec![];
        for a in args {
            if a.name.is_some() {
                return refuse(span, "an argument with a name");
            }
            values.push(self.expr(a.value)?);
        }
        let arm = self.arm;
        let (first, field) = path.split_once('.').map_or((&path[..], None), |(a, b)| (a, Some(b)));
        let ty = match self.local(first) {
            Some(Symbol::Type(ty)) => Some(ty),
            Some(_) => return refuse(span, "a call of a value"),
            None => ElemType::from_name(first).or((first == "int").then_some(ElemType::I64)),
        };
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
                self.call(module, index, f, values, span)
            }
            _ => refuse(span, "a call of this kind"),
        }
    }

    fn builtin(&mut self, name: &str, ids: Vec<Id>, span: Span) -> Found<Symbol> {
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

/// Returns the name of a stated type without dimensions.
fn stated(ty: &Option<ast::Type>) -> Option<SmolStr> {
    match ty {
        Some(ast::Type { kind: TypeKind::Name { name, .. }, .. }) => Some(name.dotted()),
        _ => None,
    }
}

/// Returns the names of the members of the tuple that a function states as its result.
fn member_names(f: &ast::Fn) -> Vec<SmolStr> {
    match &f.result {
        Some(ast::Type { kind: TypeKind::Tuple(types), .. }) => {
            types.iter().map(|(name, _)| name.as_ref().map(|n| n.name.clone()).unwrap_or_default()).collect()
        }
        _ => vec![],
    }
}

fn function<'n>(names: &'n Names<'n>, module: ModuleRef, item: usize) -> Option<&'n ast::Fn> {
    match &names.tree(module).items.get(item)?.kind {
        ItemKind::Fn(f) => Some(f),
        _ => None,
    }
}
