//! The plan of a graph on the host: the kernels that its steps run, and the addresses of their operands in the host's
//! memory.
//!
//! - `families` decides how the vertices of a family access their fields.
//! - `sequences` lists the neighbouring steps that an engine may cut into cache blocks.
//! - `print` shows a plan as text.
//!
//! Invariant: a plan depends on the graph, the layout of the variables, the counted blocks and the kernel target only.
//! A kernel is requested for the shapes, strides and addressing with which the plan launches it.

mod families;
mod print;
mod sequences;

pub use families::{FamilyPlan, FieldAccess};
pub use sequences::{Sequence, StepGroup};

use crate::error::HostError;
use crate::fuse::{FusedSteps, fuse_steps};
use crate::hosted::HostedGraph;
use crate::kernels::{KernelSet, KernelTable};
use crate::products::{
    LinkedProduct, MatrixProduct, SummedProducts, join, join_columns, linked_of, products_of, sum_products,
};
use crate::windows::joined;
use cranelift_entity::SecondaryMap;
use families::{ScratchFamily, request_kernels};
use girder_codelet::cost::CountedBlocks;
use girder_codelet::kernel::KernelTarget;
use girder_ir::ids::{ComputeSetId, FamilyId, StepId};
use girder_ir::layout::HostLayout;
use sequences::sequences;

/// The plan of a graph on the host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// The addresses of the variables.
    pub layout: HostLayout,
    /// Bytes of the variables, rounded up; scratch memory begins after them.
    pub var_bytes: u64,
    /// Bytes of scratch memory of the compute set that needs the most.
    pub scratch_bytes: u64,
    /// All kernels.
    pub kernels: KernelTable,
    /// The plan of each family; `None` for families without vertices, and for products.
    pub families: SecondaryMap<FamilyId, Option<FamilyPlan>>,
    /// The matrix products of each compute set, joined.
    pub products: SecondaryMap<ComputeSetId, Vec<MatrixProduct>>,
    /// The linked products of each compute set, joined.
    pub linked: SecondaryMap<ComputeSetId, Vec<LinkedProduct>>,
    /// The greatest number of iterations that a vertex in a linked product counts; it does not check a limit.
    pub iterations: u64,
    /// Products with the step that adds them, keyed by the step of the products. There are none if blocks are counted.
    pub summed: SecondaryMap<StepId, Option<SummedProducts>>,
    /// Fused steps, keyed by the first of them. Nothing is fused if blocks are counted.
    pub fused: SecondaryMap<StepId, Option<FusedSteps>>,
    /// Neighbouring steps that may run block by block, in the order of the enclosing steps. There are none if blocks
    /// are counted.
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
    let mut products: SecondaryMap<ComputeSetId, Vec<MatrixProduct>> = SecondaryMap::new();
    let mut linked: SecondaryMap<ComputeSetId, Vec<LinkedProduct>> = SecondaryMap::new();
    let (mut scratch_bytes, mut iterations) = (0, 0);
    for (set_id, set) in &hosted.graph.sets {
        let mut used = 0;
        for &id in &set.families {
            let family = &hosted.graph.families[id];
            let Some(shaped) = kernels.shaped(family)? else { continue };
            // Counters belong to single vertices, so vertices with counters are neither joined nor replaced by a
            // product.
            let joined = if counted.is_some() {
                None
            } else {
                let (sizes, facts) = kernels.known(shaped);
                if let Some(of_family) = products_of(hosted, family, sizes, facts) {
                    products[set_id].extend(of_family);
                    continue;
                }
                if let Some(counted) = linked_of(hosted, family, (sizes, facts), &mut linked[set_id]) {
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
    let summed = match counted {
        Some(_) => SecondaryMap::new(),
        None => sum_products(hosted, &mut kernels, &products, &linked)?,
    };
    let families = request_kernels(hosted.graph, &mut kernels, families, var_bytes + scratch_bytes);
    let (fused, sequences) = match counted {
        Some(_) => (SecondaryMap::new(), Vec::new()),
        None => {
            let fused = fuse_steps(hosted, &mut kernels)?;
            let sequences = sequences(hosted.graph, &summed, &fused);
            (fused, sequences)
        }
    };
    let (layout, kernels) = (hosted.layout.clone(), kernels.finish(target));
    Ok(HostPlan {
        layout,
        var_bytes,
        scratch_bytes,
        kernels,
        families,
        products,
        linked,
        iterations,
        summed,
        fused,
        sequences,
    })
}
