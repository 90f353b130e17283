//! The interface of the three modes: they execute compute sets and copies, and read and write elements by run.
//!
//! Invariant: between two calls every live variable has one value per element, independent of where the mode stores it.

use crate::error::EngineError;
use girder_codelet::interpret::{Failure, Race};
use girder_ir::graph::{Graph, Init};
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, StepId, VarId};
use girder_ir::trace::{Counts, NoCounts};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::Run;

/// The memory of a mode, and the steps that change it.
pub(crate) trait Store {
    /// Begins a run.
    fn begin(&mut self) {}

    /// Executes the vertices of a compute set.
    fn execute(&mut self, set: ComputeSetId) -> Result<(), VertexStop>;

    /// Returns the execution counts of the counted blocks of the last compute set; empty if no blocks are counted.
    fn counts(&self) -> &dyn Counts {
        &NoCounts
    }

    /// Performs a copy inside a replica.
    fn copy(&mut self, copy: CopyId);

    /// Returns whether `undef` writes zeros also where no step reads them.
    fn fills_unread(&self) -> bool {
        true
    }

    /// Selects the replica whose memory the other functions access.
    fn select(&self, replica: u32);

    /// Gives all replicas the elements of the first one.
    fn replicate(&mut self);

    /// Performs a copy between replicas, all at once, by itself. Returns `false` if the mode has no own way to do it.
    fn exchange(&mut self, copy: CopyId) -> bool {
        let _ = copy;
        false
    }

    /// Runs a group of compute sets and copies of a sequence from `first` on, if the mode has one there, and returns
    /// its number of steps; otherwise 0. An error comes with the step that fails. The memory is then the same as after
    /// running them one after another.
    fn grouped(&mut self, first: StepId) -> Result<usize, (VertexStop, StepId)> {
        let _ = first;
        Ok(0)
    }

    /// Reads the elements of a run in order; `into` has the length of their bytes.
    fn read(&self, run: Run, into: &mut [u8]);

    /// Writes the elements of a run in order.
    fn write(&mut self, run: Run, from: &[u8]);
}

/// The reason why a compute set ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VertexStop {
    /// A check failed.
    Failed(VertexFailure),
    /// Two workers of a vertex race; only mode `interpret` detects this.
    Raced(VertexRace),
    /// The session was cancelled.
    Cancelled,
    /// The vertices of the run execute too many statements; only mode `interpret` counts them.
    Exhausted,
}

/// The first race of a compute set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VertexRace {
    /// The vertex's family.
    pub family: FamilyId,
    /// The instance.
    pub instance: u64,
    /// The accesses that race.
    pub race: Race,
}

/// The first vertex of a compute set whose check failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VertexFailure {
    /// Its family.
    pub family: FamilyId,
    /// The instance.
    pub instance: u64,
    /// The check that failed.
    pub failure: Failure,
}

/// Reads the elements of several runs into one buffer.
pub(crate) fn read_runs(store: &dyn Store, graph: &Graph, runs: &[Run], into: &mut [u8]) {
    let mut at = 0;
    for &run in runs {
        let bytes = run.len as usize * graph.vars[run.var].ty.bytes() as usize;
        store.read(run, &mut into[at..at + bytes]);
        at += bytes;
    }
}

/// Writes one buffer to the elements of several runs.
pub(crate) fn write_runs(store: &mut dyn Store, graph: &Graph, runs: &[Run], from: &[u8]) {
    let mut at = 0;
    for &run in runs {
        let bytes = run.len as usize * graph.vars[run.var].ty.bytes() as usize;
        store.write(run, &from[at..at + bytes]);
        at += bytes;
    }
}

/// Returns the value of a rank-0 view.
pub(crate) fn read_scalar(store: &dyn Store, ty: ElemType, runs: &[Run]) -> Scalar {
    let mut bytes = [0; 8];
    if let Some(&run) = runs.first() {
        store.read(run, &mut bytes[..ty.bytes() as usize]);
    }
    Scalar::from_le_bytes(ty, &bytes)
}

/// Normalises the bytes of a `bool` from outside to 0 or 1; other types are unchanged.
pub(crate) fn tidy(ty: ElemType, bytes: &mut [u8]) {
    if ty == ElemType::Bool {
        bytes.iter_mut().for_each(|b| *b = (*b != 0) as u8);
    }
}

/// Replaces every NaN by the canonical one: sign and payload are not specified, and differ between modes.
pub(crate) fn one_nan(ty: ElemType, bytes: &mut [u8]) {
    match ty {
        ElemType::F32 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|b| {
            if f32::from_le_bytes(*b).is_nan() {
                *b = girder_codelet::scalar::NAN_F32.to_le_bytes();
            }
        }),
        ElemType::F64 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|b| {
            if f64::from_le_bytes(*b).is_nan() {
                *b = girder_codelet::scalar::NAN_F64.to_le_bytes();
            }
        }),
        _ => {}
    }
}

/// Returns the run of all elements of a variable, or `None` if it has none.
pub(crate) fn whole(graph: &Graph, var: VarId) -> Option<Run> {
    let len = graph.vars[var].len();
    (len > 0).then_some(Run { var, start: 0, len, stride: 1 })
}

/// Writes the initial values in all replicas; all other elements are zero already.
pub(crate) fn initialise(store: &mut dyn Store, graph: &Graph) {
    initialise_first(store, graph);
    store.replicate();
    let numbered = |v: &&VarId| graph.vars[**v].init == Some(Init::ReplicaIndex);
    let vars: Vec<VarId> = graph.vars.keys().collect();
    for &var in vars.iter().filter(numbered) {
        for replica in 0..graph.replicas.max(1) {
            store.select(replica);
            store.write(Run { var, start: 0, len: 1, stride: 1 }, &replica.to_le_bytes());
        }
    }
    store.select(0);
}

fn initialise_first(store: &mut dyn Store, graph: &Graph) {
    for (id, var) in &graph.vars {
        match (&var.init, whole(graph, id)) {
            (Some(Init::Data(data)), Some(run)) => store.write(run, data),
            (Some(Init::Drawn(drawn)), Some(run)) => crate::draw::draw(store, run, var.ty, drawn),
            (Some(Init::Fill(value)), Some(run)) if value.bits != 0 => fill(store, run, *value),
            _ => {}
        }
    }
}

/// Sets every element of a run of stride 1, in pieces, so that no second copy of a large variable is needed.
fn fill(store: &mut dyn Store, run: Run, value: Scalar) {
    const AT_ONCE: u64 = 1 << 16;
    let element: Vec<u8> = value.to_le_bytes().collect();
    let bytes = element.repeat(run.len.min(AT_ONCE) as usize);
    for start in (0..run.len).step_by(AT_ONCE as usize) {
        let len = (run.len - start).min(AT_ONCE);
        store.write(Run { start: run.start + start, len, ..run }, &bytes[..len as usize * element.len()]);
    }
}

/// Returns the bytes that a mode needs, or an error if they exceed the limit.
pub(crate) fn within(needed: u128, limit: u64) -> Result<u64, EngineError> {
    match u64::try_from(needed) {
        Ok(n) if n <= limit => Ok(n),
        _ => Err(EngineError::HostMemory { needed: u64::try_from(needed).unwrap_or(u64::MAX), limit }),
    }
}
