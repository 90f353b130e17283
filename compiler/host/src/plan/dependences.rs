//! The dependence graph of the units of a sequence.
//!
//! A unit depends on the last unit before it that writes some of the bytes that it accesses, and on those that read,
//! since then, bytes that it writes. The bytes are those of whole variables.
//!
//! Invariant: every edge leads to a later unit; units without a path between them may run in either order.

use super::units::{StepUnit, UnitAccesses};
use fixedbitset::FixedBitSet;
use petgraph::Direction;
use petgraph::graphmap::DiGraphMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Which units of a sequence have to run before others. Units are named by their positions.
pub(crate) struct Dependences {
    graph: DiGraphMap<usize, ()>,
    done: FixedBitSet,
}

/// The units of a sequence that may join the next group.
pub(crate) struct Window<'a> {
    /// The units of the sequence.
    pub units: &'a [StepUnit],
    /// Positions of units that have not run, the first of which begins the group.
    pub left: &'a [usize],
    /// The dependences of the units.
    pub dependences: &'a Dependences,
}

impl Window<'_> {
    /// Returns the first unit that has not run, and the ones after it.
    pub fn split(&self) -> (usize, &[usize]) {
        (self.left[0], &self.left[1..])
    }
}

/// Units that have accessed bytes: the last one that wrote them, and those that have read them since.
#[derive(Clone, Default)]
struct LastUses {
    writer: Option<usize>,
    readers: SmallVec<[usize; 2]>,
}

impl Dependences {
    /// Returns the dependences of units, none of which has run.
    pub fn of(accesses: &UnitAccesses, units: &[StepUnit]) -> Dependences {
        Dependences::of_bytes(&units.iter().map(|unit| accesses.bytes(unit.unit)).collect::<Vec<_>>())
    }

    /// Returns the dependences of units that access bytes, and write them or not.
    fn of_bytes(units: &[&[(Range<u64>, bool)]]) -> Dependences {
        // Between neighbouring cuts, all bytes belong to the same variables.
        let ranges = units.iter().flat_map(|bytes| bytes.iter());
        let mut cuts: Vec<u64> = ranges.flat_map(|(range, _)| [range.start, range.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let cut = |byte: u64| cuts.partition_point(|&cut| cut < byte);
        let mut uses = vec![LastUses::default(); cuts.len()];
        let mut graph = DiGraphMap::new();
        for (at, bytes) in units.iter().enumerate() {
            graph.add_node(at);
            for (range, writes) in bytes.iter() {
                for last in &mut uses[cut(range.start)..cut(range.end)] {
                    let before = last.writer.iter().chain(last.readers.iter().filter(|_| *writes));
                    before.filter(|&&before| before != at).for_each(|&before| {
                        graph.add_edge(before, at, ());
                    });
                    if *writes {
                        *last = LastUses { writer: Some(at), readers: SmallVec::new() };
                    } else if last.readers.last() != Some(&at) {
                        last.readers.push(at);
                    }
                }
            }
        }
        Dependences { graph, done: FixedBitSet::with_capacity(units.len()) }
    }

    /// Returns whether a unit can run right after a group: it depends only on units of the group and on units that have
    /// run.
    pub fn can_follow(&self, unit: usize, group: &[usize]) -> bool {
        let mut before = self.graph.neighbors_directed(unit, Direction::Incoming);
        before.all(|before| self.done.contains(before) || group.contains(&before))
    }

    /// Notes that units have run.
    pub fn run(&mut self, units: &[usize]) {
        units.iter().for_each(|&unit| self.done.insert(unit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A unit can follow a group if every earlier unit that writes what it accesses, or accesses what it writes,
        /// has run or is in the group.
        #[test]
        fn a_unit_waits_for_all_that_it_shares_written_bytes_with(
            units in prop::collection::vec(prop::collection::vec((0..12u64, 0..5u64, any::<bool>()), 0..4), 1..14),
            picks in prop::collection::vec((any::<bool>(), any::<bool>()), 14),
        ) {
            let range = |&(start, len, writes): &(u64, u64, bool)| (start..start + len, writes);
            let units: Vec<Vec<_>> = units.iter().map(|unit| unit.iter().map(range).collect()).collect();
            let shares = |a: &[(Range<u64>, bool)], b: &[(Range<u64>, bool)]| {
                let meet = |x: &Range<u64>, y: &Range<u64>| x.clone().any(|byte| y.contains(&byte));
                a.iter().any(|(x, writes)| b.iter().any(|(y, also)| (*writes || *also) && meet(x, y)))
            };
            let mut dependences = Dependences::of_bytes(&units.iter().map(|unit| &unit[..]).collect::<Vec<_>>());
            let (mut done, mut group) = (vec![], vec![]);
            for (at, unit) in units.iter().enumerate() {
                let waits = |other: usize| !done.contains(&other) && !group.contains(&other);
                let expected = (0..at).all(|other| !shares(&units[other], unit) || !waits(other));
                prop_assert_eq!(dependences.can_follow(at, &group), expected);
                match picks[at] {
                    (true, true) if expected => group.push(at),
                    (true, false) if (0..at).all(|other| !shares(&units[other], unit) || done.contains(&other)) => {
                        dependences.run(&[at]);
                        done.push(at);
                    }
                    _ => {}
                }
            }
        }
    }
}
