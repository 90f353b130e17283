//! Mode `exact`: each tile has its own memory, data are at the addresses of the layout, and every transfer of the
//! schedule is performed.
//!
//! It validates mapping, plan, schedule and layout: a vertex gets only addresses on its own tile, so all its data must
//! have been sent there.
//!
//! Invariant: byte `a` of a tile is byte `a` of the tile's share of the arena. An element is read and written at its
//! home. A compute set is its exchange, its vertices and the transfers back to homes, in this order.

use crate::arena::{Arena, Move};
use crate::compile::{compile_kernels, detect};
use crate::counts::Counted;
use crate::error::EngineError;
use crate::kernel::{Kernel, Launch, Offsets};
use crate::pool::Pool;
use crate::store::{Store, VertexStop};
use crate::task::{Group, Task, Tasks};
use crate::tiles::{Owner, Tiles};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_codelet::cost::CountedBlocks;
use girder_codelet::kernel::{Addressing, FieldLayout, KernelSpec};
use girder_host::strides::const_table;
use girder_host::{KernelId, KernelSet};
use girder_ir::family::{Family, ReplicaPair};
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId};
use girder_ir::plan::{FieldLocation, FieldLocations, Loc, LocalCopy, Phase, Transfer};
use girder_ir::schedule::PhaseSchedule;
use girder_ir::stage::Allocated;
use girder_ir::trace::Counts;
use girder_ir::view::Run;
use girder_machine::Machine;
use girder_source::Session;
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The compiled kernels of mode `exact`.
pub(crate) struct ExactCode {
    kernels: PrimaryMap<KernelId, Kernel>,
    families: SecondaryMap<FamilyId, Vec<KernelGroup>>,
    addressing: Addressing,
}

/// Vertices of a family whose fields have the same strides.
#[derive(Clone)]
struct KernelGroup {
    kernel: KernelId,
    /// The vertices, ascending.
    instances: Vec<u32>,
}

/// The strides of each field; `None` if it is contiguous, in a buffer.
type Signature = SmallVec<[Option<u32>; 4]>;

impl ExactCode {
    /// Groups the vertices of every family and compiles a kernel for each group.
    pub(crate) fn compile(allocated: &Allocated, counting: Option<&CountedBlocks>) -> Result<ExactCode, EngineError> {
        let addressing = match Tiles::bytes(&allocated.layout) {
            n if n <= u32::MAX as u128 => Addressing::Table32,
            _ => Addressing::Table64,
        };
        let target = detect()?;
        let mut kernels = KernelSet::new(allocated, counting);
        let mut families: SecondaryMap<FamilyId, Vec<KernelGroup>> = SecondaryMap::new();
        for (id, family) in &allocated.families {
            let Some(shaped) = kernels.shaped(family)? else { continue };
            let locations = &allocated.plan.locations[id];
            for (signature, instances) in group_by_strides(allocated, family, locations)? {
                let layouts = layouts(allocated, family, locations, &signature);
                families[id].push(KernelGroup { kernel: kernels.kernel(shaped, layouts, addressing, None), instances });
            }
        }
        let kernels = compile_kernels(&target, allocated, &kernels.finish(target.kernel_target()))?;
        Ok(ExactCode { kernels, families, addressing })
    }
}

/// Groups the instances of a family by signature, in the order in which signatures appear.
fn group_by_strides(
    allocated: &Allocated,
    family: &Family,
    locations: &[FieldLocations],
) -> Result<IndexMap<Signature, Vec<u32>>, EngineError> {
    let count = family.domain.count() as usize;
    let complete = |l: &FieldLocations| l.at.len() == count && l.strides_of.len() == count;
    if locations.len() != family.fields.len() || !locations.iter().all(complete) {
        let set = &allocated.sets[family.set].name;
        return Err(EngineError::Internal(format!("compute set `{set}` has no complete plan")));
    }
    let mut groups: IndexMap<Signature, Vec<u32>> = IndexMap::new();
    for i in 0..count {
        let strides = |l: &FieldLocations| matches!(l.at[i], FieldLocation::InPlace(_)).then(|| l.strides_of[i]);
        groups.entry(locations.iter().map(strides).collect()).or_default().push(i as u32);
    }
    Ok(groups)
}

fn layouts(
    allocated: &Allocated,
    family: &Family,
    locations: &[FieldLocations],
    signature: &Signature,
) -> Vec<FieldLayout> {
    let codelet = &allocated.codelets[family.codelet];
    let layout =
        |((field, location), strides): ((&girder_ir::family::Field, &FieldLocations), &Option<u32>)| match strides
            .and_then(|s| location.strides.get(s as usize))
        {
            Some(strides) => strides.iter().map(|&s| s as i64).collect(),
            None => KernelSpec::contiguous(&field.shape(), codelet.fields[field.field].ty.bytes()),
        };
    family.fields.iter().zip(locations).zip(signature).map(layout).collect()
}

/// The memory of mode `exact`.
pub(crate) struct Exact {
    tiles: Tiles,
    pool: Pool<Tasks>,
    /// The tasks of each compute set, in order.
    sets: SecondaryMap<ComputeSetId, Vec<usize>>,
    copies: SecondaryMap<CopyId, Vec<usize>>,
    /// The copies between replicas.
    exchanges: SecondaryMap<CopyId, Option<Exchange>>,
    counts: bool,
    counted: Counted,
}

/// A copy between replicas: tasks of the senders, words for the receivers, tasks of these.
#[derive(Clone)]
struct Exchange {
    lists: Vec<Arc<[ReplicaPair]>>,
    before: Option<usize>,
    words: Vec<Words>,
    /// By list of pairs.
    after: Vec<Option<usize>>,
}

/// Bytes that go from each sender of a list of pairs to its receiver.
#[derive(Clone, Copy)]
struct Words {
    list: usize,
    from: u64,
    to: u64,
    bytes: usize,
}

impl Exact {
    /// Creates the memory, filled with zeros.
    pub(crate) fn new(
        allocated: &Allocated,
        code: &ExactCode,
        counting: Option<&CountedBlocks>,
        machine: &Machine,
        threads: usize,
        session: &Session,
    ) -> Result<Exact, EngineError> {
        let needed = Tiles::bytes(&allocated.layout);
        let (replicas, limit) = (allocated.replicas.max(1), session.limits.host_bytes);
        let arena = Arena::zeroed(u64::try_from(needed).unwrap_or(u64::MAX), replicas, limit)?;
        let tiles = Tiles::new(allocated, machine.tiles())?;
        let (bytes, tasks) = (arena.bytes(), Vec::new());
        let mut build = Build { allocated, code, counting, tiles: &tiles, bytes, threads, tasks };
        let (mut sets, mut copies) = (SecondaryMap::new(), SecondaryMap::new());
        let mut exchanges: SecondaryMap<CopyId, Option<Exchange>> = SecondaryMap::new();
        for id in allocated.sets.keys() {
            sets[id] = build.set(id)?;
        }
        for id in allocated.copies.keys() {
            let (plan, schedule) = (&allocated.plan.copies[id], &allocated.schedule.copies[id]);
            if allocated.copies[id].crosses() {
                exchanges[id] = Some(build.exchange(&plan.before, id, machine.tiles())?);
                continue;
            }
            copies[id] = build.phase(&plan.before, &schedule.before, Owner::Copy(id))?;
        }
        let tasks = Tasks::new(arena, build.tasks, machine.chip.workers, session);
        let (counts, counted) = (counting.is_some(), Counted::default());
        Ok(Exact { tiles, pool: Pool::new(tasks, threads), sets, copies, exchanges, counts, counted })
    }
}

impl Store for Exact {
    fn execute(&mut self, set: ComputeSetId) -> Result<(), VertexStop> {
        for &task in &self.sets[set] {
            self.pool.run(task);
            if self.counts {
                self.pool.work().gather(task, &mut self.counted);
            }
            self.pool.work().outcome()?;
        }
        Ok(())
    }

    fn counts(&self) -> &dyn Counts {
        &self.counted
    }

    fn copy(&mut self, copy: CopyId) {
        self.copies[copy].iter().for_each(|&task| self.pool.run(task));
    }

    fn select(&self, replica: u32) {
        self.pool.work().arena().select(replica);
    }

    fn replicate(&mut self) {
        self.pool.work().arena().replicate();
    }

    fn exchange(&mut self, copy: CopyId) -> bool {
        let Some(Exchange { lists, before, words, after }) = &self.exchanges[copy] else { return false };
        let mut senders: Vec<u32> = lists.iter().flat_map(|list| list.iter()).map(|p| p.sender).collect();
        senders.sort_unstable();
        senders.dedup();
        for sender in senders.into_iter().filter(|_| before.is_some()) {
            self.pool.work().arena().select(sender);
            before.iter().for_each(|&task| self.pool.run(task));
        }
        let mut buffer = vec![];
        for &Words { list, from, to, bytes } in words {
            buffer.resize(bytes, 0);
            for pair in lists[list].iter() {
                let arena = self.pool.work().arena();
                arena.select(pair.sender);
                arena.read(from, 1, 1, &mut buffer);
                arena.select(pair.receiver);
                arena.write(to, 1, 1, &buffer);
            }
        }
        for (list, task) in lists.iter().zip(after) {
            for pair in list.iter().filter(|_| task.is_some()) {
                self.pool.work().arena().select(pair.receiver);
                task.iter().for_each(|&task| self.pool.run(task));
            }
        }
        true
    }

    fn read(&self, run: Run, into: &mut [u8]) {
        let (arena, size) = (self.pool.work().arena(), self.tiles.element_bytes(run.var));
        self.tiles.split(run, |first, count, at, step| {
            arena.read(at, step, size, &mut into[first * size..(first + count) * size]);
        });
    }

    fn write(&mut self, run: Run, from: &[u8]) {
        let (arena, size) = (self.pool.work().arena(), self.tiles.element_bytes(run.var));
        self.tiles.split(run, |first, count, at, step| {
            arena.write(at, step, size, &from[first * size..(first + count) * size]);
        });
    }
}

/// The tables that tasks are built from, and the tasks so far.
struct Build<'a> {
    allocated: &'a Allocated,
    code: &'a ExactCode,
    counting: Option<&'a CountedBlocks>,
    tiles: &'a Tiles,
    bytes: u64,
    threads: usize,
    tasks: Vec<Task>,
}

impl Build<'_> {
    /// Adds the tasks of a compute set: exchange, vertices, transfers back.
    fn set(&mut self, id: ComputeSetId) -> Result<Vec<usize>, EngineError> {
        let (plan, schedule) = (&self.allocated.plan.sets[id], &self.allocated.schedule.sets[id]);
        let mut order = self.phase(&plan.before, &schedule.before, Owner::Set(id))?;
        let groups = self.groups(id)?;
        order.push(self.add(Task::vertices(groups, self.threads)));
        order.extend(self.phase(&plan.after, &schedule.after, Owner::Set(id))?);
        Ok(order)
    }

    /// Adds the tasks of a phase: copies on the tiles, transfers in the order of their first slices, copies on the
    /// tiles. No byte of a phase is both read and written, so a transfer is performed whole.
    fn phase(&mut self, phase: &Phase, schedule: &PhaseSchedule, owner: Owner) -> Result<Vec<usize>, EngineError> {
        let mut start = vec![u32::MAX; phase.transfers.len()];
        for piece in &schedule.slices {
            let first = start.get_mut(piece.transfer as usize);
            first.into_iter().for_each(|s| *s = piece.start.min(*s));
        }
        let mut by_start: Vec<usize> = (0..phase.transfers.len()).collect();
        by_start.sort_by_key(|&i| start[i]);
        let mut sent = Vec::new();
        for i in by_start {
            self.transfer(phase, &phase.transfers[i], owner, &mut sent)?;
        }
        let before = self.local(&phase.before, owner)?;
        let after = self.local(&phase.after, owner)?;
        let mut order = Vec::new();
        for (list, threads) in [(before, 1), (sent, self.threads), (after, 1)] {
            if !list.is_empty() {
                let task = Task::moves(list, threads, self.bytes)?;
                order.push(self.add(task));
            }
        }
        Ok(order)
    }

    /// Adds the tasks of a copy between replicas, whose plan counts the tiles of receivers after those of the sender.
    fn exchange(&mut self, phase: &Phase, id: CopyId, tiles: u32) -> Result<Exchange, EngineError> {
        let lists = self.allocated.copies[id].pair_lists();
        let own = |loc: Loc| Loc { tile: loc.tile % tiles, ..loc };
        let of_list = |tile: u32| (tile / tiles).checked_sub(1).map(|k| k as usize).filter(|&k| k < lists.len());
        let mut words = vec![];
        for transfer in &phase.transfers {
            let from = self.tiles.byte(self.allocated, own(transfer.from), Owner::Copy(id))?;
            for to in phase.receivers(transfer) {
                let none = || EngineError::Internal("words go to no replica".to_string());
                let list = of_list(to.tile).ok_or_else(none)?;
                let to = self.tiles.byte(self.allocated, own(to), Owner::Copy(id))?;
                words.push(Words { list, from, to, bytes: 4 * transfer.words as usize });
            }
        }
        let own_copies = |copies: &[LocalCopy], list: Option<usize>| -> Vec<LocalCopy> {
            let here = copies.iter().filter(|c| of_list(c.from.tile) == list);
            here.map(|c| LocalCopy { from: own(c.from), to: own(c.to), ..*c }).collect()
        };
        let task = |this: &mut Self, copies: Vec<LocalCopy>| -> Result<Option<usize>, EngineError> {
            let list = this.local(&copies, Owner::Copy(id))?;
            if list.is_empty() {
                return Ok(None);
            }
            let task = Task::moves(list, 1, this.bytes)?;
            Ok(Some(this.add(task)))
        };
        let before = task(self, own_copies(&phase.before, None))?;
        let mut after = vec![];
        for k in 0..lists.len() {
            after.push(task(self, own_copies(&phase.after, Some(k)))?);
        }
        Ok(Exchange { lists, before, words, after })
    }

    fn add(&mut self, task: Task) -> usize {
        self.tasks.push(task);
        self.tasks.len() - 1
    }

    fn transfer(
        &self,
        phase: &Phase,
        transfer: &Transfer,
        owner: Owner,
        out: &mut Vec<Move>,
    ) -> Result<(), EngineError> {
        let from = self.tiles.byte(self.allocated, transfer.from, owner)?;
        let bytes = transfer.words.checked_mul(4).ok_or(EngineError::Internal("a transfer is too long".into()))?;
        for to in phase.receivers(transfer) {
            let to = self.tiles.byte(self.allocated, to, owner)?;
            out.push(Move { from: from as i64, to: to as i64, bytes, count: 1, from_step: 0, to_step: 0 });
        }
        Ok(())
    }

    fn local(&self, copies: &[LocalCopy], owner: Owner) -> Result<Vec<Move>, EngineError> {
        let one = |c: &LocalCopy| {
            Ok(Move {
                from: self.tiles.byte(self.allocated, c.from, owner)? as i64,
                to: self.tiles.byte(self.allocated, c.to, owner)? as i64,
                bytes: c.bytes,
                count: c.count,
                from_step: c.from_step as i64,
                to_step: c.to_step as i64,
            })
        };
        copies.iter().map(one).collect()
    }

    fn groups(&self, set: ComputeSetId) -> Result<Vec<Group>, EngineError> {
        let mut groups = Vec::new();
        for (order, &id) in self.allocated.sets[set].families.iter().enumerate() {
            for group in &self.code.families[id] {
                groups.push(self.group(order as u32, id, group)?);
            }
        }
        Ok(groups)
    }

    fn group(&self, order: u32, id: FamilyId, group: &KernelGroup) -> Result<Group, EngineError> {
        let family = &self.allocated.families[id];
        let kernel = self.code.kernels[group.kernel].clone();
        let mut table = Vec::with_capacity(group.instances.len() * family.fields.len());
        for &instance in &group.instances {
            for field in 0..family.fields.len() {
                table.push(self.field_byte(id, family, instance, field)?);
            }
        }
        let offsets = match self.code.addressing {
            Addressing::Table32 => Offsets::Table32(table.into_iter().map(|b| b as u32).collect()),
            _ => Offsets::Table64(table),
        };
        let (consts, const_step) = const_table(family, group.instances.iter().map(|&i| i as u64));
        let rows = group.instances.len() as u64;
        let numbers = self.counting.map_or(0, |c| c.counters(self.allocated, family.codelet));
        let launch = Launch::new(kernel, rows, offsets, consts, const_step, self.bytes)?.counting(numbers);
        let elements = family.fields.iter().map(|f| f.len()).sum();
        let instances = Some(group.instances.clone());
        let family_size = family.domain.count();
        Ok(Group { launch, family: id, family_size, order, instances, scratch: None, elements })
    }

    /// Returns the byte of element (0, …, 0) of a field, on the vertex's own tile.
    fn field_byte(&self, id: FamilyId, family: &Family, instance: u32, field: usize) -> Result<u64, EngineError> {
        let missing = || EngineError::Internal("a vertex has no tile".to_string());
        let map = self.allocated.placement.families[id].as_ref().ok_or_else(missing)?;
        let tile = map.at(&family.domain, instance as u64);
        let Some(part) = family.fields[field].parts.first() else { return Ok(0) };
        match self.allocated.plan.locations[id][field].at[instance as usize] {
            FieldLocation::InPlace(offset) => self.tiles.var_byte(&self.allocated.layout, tile, part.var, offset),
            FieldLocation::Buffer { buffer, offset } => {
                self.tiles.buffer_byte(self.allocated, tile, Owner::Set(family.set), buffer, offset)
            }
        }
    }
}
