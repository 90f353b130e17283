//! Statements of a compute set that are alike: one of them is evaluated for all, with a column for each of its integers.
//!
//! Invariant: they become what they become one by one. What cannot be evaluated so, or would be an error in some of them, is
//! left to that, and nothing is said of it here.

use super::nest::{Nest, Statement};
use super::{Column, Ints, Named};
use crate::elaborator::Elaborator;
use crate::families::{Block, Families, all_differ};
use crate::value::Value;
use crate::vertices::SpecKey;
use girder_source::{Diagnostic, Severity};
use girder_syntax::ast;
use rustc_hash::FxHashSet;

impl<'a> Elaborator<'a> {
    /// Evaluates statements that stand in no loop; `false` if they are left.
    pub fn alike_in_columns(&mut self, all: &'a ast::RepeatedStatements, out: &mut Families) -> bool {
        let steps = (all.count() * all.expr_count()) as u64;
        let limit = self.session.limits.instances.saturating_sub(out.count).min(u32::MAX as u64) as usize;
        if !self.session.batched || steps >= self.steps_left || all.count() > limit {
            return false;
        }
        let steps_left = self.steps_left;
        let failed: FxHashSet<SpecKey> = self.specs.iter().filter(|s| s.1.is_none()).map(|s| s.0.clone()).collect();
        let before = std::mem::take(self.diagnostics);
        let blocks = self.blocks_alike(all, limit);
        let said = std::mem::replace(self.diagnostics, before);
        // What is wrong is said by those that it is wrong with, but for a stop, which is said once.
        let stays = |d: &&Diagnostic| blocks.is_some() || self.stopped || d.severity == Severity::Warning;
        self.diagnostics.extend(said.iter().filter(stays).cloned());
        let Some(blocks) = blocks else {
            if !self.stopped {
                self.steps_left = steps_left;
            }
            self.specs.retain(|key, spec| spec.is_some() || failed.contains(key));
            return false;
        };
        self.steps_left = steps_left - steps;
        blocks.into_iter().for_each(|block| out.add_block(block));
        true
    }

    fn blocks_alike(&mut self, all: &'a ast::RepeatedStatements, limit: usize) -> Option<Vec<Block>> {
        let mut nest = Nest::new(self, limit);
        nest.lens.push(all.count() as u32);
        nest.path.push(Ints::index(0));
        nest.names = all.numbers.iter().map(|n| (Named::Int(n.expr), column(n))).collect();
        let done = nest.parted(&mut |this| this.vertex(&all.like));
        let mut found: Vec<Statement> = nest.found;
        done.ok()?;
        for s in &mut found {
            s.spans = s.path[0].values(&s.lens).map(|k| all.span(k as usize)).collect();
        }
        let blocks = self.settled(found).ok()?;
        all_differ(&blocks).then_some(blocks)
    }
}

/// An integer that is the same in all statements may stand where one must be known.
fn column(number: &ast::Number) -> Column {
    let first = number.values[0];
    match number.values.iter().all(|&v| v == first) {
        true => Column::Known(Value::Int(first)),
        false => Column::Ints(Ints::Each(number.values.clone())),
    }
}
