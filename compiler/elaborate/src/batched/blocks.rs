//! Conversion of evaluated statements to blocks of vertices; makes codelets, constants and families.
//!
//! # Note: Two phases
//! The first phase evaluates every statement and makes no entity. The second phase takes the statements in the order in
//! which evaluation one iteration at a time would reach their first vertices, and makes codelets, constants and
//! families in that order.

use super::evaluator::Evaluator;
use super::statement::Statement;
use super::{Batch, Ints, Stop, point_count};
use crate::elaborator::Elaborator;
use crate::families::{Families, Loops, VertexBlock};
use crate::value::Value;
use crate::vertices::generic_types;
use girder_ir::codelet::Dir;
use girder_ir::family::Const;
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Failed, Result, Span};
use girder_syntax::ast::VertexItem;

impl<'a> Elaborator<'a> {
    /// Evaluates a loop of a compute set for all its iterations; `false` if the loop cannot be batched, in which case
    /// nothing was made.
    pub fn batched_loop(&mut self, item: &'a VertexItem, loops: &Loops, out: &mut Families) -> Result<bool> {
        let limit = self.session.limits.instances.saturating_sub(out.count).min(u32::MAX as u64) as usize;
        let blocks = self.attempt(|this| {
            let mut evaluator = Evaluator::new(this, limit);
            evaluator.indices = loops.indices.iter().map(|&i| Ints::constant(i)).collect();
            evaluator.counters = loops.at.iter().map(|&i| Ints::constant(i as i64)).collect();
            evaluator.loop_extents = loops.extents.clone();
            evaluator.item(item)?;
            let found = evaluator.found;
            if found.iter().map(|s| point_count(&s.extents)).sum::<usize>() > limit {
                return Err(Stop::Leave);
            }
            Ok(this.vertex_blocks(found)?)
        })?;
        let Some(blocks) = blocks else { return Ok(false) };
        for block in &blocks {
            self.charge_vertices(point_count(&block.extents) as u64, block.spans[0])?;
        }
        out.add_blocks(blocks);
        Ok(true)
    }

    /// Makes blocks of vertices, in the order of their first vertices.
    pub(super) fn vertex_blocks(&mut self, mut found: Vec<Statement<'a>>) -> Result<Vec<VertexBlock>> {
        found.sort_by_cached_key(|s| s.path.iter().map(Ints::first).collect::<Vec<i64>>());
        let mut failed = false;
        let mut blocks = vec![];
        for statement in found {
            match self.vertex_block(statement) {
                Ok(block) => blocks.push(block),
                Err(_) => failed = true,
            }
        }
        if failed { Err(Failed) } else { Ok(blocks) }
    }

    /// Makes the codelet and the constants of a statement, and checks its sizes.
    fn vertex_block(&mut self, s: Statement<'a>) -> Result<VertexBlock> {
        let (mut types, mut like, mut shifts, mut constants) = (vec![], vec![], vec![], vec![]);
        let tensors = s.fields.iter().map(|(batch, _)| match batch {
            Batch::View { like, .. } => Some(like.ty),
            Batch::Uniform(Value::Tensor(t)) => Some(t.ty),
            _ => None,
        });
        let known = generic_types(&s.header, &s.generics, tensors);
        for (k, (field, (batch, span))) in s.header.fields.iter().zip(s.fields).enumerate() {
            let id = FieldId::from_u32(k as u32);
            if field.dir == Dir::Const {
                constants.push((id, batch, span));
                continue;
            }
            let (tensor, shift) = match batch {
                Batch::View { like, shift } => (like, shift),
                Batch::Uniform(value) => (self.vertex_view(field, &known, value, span)?, Ints::constant(0)),
                _ => return Err(Failed),
            };
            types.push((id, tensor.ty));
            like.push(tensor.view);
            shifts.push(shift);
        }
        let (v, span) = (s.vertex, s.spans[0]);
        let args = self.with_scope(|_, d| girder_typing::infer_args(&s.header, &s.generics, &types, span, d))?;
        let spec = self.specialised(s.codelet.0, s.codelet.1, &args, span)?;
        let mut consts = vec![];
        for (id, batch, span) in constants {
            consts.push(self.const_batch(batch, self.graph.codelets[spec].fields[id].ty, &s.extents, span)?);
        }
        self.check_block(spec, &like, &consts, v, &s.header)?;
        let tiles = s.tile.map(|t| t.values(&s.extents).map(|t| t as u32).collect());
        let like = like.into_iter().map(View::canonical).collect();
        let (extents, loop_extents, counters, indices) = (s.extents, s.loop_extents, s.counters, s.indices);
        let (spans, within) = (s.spans, s.within);
        let block =
            VertexBlock { spec, spans, like, shifts, consts, tiles, within, extents, loop_extents, counters, indices };
        Ok(block)
    }

    /// Returns the constants of a `const` field.
    fn const_batch(&mut self, batch: Batch, ty: ElemType, extents: &[u32], span: Span) -> Result<Const> {
        let values: Vec<Value> = match batch {
            Batch::Uniform(value) => return self.const_scalar(&value, ty, span).map(Const::Uniform),
            Batch::Ints(ints) => ints.values(extents).map(Value::Int).collect(),
            Batch::Bools(bools) => bools.values(extents).map(|b| Value::Bool(b != 0)).collect(),
            Batch::Values(values) => values.to_vec(),
            _ => return Err(Failed),
        };
        let scalars = values.iter().map(|v| self.const_scalar(v, ty, span)).collect::<Result<Vec<_>>>()?;
        Ok(Const::fit(&scalars))
    }
}
