//! The sizes of code, vertices, local arrays and views in the memory of tiles.
//!
//! # Note: Estimates
//! No code of a tile machine is generated, so code and vertex state are estimates, the same for every engine. A codelet
//! takes an instruction for each bundle that its cost counts (two if it is `#[pipelined]`). If the cost is stated, it
//! takes two for each expression and each statement of its body instead. A vertex takes 4 bytes for its codelet, 4 for
//! the address of each field, 4 for each of a field's dimensions, and its constants, each in whole words. A worker that
//! runs a vertex has room for all local arrays of its codelet, each in whole double words.

use cranelift_entity::SecondaryMap;
use girder_codelet::cost::{Cost, TileCosts, cost_of};
use girder_ir::codelet::{Codelet, Local, StmtBlock};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{SpecId, VarId};
use girder_ir::placement::{Placement, TileRun};
use girder_ir::view::View;
use girder_machine::Machine;
use rustc_hash::FxHashMap;

/// The cost of each codelet, if it has one.
pub(crate) type Costs = SecondaryMap<SpecId, Option<Cost>>;

/// Returns the costs of all codelets on a machine.
pub(crate) fn costs(graph: &Graph, machine: &Machine) -> Costs {
    let of_tile = TileCosts::from(machine);
    let mut costs = Costs::new();
    graph.codelets.iter().for_each(|(id, codelet)| costs[id] = cost_of(codelet, &of_tile).ok());
    costs
}

/// The size of an instruction in bytes.
const INSTRUCTION: u64 = 4;

/// Returns the bytes of a codelet's code.
pub(crate) fn code_bytes(codelet: &Codelet, cost: Option<&Cost>) -> u64 {
    let instructions = match cost.and_then(Cost::code_bundles) {
        Some(bundles) if codelet.pipelined => bundles.saturating_mul(2),
        Some(bundles) => bundles,
        None => 2 * (codelet.exprs.len() as u64 + statements(&codelet.body)),
    };
    instructions.saturating_mul(INSTRUCTION)
}

/// Returns the number of statements. Recursion is as deep as statements are nested, which a limit bounds.
fn statements(block: &StmtBlock) -> u64 {
    block.iter().map(|s| 1 + s.blocks().map(statements).sum::<u64>()).sum()
}

/// Returns the bytes of the state of one vertex.
pub(crate) fn state_bytes(codelet: &Codelet, family: &Family) -> u64 {
    let edges: u64 = codelet.edges().map(|(_, f)| 4 + 4 * f.dims.len() as u64).sum();
    let consts = family.consts.iter().map(|(f, _)| codelet.fields[*f].ty.bytes().next_multiple_of(4) as u64);
    4 + edges + consts.sum::<u64>()
}

/// Returns the bytes of a codelet's local arrays for one worker.
pub(crate) fn stack_bytes(codelet: &Codelet) -> u64 {
    let array = |l: &Local| {
        let elements = l.array.as_ref()?.iter().fold(1, |n: u64, &d| n.saturating_mul(d as u64));
        Some(elements.saturating_mul(l.ty.bytes() as u64).next_multiple_of(8))
    };
    codelet.locals.values().filter_map(array).fold(0, u64::saturating_add)
}

/// The local arrays on a tile while vertices of several families run: those that need the most, one for each worker.
#[derive(Default)]
pub(crate) struct Stacks {
    /// The bytes for one worker, and the largest number of workers.
    families: Vec<(u64, u64)>,
    workers: u64,
}

impl Stacks {
    /// Creates the arrays of a tile without vertices.
    pub fn new(workers: u32) -> Stacks {
        Stacks { families: vec![], workers: workers as u64 }
    }

    /// Adds or removes `count` vertices.
    pub fn change(&mut self, codelet: &Codelet, count: u64, enters: bool) {
        // A `multi` vertex runs on all workers.
        let contexts = if codelet.multi { self.workers } else { count.min(self.workers) };
        let family = (stack_bytes(codelet), contexts);
        match self.families.binary_search_by(|f| family.cmp(f)) {
            Ok(at) | Err(at) if enters => self.families.insert(at, family),
            Ok(at) => drop(self.families.remove(at)),
            Err(_) => {}
        }
    }

    /// Returns the bytes that the tile needs.
    pub fn bytes(&self) -> u64 {
        let mut free = self.workers;
        let taken = self.families.iter().map(|&(bytes, contexts)| {
            let here = contexts.min(free);
            free -= here;
            bytes.saturating_mul(here)
        });
        taken.fold(0, u64::saturating_add)
    }
}

/// Returns the bytes of a view on each tile.
pub(crate) fn bytes_by_tile(graph: &Graph, placement: &Placement, view: &View) -> FxHashMap<u32, u64> {
    let mut tiles: FxHashMap<u32, u64> = FxHashMap::default();
    let mut homes: FxHashMap<VarId, Vec<TileRun>> = FxHashMap::default();
    for run in view.runs() {
        let (var, Some(mapping)) = (&graph.vars[run.var], &placement.vars[run.var]) else { continue };
        let homes = homes.entry(run.var).or_insert_with(|| mapping.runs(var.len()).collect());
        let size = u64::from(var.ty.bytes());
        // A run is either contiguous or consists of single elements.
        let runs = if run.stride.unsigned_abs() == 1 { 1 } else { run.len };
        let length = run.len / runs;
        for k in 0..runs {
            let at = run.start as i64 + k as i64 * run.stride;
            let start = if run.stride == -1 { at + 1 - length as i64 } else { at } as u64;
            let end = start + length;
            let first = homes.partition_point(|h| h.1 <= start);
            for (from, to, tile) in homes[first..].iter().take_while(|h| h.0 < end) {
                *tiles.entry(*tile).or_default() += (to.min(&end) - from.max(&start)) * size;
            }
        }
    }
    tiles
}
