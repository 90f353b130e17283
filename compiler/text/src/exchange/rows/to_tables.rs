//! Converts rows to tables.
//!
//! Invariant: no rows make [`from_rows`] panic, or use memory out of proportion to the graph.

use super::families::RowFamily;
use super::row::{LocationRun, Receivers, Row, When};
use girder_ir::plan::{
    Buffer, FieldLocation, FieldLocations, Grouping, Loc, LocalCopy, Object, Phase, StepPlan, Transfer,
};
use girder_ir::schedule::{PhaseSchedule, Served, StepSchedule, TransferSlice};
use smallvec::SmallVec;
use std::sync::Arc;

/// Maximal number of rows, buffers and receivers that the families of a step may expand to, in total.
const MAX_ENTRIES: u64 = 1 << 26;

/// The tables of one step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tables {
    /// The transfers and copies.
    pub plan: StepPlan,
    /// The locations of fields, by family and field.
    pub locations: Vec<Vec<FieldLocations>>,
    /// The schedule, if the rows have one.
    pub schedule: Option<StepSchedule>,
}

/// Converts families of rows to tables. `families` holds the number of instances and of fields of each family of the
/// step; it is empty for a copy.
///
/// # Errors
/// The first wrong row and the reason. Missing rows are reported at the last row.
pub fn from_rows(rows: &[RowFamily], families: &[(u64, usize)]) -> Result<Tables, (WrongRow, String)> {
    let mut reader = Reader {
        tables: Tables {
            locations: families.iter().map(|f| vec![FieldLocations::default(); f.1]).collect(),
            ..Tables::default()
        },
        families,
        schedule: StepSchedule::default(),
        scheduled: false,
        entries: MAX_ENTRIES,
        groups: Default::default(),
    };
    for (k, row) in rows.iter().enumerate() {
        let count = row.count().and_then(|n| u32::try_from(n).ok());
        let spent = count.ok_or_else(|| TOO_MANY.to_string()).and_then(|n| spend(&mut reader.entries, n));
        let mut member = 0;
        let each = |row: Row| {
            reader.row(&row)?;
            member += 1;
            Ok(())
        };
        let read = spent.and_then(|()| row.each(each));
        read.map_err(|message| (WrongRow { family: k, member }, message))?;
    }
    let last = WrongRow { family: rows.len().saturating_sub(1), member: 0 };
    reader.finish().map_err(|message| (last, message))
}

/// A row that is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongRow {
    /// Its family, by position.
    pub family: usize,
    /// Its position in the family.
    pub member: usize,
}

struct Reader<'a> {
    tables: Tables,
    families: &'a [(u64, usize)],
    schedule: StepSchedule,
    /// Whether a row belongs to the schedule.
    scheduled: bool,
    /// The number of rows, buffers and receivers that may still be added.
    entries: u64,
    /// Receivers grouped by transfer, of the phase before and the phase after.
    groups: (Grouping, Grouping),
}

const TOO_MANY: &str = "the table has too many rows, buffers and receivers";

fn spend(entries: &mut u64, count: u32) -> Result<(), String> {
    *entries = entries.checked_sub(count as u64).ok_or(TOO_MANY)?;
    Ok(())
}

impl Reader<'_> {
    fn row(&mut self, row: &Row) -> Result<(), String> {
        match row {
            &Row::Cycles { phase, first, count, cycles } => {
                spend(&mut self.entries, count)?;
                let end = first.checked_add(count).ok_or("there is no such processor")?;
                self.timed(phase).cycles.extend((first..end).map(|ipu| (ipu, cycles)));
                Ok(())
            }
            &Row::Links { phase, cycles } => {
                self.timed(phase).link_cycles = cycles;
                Ok(())
            }
            &Row::Carries { copy } => match self.tables.plan.carries.replace(copy) {
                None => Ok(()),
                Some(_) => Err("a compute set carries one copy".into()),
            },
            Row::Slice { phase, slice, to } => self.slice(*phase, *slice, to),
            &Row::Buffers { first, count, tile, next, bytes } => self.buffers(first, count, tile, next, bytes),
            Row::Locations { family, field, first, count, at } => self.locations(*family, *field, *first, *count, at),
            Row::Copy { phase, gather, copy } => {
                let copy = LocalCopy { from: self.place(copy.from)?, to: self.place(copy.to)?, ..*copy };
                let phase = self.phase(*phase);
                if *gather { &mut phase.before } else { &mut phase.after }.push(copy);
                Ok(())
            }
            Row::Transfer { phase, start, from, words, to } => self.transfer(*phase, *start, *from, *words, to),
        }
    }

    fn phase(&mut self, when: When) -> &mut Phase {
        match when {
            When::Before => &mut self.tables.plan.before,
            When::After => &mut self.tables.plan.after,
        }
    }

    fn timed(&mut self, when: When) -> &mut PhaseSchedule {
        self.scheduled = true;
        match when {
            When::Before => Arc::make_mut(&mut self.schedule.before),
            When::After => Arc::make_mut(&mut self.schedule.after),
        }
    }

    fn slice(&mut self, when: When, mut slice: TransferSlice, to: &[(u32, u32)]) -> Result<(), String> {
        let count = to.iter().fold(0u32, |n, r| n.saturating_add(r.1));
        spend(&mut self.entries, count)?;
        let schedule = self.timed(when);
        slice.to = match count {
            0 => Served::All,
            count => Served::Some { first: schedule.served.len() as u32, count },
        };
        for &(first, count) in to {
            let end = first.checked_add(count).ok_or("there is no such receiver")?;
            schedule.served.extend(first..end);
        }
        schedule.slices.push(slice);
        Ok(())
    }

    /// Returns a location with the tile of its buffer.
    fn place(&self, loc: Loc) -> Result<Loc, String> {
        let Object::Buffer(b) = loc.object else { return Ok(loc) };
        let buffer = self.tables.plan.buffers.get(b as usize);
        let tile = buffer.ok_or_else(|| format!("buffer {b} is not declared above"))?.tile;
        Ok(Loc { tile, ..loc })
    }

    fn buffers(&mut self, first: u32, count: u32, tile: u32, next: i32, bytes: u32) -> Result<(), String> {
        let buffers = &mut self.tables.plan.buffers;
        if first as usize != buffers.len() || count == 0 {
            return Err(format!("the next buffer is {}", buffers.len()));
        }
        spend(&mut self.entries, count)?;
        for k in 0..count as i64 {
            let tile = u32::try_from(tile as i64 + k * next as i64).map_err(|_| "there is no such tile".to_string())?;
            buffers.push(Buffer { tile, bytes });
        }
        Ok(())
    }

    fn locations(&mut self, family: u32, field: u32, first: u64, count: u64, at: &LocationRun) -> Result<(), String> {
        let instances = self.families.get(family as usize).ok_or_else(|| format!("there is no family {family}"))?.0;
        let fields = &mut self.tables.locations[family as usize];
        let all = fields.get_mut(field as usize).ok_or_else(|| format!("there is no field {field}"))?;
        let known = all.at.len() as u64;
        if first != known || count == 0 || count > instances - known {
            return Err(format!("the field's next vertex is {known} of {instances}"));
        }
        let advance = |start: u32, k: u64, step: i64| {
            let value = step.checked_mul(k as i64).and_then(|s| s.checked_add(start as i64));
            value.and_then(|v| u32::try_from(v).ok()).ok_or_else(|| format!("vertex {} has no place", first + k))
        };
        for k in 0..count {
            match at {
                LocationRun::InPlace { byte, step, strides } => {
                    all.push(FieldLocation::InPlace(advance(*byte, k, *step)?), strides)
                }
                &LocationRun::Buffer { buffer, next, byte, step } => {
                    let (buffer, offset) = (advance(buffer, k, next)?, advance(byte, k, step)?);
                    all.push(FieldLocation::Buffer { buffer, offset }, &[]);
                }
            }
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        when: When,
        start: Option<(u32, bool)>,
        from: Loc,
        words: u32,
        groups: &[Receivers],
    ) -> Result<(), String> {
        let from = self.place(from)?;
        let mut to: SmallVec<[Loc; 4]> = SmallVec::new();
        for group in groups {
            spend(&mut self.entries, group.count)?;
            for k in 0..group.count {
                let member = group.member(k).ok_or("there is no such receiver")?;
                to.push(self.place(member)?);
            }
        }
        if to.is_empty() {
            return Err("a transfer has at least one receiver".into());
        }
        let to = match when {
            When::Before => &mut self.groups.0,
            When::After => &mut self.groups.1,
        }
        .to(&to);
        let transfer = self.phase(when).transfers.len() as u32;
        if let Some((start, paired)) = start {
            self.timed(when).slices.push(TransferSlice { transfer, first: 0, words, start, to: Served::All, paired });
        }
        self.phase(when).transfers.push(Transfer { from, to, words });
        Ok(())
    }

    fn finish(mut self) -> Result<Tables, String> {
        let missing = |(f, fields): (usize, &Vec<FieldLocations>)| {
            let wanted = self.families[f].0;
            let short = |l: &FieldLocations| (l.at.len() as u64) < wanted;
            fields.iter().position(short).map(|k| (f, k))
        };
        if let Some((family, field)) = self.tables.locations.iter().enumerate().find_map(missing) {
            return Err(format!("field {field} of family {family} has vertices without a landing"));
        }
        // The tables are large and kept, so their spare capacity is freed.
        for schedule in [&mut self.schedule.before, &mut self.schedule.after] {
            let schedule = Arc::make_mut(schedule);
            in_order(schedule);
            schedule.slices.shrink_to_fit();
            schedule.served.shrink_to_fit();
        }
        for phase in [&mut self.tables.plan.before, &mut self.tables.plan.after] {
            phase.transfers.shrink_to_fit();
            phase.before.shrink_to_fit();
            phase.after.shrink_to_fit();
        }
        for field in self.tables.locations.iter_mut().flatten() {
            field.at.shrink_to_fit();
            field.strides_of.shrink_to_fit();
        }
        self.tables.plan.before.groups = self.groups.0.into_groups();
        self.tables.plan.after.groups = self.groups.1.into_groups();
        self.tables.schedule = self.scheduled.then_some(self.schedule);
        Ok(self.tables)
    }
}

/// Sorts slices, which have rows in any order, and their receivers by transfer and time.
fn in_order(schedule: &mut PhaseSchedule) {
    let order = |s: &TransferSlice| (s.transfer, s.start);
    if schedule.slices.is_sorted_by_key(order) {
        return;
    }
    schedule.slices.sort_by_key(order);
    let mut served = Vec::with_capacity(schedule.served.len());
    for slice in &mut schedule.slices {
        if let Served::Some { first, count } = &mut slice.to {
            let old = *first as usize;
            *first = served.len() as u32;
            served.extend_from_slice(&schedule.served[old..old + *count as usize]);
        }
    }
    schedule.served = served;
}
