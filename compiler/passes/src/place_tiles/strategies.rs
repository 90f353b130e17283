//! Strategies: placements of all open elements and vertices at once.
//!
//! Invariant: a candidate is a function of the strategy and of the candidate that it starts from.

use super::candidate::{Candidate, SetRule, VarRule};
use super::linear;
use super::problem::PlacementProblem;
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
            let rule = SetRule::Spread { order, first: problem.region.first, tiles };
            problem.open_sets.iter().for_each(|&s| candidate.place_set(problem, s, rule));
            follow(problem, &mut candidate, tiles);
        }
        Strategy::Spread(least, tiles) => {
            for &var in &problem.open_vars {
                candidate.place_var(problem, var, VarRule::Spread { least, tiles });
            }
            problem.open_sets.iter().for_each(|&s| candidate.place_set(problem, s, SetRule::Beside));
        }
    }
    candidate.measure_all(problem);
    candidate
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
        group.iter().for_each(|&set| candidate.place_set(problem, set, SetRule::Spread { order, first, tiles }));
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
