//! `allocate-memory`: an address for every block on every tile, and for every variable in the fast engine.
//!
//! Tiles that need the same blocks (`inventory`, `classes`) are packed once (`tile`, `pack`), so equal tiles have equal
//! addresses and the cost grows with the number of classes. The packer first tries to grant all requests of codelets
//! about memory (`requests`), and denies some if blocks would not fit otherwise; [`HeldRequests`] states which are
//! granted. Blocks that do not fit are an error in the user's names (`report`), or a warning if the user allows it: the
//! tiles of such a program are larger than the machine's.
//!
//! Invariant: [`verify_layout`] accepts the result.

mod classes;
mod denied;
mod host;
mod inventory;
mod pack;
mod remote;
mod report;
mod shelf;
mod space;
mod spread;
mod tile;
mod verify;
mod requests;

pub use host::pack_for_host;
pub use pack::{Effort, Item, Packing, largest_live_set, pack};
pub use remote::remote_bytes;
pub use requests::HeldRequests;
pub use space::{Space, Zone};
pub use verify::verify_layout;

use crate::liveness::Liveness;
use crate::pass::{Pass, Verdict};
use crate::schedule_exchange::{ExchangeCode, exchange_code_bytes, least_exchange_code_bytes};
use crate::stage::Stage;
use crate::{PassContext, sizes};
use girder_codelet::cost::FieldRequest;
use girder_ir::graph::Graph;
use girder_ir::ids::SpecId;
use girder_ir::layout::{HostLayout, Layout, MemoryBlock, TileClass};
use girder_ir::stage::{Allocated, Planned, Scheduled};
use girder_machine::Machine;
use girder_source::{Diagnostic, Failed, Result, Severity, par_map, par_map_slice};
use indexmap::IndexSet;
use inventory::Class;
use report::code_room;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;
use tile::ClassShape;

/// Another placement is tried if at most one tile in this many lacks memory.
const FEW: u64 = 4;
/// It is also tried if all tiles together need less than this share of their memory, in percent.
const FILLED: u64 = 90;
/// A plan is likely to lack memory if exchange code takes this share of the memory that can run code, in percent.
const MUCH: u64 = 75;

/// The pass `allocate-memory`.
pub struct AllocateMemory;

impl Pass for AllocateMemory {
    const NAME: &'static str = "allocate-memory";
    const SENTENCE: &'static str = "gives every block an address on its tile; temporaries that never meet share memory";
    type From = Scheduled;
    type To = Allocated;

    /// Allocates memory, or reports the tiles that do not fit.
    fn run(input: Scheduled, cx: &mut PassContext) -> Result<Allocated> {
        if let Some(d) = remote::over_room(&input, &input.placement, cx.machine) {
            cx.diagnostics.push(d);
            return Err(Failed);
        }
        let liveness = Liveness::with(&input, &cx.covers(&input));
        let host = allocate_host(&input, &liveness, cx)?;
        let field_requests = requests::field_requests(&input, &sizes::costs(&input, cx.machine));
        let exchange = exchange_code_bytes(&input, &input.schedule, cx.machine);
        let classes = classes(&input, &exchange, &liveness, cx.machine, &field_requests);
        cx.poll()?;
        let shapes = Shapes::of(&classes);
        let usable = cx.machine.usable_bytes() as u64;
        // What cannot fit in any order is not packed, unless it is to run all the same.
        let least = shapes.each(|shape| shape.least_peak(cx.machine));
        let is_packed = cx.session.allow_over_memory || least.iter().all(|&peak| peak <= usable);
        let packed =
            if is_packed { shapes.each(|s| Arc::new(s.pack(cx.machine, shapes.shapes.len()))) } else { vec![] };
        let peaks = if is_packed { packed.iter().map(|p| p.peak).collect() } else { least };
        refuse(&input, &liveness, &classes, &peaks, true, cx)?;
        let allocated = Allocated { layout: layout(&classes, &packed), scheduled: input, host };
        cx.diagnostics.extend(denied::denied_requests(&allocated, cx.machine, &field_requests));
        Ok(allocated)
    }

    fn verify(allocated: &Allocated, cx: &PassContext) -> Verdict {
        verify_layout(&allocated.scheduled, &allocated.layout, cx.machine, cx.session.allow_over_memory)
    }

    /// Checks the layout, and lays out the fast engine's memory, which is not in the text.
    fn admit(read: &mut Allocated, _: Stage, cx: &mut PassContext) -> Result<()> {
        let verdict = Self::verify(read, cx);
        cx.accepted(Self::NAME, verdict)?;
        let liveness = Liveness::with(&read.scheduled, &cx.covers(&read.scheduled));
        read.host = allocate_host(&read.scheduled, &liveness, cx)?;
        Ok(())
    }
}

/// Reports the tiles that lack memory whatever the schedule of the exchange is. They are looked for if a tile has so
/// much exchange code that this is likely.
///
/// # Errors
/// `memory::out_of_memory`
pub(crate) fn refuse_plan(input: &Planned, cx: &mut PassContext) -> Result<()> {
    if cx.session.allow_over_memory {
        return Ok(());
    }
    let exchange = least_exchange_code_bytes(input, cx.machine);
    let mut sums = vec![0u64; cx.machine.tiles() as usize];
    for &(tile, bytes) in exchange.sets.values().chain(exchange.copies.values()).flatten() {
        sums[tile as usize] += u64::from(bytes);
    }
    if sums.iter().max().is_none_or(|&most| most * 100 < code_room(cx.machine) * MUCH) {
        return Ok(());
    }
    cx.time(AllocateMemory::NAME, |cx| {
        let liveness = Liveness::with(input, &cx.covers(input));
        let classes = classes(input, &exchange, &liveness, cx.machine, &[]);
        let peaks = Shapes::of(&classes).each(|shape| shape.least_peak(cx.machine));
        refuse(input, &liveness, &classes, &peaks, false, cx)
    })
}

/// Returns the classes of tiles.
fn classes(
    input: &Planned,
    exchange: &ExchangeCode,
    liveness: &Liveness,
    machine: &Machine,
    field_requests: &[(SpecId, Vec<FieldRequest>)],
) -> Vec<Class> {
    let costs = sizes::costs(input, machine);
    inventory::of(input, exchange, liveness, machine, &costs, &requests::of(input, field_requests))
}

/// Reports the classes whose peaks exceed the memory of a tile. Without a schedule, exchanges have their least code.
///
/// # Errors
/// `memory::out_of_memory`, unless programs that exceed the memory are allowed.
fn refuse(
    graph: &Graph,
    liveness: &Liveness,
    classes: &[Class],
    peaks: &[u64],
    is_scheduled: bool,
    cx: &mut PassContext,
) -> Result<()> {
    let usable = cx.machine.usable_bytes() as u64;
    let over: Vec<_> = classes.iter().zip(peaks.iter().copied()).filter(|(_, peak)| *peak > usable).collect();
    if over.is_empty() {
        return Ok(());
    }
    let allowed = cx.session.allow_over_memory && over.iter().all(|o| o.1 <= u32::MAX as u64);
    let severity = if allowed { Severity::Warning } else { Severity::Error };
    cx.diagnostics.push(report::out_of_memory(severity, graph, liveness, cx.machine, &over, is_scheduled));
    if allowed {
        return Ok(());
    }
    let tiles: u64 = over.iter().map(|(class, _)| class.tiles.count()).sum();
    let all = u64::from(cx.machine.tiles());
    let needs = classes.iter().zip(peaks).map(|(c, peak)| c.tiles.count().saturating_mul(*peak));
    let needed = needs.fold(0, u64::saturating_add);
    cx.may_fit = tiles * FEW <= all || needed / FILLED <= usable * all / 100;
    Err(Failed)
}

/// Returns the layout of the fast engine's memory.
///
/// # Errors
/// `memory::host_out_of_memory` if it exceeds `host_bytes`.
pub fn allocate_host(graph: &girder_ir::graph::Graph, liveness: &Liveness, cx: &mut PassContext) -> Result<HostLayout> {
    let limit = cx.session.limits.host_bytes;
    let host = pack_for_host(graph, liveness, limit);
    if host.bytes <= limit {
        return Ok(host);
    }
    let message =
        format!("the variables need {} bytes on the host, more than the limit `host_bytes` of {limit}", host.bytes);
    let largest = graph.vars.values().max_by_key(|v| v.bytes());
    let span = largest.map_or(girder_source::Span::NONE, |v| graph.origins.span(v.origin));
    let d = Diagnostic::error("memory::host_out_of_memory", span, message);
    let d = match largest {
        Some(v) => d.here(format!("`{}` alone has {} bytes", v.name, v.bytes())),
        None => d,
    };
    cx.diagnostics.push(d.help(format!("make the variables smaller, or pass `--limit host_bytes={}`", host.bytes)));
    Err(Failed)
}

/// The shapes of classes. What depends on a shape alone is computed once for it.
struct Shapes<'a> {
    shapes: Vec<ClassShape<'a>>,
    /// The shape of each class.
    of: Vec<usize>,
}

impl<'a> Shapes<'a> {
    fn of(classes: &'a [Class]) -> Shapes<'a> {
        let mut shapes: IndexSet<ClassShape, FxBuildHasher> = IndexSet::default();
        let each = par_map(classes.len(), |k| ClassShape::of(&classes[k]));
        let of = each.into_iter().map(|s| shapes.insert_full(s).0).collect();
        Shapes { shapes: shapes.into_iter().collect(), of }
    }

    /// Returns a function of the shape of each class.
    fn each<R: Clone + Send>(&self, f: impl Fn(&ClassShape) -> R + Send + Sync) -> Vec<R> {
        let found = par_map_slice(&self.shapes, f);
        self.of.iter().map(|&k| found[k].clone()).collect()
    }
}

/// Returns the layout. Peaks are addresses of 32 bits.
fn layout(classes: &[Class], packed: &[Arc<Packing>]) -> Layout {
    let class = |(class, packing): (&Class, &Arc<Packing>)| {
        let blocks = class.needs.iter().zip(&packing.address).map(|(need, &address)| MemoryBlock {
            content: need.content,
            address: address as u32,
            bytes: need.bytes as u32,
            live: need.live.clone(),
        });
        TileClass { tiles: class.tiles.clone(), blocks: blocks.collect() }
    };
    Layout::new(classes.iter().zip(packed).map(class).collect()).expect("each tile is in one class")
}

#[cfg(test)]
mod tests;
