//! Phases: the steps of a pipeline, by the places on which they run.
//!
//! Invariant: phases keep the order of the steps, except steps of a `grad` that belong to no stage: such a step moves
//! to the last phase on which it depends: one of the two writes a variable that the other accesses. If there is none,
//! it moves to the first phase that depends on it.

use super::accesses::Accesses;
use super::schedule::PhaseKind;
use super::stages::{Stage, StageNumber};
use super::{Locals, Options};
use crate::elaborator::{Elaborator, Node, NodeKind};
use crate::gradients::tape::{each_tensor, map_tensors};
use crate::value::{Place, Tensor, Value};
use girder_ir::graph::{Graph, VarClass};
use girder_ir::program::Effect;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Result, Span};
use smol_str::{SmolStr, format_smolstr};

/// Consecutive steps on one place.
#[derive(Debug)]
pub struct Phase {
    /// The name of its first stage; a reverse phase has `grad` before it.
    pub name: SmolStr,
    /// Its tiles.
    pub place: Place,
    /// Its first stage.
    pub span: Span,
    /// Steps before its own: what they read is prepared.
    pub before: Vec<Node>,
    /// Its steps.
    pub nodes: Vec<Node>,
    /// Steps after its own: what they wrote is kept.
    pub after: Vec<Node>,
}

impl Phase {
    fn new(stage: &Stage, reverse: bool) -> Phase {
        let name = if reverse { format_smolstr!("grad.{}", stage.name) } else { stage.name.clone() };
        Phase { name, place: stage.place, span: stage.span, before: vec![], nodes: vec![], after: vec![] }
    }

    /// Returns what a schedule needs to know of it; `places` are the distinct places so far.
    pub fn kind(&self, places: &mut Vec<Place>) -> PhaseKind {
        let place = places.iter().position(|p| *p == self.place).unwrap_or_else(|| {
            places.push(self.place);
            places.len() - 1
        });
        let directions = directions(&self.nodes);
        PhaseKind { place, forward: directions.contains(&false), reverse: directions.contains(&true) }
    }

    /// Returns whether its first step runs backwards.
    pub fn begins_backwards(&self) -> bool {
        directions(&self.nodes).first().copied().unwrap_or(false)
    }
}

/// Returns for each step whether it runs backwards. A step that ends a value (`undef`) runs with the step after it in
/// its stage: the reverse program ends what it keeps before the forward steps that make it anew.
fn directions(nodes: &[Node]) -> Vec<bool> {
    let mut all: Vec<bool> = nodes.iter().map(|n| n.reverse).collect();
    for k in (1..nodes.len()).rev() {
        let is_end = matches!(nodes[k - 1].kind, NodeKind::Effect(Effect::Undef { .. }));
        if is_end && nodes[k - 1].stage == nodes[k].stage {
            all[k - 1] = all[k];
        }
    }
    all
}

/// Phases in the making.
#[derive(Default)]
struct Sorted {
    phases: Vec<Phase>,
    /// Steps of a `grad` that belong to no stage and depend on no phase, such as zeros to which stages add.
    waiting: Vec<Node>,
}

impl Sorted {
    /// Returns the last phase on which a step depends.
    fn last_before(&self, graph: &Graph, node: &Node) -> Option<usize> {
        let own = Accesses::of(graph, [node]);
        self.phases.iter().rposition(|p| own.depends_on(&Accesses::of(graph, &p.nodes)))
    }

    /// Removes and returns the waiting steps on which a step depends, in order.
    fn due(&mut self, graph: &Graph, node: &Node) -> Vec<Node> {
        let mut due = vec![];
        if self.waiting.is_empty() {
            return due;
        }
        let mut own = Accesses::of(graph, [node]);
        for k in (0..self.waiting.len()).rev() {
            if own.depends_on(&Accesses::of(graph, [&self.waiting[k]])) {
                own.add(graph, &self.waiting[k]);
                due.push(self.waiting.remove(k));
            }
        }
        due.reverse();
        due
    }
}

impl Elaborator<'_> {
    /// Returns the phases of the steps of a pipeline.
    pub(super) fn phases_of(
        &mut self,
        nodes: Vec<Node>,
        stages: &[Stage],
        locals: &Locals,
        options: Options,
        span: Span,
    ) -> Result<Vec<Phase>> {
        let separates = options.schedule.separates_directions();
        let mut all = Sorted::default();
        let mut direction = false;
        for (reverse, node) in directions(&nodes).into_iter().zip(nodes) {
            let Some(number) = node.stage else {
                self.put_outside_stages(&mut all, node, locals, span)?;
                continue;
            };
            let stage = &stages[number as usize];
            let turns = separates && reverse != direction;
            if turns || all.phases.last().is_none_or(|p| p.place != stage.place) {
                all.phases.push(Phase::new(stage, reverse));
            }
            direction = reverse;
            let last = all.phases.len() - 1;
            self.put_into(&mut all, last, node, locals);
        }
        let Sorted { mut phases, waiting } = all;
        let Some(last) = phases.last_mut() else {
            let message = "this pipeline has no steps in stages";
            let help = "write its steps in stages: `let a = stage on ipu(0) { … };`";
            return Err(self.error_help("pipeline::no_stage", span, message, help));
        };
        let stage = last.nodes.last().and_then(|n| n.stage);
        waiting.into_iter().for_each(|node| self.adopt(last, node, stage, locals));
        Ok(phases)
    }

    /// Puts a step into a phase, after those on which it depends.
    fn put_into(&mut self, all: &mut Sorted, k: usize, node: Node, locals: &Locals) {
        let due = all.due(&self.graph, &node);
        let phase = &mut all.phases[k];
        due.into_iter().for_each(|before| self.adopt(phase, before, node.stage, locals));
        phase.nodes.push(node);
    }

    /// Puts a step of a `grad` that belongs to no stage into the last phase on which it depends, or lets it wait for a
    /// phase that depends on it. Reports other steps outside stages.
    fn put_outside_stages(&mut self, all: &mut Sorted, node: Node, locals: &Locals, span: Span) -> Result<()> {
        if !node.reverse {
            let at = self.graph.origins.span(node.origin);
            let d = Diagnostic::error("pipeline::step", at, "a step of a pipeline that is in no stage");
            let d = d.label(span, "in this pipeline");
            return Err(self.report(d.help("put it into a stage, or before or after the pipeline")));
        }
        let Some(k) = all.last_before(&self.graph, &node) else {
            all.waiting.push(node);
            return Ok(());
        };
        let stage = all.phases[k].nodes.last().and_then(|n| n.stage);
        let due = all.due(&self.graph, &node);
        due.into_iter().chain([node]).for_each(|node| self.adopt(&mut all.phases[k], node, stage, locals));
        Ok(())
    }

    /// Appends a step that belongs to no stage to a phase, on whose tiles it runs from now on.
    fn adopt(&mut self, phase: &mut Phase, mut node: Node, stage: Option<StageNumber>, locals: &Locals) {
        let within = self.some_tiles(phase.place);
        if let NodeKind::Execute(set) = node.kind {
            for &id in &self.graph.sets[set].families {
                let family = &mut self.graph.families[id];
                if family.tile.is_none() && family.within.is_none() {
                    family.within = within;
                }
            }
        }
        for &var in Accesses::of(&self.graph, [&node]).writes.keys().filter(|v| locals.contains(v)) {
            let var = &mut self.graph.vars[var];
            if var.class == VarClass::Temp && var.mapping.is_none() && var.within.is_none() {
                var.within = within;
            }
        }
        node.stage = stage;
        phase.nodes.push(node);
    }

    /// Adds each tensor of a value to an accumulator, in the last phase that writes it. Returns the value with the
    /// accumulators, and the steps that make them zero before the pipeline.
    pub(super) fn accumulated(
        &mut self,
        phases: &mut [Phase],
        mut value: Value,
        span: Span,
    ) -> Result<(Value, Vec<Node>)> {
        let mut leaves = vec![];
        self.charge_walk(&value, span)?;
        each_tensor(&value, &mut |t| leaves.push(t.clone()));
        let (mut zeros, mut sums) = (vec![], vec![]);
        let touched: Vec<Accesses> = phases.iter().map(|p| Accesses::of(&self.graph, &p.nodes)).collect();
        for leaf in leaves {
            if leaf.ty == ElemType::Bool {
                let message = "the value of a pipeline is a sum over the micro-batches, and a bool has none";
                let help = "convert it: `i32(…)` counts how often it holds";
                return Err(self.error_help("pipeline::value", span, message, help));
            }
            let vars = leaf.view.vars();
            let writes = |all: &Accesses| vars.iter().any(|v| all.writes.contains_key(v));
            let k = touched.iter().rposition(writes).unwrap_or(phases.len() - 1);
            let reverse = phases[k].nodes.last().is_some_and(|n| n.reverse);
            let place = phases[k].place;
            let (sum, zero) = self.nodes_at(place, false, |this| {
                let sum = this.temporary("accumulator", leaf.ty, &leaf.view.shape(), span)?;
                this.fill(&sum, Scalar { ty: leaf.ty, bits: 0 }, span)?;
                Ok(sum)
            })?;
            zeros.extend(zero);
            self.emission.enter_path("accumulator".into());
            let adds = self.nodes_at(place, reverse, |this| {
                let new = this.prelude_call("add", vec![sum.clone().into(), leaf.clone().into()], span)?;
                this.write(&sum, new, span)
            });
            self.emission.leave_path();
            let ((), mut adds) = adds?;
            let stage = phases[k].nodes.last().and_then(|n| n.stage);
            adds.iter_mut().for_each(|n| n.stage = stage);
            phases[k].nodes.extend(adds);
            sums.push(sum);
        }
        let mut sums = sums.into_iter();
        map_tensors(&mut value, &mut |t: &mut Tensor| {
            if let Some(sum) = sums.next() {
                *t = sum;
            }
        });
        Ok((value, zeros))
    }

    /// Runs `f` on a place and returns the steps that it emits.
    pub(super) fn nodes_at<T>(
        &mut self,
        place: Place,
        reverse: bool,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Node>)> {
        self.emission.open();
        let reverse = self.emission.replace_reverse(reverse);
        let places = self.emission.replace_places(vec![place]);
        let done = f(self);
        self.emission.replace_places(places);
        self.emission.replace_reverse(reverse);
        let body = self.emission.close();
        Ok((done?, body.nodes))
    }
}
