//! Bodies as vector kernels: sixteen iterations at a time, on hosts with vectors of 512 or 256 bits.
//!
//! Values that are the same in all iterations are evaluated here, once, and stored in a *record* on the stack, together
//! with the addresses of the first iteration's elements. The kernel does the rest. Unlike [`Plan`]s for Cranelift's
//! vectors, those for vector kernels may mix widths.
//!
//! - `lanes`: the language's types and operators in the vector IR
//! - `body`: the steps of a plan; `nested`: inner loops and reductions; `interleaved`: stores that are combined with
//!   neighbours
//! - `outer`: loops around a kernel that the kernel runs itself
//! - `reduce`, `totals`: reductions and totals of a loop
//! - `narrow`: kernels over integers of 8 and 16 bits
//!
//! # Note: Chunks
//! A kernel does not poll the stop flag. A long loop calls it for a limited number of iterations at a time, and polls
//! in between.
//!
//! Invariant: a kernel is called for at least one iteration, and runs the body for exactly the given number of
//! iterations.

mod body;
mod interleaved;
mod lanes;
mod narrow;
mod nested;
mod outer;
mod reduce;
mod totals;

pub(super) use lanes::lane;

use super::Plan;
use super::loops::Rest;
use super::nest::{Loops, Nest};
use super::steps::{self, Exit};
use crate::lower::loops::Range;
use crate::lower::{Lower, NAMESPACE};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData, Signature, StackSlot, Type,
    UserExternalName, Value,
};
use cranelift_entity::SecondaryMap;
use girder_codelet::nest::loop_nest;
use girder_ir::codelet::{Label, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId};
use girder_simd::ir::{Lane, Moving, Pointer, Value as Lanes};
use girder_simd::{Kernel, Level, Machine, Options, assemble};
use rustc_hash::FxHashMap;
use totals::KernelTotal;

/// The least number of iterations for which a call is profitable.
const FEWEST: u64 = 16;
/// The number of iterations after which a long loop polls the stop flag.
const CHUNK: u64 = 1 << 16;

/// A vector kernel under construction.
pub(super) struct VectorKernel<'p> {
    plan: &'p Plan,
    ir: Kernel,
    slot: StackSlot,
    /// The values that are stored in the record, with their offsets.
    record: Vec<(u32, Value)>,
    /// The addresses of the first iteration's elements, with their origins.
    pointers: Vec<(Origin, Pointer, Value)>,
    bytes: u32,
    locals: SecondaryMap<LocalId, Option<Lanes>>,
    /// The mask of the iterations that reach the current position, if not all do.
    active: Option<Lanes>,
    /// Stores that are to be combined with their neighbours.
    pending: Vec<interleaved::Pending>,
    /// The constant 0 that the variables of inner loops' indices have. Their values are in [`Lower::ahead`].
    zero: Option<Value>,
    totals: Vec<KernelTotal>,
    /// Values that were evaluated early.
    early: FxHashMap<ExprId, Lanes>,
    /// Indices in the record: the offset, the step from iteration to iteration, the type, and the value in the first
    /// iteration.
    indices: Vec<(u32, i64, Type, Value)>,
}

/// A number of steps, and the bytes of each.
type Ahead = (Value, fn(Moving) -> i64);

/// The parts of an address, except its constant offset.
#[derive(PartialEq)]
struct Origin {
    storage: Storage,
    terms: Vec<(Value, i64)>,
    stride: i64,
    /// The bytes from trip to trip of the outer loop; 0 without one.
    outer: i64,
}

impl Lower<'_, '_> {
    /// Returns a plan for a vector kernel if it is profitable, and whether the last iteration of the loop has to stay
    /// scalar.
    pub(in crate::lower) fn kernel_plan(
        &self,
        index: (LocalId, ExprId, ExprId),
        trips: Option<u64>,
        (body, label): (&StmtBlock, Label),
    ) -> Option<(Plan, bool)> {
        let plan = self.plan_of(Some(index), (body, Some(Exit::Continue(label))), &[], true)?;
        let keeps = self.outlives(&plan, &girder_codelet::locals::reads(self.codelet, body));
        let enough = trips.is_none_or(|n| n >= FEWEST + u64::from(keeps));
        let works = plan.stores() || !plan.totals.is_empty();
        if !enough {
            return self.refuse("it has fewer than 16 iterations");
        }
        if !self.kernel_pays(&plan) {
            return self.refuse("it does little besides moving elements that do not lie side by side");
        }
        (works && self.has_room_for_totals(&plan)).then_some((plan, keeps))
    }

    /// Returns whether a vector kernel is profitable. Elements that are not contiguous are moved one by one, so there
    /// must be enough other work.
    pub(super) fn kernel_pays(&self, plan: &Plan) -> bool {
        // Strided elements could be contiguous for the inner loops, which could become kernels instead.
        let near = if plan.nested { plan.strided == 0 } else { plan.size >= 3 * plan.strided };
        let level = self.level();
        let vectors = self.layout(plan).iter().map(|kept| kept.vectors(level)).sum();
        near && carries(level, vectors, plan.ramp_uses)
    }

    /// Returns the level of the host's vectors. It is meaningful only if there are any.
    pub(super) fn level(&self) -> Level {
        self.features.simd.unwrap_or(Level::Avx512)
    }

    /// Emits iterations of a loop as a vector kernel. With `keeps`, the last one is left over.
    pub(in crate::lower) fn kernel_loop(&mut self, plan: &Plan, range: &Range, keeps: bool) -> Rest {
        let var = plan.var.expect("a loop has an index");
        if let Some(trips) = range.trips {
            let count = trips - u64::from(keeps);
            self.write(var, range.lo);
            let iterations = self.i64(count as i64);
            if !keeps && let Some((done, left_out)) = self.narrow_kernel(plan, iterations, Some(count), range.poll) {
                return match left_out {
                    Some(0) => Rest::Nothing,
                    left => Rest::From(self.b.ins().iadd(range.lo, done), left),
                };
            }
            self.run_kernel(plan, iterations, Some(count), range.poll);
            return match keeps {
                false => Rest::Nothing,
                true => Rest::From(self.b.ins().iadd_imm_s(range.lo, count as i64), Some(1)),
            };
        }
        let (many, join) = (self.b.create_block(), self.b.create_block());
        let start = self.b.append_block_param(join, I64);
        let any = self.b.ins().icmp(IntCC::SignedLessThan, range.lo, range.hi);
        // If the span overflows, it is negative, and the loop stays scalar.
        let span = self.b.ins().isub(range.hi, range.lo);
        let count = self.b.ins().iadd_imm_s(span, -i64::from(keeps));
        let enough = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, count, FEWEST as i64);
        let enter = self.b.ins().band(any, enough);
        self.b.ins().brif(enter, many, &[], join, &[range.lo.into()]);
        self.enter(many);
        self.write(var, range.lo);
        let narrow = if keeps { None } else { self.narrow_kernel(plan, count, None, range.poll) };
        if narrow.is_none() {
            self.run_kernel(plan, count, None, range.poll);
        }
        let done = narrow.map_or(count, |narrow| narrow.0);
        let next = self.b.ins().iadd(range.lo, done);
        self.b.ins().jump(join, &[next.into()]);
        self.enter(join);
        Rest::From(start, None)
    }

    /// Returns a plan for a loop whose body consists of short loops, as a vector kernel, and the iterations of all of
    /// them.
    pub(in crate::lower) fn nest_plan(
        &self,
        index: (LocalId, ExprId, ExprId),
        trips: Option<u64>,
        (body, label): (&StmtBlock, Label),
    ) -> Option<(Plan, u64)> {
        let (group, trips) = (self.features.nest_group().filter(|_| !self.counts_in(body))?, trips?);
        let found = loop_nest(&self.folded, (trips, body, label), group)?;
        if !found.inner.iter().all(|inner| self.is_free(inner.site, Some(inner.trips))) {
            return None;
        }
        let nest = Nest::of(&found);
        let steps = steps::steps(found.body, Some(Exit::Continue(found.label)))?;
        let plan = self.plan_of_steps(Some(index), Loops { nest: nest.clone(), outer: None }, steps, &[], true)?;
        let keeps = self.outlives(&plan, &girder_codelet::locals::reads(self.codelet, body));
        let pays = plan.stores() && plan.strided == 0 && plan.ramp_uses == 0;
        (pays && !keeps).then(|| (plan, trips * nest.iterations()))
    }

    /// Emits all iterations of a nest as a vector kernel.
    pub(in crate::lower) fn nest_loop(&mut self, plan: &Plan, count: u64, range: &Range) -> Rest {
        let zero = self.i64(0);
        plan.nest.indices().for_each(|index| self.write(index, zero));
        self.write(plan.var.expect("a loop has an index"), range.lo);
        let iterations = self.i64(count as i64);
        self.run_kernel(plan, iterations, Some(count), range.poll);
        Rest::Nothing
    }

    /// Emits a kernel for `count` iterations from the current index on.
    pub(super) fn run_kernel(&mut self, plan: &Plan, count: Value, known: Option<u64>, poll: bool) {
        let record = self.slot(0);
        let totals = self.layout(plan);
        self.begin_totals(record, &totals);
        let mut vk = VectorKernel::new(plan, 1, record);
        vk.add_totals(&totals);
        self.kernel_steps(&mut vk, &plan.steps);
        vk.store_pending(None);
        self.call_kernel(&mut vk, count, known, poll);
        self.end_totals(record, &totals);
    }

    /// Assembles the kernel and stores the numbers of its record. Returns the function and the address of the record.
    fn assembled(&mut self, vk: &mut VectorKernel<'_>, iterations: Option<u64>) -> (FuncRef, Value) {
        let size = &mut self.b.func.sized_stack_slots[vk.slot].size;
        *size = vk.bytes.max(*size);
        vk.ir.prune();
        let number = self.kernels.len() as u32;
        let options =
            Options { iterations, idempotent: vk.plan.idempotent, listing: self.listed, ..self.features.options };
        let mut machine = match self.features.reference {
            Some(reference) => Machine::calling(reference, Box::leak(Box::new(vk.ir.clone()))),
            None => assemble(&vk.ir, self.level(), &options),
        };
        machine.listing = machine.listing.map(|listing| format!("{}{listing}", vk.ir));
        self.kernels.push(machine);
        let base = self.b.ins().stack_addr(I64, vk.slot, Offset32::new(0));
        let callee = self.kernel_function(number);
        let flags = MemFlagsData::new().with_notrap();
        for &(offset, value) in &vk.record {
            self.b.ins().store(flags, value, base, Offset32::new(offset as i32));
        }
        (callee, base)
    }

    /// Stores the addresses of the record, as they are some steps ahead.
    fn store_pointers(&mut self, vk: &VectorKernel<'_>, base: Value, ahead: Option<Ahead>) {
        let flags = MemFlagsData::new().with_notrap();
        for &(_, pointer, address) in &vk.pointers {
            let moving = vk.ir.pointers[pointer.0 as usize];
            let now = match ahead {
                Some((done, bytes)) => {
                    let ahead = self.scaled(done, bytes(moving));
                    self.b.ins().iadd(address, ahead)
                }
                None => address,
            };
            self.b.ins().store(flags, now, base, Offset32::new(moving.offset as i32));
        }
    }

    /// Calls the kernel for all iterations, in chunks if they may be many.
    fn call_kernel(&mut self, vk: &mut VectorKernel<'_>, count: Value, known: Option<u64>, poll: bool) {
        let short = calls_once(poll, known);
        let (callee, base) = self.assembled(vk, short);
        if !poll || short.is_some() {
            self.store_pointers(vk, base, None);
            self.b.ins().call(callee, &[base, count]);
            return;
        }
        let flags = MemFlagsData::new().with_notrap();
        let zero = self.i64(0);
        let end = self.b.ins().iadd_imm_s(count, CHUNK as i64 - 1);
        let end = self.b.ins().band_imm_s(end, -(CHUNK as i64));
        let chunks = Range { lo: zero, hi: end, step: CHUNK as i64, trips: None, poll: true };
        self.counted(chunks, None, |l, done| {
            l.store_pointers(vk, base, Some((done, |moving| moving.stride)));
            for (offset, step, ty, first) in &vk.indices {
                let ahead = l.scaled(done, *step);
                let ahead = if ty.bytes() == 4 { l.b.ins().ireduce(*ty, ahead) } else { ahead };
                let now = l.b.ins().iadd(*first, ahead);
                l.b.ins().store(flags, now, base, Offset32::new(*offset as i32));
            }
            let left = l.b.ins().isub(count, done);
            let chunk = l.i64(CHUNK as i64);
            let now = l.b.ins().umin(left, chunk);
            l.b.ins().call(callee, &[base, now]);
            true
        });
    }

    /// Declares the n-th vector kernel as a function.
    fn kernel_function(&mut self, number: u32) -> FuncRef {
        let mut signature = Signature::new(self.convention);
        signature.params.extend([AbiParam::new(I64); 2]);
        let signature = self.b.import_signature(signature);
        let name = UserExternalName { namespace: NAMESPACE, index: number };
        let name = ExternalName::user(self.b.func.declare_imported_user_function(name));
        self.b.import_function(ExtFuncData { name, signature, colocated: true, patchable: false })
    }
}

/// Returns the number of iterations, if it is known and one call runs all of them.
fn calls_once(poll: bool, known: Option<u64>) -> Option<u64> {
    known.filter(|&n| !poll || n <= CHUNK)
}

/// Returns whether a level has enough registers for the values that are carried from group to group: the registers of
/// accumulators, and one index for each of `index_uses` uses.
fn carries(level: Level, accumulators: usize, index_uses: u32) -> bool {
    let most = level.most_indices();
    let carried = accumulators + level.vectors(Lane::I64) * (index_uses as usize).min(most);
    index_uses as usize <= most && carried <= level.most_carried()
}

impl<'p> VectorKernel<'p> {
    pub(super) fn new(plan: &'p Plan, per_iteration: u8, slot: StackSlot) -> VectorKernel<'p> {
        VectorKernel {
            plan,
            slot,
            ir: Kernel::new(per_iteration),
            record: Vec::new(),
            pointers: Vec::new(),
            bytes: 0,
            locals: SecondaryMap::new(),
            active: None,
            pending: Vec::new(),
            zero: None,
            totals: Vec::new(),
            early: FxHashMap::default(),
            indices: Vec::new(),
        }
    }

    /// Allocates space in the record and returns its offset.
    fn room(&mut self, bytes: u32) -> u32 {
        let offset = self.bytes.next_multiple_of(bytes.min(8));
        self.bytes = offset + bytes;
        offset
    }

    /// Adds a value to the record and returns its offset.
    fn put(&mut self, value: Value, bytes: u32) -> u32 {
        let offset = self.room(bytes);
        self.record.push((offset, value));
        offset
    }

    /// Returns the pointer with an origin. If there is none, creates it with the address that `address` computes.
    fn pointer(&mut self, origin: Origin, address: impl FnOnce() -> Value) -> Pointer {
        if let Some((_, pointer, _)) = self.pointers.iter().find(|p| p.0 == origin) {
            return *pointer;
        }
        let offset = self.room(8);
        let pointer = self.ir.pointer(Moving { offset, stride: origin.stride, outer: origin.outer });
        self.pointers.push((origin, pointer, address()));
        pointer
    }
}
