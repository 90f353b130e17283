//! Compute sets: loops in columns where that is possible, else vertex by vertex.
//!
//! Invariant: both ways give the same families; errors are said by the second.

use crate::codelet::{Header, ModuleRef};
use crate::elaborator::{Elaborator, Set};
use crate::families::{Families, Instance, Loops};
use crate::nodes::NodeKind;
use crate::value::Value;
use girder_codelet::sizes::Shape;
use girder_ir::codelet::{DimDecl, Dir, GenericArg};
use girder_ir::family::Const;
use girder_ir::ids::{ComputeSetId, FieldId, SpecId};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{self, VertexItem};
use smol_str::SmolStr;
use std::sync::Arc;

/// What a specialised codelet is known by.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SpecKey {
    pub module: ModuleRef,
    pub item: usize,
    pub args: Vec<GenericArg>,
}

impl<'a> Elaborator<'a> {
    /// `compute name { … }` in a body: makes the set and executes it.
    pub fn compute_statement(&mut self, name: Option<&str>, items: &'a [VertexItem], span: Span) -> Result<()> {
        let name = self.unique_set_name(name, "set");
        let set = self.compute_set(name, items, span)?;
        self.push(NodeKind::Execute(set), span)
    }

    /// `compute name { … }`
    pub fn compute_set(&mut self, name: SmolStr, items: &'a [VertexItem], span: Span) -> Result<ComputeSetId> {
        let mut families = Families::default();
        self.vertex_items(items, &mut Loops::default(), &mut families)?;
        self.finish_set(name, families, span)
    }

    fn vertex_items(&mut self, items: &'a [VertexItem], loops: &mut Loops, out: &mut Families) -> Result<()> {
        let mark = self.mark();
        let mut failed = None;
        for item in items {
            let done = match item {
                VertexItem::Vertex(v) if v.family.is_empty() => self.vertex(v, loops, out),
                VertexItem::Vertex(v) => self.looped(item, &v.family, loops, out),
                VertexItem::Alike(id) => self.alike(*id, loops, out),
                VertexItem::For { binders, .. } => self.looped(item, binders, loops, out),
                VertexItem::Let(l) => {
                    let emitted = self.emit.last().map(Vec::len);
                    let value = self.expr(l.value);
                    if self.emit.last().map(Vec::len) != emitted {
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
                // Later statements may use names that this one should have bound.
                if matches!(item, VertexItem::Let(_)) {
                    break;
                }
            }
        }
        self.release(mark);
        failed.map_or(Ok(()), Err)
    }

    /// Statements that are alike: in columns if that is possible, else one by one.
    fn alike(&mut self, id: ast::AlikeId, loops: &mut Loops, out: &mut Families) -> Result<()> {
        let exprs = &self.tree().exprs;
        if loops.extents.is_empty() && self.alike_in_columns(exprs.alike(id), out) {
            return Ok(());
        }
        self.vertex_items(exprs.others(id), loops, out)
    }

    /// A `for`, or a vertex with `for`: in columns if that is possible, else turn by turn.
    fn looped(
        &mut self,
        item: &'a VertexItem,
        binders: &[ast::Binder],
        loops: &mut Loops,
        out: &mut Families,
    ) -> Result<()> {
        if self.in_columns(item, loops, out)? {
            return Ok(());
        }
        self.in_loops(binders, loops, &mut |this, loops| match item {
            VertexItem::Vertex(v) => this.vertex(v, loops, out),
            VertexItem::For { body, .. } => this.vertex_items(body, loops, out),
            _ => Ok(()),
        })
    }

    /// Runs a nest of loops, inside those around.
    pub fn in_loops(
        &mut self,
        binders: &[ast::Binder],
        loops: &mut Loops,
        f: &mut dyn FnMut(&mut Self, &mut Loops) -> Result<()>,
    ) -> Result<()> {
        let Some((first, rest)) = binders.split_first() else { return f(self, loops) };
        let span = self.tree().exprs[first.range].span;
        let value = self.expr(first.range)?;
        let count = self.count(&value, span)?;
        let depth = loops.at.len();
        loops.extents.push(u32::try_from(count).unwrap_or(u32::MAX));
        loops.at.push(0);
        for k in 0..count {
            loops.at[depth] = u32::try_from(k).unwrap_or(u32::MAX);
            self.charge(span)?;
            let item = self.nth(&value, k);
            self.indices.push(if let Value::Int(i) = item { i } else { k as i64 });
            let mark = self.mark();
            let bound = self.bind(&first.pattern, item, false, first.span);
            let done = bound.and_then(|()| self.in_loops(rest, loops, f));
            self.release(mark);
            self.indices.pop();
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
        let (module, item) = self.find_codelet(&v.codelet)?;
        let header = self.header(module, item)?;
        let slots = self.vertex_arguments(v, &header)?;
        let mut types = Vec::new();
        let mut views = Vec::new();
        let mut constants = Vec::new();
        for (k, (field, (value, span))) in header.fields.iter().zip(slots).enumerate() {
            let id = FieldId::from_u32(k as u32);
            if field.dir == Dir::Const {
                constants.push((id, value, span));
                continue;
            }
            let t = self.vertex_view(field, value, span)?;
            types.push((id, t.ty));
            views.push(t.view);
        }
        let explicit = v.generics.iter().map(|&g| self.generic_arg(g)).collect::<Result<Vec<_>>>()?;
        let args = self.with_scope(|_, d| crate::codelet::infer_args(&header, &explicit, &types, v.span, d))?;
        let spec = self.specialised(module, item, &args, v.span)?;
        let mut consts = Vec::new();
        for (id, value, span) in constants {
            let ty = self.graph.codelets[spec].fields[id].ty;
            consts.push(self.const_scalar(&value, ty, span)?);
        }
        let tile = v.place.as_ref().map(|p| self.one_tile(p)).transpose()?;
        let values = consts.clone();
        let first = out.add(Instance { spec, span: v.span, views, consts, tile, index: self.indices.clone() }, loops);
        // Vertices of one signature have one set of sizes, but where a dimension is computed from constants.
        if first || self.computes_sizes(spec) {
            let (shapes, values) = (self.shapes(spec, out.last_views()), self.const_values(spec, &values));
            self.check_sizes(spec, &shapes, &values, v, &header)?;
        }
        Ok(())
    }

    /// The value of a `const` field.
    pub fn const_scalar(&mut self, value: &Value, ty: ElemType, span: Span) -> Result<Scalar> {
        if let Value::Tensor(_) = value {
            let help = "declare the field `in` instead";
            let message = "a `const` field takes a static value, not a tensor";
            return Err(self.error_help("elaborate::type_mismatch", span, message, help));
        }
        self.scalar(value, ty, span)
    }

    /// Checks the sizes of a block of vertices: their views have the lengths of `like`.
    pub fn check_block(
        &mut self,
        spec: SpecId,
        like: &[View],
        consts: &[Const],
        v: &ast::Vertex,
        header: &Header,
    ) -> Result<()> {
        let shapes = self.shapes(spec, like);
        let rows = consts.iter().map(|c| if let Const::Table(t) = c { t.len() } else { 1 }).max().unwrap_or(1);
        let rows = if self.computes_sizes(spec) { rows } else { 1 };
        for row in 0..rows as u64 {
            let row: Vec<Scalar> = consts.iter().map(|c| c.at(row)).collect();
            let values = self.const_values(spec, &row);
            self.check_sizes(spec, &shapes, &values, v, header)?;
        }
        Ok(())
    }

    /// Whether a codelet has dimensions that are computed, or states cycles, perhaps from constants.
    fn computes_sizes(&self, spec: SpecId) -> bool {
        let codelet = &self.graph.codelets[spec];
        let computed = |f: &girder_ir::codelet::FieldDecl| f.dims.iter().any(|d| matches!(d, DimDecl::Expr(_)));
        let states = codelet.cycles.is_some() && codelet.fields.values().any(|f| f.dir == Dir::Const);
        states || codelet.fields.values().any(computed)
    }

    /// The view that a field sees; a number becomes a constant.
    pub fn vertex_view(
        &mut self,
        field: &crate::codelet::HeaderField,
        value: Value,
        span: Span,
    ) -> Result<crate::value::Tensor> {
        let t = match value {
            Value::Tensor(t) => Arc::unwrap_or_clone(t),
            ref number @ (Value::Int(_) | Value::Float(_) | Value::Bool(_))
                if field.dir == Dir::In && field.rank == 0 =>
            {
                let ty = match (field.ty, number) {
                    (crate::codelet::HeaderType::Elem(t), _) => t,
                    (_, Value::Float(_)) => girder_ir::types::ElemType::F32,
                    (_, Value::Bool(_)) => girder_ir::types::ElemType::Bool,
                    (_, _) => girder_ir::types::ElemType::I32,
                };
                let s = self.scalar(number, ty, span)?;
                self.constant(s, span)?
            }
            other => return Err(self.expected("a tensor", &other, span)),
        };
        let rank = t.view.rank();
        if rank != field.rank {
            let message = format!(
                "field `{}` has rank {}, but this view is {} of rank {rank}",
                field.name,
                field.rank,
                t.type_name()
            );
            let d = Diagnostic::error("elaborate::shape_mismatch", span, message).label(field.span, "the field");
            let d = if field.rank == 0 { d.help("index it, so that one element remains") } else { d };
            return Err(self.say(d));
        }
        Ok(t)
    }

    /// Matches arguments to fields.
    fn vertex_arguments(&mut self, v: &ast::Vertex, header: &Header) -> Result<Vec<(Value, Span)>> {
        let mut slots: Vec<Option<(Value, Span)>> = vec![None; header.fields.len()];
        let mut next = 0;
        for a in &v.args {
            let span = self.tree().exprs[a.value].span;
            let slot = match &a.name {
                None => {
                    next += 1;
                    Some(next - 1)
                }
                Some(n) => {
                    let found = header.fields.iter().position(|f| f.name == n.name);
                    if found.is_none() {
                        let near = crate::spelling::closest(&n.name, header.fields.iter().map(|f| f.name.as_str()));
                        let message = format!("codelet `{}` has no field `{}`", v.codelet.dotted(), n.name);
                        let d = Diagnostic::error("elaborate::no_such_field", n.span, message);
                        return Err(self.say(match near {
                            Some(near) => d.help(format!("did you mean `{near}`?")),
                            None => d,
                        }));
                    }
                    found
                }
            };
            let emitted = self.emit.last().map(Vec::len);
            let value = self.expr(a.value)?;
            if self.emit.last().map(Vec::len) != emitted {
                let help = "compute it before the `compute` and name it with `let`";
                let message = "a vertex's argument is a view; this one takes steps of its own";
                return Err(self.error_help("elaborate::inside_compute_set", span, message, help));
            }
            match slot.and_then(|s| slots.get_mut(s)) {
                Some(s @ None) => *s = Some((value, span)),
                Some(Some(_)) => return Err(self.error("elaborate::arguments", span, "this field is connected twice")),
                None => {
                    let message = format!("codelet `{}` has {} fields", v.codelet.dotted(), header.fields.len());
                    return Err(self.error("elaborate::arguments", span, message));
                }
            }
        }
        let missing: Vec<&str> =
            header.fields.iter().zip(&slots).filter(|(_, s)| s.is_none()).map(|(f, _)| f.name.as_str()).collect();
        if !missing.is_empty() {
            let message = format!(
                "field{} `{}` of codelet `{}` {} not connected",
                if missing.len() == 1 { "" } else { "s" },
                missing.join("`, `"),
                v.codelet.dotted(),
                if missing.len() == 1 { "is" } else { "are" }
            );
            return Err(self.error("elaborate::not_connected", v.span, message));
        }
        Ok(slots.into_iter().flatten().collect())
    }

    fn generic_arg(&mut self, e: ast::ExprId) -> Result<GenericArg> {
        let span = self.tree().exprs[e].span;
        match self.expr(e)? {
            Value::Type(t) => Ok(GenericArg::Type(t)),
            Value::Int(i) => Ok(GenericArg::Int(i)),
            other => Err(self.expected("a type or an integer", &other, span)),
        }
    }

    /// Per field: the shape of its view; nothing for `const` fields.
    fn shapes(&self, spec: SpecId, views: &[View]) -> Vec<Shape> {
        let mut views = views.iter();
        let shape = |f: &girder_ir::codelet::FieldDecl| match f.dir {
            Dir::Const => Shape::default(),
            _ => views.next().map(|v| v.shape().iter().copied().collect()).unwrap_or_default(),
        };
        self.graph.codelets[spec].fields.values().map(shape).collect()
    }

    /// Per field: its constant; zero for the others.
    fn const_values(&self, spec: SpecId, consts: &[Scalar]) -> Vec<Scalar> {
        let mut consts = consts.iter();
        let value = |f: &girder_ir::codelet::FieldDecl| match f.dir {
            Dir::Const => consts.next().copied().unwrap_or(Scalar::zero(f.ty)),
            _ => Scalar::zero(f.ty),
        };
        self.graph.codelets[spec].fields.values().map(value).collect()
    }

    /// Checks that the views of a vertex agree with the codelet's dimensions, and warns of `out` fields that it may
    /// leave partly unwritten.
    fn check_sizes(
        &mut self,
        spec: SpecId,
        shapes: &[Shape],
        consts: &[Scalar],
        v: &ast::Vertex,
        header: &Header,
    ) -> Result<()> {
        let codelet = &self.graph.codelets[spec];
        let wrong = match girder_codelet::bind_sizes(codelet, shapes, consts) {
            Ok(sizes) => {
                self.check_cycles(spec, &sizes, consts, v)?;
                self.warn_of_partial(spec, &sizes, header);
                return Ok(());
            }
            Err(wrong) => wrong,
        };
        let field = &header.fields[wrong.field.as_u32() as usize];
        let axis = format!("axis {} of field `{}`", wrong.axis, field.name);
        let message = match wrong.what {
            girder_codelet::Expected::NoValue(_) => {
                format!("{axis} has no size here: its expression overflows or divides by zero")
            }
            _ => {
                let name = v.codelet.dotted();
                format!("{axis} has {} elements, but codelet `{name}` needs {}", wrong.found, wrong.expected)
            }
        };
        let d = Diagnostic::error("elaborate::shape_mismatch", v.span, message).label(field.span, "the field");
        Err(self.say(d))
    }

    /// Checks that what `#[cycles]` states is a time.
    fn check_cycles(
        &mut self,
        spec: SpecId,
        sizes: &girder_codelet::Sizes,
        consts: &[Scalar],
        v: &ast::Vertex,
    ) -> Result<()> {
        let codelet = &self.graph.codelets[spec];
        let Some(stated) = codelet.cycles else { return Ok(()) };
        let name = v.codelet.dotted();
        let message = match girder_codelet::sizes::static_int(codelet, sizes, consts, stated) {
            Some(0..) => return Ok(()),
            Some(cycles) => format!("a vertex of `{name}` would take {cycles} cycles"),
            None => format!("the cycles of `{name}` have no value here: their expression overflows or divides by zero"),
        };
        let at = codelet.exprs[stated].span;
        let d = Diagnostic::error("codelet::cycles", v.span, message).label(at, "the cycles that are stated");
        Err(self.say(d.help("state a number of at least 0 for all sizes and constants that vertices have")))
    }

    /// The workers of a `multi` codelet share a field in ways that are not followed, so it is not warned of.
    fn warn_of_partial(&mut self, spec: SpecId, sizes: &girder_codelet::Sizes, header: &Header) {
        let codelet = &self.graph.codelets[spec];
        let written = codelet.fields.iter().filter(|(_, f)| f.dir == Dir::Out && !codelet.multi).map(|(id, _)| id);
        let facts = girder_codelet::facts(codelet, sizes);
        let partial: Vec<FieldId> = written.filter(|&f| facts.cover[f] == girder_codelet::Cover::Partial).collect();
        for f in partial {
            if self.warned.insert((spec, f)) {
                let field = &header.fields[f.as_u32() as usize];
                let message = format!("`{}` may be left partly unwritten: the old elements stay there", field.name);
                let d = Diagnostic::warning("codelet::partial_output", field.span, message);
                self.diagnostics
                    .push(d.help("write every element on every path; or declare it `inout`, which costs the same"));
            }
        }
    }

    /// `execute name;`
    pub fn execute(&mut self, name: &ast::Path) -> Result<()> {
        match self.find_set(name)? {
            Set::Compute(s) => self.push(NodeKind::Execute(s), name.span),
            Set::Copy(c) => self.push(NodeKind::Copy(c), name.span),
        }
    }

    /// A compute set or copy of the module, made when it is first needed.
    pub fn find_set(&mut self, name: &ast::Path) -> Result<Set> {
        let dotted = name.dotted();
        let found = self.modules.find(self.module(), &dotted, |m| &m.sets);
        let Some((module, item)) = found.and_then(|(m, e)| self.modules.item(m, e)).map(|(m, i, _)| (m, i)) else {
            let all = self.modules.get(self.module()).sets.keys().map(SmolStr::as_str);
            let near = crate::spelling::closest(&dotted, all);
            let message = format!("there is no compute set or copy `{dotted}`");
            let d = Diagnostic::error("names::unknown", name.span, message);
            return Err(self.say(match near {
                Some(n) => d.help(format!("did you mean `{n}`?")),
                None => d.help("define it at the top of the module: `compute name { … }`"),
            }));
        };
        self.define_set(module, item)
    }

    /// Makes a module's compute set or copy.
    pub fn define_set(&mut self, module: ModuleRef, item: usize) -> Result<Set> {
        let it = &self.modules.get(module).tree.items[item];
        let name = match &it.kind {
            ast::ItemKind::Compute { name, .. } | ast::ItemKind::Copy { name, .. } => name.dotted(),
            _ => return Err(Failed),
        };
        let key = (module, name.clone());
        if let Some(&s) = self.sets.get(&key) {
            return Ok(s);
        }
        let set = self.at_top(module, |this| {
            let name = this.unique_set_name(Some(&name), "");
            match &it.kind {
                ast::ItemKind::Compute { vertices, .. } => this.compute_set(name, vertices, it.span).map(Set::Compute),
                ast::ItemKind::Copy { copies, .. } => this.copy_set(name, copies, it.span).map(Set::Copy),
                _ => Err(Failed),
            }
        })?;
        self.sets.insert(key, set);
        Ok(set)
    }

    pub fn find_codelet(&mut self, path: &ast::Path) -> Result<(ModuleRef, usize)> {
        let dotted = path.dotted();
        let found = self.modules.find(self.module(), &dotted, |m| &m.codelets);
        if let Some((m, i, _)) = found.and_then(|(m, e)| self.modules.item(m, e)) {
            return Ok((m, i));
        }
        let data = self.modules.get(self.module());
        let near = crate::spelling::closest(&dotted, data.codelets.keys().map(SmolStr::as_str));
        let d = Diagnostic::error("names::unknown", path.span, format!("there is no codelet `{dotted}`"));
        let is_fn = data.values.contains_key(&dotted);
        Err(self.say(match near {
            _ if is_fn => d.help(format!("`{dotted}` is a function; a vertex runs a `codelet`")),
            Some(n) => d.help(format!("did you mean `{n}`?")),
            None => d,
        }))
    }

    pub fn header(&mut self, module: ModuleRef, item: usize) -> Result<Arc<Header>> {
        if let Some(h) = self.headers.get(&(module, item)) {
            return h.clone().ok_or(Failed);
        }
        let header = self.with_scope(|names, diagnostics| {
            let (c, _) = names.codelet(module, item)?;
            crate::codelet::header(names, module, c, diagnostics).ok().map(Arc::new)
        });
        self.headers.insert((module, item), header.clone());
        header.ok_or(Failed)
    }
}
