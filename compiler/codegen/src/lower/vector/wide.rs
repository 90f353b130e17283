//! Bodies as strips: sixteen places at a time, where the host has vectors of 512 or 256 bits.
//!
//! What is the same at all places is evaluated here, once, and put into a *record* on the stack, next to the address of
//! the first place's elements; the strip does the rest. Unlike [`Plan`]s for Cranelift's vectors, those for strips may
//! mix widths.
//!
//! # Note: Chunks
//! A strip does not look at the stop flag. A long loop calls it for some places at a time, and looks in between.
//!
//! Invariant: a strip is called for one place at least, and does what the body does for as many as it is told.

mod body;
mod nested;
mod packed;
mod reduce;
mod stretch;
mod totals;

use super::Plan;
use super::loops::Rest;
use super::steps::Exit;
use crate::lower::Lower;
use crate::lower::loops::Range;
use crate::wide::{LANES, Moving, Places, Pointer, Program, Strip, Value as Lanes, WIDEST, Width, assemble};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, InstBuilder, MemFlagsData, Signature, StackSlot, Type, UserExternalName, Value,
};
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{Label, StmtBlock, Storage};
use girder_ir::ids::{ExprId, LocalId};
use rustc_hash::FxHashMap;
use totals::Lane;

/// Fewer places than this do not pay for a call.
const FEWEST: u64 = 16;
/// Places after which a long loop looks at the stop flag.
const CHUNK: u64 = 1 << 16;

/// A strip in the making.
pub(super) struct Wide<'p> {
    plan: &'p Plan,
    /// Of the host's vectors.
    width: Width,
    program: Program,
    slot: StackSlot,
    /// What is put into the record, and where.
    record: Vec<(u32, Value)>,
    /// Addresses of the first place's elements, with what they are made from.
    pointers: Vec<(Place, Pointer, Value)>,
    bytes: u32,
    locals: SecondaryMap<LocalId, Option<Lanes>>,
    /// The places that come to where the code stands, if not all do.
    there: Option<Lanes>,
    /// What is stored together with its neighbours.
    pending: Vec<stretch::Pending>,
    /// What the indices of inner loops stand at, besides what is ahead.
    zero: Option<Value>,
    totals: Vec<Lane>,
    /// What was evaluated early.
    early: FxHashMap<ExprId, Lanes>,
    /// Indices in the record: where, by how much they grow from place to place, and the first.
    ramps: Vec<(u32, i64, Type, Value)>,
}

/// What an address is made from, but for a number.
#[derive(PartialEq)]
struct Place {
    storage: Storage,
    terms: Vec<(Value, i64)>,
    stride: i64,
}

impl Lower<'_, '_> {
    /// A plan for a strip if it pays, and whether the last place of the loop has to stay scalar.
    pub(in crate::lower) fn wide_plan(
        &self,
        index: (LocalId, ExprId, ExprId),
        trips: Option<u64>,
        (body, label): (&StmtBlock, Label),
    ) -> Option<(Plan, bool)> {
        let plan = self.plan_of(Some(index), (body, Some(Exit::Continue(label))), &[], true)?;
        let keeps = self.outlives(&plan, &girder_codelet::locals::reads(self.codelet, body));
        let enough = trips.is_none_or(|n| n >= FEWEST + u64::from(keeps));
        let works = plan.stores() || !plan.totals.is_empty();
        (enough && works && self.has_room_for_totals(&plan) && self.strip_pays(&plan)).then_some((plan, keeps))
    }

    /// Elements that do not lie side by side are moved one by one, so there must be enough work besides.
    pub(super) fn strip_pays(&self, plan: &Plan) -> bool {
        // What lies apart could lie side by side for the loops inside, which could be the ones that become strips.
        let near = if plan.nested { plan.apart == 0 } else { plan.size >= 3 * plan.apart };
        let lanes = self.layout(plan).iter().map(|kept| kept.vectors(self.width())).sum();
        near && self.carries(lanes, plan.ramp_uses)
    }

    /// Whether a strip has registers for what it carries from group to group: some vectors of lanes, and indices that are
    /// used as values so often.
    fn carries(&self, lanes: usize, ramp_uses: u32) -> bool {
        // Each of 512 bits becomes two halves.
        let (parts, most) = if self.width() == Width::Half { (2, 1) } else { (1, 4) };
        // An index of 64 bits takes two vectors.
        let carried = parts * (lanes + 2 * ramp_uses.min(most) as usize);
        ramp_uses <= most && carried + usize::from(WIDEST) <= self.width().registers().into()
    }

    /// Of the host's vectors, where there are strips.
    pub(super) fn width(&self) -> Width {
        self.features.strips.unwrap_or(Width::Full)
    }

    /// Runs places of a loop as a strip; `keeps` leaves the last one.
    pub(in crate::lower) fn wide_loop(&mut self, plan: &Plan, range: &Range, keeps: bool) -> Rest {
        let var = plan.var.expect("a loop has an index");
        if let Some(trips) = range.trips {
            let count = trips - u64::from(keeps);
            self.write(var, range.lo);
            let places = self.i64(count as i64);
            if !keeps && let Some((done, left_out)) = self.narrow_strip(plan, places, Some(count), range.poll) {
                return match left_out {
                    Some(0) => Rest::Nothing,
                    left => Rest::From(self.b.ins().iadd(range.lo, done), left),
                };
            }
            self.strip(plan, places, Some(count), range.poll);
            return match keeps {
                false => Rest::Nothing,
                true => Rest::From(self.b.ins().iadd_imm_s(range.lo, count as i64), Some(1)),
            };
        }
        let (many, join) = (self.b.create_block(), self.b.create_block());
        let start = self.b.append_block_param(join, I64);
        let any = self.b.ins().icmp(IntCC::SignedLessThan, range.lo, range.hi);
        // A span that overflows comes out negative and stays scalar.
        let span = self.b.ins().isub(range.hi, range.lo);
        let count = self.b.ins().iadd_imm_s(span, -i64::from(keeps));
        let enough = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, count, FEWEST as i64);
        let enter = self.b.ins().band(any, enough);
        self.b.ins().brif(enter, many, &[], join, &[range.lo.into()]);
        self.enter(many);
        self.write(var, range.lo);
        let narrow = if keeps { None } else { self.narrow_strip(plan, count, None, range.poll) };
        if narrow.is_none() {
            self.strip(plan, count, None, range.poll);
        }
        let done = narrow.map_or(count, |narrow| narrow.0);
        let next = self.b.ins().iadd(range.lo, done);
        self.b.ins().jump(join, &[next.into()]);
        self.enter(join);
        Rest::From(start, None)
    }

    /// Runs `count` places from the one that the index stands at.
    pub(super) fn strip(&mut self, plan: &Plan, count: Value, known: Option<u64>, poll: bool) {
        let record = self.slot(0);
        let totals = self.layout(plan);
        self.begin_totals(record, &totals);
        let mut wide = Wide::new(plan, self.width(), record);
        wide.add_totals(&totals);
        self.wide_steps(&mut wide, &plan.steps);
        wide.store_pending(None);
        self.call_strip(&mut wide, count, known, poll);
        self.end_totals(record, &totals);
    }

    /// Fills the record and calls the strip for all places, in chunks if they may be many.
    fn call_strip(&mut self, wide: &mut Wide<'_>, count: Value, known: Option<u64>, poll: bool) {
        let size = &mut self.b.func.sized_stack_slots[wide.slot].size;
        *size = wide.bytes.max(*size);
        wide.set_totals_apart();
        wide.program.prune();
        let short = calls_once(poll, known);
        let number = self.strips.len() as u32;
        self.strips.push(assemble(
            &wide.program,
            wide.width,
            Places { known: short, idempotent: wide.plan.idempotent },
            self.listed,
        ));
        let base = self.b.ins().stack_addr(I64, wide.slot, Offset32::new(0));
        let callee = self.strip_function(number);
        let flags = MemFlagsData::new().with_notrap();
        for &(offset, value) in &wide.record {
            self.b.ins().store(flags, value, base, Offset32::new(offset as i32));
        }
        if !poll || short.is_some() {
            for &(_, pointer, address) in &wide.pointers {
                let offset = wide.program.pointers[pointer.0 as usize].offset;
                self.b.ins().store(flags, address, base, Offset32::new(offset as i32));
            }
            self.b.ins().call(callee, &[base, count]);
            return;
        }
        let zero = self.i64(0);
        let end = self.b.ins().iadd_imm_s(count, CHUNK as i64 - 1);
        let end = self.b.ins().band_imm_s(end, -(CHUNK as i64));
        let chunks = Range { lo: zero, hi: end, step: CHUNK as i64, trips: None, poll: true };
        self.counted(chunks, None, |l, done| {
            for &(_, pointer, address) in &wide.pointers {
                let moving = wide.program.pointers[pointer.0 as usize];
                let ahead = l.scaled(done, moving.stride);
                let now = l.b.ins().iadd(address, ahead);
                l.b.ins().store(flags, now, base, Offset32::new(moving.offset as i32));
            }
            for (offset, step, ty, first) in &wide.ramps {
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

    /// The n-th strip of this kernel as a function.
    fn strip_function(&mut self, number: u32) -> cranelift_codegen::ir::FuncRef {
        let mut signature = Signature::new(self.convention);
        signature.params.extend([AbiParam::new(I64); 2]);
        let signature = self.b.import_signature(signature);
        let name = UserExternalName { namespace: Strip::NAMESPACE, index: number };
        let name = ExternalName::user(self.b.func.declare_imported_user_function(name));
        self.b.import_function(ExtFuncData { name, signature, colocated: true, patchable: false })
    }
}

/// The number of places, if it is known and one call runs all of them.
fn calls_once(poll: bool, known: Option<u64>) -> Option<u64> {
    known.filter(|&n| !poll || n <= CHUNK)
}

impl<'p> Wide<'p> {
    pub(super) fn new(plan: &'p Plan, width: Width, slot: StackSlot) -> Wide<'p> {
        Wide {
            plan,
            width,
            slot,
            program: Program::new(Width::Full),
            record: Vec::new(),
            pointers: Vec::new(),
            bytes: 0,
            locals: SecondaryMap::new(),
            there: None,
            pending: Vec::new(),
            zero: None,
            totals: Vec::new(),
            early: FxHashMap::default(),
            ramps: Vec::new(),
        }
    }

    /// Room in the record.
    fn room(&mut self, bytes: u32) -> u32 {
        let offset = self.bytes.next_multiple_of(bytes.min(8));
        self.bytes = offset + bytes;
        offset
    }

    /// A value that the strip finds in the record.
    fn put(&mut self, value: Value, bytes: u32) -> u32 {
        let offset = self.room(bytes);
        self.record.push((offset, value));
        offset
    }

    /// The pointer to the elements of a place, made by `address` if there is none.
    fn pointer(&mut self, place: Place, unit: bool, address: impl FnOnce() -> Value) -> Pointer {
        if let Some((_, pointer, _)) = self.pointers.iter().find(|p| p.0 == place) {
            return *pointer;
        }
        let offset = self.room(8);
        let pointer = self.program.pointer(Moving { offset, stride: place.stride, unit });
        self.pointers.push((place, pointer, address()));
        pointer
    }
}

impl Strip {
    /// Of the names of strips among the functions that a kernel calls.
    pub(crate) const NAMESPACE: u32 = 1;
    /// At what a strip's first byte has to stand.
    pub(crate) const ALIGNMENT: usize = LANES as usize * 4;
}
