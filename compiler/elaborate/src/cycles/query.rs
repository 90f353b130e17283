//! A codelet with its cost, and questions about it.
//!
//! Invariant: an answer depends only on the question and on the machine.

use girder_codelet::cost::{Cost, CostInputs, Deciding, MemFacts, TileCosts, equal_vertices, known_counts};
use girder_codelet::sizes::{Shape, Sizes, static_int};
use girder_ir::codelet::{Codelet, DimDecl, Dir};
use girder_ir::ids::{FieldId, SizeId};
use girder_ir::types::{ElemType, Scalar};
use std::sync::Arc;

/// The argument that is the number of vertices.
pub const VERTICES: &str = "vertices";

/// A specialised codelet and its cost. It is not part of the graph, which may have no vertex of it.
#[derive(Debug)]
pub struct CodeletCost {
    /// The codelet.
    pub codelet: Codelet,
    /// Its cost.
    pub cost: Cost,
    /// Whether the sizes and constants decide how often its statements run, although no closed form says it.
    has_known_counts: bool,
}

impl CodeletCost {
    /// Returns a codelet with its cost.
    pub fn new(codelet: Codelet, cost: Cost) -> CodeletCost {
        let has_known_counts = !cost.points().is_empty() && Deciding::of(&codelet).is_some();
        CodeletCost { codelet, cost, has_known_counts }
    }
}

/// The statements of a vertex that may be executed for one answer.
const ALLOWED: u64 = 50_000;

/// A question: vertices of a codelet with given sizes and constants.
#[derive(Clone)]
pub struct Query {
    /// The codelet.
    pub of: Arc<CodeletCost>,
    /// Its sizes.
    pub sizes: Sizes,
    /// Its constants, by field; zero for a field that is none.
    pub consts: Vec<Scalar>,
    /// The number of vertices.
    pub vertices: u64,
}

/// A number of a [`Query`] that may differ between questions.
#[derive(Clone, Copy)]
pub enum Slot {
    /// A size of the codelet.
    Size(SizeId),
    /// A constant.
    Const(FieldId, ElemType),
    /// The number of vertices.
    Vertices,
}

impl Query {
    /// Returns the number that an argument sets.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        let codelet = &self.of.codelet;
        let size = || codelet.sizes.iter().find(|(_, n)| *n == name).map(|(id, _)| Slot::Size(id));
        let is_const = |f: &girder_ir::codelet::FieldDecl| f.dir == Dir::Const && f.name == name;
        let field = || codelet.fields.iter().find(|(_, f)| is_const(f)).map(|(id, f)| Slot::Const(id, f.ty));
        size().or_else(field).or_else(|| (name == VERTICES).then_some(Slot::Vertices))
    }

    /// Sets a number; `None` if it is out of range.
    pub fn set(&mut self, slot: Slot, value: i64) -> Option<()> {
        match slot {
            Slot::Size(size) => self.sizes.sizes[size] = (value >= 0).then_some(value)?,
            Slot::Const(field, ty) => self.consts[field.as_u32() as usize] = Scalar::int(ty, value.into())?,
            Slot::Vertices => self.vertices = u64::try_from(value).ok()?,
        }
        Some(())
    }

    /// Returns the cycles of a tile, and the number of statements that were executed to find them; `None` if a
    /// dimension has no value.
    pub fn cycles(&self, costs: &TileCosts) -> Option<(i64, u64)> {
        let CodeletCost { codelet, cost, has_known_counts } = &*self.of;
        let mut sizes = self.sizes.clone();
        let mut elements: u64 = 0;
        for (field, decl) in codelet.edges() {
            let length = |dim: &DimDecl| match *dim {
                DimDecl::Size(size) => u64::try_from(self.sizes.sizes[size]).ok(),
                DimDecl::Fixed(n) => Some(n),
                DimDecl::Expr(e) => u64::try_from(static_int(codelet, &self.sizes, &self.consts, e)?).ok(),
            };
            sizes.shapes[field] = decl.dims.iter().map(length).collect::<Option<Shape>>()?;
            let own = sizes.shapes[field].iter().fold(1u64, |n, &length| n.saturating_mul(length));
            elements = elements.saturating_add(own);
        }
        let facts = MemFacts::granting(cost.requests());
        let consts: Vec<u64> = self.consts.iter().map(|c| c.bits).collect();
        let (worker, workers) = (0, costs.workers);
        let at = CostInputs { sizes: &sizes, consts: &consts, worker, workers, counters: &[], facts: &facts };
        let mut allowed = ALLOWED;
        let known =
            has_known_counts.then(|| known_counts(codelet, cost.points(), &sizes, &consts, workers, &mut allowed));
        let counters = known.flatten().unwrap_or_else(|| {
            let sharing = if cost.is_multi() { u64::from(workers.max(1)) } else { 1 };
            cost.counters(&at, elements.div_ceil(sharing))
        });
        let busy = cost.busy(&CostInputs { counters: &counters, ..at });
        let cycles = i64::try_from(equal_vertices(self.vertices, &busy, costs)).unwrap_or(i64::MAX);
        Some((cycles, ALLOWED - allowed))
    }
}
