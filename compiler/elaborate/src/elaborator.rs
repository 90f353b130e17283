//! The state of elaboration in parts that each own one thing, and the few operations that all of elaboration uses:
//! reporting errors, charging steps, emitting.
//!
//! Evaluation itself is in `impl Elaborator` of the other files, one idea each: its functions call one another as the
//! language nests. What they share is here, behind the parts' methods.
//!
//! Invariant: a failed expression is reported once, where it failed, and its value is [`Value::Error`] to whatever
//! comes after.

mod budget;
mod codelet_table;
mod emission;
mod entities;
mod nodes;
mod reporter;
mod scopes;

pub use codelet_table::{CodeletTable, Generated, SpecKey};
pub use entities::Set;
pub use nodes::{Body, NodeKind, add_body};
pub use scopes::{Binding, Global, Scopes};

use crate::context::{Arguments, Context};
use crate::maps::rows::VarRows;
use crate::modules::{Loader, Modules};
use crate::value::Value;
use budget::Budget;
use emission::Emission;
use entities::Entities;
use girder_ir::graph::Graph;
use girder_machine::Machine;
use girder_source::{Diagnostic, Failed, OriginId, Result, Session, Span};
use girder_syntax::ast;
use girder_typing::ModuleRef;
use reporter::Reporter;
use smol_str::SmolStr;

/// Elaboration of one root module.
pub struct Elaborator<'a> {
    /// All files with their names.
    pub modules: &'a Modules,
    /// The machine whose facts the text may ask for.
    pub machine: &'a Machine,
    /// Limits.
    pub session: &'a Session,
    /// The library, files and arrays.
    pub loader: &'a dyn Loader,
    /// `--arg`
    pub arguments: &'a Arguments,
    /// The graph so far.
    pub graph: Graph,
    /// Where diagnostics go.
    pub reporter: Reporter<'a>,
    /// Names and their values.
    pub scopes: Scopes,
    /// Where steps go, and what they inherit.
    pub emission: Emission,
    /// Steps of evaluation that are left.
    pub budget: Budget,
    /// Functions being called, outermost first.
    pub functions: Vec<(ModuleRef, usize)>,
    /// Programs being elaborated, outermost first.
    pub programs: Vec<(ModuleRef, SmolStr)>,
    /// Names of entities, and what is made once.
    pub entities: Entities,
    /// Codelets, each read, generated and specialised once.
    pub codelets: CodeletTable,
    /// What `map` statements put on tiles, in their order.
    pub mapped: Vec<VarRows>,
}

impl<'a> Elaborator<'a> {
    /// An elaborator that has elaborated nothing.
    pub fn new(modules: &'a Modules, cx: &'a mut Context<'_>) -> Elaborator<'a> {
        Elaborator {
            modules,
            machine: cx.machine,
            session: cx.session,
            loader: cx.loader,
            arguments: cx.arguments,
            graph: Graph { name: modules.root_name(), ..Graph::default() },
            reporter: Reporter::new(cx.diagnostics, cx.map),
            scopes: Scopes::default(),
            emission: Emission::default(),
            budget: Budget::new(cx.session.limits.static_steps),
            functions: vec![],
            programs: vec![],
            entities: Entities::default(),
            codelets: CodeletTable::default(),
            mapped: vec![],
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

    /// Evaluates at the top of a module, whatever was being evaluated.
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

    /// Evaluates with the names of a module alone.
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

    /// Reports that something of the language is not supported yet.
    pub fn unsupported(&mut self, span: Span, what: &str) -> Failed {
        self.error("elaborate::not_supported", span, format!("{what} is not yet supported"))
    }

    /// Reports that a value is of the wrong kind; silent about [`Value::Error`].
    pub fn expected(&mut self, what: &str, found: &Value, span: Span) -> Failed {
        if found.is_error() {
            return Failed;
        }
        let message = format!("expected {what}, found {}", found.describe());
        let d = Diagnostic::error("elaborate::type_mismatch", span, message);
        let d = match (what, found) {
            ("an integer" | "a static bool", Value::Tensor(_)) => {
                d.help("a tensor's elements are known only at run time")
            }
            _ => d,
        };
        self.report(d)
    }

    /// Charges one step of static evaluation.
    pub fn charge(&mut self, span: Span) -> Result<()> {
        if self.budget.take(&self.session.cancel) { Ok(()) } else { Err(self.stop(span)) }
    }

    /// Charges many steps at once.
    pub fn charge_many(&mut self, count: u64, span: Span) -> Result<()> {
        self.budget.take_up_to(count);
        self.charge(span)
    }

    /// Charges values that are about to be made: one takes more room than a step takes time.
    pub fn charge_values(&mut self, count: u64, span: Span) -> Result<()> {
        self.charge_many(count.saturating_mul(8), span)
    }

    /// Charges a step for each value inside a value, before all of them are looked at: a list may hold the same list
    /// many times, and so be far longer than it is large.
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
            _ => Ok(()),
        }
    }

    /// Ends all evaluation, and reports why once.
    fn stop(&mut self, span: Span) -> Failed {
        if !self.budget.stop() {
            return Failed;
        }
        if self.session.cancel.is_cancelled() {
            return self.error("elaborate::cancelled", span, "cancelled");
        }
        let message = format!("building the graph takes more than {} steps", self.session.limits.static_steps);
        let help = "a loop of elaboration may never end; `--limit static_steps=N` allows more";
        self.error_help("elaborate::too_many_steps", span, message, help)
    }

    /// Makes an origin for a span, under the call being evaluated.
    pub fn origin_at(&mut self, span: Span) -> OriginId {
        self.graph.origins.add(span, self.emission.origin(), SmolStr::default())
    }

    /// Emits a step at the end of the innermost body.
    pub fn push(&mut self, mut kind: NodeKind, span: Span) -> Result<()> {
        kind.canonicalise();
        let origin = self.origin_at(span);
        if self.emission.push(kind, origin) {
            return Ok(());
        }
        let help = "move it into a `program`, or make the value static";
        Err(self.error_help("elaborate::outside_program", span, "nothing runs outside a program", help))
    }
}
