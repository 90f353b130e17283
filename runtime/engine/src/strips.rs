//! Which consecutive tasks run strip by strip, so that threads need not wait for one another between them.
//!
//! # Note: Strips
//! Tasks are cut into as many strips each. If no strip of one task touches a byte that another strip of another task
//! writes, nor writes one that it touches, then strips may run in any order and at the same time, as long as the tasks
//! within a strip run in order: every byte sees the same reads and writes in the same order. Chains of element-wise
//! compute sets are of this kind, and so are the copies between them. Strips are short, so that what one task of a
//! strip writes is still in the cache when the next one reads it.
//!
//! What a strip touches is taken to be all bytes between the least and the greatest: tasks that would be refused for
//! bytes between those that they touch wait, as any other.
//!
//! Invariant: strips in `Task::Strips` are independent, as [`independent`] has found.

use crate::arena::{Move, Moves};
use crate::error::EngineError;
use crate::moves::share;
use crate::task::{Chunk, Group, Member, Strips, Task, cut_groups};
use std::ops::Range;

/// Bytes of a strip of one task.
const STRIP_BYTES: u64 = 64 << 10;
/// The most strips of one thread.
const MOST_STRIPS: u64 = 128;
/// Strips with more moves than this are known by the bytes around all of them only.
const FEW_MOVES: usize = 16;

/// Bytes that a strip of a member touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Touch {
    lo: i64,
    hi: i64,
    writes: bool,
    member: usize,
    strip: usize,
}

/// Cuts a run of consecutive tasks into those that run strip by strip and those that run alone. Each of the result is
/// how many of them it takes, and the task for them if it is more than one.
pub(crate) fn fuse(
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
        // What a task touches is asked for only if there is something to join.
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

/// Tasks that run strip by strip.
struct Chain<'t> {
    tasks: &'t [Task],
    members: Vec<Member>,
    touches: Vec<Touch>,
    marks: Vec<Mark>,
    strips: usize,
    /// Of the arena.
    bytes: u64,
}

/// Where the strips of a member begin in some bytes that it touches.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mark {
    whole: Range<i64>,
    /// Of all strips but the first, ascending.
    starts: Vec<i64>,
}

impl<'t> Chain<'t> {
    /// Of one task, if it is worth several strips.
    fn new(tasks: &'t [Task], first: usize, threads: usize, bytes: u64) -> Result<Option<Chain<'t>>, EngineError> {
        let touched = hull(&tasks[first], 0);
        let size = touched.iter().map(|t| (t.hi - t.lo) as u64).sum::<u64>();
        let each = size.div_ceil(STRIP_BYTES * threads as u64).clamp(1, MOST_STRIPS);
        let wanted = each as usize * threads;
        let mut chain = Chain { tasks, members: vec![], touches: vec![], marks: vec![], strips: wanted, bytes };
        let strips = match &tasks[first] {
            Task::Vertices { groups, .. } if groups.iter().all(|g| g.landing.is_none()) => {
                Strips::Vertices(cut_groups(groups, wanted))
            }
            Task::Moves { moves, .. } => {
                let (list, parts) = share(moves.list().to_vec(), wanted);
                Strips::Moves(Moves::new(list, bytes)?, parts)
            }
            _ => return Ok(None),
        };
        chain.strips = count(&strips);
        if chain.strips < 2.max(threads) {
            return Ok(None);
        }
        let touches = chain.touched(first, &strips);
        chain.add(first, strips, touches);
        Ok(Some(chain))
    }

    /// Appends a task, if it can be cut so that strips stay independent.
    fn take(&mut self, task: usize) -> Result<bool, EngineError> {
        for strips in self.candidates(task)? {
            let touches = self.touched(task, &strips);
            if independent(self.touches.iter().chain(&touches).copied().collect()) {
                self.add(task, strips, touches);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add(&mut self, task: usize, strips: Strips, touches: Vec<Touch>) {
        self.marks.extend(marks(&touches, self.strips));
        self.touches.extend(touches);
        self.members.push(Member { task, strips });
    }

    /// Ways to cut a task: at the same rows as a member, or where the strips of a member begin in memory.
    fn candidates(&self, task: usize) -> Result<Vec<Strips>, EngineError> {
        let mut ways = Vec::new();
        match &self.tasks[task] {
            Task::Vertices { groups, .. } if groups.iter().all(|g| g.landing.is_none()) => {
                let rows = |groups: &[Group]| groups.iter().map(|g| g.launch.rows()).collect::<Vec<_>>();
                let alike = self.members.iter().find(|m| match &self.tasks[m.task] {
                    Task::Vertices { groups: others, .. } => rows(others) == rows(groups),
                    _ => false,
                });
                ways.extend(alike.map(|m| m.strips.clone()));
                ways.extend(self.marks.iter().filter_map(|m| rows_by(groups, m)).map(Strips::Vertices));
            }
            Task::Moves { moves, .. } => {
                for mark in &self.marks {
                    if let Some((list, parts)) = moves_by(moves.list(), mark) {
                        ways.push(Strips::Moves(Moves::new(list, self.bytes)?, parts));
                    }
                }
            }
            _ => {}
        }
        Ok(ways)
    }

    /// What the strips of a task touch.
    fn touched(&self, task: usize, strips: &Strips) -> Vec<Touch> {
        let member = self.members.len();
        match (strips, &self.tasks[task]) {
            (Strips::Vertices(strips), Task::Vertices { groups, .. }) => {
                let of = |(n, chunks): (usize, &Vec<Chunk>)| {
                    chunks.iter().flat_map(|c| rows_touch(&groups[c.group], c.first..c.last, member, n)).collect()
                };
                strips.iter().enumerate().flat_map(|s| -> Vec<Touch> { of(s) }).collect()
            }
            (Strips::Moves(moves, strips), _) => {
                let of = |(n, range): (usize, &Range<usize>)| moves_touch(&moves.list()[range.clone()], member, n);
                strips.iter().enumerate().flat_map(of).collect()
            }
            _ => Vec::new(),
        }
    }

    fn task(self, threads: usize) -> Task {
        let cut = |part: usize| self.strips * part / threads;
        Task::Strips { members: self.members, parts: (0..threads).map(|p| cut(p)..cut(p + 1)).collect() }
    }
}

fn count(strips: &Strips) -> usize {
    match strips {
        Strips::Vertices(strips) => strips.len(),
        Strips::Moves(_, strips) => strips.len(),
    }
}

/// Whether no byte that one strip writes is touched by another strip of another member. (Strips of one member never
/// touch a common byte of which one is written: it is one task.)
fn independent(mut touches: Vec<Touch>) -> bool {
    touches.sort_unstable_by_key(|t| t.lo);
    let clash = |a: &Touch, b: &Touch| a.strip != b.strip && a.member != b.member && (a.writes || b.writes);
    touches.iter().enumerate().all(|(n, a)| {
        let mut over = touches[n + 1..].iter().take_while(|b| b.lo < a.hi);
        !over.any(|b| clash(a, b))
    })
}

fn rows_touch(group: &Group, rows: Range<u64>, member: usize, strip: usize) -> Vec<Touch> {
    let launch = &group.launch;
    let of = |field: usize| {
        let bytes = launch.touched(field, rows.clone())?;
        Some(Touch { lo: bytes.start, hi: bytes.end, writes: launch.writes(field), member, strip })
    };
    (0..launch.fields()).filter_map(of).collect()
}

fn moves_touch(list: &[Move], member: usize, strip: usize) -> Vec<Touch> {
    let side = |at: i64, step: i64, m: &Move, writes| {
        let reach = (m.count as i64 - 1) * step;
        Touch { lo: at + reach.min(0), hi: at + reach.max(0) + m.bytes as i64, writes, member, strip }
    };
    let from = list.iter().map(|m| side(m.from, m.from_step, m, false));
    let to = list.iter().map(|m| side(m.to, m.to_step, m, true));
    if list.len() <= FEW_MOVES {
        return from.chain(to).collect();
    }
    let around = |a: Touch, b: Touch| Touch { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi), ..a };
    from.reduce(around).into_iter().chain(to.reduce(around)).collect()
}

/// What a whole task touches, if it may be cut into strips.
fn hull(task: &Task, member: usize) -> Vec<Touch> {
    match task {
        Task::Vertices { groups, .. } => {
            groups.iter().flat_map(|g| rows_touch(g, 0..g.launch.rows(), member, 0)).collect()
        }
        Task::Moves { moves, .. } => moves_touch(moves.list(), member, 0),
        Task::Strips { .. } | Task::Products { .. } => Vec::new(),
    }
}

/// The places of a member's strips in memory, from what they touch: the n-th touches of all strips, if all have as many
/// and begin further and further on.
fn marks(touches: &[Touch], strips: usize) -> Vec<Mark> {
    let mut of: Vec<Vec<&Touch>> = vec![Vec::new(); strips];
    touches.iter().for_each(|t| of[t.strip].push(t));
    let most = of.iter().map(Vec::len).min().unwrap_or(0);
    let mark = |n: usize| {
        let starts: Vec<i64> = of[1..].iter().map(|s| s[n].lo).collect();
        let whole = of[0][n].lo..of[strips - 1][n].hi;
        let ascends = whole.start < starts[0] && starts.is_sorted_by(|a, b| a < b);
        ascends.then_some(Mark { whole, starts })
    };
    (0..most).filter_map(mark).collect()
}

fn meets(mark: &Mark, bytes: &Range<i64>) -> bool {
    bytes.start < mark.whole.end && mark.whole.start < bytes.end
}

/// Cuts rows where those of a field begin at or after the places of a mark; a group that is nowhere near belongs to the
/// last strip. `None` if no group is near.
fn rows_by(groups: &[Group], mark: &Mark) -> Option<Vec<Vec<Chunk>>> {
    let mut strips = vec![Vec::new(); mark.starts.len() + 1];
    let mut any = false;
    for (group, Group { launch, .. }) in groups.iter().enumerate() {
        let rows = launch.rows();
        let near = |f: &usize| launch.touched(*f, 0..rows).is_some_and(|bytes| meets(mark, &bytes));
        let cuts = (0..launch.fields()).filter(near).find_map(|f| launch.rows_at(f, &mark.starts));
        any |= cuts.is_some();
        let cuts = cuts.unwrap_or_else(|| vec![0; mark.starts.len()]);
        for (n, strip) in strips.iter_mut().enumerate() {
            let first = if n == 0 { 0 } else { cuts[n - 1] };
            let last = cuts.get(n).copied().unwrap_or(rows);
            if first < last {
                strip.push(Chunk { group, first, last });
            }
        }
    }
    any.then_some(strips)
}

/// First byte and step of a move's source, or of its destination.
type Side = fn(&Move) -> (i64, i64);

/// Cuts moves where their source or their destination passes the places of a mark.
fn moves_by(list: &[Move], mark: &Mark) -> Option<(Vec<Move>, Vec<Range<usize>>)> {
    let sides: [Side; 2] = [|m| (m.from, m.from_step), |m| (m.to, m.to_step)];
    let near = |side: Side| {
        list.iter().any(|m| {
            let (at, step) = side(m);
            meets(mark, &(at..at + (m.count as i64 - 1) * step + m.bytes as i64))
        })
    };
    let side = sides.into_iter().find(|&side| near(side))?;
    let mut strips = vec![Vec::new(); mark.starts.len() + 1];
    for m in list {
        let (at, step) = side(m);
        if m.count > 1 && step <= 0 {
            return None;
        }
        // Pieces of a move are its bytes, or its pieces.
        let (units, step) = if m.count == 1 { (m.bytes as i64, 1) } else { (m.count as i64, step) };
        let before = |start: i64| (start - at + step - 1).div_euclid(step).clamp(0, units);
        for (n, strip) in strips.iter_mut().enumerate() {
            let first = if n == 0 { 0 } else { before(mark.starts[n - 1]) };
            let last = mark.starts.get(n).map_or(units, |&s| before(s));
            if first < last {
                strip.push(part(m, first, last));
            }
        }
    }
    let mut parts = Vec::with_capacity(strips.len());
    let mut all = Vec::new();
    for strip in strips {
        let first = all.len();
        all.extend(strip);
        parts.push(first..all.len());
    }
    Some((all, parts))
}

/// Some of a move's bytes, or of its pieces.
fn part(m: &Move, first: i64, last: i64) -> Move {
    let n = (last - first) as u32;
    match m.count {
        1 => Move { from: m.from + first, to: m.to + first, bytes: n, ..*m },
        _ => Move { from: m.from + first * m.from_step, to: m.to + first * m.to_step, count: n, ..*m },
    }
}

#[cfg(test)]
mod tests;
