//! Emits the code of a machine program.
//!
//! A kernel is called with the record in `rdi` and the number of iterations in `rsi`, by the System V convention, and
//! preserves the registers that this convention requires. `rax` is the first iteration of the current group.
//!
//! ```text
//! constants
//! entry: loop invariants
//! trip:  what is the same in all groups of a trip            (if there is an outer loop)
//!        unrolled groups, while there are enough             (omitted if the trip count is known to be too low)
//!        single groups                                       (likewise)
//!        the last, incomplete group, under a mask            (likewise)
//!        the next trip, if there is an outer loop
//!        combination of parallel accumulators, and stores of all accumulators to the record
//! ```
//!
//! With AVX2 a body has the instructions for both halves of a group. The last group has a body of its own, for which
//! `rsi + 4 * rdx` points to a mask for each iteration.
//!
//! - `last`: the incomplete group at the end
//!
//! Invariant: lanes beyond the number of iterations load nothing, store nothing, and leave accumulators unchanged.

mod last;

use super::constants::{WINDOW, constants};
use super::encode::{Bytes, Gpr, Jump, Masking, R14, RAX, RDI, RDX, RSI, RSP, Rm};
use super::inst::{Class, Item, Reg};
use super::interleave::interleaved;
use super::level::{MOST_UNROLLED, SPARE};
use super::pairs::*;
use super::program::{Carried, Moving, Program};
use super::registers::{Registers, pressure};
use super::{Level, Machine, Options};
use crate::ir::GROUP;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Registers for pointers; those from the sixth on are callee-saved.
const POINTERS: [Gpr; 10] = [Gpr(1), Gpr(8), Gpr(9), Gpr(10), Gpr(11), Gpr(3), Gpr(5), Gpr(12), Gpr(13), Gpr(14)];
const CALLER_SAVES: usize = 5;
/// A scratch register for pointers that have no register.
pub(super) const OTHER_POINTER: Gpr = Gpr(15);

/// Returns the registers for a program's pointers. With AVX2, the last one is reserved for the bits of masks.
pub(super) fn pointers(level: Level) -> &'static [Gpr] {
    let count = POINTERS.len() - usize::from(level == Level::Avx2);
    &POINTERS[..count]
}

/// Emits the code of a pruned program.
pub(super) fn emit(program: &Program, options: &Options) -> Machine {
    let known = options.iterations;
    let groups = known.map_or(u64::MAX, |n| n / GROUP);
    let row = if options.interleave { interleaved(program, groups) } else { None };
    let (program, unroll) = match &row {
        Some((program, groups)) => (program, *groups),
        None => (program, (unroll_factor(program) as u64).min(groups).max(1) as usize),
    };
    let (pool, mut out) = constants(program);
    out.listing = options.listing.then(String::new);
    let entry = out.bytes.len();
    // The last group may overlap the one before, so that it ends with the last iteration.
    let still = program.carried.is_empty() && program.pointers.iter().all(Moving::stays);
    let overlaps = options.idempotent && still && known.is_some_and(|n| n >= GROUP);
    let r = Registers::new(program, out, pool);
    let delays = still && !overlaps && known.is_some_and(|n| n > GROUP && n % GROUP > 0) && program.stores_last();
    let mut emit = Emit {
        program,
        r,
        carried: Vec::new(),
        lasting: program.lasting(),
        unroll,
        overlaps,
        delays,
        delayed: SmallVec::new(),
        has_masks: false,
    };
    emit.kernel(known);
    let Bytes { bytes, listing, .. } = emit.r.out;
    Machine { bytes, entry, listing, kernel: None }
}

/// Returns the unroll factor. A small body is unrolled more: its groups share the cost of a jump and overlap their
/// latencies.
fn unroll_factor(program: &Program) -> usize {
    let vectors = if program.level == Level::Avx2 { 2 } else { 1 };
    match program.body.len() / vectors {
        0..=8 => MOST_UNROLLED,
        9..=20 => 2,
        _ => 1,
    }
}

/// The state of emitting a kernel.
pub(super) struct Emit<'p> {
    pub(super) program: &'p Program,
    pub(super) r: Registers<'p>,
    /// The register of each carried value, for each unrolled group.
    carried: Vec<SmallVec<[u8; 4]>>,
    /// The loop invariants that are read after the code that makes them.
    lasting: FxHashSet<Reg>,
    unroll: usize,
    /// Whether the last group repeats some iterations instead of masking lanes.
    overlaps: bool,
    /// Whether the last group is computed before the others and stored after them.
    delays: bool,
    /// The registers of what it stores.
    delayed: SmallVec<[u8; 2]>,
    /// Whether the masks of the incomplete group exist.
    has_masks: bool,
}

/// The position of a group among the unrolled ones.
#[derive(Clone, Copy)]
pub(super) struct Group {
    pub n: usize,
    /// Whether it is the incomplete group.
    pub tail: bool,
}

impl Emit<'_> {
    fn kernel(&mut self, known: Option<u64>) {
        let registers = pointers(self.program.level);
        let saved = self.program.pointers.len().min(registers.len()).saturating_sub(CALLER_SAVES);
        let others = self.program.pointers.len() > registers.len();
        let mut pushed: SmallVec<[Gpr; 8]> = POINTERS[CALLER_SAVES..CALLER_SAVES + saved].into();
        pushed.extend(others.then_some(OTHER_POINTER));
        // This register holds the bits of a mask.
        pushed.extend((self.program.level == Level::Avx2).then_some(R14));
        pushed.iter().for_each(|&r| self.r.out.push(r));
        let frame = self.r.out.add(RSP, 0);
        for (pointer, &register) in self.program.pointers.iter().zip(registers) {
            self.r.out.load(register, RDI, pointer.offset as i32);
        }
        self.before();
        match self.program.outer.zip(known) {
            Some((trips, iterations)) => self.outer_loop(trips, iterations),
            None => {
                self.r.out.clear_rax();
                self.groups(known);
            }
        }
        self.finish();
        let bytes = self.r.frame;
        self.r.out.set_number(frame, -bytes);
        self.r.out.add(RSP, bytes);
        pushed.iter().rev().for_each(|&r| self.r.out.pop(r));
        self.r.out.leave();
    }

    /// Emits the loop invariants.
    fn before(&mut self) {
        let program = self.program;
        self.hold_carried();
        if self.delays {
            let stores = program.body.iter().filter(|item| matches!(item, Item::Do(_)));
            self.delayed = stores.map(|_| self.r.hold_another()).collect();
        }
        self.hold_invariants();
        let starts: Vec<Reg> = program.carried.iter().filter_map(Carried::start).collect();
        self.invariants(&program.before, &starts);
        self.begin_carried();
        self.r.end();
    }

    /// Allocates registers for as many loop invariants as fit.
    fn hold_invariants(&mut self) {
        let program = self.program;
        let uses = |reg: Reg| {
            let of = |item: &Item| match item {
                Item::Make(made) => {
                    let inst = program.made[made.0 as usize].as_ref();
                    inst.map_or(0, |i| i.args.iter().filter(|&&a| a == reg).count())
                }
                Item::Do(effect) => effect.reads().iter().filter(|&&a| a == reg).count(),
            };
            let steps = |c: &Carried| usize::from(matches!(c, Carried::Index { by, .. } if *by == reg));
            program.body.iter().map(of).sum::<usize>() + program.carried.iter().map(steps).sum::<usize>()
        };
        let carried = self.carried.iter().map(|registers| registers.len()).sum::<usize>() + self.delayed.len();
        let pressure = |items: &[Item]| pressure(program, items, Class::Vector);
        let pressure = pressure(&program.body).max(pressure(&program.row));
        let room = usize::from(program.level.registers()).saturating_sub(pressure + SPARE + carried);
        let mut held: Vec<(bool, usize, Reg)> = program
            .before
            .iter()
            .chain(&program.trip)
            .filter(|r| program.classes[r.0 as usize] == Class::Vector)
            .map(|&r| (self.r.is_rematerialized(r), uses(r), r))
            .filter(|h| h.1 > 0)
            .collect();
        held.sort_by_key(|&(again, uses, reg)| (again, std::cmp::Reverse(uses), reg));
        held.truncate(room);
        held.iter().for_each(|h| {
            self.r.hold(h.2);
        });
    }

    /// Begins straight-line code with some invariants, which end in the registers that hold them or in their slots.
    /// `after` are those that the code needs at its end.
    fn invariants(&mut self, invariants: &[Reg], after: &[Reg]) {
        let items: Vec<Item> = invariants.iter().map(|&reg| Item::Make(reg)).collect();
        self.r.begin(&items, after);
        for (at, &reg) in invariants.iter().enumerate() {
            self.r.go_to(at);
            if self.r.is_rematerialized(reg) {
                if let Some(n) = self.r.held(reg) {
                    self.r.fetch(reg, n);
                }
                continue;
            }
            self.make(reg, Group { n: 0, tail: false });
            if self.r.held(reg).is_none() && self.lasting.contains(&reg) {
                let n = self.r.operand(reg);
                self.r.save(reg, n, true);
                self.r.drop_dead(&[reg]);
            }
        }
    }

    /// Allocates registers for carried values.
    fn hold_carried(&mut self) {
        for carried in &self.program.carried {
            let mut registers: SmallVec<[u8; 4]> = [self.r.hold(carried.reg())].as_slice().into();
            if carried.is_parallel() {
                registers.extend((1..self.unroll).map(|_| self.r.hold_another()));
            }
            self.carried.push(registers);
        }
    }

    /// Initializes the registers of carried values before the groups. Each initialization is a step of its own, so that
    /// few registers suffice for any number of them.
    fn begin_carried(&mut self) {
        let none = Masking::default();
        let end = self.program.before.len();
        for (carried, registers) in self.program.carried.iter().zip(&self.carried) {
            let copied = match carried {
                Carried::Accumulator { at, start: None, .. } => {
                    let from = Rm::Memory { base: RDI, index: None, offset: at.offset as i32 };
                    self.r.out.vector(LOAD[0], registers[0], None, from, none, None);
                    &registers[1..]
                }
                Carried::Accumulator { .. } | Carried::Index { .. } => &registers[..],
            };
            if let Some(start) = carried.start() {
                self.r.go_to(end);
                let start = self.r.operand(start);
                for &n in copied {
                    self.r.out.vector(COPY[0], n, None, Rm::Register(start), none, None);
                }
            }
        }
    }

    /// Emits the loop around the groups, whose trip count is in the record. The masks of the incomplete group are the
    /// same in all trips.
    fn outer_loop(&mut self, trips: u32, iterations: u64) {
        let has_tail = !self.overlaps && !self.delays && !iterations.is_multiple_of(GROUP);
        if has_tail && self.program.level == Level::Avx512 {
            self.r.out.copy(RDX, RSI);
            self.r.out.and(RDX, GROUP as i32 - 1);
            self.tail_masks(RAX);
            self.has_masks = true;
        }
        self.r.out.align(32);
        let head = self.r.out.bytes.len();
        self.invariants(&self.program.trip, &[]);
        self.r.end();
        self.r.out.clear_rax();
        self.groups(Some(iterations));
        self.next_trip(iterations);
        if has_tail {
            // The incomplete group may have changed it.
            self.r.out.set(RSI, iterations as i32);
        }
        self.r.out.add_in_memory(RDI, trips as i32, -1);
        self.r.out.jump_back(Jump::NotEqual, head);
    }

    /// Moves the pointers to the next trip of the outer loop.
    fn next_trip(&mut self, iterations: u64) {
        let registers = pointers(self.program.level);
        for (n, pointer) in self.program.pointers.iter().enumerate() {
            let whole = (iterations - iterations % GROUP) as i64;
            let moved = if pointer.stays() { 0 } else { pointer.stride * whole };
            let ahead = (pointer.outer - moved) as i32;
            match registers.get(n) {
                _ if ahead == 0 => {}
                Some(&register) => {
                    self.r.out.add(register, ahead);
                }
                None => self.r.out.add_in_memory(RDI, pointer.offset as i32, ahead),
            }
        }
    }

    fn groups(&mut self, known: Option<u64>) {
        if self.delays {
            self.point_to_last_group();
            self.compute_delayed();
            self.r.out.clear_rax();
        }
        let tail_is_first = self.tail_is_first() && known.is_none_or(|n| n % GROUP != 0);
        if tail_is_first {
            self.first_tail(known.is_none());
        }
        let row = self.unroll as u64 * GROUP;
        if known.is_none_or(|n| n >= row) {
            self.rows(self.unroll, known.map(|n| n / row));
        }
        if self.unroll > 1 && known.is_none_or(|n| n % row >= GROUP) {
            self.rows(1, known.map(|n| n % row / GROUP));
        }
        if tail_is_first || known.is_some_and(|n| n % GROUP == 0) {
            return;
        }
        if self.overlaps || self.delays {
            self.point_to_last_group();
            return if self.delays { self.store_delayed() } else { self.group(Group { n: 0, tail: false }) };
        }
        self.r.out.copy(RDX, RSI);
        self.r.out.and(RDX, GROUP as i32 - 1);
        let none = known.is_none().then(|| self.r.out.jump(Jump::Equal));
        if self.program.level == Level::Avx2 {
            self.r.out.negate_rdx();
            self.r.out.point_rsi(self.r.pool.get(&WINDOW).map_or(0, |at| at + 64));
        } else {
            self.tail_masks(RSI);
        }
        self.group(Group { n: 0, tail: true });
        none.into_iter().for_each(|jump| self.r.out.land(jump));
    }

    /// Emits the loop over whole groups, `unroll` at a time. With a known trip count of one there is no loop.
    fn rows(&mut self, unroll: usize, trips: Option<u64>) {
        let row = unroll as i32 * GROUP as i32;
        let is_loop = trips != Some(1);
        if is_loop {
            self.r.out.copy(RDX, RSI);
            self.r.out.and(RDX, -row);
        }
        let skip = trips.is_none().then(|| {
            self.r.out.compare(RAX, RDX);
            self.r.out.jump(Jump::AboveOrEqual)
        });
        if unroll > 1 && is_loop {
            self.r.out.align(32);
        }
        let head = self.r.out.bytes.len();
        match unroll > 1 && !self.program.row.is_empty() {
            true => self.row(),
            false => (0..unroll).for_each(|n| self.group(Group { n, tail: false })),
        }
        self.r.out.add(RAX, row);
        for (n, pointer) in self.program.pointers.iter().enumerate().filter(|p| !p.1.stays()) {
            let ahead = pointer.stride as i32 * row;
            match pointers(self.program.level).get(n) {
                Some(&r) => {
                    self.r.out.add(r, ahead);
                }
                None => self.r.out.add_in_memory(RDI, pointer.offset as i32, ahead),
            }
        }
        if is_loop {
            self.r.out.compare(RAX, RDX);
            self.r.out.jump_back(Jump::Below, head);
        }
        skip.into_iter().for_each(|jump| self.r.out.land(jump));
    }

    /// Emits the body for several interleaved groups.
    fn row(&mut self) {
        let program = self.program;
        self.r.begin(&program.row, &program.row_steps);
        let ahead = program.row.len() - program.body.len() * self.unroll;
        for (at, item) in program.row.iter().enumerate() {
            let group = Group { n: at.saturating_sub(ahead) % self.unroll, tail: false };
            self.accumulate_in(group);
            self.item((at, item), group);
        }
        self.grow(program.row.len(), &program.row_steps);
        self.r.end();
    }

    /// Selects the accumulators of a group.
    fn accumulate_in(&mut self, group: Group) {
        for (carried, registers) in self.program.carried.iter().zip(&self.carried) {
            if let Carried::Accumulator { reg, .. } = carried {
                self.r.hold_in(*reg, registers[group.n.min(registers.len() - 1)]);
            }
        }
    }

    /// Emits the body for one group.
    fn group(&mut self, group: Group) {
        let program = self.program;
        self.accumulate_in(group);
        let steps: Vec<Reg> = program.carried.iter().filter_map(Carried::by).collect();
        let body = if group.tail && program.level == Level::Avx2 { &program.tail } else { &program.body };
        self.r.begin(body, &steps);
        self.items(body, group);
        self.grow(body.len(), &steps);
        self.r.end();
    }

    /// Advances each index by its step at the end of a body.
    fn grow(&mut self, end: usize, steps: &[Reg]) {
        let ramps = self.program.carried.iter().zip(&self.carried).filter_map(|(carried, registers)| match carried {
            Carried::Index { code, .. } => Some((*code, registers[0])),
            Carried::Accumulator { .. } => None,
        });
        for ((code, n), &by) in ramps.zip(steps) {
            self.r.go_to(end);
            let by = self.r.operand(by);
            self.r.out.vector(code, n, Some(n), Rm::Register(by), Masking::default(), None);
        }
    }

    fn items(&mut self, items: &[Item], group: Group) {
        items.iter().enumerate().for_each(|item| self.item(item, group));
    }

    fn item(&mut self, (at, item): (usize, &Item), group: Group) {
        self.r.go_to(at);
        match item {
            Item::Make(reg) => {
                self.make(*reg, group);
                self.r.drop_dead(&[*reg]);
            }
            Item::Do(effect) => self.effect(effect, group),
        }
    }

    /// Combines parallel accumulators, and stores all accumulators to the record.
    fn finish(&mut self) {
        let program = self.program;
        for (carried, registers) in program.carried.iter().zip(self.carried.clone()) {
            let Carried::Accumulator { reg, at, parallel, .. } = carried else { continue };
            self.r.hold_in(*reg, registers[0]);
            for &other in registers.iter().skip(1) {
                let Some(parallel) = parallel else { continue };
                self.r.hold_in(parallel.value, other);
                let items: Vec<Item> = program.body[parallel.items.clone()].to_vec();
                self.r.begin(&items, &[]);
                self.items(&items, Group { n: 0, tail: false });
                self.r.end();
                self.r.release(parallel.value);
            }
            let to = Rm::Memory { base: RDI, index: None, offset: at.offset as i32 };
            self.r.out.vector(STORE[0], registers[0], None, to, Masking::default(), None);
        }
    }
}
