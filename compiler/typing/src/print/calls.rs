//! Calls of elementary functions: the statements that typing makes of `let t = exp(x);`.
//!
//! A call is inlined: a local for the argument unless it is a leaf already, the statements of the function, and the
//! assignment of the local that [`Codelet::elementary`] names. A function reads nothing but its argument, so the
//! statements that feed the result, but for the argument, are those of the function.
//!
//! Invariant: the statements of a call have no effect but that its result is set, and nothing else reads what they set.

use super::printed::{Result, unprintable};
use super::scope::{BlockId, Position, Scopes, each_local};
use girder_ir::codelet::{Codelet, Elementary, ExprKind, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, LocalId};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the name of a function in the prelude.
pub fn function_name(f: Elementary) -> &'static str {
    match f {
        Elementary::Exp => "exp",
        Elementary::Log => "log",
        Elementary::Tanh => "tanh",
        Elementary::Sigmoid => "sigmoid",
        Elementary::Rsqrt => "rsqrt",
        Elementary::Sin => "sin",
        Elementary::Cos => "cos",
    }
}

/// A call that is printed in place of statements.
pub struct Call {
    /// The function.
    pub function: Elementary,
    /// The argument.
    pub argument: ExprId,
    /// The local that holds the result.
    pub result: LocalId,
    /// The position of the last statement, which sets the result.
    pub last: usize,
}

/// The calls of a codelet.
#[derive(Default)]
pub struct Calls {
    /// By the position of the first statement.
    pub starts: BTreeMap<Position, Call>,
    /// Locals that are arguments. Typing must not copy them.
    pub fixed: BTreeSet<LocalId>,
    /// Locals whose copies are arguments. Typing must copy them.
    pub copied: BTreeSet<LocalId>,
}

impl Calls {
    /// Finds all calls.
    pub fn of(codelet: &Codelet, scopes: &Scopes) -> Result<Calls> {
        let mut finder = Finder { codelet, scopes, found: Calls::default() };
        finder.block(&codelet.body)?;
        Ok(finder.found)
    }
}

struct Finder<'c> {
    codelet: &'c Codelet,
    scopes: &'c Scopes,
    found: Calls,
}

impl Finder<'_> {
    fn block(&mut self, block: &StmtBlock) -> Result<()> {
        let mut end = block.len();
        while let Some(n) = end.checked_sub(1) {
            end = n;
            let call = match &block[n] {
                Stmt::Set { local, value } => self.codelet.elementary[*local].map(|(f, x)| (*local, *value, f, x)),
                _ => None,
            };
            match call {
                Some(call) => end = self.call(block, n, call)?,
                None => block[n].blocks().try_for_each(|inner| self.block(inner))?,
            }
        }
        Ok(())
    }

    /// Notes the call whose result is set at a position; returns the position of its first statement.
    fn call(
        &mut self,
        block: &StmtBlock,
        last: usize,
        (result, value, function, argument): (LocalId, ExprId, Elementary, ExprId),
    ) -> Result<usize> {
        let name = function_name(function);
        let of_argument = match self.codelet.exprs[argument].kind {
            ExprKind::Local(local) => Some(local),
            ref kind if kind.operands().is_empty() => None,
            _ => return unprintable(format!("the argument of `{name}` is not kept in a local")),
        };
        if self.scopes.sets[result] != 1 {
            return unprintable(format!("the result of `{name}` is assigned again"));
        }
        let mut start = self.first(block, last, value, of_argument);
        let body = &block[start..last];
        let own = Touched::of_all(self.codelet, body);
        let is_own = |local: LocalId| {
            let reads = reads_of(self.codelet, value, local);
            own.uses.get(&local).copied().unwrap_or(0) + reads == self.scopes.uses[local]
        };
        let pure = !own.effects && own.sets.iter().all(|&local| Some(local) != of_argument && is_own(local));
        let mut inputs = own.uses.keys().copied().collect::<BTreeSet<_>>();
        each_local(self.codelet, value, &mut |local| _ = inputs.insert(local));
        if !pure || inputs.iter().any(|l| !own.sets.contains(l) && Some(*l) != of_argument) {
            return unprintable(format!("the value of `{name}` is not that of the function alone"));
        }
        let mut argument = argument;
        if let Some(local) = of_argument {
            let inside = own.uses.get(&local).copied().unwrap_or(0) + reads_of(self.codelet, value, local);
            match start.checked_sub(1).map(|n| &block[n]) {
                Some(Stmt::Set { local: set, value: from })
                    if *set == local
                        && self.scopes.sets[local] == 1
                        && self.scopes.uses[local] == 1 + inside
                        && self.codelet.elementary[local].is_none()
                        && self.is_kept(*from) =>
                {
                    (start, argument) = (start - 1, *from);
                    self.copies(*from);
                }
                _ => {
                    self.found.fixed.insert(local);
                    self.scopes.values[local].into_iter().for_each(|from| self.copies(from));
                }
            }
        }
        let call = Call { function, argument, result, last };
        self.found.starts.insert((BlockId::of(block), start), call);
        Ok(start)
    }

    /// Notes that a local has to be copied where it is the whole value of an argument.
    fn copies(&mut self, value: ExprId) {
        if let ExprKind::Local(local) = self.codelet.exprs[value].kind {
            self.found.copied.insert(local);
        }
    }

    /// Returns whether typing keeps an argument in a local of its own, if it may.
    fn is_kept(&self, e: ExprId) -> bool {
        let kind = &self.codelet.exprs[e].kind;
        matches!(kind, ExprKind::Local(_)) || !is_leaf(kind)
    }

    /// Returns the position of the first statement that feeds the value, but for the argument.
    fn first(&self, block: &StmtBlock, last: usize, value: ExprId, argument: Option<LocalId>) -> usize {
        let mut needed = BTreeSet::new();
        let mut first = last;
        each_local(self.codelet, value, &mut |local| _ = needed.insert(local));
        for n in (0..last).rev() {
            let touched = Touched::of_all(self.codelet, &block[n..=n]);
            let feeds = touched.sets.iter().any(|l| Some(*l) != argument && needed.contains(l));
            if feeds {
                needed.extend(touched.uses.keys());
                first = n;
                continue;
            }
            // The function may set a local that nothing reads.
            match block[n] {
                Stmt::Set { local, .. } if self.scopes.uses[local] == 1 => {}
                _ => break,
            }
        }
        first
    }
}

/// Returns whether typing uses the value of an expression again without a local, if no statement changes it.
pub fn is_leaf(kind: &ExprKind) -> bool {
    matches!(
        kind,
        ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::ConstField(_)
            | ExprKind::Size(_)
            | ExprKind::Worker
            | ExprKind::Workers
    )
}

fn reads_of(codelet: &Codelet, e: ExprId, wanted: LocalId) -> u32 {
    let mut reads = 0;
    each_local(codelet, e, &mut |local| reads += u32::from(local == wanted));
    reads
}

/// What statements use and set.
#[derive(Default)]
struct Touched {
    uses: BTreeMap<LocalId, u32>,
    sets: BTreeSet<LocalId>,
    /// Whether they do more than to set locals: access fields, fail an assertion, or jump out.
    effects: bool,
}

impl Touched {
    fn of_all(codelet: &Codelet, stmts: &[Stmt]) -> Touched {
        let mut touched = Touched::default();
        stmts.iter().for_each(|stmt| touched.add(codelet, stmt, &mut vec![]));
        touched
    }

    fn set(&mut self, local: LocalId) {
        *self.uses.entry(local).or_default() += 1;
        self.sets.insert(local);
    }

    fn add(&mut self, codelet: &Codelet, stmt: &Stmt, labels: &mut Vec<girder_ir::codelet::Label>) {
        // The factors of a sum are operands of its value.
        let reads = |touched: &mut Touched, e: ExprId| {
            each_local(codelet, e, &mut |local| *touched.uses.entry(local).or_default() += 1);
            touched.effects |= loads(codelet, e);
        };
        match stmt {
            Stmt::Reduce(r) => {
                r.binders.iter().flat_map(|b| [b.lo, b.hi]).for_each(|e| reads(self, e));
                r.filter.into_iter().chain([r.value]).for_each(|e| reads(self, e));
            }
            _ => stmt.for_each_expr(|e| reads(self, e)),
        }
        stmt.for_each_assigned(|local| self.set(local));
        let depth = labels.len();
        match stmt {
            Stmt::Fill { local, .. } | Stmt::StoreLocal { local, .. } => self.set(*local),
            Stmt::For { label, .. } | Stmt::While { label, .. } | Stmt::Labelled { label, .. } => labels.push(*label),
            Stmt::Break(label) | Stmt::Continue(label) => self.effects |= !labels.contains(label),
            Stmt::Store { .. } | Stmt::Assert { .. } | Stmt::Return | Stmt::Amp(_) => self.effects = true,
            Stmt::Set { .. } | Stmt::If { .. } | Stmt::Reduce(_) => {}
        }
        stmt.blocks().flatten().for_each(|inner| self.add(codelet, inner, labels));
        labels.truncate(depth);
    }
}

/// Returns whether an expression reads a field.
fn loads(codelet: &Codelet, e: ExprId) -> bool {
    let kind = &codelet.exprs[e].kind;
    matches!(kind, ExprKind::Load { .. }) || kind.operands().iter().any(|&x| loads(codelet, x))
}
