//! The check of a plan, whoever made it, by replaying it on symbols.
//!
//! Every byte of every element is a unique token. Blocks hold the tokens of their elements. The phase before is
//! replayed. Each field must then show its tokens at its location, and written fields take fresh tokens. After the
//! replay of the phase after, every element must be at home with its expected token. Tokens are kept and compared as
//! segments (`block`), so that the replay takes time by rows and strides, not by elements.
//!
//! Invariant: shares no code with the planner but the layout of blocks; nothing that a table read from text may hold
//! makes it panic.

mod block;
mod carried;
mod fields;
mod memory;
mod replicas;
mod tokens;

use fields::{FieldSite, sites};
use girder_ir::codelet::Dir;
use girder_ir::family::Field;
use girder_ir::ids::{ComputeSetId, CopyId};
use girder_ir::plan::{Plan, StepPlan};
use girder_ir::stage::RaceFree;
use girder_ir::view::copy_runs;
use girder_machine::Machine;
use girder_source::par_map_uneven;
use memory::{Elements, Memory};
use rustc_hash::FxHashSet;
use tokens::Tokens;

/// Checks that a plan fits its graph, placement and machine.
///
/// # Errors
/// The first violation, with the name of its exchange.
pub fn verify(race_free: &RaceFree, machine: &Machine, plan: &Plan) -> Result<(), String> {
    verify_within(race_free, machine, machine.usable_bytes(), plan)
}

/// Works like [`verify`], with at most `limit` bytes in a block.
pub fn verify_within(race_free: &RaceFree, machine: &Machine, limit: u32, plan: &Plan) -> Result<(), String> {
    let tokens = Tokens::new(race_free, machine, limit);
    let within = |name: &str, found: Result<(), String>| found.map_err(|e| format!("in the exchange of `{name}`, {e}"));
    let transfers = |step: &StepPlan| (step.before.transfers.len() + step.after.transfers.len()) as u64;
    let sets: Vec<ComputeSetId> = race_free.sets.keys().collect();
    let check = |&s: &ComputeSetId| within(&race_free.sets[s].name, check_set(race_free, &tokens, plan, s));
    par_map_uneven(&sets, |&s| transfers(&plan.sets[s]), check).into_iter().collect::<Result<(), _>>()?;
    carried::check(race_free, plan)?;
    let carried: FxHashSet<CopyId> = plan.sets.values().filter_map(|s| s.carries).collect();
    let copies: Vec<CopyId> = race_free.copies.keys().collect();
    let check = |&c: &CopyId| {
        let found = check_copy(race_free, &tokens, &plan.copies[c], c, carried.contains(&c));
        within(&race_free.copies[c].name, found)
    };
    par_map_uneven(&copies, |&c| transfers(&plan.copies[c]), check).into_iter().collect()
}

/// Checks the plan of a copy. The elements of a `carried` copy are checked with those of its compute set.
fn check_copy(
    race_free: &RaceFree,
    tokens: &Tokens,
    steps: &StepPlan,
    id: CopyId,
    carried: bool,
) -> Result<(), String> {
    if carried {
        let empty = *steps == StepPlan::default();
        return if empty { Ok(()) } else { Err("what a compute set carries moves".into()) };
    }
    if race_free.copies[id].crosses() {
        return replicas::check(race_free, tokens, steps, id);
    }
    let mut expected = Memory::new(tokens, &[])?;
    copied(race_free, id, None, |to, from| expected.expect_copied(to, from))?;
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    memory.replay(&steps.before, true)?;
    memory.replay(&steps.after, true)?;
    memory.check_homes(&mut expected)
}

/// Calls `f` with the elements that a copy, or one of its families, writes and with the elements that it reads for
/// them.
fn copied(
    race_free: &RaceFree,
    id: CopyId,
    only: Option<usize>,
    mut f: impl FnMut(&Elements, &Elements) -> Result<(), String>,
) -> Result<(), String> {
    for (k, family) in race_free.copies[id].families.iter().enumerate() {
        if only.is_some_and(|only| only != k) {
            continue;
        }
        let (dst, src, domain) = (&family.dst, &family.src, &family.domain);
        // If both ends have one part, the runs of all instances are those of the first one, moved by one distance.
        let single_parts = dst.parts.len() == 1 && src.parts.len() == 1;
        let mut runs = vec![];
        let mut like = (0, 0);
        for instance in 0..domain.count() {
            let first = |field: &Field| field.parts.first().map_or(0, |p| p.offset.at(domain, instance));
            let here = (first(dst), first(src));
            if instance == 0 || !single_parts {
                runs = copy_runs(&dst.view(domain, instance), &src.view(domain, instance));
                like = here;
            }
            let (there, back) = (here.0 - like.0, here.1 - like.1);
            for run in &runs {
                let of = |var, first: u64, moved, stride| {
                    let first = first.wrapping_add_signed(moved);
                    Elements { var, first, stride, count: run.len, at: 0, pitch: 0 }
                };
                let to = of(run.dst_var, run.dst_start, there, run.dst_stride);
                f(&to, &of(run.src_var, run.src_start, back, run.src_stride))?;
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
        copied(race_free, copy, None, |to, from| {
            carried.add(to);
            expected.expect_copied(to, from)
        })?;
    }
    let carried = carried.sorted();
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    memory.replay(&steps.before, !carried.is_empty())?;
    let sites = sites(race_free, plan, id, steps)?;
    for site in sites.iter().filter(|_| !carried.is_empty()) {
        if let Some(element) = site.elements().find_map(|e| carried.first_of(&e)) {
            return Err(format!("{} touches element {element} which a carried copy writes", site.name()));
        }
    }
    for site in sites.iter().filter(|s| s.shows_tokens()) {
        if let Some(e) = hidden(&mut memory, site)? {
            return Err(format!("{} does not see element {e} of its variable", site.name()));
        }
    }
    let mut stores = fields::Stores::new(tokens.machine.memory.store_bytes);
    for site in sites.iter().filter(|s| s.dir != Dir::In) {
        for e in site.elements() {
            expected.expect_computed(&e)?;
            stores.add(site, &e);
            memory.compute(site.tile, site.object, &e).map_err(|message| format!("{} {message}", site.name()))?;
        }
    }
    stores.check()?;
    // What is only read must not lie where anything is written, in whatever order vertices run.
    for site in sites.iter().filter(|s| s.dir == Dir::In) {
        if memory.is_computed(site.tile, site.object) && hidden(&mut memory, site)?.is_some() {
            return Err(format!("{} is overwritten by another vertex", site.name()));
        }
    }
    memory.replay(&steps.after, true)?;
    memory.check_homes(&mut expected)
}

/// Returns the first element of a field that its location does not show.
fn hidden(memory: &mut Memory, site: &FieldSite) -> Result<Option<u64>, String> {
    for e in site.elements() {
        if let Some(element) = memory.hidden(site.tile, site.object, &e)? {
            return Ok(Some(element));
        }
    }
    Ok(None)
}
