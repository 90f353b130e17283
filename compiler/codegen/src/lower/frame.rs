//! The function around a body: the loops over instances and workers, the fields of each instance, and the exits.
//!
//! Invariant: what is constant over instances is computed before the loop. The addresses of an instance are computed
//! from those of the previous instance, or read from its row of the table.

use super::{Frame, LocalStorage, Lower, clif};
use crate::abi::{Status, offset};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value};
use girder_codelet::kernel::Addressing;
use girder_codelet::work;
use girder_ir::codelet::Dir;
use girder_ir::ids::FieldId;
use smallvec::SmallVec;

/// The addresses that an instance needs, as start values and steps.
pub(super) struct Pointers {
    base: Value,
    starts: SmallVec<[Value; 8]>,
    steps: SmallVec<[Value; 8]>,
}

/// If an instance has less work than this, the stop flag is polled only every [`POLL_EVERY`] instances.
const SMALL_INSTANCE: u64 = 1 << 12;
const POLL_EVERY: i64 = 256;

/// Returns the flags of loads of values that do not change while the kernel runs.
fn fixed() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_readonly().with_can_move()
}

impl Lower<'_, '_> {
    /// Emits the whole function.
    pub(super) fn kernel(&mut self) {
        self.regions();
        let entry = self.b.create_block();
        self.b.append_block_params_for_function_params(entry);
        self.enter(entry);
        let [batch, first, last] = *self.b.block_params(entry) else { unreachable!("the signature has three") };
        self.homes();
        let pointers = self.pointers(batch);
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let instance = self.b.append_block_param(head, I64);
        self.open_frame(batch, instance);
        self.depth = 1;
        match (self.batch_plan(), &self.spec.lines) {
            (Some(plan), Some(lines)) => {
                let test = self.b.create_block();
                let next = self.b.append_block_param(test, I64);
                self.b.ins().jump(test, &[first.into()]);
                self.b.switch_to_block(test);
                let any = self.b.ins().icmp(IntCC::UnsignedLessThan, next, last);
                self.b.ins().brif(any, head, &[next.into()], done, &[]);
                self.enter(head);
                self.poll();
                self.batch_iteration(&plan, lines, &pointers, (instance, last), test);
                self.b.seal_block(test);
            }
            _ => self.instances(&pointers, (head, done), (first, last)),
        }
        self.enter(done);
        self.leave(Status::Done);
        self.ends();
    }

    fn open_frame(&mut self, batch: Value, instance: Value) {
        let imports = self.b.ins().load(I64, fixed(), batch, offset::IMPORTS);
        let cancel = self.b.ins().load(I64, fixed(), batch, offset::CANCEL);
        let worker = self.i64(0);
        self.frame = Some(Frame {
            batch,
            instance,
            worker,
            counters: worker,
            imports,
            cancel,
            failed: self.b.create_block(),
            cancelled: self.b.create_block(),
            end: self.b.create_block(),
        });
    }

    /// Emits a loop that runs one instance after another.
    fn instances(&mut self, pointers: &Pointers, (head, done): (Block, Block), (first, last): (Value, Value)) {
        let start = self.carried(pointers, first);
        for _ in &start {
            self.b.append_block_param(head, I64);
        }
        let any = self.b.ins().icmp(IntCC::UnsignedLessThan, first, last);
        self.enter_loop(any, head, first, &start, done);
        self.b.switch_to_block(head);
        let (instance, now): (Value, SmallVec<[Value; 8]>) = match self.b.block_params(head) {
            [instance, now @ ..] => (*instance, now.into()),
            [] => unreachable!("the first parameter is the instance"),
        };
        self.poll_instance(instance);
        self.bind_carried(pointers, &now);
        self.workers();
        let end = self.frame().end;
        self.enter(end);
        let next = self.b.ins().iadd_imm_s(instance, 1);
        let stepped: SmallVec<[Value; 8]> =
            now.iter().zip(&pointers.steps).map(|(&v, &s)| self.b.ins().iadd(v, s)).collect();
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, next, last);
        self.enter_loop(more, head, next, &stepped, done);
        self.b.seal_block(head);
    }

    fn enter_loop(&mut self, any: Value, head: Block, first: Value, start: &[Value], done: Block) {
        let mut args: SmallVec<[BlockArg; 8]> = SmallVec::new();
        args.push(first.into());
        args.extend(start.iter().map(|&v| BlockArg::from(v)));
        self.b.ins().brif(any, head, &args, done, &[]);
    }

    /// Declares the alias regions: one per edge field and one per local array. By the race rule, no element written
    /// through one field is accessed through another.
    fn regions(&mut self) {
        let mut next = 1;
        for (field, decl) in self.codelet.edges() {
            self.field_regions[field] = Some(self.region(next, format!("field {}", decl.name)));
            next += 1;
        }
        for (local, decl) in &self.codelet.locals {
            if decl.array.is_some() {
                self.local_regions[local] = Some(self.region(next, format!("array {}", decl.name)));
                next += 1;
            }
        }
    }

    /// Declares the variables and stack slots of locals.
    fn homes(&mut self) {
        for (local, decl) in &self.codelet.locals {
            let home = match &decl.array {
                None => LocalStorage::Variable(self.b.declare_var(clif(decl.ty))),
                Some(dims) => {
                    let elements: u32 = dims.iter().product();
                    // The product does not overflow: `validate` limits the size of arrays.
                    LocalStorage::Array(self.slot(elements * decl.ty.bytes()))
                }
            };
            self.locals[local] = Some(home);
        }
    }

    /// Creates a stack slot with the alignment of vectors.
    pub(super) fn slot(&mut self, bytes: u32) -> cranelift_codegen::ir::StackSlot {
        self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes.max(1), 4))
    }

    /// Returns the number of columns of the table.
    fn columns(&self) -> i64 {
        let edges = 0..self.codelet.edges().count();
        edges.filter(|&edge| !self.spec.addressing.is_straight(edge)).count() as i64
    }

    fn consts(&self) -> impl Iterator<Item = FieldId> + use<'_> {
        self.codelet.fields.iter().filter(|(_, f)| f.dir == Dir::Const).map(|(id, _)| id)
    }

    /// Computes the addresses of instance 0, and what is added to each from one instance to the next. They are the row
    /// of the table, if there is one; the edge fields that are not in the table; and the record of the `const` fields,
    /// if there are any.
    fn pointers(&mut self, batch: Value) -> Pointers {
        let base = self.b.ins().load(I64, fixed(), batch, offset::BASE);
        let mut pointers = Pointers { base, starts: SmallVec::new(), steps: SmallVec::new() };
        let (addressing, columns) = (self.spec.addressing, self.columns());
        if columns > 0 {
            pointers.starts.push(self.b.ins().load(I64, fixed(), batch, offset::OFFSETS));
            pointers.steps.push(self.i64(addressing.entry_bytes() * columns));
        }
        let straight = (0..self.codelet.edges().count()).filter(|&edge| addressing.is_straight(edge));
        for edge in straight {
            let starts = self.b.ins().load(I64, fixed(), batch, offset::START);
            let steps = self.b.ins().load(I64, fixed(), batch, offset::STEP);
            let start = self.b.ins().load(I64, fixed(), starts, Offset32::new(8 * edge as i32));
            let step = self.b.ins().load(I64, fixed(), steps, Offset32::new(8 * edge as i32));
            pointers.starts.push(self.b.ins().iadd(base, start));
            pointers.steps.push(step);
        }
        if self.consts().next().is_some() {
            let consts = self.b.ins().load(I64, fixed(), batch, offset::CONSTS);
            let words = self.b.ins().load(I64, fixed(), batch, offset::CONST_STEP);
            pointers.starts.push(consts);
            pointers.steps.push(self.b.ins().ishl_imm_u(words, 3));
        }
        pointers
    }

    /// Computes the addresses that an instance needs.
    fn carried(&mut self, pointers: &Pointers, instance: Value) -> SmallVec<[Value; 8]> {
        let moved = |(&start, &step): (&Value, &Value)| {
            let ahead = self.b.ins().imul(instance, step);
            self.b.ins().iadd(start, ahead)
        };
        pointers.starts.iter().zip(&pointers.steps).map(moved).collect()
    }

    /// Computes the addresses of the edge fields and loads the `const` fields of an instance.
    pub(super) fn bind_fields(&mut self, pointers: &Pointers, instance: Value) {
        let now = self.carried(pointers, instance);
        self.bind_carried(pointers, &now);
    }

    fn bind_carried(&mut self, pointers: &Pointers, now: &[Value]) {
        let edges: SmallVec<[FieldId; 8]> = self.codelet.edges().map(|(f, _)| f).collect();
        // A row of the table must not be read before its instance begins: it may be the one after the last.
        let row = MemFlagsData::new().with_notrap().with_readonly();
        let addressing = self.spec.addressing;
        let (mut column, mut next) = (0, usize::from(self.columns() > 0));
        for (edge, &field) in edges.iter().enumerate() {
            if addressing.is_straight(edge) {
                self.fields[field] = Some(now[next]);
                next += 1;
                continue;
            }
            let entry = Offset32::new((addressing.entry_bytes() * column) as i32);
            let offset = match addressing {
                Addressing::Table64 => self.b.ins().load(I64, row, now[0], entry),
                _ => self.b.ins().uload32(row, now[0], entry),
            };
            self.fields[field] = Some(self.b.ins().iadd(pointers.base, offset));
            column += 1;
        }
        let consts: SmallVec<[FieldId; 8]> = self.consts().collect();
        for (n, field) in consts.into_iter().enumerate() {
            let ty: Type = clif(self.codelet.fields[field].ty);
            let record = now[now.len() - 1];
            self.fields[field] = Some(self.b.ins().load(ty, row, record, Offset32::new(8 * n as i32)));
        }
    }

    fn poll_instance(&mut self, instance: Value) {
        if work::of_block(&self.folded, &self.codelet.body) >= SMALL_INSTANCE {
            self.poll();
            return;
        }
        let phase = self.b.ins().band_imm_u(instance, POLL_EVERY - 1);
        let (poll, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(phase, next, &[], poll, &[]);
        self.enter(poll);
        self.poll();
        self.b.ins().jump(next, &[]);
        self.enter(next);
    }

    /// Emits the body. For a `multi` codelet it runs once per worker.
    pub(super) fn workers(&mut self) {
        let codelet = self.codelet;
        if !codelet.multi {
            self.nothing_spent();
            let instance = self.frame().instance;
            self.bind_counters(instance);
            if self.block(&codelet.body) {
                let end = self.frame().end;
                self.b.ins().jump(end, &[]);
            }
            return;
        }
        let count = self.worker_count();
        let (head, next_worker, end) = (self.b.create_block(), self.b.create_block(), self.frame().end);
        let worker = self.b.append_block_param(head, I64);
        let zero = self.i64(0);
        self.b.ins().jump(head, &[zero.into()]);
        self.b.switch_to_block(head);
        self.depth += 1;
        self.frame = self.frame.take().map(|f| Frame { worker, end: next_worker, ..f });
        self.nothing_spent();
        let instance = self.frame().instance;
        let row = self.b.ins().imul(instance, count);
        let row = self.b.ins().iadd(row, worker);
        self.bind_counters(row);
        if self.block(&codelet.body) {
            self.b.ins().jump(next_worker, &[]);
        }
        self.depth -= 1;
        self.enter(next_worker);
        let next = self.b.ins().iadd_imm_s(worker, 1);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, next, count);
        self.b.ins().brif(more, head, &[next.into()], end, &[]);
        self.b.seal_block(head);
        self.frame = self.frame.take().map(|f| Frame { end, ..f });
    }

    /// Computes the address of a row of counters, if anything is counted.
    fn bind_counters(&mut self, row: Value) {
        if self.points.is_none() {
            return;
        }
        let own = self.spec.points.map_or(0, |p| p.len()) as i64;
        let batch = self.frame().batch;
        let start = self.b.ins().load(I64, fixed(), batch, offset::COUNTERS);
        let bytes = self.scaled(row, 8 * own);
        let counters = self.b.ins().iadd(start, bytes);
        self.frame = self.frame.take().map(|f| Frame { counters, ..f });
    }

    /// Loads the number of workers of a tile, `I64`.
    pub(super) fn worker_count(&mut self) -> Value {
        let batch = self.frame().batch;
        self.b.ins().load(I64, fixed(), batch, offset::WORKERS)
    }

    /// Loads the number of iterations that one loop may have, `I64`.
    pub(super) fn iteration_limit(&mut self) -> Value {
        let batch = self.frame().batch;
        self.b.ins().load(I64, fixed(), batch, offset::ITERATIONS)
    }

    /// Loads the number of iterations that all loops of a vertex may have together, `I64`.
    pub(super) fn total_limit(&mut self) -> Value {
        let batch = self.frame().batch;
        self.b.ins().load(I64, fixed(), batch, offset::TOTAL_ITERATIONS)
    }

    fn leave(&mut self, status: Status) {
        let code = self.i64(status.code());
        self.b.ins().return_(&[code]);
    }

    /// Emits the blocks that end the run early.
    fn ends(&mut self) {
        let &Frame { batch, instance, worker, failed, cancelled, .. } = self.frame();
        let params = [I32, I64, I64].map(|ty| self.b.append_block_param(failed, ty));
        self.b.set_cold_block(failed);
        self.enter(failed);
        let flags = MemFlagsData::new().with_notrap();
        self.b.ins().store(flags, instance, batch, offset::INSTANCE);
        self.b.ins().store(flags, params[0], batch, offset::SITE);
        self.b.ins().istore32(flags, worker, batch, offset::WORKER);
        self.b.ins().store(flags, params[1], batch, offset::VALUES);
        self.b.ins().store(flags, params[2], batch, offset::VALUES + 8);
        self.leave(Status::Failed);
        self.b.set_cold_block(cancelled);
        self.enter(cancelled);
        self.leave(Status::Cancelled);
    }

    /// Emits a `bool` constant.
    pub(super) fn bool(&mut self, v: bool) -> Value {
        self.b.ins().iconst(I8, i64::from(v))
    }
}
