//! The time that a tile takes for the vertices of a compute set, and the parameters of costs.
//!
//! # Note: Contexts
//! A tile has `workers` contexts. Each issues one bundle every `period` cycles, whether the others work or not.
//! Vertices start in the order of the queue, each on the context that is free first (the lowest of several). A `multi`
//! vertex takes all contexts: it starts when all are free, and the next vertex starts when its last worker has ended.
//!
//! A tile has one matrix unit. A vertex of one context that uses it has the unit to itself for that time: vertices run
//! their other code beside each other, and their products one after another.

use girder_ir::codelet::Elementary;
use girder_machine::Machine;

/// The costs of code on the tiles of one machine; units and sources are in the machine's file.
#[derive(Clone, PartialEq, Debug)]
pub struct TileCosts {
    /// Number of contexts.
    pub workers: u32,
    /// Cycles from one bundle of a context to its next.
    pub period: u32,
    /// Cycles of a compute set on one tile beyond its vertices.
    pub launch_cycles: u64,
    /// Cycles of the supervisor for each `multi` vertex, and for all other vertices of a tile together.
    pub supervisor_cycles: u64,
    /// Bundles of a vertex beyond its body and fields.
    pub vertex_bundles: u32,
    /// Bundles for each field of a vertex: its pointer and its lengths.
    pub field_bundles: u32,
    /// Bundles in which a worker finds its share of a `multi` vertex.
    pub share_bundles: u32,
    /// Bytes of a vector register, and of the widest single load and store.
    pub vector_bytes: u32,
    /// Bytes that one bundle loads if memory elements allow it.
    pub load_bytes: u32,
    /// Bytes of the narrowest store.
    pub narrowest_store: u32,
    /// Bundles of one iteration of a counted loop beyond its body.
    pub loop_bundles: u32,
    /// Bundles of an `f32` division.
    pub div_f32: u32,
    /// Bundles of an `f32` square root.
    pub sqrt_f32: u32,
    /// Bundles of `exp`, `log`, `tanh`, `sigmoid`, `rsqrt`, and `sin` or `cos`, of `f32`.
    pub elementary_f32: [u32; 6],
    /// Bundles of an integer multiplication.
    pub mul_int: u32,
    /// Bundles of an integer division by a value that is not constant.
    pub div_int: u32,
    /// Bundles of an operation for which tiles have no instruction.
    pub emulated: u32,
    /// Multiply-adds of `f32` that the matrix unit does in a cycle.
    pub matrix_f32: u32,
    /// Bytes of the unit's coefficients that are loaded in a cycle: from interleaved memory, and from other memory.
    pub coefficient_bytes: [u32; 2],
}

impl From<&Machine> for TileCosts {
    fn from(machine: &Machine) -> TileCosts {
        let tile = &machine.tile;
        TileCosts {
            workers: machine.chip.workers,
            period: tile.worker_period,
            launch_cycles: tile.launch_cycles.into(),
            supervisor_cycles: tile.supervisor_cycles.into(),
            vertex_bundles: tile.vertex_bundles,
            field_bundles: tile.field_bundles,
            share_bundles: tile.share_bundles,
            vector_bytes: tile.vector_bytes,
            load_bytes: tile.load_bytes,
            narrowest_store: machine.memory.store_bytes,
            loop_bundles: tile.loop_bundles,
            div_f32: tile.f32.div,
            sqrt_f32: tile.f32.sqrt,
            elementary_f32: [tile.f32.exp, tile.f32.log, tile.f32.tanh, tile.f32.sigmoid, tile.f32.rsqrt, tile.f32.sin],
            mul_int: tile.int.mul,
            div_int: tile.int.div,
            emulated: tile.emulated_bundles,
            matrix_f32: tile.multiply_adds.f32,
            coefficient_bytes: [tile.multiply_adds.coefficient_bytes, tile.multiply_adds.plain_coefficient_bytes],
        }
    }
}

impl TileCosts {
    /// Returns the bundles of an elementary function of `f32`.
    pub(super) fn elementary(&self, f: Elementary) -> u32 {
        let [exp, log, tanh, sigmoid, rsqrt, sin] = self.elementary_f32;
        match f {
            Elementary::Exp => exp,
            Elementary::Log => log,
            Elementary::Tanh => tanh,
            Elementary::Sigmoid => sigmoid,
            Elementary::Rsqrt => rsqrt,
            Elementary::Sin | Elementary::Cos => sin,
        }
    }

    /// Returns costs of one bundle per operation, for questions whose answer does not depend on the machine.
    pub(super) fn unit() -> TileCosts {
        TileCosts {
            workers: 1,
            period: 1,
            launch_cycles: 0,
            supervisor_cycles: 0,
            vertex_bundles: 1,
            field_bundles: 1,
            share_bundles: 1,
            vector_bytes: 8,
            load_bytes: 16,
            narrowest_store: 1,
            loop_bundles: 1,
            div_f32: 1,
            sqrt_f32: 1,
            elementary_f32: [1; 6],
            mul_int: 1,
            div_int: 1,
            emulated: 1,
            matrix_f32: 1,
            coefficient_bytes: [1, 1],
        }
    }
}

/// The cycles for which a vertex keeps contexts busy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Busy {
    /// One context.
    One(u64),
    /// One context: its code, then a time for which it has the matrix unit to itself.
    Unit {
        /// Cycles of the code.
        code: u64,
        /// Cycles of the matrix unit.
        unit: u64,
    },
    /// All contexts.
    All(u64),
}

/// The vertices that a tile has started, in the order of its queue. When each worker context becomes free is kept by
/// the caller, so that the contexts of many tiles can be one list.
#[derive(Clone, Copy, Default, Debug)]
pub struct TileQueue {
    multi: u64,
    single: bool,
    /// When the matrix unit becomes free.
    unit: u64,
}

impl TileQueue {
    /// Starts the next vertex on the context that is free first, or on all of them when the last is free.
    pub fn start(&mut self, vertex: &Busy, ends: &mut [u64]) {
        match *vertex {
            Busy::One(cycles) => {
                self.single = true;
                if let Some(first) = ends.iter_mut().min() {
                    *first = first.saturating_add(cycles);
                }
            }
            Busy::Unit { code, unit } => {
                self.single = true;
                if let Some(first) = ends.iter_mut().min() {
                    *first = first.saturating_add(code).max(self.unit).saturating_add(unit);
                    self.unit = *first;
                }
            }
            Busy::All(cycles) => {
                self.multi += 1;
                let end = ends.iter().copied().max().unwrap_or(0).saturating_add(cycles);
                ends.fill(end);
            }
        }
    }

    /// Returns the cycles until the last context is free; 0 if nothing has started.
    pub fn cycles(&self, ends: &[u64], costs: &TileCosts) -> u64 {
        let starts = self.multi + u64::from(self.single);
        if starts == 0 {
            return 0;
        }
        let supervisor = costs.supervisor_cycles.saturating_mul(starts);
        ends.iter().copied().max().unwrap_or(0).saturating_add(supervisor).saturating_add(costs.launch_cycles)
    }
}

/// Returns the cycles of one tile's vertices in the order of their queue; 0 if there are none.
pub fn tile_cycles(vertices: impl IntoIterator<Item = Busy>, costs: &TileCosts) -> u64 {
    let mut ends = vec![0u64; costs.workers.max(1) as usize];
    let mut queue = TileQueue::default();
    vertices.into_iter().for_each(|vertex| queue.start(&vertex, &mut ends));
    queue.cycles(&ends, costs)
}

/// Works like [`tile_cycles`] for `count` vertices that take the same time.
pub fn equal_vertices(count: u64, vertex: &Busy, costs: &TileCosts) -> u64 {
    let workers = u64::from(costs.workers.max(1));
    let Some(last) = count.checked_sub(1) else { return 0 };
    let (time, starts) = match *vertex {
        Busy::One(cycles) => (cycles.saturating_mul(last / workers + 1), 1),
        // In a round, each vertex waits for the unit of the one before it. The next round begins when the first vertex
        // has ended, and does not get the unit before the last has.
        Busy::Unit { code, unit } => {
            let one = code.saturating_add(unit);
            let round = unit.saturating_mul(workers).max(one);
            let before = round.saturating_mul(last / workers).saturating_add(unit.saturating_mul(last % workers));
            (one.saturating_add(before), 1)
        }
        Busy::All(cycles) => (cycles.saturating_mul(count), count),
    };
    let supervisor = costs.supervisor_cycles.saturating_mul(starts);
    time.saturating_add(supervisor).saturating_add(costs.launch_cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_vertices_take_the_time_of_their_queue() {
        for workers in [1, 2, 6] {
            let costs = TileCosts { workers, launch_cycles: 7, supervisor_cycles: 3, ..TileCosts::unit() };
            for count in 0..20 {
                for (code, unit) in [(0, 0), (5, 0), (0, 5), (100, 1), (10, 2), (9, 2), (1, 9)] {
                    for vertex in [Busy::One(code), Busy::Unit { code, unit }, Busy::All(code)] {
                        let queue = tile_cycles((0..count).map(|_| vertex.clone()), &costs);
                        assert_eq!(equal_vertices(count, &vertex, &costs), queue, "{count} of {vertex:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn vertices_wait_for_the_matrix_unit_but_not_with_other_code() {
        let costs = TileCosts { workers: 6, launch_cycles: 0, supervisor_cycles: 0, ..TileCosts::unit() };
        let product = || Busy::Unit { code: 10, unit: 100 };
        assert_eq!(tile_cycles([product()], &costs), 110);
        assert_eq!(tile_cycles([product(), product(), product()], &costs), 310);
        assert_eq!(tile_cycles([product(), product(), Busy::One(150)], &costs), 210);
        assert_eq!(tile_cycles([product(), Busy::All(50), product()], &costs), 270);
    }
}
