//! The estimate of a program's time without running it.
//!
//! The estimate follows the program as far as the text determines it. The iterations of a `repeat` are followed until
//! two of them advance every clock equally, and the last of them is extended to the others: by then every IPU waits as
//! it will wait in all later iterations. A delay reaches the next IPU in the next iteration, so this takes about as many
//! iterations as there are IPUs. If data decide, a `while` runs one iteration, `if` and `switch` take the longest branch, and counted blocks run zero times.
//! [`Assumed`] records whether this happened.
//!
//! Invariant: the number of steps visited depends on the text of the program, never on trip counts.

use crate::profiler::Profiler;
use girder_ir::ids::{ProgramId, StepId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::trace::{NoCounts, Trace};

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
        let clocks = self.sums.clocks();
        let most = 2 * clocks as u64 + 3;
        let mut last: Option<Vec<u64>> = None;
        for done in 1..=count.min(most) {
            let before = self.sums.clone();
            self.walk(body, assumed);
            let increase = self.sums.increase(&before);
            // A single clock waits for no other.
            if clocks == 1 || last.as_ref() == Some(&increase) || done == most {
                self.sums.extend(&before, count - done);
                return;
            }
            last = Some(increase);
        }
    }

    /// Follows the branch that takes longest.
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
