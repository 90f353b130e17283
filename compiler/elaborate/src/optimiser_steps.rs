//! Steps of optimisers, which the library notes with `note_step`: warnings about slots that two calls keep apart for
//! one parameter, and about updates that nothing reads.
//!
//! Invariant: a program is checked when its steps are complete; what its calls noted is then forgotten.

use crate::elaborator::Elaborator;
use crate::value::{Given, Value};
use girder_ir::codelet::Dir;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::{StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::view::{View, overlap};
use girder_source::{Diagnostic, OriginId, Result, Span};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// A step of an optimiser.
#[derive(Clone, Debug)]
pub struct NotedStep {
    /// What it updates.
    views: Vec<View>,
    /// The optimiser, if the call has slots of its own.
    slots_of: Option<SmolStr>,
    /// Whether it is no step, but tells that the views are parts of tensors, of which an optimiser gets no whole one.
    are_parts: bool,
    /// The call of the optimiser.
    origin: OriginId,
    /// The program around it, as a number of programs that are being elaborated.
    depth: usize,
}

impl Elaborator<'_> {
    /// Evaluates `note_step(net, slots_of: "adam")`: a step of an optimiser updates the tensors of `net`, with slots of
    /// its own if an optimiser is named. `whole: "lamb"` names an optimiser that needs whole tensors, and `parts: true`
    /// tells that those of `net` are not whole. `norm_of: "clip_by_norm"` is no step, but a function that needs all
    /// elements of its tensors.
    pub fn note_step(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        self.memo_table.reads += 1;
        let names = ["net", "slots_of?", "whole?", "parts?", "norm_of?"];
        let [net, slots_of, whole, parts, norm_of] = self.arguments("note_step", names, given, span)?;
        let text = |g: Option<Given>| g.and_then(|g| if let Value::Str(s) = g.value { Some(s) } else { None });
        let (slots_of, whole, are_parts, norm_of) = (text(slots_of), text(whole), parts.is_some(), text(norm_of));
        let (Some(net), Some(origin)) = (net, self.emission.origin()) else { return Ok(Value::Unit) };
        let mut leaves = vec![];
        self.leaves(&net.value, net.span, &mut leaves)?;
        let views = leaves.into_iter().filter_map(|leaf| match leaf {
            Value::Tensor(t) if t.ty.is_float() => Some(t.view.clone()),
            _ => None,
        });
        let step = NotedStep { views: views.collect(), slots_of, are_parts, origin, depth: self.programs.len() };
        let of_parts = || self.noted_steps.iter().any(|s| s.are_parts && shared(s, &step).is_some());
        if let Some(name) = norm_of {
            if of_parts() {
                let message = format!("`{name}` needs all gradients, and `sharded` gives each replica a part of them");
                let help = "take the norm of the gradients of all replicas first, of `collectives.all_reduce(g, op: \
                            \"mean\")`, and pass what comes of them with `op: \"equal\"`";
                return Err(self.error_help("elaborate::assertion", span, message, help));
            }
            return Ok(Value::Unit);
        }
        if let Some(name) = whole
            && of_parts()
        {
            let message = format!("`{name}` needs the norm of each parameter, and `sharded` gives it a part of all");
            let help = "use an optimiser that updates each element by itself, such as `optim.adamw` or `optim.sgd`, or \
                        leave `sharded` out";
            return Err(self.error_help("elaborate::assertion", span, message, help));
        }
        if !self.reporter.has_errors()
            && let Some((before, view)) = self.noted_before(&step)
        {
            self.warn_of_two_slots(&before, &step, &view);
        }
        self.noted_steps.push(step);
        Ok(Value::Unit)
    }

    /// Returns an earlier step of the same optimiser in the program with slots of its own, and what both update.
    fn noted_before(&self, step: &NotedStep) -> Option<(NotedStep, View)> {
        let name = step.slots_of.as_ref()?;
        let here = self.noted_steps.iter().filter(|s| s.depth == step.depth && s.slots_of.as_ref() == Some(name));
        here.into_iter().find_map(|s| Some((s.clone(), shared(s, step)?)))
    }

    fn warn_of_two_slots(&mut self, before: &NotedStep, step: &NotedStep, view: &View) {
        let (first, second) = (self.calls_of(before.origin), self.calls_of(step.origin));
        // Of a loop with many iterations, or of a function with many calls, one report is enough.
        let at = *second.first().unwrap_or(&Span::NONE);
        if !self.slots_reported.insert((*first.first().unwrap_or(&Span::NONE), at)) {
            return;
        }
        let name = step.slots_of.clone().unwrap_or_default();
        let param = view.vars().first().map_or(SmolStr::default(), |&v| self.graph.vars[v].name.clone());
        let message = format!("two calls of `{name}` update `{param}`, each with slots of its own");
        let d = Diagnostic::warning("elaborate::slots_apart", at, message);
        let apart = first.iter().zip(&second).find(|(a, b)| a != b);
        let d = match apart {
            Some((a, b)) if *b == at => d.here("the second call").label(*a, "the first call"),
            Some((a, b)) => d.here("this call").label(*a, "made here").label(*b, "and again here"),
            None => d.here("each iteration of a static loop is a call of its own"),
        };
        let help = "call it once for each step of training: the iterations of a `repeat` and the calls of a `program` \
                    share slots, while a static `for` and each call of a function have their own; `optim.adam_with` \
                    takes slots that you keep";
        self.reporter.report_alone(d.help(help));
    }

    /// Returns the spans of the user's calls around an origin, innermost first.
    fn calls_of(&self, origin: OriginId) -> Vec<Span> {
        let spans = self.graph.origins.chain(origin).map(|o| o.span);
        spans.filter(|s| !s.is_none() && !s.in_library()).collect()
    }

    /// Warns of the noted steps of a program that update temporaries which nothing reads later.
    pub fn check_noted_steps(&mut self, body: StepId) {
        let depth = self.programs.len() + 1;
        let split = self.noted_steps.iter().position(|s| s.depth == depth).unwrap_or(self.noted_steps.len());
        let noted = self.noted_steps.split_off(split);
        if self.reporter.has_errors() {
            return;
        }
        let is_temporary = |v: VarId| self.graph.vars[v].class == VarClass::Temp;
        let mut lost = vec![];
        for step in noted.iter().filter(|s| !s.are_parts) {
            let mut vars = step.views.iter().flat_map(View::vars).filter(|&v| is_temporary(v)).peekable();
            if vars.peek().is_none() {
                continue;
            }
            let accesses = Accesses::of(&self.graph, body, step.origin);
            if let Some(var) = vars.find(|&v| accesses.is_lost(v)) {
                lost.push((step.origin, var, accesses.sources(&self.graph, var)));
            }
        }
        for (origin, var, sources) in lost {
            let Some(&at) = self.calls_of(origin).first() else { continue };
            let name = &self.graph.vars[var].name;
            let message = format!("this step updates the temporary `{name}`, which nothing reads afterwards");
            let d = Diagnostic::warning("elaborate::lost_step", at, message);
            let all: Vec<String> = sources.iter().take(4).map(|&v| format!("`{}`", self.graph.vars[v].name)).collect();
            let help = match &all[..] {
                [] => "pass the parameters themselves".to_string(),
                all => {
                    format!("it is made of {}: pass the parameters themselves, or use the temporary", all.join(", "))
                }
            };
            self.reporter.report_alone(d.help(help));
        }
    }
}

/// Returns a view of the second step that has elements of the first one.
fn shared(first: &NotedStep, second: &NotedStep) -> Option<View> {
    let vars: FxHashSet<VarId> = first.views.iter().flat_map(View::vars).collect();
    let mut known = second.views.iter().filter(|v| v.parts.iter().any(|p| vars.contains(&p.var)));
    known.find(|v| first.views.iter().any(|w| overlap(v, w).is_some())).cloned()
}

/// What a step of a program reads and writes.
struct Access {
    reads: FxHashSet<VarId>,
    writes: FxHashSet<VarId>,
    /// Whether the call of the optimiser has made it.
    is_update: bool,
    /// The loops around it, outermost first.
    loops: Vec<StepId>,
}

/// The steps of a program without bodies, in order.
struct Accesses(Vec<Access>);

impl Accesses {
    fn of(graph: &Graph, body: StepId, update: OriginId) -> Accesses {
        let mut all = Accesses(vec![]);
        all.add(graph, body, update, &mut vec![]);
        all
    }

    fn add(&mut self, graph: &Graph, id: StepId, update: OriginId, loops: &mut Vec<StepId>) {
        let step = &graph.steps[id];
        let (mut reads, mut writes) = (FxHashSet::default(), FxHashSet::default());
        match &step.kind {
            StepKind::Execute(set) => {
                for &f in &graph.sets[*set].families {
                    let family = &graph.families[f];
                    for field in &family.fields {
                        let dir = graph.codelets[family.codelet].fields[field.field].dir;
                        let vars = field.parts.iter().map(|p| p.var);
                        if dir != Dir::Out {
                            reads.extend(vars.clone());
                        }
                        if dir != Dir::In {
                            writes.extend(vars);
                        }
                    }
                }
            }
            StepKind::Copy(copy) => {
                for f in &graph.copies[*copy].families {
                    reads.extend(f.src.parts.iter().map(|p| p.var));
                    writes.extend(f.dst.parts.iter().map(|p| p.var));
                }
            }
            StepKind::Repeat { index, .. } => writes.extend(index.map(|(v, ..)| v)),
            StepKind::While { cond, .. } | StepKind::If { cond, .. } => reads.extend(cond.vars()),
            StepKind::Switch { on, .. } => reads.extend(on.vars()),
            StepKind::Effect(effect) => match effect {
                Effect::Print { value: v, .. }
                | Effect::Abort { when: Some(v), .. }
                | Effect::Write { from: v, .. }
                | Effect::Seek { row: v, .. } => reads.extend(v.vars()),
                Effect::Read { into: v, .. } => writes.extend(v.vars()),
                _ => {}
            },
            _ => {}
        }
        let is_loop = matches!(step.kind, StepKind::Repeat { .. } | StepKind::While { .. });
        if is_loop {
            loops.push(id);
        }
        let is_update = std::iter::successors(Some(step.origin), |&o| graph.origins.get(o).parent).any(|o| o == update);
        if !reads.is_empty() || !writes.is_empty() {
            self.0.push(Access { reads, writes, is_update, loops: loops.clone() });
        }
        step.children().into_iter().for_each(|child| self.add(graph, child, update, loops));
        if is_loop {
            loops.pop();
        }
    }

    /// Returns whether no step reads a variable after the update: behind it, or in the next iteration of a loop that
    /// does not write the variable first.
    fn is_lost(&self, var: VarId) -> bool {
        let updates = |a: &Access| a.is_update && a.writes.contains(&var);
        let Some(at) = self.0.iter().position(updates) else { return false };
        let reads = |a: &Access| !a.is_update && a.reads.contains(&var);
        if self.0[at..].iter().any(reads) {
            return false;
        }
        for around in self.0[at].loops.iter().rev() {
            let inside = |a: &&Access| a.loops.contains(around);
            if self.0[..at].iter().filter(inside).any(|a| !a.is_update && a.writes.contains(&var)) {
                return true;
            }
            if self.0[..at].iter().filter(inside).any(reads) {
                return false;
            }
        }
        true
    }

    /// Returns the variables that are no temporaries of which a temporary is made.
    fn sources(&self, graph: &Graph, var: VarId) -> Vec<VarId> {
        let (mut found, mut seen, mut open) = (vec![], FxHashSet::default(), vec![var]);
        while let Some(v) = open.pop() {
            let makers = self.0.iter().filter(|a| !a.is_update && a.writes.contains(&v));
            let mut from: Vec<VarId> =
                makers.flat_map(|a| a.reads.iter().copied()).filter(|&r| seen.insert(r)).collect();
            from.sort();
            for r in from {
                match graph.vars[r].class {
                    VarClass::Temp => open.push(r),
                    VarClass::Const => {}
                    VarClass::Param | VarClass::State | VarClass::Var => found.push(r),
                }
            }
        }
        found.sort();
        found
    }
}
