//! Jumps. The text has `break` and `continue` of the innermost loop only; the codelet may leave several loops, and
//! blocks that are no loops, as a function does that returns inside a loop.
//!
//! A block that a jump leaves becomes a loop of one iteration. A jump to an outer loop sets a flag and leaves the
//! innermost loop; behind each loop that it leaves, the flag is tested.
//!
//! Invariant: a flag is declared at the start of the body of its loop, and is false there.

use super::writer::Writer;
use girder_ir::codelet::{Label, Stmt, StmtBlock};
use girder_ir::ids::LocalId;
use girder_syntax::ast::{AssignOp, StmtId, StmtKind};
use girder_syntax::make::body;
use girder_typing::print::BlockId;
use smol_str::SmolStr;

/// A loop of the text, or a block that has become one.
pub struct Around {
    label: Label,
    /// The body, if its loop has an index.
    pub body: Option<BlockId>,
    /// The index.
    pub index: Option<LocalId>,
    /// The flags that jumps to this loop from inside others set; each with whether it continues the loop.
    flags: Vec<(bool, SmolStr)>,
    /// The flags of jumps that leave this loop and end at an outer one: its depth, whether it is continued, the flag.
    leaving: Vec<(usize, bool, SmolStr)>,
}

impl Around {
    pub fn new(label: Label, body: Option<&StmtBlock>, index: Option<LocalId>) -> Around {
        Around { label, body: body.map(BlockId::of), index, flags: vec![], leaving: vec![] }
    }
}

impl Writer<'_> {
    /// Returns the body of a loop, and the statements that follow the loop.
    pub fn in_loop(&mut self, around: Around, f: impl FnOnce(&mut Self) -> Vec<StmtId>) -> (Vec<StmtId>, Vec<StmtId>) {
        self.around.push(around);
        let stmts = f(self);
        let Some(Around { flags, leaving, .. }) = self.around.pop() else { return (stmts, vec![]) };
        let mut all = self.inside(|this| {
            for (_, flag) in flags {
                let no = this.make.bool(false);
                this.let_stmt(&flag, true, None, no);
            }
        });
        all.extend(stmts);
        let here = self.around.len();
        let after = self.inside(|this| {
            for (target, continues, flag) in leaving {
                let cond = this.make.name(&flag);
                let kind = if continues && target + 1 == here { StmtKind::Continue } else { StmtKind::Break };
                let jump = this.make.stmt(kind);
                this.if_stmt(cond, vec![jump], vec![]);
                // The flag leaves the loops up to its own.
                if target + 1 < here
                    && let Some(around) = this.around.last_mut()
                    && !around.leaving.iter().any(|(_, _, known)| *known == flag)
                {
                    around.leaving.push((target, continues, flag));
                }
            }
        });
        (all, after)
    }

    /// Writes a loop with the body and what follows it that [`Writer::in_loop`] returns.
    pub fn loop_stmt(
        &mut self,
        kind: impl FnOnce(Vec<StmtId>) -> StmtKind,
        (stmts, after): (Vec<StmtId>, Vec<StmtId>),
    ) {
        let stmt = self.make.stmt(kind(stmts));
        self.list.push(stmt);
        self.list.extend(after);
    }

    /// Writes a block that jumps may leave.
    pub fn labelled(&mut self, label: Label, inner: &StmtBlock) {
        if !leaves(inner, label) {
            let stmts = self.block(inner);
            self.list.extend(stmts);
            return;
        }
        let (name, range) = (self.fresh("once"), self.make.span(0, 1));
        let binder = self.make.binder(&name, range);
        let stmts = self.in_loop(Around::new(label, None, None), |this| this.block(inner));
        self.loop_stmt(|stmts| StmtKind::For { binders: vec![binder], body: body(stmts) }, stmts);
    }

    /// Writes a jump to a loop around this statement: behind it, or to its next iteration.
    pub fn jump(&mut self, label: Label, continues: bool) {
        let Some(target) = self.around.iter().rposition(|a| a.label == label) else { return };
        let innermost = self.around.len() - 1;
        if target == innermost {
            let stmt = self.make.stmt(if continues { StmtKind::Continue } else { StmtKind::Break });
            self.list.push(stmt);
            return;
        }
        let known = self.around[target].flags.iter().find(|(c, _)| *c == continues).map(|(_, flag)| flag.clone());
        let flag = known.unwrap_or_else(|| {
            let flag = self.fresh(if continues { "next" } else { "left" });
            self.around[target].flags.push((continues, flag.clone()));
            flag
        });
        let leaving = &mut self.around[innermost].leaving;
        if !leaving.iter().any(|(_, _, known)| *known == flag) {
            leaving.push((target, continues, flag.clone()));
        }
        let (flag, yes) = (self.make.name(&flag), self.make.bool(true));
        let set = self.make.stmt(StmtKind::Assign { op: AssignOp::Set, target: flag, value: yes });
        let jump = self.make.stmt(StmtKind::Break);
        self.list.extend([set, jump]);
    }
}

/// Returns whether a jump inside a block leaves it.
fn leaves(block: &StmtBlock, label: Label) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Break(to) => *to == label,
        stmt => stmt.blocks().any(|inner| leaves(inner, label)),
    })
}
