//! Statements.
//!
//! Invariant: each statement of the codelet is printed once, in order, as a statement from which typing makes exactly
//! it.

use super::calls::{Call, Calls, function_name, is_leaf};
use super::names::Names;
use super::printed::{Result, unprintable};
use super::scope::{BlockId, Position, Scopes, diverges, ends};
use super::value::Form;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Codelet, Elementary, ExprKind, Label, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{self, StmtId, StmtKind};
use girder_syntax::make::{Make, arg, body, ident};
use smol_str::SmolStr;

/// The module of elementary functions, as printed text names it.
pub const PRELUDE: &str = "prelude";

/// A loop that `break` and `continue` refer to.
#[derive(Clone, Copy)]
struct Loop {
    exit: Label,
    next: Label,
}

/// How a local is declared.
#[derive(Clone)]
pub struct Declared {
    /// Its name.
    pub name: SmolStr,
    /// Whether it is `let mut`.
    pub mutable: bool,
}

/// The state of printing one codelet.
pub struct Printer<'c> {
    pub codelet: &'c Codelet,
    pub make: Make,
    pub scopes: Scopes,
    pub calls: Calls,
    pub names: Names,
    /// The nesting of operations in each expression.
    pub depths: SecondaryMap<ExprId, u32>,
    /// The locals that are declared so far.
    pub declared: SecondaryMap<LocalId, Option<Declared>>,
    /// The functions that were called so far.
    pub functions: Vec<Elementary>,
    /// The loops around the current statement; `None` for a reduction, out of which nothing jumps.
    loops: Vec<Option<Loop>>,
}

impl<'c> Printer<'c> {
    /// Prepares to print a codelet.
    pub fn new(codelet: &'c Codelet) -> Result<Printer<'c>> {
        let scopes = Scopes::of(codelet);
        let calls = Calls::of(codelet, &scopes)?;
        let mut depths = SecondaryMap::new();
        for (id, e) in &codelet.exprs {
            // Operands precede their operators in the arena.
            let depth = e.kind.operands().iter().map(|&x| 1 + depths[x]).max().unwrap_or(0);
            depths[id] = depth;
        }
        let (make, names) = (Make::default(), Names::of(codelet));
        let (declared, functions, loops) = (SecondaryMap::new(), vec![], vec![]);
        Ok(Printer { codelet, make, scopes, calls, names, depths, declared, functions, loops })
    }

    /// Returns a local by its name.
    pub fn local(&mut self, local: LocalId) -> Result<ast::ExprId> {
        match &self.declared[local] {
            Some(declared) => Ok(self.make.name(&declared.name)),
            None => unprintable(format!("{local} is used outside the block that declares it, or before")),
        }
    }

    /// Names a local.
    pub fn declare(&mut self, local: LocalId, mutable: bool, unnamed: &str) -> Result<SmolStr> {
        if self.declared[local].is_some() {
            return unprintable(format!("{local} is declared twice"));
        }
        if mutable && (self.calls.fixed.contains(&local)) {
            return unprintable(format!("{local} is an argument of a function, but assigned, or a copy of a leaf"));
        }
        if !mutable && self.calls.copied.contains(&local) {
            return unprintable(format!("{local} is copied for an argument of a function"));
        }
        let preferred = &self.codelet.locals[local].name;
        let name = self.names.unused(if preferred.is_empty() { unnamed } else { preferred });
        self.declared[local] = Some(Declared { name: name.clone(), mutable });
        Ok(name)
    }

    /// Returns a statement without attributes.
    pub fn stmt(&mut self, kind: StmtKind) -> StmtId {
        self.make.stmt(kind)
    }

    /// Returns `let name = value;`.
    pub fn let_stmt(&mut self, name: &str, mutable: bool, ty: Option<ElemType>, value: ast::ExprId) -> StmtId {
        let ty = ty.map(|ty| self.make.tensor(ty.name(), &[]));
        let pattern = ast::Pattern::Name(ident(name));
        let decl = ast::Let { mutable, pattern, ty, value, span: Span::NONE };
        self.stmt(StmtKind::Decl(ast::Decl::Let(decl)))
    }

    /// Returns the statements of a block.
    pub fn block(&mut self, block: &StmtBlock) -> Result<Vec<StmtId>> {
        self.part(block, block.len())
    }

    /// Returns the first statements of a block.
    pub fn part(&mut self, block: &StmtBlock, end: usize) -> Result<Vec<StmtId>> {
        let mut done = Vec::with_capacity(end);
        let mut n = 0;
        while n < end {
            let position = (BlockId::of(block), n);
            if let Some(call) = self.calls.starts.remove(&position) {
                if !self.scopes.at((position.0, call.last)).contains(&call.result) {
                    return unprintable(format!("{} is used outside the block that sets it", call.result));
                }
                done.push(self.call(&call)?);
                n = call.last + 1;
                continue;
            }
            if n + 1 < block.len() && ends(&block[n]) {
                return unprintable("a statement cannot be reached");
            }
            let homes = self.undeclared(position);
            done.push(self.statement(&block[n], &homes)?);
            n += 1;
        }
        Ok(done)
    }

    /// Returns the locals that a statement has to declare. The index of a loop is declared by the loop around its home.
    pub fn undeclared(&self, position: Position) -> Vec<LocalId> {
        let homes = self.scopes.at(position).iter().copied();
        homes.filter(|&local| self.declared[local].is_none()).collect()
    }

    /// Returns `let t = prelude.exp(x);`.
    fn call(&mut self, call: &Call) -> Result<StmtId> {
        if self.names.hides(PRELUDE) {
            return unprintable(format!("a field or size hides `{PRELUDE}`"));
        }
        let argument = self.expr(call.argument)?;
        let name = format!("{PRELUDE}.{}", function_name(call.function));
        let value = self.make.call_name(&name, vec![arg(argument)]);
        if !self.functions.contains(&call.function) {
            self.functions.push(call.function);
        }
        let name = self.declare(call.result, false, "t")?;
        Ok(self.let_stmt(&name, false, None, value))
    }

    /// Returns a statement; `homes` are the locals that it has to declare.
    fn statement(&mut self, stmt: &Stmt, homes: &[LocalId]) -> Result<StmtId> {
        Ok(match stmt {
            Stmt::Set { local, value } if homes.contains(local) => self.declaration(*local, *value)?,
            Stmt::Set { local, value } => {
                if self.declared[*local].as_ref().is_none_or(|d| !d.mutable) {
                    return unprintable(format!("{local} is assigned, but not declared by `let mut`"));
                }
                let (target, value) = (self.local(*local)?, self.bare(*value)?);
                self.assign(target, value)
            }
            Stmt::Fill { local, value } if homes.contains(local) => self.array(*local, *value)?,
            Stmt::Fill { local, .. } => return unprintable(format!("{local} is used outside the block that fills it")),
            Stmt::StoreLocal { local, index, value, .. } => {
                let (target, value) = (self.array_element(*local, index)?, self.bare(*value)?);
                self.assign(target, value)
            }
            Stmt::Store { field, index, value, .. } => {
                let (target, value) = (self.field_element(*field, index)?, self.bare(*value)?);
                self.assign(target, value)
            }
            Stmt::For { .. } => self.for_loop(stmt)?,
            Stmt::While { before, cond, label, body: inner, .. } => self.while_loop(before, *cond, *label, inner)?,
            Stmt::If { cond, then, els } => self.branch(*cond, then, els, homes)?,
            Stmt::Labelled { .. } => return unprintable("a `return` leaves the middle of a function"),
            Stmt::Break(label) => {
                let Some(Some(Loop { exit, .. })) = self.loops.last() else {
                    return unprintable("`break` has no loop");
                };
                if exit != label {
                    return unprintable("`break` leaves another loop than the innermost one");
                }
                self.stmt(StmtKind::Break)
            }
            Stmt::Continue(label) => {
                let Some(Some(Loop { next, .. })) = self.loops.last() else {
                    return unprintable("`continue` has no loop");
                };
                if next != label {
                    return unprintable("`continue` goes on with another loop than the innermost one");
                }
                self.stmt(StmtKind::Continue)
            }
            Stmt::Assert { cond, site } => {
                let mut args = vec![arg(self.value(*cond, Form::Opaque)?)];
                if let Some(message) = &self.codelet.sites[*site].message {
                    args.push(arg(self.make.str(message.clone())));
                }
                let args = args.into_iter().map(|a| a.value).collect();
                let expr = self.builtin("assert", args)?;
                self.stmt(StmtKind::Expr { expr, semi: true })
            }
            Stmt::Return => self.stmt(StmtKind::Return(None)),
            Stmt::Reduce(r) => self.reduction(r, homes)?,
            Stmt::Amp(a) => self.product(a)?,
        })
    }

    /// Returns `target = value;`.
    fn assign(&mut self, target: ast::ExprId, value: ast::ExprId) -> StmtId {
        self.stmt(StmtKind::Assign { op: ast::AssignOp::Set, target, value })
    }

    /// Returns `let t = value;`.
    fn declaration(&mut self, local: LocalId, value: ExprId) -> Result<StmtId> {
        let kind = &self.codelet.exprs[value].kind;
        let assigned_again = self.scopes.sets[local] > 1 || self.calls.copied.contains(&local);
        let mutable = assigned_again || self.is_stable(kind);
        // A literal without a stated type would take its default.
        let ty = self.is_constant(value).then(|| self.codelet.locals[local].ty);
        let value = self.value(value, Form::Bare)?;
        let name = self.declare(local, mutable, "t")?;
        Ok(self.let_stmt(&name, mutable, ty, value))
    }

    /// Returns whether typing makes no local for `let t = value;`.
    pub fn is_stable(&self, kind: &ExprKind) -> bool {
        match kind {
            ExprKind::Local(local) => self.declared[*local].as_ref().is_some_and(|d| !d.mutable),
            kind => is_leaf(kind),
        }
    }

    /// Returns `let mut t = [value; count];`.
    fn array(&mut self, local: LocalId, value: ExprId) -> Result<StmtId> {
        let Some(dims) = &self.codelet.locals[local].array else { return unprintable("a scalar is filled") };
        if self.scopes.sets[local] > 1 {
            return unprintable("an array is filled again");
        }
        // The default of float literals.
        let bare = self.codelet.locals[local].ty == ElemType::F32;
        let mut e = self.value(value, if bare { Form::Bare } else { Form::Typed })?;
        for &n in dims.iter().rev() {
            let count = self.make.uint(n.into());
            e = self.make.expr(ast::ExprKind::Fill { value: e, count });
        }
        let name = self.declare(local, true, "t")?;
        Ok(self.let_stmt(&name, true, None, e))
    }

    /// Returns `for i in lo..hi, j in lo..hi { … }`.
    fn for_loop(&mut self, stmt: &Stmt) -> Result<StmtId> {
        let (mut binders, mut outermost, mut stmt) = (vec![], None, stmt);
        let (label, inner) = loop {
            let Stmt::For { var, lo, hi, step, label, body, .. } = stmt else { return unprintable("no loop") };
            if self.scopes.homes.iter().any(|(at, locals)| at.0 != BlockId::of(body) && locals.contains(var)) {
                return unprintable("the index of a loop is used after the loop");
            }
            let range = self.range(*lo, *hi, *step)?;
            let name = self.declare(*var, false, "i")?;
            binders.push(self.make.binder(&name, range));
            outermost.get_or_insert(*label);
            match &body[..] {
                [inner @ Stmt::For { label: inner_label, .. }]
                    if !self.scopes.breaks.contains(inner_label) && !self.scopes.continues.contains(label) =>
                {
                    stmt = inner;
                }
                _ => break (*label, body),
            }
        };
        let stmts = self.inside(Some(Loop { exit: outermost.unwrap_or(label), next: label }), |p| p.block(inner))?;
        Ok(self.stmt(StmtKind::For { binders, body: body(stmts) }))
    }

    /// Returns `lo..hi by step`.
    pub fn range(&mut self, lo: ExprId, hi: ExprId, step: i64) -> Result<ast::ExprId> {
        let (lo, hi) = (self.bare(lo)?, self.bare(hi)?);
        Ok(match step {
            1 => self.make.range(lo, hi),
            _ => {
                let by = self.make.int(step);
                self.make.range_by(lo, hi, by)
            }
        })
    }

    fn while_loop(&mut self, before: &StmtBlock, cond: ExprId, label: Label, inner: &StmtBlock) -> Result<StmtId> {
        let stmts = self.block(before)?;
        // A loop whose condition is statically false is dropped.
        let cond = self.value(cond, Form::Opaque)?;
        let cond = if stmts.is_empty() { cond } else { self.block_value(stmts, cond) };
        let stmts = self.inside(Some(Loop { exit: label, next: label }), |p| p.block(inner))?;
        Ok(self.stmt(StmtKind::While { cond, body: body(stmts) }))
    }

    /// Returns `{ statements; value }`.
    pub fn block_value(&mut self, stmts: Vec<StmtId>, value: ast::ExprId) -> ast::ExprId {
        let body = ast::Body { stmts, value: Some(value), span: Span::NONE };
        self.make.expr(ast::ExprKind::Block(Box::new(body)))
    }

    /// Runs `f` inside a loop, or inside a reduction.
    pub fn inside_reduction<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.inside(None, f)
    }

    fn inside<T>(&mut self, around: Option<Loop>, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.loops.push(around);
        let done = f(self);
        self.loops.pop();
        done
    }

    /// Returns whether control reaches the end of a block.
    pub fn reaches_end(block: &StmtBlock) -> bool {
        !diverges(block)
    }
}
