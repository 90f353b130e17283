//! Converts tables to rows.

use super::row::{LocationRun, Receivers, Row, When};
use super::runs::RowRuns;
use girder_ir::plan::{Buffer, FieldLocation, FieldLocations, Loc, Object, Phase, StepPlan, To};
use girder_ir::schedule::{PhaseSchedule, Served, StepSchedule, TransferSlice};
use smallvec::SmallVec;

/// In a phase of fewer transfers than this, the row of each transfer that moves whole states its cycle.
const FEW_TRANSFERS: usize = 64;

/// Converts the tables of one step to rows: cycles, buffers, locations by family and field, then transfers and copies
/// in the order in which they move. `locations` is by family and field, and empty for a copy.
pub fn to_rows(plan: &StepPlan, locations: &[&[FieldLocations]], schedule: Option<&StepSchedule>) -> RowRuns {
    let mut rows = RowRuns::default();
    if let Some(s) = schedule {
        cycle_rows(&s.before, When::Before, &mut rows);
        cycle_rows(&s.after, When::After, &mut rows);
    }
    rows.extend(plan.carries.map(|copy| Row::Carries { copy }));
    buffer_rows(&plan.buffers, &mut rows);
    for (family, fields) in locations.iter().enumerate() {
        for (field, all) in fields.iter().enumerate() {
            location_rows(family as u32, field as u32, all, &mut rows);
        }
    }
    phase_rows(&plan.before, When::Before, schedule.map(|s| &*s.before), &mut rows);
    phase_rows(&plan.after, When::After, schedule.map(|s| &*s.after), &mut rows);
    rows
}

fn cycle_rows(schedule: &PhaseSchedule, phase: When, rows: &mut RowRuns) {
    for same in schedule.cycles.chunk_by(|a, b| (a.0 + 1, a.1) == *b) {
        let (first, cycles) = same[0];
        rows.push(Row::Cycles { phase, first, count: same.len() as u32, cycles });
    }
    if schedule.link_cycles > 0 {
        rows.push(Row::Links { phase, cycles: schedule.link_cycles });
    }
}

fn buffer_rows(buffers: &[Buffer], rows: &mut RowRuns) {
    let mut k = 0;
    while k < buffers.len() {
        let (first, rest) = (buffers[k], &buffers[k + 1..]);
        let next = rest.first().map_or(0, |b| b.tile.wrapping_sub(first.tile) as i32);
        let fits =
            |(n, b): &(i64, &Buffer)| b.bytes == first.bytes && b.tile as i64 == first.tile as i64 + n * next as i64;
        let count = 1 + (1..).zip(rest).take_while(fits).count();
        let next = if count > 1 { next } else { 0 };
        rows.push(Row::Buffers { first: k as u32, count: count as u32, tile: first.tile, next, bytes: first.bytes });
        k += count;
    }
}

/// Returns a location as numbers: kind (with its strides), buffer, byte.
fn numbers(all: &FieldLocations, instance: usize) -> (u32, i64, i64) {
    match all.at[instance] {
        FieldLocation::InPlace(byte) => (1 + all.strides_of[instance], 0, byte as i64),
        FieldLocation::Buffer { buffer, offset } => (0, buffer as i64, offset as i64),
    }
}

fn location_rows(family: u32, field: u32, all: &FieldLocations, rows: &mut RowRuns) {
    let mut k = 0;
    while k < all.at.len() {
        let first = numbers(all, k);
        let ahead = |i: usize| Some(numbers(all, i)).filter(|l| i < all.at.len() && l.0 == first.0);
        let (mut next, mut step, mut count) = (0, 0, 1);
        if let Some(second) = (k + 1 < all.at.len()).then(|| ahead(k + 1)).flatten() {
            (next, step) = (second.1 - first.1, second.2 - first.2);
            let fits = |n: &usize| {
                let (there, n) = (numbers(all, k + n), *n as i64);
                there == (first.0, first.1 + n * next, first.2 + n * step)
            };
            count += (1..all.at.len() - k).take_while(fits).count();
        }
        let at = match all.at[k] {
            FieldLocation::InPlace(byte) => {
                LocationRun::InPlace { byte, step, strides: all.strides[all.strides_of[k] as usize].clone() }
            }
            FieldLocation::Buffer { buffer, offset } => LocationRun::Buffer { buffer, next, byte: offset, step },
        };
        rows.push(Row::Locations { family, field, first: k as u64, count: count as u64, at });
        k += count;
    }
}

fn phase_rows(phase: &Phase, when: When, schedule: Option<&PhaseSchedule>, rows: &mut RowRuns) {
    rows.extend(phase.before.iter().map(|&copy| Row::Copy { phase: when, gather: true, copy }));
    let starts = schedule.map(|s| starts(phase, s));
    let grouped: Vec<Vec<Receivers>> = phase.groups.iter().map(|places| groups(places)).collect();
    for (k, transfer) in phase.transfers.iter().enumerate() {
        let start = starts.as_ref().and_then(|s| s[k]);
        let to = match transfer.to {
            To::One(first) => SmallVec::from_buf([Receivers::one(first)]),
            To::Group { group, offset } => behind(&grouped[group as usize], offset),
        };
        rows.push(Row::Transfer { phase: when, start, from: transfer.from, words: transfer.words, to });
    }
    if let (Some(schedule), Some(starts)) = (schedule, &starts) {
        slice_rows(when, schedule, starts, rows);
    }
    rows.extend(phase.after.iter().map(|&copy| Row::Copy { phase: when, gather: false, copy }));
}

/// Returns, for each transfer, the cycle and the rate that its own row states, or `None` if its slices have rows.
///
/// If there are many transfers, either all of them state a cycle, at one rate, or none does, so that their rows stay
/// alike. If there are few, each transfer that moves whole states its own.
fn starts(phase: &Phase, schedule: &PhaseSchedule) -> Vec<Option<(u32, bool)>> {
    let mut starts = vec![None; phase.transfers.len()];
    for slices in schedule.slices.chunk_by(|a, b| a.transfer == b.transfer) {
        let transfer = slices[0].transfer as usize;
        if let [TransferSlice { first: 0, words, to: Served::All, start, paired, .. }] = slices
            && *words == phase.transfers[transfer].words
        {
            starts[transfer] = Some((*start, *paired));
        }
    }
    let rate = |start: &Option<(u32, bool)>| start.map(|s| s.1);
    let is_uniform = starts.iter().all(|s| s.is_some() && rate(s) == rate(&starts[0]));
    if !is_uniform && starts.len() >= FEW_TRANSFERS {
        starts.fill(None);
    }
    starts
}

/// Adds the slices that no row of a transfer states. Slices of one form follow one another.
fn slice_rows(when: When, schedule: &PhaseSchedule, starts: &[Option<(u32, bool)>], rows: &mut RowRuns) {
    let to = |slice: &TransferSlice| match slice.to {
        Served::Some { first, count } => ranges(&schedule.served[first as usize..(first + count) as usize]),
        Served::All => vec![],
    };
    let own = schedule.slices.iter().filter(|s| starts[s.transfer as usize].is_none());
    let receivers = |s: &TransferSlice| match s.to {
        Served::Some { count, .. } => count,
        Served::All => 0,
    };
    let mut slices: Vec<_> = own.map(|s| ((s.paired, to(s).len(), receivers(s), s.first > 0), s)).collect();
    slices.sort_by_key(|(form, _)| *form);
    rows.extend(slices.into_iter().map(|(_, &slice)| Row::Slice { phase: when, slice, to: to(&slice) }));
}

/// Returns ascending numbers as ranges (first, count).
fn ranges(list: &[u32]) -> Vec<(u32, u32)> {
    list.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len() as u32)).collect()
}

/// Joins receivers at equal distances into groups, of at least three if they are not neighbours.
fn groups(to: &[Loc]) -> Vec<Receivers> {
    let mut result: Vec<Receivers> = vec![];
    let mut rest = to;
    while let Some((&first, others)) = rest.split_first() {
        let step = others.first().and_then(|&next| distance(first, next)).unwrap_or(1);
        let mut group = Receivers { first, count: 1, step };
        let follows = |&(k, loc): &(u32, &Loc)| group.member(k).is_some_and(|m| same(m, *loc));
        let count = 1 + (1..).zip(others).take_while(follows).count();
        group.count = count as u32;
        if step > 1 && count < 3 {
            group = Receivers::one(first);
        }
        rest = &rest[group.count as usize..];
        result.push(group);
    }
    result
}

/// Returns the tiles or buffers from one receiver to another, if they are of one kind and the other comes later.
fn distance(from: Loc, to: Loc) -> Option<u32> {
    let step = match (from.object, to.object) {
        (Object::Buffer(a), Object::Buffer(b)) => b.checked_sub(a),
        _ => to.tile.checked_sub(from.tile),
    };
    step.filter(|&step| step > 0)
}

/// Shifts groups by an offset in bytes.
fn behind(groups: &[Receivers], offset: u32) -> SmallVec<[Receivers; 1]> {
    let shifted = |r: &Receivers| Receivers { first: Loc { offset: r.first.offset + offset, ..r.first }, ..*r };
    groups.iter().map(shifted).collect()
}

fn same(a: Loc, b: Loc) -> bool {
    let tiles = a.tile == b.tile || matches!(b.object, Object::Buffer(_));
    a.object == b.object && a.offset == b.offset && tiles
}
