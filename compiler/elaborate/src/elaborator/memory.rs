//! The memory that entities take, charged against `compile_bytes` as they are made.
//!
//! # Note: Bytes of an entity
//! An entity is charged once, with the bytes of its rows in the tables of all stages: what the peak of
//! `girder check` grew by for each further entity, measured with 10^5 to 4·10^6 of them and rounded up. So a program
//! that the machine cannot compile is refused where it makes too much, not in a pass that copies its tables.
//!
//! Invariant: everything of which a static loop can make one more in each iteration is charged here or in
//! [`Elaborator::charge_values`].

use super::Elaborator;
use girder_ir::view::View;
use girder_source::{Failed, Result, Span};

/// The bytes of a step.
pub const STEP: u64 = 800;
/// The bytes of a variable.
pub const VAR: u64 = 900;
/// The bytes of a compute set or a copy.
pub const SET: u64 = 800;
/// The bytes of a family of vertices or copies whose views have one part.
pub const FAMILY: u64 = 2000;
/// The bytes of a further part of a view.
pub const PART: u64 = 250;
/// The bytes of a vertex in a family.
pub const VERTEX: u64 = 128;
/// The bytes of a copy before copies of one signature become a family.
pub const ROW: u64 = 800;
/// The bytes of a program that another one calls, without its steps.
pub const PROGRAM: u64 = 4000;
/// The bytes of a specialised codelet, without its expressions.
pub const CODELET: u64 = 8000;
/// The bytes of an expression of a specialised codelet.
pub const EXPR: u64 = 200;

impl Elaborator<'_> {
    /// Notes bytes of tables that were made; the next step of evaluation fails if they are too many.
    pub fn takes(&mut self, bytes: u64) {
        self.session.memory.add(bytes);
    }

    /// Charges bytes of tables that are about to be made.
    pub fn charge_bytes(&mut self, bytes: u64, span: Span) -> Result<()> {
        self.takes(bytes);
        if self.is_full() { Err(self.stop(span)) } else { Ok(()) }
    }

    /// Charges vertices that are about to be added to a compute set.
    pub fn charge_vertices(&mut self, count: u64, span: Span) -> Result<()> {
        self.charge_bytes(count.saturating_mul(VERTEX), span)
    }

    /// Charges one more codelet with its generics, or program with its arguments, beside `known` ones.
    pub fn specialises(&mut self, known: usize, bytes: u64, span: Span) -> Result<()> {
        self.charge_bytes(bytes, span)?;
        let limit = self.session.limits.specialisations;
        if (known as u64) < limit {
            return Ok(());
        }
        if !self.budget.stop() {
            return Err(Failed);
        }
        let message = format!(
            "the graph has more than {limit} codelets with different generics, or programs with \
                               different arguments"
        );
        let help = "pass what differs as a field or a variable; `--limit specialisations=N` allows more";
        Err(self.error_help("elaborate::too_many_specialisations", span, message, help))
    }

    /// Ends all evaluation because the programs have too many steps.
    pub fn too_many_graph_steps(&mut self, span: Span) -> Failed {
        if !self.budget.stop() {
            return Failed;
        }
        let message = format!("the programs have more than {} steps", self.session.limits.graph_steps);
        let help = "put equal steps in a `repeat`, or in a `for` of a codelet; `--limit graph_steps=N` allows more";
        self.error_help("elaborate::too_many_graph_steps", span, message, help)
    }

    /// Returns the bytes that may still be charged.
    pub fn room(&self) -> u64 {
        self.session.limits.compile_bytes.saturating_sub(self.session.memory.used())
    }

    /// Returns whether all tables together exceed the limit.
    pub fn is_full(&self) -> bool {
        self.session.memory.used() > self.session.limits.compile_bytes
    }
}

/// Returns the bytes of a family with the given views.
pub fn of_family<'v>(views: impl IntoIterator<Item = &'v View>) -> u64 {
    let parts: u64 = views.into_iter().map(|v| v.parts.len().saturating_sub(1) as u64).sum();
    FAMILY + parts * PART
}
