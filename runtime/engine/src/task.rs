//! Tasks: the vertices of a compute set, or a list of moves, cut into parts for the threads of a compiled mode.
//!
//! Invariant: no part of a task touches a byte that another one writes (see the note on shared memory in
//! [`arena`](crate::arena)). The parts are fixed before a task runs, so the recorded failure is the first one in
//! program order.

use crate::arena::{Arena, Move, Moves};
use crate::counts::Counted;
use crate::error::EngineError;
use crate::kernel::{Context, Launch, LaunchStop};
use crate::linked::LinkedProducts;
use crate::moves::{cost, share};
use crate::pool::Work;
use crate::products::Products;
use crate::store::{VertexFailure, VertexStop};
use girder_ir::family::ReplicaPair;
use girder_ir::ids::FamilyId;
use girder_source::Session;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Elements of a compute set below which a single thread runs it.
const WORTH_SHARING: u64 = 16 << 10;
/// Overhead of a vertex that is one iteration of a loop, in elements.
const PER_VERTEX: u64 = 2;
/// Overhead of a vertex whose offsets are read from a table, in elements.
const PER_IRREGULAR_VERTEX: u64 = 8;

/// Work that all threads share.
pub(crate) enum Task {
    /// The vertices of a superstep.
    Vertices {
        /// The groups, in the order of the set's families.
        groups: Vec<Group>,
        /// The rows of each part.
        parts: Vec<Vec<RowRange>>,
    },
    /// The vertices of a superstep, some of which are matrix products.
    Products {
        /// The products.
        products: Products,
        /// The linked products.
        linked: LinkedProducts,
        /// All other vertices: `Vertices`.
        others: Box<Task>,
    },
    /// Moves whose order does not matter.
    Moves {
        /// All moves.
        moves: Moves,
        /// The moves of each part.
        parts: Vec<Range<usize>>,
    },
    /// Moves from replica to replica whose order does not matter.
    Exchange {
        /// The moves of each family.
        moves: Vec<Moves>,
        /// The pairs of replicas that take part, each with a family.
        pairs: Vec<(ReplicaPair, usize)>,
        /// The pairs of each part.
        parts: Vec<Range<usize>>,
    },
    /// Several tasks in order, block by block (see the note on cache blocks in [`cache_blocks`](crate::cache_blocks)).
    CacheBlocks {
        /// The members, in program order.
        members: Vec<BlockedTask>,
        /// The blocks of each part.
        parts: Vec<Range<usize>>,
    },
}

/// One of the tasks that run block by block.
pub(crate) struct BlockedTask {
    /// The task.
    pub task: usize,
    /// Its blocks.
    pub blocks: Blocks,
}

/// A task cut into blocks.
#[derive(Clone)]
pub(crate) enum Blocks {
    /// The rows of each block.
    Vertices(Vec<Vec<RowRange>>),
    /// The moves of the task, and those of each block.
    Moves(Moves, Vec<Range<usize>>),
}

/// Vertices of one family that share a kernel.
pub(crate) struct Group {
    /// The calls of the kernel.
    pub launch: Launch,
    /// Their family.
    pub family: FamilyId,
    /// The number of vertices of the family.
    pub family_size: u64,
    /// Its position in the compute set.
    pub order: u32,
    /// The family's instance of each row, ascending, or the first of those that are joined; `None` if row and instance
    /// are equal, or no row can fail.
    pub instances: Option<Vec<u32>>,
    /// The moves before and after each row, if fields are in scratch memory.
    pub scratch: Option<ScratchMoves>,
    /// Elements that a vertex touches.
    pub elements: u64,
}

/// Moves between the elements of scattered fields and scratch memory.
#[derive(Default)]
pub(crate) struct ScratchMoves {
    /// The moves before a row runs.
    pub fetch: RowMoves,
    /// The moves after a row has run.
    pub send: RowMoves,
}

/// Moves by row.
#[derive(Default)]
pub(crate) struct RowMoves {
    moves: Moves,
    /// The first move of each row, and the number of moves.
    start: Vec<usize>,
}

/// Rows of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowRange {
    /// The group of the task.
    pub group: usize,
    /// The first row.
    pub first: u64,
    /// The row after the last.
    pub last: u64,
}

impl RowMoves {
    /// Collects the moves of each row.
    pub(crate) fn new(rows: Vec<Vec<Move>>, bytes: u64) -> Result<RowMoves, EngineError> {
        let mut start = vec![0];
        let mut list = Vec::new();
        for row in rows {
            list.extend(row);
            start.push(list.len());
        }
        Ok(RowMoves { moves: Moves::new(list, bytes)?, start })
    }

    fn perform(&self, arena: &Arena, first: u64, last: u64) {
        arena.perform(&self.moves, self.start[first as usize]..self.start[last as usize]);
    }
}

impl Task {
    /// Cuts vertices for some threads.
    pub(crate) fn vertices(groups: Vec<Group>, threads: usize) -> Task {
        let parts = cut_groups(&groups, threads);
        Task::Vertices { groups, parts }
    }

    /// Returns the number of parts, at least 1.
    fn parts(&self) -> usize {
        match self {
            Task::Vertices { parts, .. } => parts.len(),
            Task::Products { products, linked, others } => products.parts().max(linked.parts()).max(others.parts()),
            Task::Moves { parts, .. } | Task::Exchange { parts, .. } | Task::CacheBlocks { parts, .. } => parts.len(),
        }
    }

    /// Cuts the moves of families between pairs of replicas for some threads; `bytes` is the size of a block.
    pub(crate) fn exchange(
        families: Vec<(Arc<[ReplicaPair]>, Vec<Move>)>,
        threads: usize,
        bytes: u64,
    ) -> Result<Task, EngineError> {
        let mut pairs: Vec<(ReplicaPair, usize)> = vec![];
        let mut costs = vec![];
        let mut moves = vec![];
        for (k, (list, own)) in families.into_iter().enumerate() {
            pairs.extend(list.iter().map(|&pair| (pair, k)));
            costs.push(own.iter().map(cost).sum::<u64>());
            moves.push(Moves::new(own, bytes)?);
        }
        pairs.sort_unstable_by_key(|(pair, k)| (pair.receiver, *k, pair.sender));
        let rows: Vec<(u64, u64)> = pairs.iter().map(|(_, k)| (1, costs[*k].max(1))).collect();
        let whole = |part: &Vec<RowRange>| match (part.first(), part.last()) {
            (Some(first), Some(last)) => first.group..last.group + 1,
            _ => 0..0,
        };
        let parts = cut(&rows, threads).iter().map(whole).collect();
        Ok(Task::Exchange { moves, pairs, parts })
    }

    /// Cuts moves for some threads; `bytes` is the size of the arena.
    pub(crate) fn moves(list: Vec<Move>, threads: usize, bytes: u64) -> Result<Task, EngineError> {
        let (list, parts) = share(list, threads);
        Ok(Task::Moves { moves: Moves::new(list, bytes)?, parts })
    }
}

/// Cuts the rows of groups into contiguous parts of about equal cost; into one part if there is little work.
pub(crate) fn cut_groups(groups: &[Group], parts: usize) -> Vec<Vec<RowRange>> {
    let cost = |g: &Group| g.elements + if g.launch.is_straight() { PER_VERTEX } else { PER_IRREGULAR_VERTEX };
    cut(&groups.iter().map(|g| (g.launch.rows(), cost(g))).collect::<Vec<_>>(), parts)
}

/// Cuts groups of (rows, cost of a row) into contiguous parts of about equal cost.
fn cut(groups: &[(u64, u64)], threads: usize) -> Vec<Vec<RowRange>> {
    let total: u128 = groups.iter().map(|&(rows, cost)| rows as u128 * cost as u128).sum();
    let count = if total < WORTH_SHARING as u128 { 1 } else { threads.max(1) as u128 };
    let mut parts = vec![Vec::new(); count as usize];
    let mut before = 0u128;
    for (group, &(rows, cost)) in groups.iter().enumerate() {
        // The first row that starts at or after the p-th share of the cost.
        let first_of = |p: u128| ((total * p / count).saturating_sub(before).div_ceil(cost as u128) as u64).min(rows);
        for (p, part) in (0..count).zip(&mut parts) {
            let (first, last) = (first_of(p), if p + 1 == count { rows } else { first_of(p + 1) });
            if first < last {
                part.push(RowRange { group, first, last });
            }
        }
        before += rows as u128 * cost as u128;
    }
    parts.retain(|p| !p.is_empty());
    if parts.is_empty() { vec![Vec::new()] } else { parts }
}

/// The memory and the tasks of a compiled mode.
pub(crate) struct Tasks {
    arena: Arena,
    tasks: Vec<Task>,
    session: Session,
    workers: u32,
    /// The first failure of the last task, in program order.
    failure: Mutex<Option<Failed>>,
    /// The member of the last task that has the first failure; `u32::MAX` while there is none.
    failed: AtomicU32,
    cancelled: AtomicBool,
}

/// A failure with its position in program order.
#[derive(Clone, Copy)]
struct Failed {
    member: u32,
    /// The position of the family in the compute set.
    order: u32,
    at: VertexFailure,
}

impl Failed {
    fn key(&self) -> (u32, u32, u64) {
        (self.member, self.order, self.at.instance)
    }
}

impl Tasks {
    /// Creates the tasks of a session.
    pub(crate) fn new(arena: Arena, tasks: Vec<Task>, workers: u32, session: &Session) -> Tasks {
        let (failure, failed, cancelled) = (Mutex::new(None), AtomicU32::new(u32::MAX), AtomicBool::new(false));
        Tasks { arena, tasks, session: session.clone(), workers, failure, failed, cancelled }
    }

    /// Returns the memory; for use between tasks only.
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Copies the counters of a task that has run.
    pub(crate) fn gather(&self, task: usize, counted: &mut Counted) {
        let Some(Task::Vertices { groups, .. }) = self.tasks.get(task) else { return };
        for group in groups {
            for row in 0..group.launch.rows() {
                let instance = group.instances.as_ref().map_or(row, |i| u64::from(i[row as usize]));
                counted.set(group.family, group.family_size, instance, group.launch.counted(row));
            }
        }
    }

    /// Returns the outcome of the last task.
    pub(crate) fn outcome(&self) -> Result<(), VertexStop> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(VertexStop::Cancelled);
        }
        if self.failed.load(Ordering::Relaxed) == u32::MAX {
            return Ok(());
        }
        match *self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(least) => Err(VertexStop::Failed(least.at)),
            None => Ok(()),
        }
    }

    fn run_part(&self, task: &Task, part: usize) {
        match task {
            Task::Vertices { groups, parts } => {
                parts[part].iter().for_each(|&range| self.run_rows(0, &groups[range.group], range));
            }
            Task::Products { products, linked, others } => {
                if part < others.parts() {
                    self.run_part(others, part);
                }
                let cancel = self.session.cancel.flag();
                if !products.run(&self.arena, cancel, part) || !linked.run(&self.arena, cancel, part) {
                    self.cancelled.store(true, Ordering::Relaxed);
                }
            }
            Task::CacheBlocks { members, parts } => {
                parts[part].clone().for_each(|block| self.run_block(members, block));
            }
            Task::Moves { moves, parts } => self.arena.perform(moves, parts[part].clone()),
            Task::Exchange { moves, pairs, parts } => {
                let own = pairs[parts[part].clone()].iter();
                own.for_each(|(p, family)| self.arena.perform_between(&moves[*family], p.sender, p.receiver));
            }
        }
    }

    fn run_rows(&self, member: u32, group: &Group, range: RowRange) {
        let RowRange { first, last, .. } = range;
        if let Some(scratch) = &group.scratch {
            scratch.fetch.perform(&self.arena, first, last);
        }
        let context = Context {
            cancel: self.session.cancel.flag(),
            iterations: self.session.limits.iterations,
            total_iterations: self.session.limits.total_iterations,
            workers: self.workers,
        };
        match group.launch.run(&self.arena, &context, first, last) {
            Ok(()) => {}
            Err(LaunchStop::Cancelled) => self.cancelled.store(true, Ordering::Relaxed),
            Err(LaunchStop::Failed(row, failure)) => {
                let instance = group.instances.as_ref().map_or(row, |i| i[row as usize] as u64);
                let at = VertexFailure { family: group.family, instance, failure };
                self.fail(Failed { member, order: group.order, at });
            }
        }
        if let Some(scratch) = &group.scratch {
            scratch.send.perform(&self.arena, first, last);
        }
    }

    fn fail(&self, failed: Failed) {
        let mut least = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if least.is_none_or(|l| failed.key() < l.key()) {
            *least = Some(failed);
            self.failed.store(failed.member, Ordering::Relaxed);
        }
    }

    /// Runs a block of every member in order. After a failure, only members that may fail before it in program order
    /// run, so that every block gets as far as the first failure, whichever is found first.
    fn run_block(&self, members: &[BlockedTask], block: usize) {
        for (n, member) in (0..).zip(members) {
            if n > self.failed.load(Ordering::Relaxed) {
                return;
            }
            match (&member.blocks, &self.tasks[member.task]) {
                (Blocks::Vertices(blocks), Task::Vertices { groups, .. }) => {
                    blocks[block].iter().for_each(|&range| self.run_rows(n, &groups[range.group], range));
                }
                (Blocks::Moves(moves, blocks), _) => self.arena.perform(moves, blocks[block].clone()),
                _ => {}
            }
        }
    }
}

impl Work for Tasks {
    fn parts(&self, task: usize) -> usize {
        self.tasks.get(task).map_or(1, Task::parts)
    }

    fn run(&self, task: usize, part: usize) {
        self.run_part(&self.tasks[task], part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_row_once_in_order() {
        for groups in [vec![(1000, 10)], vec![(3, 9000), (0, 5), (100_000, 1)], vec![(1, 1 << 40), (1, 1)], vec![]] {
            for threads in 1..6 {
                let parts = cut(&groups, threads);
                assert!((1..=threads).contains(&parts.len()));
                let mut next: Vec<u64> = vec![0; groups.len()];
                let mut group = 0;
                for range in parts.iter().flatten() {
                    assert!(range.group >= group && range.first == next[range.group] && range.first < range.last);
                    (group, next[range.group]) = (range.group, range.last);
                }
                assert!(next.iter().zip(&groups).all(|(&n, g)| n == g.0));
            }
        }
    }

    #[test]
    fn shares_are_even_and_small_sets_stay_whole() {
        let parts = cut(&[(1000, 100), (1000, 100)], 4);
        let rows = |p: &Vec<RowRange>| p.iter().map(|c| c.last - c.first).sum::<u64>();
        assert!(parts.iter().all(|p| rows(p) == 500));
        assert_eq!(cut(&[(100, 100)], 4).len(), 1);
    }
}
