//! The matrix unit of a tile.
//!
//! # Note: Passes
//! The unit holds the coefficients of one pass, a part of the second operand: [`TERMS`] terms of each column, and one
//! column for each multiply-add of `f32` in a cycle. The supervisor loads them; then the workers run at the same time,
//! each over its own rows. A pass therefore takes the load and the time of the worker with most rows. The bundles of a
//! worker are PopLibs' estimate of a partial convolution of `f32`, `46 + 8 · (rows - 3)`.
//!
//! Invariant: the unit's time is in cycles, not bundles, since the load is not a worker's.

use super::graph::Count;
use super::inputs::{FieldRequest, MemFacts};
use super::quantity::Quantity;
use super::tile::TileCosts;
use super::walk::Product;
use girder_ir::codelet::Storage;
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;

/// Terms of the sums in one pass.
const TERMS: i64 = 8;
/// Bundles of a worker in a pass: fixed, and for each row.
const PASS: (u64, u64) = (22, 8);

/// The passes of one `amp`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct UnitTerm {
    /// Passes of all executions.
    pub passes: Quantity,
    /// Rows of one worker.
    pub rows: Quantity,
    /// Cycles in which the coefficients of a pass are loaded from interleaved memory, and from other memory.
    load: [u64; 2],
    /// The field that contains the coefficients.
    pub coefficients: Option<FieldId>,
    /// Whether all workers use the same coefficients.
    pub is_shared: bool,
}

impl UnitTerm {
    /// Returns the passes of a product, and how often it runs; `None` if the unit does not compute its type.
    pub fn of(product: &Product, count: &Count, costs: &TileCosts) -> Option<(UnitTerm, Count)> {
        if product.ty != ElemType::F32 {
            return None;
        }
        let [rows, cols, terms] = product.shape.clone();
        let width = i64::from(costs.matrix_f32.max(1));
        let passes = terms.ceil(TERMS).mul(cols.ceil(width));
        let bytes = (width * TERMS * 4).unsigned_abs();
        let load = costs.coefficient_bytes.map(|rate| bytes.div_ceil(rate.max(1).into()));
        let coefficients = if let Storage::Field(f) = product.operands[2] { Some(f) } else { None };
        let count = Count { counted: count.counted, factor: count.factor.clone().mul(passes) };
        let passes = Quantity::Number(1);
        Some((UnitTerm { passes, rows, load, coefficients, is_shared: product.is_shared }, count))
    }

    /// Returns the cycles of one pass in which a worker has this many rows.
    pub fn pass(&self, rows: u64, facts: &MemFacts, period: u32) -> u64 {
        let is_interleaved = self.coefficients.is_some_and(|f| facts.is_interleaved(f));
        let bundles = PASS.0.saturating_add(PASS.1.saturating_mul(rows));
        self.load[usize::from(!is_interleaved)].saturating_add(bundles.saturating_mul(period.into()))
    }

    /// Returns the placement in memory that makes the loads shorter.
    pub fn request(&self) -> Option<FieldRequest> {
        self.coefficients.filter(|_| self.load[0] < self.load[1]).map(FieldRequest::Interleaved)
    }

    /// Returns the text of its cycles.
    pub fn text(&self, passes: &str, rows: &str, facts: &MemFacts, period: u32) -> String {
        let (fixed, each) = (self.pass(0, facts, period), PASS.1 * u64::from(period));
        format!("{passes}·({fixed} + {each}·{rows}) cycles of the matrix unit")
    }
}

/// Returns the bundles of a product whose type the unit does not compute.
pub(super) fn emulated(product: &Product, costs: &TileCosts) -> Quantity {
    let [rows, cols, terms] = product.shape.clone();
    rows.mul(cols).mul(terms).mul(Quantity::Number(i64::from(costs.emulated)))
}
