//! Pipelines: `pipeline(micro_batches: n, schedule: "1f1b") { let a = stage on ipu(0) { … }; … e }`.
//!
//! The body is elaborated once, as the body of a loop over the micro-batches is, and `grad` in it appends the reverse
//! program there. Each step knows its *stage* ([`stages`]); a reverse step has the stage of the step that it reverses.
//! Consecutive steps on one place are a *phase* ([`phases`]), and what must not be in a pipeline is refused by
//! [`checks`] from what the phases touch ([`accesses`], [`elements`]). The value of the pipeline is the sum over the
//! micro-batches: an accumulator for each tensor, to which its phase adds.
//!
//! The schedule gives each phase the *slot* in which it runs the first micro-batch ([`schedule`]). A value that one
//! phase writes and another reads is a *carry* ([`carries`]): on one IPU it waits in its variable, or in a ring with a
//! row for each micro-batch between; on the way to another IPU a copy at the end of the slot moves it to a landing
//! variable there. Each phase becomes a program without an entry, and the slots call them ([`slots`]): slot by slot
//! while the pipeline fills and drains, and as a `repeat` between.
//!
//! Invariant: all schedules run the same compute sets, and each accumulator adds the micro-batches in their order, so
//! their results are equal to the bit.

pub mod stages;
mod schedule;
pub mod accesses;
mod elements;
mod phases;
mod checks;
mod carries;
mod slots;

use crate::elaborator::Elaborator;
use crate::gradients::tape::{EntryKind, What};
use crate::value::{Given, Value};
use girder_ir::ids::VarId;
use girder_source::{Diagnostic, Result, Span};
use girder_syntax::ast::{self, Arg, ExprId};
use schedule::Schedule;
use stages::{OpenPipeline, Stage, StageNumber};

/// The options of a pipeline.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// The number of micro-batches, at least 1.
    micro_batches: u64,
    schedule: Schedule,
}

impl Elaborator<'_> {
    /// Elaborates `pipeline(micro_batches: n, schedule: s) { … }`. Its value is the sum of the body's value over the
    /// micro-batches.
    pub fn pipeline(&mut self, args: &[Arg], body: &ast::Body, span: Span) -> Result<Value> {
        let given = self.given(args)?;
        let options = self.pipeline_options(given, span)?;
        if self.emission.count().is_none() {
            let help = "move it into a `program`, or into a function that a program calls";
            return Err(self.error_help("elaborate::outside_program", span, "a pipeline runs in a program", help));
        }
        if let Some(outer) = self.emission.pipeline().map(|p| p.span) {
            let d = Diagnostic::error("pipeline::nested", span, "a pipeline in a pipeline").label(outer, "inside this");
            let help = "let the stages of both be stages of one pipeline, or make the inner one a `repeat`";
            return Err(self.report(d.help(help)));
        }
        let first = self.graph.vars.next_key();
        let (_, begin) = self.begin();
        let depth = self.emission.run_time_depth() + 1;
        self.emission.replace_pipeline(Some(OpenPipeline { span, depth, stages: vec![] }));
        let mut value = Value::Unit;
        let done = self.under_loop(begin, |this| {
            value = this.block(body)?;
            Ok(())
        });
        let stages = self.emission.replace_pipeline(None).map(|p| p.stages).unwrap_or_default();
        let body = done?;
        let locals = first..self.graph.vars.next_key();
        let (value, (reads, writes)) =
            self.untaped(|this| this.scheduled(body.nodes, &stages, locals, value, options, span))?;
        self.record(begin, EntryKind::Opaque { what: What::Pipeline, reads, writes }, span);
        Ok(value)
    }

    /// Elaborates `stage on place { … }`.
    pub fn stage(&mut self, place: ExprId, body: &ast::Body, span: Span) -> Result<Value> {
        let place = self.place(place)?;
        let name = self.emission.let_here().cloned().unwrap_or("phase".into());
        let (inside, depth) = (self.emission.stage(), self.emission.run_time_depth());
        let Some(pipeline) = self.emission.pipeline() else {
            let message = "a stage outside a pipeline";
            let help = "write it in `pipeline(micro_batches: n) { … }`; `on place { … }` only places";
            return Err(self.error_help("pipeline::outside", span, message, help));
        };
        let (around, outer) = (pipeline.span, pipeline.depth);
        if let Some(stage) = inside.map(|k| pipeline.stages[k as usize].span) {
            let d = Diagnostic::error("pipeline::nested", span, "a stage in a stage").label(stage, "inside this");
            return Err(self.report(d.help("end one stage before the next; `on place { … }` places a part of a stage")));
        }
        if depth != outer {
            let message = "whether, or how often, this stage runs is known only at run time";
            let d = Diagnostic::error("pipeline::conditional", span, message).label(around, "in this pipeline");
            return Err(self.report(d.help("put the `if` or the loop into the stage")));
        }
        let number = pipeline.stages.len() as StageNumber;
        pipeline.stages.push(Stage { name, place, span });
        self.emission.replace_stage(Some(number));
        // A step of another stage does not write what this one makes.
        self.emission.note_computed(None);
        let value = self.at_place(place, |this| this.block(body));
        self.emission.note_computed(None);
        self.emission.replace_stage(None);
        value
    }

    fn pipeline_options(&mut self, given: Vec<Given>, span: Span) -> Result<Options> {
        let [count, schedule] = self.arguments("pipeline", ["micro_batches", "schedule?"], given, span)?;
        let Some(count) = count else { return Err(girder_source::Failed) };
        let micro_batches = match count.value {
            Value::Int(n) if (1..=i64::from(i32::MAX)).contains(&n) => n as u64,
            Value::Int(n) => {
                let message = format!("a pipeline has 1 to {} micro-batches, not {n}", i32::MAX);
                return Err(self.error("pipeline::micro_batches", count.span, message));
            }
            other => return Err(self.expected("an integer", &other, count.span)),
        };
        let schedule = match schedule.map(|s| (s.value, s.span)) {
            None => Schedule::OneForwardOneBackward,
            Some((Value::Str(name), at)) => match Schedule::named(&name) {
                Some(schedule) => schedule,
                None => {
                    let near = girder_source::closest(&name, Schedule::NAMES.iter().map(|(name, _)| *name));
                    let all = Schedule::NAMES.map(|(name, _)| format!("\"{name}\"")).join(", ");
                    let help = near.map_or(format!("schedules are {all}"), |n| format!("did you mean \"{n}\"?"));
                    let message = format!("there is no schedule \"{name}\"");
                    return Err(self.error_help("pipeline::schedule", at, message, help));
                }
            },
            Some((other, at)) => return Err(self.expected("a string", &other, at)),
        };
        Ok(Options { micro_batches, schedule })
    }
}

/// The variables that were made in the body of a pipeline.
type Locals = std::ops::Range<VarId>;
