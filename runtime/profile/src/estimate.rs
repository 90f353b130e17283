//! What a program would take, without running it.
//!
//! The walk follows what the text decides. A `repeat` is walked a few times and then extended by its last turn, since by
//! then every IPU waits as it will wait in all later turns. Where data decide, a `while` takes one turn, `if` and
//! `switch` the branch that takes longest, and counted blocks run zero times; [`Assumed`] says whether that happened.
//!
//! Invariant: the number of steps walked depends on the text of the program, never on how often a `repeat` turns.

use crate::profiler::Profiler;
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::trace::{NoCounts, Trace};

/// Turns of a `repeat` that are walked.
const TURNS: u64 = 3;

/// What an estimate had to assume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Assumed {
    /// A `while`, `if` or `switch` looks at data.
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
    /// Adds what one run of a program would take.
    pub fn estimate(&mut self, program: ProgramId) -> Assumed {
        let mut assumed = Assumed::default();
        self.walk(self.allocated.programs[program].body, &mut assumed);
        assumed
    }

    fn walk(&mut self, id: StepId, assumed: &mut Assumed) {
        let allocated = self.allocated;
        match &allocated.steps[id].kind {
            StepKind::Seq(steps) | StepKind::Par(steps) => steps.iter().for_each(|&s| self.walk(s, assumed)),
            StepKind::Execute(set) => {
                assumed.vertices |= self.counted.compute(*set, &NoCounts).is_some();
                self.executed(id, *set, &NoCounts);
            }
            StepKind::Copy(copy) => self.copied(id, *copy),
            StepKind::Repeat { count, body, .. } => self.repeat(*count, *body, assumed),
            StepKind::While { before, body, .. } => {
                assumed.control = true;
                for part in [before, body, before] {
                    self.walk(*part, assumed);
                    if part == before {
                        self.tested(id);
                    }
                }
            }
            StepKind::If { then, els, .. } => self.longest(id, &[*then, *els], assumed),
            StepKind::Switch { cases, default, .. } => {
                let branches: Vec<StepId> = cases.iter().map(|c| c.1).chain([*default]).collect();
                self.longest(id, &branches, assumed);
            }
            StepKind::Call(program) => self.walk(allocated.programs[*program].body, assumed),
            StepKind::Effect(Effect::Read { .. } | Effect::Write { .. }) => self.packet(id),
            StepKind::Effect(Effect::Sync) => self.synced(id),
            StepKind::Effect(_) => {}
        }
    }

    fn repeat(&mut self, count: u64, body: StepId, assumed: &mut Assumed) {
        let walked = count.min(TURNS);
        for turn in 0..walked {
            let last = turn + 1 == walked && count > walked;
            let before = last.then(|| self.sums.clone());
            self.walk(body, assumed);
            if let Some(before) = before {
                self.sums.extend(&before, count - walked);
            }
        }
    }

    /// Walks the branch that takes longest.
    fn longest(&mut self, id: StepId, branches: &[StepId], assumed: &mut Assumed) {
        assumed.control = true;
        self.tested(id);
        let start = self.sums.clone();
        let mut longest = start.clone();
        for &branch in branches {
            self.walk(branch, assumed);
            let taken = std::mem::replace(&mut self.sums, start.clone());
            if taken.latest() > longest.latest() {
                longest = taken;
            }
        }
        self.sums = longest;
    }
}
