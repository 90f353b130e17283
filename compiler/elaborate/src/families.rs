//! Families: vertices grouped by signature, with their offsets, constants and tiles.
//!
//! # Note: Grouping
//! Vertices of one statement and one codelet specialisation whose views differ only in offsets share a family, in the
//! order of the statement's loops. Vertices outside loops share families across statements. A single vertex of its
//! signature in a loop joins them, because it prints as if it were outside the loop. Offsets that are affine in the
//! loops' indices are stored as closed forms; the others are tables. Whether a loop was batched never changes the
//! graph: a [`VertexBlock`] makes the same family as its vertices, added one by one.
//!
//! The printed text of a stage has one statement for each family, and its tables name families by number. There each
//! statement is a family of its own, even if another one has the same signature.
//!
//! Invariant: families are in the order of their first vertices.

mod block;
mod boxes;
mod group;
mod lists;

pub use block::{Instance, Loops, VertexBlock, all_differ};
pub use boxes::box_of;

use crate::batched::point_count;
use crate::elaborator::{Elaborator, memory};
use block::{Head, Key};
use girder_ir::codelet::Dir;
use girder_ir::family::{Const, Domain, Family, Field, Offset, TileMap};
use girder_ir::graph::ComputeSet;
use girder_ir::ids::{ComputeSetId, FieldId, SpecId};
use girder_ir::view::View;
use girder_source::{Result, Span};
use group::Group;
use indexmap::IndexMap;
use indexmap::map::Entry;
use lists::Constants;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use smol_str::SmolStr;

/// Vertices of one compute set.
#[derive(Debug, Default)]
pub struct Families {
    groups: IndexMap<Key, Group, FxBuildHasher>,
    /// The group that the last vertex joined; the next one usually joins it too.
    last: usize,
    /// Whether each statement is a family of its own.
    by_statement: bool,
    /// The number of vertices that were added.
    pub count: u64,
}

impl Families {
    /// Creates an empty list; `by_statement` makes a family of each statement.
    pub fn new(by_statement: bool) -> Families {
        Families { by_statement, ..Families::default() }
    }

    /// Adds a vertex; returns whether it is the first of its key.
    pub fn add(&mut self, mut vertex: Instance, loops: &Loops) -> bool {
        self.count += 1;
        if !vertex.views.iter().all(View::is_plain) {
            vertex.views = vertex.views.into_iter().map(View::canonical).collect();
        }
        let span = (self.by_statement || !loops.extents.is_empty()).then_some(vertex.span);
        let head = Head { spec: vertex.spec, span, placed: vertex.tile.is_some(), within: vertex.within };
        if !self.last_is(&head, &vertex.views) {
            let entry = self.groups.entry(Key::new(head, &vertex.views));
            self.last = entry.index();
            if let Entry::Vacant(slot) = entry {
                slot.insert(Group::new(vertex, loops));
                return true;
            }
        }
        if let Some((_, group)) = self.groups.get_index_mut(self.last) {
            group.push(vertex, loops);
        }
        false
    }

    fn last_is(&self, head: &Head, views: &[View]) -> bool {
        let fits = |group: &Group| group.like.iter().zip(views).all(|(a, b)| a.same_signature(b));
        self.groups.get_index(self.last).is_some_and(|(key, group)| key.head == *head && fits(group))
    }

    /// Returns representative views of the group that the last vertex joined.
    pub fn last_views(&self) -> &[View] {
        self.groups.get_index(self.last).map_or(&[], |(_, group)| &group.like)
    }

    /// Adds the vertices of blocks, which are in the order of their first vertices. Blocks of one key are parts of one
    /// statement, whose vertices are put in the order of its iterations.
    pub fn add_blocks(&mut self, blocks: Vec<VertexBlock>) {
        let mut by_key: IndexMap<Key, Vec<VertexBlock>, FxBuildHasher> = IndexMap::default();
        blocks.into_iter().for_each(|block| by_key.entry(block.key()).or_default().push(block));
        for (key, blocks) in by_key {
            let counts: Vec<usize> = blocks.iter().map(|b| point_count(&b.extents)).collect();
            let iterations = (blocks.len() > 1).then(|| blocks.iter().flat_map(VertexBlock::iterations).collect());
            let mut groups = blocks.into_iter().zip(&counts).map(|(block, &count)| Group::of_block(block, count));
            let Some(mut group) = groups.next() else { continue };
            groups.for_each(|other| group.append(other));
            if let Some(iterations) = iterations {
                let iterations: Vec<Vec<i64>> = iterations;
                let mut order: Vec<usize> = (0..iterations.len()).collect();
                order.sort_by(|&a, &b| iterations[a].cmp(&iterations[b]));
                group.reorder(&order);
            }
            self.count += group.count as u64;
            self.add_group(key, group);
        }
    }

    /// Adds the vertices of a block.
    pub fn add_block(&mut self, block: VertexBlock) {
        let count = point_count(&block.extents);
        self.count += count as u64;
        let key = block.key();
        let group = Group::of_block(block, count);
        self.add_group(key, group);
    }

    fn add_group(&mut self, key: Key, group: Group) {
        match self.groups.entry(key) {
            Entry::Vacant(slot) => {
                slot.insert(group);
            }
            Entry::Occupied(mut slot) => slot.get_mut().append(group),
        }
    }

    /// Returns the groups in the order of their first vertices. A single vertex in loops joins the group of its
    /// signature outside loops.
    fn into_groups(self) -> IndexMap<Key, Group, FxBuildHasher> {
        let mut groups: IndexMap<Key, Group, FxBuildHasher> = IndexMap::default();
        for (mut key, group) in self.groups {
            if !self.by_statement && group.domain().0.0.is_empty() {
                key.head.span = None;
            }
            match groups.entry(key) {
                Entry::Vacant(slot) => {
                    slot.insert(group);
                }
                Entry::Occupied(mut slot) => slot.get_mut().join(group),
            }
        }
        groups
    }
}

impl Elaborator<'_> {
    /// Adds a compute set and its families to the graph.
    pub fn finish_set(&mut self, name: SmolStr, families: Families, span: Span) -> Result<ComputeSetId> {
        let origin = self.origin_at(span);
        self.charge_bytes(memory::SET + 2 * name.len() as u64, span)?;
        let set = self.graph.sets.push(ComputeSet { name, families: vec![], origin });
        self.add_families(set, families, span)?;
        Ok(set)
    }

    /// Adds families to a compute set.
    pub fn add_families(&mut self, set: ComputeSetId, families: Families, span: Span) -> Result<()> {
        for (key, mut group) in families.into_groups() {
            self.charge_bytes(memory::of_family(&group.like), span)?;
            let indices = std::mem::take(&mut group.indices);
            let family = self.family(set, key, group);
            let indices = indices_of(&family.domain, &indices);
            let id = self.graph.families.push(family);
            self.graph.indices[id] = indices;
            self.graph.sets[set].families.push(id);
        }
        Ok(())
    }

    /// Makes the family of a group. If the group does not fill a box, the domain has one dimension.
    fn family(&mut self, set: ComputeSetId, key: Key, group: Group) -> Family {
        let edges: Vec<FieldId> = self.fields(key.head.spec, |dir| dir != Dir::Const);
        let constants: Vec<FieldId> = self.fields(key.head.spec, |dir| dir == Dir::Const);
        let consts: SmallVec<[(FieldId, Const); 1]> =
            constants.into_iter().zip(group.consts.iter().map(Constants::fit)).collect();
        let over = |domain: &Domain, dims: Option<&[usize]>| {
            let fields = edges.iter().enumerate().map(|(k, &id)| group.field(k, id, domain, dims));
            let fields: SmallVec<[Field; 4]> = fields.collect();
            (fields, key.head.placed.then(|| TileMap::fit(domain, &group.tiles)))
        };
        let (mut domain, dims) = group.domain();
        let (mut fields, mut tile) = over(&domain, dims.as_deref());
        let closed = fields.iter().all(Field::is_closed)
            && !matches!(tile, Some(TileMap::Table(_)))
            && consts.iter().all(|c| matches!(c.1, Const::Uniform(_)));
        if domain.0.len() > 1 && !closed {
            domain = Domain::line(group.count as u32);
            (fields, tile) = over(&domain, None);
        }
        let origin = self.origin_at(group.spans[0]);
        let statements = (group.spans.len() > 1).then(|| group.spans.into());
        let Head { spec: codelet, within, .. } = key.head;
        Family { set, codelet, domain, fields, consts, tile, within, origin, statements }
    }

    /// Returns the fields of a codelet whose direction is wanted.
    fn fields(&self, spec: SpecId, wanted: impl Fn(Dir) -> bool) -> Vec<FieldId> {
        self.graph.codelets[spec].fields.iter().filter(|(_, f)| wanted(f.dir)).map(|(id, _)| id).collect()
    }
}
/// Returns the indices of the user's loops over a domain; empty if they cannot be stored.
fn indices_of(domain: &Domain, indices: &[Vec<i64>]) -> Box<[Offset]> {
    let fits = |c: &Vec<i64>| match Offset::fit(domain, c) {
        Offset::Table(_) if c.iter().any(|&i| u32::try_from(i).is_err()) => None,
        offset => Some(offset),
    };
    indices.iter().map(fits).collect::<Option<_>>().unwrap_or_default()
}
