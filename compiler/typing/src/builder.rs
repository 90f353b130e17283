//! The state of translating one body: the arenas of the codelet, the open types, the blocks that receive statements,
//! and the calls that are being inlined.
//!
//! Invariant: there is always one frame and one open block; nothing is added to the arenas once a limit is exceeded.

use super::apart::CallApart;
use super::types::{Ty, Types};
use super::value::{Binding, Literal, Value};
use super::{ModuleRef, Scope};
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Check, Codelet, Expr, ExprKind, Label, Local, Site, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId, SiteId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Diagnostics, Session, Span};
use girder_syntax::ast;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use smol_str::SmolStr;

/// Maximal number of expressions and statements of one codelet, whatever `static_steps` allows: the code generator
/// would take too long for a larger one.
const MAX_NODES: u64 = 1 << 21;

/// Maximal number of diagnostics reported for one codelet.
const MAX_REPORTS: u32 = 50;

/// The body of the codelet, or a function body that is being inlined.
pub(super) struct Frame<'a> {
    /// The module in which its names are looked up.
    pub module: ModuleRef,
    /// The tree that contains its expressions.
    pub tree: &'a ast::Module,
    /// The function; `None` for the codelet itself.
    pub item: Option<&'a ast::Fn>,
    /// The span of the call.
    pub call: Span,
    /// Names in scope, innermost last.
    pub names: Vec<Binding>,
    /// The enclosing loops, innermost last.
    pub loops: Vec<Loop>,
    /// The number of reductions around the call.
    pub region: u32,
    /// The exit for early `return`s, once there is one.
    pub early: Option<Early>,
    /// The value of a `return` at the top level of the function's body.
    pub last: Option<Value>,
}

/// A loop that `break` and `continue` can refer to.
#[derive(Clone, Copy)]
pub(super) struct Loop {
    /// The block that `break` leaves.
    pub exit: Label,
    /// The block that `continue` leaves.
    pub next: Label,
    /// The number of reductions around the loop.
    pub region: u32,
}

/// The common exit of the early `return`s of a function.
pub(super) struct Early {
    /// The block that they leave.
    pub label: Label,
    /// The locals that receive the value.
    pub value: Value,
    /// The number of statements that leave the block.
    pub jumps: u32,
}

/// Properties of a local beyond its declaration.
#[derive(Clone, Default)]
pub(super) struct LocalInfo {
    /// Whether it was declared by `let mut`: a scalar may then be assigned, and so may the elements of an array.
    pub mutable: bool,
    /// The number of reductions around its declaration.
    pub region: u32,
    /// The span of the declaration.
    pub span: Span,
    /// For a loop index that starts at a number that is not negative: its exclusive upper bound.
    pub below: Option<ExprId>,
}

/// The state of translating one body.
pub(super) struct Builder<'a, 'd> {
    pub scope: &'a dyn Scope,
    pub session: &'a Session,
    pub diagnostics: &'d mut Diagnostics,
    /// The codelet so far. The types of its expressions and locals are in `expr_types` and `local_types`.
    pub out: Codelet,
    pub types: Types,
    pub expr_types: SecondaryMap<ExprId, Ty>,
    /// The nesting depth of operations in each expression; literals and locals have depth 0.
    pub expr_depths: SecondaryMap<ExprId, u32>,
    pub local_types: SecondaryMap<LocalId, Ty>,
    pub local_info: SecondaryMap<LocalId, LocalInfo>,
    /// Constants whose bits are set once their type is decided.
    pub literals: FxHashMap<ExprId, Literal>,
    /// Lengths that are expressions over sizes; each use gets a copy.
    pub lengths: FxHashSet<ExprId>,
    pub blocks: Vec<StmtBlock>,
    pub frames: Vec<Frame<'a>>,
    /// The number of reductions around the current expression.
    pub region: u32,
    /// Whether a dimension or an attribute is translated: no value can change, so none needs a local.
    pub pure: bool,
    /// The calls that stay apart, by the labels of their blocks.
    pub apart: FxHashMap<Label, CallApart<'a>>,
    depth: u32,
    nodes: u64,
    labels: u32,
    reports: u32,
    failed: bool,
    stopped: bool,
}

impl<'a, 'd> Builder<'a, 'd> {
    /// Creates an empty codelet whose names are looked up in `module`.
    pub(super) fn new(
        scope: &'a dyn Scope,
        module: ModuleRef,
        session: &'a Session,
        diagnostics: &'d mut Diagnostics,
    ) -> Builder<'a, 'd> {
        let frame = Frame {
            module,
            tree: scope.tree(module),
            item: None,
            call: Span::NONE,
            names: vec![],
            loops: vec![],
            region: 0,
            early: None,
            last: None,
        };
        Builder {
            scope,
            session,
            diagnostics,
            out: Codelet::empty("", Span::NONE),
            types: Types::default(),
            expr_types: SecondaryMap::new(),
            expr_depths: SecondaryMap::new(),
            local_types: SecondaryMap::new(),
            local_info: SecondaryMap::new(),
            literals: FxHashMap::default(),
            lengths: FxHashSet::default(),
            blocks: vec![vec![]],
            frames: vec![frame],
            region: 0,
            pure: false,
            apart: FxHashMap::default(),
            depth: 0,
            nodes: 0,
            labels: 0,
            reports: 0,
            failed: false,
            stopped: false,
        }
    }

    /// Returns the innermost body.
    pub(super) fn frame(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("there is always a frame")
    }

    /// Returns the tree that contains the current expressions.
    pub(super) fn tree(&self) -> &'a ast::Module {
        self.frames.last().expect("there is always a frame").tree
    }

    /// Returns whether an error was reported.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Reports a diagnostic, together with the calls around the current body.
    pub(super) fn report(&mut self, mut d: Diagnostic) {
        if self.stopped || self.reports >= MAX_REPORTS {
            return;
        }
        self.reports += 1;
        self.failed |= d.severity == girder_source::Severity::Error;
        for f in self.frames.iter().rev().filter(|f| f.item.is_some()).take(4) {
            d = d.label(f.call, "in this call");
        }
        self.diagnostics.push(d);
    }

    /// Marks the codelet as wrong, for a reason that has been reported.
    pub(super) fn fail_silently(&mut self) {
        self.failed = true;
    }

    /// Reports an error; returns [`Value::Error`].
    pub(super) fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> Value {
        self.report(Diagnostic::error(code, span, message));
        Value::Error
    }

    /// Runs `f` one nesting level deeper. Beyond the limit, reports an error and returns `None`.
    pub(super) fn deeper<T>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let limit = self.session.limits.nesting;
        if self.stopped {
            return None;
        }
        if self.depth >= limit {
            self.stop(span, format!("this is nested more than {limit} deep, inlined calls counted"), "nesting");
            return None;
        }
        self.depth += 1;
        let r = f(self);
        self.depth -= 1;
        Some(r)
    }

    fn stop(&mut self, span: Span, message: String, limit: &str) {
        let help = format!("write it more simply, or raise the limit `{limit}`");
        self.report(Diagnostic::error("codelet::too_large", span, message).help(help));
        self.stopped = true;
    }

    /// Counts one node; returns `false` once a limit is exceeded, which ends the translation.
    pub(super) fn charge(&mut self, span: Span) -> bool {
        self.nodes += 1;
        let limit = self.session.limits.static_steps.min(MAX_NODES);
        if self.nodes > limit && !self.stopped {
            let message = format!("this codelet has more than {limit} operations after inlining");
            self.stop(span, message, "static_steps");
        }
        if self.nodes.is_multiple_of(1024) && self.session.cancel.is_cancelled() {
            (self.failed, self.stopped) = (true, true);
        }
        !self.stopped
    }

    /// Adds an expression.
    pub(super) fn push(&mut self, kind: ExprKind, ty: Ty, span: Span) -> ExprId {
        self.charge(span);
        let depth = kind.operands().iter().map(|&x| 1 + self.expr_depths[x]).max().unwrap_or(0);
        let id = self.out.exprs.push(Expr { kind, ty: ElemType::I64, span });
        self.expr_types[id] = ty;
        self.expr_depths[id] = depth;
        id
    }

    /// Returns the type of an expression, which may still be open.
    pub(super) fn ty(&self, e: ExprId) -> Ty {
        self.types.resolve(self.expr_types[e])
    }

    /// Adds a number whose type is decided by its uses.
    pub(super) fn literal(&mut self, value: Literal, ty: Ty, span: Span) -> ExprId {
        let id = self.push(ExprKind::Const(Scalar::zero(ElemType::I64)), ty, span);
        self.literals.insert(id, value);
        id
    }

    /// Adds an `int`.
    pub(super) fn int(&mut self, value: i64, span: Span) -> ExprId {
        self.literal(Literal::Int(value.into()), super::types::INT, span)
    }

    /// Returns the value of an `int` constant.
    pub(super) fn const_int(&self, e: ExprId) -> Option<i64> {
        match (self.literals.get(&e), self.ty(e)) {
            (Some(&Literal::Int(v)), super::types::INT) => i64::try_from(v).ok(),
            _ => None,
        }
    }

    /// Adds a statement to the open block.
    pub(super) fn emit(&mut self, stmt: Stmt) {
        if self.charge(Span::NONE) {
            self.blocks.last_mut().expect("a block is open").push(stmt);
        }
    }

    /// Appends statements that were counted when they were made.
    pub(super) fn append(&mut self, block: StmtBlock) {
        self.blocks.last_mut().expect("a block is open").extend(block);
    }

    /// Returns the number of statements in the open block.
    pub(super) fn mark(&self) -> usize {
        self.blocks.last().map_or(0, Vec::len)
    }

    /// Runs `f` with a new open block.
    pub(super) fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (T, StmtBlock) {
        self.blocks.push(vec![]);
        let r = f(self);
        (r, self.blocks.pop().unwrap_or_default())
    }

    /// Returns a new label.
    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Returns a new scalar local.
    pub(super) fn local(&mut self, name: impl Into<SmolStr>, ty: Ty, mutable: bool, span: Span) -> LocalId {
        let id = self.out.locals.push(Local { name: name.into(), ty: ElemType::I64, array: None });
        self.local_types[id] = ty;
        self.local_info[id] = LocalInfo { mutable, region: self.region, span, below: None };
        id
    }

    /// Returns the value of a scalar local.
    pub(super) fn read_local(&mut self, local: LocalId, span: Span) -> ExprId {
        self.push(ExprKind::Local(local), self.local_types[local], span)
    }

    /// Adds a site: a position where a check may fail.
    pub(super) fn site(&mut self, check: Check, span: Span, message: Option<SmolStr>) -> SiteId {
        let calls: SmallVec<[Span; 1]> =
            self.frames.iter().rev().filter(|f| f.item.is_some()).map(|f| f.call).collect();
        self.out.sites.push(Site { check, span, calls, message })
    }

    /// Returns whether no later statement changes the value and evaluating it twice costs nothing.
    pub(super) fn is_stable(&self, e: ExprId) -> bool {
        match self.out.exprs[e].kind {
            ExprKind::Const(_) | ExprKind::Size(_) | ExprKind::ConstField(_) | ExprKind::Worker | ExprKind::Workers => {
                true
            }
            ExprKind::Local(l) => !self.local_info[l].mutable,
            _ => self.pure || self.lengths.contains(&e),
        }
    }

    /// Returns the same value for another use: expressions are trees, so a leaf is not shared.
    pub(super) fn again(&mut self, e: ExprId) -> ExprId {
        if self.lengths.contains(&e) {
            let copy = self.copied(e);
            self.lengths.insert(copy);
            return copy;
        }
        if !matches!(
            self.out.exprs[e].kind,
            ExprKind::Const(_)
                | ExprKind::Size(_)
                | ExprKind::ConstField(_)
                | ExprKind::Worker
                | ExprKind::Workers
                | ExprKind::Local(_)
        ) {
            return e;
        }
        self.copied_leaf(e)
    }

    fn copied_leaf(&mut self, e: ExprId) -> ExprId {
        let copy = self.out.exprs[e].clone();
        let id = self.push(copy.kind, self.expr_types[e], copy.span);
        if let Some(&l) = self.literals.get(&e) {
            self.literals.insert(id, l);
        }
        id
    }

    /// Returns a copy of an expression over sizes and constants.
    fn copied(&mut self, e: ExprId) -> ExprId {
        let mut kind = self.out.exprs[e].kind.clone();
        if kind.operands().is_empty() {
            return self.copied_leaf(e);
        }
        kind.map_operands(|x| self.copied(x));
        self.push(kind, self.expr_types[e], self.out.exprs[e].span)
    }
}
