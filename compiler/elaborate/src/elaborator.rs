//! The state of elaboration, in parts that each own one concern, and the operations that all of elaboration uses:
//! reporting errors, charging steps, emitting.
//!
//! Evaluation itself is in `impl Elaborator` blocks of the other files, one concern each; their functions call one
//! another as the language nests. The state that they share is here, accessed through the methods of its parts.
//!
//! Invariant: a failed expression is reported once, where it failed, and then has the value [`Value::Error`].

mod budget;
mod codelet_table;
mod emission;
pub mod entities;
pub mod memory;
mod nodes;
mod reporter;
mod rows_set;
mod scopes;

pub use codelet_table::{Captured, CapturedFn, Closed, Closures, CodeletTable, Generated, SpecKey};
pub use emission::Runs;
pub use entities::Set;
pub use nodes::{Body, Node, NodeKind, add_body};
pub use rows_set::{RowWrite, RowsSet, Writer};
pub use scopes::{Binding, Global, Scopes};

use crate::context::{Arguments, Context};
use crate::gradients::formulas::Formulas;
use crate::gradients::moments::Recorder;
use crate::gradients::rule_table::Rules;
use crate::maps::rows::VarRows;
use crate::memo_table::MemoTable;
use crate::modules::{Loader, Modules};
use crate::optimiser_steps::NotedStep;
use crate::references::ItemId;
use crate::statement_times::StatementTimes;
use crate::value::{READ_FIRST, Value};
use budget::Budget;
use emission::Emission;
use entities::Entities;
use girder_ir::graph::Graph;
use girder_ir::ids::StreamId;
use girder_machine::Machine;
use girder_source::{Diagnostic, Failed, OriginId, Result, Session, Span};
use girder_syntax::ast;
use girder_typing::ModuleRef;
use reporter::Reporter;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// The elaborator of one root module.
pub struct Elaborator<'a> {
    /// All files with their names.
    pub modules: &'a Modules,
    /// The machine whose properties the text may query.
    pub machine: &'a Machine,
    /// Limits.
    pub session: &'a Session,
    /// The loader of library modules, files and arrays.
    pub loader: &'a dyn Loader,
    /// `--arg`
    pub arguments: &'a Arguments,
    /// The graph so far.
    pub graph: Graph,
    /// Diagnostics, with the calls that lead to them.
    pub reporter: Reporter<'a>,
    /// Names and their values.
    pub scopes: Scopes,
    /// The bodies that receive steps, and the properties that steps inherit.
    pub emission: Emission,
    /// The remaining steps of evaluation.
    pub budget: Budget,
    /// Functions being called, outermost first; `None` for a closure.
    pub functions: Vec<Option<ItemId>>,
    /// The path by which the text names the function that is called next, if it is a path.
    pub called: Option<SmolStr>,
    /// Programs being elaborated, outermost first.
    pub programs: Vec<(ModuleRef, SmolStr)>,
    /// The remote buffer whose row is selected for the next packet.
    pub selected: Option<StreamId>,
    /// The names of entities, and entities that are made once.
    pub entities: Entities,
    /// Codelets; each is read, generated and specialised once.
    pub codelets: CodeletTable,
    /// What is known about the texts of closures.
    pub closures: Closures,
    /// The values of static calls.
    pub memo_table: MemoTable,
    /// The time of each statement, if it is measured.
    pub statement_times: Option<&'a mut StatementTimes>,
    /// The mapped rows of `map` statements, in their order.
    pub mapped: Vec<VarRows>,
    /// Writes and their moments, in a program with gradients.
    pub recorder: Recorder,
    /// The rules of all modules.
    pub rules: Rules,
    /// Derivatives of functions of numbers.
    pub formulas: Formulas,
    /// Steps of optimisers in the programs that are being elaborated.
    pub noted_steps: Vec<NotedStep>,
    /// The pairs of calls of optimisers that were reported.
    pub slots_reported: FxHashSet<(Span, Span)>,
}

impl<'a> Elaborator<'a> {
    /// Creates an elaborator.
    pub fn new(modules: &'a Modules, cx: &'a mut Context<'_>) -> Elaborator<'a> {
        let mut graph = Graph { name: modules.root_name(), workers: cx.machine.chip.workers, ..Graph::default() };
        graph.replicas = cx.machine.partition.replicas;
        let recorder = Recorder::new(modules.mentions("grad"));
        let rules = Rules::find(modules, cx.diagnostics);
        Elaborator {
            modules,
            machine: cx.machine,
            session: cx.session,
            loader: cx.loader,
            arguments: cx.arguments,
            graph,
            reporter: Reporter::new(cx.diagnostics, cx.map),
            scopes: Scopes::default(),
            emission: Emission::default(),
            budget: Budget::new(cx.session.limits.static_steps, cx.session.limits.graph_steps),
            functions: vec![],
            called: None,
            programs: vec![],
            selected: None,
            entities: Entities::default(),
            codelets: CodeletTable::default(),
            closures: Closures::default(),
            memo_table: MemoTable::default(),
            statement_times: cx.statement_times.as_mut(),
            mapped: vec![],
            recorder,
            rules,
            formulas: Formulas::default(),
            noted_steps: vec![],
            slots_reported: FxHashSet::default(),
        }
    }

    /// Returns the module whose text is being evaluated.
    pub fn module(&self) -> ModuleRef {
        self.scopes.module()
    }

    /// Returns the syntax of the module whose text is being evaluated.
    pub fn tree(&self) -> &'a ast::Module {
        &self.modules.get(self.module()).tree
    }

    /// Evaluates at the top level of a module.
    pub fn at_top<T>(&mut self, module: ModuleRef, f: impl FnOnce(&mut Self) -> T) -> T {
        let prefix = self.modules.get(module).prefix.clone();
        let path = if prefix.is_empty() { vec![] } else { vec![prefix] };
        let emission = std::mem::replace(&mut self.emission, Emission::at_top(path));
        let calls = self.reporter.replace_calls(vec![]);
        let value = self.at_module(module, f);
        self.reporter.replace_calls(calls);
        self.emission = emission;
        value
    }

    /// Evaluates with only the names of a module in scope.
    pub fn at_module<T>(&mut self, module: ModuleRef, f: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.enter(module);
        let value = f(self);
        self.scopes.leave();
        value
    }

    /// Reports a diagnostic, with the calls that led to it.
    pub fn report(&mut self, d: Diagnostic) -> Failed {
        self.reporter.report(d)
    }

    /// Reports an error.
    pub fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> Failed {
        self.report(Diagnostic::error(code, span, message))
    }

    /// Reports an error with its next step.
    pub fn error_help(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Failed {
        self.report(Diagnostic::error(code, span, message).help(help))
    }

    /// Reports a construct of the language that is not supported yet.
    pub fn unsupported(&mut self, span: Span, what: &str) -> Failed {
        self.error("elaborate::not_supported", span, format!("{what} is not yet supported"))
    }

    /// Reports a value of the wrong kind; [`Value::Error`] is not reported again.
    pub fn expected(&mut self, what: &str, found: &Value, span: Span) -> Failed {
        self.expected_by(None, what, found, span)
    }

    /// Works like [`Elaborator::expected`], and labels the parameter whose argument the value is.
    pub fn expected_by(&mut self, parameter: Option<Span>, what: &str, found: &Value, span: Span) -> Failed {
        if found.is_error() {
            return Failed;
        }
        let message = format!("expected {what}, found {}", found.describe());
        let d = Diagnostic::error("elaborate::type_mismatch", span, message);
        let d = match (what, found) {
            ("an integer" | "a static bool", Value::Tensor(_)) => {
                d.help("a tensor's elements are known only at run time")
            }
            (_, Value::Row(..)) => d.help(READ_FIRST),
            ("a range or a list", Value::Tensor(_)) => d.help("its rows are `x[i]`, `for i in 0..len(x) { … }`"),
            ("a function", Value::Tuple(t)) if t.get("apply").is_some() => {
                d.help("a layer is applied by its member `apply`: `net.apply(x)`")
            }
            ("an integer or a range", Value::List(_)) => d.help("several rows are `gather(x, i32([3, 0]))`"),
            (_, Value::Unit) if what.starts_with("a tensor of type") => {
                d.help("the value of a body is its last expression, without a `;`")
            }
            (what, Value::Str(_)) if what.starts_with("a tensor or a number") => {
                d.help("a text and a tensor are printed by `print(\"label\", x)`")
            }
            (_, Value::List(_)) if what.starts_with("a tensor") => match found.tensor_of_list() {
                Some(help) => d.help(help),
                None => d,
            },
            _ => d,
        };
        self.report(match parameter {
            Some(at) => d.label(at, "the parameter"),
            None => d,
        })
    }

    /// Charges one step of static evaluation.
    pub fn charge(&mut self, span: Span) -> Result<()> {
        if self.budget.take(&self.session.cancel) && !self.is_full() { Ok(()) } else { Err(self.stop(span)) }
    }

    /// Charges many steps at once.
    pub fn charge_many(&mut self, count: u64, span: Span) -> Result<()> {
        self.budget.take_up_to(count);
        self.charge(span)
    }

    /// Charges values that are about to be made: a value takes more memory than a step takes time.
    pub fn charge_values(&mut self, count: u64, span: Span) -> Result<()> {
        self.charge_many(count.saturating_mul(8), span)
    }

    /// Charges a step for each value inside a value, before they are visited: a list may contain the same list many
    /// times, so its length may exceed its size in memory.
    pub fn charge_walk(&mut self, value: &Value, span: Span) -> Result<()> {
        match value {
            Value::List(l) => {
                self.charge_many(l.len() as u64, span)?;
                l.iter().try_for_each(|v| self.charge_walk(v, span))
            }
            Value::Tuple(t) => {
                self.charge_many(t.values.len() as u64, span)?;
                t.values.iter().try_for_each(|v| self.charge_walk(v, span))
            }
            Value::Closure(c) => {
                self.charge_many(c.captured.len() as u64, span)?;
                c.captured.iter().try_for_each(|(_, v)| self.charge_walk(v, span))
            }
            _ => Ok(()),
        }
    }

    /// Ends all evaluation; reports the reason once.
    fn stop(&mut self, span: Span) -> Failed {
        if !self.budget.stop() {
            return Failed;
        }
        if self.session.cancel.is_cancelled() {
            return self.error("elaborate::cancelled", span, "cancelled");
        }
        if let Err(exceeded) = self.session.charge_bytes(0) {
            return self.report(exceeded.of_memory(span));
        }
        let message = format!("building the graph takes more than {} steps", self.session.limits.static_steps);
        let help = "a loop of elaboration may never end; `--limit static_steps=N` allows more";
        self.error_help("elaborate::too_many_steps", span, message, help)
    }

    /// Makes an origin for a span, within the current call.
    pub fn origin_at(&mut self, span: Span) -> OriginId {
        self.graph.origins.add(span, self.emission.origin(), SmolStr::default())
    }

    /// Emits a step at the end of the innermost body.
    pub fn push(&mut self, mut kind: NodeKind, span: Span) -> Result<()> {
        kind.canonicalise();
        if !self.budget.emit() {
            return Err(self.too_many_graph_steps(span));
        }
        self.takes(memory::STEP + kind.texts());
        let origin = self.origin_at(span);
        let at = self.recorder.tick();
        self.log_step(&kind, at, span);
        if self.emission.push(kind, origin, at) {
            return Ok(());
        }
        let help = "move it into a `program`, or make the value static";
        Err(self.error_help("elaborate::outside_program", span, "nothing runs outside a program", help))
    }
}
