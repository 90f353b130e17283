//! Vertices on their way to families: grouped by signature, their offsets, constants and tiles in columns.
//!
//! # Note: Grouping
//! Vertices of one statement and one codelet specialisation whose views differ only in offsets share a family, in the
//! order of the statement's loops. So do the vertices of all statements that stand in no loop, and those that are alone
//! of their kind in a loop, which print as if they stood in none. Columns that turn out
//! affine in the loops' indices are stored closed; the others are tables. Whether a loop stayed closed never changes
//! the graph: a [`Block`] makes the family that its vertices, added one by one, would make.

use crate::columns::{Ints, Lens, point_count};
use crate::elaborator::Elaborator;
use girder_ir::affine::Affine;
use girder_ir::codelet::Dir;
use girder_ir::family::{Const, Domain, Family, Field, FieldPart, Offset, TileMap};
use girder_ir::graph::ComputeSet;
use girder_ir::ids::{ComputeSetId, FieldId, SpecId};
use girder_ir::types::Scalar;
use girder_ir::view::{Signature, View, ViewPart};
use girder_source::{Result, Span};
use indexmap::IndexMap;
use smallvec::SmallVec;
use smol_str::SmolStr;

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

/// The loops around a statement, outermost first, and where they are.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// How many turns each takes.
    pub extents: Vec<u32>,
    /// The turn each is in.
    pub at: Vec<u32>,
}

/// Vertices of one signature that were evaluated at once.
#[derive(Debug)]
pub struct Block {
    pub spec: SpecId,
    /// The statement; outside loops that of each vertex.
    pub spans: Vec<Span>,
    /// The views of some vertex.
    pub like: Vec<View>,
    /// Per view: by how much each vertex's offsets exceed those of `like`.
    pub shifts: Vec<Ints>,
    pub consts: Vec<Const>,
    pub tiles: Option<Vec<u32>>,
    /// The box over which `shifts` and `counters` are given.
    pub lens: Lens,
    /// Extents of the loops around.
    pub extents: Vec<u32>,
    /// The turn that each loop is in.
    pub counters: Vec<Ints>,
    /// The indices of the loops, for messages.
    pub indices: Vec<Ints>,
}

/// What vertices of one group have in common.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Key {
    head: Head,
    fields: Vec<Signature>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Head {
    spec: SpecId,
    /// The statement; none outside loops.
    span: Option<Span>,
    placed: bool,
}

#[derive(Debug)]
struct Group {
    count: usize,
    extents: Vec<u32>,
    /// The least and the greatest turn of each loop.
    lo: Vec<u32>,
    hi: Vec<u32>,
    /// The first vertex's views; those of the others differ in offsets only.
    like: Vec<View>,
    /// Per view and part.
    offsets: Vec<Vec<Column>>,
    consts: Vec<Constants>,
    tiles: Vec<u32>,
    /// Statements, where there is more than one.
    spans: Vec<Span>,
    /// Per loop: the index of each vertex.
    indices: Vec<Vec<i64>>,
}

/// One offset for each vertex.
#[derive(Debug)]
enum Column {
    /// Over the box from `lo` to `hi`, which the vertices fill.
    Closed(Affine),
    Listed(Vec<u32>),
}

/// One constant for each vertex.
#[derive(Debug)]
enum Constants {
    Same(Scalar),
    Listed(Vec<Scalar>),
}

/// Vertices of one compute set.
#[derive(Debug, Default)]
pub struct Families {
    groups: IndexMap<Key, Group, rustc_hash::FxBuildHasher>,
    /// The group that the last vertex joined: most join that of the one before.
    last: usize,
    /// How many vertices were added.
    pub count: u64,
}

impl Families {
    /// Adds a vertex; `true` if it is the first of its signature.
    pub fn add(&mut self, v: Instance, loops: &Loops) -> bool {
        self.count += 1;
        let views = match v.views.iter().all(View::is_plain) {
            true => v.views,
            false => v.views.into_iter().map(View::canonical).collect(),
        };
        let span = (!loops.extents.is_empty()).then_some(v.span);
        let head = Head { spec: v.spec, span, placed: v.tile.is_some() };
        if !self.last_is(&head, &views) {
            let entry = self.groups.entry(Key::new(head, &views));
            self.last = entry.index();
            if let indexmap::map::Entry::Vacant(slot) = entry {
                slot.insert(Group::new(views, v.consts, v.tile, loops, v.span, v.index));
                return true;
            }
        }
        let Some((_, group)) = self.groups.get_index_mut(self.last) else { return false };
        group.open();
        group.count += 1;
        for (columns, view) in group.offsets.iter_mut().zip(&views) {
            columns.iter_mut().zip(view.offsets()).for_each(|(column, offset)| column.push(offset));
        }
        group.consts.iter_mut().zip(v.consts).for_each(|(column, c)| column.push(c, group.count));
        group.tiles.extend(v.tile);
        group.indices.iter_mut().zip(v.index).for_each(|(column, i)| column.push(i));
        group.widen(&loops.at, &loops.at);
        if loops.extents.is_empty() {
            group.spans.push(v.span);
        }
        false
    }

    fn last_is(&self, head: &Head, views: &[View]) -> bool {
        let like = |group: &Group| group.like.iter().zip(views).all(|(a, b)| a.same_signature(b));
        self.groups.get_index(self.last).is_some_and(|(key, group)| key.head == *head && like(group))
    }

    /// Views of the signature of the vertex that was added last.
    pub fn last_views(&self) -> &[View] {
        self.groups.get_index(self.last).map_or(&[], |(_, group)| &group.like)
    }

    /// Adds the vertices of a block.
    pub fn add_block(&mut self, block: Block) {
        let count = point_count(&block.lens);
        self.count += count as u64;
        let key = block.key();
        let group = block.into_group(count);
        match self.groups.entry(key) {
            indexmap::map::Entry::Vacant(slot) => {
                slot.insert(group);
            }
            indexmap::map::Entry::Occupied(mut slot) => slot.get_mut().append(group),
        }
    }

    /// The groups, in the order of their first vertices. One of a single vertex that stands in loops joins those of its
    /// signature that stand in none.
    fn into_groups(self) -> IndexMap<Key, Group, rustc_hash::FxBuildHasher> {
        let mut groups: IndexMap<Key, Group, rustc_hash::FxBuildHasher> = IndexMap::default();
        for (mut key, group) in self.groups {
            if group.domain().0.0.is_empty() {
                key.head.span = None;
            }
            match groups.entry(key) {
                indexmap::map::Entry::Vacant(slot) => {
                    slot.insert(group);
                }
                indexmap::map::Entry::Occupied(mut slot) => slot.get_mut().join(group),
            }
        }
        groups
    }
}

impl Key {
    fn new(head: Head, views: &[View]) -> Key {
        Key { head, fields: views.iter().map(View::signature).collect() }
    }
}

impl Block {
    fn key(&self) -> Key {
        let span = (!self.extents.is_empty()).then_some(self.spans[0]);
        Key::new(Head { spec: self.spec, span, placed: self.tiles.is_some() }, &self.like)
    }

    fn into_group(self, count: usize) -> Group {
        let bounds: Vec<(i64, i64)> = self.counters.iter().map(|c| c.bounds(&self.lens)).collect();
        let lo: Vec<u32> = bounds.iter().map(|b| b.0 as u32).collect();
        let hi: Vec<u32> = bounds.iter().map(|b| b.1 as u32).collect();
        let outer = lo.len() - self.lens.len().min(lo.len());
        let boxed = lo.len() >= self.lens.len()
            && lo
                .iter()
                .zip(&hi)
                .map(|(&l, &h)| h - l + 1)
                .eq(std::iter::repeat_n(1, outer).chain(self.lens.iter().copied()));
        let lens = &self.lens;
        let column = |offset: i64, shift: &Ints| match shift.as_affine().filter(|_| boxed) {
            Some(a) => {
                let coef: SmallVec<[i64; 4]> = std::iter::repeat_n(0, outer).chain(a.coef.iter().copied()).collect();
                Column::Closed(Affine { base: a.base + offset, coef })
            }
            None => Column::Listed(shift.list(lens).into_iter().map(|s| (s + offset) as u32).collect()),
        };
        let columns = |(view, shift): (&View, &Ints)| view.offsets().map(|o| column(o, shift)).collect();
        let offsets = self.like.iter().zip(&self.shifts).map(columns).collect();
        let constant = |c: Const| match c {
            Const::Uniform(s) => Constants::Same(s),
            Const::Table(t) => Constants::Listed(t.to_vec()),
        };
        let consts = self.consts.into_iter().map(constant).collect();
        let tiles = self.tiles.unwrap_or_default();
        let (spans, indices) = (self.spans, self.indices.iter().map(|c| c.values(lens).collect()).collect());
        Group { count, extents: self.extents, lo, hi, like: self.like, offsets, consts, tiles, spans, indices }
    }
}

impl Group {
    fn new(
        like: Vec<View>,
        consts: Vec<Scalar>,
        tile: Option<u32>,
        loops: &Loops,
        span: Span,
        index: Vec<i64>,
    ) -> Group {
        let listed = |offset: i64| Column::Listed(vec![offset as u32]);
        let offsets = like.iter().map(|v| v.offsets().map(listed).collect()).collect();
        let consts = consts.into_iter().map(Constants::Same).collect();
        let (lo, hi, extents) = (loops.at.clone(), loops.at.clone(), loops.extents.clone());
        Group {
            count: 1,
            extents,
            lo,
            hi,
            like,
            offsets,
            consts,
            tiles: Vec::from_iter(tile),
            spans: vec![span],
            indices: index.into_iter().map(|i| vec![i]).collect(),
        }
    }

    /// Makes every offset a listed one, so that vertices can be added.
    fn open(&mut self) {
        let lens: Lens = self.lo.iter().zip(&self.hi).map(|(l, h)| h - l + 1).collect();
        for column in self.offsets.iter_mut().flatten() {
            if let Column::Closed(affine) = column {
                let values = Ints::affine(affine.clone()).values(&lens).map(|v| v as u32).collect();
                *column = Column::Listed(values);
            }
        }
    }

    fn widen(&mut self, lo: &[u32], hi: &[u32]) {
        self.lo.iter_mut().zip(lo).for_each(|(a, &b)| *a = b.min(*a));
        self.hi.iter_mut().zip(hi).for_each(|(a, &b)| *a = b.max(*a));
    }

    fn append(&mut self, mut other: Group) {
        self.open();
        other.open();
        for (column, more) in self.offsets.iter_mut().flatten().zip(other.offsets.into_iter().flatten()) {
            if let (Column::Listed(column), Column::Listed(more)) = (column, more) {
                column.extend(more);
            }
        }
        for (column, more) in self.consts.iter_mut().zip(other.consts) {
            for k in 0..other.count {
                column.push(more.at(k), self.count + k + 1);
            }
        }
        self.count += other.count;
        self.tiles.extend(other.tiles);
        if self.extents.is_empty() {
            self.spans.extend(other.spans);
        }
        self.indices.iter_mut().zip(other.indices).for_each(|(column, more)| column.extend(more));
        self.widen(&other.lo, &other.hi);
    }

    /// Adds vertices that stand in other loops or none: what is left has no loops.
    fn join(&mut self, mut other: Group) {
        for group in [&mut *self, &mut other] {
            group.open();
            group.extents.clear();
            group.lo.clear();
            group.hi.clear();
            group.indices.clear();
        }
        self.append(other);
    }

    /// The box of the loops if the vertices fill it; else the part of it that they fill, without indices of one value;
    /// else a line. With the loops that have an index.
    fn domain(&self) -> (Domain, Option<Vec<usize>>) {
        let fills = |lens: &[u32]| point_count_checked(lens) == Some(self.count as u64);
        if !self.extents.is_empty() && fills(&self.extents) {
            return (Domain(self.extents.iter().copied().collect()), Some((0..self.extents.len()).collect()));
        }
        let lens: Vec<u32> = self.lo.iter().zip(&self.hi).map(|(l, h)| h - l + 1).collect();
        if fills(&lens) {
            let dims: Vec<usize> = (0..lens.len()).filter(|&k| lens[k] != 1).collect();
            return (Domain(dims.iter().map(|&k| lens[k]).collect()), Some(dims));
        }
        (Domain::line(self.count as u32), None)
    }

    /// The view `k` as a field over a domain; `dims` says which loop each of its indices is.
    fn field(&self, k: usize, id: FieldId, domain: &Domain, dims: Option<&[usize]>) -> Field {
        let lens = || self.lo.iter().zip(&self.hi).map(|(l, h)| h - l + 1).collect::<Lens>();
        let offset = |column: &Column| match (column, dims) {
            (Column::Closed(a), Some(dims)) => {
                let coef = |(&k, &n): (&usize, &u32)| if n > 1 { a.coef.get(k).copied().unwrap_or(0) } else { 0 };
                let coef: SmallVec<[i64; 4]> = dims.iter().zip(&domain.0).map(coef).collect();
                Offset::Affine(Affine::new(a.base, &coef))
            }
            (Column::Closed(a), None) => {
                let values: Vec<u32> = Ints::affine(a.clone()).values(&lens()).map(|v| v as u32).collect();
                Offset::fit(domain, &values)
            }
            (Column::Listed(values), _) => Offset::fit(domain, values),
        };
        let part = |(p, column): (&ViewPart, &Column)| FieldPart {
            lo: p.lo.clone(),
            len: p.len.clone(),
            var: p.var,
            offset: offset(column),
            stride: p.stride.clone(),
        };
        let like = &self.like[k];
        let parts = like.parts.iter().zip(&self.offsets[k]).map(part).collect();
        Field { field: id, digits: like.digits.clone(), axes: like.axes.clone(), parts }
    }
}

impl Column {
    fn push(&mut self, offset: i64) {
        if let Column::Listed(values) = self {
            values.push(offset as u32);
        }
    }
}

impl Constants {
    /// Appends the constant of the vertex that makes them `count`.
    fn push(&mut self, value: Scalar, count: usize) {
        match self {
            Constants::Same(s) if *s == value => {}
            Constants::Same(s) => {
                let mut values = vec![*s; count - 1];
                values.push(value);
                *self = Constants::Listed(values);
            }
            Constants::Listed(values) => values.push(value),
        }
    }

    fn at(&self, k: usize) -> Scalar {
        match self {
            Constants::Same(s) => *s,
            Constants::Listed(values) => values[k],
        }
    }

    fn fit(&self) -> Const {
        match self {
            Constants::Same(s) => Const::Uniform(*s),
            Constants::Listed(values) => Const::fit(values),
        }
    }
}

/// Whether no two blocks have one signature.
pub fn all_differ(blocks: &[Block]) -> bool {
    let mut keys = rustc_hash::FxHashSet::default();
    blocks.iter().all(|b| keys.insert(b.key()))
}

fn point_count_checked(lens: &[u32]) -> Option<u64> {
    lens.iter().try_fold(1u64, |n, &e| n.checked_mul(e as u64))
}

/// The box of loops of these extents if so many instances fill it, else a line.
pub fn box_of(extents: &[u32], count: usize) -> Domain {
    let full = point_count_checked(extents) == Some(count as u64);
    match (full && !extents.is_empty(), count) {
        (true, _) => Domain(extents.iter().copied().collect()),
        (false, 1) => Domain::default(),
        (false, n) => Domain::line(n as u32),
    }
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
    /// Adds the set and its families to the graph.
    pub fn finish_set(&mut self, name: SmolStr, families: Families, span: Span) -> Result<ComputeSetId> {
        let origin = self.origin_at(span);
        let set = self.graph.sets.push(ComputeSet { name, families: vec![], origin });
        for (key, mut group) in families.into_groups() {
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
        let edges: Vec<FieldId> = self.fields(key.head.spec, |dir| dir != Dir::Const);
        let constants: Vec<FieldId> = self.fields(key.head.spec, |dir| dir == Dir::Const);
        let consts: SmallVec<[(FieldId, Const); 1]> =
            constants.into_iter().zip(group.consts.iter().map(Constants::fit)).collect();
        let columns = |domain: &Domain, dims: Option<&[usize]>| {
            let fields = edges.iter().enumerate().map(|(k, &id)| group.field(k, id, domain, dims));
            let fields: SmallVec<[Field; 4]> = fields.collect();
            (fields, key.head.placed.then(|| TileMap::fit(domain, &group.tiles)))
        };
        let (mut domain, dims) = group.domain();
        let (mut fields, mut tile) = columns(&domain, dims.as_deref());
        let closed = fields.iter().all(Field::is_closed)
            && !matches!(tile, Some(TileMap::Table(_)))
            && consts.iter().all(|c| matches!(c.1, Const::Uniform(_)));
        if domain.0.len() > 1 && !closed {
            domain = Domain::line(group.count as u32);
            (fields, tile) = columns(&domain, None);
        }
        let origin = self.origin_at(group.spans[0]);
        let statements = (group.spans.len() > 1).then(|| group.spans.into());
        Family { set, codelet: key.head.spec, domain, fields, consts, tile, origin, statements }
    }

    fn fields(&self, spec: SpecId, wanted: impl Fn(Dir) -> bool) -> Vec<FieldId> {
        self.graph.codelets[spec].fields.iter().filter(|(_, f)| wanted(f.dir)).map(|(id, _)| id).collect()
    }
}
