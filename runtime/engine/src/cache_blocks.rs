//! Cache blocking: consecutive tasks run block by block, so that threads do not wait for one another between them.
//!
//! # Note: Cache blocks
//! All tasks of a chain are cut into the same number of blocks. If no block of a task touches a byte that another block
//! of another task writes, then blocks may run in any order and at the same time, as long as the tasks within a block
//! run in order: every byte sees the same reads and writes in the same order. Chains of elementwise compute sets and
//! the copies between them satisfy this. Blocks are short, so that the output of one task is still in the cache when
//! the next one reads it.
//!
//! A block's footprint is approximated by bounding byte ranges. Tasks whose ranges overlap run one after another, even
//! if no byte is in both.
//!
//! Invariant: the blocks of `Task::CacheBlocks` are independent, as determined by [`independent`].

use crate::arena::{Move, Moves};
use crate::error::EngineError;
use crate::moves::share;
use crate::task::{BlockedTask, Blocks, Group, RowRange, Task, cut_groups};
use std::ops::Range;

/// Bytes of a block of one task.
const BLOCK_BYTES: u64 = 64 << 10;
/// Maximal number of blocks per thread.
const MOST_BLOCKS: u64 = 128;
/// Above this many moves, a block is summarised by the bounding byte ranges of all sources and all destinations.
const FEW_MOVES: usize = 16;

/// A byte range that a block of a member touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Footprint {
    lo: i64,
    hi: i64,
    writes: bool,
    member: usize,
    block: usize,
}

/// Divides a list of consecutive tasks into chains that run block by block and tasks that run alone. Returns, for each,
/// the number of tasks and the new task of a chain.
pub(crate) fn block_tasks(
    tasks: &[Task],
    run: &[usize],
    threads: usize,
    bytes: u64,
) -> Result<Vec<(usize, Option<Task>)>, EngineError> {
    let mut done = Vec::new();
    let mut rest = run;
    while let [first, others @ ..] = rest {
        let mut taken = 1;
        let mut task = None;
        // Footprints are computed only if there is a task to join.
        let chain = if others.is_empty() { None } else { Chain::new(tasks, *first, threads, bytes)? };
        if let Some(mut chain) = chain {
            for &next in others {
                if !chain.take(next)? {
                    break;
                }
                taken += 1;
            }
            task = (taken > 1).then(|| chain.task(threads));
        }
        done.push((taken, task));
        rest = &rest[taken..];
    }
    Ok(done)
}

/// Tasks that run block by block.
struct Chain<'t> {
    tasks: &'t [Task],
    members: Vec<BlockedTask>,
    footprints: Vec<Footprint>,
    bounds: Vec<BlockBounds>,
    /// The number of blocks.
    blocks: usize,
    /// Bytes of the arena.
    bytes: u64,
}

/// The beginnings of a member's blocks in a byte range that it touches.
#[derive(Clone, PartialEq, Eq, Debug)]
struct BlockBounds {
    whole: Range<i64>,
    /// First bytes of all blocks but the first, ascending.
    starts: Vec<i64>,
}

impl<'t> Chain<'t> {
    /// Returns the chain of one task, or `None` if it is too small for several blocks.
    fn new(tasks: &'t [Task], first: usize, threads: usize, bytes: u64) -> Result<Option<Chain<'t>>, EngineError> {
        let touched = hull(&tasks[first], 0);
        let size = touched.iter().map(|t| (t.hi - t.lo) as u64).sum::<u64>();
        let each = size.div_ceil(BLOCK_BYTES * threads as u64).clamp(1, MOST_BLOCKS);
        let wanted = each as usize * threads;
        let mut chain = Chain { tasks, members: vec![], footprints: vec![], bounds: vec![], blocks: wanted, bytes };
        let blocks = match &tasks[first] {
            Task::Vertices { groups, .. } if groups.iter().all(|g| g.scratch.is_none()) => {
                Blocks::Vertices(cut_groups(groups, wanted))
            }
            Task::Moves { moves, .. } => {
                let (list, parts) = share(moves.list().to_vec(), wanted);
                Blocks::Moves(Moves::new(list, bytes)?, parts)
            }
            _ => return Ok(None),
        };
        chain.blocks = count(&blocks);
        if chain.blocks < 2.max(threads) {
            return Ok(None);
        }
        let footprints = chain.footprints(first, &blocks);
        chain.add(first, blocks, footprints);
        Ok(Some(chain))
    }

    /// Appends a task, if it can be cut so that blocks stay independent; returns whether it can.
    fn take(&mut self, task: usize) -> Result<bool, EngineError> {
        for blocks in self.candidates(task)? {
            let footprints = self.footprints(task, &blocks);
            if independent(self.footprints.iter().chain(&footprints).copied().collect()) {
                self.add(task, blocks, footprints);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add(&mut self, task: usize, blocks: Blocks, footprints: Vec<Footprint>) {
        self.bounds.extend(bounds(&footprints, self.blocks));
        self.footprints.extend(footprints);
        self.members.push(BlockedTask { task, blocks });
    }

    /// Returns possible cuts of a task: at the same rows as a member, or at the beginnings of a member's blocks in
    /// memory.
    fn candidates(&self, task: usize) -> Result<Vec<Blocks>, EngineError> {
        let mut ways = Vec::new();
        match &self.tasks[task] {
            Task::Vertices { groups, .. } if groups.iter().all(|g| g.scratch.is_none()) => {
                let rows = |groups: &[Group]| groups.iter().map(|g| g.launch.rows()).collect::<Vec<_>>();
                let same_rows = self.members.iter().find(|m| match &self.tasks[m.task] {
                    Task::Vertices { groups: others, .. } => rows(others) == rows(groups),
                    _ => false,
                });
                ways.extend(same_rows.map(|m| m.blocks.clone()));
                ways.extend(self.bounds.iter().filter_map(|b| rows_by(groups, b)).map(Blocks::Vertices));
            }
            Task::Moves { moves, .. } => {
                for bounds in &self.bounds {
                    if let Some((list, parts)) = moves_by(moves.list(), bounds) {
                        ways.push(Blocks::Moves(Moves::new(list, self.bytes)?, parts));
                    }
                }
            }
            _ => {}
        }
        Ok(ways)
    }

    /// Returns the footprints of a task's blocks.
    fn footprints(&self, task: usize, blocks: &Blocks) -> Vec<Footprint> {
        let member = self.members.len();
        match (blocks, &self.tasks[task]) {
            (Blocks::Vertices(blocks), Task::Vertices { groups, .. }) => {
                let of = |(n, ranges): (usize, &Vec<RowRange>)| {
                    ranges.iter().flat_map(|c| rows_touch(&groups[c.group], c.first..c.last, member, n)).collect()
                };
                blocks.iter().enumerate().flat_map(|s| -> Vec<Footprint> { of(s) }).collect()
            }
            (Blocks::Moves(moves, blocks), _) => {
                let of = |(n, range): (usize, &Range<usize>)| moves_touch(&moves.list()[range.clone()], member, n);
                blocks.iter().enumerate().flat_map(of).collect()
            }
            _ => Vec::new(),
        }
    }

    fn task(self, threads: usize) -> Task {
        let cut = |part: usize| self.blocks * part / threads;
        Task::CacheBlocks { members: self.members, parts: (0..threads).map(|p| cut(p)..cut(p + 1)).collect() }
    }
}

fn count(blocks: &Blocks) -> usize {
    match blocks {
        Blocks::Vertices(blocks) => blocks.len(),
        Blocks::Moves(_, blocks) => blocks.len(),
    }
}

/// Returns whether no byte that one block writes is touched by another block of another member. (Blocks of one member
/// are independent because they are parts of one task.)
fn independent(mut footprints: Vec<Footprint>) -> bool {
    footprints.sort_unstable_by_key(|f| f.lo);
    let clash = |a: &Footprint, b: &Footprint| a.block != b.block && a.member != b.member && (a.writes || b.writes);
    footprints.iter().enumerate().all(|(n, a)| {
        let mut over = footprints[n + 1..].iter().take_while(|b| b.lo < a.hi);
        !over.any(|b| clash(a, b))
    })
}

fn rows_touch(group: &Group, rows: Range<u64>, member: usize, block: usize) -> Vec<Footprint> {
    let launch = &group.launch;
    let of = |field: usize| {
        let bytes = launch.touched(field, rows.clone())?;
        Some(Footprint { lo: bytes.start, hi: bytes.end, writes: launch.writes(field), member, block })
    };
    (0..launch.fields()).filter_map(of).collect()
}

fn moves_touch(list: &[Move], member: usize, block: usize) -> Vec<Footprint> {
    let side = |at: i64, step: i64, m: &Move, writes| {
        let reach = (m.count as i64 - 1) * step;
        Footprint { lo: at + reach.min(0), hi: at + reach.max(0) + m.bytes as i64, writes, member, block }
    };
    let from = list.iter().map(|m| side(m.from, m.from_step, m, false));
    let to = list.iter().map(|m| side(m.to, m.to_step, m, true));
    if list.len() <= FEW_MOVES {
        return from.chain(to).collect();
    }
    let around = |a: Footprint, b: Footprint| Footprint { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi), ..a };
    from.reduce(around).into_iter().chain(to.reduce(around)).collect()
}

/// Returns the footprints of a whole task, if it may be cut into blocks.
fn hull(task: &Task, member: usize) -> Vec<Footprint> {
    match task {
        Task::Vertices { groups, .. } => {
            groups.iter().flat_map(|g| rows_touch(g, 0..g.launch.rows(), member, 0)).collect()
        }
        Task::Moves { moves, .. } => moves_touch(moves.list(), member, 0),
        Task::CacheBlocks { .. } | Task::Exchange { .. } | Task::Products { .. } => Vec::new(),
    }
}

/// Returns the beginnings of a member's blocks: for each n, the n-th footprints of all blocks, if they ascend.
fn bounds(footprints: &[Footprint], blocks: usize) -> Vec<BlockBounds> {
    let mut of: Vec<Vec<&Footprint>> = vec![Vec::new(); blocks];
    footprints.iter().for_each(|f| of[f.block].push(f));
    let most = of.iter().map(Vec::len).min().unwrap_or(0);
    let bounds_of = |n: usize| {
        let starts: Vec<i64> = of[1..].iter().map(|s| s[n].lo).collect();
        let whole = of[0][n].lo..of[blocks - 1][n].hi;
        let ascends = whole.start < starts[0] && starts.is_sorted_by(|a, b| a < b);
        ascends.then_some(BlockBounds { whole, starts })
    };
    (0..most).filter_map(bounds_of).collect()
}

fn meets(bounds: &BlockBounds, bytes: &Range<i64>) -> bool {
    bytes.start < bounds.whole.end && bounds.whole.start < bytes.end
}

/// Cuts rows so that a field of each block begins at or after the bound of the block. A group that does not touch the
/// byte range belongs to the last block. Returns `None` if no group touches it.
fn rows_by(groups: &[Group], bounds: &BlockBounds) -> Option<Vec<Vec<RowRange>>> {
    let mut blocks = vec![Vec::new(); bounds.starts.len() + 1];
    let mut any = false;
    for (group, Group { launch, .. }) in groups.iter().enumerate() {
        let rows = launch.rows();
        let near = |f: &usize| launch.touched(*f, 0..rows).is_some_and(|bytes| meets(bounds, &bytes));
        let cuts = (0..launch.fields()).filter(near).find_map(|f| launch.rows_at(f, &bounds.starts));
        any |= cuts.is_some();
        let cuts = cuts.unwrap_or_else(|| vec![0; bounds.starts.len()]);
        for (n, block) in blocks.iter_mut().enumerate() {
            let first = if n == 0 { 0 } else { cuts[n - 1] };
            let last = cuts.get(n).copied().unwrap_or(rows);
            if first < last {
                block.push(RowRange { group, first, last });
            }
        }
    }
    any.then_some(blocks)
}

/// Returns the first byte and the step of a move's source, or of its destination.
type Side = fn(&Move) -> (i64, i64);

/// Cuts moves where their sources or their destinations cross the bounds of blocks.
fn moves_by(list: &[Move], bounds: &BlockBounds) -> Option<(Vec<Move>, Vec<Range<usize>>)> {
    let sides: [Side; 2] = [|m| (m.from, m.from_step), |m| (m.to, m.to_step)];
    let near = |side: Side| {
        list.iter().any(|m| {
            let (at, step) = side(m);
            meets(bounds, &(at..at + (m.count as i64 - 1) * step + m.bytes as i64))
        })
    };
    let side = sides.into_iter().find(|&side| near(side))?;
    let mut blocks = vec![Vec::new(); bounds.starts.len() + 1];
    for m in list {
        let (at, step) = side(m);
        if m.count > 1 && step <= 0 {
            return None;
        }
        // A contiguous move is cut between bytes, a strided one between its pieces.
        let (units, step) = if m.count == 1 { (m.bytes as i64, 1) } else { (m.count as i64, step) };
        let before = |start: i64| (start - at + step - 1).div_euclid(step).clamp(0, units);
        for (n, block) in blocks.iter_mut().enumerate() {
            let first = if n == 0 { 0 } else { before(bounds.starts[n - 1]) };
            let last = bounds.starts.get(n).map_or(units, |&s| before(s));
            if first < last {
                block.push(part(m, first, last));
            }
        }
    }
    let mut parts = Vec::with_capacity(blocks.len());
    let mut all = Vec::new();
    for block in blocks {
        let first = all.len();
        all.extend(block);
        parts.push(first..all.len());
    }
    Some((all, parts))
}

/// Returns some of a move's bytes, or of its pieces.
fn part(m: &Move, first: i64, last: i64) -> Move {
    let n = (last - first) as u32;
    match m.count {
        1 => Move { from: m.from + first, to: m.to + first, bytes: n, ..*m },
        _ => Move { from: m.from + first * m.from_step, to: m.to + first * m.to_step, count: n, ..*m },
    }
}

#[cfg(test)]
mod tests;
