//! The verifier of a schedule. It sorts the busy intervals of every port by time, checks that they do not overlap, and
//! that every word of every transfer reaches every receiver once.
//!
//! # Note: Delays
//! A word that tile s sends at cycle c arrives at tile r at cycle c + a(s) + b(r). A slice starts at cycle `start` of
//! both ports' own clocks. A sender's clock begins a(s) before the phase's, and a receiver's b(r) after it. All
//! receipts of a tile are thus shifted by b(r), so they overlap on its clock iff they overlap on the wire.
//!
//! Invariant: the verifier shares no code with the scheduler. It computes durations from the machine again.

use girder_ir::graph::CopySet;
use girder_ir::plan::{Loc, Phase, StepPlan, To, Transfer};
use girder_ir::schedule::{PhaseSchedule, Schedule, Served, StepSchedule, TransferSlice};
use girder_ir::stage::Planned;
use girder_machine::{Link, Machine};
use girder_source::par_map_slice;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that a schedule fits its plan and the machine.
///
/// # Errors
/// The first violation: its exchange, port and cycles.
pub fn verify(planned: &Planned, machine: &Machine, schedule: &Schedule) -> Result<(), String> {
    type Scheduled<'a> = (&'a SmolStr, &'a StepPlan, &'a StepSchedule, Option<&'a CopySet>);
    let sets = planned.sets.iter().map(|(s, set)| (&set.name, &planned.plan.sets[s], &schedule.sets[s], None));
    let copies = planned.copies.iter().map(|(c, copy)| {
        (&copy.name, &planned.plan.copies[c], &schedule.copies[c], Some(copy).filter(|copy| copy.crosses()))
    });
    let steps: Vec<Scheduled> = sets.chain(copies).collect();
    let verdicts = par_map_slice(&steps, |(name, plan, schedule, between)| {
        let verdict = match between {
            Some(copy) => between_replicas(plan, copy, machine, schedule),
            None => step(plan, machine, schedule),
        };
        verdict.map_err(|e| format!("in the exchange of `{name}`, {e}"))
    });
    verdicts.into_iter().collect()
}

fn step(plan: &StepPlan, machine: &Machine, schedule: &StepSchedule) -> Result<(), String> {
    phase(&plan.before, machine, &schedule.before).map_err(|e| format!("before it, {e}"))?;
    phase(&plan.after, machine, &schedule.after).map_err(|e| format!("after it, {e}"))
}

/// Checks the schedule of a copy between replicas against its plan, repeated for every pair on the whole machine.
fn between_replicas(plan: &StepPlan, copy: &CopySet, machine: &Machine, schedule: &StepSchedule) -> Result<(), String> {
    let (whole, tiles) = (machine.whole(), machine.tiles());
    let real = |replica: u32, tile: u32| {
        let ipu = machine.ipu_of_replica(replica, tile / machine.chip.tiles);
        ipu * machine.chip.tiles + tile % machine.chip.tiles
    };
    let lists = copy.pair_lists();
    let mut all = Phase::default();
    for transfer in &plan.before.transfers {
        for to in plan.before.receivers(transfer) {
            let list = (to.tile / tiles).checked_sub(1).and_then(|k| lists.get(k as usize));
            let list = list.ok_or_else(|| format!("tile {} is that of no receiver", to.tile))?;
            for pair in list.iter() {
                let from = Loc { tile: real(pair.sender, transfer.from.tile), ..transfer.from };
                let to = To::One(Loc { tile: real(pair.receiver, to.tile % tiles), ..to });
                all.transfers.push(Transfer { from, to, words: transfer.words });
            }
        }
    }
    let (links, stated) = (links(&all, &whole), u64::from(schedule.before.link_cycles));
    let other = !schedule.before.slices.is_empty() || *schedule.after != PhaseSchedule::default();
    match links == stated && !other {
        true => Ok(()),
        false if other => Err("words between replicas have no order".into()),
        false => Err(format!("the words between replicas take {links} cycles, not {stated}")),
    }
}

/// Checks that a schedule fits its plan and the machine.
///
/// # Errors
/// The first violation: its exchange, port and cycles.
pub(super) fn phase(phase: &Phase, machine: &Machine, schedule: &PhaseSchedule) -> Result<(), String> {
    let mut rest = schedule.slices.as_slice();
    let mut holds: Vec<Hold> = vec![];
    let mut cycles: BTreeMap<u32, u64> = BTreeMap::new();
    for (t, transfer) in (0..).zip(&phase.transfers) {
        let pieces = rest.iter().take_while(|p| p.transfer == t).count();
        let (own, others) = rest.split_at(pieces);
        rest = others;
        let to: Vec<Loc> = phase.receivers(transfer).collect();
        words_arrive((t, transfer), &to, own, schedule, machine)?;
        for piece in own {
            let bits = 32 * piece.words as u64;
            let exchange = &machine.exchange;
            let rate = if piece.paired { exchange.pair_bytes_per_cycle } else { exchange.bytes_per_cycle };
            let start = piece.start as u64;
            let per_cycle = 8 * rate as u64;
            let end = start + bits / per_cycle + !bits.is_multiple_of(per_cycle) as u64;
            let mut receivers: Vec<u32> = vec![];
            served(piece, transfer, &to, schedule, machine, |k| receivers.push(to[k].tile))?;
            holds.push(Hold { side: Side::Sends, tile: transfer.from.tile, start, end });
            if piece.paired {
                receivers.sort_unstable();
                receivers.dedup();
                let tile = lend(transfer.from.tile, &mut receivers, machine)?;
                holds.push(Hold { side: Side::Sends, tile, start, end });
            }
            holds.extend(receivers.into_iter().map(|tile| Hold { side: Side::Receipts, tile, start, end }));
            let last = cycles.entry(transfer.from.tile / machine.chip.tiles).or_default();
            *last = end.max(*last);
        }
    }
    if let Some(piece) = rest.first() {
        return Err(format!("a piece of transfer {} is not next to its transfer", piece.transfer));
    }
    check_cycles(&cycles, phase, machine, schedule)?;
    holds.sort_unstable();
    for pair in holds.windows(2) {
        let [one, next] = pair else { continue };
        if (one.side, one.tile) == (next.side, next.tile) && next.start < one.end {
            let cycles = format!("{}..{} and {}..{}", one.start, one.end, next.start, next.end);
            let side = match one.side {
                Side::Sends => "sends",
                Side::Receipts => "receipts",
            };
            return Err(format!("the {side} of tile {} at cycles {cycles} overlap", one.tile));
        }
    }
    Ok(())
}

/// What a port does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Receipts,
    Sends,
}

/// A port of a tile while it is busy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hold {
    side: Side,
    tile: u32,
    start: u64,
    end: u64,
}

/// Adds the tiles that lend wires to a paired slice: the sender's partner, which is returned, and the sender if its
/// partner receives alone. Receivers ascend.
fn lend(sender: u32, receivers: &mut Vec<u32>, machine: &Machine) -> Result<u32, String> {
    let tiles = machine.chip.tiles;
    // The other tile of a pair, if the processor has it.
    let partner = |tile: u32| {
        let (ipu, k) = (tile / tiles, tile % tiles);
        let other = if k.is_multiple_of(2) { k + 1 } else { k - 1 };
        (other < tiles).then_some(ipu * tiles + other)
    };
    let lender = partner(sender).ok_or_else(|| format!("tile {sender} has no partner to send at double width with"))?;
    let receives = |receivers: &[u32], tile: u32| receivers.binary_search(&tile);
    if receives(receivers, lender).is_ok()
        && receivers.len() > 1
        && let Err(at) = receives(receivers, sender)
    {
        receivers.insert(at, sender);
    }
    match receivers.iter().find(|&&tile| partner(tile).is_none_or(|p| receives(receivers, p).is_err())) {
        None => Ok(lender),
        Some(tile) => Err(format!("tile {tile} receives at double width, but its partner does not")),
    }
}

/// Calls `f` with the positions of the receivers of a slice, which are on its processor.
fn served(
    piece: &TransferSlice,
    transfer: &Transfer,
    to: &[Loc],
    schedule: &PhaseSchedule,
    machine: &Machine,
    mut f: impl FnMut(usize),
) -> Result<(), String> {
    let ipu = |tile: u32| tile / machine.chip.tiles;
    let home = ipu(transfer.from.tile);
    match piece.to {
        Served::All => (0..to.len()).filter(|&k| ipu(to[k].tile) == home).for_each(f),
        Served::Some { first, count } => {
            let range = first as usize..first as usize + count as usize;
            let some = schedule.served.get(range).ok_or("a piece names receivers that are not there")?;
            for k in some.iter().map(|&k| k as usize) {
                if to.get(k).is_none_or(|to| ipu(to.tile) != home) {
                    return Err(format!("a piece of transfer {} names a receiver it has not", piece.transfer));
                }
                f(k);
            }
        }
    }
    Ok(())
}

/// Checks that every word reaches every receiver on the sender's processor once.
fn words_arrive(
    (t, transfer): (u32, &Transfer),
    receivers: &[Loc],
    pieces: &[TransferSlice],
    schedule: &PhaseSchedule,
    machine: &Machine,
) -> Result<(), String> {
    let mut ranges: Vec<(usize, u64, u64)> = vec![];
    for piece in pieces {
        let (first, end) = (piece.first as u64, piece.first as u64 + piece.words as u64);
        if piece.words == 0 {
            return Err(format!("a piece of transfer {t} has no words"));
        }
        // A single piece that sends everything to all.
        if let ([_], Served::All, 0) = (pieces, piece.to, first)
            && piece.words == transfer.words
        {
            return Ok(());
        }
        served(piece, transfer, receivers, schedule, machine, |k| ranges.push((k, first, end)))?;
    }
    ranges.sort_unstable();
    let mut rest = ranges.as_slice();
    for (k, to) in receivers.iter().enumerate() {
        if to.tile / machine.chip.tiles != transfer.from.tile / machine.chip.tiles {
            continue;
        }
        let mut at = 0;
        while let Some(&(_, first, end)) = rest.first().filter(|r| r.0 == k) {
            if first != at {
                let (what, word) = if first < at { ("twice", first) } else { ("never", at) };
                return Err(format!("word {word} of transfer {t} reaches tile {} {what}", to.tile));
            }
            (at, rest) = (end, &rest[1..]);
        }
        if at != transfer.words as u64 {
            let what = if at < transfer.words as u64 { "never reaches" } else { "is no word to send to" };
            return Err(format!("word {} of transfer {t} {what} tile {}", at.min(transfer.words as u64), to.tile));
        }
    }
    Ok(())
}

/// Checks the lengths that the schedule states.
fn check_cycles(
    cycles: &BTreeMap<u32, u64>,
    phase: &Phase,
    machine: &Machine,
    schedule: &PhaseSchedule,
) -> Result<(), String> {
    let stated: Vec<(u32, u64)> = schedule.cycles.iter().map(|&(ipu, c)| (ipu, c as u64)).collect();
    let found: Vec<(u32, u64)> = cycles.iter().map(|(&ipu, &c)| (ipu, c)).collect();
    if stated != found {
        let text = |list: &[(u32, u64)]| {
            let each = list.iter().map(|(ipu, c)| format!("{c} on processor {ipu}")).collect::<Vec<_>>();
            if each.is_empty() { "nowhere".to_string() } else { each.join(", ") }
        };
        return Err(format!("the last words land at cycle {}, not {}", text(&found), text(&stated)));
    }
    let links = links(phase, machine);
    match links == schedule.link_cycles as u64 {
        true => Ok(()),
        false => Err(format!("the words between processors take {links} cycles, not {}", schedule.link_cycles)),
    }
}

/// Returns the cycles of words between processors: the fixed part, and the fullest link group or tile.
fn links(phase: &Phase, machine: &Machine) -> u64 {
    if machine.ipus == 1 {
        return 0;
    }
    let ipu = |tile: u32| tile / machine.chip.tiles;
    let mut tiles: BTreeMap<(bool, u32), u64> = BTreeMap::new();
    let mut groups: BTreeMap<Link, u64> = BTreeMap::new();
    for transfer in &phase.transfers {
        let home = ipu(transfer.from.tile);
        let away: Vec<u32> = phase.receivers(transfer).map(|to| to.tile).filter(|&t| ipu(t) != home).collect();
        if !away.is_empty() {
            *tiles.entry((true, transfer.from.tile)).or_default() += transfer.words as u64;
        }
        for &tile in &away {
            *tiles.entry((false, tile)).or_default() += transfer.words as u64;
        }
        for there in away.iter().map(|&tile| ipu(tile)).collect::<BTreeSet<u32>>() {
            machine.route(home, there).for_each(|link| *groups.entry(link).or_default() += transfer.words as u64);
        }
    }
    let cycles = |words: u64, rate: f64| (4.0 * words as f64 / rate).ceil() as u64;
    let of_tiles = tiles.values().map(|&words| cycles(words, machine.exchange.bytes_per_cycle as f64));
    let of_groups = groups.iter().map(|(link, &words)| cycles(words, machine.group_bytes_per_cycle(link.group)));
    of_tiles.chain(of_groups).max().map_or(0, |cycles| machine.links.fixed_cycles as u64 + cycles)
}
