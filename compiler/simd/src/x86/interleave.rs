//! Interleaves unrolled groups: each step of the body is emitted for all of them before the next step.
//!
//! The steps of one group mostly depend on each other. An out-of-order processor looks some dozens of instructions
//! ahead. In a short body it finds independent instructions in the next groups; in a long body only if the groups are
//! interleaved.
//!
//! No iteration accesses an element that another one stores, so groups may run in any order. Only an accumulator whose
//! order matters requires one group after the other.
//!
//! The indices of all groups are computed before the first step, and advance once for all of them.
//!
//! Invariant: the steps that follow alternate between groups: step n of a group is at `n * groups + group`.

use super::Level;

use super::inst::{Class, Effect, Inst, Item, Op, Reg};
use super::level::{MOST_UNROLLED, SPARE};
use super::program::{Carried, Program};
use super::registers::{MASKS, pressure};
use rustc_hash::FxHashMap;

/// The most steps of a body that is not worth interleaving.
const SHORT: usize = 8;
/// The shortest dependence chain that is worth interleaving with AVX2, where a body already has two vectors of each
/// value.
const CHAIN: usize = 12;
/// The most steps of such a body for each step of the chain: a body with more has independent instructions itself.
const WIDEST: usize = 4;
/// The most steps of all interleaved groups together.
const LONGEST: usize = 512;
/// Returns the number of vector registers reserved for loop invariants. Instructions of AVX2 read the others from
/// memory.
fn invariants(level: Level) -> usize {
    match level {
        Level::Avx2 => 2,
        Level::Avx512 => 4,
    }
}

/// Returns the program with at most `most` interleaved groups, and their number; `None` if that does not help.
pub(super) fn interleaved(program: &Program, most: u64) -> Option<(Program, usize)> {
    let orders = || (0..program.carried.len()).all(|n| in_any_order(program, n));
    let long = match program.level {
        Level::Avx2 => {
            let chain = chain(program);
            chain >= CHAIN && program.body.len() <= WIDEST * chain
        }
        Level::Avx512 => program.body.len() > SHORT,
    };
    if !long || !orders() {
        return None;
    }
    // At the step where a group has the most live values, each other group has at most one less.
    let live = pressure(program, &program.body, Class::Vector).saturating_sub(1);
    let possible = |&groups: &usize| {
        let registers = live * groups + SPARE + invariants(program.level);
        let fits = registers < program.level.registers().into();
        fits && groups as u64 <= most && program.body.len() * groups <= LONGEST
    };
    [MOST_UNROLLED, 2].into_iter().filter(possible).find_map(|groups| {
        let mut row = program.clone();
        row.interleave(groups);
        fits(&row, groups).then_some((row, groups))
    })
}

/// Returns the steps of the longest dependence chain of a group.
fn chain(program: &Program) -> usize {
    let mut chains: FxHashMap<Reg, usize> = FxHashMap::default();
    for item in &program.body {
        if let Item::Make(reg) = *item
            && let Some(inst) = &program.made[reg.0 as usize]
            && !inst.op.loads()
        {
            let before = inst.args.iter().filter_map(|arg| chains.get(arg)).max();
            chains.insert(reg, before.unwrap_or(&0) + 1);
        }
    }
    chains.into_values().max().unwrap_or(0)
}

/// Returns whether a carried value keeps its order if groups are interleaved.
fn in_any_order(program: &Program, n: usize) -> bool {
    let (reg, parallel) = match &program.carried[n] {
        Carried::Accumulator { reg, parallel, .. } => (reg, parallel),
        Carried::Index { by, .. } => return program.constant_of(*by).is_some(),
    };
    let takes = |item: &Item| match item {
        Item::Make(made) => {
            let inst = program.made[made.0 as usize].as_ref();
            // An instruction that reads it would have to wait for the previous group.
            2 * usize::from(inst.is_some_and(|inst| inst.args.contains(reg)))
        }
        Item::Do(effect @ (Effect::Accumulate { .. } | Effect::AccumulateFma { .. })) => {
            usize::from(effect.accumulator() == Some(n))
        }
        Item::Do(effect) => 2 * usize::from(effect.accumulator() == Some(n)),
    };
    parallel.is_some() || program.body.iter().map(takes).sum::<usize>() <= 1
}

/// Returns whether there are enough registers for all groups at once.
fn fits(program: &Program, groups: usize) -> bool {
    let carried = program.carried.iter().map(|c| if c.is_parallel() { groups } else { 1 }).sum::<usize>();
    let vectors = pressure(program, &program.row, Class::Vector) + carried + SPARE + invariants(program.level);
    let masks = pressure(program, &program.row, Class::Mask);
    vectors <= program.level.registers().into() && masks <= MASKS.len()
}

impl Program {
    /// Returns a multiple of a constant, in each lane.
    fn times(&mut self, by: Reg, times: u64) -> Reg {
        let Some(Op::Constant { bits, bytes }) = self.made[by.0 as usize].as_ref().map(|inst| inst.op) else {
            unreachable!("what grows does so by a constant")
        };
        let low = if bytes == 8 { u64::MAX } else { u64::from(u32::MAX) };
        self.constant(bits.wrapping_mul(times) & low, bytes)
    }

    /// Builds the interleaved body of some groups.
    fn interleave(&mut self, groups: usize) {
        let mut names: Vec<FxHashMap<Reg, Reg>> = vec![FxHashMap::default(); groups];
        for carried in self.carried.clone() {
            let Carried::Index { reg, code, by, .. } = carried else { continue };
            for (group, names) in names.iter_mut().enumerate().skip(1) {
                let ahead = self.times(by, group as u64);
                let inst = Inst { op: Op::Plain { code, immediate: None }, args: [reg, ahead].as_slice().into() };
                let own = self.new_reg(Some(inst), Class::Vector);
                names.insert(reg, own);
                self.row.push(Item::Make(own));
            }
            let step = self.times(by, groups as u64);
            self.row_steps.push(step);
        }
        for item in self.body.clone() {
            for (group, names) in names.iter_mut().enumerate() {
                let name = |reg: Reg| names.get(&reg).copied().unwrap_or(reg);
                let item = match item {
                    Item::Make(reg) if group > 0 => {
                        let mut inst = self.made[reg.0 as usize].clone();
                        inst.iter_mut().flat_map(|inst| &mut inst.args).for_each(|arg| *arg = name(*arg));
                        let own = self.new_reg(inst, self.classes[reg.0 as usize]);
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
