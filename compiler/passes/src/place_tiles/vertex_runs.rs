//! The elements that the vertices of a family access through a part of a field, run by run.
//!
//! Invariant: a run belongs to one vertex. There may be millions of them, so they are small, and sorted by their
//! digits.

use super::accesses::PartAccess;
use girder_ir::family::Domain;

/// Elements that a vertex accesses; a variable has fewer than 2³² elements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct VertexRun {
    pub start: u32,
    pub end: u32,
    pub instance: u32,
}

/// Adds the runs of all instances.
pub(super) fn list(part: &PartAccess, domain: &Domain, runs: &mut Vec<VertexRun>) {
    let mut intervals = vec![];
    let mut region = part.part.region_at(0);
    let base = std::mem::take(&mut region.offset);
    region.list(part.var, &mut intervals);
    runs.reserve(intervals.len().saturating_mul(domain.count() as usize));
    for (offset, instance) in part.part.offset.values(domain).zip(0..) {
        let first = (offset + base) as u64;
        let at = |element: u64| (first + element) as u32;
        runs.extend(intervals.iter().map(|i| VertexRun { start: at(i.1), end: at(i.2), instance }));
    }
}

/// Sorts runs by their first elements; those with the same one keep their order. Joins neighbours of one vertex.
pub(super) fn ascending(runs: &mut Vec<VertexRun>) {
    if !runs.is_sorted_by_key(|r| r.start) {
        radsort::sort_by_key(runs, |r| r.start);
    }
    runs.dedup_by(|next, last| {
        let continues = (next.start, next.instance) == (last.end, last.instance);
        if continues {
            last.end = next.end;
        }
        continues
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_vertex_are_one_run_and_the_first_of_equal_starts_stays_first() {
        let run = |(start, end, instance)| VertexRun { start, end, instance };
        let mut runs: Vec<VertexRun> = [(8, 12, 0), (4, 8, 1), (8, 9, 1), (0, 4, 1), (12, 16, 2)].map(run).into();
        ascending(&mut runs);
        assert_eq!(runs, [(0, 8, 1), (8, 12, 0), (8, 9, 1), (12, 16, 2)].map(run));
    }
}
