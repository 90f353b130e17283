//! Compute sets: loops are batched if possible, otherwise evaluated vertex by vertex.
//!
//! Invariant: both ways make the same families; only the second reports errors.

mod names;
mod arguments;
mod sizes;

pub use arguments::generic_types;

use crate::elaborator::Elaborator;
use crate::elaborator::NodeKind;
use crate::expr::LoopKind;
use crate::families::{Families, Instance, Loops};
use crate::value::Value;
use girder_ir::codelet::Dir;
use girder_ir::ids::{ComputeSetId, FieldId};
use girder_source::{Result, Span};
use girder_syntax::ast::{self, VertexItem};
use smol_str::SmolStr;

impl<'a> Elaborator<'a> {
    /// Elaborates `compute name { … }` in a body: makes the set and executes it.
    pub fn compute_statement(&mut self, name: Option<&str>, items: &'a [VertexItem], span: Span) -> Result<()> {
        if let Some(set) = self.emission.take_join() {
            let mut families = Families::new(false);
            self.vertex_items(items, &mut Loops::default(), &mut families)?;
            let before = self.graph.sets[set].families.len();
            self.add_families(set, families, span)?;
            if self.recorder.is_on() {
                let begin = self.recorder.tick();
                self.recorder.log_families(&self.graph, set, before, begin, span);
                self.record_set(set, begin, span);
            }
            return Ok(());
        }
        let name = self.unique_set_name(name, "set");
        let set = self.compute_set(name, items, span)?;
        let begin = self.moment();
        self.push(NodeKind::Execute(set), span)?;
        self.record_set(set, begin, span);
        Ok(())
    }

    /// Elaborates `compute name { … }`.
    pub fn compute_set(&mut self, name: SmolStr, items: &'a [VertexItem], span: Span) -> Result<ComputeSetId> {
        let mut families = Families::new(self.modules.is_printed());
        self.vertex_items(items, &mut Loops::default(), &mut families)?;
        self.finish_set(name, families, span)
    }

    fn vertex_items(&mut self, items: &'a [VertexItem], loops: &mut Loops, out: &mut Families) -> Result<()> {
        let mark = self.scopes.mark();
        let mut failed = None;
        for item in items {
            let done = match item {
                VertexItem::Vertex(v) if v.family.is_empty() => self.vertex(v, loops, out),
                VertexItem::Vertex(v) => self.looped(item, &v.family, loops, out),
                VertexItem::Repeated(id) => self.repeated(*id, loops, out),
                VertexItem::For { binders, .. } => self.looped(item, binders, loops, out),
                VertexItem::Let(l) => {
                    let emitted = self.emission.count();
                    let value = self.expr(l.value);
                    if self.emission.count() != emitted {
                        let message = "a value that takes steps of its own cannot be made inside a compute set";
                        Err(self.error_help(
                            "elaborate::inside_compute_set",
                            l.span,
                            message,
                            "move it before the `compute`",
                        ))
                    } else {
                        value.and_then(|v| self.bind(&l.pattern, v, l.mutable, l.span))
                    }
                }
                VertexItem::If { cond, then, els, .. } => match self.expr(*cond) {
                    Ok(Value::Bool(true)) => self.vertex_items(then, loops, out),
                    Ok(Value::Bool(false)) => els.as_ref().map_or(Ok(()), |e| self.vertex_items(e, loops, out)),
                    Ok(other) => {
                        let at = self.tree().exprs[*cond].span;
                        Err(self.expected("a static bool", &other, at))
                    }
                    Err(e) => Err(e),
                },
            };
            if let Err(e) = done {
                failed = Some(e);
                // Later statements may use names that this one would have bound.
                if matches!(item, VertexItem::Let(_)) {
                    break;
                }
            }
        }
        self.scopes.release(mark);
        failed.map_or(Ok(()), Err)
    }

    /// Evaluates repeated statements: batched if possible, otherwise one by one.
    fn repeated(&mut self, id: ast::RepeatedId, loops: &mut Loops, out: &mut Families) -> Result<()> {
        let exprs = &self.tree().exprs;
        if !self.modules.is_printed() && loops.extents.is_empty() && self.repeated_batched(exprs.repeated(id), out) {
            return Ok(());
        }
        self.vertex_items(exprs.others(id), loops, out)
    }

    /// Evaluates a `for`, or a vertex with `for`: batched if possible, otherwise one iteration at a time.
    fn looped(
        &mut self,
        item: &'a VertexItem,
        binders: &[ast::Binder],
        loops: &mut Loops,
        out: &mut Families,
    ) -> Result<()> {
        if self.batched_loop(item, loops, out)? {
            return Ok(());
        }
        self.in_loops(binders, loops, &mut |this, loops| match item {
            VertexItem::Vertex(v) => this.vertex(v, loops, out),
            VertexItem::For { body, .. } => this.vertex_items(body, loops, out),
            _ => Ok(()),
        })
    }

    /// Runs nested loops inside the current ones.
    pub fn in_loops(
        &mut self,
        binders: &[ast::Binder],
        loops: &mut Loops,
        f: &mut dyn FnMut(&mut Self, &mut Loops) -> Result<()>,
    ) -> Result<()> {
        let Some((first, rest)) = binders.split_first() else { return f(self, loops) };
        let span = self.tree().exprs[first.range].span;
        let value = self.loop_range(first.range, LoopKind::Unrolled)?;
        let count = self.count(&value, span)?;
        let depth = loops.at.len();
        loops.extents.push(u32::try_from(count).unwrap_or(u32::MAX));
        loops.at.push(0);
        for k in 0..count {
            loops.at[depth] = u32::try_from(k).unwrap_or(u32::MAX);
            self.charge(span)?;
            let item = self.nth(&value, k);
            loops.indices.push(if let Value::Int(i) = item { i } else { k as i64 });
            let mark = self.scopes.mark();
            let bound = self.bind(&first.pattern, item, false, first.span);
            let done = bound.and_then(|()| self.in_loops(rest, loops, f));
            self.scopes.release(mark);
            loops.indices.pop();
            done?;
        }
        loops.extents.pop();
        loops.at.pop();
        Ok(())
    }

    /// Evaluates one vertex.
    fn vertex(&mut self, v: &ast::Vertex, loops: &Loops, out: &mut Families) -> Result<()> {
        let limit = self.session.limits.instances;
        if out.count >= limit {
            let message = format!("a compute set has more than {limit} vertices");
            return Err(self.error_help(
                "elaborate::too_many_vertices",
                v.span,
                message,
                "`--limit instances=N` allows more",
            ));
        }
        self.no_attributes(&v.attrs, "a vertex")?;
        let (module, item) = self.find_codelet(&v.codelet)?;
        let header = self.header(module, item)?;
        let vars = self.graph.vars.len();
        let slots = self.vertex_arguments(v, &header)?;
        let explicit = v.generics.iter().map(|&g| self.generic_arg(g)).collect::<Result<Vec<_>>>()?;
        let tensors = slots.iter().map(|(value, _)| if let Value::Tensor(t) = value { Some(t.ty) } else { None });
        let known = generic_types(&header, &explicit, tensors);
        let mut types = Vec::new();
        let mut views = Vec::new();
        let mut constants = Vec::new();
        for (k, (field, (value, span))) in header.fields.iter().zip(slots).enumerate() {
            let id = FieldId::from_u32(k as u32);
            if field.dir == Dir::Const {
                constants.push((id, value, span));
                continue;
            }
            let t = self.vertex_view(field, &known, value, span)?;
            if field.dir != Dir::In && self.is_lost(&t.view, vars) {
                return Err(self.lost_field(&field.name, span));
            }
            types.push((id, t.ty));
            views.push(t.view);
        }
        let args = self.with_scope(|_, d| girder_typing::infer_args(&header, &explicit, &types, v.span, d))?;
        let spec = self.specialised(module, item, &args, v.span)?;
        let mut consts = Vec::new();
        for (id, value, span) in constants {
            let ty = self.graph.codelets[spec].fields[id].ty;
            consts.push(self.const_scalar(&value, ty, span)?);
        }
        let tile = v.place.as_ref().map(|p| self.one_tile(p)).transpose()?;
        let within = match (v.within, tile) {
            (Some(place), Some(_)) => {
                let span = self.tree().exprs[place].span;
                let help = "leave out `within …`, or `on …`";
                return Err(self.error_help("place::on_and_within", span, "a vertex on a tile is not moved", help));
            }
            (Some(place), None) => self.within(place)?,
            (None, Some(_)) => None,
            (None, None) => self.within_here(),
        };
        let values = consts.clone();
        let index = loops.indices.clone();
        self.charge_vertices(1, v.span)?;
        let first = out.add(Instance { spec, span: v.span, views, consts, tile, within, index }, loops);
        // Vertices of one signature have the same sizes, unless a dimension is computed from constants.
        if first || self.computes_sizes(spec) {
            let (shapes, values) = (self.shapes(spec, out.last_views()), self.const_values(spec, &values));
            self.check_sizes(spec, &shapes, &values, v, &header)?;
        }
        Ok(())
    }
}
