//! Conditions, labels and jumps.
//!
//! Invariant: where control-flow paths join, a scalar that they may have set has a single value.

use super::{BodyWalk, Effect, Slot, WalkResult};
use crate::cost::graph::{Count, Op, Val};
use crate::cost::quantity::Quantity;
use crate::cost::shape::{self, Changes};
use girder_ir::codelet::{Label, StmtBlock};
use girder_ir::ids::ExprId;

/// The state that jumps to a label carry.
pub(super) struct JumpTarget {
    pub label: Label,
    pub slots: Vec<Slot>,
    pub broken: Vec<Vec<Option<Val>>>,
    pub continued: Vec<Vec<Option<Val>>>,
}

impl BodyWalk<'_> {
    /// Records the values at a jump: a `continue` if `again`, otherwise a `break`.
    pub(super) fn leave(&mut self, label: Label, again: bool) {
        let Some(at) = self.targets.iter().rposition(|t| t.label == label) else { return };
        let values = self.snapshot(&self.targets[at].slots);
        let target = &mut self.targets[at];
        if again { target.continued.push(values) } else { target.broken.push(values) }
    }

    /// Walks a labelled block; returns whether the statements after it are reached.
    pub(super) fn labelled(&mut self, label: Label, body: &StmtBlock) -> WalkResult<bool> {
        let changes = Changes::of(body);
        let slots = self.slots(&changes);
        self.targets.push(JumpTarget { label, slots: slots.clone(), broken: vec![], continued: vec![] });
        let falls = self.block(body)?;
        let mut paths = self.targets.pop().map_or(vec![], |t| t.broken);
        if falls {
            paths.push(self.snapshot(&slots));
        }
        let left = !paths.is_empty();
        if paths.len() > 1 {
            self.barrier(&changes.storages);
        }
        self.join(&slots, &paths);
        Ok(left)
    }

    /// Joins the values of slots after several control-flow paths.
    pub(super) fn join(&mut self, slots: &[Slot], paths: &[Vec<Option<Val>>]) {
        for (i, &slot) in slots.iter().enumerate() {
            let mut values: Vec<Val> = paths.iter().filter_map(|w| w[i]).collect();
            values.dedup();
            self.now[slot] = match values[..] {
                [] => None,
                [v] if self.graph.is_inside(self.graph.nodes[v].home, self.here) => Some(v),
                _ => Some(self.graph.opaque(Op::Join, &values, self.slot_type(slot), self.here)),
            };
        }
    }

    /// Walks an `if`; returns whether the statements after it are reached.
    pub(super) fn branch(&mut self, cond: ExprId, then: &StmtBlock, els: &StmtBlock) -> WalkResult<bool> {
        let c = self.expr(cond)?;
        if let Some(known) = self.graph.const_of(c) {
            return self.block(if known.bits != 0 { then } else { els });
        }
        if els.is_empty() && self.is_own_range(c) {
            return self.block(then);
        }
        let mut changes = Changes::of(then);
        changes.block(els);
        let slots = self.slots(&changes);
        let before = self.snapshot(&slots);
        if shape::is_choice(self.codelet, then, els) {
            return self.choice(c, then, els, (&slots, &before));
        }
        self.effect(Effect::Branch(c));
        let plain = |q: &Quantity| !q.any(&mut |p| matches!(p, Quantity::Index(_)));
        let holds = self.graph.nodes[c].quantity.clone().filter(plain).filter(|_| self.closed);
        let not = holds.clone().map(|q| Quantity::Number(1).add_scaled(q, -1));
        let mut paths = vec![];
        for (arm, own) in [(then, holds), (els, not)] {
            slots.iter().zip(&before).for_each(|(&s, &v)| self.now[s] = v);
            if arm.is_empty() {
                paths.push(before.clone());
                continue;
            }
            let around = self.graph.regions[self.here].count.clone();
            let count = match own.clone().and_then(|q| around.factor.mul(q).fits()) {
                Some(factor) => Count { counted: around.counted, factor },
                None => self.counted(self.point(arm, 0)),
            };
            let own = own.filter(|_| count.counted == around.counted);
            let (falls, values) = self.inside(count, own, |w| {
                w.barrier(&changes.storages);
                if std::ptr::eq(arm, then) && !els.is_empty() {
                    // The jump over the other arm.
                    w.extra(1);
                }
                let falls = w.block(arm)?;
                Ok((falls, w.snapshot(&slots)))
            })?;
            if falls {
                paths.push(values);
            }
        }
        self.barrier(&changes.storages);
        let goes_on = !paths.is_empty();
        self.join(&slots, &paths);
        Ok(goes_on)
    }

    /// Computes both arms and selects each result from one of them.
    fn choice(
        &mut self,
        c: Val,
        then: &StmtBlock,
        els: &StmtBlock,
        (slots, before): (&[Slot], &[Option<Val>]),
    ) -> WalkResult<bool> {
        self.block(then)?;
        let taken = self.snapshot(slots);
        slots.iter().zip(before).for_each(|(&s, &v)| self.now[s] = v);
        self.block(els)?;
        for (i, &slot) in slots.iter().enumerate() {
            let value = match (taken[i], self.now[slot]) {
                (Some(a), Some(b)) => self.graph.pure(Op::Select, &[c, a, b], self.slot_type(slot), self.here),
                (a, b) => match a.or(b) {
                    Some(v) => v,
                    None => continue,
                },
            };
            self.now[slot] = Some(value);
        }
        Ok(true)
    }
}
