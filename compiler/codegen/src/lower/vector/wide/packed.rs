//! Strips over narrow integers: sixty-four bytes of elements at a time, in lanes of 8 or 16 bits, where vectors have 512.
//!
//! A place of such a strip is four bytes of memory: four elements of 8 bits, or two of 16. What the language computes in
//! 32 bits (`u8((i32(x) + i32(w) + 1) >> 1)`) is computed in as few as give the same result: only the low bits of a sum
//! or a product decide those of what is stored, and where all bits count, `ranges` says how many there are.
//!
//! Invariant: a value that is [`exact`](Known::exact) has the value of its expression in each lane, signed if its range
//! has negative numbers; any other has its low bits.

mod ranges;
mod values;

use super::{FEWEST, Wide};
use crate::lower::Lower;
use crate::lower::vector::Plan;
use crate::lower::vector::steps::{self, Step};
use crate::wide::{Effect, Elements, Packed, Reg, STORE, Width};
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Index, Reduce, Storage};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;

/// Bytes of memory of a place.
const BYTES: u64 = 4;
/// A longer body has wider values sooner or later.
const LONGEST: u32 = 80;

/// A strip over narrow integers in the making.
struct Narrow<'w, 'p> {
    wide: &'w mut Wide<'p>,
    /// Bits of an element.
    element: u8,
    locals: SecondaryMap<LocalId, Option<Known>>,
    /// Some elements may not come here, so that nothing may be loaded that was not before.
    conditional: bool,
}

/// What is known of a local.
#[derive(Clone)]
struct Known {
    value: Packed,
    range: (i128, i128),
    exact: bool,
}

impl Narrow<'_, '_> {
    /// Vectors of a value in lanes of some bits.
    fn vectors(&self, bits: u8) -> usize {
        usize::from(bits / self.element)
    }
}

impl Lower<'_, '_> {
    /// Bits of the elements of a plan's body, if it might run on narrow integers: all lie side by side and have one size.
    fn narrow_element(&self, plan: &Plan) -> Option<u8> {
        let plain = plan.ramps.is_empty() && plan.totals.is_empty() && !plan.nested && plan.size <= LONGEST;
        if self.width() != Width::Full || !plain {
            return None;
        }
        let (first, _) = plan.loads.first()?;
        let bytes = self.ty(*first).bytes();
        let narrow = bytes < 4
            && plan.loads.iter().all(|&(e, stride)| {
                let ty = self.ty(e);
                ty.is_int() && ty.bytes() == bytes && stride == i64::from(bytes)
            });
        narrow.then_some(8 * bytes as u8)
    }

    /// Runs elements of a loop as a strip over narrow integers, if its body allows that: how many of `count`, and how many
    /// are left out, if that is known.
    pub(super) fn narrow_strip(
        &mut self,
        plan: &Plan,
        count: Value,
        known: Option<u64>,
        poll: bool,
    ) -> Option<(Value, Option<u64>)> {
        let element = self.narrow_element(plan)?;
        let per = 8 * BYTES / u64::from(element);
        if known.is_some_and(|n| n < FEWEST * per) {
            return None;
        }
        let record = self.slot(0);
        let mut wide = Wide::new(plan, self.width(), record);
        let mut narrow = Narrow { wide: &mut wide, element, locals: SecondaryMap::new(), conditional: false };
        self.narrow_steps(&mut narrow, &plan.steps)?;
        let (log, left_out) = (i64::from(per.trailing_zeros()), known.map(|n| n % per));
        let places = match known {
            Some(n) => self.i64((n / per) as i64),
            None => self.b.ins().ushr_imm_u(count, log),
        };
        self.call_strip(&mut wide, places, known.map(|n| n / per), poll);
        let done = match left_out {
            Some(0) => count,
            _ => self.b.ins().ishl_imm_u(places, log),
        };
        Some((done, left_out))
    }

    /// What the elements of a row add to the lanes of a sum of integers, if that can be done in narrow ones: how many of
    /// them are one place.
    pub(super) fn narrow_sum(&mut self, wide: &mut Wide<'_>, r: &Reduce, length: u64) -> Option<(Reg, u64)> {
        let element = self.narrow_element(wide.plan)?;
        let per = 8 * BYTES / u64::from(element);
        if !matches!(self.ty(r.value), ElemType::I32 | ElemType::U32)
            || !length.is_multiple_of(per)
            || length < FEWEST * per
        {
            return None;
        }
        let plan = wide.plan;
        let mut narrow = Narrow { wide, element, locals: SecondaryMap::new(), conditional: false };
        self.narrow_steps(&mut narrow, &plan.steps)?;
        Some((self.narrow_terms(&mut narrow, r.value)?, per))
    }

    fn narrow_steps(&mut self, narrow: &mut Narrow<'_, '_>, steps: &[Step]) -> Option<()> {
        steps.iter().try_for_each(|step| self.narrow_step(narrow, step).ok_or(())).ok()
    }

    fn narrow_step(&mut self, narrow: &mut Narrow<'_, '_>, step: &Step) -> Option<()> {
        match step {
            Step::Set { local, value } if narrow.wide.plan.differing.contains(*local) => {
                narrow.locals[*local] = Some(self.narrow_known(narrow, *value)?);
            }
            Step::Store { storage, index, value, stride, .. } => {
                let to = self.narrow_place(narrow, (*storage, index), *stride)?;
                let value = self.narrow_value(narrow, *value, narrow.element)?;
                narrow.store(to, &value);
            }
            Step::If { cond, then, els, differs: true, joins } => {
                let value = self.narrow_branches(narrow, *cond, (then, els), *joins)?;
                if let Some((value, (storage, index, stride))) = value.zip(steps::last_store(then)) {
                    let to = self.narrow_place(narrow, (storage, index), stride)?;
                    let value = narrow.fit(&value, narrow.element)?;
                    narrow.store(to, &value);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Both branches; each element keeps what its own has set. If they end with one store, what it stores.
    fn narrow_branches(
        &mut self,
        narrow: &mut Narrow<'_, '_>,
        cond: ExprId,
        (then, els): (&[Step], &[Step]),
        joins: bool,
    ) -> Option<Option<Known>> {
        // What the condition loads is there for the branches.
        let bits = self.narrow_cond_bits(narrow, cond)?;
        self.narrow_masks(narrow, cond, bits)?;
        let before = narrow.locals.clone();
        let around = std::mem::replace(&mut narrow.conditional, true);
        let yes = self.narrow_branch(narrow, then, joins)?;
        let after_then = std::mem::replace(&mut narrow.locals, before.clone());
        let no = self.narrow_branch(narrow, els, joins)?;
        // The condition is that of before both.
        let after_els = std::mem::replace(&mut narrow.locals, before);
        narrow.conditional = around;
        let set = steps::set_in([then, els]);
        let mut chosen = Vec::new();
        for local in set.keys().filter(|&l| set.contains(l)) {
            let value = match (&after_then[local], &after_els[local]) {
                (Some(yes), Some(no)) => Some(self.narrow_chosen(narrow, cond, yes, no)?),
                // Read only where it is set.
                (yes, no) => yes.clone().or(no.clone()),
            };
            chosen.push((local, value));
        }
        let stored = match yes.zip(no) {
            Some((yes, no)) => Some(self.narrow_chosen(narrow, cond, &yes, &no)?),
            None => None,
        };
        chosen.into_iter().for_each(|(local, value)| narrow.locals[local] = value);
        Some(stored)
    }

    /// A branch; of one that joins the other, all but its last store, and what that stores.
    fn narrow_branch(&mut self, narrow: &mut Narrow<'_, '_>, steps: &[Step], joins: bool) -> Option<Option<Known>> {
        let Some((last, before)) = steps.split_last().filter(|_| joins) else {
            let stores = steps::any_store(steps);
            self.narrow_steps(narrow, if stores { return None } else { steps })?;
            return Some(None);
        };
        (!steps::any_store(before)).then_some(())?;
        self.narrow_steps(narrow, before)?;
        match last {
            Step::Store { value, .. } => self.narrow_known(narrow, *value).map(Some),
            Step::If { cond, then, els, .. } => self.narrow_branches(narrow, *cond, (then, els), true),
            _ => None,
        }
    }

    /// The elements of an access, four bytes for each place.
    fn narrow_place(&mut self, narrow: &mut Narrow<'_, '_>, at: (Storage, &Index), stride: i64) -> Option<Elements> {
        let ty = self.element_type(at.0);
        let fits = ty.is_int() && 8 * ty.bytes() == u32::from(narrow.element) && stride == i64::from(ty.bytes());
        fits.then(|| self.wide_place_of(narrow.wide, at, (BYTES as i64, BYTES as u32)))
    }
}

impl Narrow<'_, '_> {
    fn store(&mut self, to: Elements, value: &Packed) {
        self.wide.program.effect(Effect::Store { code: STORE[0], to, value: value.regs[0], mask: None });
    }
}
