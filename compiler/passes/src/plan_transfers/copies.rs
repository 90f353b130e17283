//! The plan of a copy, on its own or as a part of the compute set that carries it.
//!
//! # Note: Replicas
//! A copy between replicas has one plan for all pairs of them, because what travels is the same. In it, tiles from 0 on
//! are those of the replica that sends. The tiles of the one that receives follow them, once for each list of pairs
//! (see [`StepPlan`]).

use super::buffers::{Buffers, PlanError};
use super::moves::Moves;
use super::route::{Pad, Router};
use super::scene::Scene;
use girder_ir::graph::CopySet;
use girder_ir::plan::StepPlan;

/// Returns the plan of a copy: every element moves from its home to its new home.
pub(super) fn copy(scene: &Scene, copy: &CopySet) -> std::result::Result<StepPlan, PlanError> {
    let mut buffers = Buffers::new(scene.block_limit);
    let (mut router, mut moves) = (Router::new(scene), Moves::new(scene));
    add_copy(scene, copy, &mut moves, &mut router, &mut buffers)?;
    let before = router.finish(&mut buffers)?;
    Ok(StepPlan { buffers: buffers.list, before, ..StepPlan::default() })
}

/// Adds the moves of a copy to a phase.
pub(super) fn add_copy(
    scene: &Scene,
    copy: &CopySet,
    moves: &mut Moves,
    router: &mut Router,
    buffers: &mut Buffers,
) -> std::result::Result<(), PlanError> {
    let lists = copy.pair_lists();
    for family in &copy.families {
        let first = match family.source.pairs() {
            None => 0,
            Some(pairs) => {
                let k = lists.iter().position(|list| list == pairs).unwrap_or(0) as u32;
                let first = scene.machine.tiles().checked_mul(k + 1).ok_or(PlanError::TooMany)?;
                first.checked_add(scene.machine.tiles()).map(|_| first).ok_or(PlanError::TooMany)?
            }
        };
        for instance in 0..family.domain.count() {
            if scene.is_cancelled() {
                return Ok(());
            }
            moves.copy(
                scene,
                &family.dst.view(&family.domain, instance),
                &family.src.view(&family.domain, instance),
                first,
            )?;
            for (slot, &m) in moves.list.iter().enumerate() {
                router.add(slot, m, Pad::Neither, buffers)?;
            }
        }
        router.close(buffers)?;
    }
    Ok(())
}
