//! The check of a plan, whoever made it, by replaying it on symbols.
//!
//! Every byte of every element is a unique token. Blocks hold the tokens of their elements. The phase before is
//! replayed. Each field must then show its tokens at its landing, and written fields take fresh tokens. After the
//! replay of the phase after, every element must be at home with its expected token. Tokens are kept and compared as
//! segments (`block`), so that the replay takes time by rows and strides, not by elements.
//!
//! Invariant: shares no code with the planner but the layout of blocks; nothing that a table read from text
//! may hold makes it panic.

mod block;
mod carried;
mod fields;
mod memory;
mod tokens;

use fields::{FieldSite, sites};
use girder_ir::codelet::Dir;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::plan::{Plan, StepPlan};
use girder_ir::stage::RaceFree;
use girder_ir::view::copy_runs;
use girder_machine::Machine;
use memory::{Elements, Memory};
use tokens::Tokens;

/// Whether a plan fits its graph, placement and machine.
///
/// # Errors
/// The first thing that is wrong, and in which exchange.
pub fn verify(race_free: &RaceFree, machine: &Machine, plan: &Plan) -> Result<(), String> {
    verify_within(race_free, machine, machine.usable_bytes(), plan)
}

/// As [`verify`], where one block may have so many bytes.
pub fn verify_within(race_free: &RaceFree, machine: &Machine, limit: u32, plan: &Plan) -> Result<(), String> {
    let tokens = Tokens::new(race_free, machine, limit);
    for (s, set) in &race_free.sets {
        check_set(race_free, &tokens, plan, s).map_err(|e| format!("in the exchange of `{}`, {e}", set.name))?;
    }
    carried::check(race_free, plan)?;
    for (c, copy) in &race_free.copies {
        check_copy(race_free, &tokens, plan, c).map_err(|e| format!("in the exchange of `{}`, {e}", copy.name))?;
    }
    Ok(())
}

fn check_copy(race_free: &RaceFree, tokens: &Tokens, plan: &Plan, id: CopyId) -> Result<(), String> {
    if plan.sets.values().any(|s| s.carries == Some(id)) {
        // Its elements are looked at with those of the set.
        let empty = plan.copies[id] == StepPlan::default();
        return if empty { Ok(()) } else { Err("what a compute set carries moves".into()) };
    }
    let steps = &plan.copies[id];
    let mut expected = Memory::new(tokens, &[])?;
    copied(race_free, id, |to, from| expected.expect_copied(to, from))?;
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    memory.replay(&steps.before, true)?;
    memory.replay(&steps.after, true)?;
    memory.check_homes(&mut expected)
}

/// Calls `f` with the elements that a copy writes, and with those whose values they take.
fn copied(
    race_free: &RaceFree,
    id: CopyId,
    mut f: impl FnMut(&Elements, &Elements) -> Result<(), String>,
) -> Result<(), String> {
    for family in &race_free.copies[id].families {
        for instance in 0..family.domain.count() {
            let (dst, src) = (family.dst.view(&family.domain, instance), family.src.view(&family.domain, instance));
            for run in copy_runs(&dst, &src) {
                let of = |var, first, stride| Elements { var, first, stride, count: run.len, at: 0, pitch: 0 };
                let (to, from) =
                    (of(run.dst_var, run.dst_start, run.dst_stride), of(run.src_var, run.src_start, run.src_stride));
                f(&to, &from)?;
            }
        }
    }
    Ok(())
}

fn check_set(race_free: &RaceFree, tokens: &Tokens, plan: &Plan, id: ComputeSetId) -> Result<(), String> {
    let steps = &plan.sets[id];
    let mut expected = Memory::new(tokens, &[])?;
    let mut carried = carried::Written::default();
    if let Some(copy) = steps.carries {
        copied(race_free, copy, |to, from| {
            carried.add(to);
            expected.expect_copied(to, from)
        })?;
    }
    let carried = carried.sorted();
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    memory.replay(&steps.before, !carried.is_empty())?;
    let sites = sites(race_free, plan, id, steps)?;
    for site in sites.iter().filter(|_| !carried.is_empty()) {
        site.each(|_, e| match carried.first_of(e) {
            Some(element) => Err(format!("{} touches element {element} which a carried copy writes", site.name())),
            None => Ok(()),
        })?;
    }
    let shown = |memory: &mut Memory, site: &FieldSite, wrong: &dyn Fn(u64) -> String| {
        site.each(|object, e| match memory.hidden(site.tile, object, e)? {
            Some(element) => Err(wrong(element)),
            None => Ok(()),
        })
    };
    for site in sites.iter().filter(|s| s.shows_tokens()) {
        shown(&mut memory, site, &|e| format!("{} does not see element {e} of its variable", site.name()))?;
    }
    let mut stores = fields::Stores::new(tokens.machine.memory.store_bytes);
    for site in sites.iter().filter(|s| s.dir != Dir::In) {
        site.each(|object, e| {
            expected.expect_computed(e)?;
            stores.add(site, object, e);
            memory.compute(site.tile, object, e).map_err(|message| format!("{} {message}", site.name()))
        })?;
    }
    stores.check()?;
    // What is only read must not lie where anything is written, in whatever order vertices run.
    for site in sites.iter().filter(|s| s.dir == Dir::In) {
        shown(&mut memory, site, &|_| format!("{} is overwritten by another vertex", site.name()))?;
    }
    memory.replay(&steps.after, true)?;
    memory.check_homes(&mut expected)
}
