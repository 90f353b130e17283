//! The estimate of a program's time without running it.
//!
//! The estimate follows the program as far as the text determines it. The iterations of a `repeat` are followed until
//! two of them advance every clock equally, and the last of them is extended to the others: by then every IPU waits as
//! it will wait in all later iterations. A delay reaches the next IPU in the next iteration, so this takes about as
//! many iterations as there are IPUs. Streams that hold packets ahead must be in a steady state too. If data decide, a
//! `while` runs one iteration, `if` and `switch` take the longest branch, and counted blocks run zero times.
//! [`Assumed`] records whether this happened.
//!
//! # Note: Known steps
//! Loops in loops and programs that call programs reach one step along very many paths. What a loop, a branch or a
//! program adds to the sums depends on the clocks at its start alone, relative to one another, so it is kept by them
//! and added again. Of a step that begins with more than [`STARTS`] different clocks, the last ones stand for all.
//!
//! While a timeline is recorded, every iteration is followed, until it has no more room.
//!
//! Invariant: the number of steps visited depends on the text of the program, never on trip counts; it grows linearly
//! with the text and with the number of IPUs. A timeline adds at most a constant number.

use crate::packets::PacketQueue;
use crate::profiler::{Profiler, Start, Sums};
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::trace::{NoCounts, Trace};

/// The number of different clocks at the start of a step that are told apart.
const STARTS: usize = 64;

/// The greatest number of iterations that are followed of a loop in a program whose streams hold packets ahead. By then
/// a slower host has used up the packets that were there when the loop began, unless it is nearly as fast as the
/// program: for each packet ahead, but for one part in this number.
const MOST_FOLLOWED: u64 = 512;

/// What a step adds to the sums if the clocks are `start` when it begins.
pub(crate) struct Known {
    start: Start,
    added: Sums,
    assumed: Assumed,
}

/// The assumptions of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Assumed {
    /// A `while`, `if` or `switch` tests data.
    pub control: bool,
    /// The cycles of some vertices depend on data.
    pub vertices: bool,
}

impl std::ops::BitOrAssign for Assumed {
    fn bitor_assign(&mut self, other: Assumed) {
        self.control |= other.control;
        self.vertices |= other.vertices;
    }
}

impl Profiler<'_> {
    /// Adds the time of one run of a program.
    pub fn estimate(&mut self, program: ProgramId) -> Assumed {
        let mut assumed = Assumed::default();
        self.walk(self.allocated.programs[program].body, &mut assumed);
        assumed
    }

    fn walk(&mut self, id: StepId, assumed: &mut Assumed) {
        let allocated = self.allocated;
        if let Some(timeline) = &mut self.timeline {
            timeline.visit();
        }
        match &allocated.steps[id].kind {
            StepKind::Seq(steps) | StepKind::Par(steps) => steps.iter().for_each(|&s| self.walk(s, assumed)),
            StepKind::Execute(set) => {
                assumed.vertices |= self.counted.compute(*set, &NoCounts).is_some();
                self.executed(id, *set, &NoCounts);
            }
            StepKind::Copy(copy) => self.copied(id, *copy),
            StepKind::Repeat { count, body, .. } => {
                self.known(id, assumed, |this, assumed| this.repeat(*count, *body, assumed));
            }
            StepKind::While { before, body, .. } => self.known(id, assumed, |this, assumed| {
                assumed.control = true;
                for part in [before, body, before] {
                    this.walk(*part, assumed);
                    if part == before {
                        this.tested(id);
                    }
                }
            }),
            StepKind::If { then, els, .. } => {
                self.known(id, assumed, |this, assumed| this.longest(id, &[*then, *els], assumed));
            }
            StepKind::Switch { cases, default, .. } => {
                let branches: Vec<StepId> = cases.iter().map(|c| c.1).chain([*default]).collect();
                self.known(id, assumed, |this, assumed| this.longest(id, &branches, assumed));
            }
            StepKind::Call(program) => {
                let body = allocated.programs[*program].body;
                self.known(body, assumed, |this, assumed| this.walk(body, assumed));
            }
            StepKind::Effect(Effect::Read { .. } | Effect::Write { .. }) => self.packet(id),
            StepKind::Effect(Effect::Sync) => self.synced(id),
            StepKind::Effect(_) => {}
        }
    }

    /// Adds what `follow` adds for a step, or what it added before; see the note on known steps.
    fn known(&mut self, id: StepId, assumed: &mut Assumed, follow: impl FnOnce(&mut Self, &mut Assumed)) {
        if self.records() {
            return follow(self, assumed);
        }
        let start = self.sums.start();
        let known = self.known.get(&id).map_or(&[][..], |all| all);
        let same = known.iter().find(|k| k.start == start).or(known.last().filter(|_| known.len() >= STARTS));
        if let Some(known) = same {
            self.sums.add(&known.start, &known.added);
            *assumed |= known.assumed;
            return;
        }
        let outer = self.sums.begin(&start);
        let mut own = Assumed::default();
        follow(self, &mut own);
        let added = std::mem::replace(&mut self.sums, outer);
        self.sums.add(&start, &added);
        *assumed |= own;
        self.known.entry(id).or_default().push(Known { start, added, assumed: own });
    }

    fn repeat(&mut self, count: u64, body: StepId, assumed: &mut Assumed) {
        let clocks = self.sums.clocks();
        let alone = clocks == 1 && self.sums.packets().is_empty();
        let most = if self.sums.packets().is_empty() { 2 * clocks as u64 + 3 } else { MOST_FOLLOWED };
        let mut last: Option<(Vec<u64>, Vec<PacketQueue>)> = None;
        let mut recorded = 0;
        while recorded < count && self.records() {
            self.walk(body, assumed);
            recorded += 1;
        }
        let count = count - recorded;
        for done in 1..=count.min(most) {
            let before = self.sums.clone();
            self.walk(body, assumed);
            let state = (self.sums.increase(&before), self.sums.packets());
            // A single clock waits for no other.
            if alone || last.as_ref() == Some(&state) || done == most {
                self.sums.extend(&before, count - done);
                return;
            }
            last = Some(state);
        }
    }

    /// Follows the branch that takes longest.
    fn longest(&mut self, id: StepId, branches: &[StepId], assumed: &mut Assumed) {
        assumed.control = true;
        self.tested(id);
        let start = self.sums.clone();
        let timeline = self.timeline.take();
        let mut longest = (start.clone(), None);
        for &branch in branches {
            self.walk(branch, assumed);
            let taken = std::mem::replace(&mut self.sums, start.clone());
            if taken.latest() > longest.0.latest() {
                longest = (taken, Some(branch));
            }
        }
        self.timeline = timeline;
        match longest {
            (_, Some(branch)) if self.records() => self.walk(branch, assumed),
            (sums, _) => self.sums = sums,
        }
    }
}
