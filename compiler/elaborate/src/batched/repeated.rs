//! Batched evaluation of repeated statements of a compute set: the first statement is evaluated for all of them, with a
//! batch for each of its integers.
//!
//! Invariant: the vertices are those of evaluation one by one. Statements that cannot be batched, or of which some
//! would be errors, are left to it, and no error is reported here.

use super::evaluator::Evaluator;
use super::statement::Statement;
use super::{Batch, Ints, Named, point_count};
use crate::elaborator::{Elaborator, memory};
use crate::families::{Families, VertexBlock, all_differ};
use crate::value::Value;
use girder_source::{Diagnostic, Diagnostics, Severity};
use girder_syntax::ast;

impl<'a> Elaborator<'a> {
    /// Evaluates repeated statements outside loops; `false` if they cannot be batched.
    pub fn repeated_batched(&mut self, all: &'a ast::RepeatedStatements, out: &mut Families) -> bool {
        let steps = (all.count() * all.expr_count()) as u64;
        let limit = self.session.limits.instances.saturating_sub(out.count).min(u32::MAX as u64) as usize;
        let steps_left = self.budget.left();
        if !self.session.batched || steps >= steps_left || all.count() > limit {
            return false;
        }
        let (failures, bytes) = (self.codelets.failures(), self.session.memory.used());
        let before = self.reporter.replace(Diagnostics::default());
        let blocks = self.blocks_repeated(all, limit);
        let reported = self.reporter.replace(before);
        if !self.budget.has_stopped() {
            self.session.memory.set_back(bytes);
        }
        // Later evaluation reports the errors again, except for exhaustion of the budget, which is reported once.
        let stays = |d: &Diagnostic| blocks.is_some() || self.budget.has_stopped() || d.severity == Severity::Warning;
        for d in reported.iter().filter(|d| stays(d)) {
            self.reporter.report_alone(d.clone());
        }
        let Some(blocks) = blocks else {
            self.budget.set_left(steps_left);
            self.codelets.forget_failures_since(&failures);
            return false;
        };
        self.budget.set_left(steps_left - steps);
        for block in blocks {
            self.takes(point_count(&block.extents) as u64 * memory::VERTEX);
            out.add_block(block);
        }
        true
    }

    fn blocks_repeated(&mut self, all: &'a ast::RepeatedStatements, limit: usize) -> Option<Vec<VertexBlock>> {
        let mut evaluator = Evaluator::new(self, limit);
        evaluator.extents.push(all.count() as u32);
        evaluator.path.push(Ints::index(0));
        evaluator.names = all.numbers.iter().map(|n| (Named::Int(n.expr), number(n))).collect();
        let ast::Like::Vertex(like) = &all.like else { return None };
        let done = evaluator.split(&mut |this| this.vertex(like));
        let mut found: Vec<Statement> = evaluator.found;
        done.ok()?;
        for s in &mut found {
            s.spans = s.path[0].values(&s.extents).map(|k| all.span(k as usize)).collect();
        }
        let blocks = self.vertex_blocks(found).ok()?;
        all_differ(&blocks).then_some(blocks)
    }
}

/// Returns the batch of an integer; one that is the same in all statements may occur where a uniform value is required.
fn number(repeated: &ast::Number) -> Batch {
    let first = repeated.values[0];
    match repeated.values.iter().all(|&v| v == first) {
        true => Batch::Uniform(Value::Int(first)),
        false => Batch::Ints(Ints::Each(repeated.values.clone())),
    }
}
