//! Codelet functions as formulas: calls are inlined, names become operations, static conditions are decided, and all
//! arms of a run-time `if` or `switch` are evaluated.
//!
//! Invariant: a function with a rule is not entered; its call is one operation.

mod arrays;
mod expressions;
mod flow;
mod statements;

use super::{Arm, Formula, Id, OpKind};
use crate::codelets::Names;
use crate::gradients::rule_table::{Rules, no_members, no_parameter};
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Span};
use girder_syntax::ast::{self, ExprKind, ItemKind, StmtKind, TypeKind};
use girder_typing::{ModuleRef, Scope};
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
    /// The error, if the text is wrong.
    pub error: Option<Box<Diagnostic>>,
}

/// The value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Symbol {
    /// An operation.
    Value(Id),
    /// `(a, b)`, `(x: a)`
    Tuple(Vec<(SmolStr, Symbol)>),
    /// `[a, b]`
    Array(Vec<Symbol>),
    /// A condition that is known.
    Known(bool),
    /// An element type.
    Type(ElemType),
}

struct Frame<'n> {
    module: ModuleRef,
    names: Vec<(SmolStr, Symbol)>,
    /// The stated type of what the function returns.
    result: Option<&'n ast::Type>,
}

/// A formula under construction.
pub struct Flatten<'n> {
    names: &'n Names<'n>,
    rules: &'n Rules,
    f: Formula,
    frames: Vec<Frame<'n>>,
    arm: usize,
    flow: flow::Flow,
    guards: Vec<flow::Guard>,
}

type Found<T> = Result<T, Refusal>;

fn refuse<T>(span: Span, what: &'static str) -> Found<T> {
    Err(Refusal { span, what, inside: None, error: None })
}

/// Refuses a text that is wrong.
fn wrong<T>(error: Diagnostic) -> Found<T> {
    Err(Refusal { span: Span::NONE, what: "an error", inside: None, error: Some(Box::new(error)) })
}

impl<'n> Flatten<'n> {
    /// Creates an empty formula.
    pub fn new(names: &'n Names<'n>, rules: &'n Rules) -> Flatten<'n> {
        let f = Formula { arms: vec![Arm::default()], ..Formula::default() };
        Flatten { names, rules, f, frames: vec![], arm: 0, flow: flow::Flow::default(), guards: vec![] }
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

    /// Adds the adjoints of a call's operands to an arm of a formula, by the rule of the function: for each operand
    /// that is wanted and that the rule gives, its adjoint. `sizes` are the generics of the call that are integers.
    pub fn rule(
        &mut self,
        (formula, arm): (Formula, usize),
        (of, sizes): ((ModuleRef, usize), &[(SmolStr, i128)]),
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
        self.arm = arm;
        let mut frame = self.frame(of.0, f, args, f.body.span)?;
        for (name, value) in sizes {
            let value = self.literal(OpKind::Int(*value as i64), None);
            frame.names.insert(0, (name.clone(), value));
        }
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
                (several, ids) => {
                    let (f, n, m) = (f.name.dotted(), several.len(), ids.len());
                    let message = format!("the rule of `{f}` names {n} results, but the function gives {m}");
                    let d = Diagnostic::error("grad::rule_name", grad.name.span, message);
                    return wrong(d.help("name each result and its adjoint: `grad f(x; y, z; dy, dz) { … }`"));
                }
            }
        }
        self.frames.push(frame);
        let value = self.rule_body(&grad.body, &|name| {
            let k = f.params.iter().position(|p| p.name.name == *name);
            k.is_some_and(|k| wanted[k])
        });
        self.frames.pop();
        let Symbol::Tuple(members) = value? else {
            return wrong(no_members(grad.body.span));
        };
        let mut adjoints = vec![None; args.len()];
        for (name, value) in members {
            let Some(k) = f.params.iter().position(|p| p.name.name == name) else {
                return wrong(no_parameter(f, &ast::Ident { name, span: grad.body.span }));
            };
            if let (true, Symbol::Value(x)) = (wanted[k], &args[k]) {
                adjoints[k] = Some(self.fitting(value, self.f.code[*x].ty, &name, grad.body.span)?);
            }
        }
        Ok((std::mem::take(&mut self.f), adjoints))
    }

    /// Returns an adjoint of the type of its parameter.
    fn fitting(&mut self, value: Symbol, ty: Option<ElemType>, name: &str, span: Span) -> Found<Id> {
        let given = match value {
            Symbol::Value(id) => match (self.f.code[id].ty, ty) {
                (None, Some(ty)) => return Ok(self.f.add(OpKind::Convert(ty), &[id], Some(ty), self.arm)),
                (given, ty) if given == ty => return Ok(id),
                (given, _) => given.map_or("a number".into(), |ty| format_smolstr!("{ty}")),
            },
            Symbol::Tuple(_) => "a tuple".into(),
            Symbol::Array(_) => "an array".into(),
            Symbol::Known(_) => "bool".into(),
            Symbol::Type(_) => "a type".into(),
        };
        let of = ty.map_or("a number".into(), |ty| format_smolstr!("{ty}"));
        let message = format!("the rule gives {given} for `{name}`, which is {of}");
        let d = Diagnostic::error("grad::rule_shape", span, message);
        wrong(d.help(format!("an adjoint has the type of its parameter: `{name}: {of}(…)`")))
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
            self.statements(before, None, false)?;
            if self.has_left() || !self.guards.is_empty() {
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
        let value = self.body(body, true)?;
        match self.finish(0, value, body.span)? {
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
    fn frame(&mut self, module: ModuleRef, f: &'n ast::Fn, args: &[Symbol], span: Span) -> Found<Frame<'n>> {
        let mut names: Vec<(SmolStr, Symbol)> = vec![];
        let is_generic = |name: &str| f.generics.iter().any(|g| g.name.name == name);
        let mut values = vec![];
        for (p, value) in f.params.iter().zip(args) {
            if let (Some(name), Symbol::Value(id)) = (stated(&p.ty), value)
                && is_generic(&name)
                && let Some(ty) = self.f.code[*id].ty
                && !names.iter().any(|(n, _)| *n == name)
            {
                names.push((name, Symbol::Type(ty)));
            }
        }
        // Literals alone have the default type.
        for g in &f.generics {
            let name = &g.name.name;
            let of = f.params.iter().zip(args).filter(|(p, _)| stated(&p.ty).as_ref() == Some(name));
            let mut literals =
                of.filter_map(|(_, v)| if let Symbol::Value(id) = v { Some(*id) } else { None }).peekable();
            if literals.peek().is_some() && !names.iter().any(|(n, _)| n == name) {
                let float = stated(&g.bound).as_deref() == Some("float") || literals.any(|id| self.is_float(id));
                names.push((name.clone(), Symbol::Type(if float { ElemType::F32 } else { ElemType::I64 })));
            }
        }
        self.frames.push(Frame { module, names, result: None });
        for (p, value) in f.params.iter().zip(args) {
            let value = match &p.ty {
                Some(ast::Type { kind: TypeKind::Name { dims: Some(_), .. }, .. }) => return refuse(span, "an array"),
                Some(ty) => self.as_type(value.clone(), ty),
                None => value.clone(),
            };
            values.push((p.name.name.clone(), value));
        }
        let mut names = self.frames.pop().map(|f| f.names).unwrap_or_default();
        names.extend(values);
        Ok(Frame { module, names, result: None })
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
        let mark = self.guards.len();
        self.frames.push(Frame { result: f.result.as_ref(), ..frame });
        let value = self.body(&f.body, true)?;
        let result = self.finish(mark, value, f.body.span)?;
        self.frames.pop();
        match result {
            Some(value) => Ok(value),
            None => refuse(f.body.span, "a function without a result"),
        }
    }

    fn local(&self, name: &str) -> Option<Symbol> {
        let names = &self.frames.last()?.names;
        names.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone())
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
