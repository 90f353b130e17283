//! Some groups of places in a row, woven: each step of the body for all of them, before the next step.
//!
//! The steps of one group mostly wait for each other. A processor that looks at some dozens of instructions ahead finds
//! enough others to do in the next groups if a body is short; in a long one it finds them only if they stand close.
//!
//! Places touch no element that another one stores, so groups may run in any order. Only an accumulator whose order
//! matters has to take in one group after the other.
//!
//! Invariant: a row has the steps of its groups in turn, the n-th of a group at `n * groups + group`.

use super::emit::SPARE;
use super::program::{Carried, Class, Effect, Item, Program, Reg, Width};
use super::registers::{MASKS, pressure};
use rustc_hash::FxHashMap;

/// Bodies of no more steps stand close enough one after the other.
const SHORT: usize = 8;
/// Steps that a row may have.
const LONGEST: usize = 512;
/// Vectors for numbers that are the same for all groups.
const NUMBERS: usize = 4;

/// The program with groups that are woven, `most` at most, and how many those are; `None` if that does not help.
pub(super) fn woven(program: &Program, most: u64) -> Option<(Program, usize)> {
    let orders = || (0..program.carried.len()).all(|n| in_any_order(program, n));
    if program.width == Width::Half || program.body.len() <= SHORT || !orders() {
        return None;
    }
    let possible = |&groups: &usize| groups as u64 <= most && program.body.len() * groups <= LONGEST;
    [4, 2].into_iter().filter(possible).find_map(|groups| {
        let mut woven = program.clone();
        woven.weave(groups);
        fits(&woven, groups).then_some((woven, groups))
    })
}

/// Whether what is carried has its order if groups are woven.
fn in_any_order(program: &Program, n: usize) -> bool {
    let Carried::Accumulator { reg, apart, .. } = &program.carried[n] else { return false };
    let takes = |item: &Item| match item {
        Item::Make(made) => {
            let inst = program.made[made.0 as usize].as_ref();
            // What reads it would have to wait for the group before.
            2 * usize::from(inst.is_some_and(|inst| inst.args.contains(reg)))
        }
        Item::Do(effect @ (Effect::Take { .. } | Effect::TakeFma { .. })) => {
            usize::from(effect.accumulator() == Some(n))
        }
        Item::Do(effect) => 2 * usize::from(effect.accumulator() == Some(n)),
    };
    apart.is_some() || program.body.iter().map(takes).sum::<usize>() <= 1
}

/// Whether there are registers for all groups at once.
fn fits(program: &Program, groups: usize) -> bool {
    let carried = program.carried.iter().map(|c| if c.is_apart() { groups } else { 1 }).sum::<usize>();
    let vectors = pressure(program, &program.row, Class::Vector) + carried + SPARE + NUMBERS;
    let masks = pressure(program, &program.row, Class::Mask);
    vectors <= program.width.registers().into() && masks <= MASKS.len()
}

impl Program {
    /// Makes the row of some groups.
    fn weave(&mut self, groups: usize) {
        let mut names: Vec<FxHashMap<Reg, Reg>> = vec![FxHashMap::default(); groups];
        for item in self.body.clone() {
            for (group, names) in names.iter_mut().enumerate() {
                let name = |reg: Reg| names.get(&reg).copied().unwrap_or(reg);
                let item = match item {
                    Item::Make(reg) if group > 0 => {
                        let mut inst = self.made[reg.0 as usize].clone();
                        inst.iter_mut().flat_map(|inst| &mut inst.args).for_each(|arg| *arg = name(*arg));
                        let own = self.new_reg(inst, self.classes[reg.0 as usize], false);
                        names.insert(reg, own);
                        Item::Make(own)
                    }
                    Item::Make(reg) => Item::Make(reg),
                    Item::Do(effect) => Item::Do(effect.renamed(name)),
                };
                self.row.push(item);
            }
        }
    }
}
