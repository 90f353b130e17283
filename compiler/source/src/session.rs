//! Limits on the work that one input may cause, and cancellation.
//!
//! Invariant: every loop over user-sized data charges [`Limits`] or polls [`Cancel`]; exceeding a limit is a diagnostic
//! that names the limit.

use crate::diagnostic::Diagnostic;
use crate::memory::{ChargedBytes, host_memory};
use crate::span::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Upper bounds on the resources of one compilation or run. `--limit NAME=VALUE` sets one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Elements of one variable.
    pub elements: u64,
    /// Bytes of all variables together on the host.
    pub host_bytes: u64,
    /// Bytes of the tables of a compilation; see the note in `memory`.
    pub compile_bytes: u64,
    /// Vertices of one compute set, and rows of one copy.
    pub instances: u64,
    /// Steps of static evaluation: expressions evaluated, iterations of static loops.
    pub static_steps: u64,
    /// Steps of all programs: executions of compute sets, copies, prints, and the like.
    pub graph_steps: u64,
    /// Codelets with their generics, and programs with their arguments.
    pub specialisations: u64,
    /// Nesting of calls, blocks and expressions.
    pub nesting: u32,
    /// Parts of one view.
    pub view_parts: u32,
    /// Statements, and elements of reductions, that vertices execute in one run in mode `interpret`.
    pub interpreted: u64,
    /// Iterations of one loop, in a codelet or in a program.
    pub iterations: u64,
    /// Iterations of all loops of one vertex together; iterations and calls of one run of a program together.
    pub total_iterations: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            elements: 1 << 31,
            host_bytes: 16 << 30,
            compile_bytes: host_memory() / 2,
            instances: 1 << 26,
            static_steps: 20_000_000,
            graph_steps: 250_000,
            specialisations: 10_000,
            nesting: 200,
            view_parts: 4096,
            interpreted: 200_000_000,
            iterations: 30_000_000,
            total_iterations: 1_000_000_000,
        }
    }
}

/// A limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// Its name, as `--limit` takes it.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
}

impl Limits {
    /// The names that [`Limits::set`] takes.
    pub const NAMES: [&'static str; 12] = [
        "elements",
        "host_bytes",
        "compile_bytes",
        "instances",
        "static_steps",
        "graph_steps",
        "specialisations",
        "nesting",
        "view_parts",
        "interpreted",
        "iterations",
        "total_iterations",
    ];

    /// Sets a limit by name; returns `false` if the name is unknown or the value does not fit.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        match name {
            "elements" | "nesting" | "view_parts" if Limits::most(name).is_some_and(|most| value > most) => {
                return false;
            }
            "elements" => self.elements = value,
            "host_bytes" => self.host_bytes = value,
            "compile_bytes" => self.compile_bytes = value,
            "instances" => self.instances = value,
            "static_steps" => self.static_steps = value,
            "graph_steps" => self.graph_steps = value,
            "specialisations" => self.specialisations = value,
            "nesting" => self.nesting = value as u32,
            "view_parts" => self.view_parts = value as u32,
            "interpreted" => self.interpreted = value,
            "iterations" => self.iterations = value,
            "total_iterations" => self.total_iterations = value,
            _ => return false,
        }
        true
    }

    /// Returns the greatest value of a limit, where there is such a bound.
    pub fn most(name: &str) -> Option<u64> {
        match name {
            // Element numbers are 32 bits wide.
            "elements" | "view_parts" => Some(u32::MAX as u64),
            // Deeper nesting would put the host's own stack at risk.
            "nesting" => Some(400),
            _ => None,
        }
    }

    /// Returns `Ok` while `used` does not exceed the limit `name` of value `value`.
    pub fn within(name: &'static str, used: u64, value: u64) -> Result<(), LimitExceeded> {
        if used > value { Err(LimitExceeded { name, value }) } else { Ok(()) }
    }
}

/// A flag that any thread may set (Ctrl-C) and long work polls.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Requests that the work stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request, so that later work does not stop.
    pub fn withdraw(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns whether the work should stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the flag for compiled code to poll; it lives as long as any clone of this value.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// Options that every potentially long operation receives by reference.
#[derive(Clone, Debug)]
pub struct Session {
    /// The limits.
    pub limits: Limits,
    /// The cancellation flag.
    pub cancel: Cancel,
    /// The bytes of tables so far.
    pub memory: ChargedBytes,
    /// Whether compilation continues if a tile's memory is too small, as if it were larger.
    pub allow_over_memory: bool,
    /// Whether the body of a static loop is evaluated once for all its iterations where possible. The graph is the same
    /// without it; tests compare the two.
    pub batched: bool,
    /// The names of optional passes that are left out.
    pub without: Vec<&'static str>,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            limits: Limits::default(),
            cancel: Cancel::default(),
            memory: ChargedBytes::default(),
            allow_over_memory: false,
            batched: true,
            without: vec![],
        }
    }
}

impl Session {
    /// Charges the bytes of tables that are about to be made.
    ///
    /// # Errors
    /// The limit `compile_bytes`, if all tables together exceed it.
    pub fn charge_bytes(&self, bytes: u64) -> Result<(), LimitExceeded> {
        self.memory.add(bytes);
        Limits::within("compile_bytes", self.memory.used(), self.limits.compile_bytes)
    }
}

impl LimitExceeded {
    /// Returns the diagnostic of a compilation whose tables would exceed `compile_bytes`; `span` is the text that asks
    /// for them.
    pub fn of_memory(self, span: Span) -> Diagnostic {
        let message = format!("the tables of the compilation exceed {} bytes of memory", self.value);
        let help = "make fewer statements, or put them in a `repeat` or a `for` of a codelet; \
                    `--limit compile_bytes=N` allows more";
        Diagnostic::error("session::too_much_memory", span, message).help(help)
    }
}
