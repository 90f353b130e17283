//! Checks of compute sets, families of vertices, and copies.

use super::check::{Result, ensure, within};
use super::{elements, tiles};
use crate::codelet::Dir;
use crate::family::{Const, CopyFamily, Family, ReplicaPair};
use crate::graph::Graph;
use crate::ids::FamilyId;
use crate::types::ElemType;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashSet;

/// Checks all compute sets and copies.
pub fn verify(graph: &Graph) -> Result {
    for (id, set) in &graph.sets {
        let entity = || within(format_args!("compute set `{}`", set.name));
        let neighbours = set.families.windows(2).all(|w| w[1].index() == w[0].index() + 1);
        ensure(neighbours, || "its families are not neighbours".into()).map_err(entity())?;
        let owns = |&f: &FamilyId| graph.families.get(f).is_some_and(|f| f.set == id);
        ensure(set.families.iter().all(owns), || "it lists a family that is not its own".into()).map_err(entity())?;
    }
    for (id, family) in &graph.families {
        let name = graph.sets.get(family.set).map_or("?", |s| s.name.as_str());
        let listed = graph.sets.get(family.set).is_some_and(|s| s.families.contains(&id));
        let checked = ensure(listed, || "its compute set does not list it".into());
        checked.and_then(|()| vertices(graph, family)).map_err(within(format_args!("{id} of `{name}`")))?;
    }
    for copies in graph.copies.values() {
        for (k, family) in copies.families.iter().enumerate() {
            let kind = family.source.pairs().is_some() == copies.crosses();
            let checked = ensure(kind, || "stays in its replica, but others of the set do not".into());
            let checked = checked.and_then(|()| copy(graph, family));
            checked.map_err(within(format_args!("copy {k} of `{}`", copies.name)))?;
        }
    }
    Ok(())
}

fn vertices(graph: &Graph, family: &Family) -> Result {
    let count = tiles::count(&family.domain)?;
    let codelet = graph.codelets.get(family.codelet).ok_or_else(|| format!("there is no {}", family.codelet))?;
    let declared = codelet.edges().map(|(id, _)| id);
    ensure(declared.eq(family.fields.iter().map(|f| f.field)), || "its fields are not the codelet's".into())?;
    for (field, (_, decl)) in family.fields.iter().zip(codelet.edges()) {
        let entity = || within(format_args!("field `{}`", decl.name));
        let ty = elements::field(graph, field, &family.domain).map_err(entity())?;
        ensure(ty.is_none_or(|t| t == decl.ty), || format!("its elements are not {}", decl.ty)).map_err(entity())?;
        let rank = field.axes.len();
        ensure(rank == decl.dims.len(), || format!("rank {rank} for {}", decl.dims.len())).map_err(entity())?;
        if decl.dir != Dir::In {
            elements::writable(graph, field.parts.iter().map(|p| p.var)).map_err(entity())?;
        }
    }
    let constants = || codelet.fields.iter().filter(|(_, f)| f.dir == Dir::Const);
    ensure(constants().map(|c| c.0).eq(family.consts.iter().map(|c| c.0)), || {
        "its constants are not the codelet's".into()
    })?;
    for ((_, value), (_, decl)) in family.consts.iter().zip(constants()) {
        constant(value, decl.ty, count).map_err(within(format_args!("constant `{}`", decl.name)))?;
    }
    tiles::range(family.within)?;
    family.tile.as_ref().map_or(Ok(()), |map| tiles::tile_map(map, &family.domain))
}

fn constant(value: &Const, ty: ElemType, count: u64) -> Result {
    let typed = match value {
        Const::Uniform(v) => v.ty == ty,
        Const::Table(t) => {
            ensure(t.len() as u64 == count, || format!("{} values for {count} instances", t.len()))?;
            t.iter().all(|v| v.ty == ty)
        }
    };
    ensure(typed, || format!("not of type {ty}"))
}

fn copy(graph: &Graph, family: &CopyFamily) -> Result {
    tiles::count(&family.domain)?;
    let dst = elements::field(graph, &family.dst, &family.domain).map_err(within(format_args!("destination")))?;
    let src = elements::field(graph, &family.src, &family.domain).map_err(within(format_args!("source")))?;
    ensure(dst == src, || "source and destination differ in type".into())?;
    ensure(family.dst.shape() == family.src.shape(), || "source and destination differ in shape".into())?;
    elements::writable(graph, family.dst.parts.iter().map(|p| p.var))?;
    if let Some(pairs) = family.source.pairs() {
        let exist = |p: &ReplicaPair| p.receiver.max(p.sender) < graph.replicas;
        ensure(!pairs.is_empty() && pairs.iter().all(exist), || "names replicas that do not exist".into())?;
        let mut receivers = FxHashSet::default();
        ensure(pairs.iter().all(|p| receivers.insert(p.receiver)), || "a replica receives twice".into())?;
    }
    ensure(family.dst.is_injective(&family.domain), || "writes an element twice".into())
}
