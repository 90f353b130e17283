//! Register allocation, while code is emitted.
//!
//! Within straight-line code the next use of every value is known. If registers run out, the value with the furthest
//! next use is spilled. A value that can be rematerialized (a constant, a number of the record) is never stored.
//!
//! The allocator is our own because of the time that it takes. For the loops of a polynomial of degree 60 (AVX2, 502
//! steps), `regalloc2` 0.15 takes 1,073 µs with its algorithm Ion and inserts 113 moves; with Fastalloc it takes 67 µs
//! and inserts 248. The whole translation takes 239 µs here and inserts none, because instructions read constants from
//! memory.
//!
//! Invariant: a live value is in a register, in its spill slot, or can be rematerialized.

use super::Level;
use super::encode::{Bytes, Masking, RDI, RDX, RSI, RSP, Rm};
use super::inst::{Class, Item, Op, Reg};
use super::pairs::*;
use super::program::Program;
use super::table::Code;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Masks of the active lanes in the last group: all sixteen, and the upper eight.
pub(super) const TAIL: u8 = 7;
pub(super) const TAIL_UPPER: u8 = 6;
/// A scratch mask for gathers, which clobber their masks.
pub(super) const SCRATCH_MASK: u8 = 5;
/// A scratch vector for gathers of AVX2.
pub(super) const SCRATCH: u8 = Level::Avx2.registers();
/// Mask registers for values.
pub(super) const MASKS: std::ops::Range<u8> = 1..5;

/// The offsets of constants in the code.
pub(super) type Pool = FxHashMap<Op, usize>;

/// The state of the allocator.
pub(super) struct Registers<'p> {
    program: &'p Program,
    pub out: Bytes,
    pub pool: Pool,
    vectors: [Option<Reg>; 32],
    masks: [Option<Reg>; 8],
    at: FxHashMap<Reg, u8>,
    /// The registers of values that are held throughout the kernel.
    held: FxHashMap<Reg, u8>,
    held_vectors: u32,
    slots: FxHashMap<Reg, i32>,
    saved: FxHashMap<Reg, bool>,
    /// The remaining uses of each value, the next one last.
    uses: FxHashMap<Reg, SmallVec<[u32; 4]>>,
    now: u32,
    locked: SmallVec<[(Class, u8); 8]>,
    pub frame: i32,
}

impl<'p> Registers<'p> {
    pub fn new(program: &'p Program, out: Bytes, pool: Pool) -> Registers<'p> {
        Registers {
            program,
            out,
            pool,
            vectors: [None; 32],
            masks: [None; 8],
            at: FxHashMap::default(),
            held: FxHashMap::default(),
            held_vectors: 0,
            slots: FxHashMap::default(),
            saved: FxHashMap::default(),
            uses: FxHashMap::default(),
            now: 0,
            locked: SmallVec::new(),
            frame: 0,
        }
    }

    fn class(&self, reg: Reg) -> Class {
        self.program.classes[reg.0 as usize]
    }

    /// Reserves a register for a value throughout the kernel; the caller fills it.
    pub fn hold(&mut self, reg: Reg) -> u8 {
        let n = (0..self.program.level.registers())
            .rev()
            .find(|n| self.held_vectors & 1 << n == 0)
            .expect("fewer are held than there are");
        self.held_vectors |= 1 << n;
        self.held.insert(reg, n);
        n
    }

    /// Replaces the register of a held value.
    pub fn hold_in(&mut self, reg: Reg, n: u8) {
        self.held.insert(reg, n);
    }

    /// Reserves a register that belongs to no value.
    pub fn hold_another(&mut self) -> u8 {
        let n = (0..self.program.level.registers())
            .rev()
            .find(|n| self.held_vectors & 1 << n == 0)
            .expect("fewer are held than there are");
        self.held_vectors |= 1 << n;
        n
    }

    /// Holds a value no longer.
    pub fn release(&mut self, reg: Reg) {
        self.held.remove(&reg);
    }

    /// Returns the machine register of a held value.
    pub fn held(&self, reg: Reg) -> Option<u8> {
        self.held.get(&reg).copied()
    }

    /// Begins straight-line code: records the uses of all values.
    pub fn begin(&mut self, items: &[Item], last: &[Reg]) {
        self.uses.clear();
        self.saved.retain(|_, fixed| *fixed);
        let mut note = |reg: Reg, at: usize| self.uses.entry(reg).or_default().push(at as u32);
        last.iter().for_each(|&reg| note(reg, items.len()));
        for (at, item) in items.iter().enumerate().rev() {
            match item {
                Item::Make(reg) => {
                    let inst = self.program.made[reg.0 as usize].as_ref();
                    inst.into_iter().flat_map(|i| &i.args).for_each(|&a| note(a, at));
                }
                Item::Do(effect) => effect.reads().into_iter().for_each(|a| note(a, at)),
            }
        }
    }

    /// Advances to a step of the code.
    pub fn go_to(&mut self, position: usize) {
        self.now = position as u32;
        self.locked.clear();
    }

    /// Ends straight-line code: values that are not held are lost.
    pub fn end(&mut self) {
        self.vectors = [None; 32];
        self.masks = [None; 8];
        self.at.clear();
    }

    fn next_use(&self, reg: Reg) -> Option<u32> {
        self.uses.get(&reg)?.iter().rev().copied().find(|&at| at > self.now)
    }

    /// Returns whether this step is the last use of a value, so that its register can be reused.
    pub fn dies(&self, reg: Reg) -> bool {
        !self.held.contains_key(&reg) && self.next_use(reg).is_none()
    }

    /// Returns the register of an operand.
    pub fn operand(&mut self, reg: Reg) -> u8 {
        let class = self.class(reg);
        let known = self.held.get(&reg).or_else(|| self.at.get(&reg)).copied();
        let n = known.unwrap_or_else(|| {
            let n = self.room(class);
            self.fetch(reg, n);
            self.put(reg, n);
            n
        });
        self.locked.push((class, n));
        n
    }

    /// Returns an operand that the instruction may read from memory.
    pub fn source(&mut self, reg: Reg) -> Rm {
        self.in_memory(reg).unwrap_or_else(|| Rm::Register(self.operand(reg)))
    }

    /// Returns the memory from which AVX2 reads a value without a load: a constant that is in no register, or a spilled
    /// value whose last use this is.
    pub fn in_memory(&self, reg: Reg) -> Option<Rm> {
        if self.program.level != Level::Avx2 || self.held.contains_key(&reg) || self.at.contains_key(&reg) {
            return None;
        }
        match self.program.made[reg.0 as usize].as_ref().map(|inst| inst.op)? {
            Op::Uniform { .. } | Op::Active { .. } => None,
            op if op.is_rematerialized() => Some(Rm::Constant(self.pool[&op])),
            _ if self.dies(reg) => {
                let offset = *self.slots.get(&reg)?;
                Some(Rm::Memory { base: RSP, index: None, offset })
            }
            _ => None,
        }
    }

    /// Returns a register for the result of this step.
    pub fn result(&mut self, reg: Reg) -> u8 {
        if let Some(n) = self.held(reg) {
            return n;
        }
        let n = self.room(self.class(reg));
        self.put(reg, n);
        n
    }

    /// Transfers the register of a dead value to another value.
    pub fn rename(&mut self, from: Reg, to: Reg) -> u8 {
        let n = self.at.remove(&from).expect("it is in a register");
        self.put(to, n);
        n
    }

    /// Frees the registers of values whose last use this step is.
    pub fn drop_dead(&mut self, regs: &[Reg]) {
        for &reg in regs {
            if self.dies(reg)
                && let Some(n) = self.at.remove(&reg)
            {
                match self.class(reg) {
                    Class::Vector => self.vectors[n as usize] = None,
                    Class::Mask => self.masks[n as usize] = None,
                }
                self.locked.retain(|l| *l != (self.program.classes[reg.0 as usize], n));
            }
        }
    }

    fn put(&mut self, reg: Reg, n: u8) {
        match self.class(reg) {
            Class::Vector => self.vectors[n as usize] = Some(reg),
            Class::Mask => self.masks[n as usize] = Some(reg),
        }
        self.at.insert(reg, n);
    }

    fn room(&mut self, class: Class) -> u8 {
        let (file, usable): (&[Option<Reg>], SmallVec<[u8; 32]>) = match class {
            Class::Vector => {
                let all = 0..self.program.level.registers();
                (&self.vectors, all.filter(|n| self.held_vectors & 1 << n == 0).collect())
            }
            Class::Mask => (&self.masks, MASKS.collect()),
        };
        let usable: SmallVec<[u8; 32]> = usable.into_iter().filter(|&n| !self.locked.contains(&(class, n))).collect();
        if let Some(&n) = usable.iter().find(|&&n| file[n as usize].is_none()) {
            return n;
        }
        // An operand of this step that is not yet in a register still counts as used.
        let still_used = |reg: Reg| self.uses.get(&reg)?.iter().rev().copied().find(|&at| at >= self.now);
        let far = |n: u8| file[n as usize].and_then(still_used).unwrap_or(u32::MAX);
        let n = usable.into_iter().max_by_key(|&n| far(n)).expect("a step has fewer operands than there are registers");
        let reg = file[n as usize].expect("a register that is not free holds a value");
        if still_used(reg).is_some() {
            self.save(reg, n, false);
        }
        self.at.remove(&reg);
        n
    }

    /// Stores a value to its spill slot, unless it is there or can be rematerialized; a `fixed` value stays there
    /// beyond the current straight-line code.
    pub fn save(&mut self, reg: Reg, n: u8, fixed: bool) {
        if self.is_rematerialized(reg) || self.saved.contains_key(&reg) {
            return;
        }
        let (frame, bytes) = (&mut self.frame, self.program.level.bytes() as i32);
        let slot = *self.slots.entry(reg).or_insert_with(|| {
            *frame += bytes;
            *frame - bytes
        });
        self.saved.insert(reg, fixed);
        let rm = Rm::Memory { base: RSP, index: None, offset: slot };
        match self.class(reg) {
            Class::Vector => self.out.vector(STORE[0], n, None, rm, Masking::default(), None),
            Class::Mask => self.out.mask(LONG_MASK_STORE, n, None, rm, None),
        }
    }

    /// Returns whether a value can be rematerialized and needs no spill slot.
    pub fn is_rematerialized(&self, reg: Reg) -> bool {
        let inst = self.program.made[reg.0 as usize].as_ref();
        inst.is_some_and(|i| i.op.is_rematerialized())
    }

    /// Loads or rematerializes a value into a register.
    pub fn fetch(&mut self, reg: Reg, n: u8) {
        let none = Masking::default();
        let op = self.program.made[reg.0 as usize].as_ref().map(|i| i.op);
        match op {
            Some(op @ Op::Constant { bytes, .. }) if self.program.level == Level::Avx512 => {
                let at = Rm::Constant(self.pool[&op]);
                self.out.vector(BROADCAST[usize::from(bytes == 8)], n, None, at, none, None);
            }
            Some(
                op @ (Op::Constant { .. }
                | Op::Ramp { .. }
                | Op::Order { .. }
                | Op::Quarters { .. }
                | Op::Picked { .. }
                | Op::Lanes { .. }),
            ) => {
                self.out.vector(LOAD[0], n, None, Rm::Constant(self.pool[&op]), none, None);
            }
            Some(op @ Op::MaskBits { .. }) => self.out.mask(MASK_LOAD, n, None, Rm::Constant(self.pool[&op]), None),
            Some(Op::Active { half }) => {
                let at = Rm::Memory { base: RSI, index: Some((RDX.0, 2)), offset: 32 * i32::from(half) };
                self.out.vector(LOAD[0], n, None, at, none, None);
            }
            Some(Op::Uniform { offset, bytes }) => {
                let at = Rm::Memory { base: RDI, index: None, offset: offset as i32 };
                self.out.vector(broadcast(bytes), n, None, at, none, None);
            }
            _ => {
                let slot = self.slots[&reg];
                let rm = Rm::Memory { base: RSP, index: None, offset: slot };
                match self.class(reg) {
                    Class::Vector => self.out.vector(LOAD[0], n, None, rm, none, None),
                    Class::Mask => self.out.mask(LONG_MASK_LOAD, n, None, rm, None),
                }
            }
        }
    }
}

/// Returns the instruction that broadcasts a number of some bytes to each lane.
fn broadcast(bytes: u8) -> Code {
    match bytes {
        1 => NARROW_BROADCAST[0],
        2 => NARROW_BROADCAST[1],
        _ => BROADCAST[usize::from(bytes == 8)],
    }
}

/// Calls a function with each register that a step reads.
fn for_each_read(program: &Program, item: &Item, f: impl FnMut(Reg)) {
    match item {
        Item::Make(reg) => program.made[reg.0 as usize].iter().flat_map(|i| i.args.iter().copied()).for_each(f),
        Item::Do(effect) => effect.reads().into_iter().for_each(f),
    }
}

/// The step of a register that no step reads.
const NEVER: u32 = u32::MAX;

/// Returns the most registers of a class that the results of some steps occupy at once.
pub(super) fn pressure(program: &Program, items: &[Item], class: Class) -> usize {
    let counts = |reg: Reg| program.classes[reg.0 as usize] == class;
    let in_body = |reg: Reg| program.made[reg.0 as usize].is_some() && !program.is_fixed(reg);
    // The item that reads each register last.
    let mut last: Vec<u32> = vec![NEVER; program.made.len()];
    for (at, item) in (0..).zip(items) {
        for_each_read(program, item, |reg| last[reg.0 as usize] = at);
    }
    let (mut live, mut most) = (0usize, 0);
    for (at, item) in (0..).zip(items) {
        if let Item::Make(reg) = *item
            && counts(reg)
        {
            live += 1;
            most = most.max(live);
            if last[reg.0 as usize] == NEVER {
                live -= 1;
            }
        }
        for_each_read(program, item, |reg| {
            let last = &mut last[reg.0 as usize];
            if *last == at && counts(reg) && in_body(reg) {
                live -= 1;
                // An item may read a register twice.
                *last = NEVER;
            }
        });
    }
    most
}
