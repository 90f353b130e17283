//! Kernels over narrow integers: sixty-four bytes of elements per group, in lanes of 8 or 16 bits.
//!
//! An iteration of such a kernel is four bytes of memory: four elements of 8 bits, or two of 16. An expression that the
//! language computes in 32 bits, such as `u8((i32(x) + i32(w) + 1) >> 1)`, is computed in the fewest bits that give the
//! same result. The low bits of a sum or a product depend only on the low bits of the operands. If all bits are
//! significant, `ranges` computes how many there are.
//!
//! Invariant: if a value is [`exact`](Known::exact), each lane has the value of the expression, signed if its range has
//! negative numbers. Otherwise each lane has the low bits of the expression.

mod ranges;
mod values;

use super::{FEWEST, Lanes, VectorKernel};
use crate::lower::Lower;
use crate::lower::vector::Plan;
use crate::lower::vector::steps::{self, Step};
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value};
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Index, Reduce, Storage};
use girder_ir::ids::{ExprId, LocalId};
use girder_ir::types::ElemType;
use girder_simd::ir::{Lane, Memory};

/// The bytes of memory of an iteration.
const BYTES: u64 = 4;
/// The greatest number of operations of a body. A longer body is likely to have wider values.
const LONGEST: u32 = 80;

/// A kernel over narrow integers under construction.
struct Narrow<'p> {
    vk: VectorKernel<'p>,
    /// The number of bits of an element.
    element: u8,
    locals: SecondaryMap<LocalId, Option<Known>>,
    /// Whether some elements may skip the current position. Only elements that are already loaded may then be loaded.
    conditional: bool,
}

/// The value of a local and what is known of it.
#[derive(Clone, Copy)]
struct Known {
    value: Lanes,
    range: (i128, i128),
    exact: bool,
}

impl Lower<'_, '_> {
    /// Returns the bits of the elements that a plan's body loads, if it could run on narrow integers: all are
    /// contiguous and have the same size.
    fn narrow_element(&self, plan: &Plan) -> Option<u8> {
        let plain = plan.ramps.is_empty() && plan.totals.is_empty() && !plan.nested && plan.size <= LONGEST;
        if !plain {
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

    /// Emits elements of a loop as a kernel over narrow integers, if its body allows this. Returns how many of `count`
    /// elements the kernel processes, and how many are left over, if that is known.
    pub(super) fn narrow_kernel(
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
        let vk = VectorKernel::new(plan, per as u8, record);
        let mut narrow = Narrow { vk, element, locals: SecondaryMap::new(), conditional: false };
        self.narrow_steps(&mut narrow, &plan.steps)?;
        let (log, left_out) = (i64::from(per.trailing_zeros()), known.map(|n| n % per));
        let iterations = match known {
            Some(n) => self.i64((n / per) as i64),
            None => self.b.ins().ushr_imm_u(count, log),
        };
        self.call_kernel(&mut narrow.vk, iterations, known.map(|n| n / per), poll);
        let done = match left_out {
            Some(0) => count,
            _ => self.b.ins().ishl_imm_u(iterations, log),
        };
        Some((done, left_out))
    }

    /// Translates the terms of a row of an integer sum to a kernel over narrow integers, if possible. Returns the
    /// kernel, the value that each iteration adds to the lanes, and the number of elements per iteration. The record
    /// already has `bytes` bytes.
    pub(super) fn narrow_sum<'p>(
        &mut self,
        plan: &'p Plan,
        (record, bytes): (StackSlot, u32),
        r: &Reduce,
        length: u64,
    ) -> Option<(VectorKernel<'p>, Lanes, u64)> {
        let element = self.narrow_element(plan)?;
        let per = 8 * BYTES / u64::from(element);
        if !matches!(self.ty(r.value), ElemType::I32 | ElemType::U32)
            || !length.is_multiple_of(per)
            || length < FEWEST * per
        {
            return None;
        }
        let mut vk = VectorKernel::new(plan, per as u8, record);
        vk.bytes = bytes;
        let mut narrow = Narrow { vk, element, locals: SecondaryMap::new(), conditional: false };
        self.narrow_steps(&mut narrow, &plan.steps)?;
        let sum = self.narrow_terms(&mut narrow, r.value)?;
        Some((narrow.vk, sum, per))
    }

    fn narrow_steps(&mut self, narrow: &mut Narrow<'_>, steps: &[Step]) -> Option<()> {
        steps.iter().try_for_each(|step| self.narrow_step(narrow, step).ok_or(())).ok()
    }

    fn narrow_step(&mut self, narrow: &mut Narrow<'_>, step: &Step) -> Option<()> {
        match step {
            Step::Set { local, value } if narrow.vk.plan.differing.contains(*local) => {
                narrow.locals[*local] = Some(self.narrow_known(narrow, *value)?);
            }
            Step::Store { storage, index, value, stride, .. } => {
                let to = self.narrow_memory(narrow, (*storage, index), *stride)?;
                let value = self.narrow_value(narrow, *value, narrow.element)?;
                narrow.vk.ir.store(to, value, None);
            }
            Step::If { cond, then, els, differs: true, joins } => {
                let value = self.narrow_branches(narrow, *cond, (then, els), *joins)?;
                if let Some((value, (storage, index, stride))) = value.zip(steps::last_store(then)) {
                    let to = self.narrow_memory(narrow, (storage, index), stride)?;
                    let value = narrow.fit(value, narrow.element)?;
                    narrow.vk.ir.store(to, value, None);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Translates both branches of a condition. Each element keeps what its own branch has set. If they end with a
    /// common store, returns the value that it stores.
    fn narrow_branches(
        &mut self,
        narrow: &mut Narrow<'_>,
        cond: ExprId,
        (then, els): (&[Step], &[Step]),
        joins: bool,
    ) -> Option<Option<Known>> {
        // The condition is evaluated first, so that its loads are available to the branches.
        let bits = self.narrow_cond_bits(narrow, cond)?;
        self.narrow_mask(narrow, cond, bits)?;
        let before = narrow.locals.clone();
        let around = std::mem::replace(&mut narrow.conditional, true);
        let yes = self.narrow_branch(narrow, then, joins)?;
        let after_then = std::mem::replace(&mut narrow.locals, before.clone());
        let no = self.narrow_branch(narrow, els, joins)?;
        // The condition is evaluated with the locals from before both branches.
        let after_els = std::mem::replace(&mut narrow.locals, before);
        narrow.conditional = around;
        let set = steps::set_in([then, els]);
        let mut chosen = Vec::new();
        for local in set.keys().filter(|&l| set.contains(l)) {
            let value = match (after_then[local], after_els[local]) {
                (Some(yes), Some(no)) => Some(self.narrow_chosen(narrow, cond, yes, no)?),
                // It is read only where it is set.
                (yes, no) => yes.or(no),
            };
            chosen.push((local, value));
        }
        let stored = match yes.zip(no) {
            Some((yes, no)) => Some(self.narrow_chosen(narrow, cond, yes, no)?),
            None => None,
        };
        chosen.into_iter().for_each(|(local, value)| narrow.locals[local] = value);
        Some(stored)
    }

    /// Translates a branch. If it joins the other, translates all but its last store, and returns the value of that
    /// store.
    fn narrow_branch(&mut self, narrow: &mut Narrow<'_>, steps: &[Step], joins: bool) -> Option<Option<Known>> {
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

    /// Returns the elements of an access: four bytes for each iteration.
    fn narrow_memory(&mut self, narrow: &mut Narrow<'_>, at: (Storage, &Index), stride: i64) -> Option<Memory> {
        let ty = self.element_type(at.0);
        let fits = ty.is_int() && 8 * ty.bytes() == u32::from(narrow.element) && stride == i64::from(ty.bytes());
        fits.then(|| self.kernel_memory(&mut narrow.vk, at, BYTES as i64))
    }
}

impl Narrow<'_> {
    /// Returns the unsigned lane of a number of bits, which values have by default.
    fn lane(bits: u8) -> Lane {
        if bits == 8 { Lane::U8 } else { Lane::U16 }
    }

    /// Returns the bits of the lanes of a value.
    fn bits(&self, value: Lanes) -> u8 {
        self.vk.ir.lane(value).bits() as u8
    }
}
