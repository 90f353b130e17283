//! Steps that are maps: compute sets and copies that compute each element from elements at the same iteration.
//!
//! Invariant: a step that is a [`Map`] applies its function in every iteration of its space, and does nothing else. No
//! two iterations share a byte that one of them writes. No part of it can fail.

use crate::space::{Access, Extents, IterationSpace};
use crate::strides::{all_instances, field_strides, line};
use girder_codelet::elementwise::Elementwise;
use girder_ir::codelet::StmtBlock;
use girder_ir::family::{Const, CopyFamily, Domain, Family, Field, Offset};
use girder_ir::graph::Graph;
use girder_ir::ids::{CopyId, FamilyId, FieldId, SizeId, SpecId, VarId};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::copy_runs;
use smallvec::SmallVec;

/// Maximal number of runs of a copy that is a map.
const MOST_RUNS: usize = 1 << 10;
/// Maximal number of parts of a map that wait for others.
const MOST_PARTS: usize = 8;

/// A graph with the first byte of each variable. The bytes may be in no real memory; they state which variables
/// overlap.
#[derive(Clone, Copy)]
pub struct AddressedGraph<'g, 'o> {
    /// The graph.
    pub graph: &'g Graph,
    /// The first byte of each variable, by id.
    pub offsets: &'o [u64],
}

impl AddressedGraph<'_, '_> {
    /// Returns the byte of an element of a variable.
    fn byte(&self, var: VarId, element: i64) -> i64 {
        self.offsets[var.as_u32() as usize] as i64 + element * i64::from(self.graph.vars[var].ty.bytes())
    }
}

/// A step as a function of elements.
#[derive(Clone, Debug)]
pub struct Map<'g> {
    /// What it computes in an iteration.
    pub function: Function<'g>,
    /// Its iterations.
    pub space: IterationSpace,
    /// One per access of the space.
    pub uses: Vec<AccessUse>,
    /// Iterations of a vertex; 1 for a copy.
    pub grain: u64,
    /// The number of expressions of its function.
    pub size: usize,
    /// A family of the step; `None` for a copy.
    pub family: Option<FamilyId>,
}

/// The use of an access by a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AccessUse {
    /// Whether the old element is read.
    pub reads: bool,
    /// Whether the element is written.
    pub writes: bool,
}

/// The computation of a map in each iteration.
#[derive(Clone, PartialEq, Debug)]
pub enum Function<'g> {
    /// Copies the element of the first access to the second.
    Copy(ElemType),
    /// Runs statements of a codelet.
    Codelet(Applied<'g>),
}

/// Statements of a codelet for some sizes and constants.
#[derive(Clone, Debug)]
pub struct Applied<'g> {
    /// The codelet.
    pub spec: SpecId,
    /// The sizes that the statements name.
    pub sizes: Vec<(SizeId, i64)>,
    /// Its constants, and the values of fields whose elements are constants.
    pub consts: Vec<(FieldId, Scalar)>,
    /// The field of each access.
    pub fields: Vec<FieldId>,
    /// The statements.
    pub statements: &'g StmtBlock,
}

impl PartialEq for Applied<'_> {
    fn eq(&self, other: &Self) -> bool {
        // The statements are those of the specialisation.
        (self.spec, &self.sizes, &self.consts, &self.fields) == (other.spec, &other.sizes, &other.consts, &other.fields)
    }
}

impl<'g> Map<'g> {
    /// Returns the vertices of some families of a compute set as a map, or `None` if it is not a map. `body` returns
    /// the codelet of a family as a nest of loops, if it is elementwise.
    ///
    /// # Errors
    /// The errors of `body`.
    pub fn of_families<E>(
        graph: AddressedGraph<'g, '_>,
        families: &[FamilyId],
        mut body: impl FnMut(&'g Family) -> Result<Option<Elementwise<'g>>, E>,
    ) -> Result<Option<Map<'g>>, E> {
        let mut parts = Parts::default();
        for &id in families {
            let family = &graph.graph.families[id];
            if family.domain.count() == 0 {
                continue;
            }
            let Some(map) = body(family)?.and_then(|body| Map::of_family(graph, id, body)) else { return Ok(None) };
            if !parts.add(map) {
                return Ok(None);
            }
        }
        Ok(parts.whole().and_then(Map::finished))
    }

    fn of_family(graph: AddressedGraph<'_, '_>, id: FamilyId, body: Elementwise<'g>) -> Option<Map<'g>> {
        let family = &graph.graph.families[id];
        let codelet = &graph.graph.codelets[family.codelet];
        let vertices = VertexIndices::of(family);
        let mut space = IterationSpace { extents: vertices.extents(), accesses: Vec::new() };
        space.extents.extend(body.extents.iter().copied());
        for u in &body.uses {
            let field = family.fields.iter().find(|f| f.field == u.field)?;
            let ty = codelet.fields[u.field].ty;
            let strides = field_strides(field, ty.bytes())?;
            let mut access = vertices.access(graph, field, ty)?;
            let along =
                |l: usize| u.index.iter().zip(&strides).filter(|(at, _)| **at == l).map(|(_, s)| s).sum::<i64>();
            access.strides.extend((0..body.extents.len()).map(along));
            space.accesses.push(access);
        }
        let uniform = |(field, value): &(FieldId, Const)| match value {
            Const::Uniform(value) => Some((*field, *value)),
            Const::Table(_) => None,
        };
        let consts = family.consts.iter().map(uniform).collect::<Option<_>>()?;
        let fields = body.uses.iter().map(|u| u.field).collect();
        let applied = Applied { spec: family.codelet, sizes: body.sizes, consts, fields, statements: body.statements };
        let uses: Vec<AccessUse> = body.uses.iter().map(|u| AccessUse { reads: u.reads, writes: u.writes }).collect();
        let grain = body.extents.iter().product();
        let written = uses.iter().position(|t| t.writes)?;
        let function = Function::Codelet(applied);
        let size = codelet.exprs.len();
        Some(Map { function, space: space.ordered_by(written), uses, grain, size, family: Some(id) })
    }

    /// Returns a copy as a map, or `None` if it is not a map.
    pub fn of_copy(graph: AddressedGraph<'g, '_>, copy: CopyId) -> Option<Map<'g>> {
        if !graph.graph.copies[copy].is_own() {
            return None;
        }
        let mut parts = Parts::default();
        let mut runs = 0;
        for CopyFamily { domain, dst, src, .. } in &graph.graph.copies[copy].families {
            let (dst, src) = (all_instances(dst, domain)?, all_instances(src, domain)?);
            for c in copy_runs(&dst, &src) {
                let ty = graph.graph.vars[c.dst_var].ty;
                let access = |var, start: u64, stride: i64| Access {
                    var,
                    ty,
                    start: graph.byte(var, start as i64),
                    strides: SmallVec::from_slice(&[stride * i64::from(ty.bytes())]),
                };
                let from = access(c.src_var, c.src_start, c.src_stride);
                let to = access(c.dst_var, c.dst_start, c.dst_stride);
                let space = IterationSpace { extents: SmallVec::from_slice(&[c.len]), accesses: vec![from, to] };
                let uses = vec![AccessUse { reads: true, writes: false }, AccessUse { reads: false, writes: true }];
                let function = Function::Copy(ty);
                let map = Map { function, space: space.ordered_by(1), uses, grain: 1, size: 1, family: None };
                runs += 1;
                if runs > MOST_RUNS || !parts.add(map) {
                    return None;
                }
            }
        }
        parts.whole().and_then(Map::finished)
    }

    /// Returns the map with each element that it only reads, and that is a constant, as a constant of its function.
    pub fn with_constants(mut self, graph: &Graph) -> Map<'g> {
        let Function::Codelet(applied) = &mut self.function else { return self };
        for n in (0..self.uses.len()).rev() {
            if !self.uses[n].writes
                && let Some(value) = graph.vars[self.space.accesses[n].var].constant()
            {
                applied.consts.push((applied.fields.remove(n), value));
                self.space.accesses.remove(n);
                self.uses.remove(n);
            }
        }
        self
    }

    /// Returns whether no element is accessed twice in an iteration, once as a write.
    pub fn obeys_the_race_rule(&self) -> bool {
        let all: Vec<(&Access, &AccessUse)> = self.space.accesses.iter().zip(&self.uses).collect();
        let clash = |(a, u): &(&Access, &AccessUse), (b, v): &(&Access, &AccessUse)| {
            (u.writes || v.writes) && (a.var, a.start, &a.strides) == (b.var, b.start, &b.strides)
        };
        all.iter().enumerate().all(|(n, a)| all[..n].iter().all(|b| !clash(a, b)))
    }

    /// Returns the map with its iterations in the order of memory, or `None` if two of them write a common byte.
    fn finished(mut self) -> Option<Map<'g>> {
        let written = self.uses.iter().position(|t| t.writes)?;
        self.space = self.space.ordered_by(written);
        let all = self.space.accesses.iter().zip(&self.uses);
        let sound =
            |(a, t): (&Access, &AccessUse)| a.ty.is_supported() && (!t.writes || a.is_injective(&self.space.extents));
        all.clone().all(sound).then_some(self)
    }
}

/// Maps with one function that join to larger ones: a tensor is cut into equal boxes and what remains along each axis.
#[derive(Default)]
struct Parts<'g>(Vec<Map<'g>>);

impl<'g> Parts<'g> {
    /// Adds a map and joins the last ones as far as possible; returns `false` if they cannot become one map.
    fn add(&mut self, map: Map<'g>) -> bool {
        if self.0.last().is_some_and(|last| last.function != map.function || last.uses != map.uses) {
            return false;
        }
        self.0.push(map);
        while let [.., last, next] = &mut self.0[..]
            && last.space.append(&next.space)
        {
            self.0.pop();
        }
        self.0.len() <= MOST_PARTS
    }

    /// Returns the one map that all have become.
    fn whole(mut self) -> Option<Map<'g>> {
        if self.0.len() == 1 { self.0.pop() } else { None }
    }
}

/// The vertices of a family as iterations.
struct VertexIndices<'g> {
    domain: &'g Domain,
    /// Whether offsets are functions of the domain's indices; otherwise they are functions of the instance number.
    closed: bool,
}

impl VertexIndices<'_> {
    fn of(family: &Family) -> VertexIndices<'_> {
        let closed = |f: &Field| f.parts.iter().all(|p| matches!(p.offset, Offset::Affine(_)));
        VertexIndices { domain: &family.domain, closed: family.fields.iter().all(closed) }
    }

    fn extents(&self) -> Extents {
        match self.closed {
            true => self.domain.0.iter().map(|&n| u64::from(n)).collect(),
            false => Extents::from_slice(&[self.domain.count()]),
        }
    }

    /// Returns the access of the first element of a field in each vertex.
    fn access(&self, graph: AddressedGraph<'_, '_>, field: &Field, ty: ElemType) -> Option<Access> {
        let [part] = &field.parts[..] else { return None };
        let size = i64::from(ty.bytes());
        let (base, strides): (i64, SmallVec<[i64; 4]>) = match &part.offset {
            Offset::Affine(affine) if self.closed => {
                let coef = |k: usize| affine.coef.get(k).copied().unwrap_or(0) * size;
                (affine.base, (0..self.domain.0.len()).map(coef).collect())
            }
            offset => {
                let (base, step) = line(offset, self.domain)?;
                (base, SmallVec::from_slice(&[step * size]))
            }
        };
        Some(Access { var: part.var, ty, start: graph.byte(part.var, base), strides })
    }
}
