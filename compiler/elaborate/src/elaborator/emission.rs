//! Emission: the bodies that receive steps, and the properties that steps and entities inherit: the path of their
//! names, their origin and their place.
//!
//! Invariant: whoever opens a body closes it; if no body is open, no step can be emitted.

use super::nodes::{Body, Node, NodeKind};
use crate::gradients::order::{Inside, Moment};
use crate::gradients::tape::Tape;
use crate::pipelines::stages::{OpenPipeline, StageNumber};
use crate::value::Place;
use girder_ir::ids::{ComputeSetId, VarId};
use girder_source::OriginId;
use smol_str::SmolStr;

/// How often a body under run-time control runs, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Runs {
    /// A branch of `par`.
    Once,
    /// A branch of `if` or `switch`.
    OrNot,
    /// A body of a loop, or the condition of a `while`.
    AnyNumber,
}

/// The bodies that receive steps, and the inherited properties.
#[derive(Debug, Default)]
pub struct Emission {
    /// Open bodies, innermost last.
    bodies: Vec<Body>,
    /// How often each of the `bodies` under run-time control runs.
    runs: Vec<Runs>,
    /// Names of the enclosing calls.
    path: Vec<SmolStr>,
    /// Names of the `let`s whose values are being evaluated, each with the length of `path` around it.
    lets: Vec<(usize, SmolStr)>,
    origin: Option<OriginId>,
    places: Vec<Place>,
    computed_last: Option<(VarId, ComputeSetId)>,
    /// Whether steps are part of a reverse program.
    reverse: bool,
    join: Option<ComputeSetId>,
    /// The pipeline whose body is being elaborated.
    pipeline: Option<OpenPipeline>,
    /// The stage to which steps belong.
    stage: Option<StageNumber>,
}

impl Emission {
    /// Returns the state at the top of a module: no body is open, and only the path is inherited.
    pub fn at_top(path: Vec<SmolStr>) -> Emission {
        Emission { path, ..Emission::default() }
    }

    /// Opens a body that runs whenever the enclosing one does.
    pub fn open(&mut self) {
        self.reopen(Body::default());
    }

    /// Reopens a body, to emit at its end.
    pub fn reopen(&mut self, body: Body) {
        self.bodies.push(body);
    }

    /// Closes the innermost body.
    pub fn close(&mut self) -> Body {
        self.bodies.pop().unwrap_or_default()
    }

    /// Opens a body under run-time control.
    pub fn open_under_run_time(&mut self, runs: Runs) {
        self.open();
        self.runs.push(runs);
    }

    /// Closes a body that [`Emission::open_under_run_time`] opened.
    pub fn close_under_run_time(&mut self) -> Body {
        self.runs.pop();
        self.close()
    }

    /// Returns the number of open bodies under run-time control.
    pub fn run_time_depth(&self) -> u32 {
        self.runs.len() as u32
    }

    /// Returns how often the innermost body runs for each run of the `depth`-th one under run-time control.
    pub fn runs_within(&self, depth: u32) -> Runs {
        let inside = self.runs.get(depth as usize..).unwrap_or_default();
        inside.iter().copied().max().unwrap_or(Runs::Once)
    }

    /// Appends a step to the innermost body; `false` if no body is open.
    #[must_use]
    pub fn push(&mut self, kind: NodeKind, origin: OriginId, at: Moment) -> bool {
        match self.bodies.last_mut() {
            Some(body) => {
                body.nodes.push(Node { kind, origin, at, reverse: self.reverse, stage: self.stage });
                true
            }
            None => false,
        }
    }

    /// Returns the number of steps in the innermost body, so that a caller can tell later whether any was emitted.
    pub fn count(&self) -> Option<usize> {
        self.bodies.last().map(|body| body.nodes.len())
    }

    /// Returns the temporary that the last step of the innermost body alone computed, with the compute set, if that
    /// step is an element-wise one.
    pub fn computed_last(&self) -> Option<(VarId, ComputeSetId)> {
        let last = self.bodies.last().and_then(|body| body.nodes.last()).map(|node| &node.kind);
        self.computed_last.filter(|&(_, set)| matches!(last, Some(NodeKind::Execute(s)) if *s == set))
    }

    /// Notes the temporary that an element-wise step, which was just emitted, computed.
    pub fn note_computed(&mut self, computed: Option<(VarId, ComputeSetId)>) {
        self.computed_last = computed;
    }

    /// Returns the number of open bodies.
    pub fn depth(&self) -> usize {
        self.bodies.len()
    }

    /// Returns the tapes of the open bodies, innermost last.
    pub fn tapes(&self) -> Vec<Tape> {
        self.bodies.iter().map(|b| b.tape.clone()).collect()
    }

    /// Returns the number of entries on the tape of the innermost body.
    pub fn tape_len(&self) -> usize {
        self.bodies.last().map_or(0, |b| b.tape.len())
    }

    /// Forgets the entries of the innermost body but the first `count`.
    pub fn truncate_tape(&mut self, count: usize) {
        if let Some(body) = self.bodies.last_mut() {
            body.tape.truncate(count);
        }
    }

    /// Sets aside the open bodies from `depth` on, so that steps are emitted into the one before.
    pub fn set_aside(&mut self, depth: usize) -> Vec<Body> {
        self.bodies.split_off(depth.min(self.bodies.len()))
    }

    /// Puts back what was set aside.
    pub fn put_back(&mut self, bodies: Vec<Body>) {
        self.bodies.extend(bodies);
    }

    /// Sets whether steps are part of a reverse program, and returns whether they were.
    pub fn replace_reverse(&mut self, reverse: bool) -> bool {
        std::mem::replace(&mut self.reverse, reverse)
    }

    /// Returns whether steps are part of a reverse program.
    pub fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// Returns the body at the end of a path from an open body.
    pub fn body_at(&mut self, root: usize, path: &[Inside]) -> Option<&mut Body> {
        let Some((last, before)) = path.split_last() else { return self.bodies.get_mut(root) };
        let node = holder(self.body_at(root, before)?, last)?;
        match &mut node.kind {
            NodeKind::Repeat { body, .. } => Some(body),
            NodeKind::If { then, .. } if last.arm == 0 => Some(then),
            NodeKind::If { els, .. } => Some(els),
            NodeKind::Switch { cases, default, .. } => Some(match cases.get_mut(last.arm) {
                Some((_, body)) => body,
                None => default,
            }),
            NodeKind::Par(list) => list.get_mut(last.arm),
            _ => None,
        }
    }

    /// Returns the step that holds the body at the end of a path.
    pub fn node_at(&mut self, root: usize, path: &[Inside]) -> Option<&mut NodeKind> {
        let (last, before) = path.split_last()?;
        holder(self.body_at(root, before)?, last).map(|n| &mut n.kind)
    }

    /// Replaces the names of the calls around.
    pub fn replace_path(&mut self, path: Vec<SmolStr>) -> Vec<SmolStr> {
        std::mem::replace(&mut self.path, path)
    }

    /// Replaces the places around.
    pub fn replace_places(&mut self, places: Vec<Place>) -> Vec<Place> {
        std::mem::replace(&mut self.places, places)
    }

    /// Returns the innermost body.
    pub fn body(&self) -> Option<&Body> {
        self.bodies.last()
    }

    /// Returns the innermost body, to change it.
    pub fn body_mut(&mut self) -> Option<&mut Body> {
        self.bodies.last_mut()
    }

    /// Sets the set that the vertices of the next compute statement join; `None` for a set of their own.
    pub fn join_next(&mut self, set: Option<ComputeSetId>) {
        self.join = set;
    }

    /// Returns the set that the vertices of this compute statement join.
    pub fn take_join(&mut self) -> Option<ComputeSetId> {
        self.join.take()
    }

    /// Returns the names of the calls around, outermost first.
    pub fn path(&self) -> &[SmolStr] {
        &self.path
    }

    /// Appends a name to the path of what is made.
    pub fn enter_path(&mut self, name: SmolStr) {
        self.path.push(name);
    }

    /// Removes the last name of the path.
    pub fn leave_path(&mut self) {
        self.path.pop();
    }

    /// Enters the value of a `let`.
    pub fn enter_let(&mut self, name: SmolStr) {
        self.lets.push((self.path.len(), name));
    }

    /// Leaves the value of a `let`.
    pub fn leave_let(&mut self) {
        self.lets.pop();
    }

    /// Returns the name of the innermost `let` whose value is being evaluated in the innermost call.
    pub fn let_here(&self) -> Option<&SmolStr> {
        self.lets.last().filter(|(depth, _)| *depth == self.path.len()).map(|(_, name)| name)
    }

    /// Returns the names of the calls and `let`s around, outermost first.
    pub fn path_with_lets(&self) -> Vec<SmolStr> {
        let mut lets = self.lets.iter().peekable();
        let mut names = Vec::with_capacity(self.path.len() + self.lets.len());
        for depth in 0..=self.path.len() {
            while let Some((_, name)) = lets.next_if(|(d, _)| *d == depth) {
                names.push(name.clone());
            }
            names.extend(self.path.get(depth).cloned());
        }
        names
    }

    /// Returns the origin of the call around.
    pub fn origin(&self) -> Option<OriginId> {
        self.origin
    }

    /// Replaces the origin of the call around and returns the one before.
    pub fn replace_origin(&mut self, origin: Option<OriginId>) -> Option<OriginId> {
        std::mem::replace(&mut self.origin, origin)
    }

    /// Begins or ends the body of a pipeline; returns the one that was open.
    pub fn replace_pipeline(&mut self, pipeline: Option<OpenPipeline>) -> Option<OpenPipeline> {
        std::mem::replace(&mut self.pipeline, pipeline)
    }

    /// Returns the pipeline whose body is being elaborated.
    pub fn pipeline(&mut self) -> Option<&mut OpenPipeline> {
        self.pipeline.as_mut()
    }

    /// Returns the stage to which steps belong.
    pub fn stage(&self) -> Option<StageNumber> {
        self.stage
    }

    /// Sets the stage to which steps belong; returns the one before.
    pub fn replace_stage(&mut self, stage: Option<StageNumber>) -> Option<StageNumber> {
        std::mem::replace(&mut self.stage, stage)
    }

    /// Returns the places around, outermost first.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Enters `on place { … }`.
    pub fn enter_place(&mut self, place: Place) {
        self.places.push(place);
    }

    /// Leaves the places entered since there were `depth`.
    pub fn leave_places(&mut self, depth: usize) {
        self.places.truncate(depth);
    }
}

/// Returns the step of a body that holds the bodies of an entry.
fn holder<'b>(body: &'b mut Body, step: &Inside) -> Option<&'b mut Node> {
    let holds = |n: &&mut Node| {
        let is_control = matches!(
            n.kind,
            NodeKind::Repeat { .. } | NodeKind::If { .. } | NodeKind::Switch { .. } | NodeKind::Par(_)
        );
        is_control && step.during.contains(&n.at)
    };
    body.nodes.iter_mut().rev().find(holds)
}
