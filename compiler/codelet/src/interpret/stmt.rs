//! Execution of statements.
//!
//! Invariant: every iteration of a loop polls the stop flag and is counted as the module describes.

use super::frame::{Frame, Halt, shown};
use super::{look_after, loop_limits, trips};
use girder_ir::codelet::{Label, Stmt, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId, SiteId};

/// The control flow after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break(Label),
    Continue(Label),
    Return,
}

impl<'a> Frame<'a> {
    pub(super) fn block(&mut self, block: &'a StmtBlock) -> Result<Flow, Halt> {
        if let Some(points) = self.points {
            return self.counted_block(block, points.of(block));
        }
        self.left = self.left.saturating_sub(block.len() as u64);
        for stmt in block {
            match self.stmt(stmt)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn counted_block(&mut self, block: &'a StmtBlock, points: &[(u32, u32)]) -> Result<Flow, Halt> {
        let count = |n: usize, counters: &mut [u64]| {
            points.iter().filter(|p| p.0 as usize == n).for_each(|p| counters[p.1 as usize] += 1);
        };
        self.left = self.left.saturating_sub(block.len() as u64);
        if block.is_empty() {
            count(0, self.counters);
        }
        for (n, stmt) in block.iter().enumerate() {
            count(n, self.counters);
            match self.stmt(stmt)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<Flow, Halt> {
        match stmt {
            Stmt::Set { local, value } => {
                let v = self.eval(*value)?;
                self.locals[self.offsets[*local]] = v;
            }
            Stmt::Fill { local, value } => {
                let v = self.eval(*value)?;
                let start = self.offsets[*local];
                let count: usize = self.codelet.locals[*local].array.iter().flatten().map(|&n| n as usize).product();
                self.locals[start..start + count].fill(v);
            }
            Stmt::StoreLocal { local, index, value, site } => {
                let element_index = self.element_index(index)?;
                let v = self.eval(*value)?;
                let flat = self.flat(Storage::Local(*local), &element_index, *site)?;
                self.locals[self.offsets[*local] + flat as usize] = v;
            }
            Stmt::Store { field, index, value, site } => {
                let element_index = self.element_index(index)?;
                let v = self.eval(*value)?;
                let flat = self.flat(Storage::Field(*field), &element_index, *site)?;
                self.store(*field, flat, v, *site)?;
            }
            Stmt::For { var, lo, hi, step, label, body, site } => {
                let (lo, hi) = (self.int(*lo)?, self.int(*hi)?);
                self.charge(trips(lo, hi, *step), *site)?;
                return self.for_loop(*var, (lo, hi, *step), *label, body);
            }
            Stmt::While { before, cond, label, body, site } => {
                return self.while_loop(before, *cond, *label, body, *site);
            }
            Stmt::If { cond, then, els } => {
                let branch = if self.eval(*cond)? != 0 { then } else { els };
                return self.block(branch);
            }
            Stmt::Labelled { label, body } => {
                let flow = self.block(body)?;
                return Ok(if flow == Flow::Break(*label) { Flow::Next } else { flow });
            }
            Stmt::Break(label) => return Ok(Flow::Break(*label)),
            Stmt::Continue(label) => return Ok(Flow::Continue(*label)),
            Stmt::Return => return Ok(Flow::Return),
            Stmt::Assert { cond, site } => {
                if self.eval(*cond)? == 0 {
                    return Err(self.fail(*site, [0, 0]));
                }
            }
            Stmt::Reduce(reduce) => self.reduce(reduce)?,
            Stmt::Amp(amp) => self.amp(amp)?,
        }
        Ok(Flow::Next)
    }

    fn for_loop(
        &mut self,
        var: LocalId,
        (lo, hi, step): (i64, i64, i64),
        label: Label,
        body: &'a StmtBlock,
    ) -> Result<Flow, Halt> {
        let slot = self.offsets[var];
        let mut i = lo;
        for _ in 0..trips(lo, hi, step) {
            self.tick()?;
            self.locals[slot] = i as u64;
            match self.block(body)? {
                Flow::Next => {}
                Flow::Continue(l) if l == label => {}
                Flow::Break(l) if l == label => return Ok(Flow::Next),
                flow => return Ok(flow),
            }
            i = i.wrapping_add(step);
        }
        Ok(Flow::Next)
    }

    fn while_loop(
        &mut self,
        before: &'a StmtBlock,
        cond: ExprId,
        label: Label,
        body: &'a StmtBlock,
        site: SiteId,
    ) -> Result<Flow, Halt> {
        let limit = self.session.limits.iterations;
        let weight = self.weights[site].max(1);
        for iteration in 0.. {
            match self.block(before)? {
                Flow::Next => {}
                Flow::Break(l) if l == label => break,
                flow => return Ok(flow),
            }
            if self.eval(cond)? == 0 {
                break;
            }
            if iteration == limit {
                return Err(self.fail(site, [shown(limit), loop_limits::WHILE]));
            }
            if iteration.is_multiple_of(look_after(weight)) {
                self.spend(0, site)?;
            }
            self.spent = self.spent.saturating_add(weight);
            self.tick()?;
            match self.block(body)? {
                Flow::Next => {}
                Flow::Continue(l) if l == label => {}
                Flow::Break(l) if l == label => break,
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }
}
