//! What a strip does, over virtual registers.
//!
//! A strip runs sixteen places of a loop at a time. It finds addresses and values that are the same for all places in a
//! *record*, and leaves accumulators there.
//!
//! Invariants: an instruction stands after those that make its operands; equal instructions on equal operands are made
//! once, loads as long as nothing is stored, and what reads an accumulator until that changes; what does not change from
//! place to place is in `before`.

use super::codes;
use super::encode::Code;
use super::inst::{Class, Effect, Inst, Item, Op, Pointer, Reg, Width};
use super::stretch::Stretch;
use rustc_hash::FxHashMap;

/// Places that run together.
pub(crate) const LANES: u64 = 16;

/// A vector that is carried from group to group.
#[derive(Clone, Debug)]
pub(crate) enum Carried {
    /// Begins with a number, or with what stands in the record, and ends there.
    Accumulator { reg: Reg, at: Lanes, start: Option<Reg>, apart: Option<Apart> },
    /// Grows by a number each group.
    Ramp { reg: Reg, start: Reg, code: Code, by: Reg },
}

impl Carried {
    /// The register that holds it.
    pub(super) fn reg(&self) -> Reg {
        match *self {
            Carried::Accumulator { reg, .. } | Carried::Ramp { reg, .. } => reg,
        }
    }

    /// Whether groups in a row have accumulators of their own.
    pub(super) fn is_apart(&self) -> bool {
        matches!(self, Carried::Accumulator { apart: Some(_), .. })
    }

    /// A value that is needed before the first group.
    pub(super) fn start(&self) -> Option<Reg> {
        match self {
            // Those that run apart begin with the same number, if they have one.
            Carried::Accumulator { start, apart, .. } => start.or(apart.as_ref().map(|a| a.start)),
            Carried::Ramp { start, .. } => Some(*start),
        }
    }

    /// What is added for each group.
    pub(super) fn by(&self) -> Option<Reg> {
        match self {
            Carried::Accumulator { .. } => None,
            Carried::Ramp { by, .. } => Some(*by),
        }
    }
}

/// Sixteen lanes of an accumulator in the record, or eight of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    pub offset: u32,
    /// Lanes have 64 bits.
    pub long: bool,
    /// Of the last eight of sixteen places.
    pub upper: bool,
}

/// How groups may be accumulated apart and taken together at the end, where their order does not matter.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    /// What the others begin with.
    pub start: Reg,
    /// What the body takes in, and the steps that do it.
    pub value: Reg,
    pub items: std::ops::Range<usize>,
}

/// Where a pointer stands in the record, and how far it moves from place to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving {
    pub offset: u32,
    pub stride: i64,
    /// Elements lie side by side: addressed by the number of the place.
    pub unit: bool,
}

/// A strip in the making.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Of its vectors.
    pub width: Width,
    /// How each register is made; `None` for those that are carried.
    pub made: Vec<Option<Inst>>,
    pub classes: Vec<Class>,
    /// Whether a register is the same for all groups.
    fixed: Vec<bool>,
    known: FxHashMap<Inst, Reg>,
    /// Registers made before the first group.
    pub before: Vec<Reg>,
    pub body: Vec<Item>,
    /// The body for the last group, where that is another.
    pub tail: Vec<Item>,
    /// The body for some groups in a row, each step for one after the other; empty if they do not run so.
    pub row: Vec<Item>,
    /// By how much ramps grow in such a row.
    pub row_steps: Vec<Reg>,
    pub carried: Vec<Carried>,
    pub pointers: Vec<Moving>,
    pub stretches: Vec<Stretch>,
    /// Least and greatest value of a float, if it is not NaN.
    ranges: FxHashMap<Reg, (f64, f64)>,
}

impl Program {
    pub fn new(width: Width) -> Program {
        Program {
            width,
            made: Vec::new(),
            classes: Vec::new(),
            fixed: Vec::new(),
            known: FxHashMap::default(),
            before: Vec::new(),
            body: Vec::new(),
            tail: Vec::new(),
            row: Vec::new(),
            row_steps: Vec::new(),
            carried: Vec::new(),
            pointers: Vec::new(),
            stretches: Vec::new(),
            ranges: FxHashMap::default(),
        }
    }

    /// Begins another body; what the first one made is not known in it.
    pub fn begin_tail(&mut self) -> Vec<Item> {
        let fixed = &self.fixed;
        self.known.retain(|_, reg| fixed[reg.0 as usize]);
        std::mem::take(&mut self.body)
    }

    /// The result of an instruction.
    pub fn make(&mut self, op: Op, args: &[Reg]) -> Reg {
        let inst = Inst { op, args: args.into() };
        if let Some(&reg) = self.known.get(&inst) {
            return reg;
        }
        let class = match op {
            Op::Compare { .. } | Op::Mask { .. } | Op::Places { .. } => Class::Mask,
            _ => Class::Vector,
        };
        let moves = op.loads() || matches!(op, Op::There { .. });
        let fixed = !moves && args.iter().all(|&a| self.fixed[a.0 as usize]);
        let reg = self.new_reg(Some(inst.clone()), class, fixed);
        if fixed {
            self.before.push(reg);
        } else {
            self.body.push(Item::Make(reg));
        }
        self.known.insert(inst, reg);
        reg
    }

    /// What was loaded before, if nothing was stored since.
    pub fn known_load(&self, op: Op) -> Option<Reg> {
        self.known.get(&Inst { op, args: [].as_slice().into() }).copied()
    }

    /// What is loaded under a mask; without it, if that is known already.
    pub fn load(&mut self, op: Op, args: &[Reg], mask: Option<Reg>) -> Reg {
        let all = Inst { op, args: args.into() };
        match (mask, self.known.get(&all)) {
            (_, Some(&reg)) => reg,
            (None, None) => self.make(op, args),
            (Some(mask), None) => self.make(op, &[args, &[mask]].concat()),
        }
    }

    pub(super) fn new_reg(&mut self, inst: Option<Inst>, class: Class, fixed: bool) -> Reg {
        self.made.push(inst);
        self.classes.push(class);
        self.fixed.push(fixed);
        Reg(self.made.len() as u32 - 1)
    }

    /// Something that is stored or accumulated.
    pub fn effect(&mut self, effect: Effect) {
        let changed = effect.accumulator().map(|accumulator| match self.carried[accumulator] {
            Carried::Accumulator { reg, .. } | Carried::Ramp { reg, .. } => reg,
        });
        self.body.push(Item::Do(effect));
        match changed {
            Some(reg) => self.known.retain(|inst, _| !inst.args.contains(&reg)),
            None => self.known.retain(|inst, _| !inst.op.loads()),
        }
    }

    /// Leaves out what nothing needs.
    pub fn prune(&mut self) {
        let mut needed = vec![false; self.made.len()];
        for carried in &self.carried {
            let regs = match carried {
                Carried::Accumulator { reg, start, apart, .. } => [Some(*reg), *start, apart.as_ref().map(|a| a.start)],
                Carried::Ramp { start, by, .. } => [Some(*start), Some(*by), None],
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
        let apart = self.carried.iter_mut().filter_map(|c| match c {
            Carried::Accumulator { apart, .. } => apart.as_mut(),
            Carried::Ramp { .. } => None,
        });
        let kept = |item: &Item| if let Item::Make(r) = item { needed[r.0 as usize] } else { true };
        let moved = |at: usize| self.body[..at].iter().filter(|i| kept(i)).count();
        apart.for_each(|a| a.items = moved(a.items.start)..moved(a.items.end));
        self.body.retain(kept);
        self.tail.retain(kept);
    }

    /// A register that keeps its value from group to group: an accumulator at a place of the record. Without a number
    /// to start with it starts with what stands there.
    pub fn accumulator(&mut self, at: Lanes, start: Option<Reg>) -> (usize, Reg) {
        let reg = self.new_reg(None, Class::Vector, false);
        self.carried.push(Carried::Accumulator { reg, at, start, apart: None });
        (self.carried.len() - 1, reg)
    }

    /// Says that what an accumulator takes in may be taken in any order.
    pub fn set_apart(&mut self, accumulator: usize, how: Apart) {
        if let Carried::Accumulator { apart, .. } = &mut self.carried[accumulator] {
            *apart = Some(how);
        }
    }

    /// `start`, and `by` more in each next group.
    pub fn ramp(&mut self, start: Reg, wide: bool, by: Reg) -> Reg {
        let known = self.carried.iter().find_map(|c| match c {
            Carried::Ramp { reg, start: s, by: b, .. } if (*s, *b) == (start, by) => Some(*reg),
            _ => None,
        });
        known.unwrap_or_else(|| {
            let reg = self.new_reg(None, Class::Vector, false);
            self.carried.push(Carried::Ramp { reg, start, code: codes::IADD[usize::from(wide)], by });
            reg
        })
    }

    pub fn pointer(&mut self, moving: Moving) -> Pointer {
        self.pointers.push(moving);
        Pointer(self.pointers.len() as u32 - 1)
    }

    pub fn constant(&mut self, bits: u64, bytes: u8) -> Reg {
        self.make(Op::Constant { bits, bytes }, &[])
    }

    pub fn plain(&mut self, code: Code, args: &[Reg]) -> Reg {
        self.make(Op::Plain { code, immediate: None }, args)
    }

    /// The bits of a register that is a constant.
    pub fn constant_of(&self, reg: Reg) -> Option<u64> {
        match self.made[reg.0 as usize].as_ref()?.op {
            Op::Constant { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// Whether a register is the same for all groups.
    pub fn is_fixed(&self, reg: Reg) -> bool {
        self.fixed[reg.0 as usize]
    }

    /// Least and greatest value of a float, if it is not NaN.
    pub fn range(&self, reg: Reg) -> (f64, f64) {
        self.ranges.get(&reg).copied().unwrap_or((f64::NEG_INFINITY, f64::INFINITY))
    }

    pub fn set_range(&mut self, reg: Reg, range: (f64, f64)) {
        self.ranges.insert(reg, range);
    }
}
