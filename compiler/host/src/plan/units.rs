//! Units: the parts of supersteps that run as one task each.
//!
//! Vertices of one superstep are independent, so the host may run them in any order and in any groups. Families with
//! one codelet that write the same variables are one unit: the boxes of one operation. A compute set that several
//! operations share has several units, each of which can be a product, or can be fused with units of other steps.
//!
//! Invariant: every family is in one unit; the units of a compute set are in the order of its families.

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, StepId, VarId};
use girder_ir::layout::HostLayout;
use girder_ir::program::StepKind;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Names a part of a compute set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId(u32);
entity_impl!(PartId, "part");

/// Families of a compute set that run as one task.
#[derive(Clone, Debug)]
pub struct SetPart {
    /// The compute set.
    pub set: ComputeSetId,
    /// The families, in order.
    pub families: Vec<FamilyId>,
}

/// The parts of all compute sets.
#[derive(Clone, Debug)]
pub struct SetParts {
    /// The parts, by id.
    pub parts: PrimaryMap<PartId, SetPart>,
    of_set: SecondaryMap<ComputeSetId, Vec<PartId>>,
}

/// What runs as one task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unit {
    /// Vertices.
    Vertices(PartId),
    /// A copy.
    Copy(CopyId),
}

/// A unit in a step of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepUnit {
    /// The step.
    pub step: StepId,
    /// The unit.
    pub unit: Unit,
}

impl SetParts {
    /// Divides all compute sets, or makes one part of each.
    pub fn of(graph: &Graph, divide: bool) -> SetParts {
        let mut all = SetParts { parts: PrimaryMap::new(), of_set: SecondaryMap::new() };
        for (set, compute) in &graph.sets {
            let divided = if divide { graph.operations(set) } else { vec![compute.families.clone()] };
            for families in divided.into_iter().filter(|families| !families.is_empty()) {
                all.of_set[set].push(all.parts.push(SetPart { set, families }));
            }
        }
        all
    }

    /// Returns the parts of a compute set, in order.
    pub fn of_set(&self, set: ComputeSetId) -> &[PartId] {
        &self.of_set[set]
    }

    /// Returns the units of a step, in order; none if it is no superstep, or one in which replicas exchange elements.
    pub fn of_step(&self, graph: &Graph, step: StepId) -> Vec<StepUnit> {
        match graph.steps[step].kind {
            StepKind::Execute(set) => {
                self.of_set[set].iter().map(|&part| StepUnit { step, unit: Unit::Vertices(part) }).collect()
            }
            StepKind::Copy(copy) if graph.copies[copy].crosses() => vec![],
            StepKind::Copy(copy) => vec![StepUnit { step, unit: Unit::Copy(copy) }],
            _ => vec![],
        }
    }
}

/// The user of a variable: a unit, or another step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum User {
    Unit(StepUnit),
    Step,
}

/// The variables that units access, and the units that access variables.
pub(crate) struct UnitAccesses {
    /// The bytes of the variables of each unit, and whether it writes some of them.
    bytes: FxHashMap<Unit, Vec<(Range<u64>, bool)>>,
    users: SecondaryMap<VarId, Vec<User>>,
}

impl UnitAccesses {
    /// Lists the accesses of all units of a graph.
    pub fn of(graph: &Graph, layout: &HostLayout, parts: &SetParts) -> UnitAccesses {
        let mut all = UnitAccesses { bytes: FxHashMap::default(), users: SecondaryMap::new() };
        for (id, step) in &graph.steps {
            let units = parts.of_step(graph, id);
            for &unit in &units {
                let vars = vars_of(graph, parts, unit.unit);
                vars.iter().for_each(|v| all.users[v.0].push(User::Unit(unit)));
                let bytes = |&(var, writes): &(VarId, bool)| {
                    let first = layout.offsets[var.as_u32() as usize];
                    (first..first + graph.vars[var].bytes(), writes)
                };
                all.bytes.entry(unit.unit).or_insert_with(|| vars.iter().map(bytes).collect());
            }
            if let StepKind::Repeat { index: Some((var, ..)), .. } = step.kind {
                all.users[var].push(User::Step);
            }
            let view = step.view().into_iter().flat_map(|v| &v.parts);
            view.for_each(|p| all.users[p.var].push(User::Step));
            if let StepKind::Copy(copy) = step.kind
                && units.is_empty()
            {
                let fields = graph.copies[copy].families.iter().flat_map(|f| [&f.dst, &f.src]);
                fields.flat_map(|f| &f.parts).for_each(|p| all.users[p.var].push(User::Step));
            }
        }
        all
    }

    /// Returns whether only some units access a variable.
    pub fn is_within(&self, var: VarId, units: &[StepUnit]) -> bool {
        self.users[var].iter().all(|user| matches!(user, User::Unit(unit) if units.contains(unit)))
    }

    /// Returns the bytes of the variables of a unit, and whether it writes elements of them.
    pub fn bytes(&self, unit: Unit) -> &[(Range<u64>, bool)] {
        self.bytes.get(&unit).map_or(&[], |bytes| bytes)
    }
}

/// Returns the variables of a unit, and whether it writes elements of them.
fn vars_of(graph: &Graph, parts: &SetParts, unit: Unit) -> Vec<(VarId, bool)> {
    let mut vars: Vec<(VarId, bool)> = vec![];
    match unit {
        Unit::Vertices(part) => {
            for family in parts.parts[part].families.iter().map(|&f| &graph.families[f]) {
                let codelet = &graph.codelets[family.codelet];
                for field in &family.fields {
                    let writes = codelet.fields[field.field].dir.writes();
                    vars.extend(field.parts.iter().map(|p| (p.var, writes)));
                }
            }
        }
        Unit::Copy(copy) => {
            for family in &graph.copies[copy].families {
                vars.extend(family.dst.parts.iter().map(|p| (p.var, true)));
                vars.extend(family.src.parts.iter().map(|p| (p.var, false)));
            }
        }
    }
    vars.sort_unstable();
    vars.dedup();
    vars
}
