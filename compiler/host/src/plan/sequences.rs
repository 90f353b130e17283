//! Neighbouring supersteps, as groups of units in the order in which the host runs them.
//!
//! # Note: Order
//! Units that do not depend on one another may be exchanged ([`Dependences`]). So the sums of a product are moved up to
//! it, and maps to the chain that they continue, over the units between.
//!
//! Invariant: a sequence is in one `Seq`, without another step between its supersteps, and has each of their units
//! once.

use super::dependences::{Dependences, Window};
use super::units::{SetParts, StepUnit, Unit, UnitAccesses};
use crate::error::HostError;
use crate::fuse::{ChainFinder, FusedSteps};
use crate::hosted::HostedGraph;
use crate::kernels::KernelSet;
use crate::plan::units::PartId;
use crate::products::{LinkedProduct, MatrixProduct, SummedProducts, summed};
use cranelift_entity::SecondaryMap;
use girder_ir::ids::StepId;
use girder_ir::program::StepKind;

/// The number of units after the first of a group that are considered for it.
const WINDOW: usize = 48;

/// Neighbouring supersteps.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// The steps, in the order of the program.
    pub steps: Vec<StepId>,
    /// Their units, in the order in which they run.
    pub groups: Vec<UnitGroup>,
}

/// Units that run as one.
#[derive(Clone, Debug)]
pub struct UnitGroup {
    /// The units, in the order of the program; only one if `run` is `Alone`.
    pub units: Vec<StepUnit>,
    /// How they run.
    pub run: GroupRun,
}

/// How a group of units runs.
#[derive(Clone, Debug)]
pub enum GroupRun {
    /// As the plan of the unit says.
    Alone,
    /// As products in blocks: the products, and the sums of their parts.
    Summed(SummedProducts),
    /// As one map.
    Fused(FusedSteps),
}

/// The products of each part.
pub(super) type Products = (SecondaryMap<PartId, Vec<MatrixProduct>>, SecondaryMap<PartId, Vec<LinkedProduct>>);

/// Returns the sequences of every `Seq`, in the order of steps.
pub(super) fn sequences<'g>(
    hosted: HostedGraph<'g>,
    kernels: &mut KernelSet<'g>,
    parts: &SetParts,
    products: &Products,
) -> Result<Vec<Sequence>, HostError> {
    let graph = hosted.graph;
    let accesses = UnitAccesses::of(graph, hosted.layout, parts);
    // A copy between replicas divides sequences: all replicas have come to it before it starts.
    let is_superstep = |step: StepId| match graph.steps[step].kind {
        StepKind::Execute(_) => true,
        StepKind::Copy(copy) => !graph.copies[copy].crosses(),
        _ => false,
    };
    let mut all = Vec::new();
    for step in graph.steps.values() {
        let StepKind::Seq(steps) = &step.kind else { continue };
        let runs = steps.chunk_by(|a, b| is_superstep(*a) == is_superstep(*b));
        for steps in runs.filter(|run| is_superstep(run[0])) {
            let units: Vec<StepUnit> = steps.iter().flat_map(|&s| parts.of_step(graph, s)).collect();
            let groups = groups(hosted, kernels, (parts, &accesses, products), &units)?;
            all.push(Sequence { steps: steps.to_vec(), groups });
        }
    }
    Ok(all)
}

fn groups<'g>(
    hosted: HostedGraph<'g>,
    kernels: &mut KernelSet<'g>,
    (parts, accesses, products): (&SetParts, &UnitAccesses, &Products),
    units: &[StepUnit],
) -> Result<Vec<UnitGroup>, HostError> {
    let mut fuser = ChainFinder::new(hosted, parts, accesses);
    let mut dependences = Dependences::of(accesses, units);
    let mut left: Vec<usize> = (0..units.len()).collect();
    let mut groups = Vec::new();
    while let Some(&first) = left.first() {
        let window = Window { units, left: &left[..left.len().min(1 + WINDOW)], dependences: &dependences };
        let (taken, run) =
            if let Some((sums, found)) = with_sums(hosted, kernels, (parts, accesses, products), &window)? {
                (vec![first, sums], GroupRun::Summed(found))
            } else if let Some((taken, fused)) = fuser.longest(kernels, &window)? {
                (taken, GroupRun::Fused(fused))
            } else {
                (vec![first], GroupRun::Alone)
            };
        left.retain(|at| !taken.contains(at));
        dependences.run(&taken);
        groups.push(UnitGroup { units: taken.iter().map(|&at| units[at]).collect(), run });
    }
    Ok(groups)
}

/// Returns the unit that adds the products of the first one, and the products in blocks.
fn with_sums<'g>(
    hosted: HostedGraph<'g>,
    kernels: &mut KernelSet<'g>,
    (parts, accesses, (products, linked)): (&SetParts, &UnitAccesses, &Products),
    window: &Window<'_>,
) -> Result<Option<(usize, SummedProducts)>, HostError> {
    let (first, rest) = window.split();
    let Unit::Vertices(part) = window.units[first].unit else { return Ok(None) };
    if products[part].is_empty() == linked[part].is_empty() {
        return Ok(None);
    }
    for &at in rest {
        let Unit::Vertices(sums) = window.units[at].unit else { continue };
        let is_inside = |var| accesses.is_within(var, &[window.units[first], window.units[at]]);
        let families = (&parts.parts[part].families[..], &parts.parts[sums].families[..]);
        let found = summed(hosted, kernels, families, (&products[part], &linked[part]), is_inside)?;
        if let Some(found) = found.filter(|_| window.dependences.can_follow(at, &[first])) {
            return Ok(Some((at, found)));
        }
    }
    Ok(None)
}
