//! What must not be in a pipeline, because its meaning would depend on the schedule.
//!
//! Invariant: a pipeline that passes has one result, whatever the schedule.

use super::Locals;
use super::accesses::Accesses;
use super::elements::{self, Regions};
use super::phases::Phase;
use crate::elaborator::{Elaborator, Node};
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_ir::region::least_common;
use girder_source::{Diagnostic, OriginId, Result, Span};
use std::collections::BTreeSet;

impl Elaborator<'_> {
    /// Reports what must not be in a pipeline; `touched` is what each phase touches. With `in_turn`, a micro-batch ends
    /// before the next one begins.
    pub(super) fn check_pipeline(
        &mut self,
        phases: &[Phase],
        touched: &[Accesses],
        locals: &Locals,
        in_turn: bool,
        span: Span,
    ) -> Result<()> {
        // One phase takes the micro-batches in order.
        let overlap = phases.len() > 1;
        if let Some(&(what, at)) = touched.iter().flat_map(|a| &a.ordered).next().filter(|_| overlap) {
            let message = format!("`{what}` in a stage");
            let d = Diagnostic::error("pipeline::effect", self.graph.origins.span(at), message);
            let d = d.label(span, "stages of this pipeline overlap, so their order is that of the schedule");
            return Err(self.report(d.help("let the pipeline give the value, and use it after the pipeline")));
        }
        self.check_streams(touched, in_turn)?;
        let vars: BTreeSet<VarId> =
            touched.iter().flat_map(|a| a.reads.keys().chain(a.writes.keys())).copied().collect();
        for var in vars {
            let v = &self.graph.vars[var];
            match locals.contains(&var) && v.class == VarClass::Temp {
                true => self.check_local(touched, var)?,
                false => self.check_outside(phases, touched, var)?,
            }
        }
        Ok(())
    }

    fn check_streams(&mut self, touched: &[Accesses], in_turn: bool) -> Result<()> {
        for (k, phase) in touched.iter().enumerate() {
            for (stream, &at) in &phase.streams {
                let Some(&before) = touched[..k].iter().find_map(|a| a.streams.get(stream)) else { continue };
                if let Some(&(_, needed)) = self.recorder.beside.iter().find(|(stash, _)| stash == stream) {
                    if in_turn {
                        continue;
                    }
                    let message = "a loop in a stage cannot keep its values beside the tiles: those of other \
                                   micro-batches would overwrite them";
                    let help = "write `#[recompute]` before the `let` of the stage instead, which keeps only what goes \
                                into it, or use the schedule \"sharded\"";
                    return Err(self.error_help("pipeline::stream", needed, message, help));
                }
                let found = &self.graph.streams[*stream];
                let (what, help) = match found.rows {
                    None => (
                        "stream",
                        "let one stage read it and pass the packet on, or give each stage a stream of its own",
                    ),
                    Some(_) => ("remote buffer", "give each stage a buffer of its own"),
                };
                let message = format!("two stages use the {what} `{}`", found.name);
                let d = Diagnostic::error("pipeline::stream", self.graph.origins.span(at), message).here("here");
                let d = d.label(self.graph.origins.span(before), "and here");
                return Err(self.report(d.help(help)));
            }
        }
        Ok(())
    }

    /// Reports a variable from outside that one phase writes and another one touches, and warns of a parameter that
    /// crosses to another place for each micro-batch.
    fn check_outside(&mut self, phases: &[Phase], touched: &[Accesses], var: VarId) -> Result<()> {
        let at = |o: OriginId| self.graph.origins.span(o);
        let (name, class) = (self.graph.vars[var].name.clone(), self.graph.vars[var].class);
        let writer = touched.iter().position(|a| a.writes.contains_key(&var));
        if let Some(writer) = writer {
            let other = (0..touched.len()).find(|&k| k != writer && touched[k].touch(var).is_some());
            let Some(other) = other else { return Ok(()) };
            let written = touched[writer].writes.get(&var).copied().map_or(Span::NONE, at);
            let touches = |n: &&Node| Accesses::of(&self.graph, [*n]).touch(var).is_some();
            let user = phases[other].nodes.iter().find(touches);
            let seen = user.map_or(Span::NONE, |n| at(n.origin));
            let d = match user.is_some_and(|n| n.reverse) {
                true => {
                    let message = format!(
                        "`{name}` is from outside the pipeline, and a stage writes it while its reverse still needs it"
                    );
                    let d = Diagnostic::error("pipeline::shared", written, message);
                    match seen == written {
                        true => {
                            let help = format!(
                                "let the reverse read another tensor: write `let y = …;` with what is written here, \
                                 then `{name} <- y;`, and use `y` in the stage"
                            );
                            d.here("written here, and read by the reverse of this step").help(help)
                        }
                        false => {
                            let help =
                                format!("let both read a copy, which the stage keeps: `let old = copy({name});`");
                            d.here("written here").label(seen, "and read by the reverse of this step").help(help)
                        }
                    }
                }
                false => {
                    let message =
                        format!("`{name}` is from outside the pipeline, and one stage writes it while another uses it");
                    let d = Diagnostic::error("pipeline::shared", written, message).here("written here");
                    d.label(seen, "and used by another stage here").help("pass the value on from stage to stage")
                }
            };
            return Err(self.report(d));
        }
        if class == VarClass::Param {
            let mut readers = (0..touched.len()).filter(|&k| touched[k].reads.contains_key(&var));
            let Some(first) = readers.next() else { return Ok(()) };
            let elements = |k: usize| elements::read(&self.graph, &phases[k].nodes, var);
            let mut known = vec![(first, elements(first))];
            // The first phase that reads an element which a phase on other tiles has read.
            let pair = readers.find_map(|k| {
                let own = elements(k);
                let is_shared =
                    |(j, e): &&(usize, Regions)| phases[*j].place != phases[k].place && least_common(e, &own).is_some();
                let found = known.iter().find(is_shared).map(|(j, _)| (*j, k));
                known.push((k, own));
                found
            });
            if let Some((first, other)) = pair {
                let (a, b) = (touched[first].touch(var).map(at), touched[other].touch(var).map(at));
                let message =
                    format!("stages on different tiles read `{name}`, whose words travel for each micro-batch");
                let d = Diagnostic::warning("pipeline::param", b.unwrap_or(Span::NONE), message).here("read here");
                let d = d.label(a.unwrap_or(Span::NONE), "and on other tiles here");
                let help = "let one stage use it, or put the stages that share it on one place";
                self.reporter.report_alone(d.help(help));
            }
        }
        Ok(())
    }

    /// Reports a variable of the body that a phase reads before a later one writes it.
    fn check_local(&mut self, touched: &[Accesses], var: VarId) -> Result<()> {
        let Some(first) = touched.iter().position(|a| a.writes.contains_key(&var)) else { return Ok(()) };
        let Some(early) = touched[..first].iter().find_map(|a| a.reads.get(&var)) else { return Ok(()) };
        let name = self.graph.vars[var].name.clone();
        let written = touched[first].writes.get(&var).map_or(Span::NONE, |o| self.graph.origins.span(*o));
        let message = format!("`{name}` flows to an earlier stage");
        let d = Diagnostic::error("pipeline::backwards", self.graph.origins.span(*early), message);
        let d = d.here("read here, for the next micro-batch").label(written, "written by a later stage here");
        Err(self.report(d.help("a stage uses what stages before it have made; change the order of the stages")))
    }
}
