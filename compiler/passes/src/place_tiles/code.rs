//! The memory that code takes on tiles. A codelet's code is on a tile once if any vertex there runs it. Only some
//! memory can run code.
//!
//! Invariant: nothing is counted tile by tile if all code fits on one tile.

use crate::context::ESTIMATES;
use crate::sizes::{code_bytes, costs};
use cranelift_entity::{EntityRef, SecondaryMap};
use fixedbitset::FixedBitSet;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, SpecId};
use girder_ir::placement::Placement;
use girder_machine::Machine;
use rustc_hash::FxHashSet;

/// The bytes of all codelets, and the memory of a tile that can run code.
#[derive(Default)]
pub(super) struct Code {
    bytes: SecondaryMap<SpecId, u64>,
    /// The bytes of codelets that a tile has room for. The rest of the executable memory is for exchanges and local
    /// arrays.
    room: u64,
    /// The bytes of memory that can run code on a tile, for codelets and exchanges.
    executable: u64,
    /// The bytes of all codelets.
    all: u64,
}

impl Code {
    pub(super) fn of(graph: &Graph, machine: &Machine, room: f64) -> Code {
        let costs = costs(graph, machine);
        let mut code = Code::default();
        graph.codelets.iter().for_each(|(id, c)| code.bytes[id] = code_bytes(c, costs[id].as_ref()));
        let executable = machine.memory.regions.iter().filter(|r| r.executable);
        let executable = executable.map(|r| f64::from(r.bytes)).sum::<f64>();
        code.room = (executable * room) as u64;
        code.executable = (executable * room / ESTIMATES[0].room) as u64;
        let used: FxHashSet<SpecId> = graph.families.values().map(|f| f.codelet).collect();
        code.all = used.iter().map(|&c| code.bytes[c]).fold(0, u64::saturating_add);
        code
    }

    /// Returns whether all codelets fit on one tile.
    pub(super) fn fits(&self) -> bool {
        self.all <= self.room
    }

    /// Returns the bytes of code beyond the room on the one of `tiles` tiles with most bytes of codelets, which is
    /// assumed to have `exchanges` bytes of exchange code too. `table` returns the tiles of the vertices that a
    /// candidate places.
    pub(super) fn excess<'t>(
        &self,
        graph: &Graph,
        table: impl Fn(FamilyId) -> Option<&'t [u32]>,
        placement: &Placement,
        tiles: u32,
        exchanges: u64,
    ) -> u64 {
        if self.fits() && self.all.saturating_add(exchanges) <= self.executable {
            return 0;
        }
        let count = tiles as usize;
        let mut known = FixedBitSet::with_capacity(self.bytes.keys().count() * count);
        let mut sums = vec![0u64; count];
        for (id, family) in &graph.families {
            let (codelet, bytes) = (family.codelet.index(), self.bytes[family.codelet]);
            let mut add = |tile: u32| {
                if !known.put(codelet * count + tile as usize) {
                    sums[tile as usize] += bytes;
                }
            };
            match (table(id), &family.tile, &placement.families[id]) {
                (Some(tiles), ..) => tiles.iter().for_each(|&t| add(t)),
                (_, Some(map), _) | (_, _, Some(map)) => map.iter(&family.domain).for_each(add),
                _ => {}
            }
        }
        let most = sums.into_iter().max().unwrap_or(0);
        let all = most.saturating_add(exchanges);
        most.saturating_sub(self.room).max(all.saturating_sub(self.executable))
    }

    /// Returns the open compute sets in groups. If the code of each set fits on a tile, the code of each group does.
    /// Sets are taken in the order of the text; each joins the first group that has room.
    pub(super) fn groups(&self, graph: &Graph, open_sets: &[ComputeSetId]) -> Vec<Vec<ComputeSetId>> {
        let mut groups: Vec<(FxHashSet<SpecId>, Vec<ComputeSetId>)> = vec![];
        let sum = |specs: &FxHashSet<SpecId>| specs.iter().map(|&s| self.bytes[s]).fold(0, u64::saturating_add);
        for &set in open_sets {
            let own: FxHashSet<SpecId> = graph.sets[set].families.iter().map(|&f| graph.families[f].codelet).collect();
            let with = |specs: &FxHashSet<SpecId>| specs.union(&own).copied().collect::<FxHashSet<_>>();
            match groups.iter_mut().find(|g| sum(&with(&g.0)) <= self.room) {
                Some(group) => {
                    group.0 = with(&group.0);
                    group.1.push(set);
                }
                None => groups.push((own, vec![set])),
            }
        }
        groups.into_iter().map(|g| g.1).collect()
    }
}
