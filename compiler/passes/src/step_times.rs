//! The time that passes take for each step of a program, for `girder check --time --by step`.
//!
//! Invariant: nothing is measured, and no clock is read, unless it was asked for. A result never depends on a time.

use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, StepId};
use girder_ir::program::{Effect, StepKind};
use girder_source::Span;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A part of a program on which a pass works.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Part {
    /// A compute set.
    Set(ComputeSetId),
    /// A copy.
    Copy(CopyId),
    /// A step of its own, such as a packet of a stream.
    Step(StepId),
}

impl Part {
    /// Returns the name of the part in a graph, and its place in the text.
    pub fn name(self, graph: &Graph) -> (String, Span) {
        let (name, origin) = match self {
            Part::Set(set) => (graph.sets[set].name.to_string(), graph.sets[set].origin),
            Part::Copy(copy) => (graph.copies[copy].name.to_string(), graph.copies[copy].origin),
            Part::Step(step) => {
                let name = match &graph.steps[step].kind {
                    StepKind::Effect(Effect::Read { stream, .. } | Effect::Write { stream, .. }) => {
                        graph.streams[*stream].title()
                    }
                    _ => "step".into(),
                };
                (name, graph.steps[step].origin)
            }
        };
        (name, graph.origins.span(origin))
    }
}

/// The time of each part in each pass, summed over all threads.
#[derive(Debug, Default)]
pub struct StepTimes(Option<Mutex<FxHashMap<(&'static str, Part), Duration>>>);

impl StepTimes {
    /// Returns times that are measured.
    pub fn measured() -> StepTimes {
        StepTimes(Some(Mutex::default()))
    }

    /// Does the work of a pass on a part.
    pub fn of<T>(&self, pass: &'static str, part: Part, work: impl FnOnce() -> T) -> T {
        let Some(times) = &self.0 else { return work() };
        let start = Instant::now();
        let done = work();
        let time = start.elapsed();
        *times.lock().unwrap_or_else(PoisonError::into_inner).entry((pass, part)).or_default() += time;
        done
    }

    /// Returns the times so far, by pass and part; none if they are not measured.
    pub fn take(&mut self) -> Vec<(&'static str, Part, Duration)> {
        let Some(times) = &mut self.0 else { return vec![] };
        let times = std::mem::take(times.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut all: Vec<_> = times.into_iter().map(|((pass, part), time)| (pass, part, time)).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    #[test]
    fn times_of_one_part_are_summed_and_taken_once() {
        let mut times = StepTimes::measured();
        for set in [1, 0, 1] {
            let part = Part::Set(ComputeSetId::new(set));
            assert_eq!(times.of("pass", part, || set), set);
        }
        let parts: Vec<_> = times.take().into_iter().map(|(pass, part, _)| (pass, part)).collect();
        assert_eq!(parts, [0, 1].map(|k| ("pass", Part::Set(ComputeSetId::new(k)))));
        assert!(times.take().is_empty());
    }

    #[test]
    fn nothing_is_measured_unless_asked_for() {
        let mut times = StepTimes::default();
        assert_eq!(times.of("pass", Part::Copy(CopyId::new(0)), || 3), 3);
        assert!(times.take().is_empty());
    }
}
