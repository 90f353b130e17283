//! Strategies: placements of all open elements and vertices at once.
//!
//! Invariant: a candidate is a function of the strategy and of the candidate that it starts from.

use super::candidate::{Candidate, GroupRule, VarRule};
use super::linear;
use super::problem::{PlacementProblem, VertexGroup};
use super::spread::VertexOrder;
use girder_ir::ids::ComputeSetId;

/// A way to place all open elements and vertices.
#[derive(Clone, Copy)]
pub(super) enum Strategy {
    /// Spreads vertices; variables follow them.
    Follow(VertexOrder, u32),
    /// Spreads variables with at least some bytes on each tile; vertices are beside them.
    Spread(u64, u32),
}

/// The distance in tiles between the small groups of consecutive compute sets, if these begin on different tiles. It is
/// prime, so that the groups go round all tiles.
const APART: u32 = 61;

/// Returns the candidate of a strategy, measured.
pub(super) fn candidate_of<'a>(
    problem: &PlacementProblem<'a>,
    start: &Candidate<'a>,
    strategy: Strategy,
) -> Candidate<'a> {
    let mut candidate = start.clone();
    candidate.work = 0;
    match strategy {
        Strategy::Follow(order, tiles) => {
            for (id, group) in &problem.groups {
                candidate.place_group(problem, id, spread(problem, group, order, tiles, start.reach));
            }
            follow(problem, &mut candidate, tiles);
        }
        Strategy::Spread(least, tiles) => {
            for &var in &problem.open_vars {
                candidate.place_var(problem, var, VarRule::Spread { least, tiles });
            }
            problem.groups.keys().for_each(|id| candidate.place_group(problem, id, GroupRule::Beside));
        }
    }
    candidate.measure_all(problem);
    candidate
}

/// Returns the rule that spreads a group over tiles. Small groups of one compute set begin on different tiles. Those of
/// different sets begin on the same tiles, so that one step finds what the other has written, unless these tiles would
/// have too much code of exchanges.
fn spread(problem: &PlacementProblem, group: &VertexGroup, order: VertexOrder, tiles: u32, reach: u32) -> GroupRule {
    let first = problem.region.first;
    let count = group.sites.count().max(1);
    let is_small = count * 2 <= u64::from(tiles);
    let mut apart = if is_small { group.number } else { 0 };
    if problem.estimate.is_full {
        // A small group has one vertex in every `distance` tiles. A group on few tiles may begin on any tile.
        let distance = if is_small { (u64::from(tiles) / count) as u32 } else { reach.saturating_sub(tiles) + 1 };
        apart = group.set.as_u32().wrapping_mul(APART).wrapping_add(apart) % distance;
    }
    let apart = if apart + tiles <= reach { apart } else { apart.min(tiles / 2) };
    GroupRule::Spread { order, first: first + apart, tiles: tiles.min(reach.saturating_sub(apart)).max(1) }
}

/// Gives each group of compute sets its own tiles, as far as there are enough.
pub(super) fn separate_groups<'a>(
    problem: &PlacementProblem<'a>,
    start: &Candidate<'a>,
    groups: &[Vec<ComputeSetId>],
    order: VertexOrder,
) -> Candidate<'a> {
    let mut candidate = start.clone();
    let (count, reach) = (groups.len() as u64, u64::from(start.reach));
    for (k, group) in (0u64..).zip(groups) {
        let edge = |k: u64| problem.region.first + (k * reach / count) as u32;
        let (first, tiles) = (edge(k), (edge(k + 1) - edge(k)).max(1));
        let rule = GroupRule::Spread { order, first, tiles };
        let of_sets = group.iter().flat_map(|&set| &problem.groups_of[set]);
        of_sets.for_each(|&id| candidate.place_group(problem, id, rule));
    }
    follow(problem, &mut candidate, start.reach);
    candidate.measure_all(problem);
    candidate
}

/// Lets variables follow vertices or the other ends of copies. Other variables are spread.
fn follow(problem: &PlacementProblem, candidate: &mut Candidate, tiles: u32) {
    for &var in &problem.open_vars {
        let rules = [VarRule::Follow { first: None }, VarRule::Partner { copy: 0 }];
        if !rules.into_iter().any(|rule| candidate.place_var(problem, var, rule)) {
            candidate.place_var(problem, var, VarRule::Spread { least: linear::BYTES_PER_TILE, tiles });
        }
    }
}
