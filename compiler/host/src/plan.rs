//! The plan of a graph on the host: the kernels that its steps run, and the addresses of their operands in the host's
//! memory.
//!
//! - `families` decides how the vertices of a family access their fields.
//! - `units` divides compute sets into what runs as one task; `sequences` groups the units of neighbouring steps, where
//!   `dependences` lets it.
//! - `print` shows a plan as text.
//!
//! Invariant: a plan depends on the graph, the layout of the variables, the counted blocks and the kernel target only.
//! A kernel is requested for the shapes, strides and addressing with which the plan launches it.

pub(crate) mod dependences;
mod families;
mod print;
mod sequences;
pub(crate) mod units;

pub use families::{FamilyPlan, FieldAccess};
pub use sequences::{GroupRun, Sequence, UnitGroup};
pub use units::{PartId, SetPart, SetParts, StepUnit, Unit};

use crate::error::HostError;
use crate::hosted::HostedGraph;
use crate::kernels::{KernelSet, KernelTable};
use crate::products::{LinkedProduct, MatrixProduct, join, join_columns, linked_of, products_of};
use crate::windows::joined;
use cranelift_entity::SecondaryMap;
use families::{ScratchFamily, request_kernels};
use girder_codelet::cost::CountedBlocks;
use girder_codelet::kernel::KernelTarget;
use girder_ir::ids::FamilyId;
use sequences::sequences;

/// The plan of a graph on the host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Bytes of the variables, rounded up; scratch memory begins after them.
    pub var_bytes: u64,
    /// Bytes of scratch memory of the compute set that needs the most.
    pub scratch_bytes: u64,
    /// All kernels.
    pub kernels: KernelTable,
    /// The plan of each family; `None` for families without vertices, and for products.
    pub families: SecondaryMap<FamilyId, Option<FamilyPlan>>,
    /// The parts of all compute sets. Nothing is divided if blocks are counted.
    pub parts: SetParts,
    /// The matrix products of each part, joined.
    pub products: SecondaryMap<PartId, Vec<MatrixProduct>>,
    /// The linked products of each part, joined.
    pub linked: SecondaryMap<PartId, Vec<LinkedProduct>>,
    /// The greatest number of iterations that a vertex in a linked product counts; it does not check a limit.
    pub iterations: u64,
    /// Neighbouring supersteps, in the order of the enclosing steps. There are none if blocks are counted.
    pub sequences: Vec<Sequence>,
}

/// Plans the execution of a graph on the host. With `counted`, the executions of these blocks are counted vertex by
/// vertex.
///
/// # Errors
/// If a view does not fit its codelet: a bug of the compiler.
pub fn plan(
    hosted: HostedGraph<'_>,
    counted: Option<&CountedBlocks>,
    target: KernelTarget,
) -> Result<HostPlan, HostError> {
    let mut kernels = KernelSet::new(hosted.graph, counted);
    let mut families: SecondaryMap<FamilyId, Option<ScratchFamily>> = SecondaryMap::new();
    let parts = SetParts::of(hosted.graph, counted.is_none());
    let mut products: SecondaryMap<PartId, Vec<MatrixProduct>> = SecondaryMap::new();
    let mut linked: SecondaryMap<PartId, Vec<LinkedProduct>> = SecondaryMap::new();
    let (mut scratch_bytes, mut iterations) = (0, 0);
    for set in hosted.graph.sets.keys() {
        let mut used = 0;
        let of_set = parts.of_set(set).iter().flat_map(|&p| parts.parts[p].families.iter().map(move |&id| (p, id)));
        for (part, id) in of_set {
            let family = &hosted.graph.families[id];
            let Some(shaped) = kernels.shaped(family)? else { continue };
            // Counters belong to single vertices, so vertices with counters are neither joined nor replaced by a
            // product.
            let joined = if counted.is_some() {
                None
            } else {
                let (sizes, facts) = kernels.known(shaped);
                if let Some(of_family) = products_of(hosted, family, sizes, facts) {
                    products[part].extend(of_family);
                    continue;
                }
                if let Some(counted) = linked_of(hosted, family, (sizes, facts), &mut linked[part]) {
                    iterations = iterations.max(counted);
                    continue;
                }
                joined(hosted.graph, family).map(Box::new)
            };
            if let Some(found) = ScratchFamily::new(hosted.graph, &mut kernels, (family, joined), used)? {
                used += found.bytes();
                families[id] = Some(found);
            }
        }
        scratch_bytes = scratch_bytes.max(used);
    }
    products.values_mut().for_each(|all| *all = join(std::mem::take(all)));
    linked.values_mut().for_each(|all| *all = join_columns(std::mem::take(all)));
    let var_bytes = hosted.layout.bytes.next_multiple_of(64);
    let families = request_kernels(hosted.graph, &mut kernels, families, var_bytes + scratch_bytes);
    let found = (products, linked);
    let sequences = match counted {
        Some(_) => Vec::new(),
        None => sequences(hosted, &mut kernels, &parts, &found)?,
    };
    let (products, linked) = found;
    let kernels = kernels.finish(target);
    Ok(HostPlan { var_bytes, scratch_bytes, kernels, families, parts, products, linked, iterations, sequences })
}
