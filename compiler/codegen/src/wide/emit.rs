//! A program's machine code.
//!
//! A strip is called with the record in `rdi` and the number of places in `rsi`, as the System V convention passes them,
//! and touches only what that convention lets a callee touch. `rax` is the first place of the group that runs.
//!
//! ```text
//! constants
//! entry: what is the same for all places
//!        groups, some in a row, while there are enough      (unless it is known that there are not)
//!        single groups                                      (likewise)
//!        what is left, under a mask                         (likewise)
//!        accumulators that ran apart are taken together; all go to the record
//! ```
//!
//! Where vectors have 256 bits, a body has the instructions for both halves of a group; what is left has a body of its own,
//! for which `rsi + 4 * rdx` points to a mask for each place.
//!
//! Invariant: lanes beyond the number of places load nothing, store nothing, and leave accumulators as they are.

use super::codes::*;
use super::constants::{WINDOW, constants};
use super::encode::{Bytes, Gpr, Jump, Masking, R14, RAX, RDI, RDX, RSI, RSP, Rm};
use super::halves::halves;
use super::inst::{Class, Item, Reg, Width};
use super::program::{Carried, LANES, Program};
use super::registers::{Registers, TAIL, TAIL_UPPER, pressure};
use super::weave::woven;
use smallvec::SmallVec;

/// Machine code, and where it begins to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Strip {
    pub bytes: Vec<u8>,
    pub entry: usize,
    /// The same for people, if it was wanted.
    pub listing: Option<String>,
}

/// Registers for pointers; a callee has to restore those from the sixth on.
const POINTERS: [Gpr; 10] = [Gpr(1), Gpr(8), Gpr(9), Gpr(10), Gpr(11), Gpr(3), Gpr(5), Gpr(12), Gpr(13), Gpr(14)];
const CALLER_SAVES: usize = 5;
/// For pointers that have no register.
pub(super) const OTHER_POINTER: Gpr = Gpr(15);

/// The registers that a program's pointers may have: with halves, the last one holds the bits of masks.
pub(super) fn pointers(width: Width) -> &'static [Gpr] {
    let count = POINTERS.len() - usize::from(width == Width::Half);
    &POINTERS[..count]
}
/// Groups that run in a row at most, each with lanes of its own where their order does not matter.
pub(crate) const MOST_ABREAST: usize = 4;
/// Vectors that are never held, besides what a body makes.
pub(super) const SPARE: usize = 4;

/// What is known of the places that a strip runs.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Places {
    /// How many there are.
    pub known: Option<u64>,
    /// Running one twice does no harm.
    pub idempotent: bool,
}

/// Translates a program from which nothing can be left out, for vectors of some width.
pub(crate) fn assemble(program: &Program, width: Width, places: Places, listed: bool) -> Strip {
    let half = (width == Width::Half).then(|| halves(program));
    let program = half.as_ref().unwrap_or(program);
    let known = places.known;
    let groups = known.map_or(u64::MAX, |n| n / LANES);
    let woven = woven(program, groups);
    let (program, abreast) = match &woven {
        Some((program, abreast)) => (program, *abreast),
        None => (program, (abreast(program) as u64).min(groups).max(1) as usize),
    };
    let (pool, mut out) = constants(program);
    out.listing = listed.then(String::new);
    let entry = out.bytes.len();
    // The last group can end with the last place.
    let still = program.carried.is_empty() && program.pointers.iter().all(|p| p.unit);
    let overlaps = places.idempotent && still && known.is_some_and(|n| n >= LANES);
    let mut emit = Emit { program, r: Registers::new(program, out, pool), carried: Vec::new(), abreast, overlaps };
    emit.strip(known);
    let Bytes { bytes, listing, .. } = emit.r.out;
    Strip { bytes, entry, listing }
}

/// How many groups run in a row: a small body shares the cost of a turn, and keeps more of its sums going.
fn abreast(program: &Program) -> usize {
    let vectors = if program.width == Width::Half { 2 } else { 1 };
    match program.body.len() / vectors {
        0..=8 => MOST_ABREAST,
        9..=20 => 2,
        _ => 1,
    }
}

pub(super) struct Emit<'p> {
    pub(super) program: &'p Program,
    pub(super) r: Registers<'p>,
    /// The register of each carried value, for each of the groups in a row.
    carried: Vec<SmallVec<[u8; 4]>>,
    abreast: usize,
    /// The last group runs some places again instead of leaving lanes out.
    overlaps: bool,
}

/// Which group of those in a row.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub n: usize,
    /// Only the places under the mask are there.
    pub tail: bool,
}

impl Emit<'_> {
    fn strip(&mut self, known: Option<u64>) {
        let registers = pointers(self.program.width);
        let saved = self.program.pointers.len().min(registers.len()).saturating_sub(CALLER_SAVES);
        let others = self.program.pointers.len() > registers.len();
        let mut pushed: SmallVec<[Gpr; 8]> = POINTERS[CALLER_SAVES..CALLER_SAVES + saved].into();
        pushed.extend(others.then_some(OTHER_POINTER));
        // It holds the bits of a mask.
        pushed.extend((self.program.width == Width::Half).then_some(R14));
        pushed.iter().for_each(|&r| self.r.out.push(r));
        let frame = self.r.out.add(RSP, 0);
        for (pointer, &register) in self.program.pointers.iter().zip(registers) {
            self.r.out.load(register, RDI, pointer.offset as i32);
        }
        self.before();
        self.r.out.clear_rax();
        self.groups(known);
        self.finish();
        let bytes = self.r.frame;
        self.r.out.set_number(frame, -bytes);
        self.r.out.add(RSP, bytes);
        pushed.iter().rev().for_each(|&r| self.r.out.pop(r));
        self.r.out.leave();
    }

    /// What is the same for all groups: as much as there is room for stays in registers.
    fn before(&mut self) {
        let program = self.program;
        self.hold_carried();
        let items: Vec<Item> = program.before.iter().map(|&reg| Item::Make(reg)).collect();
        let uses = |reg: Reg| {
            let of = |item: &Item| match item {
                Item::Make(made) => {
                    let inst = program.made[made.0 as usize].as_ref();
                    inst.map_or(0, |i| i.args.iter().filter(|&&a| a == reg).count())
                }
                Item::Do(effect) => effect.reads().iter().filter(|&&a| a == reg).count(),
            };
            let steps = |c: &Carried| usize::from(matches!(c, Carried::Ramp { by, .. } if *by == reg));
            program.body.iter().map(of).sum::<usize>() + program.carried.iter().map(steps).sum::<usize>()
        };
        let carried: usize = self.carried.iter().map(|registers| registers.len()).sum();
        let pressure = |items: &[Item]| pressure(program, items, Class::Vector);
        let pressure = pressure(&program.body).max(pressure(&program.row));
        let room = usize::from(program.width.registers()).saturating_sub(pressure + SPARE + carried);
        let mut held: Vec<(bool, usize, Reg)> = program
            .before
            .iter()
            .filter(|r| program.classes[r.0 as usize] == Class::Vector)
            .map(|&r| (self.r.is_made_again(r), uses(r), r))
            .filter(|h| h.1 > 0)
            .collect();
        held.sort_by_key(|&(again, uses, reg)| (again, std::cmp::Reverse(uses), reg));
        held.truncate(room);
        held.iter().for_each(|h| {
            self.r.hold(h.2);
        });
        let starts: Vec<Reg> = program.carried.iter().filter_map(Carried::start).collect();
        self.r.begin(&items, &starts);
        for (at, &reg) in program.before.iter().enumerate() {
            self.r.at(at);
            if self.r.is_made_again(reg) {
                if let Some(n) = self.r.held(reg) {
                    self.r.fetch(reg, n);
                }
                continue;
            }
            self.make(reg, Turn { n: 0, tail: false });
            if self.r.held(reg).is_none() {
                let n = self.r.operand(reg);
                self.r.save(reg, n, true);
                self.r.drop_dead(&[reg]);
            }
        }
        self.begin_carried();
        self.r.end();
    }

    /// Gives what is carried its registers.
    fn hold_carried(&mut self) {
        for carried in &self.program.carried {
            let mut registers: SmallVec<[u8; 4]> = [self.r.hold(carried.reg())].as_slice().into();
            if carried.is_apart() {
                registers.extend((1..self.abreast).map(|_| self.r.hold_another()));
            }
            self.carried.push(registers);
        }
    }

    /// Fills the registers of what is carried, at the end of what stands before the groups: each is a step of its own, so
    /// that few registers are enough for however many there are.
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
                Carried::Accumulator { .. } | Carried::Ramp { .. } => &registers[..],
            };
            if let Some(start) = carried.start() {
                self.r.at(end);
                let start = self.r.operand(start);
                for &n in copied {
                    self.r.out.vector(COPY[0], n, None, Rm::Register(start), none, None);
                }
            }
        }
    }

    fn groups(&mut self, known: Option<u64>) {
        let row = self.abreast as u64 * LANES;
        if known.is_none_or(|n| n >= row) {
            self.turns(self.abreast, known.is_none());
        }
        if self.abreast > 1 && known.is_none_or(|n| n % row >= LANES) {
            self.turns(1, known.is_none());
        }
        if known.is_some_and(|n| n % LANES == 0) {
            return;
        }
        if self.overlaps {
            self.r.out.copy(RAX, RSI);
            self.r.out.add(RAX, -(LANES as i32));
            return self.group(Turn { n: 0, tail: false });
        }
        self.r.out.copy(RDX, RSI);
        self.r.out.and(RDX, LANES as i32 - 1);
        let none = known.is_none().then(|| self.r.out.jump(Jump::Equal));
        if self.program.width == Width::Half {
            self.r.out.negate_rdx();
            self.r.out.point_rsi(self.r.pool.get(&WINDOW).map_or(0, |at| at + 64));
        } else {
            self.r.out.low_bits_to_esi();
            self.r.out.mask(MASK_OF_GENERAL, TAIL, None, Rm::Register(RSI.0), None);
            self.r.out.mask(MASK_SHIFT_RIGHT, TAIL_UPPER, None, Rm::Register(TAIL), Some(8));
        }
        self.group(Turn { n: 0, tail: true });
        none.into_iter().for_each(|jump| self.r.out.land(jump));
    }

    /// Whole groups, `abreast` in a row, as long as there are so many places.
    fn turns(&mut self, abreast: usize, may_be_none: bool) {
        let row = abreast as i32 * LANES as i32;
        self.r.out.copy(RDX, RSI);
        self.r.out.and(RDX, -row);
        let skip = may_be_none.then(|| {
            self.r.out.compare(RAX, RDX);
            self.r.out.jump(Jump::AboveOrEqual)
        });
        if abreast > 1 {
            self.r.out.align(32);
        }
        let head = self.r.out.bytes.len();
        match abreast > 1 && !self.program.row.is_empty() {
            true => self.row(),
            false => (0..abreast).for_each(|n| self.group(Turn { n, tail: false })),
        }
        self.r.out.add(RAX, row);
        for (n, pointer) in self.program.pointers.iter().enumerate().filter(|p| !p.1.unit) {
            let ahead = pointer.stride as i32 * row;
            match pointers(self.program.width).get(n) {
                Some(&r) => {
                    self.r.out.add(r, ahead);
                }
                None => self.r.out.add_in_memory(RDI, pointer.offset as i32, ahead),
            }
        }
        self.r.out.compare(RAX, RDX);
        self.r.out.jump_back(Jump::Below, head);
        skip.into_iter().for_each(|jump| self.r.out.land(jump));
    }

    /// The body for some groups, woven.
    fn row(&mut self) {
        let program = self.program;
        self.r.begin(&program.row, &program.row_steps);
        let ahead = program.row.len() - program.body.len() * self.abreast;
        for (at, item) in program.row.iter().enumerate() {
            let turn = Turn { n: at.saturating_sub(ahead) % self.abreast, tail: false };
            self.accumulate_in(turn);
            self.item((at, item), turn);
        }
        self.grow(program.row.len(), &program.row_steps);
        self.r.end();
    }

    /// Lets the accumulators be those of a group.
    fn accumulate_in(&mut self, turn: Turn) {
        for (carried, registers) in self.program.carried.iter().zip(&self.carried) {
            if let Carried::Accumulator { reg, .. } = carried {
                self.r.hold_in(*reg, registers[turn.n.min(registers.len() - 1)]);
            }
        }
    }

    /// The body for one group.
    fn group(&mut self, turn: Turn) {
        let program = self.program;
        self.accumulate_in(turn);
        let steps: Vec<Reg> = program.carried.iter().filter_map(Carried::by).collect();
        let body = if turn.tail && program.width == Width::Half { &program.tail } else { &program.body };
        self.r.begin(body, &steps);
        self.items(body, turn);
        self.grow(body.len(), &steps);
        self.r.end();
    }

    /// Adds to each ramp its step, at the end of a body.
    fn grow(&mut self, end: usize, steps: &[Reg]) {
        let ramps = self.program.carried.iter().zip(&self.carried).filter_map(|(carried, registers)| match carried {
            Carried::Ramp { code, .. } => Some((*code, registers[0])),
            Carried::Accumulator { .. } => None,
        });
        for ((code, n), &by) in ramps.zip(steps) {
            self.r.at(end);
            let by = self.r.operand(by);
            self.r.out.vector(code, n, Some(n), Rm::Register(by), Masking::default(), None);
        }
    }

    fn items(&mut self, items: &[Item], turn: Turn) {
        items.iter().enumerate().for_each(|item| self.item(item, turn));
    }

    fn item(&mut self, (at, item): (usize, &Item), turn: Turn) {
        self.r.at(at);
        match item {
            Item::Make(reg) => {
                self.make(*reg, turn);
                self.r.drop_dead(&[*reg]);
            }
            Item::Do(effect) => self.effect(effect, turn),
        }
    }

    /// Takes accumulators together, and puts all into the record.
    fn finish(&mut self) {
        let program = self.program;
        for (carried, registers) in program.carried.iter().zip(self.carried.clone()) {
            let Carried::Accumulator { reg, at, apart, .. } = carried else { continue };
            self.r.hold_in(*reg, registers[0]);
            for &other in registers.iter().skip(1) {
                let Some(apart) = apart else { continue };
                self.r.hold_in(apart.value, other);
                let items: Vec<Item> = program.body[apart.items.clone()].to_vec();
                self.r.begin(&items, &[]);
                self.items(&items, Turn { n: 0, tail: false });
                self.r.end();
                self.r.release(apart.value);
            }
            let to = Rm::Memory { base: RDI, index: None, offset: at.offset as i32 };
            self.r.out.vector(STORE[0], registers[0], None, to, Masking::default(), None);
        }
    }
}
