//! A machine program: what a kernel does, over virtual registers.
//!
//! Invariants: an instruction stands after those that make its operands; equal instructions on equal operands are made
//! once, loads as long as nothing is stored, and what reads an accumulator until that changes; what is the same in all
//! groups is in `before`.

use super::Level;
use super::inst::{Class, Effect, Inst, Item, Op, Reg};
use super::interleaved::Interleaved;
use super::pairs::IADD;
use super::table::Code;
use rustc_hash::FxHashMap;

/// A vector that is carried from group to group.
#[derive(Clone, Debug)]
pub(super) enum Carried {
    /// Begins with a number, or with what stands in the record, and ends there.
    Accumulator { reg: Reg, at: Lanes, start: Option<Reg>, parallel: Option<Parallel> },
    /// Grows by a number each group.
    Index { reg: Reg, start: Reg, code: Code, by: Reg },
}

impl Carried {
    /// The register that holds it.
    pub fn reg(&self) -> Reg {
        match *self {
            Carried::Accumulator { reg, .. } | Carried::Index { reg, .. } => reg,
        }
    }

    /// Whether groups in a row have accumulators of their own.
    pub fn is_parallel(&self) -> bool {
        matches!(self, Carried::Accumulator { parallel: Some(_), .. })
    }

    /// A value that is needed before the first group.
    pub fn start(&self) -> Option<Reg> {
        match self {
            // Those of other groups begin with the same number, if they have one.
            Carried::Accumulator { start, parallel, .. } => start.or(parallel.as_ref().map(|a| a.start)),
            Carried::Index { start, .. } => Some(*start),
        }
    }

    /// What is added for each group.
    pub fn by(&self) -> Option<Reg> {
        match self {
            Carried::Accumulator { .. } => None,
            Carried::Index { by, .. } => Some(*by),
        }
    }
}

/// Where the lanes of an accumulator stand in the record: sixteen, or eight of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    pub offset: u32,
    /// Lanes have 64 bits.
    pub long: bool,
    /// Of the last eight of sixteen iterations.
    pub upper: bool,
}

/// How groups in a row accumulate in registers of their own, which are combined at the end.
#[derive(Clone, Debug)]
pub(super) struct Parallel {
    /// What the others begin with.
    pub start: Reg,
    /// What the body accumulates, and the steps that do it.
    pub value: Reg,
    pub items: std::ops::Range<usize>,
}

/// Where a pointer stands in the record, and how far it moves from iteration to iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub offset: u32,
    pub stride: i64,
    /// All accesses are side by side and of one size: they are addressed by the number of the iteration.
    pub unit: bool,
}

/// A program in the making.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub level: Level,
    /// How each register is made; `None` for those that are carried.
    pub made: Vec<Option<Inst>>,
    pub classes: Vec<Class>,
    /// Whether a register is the same in all groups.
    fixed: Vec<bool>,
    known: FxHashMap<Inst, Reg>,
    known_loads: FxHashMap<Inst, Reg>,
    /// Registers made before the first group.
    pub before: Vec<Reg>,
    pub body: Vec<Item>,
    /// The body for the last group, where that is another.
    pub tail: Vec<Item>,
    /// The body for some interleaved groups; empty if they do not run so.
    pub row: Vec<Item>,
    /// By how much indices grow in such a row.
    pub row_steps: Vec<Reg>,
    pub carried: Vec<Carried>,
    pub pointers: Vec<Moving>,
    pub interleaved: Vec<Interleaved>,
}

impl Program {
    pub fn new(level: Level) -> Program {
        Program {
            level,
            made: Vec::new(),
            classes: Vec::new(),
            fixed: Vec::new(),
            known: FxHashMap::default(),
            known_loads: FxHashMap::default(),
            before: Vec::new(),
            body: Vec::new(),
            tail: Vec::new(),
            row: Vec::new(),
            row_steps: Vec::new(),
            carried: Vec::new(),
            pointers: Vec::new(),
            interleaved: Vec::new(),
        }
    }

    /// Begins another body; what the first one made is not known in it.
    pub fn begin_tail(&mut self) -> Vec<Item> {
        let fixed = &self.fixed;
        self.known.retain(|_, reg| fixed[reg.0 as usize]);
        self.known_loads.clear();
        std::mem::take(&mut self.body)
    }

    /// The result of an instruction.
    pub fn make(&mut self, op: Op, args: &[Reg]) -> Reg {
        let inst = Inst { op, args: args.into() };
        let known = if op.loads() { &self.known_loads } else { &self.known };
        if let Some(&reg) = known.get(&inst) {
            return reg;
        }
        let class = match op {
            Op::Compare { .. } | Op::Mask { .. } | Op::MaskBits { .. } => Class::Mask,
            _ => Class::Vector,
        };
        let moves = op.loads() || matches!(op, Op::Active { .. });
        let fixed = !moves && args.iter().all(|&a| self.fixed[a.0 as usize]);
        let reg = self.new_reg(Some(inst.clone()), class, fixed);
        if fixed {
            self.before.push(reg);
        } else {
            self.body.push(Item::Make(reg));
        }
        if op.loads() { &mut self.known_loads } else { &mut self.known }.insert(inst, reg);
        reg
    }

    pub fn new_reg(&mut self, inst: Option<Inst>, class: Class, fixed: bool) -> Reg {
        self.made.push(inst);
        self.classes.push(class);
        self.fixed.push(fixed);
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

    /// Leaves out what nothing needs.
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
        // Operands stand before what is made of them.
        for n in (0..self.made.len()).rev() {
            let args = self.made[n].as_ref().filter(|_| needed[n]).map(|inst| inst.args.clone());
            args.into_iter().flatten().for_each(|r| needed[r.0 as usize] = true);
        }
        self.before.retain(|r| needed[r.0 as usize]);
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

    /// A register that keeps its value from group to group: an accumulator. Without a number to start with it
    /// starts with what stands in the record.
    pub fn accumulator(&mut self, at: Lanes, start: Option<Reg>) -> (usize, Reg) {
        let reg = self.new_reg(None, Class::Vector, false);
        self.carried.push(Carried::Accumulator { reg, at, start, parallel: None });
        (self.carried.len() - 1, reg)
    }

    /// Lets groups in a row accumulate in registers of their own.
    pub fn set_parallel(&mut self, accumulator: usize, how: Parallel) {
        if let Carried::Accumulator { parallel, .. } = &mut self.carried[accumulator] {
            *parallel = Some(how);
        }
    }

    /// `start`, and `by` more in each next group.
    pub fn index(&mut self, start: Reg, long: bool, by: Reg) -> Reg {
        let known = self.carried.iter().find_map(|c| match c {
            Carried::Index { reg, start: s, by: b, .. } if (*s, *b) == (start, by) => Some(*reg),
            _ => None,
        });
        known.unwrap_or_else(|| {
            let reg = self.new_reg(None, Class::Vector, false);
            self.carried.push(Carried::Index { reg, start, code: IADD[usize::from(long)], by });
            reg
        })
    }

    /// The same number in each lane of some bytes.
    pub fn constant(&mut self, bits: u64, bytes: u8) -> Reg {
        self.make(Op::Constant { bits, bytes }, &[])
    }

    /// An instruction on one vector or two.
    pub fn plain(&mut self, code: Code, args: &[Reg]) -> Reg {
        self.make(Op::Plain { code, immediate: None }, args)
    }

    /// An instruction with an immediate.
    pub fn with(&mut self, code: Code, immediate: u8, args: &[Reg]) -> Reg {
        self.make(Op::Plain { code, immediate: Some(immediate) }, args)
    }

    /// A vector shifted by a number.
    pub fn shift(&mut self, code: Code, by: u8, x: Reg) -> Reg {
        self.make(Op::Shift { code, by }, &[x])
    }

    /// The bits of a register that is a constant.
    pub fn constant_of(&self, reg: Reg) -> Option<u64> {
        match self.made[reg.0 as usize].as_ref()?.op {
            Op::Constant { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// Whether a register is the same in all groups.
    pub fn is_fixed(&self, reg: Reg) -> bool {
        self.fixed[reg.0 as usize]
    }
}
