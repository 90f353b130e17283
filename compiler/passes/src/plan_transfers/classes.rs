//! Classes of compute sets whose plans are equal up to the names of variables, such as those of equal layers.
//!
//! # Note: Classes
//! A plan depends on the families of its set, their tiles, and the homes of their variables. A class has equal families
//! once variables are numbered within each set, and variables of one number have equal homes. Variables are numbered in
//! ascending order, so wherever a plan orders locations, the order is the same in the whole class.
//!
//! Invariant: a substituted plan equals the plan that would be made for its set.

use super::buffers::PlanError;
use super::scene::Scene;
use super::set::Locations;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use girder_ir::family::{Const, Domain, Field, TileMap};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, FieldId, SpecId, VarId};
use girder_ir::placement::Mapping;
use girder_ir::plan::{LocalCopy, Object, Phase, StepPlan, To};
use girder_ir::types::ElemType;
use girder_source::par_map_slice;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The classes of the compute sets of a graph.
pub(super) struct Classes {
    /// The first set of each class.
    pub first: Vec<ComputeSetId>,
    /// All sets, in order.
    of: PrimaryMap<ComputeSetId, Member>,
}

/// A set as a member of its class.
struct Member {
    set: ComputeSetId,
    class: usize,
    /// Its variables by number.
    vars: Vec<VarId>,
}

/// The plan of a set with its locations, or the reason why there is none.
pub(super) type SetPlan = Result<(StepPlan, Locations), PlanError>;

/// Everything that the plan of a set depends on.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    families: Vec<FamilyKey<'a>>,
    /// The homes of each variable.
    homes: Vec<u32>,
    carries: Option<CopyId>,
}

#[derive(PartialEq, Eq, Hash)]
struct FamilyKey<'a> {
    codelet: SpecId,
    domain: &'a Domain,
    fields: SmallVec<[Field; 4]>,
    consts: &'a [(FieldId, Const)],
    tiles: Option<&'a TileMap>,
}

impl Classes {
    pub(super) fn of(scene: &Scene, carried: &SecondaryMap<ComputeSetId, Option<CopyId>>) -> Classes {
        let mut homes: FxHashMap<(Option<&Mapping>, u64, ElemType), u32> = FxHashMap::default();
        let mut known: FxHashMap<Key, usize> = FxHashMap::default();
        let mut classes = Classes { first: vec![], of: PrimaryMap::new() };
        for id in scene.graph.sets.keys() {
            let vars = vars(scene.graph, id);
            let mut home = |&v: &VarId| {
                let (var, next) = (&scene.graph.vars[v], homes.len() as u32);
                *homes.entry((scene.placement.vars[v].as_ref(), var.len(), var.ty)).or_insert(next)
            };
            let key = Key {
                homes: vars.iter().map(&mut home).collect(),
                families: scene.graph.sets[id].families.iter().map(|&f| family(scene, f, &vars)).collect(),
                carries: carried[id],
            };
            let next = classes.first.len();
            let class = *known.entry(key).or_insert(next);
            if class == next {
                classes.first.push(id);
            }
            classes.of.push(Member { set: id, class, vars });
        }
        classes
    }

    /// Returns the plans of all sets from those of the first set of each class. The others are made inside `timed`.
    pub(super) fn plans(
        &self,
        first: Vec<SetPlan>,
        timed: impl Fn(ComputeSetId, &mut dyn FnMut() -> SetPlan) -> SetPlan + Sync,
    ) -> Vec<SetPlan> {
        let others: Vec<&Member> = self.of.values().filter(|m| self.first[m.class] != m.set).collect();
        let mut others = par_map_slice(&others, |m| timed(m.set, &mut || self.plan(m, &first[m.class]))).into_iter();
        let mut first: Vec<Option<SetPlan>> = first.into_iter().map(Some).collect();
        let of = |m: &Member| if self.first[m.class] == m.set { first[m.class].take() } else { others.next() };
        self.of.values().filter_map(of).collect()
    }

    /// Returns the plan of a set from that of the first set of its class.
    fn plan(&self, set: &Member, first: &SetPlan) -> SetPlan {
        let (mut plan, locations) = first.as_ref().map_err(|error| *error)?.clone();
        let (from, to) = (&self.of[self.first[set.class]].vars, &set.vars);
        if from != to {
            let renamed = |v: VarId| from.binary_search(&v).map_or(v, |k| to[k]);
            rename(&mut plan.before, renamed);
            rename(&mut plan.after, renamed);
        }
        Ok((plan, locations))
    }
}

/// Returns the variables of a set, ascending.
fn vars(graph: &Graph, set: ComputeSetId) -> Vec<VarId> {
    let families = graph.sets[set].families.iter().map(|&f| &graph.families[f]);
    let mut vars: Vec<VarId> = families.flat_map(|f| &f.fields).flat_map(|f| &f.parts).map(|p| p.var).collect();
    vars.sort_unstable();
    vars.dedup();
    vars
}

fn family<'a>(scene: &Scene<'a>, id: FamilyId, vars: &[VarId]) -> FamilyKey<'a> {
    let family = &scene.graph.families[id];
    let mut fields = family.fields.clone();
    for part in fields.iter_mut().flat_map(|f| &mut f.parts) {
        part.var = VarId::new(vars.binary_search(&part.var).unwrap_or_default());
    }
    let tiles = scene.placement.families[id].as_ref();
    FamilyKey { codelet: family.codelet, domain: &family.domain, fields, consts: &family.consts, tiles }
}

fn rename(phase: &mut Phase, renamed: impl Fn(VarId) -> VarId) {
    let object = |object: &mut Object| {
        if let Object::Var(var) = object {
            *var = renamed(*var);
        }
    };
    for LocalCopy { from, to, .. } in phase.before.iter_mut().chain(&mut phase.after) {
        object(&mut from.object);
        object(&mut to.object);
    }
    for transfer in &mut phase.transfers {
        object(&mut transfer.from.object);
        if let To::One(to) = &mut transfer.to {
            object(&mut to.object);
        }
    }
    phase.groups.iter_mut().flatten().for_each(|to| object(&mut to.object));
}
