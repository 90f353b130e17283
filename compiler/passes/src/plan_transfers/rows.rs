//! A plan and its schedule as rows: the neutral form between the tables and the items `exchange NAME { … }` of a printed
//! stage.
//!
//! # Note: Text of a row
//! ```gir
//! exchange main.matvec {
//!     cycles(before, 0..2): 784;                                  // on processors 0 and 1, of the phase before
//!     links(after): 2008;                                         // between processors, of the phase after
//!     carries: main.copy;                                         // this copy moves in the phase before
//!     buffer(0..3): tile: 1, next: 1, bytes: 3136;                // buffers 0, 1, 2 on tiles 1, 2, 3
//!     field(0, w, 0..10): byte: 0, step: 3136, strides: [4];      // in place: vertex i at byte 0 + 3136 · i of its block
//!     field(0, x, 3..5): buffer: 0, next: 0, byte: 0, step: 0;    // in a buffer: vertices 3 and 4 in buffer 0 at byte 0
//!     gather_before: x[0, 64], bytes: 4, count: 8, steps: [64, 4] -> buffer(4)[0];
//!     before(0): x[0, 0], words: 784 -> [buffer(0..3)[0]];        // from cycle 0; to buffers 0, 1, 2
//!     before: x[0, 784], words: 90 -> [buffer(0..3)[784]];        // in pieces:
//!     piece(before, 1, 784, paired): 0..30;                         // words 0 to 29 of transfer 1, from cycle 784
//!     piece(before, 1, 990): 30..90, to: [0..2];                  // words 30 to 89 to its first two receivers
//!     spread_before: buffer(5)[2], bytes: 3 -> y[3, 1];           // 3 bytes, on tile 3
//!     after(0): buffer(0)[0], words: 2 -> [y[0, 8], z[1..3, 16]]; // to y on tile 0, z on tiles 1 and 2
//! }
//! ```
//! `x[t, b]` is byte b of the block of `x` on tile t, `x[t..u, b]` such a byte on each tile of a range; `buffer(k)[b]` is
//! byte b of buffer k, whose tile is known. A sender that stands among several receivers sends to the others. `paired` says that it moves at the rate of a pair of tiles. `next`, `step`, `count` and `steps` may be left out where they say 0, 0, 1
//! and [0, 0], `strides` where it is empty. Without a schedule there are no rows `cycles`, `links` and `piece`, and
//! `before:` and `after:` have no cycle; with one, this is said of transfers that go to other processors alone.
//!
//! # Note: Families of rows
//! `before(4 * i): x[i + 46 * j, 0], words: 16 -> [y[1 + i + 46 * j, 8]] for j in 0..32, i in 0..45;` stands for the rows of all
//! indices, the last one fastest. Every number of a row may be a sum of a number and multiples of indices, which start
//! at 0. See [`RowFamily`].
//!
//! Invariants: `from_rows ∘ to_rows` is the identity on tables that the passes make. Nothing that rows may hold makes
//! [`from_rows`] panic or use memory out of proportion to the graph; whether they *hold* is for the verifiers.

mod families;

pub use families::{Dim, MAX_RANK, Numbers, RowFamily, fold};

use super::landing::add;
use girder_ir::ids::CopyId;
use girder_ir::plan::{
    Buffer, FieldLandings, Grouping, Landing, Loc, LocalCopy, Object, Phase, StepPlan, To, Transfer,
};
use girder_ir::schedule::{PhaseSchedule, Served, StepSchedule, TransferSlice};

/// Rows, buffers and receivers that the families of a step may stand for, all together.
const MAX_ENTRIES: u64 = 1 << 26;

/// One row of the table of a compute set or copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// `cycles(phase, first..first + count): cycles;`
    Cycles {
        /// Which phase.
        phase: When,
        /// The first processor.
        first: u32,
        /// How many, at least 1.
        count: u32,
        /// From the first word of each to its last.
        cycles: u32,
    },
    /// `links(phase): cycles;`
    Links {
        /// Which phase.
        phase: When,
        /// Of the words between processors.
        cycles: u32,
    },
    /// `carries: copy;`
    Carries {
        /// The copy that moves in the phase before.
        copy: CopyId,
    },
    /// `buffer(first..first + count): tile: …, next: …, bytes: …;`
    Buffers {
        /// Number of the first.
        first: u32,
        /// How many, at least 1.
        count: u32,
        /// Tile of the first.
        tile: u32,
        /// Tiles from one to the next.
        next: i32,
        /// Bytes of each.
        bytes: u32,
    },
    /// `field(family, field, first..first + count): …;`
    Landings {
        /// Family of the compute set, by position.
        family: u32,
        /// Field of the family, by position.
        field: u32,
        /// First instance.
        first: u64,
        /// How many, at least 1.
        count: u64,
        /// Where they land.
        at: Landed,
    },
    /// `gather_before: from, bytes: …, count: …, steps: [from, to] -> to;`, and `spread_before`, `gather_after`,
    /// `spread_after`.
    Copy {
        /// Which phase.
        phase: When,
        /// `gather` (before the transfers) or `spread` (after them).
        gather: bool,
        /// What is copied.
        copy: LocalCopy,
    },
    /// `before(start, paired): from, words: … -> [to, …];`
    Transfer {
        /// Which phase.
        phase: When,
        /// Its first cycle and whether it is paired, once scheduled.
        start: Option<(u32, bool)>,
        /// First word.
        from: Loc,
        /// How many.
        words: u32,
        /// Groups of receivers, at least one.
        to: Vec<Receivers>,
    },
    /// `piece(phase, transfer, start, paired): first..first + words, to: [receiver, …];`
    Slice {
        /// Which phase.
        phase: When,
        /// What is moved, from which cycle. Whom it serves is read from `to`.
        piece: TransferSlice,
        /// Ranges of receivers, by position (first, count); empty where it serves all.
        to: Vec<(u32, u32)>,
    },
}

/// The phase before the vertices run, or after.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum When {
    Before,
    After,
}

/// Landings of instances that follow one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Landed {
    /// `byte: …, step: …, strides: […]`
    InPlace {
        /// Byte of the first instance in its block.
        byte: u32,
        /// Bytes from one instance to the next.
        step: i64,
        /// Bytes per axis.
        strides: Vec<i32>,
    },
    /// `buffer: …, next: …, byte: …, step: …`
    Buffer {
        /// Buffer of the first instance.
        buffer: u32,
        /// Buffers from one instance to the next.
        next: i64,
        /// Byte of the first instance.
        byte: u32,
        /// Bytes from one instance to the next.
        step: i64,
    },
}

/// Receivers at one byte of the same variable on neighbouring tiles, or of neighbouring buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receivers {
    /// The first. The tile of a buffer is not read: the buffer knows it.
    pub first: Loc,
    /// How many, at least 1.
    pub count: u32,
}

/// The table of one step as rows: cycles, buffers, landings by family and field, then what moves in the order in which
/// it moves. `landings` is by family and field (empty for a copy).
pub fn to_rows(plan: &StepPlan, landings: &[&[FieldLandings]], schedule: Option<&StepSchedule>) -> Vec<Row> {
    let mut rows = vec![];
    if let Some(s) = schedule {
        cycle_rows(&s.before, When::Before, &mut rows);
        cycle_rows(&s.after, When::After, &mut rows);
    }
    rows.extend(plan.carries.map(|copy| Row::Carries { copy }));
    buffer_rows(&plan.buffers, &mut rows);
    for (family, fields) in landings.iter().enumerate() {
        for (field, all) in fields.iter().enumerate() {
            landing_rows(family as u32, field as u32, all, &mut rows);
        }
    }
    phase_rows(&plan.before, When::Before, schedule.map(|s| &s.before), &mut rows);
    phase_rows(&plan.after, When::After, schedule.map(|s| &s.after), &mut rows);
    rows
}

fn cycle_rows(schedule: &PhaseSchedule, phase: When, rows: &mut Vec<Row>) {
    for same in schedule.cycles.chunk_by(|a, b| (a.0 + 1, a.1) == *b) {
        let (first, cycles) = same[0];
        rows.push(Row::Cycles { phase, first, count: same.len() as u32, cycles });
    }
    if schedule.link_cycles > 0 {
        rows.push(Row::Links { phase, cycles: schedule.link_cycles });
    }
}

fn buffer_rows(buffers: &[Buffer], rows: &mut Vec<Row>) {
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

/// A landing as numbers that may advance evenly: its kind (with its strides), buffer, byte.
fn numbers(all: &FieldLandings, instance: usize) -> (u32, i64, i64) {
    match all.at[instance] {
        Landing::InPlace(byte) => (1 + all.strides_of[instance], 0, byte as i64),
        Landing::Buffer { buffer, offset } => (0, buffer as i64, offset as i64),
    }
}

fn landing_rows(family: u32, field: u32, all: &FieldLandings, rows: &mut Vec<Row>) {
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
            Landing::InPlace(byte) => {
                Landed::InPlace { byte, step, strides: all.strides[all.strides_of[k] as usize].clone() }
            }
            Landing::Buffer { buffer, offset } => Landed::Buffer { buffer, next, byte: offset, step },
        };
        rows.push(Row::Landings { family, field, first: k as u64, count: count as u64, at });
        k += count;
    }
}

fn phase_rows(phase: &Phase, when: When, schedule: Option<&PhaseSchedule>, rows: &mut Vec<Row>) {
    rows.extend(phase.before.iter().map(|&copy| Row::Copy { phase: when, gather: true, copy }));
    let mut pieces = schedule.map_or(&[][..], |s| &s.slices);
    let mut cut = vec![];
    let grouped: Vec<Vec<Receivers>> = phase.groups.iter().map(|places| groups(places)).collect();
    for (k, transfer) in (0..).zip(&phase.transfers) {
        let (own, rest) = pieces.split_at(pieces.iter().take_while(|p| p.transfer == k).count());
        pieces = rest;
        let start = match own {
            [TransferSlice { first: 0, words, to: Served::All, start, paired, .. }] if *words == transfer.words => {
                Some((*start, *paired))
            }
            _ => {
                cut.extend_from_slice(own);
                None
            }
        };
        let to = match transfer.to {
            To::One(first) => vec![Receivers { first, count: 1 }],
            To::Group { group, offset } => behind(&grouped[group as usize], offset),
        };
        rows.push(Row::Transfer { phase: when, start, from: transfer.from, words: transfer.words, to });
    }
    for piece in cut {
        let to = match (piece.to, schedule) {
            (Served::Some { first, count }, Some(s)) => ranges(&s.served[first as usize..(first + count) as usize]),
            _ => vec![],
        };
        rows.push(Row::Slice { phase: when, piece, to });
    }
    rows.extend(phase.after.iter().map(|&copy| Row::Copy { phase: when, gather: false, copy }));
}

/// Ascending numbers as ranges (first, count).
fn ranges(list: &[u32]) -> Vec<(u32, u32)> {
    list.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len() as u32)).collect()
}

/// Receivers in as few groups as their order allows.
fn groups(to: &[Loc]) -> Vec<Receivers> {
    let mut result: Vec<Receivers> = vec![];
    for &loc in to {
        match result.last_mut() {
            Some(last) if member(last.first, last.count).is_some_and(|m| same(m, loc)) => last.count += 1,
            _ => result.push(Receivers { first: loc, count: 1 }),
        }
    }
    result
}

/// The same, so many bytes behind.
fn behind(groups: &[Receivers], offset: u32) -> Vec<Receivers> {
    let shifted = |r: &Receivers| Receivers { first: Loc { offset: r.first.offset + offset, ..r.first }, ..*r };
    groups.iter().map(shifted).collect()
}

/// The k-th of a group that begins here, but for the tile of a buffer.
fn member(first: Loc, k: u32) -> Option<Loc> {
    Some(match first.object {
        Object::Var(_) => Loc { tile: first.tile.checked_add(k)?, ..first },
        Object::Buffer(b) => Loc { object: Object::Buffer(b.checked_add(k)?), ..first },
    })
}

fn same(a: Loc, b: Loc) -> bool {
    let tiles = a.tile == b.tile || matches!(b.object, Object::Buffer(_));
    a.object == b.object && a.offset == b.offset && tiles
}

/// The tables of one step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tables {
    /// What moves.
    pub plan: StepPlan,
    /// Where fields land, by family and field.
    pub landings: Vec<Vec<FieldLandings>>,
    /// When it moves, if the rows say so.
    pub schedule: Option<StepSchedule>,
}

/// The tables that families of rows stand for. `families` says of each family of the step how many instances and how many fields
/// it has (nothing for a copy).
///
/// # Errors
/// The first row that cannot be understood, by index, and why; what is missing at the end is said of the last row.
pub fn from_rows(rows: &[RowFamily], families: &[(u64, usize)]) -> Result<Tables, (usize, String)> {
    let mut reader = Reader {
        tables: Tables {
            landings: families.iter().map(|f| vec![FieldLandings::default(); f.1]).collect(),
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
        spent.and_then(|()| row.each(|row| reader.row(&row))).map_err(|message| (k, message))?;
    }
    reader.finish().map_err(|message| (rows.len().saturating_sub(1), message))
}

struct Reader<'a> {
    tables: Tables,
    families: &'a [(u64, usize)],
    schedule: StepSchedule,
    /// Whether a row said anything of it.
    scheduled: bool,
    /// Rows, buffers and receivers that may still come.
    entries: u64,
    /// Of the phase before and the phase after.
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
            Row::Slice { phase, piece, to } => self.piece(*phase, *piece, to),
            &Row::Buffers { first, count, tile, next, bytes } => self.buffers(first, count, tile, next, bytes),
            Row::Landings { family, field, first, count, at } => self.landings(*family, *field, *first, *count, at),
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
            When::Before => &mut self.schedule.before,
            When::After => &mut self.schedule.after,
        }
    }

    fn piece(&mut self, when: When, mut piece: TransferSlice, to: &[(u32, u32)]) -> Result<(), String> {
        let count = to.iter().fold(0u32, |n, r| n.saturating_add(r.1));
        spend(&mut self.entries, count)?;
        let schedule = self.timed(when);
        piece.to = match count {
            0 => Served::All,
            count => Served::Some { first: schedule.served.len() as u32, count },
        };
        for &(first, count) in to {
            let end = first.checked_add(count).ok_or("there is no such receiver")?;
            schedule.served.extend(first..end);
        }
        schedule.slices.push(piece);
        Ok(())
    }

    /// A place with the tile of its buffer filled in.
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

    fn landings(&mut self, family: u32, field: u32, first: u64, count: u64, at: &Landed) -> Result<(), String> {
        let instances = self.families.get(family as usize).ok_or_else(|| format!("there is no family {family}"))?.0;
        let fields = &mut self.tables.landings[family as usize];
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
                Landed::InPlace { byte, step, strides } => {
                    add(all, Landing::InPlace(advance(*byte, k, *step)?), strides)
                }
                &Landed::Buffer { buffer, next, byte, step } => {
                    let (buffer, offset) = (advance(buffer, k, next)?, advance(byte, k, step)?);
                    add(all, Landing::Buffer { buffer, offset }, &[]);
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
        let mut to = vec![];
        for group in groups {
            spend(&mut self.entries, group.count)?;
            for k in 0..group.count {
                let member = member(group.first, k).ok_or("there is no such receiver")?;
                to.push(self.place(member)?);
            }
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
        let missing = |(f, fields): (usize, &Vec<FieldLandings>)| {
            let wanted = self.families[f].0;
            let short = |l: &FieldLandings| (l.at.len() as u64) < wanted;
            fields.iter().position(short).map(|k| (f, k))
        };
        if let Some((family, field)) = self.tables.landings.iter().enumerate().find_map(missing) {
            return Err(format!("field {field} of family {family} has vertices without a landing"));
        }
        for schedule in [&mut self.schedule.before, &mut self.schedule.after] {
            schedule.slices.sort_by_key(|p| p.transfer);
        }
        self.tables.plan.before.groups = self.groups.0.into_groups();
        self.tables.plan.after.groups = self.groups.1.into_groups();
        self.tables.schedule = self.scheduled.then_some(self.schedule);
        Ok(self.tables)
    }
}
