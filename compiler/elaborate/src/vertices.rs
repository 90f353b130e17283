//! Compute sets: vertices are evaluated one by one and then grouped by signature into families.
//!
//! # Note: Grouping
//! Vertices of one statement and one codelet specialisation whose views differ only in offsets share a family, in the
//! order of the statement's loops. Columns that turn out affine in the loops' indices are stored closed; the others are
//! tables. Whether a loop stayed closed never changes a result.

use crate::codelet::{Header, ModuleRef};
use crate::elaborator::{Elaborator, Set};
use crate::nodes::NodeKind;
use crate::print::settled;
use crate::value::Value;
use girder_codelet::sizes::Shape;
use girder_ir::codelet::{DimDecl, Dir, GenericArg};
use girder_ir::family::{Const, Domain, Family, Field, Offset, TileMap};
use girder_ir::graph::ComputeSet;
use girder_ir::ids::{ComputeSetId, FieldId, SpecId};
use girder_ir::types::Scalar;
use girder_ir::view::{Signature, View};
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{self, VertexItem};
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::sync::Arc;

/// What a specialised codelet is known by.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SpecKey {
    pub module: ModuleRef,
    pub item: usize,
    pub args: Vec<GenericArg>,
}

/// One vertex.
#[derive(Debug)]
pub struct Instance {
    pub spec: SpecId,
    /// Its statement.
    pub span: Span,
    /// One per field that is not `const`.
    pub views: Vec<View>,
    /// One per `const` field.
    pub consts: Vec<Scalar>,
    pub tile: Option<u32>,
    /// Of the loops around it, for messages.
    pub index: Vec<i64>,
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Key {
    spec: SpecId,
    span: Span,
    placed: bool,
    fields: Vec<Signature>,
}

#[derive(Debug, Default)]
struct Group {
    count: usize,
    extents: Vec<u32>,
    /// The first vertex's views; those of the others differ in offsets only.
    like: Vec<View>,
    /// Per view and part: one offset for each vertex.
    offsets: Vec<Vec<Vec<i64>>>,
    consts: Vec<Vec<Scalar>>,
    tiles: Vec<u32>,
    /// Per loop: the index of each vertex.
    indices: Vec<Vec<i64>>,
}

/// Vertices on their way to families.
#[derive(Debug, Default)]
pub struct Families {
    groups: IndexMap<Key, Group, rustc_hash::FxBuildHasher>,
    count: u64,
}

impl Families {
    /// Adds a vertex that stands in loops of these extents; `true` if it is the first of its signature.
    pub fn add(&mut self, v: Instance, extents: &[u32]) -> bool {
        self.count += 1;
        let views: Vec<View> = v.views.into_iter().map(settled).collect();
        let fields = views.iter().map(View::signature).collect();
        let key = Key { spec: v.spec, span: v.span, placed: v.tile.is_some(), fields };
        let group = self.groups.entry(key).or_default();
        group.count += 1;
        let first = group.count == 1;
        if first {
            group.extents = extents.to_vec();
            group.offsets = views.iter().map(|v| vec![vec![]; v.parts.len()]).collect();
            group.consts = v.consts.iter().map(|_| vec![]).collect();
            group.indices = v.index.iter().map(|_| vec![]).collect();
        }
        for (columns, view) in group.offsets.iter_mut().zip(&views) {
            columns.iter_mut().zip(view.offsets()).for_each(|(column, offset)| column.push(offset));
        }
        group.consts.iter_mut().zip(v.consts).for_each(|(column, c)| column.push(c));
        group.tiles.extend(v.tile);
        group.indices.iter_mut().zip(v.index).for_each(|(column, i)| column.push(i));
        if first {
            group.like = views;
        }
        first
    }
}

/// The box of loops of these extents if so many instances fill it, else a line.
pub fn box_of(extents: &[u32], count: usize) -> Domain {
    let full = extents.iter().try_fold(1u64, |n, &e| n.checked_mul(e as u64)) == Some(count as u64);
    match (full && !extents.is_empty(), count) {
        (true, _) => Domain(extents.iter().copied().collect()),
        (false, 1) => Domain::default(),
        (false, n) => line_of(n),
    }
}

/// A domain of one index. What is not closed over a box is put on a line, so that its columns stand in one table.
pub fn line_of(count: usize) -> Domain {
    Domain([count as u32].into_iter().collect())
}

/// Whether all parts of a field are closed.
pub fn is_closed(field: &Field) -> bool {
    field.parts.iter().all(|p| matches!(p.offset, Offset::Affine(_)))
}

/// The indices of the user's loops as columns; none if they cannot be stored.
fn indices_of(domain: &Domain, indices: &[Vec<i64>]) -> Box<[Offset]> {
    let fits = |c: &Vec<i64>| match Offset::fit(domain, c) {
        Offset::Table(_) if c.iter().any(|&i| u32::try_from(i).is_err()) => None,
        column => Some(column),
    };
    indices.iter().map(fits).collect::<Option<_>>().unwrap_or_default()
}

impl Elaborator<'_> {
    /// `compute name { … }` in a body: makes the set and executes it.
    pub fn compute_statement(&mut self, name: Option<&str>, items: &[VertexItem], span: Span) -> Result<()> {
        let name = self.unique_set_name(name, "set");
        let set = self.compute_set(name, items, span)?;
        self.push(NodeKind::Execute(set), span)
    }

    /// `compute name { … }`
    pub fn compute_set(&mut self, name: SmolStr, items: &[VertexItem], span: Span) -> Result<ComputeSetId> {
        let mut families = Families::default();
        self.vertex_items(items, &mut vec![], &mut families)?;
        self.finish_set(name, families, span)
    }

    /// Adds the set and its families to the graph.
    pub fn finish_set(&mut self, name: SmolStr, families: Families, span: Span) -> Result<ComputeSetId> {
        let origin = self.origin_at(span);
        let set = self.graph.sets.push(ComputeSet { name, families: vec![], origin });
        for (key, mut group) in families.groups {
            let indices = std::mem::take(&mut group.indices);
            let family = self.family(set, key, group);
            let columns = indices_of(&family.domain, &indices);
            let id = self.graph.families.push(family);
            self.graph.indices[id] = columns;
            self.graph.sets[set].families.push(id);
        }
        Ok(set)
    }

    fn family(&mut self, set: ComputeSetId, key: Key, group: Group) -> Family {
        let codelet = &self.graph.codelets[key.spec];
        let (mut edges, mut constants): (Vec<FieldId>, Vec<FieldId>) = (vec![], vec![]);
        for (id, f) in codelet.fields.iter() {
            if f.dir == Dir::Const { constants.push(id) } else { edges.push(id) }
        }
        let consts: smallvec::SmallVec<[(FieldId, Const); 1]> =
            constants.into_iter().zip(group.consts.iter().map(|c| Const::fit(c))).collect();
        let columns = |domain: &Domain| {
            let columns = group.like.iter().zip(&group.offsets);
            let field = |(&id, (like, offsets)): (&FieldId, (&View, &Vec<Vec<i64>>))| {
                Field::from_columns(id, domain, like, offsets)
            };
            let fields: smallvec::SmallVec<[Field; 4]> = edges.iter().zip(columns).map(field).collect();
            (fields, key.placed.then(|| TileMap::fit(domain, &group.tiles)))
        };
        let mut domain = box_of(&group.extents, group.count);
        let (mut fields, mut tile) = columns(&domain);
        let closed = fields.iter().all(is_closed)
            && !matches!(tile, Some(TileMap::Table(_)))
            && consts.iter().all(|c| matches!(c.1, Const::Uniform(_)));
        if domain.0.len() > 1 && !closed {
            domain = line_of(group.count);
            (fields, tile) = columns(&domain);
        }
        let origin = self.origin_at(key.span);
        Family { set, codelet: key.spec, domain, fields, consts, tile, origin }
    }

    fn vertex_items(&mut self, items: &[VertexItem], extents: &mut Vec<u32>, out: &mut Families) -> Result<()> {
        let mark = self.mark();
        let mut failed = None;
        for item in items {
            let done = match item {
                VertexItem::Vertex(v) => {
                    self.in_loops(&v.family, extents, &mut |this, extents| this.vertex(v, extents, out))
                }
                VertexItem::For { binders, body, .. } => {
                    self.in_loops(binders, extents, &mut |this, extents| this.vertex_items(body, extents, out))
                }
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
                    Ok(Value::Bool(true)) => self.vertex_items(then, extents, out),
                    Ok(Value::Bool(false)) => els.as_ref().map_or(Ok(()), |e| self.vertex_items(e, extents, out)),
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

    /// Runs a nest of loops, with their extents appended to those around.
    pub fn in_loops(
        &mut self,
        binders: &[ast::Binder],
        extents: &mut Vec<u32>,
        f: &mut dyn FnMut(&mut Self, &mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        let Some((first, rest)) = binders.split_first() else { return f(self, extents) };
        let span = self.tree().exprs[first.range].span;
        let value = self.expr(first.range)?;
        let count = self.count(&value, span)?;
        extents.push(u32::try_from(count).unwrap_or(u32::MAX));
        for k in 0..count {
            self.charge(span)?;
            let item = self.nth(&value, k);
            self.indices.push(if let Value::Int(i) = item { i } else { k as i64 });
            let mark = self.mark();
            let bound = self.bind(&first.pattern, item, false, first.span);
            let done = bound.and_then(|()| self.in_loops(rest, extents, f));
            self.release(mark);
            self.indices.pop();
            done?;
        }
        extents.pop();
        Ok(())
    }

    /// Evaluates one vertex.
    fn vertex(&mut self, v: &ast::Vertex, extents: &mut [u32], out: &mut Families) -> Result<()> {
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
            consts.push(match value {
                Value::Tensor(_) => {
                    let help = "declare the field `in` instead";
                    let message = "a `const` field takes a static value, not a tensor";
                    return Err(self.error_help("elaborate::type_mismatch", span, message, help));
                }
                value => self.scalar(&value, ty, span)?,
            });
        }
        let tile = v.place.as_ref().map(|p| self.one_tile(p)).transpose()?;
        let shapes = self.shapes(spec, &views);
        let values = self.const_values(spec, &consts);
        let index = self.indices.clone();
        let first = out.add(Instance { spec, span: v.span, views, consts, tile, index }, extents);
        // Vertices of one signature have one set of sizes, but where a dimension is computed from constants.
        let computed = |f: &girder_ir::codelet::FieldDecl| f.dims.iter().any(|d| matches!(d, DimDecl::Expr(_)));
        if first || self.graph.codelets[spec].fields.values().any(computed) {
            self.check_sizes(spec, &shapes, &values, v, &header)?;
        }
        Ok(())
    }

    fn vertex_view(
        &mut self,
        field: &crate::codelet::HeaderField,
        value: Value,
        span: Span,
    ) -> Result<crate::value::Tensor> {
        let t = match value {
            Value::Tensor(t) => t,
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

    fn find_codelet(&mut self, path: &ast::Path) -> Result<(ModuleRef, usize)> {
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

    fn header(&mut self, module: ModuleRef, item: usize) -> Result<Arc<Header>> {
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
