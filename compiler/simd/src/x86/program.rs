//! A machine program: a kernel over virtual registers.
//!
//! Invariants: an instruction follows those that compute its operands. Equal instructions on equal operands are emitted
//! once; equal loads only until the next store, and equal reads of an accumulator only until it changes. Loop
//! invariants are in `before`, and those of the loop over groups alone in `trip`.

use super::Level;
use super::inst::{Class, Effect, Inst, Item, Op, Reg};
use super::interleaved::Interleaved;
use super::pairs::IADD;
use super::table::Code;
use crate::ir::{self, Kernel};
use rustc_hash::{FxHashMap, FxHashSet};

/// A vector that is carried from group to group.
#[derive(Clone, Debug)]
pub(super) enum Carried {
    /// Starts with a number, or with its value in the record, and is stored to the record at the end.
    Accumulator { reg: Reg, at: Lanes, start: Option<Reg>, parallel: Option<Parallel> },
    /// Grows by a constant with each group.
    Index { reg: Reg, start: Reg, code: Code, by: Reg },
}

impl Carried {
    /// Returns the register that holds it.
    pub fn reg(&self) -> Reg {
        match *self {
            Carried::Accumulator { reg, .. } | Carried::Index { reg, .. } => reg,
        }
    }

    /// Returns whether unrolled groups have accumulators of their own.
    pub fn is_parallel(&self) -> bool {
        matches!(self, Carried::Accumulator { parallel: Some(_), .. })
    }

    /// Returns a value that is needed before the first group.
    pub fn start(&self) -> Option<Reg> {
        match self {
            // The accumulators of other unrolled groups start with the same number, if there is one.
            Carried::Accumulator { start, parallel, .. } => start.or(parallel.as_ref().map(|a| a.start)),
            Carried::Index { start, .. } => Some(*start),
        }
    }

    /// Returns the increment for each group.
    pub fn by(&self) -> Option<Reg> {
        match self {
            Carried::Accumulator { .. } => None,
            Carried::Index { by, .. } => Some(*by),
        }
    }
}

/// The place of an accumulator's lanes in the record: sixteen lanes, or eight of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    pub offset: u32,
    /// Whether lanes have 64 bits.
    pub long: bool,
    /// Whether these are the lanes of the last eight of sixteen iterations.
    pub upper: bool,
}

/// How unrolled groups accumulate in registers of their own, which are combined at the end.
#[derive(Clone, Debug)]
pub(super) struct Parallel {
    /// The start of the other accumulators.
    pub start: Reg,
    /// The value that the body accumulates; `items` are the steps that do so.
    pub value: Reg,
    pub items: std::ops::Range<usize>,
}

/// The place of a pointer in the record, and its stride in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub offset: u32,
    pub stride: i64,
    /// The bytes from one trip of the outer loop to the next.
    pub outer: i64,
    /// Whether all accesses are contiguous and of one size, so that the iteration number addresses them.
    pub unit: bool,
}

impl Moving {
    /// Returns whether the register of the pointer stays the same from group to group.
    pub fn stays(&self) -> bool {
        self.unit || self.stride == 0
    }
}

/// The most stores whose values wait in registers until the other groups have run.
const DELAYED: usize = 2;

/// How often a register is computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rate {
    Once,
    /// In each trip of the outer loop.
    Trip,
    Group,
}

/// A program under construction.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub level: Level,
    /// The instruction that defines each register; `None` for carried ones.
    pub made: Vec<Option<Inst>>,
    pub classes: Vec<Class>,
    rates: Vec<Rate>,
    known: FxHashMap<Inst, Reg>,
    known_loads: FxHashMap<Inst, Reg>,
    /// Registers computed before the first group.
    pub before: Vec<Reg>,
    /// Registers computed before the first group of each trip of the outer loop.
    pub trip: Vec<Reg>,
    pub body: Vec<Item>,
    /// The body for the last group, if it differs.
    pub tail: Vec<Item>,
    /// The body for several interleaved groups; empty if groups are not interleaved.
    pub row: Vec<Item>,
    /// The steps of indices in such a body.
    pub row_steps: Vec<Reg>,
    pub carried: Vec<Carried>,
    pub pointers: Vec<Moving>,
    /// The offset of the trip count of the outer loop, if there is one.
    pub outer: Option<u32>,
    /// Whether what is the same in all iterations of a trip is loaded before them. With one iteration, a store may be
    /// to the same element.
    pub hoists: bool,
    pub interleaved: Vec<Interleaved>,
}

impl Program {
    pub fn new(level: Level) -> Program {
        Program {
            level,
            made: Vec::new(),
            classes: Vec::new(),
            rates: Vec::new(),
            known: FxHashMap::default(),
            known_loads: FxHashMap::default(),
            before: Vec::new(),
            trip: Vec::new(),
            body: Vec::new(),
            tail: Vec::new(),
            row: Vec::new(),
            row_steps: Vec::new(),
            carried: Vec::new(),
            pointers: Vec::new(),
            outer: None,
            hoists: false,
            interleaved: Vec::new(),
        }
    }

    /// Begins another body, which cannot reuse values of the first one.
    pub fn begin_tail(&mut self) -> Vec<Item> {
        let rates = &self.rates;
        self.known.retain(|_, reg| rates[reg.0 as usize] < Rate::Group);
        self.known_loads.clear();
        std::mem::take(&mut self.body)
    }

    /// Returns the result of an instruction.
    pub fn make(&mut self, op: Op, args: &[Reg]) -> Reg {
        let inst = Inst { op, args: args.into() };
        let own = match op {
            Op::Broadcast { .. } if self.hoists => Rate::Trip,
            _ if op.loads() || matches!(op, Op::Active { .. }) => Rate::Group,
            _ => Rate::Once,
        };
        let loads = op.loads() && own == Rate::Group;
        let known = if loads { &self.known_loads } else { &self.known };
        if let Some(&reg) = known.get(&inst) {
            return reg;
        }
        let class = match op {
            Op::Compare { .. } | Op::Mask { .. } | Op::MaskBits { .. } => Class::Mask,
            _ => Class::Vector,
        };
        let rate = args.iter().map(|a| self.rates[a.0 as usize]).fold(own, Rate::max);
        let reg = self.new_reg(Some(inst.clone()), class);
        self.rates[reg.0 as usize] = rate;
        match rate {
            Rate::Once => self.before.push(reg),
            Rate::Trip => self.trip.push(reg),
            Rate::Group => self.body.push(Item::Make(reg)),
        }
        if loads { &mut self.known_loads } else { &mut self.known }.insert(inst, reg);
        reg
    }

    /// Returns a new register of the body.
    pub fn new_reg(&mut self, inst: Option<Inst>, class: Class) -> Reg {
        self.made.push(inst);
        self.classes.push(class);
        self.rates.push(Rate::Group);
        Reg(self.made.len() as u32 - 1)
    }

    /// Adds an effect.
    pub fn effect(&mut self, effect: Effect) {
        let changed = effect.accumulator().map(|accumulator| match self.carried[accumulator] {
            Carried::Accumulator { reg, .. } | Carried::Index { reg, .. } => reg,
        });
        self.body.push(Item::Do(effect));
        match changed {
            Some(reg) => self.known.retain(|inst, _| !inst.args.contains(&reg)),
            None => self.known_loads.clear(),
        }
    }

    /// Removes steps that nothing needs.
    pub fn prune(&mut self) {
        let mut needed = vec![false; self.made.len()];
        for carried in &self.carried {
            let regs = match carried {
                Carried::Accumulator { reg, start, parallel, .. } => {
                    [Some(*reg), *start, parallel.as_ref().map(|a| a.start)]
                }
                Carried::Index { start, by, .. } => [Some(*start), Some(*by), None],
            };
            regs.into_iter().flatten().for_each(|r| needed[r.0 as usize] = true);
        }
        let all = self.body.iter().chain(&self.tail);
        let items = all.filter_map(|i| if let Item::Do(effect) = i { Some(effect.reads()) } else { None });
        items.flatten().for_each(|r| needed[r.0 as usize] = true);
        // Operands precede the instructions that read them.
        for n in (0..self.made.len()).rev() {
            let args = self.made[n].as_ref().filter(|_| needed[n]).map(|inst| inst.args.clone());
            args.into_iter().flatten().for_each(|r| needed[r.0 as usize] = true);
        }
        self.before.retain(|r| needed[r.0 as usize]);
        self.trip.retain(|r| needed[r.0 as usize]);
        let parallel = self.carried.iter_mut().filter_map(|c| match c {
            Carried::Accumulator { parallel, .. } => parallel.as_mut(),
            Carried::Index { .. } => None,
        });
        let kept = |item: &Item| if let Item::Make(r) = item { needed[r.0 as usize] } else { true };
        let moved = |at: usize| self.body[..at].iter().filter(|i| kept(i)).count();
        parallel.for_each(|a| a.items = moved(a.items.start)..moved(a.items.end));
        self.body.retain(kept);
        self.tail.retain(kept);
    }

    /// Returns whether the body ends with a few stores of whole vectors, as far as it stores anything.
    pub fn stores_last(&self) -> bool {
        let first = self.body.iter().position(|item| matches!(item, Item::Do(_))).unwrap_or(self.body.len());
        let ends = self.body[first..].iter().all(|item| match item {
            Item::Make(reg) => self.made[reg.0 as usize].as_ref().is_some_and(|inst| !inst.op.loads()),
            Item::Do(Effect::Store { to, mask, .. }) => mask.is_none() && to.bytes >= 4,
            Item::Do(_) => false,
        });
        let stores = self.body[first..].iter().filter(|item| matches!(item, Item::Do(_))).count();
        self.level == Level::Avx512 && ends && stores <= DELAYED
    }

    /// Returns the loop invariants that something reads besides other invariants.
    pub fn lasting(&self) -> FxHashSet<Reg> {
        let mut lasting: FxHashSet<Reg> = FxHashSet::default();
        for carried in &self.carried {
            lasting.extend(carried.start().into_iter().chain(carried.by()));
        }
        for item in self.body.iter().chain(&self.tail).chain(&self.row) {
            match item {
                Item::Make(reg) => lasting.extend(self.made[reg.0 as usize].iter().flat_map(|inst| &inst.args)),
                Item::Do(effect) => lasting.extend(effect.reads()),
            }
        }
        // What is made in each trip reads what is made once.
        let args = self.trip.iter().flat_map(|reg| &self.made[reg.0 as usize]).flat_map(|inst| &inst.args);
        lasting.extend(args.filter(|arg| self.rates[arg.0 as usize] == Rate::Once));
        lasting.extend(&self.row_steps);
        lasting
    }

    /// Adds an accumulator: a register that keeps its value from group to group. Without a start, it begins with its
    /// value in the record.
    pub fn accumulator(&mut self, at: Lanes, start: Option<Reg>) -> (usize, Reg) {
        let reg = self.new_reg(None, Class::Vector);
        self.carried.push(Carried::Accumulator { reg, at, start, parallel: None });
        (self.carried.len() - 1, reg)
    }

    /// Lets unrolled groups accumulate in registers of their own.
    pub fn set_parallel(&mut self, accumulator: usize, how: Parallel) {
        if let Carried::Accumulator { parallel, .. } = &mut self.carried[accumulator] {
            *parallel = Some(how);
        }
    }

    /// Returns an index: `start`, plus `by` for each group.
    pub fn index(&mut self, start: Reg, long: bool, by: Reg) -> Reg {
        let known = self.carried.iter().find_map(|c| match c {
            Carried::Index { reg, start: s, by: b, .. } if (*s, *b) == (start, by) => Some(*reg),
            _ => None,
        });
        known.unwrap_or_else(|| {
            let reg = self.new_reg(None, Class::Vector);
            self.carried.push(Carried::Index { reg, start, code: IADD[usize::from(long)], by });
            reg
        })
    }

    /// Returns a number repeated in lanes of `bytes` bytes.
    pub fn constant(&mut self, bits: u64, bytes: u8) -> Reg {
        self.make(Op::Constant { bits, bytes }, &[])
    }

    /// Emits an instruction on one vector or two.
    pub fn plain(&mut self, code: Code, args: &[Reg]) -> Reg {
        self.make(Op::Plain { code, immediate: None }, args)
    }

    /// Emits an instruction with an immediate.
    pub fn with(&mut self, code: Code, immediate: u8, args: &[Reg]) -> Reg {
        self.make(Op::Plain { code, immediate: Some(immediate) }, args)
    }

    /// Emits a shift of a vector by an immediate.
    pub fn shift(&mut self, code: Code, by: u8, x: Reg) -> Reg {
        self.make(Op::Shift { code, by }, &[x])
    }

    /// Returns the bits of a constant register.
    pub fn constant_of(&self, reg: Reg) -> Option<u64> {
        match self.made[reg.0 as usize].as_ref()?.op {
            Op::Constant { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// Returns whether a register is an invariant of the loop over groups.
    pub fn is_fixed(&self, reg: Reg) -> bool {
        self.rates[reg.0 as usize] < Rate::Group
    }
}

/// Returns the program's form of each pointer of a kernel.
pub(super) fn moving(kernel: &Kernel, level: Level) -> Vec<Moving> {
    let mut sizes: Vec<Option<u32>> = vec![None; kernel.pointers.len()];
    let mut unit = vec![true; kernel.pointers.len()];
    let mut note = |lane: ir::Lane, at: ir::Memory, is_gathered: bool| {
        let n = at.pointer.0 as usize;
        let bytes = lane.bytes() * u32::from(kernel.per_iteration);
        unit[n] &= !is_gathered && kernel.is_contiguous(lane, at) && sizes[n].is_none_or(|b| b == bytes);
        sizes[n] = Some(bytes);
    };
    for item in &kernel.items {
        match item {
            ir::Item::Make(value) => {
                let lane = kernel.lane(*value);
                match kernel.def(*value).op {
                    ir::Op::Load(from) => note(lane, from, false),
                    ir::Op::LoadPermuted { from, .. } => note(lane, from, level == Level::Avx2),
                    _ => {}
                }
            }
            ir::Item::Do(ir::Effect::Store { to, value, .. }) => note(kernel.lane(*value), *to, false),
            ir::Item::Do(ir::Effect::StoreInterleaved { to, values }) => {
                values.iter().for_each(|v| note(kernel.lane(v.1), *to, false));
            }
            ir::Item::Do(_) => {}
        }
    }
    let moving = |(n, p): (usize, &ir::Moving)| {
        let ir::Moving { offset, stride, outer } = *p;
        Moving { offset, stride, outer, unit: unit[n] }
    };
    kernel.pointers.iter().enumerate().map(moving).collect()
}
