//! A program of 512-bit vectors as one of their halves, for hosts whose vectors have 256 bits.
//!
//! # Note: Halves
//! Each vector becomes two: the halves of sixteen lanes of 32 bits, or of eight of 64. A mask becomes vectors, one for
//! eight places with lanes of 32 bits, or two with lanes of 64; each form is made when it is asked for. Nothing goes from
//! places of one half of a group to those of the other, so that the whole body is made for the first eight places and
//! then for the last eight, which needs half the registers; a body that needs few is made for both at once, which
//! shares what is the same for all. The last group has a body of its own, where everything that touches memory or an
//! accumulator is under the mask of the places that there are.
//!
//! Invariant: each half has the bits that the instruction of 512 bits gives, and elements are touched in the same order
//! for each place.

mod arith;
mod masks;
mod moves;
mod shape;
mod stretches;

use super::codes::UPPER_128;
use super::encode::Code;
use super::inst::{Class, Item, Op, Reg, Width};
use super::program::{Carried, Lanes, Program};
use super::registers::pressure;
use masks::Mask;
use rustc_hash::FxHashMap;
use shape::Shape;
use stretches::Phases;

/// Needs for values of a body up to which both halves are made at once.
const FEW: usize = 5;

/// Translates a program.
pub(super) fn halves(from: &Program) -> Program {
    let mut to = Program::new(Width::Half);
    to.pointers.clone_from(&from.pointers);
    let (vectors, masks) = (FxHashMap::default(), FxHashMap::default());
    let shapes = shape::shapes(from);
    let stretches = stretches::phases(from);
    let mut h = Halves { from, to, shapes, stretches, vectors, masks, accumulators: Vec::new(), tail: false };
    h.carry();
    h.whole();
    let body = h.to.begin_tail();
    let stays = |reg: Reg| from.is_fixed(reg) || from.made[reg.0 as usize].is_none();
    h.vectors.retain(|&(reg, _), _| stays(reg));
    h.masks.retain(|&(reg, _), _| stays(reg));
    h.tail = true;
    h.whole();
    h.to.tail = std::mem::replace(&mut h.to.body, body);
    h.to.prune();
    h.to
}

struct Halves<'p> {
    from: &'p Program,
    to: Program,
    shapes: Vec<Shape>,
    stretches: Phases,
    /// A half of a vector.
    vectors: FxHashMap<(Reg, u8), Reg>,
    /// A mask for eight places.
    masks: FxHashMap<(Reg, u8), Mask>,
    /// Of each carried accumulator the halves.
    accumulators: Vec<[(usize, Reg); 2]>,
    /// The body of the last group is made.
    tail: bool,
}

impl Halves<'_> {
    /// What is carried, in the same order.
    fn carry(&mut self) {
        for carried in &self.from.carried {
            let halves = [0, 1].map(|part| match *carried {
                Carried::Accumulator { reg, at, start, .. } => {
                    let start = start.map(|start| self.vector(start, part));
                    let at = Lanes { offset: at.offset + 32 * u32::from(part), ..at };
                    let (accumulator, half) = self.to.accumulator(at, start);
                    self.vectors.insert((reg, part), half);
                    (accumulator, half)
                }
                Carried::Ramp { reg, start, code, by } => {
                    let (start, by) = (self.vector(start, part), self.vector(by, part));
                    let half = self.to.ramp(start, code.w == 1, by);
                    self.vectors.insert((reg, part), half);
                    (usize::MAX, half)
                }
            });
            self.accumulators.push(halves);
        }
    }

    /// The body for all places.
    fn whole(&mut self) {
        if pressure(self.from, &self.from.body, Class::Vector) <= FEW {
            return self.body(&[0, 1]);
        }
        self.body(&[0]);
        self.body(&[1]);
    }

    /// The body for the first eight places, the last eight, or both.
    fn body(&mut self, halves: &[u8]) {
        for item in &self.from.body {
            match item {
                Item::Make(reg) => self.ahead(*reg, halves),
                Item::Do(effect) => halves.iter().for_each(|&half| self.effect(effect, half)),
            }
        }
    }

    /// What an instruction makes for some halves. What is the same for all places, or counts them, waits until it is
    /// asked for.
    fn ahead(&mut self, reg: Reg, halves: &[u8]) {
        let is_mask = self.from.classes[reg.0 as usize] == Class::Mask;
        let shape = self.shapes[reg.0 as usize];
        let mut make = |part: u8| match is_mask {
            true => drop(self.mask(reg, part)),
            false => drop(self.vector(reg, part)),
        };
        match shape {
            Shape::Any => {}
            Shape::Sixteen => halves.iter().for_each(|&half| make(half)),
            Shape::Eight { half, vectors } if halves.contains(&half) => (0..vectors).for_each(make),
            Shape::Eight { .. } => {}
        }
    }

    /// A half of a vector.
    fn vector(&mut self, reg: Reg, part: u8) -> Reg {
        if let Some(&known) = self.vectors.get(&(reg, part)) {
            return known;
        }
        let from = self.from;
        let inst = from.made[reg.0 as usize].as_ref().expect("what is carried is known");
        let half = self.translated(inst, part);
        self.vectors.insert((reg, part), half);
        half
    }

    fn plain(&mut self, code: Code, args: &[Reg]) -> Reg {
        self.to.plain(code, args)
    }

    fn with(&mut self, code: Code, immediate: u8, args: &[Reg]) -> Reg {
        self.to.make(Op::Plain { code, immediate: Some(immediate) }, args)
    }

    /// The upper 128 bits.
    fn upper_128(&mut self, reg: Reg) -> Reg {
        self.to.make(Op::Reversed { code: UPPER_128, immediate: Some(1) }, &[reg])
    }

    fn constant(&mut self, bits: u64, long: bool) -> Reg {
        self.to.constant(bits, if long { 8 } else { 4 })
    }
}
