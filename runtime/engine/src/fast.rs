//! Mode `fast`: one arena laid out for a machine of one tile; vertices read and write all elements where they are.
//!
//! A family is one compiled loop over its instances. Fields whose elements do not lie at one stride per axis are
//! fetched into scratch before a vertex and sent back after it. Families that are matrix products are not compiled but
//! put together (`products`), and consecutive steps that compute element by element run as one (`maps`). Copies are
//! lists of moves.
//!
//! Invariant: every variable is at its offset of the host layout; scratch lies behind all of them, and no two vertices
//! of a compute set share any.

use crate::arena::{Arena, Move};
use crate::counts::{Counted, Counting};
use crate::error::EngineError;
use crate::executable::Executable;
use crate::kernel::{Kernel, Launch, Offsets};
use crate::kernels::{CodeForm, KernelSet, RowLines};
use crate::maps::{Fusion, Piece, fusions};
use crate::moves::{Row, by_length, coalesce, push_elements};
use crate::pool::Pool;
use crate::products::{Call, Products, of_family};
use crate::store::{Store, VertexStop};
use crate::strides::{all_instances, const_table, field_strides, line};
use crate::strips::fuse;
use crate::task::{Group, Landing, RowMoves, Task, Tasks};
use crate::windows::joined;
use cranelift_entity::SecondaryMap;
use girder_codegen::abi::Addressing;
use girder_codegen::{FieldLayout, KernelSpec};
use girder_ir::codelet::Dir;
use girder_ir::family::{Const, CopyFamily, Family, Field, Offset};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, StepId, VarId};
use girder_ir::program::StepKind;
use girder_ir::stage::Allocated;
use girder_ir::trace::Counts;
use girder_ir::view::{Run, View, copy_runs};
use girder_source::Session;

/// What mode `fast` has compiled.
pub(crate) struct FastCode {
    kernels: Vec<Kernel>,
    /// `None` for families without vertices, and for products.
    families: SecondaryMap<FamilyId, Option<FamilyCode>>,
    /// All products of a set.
    products: SecondaryMap<ComputeSetId, Vec<Call>>,
    /// Steps at which several run as one.
    fusions: SecondaryMap<StepId, Option<Fusion>>,
    /// Of the variables, rounded up.
    var_bytes: u64,
    /// Of the scratch of the set that needs most.
    scratch_bytes: u64,
}

/// How the vertices of a family run.
#[derive(Clone)]
struct FamilyCode {
    /// What runs in place of the family: fewer vertices with longer windows.
    joined: Option<Box<Family>>,
    kernel: usize,
    addressing: Addressing,
    /// One per edge field.
    fields: Vec<Access>,
    /// Bytes of one vertex's scratch.
    row_bytes: u64,
    /// First byte of its vertices' scratch in the set's.
    scratch: u64,
}

/// How a vertex reaches a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Where its elements are.
    InPlace,
    /// At this byte of the vertex's scratch.
    Scratch {
        at: u64,
        /// Its elements are needed.
        fetch: bool,
        /// Its elements are written.
        send: bool,
    },
}

impl FastCode {
    /// Decides how every family runs and compiles its kernel.
    pub(crate) fn compile(allocated: &Allocated, counting: Option<&Counting>) -> Result<FastCode, EngineError> {
        let (wanted, code) = FastCode::decide(allocated, counting)?;
        Ok(FastCode { kernels: wanted.compile()?, ..code })
    }

    /// The kernels as text.
    pub(crate) fn text(allocated: &Allocated, form: CodeForm) -> Result<String, EngineError> {
        FastCode::decide(allocated, None)?.0.text(form)
    }

    /// Decides how every family runs; the kernels that it needs are not yet compiled.
    fn decide<'g>(
        allocated: &'g Allocated,
        counting: Option<&'g Counting>,
    ) -> Result<(KernelSet<'g>, FastCode), EngineError> {
        let mut wanted = KernelSet::new(allocated, counting);
        let mut families: SecondaryMap<FamilyId, Option<FamilyCode>> = SecondaryMap::new();
        let mut scratch_bytes = 0;
        let mut strides = SecondaryMap::new();
        let mut products: SecondaryMap<ComputeSetId, Vec<Call>> = SecondaryMap::new();
        for (set_id, set) in &allocated.sets {
            let mut used = 0;
            for &id in &set.families {
                let family = &allocated.families[id];
                let Some(shaped) = wanted.shaped(family)? else { continue };
                let (sizes, facts) = wanted.known(shaped);
                // Who counts wants to know of every vertex.
                if counting.is_none()
                    && let Some(calls) = of_family(allocated, family, sizes, facts)
                {
                    products[set_id].extend(calls);
                    continue;
                }
                let joined = joined(allocated, family).filter(|_| counting.is_none()).map(Box::new);
                let family = joined.as_deref().unwrap_or(family);
                let Some(shaped) = wanted.shaped(family)? else { continue };
                let (fields, layouts, row_bytes) = accesses(allocated, family, |f| wanted.writes_all(shaped, f));
                let (addressing, scratch) = (Addressing::Affine, used);
                used += row_bytes * family.domain.count();
                let code = FamilyCode { joined, kernel: 0, addressing, fields, row_bytes, scratch };
                families[id] = Some(code);
                strides[id] = Some((shaped, layouts));
            }
            scratch_bytes = scratch_bytes.max(used);
        }
        let var_bytes = allocated.host.bytes.next_multiple_of(64);
        for (id, family) in &allocated.families {
            if let (Some(code), Some((shaped, layouts))) = (&mut families[id], strides[id].take()) {
                let joined = code.joined.take();
                let family = joined.as_deref().unwrap_or(family);
                code.addressing = addressing(family, &code.fields, var_bytes + scratch_bytes);
                let lines = row_lines(allocated, family, code);
                code.kernel = wanted.want(shaped, layouts, code.addressing, lines);
                code.joined = joined;
            }
        }
        // What is counted is asked for set by set.
        let fusions = if counting.is_some() { SecondaryMap::new() } else { fusions(allocated, &mut wanted)? };
        Ok((wanted, FastCode { kernels: Vec::new(), families, products, fusions, var_bytes, scratch_bytes }))
    }
}

/// Access and strides of each edge field, and bytes of scratch of a vertex.
fn accesses(
    graph: &Graph,
    family: &Family,
    writes_all: impl Fn(girder_ir::ids::FieldId) -> bool,
) -> (Vec<Access>, Vec<FieldLayout>, u64) {
    let codelet = &graph.codelets[family.codelet];
    let mut row_bytes = 0;
    let (mut fields, mut layouts) = (Vec::new(), Vec::new());
    for field in &family.fields {
        let decl = &codelet.fields[field.field];
        let size = decl.ty.bytes();
        let in_place = field_strides(field, size);
        fields.push(match in_place {
            Some(_) => Access::InPlace,
            None => {
                let at = row_bytes;
                row_bytes += (field.len() * size as u64).next_multiple_of(8);
                let fetch = !(decl.dir == Dir::Out && writes_all(field.field));
                Access::Scratch { at, fetch, send: decl.dir != Dir::In }
            }
        });
        layouts.push(in_place.unwrap_or_else(|| KernelSpec::contiguous(&field.shape(), size)));
    }
    (fields, layouts, row_bytes)
}

fn addressing(family: &Family, fields: &[Access], bytes: u64) -> Addressing {
    let straight = |(field, access): (&Field, &Access)| match access {
        Access::Scratch { .. } => true,
        Access::InPlace => field.parts.first().is_none_or(|p| line(&p.offset, &family.domain).is_some()),
    };
    let straight: Vec<bool> = family.fields.iter().zip(fields).map(straight).collect();
    let mask = |bits: &[bool]| bits.iter().rev().fold(0, |mask, &bit| mask << 1 | u64::from(bit));
    match &straight[..] {
        all if all.iter().all(|&s| s) => Addressing::Affine,
        _ if bytes > u32::MAX as u64 => Addressing::Table64,
        some if some.contains(&true) && some.len() <= 64 => Addressing::Mixed { straight: mask(some) },
        _ => Addressing::Table32,
    }
}

/// How the rows of a family lie side by side: on one line, or on lines along the innermost index.
fn row_lines(graph: &Graph, family: &Family, code: &FamilyCode) -> Option<RowLines> {
    let last = family.domain.0.len().checked_sub(1)?;
    let whole = code.addressing == Addressing::Affine;
    let step = |(field, access): (&Field, &Access)| match (access, field.parts.first()) {
        (Access::Scratch { .. }, _) => Some(code.row_bytes as i64),
        (Access::InPlace, None) => Some(0),
        (Access::InPlace, Some(part)) => {
            let size = i64::from(graph.vars[part.var].ty.bytes());
            match (&part.offset, whole) {
                (offset, true) => line(offset, &family.domain).map(|(_, step)| step * size),
                (Offset::Affine(affine), false) => Some(affine.coef.get(last).copied().unwrap_or(0) * size),
                (Offset::Table(_), false) => None,
            }
        }
    };
    let steps = family.fields.iter().zip(&code.fields).map(step).collect::<Option<_>>()?;
    let length = if whole { u64::MAX } else { u64::from(family.domain.0[last]).max(1) };
    let shares_consts = family.consts.iter().all(|(_, c)| matches!(c, Const::Uniform(_)));
    Some(RowLines { length, steps, shares_consts })
}

/// The memory of mode `fast`.
pub(crate) struct Fast<'e> {
    graph: &'e Graph,
    offsets: &'e [u64],
    pool: Pool<Tasks>,
    sets: SecondaryMap<ComputeSetId, usize>,
    copies: SecondaryMap<CopyId, usize>,
    fused: Fused,
    counts: bool,
    counted: Counted,
}

impl<'e> Fast<'e> {
    /// All variables zero.
    pub(crate) fn new(executable: &'e Executable, threads: usize, session: &Session) -> Result<Fast<'e>, EngineError> {
        let code = executable.fast.as_ref().ok_or(EngineError::NotPrepared)?;
        let allocated = &executable.allocated;
        let bytes = code.var_bytes.saturating_add(code.scratch_bytes);
        let arena = Arena::zeroed(bytes, session.limits.host_bytes)?;
        let build = Build { allocated, code, counting: executable.counting.as_ref(), bytes: arena.bytes() };
        let (mut sets, mut copies, mut tasks) = (SecondaryMap::new(), SecondaryMap::new(), Vec::new());
        for id in allocated.sets.keys() {
            sets[id] = tasks.len();
            tasks.push(build.set(id, threads)?);
        }
        for id in allocated.copies.keys() {
            copies[id] = tasks.len();
            tasks.push(Task::moves(build.copy(id), threads, build.bytes)?);
        }
        // What is counted is asked for set by set.
        let counts = executable.counting.is_some();
        let fused = if counts {
            SecondaryMap::new()
        } else {
            let mut alone = SecondaryMap::new();
            for (step, fusion) in code.fusions.iter() {
                if let Some(fusion) = fusion {
                    alone[step] = Some((fusion.steps, tasks.len()));
                    tasks.push(build.fusion(fusion, threads)?);
                }
            }
            Single { graph: allocated, sets: &sets, copies: &copies }.fuse(alone, &mut tasks, threads, build.bytes)?
        };
        let tasks = Tasks::new(arena, tasks, executable.machine.chip.workers, session);
        let (pool, counted) = (Pool::new(tasks, threads), Counted::default());
        Ok(Fast { graph: allocated, offsets: &allocated.host.offsets, pool, sets, copies, fused, counts, counted })
    }
}

/// The tasks of single steps.
struct Single<'a> {
    graph: &'a Graph,
    sets: &'a SecondaryMap<ComputeSetId, usize>,
    copies: &'a SecondaryMap<CopyId, usize>,
}

/// Steps at which several run at once: how many, and the task for them.
type Fused = SecondaryMap<StepId, Option<(usize, usize)>>;

impl Single<'_> {
    /// Adds tasks for the steps of each sequence that can run at once, some of which are one already.
    fn fuse(&self, mut fused: Fused, tasks: &mut Vec<Task>, threads: usize, bytes: u64) -> Result<Fused, EngineError> {
        for step in self.graph.steps.values() {
            let StepKind::Seq(steps) = &step.kind else { continue };
            for run in steps.chunk_by(|a, b| self.task(*a).is_some() == self.task(*b).is_some()) {
                let own = self.tasks(&fused, run);
                let list: Vec<usize> = own.iter().map(|o| o.1).collect();
                let (mut at, mut rest) = (0, &own[..]);
                for (count, together) in fuse(tasks, &list, threads.max(1), bytes)? {
                    let (taken, left) = rest.split_at(count);
                    let steps = taken.iter().map(|o| o.0).sum();
                    if let Some(task) = together {
                        fused[run[at]] = Some((steps, tasks.len()));
                        tasks.push(task);
                    }
                    (at, rest) = (at + steps, left);
                }
            }
        }
        Ok(fused)
    }

    /// The tasks of consecutive steps, each with the steps that it takes.
    fn tasks(&self, fused: &Fused, mut run: &[StepId]) -> Vec<(usize, usize)> {
        let mut own = Vec::new();
        while let [first, ..] = run {
            let Some((steps, task)) = fused[*first].or_else(|| Some((1, self.task(*first)?))) else { break };
            own.push((steps, task));
            run = &run[steps..];
        }
        own
    }

    fn task(&self, step: StepId) -> Option<usize> {
        match self.graph.steps[step].kind {
            StepKind::Execute(set) => Some(self.sets[set]),
            StepKind::Copy(copy) => Some(self.copies[copy]),
            _ => None,
        }
    }
}

impl Store for Fast<'_> {
    fn execute(&mut self, set: ComputeSetId) -> Result<(), VertexStop> {
        self.pool.run(self.sets[set]);
        if self.counts {
            self.pool.work().gather(self.sets[set], &mut self.counted);
        }
        self.pool.work().outcome()
    }

    fn counts(&self) -> &dyn Counts {
        &self.counted
    }

    fn copy(&mut self, copy: CopyId) {
        self.pool.run(self.copies[copy]);
    }

    fn fused(&mut self, first: StepId) -> Result<usize, VertexStop> {
        let Some((steps, task)) = self.fused[first] else { return Ok(0) };
        self.pool.run(task);
        self.pool.work().outcome()?;
        Ok(steps)
    }

    fn read(&self, run: Run, into: &mut [u8]) {
        let (at, step, size) = place(self.graph, self.offsets, run);
        self.pool.work().arena().read(at as u64, step, size, into);
    }

    fn write(&mut self, run: Run, from: &[u8]) {
        let (at, step, size) = place(self.graph, self.offsets, run);
        self.pool.work().arena().write(at as u64, step, size, from);
    }
}

/// First byte, bytes from element to element, and bytes of an element of a run.
fn place(graph: &Graph, offsets: &[u64], run: Run) -> (i64, i64, usize) {
    let size = graph.vars[run.var].ty.bytes();
    let at = byte(offsets, run.var, run.start as i64, size);
    (at, run.stride * size as i64, size as usize)
}

/// The byte of an element.
fn byte(offsets: &[u64], var: VarId, element: i64, size: u32) -> i64 {
    offsets[var.as_u32() as usize] as i64 + element * size as i64
}

/// What tasks are built from.
struct Build<'a> {
    allocated: &'a Allocated,
    code: &'a FastCode,
    counting: Option<&'a Counting>,
    bytes: u64,
}

impl Build<'_> {
    fn set(&self, id: ComputeSetId, threads: usize) -> Result<Task, EngineError> {
        let others = Task::vertices(self.groups(id)?, threads);
        let calls = &self.code.products[id];
        if calls.is_empty() {
            return Ok(others);
        }
        let products = Products::new(calls, threads, self.bytes)?;
        Ok(Task::Products { products, others: Box::new(others) })
    }

    fn fusion(&self, fusion: &Fusion, threads: usize) -> Result<Task, EngineError> {
        let group = |piece: &Piece| {
            let kernel = self.code.kernels[piece.kernel].clone();
            let offsets = Offsets::Affine { start: piece.start.clone(), step: piece.step.clone() };
            let launch = Launch::new(kernel, piece.rows, offsets, fusion.consts.clone(), 0, self.bytes)?;
            let (family, family_size, elements) = (fusion.family, piece.rows, piece.elements);
            Ok(Group { launch, family, family_size, order: 0, instances: None, landing: None, elements })
        };
        Ok(Task::vertices(fusion.pieces.iter().map(group).collect::<Result<_, EngineError>>()?, threads))
    }

    fn groups(&self, set: ComputeSetId) -> Result<Vec<Group>, EngineError> {
        let mut groups = Vec::new();
        for (order, &id) in self.allocated.sets[set].families.iter().enumerate() {
            if let Some(code) = &self.code.families[id] {
                groups.push(self.group(order as u32, id, code)?);
            }
        }
        Ok(groups)
    }

    fn group(&self, order: u32, id: FamilyId, code: &FamilyCode) -> Result<Group, EngineError> {
        let family = code.joined.as_deref().unwrap_or(&self.allocated.families[id]);
        let rows = family.domain.count();
        let (consts, const_step) = const_table(family, 0..rows);
        let kernel = self.code.kernels[code.kernel].clone();
        let offsets = self.row_offsets(family, code);
        let numbers = self.counting.map_or(0, |c| c.row(self.allocated, family.codelet));
        let launch = Launch::new(kernel, rows, offsets, consts, const_step, self.bytes)?.counting(numbers);
        let landing = match code.row_bytes {
            0 => None,
            _ => Some(self.landing(family, code)?),
        };
        let elements = family.fields.iter().map(|f| f.len()).sum();
        Ok(Group { launch, family: id, family_size: rows, order, instances: None, landing, elements })
    }

    fn row_offsets(&self, family: &Family, code: &FamilyCode) -> Offsets {
        let lines = family.fields.iter().zip(&code.fields).map(|(f, a)| self.field_line(family, code, f, *a));
        let lines: Vec<Option<(i64, i64)>> = lines.collect();
        let (start, step) = lines.iter().map(|l| l.map_or((0, 0), |(at, step)| (at as u64, step))).unzip();
        let mut width = 0;
        let is_straight = |edge: usize| code.addressing.is_straight(edge);
        let column = |edge| {
            (!is_straight(edge)).then(|| {
                width += 1;
                width - 1
            })
        };
        let column: Vec<Option<usize>> = (0..family.fields.len()).map(column).collect();
        let mut table = vec![0u64; family.domain.count() as usize * width];
        for ((field, line), column) in family.fields.iter().zip(&lines).zip(&column) {
            let Some(column) = *column else { continue };
            let column = table.iter_mut().skip(column).step_by(width);
            match (line, field.parts.first()) {
                (Some((at, step)), _) => column.enumerate().for_each(|(i, c)| *c = (at + i as i64 * step) as u64),
                (None, Some(part)) => {
                    let size = self.allocated.vars[part.var].ty.bytes();
                    let bytes = |e: i64| byte(&self.allocated.host.offsets, part.var, e, size) as u64;
                    column.zip(part.offset.values(&family.domain)).for_each(|(c, e)| *c = bytes(e));
                }
                (None, None) => {}
            }
        }
        let narrow = |table: Vec<u64>| table.into_iter().map(|b| b as u32).collect();
        match code.addressing {
            Addressing::Affine => Offsets::Affine { start, step },
            Addressing::Table32 => Offsets::Table32(narrow(table)),
            Addressing::Table64 => Offsets::Table64(table),
            Addressing::Mixed { .. } => Offsets::Mixed { start, step, column, width, table: narrow(table) },
        }
    }

    /// First byte and step of a field whose rows lie on a line.
    fn field_line(&self, family: &Family, code: &FamilyCode, field: &Field, access: Access) -> Option<(i64, i64)> {
        match access {
            Access::Scratch { at, .. } => {
                Some(((self.code.var_bytes + code.scratch + at) as i64, code.row_bytes as i64))
            }
            Access::InPlace => {
                let Some(part) = field.parts.first() else { return Some((0, 0)) };
                let size = self.allocated.vars[part.var].ty.bytes();
                let (start, step) = line(&part.offset, &family.domain)?;
                Some((byte(&self.allocated.host.offsets, part.var, start, size), step * size as i64))
            }
        }
    }

    /// The moves between a family's scattered fields and its scratch.
    fn landing(&self, family: &Family, code: &FamilyCode) -> Result<Landing, EngineError> {
        let (mut fetch, mut send) = (Vec::new(), Vec::new());
        for row in 0..family.domain.count() {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            for (field, access) in family.fields.iter().zip(&code.fields) {
                let Access::Scratch { at, fetch, send } = *access else { continue };
                let scratch = self.code.var_bytes + code.scratch + row * code.row_bytes + at;
                let (there, back) = self.field_moves(field, family, row, scratch as i64);
                before.extend(there.into_iter().filter(|_| fetch));
                after.extend(back.into_iter().filter(|_| send));
            }
            fetch.push(coalesce(before));
            send.push(coalesce(after));
        }
        Ok(Landing { fetch: RowMoves::new(fetch, self.bytes)?, send: RowMoves::new(send, self.bytes)? })
    }

    fn field_moves(&self, field: &Field, family: &Family, row: u64, scratch: i64) -> (Vec<Move>, Vec<Move>) {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let mut at = scratch;
        for run in field.view(&family.domain, row).runs() {
            let (start, step, size) = place(self.allocated, &self.allocated.host.offsets, run);
            let (home, landed) = (Row { start, step }, Row { start: at, step: size as i64 });
            push_elements(&mut there, home, landed, size as u32, run.len);
            push_elements(&mut back, landed, home, size as u32, run.len);
            at += run.len as i64 * size as i64;
        }
        (there, back)
    }

    fn copy(&self, id: CopyId) -> Vec<Move> {
        let mut list = Vec::new();
        for CopyFamily { domain, dst, src, .. } in &self.allocated.copies[id].families {
            match (all_instances(dst, domain), all_instances(src, domain)) {
                (Some(dst), Some(src)) => self.copy_views(&dst, &src, &mut list),
                _ => (0..domain.count())
                    .for_each(|i| self.copy_views(&dst.view(domain, i), &src.view(domain, i), &mut list)),
            }
        }
        by_length(list)
    }

    fn copy_views(&self, dst: &View, src: &View, list: &mut Vec<Move>) {
        for c in copy_runs(dst, src) {
            let size = self.allocated.vars[c.dst_var].ty.bytes();
            let row = |var, start: u64, stride: i64| Row {
                start: byte(&self.allocated.host.offsets, var, start as i64, size),
                step: stride * size as i64,
            };
            let from = row(c.src_var, c.src_start, c.src_stride);
            push_elements(list, from, row(c.dst_var, c.dst_start, c.dst_stride), size, c.len);
        }
    }
}
