//! Mode `interpret`, the oracle: one array per variable; vertices run one after another in the codelet interpreter;
//! copies read all elements before they write.
//!
//! This mode also checks the workers of `multi` codelets: a run ends if a worker touches an element that another one
//! writes.
//!
//! Invariant: nothing here depends on placement, plan, schedule, layout or compiled code, so that its results define
//! the meaning of a graph.

use crate::counts::Counted;
use crate::error::EngineError;
use crate::runs::{Located, runs_of};
use crate::store::{Store, VertexFailure, VertexRace, VertexStop, read_runs, within, write_runs};
use cranelift_entity::{EntityRef, SecondaryMap};
use girder_codelet::cost::CountedBlocks;
use girder_codelet::interpret::{Interpreter, Stop, VertexMemory};
use girder_codelet::sizes::Sizes;
use girder_codelet::vertices::{bind_family, vertex_consts};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, FieldId, VarId};
use girder_ir::trace::Counts;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::Run;
use girder_source::Session;
use std::cell::Cell;

/// The memory of mode `interpret`.
pub(crate) struct Interpreted<'e> {
    graph: &'e Graph,
    session: &'e Session,
    workers: u32,
    /// Bytes of each variable in each replica: row-major, little-endian.
    replicas: Vec<SecondaryMap<VarId, Vec<u8>>>,
    selected: Cell<usize>,
    /// Sizes of the families' codelets; `None` for families without vertices.
    sizes: SecondaryMap<FamilyId, Option<Sizes>>,
    counting: Option<&'e CountedBlocks>,
    counted: Counted,
    /// The statements that this run may still execute.
    left: u64,
}

impl<'e> Interpreted<'e> {
    /// Creates the memory with all variables zero.
    pub(crate) fn new(
        graph: &'e Graph,
        workers: u32,
        counting: Option<&'e CountedBlocks>,
        session: &'e Session,
    ) -> Result<Interpreted<'e>, EngineError> {
        let replicas = graph.replicas.max(1);
        let bytes: u128 = graph.vars.values().map(|v| v.bytes() as u128).sum();
        within(bytes * u128::from(replicas), session.limits.host_bytes)?;
        let mut vars = SecondaryMap::new();
        for (id, var) in &graph.vars {
            vars[id] = vec![0; var.bytes() as usize];
        }
        let mut sizes = SecondaryMap::new();
        for (id, family) in &graph.families {
            sizes[id] = bind_family(graph, family).map_err(|_| {
                let name = &graph.codelets[family.codelet].name;
                EngineError::Internal(format!("a vertex of `{name}` has a view of another shape"))
            })?;
        }
        let (replicas, selected) = (vec![vars; replicas as usize], Cell::new(0));
        let counted = Counted::default();
        Ok(Interpreted { graph, session, workers, replicas, selected, sizes, counting, counted, left: 0 })
    }

    fn vertex(
        &mut self,
        id: FamilyId,
        family: &Family,
        instance: u64,
        interpreter: &mut Interpreter,
    ) -> Result<(), VertexStop> {
        let Some(sizes) = &self.sizes[id] else { return Ok(()) };
        let codelet = &self.graph.codelets[family.codelet];
        let mut fields: Vec<_> = codelet.fields.values().map(|f| (Located::default(), f.ty)).collect();
        for field in &family.fields {
            fields[field.field.index()].0 = Located::new(&field.view(&family.domain, instance));
        }
        let consts = vertex_consts(codelet, family, instance);
        let mut memory = Vertex { vars: &mut self.replicas[self.selected.get()], fields };
        interpreter.run(sizes, &mut memory, &consts, self.workers, self.session).map_err(|stop| match stop {
            Stop::Failed(failure) => VertexStop::Failed(VertexFailure { family: id, instance, failure }),
            Stop::Raced(race) => VertexStop::Raced(VertexRace { family: id, instance, race }),
            Stop::Cancelled => VertexStop::Cancelled,
            Stop::Exhausted => VertexStop::Exhausted,
        })
    }
}

impl Store for Interpreted<'_> {
    fn begin(&mut self) {
        self.left = self.session.limits.interpreted;
    }

    fn execute(&mut self, set: ComputeSetId) -> Result<(), VertexStop> {
        let graph = self.graph;
        for &id in &graph.sets[set].families {
            let family = &graph.families[id];
            let mut interpreter = Interpreter::new(&graph.codelets[family.codelet]).watching();
            if let Some(counting) = self.counting {
                interpreter.count(counting.points(family.codelet));
            }
            for instance in 0..family.domain.count() {
                interpreter.allow(self.left);
                self.vertex(id, family, instance, &mut interpreter)?;
                self.left = interpreter.left();
                if self.counting.is_some() {
                    let numbers = interpreter.counters().iter().copied();
                    self.counted.set(id, family.domain.count(), instance, numbers);
                }
            }
        }
        Ok(())
    }

    fn counts(&self) -> &dyn Counts {
        &self.counted
    }

    fn copy(&mut self, copy: CopyId) {
        let graph = self.graph;
        let mut read = Vec::new();
        for family in &graph.copies[copy].families {
            for instance in 0..family.domain.count() {
                let runs = runs_of(&family.src.view(&family.domain, instance));
                let bytes = runs.iter().map(|r| r.len * graph.vars[r.var].ty.bytes() as u64).sum::<u64>();
                let mut elements = vec![0; bytes as usize];
                read_runs(self, graph, &runs, &mut elements);
                read.push(elements);
            }
        }
        let mut read = read.into_iter();
        for family in &graph.copies[copy].families {
            for (instance, elements) in (0..family.domain.count()).zip(&mut read) {
                write_runs(self, graph, &runs_of(&family.dst.view(&family.domain, instance)), &elements);
            }
        }
    }

    fn select(&self, replica: u32) {
        self.selected.set(replica as usize);
    }

    fn replicate(&mut self) {
        if let Some((first, others)) = self.replicas.split_first_mut() {
            others.iter_mut().for_each(|vars| *vars = first.clone());
        }
    }

    fn read(&self, run: Run, into: &mut [u8]) {
        let vars = &self.replicas[self.selected.get()];
        let size = self.graph.vars[run.var].ty.bytes() as usize;
        for (i, element) in into.chunks_exact_mut(size).enumerate() {
            let at = (run.start as i64 + i as i64 * run.stride) as usize * size;
            element.copy_from_slice(&vars[run.var][at..at + size]);
        }
    }

    fn write(&mut self, run: Run, from: &[u8]) {
        let vars = &mut self.replicas[self.selected.get()];
        let size = self.graph.vars[run.var].ty.bytes() as usize;
        for (i, element) in from.chunks_exact(size).enumerate() {
            let at = (run.start as i64 + i as i64 * run.stride) as usize * size;
            vars[run.var][at..at + size].copy_from_slice(element);
        }
    }
}

/// The fields of the current vertex.
struct Vertex<'a> {
    vars: &'a mut SecondaryMap<VarId, Vec<u8>>,
    /// By field id; empty for `const` fields.
    fields: Vec<(Located, ElemType)>,
}

impl Vertex<'_> {
    fn locate(&self, field: FieldId, position: u64) -> (VarId, std::ops::Range<usize>, ElemType) {
        let (elements, ty) = &self.fields[field.index()];
        let (var, element) = elements.at(position);
        let size = ty.bytes() as usize;
        let at = element as usize * size;
        (var, at..at + size, *ty)
    }
}

impl VertexMemory for Vertex<'_> {
    fn load(&mut self, field: FieldId, flat_index: u64) -> u64 {
        let (var, at, ty) = self.locate(field, flat_index);
        Scalar::from_le_bytes(ty, &self.vars[var][at]).bits
    }

    fn store(&mut self, field: FieldId, flat_index: u64, bits: u64) {
        let (var, at, _) = self.locate(field, flat_index);
        let size = at.len();
        self.vars[var][at].copy_from_slice(&bits.to_le_bytes()[..size]);
    }
}
